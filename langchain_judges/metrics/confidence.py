"""Confidence of verdicts, and whether they are right as often as they say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Unpack

from langchain_judges.errors import InputError
from langchain_judges.metrics.detection import auc
from langchain_judges.metrics.inputs import (
    NO_CONFIDENCE,
    NO_LABEL,
    Confidences,
    Floats,
    IntervalOptions,
    Judgments,
    RightLabels,
    as_floats,
    as_list,
    bare,
    cases_of,
    confidences_of,
    same_length,
    value_of,
)
from langchain_judges.metrics.intervals import mean, rate
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import decision


def certainty(verdict: Mapping[str, object], *, calibrated: bool = False) -> float | None:
    """Certainty of a verdict, from 0 to 1; None where nothing measures it.

    Its confidence, where the method gives one: the probability of the label, or the agreement
    of samples or of a jury. Otherwise 0 where its two orders disagree. Where they agree: 1, but
    for a judge with `scores` the lead, |2 · score − 1|, and that only if `calibrated`: it is no
    probability, and means something only beside thresholds found on labelled rows. A label from
    one order says nothing about certainty.

    Args:
        verdict: A verdict, or a row that holds one.
        calibrated: Whether the lead of scores counts.

    Returns:
        A number in [0, 1]; None also where the row was not judged.

    >>> certainty({"preference": "A", "confidence": None, "flipped": False, "score": 1.0})
    1.0
    """
    own: Any = verdict.get("verdict", verdict) or {}
    if decision(own) is None:
        return None
    if own.get("confidence") is not None:
        return float(own["confidence"])
    if own.get("flipped"):
        return 0.0
    if own.get("scores"):
        return abs(2 * float(own["score"]) - 1) if calibrated else None
    return 1.0 if own.get("flipped") is False else None


class Bin(NamedTuple):
    """Answers of similar confidence.

    Attributes:
        confidence: Their mean confidence.
        agreement: How often they are right.
    """

    confidence: float
    agreement: Result


@dataclass(frozen=True)
class Calibration(Findings):
    """Whether a judge is right as often as it says it is.

    Attributes:
        ece: Mean distance between confidence and agreement over the bins, weighted by their
            items. Chance alone raises it, so it is above 0 even for a well-calibrated judge.
        ece_by_chance: The `ece` that 95 in 100 perfectly calibrated judges would stay below on
            these items; NaN without items.
        brier: Mean squared distance of the confidence from 1 where right and 0 where wrong.
        auc: How often a right answer has more confidence than a wrong one; ½ is chance.
        bins: Each with about the same number of items, least confident first.
        n: Items with an answer, a label and a confidence.
        n_failed: The other items, by reason.
    """

    ece: Result
    ece_by_chance: float
    brier: Result
    auc: Result
    bins: list[Bin]
    n: int
    n_failed: dict[str, int]


BINS = 10
LEAST_IN_BIN = 20


def confidence_calibration(
    answers: Judgments,
    labels: RightLabels,
    confidences: Confidences = None,
    **options: Unpack[IntervalOptions],
) -> Calibration:
    """Compare a judge's confidence with how often it is right.

    With fewer than a few hundred items, compare `ece` with `ece_by_chance`.

    Args:
        answers: The judge's answer to each item, or verdicts or rows.
        labels: People's answer to each item; items without one, or without a confidence, are
            left out and counted.
        confidences: The chance in [0, 1] that each answer is right, by the judge; None reads
            the `confidence` of the verdicts.
        options: `groups` and `confidence` of the intervals, as for `rate`.

    Returns:
        Numbers over `n` items in at most ten bins of twenty items or more.

    Raises:
        InputError: A confidence lies outside [0, 1].

    Source: Brier 1950; Naeini, Cooper & Hauskrecht 2015 (AAAI), with bins of equal size.
    """
    items, failed = _with_confidence(answers, labels, confidences, options)
    if not items:
        none = Result.undefined("no answer has a confidence", n_failed=failed)
        return Calibration(none, math.nan, none, none, [], 0, dict(failed))
    ends = [0, *_ends(items, max(1, min(BINS, len(items) // LEAST_IN_BIN)))]
    parts = [items[low:high] for low, high in pairwise(ends)]
    bins = [Bin(fmean(i[0] for i in part), _right(part, options)) for part in parts]
    gap = sum(each.agreement.n * abs(each.confidence - each.agreement) for each in bins)
    chances, hits, keys = zip(*items, strict=True)
    if options.get("groups") is not None:
        options["groups"] = keys
    squares = [(chance - hit) ** 2 for chance, hit in zip(chances, hits, strict=True)]
    why = "above 0 by chance alone"
    ece = Result(gap / len(items), n=len(items), n_failed=failed, no_interval=why)
    brier = mean(squares, **options).replace(n_failed=failed)
    ranked = auc(chances, hits, **options).replace(n_failed=failed)
    by_chance = _ece_by_chance(np.asarray(chances), ends)
    return Calibration(ece, by_chance, brier, ranked, bins, len(items), dict(failed))


# Confidence, whether the answer is right (1 or 0), and group.
_Item = tuple[float, float, int]


def _with_confidence(
    answers: Judgments, labels: RightLabels, confidences: Confidences, options: IntervalOptions
) -> tuple[list[_Item], Counter[str]]:
    """The items that have all that is needed, least confident first."""
    judgments, truths = as_list(answers), as_list(labels)
    chances, clusters = confidences_of(judgments, confidences), as_list(options.get("groups"))
    same_length(answers=judgments, labels=truths, confidences=chances, groups=clusters)
    values = [value_of(judgment) for judgment in judgments]
    cases = cases_of([bare(truths, NO_LABEL), values, bare(chances, NO_CONFIDENCE)])
    right = [float(answer == label) for label, answer, _ in zip(*cases.columns, strict=True)]
    sure = as_floats(cases.columns[2])
    if outside := [float(chance) for chance in sure if not 0 <= chance <= 1]:
        raise InputError(f"a confidence must lie in [0, 1], got {outside[0]!r}")
    items = zip(sure.tolist(), right, cases.clusters(clusters).tolist(), strict=True)
    return sorted(items, key=lambda item: item[0]), cases.failed


def _ece_by_chance(chances: Floats, ends: Sequence[int]) -> float:
    """The 95th percentile of `ece` where each answer is right as often as its confidence."""
    hits = np.random.default_rng(0).random((400, len(chances))) < chances
    gaps = np.add.reduceat(hits - chances, ends[:-1], axis=1)
    return float(np.quantile(np.abs(gaps).sum(axis=1) / len(chances), 0.95))


def _ends(items: Sequence[_Item], count: int) -> list[int]:
    """Ends of bins of about the same size; equal confidences share a bin."""
    chances, ends = [chance for chance, *_ in items], list[int]()
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
    **options: Unpack[IntervalOptions],
) -> list[tuple[float, Result]]:
    """Accuracy of a judge on its surest answers.

    For a look only: a threshold chosen from it looks too good on these rows.
    `selective_threshold` gives a guarantee.

    Args:
        answers: As for `confidence_calibration`.
        labels: As for `confidence_calibration`.
        confidences: As for `confidence_calibration`.
        shares: Which shares of the items to take, surest first. Items of one confidence are
            taken together, so that more may be taken than is asked for.
        options: `groups` and `confidence` of the intervals, as for `rate`.

    Returns:
        The share that was taken and the agreement on it, for each of `shares`; empty if no
        item has all that is needed.

    Source: risk–coverage curves, El-Yaniv & Wiener 2010 (JMLR 11).
    """
    items, _ = _with_confidence(answers, labels, confidences, options)
    curve = []
    for share in shares if items else ():
        least = items[-max(1, math.ceil(share * len(items)))][0]
        part = [item for item in items if item[0] >= least]
        curve.append((len(part) / len(items), _right(part, options)))
    return curve


def _right(part: Sequence[_Item], options: IntervalOptions) -> Result:
    """Share of the answers that are right."""
    if options.get("groups") is not None:
        options = {**options, "groups": [key for *_, key in part]}
    return rate([hit for _, hit, _ in part], **options)
