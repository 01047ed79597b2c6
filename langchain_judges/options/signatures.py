"""A typed function from options: what editors, type checkers and `help()` read."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pydantic_core import PydanticUndefined

from langchain_judges.options.declare import Options, about, described, written

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
Declared = TypeVar("Declared")


def type_of(kind: type[Options], name: str) -> str:
    """Return the type of an option as a reader of Python writes it."""
    return written(kind.model_fields[name].annotation)


def factory(
    kind: Callable[P, Declared],
    make: Callable[[Declared, A], T],
    name: str,
    first: str = "model",
    needed: bool = True,
) -> Callable[Concatenate[A, P], T]:
    """Return a function that makes something of a first argument and the options of a kind.

    Type checkers see every option of the kind, with its type and default; `help()` and the
    signature show them too, with the text that stands under each.

    Args:
        kind: The class that declares the options.
        make: Takes the checked options and the first argument.
        name: Of the function.
        first: Name of its first argument.
        needed: Whether there must be one; otherwise `make` gets None.
    """
    options = cast("type[Options]", kind)
    default = inspect.Parameter.empty if needed else None
    head = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)

    def create(*args: Any, **values: Any) -> T:
        [what], values = _split([head], args, values)
        return make(cast("Declared", options(**values)), what)

    create.__name__ = create.__qualname__ = name
    create.__module__ = make.__module__
    create.__doc__ = _docstring(options, first)
    create.__signature__ = _signature(options, [head])  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[A, P], T]", create)


def with_options(
    kind: Callable[P, Declared],
) -> Callable[[Callable[[A, B, Declared], T]], Callable[Concatenate[A, B, P], T]]:
    """Let a function of two arguments and a set of options take each option by name.

    Type checkers see every option of the kind, with its type and default; `help()` and the
    signature show them too. In the docstring a line `options:` stands for all of them.

    Args:
        kind: The class that declares the options.
    """
    options = cast("type[Options]", kind)

    def decorate(function: Callable[[A, B, Declared], T]) -> Callable[Concatenate[A, B, P], T]:
        own = list(inspect.signature(function).parameters.values())[:2]

        @functools.wraps(function)
        def call(*args: Any, **values: Any) -> T:
            [first, second], values = _split(own, args, values)
            return function(first, second, cast("Declared", options(**values)))

        lines = "\n".join(f"    {line}" for line in _option_lines(options))
        text = inspect.cleandoc(function.__doc__ or "")
        call.__doc__ = re.sub(r"(?m)^ +options:.*$", lambda _: lines, text)
        call.__signature__ = _signature(options, own)  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[A, B, P], T]", call)

    return decorate


def _split(
    heads: list[inspect.Parameter], args: tuple[Any, ...], values: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a call's first parameters, and the options beside them."""
    names = [head.name for head in heads]
    own = {name: value for name, value in values.items() if name in names}
    bound = inspect.Signature(heads).bind(*args, **own)
    bound.apply_defaults()
    rest = {name: value for name, value in values.items() if name not in names}
    return list(bound.arguments.values()), rest


def _signature(kind: type[Options], heads: list[inspect.Parameter]) -> inspect.Signature:
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is PydanticUndefined and field.default_factory is None
            else field.get_default(call_default_factory=True),
            annotation=type_of(kind, name),
        )
        for name in described(kind)
        for field in [kind.model_fields[name]]
    ]
    return inspect.Signature([*heads, *options])


def _docstring(kind: type[Options], first: str) -> str:
    """Return a class's docstring with a section for its options."""
    head, mark, tail = about(kind).partition("\nReturns:")
    model = f"{first}: The model: a chat model, or a name as `resolve_model` takes it."
    lines = [f"    {line}" for line in (model, *_option_lines(kind))]
    return (
        f"{head.rstrip()}\n\nArgs:\n" + "\n".join(lines) + (f"\n{mark}{tail}" if mark else "")
    )


def _option_lines(kind: type[Options]) -> list[str]:
    return [f"{name}: {meaning}" for name, meaning in described(kind).items()]
