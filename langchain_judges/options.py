"""Options, each declared once: as a field of a model, with its default, bounds and meaning.

From the declaration come a factory's signature and docstring, the check of every value with a
message that names option, rule and value, the plain JSON that traces and specs carry, what a
command line or a preset may set, and what a client of a server may set.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import (
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import annotated_types as bounds
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from langchain_judges.errors import OptionError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """How the rule of an option is said, where its type alone would say it badly."""

    text: str


class Here:
    """Marks an option that holds a live object: it exists in this process alone.

    Such an option stands in no JSON, no preset, no command line and no server's context.
    """


class Owner:
    """Marks an option that only the owner of the process may set: a path, a model, a pattern.

    A command line and a spec may set it; a client of a server may not.
    """


def _pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Scale = Annotated[
    tuple[int, int],
    BeforeValidator(_pair),
    bounds.Predicate(lambda ends: ends[0] < ends[1]),
    Rule("two whole numbers (low, high)"),
]
"""The lowest and the highest score."""


class Options(BaseModel):
    """A set of options: frozen, strict, and closed to unknown names.

    Raises:
        OptionError: A value is not allowed; the message names option, rule and value.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    called: ClassVar[str] = "this"
    """What takes the options, as error messages call it."""

    def __init__(self, **values: Any) -> None:
        """Check the values."""
        try:
            super().__init__(**values)
        except ValidationError as exc:
            raise refusal(type(self), exc, values) from None

    @classmethod
    def plain_names(cls, *, for_client: bool = False) -> tuple[str, ...]:
        """Return the options that plain JSON can set.

        Args:
            for_client: Of these, only those that the client of a server may set.
        """
        barred = (Here, Owner) if for_client else (Here,)
        return tuple(
            name for name, field in cls.model_fields.items() if not _is_marked(field, barred)
        )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show what differs from the defaults: a default group reads as `Voting()`."""
        for name, field in type(self).model_fields.items():
            if (value := getattr(self, name)) != field.get_default(call_default_factory=True):
                yield name, value

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain JSON; live objects are left out."""
        return {name: _plain(getattr(self, name)) for name in self.plain_names()}


def group(kind: type[Options]) -> BeforeValidator:
    """Take a group of options as itself, or as a mapping of its fields by name.

    For a field such as `panel: Annotated[Panel | Mapping[str, Any], group(Panel)] = Panel()`,
    which then always holds a `Panel`.
    """

    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return kind(**{str(name): each for name, each in value.items()})

    return BeforeValidator(read)


def refusal(
    kind: type[Options], error: ValidationError, values: Mapping[str, Any]
) -> OptionError:
    """Return the error that says in one sentence what is wrong with the first bad option."""
    first = error.errors()[0]
    if isinstance(cause := first.get("ctx", {}).get("error"), OptionError):
        return cause
    if not first["loc"]:
        return OptionError(str(first["msg"]).removeprefix("Value error, "))
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return unknown_option(kind.called, name, kind.model_fields)
    if first["type"] == "missing" and name not in values:
        return OptionError(f"{kind.called} needs the option `{name}`")
    return OptionError(f"`{name}` must be {rule_of(kind, name)}, got {values.get(name)!r}")


