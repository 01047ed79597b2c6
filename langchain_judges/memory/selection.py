"""Selects the examples that an item is shown, by a choice of `recall.py` and a guard.

The guard against leaks: no example may show a judge the item that it judges.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.effects import Effect
from langchain_judges.memory import faiss_store, recall
from langchain_judges.memory.example import query_of, texts_of
from langchain_judges.memory.versions import ExampleVersions, MemorySnapshot, Record
from langchain_judges.rows.texts import group_by_task

# Lowest share of common word triples at which two texts count as the same.
ALIKE_SHARE = 0.9


def same(a: str, b: str) -> bool:
    """Whether two texts are equal but for case, spaces, punctuation or a few words."""
    if a == b:
        return True
    (words_a, triples_a), (words_b, triples_b) = _print(a), _print(b)
    if words_a == words_b:
        # Texts without words cannot be compared by words.
        return bool(words_a)
    few, many = sorted((len(triples_a), len(triples_b)))
    if few < ALIKE_SHARE * many or not few:
        return False
    common = len(triples_a & triples_b)
    return common >= ALIKE_SHARE * (few + many - common)


@lru_cache(maxsize=8192)
def _print(text: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return words, frozenset(zip(words, words[1:], words[2:], strict=False))


@dataclass
class RecallQuery:
    """One recall: the item, the choice, the candidates, and the examples that were barred.

    Attributes:
        given: The item, a pair or an example.
        choice: The choice of examples.
        snapshot: What it chooses from.
        extra: Records on trial: they are in `snapshot` and not in the store.
        allow_leak: Allow the item itself and its group.
        barred: Ids of candidates that were barred.
    """

    given: Mapping[str, object]
    choice: recall.Recall
    snapshot: MemorySnapshot
    extra: Sequence[Record]
    allow_leak: bool

    def __post_init__(self) -> None:
        """Read the item."""
        self.item = query_of(self.given)
        self.family: str | None = None if self.choice.any_family else self.item.get("family")
        self.texts = texts_of(self.item)
        self.outputs = len(self.texts.outputs)
        self.text = self.texts.joined() or " "
        task = self.item.get("input")  # which already contains the source
        self.task = None if task is None else group_by_task(task)
        self.barred: dict[str, None] = {}

    @property
    def pool(self) -> Iterator[ExampleVersions]:
        """The candidates, in the order they were remembered."""
        return filter(self.fits, self.snapshot.versions.values())

    def fits(self, own: ExampleVersions) -> bool:
        """Whether an example is a candidate."""
        # A judge of pairs learns nothing from single texts, and vice versa.
        last = own.last
        return self.family in (None, last.family) and self.outputs in (0, last.outputs)

    def bars(self, own: ExampleVersions) -> bool:
        """Whether an example is the item or nearly so, or of its group or task."""
        example, id, group = own.example, self.item.get("id"), self.item.get("group")
        if id is not None and id in (str(example["source"]), example["id"]):
            return True
        if example["group"] is not None and str(example["group"]) in (group, self.task):
            return True
        # A standing question says nothing of the item.
        if self.task == own.last.task and not self.snapshot.is_standing(example):
            return True
        other = texts_of(example)
        if self.outputs != len(other.outputs) or not same(self.texts.task, other.task):
            return False
        orders = other.outputs, other.outputs[::-1]
        return any(all(map(same, self.texts.outputs, outputs)) for outputs in orders)

    def allows(self, own: ExampleVersions) -> bool:
        """Whether an example may be shown; record it in `barred` if not."""
        if self.allow_leak or not self.bars(own):
            return True
        self.barred[own.last.id] = None
        return False

    def candidates(self, keys: Iterable[object]) -> list[ExampleVersions]:
        """The current examples of some records that may be shown."""
        examples = (self.snapshot.current(str(key)) for key in keys)
        return [each for each in examples if each and self.fits(each) and self.allows(each)]


@dataclass
class ExampleSearch:
    """Searches the store of a memory."""

    store: VectorStore
    embeddings: Embeddings
    name: str

    async def recalled(self, query: RecallQuery) -> recall.Recalled:
        """The examples for a query, and what is to be known of them."""
        examples = await self._choose(query)
        result = recall.Recalled(each.example for each in examples)
        result.version, result.barred = query.snapshot.version, tuple(query.barred)
        result.allow_leak = query.allow_leak
        if query.allow_leak:
            result.leaked = tuple(e.last.id for e in examples if query.bars(e))
        return result

    async def _choose(self, query: RecallQuery) -> Sequence[ExampleVersions]:
        """The examples for a query, in the order in which they are chosen."""
        how, m = query.choice, query.choice.m or 0
        if how.kind == "none" or not any(query.pool):
            return []
        if how.kind == "all":
            return [each for each in query.pool if query.allows(each)]
        if how.kind == "uniform":
            # The draw of an example does not depend on the others.
            def place(own: ExampleVersions) -> str:
                return hashlib.sha256(f"{how.seed}:{own.last.id}".encode()).hexdigest()

            pool = list(query.pool)
            drawn = set(islice(filter(query.allows, sorted(pool, key=place)), m))
            return [each for each in pool if each in drawn]
        if how.kind == "knn":
            return await self._nearest(query, m)
        near = await self._nearest(query, 4 * m)
        chosen = _by_label(near, m)
        return [each for each in near if each in chosen]

    async def _nearest(self, query: RecallQuery, m: int) -> list[ExampleVersions]:
        """Widen the search until enough of its hits may be shown, or no candidate is left."""
        embedding = Effect.of(self.embeddings, "embed_query", query.text)
        own_search = type(self.store).similarity_search_by_vector
        by_vector = own_search is not VectorStore.similarity_search_by_vector
        by_vector &= getattr(self.store, "embeddings", None) is self.embeddings
        wide, asked = m + 8, (await embedding if by_vector else query.text)
        fields = {} if query.family is None else {"family": query.family}
        stored = {each.last.key for each in query.pool} - {each.key for each in query.extra}
        while True:
            found = await self.documents(asked, wide, fields)
            keys = [each.metadata.get("key") for each in found]
            examples = query.candidates(keys)[:m]
            if len(examples) == m or len(found) < wide or stored <= {*keys}:
                break
            wide *= 4
        extra = query.candidates(record.key for record in query.extra)
        if not extra:
            return examples
        # Examples on trial stand among the nearest as the store would have placed them.
        both = [*examples, *extra]
        own: Any = asked if by_vector else await embedding
        vectors = faiss_store.unit(await self._vectors_of([each.last for each in both]))
        scores = (vectors @ faiss_store.unit([own])[0]).round(6)
        return [both[place] for place in np.argsort(-scores, kind="stable")[:m]]

    def documents(self, asked: str | list[float], k: int, fields: Mapping[str, str]) -> Effect:
        """Documents found by a text or its embedding; by known filters, those of the memory."""
        options: dict[str, Any] = {"k": k}
        if isinstance(self.store, faiss_store.FaissStore):
            options["filter"] = {"memory": self.name, **fields}
        search = f"similarity_search{'' if isinstance(asked, str) else '_by_vector'}"
        return Effect.of(self.store, search, asked, **options)

    async def _vectors_of(self, records: Sequence[Record]) -> list[Sequence[float]]:
        """The vectors of records, each embedded once."""
        if missing := [record for record in records if record.vector is None]:
            texts = [record.text for record in missing]
            new = await Effect.of(self.embeddings, "embed_documents", texts)
            for record, vector in zip(missing, new, strict=True):
                record.vector = vector
        return [record.vector for record in records if record.vector is not None]


def _by_label(examples: Iterable[ExampleVersions], m: int) -> list[ExampleVersions]:
    """The first `m` examples, those of each corrected label in turn."""
    groups: dict[str, list[ExampleVersions]] = {}
    for each in examples:
        groups.setdefault(json.dumps(each.example["corrected"]), []).append(each)
    rounds = zip_longest(*(own for _, own in sorted(groups.items())))
    return [each for turn in rounds for each in turn if each is not None][:m]
