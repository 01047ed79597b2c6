"""Options, each declared once: as a field of a model, with its default, bounds and meaning.

From the declaration come a factory's signature and docstring, the check of every value with a
message that names option, rule and value, the plain JSON that traces and specs carry, what a
command line or a preset may set, and what a client of a server may set.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, Union, cast

import annotated_types as bounds
import pydantic
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema

from langchain_judges.errors import OptionError, did_you_mean

Share = Annotated[float, bounds.Ge(0), bounds.Le(1)]
Count = Annotated[int, bounds.Ge(0)]
_LISTS = (list, tuple, Sequence)
_WRAPPERS = (Annotated, Union, types.UnionType)
_TYPE_WORDS: dict[object, str] = {
    **{bool: "true or false", float: "a number", int: "a whole number"},
    **{str: "a text", type(None): "None", Callable: "a function"},
}
_BOUNDS: Mapping[type, tuple[str, str]] = {
    **{bounds.Ge: ("ge", "at least"), bounds.Gt: ("gt", "above")},
    **{bounds.Le: ("le", "at most"), bounds.Lt: ("lt", "below")},
    **{bounds.MinLen: ("min_length", "at least"), bounds.MaxLen: ("max_length", "at most")},
}
# What other packages call a rubric.
_RUBRICS = ("criteria", "criterion", "prompt", "metric")
# What a judge by rubric takes of each criterion, and not of all.
OF_CRITERION = ("anchors", "description", "least", "required", "scale", "unless", "weight")
_MEANINGS = re.compile(r"^(?:Args|Attributes):\n((?: .*\n|\n)*)", re.MULTILINE)
_MEANING = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
Declared = TypeVar("Declared")
# The highest number in what a client sets, unless it is a seed: what a run costs is bounded by
# its calls, and this bounds what it takes to make the judge that would be asked.
MOST_SET = 1000


@dataclass(frozen=True)
class Rule:
    """Wording of an option's rule, where its type alone would be unclear."""

    text: str


class NotSerialisable:
    """Marks an option that holds a live object: it exists in this process alone.

    Such an option cannot be set in JSON, a preset, a command line or a server's context.
    """


@dataclass(frozen=True)
class Owner:
    """Marks an option that only the owner of the process may set: a path, a model, a pattern.

    A command line and a spec may set it; a client of a server may not.

    Attributes:
        but: The type of the values that a client may set nevertheless.
    """

    but: type | None = None


# The lowest and the highest score.
Scale = Annotated[
    tuple[int, int],
    bounds.Predicate(lambda ends: ends[0] < ends[1]),
    Rule("two whole numbers (low, high)"),
]


def wording(annotation: object, metadata: Sequence[object] = ()) -> str:
    """Rule for the values of a type, in words.

    Args:
        annotation: The type.
        metadata: Marks of the option itself.
    """
    for mark in metadata:
        if isinstance(mark, Rule):
            return mark.text
    if typing.get_origin(annotation) is Annotated:
        inner, *marks = typing.get_args(annotation)
        return wording(inner, [*metadata, *marks])
    if typing.get_origin(annotation) is Literal:
        allowed = [repr(value) for value in typing.get_args(annotation)]
        return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(wording(part, metadata) for part in typing.get_args(annotation))
    word = _TYPE_WORDS.get(typing.get_origin(annotation) or annotation)
    if typing.get_origin(annotation) in _LISTS:
        parts = typing.get_args(annotation)
        is_fixed = typing.get_origin(annotation) is tuple and Ellipsis not in parts
        return "a list" + (f" of {len(parts)}" if is_fixed else _limit_words(metadata))
    if word is None:
        fields = " or its fields by name" if _is_group(annotation) else ""
        return f"a {getattr(annotation, '__name__', str(annotation))}{fields}"
    return word + _limit_words(metadata) if annotation in (int, float) else word


def _limit_words(metadata: Sequence[object]) -> str:
    limits = [
        f"{words} {getattr(mark, name)}"
        for kind, (name, words) in _BOUNDS.items()
        for mark in metadata
        if isinstance(mark, kind)
    ]
    glue = " of " if "at " in "".join(limits[:1]) else " "
    return glue + " and ".join(limits) if limits else ""


