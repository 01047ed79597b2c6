"""Groups of flags: a shell sees a flag for each field, the command gets the whole group."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True)
class Without:
    """Notes beside a group which of its fields are no flags of this command.

    They keep their defaults.
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        """Take the names of the fields."""
        object.__setattr__(self, "names", names)


def unfolded(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's groups be a flag of its own.

    A group is a parameter whose type is a dataclass; its fields are declared as parameters of
    a command are, `base_url: Annotated[str | None, typer.Option(help=…)] = None`. The flags
    stand in the help in the order of the parameters and fields.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        kind, *marks = get_args(hint) or (hint,)
        if is_dataclass(kind) and isinstance(kind, type):
            flags = list(_flags(kind, {name for mark in marks for name in mark.names}))
            groups[parameter.name] = kind, [flag.name for flag in flags]
            parameters += flags
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hint, kind=keyword))

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: object) -> None:
        folded = {
            name: kind(**{each: values.pop(each) for each in own})
            for name, (kind, own) in groups.items()
        }
        command(**values, **folded)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return call


def _flags(group: type[Any], without: set[str]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if field.name in without:
            without.remove(field.name)
        else:
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
    if without:
        raise TypeError(f"{group.__name__} has no {sorted(without)}")
