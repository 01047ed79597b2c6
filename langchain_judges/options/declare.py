"""A set of options: a frozen model that says in one sentence what is wrong with a value."""

from __future__ import annotations

import inspect
import re
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import annotated_types as bounds
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from langchain_judges.errors import OptionError, did_you_mean


@dataclass(frozen=True)
class Rule:
    """How the rule of an option is said, where its type alone would say it badly."""

    text: str


class NotSerialisable:
    """Marks an option that holds a live object: it exists in this process alone.

    Such an option stands in no JSON, no preset, no command line and no server's context.
    """


@dataclass(frozen=True)
class Owner:
    """Marks an option that only the owner of the process may set: a path, a model, a pattern.

    A command line and a spec may set it; a client of a server may not.

    Attributes:
        but: The type of the values that a client may set nevertheless.
    """

    but: type | None = None


@dataclass(frozen=True)
class Group:
    """Takes a group of options as itself, or as a mapping of its fields by name.

    For a field such as `panel: Annotated[Panel | Mapping[str, Any], Group(Panel)] = Panel()`,
    which then always holds a `Panel`.
    """

    kind: type[Options]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make the group of a mapping before it is checked."""

        def read(value: object) -> object:
            if not isinstance(value, Mapping):
                return value
            return self.kind(**{str(name): each for name, each in value.items()})

        return core_schema.no_info_before_validator_function(read, handler(source))


Share = Annotated[float, bounds.Ge(0), bounds.Le(1)]
Count = Annotated[int, bounds.Ge(0)]
Scale = Annotated[
    tuple[int, int],
    bounds.Predicate(lambda ends: ends[0] < ends[1]),
    Rule("two whole numbers (low, high)"),
]
"""The lowest and the highest score."""


_LISTS = (list, tuple, Sequence)
_WRAPPERS = (Annotated, Union, types.UnionType)
_WORDS: dict[object, str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
    type(None): "None",
    Callable: "a function",
}


def wording(annotation: object, metadata: Sequence[object] = ()) -> str:
    """Return what the values of a type must be.

    Args:
        annotation: The type.
        metadata: Marks of the option itself.
    """
    for mark in metadata:
        if isinstance(mark, Rule):
            return mark.text
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return wording(inner, [*metadata, *marks])
    if get_origin(annotation) is Literal:
        allowed = [repr(value) for value in get_args(annotation)]
        return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(wording(part, metadata) for part in get_args(annotation))
    word = _WORDS.get(get_origin(annotation) or annotation)
    if get_origin(annotation) in _LISTS:
        parts = get_args(annotation)
        is_fixed = get_origin(annotation) is tuple and Ellipsis not in parts
        return "a list" + (f" of {len(parts)}" if is_fixed else _limits(metadata))
    if word is None:
        return f"a {getattr(annotation, '__name__', str(annotation))}"
    return word + _limits(metadata) if annotation in (int, float) else word


def _single(metadata: Sequence[object]) -> Iterator[object]:
    for mark in metadata:
        yield from mark if isinstance(mark, bounds.GroupedMetadata) else (mark,)


_BOUNDS: Mapping[str, tuple[type, str]] = {
    "ge": (bounds.Ge, "at least"),
    "gt": (bounds.Gt, "above"),
    "le": (bounds.Le, "at most"),
    "lt": (bounds.Lt, "below"),
    "min_length": (bounds.MinLen, "at least"),
    "max_length": (bounds.MaxLen, "at most"),
}


def _limits(metadata: Sequence[object]) -> str:
    marks = list(_single(metadata))
    limits = [
        f"{words} {getattr(mark, name)}"
        for name, (kind, words) in _BOUNDS.items()
        for mark in marks
        if isinstance(mark, kind)
    ]
    glue = " of " if "at " in "".join(limits[:1]) else " "
    return glue + " and ".join(limits) if limits else ""


def written(annotation: object) -> str:
    """Return a type in the short form of source code, without the marks of its parts."""
    if get_origin(annotation) is Annotated:
        return written(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(written, get_args(annotation))))
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    name: str = getattr(get_origin(annotation) or annotation, "__name__", str(annotation))
    parts = [written(part) for part in get_args(annotation) if part is not Ellipsis]
    return {"NoneType": "None"}.get(name, name) + (f"[{', '.join(parts)}]" if parts else "")


class Options(BaseModel):
    """A set of options: frozen, strict, and closed to unknown names.

    The `Attributes:` of a class's docstring say what each option means; help, signatures and
    JSON schemas are made from them.

    Attributes:
        called: What takes the options, as error messages call it.

    Raises:
        OptionError: A value is not allowed; the message names option, rule and value.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
        validate_default=False,
    )

    called: ClassVar[str] = "this"

    def __init__(self, /, **values: object) -> None:
        """Check the values; JSON has lists for tuples."""
        fields = type(self).model_fields
        read = {
            name: _with_tuples(fields[name].annotation, value) if name in fields else value
            for name, value in values.items()
        }
        try:
            super().__init__(**read)
        except ValidationError as exc:
            raise refusal(type(self), exc, values) from None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON schema, with what each option means."""
        own = handler.resolve_ref_schema(whole := handler(schema))
        own["description"] = about(cls)
        for name, meaning in described(cls).items():
            own["properties"][name]["description"] = meaning
        return whole

    @classmethod
    def plain_names(cls, *, for_client: bool = False) -> tuple[str, ...]:
        """Return the options that plain JSON can set.

        Args:
            for_client: Of these, only those that the client of a server may set.
        """
        return tuple(
            name
            for name, field in cls.model_fields.items()
            if not _is_marked(field, for_client=for_client)
        )

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each option."""
        return {
            name: field.get_default(call_default_factory=True)
            for name, field in cls.model_fields.items()
        }

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Show what differs from the defaults: a default group reads as `Voting()`."""
        for name, field in type(self).model_fields.items():
            if (value := getattr(self, name)) != field.get_default(call_default_factory=True):
                yield name, value

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain JSON; live objects are left out."""
        return {name: _plain(getattr(self, name)) for name in self.plain_names()}

    def sendable(self) -> dict[str, object]:
        """Return the options that differ from their defaults, as JSON that makes them again.

        Raises:
            OptionError: One is a live object, which no JSON can carry.
        """
        values: dict[str, object] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value == field.get_default(call_default_factory=True):
                continue
            if name not in self.plain_names() or not _is_data(value):
                raise OptionError(
                    f"`{name}` holds a live object ({type(value).__name__}), which cannot be "
                    "written as JSON; leave it out, or give it by name"
                )
            values[name] = _plain(value)
        return values


