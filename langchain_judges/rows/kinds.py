"""What a row is: a pair, an item or a task to write for; decided here and then carried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

RowKind = Literal["pair", "item", "task"]
"""Two texts to compare, one text to label, or concepts that a text must use."""


def kind_of_row(row: Mapping[str, Any]) -> RowKind:
    """Return what a row asks for, by its fields.

    >>> kind_of_row({"input": "Why?", "output": "Because."})
    'item'
    """
    if "concepts" in row:
        return "task"
    return "item" if "output" in row and "output_a" not in row else "pair"


def kind_of_result(result: Mapping[str, Any]) -> RowKind:
    """Return what a result is of.

    A row of `judge_many` says it itself; what a judge or writer returned is told by its form.

    >>> kind_of_result({"verdict": {"label": 1}})
    'item'
    """
    kind: RowKind | None = result.get("kind")
    if kind is not None:
        return kind
    if "text" in result:
        return "task"
    return "item" if "label" in (result.get("verdict") or {}) else "pair"
