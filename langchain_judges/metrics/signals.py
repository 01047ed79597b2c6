"""Signal detection theory: how well a judge tells signal from noise, and how readily."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import scipy

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import Judgments, RightLabels
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import one_of
from langchain_judges.metrics.intervals import (
    check_confidence,
    normal_quantile,
)
from langchain_judges.metrics.result import Findings, Interval, Result
from langchain_judges.verdict import Label


@dataclass(frozen=True)
class SignalDetection(Findings):
    """How well a judge tells signal from noise, apart from how readily it says yes."""

    hit_rate: float
    """H, corrected as asked."""
    false_alarm_rate: float
    """F, corrected as asked."""
    d_prime: Result
    """z(H) − z(F): 0 is chance."""
    criterion: Result
    """−½ (z(H) + z(F)): below 0 the judge says yes too readily."""
    beta: Result
    """exp((z(F)² − z(H)²) / 2): the likelihood ratio at the criterion."""
    auc: Result
    """Φ(d′ / √2): the area under the curve if both variances are equal."""


def signal_detection(
    hits: int,
    misses: int,
    false_alarms: int,
    correct_rejections: int,
    correction: Literal["log_linear", "none"] = "log_linear",
    *,
    confidence: float = 0.95,
) -> SignalDetection:
    """Return sensitivity and bias of a yes/no judge, from counts.

    Args:
        hits: Items the judge calls 1 that are 1.
        misses: Items it calls 0 that are 1.
        false_alarms: Items it calls 1 that are 0.
        correct_rejections: Items it calls 0 that are 0.
        correction: `log_linear` adds a half to each count, so that rates of 0 and 1 stay
            finite: H = (hits + .5) / (P + 1); `none` takes the rates as they are.
        confidence: The level of the interval of d′.

    Returns:
        NaN with a reason where a class is absent, or a raw rate is 0 or 1.

    Source: Green & Swets 1966; Hautus 1995 for the correction; Gourevitch & Galanter 1967 for
    the standard error of d′.
    """
    one_of("correction", correction, ("log_linear", "none"))
    check_confidence(confidence)
    counts = (hits, misses, false_alarms, correct_rejections)
    if min(counts) < 0:
        raise InputError(f"counts cannot be negative, got {counts!r}")
    n, (p, q) = sum(counts), (hits + misses, false_alarms + correct_rejections)
    if not p or not q:
        return _no_signal(math.nan, math.nan, "one of the two classes is absent", n)
    half = 0.5 if correction == "log_linear" else 0.0
    h, f = (hits + half) / (p + 2 * half), (false_alarms + half) / (q + 2 * half)
    if not (0 < h < 1 and 0 < f < 1):
        return _no_signal(h, f, "a raw rate of 0 or 1 has no finite z", n)
    zh, zf = (float(scipy.stats.norm.ppf(rate)) for rate in (h, f))
    d = zh - zf
    variance = h * (1 - h) / (p * scipy.stats.norm.pdf(zh) ** 2)
    variance += f * (1 - f) / (q * scipy.stats.norm.pdf(zf) ** 2)
    se = math.sqrt(float(variance))
    ends = Interval.around(d, normal_quantile(confidence) * se)
    area = Interval(*(float(scipy.stats.norm.cdf(end / math.sqrt(2))) for end in ends))
    return SignalDetection(
        h,
        f,
        d_prime=Result(d, n=n, se=se, interval=ends),
        criterion=Result(-(zh + zf) / 2, n=n),
        beta=Result(math.exp((zf**2 - zh**2) / 2), n=n),
        auc=Result(float(scipy.stats.norm.cdf(d / math.sqrt(2))), n=n, interval=area),
    )


def _no_signal(h: float, f: float, why: str, n: int) -> SignalDetection:
    none = Result.undefined(why, n=n)
    return SignalDetection(h, f, none, none, none, none)


def detect_signal(
    judge: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    correction: Literal["log_linear", "none"] = "log_linear",
    *,
    confidence: float = 0.95,
) -> SignalDetection:
    """Return `signal_detection` of a judge's labels against the right ones.

    Args:
        judge: A label for each item, or verdicts or rows; None is left out and counted.
        labels: The right label of each item.
        positive: The signal; all other labels are noise.
        correction: As for `signal_detection`.
        confidence: The level of the interval of d′.
    """
    cases = match(judge, labels)
    columns = ([label == positive for label in column] for column in cases.columns)
    pairs = list(zip(*columns, strict=True))
    hits, misses = pairs.count((True, True)), pairs.count((False, True))
    alarms, rest = pairs.count((True, False)), pairs.count((False, False))
    signals = signal_detection(hits, misses, alarms, rest, correction, confidence=confidence)
    parts = {
        name: part.replace(n_failed=cases.failed)
        for name, part in vars(signals).items()
        if isinstance(part, Result)
    }
    return replace(signals, **parts)
