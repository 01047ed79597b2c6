"""Statistics with the interval and the p-value of a clustered bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics.arguments import Floats, GroupKeys, Ints, Judgments
from langchain_judges.metrics.cases import complete
from langchain_judges.metrics.inputs import one_of, take
from langchain_judges.metrics.intervals import (
    LEAST_GROUPS,
    check_confidence,
    difference_result,
    student_quantile,
)
from langchain_judges.metrics.resampling import Statistic, draws, resample
from langchain_judges.metrics.result import Interval, Result


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
