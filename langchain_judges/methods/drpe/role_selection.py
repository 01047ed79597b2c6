"""Which of the readers that a model named sit on a panel: the diverse ones (DRPE, section 3.1)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langchain_judges.asking.question import Reply
from langchain_judges.verdict import Role

Points = NDArray[np.float64]
Indices = NDArray[np.intp]

# Held during a fit: scikit-learn lowers the threads of the whole process and sets them back,
# and two fits at a time would leave them low.
_FITS = threading.Lock()


def proposals(replies: Mapping[str, Reply]) -> list[Any]:
    """The readers that replies name, coarse before fine, each with its kind."""
    readers: list[Any] = []
    for kind, reply in replies.items():
        data = reply.data or {}
        parts = {kind: data.get("readers", [])}
        if kind == "merged":
            parts = {"coarse": data.get("general", []), "fine": data.get("familiarity", [])}
        readers += [{**one, "kind": source} for source, named in parts.items() for one in named]
    return readers


def distinct_roles(roles: Sequence[Role]) -> list[Role]:
    """The roles that have a type and a description, the first of each type."""
    by_name: dict[str, Role] = {}
    for role in roles:
        name = " ".join(role["type"].split())[:60].strip(" .:*-")
        description = " ".join(role["description"].split())[:300]
        if name and description:
            whole: Role = {"type": name, "description": description, "kind": role["kind"]}
            by_name.setdefault(name.casefold(), whole)
    return list(by_name.values())


def first_of_each_kind(roles: Sequence[Role], most: int) -> list[Role]:
    """The roles without those of a kind behind its first `most`."""
    kinds = [role["kind"] for role in roles]
    return [role for i, role in enumerate(roles) if kinds[:i].count(role["kind"]) < most]


def kmeans_medoids(vectors: Sequence[Sequence[float]], k: int, seed: int) -> list[int]:
    """The indices of the members nearest to the k centres, in their own order.

    Args:
        vectors: One row for each role, of unit length.
        k: Clusters wanted; all members are kept where there are no more than that.
        seed: Of the starts.
    """
    if not 0 < k < len(vectors):
        return list(range(len(vectors)))[: max(k, 0)]
    from sklearn.cluster import KMeans

    points = np.asarray(vectors, dtype=float)
    # Equal texts have equal vectors, and there may be fewer distinct ones than clusters.
    distinct = len({*map(tuple, points.round(9).tolist())})
    # For a dozen points threads mostly wait for each other.
    with _FITS, _threads().limit(limits=1, user_api="openmp"):
        fit = KMeans(n_clusters=min(k, distinct), n_init=10, random_state=seed).fit(points)
    medoids = [
        _nearest(points, np.flatnonzero(fit.labels_ == label), centre)
        for label, centre in enumerate(fit.cluster_centers_)
    ]
    rest = [i for i in range(len(points)) if i not in medoids]
    return sorted([*medoids, *rest[: k - len(medoids)]])


@cache
def _threads() -> Any:
    """The threads of scikit-learn, once it is loaded: to find them takes as long as a fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def dbscan_medoids(vectors: Sequence[Sequence[float]], *, eps: float = 0.35) -> list[int]:
    """The member nearest to the mean of each dense cluster, and every noise member.

    Those of larger clusters come first, noise last.

    Args:
        vectors: One row for each role.
        eps: Largest cosine distance between neighbours.
    """
    if not len(vectors):
        return []
    from sklearn.cluster import DBSCAN

    points = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    labels = DBSCAN(eps=eps, min_samples=2, metric="cosine").fit(points).labels_
    groups: list[Indices] = [np.flatnonzero(labels == label) for label in {*labels.tolist()} - {-1}]
    groups += [np.asarray([index]) for index in np.flatnonzero(labels == -1)]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    return [_nearest(points, group, points[group].mean(axis=0)) for group in groups]


def _nearest(points: Points, members: Indices, centre: Points) -> int:
    """The member nearest to a centre; of equals the first."""
    distances = np.linalg.norm(points[members] - centre, axis=1).round(9)
    return int(members[int(np.argmin(distances))])