def type_text(annotation: object) -> str:
    """A type in the short form of source code, without the marks of its parts."""
    if typing.get_origin(annotation) is Annotated:
        return type_text(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(type_text, typing.get_args(annotation))))
    if typing.get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, typing.get_args(annotation)))}]"
    name: str = getattr(typing.get_origin(annotation) or annotation, "__name__", str(annotation))
    parts = [type_text(part) for part in typing.get_args(annotation) if part is not Ellipsis]
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
        defer_build=True,  # A program makes one method, and pays for the checks of one.
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
    )

    called: ClassVar[str] = "this"

    def __init__(self, /, **values: object) -> None:
        """Check the values; JSON has lists for tuples."""
        kinds = {name: field.annotation for name, field in type(self).model_fields.items()}
        read = {name: _with_tuples(kinds.get(name), value) for name, value in values.items()}
        try:
            super().__init__(**read)
        except ValidationError as exc:
            raise self._refusal(exc, values) from None

    @classmethod
    def _refusal(cls, error: ValidationError, values: Mapping[str, object]) -> OptionError:
        """The error that says what is wrong with the first bad option."""
        first = error.errors()[0]
        if isinstance(cause := first.get("ctx", {}).get("error"), OptionError):
            return cause
        if not first["loc"]:
            return OptionError(str(first["msg"]).removeprefix("Value error, "))
        (name, *parts), called = map(str, first["loc"]), getattr(cls, "method", cls.called)
        is_unknown = first["type"] == "extra_forbidden"
        if is_unknown and not parts:
            return unknown_option(called, name, cls.model_fields)
        if first["type"] == "missing" and name not in values:
            return OptionError(f"{called} needs the option `{name}`")
        got = f"{parts[-1]!r} in {values[name]!r}" if is_unknown else repr(values.get(name))
        return OptionError(f"`{name}` must be {rule_of(cls, name)}, got {got}")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The JSON schema, with what each option means."""
        own = handler.resolve_ref_schema(whole := handler(schema))
        own["description"] = about(cls)
        for name, meaning in described(cls).items():
            own["properties"][name]["description"] = meaning
        return whole

    @classmethod
    def plain_names(cls, *, for_client: bool = False) -> tuple[str, ...]:
        """The options that plain JSON can set.

        Args:
            for_client: Of these, only those that the client of a server may set.
        """
        return tuple(
            name
            for name, field in cls.model_fields.items()
            if not any(
                isinstance(mark, NotSerialisable)
                or (for_client and isinstance(mark, Owner) and mark.but is None)
                for mark in field.metadata
            )
        )

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The default of each option."""
        return {
            name: field.get_default(call_default_factory=True)
            for name, field in cls.model_fields.items()
        }

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """Show what differs from the defaults: a default group reads as `Voting()`."""
        for name, default in self.defaults().items():
            if (value := getattr(self, name)) != default:
                yield name, value

    def as_json(self) -> dict[str, Any]:
        """The options as plain JSON; live objects are left out."""
        return {name: _plain(getattr(self, name)) for name in self.plain_names()}

    def sendable(self) -> dict[str, object]:
        """The options that differ from their defaults, as JSON that makes them again.

        Raises:
            OptionError: One is a live object, which no JSON can carry.
        """
        values, plain = dict[str, object](), self.plain_names()
        for name, value in self.__repr_args__():
            if name not in plain or not _is_data(value):
                live = f"`{name}` holds a live object ({type(value).__name__})"
                raise OptionError(f"{live}, which no JSON holds: leave it out, or give it by name")
            values[name] = _plain(value)
        return values


def _is_group(annotation: object) -> typing.TypeGuard[type[Options]]:
    """Whether a type is a set of options, which a mapping of its fields by name makes too."""
    return isinstance(annotation, type) and issubclass(annotation, Options)


