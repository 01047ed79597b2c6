"""What is likely true where raters err, and how many voters a jury is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.metrics.tables import Ratings, classes_of, ratings_of
from langchain_judges.verdict import Label


@dataclass(frozen=True)
class DawidSkene(Findings):
    """The truth behind raters who err, each in their own way."""

    classes: list[Label]
    labels: list[Label | None]
    """The likeliest label of each item; None where nobody rated it."""
    chances: list[list[float] | None]
    """The chance of each class, in the order of `classes`, for each item."""
    accuracy: list[float]
    """How often each rater is right, by the chances; NaN for one who rated nothing."""
    confusion: list[list[list[float]]]
    """For each rater, by true class (rows), the share of each answer."""
    shares: list[float]
    """The share of each class."""
    n: int
    """Items that somebody rated."""
    converged: bool


def dawid_skene(
    ratings: Ratings, *, most_steps: int = 2000, smoothing: float = 0.5
) -> DawidSkene:
    """Estimate the true label of each item and each rater's mistakes, by EM.

    Not for raters who copy each other, such as judges of one model family: they are then
    believed too much.

    A judge may be one of the raters. Three raters or more are needed for it to tell more than
    the majority does, and they must err apart from each other.

    Args:
        ratings: One row for each rater, (raters, items); None is no rating.
        most_steps: Most steps of EM.
        smoothing: Answers of each kind that a rater is lent, spread over the classes, so that
            few ratings make nobody infallible.

    Returns:
        Chances that start from the shares of votes, so that raters who are mostly right keep
        their sense of the classes.

    Source: Dawid & Skene 1979 (Appl. Stat. 28).
    """
    rows = ratings_of(ratings)
    classes = classes_of(value for row in rows for value in row if value is not None)
    place = {label: index for index, label in enumerate(classes)}
    size, items = len(classes), len(rows[0]) if rows else 0
    # (raters, items, answers): 1 where the rater gave the answer.
    votes = np.zeros((len(rows), items, size))
    for number, row in enumerate(rows):
        for item, value in enumerate(row):
            if value is not None:
                votes[number, item, place[value]] = 1.0
    has_votes = votes.sum(axis=(0, 2)) > 0
    if not has_votes.any():
        return DawidSkene([], [None] * items, [None] * items, [], [], [], 0, True)
    chances, confusion, shares, converged = _expect(votes[:, has_votes], most_steps, smoothing)
    right = np.einsum("ric,ic->r", votes[:, has_votes], chances)
    answers = votes.sum(axis=(1, 2))
    everywhere = iter(chances.tolist())
    by_item = [next(everywhere) if present else None for present in has_votes]
    return DawidSkene(
        classes,
        [None if own is None else classes[int(np.argmax(own))] for own in by_item],
        by_item,
        [float(r / g) if g else math.nan for r, g in zip(right, answers, strict=True)],
        confusion.tolist(),
        shares.tolist(),
        int(has_votes.sum()),
        converged,
    )


def _expect(
    votes: Floats, most_steps: int, smoothing: float
) -> tuple[Floats, Floats, Floats, bool]:
    """Alternate between the raters' mistakes and the items' chances until neither moves.

    Items with the same ratings have the same chances, so that each pattern of ratings is
    weighted by its number of items: a few raters leave few patterns, however many the items.
    """
    raters, items, size = votes.shape
    by_item = votes.transpose(1, 0, 2).reshape(items, raters * size)
    patterns, pattern_of, counts = np.unique(
        by_item, axis=0, return_inverse=True, return_counts=True
    )
    votes = patterns.reshape(len(patterns), raters, size).transpose(1, 0, 2)
    chances = votes.sum(axis=0) / votes.sum(axis=(0, 2))[:, None]
    converged = False
    for _ in range(most_steps):
        weighted = chances * counts[:, None]
        confusion = np.einsum("it,ria->rta", weighted, votes) + smoothing / size
        confusion /= confusion.sum(axis=2, keepdims=True)
        shares = weighted.sum(axis=0) / items
        weights = np.einsum("ria,rta->it", votes, np.log(confusion))
        weights += np.log(np.maximum(shares, 1e-300))
        better = np.exp(weights - weights.max(axis=1, keepdims=True))
        better /= better.sum(axis=1, keepdims=True)
        moved = float(np.abs(better - chances).max())
        chances = better
        if converged := moved < 1e-6:
            break
    return chances[pattern_of.reshape(-1)], confusion, shares, converged


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
    truth = dawid_skene(list(columns.values()))
    others = max(1, len(truth.classes) - 1)
    return {
        name: _weight(right, others, most)
        for name, right in zip(columns, truth.accuracy, strict=True)
    }


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
