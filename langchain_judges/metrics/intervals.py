"""Intervals of rates, means and differences, of few labels too; how many labels to collect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import inputs
from langchain_judges.metrics.inputs import Floats, GroupKeys, Ints, Judgments, RightLabels
from langchain_judges.metrics.result import Interval, Result

# With fewer groups (or items, where there are no groups), their spread says too little.
LEAST_GROUPS = 5


def check_shares(**options: float) -> None:
    """Check options that lie between 0 and 1, such as a confidence level.

    Raises:
        OptionError: One does not.
    """
    for name, value in options.items():
        if not 0 < value < 1:
            raise OptionError(f"`{name}` must lie between 0 and 1, got {value!r}")


def normal_quantile(confidence: float) -> float:
    """Standard errors that an interval reaches to either side: 1.96 for 0.95."""
    return float(scipy.special.ndtri((1 + confidence) / 2))


def student_quantile(confidence: float, freedom: float) -> float:
    """`normal_quantile` by Student's t, of an error with some degrees of freedom."""
    if math.isinf(freedom):
        return normal_quantile(confidence)
    return float(scipy.special.stdtrit(freedom, (1 + confidence) / 2))


def wilson_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion.

    Args:
        successes: How many of the `n` succeeded; half a success (a tie) is allowed.
        n: How many were tried, independently of each other.
        confidence: The level, 0.95 for 95 %.

    Returns:
        `(low, high)`, both in [0, 1]; two NaN if `n` is 0.

    Raises:
        InputError: `successes` lies outside [0, n].
        OptionError: `confidence` does not lie between 0 and 1.

    Source: Wilson 1927, equation 7 of Brown, Cai & DasGupta 2001. Written out, because every
    run's summary has it, and no extra may be needed for that.
    """
    check_shares(confidence=confidence)
    if not 0 <= successes <= n:
        raise InputError(f"`successes` must lie between 0 and `n`, got {successes!r} of {n!r}")
    if n == 0:
        return Interval(math.nan, math.nan)
    return wilson(successes / n, n, normal_quantile(confidence))


def wilson(p: float, n: float, z: float) -> Interval:
    """Wilson's interval of a share p of n items, z standard errors to either side."""
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # Its ends at none and at all are exact; rounding must not leave the value outside.
    return Interval(0.0 if p <= 0 else middle - half, 1.0 if p >= 1 else middle + half)


def share_interval(
    value: float, error: float, least: float, freedom: float, confidence: float
) -> Interval:
    """Wilson's interval for the number of items that would give a share the same error.

    Args:
        value: The share, such as an area under the curve.
        error: Its standard error.
        least: How many items were seen where the error is 0. No area has a larger variance
            than a share of as many items of the rarer class (Van Dantzig 1951).
        freedom: Degrees of freedom of Student's t.
        confidence: The level of the interval.
    """
    size = least
    if error > 1e-12 and 0 < value < 1:
        size = max(1.0, value * (1 - value) / error**2)
    return wilson(value, size, student_quantile(confidence, freedom)).within(0.0, 1.0)


def rate(hits: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95) -> Result:
    """The share of hits with its interval.

    Not for numbers beyond 0 and 1: see `mean`.

    Args:
        hits: One of True/False, 1/0 or a share in [0, 1] for each item; None is left out.
        groups: The cluster of each item, such as its question, if several share one.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` items. The interval is Wilson's; of shares and of groups it
        is Wilson's on the effective number of items, p(1 − p) / SE², of groups with Student's
        t: only groups that hold the rarer outcome tell how much groups vary, so that these
        are its degrees of freedom. Ties counted as half, and groups whose items balance each
        other, have more effective items than items.

    Raises:
        InputError: A value lies outside [0, 1].

    Source: Wilson 1927; for clusters Miller 2024 (arXiv 2411.00640) and Dean & Pagano 2015.
    """
    cases = inputs.complete(hits)
    (scores,) = cases.floats()
    if not cases.n:
        return cases.undefined("no items")
    if scores.min() < 0 or scores.max() > 1:
        raise InputError("a rate needs values between 0 and 1")
    p, n, clusters = float(scores.mean()), cases.n, cases.clusters(groups)
    units, se = int(clusters.max()) + 1, standard_error(scores, clusters)
    if groups is None and np.isin(scores, (0, 1)).all():
        interval = wilson_interval(p * n, n, confidence)
    else:
        freedom = math.inf if groups is None else _telling_groups(scores, clusters) - 1
        interval = _effective_wilson(scores, se, units, freedom, confidence)
        if groups is not None:
            interval = _at_most_whole_groups(interval, scores, clusters, confidence)
    return Result(p, n=n, n_failed=cases.failed, interval=interval, se=se if units > 1 else None)