def check_value(name: str, value: object, kind: Any) -> None:
    """Check an argument by its type, as an option of a class is checked.

    Raises:
        OptionError: It is not allowed; the message names it, the rule and the value.
    """
    try:
        _adapter(kind).validate_python(value)
    except ValidationError:
        raise OptionError(f"`{name}` must be {wording(kind)}, got {value!r}") from None


_CHECKED = ConfigDict(strict=True, arbitrary_types_allowed=True)
_adapter = functools.cache(functools.partial(TypeAdapter, config=_CHECKED))


def unknown_option(owner: str, name: str, there: Iterable[str]) -> OptionError:
    """The error for an option that does not exist, with the nearest that does."""
    meant = [own for own in ("rubric", "instructions") if own in there and name in _RUBRICS]
    hint = f"did you mean {meant[0]!r}? " if meant else did_you_mean(name, there)
    if owner == "rubric" and name in OF_CRITERION:
        hint = f"a criterion has it, as in `rubric=[Criterion(name=…, {name}=…)]`; "
    taken = ", ".join(sorted(there)) or "none"
    return OptionError(f"{owner!r} has no option {name!r}; {hint}it takes {taken}")


def rule_of(kind: type[Options], name: str) -> str:
    """Rule for the values of an option, in words."""
    field = kind.model_fields[name]
    return wording(field.annotation, field.metadata)


def described(kind: type[Options]) -> dict[str, str]:
    """Meaning of each option, a class's own before those that it shares with others."""
    names = [name for each in kind.__mro__ for name in getattr(each, "__annotations__", ())]
    said = attributes(kind)
    fields = {name: kind.model_fields[name] for name in names if name in kind.model_fields}
    return {n: said.get(n) or field.description or "" for n, field in fields.items()}


def docstring(thing: Any) -> str:
    """The docstring of a class or function; empty under `python -OO`."""
    return inspect.cleandoc(thing.__doc__ or "")


def attributes(kind: type[object]) -> Mapping[str, str]:
    """Meaning of each attribute, by the docstrings of a class and of its bases."""
    return ChainMap(*map(meanings, kind.__mro__))


def meanings(thing: Any) -> dict[str, str]:
    """Meaning of each attribute of a class or argument of a function, by its docstring."""
    section = _MEANINGS.search(docstring(thing) + "\n")
    found = _MEANING.findall(section[1]) if section else []
    return {name: " ".join(text.split()) for name, text in found}


def about(thing: Any) -> str:
    """The docstring of a class without its attributes, or of a function without its arguments."""
    return _MEANINGS.sub("", docstring(thing) + "\n").rstrip()


def _with_tuples(annotation: object, value: object) -> object:
    """A value with a tuple wherever its type has one, and JSON has a list."""
    if not isinstance(value, list):
        return value
    kind, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if kind in _WRAPPERS:
        return next((r for each in parts if (r := _with_tuples(each, value)) != value), value)
    if kind not in _LISTS:
        return value
    kinds = parts if kind is tuple and Ellipsis not in parts else parts[:1] * len(value)
    read = [*map(_with_tuples, kinds, value), *value[len(kinds) :]]
    return tuple(read) if kind is tuple else read


