"""Ready-made role-players, and how roles of the caller's own are read.

The set for summaries follows Wu et al. 2023 (DRPE, section 3.1: three objective judges) and
the six fixed roles of its first version (MDRPE). The other sets are ours, made alike: one for
each task (`methods/tasks.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.verdict import Role

RoleLike = str | Mapping[str, str]
"""A role as callers write it: `"type: description"`, or `{"type", "description"}`."""

RoleKind = Literal["static", "coarse", "fine", "manual"]


def _roles(kind: RoleKind, *described: tuple[str, str]) -> tuple[Role, ...]:
    return tuple(
        {"type": type_, "description": description, "kind": kind}
        for type_, description in described
    )


_SUMMARY = _roles(
    "static",
    (
        "General Public",
        "wants to know what happened and what came of it, and looks for what matters to "
        "everybody",
    ),
    (
        "Critic",
        "looks at fluency, clear sentences and well-chosen words",
    ),
    (
        "News Author",
        "wrote the article, and checks whether what is said agrees with it",
    ),
)

SUBJECTIVE = _roles(
    "manual",
    (
        "Student",
        "goes to high school, and wants to learn what happened and why in words that need no "
        "background",
    ),
    (
        "Business Person",
        "looks for any business opportunity, and for what changes markets or decisions",
    ),
    (
        "Politician",
        "wants to win the next election, and looks for what moves the public",
    ),
    ("Teacher", "wants to teach it, and checks whether causes and terms become clear"),
    ("Local Resident", "lives where it happens, and looks for what it means for daily life"),
    (
        "Retired Reader",
        "has time and a long memory, and asks how it was before",
    ),
)
"""Manual roles with a point of view: the first version's three, and three of ours, so that
their number can be varied up to six."""

SETS: dict[str, tuple[Role, ...]] = {
    "summary": _SUMMARY,
    "manual": (
        *SUBJECTIVE[:3],
        *_roles("manual", *((role["type"], role["description"]) for role in _SUMMARY)),
    ),
    "question_answering": _roles(
        "static",
        (
            "Asker",
            "has the question, and checks whether it is answered completely and to the point",
        ),
        ("Expert", "knows the field, and checks every statement, step and result"),
        ("Editor", "looks at order, clarity and needless words"),
    ),
    "dialogue": _roles(
        "static",
        ("Partner", "takes part in the talk, and checks whether they are heard and helped"),
        ("Listener", "follows the talk, and checks whether it is coherent and natural"),
        ("Fact Checker", "checks whether what is claimed is true and nothing is made up"),
    ),
    "document": _roles(
        "static",
        (
            "Searcher",
            "typed the query, and checks whether the document answers it",
        ),
        (
            "Librarian",
            "knows how people search, and asks what the document is mainly about",
        ),
        ("Background Reader", "wants context, and looks for what the query takes for granted"),
    ),
    "harmlessness": _roles(
        "static",
        ("Affected Person", "could be hurt or demeaned, and checks whether the reply does so"),
        ("Safety Reviewer", "checks whether the reply helps anybody to do harm"),
        ("Plain User", "wants no lecture, and checks whether a harmless wish is met"),
    ),
}
"""The sets of roles by name."""


def manual_roles(panel: str) -> tuple[Role, ...]:
    """Return the six fixed roles of the first version (MDRPE) for a task.

    Three have a point of view; the others are the static ones of the task, which for summaries
    are the paper's.

    Args:
        panel: The set of static roles that the task names.
    """
    if panel == "manual":
        return SETS["manual"]
    static = _roles("manual", *((role["type"], role["description"]) for role in SETS[panel]))
    return (*SUBJECTIVE[:3], *static)


def sets_mark() -> str:
    """Return a hash of all sets: a reworded set is another panel."""
    return hashlib.sha256(json.dumps(SETS, sort_keys=True).encode()).hexdigest()[:12]


def read_roles(value: object, kind: RoleKind = "static") -> tuple[Role, ...]:
    """Return the roles that a caller named or wrote.

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
    roles = tuple(_role(each, kind) for each in value)
    names = [role["type"].casefold() for role in roles]
    if len(set(names)) < len(names):
        raise OptionError(f"`roles` must have distinct types, got {names!r}")
    return roles


def _role(value: object, kind: RoleKind) -> Role:
    name: Any = ""
    description: Any = ""
    own: Any = kind
    if isinstance(value, str):
        name, _, description = value.partition(":")
    elif isinstance(value, Mapping):
        name, description = value.get("type"), value.get("description")
        own = value.get("kind", kind)
    texts = isinstance(name, str) and isinstance(description, str)
    if not texts or not name.strip() or not description.strip():
        raise OptionError(
            "each of `roles` must be 'type: description' or {'type', 'description'}, got "
            + repr(value)
        )
    return {"type": name.strip(), "description": description.strip(), "kind": own}


def distinct(roles: Sequence[Role]) -> list[Role]:
    """Return the roles that have a type and a description, the first of each type."""
    by_name: dict[str, Role] = {}
    for role in roles:
        name = " ".join(role["type"].split())[:60].strip(" .:*-")
        description = " ".join(role["description"].split())[:300]
        if name and description:
            whole: Role = {"type": name, "description": description, "kind": role["kind"]}
            by_name.setdefault(name.casefold(), whole)
    return list(by_name.values())


def first_of_each_kind(roles: Sequence[Role], most: int) -> list[Role]:
    """Return the roles without those of a kind behind its first `most`."""
    counts: Counter[str] = Counter()
    selection: list[Role] = []
    for role in roles:
        counts[role["kind"]] += 1
        if counts[role["kind"]] <= most:
            selection.append(role)
    return selection


def alternating(roles: Sequence[Role], order: Sequence[int], most: int) -> list[int]:
    """Return at most so many indices, taken from each kind of role in turn.

    Args:
        roles: The roles.
        order: Indices of some of them, the best first.
        most: How many are wanted.

    >>> kinds = [{"kind": kind} for kind in ("coarse", "coarse", "coarse", "fine")]
    >>> alternating(kinds, [0, 1, 2, 3], 3)
    [0, 3, 1]
    """
    queues: dict[str, list[int]] = {}
    for index in order:
        queues.setdefault(roles[index]["kind"], []).append(index)
    turns = zip_longest(*queues.values())
    return [index for turn in turns for index in turn if index is not None][:most]
