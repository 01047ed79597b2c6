"""Inputs of metrics: verdicts, rows or bare values.

None and NaN are missing; `Cases` are the items on which nothing is.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict, TypeIs

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics.result import Result
from langchain_judges.verdict import Label

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# What a judge says of an item: a bare preference, label or number; a verdict; or a row that
# holds one under `verdict`. None is a failed judgment.
Judgment = Label | Mapping[str, object] | None

Judgments = Iterable[Judgment]

# The right answer to each item, as people give it; None where there is none.
RightLabels = Iterable[Label | None]

# How sure the judge is of each item, from 0 to 1; None reads it from the verdicts.
Confidences = Iterable[float | None] | None

# The votes of people on each item, or its only vote.
Votes = Iterable[Label | Sequence[Label | None] | None]

# The cluster of each item, such as its question; None: each item is its own.
GroupKeys = Iterable[Hashable] | None


class IntervalOptions(TypedDict, total=False):
    """Arguments shared by all metrics with an interval.

    Attributes:
        groups: The cluster of each item.
        confidence: The level of the interval.
    """

    groups: GroupKeys
    confidence: float


class DrawnOptions(IntervalOptions, total=False):
    """Arguments of metrics with a bootstrap interval.

    Attributes:
        seed: Of the draws.
    """

    seed: int


T = TypeVar("T")

# A value, and the reason that counts where it is missing.
ValueOrReason = tuple[Label | None, str]

NOT_JUDGED = "not_judged"
NO_LABEL = "no_label"
NO_CONFIDENCE = "no_confidence"


def one_of(name: str, value: object, allowed: Any) -> None:
    """Check that an option is among those of a `Literal` or a collection.

    Raises:
        OptionError: It is not.
    """
    choices = get_args(allowed) or tuple(allowed)
    if value not in choices:
        names = ", ".join(map(repr, choices))
        raise OptionError(f"`{name}` must be one of {names}, got {value!r}")


def same_length(**columns: Sized | None) -> None:
    """Check that arguments have a value for each item; None is an argument left out.

    Raises:
        InputError: Their lengths differ.
    """
    sizes = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
        raise InputError(f"one value for each item is needed: {counts}")


def fewest(enough: Callable[[int], bool], start: int = 1, most: float = math.inf) -> int | None:
    """Smallest number that is enough, as every larger one is; None: it is more than `most`.

    Doubled from `start`, then bisected.
    """
    end = start
    while not enough(end):
        if (end := 2 * end) > most:
            return None
    return bisect_left(range(end), True, lo=end // 2, key=enough)


@overload
def as_list(values: None) -> None: ...
@overload
def as_list(values: Iterable[T]) -> list[T]: ...
def as_list(values: Iterable[T] | None) -> list[T] | None:
    """Plain Python values of a list, an array, a table of pandas or an iterator.

    Raises:
        InputError: It is a mapping, of which only the keys would be read.
    """
    if values is None:
        return None
    if isinstance(values, Mapping):
        raise InputError("one value for each item is needed, in order: got a mapping")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    plain: list[T] = values.tolist() if hasattr(values, "tolist") else list(values)
    return plain


@overload
def take(column: None, indices: Iterable[int]) -> None: ...
@overload
def take(column: Sequence[T], indices: Iterable[int]) -> list[T]: ...
def take(column: Sequence[T] | None, indices: Iterable[int]) -> list[T] | None:
    """The values at some positions; a column that was left out stays so."""
    return None if column is None else [column[index] for index in indices]


def flat(rows: Sequence[Sequence[T]], groups: GroupKeys) -> tuple[list[T], list[Hashable]]:
    """The values of all rows, and the cluster of each: its row, if that has no group."""
    keys = [None] * len(rows) if groups is None else as_list(groups)
    same_length(votes=rows, groups=keys)
    units = [object() if is_missing(key) else key for key in keys]
    clusters = [unit for row, unit in zip(rows, units, strict=True) for _ in row]
    return [value for row in rows for value in row], clusters


def votes_of(votes: Votes) -> list[list[Label]]:
    """People's votes on each item, without the missing ones."""
    return [as_votes(own) for own in as_list(votes)]


