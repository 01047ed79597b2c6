"""Agreement of raters beyond chance, and who is taken for whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from langchain_judges.errors import InputError, needs
from langchain_judges.metrics.agreement import labelled
from langchain_judges.metrics.arguments import Floats, GroupKeys, Judgments, RightLabels
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import as_floats, as_list, one_of, same_length, values_of
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


def fleiss_kappa(ratings: Ratings) -> Result:
    """Return Fleiss' κ of three or more raters who need not be the same for each item.

    Args:
        ratings: The labels of each item, (items, raters), of any kind. Items with fewer
            labels than the fullest are left out, for κ is defined for equal numbers only.

    Returns:
        κ over `n` items; NaN where only one label was ever given.

    Source: Fleiss 1971; `statsmodels.stats.inter_rater.fleiss_kappa`.
    """
    with needs("trust", "Fleiss' κ"):
        from statsmodels.stats.inter_rater import fleiss_kappa as compute

    rows = [values_of(row)[0] for row in as_list(ratings)]
    values_by_row = [[value for value in row if value is not None] for row in rows]
    most = max(map(len, values_by_row), default=0)
    full = [row for row in values_by_row if len(row) == most]
    failed = {"fewer_ratings": len(values_by_row) - len(full)}
    classes = classes_of(value for row in full for value in row)
    if most < 2 or len(classes) < 2:
        why = "no item has two ratings" if most < 2 else "only one label was ever given"
        return Result.undefined(why, n=len(full), n_failed=failed)
    counts = np.asarray([[row.count(label) for label in classes] for row in full])
    return Result(float(compute(counts)), n=len(full), n_failed=failed)


def krippendorff_alpha(
    ratings: Ratings, level: Literal["nominal", "ordinal", "interval", "ratio"] = "nominal"
) -> Result:
    """Return Krippendorff's α of any number of raters, of whom some may have said nothing.

    Args:
        ratings: One row for each rater, (raters, items); None or NaN is no rating. Nominal
            labels may be of any kind, the other levels need numbers.
        level: The level of measurement, which says how far two labels are apart.

    Returns:
        α at most 1 over `n` items with at least two ratings; NaN where only one label was
        ever given.

    Source: Krippendorff 2004; package `krippendorff`.
    """
    with needs("trust", "Krippendorff's α"):
        import krippendorff

    one_of("level", level, ("nominal", "ordinal", "interval", "ratio"))
    items = list(zip(*ratings_of(ratings), strict=True))
    rated = [item for item in items if sum(value is not None for value in item) > 1]
    failed = {"fewer_than_two_ratings": len(items) - len(rated)}
    classes = classes_of(value for item in rated for value in item if value is not None)
    if len(classes) < 2:
        why = "only one label was ever given" if rated else "no item has two ratings"
        return Result.undefined(why, n=len(rated), n_failed=failed)
    if level != "nominal":
        as_floats(classes)
    code = classes.index if level == "nominal" else float
    data = [[math.nan if label is None else code(label) for label in item] for item in rated]
    alpha = krippendorff.alpha(np.asarray(data, dtype=float).T, level_of_measurement=level)
    return Result(float(alpha), n=len(rated), n_failed=failed)


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
