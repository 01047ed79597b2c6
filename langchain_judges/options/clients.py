"""What the client of a server may set: named options, with plain values of bounded numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from langchain_judges.errors import OptionError
from langchain_judges.options.declare import Group, Options, Owner, marks_of

MOST = 1000
"""The highest number in what a client sets, unless it is a seed: what a run costs is bounded
by its calls, and this bounds what it takes to make the judge that would be asked."""


def settable(kind: type[Options], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the options that a client may set.

    Args:
        kind: The class of options.
        names: Those that the owner of the server names; None: all that are no path, no model
            and no live object.

    Raises:
        OptionError: There is no such option, or no client may ever set it.
    """
    allowed = kind.plain_names(for_client=True)
    if names is None:
        return allowed
    for name in names:
        if name not in allowed:
            why = "is not for clients" if name in kind.model_fields else "does not exist"
            raise OptionError(f"`settable` may name {sorted(allowed)!r}; {name!r} {why}")
    return tuple(names)


def check_client(
    kind: type[Options], values: Mapping[str, object], names: Sequence[str] | None = None
) -> None:
    """Check what a client sets.

    Args:
        kind: The class of options.
        values: Options by name, as plain JSON holds them.
        names: The options that the owner of the server names.

    Raises:
        OptionError: There is no such option, only the owner may set it, or its value is not
            allowed.
    """
    allowed = settable(kind, names)
    for name, value in values.items():
        if name in kind.model_fields:
            if name not in allowed or _is_for_owner(kind, name, value):
                raise OptionError(f"`{name}` can be set by the owner of the server only")
            if name != "seed":
                _check_numbers(name, value)
    kind(**values)


def client_schema(kind: type[Options], names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the JSON schema of what a client may set."""
    schema = kind.model_json_schema(schema_generator=_AnyObject)
    properties = {name: schema["properties"][name] for name in settable(kind, names)}
    return {**schema, "properties": properties, "required": []}


class _AnyObject(GenerateJsonSchema):
    """A JSON schema in which a type that JSON does not have may be anything."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        """Allow anything."""
        return {}


def _is_for_owner(kind: type[Options], name: str, value: object) -> bool:
    """Say whether a value, or a part of a group, is the owner's alone."""
    for mark in marks_of(kind.model_fields[name]):
        if isinstance(mark, Owner) and mark.but and not isinstance(value, mark.but):
            return value is not None
        if isinstance(mark, Group) and isinstance(value, Mapping):
            check_client(mark.kind, value)
    return False


def _check_numbers(name: str, value: object) -> None:
    """Check that no number in a value is too high.

    Raises:
        OptionError: One is.
    """
    if isinstance(value, int | float) and not -MOST <= value <= MOST:
        raise OptionError(f"`{name}` must have no number above {MOST:,}, got {value!r}")
    parts = value.values() if isinstance(value, Mapping) else value
    for part in parts if isinstance(value, Mapping | list | tuple) else ():  # type: ignore[attr-defined]
        _check_numbers(name, part)
