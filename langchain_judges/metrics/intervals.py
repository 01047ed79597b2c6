"""How sure a number is: intervals of rates and means, paired tests, many comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from langchain_judges.errors import InputError, OptionError, needs
from langchain_judges.metrics.inputs import (
    Floats,
    Ints,
    group_numbers,
    match,
    number_pairs,
    numbers,
)
from langchain_judges.metrics.result import Interval, Result, Significance


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < confidence < 1:
        raise OptionError(f"`confidence` must lie between 0 and 1, got {confidence!r}")


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors the interval reaches to either side: 1.96 for 0.95."""
    return float(stats.norm.ppf((1 + confidence) / 2))


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
    p, z = successes / n, normal_quantile(confidence)
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # Its ends at none and at all are exact; rounding must not leave the value outside.
    low, high = middle - half, middle + half
    return Interval(low if successes else 0.0, high if successes < n else 1.0)


def rate(
    hits: Iterable[Any], *, groups: Iterable[Any] | None = None, confidence: float = 0.95
) -> Result:
    """Return the share of hits with its interval.

    Args:
        hits: One of True/False, 1/0 or a share in [0, 1] for each item; None is left out.
        groups: The cluster of each item, such as its question, if several share one.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` items. The interval is Wilson's; with `groups` it is
        Wilson's on the effective number of items, n · SE² / clustered SE² (at most n), with
        Student's t on one degree of freedom less than there are groups.

    Source: Wilson 1927; for clusters Miller 2024 (arXiv 2411.00640) and Dean & Pagano 2015.
    """
    found, kept, failed = numbers(hits)
    if not len(found):
        return Result.undefined("no items", n_failed=failed)
    if found.min() < 0 or found.max() > 1:
        raise InputError("a rate needs values between 0 and 1")
    p, n = float(found.mean()), len(found)
    if groups is None:
        units, se = n, _spread(found) / math.sqrt(n)
        interval = wilson_interval(p * n, n, confidence)
    else:
        numbered = group_numbers(groups, kept, len(found) + failed.total())
        se = _clustered_se(found, numbered)
        units = int(numbered.max()) + 1
        interval = _clustered_wilson(p, n, se, units, confidence)
    return Result(p, n=n, n_failed=failed, interval=interval, se=se if units > 1 else None)


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _clustered_se(values: Floats, groups: Ints) -> float:
    residuals = np.bincount(groups, values - values.mean())
    return float(np.sqrt((residuals**2).sum()) / len(values))


def _clustered_wilson(p: float, n: int, se: float, clusters: int, level: float) -> Interval:
    """Wilson's interval on the effective sample; all alike counts as one item per cluster."""
    check_confidence(level)
    if clusters < 2:
        return Interval(0.0, 1.0)
    # Groups that are balanced within leave rounding dust of a clustered error, or none.
    effective = float(clusters if p in (0, 1) else n)
    if se > 1e-12:
        effective = min(float(n), p * (1 - p) / se**2)
    z = float(stats.t.ppf((1 + level) / 2, clusters - 1))
    centre = (p + z * z / (2 * effective)) / (1 + z * z / effective)
    half = math.sqrt(p * (1 - p) / effective + z * z / (4 * effective**2))
    half *= z / (1 + z * z / effective)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def clustered_standard_error(
    values: Iterable[Any], groups: Iterable[Any] | None = None
) -> Result:
    """Return the standard error of a mean whose items come in clusters.

    `SE² = (1/n²) Σ_c (Σ_{i∈c} (s_i − s̄))²`. Without `groups` it is the usual s / √n.

    Args:
        values: One number for each item, such as 0/1 for wrong/right; None is left out.
        groups: The cluster of each item, such as its question or article.

    Source: Miller 2024, arXiv 2411.00640, section 2.2.
    """
    found, kept, failed = numbers(values)
    if len(found) < 2:
        return Result.undefined("fewer than two items", n=len(found), n_failed=failed)
    if groups is None:
        return Result(_spread(found) / math.sqrt(len(found)), n=len(found), n_failed=failed)
    numbered = group_numbers(groups, kept, len(found) + failed.total())
    if numbered.max() == 0:
        return Result.undefined("only one cluster", n=len(found), n_failed=failed)
    return Result(_clustered_se(found, numbered), n=len(found), n_failed=failed)


def mean(
    values: Iterable[Any], *, groups: Iterable[Any] | None = None, confidence: float = 0.95
) -> Result:
    """Return a mean with Student's interval, over clusters if `groups` are given.

    Args:
        values: One number for each item, in any unit; None is left out.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Source: Miller 2024, arXiv 2411.00640.
    """
    found, kept, failed = numbers(values)
    if not len(found):
        return Result.undefined("no items", n_failed=failed)
    numbered = group_numbers(groups, kept, len(found) + failed.total())
    return _mean_result(found, numbered, confidence, failed, clustered=groups is not None)


def _mean_result(
    found: Floats, groups: Ints, confidence: float, failed: Any, *, clustered: bool
) -> Result:
    check_confidence(confidence)
    centre, count = float(found.mean()), int(groups.max()) + 1
    if count < 2:
        return Result(centre, n=len(found), n_failed=failed)
    se = _clustered_se(found, groups) if clustered else _spread(found) / math.sqrt(len(found))
    half = se * float(stats.t.ppf((1 + confidence) / 2, count - 1))
    interval = Interval(centre - half, centre + half)
    return Result(centre, n=len(found), n_failed=failed, se=se, interval=interval)


