"""What an adapter hands to a judge: each text under its own name, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.methods.allure.prompts import RUBRICS
from langchain_judges.methods.marks import metadata_of
from langchain_judges.rows.texts import Text, with_source

_NEEDS = {
    "correctness": (("expected",), "a reference to compare with"),
    "consistency": (("source",), "a source to check it against"),
    None: (("expected", "source"), "a reference to compare with, or a source to check against"),
}
"""What a judge of one text needs by its rubric: one of these fields, and how to say it."""


def item_for(
    judge: Any,
    task: Text,
    output: Text,
    *,
    expected: str | list[str] | None = None,
    source: str | None = None,
    rubric: str | None = None,
) -> dict[str, Any]:
    """Return an `Item` with what there is.

    Raises:
        InputError: The judge would have nothing to judge by.
    """
    told = {"expected": expected, "source": source, "rubric": rubric}
    item: dict[str, Any] = {"input": task, "output": output}
    item |= {name: value for name, value in told.items() if value}
    check_basis_of(judge, item)
    return item


def pair_for(
    task: Text, a: Text, b: Text, *, reference: str | None = None, source: str | None = None
) -> dict[str, Any]:
    """Return a `Pair`; a source stands behind the task under its name."""
    if source and isinstance(task, str):
        task = with_source(task, f"[source]\n{source}")
    elif source:
        task = [*task, {"role": "source", "content": source}]
    pair: dict[str, Any] = {"input": task, "output_a": a, "output_b": b}
    return {**pair, "reference": reference} if reference else pair


def wants_reference(judge: Any) -> bool:
    """Say whether a judge of one text compares with a reference where it finds one."""
    options = metadata_of(judge).get("options") or {}
    return options.get("rubric") in (None, "correctness")


def check_basis_of(judge: Any, item: Mapping[str, Any]) -> None:
    """Check that an item has what a judge of this package judges by.

    Raises:
        InputError: It has not, so any verdict would be a guess.
    """
    options = metadata_of(judge).get("options") or {}
    if "rubric" not in options:  # not a judge of this package
        return
    rubric = item.get("rubric") or options["rubric"]
    if rubric and rubric not in RUBRICS:
        return
    fields, words = _NEEDS[rubric]
    if not any(item.get(field) for field in fields):
        raise InputError(
            f"there is nothing to judge by: the judge needs {words}, or a `rubric` of its own"
        )