def as_votes(votes: Label | Iterable[Label | None] | None) -> list[Label]:
    """People's votes on one item; a bare label is the only vote, missing ones are left out."""
    return [vote for vote in by_place(votes) if vote is not None]


def by_place(votes: Label | Iterable[Label | None] | None) -> list[Label | None]:
    """People's votes on one item, each in the place of who gave it; None is missing."""
    if isinstance(votes, (str, int)) or not isinstance(votes, Iterable):  # nearly all of them
        return [None if is_missing(votes) else votes]
    return [None if is_missing(vote) else vote for vote in as_list(votes)]


def is_missing(value: object) -> TypeIs[None]:
    """Whether a value stands for nothing: None, NaN, pandas' NA or an empty cell's text."""
    if value is None or isinstance(value, (str, int)):
        return value is None or value == ""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in {"NAType", "NaTType"}


def value_of(item: Judgment, field: str | None = None) -> ValueOrReason:
    """Answer of a judgment, and the reason if there is none.

    Args:
        item: A bare value, a verdict, or a row that holds one under `verdict`.
        field: The verdict's field to read, such as `score`; by default its preference,
            or the label of a judge of one text.
    """
    value: Any = item
    reason, kind = NOT_JUDGED, type(item)
    if kind is str or kind is int or value is None or (kind is float and value == value):
        return value, reason  # nearly all of them
    if kind is dict or isinstance(item, Mapping):
        verdict: Any = value.get("verdict", item) or {}
        names = (field,) if field else ("preference", "label")
        value = next((verdict[name] for name in names if name in verdict), None)
        failures = verdict.get("failures") or []
        reason = failures[0]["reason"] if failures else NOT_JUDGED
    return (None if is_missing(value) else value), reason


def check_labels(first: Sequence[object], second: Sequence[object]) -> None:
    """Check that the labels of two sides are of one kind, and that words are of one coding.

    `"1"` never agrees with 1. Of few items it may be chance that no word is shared, unless the
    case of letters alone differs.

    Raises:
        InputError: Some are texts and some are not; or each side has two words or more on ten
            items or more, and none is shared.
    """
    types = {type(label) for each in (first, second) for label in each}
    kinds = {issubclass(each, str) for each in types if issubclass(each, str | int | float)}
    if len(kinds) > 1:
        raise InputError("some labels are texts and others numbers: make all of them one kind")
    sides = [{label for label in own if isinstance(label, str)} for own in (first, second)]
    if min(map(len, sides)) < 2 or not sides[0].isdisjoint(sides[1]):
        return
    folded = [{label.strip().casefold() for label in own} for own in sides]
    if len(first) >= 10 or not folded[0].isdisjoint(folded[1]):
        names = " and ".join(", ".join(sorted(own))[:60] for own in sides)
        raise InputError(f"no label is in both columns, of {names}: give both the same names")


def confidences_of(judgments: Judgments, confidences: Confidences) -> list[float | None]:
    """The confidence in each judgment; None reads it from the verdicts."""
    if confidences is not None:
        return as_list(confidences)
    values: list[Any] = [value_of(judgment, "confidence")[0] for judgment in judgments]
    return values


def values_of(items: Judgments) -> tuple[list[Label | None], Counter[str]]:
    """Answer of each judgment, None where there is none, and the reasons of those."""
    readings = [value_of(item) for item in as_list(items)]
    failed = Counter(reason for value, reason in readings if value is None)
    return [value for value, _ in readings], failed


