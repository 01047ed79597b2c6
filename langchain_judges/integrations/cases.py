"""Build the pair or item that an adapter passes to a judge."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_judges.methods.describe import unwrapped
from langchain_judges.methods.rubric.label_options import LabelOptions
from langchain_judges.rows.texts import Text, with_source


def item_for(
    judge: object,
    task: Text,
    output: Text,
    *,
    expected: str | list[str] | None = None,
    source: str | None = None,
    rubric: str | None = None,
) -> dict[str, object]:
    """Return an `Item` with the given fields that are not empty.

    Raises:
        InputError: The judge has nothing to judge it by.
    """
    basis = {"expected": expected, "source": source, "rubric": rubric}
    item: dict[str, object] = {"input": task, "output": output}
    item |= {name: value for name, value in basis.items() if value}
    check_basis_of(judge, item)
    return item


def pair_for(
    task: Text, a: Text, b: Text, *, reference: str | None = None, source: str | None = None
) -> dict[str, object]:
    """Return a `Pair`; a source is appended to the task as such."""
    if source and isinstance(task, str):
        task = with_source(task, f"[source]\n{source}")
    elif source:
        task = [*task, {"role": "source", "content": source}]
    pair: dict[str, object] = {"input": task, "output_a": a, "output_b": b}
    return {**pair, "reference": reference} if reference else pair


def wants_reference(judge: object) -> bool:
    """Return whether a judge of one text compares with a reference if there is one."""
    options = _options(judge)
    return options is None or options.compares


def check_basis_of(judge: object, item: Mapping[str, object]) -> None:
    """Check that an item has what a judge of this package judges by.

    Raises:
        InputError: It does not, so any verdict would be a guess.
    """
    if options := _options(judge):
        options.check(item)


def _options(judge: object) -> LabelOptions | None:
    """Return the label options of a judge of this package; None for any other judge."""
    options = getattr(unwrapped(judge), "options", None)
    return options if isinstance(options, LabelOptions) else None
