"""Clustered bootstrap: draw whole groups, weigh rows by how often their group was drawn.

Means and Pearson's r need only sums, so a block of resamples is one product of the matrix of
counts with the groups' sums; Spearman's ρ ranks a block of resamples at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Literal

import numpy as np
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics.arguments import Floats, Ints

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
