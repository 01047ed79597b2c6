"""A rate that an imperfect judge reports, corrected by its sensitivity and specificity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import Judgments, RightLabels
from langchain_judges.metrics.cases import complete, match
from langchain_judges.metrics.inputs import must_be_binary
from langchain_judges.metrics.intervals import check_confidence, normal_quantile
from langchain_judges.metrics.result import Interval, Result


def rogan_gladen(  # noqa: PLR0913 - three rates, and the counts behind them
    positive_rate: float,
    specificity: float,
    sensitivity: float,
    *,
    n: int | None = None,
    n_negative: int | None = None,
    n_positive: int | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the true rate of positives behind what an imperfect judge calls positive.

    θ = (p + q0 − 1) / (q0 + q1 − 1), held within [0, 1]. It stands a shift of the rate between
    calibration and test, which PPI does not.

    Args:
        positive_rate: p: the share the judge calls positive.
        specificity: q0: how many of the negatives it calls negative.
        sensitivity: q1: how many of the positives it calls positive.
        n: Items behind `positive_rate`; with the next two the result has an interval.
        n_negative: m0: negatives behind `specificity`.
        n_positive: m1: positives behind `sensitivity`.
        confidence: The level of the interval.

    Returns:
        The rate in [0, 1]; NaN where q0 + q1 ≤ 1, for such a judge tells nothing. The interval
        holds the rates that a score test does not reject; it is [0, 1] where the judge is not
        clearly better than chance.

    Source: Rogan & Gladen 1978; Lee et al. 2025 (arXiv 2511.21140). The interval is Fieller's
    (1954) with the pseudo-counts of Lang & Reiczigel 2014 (Prev. Vet. Med. 113).
    """
    check_confidence(confidence)
    rates = (positive_rate, specificity, sensitivity)
    if not all(0 <= r <= 1 for r in rates):
        raise InputError(f"rates must lie between 0 and 1, got {rates!r}")
    power = specificity + sensitivity - 1
    if power <= 1e-12:
        return Result.undefined("the judge is no better than chance", n=n or 0)
    raw = (positive_rate + specificity - 1) / power
    value = min(1.0, max(0.0, raw))
    if not (n and n_negative and n_positive):
        return Result(value, n=n or 0)
    counts = (n, n_negative, n_positive)
    variance = _contrast(rates, counts, value)[1]
    return Result(
        value,
        n=n,
        se=math.sqrt(variance) / power,
        interval=_fieller_interval(rates, counts, normal_quantile(confidence)),
    )


def _contrast(
    rates: Sequence[float], counts: Sequence[float], theta: float
) -> tuple[float, float]:
    """Return p − θ q1 − (1 − θ)(1 − q0), which is 0 at the true θ, and its variance."""
    p, q0, q1 = rates
    v, v0, v1 = (r * (1 - r) / count for r, count in zip(rates, counts, strict=True))
    gap = p - theta * q1 - (1 - theta) * (1 - q0)
    return gap, v + theta**2 * v1 + (1 - theta) ** 2 * v0


def _fieller_interval(rates: Sequence[float], counts: Sequence[float], z: float) -> Interval:
    """Return the rates in [0, 1] that are nearly as likely as the likeliest one there."""
    added = (z * z, 2.0, 2.0)
    smooth = [
        (r * count + more / 2) / (count + more)
        for r, count, more in zip(rates, counts, added, strict=True)
    ]
    sizes = [count + more for count, more in zip(counts, added, strict=True)]
    p, q0, q1 = smooth
    power, shift = q0 + q1 - 1, p + q0 - 1
    if power <= 0:
        return Interval(0.0, 1.0)
    best = min(1.0, max(0.0, shift / power))
    gap, variance = _contrast(smooth, sizes, best)
    # Where the best fit lies outside [0, 1] its nearest end is taken for a perfect one.
    limit = z * z + gap * gap / variance
    v, v0, v1 = (r * (1 - r) / size for r, size in zip(smooth, sizes, strict=True))
    a, b = power**2 - limit * (v0 + v1), shift * power - limit * v0
    c = shift**2 - limit * (v + v0)
    if a <= 0:
        return Interval(0.0, 1.0)
    half = math.sqrt(max(0.0, b * b - a * c)) / a
    return Interval.around(b / a, half).within(0.0, 1.0)


def corrected_rate(
    judged: Judgments,
    calibration_judged: Judgments,
    calibration_labels: RightLabels,
    *,
    confidence: float = 0.95,
) -> Result:
    """Return `rogan_gladen` from 0/1 judgments and a labelled calibration set.

    Args:
        judged: The judge's label, 1 or 0, of each item to be estimated; None is left out.
        calibration_judged: The judge's label of each calibration item.
        calibration_labels: People's label of the same items.
        confidence: The level of the interval.

    Returns:
        The rate of positives in [0, 1]; `n` counts the judged items.

    Source: Rogan & Gladen 1978; Lee et al. 2025; the interval as in `rogan_gladen`.
    """
    cases = complete(judged, field="label")
    calibration = match(calibration_judged, calibration_labels, "label")
    (values,), (f, y) = cases.floats(), calibration.floats()
    must_be_binary(values, f, y)
    failed = cases.failed + calibration.failed
    positives, negatives = int((y == 1).sum()), int((y == 0).sum())
    if not cases.n or not positives or not negatives:
        why = "a class is absent from calibration" if cases.n else "no judged items"
        return Result.undefined(why, n=cases.n, n_failed=failed)
    right1, right0 = int(((f == 1) & (y == 1)).sum()), int(((f == 0) & (y == 0)).sum())
    corrected = rogan_gladen(
        float(values.mean()),
        right0 / negatives,
        right1 / positives,
        n=cases.n,
        n_negative=negatives,
        n_positive=positives,
        confidence=confidence,
    )
    return corrected.replace(n_failed=failed)
