"""Clustered bootstrap: draw whole groups, weigh rows by how often their group was drawn.

Means and Pearson's r need only sums, so a block of resamples is one product of the matrix of
counts with the groups' sums; Spearman's ρ ranks a block of resamples at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics.inputs import (
    Floats,
    GroupKeys,
    Ints,
    Judgments,
    complete,
    one_of,
    take,
)
from langchain_judges.metrics.intervals import (
    LEAST_GROUPS,
    check_confidence,
    difference_result,
    student_quantile,
)
from langchain_judges.metrics.result import Interval, Result

Correlation = Literal["pearson", "spearman", "kendall"]
Statistic = Literal["mean", "pearson", "spearman", "kendall"]

SampleSide = tuple[Floats, Floats]
"""Two columns (rows,) that a statistic is taken of; a mean looks at the first alone."""

BLOCK_CELLS = 250_000  # counts held at once: 2 MB, so that a block stays in the cache


def draws(groups: Ints, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks (resamples in the block, groups): how often each group is drawn."""
    if resamples < 1:
        raise OptionError(f"`resamples` must be at least 1, got {resamples!r}")
    rng = np.random.default_rng(seed)
    count = int(groups.max()) + 1
    step = max(1, BLOCK_CELLS // len(groups))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        indices = rng.integers(0, count, (size, count))
        indices += np.arange(0, size * count, count)[:, None]
        counts = np.bincount(indices.ravel(), minlength=size * count)
        yield counts.reshape(size, count).astype(float)


def _moments(side: SampleSide) -> list[Floats]:
    x, y = (column - column.mean() for column in side)
    return [np.ones_like(x), x, y, x * x, y * y, x * y]


def _pearson(sums: Floats) -> Floats:
    """Return r from the six sums of `_moments`, (…, 6)."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = xx - x * x / count, yy - y * y / count
    # A resample of equal values leaves rounding dust, not zero.
    varied = (spread_x > 1e-10 * xx) & (spread_y > 1e-10 * yy)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (xy - x * y / count) / np.sqrt(spread_x * spread_y)
    return np.asarray(np.where(varied, r, np.nan))


class _Ranker:
    """Gives the midranks that a column has in each resample."""

    def __init__(self, column: Floats) -> None:
        _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
        self.order = np.argsort(which, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.ties = len(counts) < len(column)
        self.place = which if self.ties else np.argsort(self.order, kind="stable")

    def ranks(self, weights: Floats) -> Floats:
        """Return the ranks, (rows, resamples), about their mean to keep sums small."""
        totals = weights[self.order]
        if self.ties:
            totals = np.add.reduceat(totals, self.starts, axis=0)
        middle = np.cumsum(totals, axis=0)
        middle -= totals / 2
        middle -= weights.sum(axis=0) / 2
        return np.asarray(middle[self.place])


def _spearman(sides: Sequence[SampleSide]) -> Callable[[Floats], Floats]:
    """Prepare ρ of each side; rows lie first here, for they are what is sorted."""
    columns = {id(column): column for side in sides for column in side}
    rankers = {name: _Ranker(column) for name, column in columns.items()}

    def compute(weights: Floats) -> Floats:
        ranks = {name: ranker.ranks(weights) for name, ranker in rankers.items()}
        weights_of = {name: weights * rank for name, rank in ranks.items()}
        zero = np.zeros(weights.shape[1])

        def product(x: Floats, y: Floats) -> Floats:
            return np.asarray(np.einsum("ij,ij->j", weights_of[id(x)], ranks[id(y)]))

        sums = [
            [zero + 1, zero, zero, product(x, x), product(y, y), product(x, y)]
            for x, y in sides
        ]
        return _pearson(np.moveaxis(np.asarray(sums), -1, 0))

    return compute


def _kendall(sides: Sequence[SampleSide]) -> Callable[[Floats], Floats]:
    def compute(weights: Floats) -> Floats:
        taus = np.full((weights.shape[1], len(sides)), np.nan)
        for number, row in enumerate(weights.T.astype(np.int64)):
            for side, (x, y) in enumerate(sides):
                a, b = np.repeat(x, row), np.repeat(y, row)
                if np.ptp(a) > 0 and np.ptp(b) > 0:
                    taus[number, side] = scipy.stats.kendalltau(a, b).statistic
        return taus

    return compute


def resample(
    statistic: Statistic, sides: Sequence[SampleSide], groups: Ints, resamples: int, seed: int
) -> Floats:
    """Return a statistic of each side, (1 + resamples, sides); row 0 is the data as given."""
    count = int(groups.max()) + 1
    blocks = chain([np.ones((1, count))], draws(groups, resamples, seed))
    if statistic in ("spearman", "kendall"):
        compute = (_spearman if statistic == "spearman" else _kendall)(sides)
        return np.concatenate([compute(counts.T[groups]) for counts in blocks])
    columns = [column for side in sides for column in _moments(side)]
    summed = np.stack([np.bincount(groups, column) for column in columns], axis=1)
    sums = np.concatenate([counts @ summed for counts in blocks]).reshape(-1, len(sides), 6)
    if statistic == "pearson":
        return _pearson(sums)
    return np.asarray(sums[..., 1] / sums[..., 0] + [side[0].mean() for side in sides])


BLOCKS = 200
"""Most parts that a jackknife leaves out in turn."""


def jackknife_error(
    statistic: Callable[..., float], columns: Sequence[Floats], groups: Ints
) -> tuple[float, int]:
    """Return the standard error of a statistic by leaving out each group, and their number.

    Of more than `BLOCKS` groups, blocks of them drawn by chance are left out.

    Source: Tukey 1958; blocks after Busing, Meijer & van der Leeden 1999.
    """
    count = int(groups.max()) + 1
    blocks = min(count, BLOCKS)
    order = np.random.default_rng(0).permutation(count) if count > blocks else np.arange(count)
    part = (order % blocks)[groups]
    estimates = [statistic(*(c[part != block] for c in columns)) for block in range(blocks)]
    values = np.asarray([value for value in estimates if value == value])
    if len(values) < max(2, 0.9 * blocks):
        return math.nan, blocks
    spread = float(((values - values.mean()) ** 2).mean())
    return math.sqrt((blocks - 1) * spread), blocks


def percentile_interval(values: Floats, confidence: float, units: int) -> Interval:
    """Return the middle of the resampled values, those undefined left out.

    Plain percentiles are as narrow as a normal interval with n below its variance; of few
    units they are taken further out, as far as Student's interval is wider.

    Args:
        values: The resampled values.
        confidence: The level.
        units: How many items or groups there are to draw from.

    Source: the expanded percentile interval of Hesterberg 2015 (Am. Stat. 69), section 5.3.
    """
    check_confidence(confidence)
    defined = values[~np.isnan(values)]
    reach = student_quantile(confidence, units - 1) * math.sqrt(units / (units - 1))
    tail = float(scipy.stats.norm.sf(reach))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


class Resampled(Result):
    """A statistic with its bootstrap interval.

    Attributes:
        p: One-sided: how far chance explains that it is larger than 0, the normal tail of
            (1 + #{resampled ≤ 0}) / (defined resamples + 1) taken to Student's t.
        p_two_sided: Twice the smaller of the two one-sided values, at most 1.
        resamples: How many resamples had the statistic defined.
    """

    p: float
    p_two_sided: float
    resamples: int


def _undefined(reason: str, n: int, failed: Mapping[str, int]) -> Resampled:
    return Resampled.undefined(
        reason, n=n, n_failed=failed, p=math.nan, p_two_sided=math.nan, resamples=0
    )


def _resampled(
    value: float, values: Floats, confidence: float, groups: Ints, failed: Mapping[str, int]
) -> Resampled:
    defined = values[~np.isnan(values)]
    size, n, units = len(defined), len(groups), int(groups.max()) + 1
    if np.isnan(value) or not size:
        return _undefined("all values of a side are equal", n, failed)
    larger, smaller = (
        _expanded_p((1 + int(beyond.sum())) / (size + 1), units)
        for beyond in (defined <= 0, defined >= 0)
    )
    why = "too few items or groups" if units < LEAST_GROUPS else None
    if not why and np.ptp(defined) <= 1e-12 * max(1.0, abs(value)):
        why = "no resample differs"
    return Resampled(
        value,
        n=n,
        n_failed=failed,
        interval=None if why else percentile_interval(defined, confidence, units),
        no_interval=why,
        se=float(defined.std(ddof=1)) if size > 1 else None,
        p=larger,
        p_two_sided=min(1.0, 2 * min(larger, smaller)),
        resamples=size,
    )


def _expanded_p(p: float, units: int) -> float:
    """Return the p-value that fits the expanded interval."""
    if units < 2:
        return 1.0
    z = float(scipy.stats.norm.isf(p)) * math.sqrt((units - 1) / units)
    return float(scipy.stats.t.sf(z, units - 1))


def bootstrap(
    statistic: Statistic | Callable[..., float],
    *columns: Judgments,
    groups: GroupKeys = None,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Resampled:
    """Return a statistic with its expanded percentile interval, drawing whole groups.

    Args:
        statistic: `mean` of one column, or `pearson`, `spearman` or `kendall` of two, all
            but Kendall's computed for many resamples at once; or any function of the
            columns (as lists) that returns a number, called once for each resample.
        columns: One value for each row. Rows with a missing value are left out.
        groups: The cluster of each row, such as its article; without, each row is its own.
        resamples: How often to draw.
        confidence: The level of the interval.
        seed: The same seed draws the same resamples.

    Source: Efron 1979; groups are drawn as in Deutsch, Dror & Roth 2021 (BOOT-INPUTS).
    """
    if not columns:
        raise OptionError("`columns` must hold at least one column")
    cases = complete(*columns)
    if not cases.n:
        return _undefined("no items", 0, cases.failed)
    clusters = cases.clusters(groups)
    if callable(statistic):
        samples = [
            statistic(*(take(column, index) for column in cases.columns))
            for index in _indices(clusters, resamples, seed)
        ]
        value, values = float(statistic(*cases.columns)), np.asarray(samples, dtype=float)
    else:
        one_of("statistic", statistic, Statistic)
        numbers = cases.floats()
        sides = [(numbers[0], numbers[-1])]
        replicates = resample(statistic, sides, clusters, resamples, seed)[:, 0]
        value, values = float(replicates[0]), replicates[1:]
    return _resampled(value, values, confidence, clusters, cases.failed)


def _indices(groups: Ints, resamples: int, seed: int) -> Iterator[Ints]:
    for counts in draws(groups, resamples, seed):
        for row in counts[:, groups].astype(np.int64):
            yield np.repeat(np.arange(len(row)), row)


def paired_bootstrap(  # noqa: PLR0913 - the knobs of any bootstrap
    first: Judgments,
    second: Judgments,
    human: Judgments | None = None,
    *,
    statistic: Statistic | None = None,
    groups: GroupKeys = None,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Resampled:
    """Return how much better the first judge is, both measured on the same resamples.

    Args:
        first: One number for each item: the first judge's score, or 1 where it was right.
        second: The same items, by the second judge.
        human: People's number for each item; then correlations with it are compared.
        statistic: `mean` (the default without `human`), `pearson` (the default with),
            `spearman` or `kendall`.
        groups: The cluster of each item, such as its article; whole clusters are drawn.
        resamples: How often to draw.
        confidence: The level of the interval.
        seed: The same seed draws the same resamples.

    Returns:
        statistic(first) − statistic(second), with its interval, and `p` of the alternative
        that the first is better. The interval of a difference of means is that of
        `paired_difference`, for resamples of a few groups are too much alike.

    Raises:
        OptionError: A correlation is asked for without `human`.

    Source: Efron 1979; Deutsch, Dror & Roth 2021 (BOOT-INPUTS).
    """
    kind = statistic or ("mean" if human is None else "pearson")
    one_of("statistic", kind, Statistic)
    if human is None and kind != "mean":
        raise OptionError(f"`statistic` {kind!r} needs `human` values to correlate with")
    cases = complete(first, second, *([] if human is None else [human]))
    if not cases.n:
        return _undefined("no items in common", 0, cases.failed)
    (a, b, *others), clusters = cases.floats(), cases.clusters(groups)
    truth = others[0] if others else b
    sides = [(a - b, truth)] if kind == "mean" else [(a, truth), (b, truth)]
    values = resample(kind, sides, clusters, resamples, seed)
    change = values[:, 0] if kind == "mean" else values[:, 0] - values[:, 1]
    result = _resampled(float(change[0]), change[1:], confidence, clusters, cases.failed)
    if kind != "mean" or result.interval is None:
        return result
    student = difference_result(a, b, clusters, confidence, cases.failed)
    return result.replace(interval=student.interval)
