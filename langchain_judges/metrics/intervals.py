"""How sure a number is: intervals of rates, means and differences, and the paired test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import scipy

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics.inputs import (
    Floats,
    GroupKeys,
    Ints,
    Judgments,
    RightLabels,
    as_floats,
    complete,
    match,
)
from langchain_judges.metrics.result import Interval, Result, Significance

LEAST_GROUPS = 5
"""Of fewer groups, or items on their own, what varies between them says too little."""


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < confidence < 1:
        raise OptionError(f"`confidence` must lie between 0 and 1, got {confidence!r}")


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors the interval reaches to either side: 1.96 for 0.95."""
    return float(scipy.stats.norm.ppf((1 + confidence) / 2))


def student_quantile(confidence: float, freedom: float) -> float:
    """Return `normal_quantile` by Student's t, of an error with some degrees of freedom."""
    return float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))


def wilson_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion.

    Args:
        successes: How many of the `n` succeeded; half a success (a tie) is allowed.
        n: How many were tried, independently of each other.
        confidence: The level, 0.95 for 95 %.

    Returns:
        `(low, high)`, both in [0, 1]; NaN twice if `n` is 0, for nothing was tried.

    Raises:
        InputError: `successes` lies outside [0, n].

    Source: Wilson 1927, equation 7 of Brown, Cai & DasGupta 2001. Written out, for every run's
    summary has it and statsmodels is an extra.
    """
    check_confidence(confidence)
    if not 0 <= successes <= n:
        raise InputError(f"`successes` must lie between 0 and `n`, got {successes!r} of {n!r}")
    if n == 0:
        return Interval(math.nan, math.nan)
    low, high = wilson(successes / n, n, normal_quantile(confidence))
    # Its ends at none and at all are exact; rounding must not leave the value outside.
    return Interval(low if successes else 0.0, high if successes < n else 1.0)


def wilson(p: float, n: float, z: float) -> Interval:
    """Return Wilson's interval of a share of n items that is z standard errors wide."""
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Interval.around(middle, half)


def rate(hits: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95) -> Result:
    """Return the share of hits with its interval.

    Args:
        hits: One of True/False, 1/0 or a share in [0, 1] for each item; None is left out.
        groups: The cluster of each item, such as its question, if several share one.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` items. The interval is Wilson's; of shares and of groups it
        is Wilson's on the effective number of items, p(1 − p) / SE², of groups with Student's
        t on one degree of freedom less than there are groups. Ties counted as half, and
        groups whose items balance each other, have more effective items than items.

    Source: Wilson 1927; for clusters Miller 2024 (arXiv 2411.00640) and Dean & Pagano 2015.
    """
    cases = complete(hits)
    (scores,) = cases.floats()
    if not cases.n:
        return cases.undefined("no items")
    if scores.min() < 0 or scores.max() > 1:
        raise InputError("a rate needs values between 0 and 1")
    p, n, clusters = float(scores.mean()), cases.n, cases.clusters(groups)
    units, se = int(clusters.max()) + 1, _standard_error(scores, clusters)
    if groups is None and np.isin(scores, (0, 1)).all():
        interval = wilson_interval(p * n, n, confidence)
    else:
        freedom = math.inf if groups is None else units - 1
        interval = _effective_wilson(scores, se, units, freedom, confidence)
    error = se if units > 1 else None
    return Result(p, n=n, n_failed=cases.failed, interval=interval, se=error)


def _clustered_se(values: Floats, groups: Ints) -> float:
    residuals = np.bincount(groups, values - values.mean())
    return float(np.sqrt((residuals**2).sum()) / len(values))


def _standard_error(values: Floats, groups: Ints) -> float:
    """Return the clustered error, unbiased where groups are few; s / √n of items alone."""
    units = int(groups.max()) + 1
    if units < 2:
        return math.nan
    return _clustered_se(values, groups) * math.sqrt(units / (units - 1))


def _effective_wilson(
    values: Floats, se: float, units: int, freedom: float, level: float
) -> Interval:
    """Wilson's interval on the effective sample; all alike counts as one item per unit."""
    check_confidence(level)
    if units < 2:
        return Interval(0.0, 1.0)
    p, n = float(values.mean()), len(values)
    effective = float(units)
    if 0 < p < 1:
        alone = p * (1 - p) / n
        # An error below that of items on their own is believed but for half an item: a few
        # units may balance each other by luck.
        variance = se**2 if se**2 >= alone else min(alone, se**2 + 0.5 / (n * units))
        effective = p * (1 - p) / variance
    return wilson(p, effective, student_quantile(level, freedom)).within(0.0, 1.0)


def mean(values: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95) -> Result:
    """Return a mean with Student's interval, over clusters if `groups` are given.

    Args:
        values: One number for each item, in any unit; None is left out.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Source: Miller 2024, arXiv 2411.00640.
    """
    cases = complete(values)
    if not cases.n:
        return cases.undefined("no items")
    (floats,), clusters = cases.floats(), cases.clusters(groups)
    return mean_result(floats, clusters, confidence, cases.failed)


