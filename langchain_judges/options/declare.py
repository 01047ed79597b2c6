"""A set of options: a frozen model that says in one sentence what is wrong with a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.options.marks import Group, NotSerialisable, Owner
from langchain_judges.options.wording import wording


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

    def __init__(self, /, **values: object) -> None:
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
        barred = (NotSerialisable, Owner) if for_client else (NotSerialisable,)
        return tuple(
            name for name, field in cls.model_fields.items() if not _is_marked(field, barred)
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


def group(kind: type[Options]) -> Group:
    """Take a group of options as itself, or as a mapping of its fields by name.

    For a field such as `panel: Annotated[Panel | Mapping[str, Any], group(Panel)] = Panel()`,
    which then always holds a `Panel`.
    """
    return Group(kind)


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


def unknown_option(
    owner: str, name: str, there: Mapping[str, object] | tuple[str, ...]
) -> OptionError:
    """Return the error for an option that does not exist, with the nearest that does."""
    hint = did_you_mean(name, there)
    return OptionError(
        f"{owner!r} has no option {name!r}; {hint}it takes {', '.join(sorted(there))}"
    )


def rule_of(kind: type[Options], name: str) -> str:
    """Return what the values of an option must be, in words."""
    field = kind.model_fields[name]
    return wording(field.annotation, field.metadata)


def described(kind: type[Options]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the options, a class's own before those that it shares with others."""
    names = [name for each in kind.__mro__ for name in getattr(each, "__annotations__", ())]
    fields = kind.model_fields
    yield from ((name, fields[name]) for name in dict.fromkeys(names) if name in fields)


def _is_marked(field: FieldInfo, marks: tuple[type, ...]) -> bool:
    return any(mark in marks or isinstance(mark, marks) for mark in field.metadata)


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
