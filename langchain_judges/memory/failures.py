"""FailureMemory: audited mistakes of judges, remembered over any LangChain vector store.

Method: Hasanbeig et al. 2023 (ALLURE), section 2: audited examples are kept by family and
shown to the judge as in-context examples. Every record is one document of the store, its
metadata hold the whole example, so the store is all there is to save. Nothing is kept
beside it, which is why forgetting leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.embeddings import SentenceEmbeddings
from langchain_judges.asking.gate import Gate
from langchain_judges.asking.steps import Effect, Steps, arun, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.catalogue import Catalogue, Record
from langchain_judges.memory.example import Example, asked_of, copied, texts_of
from langchain_judges.memory.example_input import checked, read_lines
from langchain_judges.memory.faiss import plain_files
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.guard import Guard
from langchain_judges.memory.recall import (
    Recall,
    Recalled,
    all_,
    balanced,
    greedy_dev,
    knn,
    leave_out,
    mmr,
    none,
    read_recall,
    uniform,
)
from langchain_judges.memory.selection import Chooser, Wish
from langchain_judges.memory.trial import Trial, Tried, tried_in

__all__ = [
    "Example",
    "FailureMemory",
    "Recall",
    "Recalled",
    "all_",
    "balanced",
    "greedy_dev",
    "knn",
    "leave_out",
    "mmr",
    "none",
    "uniform",
]

Item = Mapping[str, Any]
How = Recall | str


class FailureMemory(BaseExampleSelector):
    """Audited mistakes of judges, and which of them to show for an item.

    An example is known by its content (family, input, output, expected): remembering it
    again changes nothing, and correcting it again makes a new version of it. An item never
    recalls itself, nearly the same texts, or an example of its group, unless
    `allow_leak=True` says so. It is also a LangChain example selector.

    Args:
        store: Any LangChain vector store; default a `FaissStore`. A store other than
            `FaissStore` may hold other documents too; what other processes add to it is
            seen after `refresh()`.
        embeddings: Embeds the examples, where `store` does not; default all-MiniLM-L6-v2.
        path: The folder of the default store; None keeps it in memory.
        recall: How `select_examples` chooses, and a judge that is not told otherwise.
        budget: Most characters of examples that a judge is shown; default 24,000 for a judge
            of pairs, no limit for a judge of one text. A judge whose model is known to take
            less shows less, and says how many examples it left out.
        name: Tells memories apart that share a store.

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
            raise OptionError("`path` is the folder of the default store: give it or `store`")
        own = getattr(store, "embeddings", None)
        self.embeddings: Embeddings = own or embeddings or SentenceEmbeddings()
        self.store = store if store is not None else FaissStore(self.embeddings, path=path)
        self.how = read_recall(recall)
        whole = isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0
        if budget is not None and not whole:
            raise OptionError(f"`budget` must be a whole number of at least 0, got {budget!r}")
        self.budget = budget
        self.name = name
        self._known: tuple[Catalogue, int] | None = None
        self._latest: Tried | None = None
        self._turn = Gate(1)
        self._chooser = Chooser(self.store, self.embeddings, name)

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
        return [copied(example) for example in self._read().examples()]

    def refresh(self) -> None:
        """Look at what others have written to the store."""
        run(self._refreshed())

    async def arefresh(self) -> None:
        """Look at what others have written to the store."""
        await arun(self._refreshed())

    def remember(self, examples: Iterable[Mapping[str, Any]]) -> list[str]:
        """Remember audited examples and return their ids.

        Args:
            examples: Fields of `Example`, of which `output` (or `output_a` and `output_b`)
                and `corrected` are required. One whose content is known, with other
                fields, becomes a new version of it. A row of data may bring what people
                know of it (`label`, `category`, `systems`, …): it is left out.

        Raises:
            InputError: An example is not one; none is remembered then.
        """
        return run(self._remember(examples))

    async def aremember(self, examples: Iterable[Mapping[str, Any]]) -> list[str]:
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
        """Forget what fits all that is given; afterwards it is as if it had never been there.

        An earlier version of an example comes back when only a later one is forgotten. In
        the files of a `FaissStore` it is blanked, so that nothing stays in them.

        Returns:
            How many examples lost a version or all of them.

        Raises:
            OptionError: Nothing is given.
        """
        return run(self._forget(_Wanted(_ids(ids), source, auditor, round)))

    async def aforget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        auditor: str | None = None,
        round: int | None = None,
    ) -> int:
        """Forget examples, as `forget` does."""
        return await arun(self._forget(_Wanted(_ids(ids), source, auditor, round)))

    def recall(
        self, item: Item, how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """Return the examples to show for an item.

        Args:
            item: An `Item` or a `Pair`, with its family, group and id where it has them. The
                source of an `Item` counts as a part of its task.
                Without a family it recalls from every family.
            how: The choice, such as `knn(8)` or `"knn:8"`; default the memory's own.
            allow_leak: Allow the item itself and its group; the result says which.
        """
        return run(self._recall(item, how, allow_leak))

    async def arecall(
        self, item: Item, how: How | None = None, *, allow_leak: bool = False
    ) -> Recalled:
        """Return the examples to show, as `recall` does."""
        return await arun(self._recall(item, how, allow_leak))

    def trial(self, examples: Iterable[Mapping[str, Any]]) -> Trial:
        """Return a block in which the memory reads as if it held some examples more.

        `with memory.trial(examples):` or `async with`; judges of this process that are asked in
        the block are shown them as if they had been remembered, corrections in the place of
        what they correct. Nothing is stored, and nobody else sees them.

        Raises:
            InputError: An example is not one; when the block begins.
        """
        return Trial(self._tried(examples))

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

    def history(self) -> list[dict[str, Any]]:
        """Return what was remembered when and by whom, oldest first.

        Each entry is `{"at", "round", "auditor", "added", "corrected", "size", "version"}`:
        ids of new and of newly corrected examples, and the memory's size and version then.
        What was forgotten never happened.
        """
        return self._read().history()

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every version of every example as JSONL, in one step; return the lines.

        Raises:
            InputError: The file cannot be written.
        """
        records = run(self._catalogue()).records
        target = Path(path)
        lines = [json.dumps({**r.example, "at": r.at}, ensure_ascii=False) for r in records]
        try:
            plain_files.replace(
                target, [f"{line}\n".encode("utf-8", "surrogatepass") for line in lines]
            )
        except OSError as exc:
            raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
        return len(lines)

    async def aexport(self, path: str | os.PathLike[str]) -> int:
        """Write every example as JSONL, as `export` does."""
        await arun(self._catalogue())
        return await asyncio.to_thread(self.export, path)

    def import_(self, path: str | os.PathLike[str]) -> int:
        """Remember the examples of a JSONL file; return how many records were new.

        Raises:
            InputError: The file cannot be read or a line is no example; nothing is
                remembered then.
        """
        return run(self._import(path))

    async def aimport_(self, path: str | os.PathLike[str]) -> int:
        """Remember the examples of a file, as `import_` does."""
        return await arun(self._import(path))

    def _read(self) -> Catalogue:
        return run(self._seen())

    def _seen(self) -> Steps[Catalogue]:
        """Return what the memory holds, with what is on trial in this thread or task."""
        tried = tried_in(self)
        return tried.catalogue if tried else (yield from self._catalogue())

    def _catalogue(self) -> Steps[Catalogue]:
        """Return what is in the store, brought up to date if that has changed."""
        store = self.store
        if isinstance(store, FaissStore):
            catalogue, number = self._known or (None, -1)
            if number != store.changes():
                news = store.news(number)
                records = [
                    Record.read(doc) for doc in news.documents if self._chooser.ours(doc)
                ]
                if catalogue is None or news.whole:
                    catalogue = Catalogue.of(records)
                else:
                    catalogue = catalogue.changed(records, news.gone)
                self._known = catalogue, news.number
            return cast("Catalogue", catalogue)
        if self._known is None:
            self._know((yield from self._enumerated()))
        return cast("tuple[Catalogue, int]", self._known)[0]

    def _tried(self, examples: Iterable[Mapping[str, Any]]) -> Steps[Tried]:
        catalogue = yield from self._catalogue()
        _, records = catalogue.placed(_all_checked(examples), _now())
        latest = self._latest
        keys = [record.key for record in records]
        same = latest and latest.base is catalogue and [r.key for r in latest.records] == keys
        if latest is None or not same:
            latest = self._latest = Tried(self, records, catalogue.changed(records), catalogue)
        return latest

    def _refreshed(self) -> Steps[None]:
        # What is known stays until the new is there: others may be reading it.
        yield from self._turn.enter()
        try:
            if isinstance(self.store, FaissStore):
                self._known = None
                yield from self._catalogue()
            else:
                self._know((yield from self._enumerated()))
        finally:
            self._turn.leave()

    def _enumerated(self) -> Steps[list[Document]]:
        """Return all our documents of a store that can only be searched."""
        wide = 1000
        while True:
            documents = yield from self._chooser.search("example", wide)
            if len(documents) < wide:
                return documents
            wide *= 4

    def _know(self, documents: Iterable[Document]) -> None:
        self._known = Catalogue.of(self._records(documents)), 0

    def _records(self, documents: Iterable[Document]) -> list[Record]:
        return [Record.read(each) for each in documents if self._chooser.ours(each)]

    def _remember(self, examples: Iterable[Mapping[str, Any]]) -> Steps[list[str]]:
        ids, _ = yield from self._keep(_all_checked(examples))
        return ids

    def _keep(self, examples: list[dict[str, Any]]) -> Steps[tuple[list[str], int]]:
        """Store what is new and return every id, and how many records were new."""
        yield from self._turn.enter()
        try:
            catalogue = yield from self._catalogue()
            ids, fresh = catalogue.placed(examples, _now())
            if fresh:
                documents = [record.document(self.name) for record in fresh]
                keys = [record.key for record in fresh]
                store = self.store
                yield Effect(
                    lambda: store.add_documents(documents, ids=keys),
                    lambda: store.aadd_documents(documents, ids=keys),
                )
                if not isinstance(store, FaissStore):
                    self._known = catalogue.changed(fresh), 0
            yield from self._catalogue()
            return ids, len(fresh)
        finally:
            self._turn.leave()

    def _forget(self, wanted: _Wanted) -> Steps[int]:
        if wanted == _Wanted():
            raise OptionError("`forget` needs `ids`, `source`, `auditor` or `round`")
        yield from self._turn.enter()
        try:
            catalogue = yield from self._catalogue()
            candidates: Iterable[Record] = catalogue.records
            if wanted.ids is not None:
                chains = (catalogue.chains.get(id) for id in dict.fromkeys(wanted.ids))
                candidates = [r for chain in chains if chain for r in chain.records]
            gone = [record for record in candidates if wanted.fits(record.example)]
            keys = [record.key for record in gone]
            if keys:
                store = self.store
                yield Effect(lambda: store.delete(keys), lambda: store.adelete(keys))
                if not isinstance(store, FaissStore):
                    self._known = catalogue.changed([], keys), 0
                self._chooser.forget(keys)
            if isinstance(self.store, FaissStore):
                # Even if nothing is left to forget: a kill may have come before this.
                erase = self.store.erase
                yield Effect(erase, lambda: asyncio.to_thread(erase))
            yield from self._catalogue()
            return len({record.example["id"] for record in gone})
        finally:
            self._turn.leave()

    def _import(self, path: str | os.PathLike[str]) -> Steps[int]:
        def read() -> list[dict[str, Any]]:
            return read_lines(Path(path))

        examples: list[dict[str, Any]] = yield Effect(read, lambda: asyncio.to_thread(read))
        _, count = yield from self._keep(examples)
        return count

    def _recall(self, item: Item, how: How | None, allow_leak: bool) -> Steps[Recalled]:
        choice = self.how if how is None else read_recall(how)
        tried, catalogue = tried_in(self), (yield from self._seen())
        query = asked_of(item)
        wish = Wish(
            item=query,
            how=choice.inner,
            catalogue=catalogue,
            extra=tried.records if tried else (),
            guard=Guard(query),
            allow_leak=allow_leak,
            family=None if choice.any_family else query.get("family"),
            outputs=len(texts_of(query).outputs),
            left_out=choice.left_out,
            barred={},
        )
        examples = yield from self._chooser.chosen(wish)
        result = Recalled(examples)
        result.how, result.version, result.allow_leak = choice, catalogue.version, allow_leak
        result.barred = tuple(wish.barred)
        if allow_leak:
            chosen = {id(example) for example in examples}
            near = self._chooser.relatives(wish)
            result.leaked = tuple(
                e["id"] for e in near if id(e) in chosen and wish.guard.bars(e)
            )
        return result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _all_checked(examples: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(examples, Mapping | str):
        raise InputError("`examples` must be a list of examples, not one")
    return [checked(example) for example in examples]


@dataclass(frozen=True)
class _Wanted:
    """What is to be forgotten."""

    ids: tuple[str, ...] | None = None
    source: str | None = None
    auditor: str | None = None
    round: int | None = None

    def fits(self, example: Mapping[str, Any]) -> bool:
        """Say whether an example is meant by what is said beside its id."""
        rest = (("source", self.source), ("auditor", self.auditor), ("round", self.round))
        return all(value is None or example[name] == value for name, value in rest)


def _ids(ids: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return ids if ids is None else (ids,) if isinstance(ids, str) else tuple(ids)
