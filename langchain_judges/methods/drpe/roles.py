"""Ready-made role-players, and how roles of the caller's own are read.

They stand in `roles.yaml`: a set for each task (`methods/tasks.py`), and the six fixed roles of
the first version (MDRPE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from langchain_judges.asking.reply_log import key_of
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
    return key_of(SETS)[:12]


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