def standard_error(values: Floats, groups: Ints) -> float:
    """The clustered error of a mean, unbiased where groups are few; s / √n without groups.

    NaN if there are fewer than two groups.
    """
    units = int(groups.max()) + 1
    if units < 2:
        return math.nan
    residuals = np.bincount(groups, values - values.mean())
    return float(np.sqrt((residuals**2).sum() * units / (units - 1)) / len(values))


def _telling_groups(scores: Floats, groups: Ints) -> int:
    """Number of groups with the rarer outcome, plus one, at least three.

    All groups if it never occurs.
    """
    rarer = scores if scores.mean() < 0.5 else 1 - scores
    holding, units = len(np.unique(groups[rarer > 0])), int(groups.max()) + 1
    return min(units, max(3, holding + 1)) if holding else units


def _effective_wilson(
    values: Floats, se: float, units: int, freedom: float, level: float
) -> Interval:
    """Wilson's interval for the effective number of items; units where all values are equal."""
    check_shares(confidence=level)
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


def _at_most_whole_groups(
    interval: Interval, scores: Floats, groups: Ints, level: float
) -> Interval:
    """Cut an interval where even whole groups of the rarer outcome would not take it.

    Of few groups that hold it, their spread says next to nothing; but it is no more common
    than if all items of these groups had it, with as many items as groups count for (Kish).
    """
    is_rare = scores.mean() < 0.5
    rarer = scores if is_rare else 1 - scores
    sizes = np.bincount(groups).astype(float)
    held = np.bincount(groups, rarer) > 0
    share, size = sizes[held].sum() / len(scores), sizes.sum() ** 2 / (sizes**2).sum()
    most = wilson(float(share), float(size), normal_quantile(level)).high
    low, high = interval
    return Interval(low, min(high, most)) if is_rare else Interval(max(low, 1 - most), high)


LEAST_APART = 8
LEAST_OF_A_CLASS = 3


def too_alike(values: Floats | Ints, groups: Ints) -> str | None:
    """The reason why values that are mostly the same one have no interval, if any."""
    apart = _off_the_commonest(values)
    if apart.mean() >= 0.5:
        return None
    if apart.sum() < LEAST_APART:
        return f"fewer than {LEAST_APART} values differ from the rest"
    if len(np.unique(groups[apart])) < LEAST_APART:
        return f"fewer than {LEAST_APART} groups hold a value that differs from the rest"
    return None


def telling(values: Floats | Ints, groups: Ints) -> int:
    """Number of groups with a value other than the most common one, plus one; at most all."""
    return min(int(groups.max()) + 1, len(np.unique(groups[_off_the_commonest(values)])) + 1)


def _off_the_commonest(values: Floats | Ints) -> NDArray[np.bool_]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(places.reshape(-1) != counts.argmax())


def mean(values: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95) -> Result:
    """A mean with Student's interval, over clusters if `groups` are given.

    Not for shares (`rate`), nor where only some items have a label (`ppi_mean`).

    Args:
        values: One number for each item, in any unit; None is left out.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Returns:
        The mean of `n` items in the unit of the values; without an interval where fewer than
        eight values, or groups, differ from the most common value.

    Source: Miller 2024, arXiv 2411.00640.
    """
    cases = inputs.complete(values)
    if not cases.n:
        return cases.undefined("no items")
    (floats,), clusters = cases.floats(), cases.clusters(groups)
    freedom = telling(floats, clusters) - 1.0
    result = mean_result(floats, clusters, confidence, cases.failed, freedom=freedom)
    why = result.interval and too_alike(floats, clusters)
    return result.replace(interval=None, no_interval=why) if why else result


def mean_result(
    values: Floats,
    groups: Ints,
    confidence: float,
    failed: Mapping[str, int],
    *,
    added: float = 0.0,
    freedom: float | None = None,
) -> Result:
    """The mean with Student's interval over groups.

    Args:
        values: One for each item.
        groups: The number of each item's group, from 0.
        confidence: The level of the interval.
        failed: How many other items were left out, by reason.
        added: What is added to the variance of the mean, in units of 1 / (items · groups), for
            values that may be equal by chance; where it is 0, equal values have no interval.
        freedom: Degrees of freedom of Student's t; None: the number of groups minus one.
    """
    check_shares(confidence=confidence)
    centre, count = float(values.mean()), int(groups.max()) + 1
    result = partial(Result, centre, n=len(values), n_failed=failed)
    if count < 2:
        return result(no_interval="only one item or group")
    se = standard_error(values, groups)
    wide = math.sqrt(se**2 + added / (count * len(values)))
    if wide <= 1e-12 * max(1.0, abs(centre)):
        return result(se=se, no_interval="all values are equal")
    half = wide * student_quantile(confidence, freedom or count - 1)
    return result(se=se, interval=Interval.around(centre, half))


