"""The part of a FaissStore that lives in memory: vectors, documents, and metadata by value.

A row is a slot in the FAISS index. Deleting marks a slot as dead, and dead slots are
squeezed out when they have become many: so neither adding nor deleting touches every row.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_judges.errors import InputError

IndexKind = Literal["flat", "hnsw", "ivf"]
Vectors = NDArray[np.float32]
Slots = NDArray[np.int64]

_DIRECT = 1000
"""So many candidates are compared one by one; for more, FAISS is told which to look at."""
_MOST_DEAD = 0.25
_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 200, 128
"""HNSW: neighbours of a node, and the width of the beam while building and searching."""
_PER_LIST = 39
"""Vectors that FAISS wants for the training of each list of an IVF index."""


class Entry(NamedTuple):
    """A stored document."""

    id: str
    text: str
    metadata: dict[str, Any]


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
class Rows:
    """Documents and their vectors, searchable.

    Args:
        kind: The index: exact, or approximate above a number of rows.
        above: That number.
    """

    kind: IndexKind = "flat"
    above: int = 0
    index: Any = None
    """A FAISS index of inner products; None before the first vector."""
    entries: list[Entry | None] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    values: dict[str, dict[Any, array[int]]] = field(default_factory=dict)
    """The slots of every value of every metadata field, ascending; some may be dead."""

    def __len__(self) -> int:
        """Return how many documents there are."""
        return len(self.slots)

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has."""
        return None if self.index is None else int(self.index.d)

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
        self.drop([entry.id for entry in entries])
        if self.index is None:
            import faiss

            self.index = faiss.IndexFlatIP(vectors.shape[1])
        for entry in entries:
            self._register(entry)
        self.index.add(vectors)
        self._fit()

    def adopt(self, index: Any, entries: Iterable[Entry]) -> None:
        """Take over an index and the documents of its slots, as they were saved."""
        self.index, self.entries, self.slots, self.values = index, [], {}, {}
        for entry in entries:
            self._register(entry)
        self._fit()

    def drop(self, ids: Iterable[str]) -> int:
        """Delete documents and return how many there were."""
        slots = [self.slots.pop(id) for id in dict.fromkeys(ids) if id in self.slots]
        for slot in slots:
            self.entries[slot] = None
        dead = len(self.entries) - len(self.slots)
        if dead > 64 and dead > _MOST_DEAD * len(self.entries):
            self.squeeze()
        return len(slots)

    def squeeze(self) -> None:
        """Give the dead slots up."""
        if len(self.entries) == len(self.slots):
            return
        entries = self.living()
        vectors = self.vectors(self._alive())
        self.index = None
        self.entries, self.slots, self.values = [], {}, {}
        self.put(entries, vectors)

    def vectors(self, slots: Slots) -> Vectors:
        """Return the vectors of some slots, one row for each."""
        if self.index is None or not len(slots):
            return np.zeros((0, self.dimension or 0), np.float32)
        found: Vectors = self.index.reconstruct_batch(slots)
        return found

    def search(
        self, query: Vectors, k: int, where: Mapping[str, Any] | None = None
    ) -> list[tuple[int, float]]:
        """Return the slots of the `k` nearest documents and their cosines, best first.

        Args:
            query: One row of unit length.
            k: How many; fewer come if there are fewer.
            where: Fields of the metadata and the value each must have (or contain, if the
                field is a list), or `{"$in": [values]}`.
        """
        self.check(query)
        if k <= 0 or not self.slots:
            return []
        if not where and len(self.entries) == len(self.slots):
            chosen, k = None, min(k, len(self.slots))
        else:
            chosen = self.chosen(where or {})
            k = min(k, len(chosen))
        if not k:
            return []
        if chosen is not None and len(chosen) <= _DIRECT:
            return self._compared(query, k, chosen)
        scores, slots = self.index.search(query, k, params=self._parameters(chosen))
        found = [
            (slot, score)
            for slot, score in zip(slots[0].tolist(), scores[0].tolist(), strict=True)
            if slot >= 0
        ]
        if len(found) < k:  # the graph or the lists looked at held too few of the chosen
            return self._compared(query, k, self._alive() if chosen is None else chosen)
        return found

    def chosen(self, where: Mapping[str, Any]) -> Slots:
        """Return the living slots whose metadata have the given values, ascending."""
        mask = None
        for name, wanted in where.items():
            own = self._mask(name, wanted)
            mask = own if mask is None else mask & own
        slots = np.arange(len(self.entries)) if mask is None else np.flatnonzero(mask)
        if len(self.entries) == len(self.slots):
            return slots
        return np.intersect1d(slots, self._alive(), assume_unique=True)

    def _mask(self, name: str, wanted: Any) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.entries), bool)
        known = self.values.get(name, {})
        for value in _options(name, wanted):
            if (slots := known.get(_token(value))) is not None:
                mask[np.array(slots)] = True
        return mask

    def _alive(self) -> Slots:
        return np.sort(np.fromiter(self.slots.values(), np.int64, len(self.slots)))

    def _compared(self, query: Vectors, k: int, slots: Slots) -> list[tuple[int, float]]:
        """Return the best of some slots by comparing all of them, a batch at a time."""
        scores = np.concatenate(
            [
                self.vectors(slots[start : start + 8192]) @ query[0]
                for start in range(0, len(slots), 8192)
            ]
        )
        best = np.argsort(-scores, kind="stable")[:k]
        return list(zip(slots[best].tolist(), scores[best].tolist(), strict=True))

    def _parameters(self, chosen: Slots | None) -> Any:
        import faiss

        selector = None
        if chosen is not None:
            mask = np.zeros(len(self.entries), bool)
            mask[chosen] = True
            selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        if isinstance(self.index, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(sel=selector, efSearch=_SEARCH_WIDTH)
        if isinstance(self.index, faiss.IndexIVF):
            lists = max(16, self.index.nlist // 16)
            return faiss.SearchParametersIVF(sel=selector, nprobe=lists)
        return faiss.SearchParameters(sel=selector) if selector else None

    def _register(self, entry: Entry) -> None:
        slot = len(self.entries)
        self.entries.append(entry)
        self.slots[entry.id] = slot
        for name, value in entry.metadata.items():
            known = self.values.setdefault(name, {})
            tokens = {_token(value)}
            if isinstance(value, list | tuple | set):
                tokens |= {_token(each) for each in value}
            for token in tokens:
                known.setdefault(token, array("q")).append(slot)

    def _fit(self) -> None:
        """Make the index exact or approximate, whichever its size asks for."""
        import faiss

        count = len(self.entries)
        kind = self.kind if count > self.above else "flat"
        now = {faiss.IndexFlat: "flat", faiss.IndexHNSW: "hnsw", faiss.IndexIVF: "ivf"}
        is_kind = next((n for c, n in now.items() if isinstance(self.index, c)), None)
        # Lists that were trained on a fourth of the rows no longer divide them well.
        outgrown = kind == is_kind == "ivf" and _lists(count) >= 2 * self.index.nlist
        if is_kind == kind and not outgrown:
            return
        vectors = self.vectors(np.arange(count))
        self.index = new_index(kind, vectors)


def new_index(kind: str, vectors: Vectors) -> Any:
    """Return a FAISS index of inner products that holds `vectors`."""
    import faiss

    width = vectors.shape[1]
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(width, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _BUILD_WIDTH
    elif kind == "ivf":
        coarse = faiss.IndexFlatIP(width)
        lists = _lists(len(vectors))
        index = faiss.IndexIVFFlat(coarse, width, lists, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.make_direct_map()
    else:
        index = faiss.IndexFlatIP(width)
    index.add(vectors)
    return index


def _lists(count: int) -> int:
    return max(1, min(int(4 * count**0.5), count // _PER_LIST))


def _options(name: str, wanted: Any) -> Sequence[Any]:
    """Return the values that a filter allows for a field."""
    if not isinstance(wanted, Mapping) or not any(str(key).startswith("$") for key in wanted):
        return [wanted]
    if set(wanted) == {"$eq"}:
        return [wanted["$eq"]]
    if set(wanted) == {"$in"} and isinstance(wanted["$in"], list | tuple | set):
        return list(wanted["$in"])
    raise InputError(
        f"a filter takes a value, {{'$eq': value}} or {{'$in': [values]}} for {name!r}, "
        f"got {wanted!r}"
    )


def _token(value: Any) -> Any:
    """Return what a metadata value is looked up by."""
    if value is None or isinstance(value, str | int | float):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=str))
