"""The kind of a row: a pair, an item or a writing task; decided here once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

RowKind = Literal["pair", "item", "task"]
"""Two texts to compare, one text to label, or concepts that a text must use."""


def kind_of_row(row: Mapping[str, Any]) -> RowKind:
    """Return the kind of a row, by its fields.

    >>> kind_of_row({"input": "Why?", "output": "Because."})
    'item'
    """
    if "concepts" in row:
        return "task"
    return "item" if "output" in row and "output_a" not in row else "pair"


def kind_of_result(result: Mapping[str, Any]) -> RowKind:
    """Return the kind of the row that a result is of.

    A row of `judge_many` names it; for what a judge or writer returns, the form decides.

    >>> kind_of_result({"verdict": {"label": 1}})
    'item'
    """
    kind: RowKind | None = result.get("kind")
    if kind is not None:
        return kind
    if "text" in result:
        return "task"
    return kind_of_verdict(result.get("verdict") or {})


def kind_of_verdict(verdict: Mapping[str, Any]) -> Literal["pair", "item"]:
    """Return the kind of the row that a verdict is of: an item's has a label.

    >>> kind_of_verdict({"preference": "A"})
    'pair'
    """
    return "item" if "label" in verdict else "pair"