def as_floats(values: Iterable[object]) -> Floats:
    """Numbers as an array.

    Raises:
        InputError: One is not a number, or infinite.
    """
    items: list[Any] = list(values)
    try:
        floats = np.asarray(items, dtype=float).reshape(len(items))
    except (TypeError, ValueError) as exc:
        raise InputError(f"a number for each item is needed: {exc}") from exc
    if not np.isfinite(floats).all():
        raise InputError("numbers must be finite; None marks a missing one")
    return floats


def average_ranks(column: Floats) -> Floats:
    """The rank of each value from 1, equal ones at their mean rank.

    Written out, because loading `scipy.stats` takes half a second.
    """
    ordered = np.sort(column)
    below, up_to = ordered.searchsorted(column), ordered.searchsorted(column, "right")
    return np.asarray((below + up_to + 1) / 2)


@dataclass(frozen=True)
class Cases:
    """The items on which nothing is missing, and why the others are left out.

    Attributes:
        columns: The values of these items, a list for each side.
        indices: Positions of these items in what was given.
        failed: How many items were left out, by reason.
        size: Number of items given.
    """

    columns: list[list[Label]]
    indices: Ints
    failed: Counter[str]
    size: int

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.indices)

    def floats(self) -> list[Floats]:
        """The columns as numbers."""
        return [as_floats(column) for column in self.columns]

    def clusters(self, groups: GroupKeys) -> Ints:
        """Number the groups of these items from 0; an item without a group is its own.

        Args:
            groups: One key for each item that was given, or None.

        Raises:
            InputError: There are more or fewer keys than items.
        """
        if groups is None:
            return np.arange(self.n, dtype=np.int64)
        keys = as_list(groups)
        if len(keys) != self.size:
            counts = f"{len(keys)} for {self.size} items"
            raise InputError(f"one group for each item is needed: {counts}")
        order: dict[Hashable, int] = {}
        names = [object() if is_missing(keys[i]) else keys[i] for i in self.indices]
        return np.asarray([order.setdefault(name, len(order)) for name in names], np.int64)

    def undefined(self, reason: str) -> Result:
        """NaN for a statistic that these items do not define, and why."""
        return Result.undefined(reason, n=self.n, n_failed=self.failed)


def complete(*columns: Judgments, field: str = "score") -> Cases:
    """Read columns of judgments; leave out and count the items that lack one.

    Args:
        columns: One judgment for each item, such as a number or a verdict.
        field: The verdict's field to read.
    """
    lists = [as_list(column) for column in columns]
    same_length(**{f"column {number}": column for number, column in enumerate(lists, 1)})
    return cases_of([[value_of(item, field) for item in column] for column in lists])


def match(judge: Judgments, truth: RightLabels, field: str | None = None) -> Cases:
    """Pair judgments with people's answers; leave out and count what lacks either.

    The first column is the judge's, the second people's.
    """
    answers, truths = as_list(judge), as_list(truth)
    same_length(judge=answers, truth=truths)
    # Labels come first, for where both are missing the label counts as missing.
    cases = cases_of([bare(truths, NO_LABEL), [value_of(item, field) for item in answers]])
    if field is None:
        check_labels(*cases.columns)
    return replace(cases, columns=cases.columns[::-1])


def bare(values: Iterable[Label | None], reason: str) -> list[ValueOrReason]:
    """Bare values as they are read, with the reason of those that are missing."""
    return [(None if is_missing(value) else value, reason) for value in values]


def cases_of(columns: Sequence[Sequence[ValueOrReason]]) -> Cases:
    """The items on which nothing is missing; the first missing value says why."""
    missing: list[str | None] = [None] * len(columns[0])
    for column in reversed(columns):
        for index, (value, reason) in enumerate(column):
            if value is None:
                missing[index] = reason
    failed = Counter(reason for reason in missing if reason is not None)
    indices = [index for index, reason in enumerate(missing) if reason is None]
    values: list[list[Any]] = [[column[index][0] for index in indices] for column in columns]
    return Cases(values, np.asarray(indices, dtype=np.int64), failed, len(missing))
