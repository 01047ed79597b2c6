"""Intervals of what is computed from a table of counts: κ, F1, balanced accuracy, MCC.

A bootstrap of a table with an empty cell never fills it, so that its interval is too narrow
where a class is rare and has no width where a judge made no mistake. Here tables are drawn from
what could have made the counts: a Dirichlet distribution, with a little given to every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import TypedDict

from langchain_judges.metrics.arguments import Floats, Ints
from langchain_judges.metrics.intervals import (
    LEAST_GROUPS,
    check_confidence,
    normal_quantile,
    student_quantile,
)
from langchain_judges.metrics.result import Interval

Tables = Floats
"""Tables of counts or shares, (tables, classes, classes); a row is a class of the labels."""

DRAWS = 2000
PRIOR = 2.0
"""Items that all the cells share before any is seen: half an item each for two classes."""


class TableInterval(TypedDict, total=False):
    """What is known of how sure a statistic of a table is, by the names of `Result`."""

    interval: Interval
    se: float
    no_interval: str


def count_tables(
    rows: Sequence[int], columns: Sequence[int], size: int, groups: Ints | None
) -> Tables:
    """Return one table of counts for each group, or a single one."""
    place = np.asarray(rows, dtype=np.int64) * size + np.asarray(columns, dtype=np.int64)
    count = 1 if groups is None else int(groups.max()) + 1
    if groups is not None:
        place = groups * size * size + place
    flat = np.bincount(place, minlength=count * size * size)
    return np.asarray(flat.reshape(count, size, size).astype(float))


def mean_recall(tables: Tables, classes: int | None = None) -> Floats:
    """Return the balanced accuracy of each table: the mean recall of the labels that occur.

    Args:
        tables: Counts or shares; a table of nothing has NaN.
        classes: How many of the rows are classes of the labels, the first ones; None: all.
    """
    right = np.diagonal(tables, axis1=1, axis2=2)[:, :classes]
    total = tables.sum(axis=2)[:, :classes]
    recalls = np.divide(right, total, out=np.zeros_like(right), where=total > 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(recalls.sum(axis=1) / (total > 0).sum(axis=1))


def table_interval(
    tables: Tables,
    statistic: Callable[[Tables], Floats],
    value: float,
    *,
    clustered: bool,
    confidence: float,
    seed: int = 0,
) -> TableInterval:
    """Return `interval` and `se` of a statistic of a table of counts.

    Args:
        tables: One table for each group of items, or a single one of items on their own.
        statistic: Of many tables at once; the scale of a table does not matter to it.
        value: The statistic of the whole table; the interval holds it.
        clustered: Whether each table is of a group.
        confidence: The level of the interval.
        seed: Of the draws.

    Returns:
        Of groups the counts are shrunk by how much surer items on their own would be, by a
        jackknife over groups, and by Student's t; fewer than five groups have no interval.

    Source: Dirichlet draws after Agresti & Hitchcock 2005 (Stat. Methods Appl. 14) and Goutte &
    Gaussier 2005; the design effect after Rao & Scott 1992.
    """
    check_confidence(confidence)
    groups, size = len(tables), tables.shape[1]
    if clustered and groups < LEAST_GROUPS:
        return {"no_interval": "too few groups"}
    total, prior = tables.sum(axis=0), np.full((size, size), PRIOR / size**2)
    shrink = wider = 1.0
    if clustered:
        alone = statistic(_draws(total + prior, seed)).var()
        rest = statistic(total - tables + prior)
        spread = float((groups - 1) / groups * ((rest - rest.mean()) ** 2).sum())
        wider = student_quantile(confidence, groups - 1) / normal_quantile(confidence)
        shrink = max(1.0, spread / float(alone)) * wider**2
    draws = statistic(_draws(total / shrink + prior, seed))
    tail = (1 - confidence) / 2
    low, high = (float(end) for end in np.quantile(draws, [tail, 1 - tail]))
    interval = Interval(min(low, value), max(high, value))
    return {"interval": interval, "se": float(draws.std()) / wider}


def jackknife_interval(
    total: Floats, statistic: Callable[[Tables], Floats], value: float, confidence: float
) -> Interval | None:
    """Return the interval of a statistic in (−1, 1) by leaving out one item at a time.

    Args:
        total: The table of counts of all items.
        statistic: Of many tables at once.
        value: The statistic of the whole table.
        confidence: The level of the interval.

    Returns:
        Student's interval of Fisher's z; None at −1 and 1, and where an item less leaves the
        statistic undefined.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 11.
    """
    cells, n = np.argwhere(total > 0), float(total.sum())
    without = np.repeat(total[None], len(cells), axis=0)
    without[np.arange(len(cells)), cells[:, 0], cells[:, 1]] -= 1
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.arctanh(np.asarray([*statistic(without), value]))
    if n < 2 or not np.isfinite(z).all():
        return None
    counts = total[cells[:, 0], cells[:, 1]]
    around = z[:-1] - np.average(z[:-1], weights=counts)
    error = float(np.sqrt((n - 1) / n * (counts * around**2).sum()))
    low, high = Interval.around(float(z[-1]), error * student_quantile(confidence, n - 1))
    return Interval(float(np.tanh(low)), float(np.tanh(high)))


def _draws(weights: Floats, seed: int) -> Tables:
    rng = np.random.default_rng(seed)
    gammas = rng.gamma(weights.ravel(), size=(DRAWS, weights.size))
    return np.asarray((gammas / gammas.sum(axis=1, keepdims=True)).reshape(-1, *weights.shape))
