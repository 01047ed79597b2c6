"""Reading what a metric is given: verdicts, rows or bare values; None and NaN are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from langchain_judges.errors import InputError, OptionError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOT_JUDGED = "not_judged"
NO_LABEL = "no_label"


@dataclass(frozen=True)
class Matched:
    """The items on which both sides said something, and why the others are left out."""

    judge: list[Any]
    truth: list[Any]
    indices: Ints
    """Positions of the kept items in what was given."""
    failed: Counter[str]

    @property
    def n(self) -> int:
        """How many items are kept."""
        return len(self.indices)


def one_of(name: str, value: object, allowed: Any) -> None:
    """Refuse an option that is not among those of a `Literal` or a collection."""
    choices = get_args(allowed) or tuple(allowed)
    if value not in choices:
        raise OptionError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}"
        )


def same_length(**columns: Sequence[Any] | None) -> None:
    """Refuse arguments that do not speak of the same items."""
    sizes = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
        raise InputError(f"one value for each item is needed: {counts}")


def as_list(values: Iterable[Any]) -> list[Any]:
    """Return plain Python values of a list, an array, a table of pandas or an iterator.

    Raises:
        InputError: It is a mapping, of which only the keys would be read.
    """
    if isinstance(values, Mapping):
        raise InputError("one value for each item is needed, in order: got a mapping")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    return values.tolist() if hasattr(values, "tolist") else list(values)


def as_votes(value: Any) -> list[Any]:
    """Return people's votes on one item, of which a bare label is one; missing ones are out."""
    alone = isinstance(value, str) or not isinstance(value, Iterable)
    return [vote for vote in ([value] if alone else as_list(value)) if not is_missing(vote)]


def is_missing(value: Any) -> bool:
    """Say whether a value stands for nothing: None, NaN or pandas' NA."""
    if value is None or isinstance(value, (str, int)):
        return value is None
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in {"NAType", "NaTType"}


def value_of(item: Any, field: str | None = None) -> tuple[Any, str]:
    """Return what a judgment says, and the reason if it says nothing.

    Args:
        item: A bare value, a verdict, or a row that holds one under `verdict`.
        field: The verdict's field to read, such as `score`; by default its preference,
            or the label of a judge of one text.
    """
    if isinstance(item, Mapping):
        verdict = item.get("verdict", item) or {}
        names = (field,) if field else ("preference", "label")
        value = next((verdict[name] for name in names if name in verdict), None)
        failures = verdict.get("failures") or []
        reason = failures[0]["reason"] if failures else NOT_JUDGED
    else:
        value, reason = item, NOT_JUDGED
    return (None if is_missing(value) else value), reason


POINTS = {"A": 1.0, "tie": 0.5, "B": 0.0}
"""How far an answer prefers A."""


def points_of(value: Any) -> float:
    """Return how far an answer prefers A, in [0, 1]: a side, a tie, or a graded preference.

    Raises:
        OptionError: It is neither a side nor a number in [0, 1].
    """
    graded = isinstance(value, int | float | np.number) and 0 <= value <= 1
    if not graded:
        one_of("preferences", value, POINTS)
    return float(value) if graded else POINTS[value]


def values_of(items: Iterable[Any], field: str | None = None) -> tuple[list[Any], Counter[str]]:
    """Return what each judgment says, None where nothing, and the reasons of those."""
    read = [value_of(item, field) for item in as_list(items)]
    return [v for v, _ in read], Counter(reason for v, reason in read if v is None)


def match(judge: Iterable[Any], truth: Iterable[Any], field: str | None = None) -> Matched:
    """Pair judgments with people's answers; leave out and count what lacks either."""
    answers, truths = as_list(judge), [None if is_missing(t) else t for t in as_list(truth)]
    same_length(judge=answers, truth=truths)
    failed: Counter[str] = Counter()
    indices, ours, theirs = [], [], []
    for index, (item, answer) in enumerate(zip(answers, truths, strict=True)):
        value, reason = value_of(item, field)
        if answer is None:
            failed[NO_LABEL] += 1
        elif value is None:
            failed[reason] += 1
        else:
            indices.append(index)
            ours.append(value)
            theirs.append(answer)
    return Matched(ours, theirs, np.asarray(indices, dtype=np.int64), failed)


def numbers(values: Iterable[Any], field: str = "score") -> tuple[Floats, Ints, Counter[str]]:
    """Return the numbers there are, their positions, and the reasons of what is missing."""
    read, failed = values_of(values, field)
    indices = [index for index, value in enumerate(read) if value is not None]
    floats = as_floats(read[index] for index in indices)
    return floats, np.asarray(indices, dtype=np.int64), failed


def as_floats(values: Iterable[Any]) -> Floats:
    """Return numbers as an array.

    Raises:
        InputError: One is not a number, or infinite.
    """
    items = list(values)
    try:
        floats = np.asarray(items, dtype=float).reshape(len(items))
    except (TypeError, ValueError) as exc:
        raise InputError(f"a number for each item is needed: {exc}") from exc
    if not np.isfinite(floats).all():
        raise InputError("numbers must be finite; None stands for a missing one")
    return floats


def group_numbers(groups: Iterable[Any] | None, indices: Ints, size: int) -> Ints:
    """Number the groups of the kept items from 0; an item without a group is its own.

    Args:
        groups: One key for each item as it was given, or None.
        indices: Positions of the items that count.
        size: How many items were given.
    """
    if groups is None:
        return np.arange(len(indices), dtype=np.int64)
    keys = as_list(groups)
    if len(keys) != size:
        raise InputError(f"one group for each item is needed: {len(keys)} for {size} items")
    order: dict[Any, int] = {}
    names = [object() if is_missing(keys[i]) else keys[i] for i in indices]
    return np.asarray([order.setdefault(key, len(order)) for key in names], dtype=np.int64)


def number_pairs(
    first: Iterable[Any], second: Iterable[Any], field: str = "score"
) -> tuple[Floats, Floats, Ints, Counter[str]]:
    """Return two columns of numbers without the items that lack either, as `match` does."""
    both = match(first, second, field)
    return (
        as_floats(both.judge),
        as_floats(both.truth),
        both.indices,
        both.failed,
    )


def must_be_binary(*columns: Floats) -> None:
    """Check that every value of some columns is 0 or 1."""
    if not all(np.isin(column, (0, 1)).all() for column in columns):
        raise InputError("labels must be 0 or 1")