def unknown_option(
    owner: str, name: str, there: Mapping[str, Any] | tuple[str, ...]
) -> OptionError:
    """Return the error for an option that does not exist, with the nearest that does."""
    near = get_close_matches(name, list(there), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return OptionError(
        f"{owner!r} has no option {name!r}; {hint}it takes {', '.join(sorted(there))}"
    )


def rule_of(kind: type[Options], name: str) -> str:
    """Return what the values of an option must be, in words."""
    field = kind.model_fields[name]
    return _said(field.annotation, field.metadata)


def type_of(kind: type[Options], name: str) -> str:
    """Return the type of an option as a reader of Python writes it."""
    return _written(kind.model_fields[name].annotation)


def described(kind: type[Options]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the options, a class's own before those that it shares with others."""
    names = [name for each in kind.__mro__ for name in getattr(each, "__annotations__", ())]
    fields = kind.model_fields
    yield from ((name, fields[name]) for name in dict.fromkeys(names) if name in fields)


def _is_marked(field: FieldInfo, marks: tuple[type, ...]) -> bool:
    return any(mark in marks or isinstance(mark, marks) for mark in field.metadata)


def _plain(value: Any) -> Any:
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


_WORDS: dict[Any, str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
    type(None): "None",
}


def _said(annotation: Any, metadata: list[Any] | tuple[Any, ...] = ()) -> str:
    for mark in metadata:
        if isinstance(mark, Rule):
            return mark.text
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return _said(inner, [*metadata, *marks])
    if get_origin(annotation) is Literal:
        allowed = [repr(value) for value in get_args(annotation)]
        return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_said(part, metadata) for part in get_args(annotation))
    word = _WORDS.get(annotation)
    if word is None:
        return f"a {getattr(annotation, '__name__', str(annotation))}"
    return word + _limits(metadata) if annotation in (int, float) else word


def _limits(metadata: list[Any] | tuple[Any, ...]) -> str:
    low = high = ""
    for mark in metadata:
        for each in mark if isinstance(mark, bounds.GroupedMetadata) else (mark,):
            if isinstance(each, bounds.Ge):
                low = f"at least {each.ge}"
            elif isinstance(each, bounds.Gt):
                low = f"above {each.gt}"
            elif isinstance(each, bounds.Le):
                high = f"at most {each.le}"
            elif isinstance(each, bounds.Lt):
                high = f"below {each.lt}"
    limits = " and ".join(filter(None, [low, high]))
    glue = " " if low.startswith("above") or (not low and high.startswith("below")) else " of "
    return glue + limits if limits else ""


def _written(annotation: Any) -> str:
    """Return a type in the short form of source code, without the marks of its parts."""
    if get_origin(annotation) is Annotated:
        return _written(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(_written, get_args(annotation))))
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    name: str = getattr(get_origin(annotation) or annotation, "__name__", str(annotation))
    parts = [_written(part) for part in get_args(annotation) if part is not Ellipsis]
    return {"NoneType": "None"}.get(name, name) + (f"[{', '.join(parts)}]" if parts else "")


def factory(
    kind: Callable[P, Options], make: Callable[[Any, Any], T], name: str, first: str = "model"
) -> Callable[Concatenate[Any, P], T]:
    """Return a function that makes something of a first argument and the options of a kind.

    Type checkers see every option of the kind, with its type and default; `help()` and the
    signature show them too, with the text that stands under each.

    Args:
        kind: The class that declares the options.
        make: Takes the checked options and the first argument.
        name: Of the function.
        first: Name of its first argument.
    """
    options = cast("type[Options]", kind)

    def create(*args: Any, **values: Any) -> T:
        bound = signature.bind_partial(*args)
        if first in values and not bound.arguments:
            bound = signature.bind_partial(values.pop(first))
        if not bound.arguments:
            raise TypeError(f"{name}() needs `{first}`")
        return make(options(**values), bound.arguments[first])

    signature = inspect.Signature(
        [inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )
    create.__name__ = create.__qualname__ = name
    create.__module__ = options.__module__
    create.__doc__ = _docstring(options, first)
    create.__signature__ = _signature(options, first)  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[Any, P], T]", create)


def _signature(kind: type[Options], first: str) -> inspect.Signature:
    head = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is PydanticUndefined and field.default_factory is None
            else field.get_default(call_default_factory=True),
            annotation=type_of(kind, name),
        )
        for name, field in described(kind)
    ]
    return inspect.Signature([head, *rest])


def _docstring(kind: type[Options], first: str) -> str:
    """Return a class's docstring with a section for its options."""
    text = inspect.cleandoc(kind.__doc__ or "")
    head, mark, tail = text.partition("\nReturns:")
    lines = [
        f"    {first}: What is asked: a chat model, or a name as `resolve_model` takes it."
    ]
    for name, field in described(kind):
        words = " ".join((field.description or "").split())
        lines.append(f"    {name}: {words}")
    return (
        f"{head.rstrip()}\n\nArgs:\n" + "\n".join(lines) + (f"\n{mark}{tail}" if mark else "")
    )
