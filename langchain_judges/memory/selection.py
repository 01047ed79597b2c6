"""Which examples of a memory are shown for an item: the choices of `recall.py`, carried out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError
from langchain_judges.memory.catalogue import Catalogue, Record, is_in
from langchain_judges.memory.example import Example, copied, texts_of
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.guard import Guard, Relatives
from langchain_judges.memory.pool import drawn
from langchain_judges.memory.recall import Recall

Vector = Sequence[float]


@dataclass
class Wish:
    """One recall: for which item, how, from what; and what it came upon."""

    item: Mapping[str, Any]
    how: Recall
    """Without what is left out."""
    catalogue: Catalogue
    extra: Sequence[Record]
    """Records that are on trial: they are in `known` and not in the store."""
    guard: Guard
    allow_leak: bool
    family: str | None
    outputs: int
    left_out: tuple[str, ...]
    barred: dict[str, None]
    """Ids of examples that were met and held back."""

    def allows(self, example: Example) -> bool:
        """Say whether an example may be shown; note it if not."""
        if self.allow_leak or not self.guard.bars(example):
            return True
        self.barred[example["id"]] = None
        return False

    def fits(self, example: Example) -> bool:
        """Say whether an example is one of those that are chosen from."""
        return is_in(example, self.family, self.outputs, self.left_out)


class Chooser:
    """Searches a memory's store, and keeps what an answer to the next item needs again."""

    def __init__(self, store: VectorStore, embeddings: Embeddings, name: str) -> None:
        """Begin with nothing found."""
        self.store, self.embeddings, self.name = store, embeddings, name
        self._greedy: dict[tuple[Recall, str, str], list[str]] = {}
        self._vectors: dict[str, Vector] = {}
        self._relatives = Relatives()
        self._covered: Catalogue | None = None

    def ours(self, document: Document) -> bool:
        """Say whether a document of the store is the memory's."""
        return document.metadata.get("memory") == self.name

    def forget(self, keys: Iterable[str]) -> None:
        """Forget what was found of some records."""
        for key in keys:
            self._vectors.pop(key, None)
        self._greedy.clear()
        self._relatives, self._covered = Relatives(), None

    def search(self, query: str, k: int) -> Steps[list[Document]]:
        """Search the store by a text, with a filter where we know how it takes one."""
        store, filters = self.store, self._filters(None)
        documents: list[Document] = yield Effect(
            lambda: store.similarity_search(query, k=k, **filters),
            lambda: store.asimilarity_search(query, k=k, **filters),
        )
        return documents

    def _filters(self, family: str | None) -> dict[str, Any]:
        wanted = {"memory": self.name}
        if family is not None:
            wanted["family"] = family
        if isinstance(self.store, FaissStore):
            return {"filter": wanted}
        if isinstance(self.store, InMemoryVectorStore):
            return {"filter": lambda doc: wanted.items() <= doc.metadata.items()}
        return {}

    def chosen(self, wish: Wish) -> Steps[Sequence[Example]]:
        """Return the examples of a wish, in the order they are shown."""
        how, catalogue = wish.how, wish.catalogue
        if how.kind == "none" or not catalogue.has(wish.family, wish.outputs):
            return []
        if how.kind in {"knn", "mmr"}:
            vector = yield from self._asked(wish)
            if how.kind == "knn":
                return (yield from self._nearest(wish, vector, how.m or 0))
            return (yield from self._varied(wish, vector))
        pool = catalogue.pool(wish.family, wish.outputs, wish.left_out)
        if how.kind == "uniform":
            return pool.uniform(how.m or 0, how.seed, wish.allows)
        if how.kind == "balanced":
            return pool.balanced(how.m or 0, how.seed, wish.allows)
        if how.kind == "greedy_dev":
            helpful = yield from self._helpful(wish, pool.examples)
            return [e for e in pool.examples if e["id"] in helpful and wish.allows(e)]
        if wish.allow_leak:
            return pool.examples
        near = [e for e in self.relatives(wish) if wish.fits(e) and not wish.allows(e)]
        return pool.without(example["id"] for example in near)

    def relatives(self, wish: Wish) -> list[Example]:
        """Return the examples that a guard may bar, in the order they were remembered."""
        catalogue = wish.catalogue
        if self._covered is not catalogue:
            self._relatives.cover(
                (chain.last.key, chain.example) for chain in catalogue.ordered
            )
            self._covered = catalogue
        keys = self._relatives.near(wish.guard)
        records = sorted(
            (catalogue.by_key[key] for key in keys if key in catalogue.by_key),
            key=lambda record: record.place,
        )
        return [e for e in (catalogue.current(record.key) for record in records) if e]

    def _asked(self, wish: Wish) -> Steps[Vector | str]:
        """Return the item's vector, or its text for a store that is only searched by text."""
        query, embed = texts_of(wish.item).joined() or " ", self.embeddings
        if isinstance(self.store, FaissStore):
            vector: Vector = yield from self.store.embedded(query)
            return vector
        own = type(self.store).similarity_search_by_vector
        if own is VectorStore.similarity_search_by_vector:
            return query
        vector = yield Effect(
            lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
        )
        return vector

    def _nearest(self, wish: Wish, query: Vector | str, m: int) -> Steps[list[Example]]:
        """Search wider and wider until enough of what is found may be shown."""
        wide = m + 8
        while True:
            hits = yield from self._hits(query, wide, wish.family)
            examples: list[Example] = []
            for hit in hits:
                example = wish.catalogue.current(str(hit.metadata.get("key")))
                if example and self.ours(hit) and wish.fits(example) and wish.allows(example):
                    examples.append(example)
                if len(examples) == m:
                    break
            if len(examples) == m or len(hits) < wide:
                return (yield from self._with_extra(wish, query, examples, m))
            wide *= 4

    def _hits(self, query: Vector | str, k: int, family: str | None) -> Steps[list[Document]]:
        store, filters = self.store, self._filters(family)
        if isinstance(query, str):
            documents: list[Document] = yield Effect(
                lambda: store.similarity_search(query, k=k, **filters),
                lambda: store.asimilarity_search(query, k=k, **filters),
            )
            return documents
        vector: Any = query
        documents = yield Effect(
            lambda: store.similarity_search_by_vector(vector, k=k, **filters),
            lambda: store.asimilarity_search_by_vector(vector, k=k, **filters),
        )
        return documents

    def _with_extra(
        self, wish: Wish, query: Vector | str, near: list[Example], m: int
    ) -> Steps[list[Example]]:
        """Put what is on trial among the nearest, where the store would have found it."""
        extra = [
            example
            for record in wish.extra
            if (example := wish.catalogue.current(record.key))
            and wish.fits(example)
            and wish.allows(example)
        ]
        if not extra:
            return near
        import numpy as np

        embed = self.embeddings
        vector = query
        if isinstance(query, str):
            vector = yield Effect(
                lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
            )
        examples = [*near, *extra]
        vectors = yield from self._embedded(wish, examples)
        cosines = _unit(np.array(vectors)) @ _unit(np.array([vector]))[0]
        best = np.argsort(-cosines, kind="stable")[:m]
        return [examples[place] for place in best]

    def _varied(self, wish: Wish, query: Vector | str) -> Steps[list[Example]]:
        """Choose from the four times as many that are nearest."""
        m, embed = wish.how.m or 0, self.embeddings
        near = yield from self._nearest(wish, query, 4 * m)
        if not near:
            return []
        vector = query
        if isinstance(query, str):
            vector = yield Effect(
                lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
            )
        vectors = yield from self._embedded(wish, near)
        import numpy as np

        picked = _spread(np.array(vectors), np.array(vector), wish.how.relevance, m)
        return [near[place] for place in picked]

    def _embedded(self, wish: Wish, examples: Sequence[Example]) -> Steps[Sequence[Vector]]:
        """Return the vectors of examples: the store's own, where it tells them."""
        store, embed = self.store, self.embeddings
        records = [wish.catalogue.chains[example["id"]].last for example in examples]
        vectors: dict[str, Vector] = {}
        if isinstance(store, FaissStore):
            on_trial = {record.key for record in wish.extra}
            keys = [record.key for record in records if record.key not in on_trial]
            vectors.update(zip(keys, store.vectors(keys), strict=True))
        new = [r for r in records if r.key not in vectors and r.key not in self._vectors]
        if new:
            texts = [record.text for record in new]
            embedded = yield Effect(
                lambda: embed.embed_documents(texts), lambda: embed.aembed_documents(texts)
            )
            self._vectors.update(zip((record.key for record in new), embedded, strict=True))
        return [vectors[r.key] if r.key in vectors else self._vectors[r.key] for r in records]

    def _helpful(self, wish: Wish, pool: Sequence[Example]) -> Steps[list[str]]:
        """Return the ids of the examples that help on development data, found once."""
        place = (wish.how, wish.family or "", wish.catalogue.version)
        if place not in self._greedy:
            self._greedy[place] = yield from _greedily(wish.how, pool)
        return self._greedy[place]


