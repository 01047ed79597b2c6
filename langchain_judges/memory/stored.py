"""The examples of one memory in its vector store, and what one thread or task sees of them.

That is what the store holds, or also examples on trial, or the memory as it was at one time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.steps import Lock, Steps, Wait, arun, run
from langchain_judges.errors import OptionError
from langchain_judges.memory.document_file import without_collection
from langchain_judges.memory.example import NewExample, check_examples
from langchain_judges.memory.faiss_store import FaissStore
from langchain_judges.memory.selection import ExampleSelection, aside
from langchain_judges.memory.versions import MemorySnapshot, Record


@dataclass(frozen=True)
class Removal:
    """Which examples are removed: those that match every argument.

    Raises:
        OptionError: All are None.
    """

    ids: str | Sequence[str] | None
    source: str | None
    auditor: str | None
    round: int | None

    def __post_init__(self) -> None:
        """Refuse to remove everything by mistake."""
        if (self.ids, self.source, self.auditor, self.round) == (None, None, None, None):
            raise OptionError("`forget` needs `ids`, `source`, `auditor` or `round`")

    def records_of(self, snapshot: MemorySnapshot) -> list[Record]:
        """Return the records that are removed from a snapshot."""
        candidates: Iterable[Record] = snapshot.records.values()
        if self.ids is not None:
            ids = [self.ids] if isinstance(self.ids, str) else self.ids
            versions = (snapshot.versions.get(id) for id in dict.fromkeys(ids))
            candidates = [r for own in versions if own for r in own.records]
        rest = {"source": self.source, "auditor": self.auditor, "round": self.round}
        wanted = {name: value for name, value in rest.items() if value is not None}
        return [r for r in candidates if not wanted or wanted.items() <= {**r.fields}.items()]


class StoredExamples:
    """The examples of one memory in its store, and the snapshot that was read last."""

    def __init__(self, store: VectorStore, selection: ExampleSelection, name: str) -> None:
        """Read nothing yet."""
        self.store, self.name = store, name
        self._selection = selection
        self._snapshot: MemorySnapshot | None = None
        self._changes, self._last, self._count = -1, 0, 0
        self._turn = Lock()
        self._reading = threading.Lock()

    def snapshot(self) -> Steps[MemorySnapshot]:
        """Return the snapshot of the store, made anew if the store has changed."""
        store = self.store
        if isinstance(store, FaissStore):
            own_store = store
            followed: MemorySnapshot = yield aside(lambda: self._followed(own_store))
            return followed
        if self._snapshot is None:
            yield from self._read_all()
        return cast("MemorySnapshot", self._snapshot)

    def _followed(self, store: FaissStore) -> MemorySnapshot:
        """Return the snapshot of a store that tells what has changed in it."""
        with self._reading, without_collection():
            changes = store.changes()
            if self._snapshot is not None and changes == self._changes:
                return self._snapshot
            contents = store.contents(self._last, ("memory", "family"))
            before = self._snapshot or MemorySnapshot()
            new = self._records(contents.added)
            # Only removals make fewer documents than were added.
            count, self._count = self._count + len(contents.added), len(contents.ids)
            gone = before.records.keys() - contents.ids.keys() if count > self._count else ()
            self._snapshot = before.with_changes(new, gone)
            self._changes, self._last = changes, contents.last
            return self._snapshot

    def refresh(self) -> Steps[None]:
        """Read what other processes have written to the store."""
        yield from self._turn.acquire()
        try:
            if isinstance(self.store, FaissStore):
                yield from self.snapshot()
            else:
                yield from self._read_all()
        finally:
            self._turn.release()

    def add(self, examples: list[NewExample]) -> Steps[tuple[list[str], int]]:
        """Store new records; return every id, and the number of new records."""
        yield from self._turn.acquire()
        try:
            snapshot = yield from self.snapshot()
            ids, new = snapshot.records_for(examples, now())
            if new:
                documents = [record.document(self.name) for record in new]
                keys = [record.key for record in new]
                store = self.store
                yield Wait(
                    lambda: store.add_documents(documents, ids=keys),
                    lambda: store.aadd_documents(documents, ids=keys),
                )
                yield from self._changed(snapshot, new, [])
            return ids, len(new)
        finally:
            self._turn.release()

    def remove(self, removal: Removal) -> Steps[int]:
        """Remove records; return how many examples lost a version or all of them."""
        yield from self._turn.acquire()
        try:
            snapshot = yield from self.snapshot()
            records = removal.records_of(snapshot)
            keys = [record.key for record in records]
            store = self.store
            if keys:
                yield Wait(lambda: store.delete(keys), lambda: store.adelete(keys))
                self._selection.forget(keys)
                yield from self._changed(snapshot, [], keys)
            elif isinstance(store, FaissStore):  # an earlier process may have died here
                yield aside(store.erase)
            return len({record.id for record in records})
        finally:
            self._turn.release()

    def _changed(
        self, before: MemorySnapshot, new: Sequence[Record], gone: Sequence[str]
    ) -> Steps[None]:
        if isinstance(self.store, FaissStore):
            yield from self.snapshot()
        else:
            self._snapshot = before.with_changes(new, gone)

    def _read_all(self) -> Steps[None]:
        """Read all documents of the memory from a store that can only be searched."""
        wide = 1000
        while True:
            documents = yield from self._selection.documents(
                "example", wide, {"memory": self.name}
            )
            if len(documents) < wide:
                break
            wide *= 4
        found = [(str(each.id), each.metadata) for each in documents]
        # The old snapshot stays until it is replaced: others may be reading it.
        self._snapshot = MemorySnapshot(self._records(found))

    def _records(self, found: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Record]:
        return [
            Record.read(id, fields) for id, fields in found if fields.get("memory") == self.name
        ]


def now() -> str:
    """Return the time that is stored with a record, in milliseconds and UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass
