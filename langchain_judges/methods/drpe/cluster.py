"""Choosing diverse roles: the one nearest to each cluster centre (DRPE, section 3.1).

K-means (NLPCC version) and DBSCAN (arXiv v1) are scikit-learn's. Where the papers give no
parameters: ten k-means starts with a fixed seed; for DBSCAN cosine distance, `eps` 0.35 and
two members, and a noise role, which is like no other, is kept, since it is what diversity
is sought for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController

    Vectors = NDArray[np.float64]
    Indices = NDArray[np.intp]


_FITS = threading.Lock()
"""Held during a fit: scikit-learn lowers the threads of the whole process and sets them back,
and two fits at a time would leave them low."""


def kmeans_medoids(vectors: Sequence[Sequence[float]], k: int, seed: int) -> list[int]:
    """Return the indices of the members nearest to the k centres, in their own order.

    Args:
        vectors: One row for each role, of unit length.
        k: Clusters wanted; all members are kept where there are no more than that.
        seed: Of the starts.
    """
    if k >= len(vectors):
        return list(range(len(vectors)))
    if k <= 0:
        return []
    import numpy as np
    from sklearn.cluster import KMeans

    points = np.asarray(vectors, dtype=float)
    # Equal texts have equal vectors, and there may be fewer distinct ones than clusters.
    distinct = len(np.unique(points.round(9), axis=0))
    with _FITS, _threads().limit(limits=1, user_api="openmp"):
        fit = KMeans(n_clusters=min(k, distinct), n_init=10, random_state=seed).fit(points)
    medoids = [
        _nearest(points, np.flatnonzero(fit.labels_ == label), centre)
        for label, centre in enumerate(fit.cluster_centers_)
    ]
    rest = [i for i in range(len(points)) if i not in medoids]
    return sorted([*medoids, *rest[: k - len(medoids)]])


def dbscan_medoids(
    vectors: Sequence[Sequence[float]],
    *,
    eps: float = 0.35,
    min_samples: int = 2,
) -> list[int]:
    """Return the member nearest to the mean of each dense cluster, and every noise member.

    Those of larger clusters come first, noise last.

    Args:
        vectors: One row for each role.
        eps: Largest cosine distance between neighbours.
        min_samples: Members, itself included, that make a neighbourhood dense.
    """
    if not len(vectors):
        return []
    import numpy as np
    from sklearn.cluster import DBSCAN

    points = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    labels = DBSCAN(eps=eps, min_samples=min_samples, metric="cosine").fit(points).labels_
    groups: list[Indices] = [
        np.flatnonzero(labels == label) for label in sorted(set(labels.tolist()) - {-1})
    ]
    groups += [np.asarray([index]) for index in np.flatnonzero(labels == -1)]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    return [_nearest(points, group, points[group].mean(axis=0)) for group in groups]


@cache
def _threads() -> ThreadpoolController:
    """Return what sets how many threads scikit-learn takes, which must be imported first.

    For a dozen points its threads mostly wait for each other: on two busy cores a fit took 172
    ms with two and 12 ms with one.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _nearest(points: Vectors, members: Indices, centre: Vectors) -> int:
    """Return the member nearest to a centre; of equals the first."""
    import numpy as np

    distances = np.linalg.norm(points[members] - centre, axis=1).round(9)
    return int(members[int(np.argmin(distances))])
