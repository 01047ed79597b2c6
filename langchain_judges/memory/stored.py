"""The examples of one memory in its vector store, and what one thread or task sees of them.

That is what the store holds, or also examples on trial, or the memory as it was at one time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.steps import Lock, Steps, Wait
from langchain_judges.memory.document_file import without_collection
from langchain_judges.memory.example import NewExample
from langchain_judges.memory.faiss_store import FaissStore
from langchain_judges.memory.selection import ExampleSearch, aside
from langchain_judges.memory.versions import MemorySnapshot, Record

Views = Mapping["StoredExamples", "View"]


@dataclass(frozen=True, eq=False)
class View:
    """What a thread or task sees of a memory in place of what its store holds.

    Attributes:
        base: What the store held when the view was made.
        snapshot: What is seen.
        records: Those of `snapshot` that `base` has not.
    """

    stored: StoredExamples
    base: MemorySnapshot
    snapshot: MemorySnapshot
    records: Sequence[Record] = ()

    @property
    def version(self) -> str:
        """The version of the memory as it is seen."""
        return self.snapshot.version

    def show(self) -> Token[Views]:
        """Let what this thread or task does from here on see the memory in this way.

        What was remembered since is not recalled, and what was forgotten since still is.
        """
        return _VIEWS.set({**_VIEWS.get(), self.stored: self})

    def end(self, token: Token[Views]) -> None:
        """Let the thread or task see what it saw before `show`."""
        _VIEWS.reset(token)


_VIEWS: ContextVar[Views] = ContextVar(
    "langchain_judges_memory_views", default=MappingProxyType({})
)
"""The view of each memory in this thread or task; LangGraph's config reaches a judge, but not
its memory."""


class StoredExamples:
    """The examples of one memory in its store, and the snapshot that was read last."""

    def __init__(self, store: VectorStore, search: ExampleSearch, name: str) -> None:
        """Read nothing yet."""
        self.store, self.name, self._search = store, name, search
        self._snapshot: MemorySnapshot | None = None
        self._place = (0, 0)
        self._turn = Lock()
        self._reading = threading.Lock()
        self._latest: View | None = None

    def snapshot(self) -> Steps[MemorySnapshot]:
        """Return what the store holds, read again if it has changed."""
        store = self.store
        if isinstance(store, FaissStore):
            own_store = store
            snapshot: MemorySnapshot = yield aside(lambda: self._followed(own_store))
            return snapshot
        return self._snapshot or (yield from self._read_all())

    def _followed(self, store: FaissStore) -> MemorySnapshot:
        """Return the snapshot of a store that tells what has changed in it."""
        with self._reading, without_collection():
            self._place, added, removed = store.changes_since(self._place)
            if self._snapshot is None:
                self._snapshot = MemorySnapshot(self._records(added))
            elif added or removed:
                self._snapshot = self._snapshot.with_changes(self._records(added), removed)
            return self._snapshot

    def _read_all(self) -> Steps[MemorySnapshot]:
        """Read all documents of the memory from a store that can only be searched."""
        wide = 1000
        while True:
            documents = yield from self._search.documents("example", wide, {})
            if len(documents) < wide:
                break
            wide *= 4
        records = self._records((str(each.id), each.metadata) for each in documents)
        records.sort(key=lambda record: (record.seq, record.key))
        # The old snapshot stays until it is replaced: others may be reading it.
        self._snapshot = MemorySnapshot(records)
        return self._snapshot

    def _records(self, found: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Record]:
        return [
            Record.read(id, fields) for id, fields in found if fields.get("memory") == self.name
        ]

    def refresh(self) -> Steps[None]:
        """Read what other processes have written to the store."""
        yield from self._turn.acquire()
        try:
            if not isinstance(self.store, FaissStore):
                yield from self._read_all()
        finally:
            self._turn.release()

    def add(self, examples: list[NewExample]) -> Steps[tuple[list[str], int]]:
        """Store new records; return every id, and the number of new records."""
        yield from self._turn.acquire()
        try:
            snapshot = yield from self.snapshot()
            ids, new = snapshot.records_for(examples, _now())
            if new:
                documents = [record.document(self.name) for record in new]
                keys = [record.key for record in new]
                store = self.store
                yield Wait(
                    lambda: store.add_documents(documents, ids=keys),
                    lambda: store.aadd_documents(documents, ids=keys),
                )
                self._changed(snapshot, new, [])
            return ids, len(new)
        finally:
            self._turn.release()

    def remove(self, ids: Iterable[str] | None, where: Mapping[str, object]) -> Steps[int]:
        """Remove records; return how many examples lost a version or all of them.

        Args:
            ids: Of examples; None for all.
            where: What the fields of a version must be.
        """
        yield from self._turn.acquire()
        try:
            snapshot = yield from self.snapshot()
            names = snapshot.versions if ids is None else dict.fromkeys(ids)
            candidates = (record for id in names for record in snapshot.records_of(id))
            records = [r for r in candidates if where.items() <= {**r.fields}.items()]
            keys, store = [record.key for record in records], self.store
            # Where an earlier process died in a deletion, one of nothing ends it.
            if keys or isinstance(store, FaissStore):
                yield Wait(lambda: store.delete(keys), lambda: store.adelete(keys))
                self._changed(snapshot, [], keys)
            return len({record.id for record in records})
        finally:
            self._turn.release()

    def _changed(
        self, before: MemorySnapshot, new: Sequence[Record], gone: Sequence[str]
    ) -> None:
        """Take over a change; a `FaissStore` tells of it by itself."""
        if not isinstance(self.store, FaissStore):
            self._snapshot = before.with_changes(new, gone)

    def seen(self) -> Steps[tuple[MemorySnapshot, Sequence[Record]]]:
        """Return what this thread or task sees, and those records that the store has not."""
        stored = yield from self.snapshot()
        if (view := _VIEWS.get().get(self)) is None:
            return stored, ()
        if stored is view.base:
            return view.snapshot, view.records
        records = view.snapshot.records
        return view.snapshot, [
            each for key, each in records.items() if key not in stored.records
        ]

    def held(self) -> Steps[View]:
        """Return what this thread or task sees, as a view that stays."""
        base = yield from self.snapshot()
        return _VIEWS.get().get(self) or View(self, base, base)

    def with_trial(self, examples: list[NewExample]) -> Steps[View]:
        """Return a view with more examples: the latest one again where it is of the same."""
        base, latest = (yield from self.snapshot()), self._latest
        _, records = base.records_for(examples, _now())
        keys = [record.key for record in records]
        if latest and latest.base is base and [r.key for r in latest.records] == keys:
            return latest
        self._latest = View(self, base, base.with_changes(records), records)
        return self._latest


def _now() -> str:
    """Return the time that is stored with a record, in milliseconds and UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
