"""Lists in the state of a graph to which nodes that run side by side each add their part."""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")


def joined(items: list[T], more: list[T]) -> list[T]:
    """Return both lists as one.

    LangGraph reads a reducer's signature for each graph it builds, and takes ten times as long
    for a function without source, such as `operator.add`.
    """
    return items + more


Gathered = Annotated[list[T], joined]
"""A list of the state; what a node returns for it is added to what others returned."""
