"""Which examples of a memory are shown for an item: the choices of `recall.py`, carried out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError
from langchain_judges.memory.catalogue import Catalogue, Record, copied
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.recall import Example, Recall, by_turns, drawn, texts_of


@dataclass(frozen=True)
class Choice:
    """One recall: for which item, how, from what."""

    item: Mapping[str, Any]
    how: Recall
    pool: Sequence[Example]
    allowed: Callable[[Example], bool]
    family: str | None


class Chooser:
    """Searches a memory's store, and keeps what an answer to the next item needs again."""

    def __init__(self, store: VectorStore, embeddings: Embeddings, name: str) -> None:
        """Begin with nothing found."""
        self.store, self.embeddings, self.name = store, embeddings, name
        self._greedy: dict[tuple[Recall, str, str], list[str]] = {}
        self._vectors: dict[str, list[float]] = {}

    def ours(self, document: Document) -> bool:
        """Say whether a document of the store is the memory's."""
        return document.metadata.get("memory") == self.name

    def forget(self, keys: Iterable[str]) -> None:
        """Forget what was found of some records."""
        for key in keys:
            self._vectors.pop(key, None)
        self._greedy.clear()

    def search(self, query: str, k: int, where: dict[str, Any]) -> Steps[list[Document]]:
        """Search the store, with a filter where we know how it takes one."""
        store = self.store
        filters: dict[str, Any] = {}
        wanted = {"memory": self.name, **where}
        if isinstance(store, FaissStore):
            filters = {"filter": wanted}
        elif isinstance(store, InMemoryVectorStore):
            filters = {"filter": lambda doc: wanted.items() <= doc.metadata.items()}
        found: list[Document] = yield Effect(
            lambda: store.similarity_search(query, k=k, **filters),
            lambda: store.asimilarity_search(query, k=k, **filters),
        )
        return found

    def chosen(self, choice: Choice, known: Catalogue) -> Steps[list[Example]]:
        """Return the examples of a choice, in the order they are shown."""
        how, pool = choice.how, choice.pool
        if not pool:
            return []
        if how.kind == "knn":
            found = yield from self._nearest(choice, known, how.m or 0)
            return found
        if how.kind == "mmr":
            return (yield from self._varied(choice, known))
        if how.kind == "greedy_dev":
            helpful = yield from self._helpful(choice, known)
            return [e for e in pool if e["id"] in helpful and choice.allowed(e)]
        ranked = pool
        if how.kind in {"uniform", "balanced"}:
            ranked = drawn(pool, how.seed)
        fit = [example for example in ranked if choice.allowed(example)]
        if how.kind == "balanced":
            fit = by_turns(fit)
        kept = {example["id"] for example in fit[: how.m]}
        return [example for example in pool if example["id"] in kept]

    def _nearest(self, choice: Choice, known: Catalogue, m: int) -> Steps[list[Example]]:
        """Search wider and wider until enough of what is found may be shown."""
        query = texts_of(choice.item).joined() or " "
        where = {} if choice.family is None else {"family": choice.family}
        open_to = {example["id"] for example in choice.pool}
        wide = m + 8
        while True:
            hits = yield from self.search(query, wide, where)
            found: list[Example] = []
            for hit in hits:
                example = known.last.get(str(hit.metadata.get("key")))
                usable = example is not None and example["id"] in open_to
                if self.ours(hit) and example and usable and choice.allowed(example):
                    found.append(example)
                if len(found) == m:
                    return found
            if len(hits) < wide:
                return found
            wide *= 4

    def _varied(self, choice: Choice, known: Catalogue) -> Steps[list[Example]]:
        """Choose from the four times as many that are nearest."""
        m = choice.how.m or 0
        near = yield from self._nearest(choice, known, 4 * m)
        if not near:
            return []
        query, embed = texts_of(choice.item).joined() or " ", self.embeddings
        vector = yield Effect(
            lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
        )
        vectors = yield from self._embedded([known.chains[e["id"]][-1] for e in near])
        import numpy as np

        relevance = choice.how.relevance
        picked = maximal_marginal_relevance(np.array(vector), vectors, relevance, m)
        return [near[i] for i in picked]

    def _embedded(self, records: Sequence[Record]) -> Steps[list[list[float]]]:
        store, embed = self.store, self.embeddings
        if isinstance(store, FaissStore):
            return store.vectors([record.key for record in records])
        new = [record for record in records if record.key not in self._vectors]
        if new:
            told = [record.text for record in new]
            found = yield Effect(
                lambda: embed.embed_documents(told), lambda: embed.aembed_documents(told)
            )
            self._vectors.update(zip((r.key for r in new), found, strict=True))
        return [self._vectors[record.key] for record in records]

    def _helpful(self, choice: Choice, known: Catalogue) -> Steps[list[str]]:
        """Return the ids of the examples that help on development data, found once."""
        place = (choice.how, choice.family or "", known.version)
        if place not in self._greedy:
            self._greedy[place] = yield from _greedily(choice)
        return self._greedy[place]


def _greedily(choice: Choice) -> Steps[list[str]]:
    how = choice.how
    left = list(choice.pool)
    if how.pool is not None and len(left) > how.pool:
        left = drawn(left, how.seed)[: how.pool]
    chosen: list[Example] = []
    best = yield _scored(how, [])
    while left and len(chosen) < (how.m or 0):
        scores = []
        for example in left:
            scores.append((yield _scored(how, [*chosen, example])))
        top = max(scores)
        if top <= best:
            break
        best = top
        chosen.append(left.pop(scores.index(top)))
    return [example["id"] for example in chosen]


def _scored(how: Recall, examples: list[Example]) -> Effect:
    score = how.score
    shown = [copied(example) for example in examples]

    def now() -> float:
        found = score(shown) if score else 0.0
        if inspect.iscoroutine(found):
            found.close()
            raise OptionError("`score` is async: use the async methods of the memory")
        return float(found)

    async def later() -> float:
        if not inspect.iscoroutinefunction(score):
            return await asyncio.to_thread(now)
        return float(await score(shown))

    return Effect(now, later)
