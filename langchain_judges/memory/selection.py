"""Selects the examples that an item is shown, by a choice of `recall.py` and a guard.

The guard against leaks: no example may show a judge the item that it judges.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.memory.example import Example, outputs_of, query_of, texts_of
from langchain_judges.memory.faiss_store import FaissStore, unit
from langchain_judges.memory.recall import Recall, Recalled
from langchain_judges.memory.versions import MemorySnapshot, Record, by_label
from langchain_judges.rows.texts import group_by_task

ALIKE = 0.9
"""Lowest share of common word triples at which two texts count as the same."""


class Guard:
    """Decides which examples would show a judge the item that it judges."""

    def __init__(
        self, item: Mapping[str, Any], is_standing: Callable[[Example], bool] = lambda _: False
    ) -> None:
        """Create the guard of an item, as `query_of` returns it.

        Args:
            item: The item.
            is_standing: Whether the task of an example is a standing question, which says
                nothing of the item.
        """
        self.id, self.group = item.get("id"), item.get("group")
        # Its task already contains the source.
        self.task = group_by_task(item["input"]) if item.get("input") is not None else None
        self.texts, self._is_standing = texts_of(item), is_standing

    def bars(self, example: Example) -> bool:
        """Return whether an example is the item or nearly so, or of its group or task."""
        if self.id is not None and self.id in (str(example["source"]), example["id"]):
            return True
        group = str(example["group"])
        if (self.group is not None and self.group == group) or self.task == group:
            return True
        same_task = self.task is not None and self.task == group_by_task(example["input"])
        if same_task and not self._is_standing(example):
            return True
        other, own = texts_of(example), self.texts
        if len(own.outputs) != len(other.outputs) or not same(own.task, other.task):
            return False
        swapped = other.outputs[::-1]
        return _all_same(own.outputs, other.outputs) or _all_same(own.outputs, swapped)


def _all_same(these: Sequence[str], those: Sequence[str]) -> bool:
    return all(same(a, b) for a, b in zip(these, those, strict=True))


def same(a: str, b: str) -> bool:
    """Return whether two texts are equal but for case, spaces, punctuation or a few words."""
    if a == b:
        return True
    (words_a, triples_a), (words_b, triples_b) = _print(a), _print(b)
    if words_a == words_b:
        # Texts without words cannot be compared by words.
        return bool(words_a)
    few, many = sorted((len(triples_a), len(triples_b)))
    if few < ALIKE * many or not few:
        return False
    common = len(triples_a & triples_b)
    return common >= ALIKE * (few + many - common)


@lru_cache(maxsize=8192)
def _print(text: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return words, frozenset(zip(words, words[1:], words[2:], strict=False))


Vector = Sequence[float]


class RecallQuery:
    """One recall: the item, the choice, the candidates, and the examples that were barred.

    Args:
        item: The item, a pair or an example.
        choice: The choice of examples.
        snapshot: What it chooses from.
        extra: Records on trial: they are in `snapshot` and not in the store.
        allow_leak: Allow the item itself and its group.
    """

    def __init__(
        self,
        item: Mapping[str, object],
        choice: Recall,
        snapshot: MemorySnapshot,
        *,
        extra: Sequence[Record],
        allow_leak: bool,
    ) -> None:
        """Read the item."""
        self.item = query_of(item)
        self.choice = choice
        self.snapshot, self.extra, self.allow_leak = snapshot, extra, allow_leak
        self.guard = Guard(self.item, snapshot.is_standing)
        self.family: str | None = None if choice.any_family else self.item.get("family")
        self.outputs = len(texts_of(self.item).outputs)
        self.barred: dict[str, None] = {}
        """Ids of candidates that were barred."""

    @property
    def pool(self) -> list[Example]:
        """The candidates, in the order they were remembered."""
        return self.snapshot.pool(self.family, self.outputs)

    def fits(self, example: Example) -> bool:
        """Return whether an example is a candidate."""
        # A judge of pairs learns nothing from single texts, and vice versa.
        return self.family in (None, example["family"]) and self.outputs in (
            0,
            outputs_of(example),
        )

    def allows(self, example: Example) -> bool:
        """Return whether an example may be shown; record it in `barred` if not."""
        if self.allow_leak or not self.guard.bars(example):
            return True
        self.barred[example["id"]] = None
        return False

    def candidates(self, keys: Iterable[object]) -> list[Example]:
        """Return the current examples of some records that may be shown."""
        examples = (self.snapshot.current(str(key)) for key in keys)
        return [each for each in examples if each and self.fits(each) and self.allows(each)]


class ExampleSelection:
    """Searches a memory's store, and keeps what the next item needs again."""

    def __init__(self, store: VectorStore, embeddings: Embeddings, name: str) -> None:
        """Keep nothing yet."""
        self.store, self.embeddings, self.name = store, embeddings, name
        self._vectors: dict[str, Vector] = {}

    def forget(self, keys: Iterable[str]) -> None:
        """Drop what is kept of some records."""
        for key in keys:
            self._vectors.pop(key, None)

    def recalled(self, query: RecallQuery) -> Steps[Recalled]:
        """Return the examples for a query, and what is to be known of them."""
        examples = yield from self._choose(query)
        result = Recalled(examples)
        result.how, result.version = query.choice, query.snapshot.version
        result.allow_leak, result.barred = query.allow_leak, tuple(query.barred)
        if query.allow_leak:
            result.leaked = tuple(e["id"] for e in examples if query.guard.bars(e))
        return result

    def _choose(self, query: RecallQuery) -> Steps[Sequence[Example]]:
        """Return the examples for a query, in the order in which they are chosen."""
        how = query.choice
        if how.kind == "none" or not query.snapshot.has(query.family, query.outputs):
            return []
        m = how.m or 0
        if how.kind == "all":
            return [example for example in query.pool if query.allows(example)]
        if how.kind == "uniform":
            return _uniform(query, m, how.seed)
        vector = yield from self._query_vector(query)
        if how.kind == "knn":
            return (yield from self._nearest(query, vector, m))
        near = yield from self._nearest(query, vector, 4 * m)
        chosen = by_label(near, m)
        return [example for example in near if example in chosen]

    def _query_vector(self, query: RecallQuery) -> Steps[Vector | str]:
        """Return the item's vector, or its text if the store can only be searched by text."""
        text = texts_of(query.item).joined() or " "
        own = type(self.store).similarity_search_by_vector
        if own is VectorStore.similarity_search_by_vector:
            return text
        if isinstance(self.store, FaissStore):
            yield aside(self.store.check_embedder)
        return (yield from self._embedded(text))

    def _embedded(self, text: Vector | str) -> Steps[Vector]:
        """Return the vector of a text; a vector is returned as it is."""
        if not isinstance(text, str):
            return text
        embed = self.embeddings
        vector: Vector = yield Wait(
            lambda: embed.embed_query(text), lambda: embed.aembed_query(text)
        )
        return vector

    def _nearest(
        self, query: RecallQuery, vector: Vector | str, m: int
    ) -> Steps[list[Example]]:
        """Widen the search until enough of its hits may be shown."""
        wide = m + 8
        while True:
            keys = yield from self._search(query, vector, wide)
            examples = query.candidates(keys)[:m]
            if len(examples) == m or len(keys) < wide:
                break
            wide *= 4
        extra = query.candidates(record.key for record in query.extra)
        if not extra:
            return examples
        # Examples on trial stand among the nearest as the store would have placed them.
        number = yield from self._embedded(vector)
        both = [*examples, *extra]
        vectors = unit((yield from self._vectors_of(query, both)))
        scores = (vectors @ unit([number])[0]).round(6)
        best = np.argsort(-scores, kind="stable")[:m]
        return [both[place] for place in best]

    def _search(
        self, query: RecallQuery, vector: Vector | str, k: int
    ) -> Steps[Sequence[object]]:
        """Return the keys of the records nearest to an item, with a filter if one is known."""
        store, fields = self.store, {"memory": self.name}
        if query.family is not None:
            fields["family"] = query.family
        if isinstance(store, FaissStore):
            own_store, number = store, (yield from self._embedded(vector))
            keys: list[str] = yield aside(lambda: own_store.nearest(number, k, fields))
            return keys
        documents = yield from self.documents(vector, k, fields)
        return [each.metadata.get("key") for each in documents]

    def documents(
        self, query: Vector | str, k: int, fields: Mapping[str, str]
    ) -> Steps[list[Document]]:
        """Return the documents of the memory that a store finds."""
        store, filters = self.store, dict[str, Any]()
        if isinstance(store, InMemoryVectorStore):
            filters = {"filter": lambda each: fields.items() <= each.metadata.items()}
        if isinstance(query, str):
            text = query
            documents: list[Document] = yield Wait(
                lambda: store.similarity_search(text, k=k, **filters),
                lambda: store.asimilarity_search(text, k=k, **filters),
            )
        else:
            vector = list(query)
            documents = yield Wait(
                lambda: store.similarity_search_by_vector(vector, k=k, **filters),
                lambda: store.asimilarity_search_by_vector(vector, k=k, **filters),
            )
        return documents

    def _vectors_of(
        self, query: RecallQuery, examples: Sequence[Example]
    ) -> Steps[list[Vector]]:
        """Return the vectors of examples, each embedded once."""
        records = [query.snapshot.versions[example["id"]].last for example in examples]
        if missing := [record for record in records if record.key not in self._vectors]:
            embed, texts = self.embeddings, [record.text for record in missing]
            new = yield Wait(
                lambda: embed.embed_documents(texts), lambda: embed.aembed_documents(texts)
            )
            self._vectors.update(zip((record.key for record in missing), new, strict=True))
        return [self._vectors[record.key] for record in records]


def _uniform(query: RecallQuery, m: int, seed: int) -> list[Example]:
    """Return `m` random examples in order; the draw does not depend on the other examples."""

    def rank(example: Example) -> str:
        return hashlib.sha256(f"{seed}:{example['id']}".encode()).hexdigest()

    drawn = islice(filter(query.allows, sorted(query.pool, key=rank)), m)
    ids = {example["id"] for example in drawn}
    return [example for example in query.pool if example["id"] in ids]


def aside(work: Callable[[], Any]) -> Wait:
    """Wait for the disk: in an event loop, in a thread beside it."""
    return Wait(work, lambda: asyncio.to_thread(work))