def check_value(name: str, value: object, kind: Any) -> None:
    """Check an argument by its type, as an option of a class is checked.

    Raises:
        OptionError: It is not allowed; the message names it, the rule and the value.
    """
    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    try:
        TypeAdapter(kind, config=config).validate_python(value)
    except ValidationError:
        raise OptionError(f"`{name}` must be {wording(kind)}, got {value!r}") from None


def refusal(
    kind: type[Options], error: ValidationError, values: Mapping[str, object]
) -> OptionError:
    """Return the error that says in one sentence what is wrong with the first bad option."""
    first = error.errors()[0]
    if isinstance(cause := first.get("ctx", {}).get("error"), OptionError):
        return cause
    if not first["loc"]:
        return OptionError(str(first["msg"]).removeprefix("Value error, "))
    name, called = str(first["loc"][0]), getattr(kind, "method", kind.called)
    if first["type"] == "extra_forbidden":
        return unknown_option(called, name, kind.model_fields)
    if first["type"] == "missing" and name not in values:
        return OptionError(f"{called} needs the option `{name}`")
    return OptionError(f"`{name}` must be {rule_of(kind, name)}, got {values.get(name)!r}")


# What other packages call an option.
_MEANT = dict.fromkeys(
    ("criteria", "criterion", "prompt", "metric"), ("rubric", "instructions")
)


def unknown_option(
    owner: str, name: str, there: Mapping[str, object] | tuple[str, ...]
) -> OptionError:
    """Return the error for an option that does not exist, with the nearest that does."""
    meant = next((own for own in _MEANT.get(name, ()) if own in there), None)
    hint = f"did you mean {meant!r}? " if meant else did_you_mean(name, there)
    return OptionError(
        f"{owner!r} has no option {name!r}; {hint}it takes {', '.join(sorted(there))}"
    )


def rule_of(kind: type[Options], name: str) -> str:
    """Return what the values of an option must be, in words."""
    field = kind.model_fields[name]
    return wording(field.annotation, field.metadata)


_ATTRIBUTES = re.compile(r"^Attributes:\n((?: .*\n|\n)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def described(kind: type[Options]) -> dict[str, str]:
    """Return what each option means, a class's own before those that it shares with others."""
    names = [name for each in kind.__mro__ for name in getattr(each, "__annotations__", ())]
    said = ChainMap(*(_attributes(each) for each in kind.__mro__ if issubclass(each, Options)))
    return {name: said.get(name, "") for name in names if name in kind.model_fields}


def _attributes(kind: type[Options]) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute."""
    section = _ATTRIBUTES.search(inspect.cleandoc(kind.__doc__ or "") + "\n")
    found = _ATTRIBUTE.findall(section[1]) if section else []
    return {name: " ".join(text.split()) for name, text in found}


def about(kind: type[Options]) -> str:
    """Return the docstring of a class without its attributes."""
    return _ATTRIBUTES.sub("", inspect.cleandoc(kind.__doc__ or "") + "\n").rstrip()


def marks_of(field: FieldInfo) -> list[object]:
    """Return the marks of an option and of what its type is made of."""
    marks, inner = list(field.metadata), field.annotation
    while get_origin(inner) is Annotated:
        inner, *more = get_args(inner)
        marks += more
    return marks


def _with_tuples(annotation: object, value: object) -> object:
    """Return a value with a tuple wherever its type has one, and JSON has a list."""
    if not isinstance(value, list):
        return value
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind in _WRAPPERS:
        return next((r for each in parts if (r := _with_tuples(each, value)) != value), value)
    if kind not in _LISTS:
        return value
    kinds = parts if kind is tuple and Ellipsis not in parts else parts[:1] * len(value)
    if len(kinds) != len(value):
        return tuple(value)
    read = [_with_tuples(each, part) for each, part in zip(kinds, value, strict=True)]
    return tuple(read) if kind is tuple else read


def _is_marked(field: FieldInfo, *, for_client: bool) -> bool:
    return any(
        isinstance(mark, NotSerialisable)
        or (for_client and isinstance(mark, Owner) and mark.but is None)
        for mark in marks_of(field)
    )


def _is_data(value: object) -> bool:
    """Say whether a value can be written as JSON and read again."""
    if isinstance(value, Mapping):
        return all(map(_is_data, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or isinstance(value, str | int | float | Options)


def _plain(value: object) -> object:
    """Return a value as plain JSON; what JSON cannot hold is named."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if as_json := getattr(value, "as_json", None):
        return as_json()
    return getattr(value, "__qualname__", type(value).__name__)
