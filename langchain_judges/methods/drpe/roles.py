"""Ready-made role-players, and how roles of the caller's own are read.

They stand in `roles.yaml`: a set for each task (`methods/tasks.py`), and the six fixed roles of
the first version (MDRPE).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.rows.files import packaged
from langchain_judges.verdict import Role

# A role as callers write it: `"type: description"`, or `{"type", "description"}`.
RoleLike = str | Mapping[str, str]

RoleKind = Literal["static", "coarse", "fine", "manual"]


def _roles(kind: RoleKind, described: Mapping[str, str]) -> tuple[Role, ...]:
    return tuple(
        {"type": name, "description": description, "kind": kind}
        for name, description in described.items()
    )


_ROLES_YAML = packaged(__package__, "roles.yaml")

# Manual roles with a point of view: the first version's three, and three of ours, so that their
# number can be varied up to six.
SUBJECTIVE = _roles("manual", _ROLES_YAML["subjective"])


# Manual roles with a point of view for other tasks than summaries.
VIEWS = _roles("manual", _ROLES_YAML["views"])


def manual_roles(panel: str) -> tuple[Role, ...]:
    """The six fixed roles of the first version (MDRPE) for a task.

    Three have a point of view; the others are the static ones of the task. For summaries all
    are the paper's.

    Args:
        panel: The set of static roles that the task names.
    """
    if panel in {"summary", "manual"}:
        return (*SUBJECTIVE[:3], *_roles("manual", _ROLES_YAML["static"]["summary"]))
    return (*VIEWS, *_roles("manual", _ROLES_YAML["static"][panel]))


# The sets of roles by name.
SETS: Mapping[str, tuple[Role, ...]] = {
    **{name: _roles("static", described) for name, described in _ROLES_YAML["static"].items()},
    "manual": manual_roles("summary"),
}


def sets_mark() -> str:
    """A hash of all sets: a reworded set is another panel."""
    return hashlib.sha256(json.dumps(SETS, sort_keys=True).encode()).hexdigest()[:12]


def read_roles(value: object) -> tuple[Role, ...]:
    """The roles that a caller named or wrote.

    Raises:
        OptionError: There is no such set, a role has no type or description, or two roles
            have the same type.
    """
    if isinstance(value, str):
        if value not in SETS:
            nearest = did_you_mean(value, SETS)
            raise OptionError(
                f"`static` must be one of {sorted(SETS)!r} or roles, got {value!r}"
                f"{nearest and f'; {nearest}'.rstrip()}"
            )
        return SETS[value]
    if not isinstance(value, Sequence):
        raise OptionError(f"`roles` must be a list or the name of a set, got {value!r}")
    roles = tuple(map(_role, value))
    names = [role["type"].casefold() for role in roles]
    if len(set(names)) < len(names):
        raise OptionError(f"`roles` must have distinct types, got {names!r}")
    return roles


def _role(value: object) -> Role:
    fields = value if isinstance(value, Mapping) else {}
    if isinstance(value, str):
        name, _, description = value.partition(":")
        fields = {"type": name, "description": description}
    texts = [fields.get(field) for field in ("type", "description")]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise OptionError(
            "each of `roles` must be 'type: description' or {'type', 'description'}, got "
            + repr(value)
        )
    name, description = (str(text).strip() for text in texts)
    return {"type": name, "description": description, "kind": fields.get("kind", "static")}


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


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float64]
    Indices = NDArray[np.intp]


# Held during a fit: scikit-learn lowers the threads of the whole process and sets them back,
# and two fits at a time would leave them low.
_FITS = threading.Lock()


def kmeans_medoids(vectors: Sequence[Sequence[float]], k: int, seed: int) -> list[int]:
    """The indices of the members nearest to the k centres, in their own order.

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
    from threadpoolctl import threadpool_limits

    points = np.asarray(vectors, dtype=float)
    # Equal texts have equal vectors, and there may be fewer distinct ones than clusters.
    distinct = len(np.unique(points.round(9), axis=0))
    # For a dozen points threads mostly wait for each other.
    with _FITS, threadpool_limits(limits=1, user_api="openmp"):
        fit = KMeans(n_clusters=min(k, distinct), n_init=10, random_state=seed).fit(points)
    medoids = [
        _nearest(points, np.flatnonzero(fit.labels_ == label), centre)
        for label, centre in enumerate(fit.cluster_centers_)
    ]
    rest = [i for i in range(len(points)) if i not in medoids]
    return sorted([*medoids, *rest[: k - len(medoids)]])


def dbscan_medoids(vectors: Sequence[Sequence[float]], *, eps: float = 0.35) -> list[int]:
    """The member nearest to the mean of each dense cluster, and every noise member.

    Those of larger clusters come first, noise last.

    Args:
        vectors: One row for each role.
        eps: Largest cosine distance between neighbours.
    """
    if not len(vectors):
        return []
    import numpy as np
    from sklearn.cluster import DBSCAN

    points = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    labels = DBSCAN(eps=eps, min_samples=2, metric="cosine").fit(points).labels_
    groups: list[Indices] = [
        np.flatnonzero(labels == label) for label in sorted(set(labels.tolist()) - {-1})
    ]
    groups += [np.asarray([index]) for index in np.flatnonzero(labels == -1)]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    return [_nearest(points, group, points[group].mean(axis=0)) for group in groups]


def _nearest(points: Vectors, members: Indices, centre: Vectors) -> int:
    """The member nearest to a centre; of equals the first."""
    import numpy as np

    distances = np.linalg.norm(points[members] - centre, axis=1).round(9)
    return int(members[int(np.argmin(distances))])
