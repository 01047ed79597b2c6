"""Agreement of raters beyond chance, and who is taken for whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from langchain_judges.errors import InputError, needs
from langchain_judges.metrics.agreement import labelled
from langchain_judges.metrics.inputs import (
    Floats,
    as_floats,
    as_list,
    group_numbers,
    match,
    one_of,
    same_length,
    values_of,
)
from langchain_judges.metrics.result import Findings, Interval, Result
from langchain_judges.metrics.tables import count_tables, jackknife_interval, table_interval


def cohen_kappa(  # noqa: PLR0913 - two raters, how labels lie apart, and the interval
    first: Iterable[Any],
    second: Iterable[Any],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    order: Sequence[Any] | None = None,
    groups: Iterable[Any] | None = None,
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
    ratings = as_list(first)
    both = match(ratings, second)
    classes = classes_of([*both.judge, *both.truth])
    if len(classes) < 2:
        why = "no items" if not both.n else "both raters always give the same label"
        return Result.undefined(why, n=both.n, n_failed=both.failed)
    numbered = None if groups is None else group_numbers(groups, both.indices, len(ratings))
    rows, columns = ([classes.index(v) for v in side] for side in (both.judge, both.truth))
    tables = count_tables(rows, columns, len(classes), numbered)
    compute = _kappa(_distances(classes, weights, order))
    value = float(compute(tables.sum(axis=0, keepdims=True))[0])
    settings: dict[str, Any] = {"clustered": groups is not None, "confidence": confidence}
    interval = table_interval(tables, compute, value, seed=seed, **settings)
    if weights and groups is None:
        interval["interval"] = _wider(
            interval["interval"], jackknife_interval(tables[0], compute, value, confidence)
        )
    return Result(value, n=both.n, n_failed=both.failed, **interval)


def _wider(one: Interval, other: Interval | None) -> Interval:
    """Return the outer ends: what is lent to cells of few ratings draws weighted κ to 0."""
    if other is None:
        return one
    return Interval(min(one.low, other.low), max(one.high, other.high))


def _distances(
    classes: Sequence[Any], weights: str | None, order: Sequence[Any] | None
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


def classes_of(values: Iterable[Any]) -> list[Any]:
    """Return the distinct labels, sorted as far as they can be."""
    distinct = set(values)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=repr)


def _table(rows: Sequence[Any], columns: Sequence[Any], classes: Sequence[Any]) -> Any:
    place = {label: index for index, label in enumerate(classes)}
    table = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for row, column in zip(rows, columns, strict=True):
        table[place[row], place[column]] += 1
    return table


def fleiss_kappa(ratings: Iterable[Sequence[Any]]) -> Result:
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
    failed = (
        {"fewer_ratings": len(values_by_row) - len(full)}
        if len(full) < len(values_by_row)
        else {}
    )
    classes = classes_of(value for row in full for value in row)
    if most < 2 or len(classes) < 2:
        why = "no item has two ratings" if most < 2 else "only one label was ever given"
        return Result.undefined(why, n=len(full), n_failed=failed)
    counts = np.asarray([[row.count(label) for label in classes] for row in full])
    return Result(float(compute(counts)), n=len(full), n_failed=failed)


def krippendorff_alpha(
    ratings: Iterable[Sequence[Any]],
    level: Literal["nominal", "ordinal", "interval", "ratio"] = "nominal",
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
    rows = [values_of(row)[0] for row in as_list(ratings)]
    same_length(**{f"rater {number}": row for number, row in enumerate(rows, 1)})
    items = list(zip(*rows, strict=True))
    rated = [item for item in items if sum(value is not None for value in item) > 1]
    failed = (
        {"fewer_than_two_ratings": len(items) - len(rated)} if len(rated) < len(items) else {}
    )
    classes = classes_of(value for item in rated for value in item if value is not None)
    if len(classes) < 2:
        why = "only one label was ever given" if rated else "no item has two ratings"
        return Result.undefined(why, n=len(rated), n_failed=failed)
    if level != "nominal":
        as_floats(classes)
    code = (lambda v: classes.index(v)) if level == "nominal" else float
    data = [
        [math.nan if v is None else code(v) for v in row] for row in zip(*rated, strict=True)
    ]
    alpha = krippendorff.alpha(np.asarray(data, dtype=float), level_of_measurement=level)
    return Result(float(alpha), n=len(rated), n_failed=failed)


@dataclass(frozen=True)
class Confusion(Findings):
    """What the judge said, counted against what people said."""

    classes: list[Any]
    counts: list[list[int]]
    """A row for each class of the labels, a column for each class of the judge."""
    not_judged: list[int]
    """Failed judgments by class of the label."""
    n: int
    """Judged and labelled items, the sum of `counts`."""
    n_failed: dict[str, int]


def confusion(
    preferences: Iterable[Any], labels: Iterable[Any], classes: Sequence[Any] | None = None
) -> Confusion:
    """Count what the judge said against the labels.

    Args:
        preferences: The judge's answer to each item, or verdicts or rows; None is counted
            apart, by the class of the label.
        labels: The right answer to each item; None leaves the item out.
        classes: Their order; by default all that occur, sorted.
    """
    pairs, failed, _ = labelled(preferences, labels, None)
    answered = [(value, label) for value, label in pairs if value is not None]
    values = [value for pair in pairs for value in pair if value is not None]
    order = list(classes) if classes is not None else classes_of(values)
    for value in set(values):
        one_of("classes", value, order)
    table = _table([label for _, label in answered], [value for value, _ in answered], order)
    failures = Counter(label for value, label in pairs if value is None)
    return Confusion(
        order, table.tolist(), [failures[label] for label in order], len(answered), dict(failed)
    )