class TrialState:
    """The content of a memory with the examples on trial."""

    stored: StoredExamples
    records: Sequence[Record]
    snapshot: MemorySnapshot
    base: MemorySnapshot
    """The content without them."""


_TRIALS: ContextVar[Mapping[StoredExamples, TrialState]] = ContextVar(
    "langchain_judges_trials", default=MappingProxyType({})
)
"""The trial of each memory in this thread or task; LangGraph's config reaches a judge, but not
its memory."""


def _with_trial(trial: TrialState) -> Mapping[StoredExamples, TrialState]:
    return {**_TRIALS.get(), trial.stored: trial}


@dataclass(frozen=True)
class HeldMemory:
    """A memory as it was at one time."""

    _state: TrialState

    @property
    def version(self) -> str:
        """The version of the memory then."""
        return self._state.snapshot.version

    def show(self) -> None:
        """Let what this thread or task does from here on see the memory as it was then.

        What was remembered since is not recalled, and what was forgotten since still is.
        """
        _TRIALS.set(_with_trial(self._state))


class Trials:
    """The trials of one memory."""

    def __init__(self, stored: StoredExamples) -> None:
        """Start without a trial."""
        self._stored = stored
        self._latest: TrialState | None = None

    def current(self) -> TrialState | None:
        """Return the trial in this thread or task; None if there is none."""
        return _TRIALS.get().get(self._stored)

    def snapshot(self) -> Steps[MemorySnapshot]:
        """Return the snapshot, with the examples on trial in this thread or task."""
        trial = self.current()
        return trial.snapshot if trial else (yield from self._stored.snapshot())

    def seen(self) -> Steps[tuple[MemorySnapshot, Sequence[Record]]]:
        """Return the snapshot, and those of its records that the store has not."""
        stored = yield from self._stored.snapshot()
        if (trial := self.current()) is None:
            return stored, ()
        if stored is trial.base:
            return trial.snapshot, trial.records
        records = trial.snapshot.records
        return trial.snapshot, [
            each for key, each in records.items() if key not in stored.records
        ]

    def held(self) -> Steps[TrialState]:
        """Return the trial in this thread or task, or one of no example."""
        base = yield from self._stored.snapshot()
        return self.current() or TrialState(self._stored, (), base, base)

    def of(self, examples: Iterable[Mapping[str, object]]) -> Steps[TrialState]:
        """Return a trial of examples: the latest one again where it is of the same."""
        base = yield from self._stored.snapshot()
        _, records = base.records_for(check_examples(examples), now())
        latest = self._latest
        keys = [record.key for record in records]
        same = latest and latest.base is base and [r.key for r in latest.records] == keys
        if latest is None or not same:
            changed = base.with_changes(records)
            latest = self._latest = TrialState(self._stored, records, changed, base)
        return latest


@dataclass
class MemoryTrial:
    """A block in which a memory includes some more examples, without storing them.

    It applies to the code that runs in the block, including graphs and their threads and
    tasks, and to nothing else. `with` and `async with` are equivalent.
    """

    steps: Steps[TrialState]
    """The steps that create the trial; they can run once."""
    _token: Token[Mapping[StoredExamples, TrialState]] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIALS.set(_with_trial(run(self.steps)))

    def __exit__(self, *_: object) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIALS.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIALS.set(_with_trial(await arun(self.steps)))

    async def __aexit__(self, *_: object) -> None:
        """End the trial."""
        self.__exit__()
