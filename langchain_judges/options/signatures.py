"""A typed function from options: what editors, type checkers and `help()` read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pydantic_core import PydanticUndefined

from langchain_judges.options.declare import Options, described
from langchain_judges.options.wording import written

P = ParamSpec("P")
T = TypeVar("T")


def type_of(kind: type[Options], name: str) -> str:
    """Return the type of an option as a reader of Python writes it."""
    return written(kind.model_fields[name].annotation)


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
