"""The items on which nothing is missing: columns that statistics can be computed of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import (
    Floats,
    GroupKeys,
    Ints,
    Judgment,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.inputs import (
    NO_LABEL,
    ValueOrReason,
    as_floats,
    as_list,
    is_missing,
    same_length,
    value_of,
)
from langchain_judges.metrics.result import Result
from langchain_judges.verdict import Label


@dataclass(frozen=True)
class Cases:
    """The items on which nothing is missing, and why the others are left out."""

    columns: list[list[Label]]
    indices: Ints
    """Positions of these items in what was given."""
    failed: Counter[str]
    size: int
    """How many items were given."""

    @property
    def n(self) -> int:
        """How many items there are."""
        return len(self.indices)

    def floats(self) -> list[Floats]:
        """Return the columns as numbers."""
        return [as_floats(column) for column in self.columns]

    def clusters(self, groups: GroupKeys) -> Ints:
        """Number the groups of these items from 0; an item without a group is its own.

        Args:
            groups: One key for each item that was given, or None.
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
        """Return NaN for what these items do not define, and why."""
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
    return match_all([answers], truths, field)


def match_all(
    judgments: Sequence[Sequence[Judgment]],
    truth: Sequence[Label | None],
    field: str | None = None,
) -> Cases:
    """Return `match` of several columns of judgments; people's answers are the last column."""
    columns = [[value_of(item, field) for item in column] for column in judgments]
    # Labels come first, for where both are missing the label counts as missing.
    cases = cases_of([bare(truth, NO_LABEL), *columns])
    return replace(cases, columns=[*cases.columns[1:], cases.columns[0]])


def bare(values: Iterable[Label | None], reason: str) -> list[ValueOrReason]:
    """Return bare values as they are read, with the reason of those that are missing."""
    return [(None if is_missing(value) else value, reason) for value in values]


def cases_of(columns: Sequence[Sequence[ValueOrReason]]) -> Cases:
    """Return the items on which nothing is missing; the first missing value says why."""
    missing = [
        next((reason for value, reason in row if value is None), None)
        for row in zip(*columns, strict=True)
    ]
    indices = [index for index, reason in enumerate(missing) if reason is None]
    values = [
        [value for index in indices if (value := column[index][0]) is not None]
        for column in columns
    ]
    failed = Counter(reason for reason in missing if reason is not None)
    return Cases(values, np.asarray(indices, dtype=np.int64), failed, len(missing))
