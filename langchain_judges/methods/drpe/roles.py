"""Ready-made role-players, and how roles of the caller's own are read.

The set for summaries follows Wu et al. 2023 (DRPE, section 3.1: three objective judges) and
the six fixed roles of its first version (MDRPE). The other sets are ours, made alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.verdict import Role

RoleLike = str | Mapping[str, str]
"""A role as callers write it: `"type: description"`, or `{"type", "description"}`."""

Kind = Literal["static", "coarse", "fine", "manual"]


def _roles(kind: Kind, *described: tuple[str, str]) -> tuple[Role, ...]:
    return tuple(
        {"type": type_, "description": said, "kind": kind} for type_, said in described
    )


_SUMMARY = _roles(
    "static",
    (
        "General Public",
        "wants the story and how it went on, and looks for what matters to everybody",
    ),
    (
        "Critic",
        "looks at fluency, at clear sentences and at well-chosen words",
    ),
    (
        "News Author",
        "wrote the article, and looks whether what is said agrees with it",
    ),
)

SETS: dict[str, tuple[Role, ...]] = {
    "summary": _SUMMARY,
    "manual": _roles(
        "manual",
        ("Student", "wants to learn what happened and why, in words that need no background"),
        ("Business Person", "has little time, and wants what changes markets or decisions"),
        ("Politician", "looks for what moves the public, and whether it is put fairly"),
        *((role["type"], role["description"]) for role in _SUMMARY),
    ),
    "question_answering": _roles(
        "static",
        (
            "Asker",
            "has the question, and looks whether it is answered, wholly and to the point",
        ),
        ("Expert", "knows the field, and looks whether every statement is true"),
        ("Editor", "looks at order, clear sentences and needless words"),
    ),
    "dialogue": _roles(
        "static",
        ("Partner", "takes part in the talk, and looks whether they are heard and helped"),
        ("Listener", "follows the talk, and looks whether it hangs together and is natural"),
        ("Fact Checker", "looks whether what is claimed is true and nothing is made up"),
    ),
}
"""The sets of roles by name."""


def read_roles(given: object, kind: Kind = "static") -> tuple[Role, ...]:
    """Return the roles that a caller named or wrote.

    Raises:
        OptionError: There is no such set, a role has no type or description, or two roles
            have the same type.
    """
    if isinstance(given, str):
        if given not in SETS:
            raise OptionError(
                f"`static` must be one of {sorted(SETS)!r} or roles, got {given!r}"
            )
        return SETS[given]
    if not isinstance(given, Sequence):
        raise OptionError(f"roles must be a list or the name of a set, got {given!r}")
    roles = tuple(_role(each, kind) for each in given)
    names = [role["type"].casefold() for role in roles]
    if len(set(names)) < len(names):
        raise OptionError(f"roles must have distinct types, got {names!r}")
    return roles


def _role(given: object, kind: Kind) -> Role:
    name: Any = ""
    said: Any = ""
    own: Any = kind
    if isinstance(given, str):
        name, _, said = given.partition(":")
    elif isinstance(given, Mapping):
        name, said = given.get("type"), given.get("description")
        own = given.get("kind", kind)
    texts = isinstance(name, str) and isinstance(said, str)
    if not texts or not name.strip() or not said.strip():
        raise OptionError(
            "a role must be 'type: description' or {'type', 'description'}, got " + repr(given)
        )
    return {"type": name.strip(), "description": said.strip(), "kind": own}


def distinct(roles: Sequence[Role]) -> list[Role]:
    """Return the roles that have a type and a description, the first of each type."""
    found: dict[str, Role] = {}
    for role in roles:
        name = " ".join(role["type"].split())[:60].strip(" .:*-")
        said = " ".join(role["description"].split())[:300]
        if name and said:
            kept: Role = {"type": name, "description": said, "kind": role["kind"]}
            found.setdefault(name.casefold(), kept)
    return list(found.values())
