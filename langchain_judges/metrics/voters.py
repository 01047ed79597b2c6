"""How many independent voters a jury is worth, and how much each of them weighs."""

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
    Judgments,
    RightLabels,
    as_list,
    is_missing,
    same_length,
    values_of,
)
from langchain_judges.metrics.result import Result
from langchain_judges.metrics.tables import classes_of
from langchain_judges.verdict import Label


def rater_accuracy(ratings: Iterable[Judgments]) -> list[float]:
    """Estimate how often each rater is right, without labels, by Dawid and Skene's EM.

    Not for raters who copy each other, such as judges of one model family: they are then
    believed too much.

    Args:
        ratings: One row for each rater, (raters, items); None is no rating.

    Returns:
        A share for each rater; NaN for one who rated nothing. Chances start from the shares of
        votes, so that raters who are mostly right keep their sense of the classes.

    Source: Dawid & Skene 1979 (Appl. Stat. 28).
    """
    rows = [values_of(row)[0] for row in as_list(ratings)]
    same_length(**{f"rater {number}": row for number, row in enumerate(rows, 1)})
    classes = classes_of(value for row in rows for value in row if value is not None)
    # (raters, items, answers): 1 where the rater gave the answer.
    votes = np.asarray([[[each == own for own in classes] for each in row] for row in rows])
    votes = votes[:, votes.any(axis=(0, 2))].astype(float)
    if not votes.size:
        return [math.nan] * len(rows)
    right = np.einsum("ric,ic->r", votes, _chances(votes))
    answers = votes.sum(axis=(1, 2))
    return [float(r / g) if g else math.nan for r, g in zip(right, answers, strict=True)]


MOST_STEPS = 2000
SMOOTHING = 0.5
"""Answers that a rater is lent, spread over the classes: few ratings make nobody infallible."""


def _chances(votes: Floats) -> Floats:
    """Return the chances of each item's classes: EM until they stand still.

    Items with the same ratings have the same chances, so that each pattern of ratings is
    weighted by its number of items: a few raters leave few patterns, however many the items.
    """
    raters, items, size = votes.shape
    by_item = votes.transpose(1, 0, 2).reshape(items, raters * size)
    patterns, pattern_of, counts = np.unique(
        by_item, axis=0, return_inverse=True, return_counts=True
    )
    votes = patterns.reshape(len(patterns), raters, size).transpose(1, 0, 2)
    chances = np.asarray(votes.sum(axis=0) / votes.sum(axis=(0, 2))[:, None])
    for _ in range(MOST_STEPS):
        weighted = chances * counts[:, None]
        confusion = np.einsum("it,ria->rta", weighted, votes) + SMOOTHING / size
        confusion /= confusion.sum(axis=2, keepdims=True)
        weights = np.einsum("ria,rta->it", votes, np.log(confusion))
        weights += np.log(np.maximum(weighted.sum(axis=0) / items, 1e-300))
        better = np.exp(weights - weights.max(axis=1, keepdims=True))
        better /= better.sum(axis=1, keepdims=True)
        moved, chances = float(np.abs(better - chances).max()), better
        if moved < 1e-6:
            break
    return np.asarray(chances[pattern_of.reshape(-1)])


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


def learned_weights(votes: VoterAnswers, *, most: float = 5.0) -> dict[str, float]:
    """Return a weight for each voter, learned from what they say, without labels.

    Dawid and Skene's EM estimates how often each voter is right; the weight of one who is
    right with probability p among K answers is log((K − 1) p / (1 − p)), the best there is for
    voters who err apart. Voters who copy each other seem better than they are: look at
    `effective_voters` first.

    Args:
        votes: Answers by voter, or rows of a jury; at least three voters, and some hundreds
            of items.
        most: The highest weight.

    Returns:
        Weights from 0, for a voter no better than chance, to `most`.

    Raises:
        InputError: There are fewer than three voters.

    Source: Dawid & Skene 1979; Nitzan & Paroush 1982 (weights).
    """
    columns = _columns(votes)
    if len(columns) < 3:
        raise InputError(f"weights are learned from three voters or more, got {len(columns)}")
    answers = {value for column in columns.values() for value in values_of(column)[0]}
    others = max(1, len(answers - {None}) - 1)
    right = rater_accuracy(columns.values())
    return {name: _weight(own, others, most) for name, own in zip(columns, right, strict=True)}


def _weight(right: float, others: int, most: float) -> float:
    if math.isnan(right):
        return 0.0
    inner = min(max(right, 1e-9), 1 - 1e-9)
    return min(most, max(0.0, math.log(others * inner / (1 - inner))))


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
