"""Agreement of raters beyond chance, and who is taken for whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from langchain_judges.errors import needs
from langchain_judges.metrics.agreement import labelled
from langchain_judges.metrics.inputs import (
    as_floats,
    as_list,
    match,
    one_of,
    same_length,
    values_of,
)
from langchain_judges.metrics.intervals import check_confidence, normal_quantile
from langchain_judges.metrics.result import Findings, Interval, Result


def cohen_kappa(
    first: Iterable[Any],
    second: Iterable[Any],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return Cohen's κ of two raters: agreement beyond what their habits give by chance.

    Args:
        first: A label of any kind for each item, or verdicts or rows; None is left out.
        second: The other rater's labels of the same items.
        weights: For ordered labels, how far a disagreement weighs by its distance in the
            sorted list of labels.
        confidence: The level of the interval (asymptotic).

    Returns:
        κ in [−1, 1] over `n` items; NaN where both always give the same one label.

    Source: Cohen 1960, 1968; `statsmodels.stats.inter_rater.cohens_kappa`.
    """
    with needs("trust", "Cohen's κ"):
        from statsmodels.stats.inter_rater import cohens_kappa

    one_of("weights", weights, (None, "linear", "quadratic"))
    both = match(first, second)
    classes = classes_of([*both.judge, *both.truth])
    if len(classes) < 2:
        why = "no items" if not both.n else "both raters always give the same label"
        return Result.undefined(why, n=both.n, n_failed=both.failed)
    table = _table(both.judge, both.truth, classes)
    check_confidence(confidence)
    # Its test of κ = 0, of which nothing is read, divides by 0 where one rater never varies.
    with np.errstate(invalid="ignore", divide="ignore"):
        found = cohens_kappa(table, wt=weights)
    value, se = float(found.kappa), float(found.std_kappa)
    told: dict[str, Any] = {"n": both.n, "n_failed": both.failed}
    if math.isnan(se):
        return Result(value, **told)
    half = normal_quantile(confidence) * se
    interval = Interval(max(-1.0, value - half), min(1.0, value + half))
    return Result(value, interval=interval, se=se, **told)


def classes_of(values: Iterable[Any]) -> list[Any]:
    """Return the distinct labels, sorted as far as they can be."""
    known = set(values)
    try:
        return sorted(known)
    except TypeError:
        return sorted(known, key=repr)


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
    heard = [[value for value in row if value is not None] for row in rows]
    most = max(map(len, heard), default=0)
    full = [row for row in heard if len(row) == most]
    failed = {"fewer_ratings": len(heard) - len(full)} if len(full) < len(heard) else {}
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
    found = krippendorff.alpha(np.asarray(data, dtype=float), level_of_measurement=level)
    return Result(float(found), n=len(rated), n_failed=failed)


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
    judged = [(value, label) for value, label in pairs if value is not None]
    seen = [value for pair in pairs for value in pair if value is not None]
    order = list(classes) if classes is not None else classes_of(seen)
    for value in set(seen):
        one_of("classes", value, order)
    table = _table([label for _, label in judged], [value for value, _ in judged], order)
    lost = Counter(label for value, label in pairs if value is None)
    return Confusion(
        order, table.tolist(), [lost[label] for label in order], len(judged), dict(failed)
    )