def _spread(vectors: Any, query: Any, relevance: float, m: int) -> list[int]:
    """Return the places of `m` vectors that are near to a query and unlike each other.

    Maximal marginal relevance (Carbonell & Goldstein 1998): each next one has the largest
    `relevance · cos(query) − (1 − relevance) · the largest cosine with one that is taken`.
    """
    import numpy as np

    rows = _unit(vectors)
    nearness = rows @ _unit(query[None])[0]
    likeness = np.full(len(rows), -np.inf)
    taken: list[int] = []
    while len(taken) < min(m, len(rows)):
        worth = relevance * nearness - (1 - relevance) * likeness if taken else nearness.copy()
        worth[taken] = -np.inf
        taken.append(int(np.argmax(worth)))
        likeness = np.maximum(likeness, rows @ rows[taken[-1]])
    return taken


def _unit(vectors: Any) -> Any:
    import numpy as np

    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)


def _greedily(how: Recall, pool: Sequence[Example]) -> Steps[list[str]]:
    candidates = list(pool)
    if how.pool is not None and len(candidates) > how.pool:
        candidates = drawn(candidates, how.seed)[: how.pool]
    chosen: list[Example] = []
    best = yield _scored(how, [])
    while candidates and len(chosen) < (how.m or 0):
        scores = []
        for example in candidates:
            scores.append((yield _scored(how, [*chosen, example])))
        top = max(scores)
        if top <= best:
            break
        best = top
        chosen.append(candidates.pop(scores.index(top)))
    return [example["id"] for example in chosen]


def _scored(how: Recall, examples: list[Example]) -> Effect:
    score = how.score
    copies = [copied(example) for example in examples]

    def now() -> float:
        value = score(copies) if score else 0.0
        if inspect.iscoroutine(value):
            value.close()
            raise OptionError("`score` is async: use the async methods of the memory")
        return float(value)

    async def later() -> float:
        if not inspect.iscoroutinefunction(score):
            return await asyncio.to_thread(now)
        return float(await score(copies))

    return Effect(now, later)
