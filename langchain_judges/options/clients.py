"""What the client of a server may set: a method's options without paths, models and patterns.

A class of options gives another class that holds what a client may set, with the bounds that a
client must keep to. It checks a client's values, and its JSON schema is what clients see.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import Le
from pydantic import Field, create_model

from langchain_judges.errors import OptionError
from langchain_judges.options.declare import Options, group
from langchain_judges.options.marks import ClientMost, ForClient, Group, Rule


def for_clients(kind: type[Options], limits: Mapping[str, int] | None = None) -> type[Options]:
    """Return the class of what a client may set of a class of options.

    Args:
        kind: The class of options.
        limits: The highest numbers by option, where they are not those declared; a dot
            reaches into a group: `panel.dynamic`.
    """
    return _for_clients(kind, tuple(sorted((limits or {}).items())))


def check_client(
    kind: type[Options], values: Mapping[str, object], limits: Mapping[str, int] | None = None
) -> None:
    """Check what a client sets.

    Args:
        kind: The class of options.
        values: Options by name, as plain JSON holds them.
        limits: As `for_clients` takes them.

    Raises:
        OptionError: There is no such option, only the owner may set it, or its value is not
            allowed.
    """
    allowed = kind.plain_names(for_client=True)
    for name in values:
        if name in kind.model_fields and name not in allowed:
            raise OptionError(f"`{name}` can be set by the owner of the server only")
    for_clients(kind, limits)(**values)


@lru_cache  # a server asks for the same classes with each request, and each takes milliseconds
def _for_clients(kind: type[Options], limits: tuple[tuple[str, int], ...]) -> type[Options]:
    return _narrowed(kind, dict(limits), "")


def _narrowed(kind: type[Options], limits: Mapping[str, int], path: str) -> type[Options]:
    fields: dict[str, Any] = {}
    for name in kind.plain_names(for_client=True):
        field = kind.model_fields[name]
        default = field.get_default(call_default_factory=True)
        value = default.as_json() if isinstance(default, Options) else default
        fields[name] = (
            _type(field.annotation, field.metadata, limits, path + name),
            Field(value, description=field.description),
        )
    narrowed = create_model(kind.__name__, __base__=Options, **fields)
    narrowed.called = getattr(kind, "method", kind.called)
    return narrowed


def _type(
    annotation: Any, marks: Sequence[object], limits: Mapping[str, int], path: str
) -> Any:
    """Return the type of an option for clients, with the bounds of every number in it."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _type(inner, [*more, *marks], limits, path)
    for mark in marks:
        if isinstance(mark, ForClient):
            return mark.type
        if isinstance(mark, Group):
            return _group(mark.kind, annotation, marks, limits, path)
    if get_origin(annotation) in _UNIONS:
        parts = [_type(part, [], limits, path) for part in get_args(annotation)]
        inner = Union[tuple(parts)]  # noqa: UP007 - made of parts at run time
    elif get_origin(annotation) is tuple:
        inner = tuple[tuple(_type(part, [], limits, path) for part in get_args(annotation))]  # type: ignore[misc]
    else:
        inner = annotation
    own = [
        Le(limits.get(path, mark.most)) if isinstance(mark, ClientMost) else mark
        for mark in marks
    ]
    return Annotated[inner, *own] if own else inner


def _group(
    kind: Any,
    annotation: Any,
    marks: Sequence[object],
    limits: Mapping[str, int],
    path: str,
) -> Any:
    """Return the type of a group for clients: its narrowed class, or what else may stand."""
    narrowed = _narrowed(kind, limits, f"{path}.")
    parts = get_args(annotation) if get_origin(annotation) in _UNIONS else (annotation,)
    others = [part for part in parts if part is not kind and get_origin(part) is not Mapping]
    rules = [mark for mark in marks if isinstance(mark, Rule)]
    return Annotated[Union[narrowed, *others], group(narrowed), *rules]


_UNIONS = (Union, types.UnionType)
