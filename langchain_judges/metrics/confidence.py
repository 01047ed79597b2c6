"""Confidence of verdicts: whether they are right as often as they say, and which to take."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import scipy
from typing_extensions import Unpack

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import inputs, intervals, result
from langchain_judges.metrics.detection import auc
from langchain_judges.metrics.inputs import Confidences, IntervalOptions, Judgments, RightLabels
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
    agreement: result.Result


@dataclass(frozen=True)
class Calibration(result.Findings):
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

    ece: result.Result
    ece_by_chance: float
    brier: result.Result
    auc: result.Result
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
        none = result.Result.undefined("no answer has a confidence", n_failed=failed)
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
    ece = result.Result(gap / len(items), n=len(items), n_failed=failed, no_interval=why)
    brier = intervals.mean(squares, **options).replace(n_failed=failed)
    ranked = auc(chances, hits, **options).replace(n_failed=failed)
    by_chance = _ece_by_chance(np.asarray(chances), ends)
    return Calibration(ece, by_chance, brier, ranked, bins, len(items), dict(failed))


# Confidence, whether the answer is right (1 or 0), and group.
_Item = tuple[float, float, int]


def _with_confidence(
    answers: Judgments, labels: RightLabels, confidences: Confidences, options: IntervalOptions
) -> tuple[list[_Item], Counter[str]]:
    """The items that have all that is needed, least confident first."""
    judgments, truths = inputs.as_list(answers), inputs.as_list(labels)
    chances = inputs.confidences_of(judgments, confidences)
    clusters = inputs.as_list(options.get("groups"))
    inputs.same_length(answers=judgments, labels=truths, confidences=chances, groups=clusters)
    values = [inputs.value_of(judgment) for judgment in judgments]
    known = inputs.bare(chances, inputs.NO_CONFIDENCE)
    cases = inputs.cases_of([inputs.bare(truths, inputs.NO_LABEL), values, known])
    right = [float(answer == label) for label, answer, _ in zip(*cases.columns, strict=True)]
    sure = inputs.as_floats(cases.columns[2])
    if outside := [float(chance) for chance in sure if not 0 <= chance <= 1]:
        raise InputError(f"a confidence must lie in [0, 1], got {outside[0]!r}")
    items = zip(sure.tolist(), right, cases.clusters(clusters).tolist(), strict=True)
    return sorted(items, key=lambda item: item[0]), cases.failed


def _ece_by_chance(chances: inputs.Floats, ends: Sequence[int]) -> float:
    """The 95th percentile of `ece` where each answer is right as often as its confidence."""
    hits = np.random.default_rng(0).random((400, len(chances))) < chances
    gaps = np.add.reduceat(hits - chances, ends[:-1], axis=1)
    return float(np.quantile(np.abs(gaps).sum(axis=1) / len(chances), 0.95))


def _ends(items: Sequence[_Item], count: int) -> list[int]:
    """Ends of bins of about the same size; equal confidences share a bin."""
    chances = [chance for chance, *_ in items]
    cuts = [chances[round(len(chances) * part / count) - 1] for part in range(1, count + 1)]
    return sorted({*np.searchsorted(chances, cuts, "right").tolist()})


def abstention_curve(
    answers: Judgments,
    labels: RightLabels,
    confidences: Confidences = None,
    shares: Sequence[float] = (1.0, 0.75, 0.5, 0.25),
    **options: Unpack[IntervalOptions],
) -> list[tuple[float, result.Result]]:
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


def _right(part: Sequence[_Item], options: IntervalOptions) -> result.Result:
    """Share of the answers that are right."""
    if options.get("groups") is not None:
        options = {**options, "groups": [key for *_, key in part]}
    return intervals.rate([hit for _, hit, _ in part], **options)


LEAST_ITEMS = 30


def _upper_bounds(errors: inputs.Ints, sizes: inputs.Ints, delta: float) -> inputs.Floats:
    """The largest error rates compatible with this many errors, by Clopper and Pearson."""
    bounds = scipy.special.betaincinv(errors + 1, np.maximum(sizes - errors, 1), 1 - delta)
    return np.where(errors < sizes, bounds, 1.0)


@dataclass(frozen=True)
class Threshold(result.Findings):
    """From which confidence on a judge's verdicts are taken.

    Attributes:
        value: Take verdicts of at least this confidence; infinite: take none.
        bound: The upper bound of the disagreement at that confidence, at most α; None for none.
        coverage: The share of the calibration items whose verdict is taken.
        agreement: Agreement of the accepted verdicts with people, on the calibration items.
        n: Labelled calibration items.
        needed: Where nothing is taken: with how many labels every verdict would be taken in
            about half of all samples, if the judge stays as often wrong; None: with no number.
    """

    value: float
    bound: float | None
    coverage: result.Result
    agreement: result.Result
    n: int
    n_failed: dict[str, int]
    needed: int | None = None


def selective_threshold(
    preferences: Judgments,
    confidences: Confidences,
    labels: RightLabels,
    *,
    alpha: float = 0.1,
    delta: float = 0.1,
) -> Threshold:
    """Find the lowest confidence from which on a judge disagrees in at most α of the items.

    The promise holds for rows from the same source as these.

    The thresholds are walked downwards, and a walk stops before the first whose bound exceeds
    α. It begins at all the items, at half, a quarter and a tenth of them, and at the fewest
    that can pass, and these walks share δ; so P(disagreement ≤ α) ≥ 1 − δ holds for what any
    of them reaches. A single walk from the surest items stops at one early mistake, and hardly
    ever comes to a judge that is good everywhere and no surer where it is right.

    Args:
        preferences: The judge's answer to each calibration item, or verdicts or rows.
        confidences: Its confidence in each answer; None reads it from the verdicts. Items
            without an answer or a confidence are never taken, and count against coverage.
        labels: People's answer to each item; None leaves it out.
        alpha: The disagreement that is allowed.
        delta: The chance that the guarantee fails.

    Returns:
        The threshold. If none meets α it is infinite, so that the judge abstains from
        everything rather than keep its surest verdicts without a guarantee; `needed` says how
        many labels would do.

    Source: Jung, Brahman & Choi 2024 (arXiv 2407.18370), fixed-sequence testing; several
    starts after Angelopoulos et al. 2021 (Learn then Test, arXiv 2110.01052).
    """
    intervals.check_shares(alpha=alpha, delta=delta)
    rows, failed = _usable(preferences, confidences, labels)
    usable = sorted(((c, right) for c, right in rows if c is not None), key=lambda r: -r[0])
    levels = np.asarray([c for c, _ in usable])
    best, bound = _furthest(levels, np.cumsum([not right for _, right in usable]), alpha, delta)
    wrong = sum(not right for _, right in rows) / max(1, len(rows))
    needed = None if best else _labels_for(wrong, alpha, delta)
    value = float(levels[best - 1]) if best else math.inf
    hits = [float(right) for _, right in usable[:best]]
    agreement = intervals.rate(hits) if hits else result.Result.undefined("nothing is taken")
    coverage = intervals.rate([float(c is not None and c >= value) for c, _ in rows])
    return Threshold(value, bound, coverage, agreement, len(rows), dict(failed), needed)


def _labels_for(wrong: float, alpha: float, delta: float) -> int | None:
    """Labels that would suffice if the judge is wrong as often as here; None: no number."""
    if wrong >= alpha:
        return None
    steps = round(math.log(intervals.MOST_LABELS / LEAST_ITEMS) / math.log(1.05))
    sizes = np.ceil(LEAST_ITEMS * 1.05 ** np.arange(steps)).astype(np.int64)
    bounds = _upper_bounds(np.rint(wrong * sizes).astype(np.int64), sizes, WHOLE * delta)
    enough = sizes[bounds <= alpha]
    return int(enough[0]) if len(enough) else None


# Shares of the items from which the walks begin.
STARTS = (1.0, 0.5, 0.25, 0.1, 0.0)
# How much of δ the walk has that begins at all items.
WHOLE = 0.5


def _furthest(
    levels: inputs.Floats, errors: inputs.Ints, alpha: float, delta: float
) -> tuple[int, float | None]:
    """Most items that may be taken, and the bound of their disagreement."""
    last = np.append(levels[1:] < levels[:-1], True)[: len(levels)]
    ends = np.flatnonzero(last & (np.arange(1, len(levels) + 1) >= LEAST_ITEMS)) + 1
    if not len(ends):
        return 0, None
    # A walk may begin at any set that the labels do not choose.
    fewest = math.log(delta * (1 - WHOLE) / len(STARTS)) / math.log(1 - alpha)
    sizes = [share * ends[-1] for share in STARTS[:-1]] + [min(fewest, ends[-1])]
    starts = list(dict.fromkeys(np.searchsorted(ends, sizes).tolist()))
    rest = len(starts) - 1
    best, bound = 0, None
    for number, start in enumerate(starts):
        share = 1.0 if not rest else WHOLE if number == 0 else (1 - WHOLE) / rest
        walk = ends[start:]
        bounds = _upper_bounds(errors[walk - 1], walk, share * delta)
        passed = int(np.argmax(np.append(bounds > alpha, True)))
        if passed and walk[passed - 1] > best:
            best, bound = int(walk[passed - 1]), float(bounds[passed - 1])
    return best, bound


def _usable(
    preferences: Judgments, confidences: Confidences, labels: RightLabels
) -> tuple[list[tuple[float | None, bool]], Counter[str]]:
    """(confidence or None, right) of the labelled items, and why those have None."""
    answers, truths = inputs.as_list(preferences), inputs.as_list(labels)
    chances = inputs.confidences_of(answers, confidences)
    inputs.same_length(preferences=answers, confidences=chances, labels=truths)
    rows: list[tuple[float | None, bool]] = []
    failed = Counter[str]()
    for answer, chance, label in zip(answers, chances, truths, strict=True):
        value, reason = inputs.value_of(answer)
        if inputs.is_missing(label):
            failed[inputs.NO_LABEL] += 1
        elif value is None or inputs.is_missing(chance):
            failed[reason if value is None else inputs.NO_CONFIDENCE] += 1
            rows.append((None, bool(value == label)))
        else:
            rows.append((float(chance), bool(value == label)))
    return rows, failed


@dataclass(frozen=True)
class CascadeFindings(result.Findings):
    """Judges from the cheapest to the dearest, each with its threshold.

    Attributes:
        coverage: The share of the calibration items that some judge decides.
        agreement: Agreement of the deciding judge with people.
        shares: The share of the items that each judge decides.
    """

    thresholds: list[Threshold]
    coverage: result.Result
    agreement: result.Result
    shares: list[float]


def selective_cascade(
    judges: Sequence[tuple[Judgments, Confidences]],
    labels: RightLabels,
    *,
    alpha: float = 0.1,
    delta: float = 0.1,
) -> CascadeFindings:
    """Find thresholds for a cascade: the cheap judge if it is sure, else the next, else none.

    Not on rows that also chose the judges or their prompts.

    Args:
        judges: (answers, confidences) of each judge on the same calibration items, the
            cheapest first; confidences None reads them from the verdicts.
        labels: People's answer to each item.
        alpha: The disagreement that is allowed, for each judge on what it decides and so
            for all together.
        delta: The chance that the guarantee fails, shared evenly by the judges that say how
            sure they are.

    Returns:
        The thresholds; each judge is calibrated on the items that those before it leave.

    Source: Jung, Brahman & Choi 2024 (arXiv 2407.18370); sharing δ is ours.
    """
    if not judges:
        raise OptionError("`judges` must name at least one judge")
    truths = inputs.as_list(labels)
    columns = [(inputs.as_list(answers), inputs.as_list(chances)) for answers, chances in judges]
    rest = [index for index, label in enumerate(truths) if not inputs.is_missing(label)]
    total, thresholds, shares = len(rest), [], []
    hits: list[float] = []
    sure = [inputs.confidences_of(answers, chances) for answers, chances in columns]
    able = max(1, sum(any(not inputs.is_missing(each) for each in chances) for chances in sure))
    for answers, chances in columns:
        part = inputs.take(answers, rest), inputs.take(chances, rest), inputs.take(truths, rest)
        gate = selective_threshold(*part, alpha=alpha, delta=delta / able)
        rows, _ = _usable(*part)
        left = []
        for index, (chance, right) in zip(rest, rows, strict=True):
            if chance is not None and chance >= gate.value:
                hits.append(float(right))
            else:
                left.append(index)
        shares.append((len(rest) - len(left)) / total if total else 0.0)
        thresholds.append(gate)
        rest = left
    agreement = intervals.rate(hits) if hits else result.Result.undefined("nothing is taken")
    coverage = intervals.rate([1.0] * len(hits) + [0.0] * (total - len(hits)))
    return CascadeFindings(thresholds, coverage, agreement, shares)
