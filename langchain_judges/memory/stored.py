"""The examples of one memory in its vector store: read, added and removed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.steps import Lock, Steps, Wait
from langchain_judges.errors import OptionError
from langchain_judges.memory.document_file import without_collection
from langchain_judges.memory.example import NewExample
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
            contents = store.contents(self._last)
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
