"""FailureMemory: audited mistakes of judges, remembered over any LangChain vector store.

Method: Hasanbeig et al. 2023 (ALLURE), section 2: audited examples are stored by family and
shown to the judge as in-context examples. Each record is one document of the store, with the
complete example in its metadata. Nothing is stored anywhere else, so forgetting an example
leaves no trace of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.models.embeddings import SentenceEmbeddings
from langchain_judges.asking.steps import Lock, Steps, Wait, arun, run
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import (
    Example,
    NewExample,
    check_examples,
    copy_of,
    read_lines,
    write_lines,
)
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.recall import Recall, Recalled, read_recall
from langchain_judges.memory.selection import ExampleSelection, RecallQuery
from langchain_judges.memory.versions import HistoryEntry, MemorySnapshot, Record

How = Recall | str
"""A choice of examples, or its name."""


class FailureMemory(BaseExampleSelector):
    """Audited mistakes of judges, and the choice of those to show for an item.

    An example is identified by its content (family, input, output, expected): remembering it
    again changes nothing, and correcting it again creates a new version. An item never
    recalls itself, near-duplicates of it, or examples of its group, unless
    `allow_leak=True`. The memory is also a LangChain example selector.

    Args:
        store: Any LangChain vector store; default a `FaissStore`. A store other than
            `FaissStore` may hold other documents too; call `refresh()` to see what other
            processes have added to it.
        embeddings: Embeds the examples if `store` does not; default all-MiniLM-L6-v2.
        path: The folder of the default store; None keeps it in memory.
        recall: The default choice of examples, for judges and for `select_examples`.
        budget: The most characters of examples that a judge shows; default 24,000 for a judge
            of pairs, no limit for a judge of one text. A judge whose model has a smaller
            context shows less, and reports how many examples it omitted.
        name: Distinguishes memories that share a store.

    Raises:
        OptionError: Both `store` and `path` are given, or `recall` is unknown.
        OutputError: `path` is a file, cannot be read, or holds something else.

    Example:
        >>> memory = FailureMemory(path="mistakes")  # doctest: +SKIP
        >>> memory.remember([{"input": "2 + 2?", "output": "22", "expected": "4",
        ...     "wrong": 1, "corrected": 0, "mode": "keywords"}])  # doctest: +SKIP
        >>> memory.recall({"input": "3 + 3?", "output": "33"}, "knn:4")  # doctest: +SKIP
    """

    def __init__(
        self,
        store: VectorStore | None = None,
        embeddings: Embeddings | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        recall: How = "knn:8",
        budget: int | None = None,
        name: str = "failures",
    ) -> None:
        """Open the memory."""
        if store is not None and path is not None:
            raise OptionError("`path` is the folder of the default store: pass it or `store`")
        of_store = getattr(store, "embeddings", None)
        self.embeddings: Embeddings = of_store or embeddings or SentenceEmbeddings()
        self.store = store if store is not None else FaissStore(self.embeddings, path=path)
        self.how = read_recall(recall)
        is_count = isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0
        if budget is not None and not is_count:
            raise OptionError(f"`budget` must be a whole number of at least 0, got {budget!r}")
        self.budget, self.name = budget, name
        self._chooser = ExampleSelection(self.store, self.embeddings, name)
        self._stored = StoredExamples(self.store, self._chooser, name)
        self._trials = Trials(self._stored)

    def __len__(self) -> int:
        """Return how many examples there are."""
        return len(self._read().ordered)

    def __bool__(self) -> bool:
        """Return True: an empty memory is a memory too."""
        return True

    @property
    def version(self) -> str:
        """A short hash of all examples: equal memories have equal versions."""
        return self._read().version

    def examples(self) -> list[Example]:
        """Return every example in its last version, in the order they were remembered."""
        return [copy_of(example) for example in self._read().examples()]

    def refresh(self) -> None:
        """Read what other processes have written to the store."""
        run(self._stored.refresh())

    async def arefresh(self) -> None:
        """Read what other processes have written to the store."""
        await arun(self._stored.refresh())

    def remember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Remember audited examples and return their ids.

        Args:
            examples: Fields of `Example`, of which `output` (or `output_a` and `output_b`)
                and `corrected` are required. An example with the content of a remembered one
                and different other fields becomes a new version of it. Other fields of a data
                row (`label`, `category`, `systems`, …) are ignored.

        Raises:
            InputError: An example is invalid; none is remembered then.
        """
        return run(self._remember(examples))

    async def aremember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Remember examples, as `remember` does."""
        return await arun(self._remember(examples))

    def forget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        auditor: str | None = None,
        round: int | None = None,
    ) -> int:
        """Forget the examples that match every argument, as if they had never been there.

        If only a later version of an example is forgotten, the earlier one is back. In the
        files of a `FaissStore` a forgotten example is overwritten with blanks.

        Returns:
            How many examples lost a version or all of them.

        Raises:
            OptionError: There is no argument.
        """
        return run(self._stored.remove(Removal(ids, source, auditor, round)))

    async def aforget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        auditor: str | None = None,
        round: int | None = None,
    ) -> int:
        """Forget examples, as `forget` does."""
        return await arun(self._stored.remove(Removal(ids, source, auditor, round)))

    def recall(
        self, item: Mapping[str, object], how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """Return the examples to show for an item.

        Args:
            item: An `Item` or a `Pair`, with its family, group and id if it has them. The
                source of an `Item` counts as a part of its task. An item without a family
                recalls from every family.
            how: The choice, such as `knn(8)` or `"knn:8"`; default the memory's own.
            allow_leak: Allow the item itself and its group; the result says which.
        """
        return run(self._recall(item, how, allow_leak))

    async def arecall(
        self, item: Mapping[str, object], how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """Return the examples to show, as `recall` does."""
        return await arun(self._recall(item, how, allow_leak))

    def trial(self, examples: Iterable[Mapping[str, object]]) -> MemoryTrial:
        """Return a block in which the memory includes some more examples, without storing them.

        Use `with memory.trial(examples):` or `async with`. Judges that are invoked in the
        block see the examples as if they were remembered, and corrections in place of what
        they correct. Nothing is stored, and no other code or process sees them.

        Raises:
            InputError: An example is invalid; raised when the block begins.
        """
        return MemoryTrial(self._trials.of(examples))

    def add_example(self, example: dict[str, Any]) -> str:
        """Remember one example and return its id."""
        return self.remember([example])[0]

    async def aadd_example(self, example: dict[str, Any]) -> str:
        """Remember one example and return its id."""
        return (await self.aremember([example]))[0]

    def select_examples(self, input_variables: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the examples to show for an item, by the memory's own choice."""
        return [{**example} for example in self.recall(input_variables)]

    async def aselect_examples(self, input_variables: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the examples to show for an item, by the memory's own choice."""
        return [{**example} for example in await self.arecall(input_variables)]

    def history(self) -> list[HistoryEntry]:
        """Return when and by whom examples were remembered, oldest first.

        Each entry is `{"at", "round", "auditor", "added", "corrected", "size", "version"}`:
        ids of new and of newly corrected examples, and the memory's size and version then.
        Forgotten examples do not appear.
        """
        return self._read().history()

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every version of every example as JSONL, atomically; return the line count.

        Raises:
            InputError: The file cannot be written.
        """
        records = run(self._stored.catalogue()).records
        write_lines(Path(path), [{**record.example, "at": record.at} for record in records])
        return len(records)

    async def aexport(self, path: str | os.PathLike[str]) -> int:
        """Write every example as JSONL, as `export` does."""
        await arun(self._stored.catalogue())
        return await asyncio.to_thread(self.export, path)

    def import_(self, path: str | os.PathLike[str]) -> int:
        """Remember the examples of a JSONL file; return how many records were new.

        Raises:
            InputError: The file cannot be read, or a line is not an example; nothing is
                remembered then.
        """
        return run(self._import(path))

    async def aimport_(self, path: str | os.PathLike[str]) -> int:
        """Remember the examples of a file, as `import_` does."""
        return await arun(self._import(path))

    def _read(self) -> MemorySnapshot:
        return run(self._trials.catalogue())

    def _remember(self, examples: Iterable[Mapping[str, object]]) -> Steps[list[str]]:
        ids, _ = yield from self._stored.add(check_examples(examples))
        return ids

    def _import(self, path: str | os.PathLike[str]) -> Steps[int]:
        read = partial(read_lines, Path(path))
        examples = yield Wait(read, lambda: asyncio.to_thread(read))
        _, count = yield from self._stored.add(examples)
        return count

    def _recall(
        self, item: Mapping[str, object], how: How | None, allow_leak: bool
    ) -> Steps[Recalled]:
        choice = self.how if how is None else read_recall(how)
        trial, catalogue = self._trials.current(), (yield from self._trials.catalogue())
        records = trial.records if trial else ()
        wish = RecallQuery(item, choice, catalogue, extra=records, allow_leak=allow_leak)
        return (yield from self._chooser.recalled(wish, choice))


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

    def records_of(self, catalogue: MemorySnapshot) -> list[Record]:
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

    def __init__(self, store: VectorStore, chooser: ExampleSelection, name: str) -> None:
        """Read nothing yet."""
        self.store, self.name = store, name
        self._chooser = chooser
        self._cache: tuple[MemorySnapshot, int] | None = None
        self._turn = Lock()

    def catalogue(self) -> Steps[MemorySnapshot]:
        """Return the catalogue of the store, updated if the store has changed."""
        store = self.store
        if isinstance(store, FaissStore):
            return self._catalogue_of(store)
        if self._cache is None:
            self._set_cache((yield from self._all_documents()))
        return cast("tuple[MemorySnapshot, int]", self._cache)[0]

    def _catalogue_of(self, store: FaissStore) -> MemorySnapshot:
        """Return the catalogue of a store that tells what has changed in it."""
        catalogue, number = self._cache or (None, -1)
        if number != store.changes():
            news = store.news(number)
            records = self._records(news.documents)
            if catalogue is None or news.whole:
                catalogue = MemorySnapshot.of(records)
            else:
                catalogue = catalogue.with_changes(records, news.gone)
            self._cache = catalogue, news.number
        return cast("MemorySnapshot", catalogue)

    def refresh(self) -> Steps[None]:
        """Read what other processes have written to the store."""
        # The cache stays until it is replaced: others may be reading it.
        yield from self._turn.acquire()
        try:
            if isinstance(self.store, FaissStore):
                self._cache = None
                yield from self.catalogue()
            else:
                self._set_cache((yield from self._all_documents()))
        finally:
            self._turn.release()

    def add(self, examples: list[NewExample]) -> Steps[tuple[list[str], int]]:
        """Store new records; return every id, and the number of new records."""
        yield from self._turn.acquire()
        try:
            catalogue = yield from self.catalogue()
            ids, new_records = catalogue.records_for(examples, now())
            if new_records:
                documents = [record.document(self.name) for record in new_records]
                keys = [record.key for record in new_records]
                store = self.store
                yield Wait(
                    lambda: store.add_documents(documents, ids=keys),
                    lambda: store.aadd_documents(documents, ids=keys),
                )
                if not isinstance(store, FaissStore):
                    self._cache = catalogue.with_changes(new_records), 0
            yield from self.catalogue()
            return ids, len(new_records)
        finally:
            self._turn.release()

    def remove(self, removal: Removal) -> Steps[int]:
        """Remove records; return how many examples lost a version or all of them."""
        yield from self._turn.acquire()
        try:
            catalogue = yield from self.catalogue()
            records = removal.records_of(catalogue)
            keys = [record.key for record in records]
            if keys:
                store = self.store
                yield Wait(lambda: store.delete(keys), lambda: store.adelete(keys))
                if not isinstance(store, FaissStore):
                    self._cache = catalogue.with_changes([], keys), 0
                self._chooser.forget(keys)
            if isinstance(self.store, FaissStore):
                # Also if there is nothing to remove: an earlier process may have died here.
                erase = self.store.erase
                yield Wait(erase, lambda: asyncio.to_thread(erase))
            yield from self.catalogue()
            return len({record.example["id"] for record in records})
        finally:
            self._turn.release()

    def _all_documents(self) -> Steps[list[Document]]:
        """Return all documents of the memory from a store that can only be searched."""
        wide = 1000
        while True:
            documents = yield from self._chooser.search("example", wide)
            if len(documents) < wide:
                return documents
            wide *= 4

    def _set_cache(self, documents: Iterable[Document]) -> None:
        self._cache = MemorySnapshot.of(self._records(documents)), 0

    def _records(self, documents: Iterable[Document]) -> list[Record]:
        return [Record.read(each) for each in documents if self._chooser.owns(each)]


def now() -> str:
    """Return the time that is stored with a record, in milliseconds and UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass
class TrialState:
    """The content of a memory with the examples on trial."""

    stored: StoredExamples
    records: Sequence[Record]
    catalogue: MemorySnapshot
    base: MemorySnapshot
    """The content without them."""


_TRIAL: ContextVar[TrialState | None] = ContextVar("langchain_judges_trial", default=None)


class Trials:
    """The trials of one memory."""

    def __init__(self, stored: StoredExamples) -> None:
        """Start without a trial."""
        self._stored = stored
        self._latest: TrialState | None = None

    def current(self) -> TrialState | None:
        """Return the trial in this thread or task; None if there is none."""
        trial = _TRIAL.get()
        return trial if trial and trial.stored is self._stored else None

    def catalogue(self) -> Steps[MemorySnapshot]:
        """Return the catalogue, with the examples on trial in this thread or task."""
        trial = self.current()
        return trial.catalogue if trial else (yield from self._stored.catalogue())

    def of(self, examples: Iterable[Mapping[str, object]]) -> Steps[TrialState]:
        """Return a trial of examples: the latest one again where it is of the same."""
        catalogue = yield from self._stored.catalogue()
        _, records = catalogue.records_for(check_examples(examples), now())
        latest = self._latest
        keys = [record.key for record in records]
        same = latest and latest.base is catalogue and [r.key for r in latest.records] == keys
        if latest is None or not same:
            latest = self._latest = TrialState(
                self._stored, records, catalogue.with_changes(records), catalogue
            )
        return latest


@dataclass
class MemoryTrial:
    """A block in which a memory includes some more examples, without storing them.

    It applies to the code that runs in the block, including graphs and their threads and
    tasks, and to nothing else. `with` and `async with` are equivalent.
    """

    steps: Steps[TrialState]
    """The steps that create the trial; they can run once."""
    _token: Token[TrialState | None] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(run(self.steps))

    def __exit__(self, *_: object) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIAL.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(await arun(self.steps))

    async def __aexit__(self, *_: object) -> None:
        """End the trial."""
        self.__exit__()
