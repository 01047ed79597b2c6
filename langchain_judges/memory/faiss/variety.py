"""Cosines of vectors, and the choice of vectors near to a query and unlike each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatRows = NDArray[np.floating]
"""Vectors, one a row; or one vector."""


def cosines(vectors: FloatRows, query: FloatRows) -> FloatRows:
    """Return the cosine of each row with a query."""
    scores: FloatRows = _unit(vectors) @ _unit(query[None])[0]
    return scores


def varied(vectors: FloatRows, query: FloatRows, relevance: float, m: int) -> list[int]:
    """Return the indices of `m` vectors that are near to a query and unlike each other.

    Maximal marginal relevance (Carbonell & Goldstein 1998): each next one has the largest
    `relevance · cos(query) − (1 − relevance) · the largest cosine with a chosen one`.
    """
    nearness, rows = cosines(vectors, query), _unit(vectors)
    likeness = np.full(len(rows), -np.inf)
    places: list[int] = []
    while len(places) < min(m, len(rows)):
        merit = relevance * nearness - (1 - relevance) * likeness if places else nearness.copy()
        merit[places] = -np.inf
        places.append(int(np.argmax(merit)))
        likeness = np.maximum(likeness, rows @ rows[places[-1]])
    return places


def _unit(vectors: FloatRows) -> FloatRows:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: FloatRows = vectors / np.where(norms == 0, 1, norms)
    return rows
