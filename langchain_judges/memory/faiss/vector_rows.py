"""The part of a FaissStore that lives in memory: vectors, documents, and metadata by value.

A row is a slot in the FAISS index. Deleting marks a slot as dead, and dead slots are
squeezed out when they have become many: so neither adding nor deleting touches every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.memory.faiss.filters import MetadataSlots
from langchain_judges.memory.faiss.indexes import (
    FaissIndex,
    IndexKind,
    Mask,
    Slots,
    Vectors,
    new_index,
    search_parameters,
    suits,
)

_DIRECT = 1000
"""Up to this many candidates are compared one by one; of more, FAISS gets a selection."""
_BATCH = 8192
"""Vectors that are compared in one go."""
_MAX_DEAD_SHARE = 0.25
_MAX_DEAD_SLOTS = 64
"""Up to this many dead slots are searched beside the others and left out of the result."""
_JOURNAL = 10_000
"""Changes that are remembered for those who follow them."""


class Entry(NamedTuple):
    """A stored document."""

    id: str
    text: str
    metadata: dict[str, object]


def unit(vectors: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Return vectors as rows of length 1, so that their inner product is the cosine.

    Raises:
        InputError: They are not numbers, not finite, or not all of one length.
    """
    try:
        rows = np.array(vectors, dtype=np.float32, ndmin=2)
    except (TypeError, ValueError) as exc:
        raise InputError(f"vectors must be lists of numbers of one length: {exc}") from exc
    # One sum finds what is not finite faster than a look at every number.
    squares = np.einsum("ij,ij->i", rows, rows)
    if rows.ndim != 2 or not np.isfinite(squares).all():
        raise InputError("vectors must be lists of finite numbers")
    norms = np.sqrt(squares)
    rows /= np.where(norms == 0, 1, norms)[:, None]
    return rows


