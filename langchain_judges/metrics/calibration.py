"""Is the judge right as often as it says? And scores without position, items to look at."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from langchain_judges.errors import InputError
from langchain_judges.metrics.areas import auc
from langchain_judges.metrics.arguments import (
    Confidences,
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.cases import bare, cases_of
from langchain_judges.metrics.inputs import (
    NO_CONFIDENCE,
    NO_LABEL,
    as_floats,
    as_list,
    confidences_of,
    same_length,
    value_of,
)
from langchain_judges.metrics.intervals import mean, rate
from langchain_judges.metrics.result import Findings, Result


class Bin(NamedTuple):
    """Answers of like confidence."""

    confidence: float
    """Their mean confidence."""
    agreement: Result
    """How often they are right."""


@dataclass(frozen=True)
class Calibration(Findings):
    """Whether a judge is right as often as it says it is."""

    ece: Result
    """Mean distance of confidence and agreement over the bins, weighed by their items; items
    that are right by chance move it up, so that it is above 0 even where all is well."""
    brier: Result
    """Mean squared distance of the confidence from 1 where right and 0 where wrong."""
    auc: Result
    """How often a right answer has more confidence than a wrong one; ½ where that is chance."""
    bins: list[Bin]
    """Of about as many items each, least confident first."""
    n: int
    n_failed: dict[str, int]


BINS = 10
LEAST_IN_BIN = 20


def confidence_calibration(
    answers: Judgments,
    labels: RightLabels,
    confidences: Confidences = None,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Calibration:
    """Hold a judge's confidence against how often it is right.

    Args:
        answers: The judge's answer to each item, or verdicts or rows.
        labels: People's answer to each item; items without one, or without a confidence, are
            left out and counted.
        confidences: The chance in [0, 1] that each answer is right, by the judge; None reads
            the `confidence` of the verdicts.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Numbers over `n` items in at most ten bins of twenty items or more.

    Raises:
        InputError: A confidence lies outside [0, 1].

    Source: Brier 1950; Naeini, Cooper & Hauskrecht 2015 (AAAI), with bins of equal size.
    """
    items, failed = _with_confidence(answers, labels, confidences, groups)
    return _calibration(items, failed, groups is not None, confidence)


_Item = tuple[float, float, int]
"""Confidence, whether the answer is right (1 or 0), and group."""


def _with_confidence(
    answers: Judgments, labels: RightLabels, confidences: Confidences, groups: GroupKeys
) -> tuple[list[_Item], Counter[str]]:
    """Return the items that have all that is needed, least confident first."""
    judgments, truths = as_list(answers), as_list(labels)
    chances, clusters = confidences_of(judgments, confidences), as_list(groups)
    same_length(answers=judgments, labels=truths, confidences=chances, groups=clusters)
    values = [value_of(judgment) for judgment in judgments]
    cases = cases_of([bare(truths, NO_LABEL), values, bare(chances, NO_CONFIDENCE)])
    right = [float(answer == label) for label, answer, _ in zip(*cases.columns, strict=True)]
    sure = as_floats(cases.columns[2])
    if outside := [float(chance) for chance in sure if not 0 <= chance <= 1]:
        raise InputError(f"a confidence must lie in [0, 1], got {outside[0]!r}")
    items = zip(sure.tolist(), right, cases.clusters(clusters).tolist(), strict=True)
    return sorted(items, key=lambda item: item[0]), cases.failed


def _calibration(
    items: list[_Item], failed: Counter[str], clustered: bool, confidence: float
) -> Calibration:
    if not items:
        none = Result.undefined("no answer has a confidence", n_failed=failed)
        return Calibration(none, none, none, [], 0, dict(failed))
    count = max(1, min(BINS, len(items) // LEAST_IN_BIN))
    ends = [0, *_ends([chance for chance, *_ in items], count)]
    bins = []
    for low, high in pairwise(ends):
        part = items[low:high]
        own = [key for *_, key in part] if clustered else None
        right = rate([hit for _, hit, _ in part], groups=own, confidence=confidence)
        bins.append(Bin(fmean(chance for chance, *_ in part), right))
    gap = sum(each.agreement.n * abs(each.confidence - each.agreement) for each in bins)
    chances, hits, keys = zip(*items, strict=True)
    options = IntervalOptions(groups=keys if clustered else None, confidence=confidence)
    squares = [(chance - hit) ** 2 for chance, hit in zip(chances, hits, strict=True)]
    why = "above 0 by chance alone"
    ece = Result(gap / len(items), n=len(items), n_failed=failed, no_interval=why)
    brier = mean(squares, **options).replace(n_failed=failed)
    ranked = auc(chances, hits, **options).replace(n_failed=failed)
    return Calibration(ece, brier, ranked, bins, len(items), dict(failed))


def _ends(chances: Sequence[float], count: int) -> list[int]:
    """Return where bins of about one size end, equal confidences together."""
    ends: list[int] = []
    for part in range(1, count + 1):
        end = round(len(chances) * part / count)
        while end < len(chances) and chances[end] == chances[end - 1]:
            end += 1
        if not ends or end > ends[-1]:
            ends.append(end)
    return ends


def abstention_curve(
    answers: Judgments,
    labels: RightLabels,
    confidences: Confidences = None,
    shares: Sequence[float] = (1.0, 0.75, 0.5, 0.25),
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> list[tuple[float, Result]]:
    """Return how often a judge is right on its surest answers.

    Args:
        answers: As for `confidence_calibration`.
        labels: As for `confidence_calibration`.
        confidences: As for `confidence_calibration`.
        shares: Which shares of the items to take, surest first. Items of one confidence are
            taken together, so that more may be taken than is asked for.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Returns:
        The share that was taken and the agreement on it, for each share.

    Source: risk–coverage curves, El-Yaniv & Wiener 2010 (JMLR 11).
    """
    items, _ = _with_confidence(answers, labels, confidences, groups)
    curve = []
    for share in shares if items else ():
        least = items[-max(1, math.ceil(share * len(items)))][0]
        part = [item for item in items if item[0] >= least]
        keys = None if groups is None else [key for *_, key in part]
        result = rate([hit for _, hit, _ in part], groups=keys, confidence=confidence)
        curve.append((len(part) / len(items), result))
    return curve
