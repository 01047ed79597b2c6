"""Documents and their vectors as rows of one SQLite file, which several processes may share.

Rows are only added at the end and overwritten with zeros, each under a number that grows, so
that a reader finds what is new without reading the rest. A change is on the disk before it is
acknowledged (`synchronous = FULL`). Every row has a checksum, which SQLite's own pages lack.
SQLite never deletes a row here: it would move its neighbours to other pages, and leave copies
of them behind that `secure_delete` does not see.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from langchain_judges.errors import OptionError, OutputError
from langchain_judges.memory.example import ERRORS
from langchain_judges.rows.files import check_database, whole_file

# The `application_id` in the header of our files.
_MEMORY_FILE_MARK = 1818454637
_FORMAT = 1
# Seconds that a writer waits for another one, and between attempts where SQLite does not wait.
_PATIENCE, _LOOK = 30.0, 0.01
# Rows that are read at once, so that a large file is not in memory twice.
_ROWS_AT_ONCE = 1000
_SQL_SCHEMA = (files(__package__) / "schema.sql").read_text("utf-8")
# Connections of a parent process: to close one would touch the parent's file.
_ABANDONED: list[sqlite3.Connection] = []


class Facts(NamedTuple):
    """Facts about all rows of a file.

    Attributes:
        changes: A number that grows with every change.
        width: Numbers in a vector.
    """

    changes: int
    rows: int
    embedder: str
    width: int


def file_of(path: object) -> Path | None:
    """The file that a path names; None for a store in memory.

    Raises:
        OptionError: The path names no file of this machine.
    """
    if path is None:
        return None
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise OptionError(f"`path` must be the name of a file, got {path!r}")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|file:|:memory:", name):
        raise OptionError(ERRORS["other_machine"].format(path))
    return Path(os.path.expanduser(name))


class DocumentFile:
    """The rows of a store; every method may wait for the disk.

    Args:
        path: The file, which is made if it is missing; None keeps the rows in memory.

    Raises:
        OutputError: The file is not ours, is damaged, or cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file."""
        self.path = path
        self._lock = threading.RLock()
        self._connect()

    def _connect(self) -> None:
        self._process, self._inode = os.getpid(), 0
        with self._errors():
            if self.path is None:
                self._database = _connection(":memory:")
                self._database.executescript(_SQL_SCHEMA)
            else:
                self._database = _opened(self.path)
                self._inode = self.path.stat().st_ino
        weakref.finalize(self, _close, self._database, self._process)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Hold the lock, and see one state of the file; a writer is alone in it.

        Raises:
            OutputError: The file is damaged, was taken away, or cannot be written.
        """
        with self._lock, self._errors():
            if self.path is not None:
                if os.getpid() != self._process:  # no connection survives a fork
                    _ABANDONED.append(self._database)
                    self._connect()
                if self.path.stat().st_ino != self._inode:
                    raise OutputError(f"{self.path} was replaced while it was open")
            self._database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    def facts(self) -> Facts:
        """Facts about all rows; within a transaction, as all that follow."""
        facts = self._database.execute("SELECT * FROM facts").fetchone()
        if [type(each) for each in facts or ()] != [int, int, str, int]:
            raise sqlite3.DatabaseError("its facts are missing")
        return Facts(*facts)

    def added(self, last: int) -> Iterator[list[tuple[int, bytes, bytes]]]:
        """Yield keys, documents and vectors of the rows after a key, in parts."""
        rows = self._database.execute(
            "SELECT * FROM documents"
            " WHERE key > ? AND key NOT IN (SELECT key FROM removed) ORDER BY key",
            (last,),
        )
        while part := rows.fetchmany(_ROWS_AT_ONCE):
            for _, document, vector, checksum in part:
                if checksum is None or checksum != _checksum(document, vector):
                    raise sqlite3.DatabaseError("the checksum of a row does not fit")
            yield [(key, document, vector) for key, document, vector, _ in part]

    def removed(self, last: int) -> list[tuple[int, int]]:
        """The removals after a number: their numbers, and the keys of their rows."""
        query = "SELECT number, key FROM removed WHERE number > ? ORDER BY number"
        return self._database.execute(query, (last,)).fetchall()

    def add(self, rows: Iterable[tuple[bytes, bytes]], embedder: str, width: int) -> None:
        """Add rows; within a transaction that writes.

        Args:
            rows: Each a document as JSON, and its vector: 32-bit floats, little-endian.
            embedder: What made the vectors.
            width: Numbers in a vector.
        """
        added = self._database.executemany(
            "INSERT INTO documents (document, vector, checksum) VALUES (?, ?, ?)",
            ((*row, _checksum(*row)) for row in rows),
        ).rowcount
        self._database.execute(
            "UPDATE facts SET changes = changes + 1, rows = rows + ?, embedder = ?, width = ?",
            (added, embedder, width),
        )

    def remove(self, keys: Sequence[int]) -> None:
        """Remove rows; within a transaction that writes."""
        marked = [(key,) for key in keys]
        # Of the same length, so that SQLite writes it in the place of what was there.
        self._database.executemany(
            "UPDATE documents SET document = zeroblob(length(document)),"
            " vector = zeroblob(length(vector)) WHERE key = ?",
            marked,
        )
        self._database.executemany("INSERT INTO removed (key) VALUES (?)", marked)
        if marked:
            removal = "UPDATE facts SET changes = changes + 1, rows = rows - ?"
            self._database.execute(removal, (len(marked),))

    def erase(self) -> None:
        """Take what was removed out of SQLite's log too.

        Raises:
            OutputError: Another process keeps reading the log.
        """
        end = time.monotonic() + _PATIENCE
        with self._lock, self._errors():
            # SQLite waits for readers and writers, and not for a process that does the same.
            while self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > end:
                    raise OutputError(ERRORS["in_log"].format(path=self.path, wait=_PATIENCE))
                time.sleep(_LOOK)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the file in every error of SQLite and of the disk."""
        try:
            yield
        except sqlite3.OperationalError as exc:
            if "locked" in str(exc):
                why = f"another process has been writing to it for {_PATIENCE:.0f} seconds"
            else:
                why = f"it cannot be read or written: {exc}"
            raise OutputError(f"{self.path}: {why}") from exc
        except (sqlite3.Error, UnicodeDecodeError) as exc:  # it names what is damaged
            raise OutputError(f"{self.path} is damaged: {exc}") from exc
        except OSError as exc:
            raise OutputError(f"{self.path} cannot be used: {exc.strerror}") from exc


def _close(database: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:
        database.close()
    else:
        _ABANDONED.append(database)


def _connection(name: str, *, uri: bool = False) -> sqlite3.Connection:
    database = sqlite3.connect(
        name, _PATIENCE, isolation_level=None, check_same_thread=False, uri=uri
    )
    database.executescript("PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON;")
    return database


def _opened(path: Path) -> sqlite3.Connection:
    """A connection to a file of ours, which is made if it is missing.

    Raises:
        OutputError: Something else has that name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(path):
        _make(path)
    if (version := check_database(path, _MEMORY_FILE_MARK, "a store")) != _FORMAT:
        raise OutputError(f"{path} is of format {version}; this version reads {_FORMAT}")
    log = path.with_name(f"{path.name}-wal")
    if not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size):
        # SQLite wants to write beside the file, which nobody can do here.
        return _connection(f"{path.absolute().as_uri()}?immutable=1", uri=True)
    database = _connection(str(path))
    database.executescript("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0;")
    with suppress(sqlite3.OperationalError):
        # A deletion that was killed may have left its text in the log.
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")
    return database


def _make(path: Path) -> None:
    """Make an empty store under a name nobody can guess; it gets its own when it is whole."""
    for ending in ("-wal", "-shm", "-journal"):
        beside = path.with_name(path.name + ending)
        if os.path.lexists(beside):
            raise OutputError(f"{beside} is in the way of a new {path.name}, and is not ours")
    with suppress(FileExistsError), whole_file(path) as draft:  # another process was faster
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
        blank = _connection(str(draft))
        blank.executescript(_SQL_SCHEMA)
        blank.close()
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # no links in this file system
            pass


def _checksum(document: object, vector: object) -> int | None:
    """The checksum of a row; None if damage has made something else of its bytes."""
    if not isinstance(document, bytes) or not isinstance(vector, bytes):
        return None
    return zlib.crc32(vector, zlib.crc32(document))