@dataclass
class VectorRows:
    """Documents and their vectors, searchable.

    Args:
        kind: The index: exact, or approximate above a number of rows.
        above: That number.
    """

    kind: IndexKind = "flat"
    above: int = 0
    index: FaissIndex | None = None
    """None before the first vector."""
    entries: list[Entry | None] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    metadata: MetadataSlots = field(default_factory=MetadataSlots)
    dead: set[int] = field(default_factory=set)
    _change_log: list[str] = field(default_factory=list)
    """Ids of documents in the order in which they came, changed or went."""
    _earlier_changes: int = 0
    """Changes before those."""

    def __len__(self) -> int:
        """Return how many documents there are."""
        return len(self.slots)

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has."""
        return None if self.index is None else int(self.index.d)

    @property
    def changes(self) -> int:
        """A number that grows with every change."""
        return self._earlier_changes + len(self._change_log)

    def changed_since(self, number: int) -> list[str] | None:
        """Return the ids of what changed since a number of `changes`; None: everything may."""
        if number < self._earlier_changes:
            return None
        return list(dict.fromkeys(self._change_log[number - self._earlier_changes :]))

    def living(self) -> list[Entry]:
        """Return the documents, oldest first."""
        return [entry for entry in self.entries if entry is not None]

    def get(self, id: str) -> Entry | None:
        """Return a document by its id."""
        slot = self.slots.get(id)
        return None if slot is None else self.entries[slot]

    def check(self, vectors: Vectors) -> None:
        """Check that vectors fit those that are here.

        Raises:
            InputError: They have another length.
        """
        if self.dimension not in (None, vectors.shape[1]):
            raise InputError(
                f"vectors here have {self.dimension} numbers, got {vectors.shape[1]}: "
                "the store was filled by another embedding model"
            )

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add documents of distinct ids; one whose id is known replaces the old one."""
        if not entries:
            return
        self.check(vectors)
        ids = [entry.id for entry in entries]
        self.drop(ids)
        self._append(entries, vectors)
        self._touch(ids)

    def adopt(self, index: FaissIndex | None, entries: Iterable[Entry | None]) -> None:
        """Take over an index and the documents of its slots, as they were saved.

        Those who follow the changes must read everything.
        """
        self._clear()
        self._earlier_changes, self._change_log = self.changes + 1, []
        self.index = index
        for entry in entries:
            self._register(entry)
        self._fit()

    def _clear(self) -> None:
        self.index, self.entries, self.slots = None, [], {}
        self.metadata, self.dead = MetadataSlots(), set()

    def drop(self, ids: Iterable[str]) -> None:
        """Delete documents; unknown ids are no error."""
        living = [id for id in dict.fromkeys(ids) if id in self.slots]
        for id in living:
            slot = self.slots.pop(id)
            self.entries[slot] = None
            self.dead.add(slot)
        self._touch(living)
        many = len(self.dead) > max(_MAX_DEAD_SLOTS, _MAX_DEAD_SHARE * len(self.entries))
        if many or not self.slots:
            self.squeeze()

    def squeeze(self) -> None:
        """Remove the dead slots."""
        if not self.dead:
            return
        entries = self.living()
        vectors = self.vectors(self._slots_of(None))
        self._clear()
        if entries:
            self._append(entries, vectors)

    def vectors(self, slots: Slots) -> Vectors:
        """Return the vectors of some slots, one row for each."""
        if self.index is None or not len(slots):
            return np.zeros((0, self.dimension or 0), np.float32)
        return self.index.reconstruct_batch(slots)

    def search(
        self, query: Vectors, k: int, where: Mapping[str, object] | None = None
    ) -> list[tuple[int, float]]:
        """Return the slots of the `k` nearest documents and their cosines, best first.

        Args:
            query: One row of unit length.
            k: How many; fewer come if there are fewer.
            where: Fields of the metadata and what each must have, as for `MetadataSlots.mask`.
        """
        self.check(query)
        if k <= 0 or not self.slots:
            return []
        mask = self.metadata.mask(where or {}, len(self.entries))
        if mask is None and len(self.dead) <= _MAX_DEAD_SLOTS:
            return self._nearest(query, min(k, len(self.slots)), None)
        slots = self._slots_of(mask)
        k = min(k, len(slots))
        if not k:
            return []
        if len(slots) <= _DIRECT:
            return self._exact_search(query, k, slots)
        return self._nearest(query, k, slots)

    def _nearest(self, query: Vectors, k: int, subset: Slots | None) -> list[tuple[int, float]]:
        """Ask FAISS, about some slots or, with few dead ones among them, about all."""
        if self.index is None:
            return []
        mask, width = None, k + len(self.dead)
        if subset is not None:
            mask, width = np.zeros(len(self.entries), bool), k
            mask[subset] = True
        parameters = search_parameters(self.index, mask)
        scores, slots = self.index.search(query, width, params=parameters)
        hits = [
            (slot, score)
            for slot, score in zip(slots[0].tolist(), scores[0].tolist(), strict=True)
            if slot >= 0 and slot not in self.dead
        ]
        if len(hits) < k:  # the part of the graph or the lists that was searched held too few
            return self._exact_search(
                query, k, self._slots_of(None) if subset is None else subset
            )
        return hits[:k]

    def slots_where(self, where: Mapping[str, object]) -> Slots:
        """Return the living slots whose metadata have the given values, ascending."""
        return self._slots_of(self.metadata.mask(where, len(self.entries)))

    def _slots_of(self, mask: Mask | None) -> Slots:
        """Return the living slots of a mask, ascending; of None all."""
        if not self.dead:
            return np.arange(len(self.entries)) if mask is None else np.flatnonzero(mask)
        mask = np.ones(len(self.entries), bool) if mask is None else mask.copy()
        mask[list(self.dead)] = False
        return np.flatnonzero(mask)

    def _exact_search(self, query: Vectors, k: int, slots: Slots) -> list[tuple[int, float]]:
        """Return the best of some slots by comparing all of them, a batch at a time."""
        scores = np.concatenate(
            [
                self.vectors(slots[start : start + _BATCH]) @ query[0]
                for start in range(0, len(slots), _BATCH)
            ]
        )
        best = np.argsort(-scores, kind="stable")[:k]
        return list(zip(slots[best].tolist(), scores[best].tolist(), strict=True))

    def _append(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        if self.index is None:
            self.index = new_index("flat", vectors)
        else:
            self.index.add(vectors)
        for entry in entries:
            self._register(entry)
        self._fit()

    def _touch(self, ids: Sequence[str]) -> None:
        self._change_log += ids
        if len(self._change_log) > _JOURNAL:
            self._earlier_changes += len(self._change_log)
            self._change_log = []

    def _register(self, entry: Entry | None) -> None:
        slot = len(self.entries)
        self.entries.append(entry)
        if entry is None:
            self.dead.add(slot)
            return
        self.slots[entry.id] = slot
        self.metadata.add(slot, entry.metadata)

    def _fit(self) -> None:
        """Make the index exact or approximate, whichever its size asks for."""
        count = len(self.entries)
        kind = self.kind if count > self.above else "flat"
        if self.index is not None and not suits(self.index, kind, count):
            self.index = new_index(kind, self.vectors(np.arange(count)))
