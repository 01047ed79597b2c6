"""Statistics of a table of counts: κ, the confusion matrix, and intervals of such statistics.

A bootstrap of a table with an empty cell never fills it, so that its interval is too narrow
where a class is rare and has no width where a judge made no mistake. Here tables are drawn from
what could have made the counts: a Dirichlet distribution, with a little given to every cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from typing_extensions import Unpack

from langchain_judges.errors import InputError
from langchain_judges.metrics import agreement, inputs, intervals
from langchain_judges.metrics.inputs import Cases, Floats, GroupKeys, Ints, Judgments, RightLabels
from langchain_judges.metrics.result import Findings, Interval, Result
from langchain_judges.verdict import Label

# Tables of counts or shares, (tables, classes, classes); a row is a class of the labels.
Tables = Floats

DRAWS = 2000
# Items that all the cells share before any is seen: half an item each for two classes.
TABLE_PRIOR = 2.0
# The draws of larger tables take memory by the square of their classes: of these 260 MB.
_MOST_CLASSES = 128


def count_tables(
    rows: Sequence[int], columns: Sequence[int], size: int, groups: Ints | None
) -> Tables:
    """One table of counts for each group, or a single one."""
    place = np.asarray(rows, dtype=np.int64) * size + np.asarray(columns, dtype=np.int64)
    count = 1 if groups is None else int(groups.max()) + 1
    if groups is not None:
        place = groups * size * size + place
    flat = np.bincount(place, minlength=count * size * size)
    return np.asarray(flat.reshape(count, size, size).astype(float))


def mean_recall(tables: Tables, classes: int | None = None) -> Floats:
    """The balanced accuracy of each table: the mean recall of the labels that occur.

    Args:
        tables: Counts or shares; a table of nothing has NaN.
        classes: How many of the rows are classes of the labels, the first ones; None: all.
    """
    right = np.diagonal(tables, axis1=1, axis2=2)[:, :classes]
    total = tables.sum(axis=2)[:, :classes]
    recalls = np.divide(right, total, out=np.zeros_like(right), where=total > 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(recalls.sum(axis=1) / (total > 0).sum(axis=1))


def table_result(  # noqa: PLR0913 - the table, its statistic, and knobs of the interval
    cases: Cases,
    rows: Sequence[int],
    columns: Sequence[int],
    statistic: Callable[[Tables], Floats],
    *,
    rare: int,
    spent: int | None = None,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """A statistic of what two sides say of some items, with its interval.

    Args:
        cases: The items.
        rows: The class of each by people, from 0.
        columns: By the judge.
        statistic: Of many tables at once; the scale of a table does not matter to it.
        rare: How many items have a label of the rarest class that it weighs.
        spent: Degrees of freedom that items on their own lose; None: one for each cell off the
            diagonal, which each weigh alike.
        groups: The cluster of each item that was given.
        confidence: The level of the interval, which holds the statistic.
        seed: Of the draws.

    Returns:
        Of groups the counts are shrunk by how much surer items on their own would be, by a
        jackknife over groups, and by Student's t; fewer than five groups have no interval.

    Source: Dirichlet draws after Agresti & Hitchcock 2005 (Stat. Methods Appl. 14) and Goutte &
    Gaussier 2005; the design effect after Rao & Scott 1992.
    """
    intervals.check_shares(confidence=confidence)
    clusters = None if groups is None else cases.clusters(groups)
    tables = count_tables(rows, columns, max([*rows, *columns]) + 1, clusters)
    count, size, total = len(tables), tables.shape[1], tables.sum(axis=0)
    value = float(statistic(total[None])[0])
    result = partial(Result, value, n=cases.n, n_failed=cases.failed)
    if rare < intervals.LEAST_OF_A_CLASS:  # any range would be that of what is lent to the cells
        return result(no_interval=f"fewer than {intervals.LEAST_OF_A_CLASS} items of a class")
    if clusters is not None and count < intervals.LEAST_GROUPS:
        return result(no_interval="too few groups")
    if size > _MOST_CLASSES:
        return result(no_interval=f"more than {_MOST_CLASSES} classes")
    prior = np.full((size, size), TABLE_PRIOR / size**2)
    # Of few items, or of many classes, Student's t allows for what the counts do not show.
    lost = size * (size - 1) if spent is None else spent
    freedom = max(2.0, float(total.sum()) - lost) if clusters is None else count - 1
    wider = intervals.student_quantile(confidence, freedom) / intervals.normal_quantile(confidence)
    shrink = wider**2
    if clusters is not None:
        alone = statistic(_draws(total + prior, seed)).var()
        rest = statistic(total - tables + prior)
        spread = float((count - 1) / count * ((rest - rest.mean()) ** 2).sum())
        shrink *= max(1.0, spread / float(alone))
    draws = statistic(_draws(total / shrink + prior, seed))
    tail = (1 - confidence) / 2
    low, high = (float(end) for end in np.quantile(draws, [tail, 1 - tail]))
    interval = Interval(min(low, value), max(high, value))
    return result(interval=interval, se=float(draws.std()) / wider)


def jackknife_interval(
    total: Floats, statistic: Callable[[Tables], Floats], value: float, confidence: float
) -> Interval | None:
    """The interval of a statistic in (−1, 1) by leaving out one item at a time.

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
    low, high = Interval.around(float(z[-1]), error * intervals.student_quantile(confidence, n - 1))
    return Interval(float(np.tanh(low)), float(np.tanh(high)))


