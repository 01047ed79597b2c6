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
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.models.embeddings import SentenceEmbeddings
from langchain_judges.asking.steps import Effect, Steps, arun, run
from langchain_judges.errors import OptionError
from langchain_judges.memory.catalogue import Catalogue, HistoryEntry
from langchain_judges.memory.example import Example, copy_of
from langchain_judges.memory.example_input import check_examples, read_lines, write_lines
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.recall import Recall, Recalled, read_recall
from langchain_judges.memory.selection import Chooser
from langchain_judges.memory.stored import Removal, StoredExamples
from langchain_judges.memory.trial import MemoryTrial, Trials
from langchain_judges.memory.wish import Wish

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
        self._chooser = Chooser(self.store, self.embeddings, name)
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

    def _read(self) -> Catalogue:
        return run(self._trials.catalogue())

    def _remember(self, examples: Iterable[Mapping[str, object]]) -> Steps[list[str]]:
        ids, _ = yield from self._stored.add(check_examples(examples))
        return ids

    def _import(self, path: str | os.PathLike[str]) -> Steps[int]:
        read = partial(read_lines, Path(path))
        examples = yield Effect(read, lambda: asyncio.to_thread(read))
        _, count = yield from self._stored.add(examples)
        return count

    def _recall(
        self, item: Mapping[str, object], how: How | None, allow_leak: bool
    ) -> Steps[Recalled]:
        choice = self.how if how is None else read_recall(how)
        trial, catalogue = self._trials.current(), (yield from self._trials.catalogue())
        records = trial.records if trial else ()
        wish = Wish(item, choice, catalogue, extra=records, allow_leak=allow_leak)
        return (yield from self._chooser.recalled(wish, choice))
