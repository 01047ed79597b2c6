"""Few human labels and many judgments: what people would say, how many labels, and which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics.inputs import (
    Floats,
    GroupKeys,
    Judgments,
    RightLabels,
    as_list,
    complete,
    is_missing,
    match,
    same_length,
    take,
    values_of,
)
from langchain_judges.metrics.intervals import (
    check_confidence,
    standard_error,
    student_quantile,
)
from langchain_judges.metrics.result import Interval, Result


class PredictionPowered(Result):
    """A mean that few labels and many judgments give together.

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
    """Return the mean that people would give, from few labels and many judgments (PPI).

    Not if labels were chosen by what the judge said: they must be a random sample, or use
    `stratified_ppi_mean`.

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
    check_confidence(confidence)
    labelled, rest = match(judged, labels, "score"), complete(judged_unlabelled)
    failed = labelled.failed + rest.failed
    result = partial(PredictionPowered, n=labelled.n, n_failed=failed, n_unlabelled=rest.n)
    if labelled.n < 2 or rest.n < 2:
        why = "fewer than two labelled or unlabelled items"
        return result(math.nan, reason=why, lam=math.nan)
    (f, y), (unlabelled,) = labelled.floats(), rest.floats()
    weight = _best_lambda(y, f, unlabelled) if lam is None else float(lam)
    value = float(np.mean(weight * unlabelled) + np.mean(y - weight * f))
    clusters = labelled.clusters(groups)
    units = int(clusters.max()) + 1
    if units < 2:
        return result(value, no_interval="only one group", lam=weight)
    variance = standard_error(y - weight * f, clusters) ** 2
    variance += weight**2 * float(np.var(unlabelled, ddof=1)) / len(unlabelled)
    spread, hits = _range(np.concatenate([y, f, unlabelled]))
    wide = math.sqrt(variance + PSEUDO_LABELS * spread**2 / (units * len(y)))
    half = wide * student_quantile(confidence, units - 1)
    interval = Interval.around(value, half)
    if hits:
        value, interval = min(1.0, max(0.0, value)), interval.within(0.0, 1.0)
    return result(value, se=math.sqrt(variance), interval=interval, lam=weight)


PSEUDO_LABELS = 2.0
"""What is added to the variance, in squares of the labels' range over n: of a rare class a few
labels may hold nothing, and then vary less than the next ones."""


def _range(values: Floats) -> tuple[float, bool]:
    """Return how far values can lie apart, and whether they are shares, in [0, 1]."""
    if values.min() >= 0 and values.max() <= 1:
        return 1.0, True
    return float(np.ptp(values)), False


def _best_lambda(y: Floats, f: Floats, unlabelled: Floats) -> float:
    """Return λ* = cov(Y, F) / (var(F) + (n / N) var(F^u)), within [0, 1]."""
    below = np.var(f, ddof=1) + len(y) / len(unlabelled) * np.var(unlabelled, ddof=1)
    if below <= 0:
        return 0.0
    return float(np.clip(np.cov(y, f)[0, 1] / below, 0.0, 1.0))


def stratified_ppi_mean(
    labels: RightLabels,
    judged: Judgments,
    strata: Iterable[Hashable],
    judged_unlabelled: Judgments,
    strata_unlabelled: Iterable[Hashable],
    *,
    confidence: float = 0.95,
) -> PredictionPowered:
    """Return PPI++ by stratum, weighed by the strata's shares of all items.

    Not with strata of fewer than two labels, nor made from the labels themselves.

    It helps where the judge is good in some categories and poor in others, and is right even
    if labels were not drawn in proportion (see `neyman_allocation`).

    Args:
        labels: As for `ppi_mean`.
        judged: As for `ppi_mean`.
        strata: The category of each labelled item.
        judged_unlabelled: As for `ppi_mean`; drawn as the categories occur.
        strata_unlabelled: The category of each unlabelled item.
        confidence: The level of the interval.

    Returns:
        The mean; `lam` is the mean λ by weight. NaN if a stratum has fewer than two labels.

    Source: Fisch et al. 2024 (arXiv 2406.04291).
    """
    check_confidence(confidence)
    y, f, strata = as_list(labels), as_list(judged), as_list(strata)
    pool, pool_strata = as_list(judged_unlabelled), as_list(strata_unlabelled)
    same_length(labels=y, judged=f, strata=strata)
    same_length(judged_unlabelled=pool, strata_unlabelled=pool_strata)
    counts = Counter(pool_strata)
    parts, failed = [], Counter[str]()
    for stratum, count in counts.items():
        own = [index for index, key in enumerate(strata) if key == stratum]
        rest = [each for each, key in zip(pool, pool_strata, strict=True) if key == stratum]
        part = ppi_mean(take(y, own), take(f, own), rest)
        parts.append((count / counts.total(), part))
        failed.update(part.n_failed)
    n = sum(part.n for _, part in parts)
    result = partial(
        PredictionPowered,
        n=n,
        n_failed=failed,
        n_unlabelled=sum(part.n_unlabelled for _, part in parts),
    )
    if set(strata) - set(counts):
        raise InputError("every stratum of the labelled items must occur unlabelled too")
    if not parts or any(part.reason for _, part in parts):
        why = "a stratum has fewer than two labelled or unlabelled items"
        return result(math.nan, reason=why, lam=math.nan)
    value = sum(weight * float(part) for weight, part in parts)
    variances = [(weight * (part.se or 0.0)) ** 2 for weight, part in parts]
    spread, hits = _range(np.concatenate([complete(part).floats()[0] for part in (y, f, pool)]))
    added = [PSEUDO_LABELS * (weight * spread) ** 2 / (part.n * n) for weight, part in parts]
    wide = [variance + more for variance, more in zip(variances, added, strict=True)]
    # Welch and Satterthwaite: a stratum of few labels makes the whole less sure.
    freedom = sum(wide) ** 2 / sum(
        own**2 / (part.n - 1) for own, (_, part) in zip(wide, parts, strict=True)
    )
    half = math.sqrt(sum(wide)) * student_quantile(confidence, freedom)
    interval, se = Interval.around(value, half), math.sqrt(sum(variances))
    if hits:
        value, interval = min(1.0, max(0.0, value)), interval.within(0.0, 1.0)
    lam = sum(weight * part.lam for weight, part in parts)
    return result(value, se=se, interval=interval, lam=lam)


def neyman_allocation(
    sizes: Sequence[float], deviations: Sequence[float], budget: int
) -> list[int]:
    """Return how many labels to buy in each stratum so that the estimate is surest.

    Args:
        sizes: The strata's sizes, in any unit.
        deviations: Per stratum the standard deviation of label − λ · judgment, from a pilot.
        budget: RightLabels in all, at least two for each stratum.

    Returns:
        Counts that add up to `budget`, in proportion to size · deviation, at least two each.

    Source: Neyman 1934; Fisch et al. 2024.
    """
    same_length(sizes=sizes, deviations=deviations)
    if budget < 2 * len(sizes):
        raise InputError(f"`budget` must allow two labels for each stratum, got {budget!r}")
    spread = np.asarray(sizes, dtype=float) * np.asarray(deviations, dtype=float)
    if not (spread >= 0).all():
        raise InputError("sizes and deviations cannot be negative")
    if not spread.any():
        spread = np.ones(len(sizes))
    allocation = [2] * len(sizes)
    for _ in range(budget - sum(allocation)):
        # Neyman's optimum in whole labels: each goes where it cuts the variance most.
        sizes_now = np.asarray(allocation)
        allocation[int(np.argmax(spread**2 / (sizes_now * (sizes_now + 1.0))))] += 1
    return allocation


MOST_LABELS = 1_000_000


def _power(lead: float, disagreement: float, n: int, level: float, seed: int) -> float:
    """Return in how many of 4,000 samples of n items `paired_difference` finds a lead."""
    rng = np.random.default_rng(seed)
    apart = rng.binomial(n, disagreement, 4000)
    wins = rng.binomial(apart, (disagreement + lead) / (2 * disagreement))
    gap = (2 * wins - apart) / n
    error = np.sqrt((apart / n - gap**2) / (n - 1) + 1 / n**2)
    return float((gap > error * student_quantile(1 - level, n - 1)).mean())


def labels_needed(
    lead: float, disagreement: float, power: float = 0.8, *, level: float = 0.05, seed: int = 0
) -> int:
    """Return how many labels it takes to find a lead between two judges.

    Not for rows that share a question: count the questions.

    Args:
        lead: How much more often the first judge is right, such as 0.05.
        disagreement: The share of items on which exactly one of the two is right, at least
            the lead; two good judges of one family may have 0.1, two of different ones 0.3.
        power: How often the lead is to be found.
        level: Of the test.
        seed: Of the draws.

    Raises:
        OptionError: The lead is not between 0 and the disagreement, or more than a million
            labels are needed.

    Source: simulation of `paired_difference`. Of items that share questions count the
    questions.
    """
    if not 0 < lead <= disagreement <= 1:
        raise OptionError(
            "`lead` must be above 0, and at most `disagreement`, which is at most 1; got "
            f"{lead!r} and {disagreement!r}"
        )
    if not 0 < power < 1:
        raise OptionError(f"`power` must lie between 0 and 1, got {power!r}")

    def enough(n: int) -> bool:
        return _power(lead, disagreement, n, level, seed) >= power

    high = 8
    while not enough(high):
        high *= 2
        if high > MOST_LABELS:
            raise OptionError(f"a lead of {lead!r} takes more than {MOST_LABELS:,} labels")
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def label_next(
    judged: Judgments,
    labels: RightLabels,
    strata: Iterable[Hashable],
    budget: int,
    *,
    seed: int = 0,
) -> list[int]:
    """Return the places of the rows to label next, so that estimates become surest.

    Not if the labels are also to give a plain average: strata are then sampled unevenly,
    which `stratified_ppi_mean` allows for.

    Labels go to the strata in proportion to their size and to how far the judge has been from
    people there, and within a stratum to rows by chance: so `stratified_ppi_mean` stays right
    as labels come in. Make strata of what goes with mistakes, such as (category, whether
    two judges disagree, whether the judge flipped), to have doubtful rows labelled first.

    Args:
        judged: The judge's number for each row, such as 1 where it prefers A; or verdicts,
            whose score is read; None was not judged.
        labels: People's number for each row in the same unit; None is not labelled yet.
        strata: The stratum of each row.
        budget: How many rows to name.
        seed: Of the choice within a stratum.

    Returns:
        Places in the order of the rows. A stratum without two labels is taken to be as
        doubtful as the worst; none gets more than it has rows left.

    Source: Neyman 1934; Fisch et al. 2024 (arXiv 2406.04291).
    """
    (values, _), truths, names = values_of(judged, "score"), as_list(labels), list(strata)
    same_length(judged=values, labels=truths, strata=names)
    if budget < 1:
        raise OptionError(f"`budget` must be at least 1, got {budget!r}")
    gaps: dict[Hashable, list[float]] = {name: [] for name in names}
    unlabelled: dict[Hashable, list[int]] = {name: [] for name in names}
    for place, (value, label, name) in enumerate(zip(values, truths, names, strict=True)):
        if is_missing(label):
            unlabelled[name].append(place)
        elif value is not None:
            gaps[name].append(float(label) - float(value))
    if not any(unlabelled.values()):
        raise InputError("every row is labelled")
    counts = _more(gaps, unlabelled, Counter(names), budget)
    rng = np.random.default_rng(seed)
    places = [
        unlabelled[name][i]
        for name in unlabelled
        for i in rng.permutation(len(unlabelled[name]))[: counts[name]]
    ]
    return sorted(places)


def _more(
    gaps: dict[Hashable, list[float]],
    unlabelled: dict[Hashable, list[int]],
    sizes: Mapping[Hashable, int],
    budget: int,
) -> dict[Hashable, int]:
    """Return how many labels each stratum gets beside those it has."""
    spreads = {name: float(np.std(own, ddof=1)) for name, own in gaps.items() if len(own) > 1}
    worst = max(spreads.values(), default=1.0) or 1.0
    # A stratum without a mistake so far is not certain to have none.
    doubts = [max(spreads.get(name, worst), 0.1 * worst) for name in gaps]
    total = max(2 * len(gaps), budget + sum(map(len, gaps.values())))
    targets = neyman_allocation([sizes[name] for name in gaps], doubts, total)
    short = {
        name: max(0, target - len(gaps[name]))
        for name, target in zip(gaps, targets, strict=True)
    }
    counts = dict.fromkeys(gaps, 0)
    for _ in range(min(budget, sum(map(len, unlabelled.values())))):
        open_ones = [name for name in gaps if counts[name] < len(unlabelled[name])]
        best = max(
            open_ones, key=lambda name: (short[name] - counts[name], len(unlabelled[name]))
        )
        counts[best] += 1
    return counts
