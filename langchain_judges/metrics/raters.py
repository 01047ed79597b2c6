"""Agreement of raters beyond chance, and who is taken for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.agreement import labelled
from langchain_judges.metrics.arguments import Floats, GroupKeys, Judgments, RightLabels
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import as_list, one_of, same_length, values_of
from langchain_judges.metrics.result import Findings, Interval, Result
from langchain_judges.metrics.tables import count_tables, jackknife_interval, table_interval
from langchain_judges.verdict import Label

T = TypeVar("T")

Ratings = Iterable[Judgments]
"""The labels that raters gave, in rows of items or of raters."""


def cohen_kappa(  # noqa: PLR0913 - two raters, how labels lie apart, and the interval
    first: Judgments,
    second: RightLabels,
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    order: Sequence[Label] | None = None,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return Cohen's κ of two raters: agreement beyond what their habits give by chance.

    Args:
        first: A label of any kind for each item, or verdicts or rows; None is left out.
        second: The other rater's labels of the same items.
        weights: For ordered labels, how far a disagreement weighs: by the distance of the two
            labels, or by its square. Numbers are as far apart as they are, even where those
            between them were never given.
        order: Labels that are no numbers in their order, one step apart; needed with weights.
        groups: The cluster of each item, such as its question, for the interval.
        confidence: The level of the interval.
        seed: Of the interval's draws.

    Returns:
        κ in [−1, 1] over `n` items; NaN where both always give the same one label.

    Raises:
        InputError: Weights are asked for labels that are no numbers, without their `order`.

    Source: Cohen 1960, 1968; the interval as in `tables.table_interval`, with weights at least
    that of `tables.jackknife_interval`.
    """
    one_of("weights", weights, (None, "linear", "quadratic"))
    cases = match(first, second)
    classes = classes_of(label for column in cases.columns for label in column)
    if len(classes) < 2:
        why = "both raters always give the same label" if cases.n else "no items"
        return cases.undefined(why)
    clusters = None if groups is None else cases.clusters(groups)
    rows, columns = ([classes.index(label) for label in column] for column in cases.columns)
    tables = count_tables(rows, columns, len(classes), clusters)
    compute = _kappa(_distances(classes, weights, order))
    value = float(compute(tables.sum(axis=0, keepdims=True))[0])
    clustered = clusters is not None
    interval = table_interval(
        tables, compute, value, clustered=clustered, confidence=confidence, seed=seed
    )
    if weights and not clustered:
        interval["interval"] = _wider(
            interval["interval"], jackknife_interval(tables[0], compute, value, confidence)
        )
    return Result(value, n=cases.n, n_failed=cases.failed, **interval)


def _wider(one: Interval, other: Interval | None) -> Interval:
    """Return the outer ends: what is lent to cells of few ratings draws weighted κ to 0."""
    if other is None:
        return one
    return Interval(min(one.low, other.low), max(one.high, other.high))


def _distances(
    classes: Sequence[Label], weights: str | None, order: Sequence[Label] | None
) -> Floats:
    """Return how much each disagreement weighs, (classes, classes)."""
    if weights is None:
        return 1.0 - np.eye(len(classes))
    if order is not None:
        for label in classes:
            one_of("order", label, order)
        places = [float(list(order).index(label)) for label in classes]
    elif all(isinstance(label, int | float) for label in classes):
        places = [float(label) for label in classes]
    else:
        raise InputError(
            f"weights need numbers, or the `order` of the labels, got {list(classes)!r}"
        )
    gaps = np.abs(np.subtract.outer(places, places))
    return np.asarray(gaps**2 if weights == "quadratic" else gaps)


def _kappa(distances: Floats) -> Callable[[Floats], Floats]:
    def compute(tables: Floats) -> Floats:
        shares = tables / tables.sum(axis=(1, 2), keepdims=True)
        observed = (shares * distances).sum(axis=(1, 2))
        rows, columns = shares.sum(axis=2), shares.sum(axis=1)
        chance = np.einsum("ti,ij,tj->t", rows, distances, columns)
        return np.asarray(1 - observed / chance)

    return compute


def classes_of(values: Iterable[T]) -> list[T]:
    """Return the distinct labels, sorted as far as they can be."""
    distinct: set[Any] = set(values)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=repr)


def ratings_of(ratings: Ratings) -> list[list[Label | None]]:
    """Return the label of each item in a row for each rater; None is no rating."""
    rows = [values_of(row)[0] for row in as_list(ratings)]
    same_length(**{f"rater {number}": row for number, row in enumerate(rows, 1)})
    return rows


@dataclass(frozen=True)
class Confusion(Findings):
    """What the judge said, counted against what people said."""

    classes: list[Label]
    counts: list[list[int]]
    """A row for each class of the labels, a column for each class of the judge."""
    not_judged: list[int]
    """Failed judgments by class of the label."""
    n: int
    """Judged and labelled items, the sum of `counts`."""
    n_failed: dict[str, int]


def confusion(
    preferences: Judgments, labels: RightLabels, classes: Sequence[Label] | None = None
) -> Confusion:
    """Count what the judge said against the labels.

    Args:
        preferences: The judge's answer to each item, or verdicts or rows; None is counted
            apart, by the class of the label.
        labels: The right answer to each item; None leaves the item out.
        classes: Their order; by default all that occur, sorted.
    """
    pairs, failed, _ = labelled(preferences, labels, None)
    values: list[Any] = [each for pair in pairs for each in pair if each is not None]
    order = list(classes) if classes is not None else classes_of(values)
    for value in set(values):
        one_of("classes", value, order)
    counts = Counter(pairs)
    return Confusion(
        classes=order,
        counts=[[counts[value, label] for value in order] for label in order],
        not_judged=[counts[None, label] for label in order],
        n=sum(value is not None for value, _ in pairs),
        n_failed=dict(+failed),
    )