class Difference(Result):
    """A mean difference; `p` is two-sided, of the test that the interval inverts."""

    p: float


# Items added to the variance of a difference: with one or two a judge that is 5.5 points too
# generous, where 5 are allowed, passes in 3.9 % of tables of 60 rows; with three in 2 %.
RULE_OF_THREE = 3


def paired_difference(
    first: Judgments,
    second: RightLabels,
    *,
    spread: float | None = None,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Difference:
    """The mean of first − second over the items that both have, and whether it is 0.

    Not for two judges on different items: these are two separate `rate`s.

    Args:
        first: One number for each item, such as 1 where the first judge was right.
        second: The same items, by the second judge.
        spread: How far two scores can be apart. Three more items on which they are that far
            apart are then added to the variance, so that scores that are all alike have an
            interval of about 3.5 / items to either side, as the rule of three says; None: 1
            for hits (0, ½ and 1), else nothing is added.
        groups: The cluster of each item.
        confidence: The level of the interval.

    Returns:
        The mean difference in the units of the scores, with its standard error, which is
        smaller than that of two separate samples as far as the judges err alike. `p` is
        below 1 − confidence where the interval leaves out 0, and only there.

    Source: Miller 2024, arXiv 2411.00640, section 4; items added as by Agresti & Min 2005
    (Biometrics 61) and Bonett & Price 2012 (J. Educ. Behav. Stat. 37), who add one and two.
    """
    cases = inputs.match(first, second, "score")
    if not cases.n:
        return Difference.undefined("no items in common", n_failed=cases.failed, p=math.nan)
    (a, b), clusters = cases.floats(), cases.clusters(groups)
    if spread is None and np.isin(np.concatenate([a, b]), (0, 0.5, 1)).all():
        spread = 1.0
    added = RULE_OF_THREE * (spread or 0.0) ** 2
    freedom = float(clusters.max())
    if groups is not None and spread and (a != b).any():
        # Groups on which both are alike tell little of how leads vary.
        freedom = max(2.0, min(freedom, float(len(np.unique(clusters[a != b])))))
    lead = mean_result(a - b, clusters, confidence, cases.failed, added=added, freedom=freedom)
    if lead.interval is None:
        return Difference(lead, **vars(lead), p=1.0)
    half = lead.interval.high - lead
    statistic = abs(lead) / half * student_quantile(confidence, freedom)
    p = 2 * float(scipy.special.stdtr(freedom, -statistic))
    parts = vars(lead)
    if spread:
        parts = {**parts, "interval": lead.interval.within(-spread, spread)}
    return Difference(lead, **parts, p=p)


# Most parts that a jackknife leaves out in turn.
BLOCKS = 200


def jackknife(
    groups: Ints,
    statistic: Callable[[NDArray[np.bool_]], float | tuple[float, ...]],
    most: int = BLOCKS,
) -> Floats:
    """A statistic of the items without each group in turn.

    Args:
        groups: The number of each item's group, from 0.
        statistic: Of the items that a mask keeps.
        most: Of more groups, blocks of them are drawn by chance and left out.

    Source: Busing, Meijer & van der Leeden 1999.
    """
    count = int(groups.max()) + 1
    blocks = min(count, most)
    order = np.random.default_rng(0).permutation(count) if count > blocks else np.arange(count)
    part = (order % blocks)[groups]
    return np.asarray([statistic(part != block) for block in range(blocks)])


def jackknife_spread(estimates: Floats) -> float:
    """The standard error from the estimates without each block.

    NaN if more than one estimate in ten, or all but one, is undefined.

    Source: Tukey 1958.
    """
    values, blocks = estimates[~np.isnan(estimates)], len(estimates)
    if len(values) < max(2, 0.9 * blocks):
        return math.nan
    return math.sqrt((blocks - 1) * float(values.var()))


class PredictionPowered(Result):
    """A mean estimated from few labels and many judgments.

    Attributes:
        lam: λ, how far the judge is trusted: 0 is the labels alone, 1 is plain PPI.
        n_unlabelled: N, the items with a judgment alone; `n` counts the labelled ones.
    """

    lam: float
    n_unlabelled: int


def ppi_mean(
    labels: RightLabels,
    judged: Judgments,
    judged_unlabelled: Judgments,
    *,
    lam: float | None = None,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean that people would give, from few labels and many judgments (PPI).

    Not if labels were chosen by what the judge said: they must be a random sample.

    θ = mean(Y) + λ (mean(F^u) − mean(F)), with λ between 0, the labels alone, and 1, plain PPI.

    Args:
        labels: Y: people's number for each of n items, such as 1 where A is preferred.
        judged: F: the judge's number for the same items, in the same unit; items that lack
            either are left out and counted.
        judged_unlabelled: F^u: the judge's number for N other items from the same source.
        lam: λ; None takes that of the narrowest interval (PPI++): cov(Y, F) / (var(F) +
            (n / N) var(F^u)), clipped to [0, 1]. A useless judge gets 0.
        groups: The cluster of each labelled item, such as its question.
        confidence: The level of the interval.

    Returns:
        The mean in the unit of the labels. It is unbiased however the judge errs; the better
        the judge the narrower the interval.

    Source: Angelopoulos et al. 2023 (Science 382, arXiv 2301.09633) and 2311.01453. The
    interval is Student's with a few pseudo-labels, for labels of a rare class, and within
    [0, 1] where all numbers are; that of the authors' package, ppi-python, is normal.
    """
    check_shares(confidence=confidence)
    labelled, rest = inputs.match(judged, labels, "score"), inputs.complete(judged_unlabelled)
    failed = labelled.failed + rest.failed
    result = partial(PredictionPowered, n=labelled.n, n_failed=failed, n_unlabelled=rest.n)
    if labelled.n < 2 or rest.n < 2:
        return result(math.nan, reason="fewer than two labelled or unlabelled items", lam=math.nan)
    (f, y), (unlabelled,) = labelled.floats(), rest.floats()
    weight = _best_lambda(y, f, unlabelled) if lam is None else float(lam)
    value = float(np.mean(weight * unlabelled) + np.mean(y - weight * f))
    clusters = labelled.clusters(groups)
    units = int(clusters.max()) + 1
    if units < 2:
        return result(value, no_interval="only one group", lam=weight)
    variance = standard_error(y - weight * f, clusters) ** 2
    variance += weight**2 * float(np.var(unlabelled, ddof=1)) / len(unlabelled)
    values = np.concatenate([y, f, unlabelled])
    hits = values.min() >= 0 and values.max() <= 1
    spread = 1.0 if hits else float(np.ptp(values))
    wide = math.sqrt(variance + PSEUDO_LABELS * spread**2 / (units * len(y)))
    interval = Interval.around(value, wide * student_quantile(confidence, units - 1))
    if hits:
        value, interval = min(1.0, max(0.0, value)), interval.within(0.0, 1.0)
    return result(value, se=math.sqrt(variance), interval=interval, lam=weight)


# What is added to the variance, in squares of the labels' range over n: of a rare class a few
# labels may hold nothing, and then vary less than the next ones.
PSEUDO_LABELS = 2.0


def _best_lambda(y: Floats, f: Floats, unlabelled: Floats) -> float:
    """The λ* = cov(Y, F) / (var(F) + (n / N) var(F^u)), within [0, 1]."""
    below = np.var(f, ddof=1) + len(y) / len(unlabelled) * np.var(unlabelled, ddof=1)
    return float(np.clip(np.cov(y, f)[0, 1] / below, 0.0, 1.0)) if below > 0 else 0.0


MOST_LABELS = 1_000_000


def _power(lead: float, disagreement: float, n: int, level: float, seed: int) -> float:
    """Share of 4,000 samples of n items in which `paired_difference` finds a lead."""
    rng = np.random.default_rng(seed)
    apart = rng.binomial(n, disagreement, 4000)
    wins = rng.binomial(apart, (disagreement + lead) / (2 * disagreement))
    gap = (2 * wins - apart) / n
    error = np.sqrt((apart / n - gap**2) / (n - 1) + 1 / n**2)
    return float((gap > error * student_quantile(1 - level, n - 1)).mean())


def labels_needed(
    lead: float, disagreement: float, power: float = 0.8, *, level: float = 0.05, seed: int = 0
) -> int:
    """Number of labels needed to find a lead between two judges.

    Not for rows that share a question: count the questions.

    Args:
        lead: How much more often the first judge is right, such as 0.05.
        disagreement: The share of items on which exactly one of the two is right, at least
            the lead; two good judges of one family may have 0.1, two of different ones 0.3.
        power: How often the lead is to be found.
        level: The significance level of the test.
        seed: Of the draws.

    Returns:
        The number of labelled rows, with 80% power by default.

    Raises:
        OptionError: The lead is not between 0 and the disagreement, or more than a million
            labels are needed.

    Source: simulation of `paired_difference`.
    """
    if not 0 < lead <= disagreement <= 1:
        rule = "`lead` must be above 0, and at most `disagreement`, which is at most 1"
        raise OptionError(f"{rule}; got {lead!r} and {disagreement!r}")
    check_shares(power=power)

    def enough(n: int) -> bool:
        return _power(lead, disagreement, n, level, seed) >= power

    number = inputs.fewest(enough, 8, MOST_LABELS)
    if number is None:
        raise OptionError(f"a lead of {lead!r} takes more than {MOST_LABELS:,} labels")
    return number
