"""Select the examples of a memory for an item: implements the choices of `recall.py`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example, copy_of, query_of, texts_of
from langchain_judges.memory.faiss.store import FaissStore
from langchain_judges.memory.faiss.variety import cosines, varied
from langchain_judges.memory.guard import Guard, Relatives
from langchain_judges.memory.recall import Recall, Recalled
from langchain_judges.memory.versions import MemorySnapshot, Record, is_in, shuffled


class RecallQuery:
    """One recall: the item, the choice, the candidates, and the examples that were barred.

    Args:
        item: The item, a pair or an example.
        choice: The choice of examples.
        catalogue: What it chooses from.
        extra: Records on trial: they are in `catalogue` and not in the store.
        allow_leak: Allow the item itself and its group.
    """

    def __init__(
        self,
        item: Mapping[str, object],
        choice: Recall,
        catalogue: MemorySnapshot,
        *,
        extra: Sequence[Record],
        allow_leak: bool,
    ) -> None:
        """Read the item."""
        self.item = query_of(item)
        self.how = choice.inner
        """The choice without `leave_out`."""
        self.catalogue, self.extra, self.allow_leak = catalogue, extra, allow_leak
        self.guard = Guard(self.item)
        self.family: str | None = None if choice.any_family else self.item.get("family")
        self.outputs = len(texts_of(self.item).outputs)
        self.left_out = choice.left_out
        self.barred: dict[str, None] = {}
        """Ids of candidates that were barred."""

    def allows(self, example: Example) -> bool:
        """Return whether an example may be shown; record it in `barred` if not."""
        if self.allow_leak or not self.guard.bars(example):
            return True
        self.barred[example["id"]] = None
        return False

    def fits(self, example: Example) -> bool:
        """Return whether an example is a candidate."""
        return is_in(example, self.family, self.outputs, self.left_out)


Vector = Sequence[float]


class ExampleSelection:
    """Searches a memory's store, and caches what the next item needs again."""

    def __init__(self, store: VectorStore, embeddings: Embeddings, name: str) -> None:
        """Create a chooser with empty caches."""
        self.store, self.embeddings, self.name = store, embeddings, name
        self._greedy: dict[tuple[Recall, str, str], list[str]] = {}
        self._vectors: dict[str, Vector] = {}
        self._relatives = Relatives()
        self._covered_catalogue: MemorySnapshot | None = None

    def owns(self, document: Document) -> bool:
        """Return whether a document of the store belongs to the memory."""
        return document.metadata.get("memory") == self.name

    def forget(self, keys: Iterable[str]) -> None:
        """Drop the caches of some records."""
        for key in keys:
            self._vectors.pop(key, None)
        self._greedy.clear()
        self._relatives, self._covered_catalogue = Relatives(), None

    def search(
        self, query: Vector | str, k: int, family: str | None = None
    ) -> Steps[list[Document]]:
        """Search the store, with a filter if it supports a known one."""
        store, filters = self.store, self._filters(family)
        if isinstance(query, str):
            documents: list[Document] = yield Wait(
                lambda: store.similarity_search(query, k=k, **filters),
                lambda: store.asimilarity_search(query, k=k, **filters),
            )
            return documents
        vector = list(query)
        documents = yield Wait(
            lambda: store.similarity_search_by_vector(vector, k=k, **filters),
            lambda: store.asimilarity_search_by_vector(vector, k=k, **filters),
        )
        return documents

    def _filters(self, family: str | None) -> dict[str, Any]:
        fields = {"memory": self.name}
        if family is not None:
            fields["family"] = family
        if isinstance(self.store, FaissStore):
            return {"filter": fields}
        if isinstance(self.store, InMemoryVectorStore):
            return {"filter": lambda doc: fields.items() <= doc.metadata.items()}
        return {}

    def recalled(self, wish: RecallQuery, choice: Recall) -> Steps[Recalled]:
        """Return the examples for a wish, and what is to be known of them."""
        examples = yield from self.choose(wish)
        result = Recalled(examples)
        result.how, result.version = choice, wish.catalogue.version
        result.allow_leak, result.barred = wish.allow_leak, tuple(wish.barred)
        if wish.allow_leak:
            chosen = {id(example) for example in examples}
            near = [e for e in self.relatives(wish) if id(e) in chosen]
            result.leaked = tuple(e["id"] for e in near if wish.guard.bars(e))
        return result

    def choose(self, wish: RecallQuery) -> Steps[Sequence[Example]]:
        """Return the examples for a wish, in the order in which they are shown."""
        how, catalogue = wish.how, wish.catalogue
        if how.kind == "none" or not catalogue.has(wish.family, wish.outputs):
            return []
        if how.kind in {"knn", "mmr"}:
            vector = yield from self._query_vector(wish)
            if how.kind == "knn":
                return (yield from self._nearest(wish, vector, how.m or 0))
            return (yield from self._vary(wish, vector))
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

    def relatives(self, wish: RecallQuery) -> list[Example]:
        """Return the examples that a guard may bar, in the order they were remembered."""
        catalogue = wish.catalogue
        if self._covered_catalogue is not catalogue:
            self._relatives.cover(
                (chain.last.key, chain.example) for chain in catalogue.ordered
            )
            self._covered_catalogue = catalogue
        keys = self._relatives.near(wish.guard)
        records = sorted(
            (catalogue.by_key[key] for key in keys if key in catalogue.by_key),
            key=lambda record: record.place,
        )
        return [e for e in (catalogue.current(record.key) for record in records) if e]

    def _query_vector(self, wish: RecallQuery) -> Steps[Vector | str]:
        """Return the item's vector, or its text if the store can only be searched by text."""
        query = texts_of(wish.item).joined() or " "
        if isinstance(self.store, FaissStore):
            vector: Vector = yield from self.store.embedded(query)
            return vector
        own = type(self.store).similarity_search_by_vector
        if own is VectorStore.similarity_search_by_vector:
            return query
        return (yield from self._embedded(query))

    def _embedded(self, query: Vector | str) -> Steps[Vector]:
        """Return the vector of a text; a vector is returned as it is."""
        if not isinstance(query, str):
            return query
        embed = self.embeddings
        vector: Vector = yield Wait(
            lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
        )
        return vector

    def _nearest(self, wish: RecallQuery, query: Vector | str, m: int) -> Steps[list[Example]]:
        """Widen the search until enough of its hits may be shown."""
        wide = m + 8
        while True:
            hits = yield from self.search(query, wide, wish.family)
            examples: list[Example] = []
            for hit in hits:
                example = wish.catalogue.current(str(hit.metadata.get("key")))
                if example and self.owns(hit) and wish.fits(example) and wish.allows(example):
                    examples.append(example)
                if len(examples) == m:
                    break
            if len(examples) == m or len(hits) < wide:
                return (yield from self._with_extra(wish, query, examples, m))
            wide *= 4

    def _with_extra(
        self, wish: RecallQuery, query: Vector | str, near: list[Example], m: int
    ) -> Steps[list[Example]]:
        """Rank examples on trial among the nearest, as the store would have."""
        extra = [
            example
            for record in wish.extra
            if (example := wish.catalogue.current(record.key))
            and wish.fits(example)
            and wish.allows(example)
        ]
        if not extra:
            return near
        vector = yield from self._embedded(query)
        examples = [*near, *extra]
        vectors = yield from self._vectors_of(wish, examples)
        scores = cosines(np.array(vectors), np.array(vector))
        best = np.argsort(-scores, kind="stable")[:m]
        return [examples[place] for place in best]

    def _vary(self, wish: RecallQuery, query: Vector | str) -> Steps[list[Example]]:
        """Choose diverse examples from the `4 * m` nearest."""
        m = wish.how.m or 0
        near = yield from self._nearest(wish, query, 4 * m)
        if not near:
            return []
        vector = yield from self._embedded(query)
        vectors = yield from self._vectors_of(wish, near)
        places = varied(np.array(vectors), np.array(vector), wish.how.relevance, m)
        return [near[place] for place in places]

    def _vectors_of(
        self, wish: RecallQuery, examples: Sequence[Example]
    ) -> Steps[Sequence[Vector]]:
        """Return the vectors of examples, from the store if it provides them."""
        store, embed = self.store, self.embeddings
        records = [wish.catalogue.chains[example["id"]].last for example in examples]
        vectors: dict[str, Vector] = {}
        if isinstance(store, FaissStore):
            on_trial = {record.key for record in wish.extra}
            keys = [record.key for record in records if record.key not in on_trial]
            vectors.update(zip(keys, store.vectors(keys), strict=True))
        missing = [r for r in records if r.key not in vectors and r.key not in self._vectors]
        if missing:
            texts = [record.text for record in missing]
            new_vectors = yield Wait(
                lambda: embed.embed_documents(texts), lambda: embed.aembed_documents(texts)
            )
            self._vectors.update(
                zip((record.key for record in missing), new_vectors, strict=True)
            )
        return [vectors[r.key] if r.key in vectors else self._vectors[r.key] for r in records]

    def _helpful(self, wish: RecallQuery, pool: Sequence[Example]) -> Steps[list[str]]:
        """Return the ids of the examples that help on development data, cached."""
        place = (wish.how, wish.family or "", wish.catalogue.version)
        if place not in self._greedy:
            self._greedy[place] = yield from _greedy_choice(wish.how, pool)
        return self._greedy[place]


def _greedy_choice(how: Recall, pool: Sequence[Example]) -> Steps[list[str]]:
    candidates = list(pool)
    if how.pool is not None and len(candidates) > how.pool:
        candidates = shuffled(candidates, how.seed)[: how.pool]
    selection: list[Example] = []
    best = yield _score(how, [])
    while candidates and len(selection) < (how.m or 0):
        scores = []
        for example in candidates:
            scores.append((yield _score(how, [*selection, example])))
        top = max(scores)
        if top <= best:
            break
        best = top
        selection.append(candidates.pop(scores.index(top)))
    return [example["id"] for example in selection]


def _score(how: Recall, examples: list[Example]) -> Wait:
    score = how.score
    copies = [copy_of(example) for example in examples]

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

    return Wait(now, later)
