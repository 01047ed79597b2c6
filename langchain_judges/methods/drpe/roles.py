"""Ready-made role-players, and how roles of the caller's own are read.

They stand in `roles.yaml`: a set for each task (`methods/tasks.py`), and the six fixed roles of
the first version (MDRPE).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import zip_longest
from typing import Literal

import yaml

from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.verdict import Role

RoleLike = str | Mapping[str, str]
"""A role as callers write it: `"type: description"`, or `{"type", "description"}`."""

RoleKind = Literal["static", "coarse", "fine", "manual"]


def _roles(kind: RoleKind, described: Mapping[str, str]) -> tuple[Role, ...]:
    return tuple(
        {"type": name, "description": description, "kind": kind}
        for name, description in described.items()
    )


_WRITTEN = yaml.safe_load((files(__package__) / "roles.yaml").read_text("utf-8"))

SUBJECTIVE = _roles("manual", _WRITTEN["subjective"])
"""Manual roles with a point of view: the first version's three, and three of ours, so that
their number can be varied up to six."""


def manual_roles(panel: str) -> tuple[Role, ...]:
    """Return the six fixed roles of the first version (MDRPE) for a task.

    Three have a point of view; the others are the static ones of the task, which for summaries
    are the paper's.

    Args:
        panel: The set of static roles that the task names.
    """
    static = _roles("manual", _WRITTEN["static"]["summary" if panel == "manual" else panel])
    return (*SUBJECTIVE[:3], *static)


SETS: Mapping[str, tuple[Role, ...]] = {
    **{name: _roles("static", described) for name, described in _WRITTEN["static"].items()},
    "manual": manual_roles("summary"),
}
"""The sets of roles by name."""


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
    return {"type": name, "description": description, "kind": fields.get("kind", kind)}


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
    kinds = [role["kind"] for role in roles]
    return [role for i, role in enumerate(roles) if kinds[:i].count(role["kind"]) < most]


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
