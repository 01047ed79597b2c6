"""Few human labels and many judgments: what people would say, and how many labels."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from langchain_judges.errors import OptionError
from langchain_judges.metrics import inputs
from langchain_judges.metrics.intervals import check_shares, standard_error, student_quantile
from langchain_judges.metrics.result import Interval, Result


class PredictionPowered(Result):
    """A mean estimated from few labels and many judgments.

    Attributes:
        lam: λ, how far the judge is trusted: 0 is the labels alone, 1 is plain PPI.
        n_unlabelled: N, the items with a judgment alone; `n` counts the labelled ones.
    """

    lam: float
    n_unlabelled: int


def ppi_mean(
    labels: inputs.RightLabels,
    judged: inputs.Judgments,
    judged_unlabelled: inputs.Judgments,
    *,
    lam: float | None = None,
    groups: inputs.GroupKeys = None,
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


def _best_lambda(y: inputs.Floats, f: inputs.Floats, unlabelled: inputs.Floats) -> float:
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
        raise OptionError(
            "`lead` must be above 0, and at most `disagreement`, which is at most 1; got "
            f"{lead!r} and {disagreement!r}"
        )
    check_shares(power=power)

    def enough(n: int) -> bool:
        return _power(lead, disagreement, n, level, seed) >= power

    number = inputs.fewest(enough, 8, MOST_LABELS)
    if number is None:
        raise OptionError(f"a lead of {lead!r} takes more than {MOST_LABELS:,} labels")
    return number
