"""How many independent voters a jury is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.inputs import (
    Floats,
    Judgment,
    RightLabels,
    as_list,
    is_missing,
    same_length,
    values_of,
)
from langchain_judges.metrics.result import Result
from langchain_judges.verdict import Label

VoterAnswers = Mapping[str, Sequence[Judgment]] | Iterable[Mapping[str, object]]
"""Answers by voter, one for each item and None where there is none; or rows of a jury."""


def effective_voters(votes: VoterAnswers, labels: RightLabels | None = None) -> Result:
    """Return how many independent voters would be worth as much as these.

    Not with few items: correlations of rare errors are noise.

    n / (1 + (n − 1) r), the design effect of n equally correlated voters, where r is the mean
    correlation of two of them, at least 0.

    Args:
        votes: Answers by voter, or rows of a jury.
        labels: The right answer to each item. With labels r is the correlation of errors.
            Without, it is that of the votes, so that voters who are right together count as
            correlated too: the number is then a lower one.

    Returns:
        A number from 1 to `n` voters; NaN where no two of them can be correlated, such as
        where nobody errs.

    Source: Kish 1965 (design effect); for juries of language models arXiv 2605.29800.
    """
    columns = _columns(votes)
    answers = [values_of(column)[0] for column in columns.values()]
    if labels is not None:
        truths = as_list(labels)
        same_length(labels=truths, votes=answers[0] if answers else [])
        answers = [
            [
                None if answer is None or is_missing(label) else answer == label
                for answer, label in zip(column, truths, strict=True)
            ]
            for column in answers
        ]
    coefficients = [_correlation(*pair) for pair in combinations(answers, 2)]
    correlations = [each for each in coefficients if each is not None]
    size = len(answers)
    if size == 1:
        return Result(1.0, n=1)
    if not correlations:
        return Result.undefined("no two voters vary on the same items", n=size)
    mean = max(0.0, float(np.mean(correlations)))
    return Result(size / (1 + (size - 1) * mean), n=size)


def _columns(votes: VoterAnswers) -> dict[str, list[Judgment]]:
    if isinstance(votes, Mapping):
        columns = {name: as_list(column) for name, column in votes.items()}
        same_length(**columns)
        return columns
    rows: list[Any] = list(votes)
    if not all(isinstance(row, Mapping) and "members" in row for row in rows):
        raise InputError("`votes` must be answers by voter, or rows of a jury (`members`)")
    by_row = [{each["member"]: each for each in row["members"]} for row in rows]
    names = dict.fromkeys(name for own in by_row for name in own)
    return {name: [own.get(name) for own in by_row] for name in names}


def _correlation(first: Sequence[Label | None], second: Sequence[Label | None]) -> float | None:
    """Return how two voters' answers correlate: Pearson's of their indicators, summed.

    Of two answers it is φ. None where either always says the same.
    """
    both = [
        (a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None
    ]
    classes = list(dict.fromkeys(value for pair in both for value in pair))
    if not both:
        return None
    x, y = (_indicators([pair[side] for pair in both], classes) for side in (0, 1))
    spread = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / spread if spread > 1e-12 else None


def _indicators(values: Sequence[Label], classes: Sequence[Label]) -> Floats:
    table = np.asarray([[value == each for each in classes] for value in values], dtype=float)
    return np.asarray(table - table.mean(axis=0))