def paired_difference(
    first: Iterable[Any],
    second: Iterable[Any],
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the mean of first − second over the items that both have.

    Args:
        first: One number for each item, such as 1 where the first judge was right.
        second: The same items, by the second judge.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Returns:
        The mean difference in the units of the scores, with its standard error, which is
        smaller than that of two separate samples as far as the judges err alike.

    Source: Miller 2024, arXiv 2411.00640, section 4.
    """
    a, b, kept, failed = number_pairs(first, second)
    if not len(a):
        return Result.undefined("no items in common", n_failed=failed)
    numbered = group_numbers(groups, kept, len(a) + failed.total())
    return _mean_result(a - b, numbered, confidence, failed, clustered=groups is not None)


class McNemar(Significance):
    """McNemar's test; `only_first` and `only_second` count who alone was right."""

    only_first: int
    only_second: int


def mcnemar(first: Iterable[Any], second: Iterable[Any]) -> McNemar:
    """Test whether two judges are right equally often on the same items, exactly.

    Args:
        first: True or 1 where the first judge was right, for each item.
        second: The same items, by the second judge.

    Returns:
        The smaller of the two discordant counts and the two-sided p of the exact binomial
        test. With no discordant item p is 1.

    Source: McNemar 1947; `statsmodels.stats.contingency_tables.mcnemar`.
    """
    with needs("trust", "McNemar's test"):
        from statsmodels.stats.contingency_tables import mcnemar as exact

    both = match(first, second)
    pairs = [(bool(a), bool(b)) for a, b in zip(both.judge, both.truth, strict=True)]
    table = [[pairs.count((a, b)) for b in (True, False)] for a in (True, False)]
    counts = {"only_first": table[0][1], "only_second": table[1][0]}
    told: dict[str, Any] = {"alternative": "two-sided", "n_failed": both.failed, **counts}
    if not pairs:
        return McNemar(math.nan, math.nan, n=0, reason="no items in common", **told)
    if not sum(counts.values()):
        return McNemar(0.0, 1.0, n=both.n, **told)
    done = exact(table, exact=True)
    return McNemar(float(done.statistic), float(done.pvalue), n=both.n, **told)


class Adjusted(NamedTuple):
    """What several comparisons come to together."""

    p: list[float]
    """Adjusted p-values, in the order given; compare them with the level as usual."""
    rejected: list[bool]


def holm(p_values: Sequence[float], level: float = 0.05) -> Adjusted:
    """Adjust p-values so that any false rejection at all is as rare as `level`.

    Source: Holm 1979; `statsmodels.stats.multitest.multipletests`.
    """
    return _adjust(p_values, level, "holm")


def benjamini_yekutieli(p_values: Sequence[float], level: float = 0.05) -> Adjusted:
    """Adjust p-values of dependent tests so that a share `level` of rejections is false.

    Source: Benjamini & Yekutieli 2001; `statsmodels.stats.multitest.multipletests`.
    """
    return _adjust(p_values, level, "fdr_by")


def _adjust(p_values: Sequence[float], level: float, method: str) -> Adjusted:
    with needs("trust", "Adjusting p-values"):
        from statsmodels.stats.multitest import multipletests

    given = np.asarray(p_values, dtype=float)
    if not np.all((given >= 0) & (given <= 1)):
        raise InputError("p-values must lie between 0 and 1")
    if not len(given):
        return Adjusted([], [])
    rejected, adjusted, _, _ = multipletests(given, alpha=level, method=method)
    return Adjusted(adjusted.tolist(), rejected.tolist())


class SampleNoise(NamedTuple):
    """Where the variance of a judge's mean comes from, and what more samples would do."""

    mean: Result
    """The mean over items and samples, with the standard error of both parts together."""
    items: Result
    """Variance of that mean that more items would cut."""
    samples: Result
    """Variance of that mean that more samples of each item would cut."""


def sample_noise(
    scores: Sequence[Sequence[float | None]], confidence: float = 0.95
) -> SampleNoise:
    """Split the variance of a mean over items asked k times each.

    `Var = Var_items / n + E[within-item variance] / (n k)`.

    Args:
        scores: n items with their k ≥ 2 samples each; None is a failed sample, and an item
            with fewer than two samples left is left out.
        confidence: The level of the interval of the mean.

    Source: Miller 2024, arXiv 2411.00640, section 3.
    """
    kept = [[s for s in row if s is not None and s == s] for row in scores]
    used = [row for row in kept if len(row) > 1]
    failed = {"fewer_than_two_samples": len(kept) - len(used)} if len(kept) > len(used) else {}
    if len(used) < 2:
        none = Result.undefined("fewer than two items", n=len(used), n_failed=failed)
        return SampleNoise(none, none, none)
    n, means = len(used), [float(np.mean(row)) for row in used]
    total = float(np.var(means, ddof=1)) / n
    within = float(np.mean([np.var(row, ddof=1) / len(row) for row in used])) / n
    centre = mean(means, confidence=confidence)
    return SampleNoise(
        Result(centre, n=n, n_failed=failed, se=math.sqrt(total), interval=centre.interval),
        Result(max(0.0, total - within), n=n, n_failed=failed),
        Result(within, n=n, n_failed=failed),
    )