def mean_result(
    values: Floats,
    groups: Ints,
    confidence: float,
    failed: Mapping[str, int],
    *,
    added: float = 0.0,
) -> Result:
    """Return the mean with Student's interval over groups.

    Args:
        values: The values.
        groups: The number of each one's group.
        confidence: The level of the interval.
        failed: Why others are left out.
        added: What is added to the variance of the mean, in units of 1 / (items · groups);
            values that may all be alike by luck need it, others that are all alike have no
            interval.
    """
    check_confidence(confidence)
    centre, count = float(values.mean()), int(groups.max()) + 1
    result = partial(Result, centre, n=len(values), n_failed=failed)
    if count < 2:
        return result(no_interval="only one item or group")
    se = _standard_error(values, groups)
    wide = math.sqrt(se**2 + added / (count * len(values)))
    if wide <= 1e-12 * max(1.0, abs(centre)):
        return result(se=se, no_interval="all values are equal")
    half = wide * student_quantile(confidence, count - 1)
    return result(se=se, interval=Interval.around(centre, half))


def paired_difference(
    first: Judgments, second: RightLabels, *, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return the mean of first − second over the items that both have.

    Args:
        first: One number for each item, such as 1 where the first judge was right.
        second: The same items, by the second judge.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Returns:
        The mean difference in the units of the scores, with its standard error, which is
        smaller than that of two separate samples as far as the judges err alike. The interval
        of hits (0, ½ and 1) is that of one more item on which each alone was right.

    Source: Miller 2024, arXiv 2411.00640, section 4; for hits Agresti & Min 2005 (Biometrics
    61).
    """
    cases = match(first, second, "score")
    if not cases.n:
        return cases.undefined("no items in common")
    (a, b), clusters = cases.floats(), cases.clusters(groups)
    return difference_result(a, b, clusters, confidence, cases.failed)


def difference_result(
    a: Floats, b: Floats, clusters: Ints, confidence: float, failed: Mapping[str, int]
) -> Result:
    """Return `paired_difference` of two whole columns with the numbers of their groups."""
    hits = bool(np.isin(np.concatenate([a, b]), (0, 0.5, 1)).all())
    difference = mean_result(a - b, clusters, confidence, failed, added=1.0 if hits else 0.0)
    if hits and difference.interval:
        return difference.replace(interval=difference.interval.within(-1.0, 1.0))
    return difference


class McNemar(Significance):
    """McNemar's test; `only_first` and `only_second` count who alone was right."""

    only_first: int
    only_second: int


def mcnemar(first: Judgments, second: RightLabels, *, groups: GroupKeys = None) -> McNemar:
    """Test whether two judges are right equally often on the same items, exactly.

    Args:
        first: True or 1 where the first judge was right, for each item.
        second: The same items, by the second judge.
        groups: The cluster of each item; whole clusters then change sides under the null
            hypothesis, for items that share a question are not tests of their own.

    Returns:
        The smaller of the two discordant counts and the two-sided p of the exact binomial
        test, or of the exact test over clusters. With no discordant item p is 1.

    Source: McNemar 1947; with clusters Fisher's (1935) permutation of pairs.
    """
    cases = match(first, second)
    hits = [(bool(a), bool(b)) for a, b in zip(*cases.columns, strict=True)]
    only_first, only_second = hits.count((True, False)), hits.count((False, True))
    outcome = partial(
        McNemar,
        n=cases.n,
        alternative="two-sided",
        n_failed=cases.failed,
        only_first=only_first,
        only_second=only_second,
    )
    if not hits:
        return outcome(math.nan, math.nan, reason="no items in common")
    leads = np.bincount(cases.clusters(groups), [float(a) - float(b) for a, b in hits])
    return outcome(min(only_first, only_second), _flipped_p(as_floats(leads)))


FINEST_GRID = 2**18


def _flipped_p(leads: Floats) -> float:
    """Return how many of the sums ± lead ± lead … are as far from 0 as the sum of leads."""
    leads = np.asarray(leads[np.abs(leads) > 1e-12])
    if not len(leads):
        return 1.0
    steps = _on_a_grid(leads)
    total, reach = abs(int(steps.sum())), int(np.abs(steps).sum())
    sizes, counts = np.unique(np.abs(steps), return_counts=True)
    if len(sizes) == 1:
        size = int(counts[0])
        wins = (size + total // int(sizes[0])) // 2
        return float(min(1.0, 2 * scipy.stats.binom.sf(wins - 1, size, 0.5)))
    # The sums have a period that none of them reaches.
    period = 2 * reach + 1
    turns = 2 * np.pi * np.arange(period) / period
    waves = np.ones(period)
    for size, count in zip(sizes, counts, strict=True):
        waves *= np.cos(turns * size) ** count
    chances = np.fft.ifft(waves).real
    beyond = chances[total : reach + 1].sum()
    smallest = 2.0 ** (1 - min(len(steps), 1000))
    return float(min(1.0, max(2 * beyond, smallest)))


def _on_a_grid(leads: Floats) -> Ints:
    """Return leads as whole numbers: exactly where they are shares of a few votes."""
    for parts in (1, 2, 3, 4, 5, 6, 12, 60, 420):
        steps = leads * parts
        if np.abs(steps).sum() < FINEST_GRID and np.abs(steps - steps.round()).max() < 1e-6:
            break
    else:
        steps = leads * (FINEST_GRID / np.abs(leads).sum())
    return np.asarray(steps.round(), dtype=np.int64)
