"""FAISS indexes of inner products: how each kind is built, searched, and outgrown."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

IndexKind = Literal["flat", "hnsw", "ivf"]
Vectors = NDArray[np.float32]
Slots = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 200, 128
"""HNSW: neighbours of a node, and the width of the beam while building and searching."""
_PER_LIST = 39
"""Vectors that FAISS wants for the training of each list of an IVF index."""


class FaissIndex(Protocol):
    """What this package uses of a FAISS index, whose own stubs lack it."""

    d: int
    """How many numbers a vector has."""
    ntotal: int
    """How many vectors there are."""

    def add(self, vectors: Vectors) -> None:
        """Append vectors."""

    def search(
        self, queries: Vectors, k: int, *, params: object
    ) -> tuple[NDArray[np.float32], Slots]:
        """Return the scores and slots of the nearest vectors, one row for each query."""

    def reconstruct_batch(self, slots: Slots) -> Vectors:
        """Return the vectors of some slots."""

    def reconstruct_n(self, start: int, count: int) -> Vectors:
        """Return the vectors of neighbouring slots."""


def new_index(kind: IndexKind, vectors: Vectors) -> FaissIndex:
    """Return an index of a kind that holds `vectors`."""
    import faiss

    index: FaissIndex
    width = vectors.shape[1]
    if kind == "hnsw":
        index = graph = faiss.IndexHNSWFlat(width, _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_WIDTH
    elif kind == "ivf":
        coarse, lists = faiss.IndexFlatIP(width), _lists(len(vectors))
        index = cells = faiss.IndexIVFFlat(coarse, width, lists, faiss.METRIC_INNER_PRODUCT)
        cells.train(vectors)
        cells.make_direct_map()
    else:
        index = faiss.IndexFlatIP(width)
    index.add(vectors)
    return index


def suits(index: FaissIndex, kind: IndexKind, count: int) -> bool:
    """Return whether an index is of a kind, and not outgrown by `count` vectors."""
    import faiss

    classes = {"flat": faiss.IndexFlat, "hnsw": faiss.IndexHNSW, "ivf": faiss.IndexIVF}
    if not isinstance(index, classes[kind]):
        return False
    # Lists that were trained on a fourth of the rows no longer divide them well.
    return kind != "ivf" or _lists(count) < 2 * index.nlist


def search_parameters(index: FaissIndex, mask: Mask | None) -> object:
    """Return FAISS's parameters of a search in the slots of a mask; in all with None."""
    import faiss

    selector = None
    if mask is not None:
        selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(sel=selector, efSearch=_SEARCH_WIDTH)
    if isinstance(index, faiss.IndexIVF):
        lists = max(16, index.nlist // 16)
        return faiss.SearchParametersIVF(sel=selector, nprobe=lists)
    return faiss.SearchParameters(sel=selector) if selector else None


def _lists(count: int) -> int:
    return max(1, min(int(4 * count**0.5), count // _PER_LIST))
