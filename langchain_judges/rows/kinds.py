"""The kind of a row: a pair, an item or a writing task; decided here once."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal

RowKind = Literal["pair", "item", "task"]
"""Two texts to compare, one text to label, or concepts that a text must use."""
Kind = Literal["pair", "item"]
"""Whether a judge compares two texts or labels one."""


def kind_in(fields: Container[str]) -> RowKind | None:
    """Return the kind of row that has some fields; None where they hold nothing to judge.

    >>> kind_in(["input", "output_a", "output_b"]), kind_in(["input"])
    ('pair', None)
    """
    if "concepts" in fields:
        return "task"
    if "output_a" in fields:
        return "pair"
    return "item" if "output" in fields else None


def kind_of_row(row: Mapping[str, object]) -> RowKind:
    """Return the kind of a row, by its fields; without a text it is a pair that lacks them.

    >>> kind_of_row({"input": "Why?", "output": "Because."})
    'item'
    """
    return kind_in(row) or "pair"


def kind_of_example(example: Mapping[str, object]) -> Literal["pair", "item"]:
    """Return the kind of an example of a memory: that of a pair has both texts as `output`.

    >>> kind_of_example({"output": {"output_a": "Yes.", "output_b": "No."}})
    'pair'
    """
    return "pair" if isinstance(example.get("output"), Mapping) else "item"


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


def kind_of_verdict(verdict: Mapping[str, object]) -> Literal["pair", "item"]:
    """Return the kind of the row that a verdict, or its part by one criterion, is of.

    That of an item has a label.

    >>> kind_of_verdict({"preference": "A"})
    'pair'
    """
    return "item" if "label" in verdict else "pair"