def _is_data(value: object) -> bool:
    """Whether a value can be written as JSON and read again."""
    if isinstance(value, Mapping):
        return all(map(_is_data, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or isinstance(value, str | int | float | Options)


def _plain(value: object) -> object:
    """A value as plain JSON; what JSON cannot hold is named."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if as_json := getattr(value, "as_json", None):
        return as_json()
    return getattr(value, "__qualname__", type(value).__name__)


def factory(
    kind: Callable[P, Declared], make: Callable[[Declared, A], T], name: str, first: str = "model"
) -> Callable[Concatenate[A, P], T]:
    """A function that makes something of a first argument and the options of a kind.

    Type checkers see every option of the kind, with its type and default; `help()` and the
    signature show them too, with the text that stands under each.

    Args:
        kind: The class that declares the options.
        make: Takes the checked options and the first argument.
        name: Of the function.
        first: Name of its first argument.
    """
    options = cast("type[Options]", kind)
    head = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def use(what: A, chosen: Declared) -> T:
        return make(chosen, what)

    use.__name__ = use.__qualname__ = name
    use.__module__ = getattr(make, "__self__", make).__module__  # of a class that builds
    model = f"{first}: The model: a chat model, or a name as `resolve_model` takes it."
    text, mark, tail = about(options).partition("\nReturns:")
    use.__doc__ = f"{text.rstrip()}\n\nArgs:\n    {model}\n    options:\n{mark}{tail}".rstrip()
    return cast("Callable[Concatenate[A, P], T]", _taking(options, [head], use))


def with_options(
    kind: Callable[P, Declared],
) -> Callable[[Callable[[A, B, Declared], T]], Callable[Concatenate[A, B, P], T]]:
    """Let a function of two arguments and a set of options take each option by name.

    Type checkers see every option of the kind, with its type and default; `help()` and the
    signature show them too. In the docstring, a line `options:` is replaced by all of them.

    Args:
        kind: The class that declares the options.
    """
    options = cast("type[Options]", kind)

    def decorate(function: Callable[[A, B, Declared], T]) -> Callable[Concatenate[A, B, P], T]:
        own = list(inspect.signature(function).parameters.values())[:2]

        return cast("Callable[Concatenate[A, B, P], T]", _taking(options, own, function))

    return decorate


def _taking(
    kind: type[Options], heads: list[inspect.Parameter], function: Callable[..., T]
) -> Callable[..., T]:
    """A function whose options, in its docstring `options:`, are each a keyword.

    Args:
        kind: The class that declares the options.
        heads: The parameters before them.
        function: Takes these, then the checked options.
    """
    names = [head.name for head in heads]

    def call(*args: Any, **values: Any) -> T:
        own = {name: values.pop(name) for name in names if name in values}
        bound = inspect.Signature(heads).bind(*args, **own)
        bound.apply_defaults()
        return function(*bound.arguments.values(), kind(**values))

    functools.update_wrapper(call, function)
    vars(call).pop("__wrapped__")  # whoever unwraps it would miss the options
    meanings, defaults = described(kind), kind.defaults()
    lines = "\n".join(f"    {name}: {meaning}" for name, meaning in meanings.items())
    call.__doc__ = re.sub(r"(?m)^ +options:.*$", lambda _: lines, docstring(function))
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.is_required() else defaults[name],
            annotation=type_text(field.annotation),
        )
        for name in meanings
        for field in [kind.model_fields[name]]
    ]
    call.__signature__ = inspect.Signature([*heads, *options])  # type: ignore[attr-defined]
    return call


def settable(kind: type[Options], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The options that a client may set.

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
    for name in values.keys() & kind.model_fields.keys():
        value, marks = values[name], kind.model_fields[name].metadata
        but = [mark.but for mark in marks if isinstance(mark, Owner) and mark.but]
        if name not in allowed or (but and not isinstance(value, (*but, type(None)))):
            raise OptionError(f"`{name}` can be set by the owner of the server only")
        if _is_group(group := kind.model_fields[name].annotation) and isinstance(value, Mapping):
            check_client(group, value)
        if name != "seed":
            _check_numbers(name, value)
    kind(**values)


def client_schema(kind: type[Options], names: Sequence[str] | None = None) -> dict[str, Any]:
    """The JSON schema of what a client may set."""
    schema = kind.model_json_schema(schema_generator=_AnyObject)
    properties = {name: schema["properties"][name] for name in settable(kind, names)}
    return {**schema, "properties": properties, "required": []}


class _AnyObject(GenerateJsonSchema):
    """A JSON schema in which a type that JSON does not have may be anything."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        """Allow anything."""
        return {}


def _check_numbers(name: str, value: object) -> None:
    """Check that no number in a value is too high.

    Raises:
        OptionError: One is.
    """
    if isinstance(value, int | float) and not -MOST_SET <= value <= MOST_SET:
        raise OptionError(f"`{name}` must have no number above {MOST_SET:,}, got {value!r}")
    parts = value.values() if isinstance(value, Mapping) else value
    for part in parts if isinstance(value, Mapping | list | tuple) else ():  # type: ignore[attr-defined]
        _check_numbers(name, part)
