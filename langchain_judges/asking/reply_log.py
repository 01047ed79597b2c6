"""The one log of replies: what was paid for is written down before it is used.

A reply belongs to a scope, the row of a run or the thread of a graph, and is known by the key
of its call. What rows of equal requests share, such as a plan, belongs to the scope `SHARING`,
so that a run that was stopped resumes with the same plan. A file is SQLite in WAL mode with one
table; a reply stays until its scope is done with.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary, finalize

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic_core import PydanticSerializationError, to_json

from langchain_judges.asking.effects import Effect, SingleFlight, Step, running_config
from langchain_judges.errors import OutputError
from langchain_judges.rows.files import check_database, set_aside

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_TABLE = (files(__package__) / "replies.sql").read_text("utf-8")
# The `application_id` in the header of our files.
_LOG_FILE_MARK = 0x4A524C47
# Not by a list in JSON, which SQLite ends at a NUL.
_FORGET = "DELETE FROM replies WHERE scope IN ({})"
_SIDE_FILES = ("-wal", "-shm")
# The scope of what rows of equal requests share.
SHARING = "shared by rows"
# Begins the scopes of what people may read: each request of a row with its reply.
REQUESTS = "asked "
# The environment variable that names the file for checkpointers that have none on disk.
FILE_VARIABLE = "JUDGES_REPLIES"


# Of each checkpointer, so that all judges that share one share its replies.
_STORES: WeakKeyDictionary[BaseCheckpointSaver[Any], ReplyStore] = WeakKeyDictionary()
_FILE_LOCK = threading.Lock()


@dataclass
class _Group:
    """Changes that are written together."""

    changes: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)
    error: OutputError | None = None


class ReplyStore:
    """Plain values by scope and key.

    Threads that keep values at the same time write them as one group: what came while a group
    was written is the next one. No thread of its own: with many busy threads, handing a reply
    over would take longer than writing it.

    Args:
        path: The file; None: the memory of this process.
        shared: Whether other processes may use the file at the same time.
        wait: Seconds to wait for another process that uses it alone.

    Attributes:
        keeps_requests: Whether requests and replies are kept for people to read.

    Raises:
        OutputError: The file cannot be used, or is somebody else's. A damaged one of ours is
            set aside as `….damaged`.
    """

    def __init__(self, path: Path | None, *, shared: bool = False, wait: float = 60.0) -> None:
        """Open or make the file."""
        self.path, self.keeps_requests = path, False
        self._shared, self._wait = shared, wait
        self._lock, self._using = threading.Lock(), threading.RLock()
        self._group = _Group()
        try:
            self._file = self._opened()
        except (OSError, sqlite3.Error) as exc:
            raise self._error(exc) from exc

    def scopes(self) -> list[str]:
        """The scopes that have replies."""
        return [scope for (scope,) in self._rows("SELECT DISTINCT scope FROM replies")]

    def keep(self, scope: str, key: str, value: object) -> None:
        """Write a value down; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file cannot take it.
        """
        text = json_text(value)
        row = scope, key, text, _entry_checksum(scope, key, text)
        self._change("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)

    def forget(self, *scopes: str) -> None:
        """Drop the replies of scopes that need no more calls."""
        if scopes:
            self._change(_FORGET.format(", ".join("?" * len(scopes))), scopes)

    def close(self) -> None:
        """Close the file; delete it if it holds nothing."""
        with self._using:
            try:
                is_empty = not self.scopes()
            finally:
                self._file.close()  # a full disk lets nothing be read; the file is free again
        if is_empty and self.path and not self._shared:
            for end in ("", *_SIDE_FILES):
                Path(f"{self.path}{end}").unlink(missing_ok=True)

    def _change(self, statement: str, values: tuple[object, ...]) -> None:
        with self._lock:
            group = self._group
            group.changes.append((statement, values))
        with self._using:
            if group is self._group:
                self._write()
        if group.error:
            raise group.error

    def _write(self) -> None:
        with self._lock:
            group, self._group = self._group, _Group()
        several = len(group.changes) > 1
        try:
            if several:
                self._file.execute("BEGIN IMMEDIATE")
            for statement, values in group.changes:
                self._file.execute(statement, values)
            if several:
                self._file.execute("COMMIT")
        except sqlite3.Error as exc:
            group.error = self._error(exc)
            with contextlib.suppress(sqlite3.Error):
                self._file.rollback()

    def entries(self, scope: str, key: str | None = None) -> Iterator[tuple[str, object]]:
        """Yield the good entries of a scope; a damaged one is set aside, and asked again.

        Args:
            scope: The scope.
            key: The only entry that is wanted; None: all.
        """
        query = "SELECT key, value, checksum FROM replies WHERE scope = ? AND key = ifnull(?, key)"
        for found, text, checksum in self._rows(query, scope, key):
            if checksum == _entry_checksum(scope, found, text):
                yield found, json.loads(text)
                continue
            _LOG.warning("A damaged reply in %s is asked for again.", self.path)
            damaged = "UPDATE OR REPLACE replies SET scope = 'damaged'"
            self._change(f"{damaged} WHERE scope = ? AND checksum = ?", (scope, checksum))

    def _rows(self, query: str, *values: str | None) -> list[Any]:
        try:
            with self._using:
                return self._file.execute(query, values).fetchall()
        except sqlite3.DatabaseError as exc:
            if self.path is None or isinstance(exc, sqlite3.OperationalError):
                raise self._error(exc) from exc
            with self._using:
                self._file.close()
                self._file = self._replaced(self.path, exc)
            return []

    def _opened(self) -> sqlite3.Connection:
        if self.path is None:
            return _connected(":memory:", shared=False, wait=self._wait)
        if self.path.is_symlink():
            raise OSError("it is a link")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and (not self.path.is_file() or self.path.stat().st_size):
            check_database(self.path, _LOG_FILE_MARK, "a file of replies")
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            return _connected(str(self.path), shared=self._shared, wait=self._wait)
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, UnicodeDecodeError) as exc:  # it names what is damaged
            return self._replaced(self.path, exc)

    def _replaced(self, path: Path, error: Exception) -> sqlite3.Connection:
        """Begin a new file in place of a damaged one."""
        aside = set_aside(path)
        for end in _SIDE_FILES:
            Path(f"{path}{end}").unlink(missing_ok=True)
        told = "%s is damaged (%s) and was moved to %s; its replies are asked for again."
        _LOG.warning(told, path, error, aside.name)
        return self._opened()

    def _error(self, exc: Exception) -> OutputError:
        return OutputError(f"Replies cannot be written to {self.path}: {exc}")


def _connected(path: str, *, shared: bool, wait: float) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=wait, check_same_thread=False, isolation_level=None)
    file.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        if not shared:
            # Without shared memory, so that network drives will do.
            file.execute("PRAGMA locking_mode = EXCLUSIVE")
        if not file.execute("PRAGMA application_id").fetchone()[0]:
            file.execute(f"PRAGMA application_id = {_LOG_FILE_MARK}")
        file.execute("PRAGMA journal_mode = WAL")
        # The death of the process loses nothing then, that of the machine the last moments.
        file.execute("PRAGMA synchronous = NORMAL")
        if (found := file.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)
        file.executescript(_TABLE)
        file.execute("SELECT scope, key, value, checksum FROM replies LIMIT 1")
    except (sqlite3.Error, UnicodeDecodeError):
        file.close()
        raise
    return file


def _entry_checksum(*parts: str) -> int:
    return zlib.crc32("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"))


def json_text(data: object) -> str:
    """Plain data as compact JSON, several times as fast as by the standard library."""
    try:
        return to_json(data, inf_nan_mode="constants").decode()
    except PydanticSerializationError:  # UTF-8 has no halves of a character
        return json.dumps(data)


def key_of(*parts: object) -> str:
    """Hash texts and JSON-able parts into a key of 32 characters."""
    texts = [
        part if isinstance(part, str) else json.dumps(part, sort_keys=True, default=str)
        for part in parts
    ]
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class ScopeReplies:
    """Replies to one row or thread, of this run and of earlier ones."""

    def __init__(self, store: ReplyStore, scope: str) -> None:
        """Begin with what earlier runs have left."""
        self.store, self.scope = store, scope
        # Who shares replies looks for each: others keep some in the meantime.
        self._kept = {key for key, _ in store.entries(scope)} if scope != SHARING else set()
        self._times: dict[str, Iterator[int]] = {}

    def numbered(self, key: str) -> str:
        """A key with how often it was asked: equal requests of a row are several."""
        return f"{key}-{next(self._times.setdefault(key, itertools.count(1)))}"

    def find(self, key: str) -> Any:
        """The value of a key; None without one."""
        known = key in self._kept or self.scope == SHARING
        entries = self.store.entries(self.scope, key) if known else iter(())
        return next((value for _, value in entries), None)

    def keep(self, key: str, value: object) -> None:
        """Write a value down.

        Raises:
            OutputError: The file cannot take it.
        """
        self.store.keep(self.scope, key, value)
        self._kept.add(key)

    def keep_request(self, unit: str, messages: list[list[str]]) -> None:
        """Write a request with its reply down, if people want to read them.

        Raises:
            OutputError: The file cannot take it.
        """
        if self.store.keeps_requests:
            scope = f"{REQUESTS}{self.scope}"
            known = sum(1 for _ in self.store.entries(scope))
            key = f"{known:06} {key_of(messages)}"
            self.store.keep(scope, key, {"unit": unit, "messages": messages})


class Draft(NamedTuple):
    """Where a call that has no usable reply yet keeps what it has paid for.

    Attributes:
        scope: Of the call; None: nothing is kept.
        key: Of the draft.
    """

    scope: ScopeReplies | None = None
    key: str = ""

    def find(self) -> Any:
        """The value that was kept, by a run that was killed since; None without it."""
        return self.scope.find(self.key) if self.scope else None

    def keep(self, value: object) -> None:
        """Write a value down.

        Raises:
            OutputError: The file cannot take it.
        """
        if self.scope:
            self.scope.keep(self.key, value)


class ReplyLog:
    """Replies to a judge, in the scopes that it is asked in.

    LangGraph writes the result of a node when its pool finds the time. So the replies of a
    thread have a file of their own: beside that of a SQLite checkpointer, `<file>.replies`; of
    any other the one that the environment variable `JUDGES_REPLIES` names, else the memory of
    the process. The rows of a run that keeps its results have the file of the run too.

    Args:
        checkpointer: The graph's; without one no thread is kept.
    """

    def __init__(self, checkpointer: BaseCheckpointSaver[Any] | bool | None = None) -> None:
        """Start without any thread."""
        self.saver = checkpointer if isinstance(checkpointer, BaseCheckpointSaver) else None
        self._threads: dict[str, ScopeReplies] = {}
        self._flight: SingleFlight[dict[str, Any]] = SingleFlight()

    async def once(self, key: str, compute: Callable[[], Step[T]]) -> T:
        """Value that was computed for a key in the running thread, before a kill even.

        Args:
            key: What the value follows from.
            compute: Makes the value, which must be plain data.
        """
        return await self._once(await self._scopes(None), key, compute, lambda _: True)

    async def reply(
        self,
        key: Callable[[], str],
        compute: Callable[[Draft], Step[T]],
        keep: Callable[[T], bool],
        row: ScopeReplies | None,
    ) -> T:
        """The reply to one call of a row, of those that ask the same the next one.

        Args:
            key: Makes that of the call; it is hashed only where something is kept.
            compute: Asks, and keeps drafts; a reply must be plain data.
            keep: Says whether a reply is one to write down.
            row: The scope of the row in a run that keeps its results.

        Raises:
            OutputError: The reply cannot be written down.
        """
        scopes = await self._scopes(row)
        if not scopes:
            return await compute(Draft())
        number = scopes[0].numbered(key())
        draft = Draft(scopes[0], f"{number} draft")
        return await self._once(scopes, number, partial(compute, draft), keep)

    async def shared(
        self,
        key: str,
        compute: Callable[[Draft], Step[T]],
        keep: Callable[[T], bool],
        row: ScopeReplies | None,
    ) -> tuple[T, bool]:
        """The reply that all rows with an equal call share, and whether another row paid.

        Args:
            key: Of the call.
            compute: As for `reply`.
            keep: As for `reply`.
            row: As for `reply`.

        Raises:
            OutputError: The reply cannot be written down.
        """
        scopes = await self._scopes(row)
        own = scopes[0].scope if scopes else ""

        async def found() -> dict[str, Any]:
            stores = [ScopeReplies(scope.store, SHARING) for scope in scopes]
            if known := next(filter(None, (store.find(key) for store in stores)), None):
                return cast("dict[str, Any]", known)
            value = await compute(Draft(stores[0], f"{key} draft") if stores else Draft())
            entry = {"payer": own, "value": value}
            if stores and keep(value):
                stores[0].keep(key, entry)
            return entry

        shared, is_joined = await self._flight.get(key, found, lambda each: keep(each["value"]))
        return shared["value"], shared["payer"] != own if own else is_joined

    async def _scopes(self, row: ScopeReplies | None) -> list[ScopeReplies]:
        return [scope for scope in (row, await self.running()) if scope]

    async def _once(
        self,
        scopes: list[ScopeReplies],
        key: str,
        compute: Callable[[], Step[T]],
        keep: Callable[[T], bool],
    ) -> T:
        for scope in scopes:
            if (value := scope.find(key)) is not None:
                return cast("T", value)
        value = await compute()
        if scopes and keep(value):
            scopes[0].keep(key, value)
        return value

    async def running(self) -> ScopeReplies | None:
        """The replies of the thread that is running; None where none are kept."""
        thread = _thread_of(running_config())
        if self.saver is None or thread is None:
            return None
        if thread not in self._threads:
            self._threads.setdefault(thread, ScopeReplies(await _store_of(self.saver), thread))
        return self._threads[thread]

    def begin(self, config: RunnableConfig | None) -> None:
        """Count the requests of a thread anew: a run of its graph begins."""
        self._threads.pop(str(_thread_of(config)), None)

    async def close(self, config: RunnableConfig | None = None) -> None:
        """Forget a thread's replies: its graph is done.

        Args:
            config: Names the thread; None: the one that is running.
        """
        thread = _thread_of(running_config() if config is None else config)
        if self.saver is None or thread is None:
            return
        self._threads.pop(thread, None)
        (await _store_of(self.saver)).forget(thread)


async def _store_of(saver: BaseCheckpointSaver[Any]) -> ReplyStore:
    if saver not in _STORES:
        file = await _file_of(saver)
        name = f"{file}.replies" if file else os.environ.get(FILE_VARIABLE)
        with _FILE_LOCK:
            if saver not in _STORES:
                store = _STORES[saver] = ReplyStore(Path(name) if name else None, shared=True)
                finalize(saver, store.close)
    return _STORES[saver]


async def _file_of(saver: BaseCheckpointSaver[Any]) -> str | None:
    """The file of a SQLite checkpointer; None if it has none, or is another one."""
    query = "PRAGMA database_list"
    connection: Any = getattr(saver, "conn", None)
    rows: Iterable[Any] = ()
    if isinstance(connection, sqlite3.Connection):
        rows = connection.execute(query).fetchall()
    elif type(connection).__module__.startswith("aiosqlite"):
        rows = await Effect(tuple, lambda: connection.execute_fetchall(query))
    return next((path for _, name, path in rows if name == "main" and path), None)


def _thread_of(config: RunnableConfig | None) -> str | None:
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)
