"""What follows from the type of a graph's state: what is gathered, blank and streamed."""

from __future__ import annotations

import types
from collections.abc import Collection
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from langgraph.types import Overwrite

from langchain_judges.errors import OptionError

T = TypeVar("T")


def joined(items: list[T], more: list[T]) -> list[T]:
    """Return both lists as one.

    LangGraph reads a reducer's signature for each graph it builds, and takes ten times as long
    for a function without source, such as `operator.add`.
    """
    return items + more


Gathered = Annotated[list[T], joined]
"""A list of the state; what a node returns for it is added to what others returned.

Where the graph returns it too, its items are streamed one by one, each called as the key is,
without its `s`."""


class Emits(NamedTuple):
    """Marks a list of the state whose items are streamed one by one, and names an item.

    Of a gathered list it stands before the reducer:
    `Annotated[list[T], Emits("vote"), joined]`.
    """

    name: str
    """Empty: its items are not streamed."""


Silent = Annotated[list[T], Emits(""), joined]
"""Gathered too, but not streamed."""


def event_names(state: type, result: type) -> dict[str, str]:
    """Return the lists of a state whose items are streamed, and what an item is called.

    Args:
        state: The `TypedDict` of the state.
        result: That of what the graph returns.
    """
    names, returned = {}, _hints(result)
    for key, hint in _hints(state).items():
        marks = getattr(hint, "__metadata__", ())
        default = key.removesuffix("s") if joined in marks and key in returned else ""
        if name := next((mark.name for mark in marks if isinstance(mark, Emits)), default):
            names[key] = name
    return names


def blank_state(state: type, given: Collection[str]) -> dict[str, Any]:
    """Return a state before its first node: a checkpointed thread holds that of another run.

    Args:
        state: The `TypedDict` of the state.
        given: Keys that each run sets by itself, such as those of its input.

    Raises:
        OptionError: A key has a type without a blank: it is gathered by another reducer than
            that of `Gathered`, or is neither a list, a dictionary nor None.
    """
    return {
        key: _blank(state, key, hint) for key, hint in _hints(state).items() if key not in given
    }


def _hints(state: type) -> dict[str, Any]:
    hints = get_type_hints(state, include_extras=True)
    return {
        key: get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint
        for key, hint in hints.items()
    }


def _blank(state: type, key: str, hint: Any) -> object:
    marks = getattr(hint, "__metadata__", ())
    if joined in marks:
        return Overwrite([])
    plain = get_args(hint)[0] if marks else hint
    if get_origin(plain) in (Union, types.UnionType) and type(None) in get_args(plain):
        return None
    kind = get_origin(plain) or plain
    if kind not in (list, dict) or any(map(callable, marks)):
        raise OptionError(
            f"`{key}` of {state.__name__} has no blank for the next run of a thread: declare "
            f"it as `Gathered[...]`, a list, a dictionary, or with `| None`; it is {hint}"
        )
    return kind()
