"""FailureMemory: audited mistakes of judges, remembered over any LangChain vector store.

Method: Hasanbeig et al. 2023 (ALLURE), sections 3 and 4: audited examples are stored by family
and shown to the judge as in-context examples. Each record is one document of the store, with
the complete example in its metadata. Nothing is stored anywhere else, so forgetting an example
leaves no trace of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, Token, copy_context
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from annotated_types import Ge
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.effects import Effect, FirstCalls, aside, run, without_collection
from langchain_judges.asking.embeddings import SentenceEmbeddings
from langchain_judges.errors import OptionError
from langchain_judges.memory import example as example_files
from langchain_judges.memory.example import Example, NewExample
from langchain_judges.memory.faiss_store import FaissStore
from langchain_judges.memory.recall import Recall, Recalled, read_recall
from langchain_judges.memory.selection import ExampleSearch, RecallQuery
from langchain_judges.memory.versions import MemorySnapshot, Record, content_of
from langchain_judges.options import check_value

Views = Mapping["StoredExamples", "MemoryView"]


# The view of each memory in this thread or task; LangGraph's config reaches a judge, but not
# its memory.
_VIEWS: ContextVar[Views] = ContextVar("memory_views", default=MappingProxyType({}))
T = TypeVar("T")
How = Recall | str


@dataclass(frozen=True, eq=False)
class MemoryView:
    """A memory as a thread or task sees it, in place of what its store holds.

    Attributes:
        stored: The examples in the store.
        snapshot: What is seen.
    """

    stored: StoredExamples
    snapshot: MemorySnapshot

    def activate(self) -> Token[Views]:
        """Show the memory in this way to all that this thread or task does from here on.

        Examples remembered since are not recalled, and those forgotten since still are.
        """
        return _VIEWS.set({**_VIEWS.get(), self.stored: self})


class StoredExamples:
    """The examples of one memory in its store, and the latest snapshot of them."""

    def __init__(self, store: VectorStore, search: ExampleSearch, name: str) -> None:
        """Read nothing yet."""
        self.store, self.name, self._search = store, name, search
        self._snapshot: MemorySnapshot | None = None
        self._place = (0, 0)
        self._writing = FirstCalls()
        self._reading = threading.Lock()
        # Records that were on trial, by their key: each is embedded once.
        self._tried: dict[str, Record] = {}

    async def snapshot(self) -> MemorySnapshot:
        """Snapshot of the store, read again if it has changed."""
        if isinstance(self.store, FaissStore):
            snapshot: MemorySnapshot = await aside(partial(self._followed, self.store))
            return snapshot
        return self._snapshot or (await self._read_all())

    def _followed(self, store: FaissStore) -> MemorySnapshot:
        """Snapshot of a store that can tell what has changed in it."""
        # Collecting garbage would take half of the time, and all that is read stays.
        with self._reading, without_collection():
            self._place, added, removed = store.changes_since(self._place)
            known = self._snapshot or MemorySnapshot()
            self._snapshot = known.with_changes(self._records(added), removed)
            return self._snapshot

    async def _read_all(self) -> MemorySnapshot:
        """Read all documents of the memory from a store that can only be searched."""
        wide = 1000
        while True:
            documents = await self._search.documents("example", wide, {})
            if len(documents) < wide:
                break
            wide *= 4
        records = self._records((str(each.id), each.metadata) for each in documents)
        records.sort(key=lambda record: (record.seq, record.key))
        # The old snapshot stays until it is replaced: others may be reading it.
        self._snapshot = MemorySnapshot(records)
        return self._snapshot

    def _records(self, found: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Record]:
        return [Record.read(id, own) for id, own in found if own.get("memory") == self.name]

    async def refresh(self) -> None:
        """Read what other processes have written to the store."""
        async with self._writing.turn():
            if not isinstance(self.store, FaissStore):
                await self._read_all()

    async def add(self, examples: list[NewExample]) -> tuple[list[str], int]:
        """Store new records; return every id, and the number of new records."""
        async with self._writing.turn():
            snapshot = await self.snapshot()
            ids, new = snapshot.records_for(examples, self.name, _now())
            if new:
                documents = [record.document(self.name) for record in new]
                keys = [record.key for record in new]
                await Effect.of(self.store, "add_documents", documents, ids=keys)
                self._changed(snapshot, new, [])
            return ids, len(new)

    async def remove(self, ids: Iterable[str] | None, where: Mapping[str, object]) -> int:
        """Remove records; return how many examples lost a version or all of them.

        Args:
            ids: Ids of examples; None for all.
            where: The values that fields of a version must have.
        """
        async with self._writing.turn():
            snapshot = await self.snapshot()
            names = snapshot.versions if ids is None else dict.fromkeys(ids)
            candidates = (record for id in names for record in snapshot.records_of(id))
            records = [r for r in candidates if where.items() <= {**r.fields}.items()]
            keys, store = [record.key for record in records], self.store
            # Where an earlier process died in a deletion, one of nothing ends it.
            if keys or isinstance(store, FaissStore):
                await Effect.of(store, "delete", keys)
                self._changed(snapshot, [], keys)
            return len({record.id for record in records})

    def _changed(self, old: MemorySnapshot, new: Sequence[Record], gone: Sequence[str]) -> None:
        """Apply a change to the snapshot; a `FaissStore` reports its own."""
        if not isinstance(self.store, FaissStore):
            self._snapshot = old.with_changes(new, gone)

    async def seen(self) -> tuple[MemorySnapshot, Sequence[Record]]:
        """Snapshot that this thread or task sees, and those of its records the store lacks."""
        stored = await self.snapshot()
        if (view := _VIEWS.get().get(self)) is None:
            return stored, ()
        records = view.snapshot.records
        return view.snapshot, [each for k, each in records.items() if k not in stored.records]

    async def pinned(self) -> MemoryView:
        """View of this thread or task, which stays."""
        return _VIEWS.get().get(self) or MemoryView(self, await self.snapshot())

    async def with_trial(self, examples: list[NewExample]) -> MemoryView:
        """A view with more examples."""
        base = await self.snapshot()
        _, new = base.records_for(examples, self.name, _now())
        records = [self._tried.setdefault(record.key, record) for record in new]
        return MemoryView(self, base.with_changes(records))


def _now() -> str:
    """The time that is stored with a record, in milliseconds and UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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
        path: The file of the default store, created if missing; None keeps it in memory.
        recall: The default choice of examples, for judges and for `select_examples`.
        budget: The most characters of examples that a judge shows; default 24,000, and no
            limit for the choice `all`. A judge whose model has a smaller context shows less,
            and reports how many examples it omitted.
        name: Distinguishes memories that share a store.

    Raises:
        OptionError: Both `store` and `path` are given, or `recall` is unknown.
        OutputError: `path` is a folder or another file, is damaged, or cannot be read.

    Example:
        >>> memory = FailureMemory(path="mistakes.db")  # doctest: +SKIP
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
        recall: How = "near:8",
        budget: int | None = None,
        name: str = "failures",
    ) -> None:
        """Open the memory."""
        if store is not None and path is not None:
            raise OptionError("`path` is the file of the default store: pass it or `store`")
        of_store = getattr(store, "embeddings", None)
        self.embeddings: Embeddings = of_store or embeddings or SentenceEmbeddings()
        self.store = store if store is not None else FaissStore(self.embeddings, path=path)
        self.how = read_recall(recall)
        check_value("budget", budget, Annotated[int, Ge(0)] | None)
        self.budget, self.name = budget, name
        self._search = ExampleSearch(self.store, self.embeddings, name)
        self._stored = StoredExamples(self.store, self._search, name)

    def __len__(self) -> int:
        """Number of examples."""
        return len(self._read().versions)

    def __bool__(self) -> bool:
        """True, also for an empty memory."""
        return True

    @property
    def version(self) -> str:
        """A short hash of all examples: equal memories have equal versions."""
        return self._read().version

    def examples(self) -> list[Example]:
        """Every example in its last version, in the order they were remembered."""
        return [deepcopy(each.example) for each in self._read().versions.values()]

    def refresh(self) -> None:
        """Read what other processes have written to the store."""
        run(self._stored.refresh())

    async def arefresh(self) -> None:
        """Read what other processes have written to the store."""
        await self._stored.refresh()

    def remember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Remember audited examples and return their ids.

        Args:
            examples: Fields of `Example`, of which `output` (or `output_a` and `output_b`)
                and `corrected` are required; `label` and `score` are read as `corrected`,
                and `reason` as `note`. An example with the content of a remembered one and
                different other fields becomes a new version of it. Other fields of a data row
                (`category`, `systems`, …) are ignored.

        Raises:
            InputError: An example is invalid; then none is remembered.
        """
        return run(self.aremember(examples))

    async def aremember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Remember examples, as `remember` does."""
        ids, _ = await self._stored.add(example_files.check_examples(examples))
        return ids

    def forget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        auditor: str | None = None,
        round: int | None = None,
    ) -> int:
        """Forget the examples that match every argument, as if they had never been there.

        If only a later version of an example is forgotten, the earlier one comes back. A
        forgotten example is erased from the file of a `FaissStore`.

        Returns:
            How many examples lost a version or all of them.

        Raises:
            OptionError: No argument is given.
        """
        return run(self.aforget(ids, source=source, auditor=auditor, round=round))

    async def aforget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        auditor: str | None = None,
        round: int | None = None,
    ) -> int:
        """Forget examples, as `forget` does."""
        fields = {"source": source, "auditor": auditor, "round": round}
        where = {name: value for name, value in fields.items() if value is not None}
        if ids is None and not where:
            raise OptionError("`forget` needs `ids`, `source`, `auditor` or `round`")
        return await self._stored.remove([ids] if isinstance(ids, str) else ids, where)

    def recall(
        self, item: Mapping[str, object], how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """The examples to show for an item.

        Args:
            item: An `Item` or a `Pair`, with its family, group and id if it has them. The
                source of an `Item` counts as part of its task. An item without a family
                recalls from every family.
            how: The choice, such as `"near:8"` or a `Recall`; default the memory's own.
            allow_leak: Allow the item itself and its group; the result's `leaked` names them.

        Raises:
            OptionError: The choice does not exist.
        """
        return run(self.arecall(item, how, allow_leak=allow_leak))

    async def arecall(
        self, item: Mapping[str, object], how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """The examples to show, as `recall` does."""
        choice = self.how if how is None else read_recall(how)
        while True:
            snapshot, extra = await self._stored.seen()
            query = RecallQuery(item, choice, snapshot, extra=extra, allow_leak=allow_leak)
            result = await self._search.recalled(query)
            # Meanwhile the store may have lost what a view still holds.
            if [*extra] == [*(await self._stored.seen())[1]]:
                return result

    @contextmanager
    def trial(self, examples: Iterable[Mapping[str, object]]) -> Iterator[list[str]]:
        """Let the memory include some more examples in a block, without storing them.

        Judges that are invoked in `with memory.trial(examples):` see the examples as if they
        were remembered, and corrections in place of what they correct. It applies to the code
        that runs in the block, including graphs and their threads and tasks; nothing is stored,
        and no other code or process sees them. `with … as ids` names them.

        Raises:
            InputError: An example is invalid.
        """
        checked = example_files.check_examples(examples)
        view: MemoryView = beside_loop(lambda: run(self._stored.with_trial(checked)))
        token = view.activate()
        try:
            yield [view.snapshot.ids[content_of(each)] for each in checked]
        finally:
            _VIEWS.reset(token)

    def pin(self) -> MemoryView:
        """A fixed view of the memory as it is now."""
        return beside_loop(lambda: run(self._stored.pinned()))

    def add_example(self, example: dict[str, Any]) -> str:
        """Remember one example and return its id."""
        return self.remember([example])[0]

    def select_examples(self, input_variables: dict[str, Any]) -> list[dict[str, Any]]:
        """The examples to show for an item, by the memory's own choice."""
        return [{**example} for example in self.recall(input_variables)]

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every version of every example as JSONL, atomically; return the line count.

        Raises:
            OutputError: The file cannot be written.
        """
        records = self._read().records.values()
        example_files.write_lines(Path(path), [{**each.fields, "at": each.at} for each in records])
        return len(records)

    def import_(self, path: str | os.PathLike[str]) -> int:
        """Remember the examples of a JSONL file; return how many records were new.

        Raises:
            InputError: The file cannot be read, or a line is not an example; nothing is
                remembered then.
        """
        _, count = run(self._stored.add(example_files.read_examples(Path(path))))
        return count

    def _read(self) -> MemorySnapshot:
        snapshot, _ = beside_loop(lambda: run(self._stored.seen()))
        return snapshot


def beside_loop(work: Callable[[], T]) -> T:
    """Result of some work; inside an event loop it runs in a thread of its own.

    Development servers refuse to touch a disk in the thread of their event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, work).result()
