"""A memory's examples in its vector store: read, added, removed, one writer at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.gate import Gate
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError
from langchain_judges.memory.catalogue import Catalogue
from langchain_judges.memory.example import NewExample
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.record import Record
from langchain_judges.memory.selection import Chooser


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

    def records_of(self, catalogue: Catalogue) -> list[Record]:
        """Return the records that are removed from a catalogue."""
        candidates: Iterable[Record] = catalogue.records
        if self.ids is not None:
            ids = [self.ids] if isinstance(self.ids, str) else self.ids
            chains = (catalogue.chains.get(id) for id in dict.fromkeys(ids))
            candidates = [r for chain in chains if chain for r in chain.records]
        return [record for record in candidates if self._fits(record.example)]

    def _fits(self, example: Mapping[str, object]) -> bool:
        """Return whether an example matches the arguments other than the ids."""
        rest = (("source", self.source), ("auditor", self.auditor), ("round", self.round))
        return all(value is None or example[name] == value for name, value in rest)


class StoredExamples:
    """The examples of one memory in its store, and the catalogue of what was last read."""

    def __init__(self, store: VectorStore, chooser: Chooser, name: str) -> None:
        """Read nothing yet."""
        self.store, self.name = store, name
        self._chooser = chooser
        self._cache: tuple[Catalogue, int] | None = None
        self._turn = Gate(1)

    def catalogue(self) -> Steps[Catalogue]:
        """Return the catalogue of the store, updated if the store has changed."""
        store = self.store
        if isinstance(store, FaissStore):
            return self._catalogue_of(store)
        if self._cache is None:
            self._set_cache((yield from self._all_documents()))
        return cast("tuple[Catalogue, int]", self._cache)[0]

    def _catalogue_of(self, store: FaissStore) -> Catalogue:
        """Return the catalogue of a store that tells what has changed in it."""
        catalogue, number = self._cache or (None, -1)
        if number != store.changes():
            news = store.news(number)
            records = self._records(news.documents)
            if catalogue is None or news.whole:
                catalogue = Catalogue.of(records)
            else:
                catalogue = catalogue.with_changes(records, news.gone)
            self._cache = catalogue, news.number
        return cast("Catalogue", catalogue)

    def refresh(self) -> Steps[None]:
        """Read what other processes have written to the store."""
        # The cache stays until it is replaced: others may be reading it.
        yield from self._turn.enter()
        try:
            if isinstance(self.store, FaissStore):
                self._cache = None
                yield from self.catalogue()
            else:
                self._set_cache((yield from self._all_documents()))
        finally:
            self._turn.leave()

    def add(self, examples: list[NewExample]) -> Steps[tuple[list[str], int]]:
        """Store new records; return every id, and the number of new records."""
        yield from self._turn.enter()
        try:
            catalogue = yield from self.catalogue()
            ids, new_records = catalogue.records_for(examples, now())
            if new_records:
                documents = [record.document(self.name) for record in new_records]
                keys = [record.key for record in new_records]
                store = self.store
                yield Effect(
                    lambda: store.add_documents(documents, ids=keys),
                    lambda: store.aadd_documents(documents, ids=keys),
                )
                if not isinstance(store, FaissStore):
                    self._cache = catalogue.with_changes(new_records), 0
            yield from self.catalogue()
            return ids, len(new_records)
        finally:
            self._turn.leave()

    def remove(self, removal: Removal) -> Steps[int]:
        """Remove records; return how many examples lost a version or all of them."""
        yield from self._turn.enter()
        try:
            catalogue = yield from self.catalogue()
            records = removal.records_of(catalogue)
            keys = [record.key for record in records]
            if keys:
                store = self.store
                yield Effect(lambda: store.delete(keys), lambda: store.adelete(keys))
                if not isinstance(store, FaissStore):
                    self._cache = catalogue.with_changes([], keys), 0
                self._chooser.forget(keys)
            if isinstance(self.store, FaissStore):
                # Also if there is nothing to remove: an earlier process may have died here.
                erase = self.store.erase
                yield Effect(erase, lambda: asyncio.to_thread(erase))
            yield from self.catalogue()
            return len({record.example["id"] for record in records})
        finally:
            self._turn.leave()

    def _all_documents(self) -> Steps[list[Document]]:
        """Return all documents of the memory from a store that can only be searched."""
        wide = 1000
        while True:
            documents = yield from self._chooser.search("example", wide)
            if len(documents) < wide:
                return documents
            wide *= 4

    def _set_cache(self, documents: Iterable[Document]) -> None:
        self._cache = Catalogue.of(self._records(documents)), 0

    def _records(self, documents: Iterable[Document]) -> list[Record]:
        return [Record.read(each) for each in documents if self._chooser.owns(each)]


def now() -> str:
    """Return the time that is stored with a record, in milliseconds and UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
