"""FailureMemory: audited mistakes of judges, remembered over any LangChain vector store.

Method: Hasanbeig et al. 2023 (ALLURE), section 2: audited examples are stored by family and
shown to the judge as in-context examples. Each record is one document of the store, with the
complete example in its metadata. Nothing is stored anywhere else, so forgetting an example
leaves no trace of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, Token, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

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
from langchain_judges.memory.faiss_store import FaissStore
from langchain_judges.memory.recall import Recall, Recalled, read_recall
from langchain_judges.memory.selection import ExampleSelection, RecallQuery, aside
from langchain_judges.memory.versions import HistoryEntry, MemorySnapshot, Record

T = TypeVar("T")
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
        path: The file of the default store, made if it is missing; None keeps it in memory.
        recall: The default choice of examples, for judges and for `select_examples`.
        budget: The most characters of examples that a judge shows; default 24,000 for a judge
            of pairs, no limit for a judge of one text. A judge whose model has a smaller
            context shows less, and reports how many examples it omitted.
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
        is_count = isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0
        if budget is not None and not is_count:
            raise OptionError(f"`budget` must be a whole number of at least 0, got {budget!r}")
        self.budget, self.name = budget, name
        self._selection = ExampleSelection(self.store, self.embeddings, name)
        self._stored = StoredExamples(self.store, self._selection, name)
        self._trials = Trials(self._stored)

    def __len__(self) -> int:
        """Return how many examples there are."""
        return len(self._read().versions)

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

        If only a later version of an example is forgotten, the earlier one is back. From the
        file of a `FaissStore` a forgotten example is erased.

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
            how: The choice, such as `near(8)` or `"near:8"`; default the memory's own.
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

    def hold(self) -> HeldMemory:
        """Return the memory as it is now, for work during which it may change."""
        return beside_loop(lambda: HeldMemory(run(self._trials.held())))

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
        return run(self._export(path))

    async def aexport(self, path: str | os.PathLike[str]) -> int:
        """Write every example as JSONL, as `export` does."""
        return await arun(self._export(path))

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
        return beside_loop(lambda: run(self._trials.snapshot()))

    def _remember(self, examples: Iterable[Mapping[str, object]]) -> Steps[list[str]]:
        ids, _ = yield from self._stored.add(check_examples(examples))
        return ids

    def _export(self, path: str | os.PathLike[str]) -> Steps[int]:
        snapshot = yield from self._stored.snapshot()
        lines = [{**each.fields, "at": each.at} for each in snapshot.records.values()]
        yield aside(partial(write_lines, Path(path), lines))
        return len(lines)

    def _import(self, path: str | os.PathLike[str]) -> Steps[int]:
        examples = yield aside(partial(read_lines, Path(path)))
        _, count = yield from self._stored.add(examples)
        return count

    def _recall(
        self, item: Mapping[str, object], how: How | None, allow_leak: bool
    ) -> Steps[Recalled]:
        choice = self.how if how is None else read_recall(how)
        while True:
            snapshot, extra = yield from self._trials.seen()
            query = RecallQuery(item, choice, snapshot, extra=extra, allow_leak=allow_leak)
            result = yield from self._selection.recalled(query)
            # Meanwhile the store may have lost what a trial still holds.
            if self._trials.current() is None or extra == (yield from self._trials.seen())[1]:
                return result


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
        with self._reading:
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


def beside_loop(work: Callable[[], T]) -> T:
    """Return what some work returns, done in a thread of its own inside an event loop.

    Development servers refuse to touch a disk in the thread of their event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, work).result()
