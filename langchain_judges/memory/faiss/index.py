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
_MAX_DEAD_SHARE = 0.25
_MAX_DEAD_SLOTS = 64
"""So many dead slots are looked at beside the others and left out of the result."""
_JOURNAL = 10_000
"""Changes that are remembered for those who follow them."""
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
class VectorRows:
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

    def adopt(self, index: Any, entries: Iterable[Entry | None]) -> None:
        """Take over an index and the documents of its slots, as they were saved."""
        self.clear()
        self.index = index
        for entry in entries:
            self._register(entry)
        if index is not None:
            self._fit()

    def clear(self) -> None:
        """Hold nothing any more; those who follow the changes must read everything."""
        self.index, self.entries, self.slots, self.values = None, [], {}, {}
        self.dead = set()
        self._earlier_changes, self._change_log = self.changes + 1, []

    def drop(self, ids: Iterable[str]) -> int:
        """Delete documents and return how many there were."""
        living = [id for id in dict.fromkeys(ids) if id in self.slots]
        for id in living:
            slot = self.slots.pop(id)
            self.entries[slot] = None
            self.dead.add(slot)
        self._touch(living)
        many = len(self.dead) > max(_MAX_DEAD_SLOTS, _MAX_DEAD_SHARE * len(self.entries))
        if many or not self.slots:
            self.squeeze()
        return len(living)

    def squeeze(self) -> None:
        """Give the dead slots up."""
        if not self.dead:
            return
        entries = self.living()
        vectors = self.vectors(self._slots_of(None))
        self.index, self.entries, self.slots, self.values = None, [], {}, {}
        self.dead = set()
        if entries:
            self._append(entries, vectors)

    def vectors(self, slots: Slots) -> Vectors:
        """Return the vectors of some slots, one row for each."""
        if self.index is None or not len(slots):
            return np.zeros((0, self.dimension or 0), np.float32)
        vectors: Vectors = self.index.reconstruct_batch(slots)
        return vectors

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
        mask = self._mask(where or {})
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
        width = k if subset is not None else k + len(self.dead)
        scores, slots = self.index.search(query, width, params=self._parameters(subset))
        hits = [
            (slot, score)
            for slot, score in zip(slots[0].tolist(), scores[0].tolist(), strict=True)
            if slot >= 0 and slot not in self.dead
        ]
        if len(hits) < k:  # the graph or the lists looked at held too few of the chosen
            return self._exact_search(
                query, k, self._slots_of(None) if subset is None else subset
            )
        return hits[:k]

    def slots_where(self, where: Mapping[str, Any]) -> Slots:
        """Return the living slots whose metadata have the given values, ascending."""
        return self._slots_of(self._mask(where))

    def _slots_of(self, mask: NDArray[np.bool_] | None) -> Slots:
        """Return the living slots of a mask, ascending; of None all."""
        if not self.dead:
            return np.arange(len(self.entries)) if mask is None else np.flatnonzero(mask)
        mask = np.ones(len(self.entries), bool) if mask is None else mask.copy()
        mask[list(self.dead)] = False
        return np.flatnonzero(mask)

    def _mask(self, where: Mapping[str, Any]) -> NDArray[np.bool_] | None:
        """Return which slots have the given values; None: every living one has."""
        mask: NDArray[np.bool_] | None = None
        for name, condition in where.items():
            values = self.values.get(name, {})
            tokens = dict.fromkeys(_token(value) for value in _options(name, condition))
            lists = [values[token] for token in tokens if token in values]
            if any(len(slots) == len(self.entries) for slots in lists):
                continue
            own = np.zeros(len(self.entries), bool)
            for slots in lists:
                own[np.array(slots)] = True
            mask = own if mask is None else mask & own
        return mask

    def _exact_search(self, query: Vectors, k: int, slots: Slots) -> list[tuple[int, float]]:
        """Return the best of some slots by comparing all of them, a batch at a time."""
        scores = np.concatenate(
            [
                self.vectors(slots[start : start + 8192]) @ query[0]
                for start in range(0, len(slots), 8192)
            ]
        )
        best = np.argsort(-scores, kind="stable")[:k]
        return list(zip(slots[best].tolist(), scores[best].tolist(), strict=True))

    def _parameters(self, subset: Slots | None) -> Any:
        import faiss

        selector = None
        if subset is not None:
            bits = np.zeros(len(self.entries), bool)
            bits[subset] = True
            selector = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
        if isinstance(self.index, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(sel=selector, efSearch=_SEARCH_WIDTH)
        if isinstance(self.index, faiss.IndexIVF):
            lists = max(16, self.index.nlist // 16)
            return faiss.SearchParametersIVF(sel=selector, nprobe=lists)
        return faiss.SearchParameters(sel=selector) if selector else None

    def _append(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        if self.index is None:
            import faiss

            self.index = faiss.IndexFlatIP(vectors.shape[1])
        for entry in entries:
            self._register(entry)
        self.index.add(vectors)
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
        for name, value in entry.metadata.items():
            by_token = self.values.setdefault(name, {})
            tokens = {_token(value)}
            if isinstance(value, list | tuple | set):
                tokens |= {_token(each) for each in value}
            for token in tokens:
                by_token.setdefault(token, array("q")).append(slot)

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


def _options(name: str, condition: Any) -> Sequence[Any]:
    """Return the values that a filter allows for a field."""
    if not isinstance(condition, Mapping) or not any(
        str(key).startswith("$") for key in condition
    ):
        return [condition]
    if set(condition) == {"$eq"}:
        return [condition["$eq"]]
    if set(condition) == {"$in"} and isinstance(condition["$in"], list | tuple | set):
        return list(condition["$in"])
    raise InputError(
        f"a filter takes a value, {{'$eq': value}} or {{'$in': [values]}} for {name!r}, "
        f"got {condition!r}"
    )


def _token(value: Any) -> Any:
    """Return what a metadata value is looked up by."""
    if value is None or isinstance(value, str | int | float):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=str))