def _draws(weights: Floats, seed: int) -> Tables:
    return np.random.default_rng(seed).dirichlet(weights.ravel(), DRAWS).reshape(-1, *weights.shape)


T = TypeVar("T")


def cohen_kappa(
    first: Judgments,
    second: RightLabels,
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    **options: Unpack[inputs.DrawnOptions],
) -> Result:
    """Cohen's κ of two raters: agreement beyond what their habits give by chance.

    Not to compare data of different shares of labels: κ falls where one label is rare,
    though the judge is the same.

    Args:
        first: A label of any kind for each item, or verdicts or rows; None is left out.
        second: The other rater's labels of the same items.
        weights: For ordered labels, how far a disagreement weighs: by the distance of the two
            labels, or by its square. Numbers are as far apart as they are, even where those
            between them were never given.
        options: `groups`, `confidence` and the `seed` of the interval's draws.

    Returns:
        κ in [−1, 1] over `n` items; NaN where both always give the same one label.

    Raises:
        InputError: Weights are asked for labels that are not numbers.

    Source: Cohen 1960, 1968; the interval as in `table_result`, with weights at least
    that of `jackknife_interval`.
    """
    inputs.one_of("weights", weights, (None, "linear", "quadratic"))
    cases = inputs.match(first, second)
    classes = classes_of(label for column in cases.columns for label in column)
    if len(classes) < 2:
        return cases.undefined("both raters always give the same label" if cases.n else "no items")
    places = {label: place for place, label in enumerate(classes)}
    rows, columns = ([places[label] for label in column] for column in cases.columns)
    compute = _kappa(_distances(classes, weights))
    # Weights tie the cells together: near ones tell of each other.
    spent = 1 if weights else None
    rare = cases.n - max(Counter(cases.columns[1]).values())
    kappa = table_result(cases, rows, columns, compute, rare=rare, spent=spent, **options)
    if not weights or options.get("groups") is not None or kappa.interval is None:
        return kappa
    # What is lent to cells of few ratings draws weighted κ to 0: the outer ends count.
    table = count_tables(rows, columns, len(classes), None)[0]
    level = options.get("confidence", 0.95)
    ends = [kappa.interval, jackknife_interval(table, compute, float(kappa), level)]
    lows, highs = zip(*filter(None, ends), strict=True)
    return kappa.replace(interval=Interval(min(lows), max(highs)))


def _distances(classes: Sequence[Label], weights: str | None) -> Floats:
    """Weight of each disagreement, (classes, classes)."""
    if weights is None:
        return 1.0 - np.eye(len(classes))
    if not all(isinstance(label, int | float) for label in classes):
        raise InputError(f"weights need labels that are numbers, got {list(classes)!r}")
    places = [float(label) for label in classes]
    gaps = np.abs(np.subtract.outer(places, places))
    return np.asarray(gaps**2 if weights == "quadratic" else gaps)


def _kappa(distances: Floats) -> Callable[[Floats], Floats]:
    def compute(tables: Floats) -> Floats:
        shares = tables / tables.sum(axis=(1, 2), keepdims=True)
        observed = (shares * distances).sum(axis=(1, 2))
        rows, columns = shares.sum(axis=2), shares.sum(axis=1)
        return np.asarray(1 - observed / ((rows @ distances) * columns).sum(axis=1))

    return compute


def classes_of(values: Iterable[T]) -> list[T]:
    """The distinct labels, sorted as far as they can be."""
    distinct: set[Any] = set(values)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=repr)


@dataclass(frozen=True)
class Confusion(Findings):
    """Counts of the judge's labels by people's.

    Attributes:
        counts: A row for each class of the labels, a column for each class of the judge.
        not_judged: Failed judgments by class of the label.
        n: Judged and labelled items, the sum of `counts`.
    """

    classes: list[Label]
    counts: list[list[int]]
    not_judged: list[int]
    n: int
    n_failed: dict[str, int]


def confusion(
    preferences: Judgments, labels: RightLabels, classes: Sequence[Label] | None = None
) -> Confusion:
    """Count what the judge said against the labels.

    A table to read; it has no interval.

    Args:
        preferences: The judge's answer to each item, or verdicts or rows; None is counted
            apart, by the class of the label.
        labels: The right answer to each item; None leaves the item out.
        classes: Their order; by default all that occur, sorted.
    """
    pairs, failed, _ = agreement.labelled(preferences, labels, {})
    values: list[Any] = [each for pair in pairs for each in pair if each is not None]
    order = list(classes) if classes is not None else classes_of(values)
    for value in set(values):
        inputs.one_of("classes", value, order)
    counts = Counter(pairs)
    return Confusion(
        classes=order,
        counts=[[counts[value, label] for value in order] for label in order],
        not_judged=[counts[None, label] for label in order],
        n=sum(value is not None for value, _ in pairs),
        n_failed=dict(+failed),
    )
