"""When a judge may decide alone: thresholds of its confidence, and cascades of judges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics.few_labels import MOST_LABELS
from langchain_judges.metrics.inputs import (
    NO_CONFIDENCE,
    NO_LABEL,
    Confidences,
    Floats,
    Ints,
    Judgments,
    RightLabels,
    as_list,
    confidences_of,
    is_missing,
    same_length,
    take,
    value_of,
)
from langchain_judges.metrics.intervals import check_shares, rate
from langchain_judges.metrics.result import Findings, Result

LEAST_ITEMS = 30


def _upper_bounds(errors: Ints, sizes: Ints, delta: float) -> Floats:
    """The largest error rates compatible with this many errors, by Clopper and Pearson."""
    bounds = scipy.special.betaincinv(errors + 1, np.maximum(sizes - errors, 1), 1 - delta)
    return np.where(errors < sizes, bounds, 1.0)


@dataclass(frozen=True)
class Threshold(Findings):
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
    coverage: Result
    agreement: Result
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
    check_shares(alpha=alpha, delta=delta)
    rows, failed = _usable(preferences, confidences, labels)
    usable = sorted(((c, right) for c, right in rows if c is not None), key=lambda r: -r[0])
    levels = np.asarray([c for c, _ in usable])
    errors = np.cumsum([not right for _, right in usable])
    best, bound = _furthest(levels, errors, alpha, delta)
    wrong = sum(not right for _, right in rows) / max(1, len(rows))
    needed = None if best else _labels_for(wrong, alpha, delta)
    value = float(levels[best - 1]) if best else math.inf
    hits = [float(right) for _, right in usable[:best]]
    agreement = rate(hits) if hits else Result.undefined("nothing is taken")
    coverage = rate([float(c is not None and c >= value) for c, _ in rows])
    return Threshold(value, bound, coverage, agreement, len(rows), dict(failed), needed)


def _labels_for(wrong: float, alpha: float, delta: float) -> int | None:
    """Labels that would suffice if the judge is wrong as often as here; None: no number."""
    if wrong >= alpha:
        return None
    steps = round(math.log(MOST_LABELS / LEAST_ITEMS) / math.log(1.05))
    sizes = np.ceil(LEAST_ITEMS * 1.05 ** np.arange(steps)).astype(np.int64)
    bounds = _upper_bounds(np.rint(wrong * sizes).astype(np.int64), sizes, WHOLE * delta)
    enough = sizes[bounds <= alpha]
    return int(enough[0]) if len(enough) else None


# Shares of the items from which the walks begin.
STARTS = (1.0, 0.5, 0.25, 0.1, 0.0)
# How much of δ the walk has that begins at all items.
WHOLE = 0.5


def _furthest(
    levels: Floats, errors: Ints, alpha: float, delta: float
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
    answers, truths = as_list(preferences), as_list(labels)
    chances = confidences_of(answers, confidences)
    same_length(preferences=answers, confidences=chances, labels=truths)
    rows: list[tuple[float | None, bool]] = []
    failed = Counter[str]()
    for answer, chance, label in zip(answers, chances, truths, strict=True):
        value, reason = value_of(answer)
        if is_missing(label):
            failed[NO_LABEL] += 1
        elif value is None or is_missing(chance):
            failed[reason if value is None else NO_CONFIDENCE] += 1
            rows.append((None, bool(value == label)))
        else:
            rows.append((float(chance), bool(value == label)))
    return rows, failed


@dataclass(frozen=True)
class CascadeFindings(Findings):
    """Judges from the cheapest to the dearest, each with its threshold.

    Attributes:
        coverage: The share of the calibration items that some judge decides.
        agreement: Agreement of the deciding judge with people.
        shares: The share of the items that each judge decides.
    """

    thresholds: list[Threshold]
    coverage: Result
    agreement: Result
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
    truths = as_list(labels)
    columns = [(as_list(answers), as_list(chances)) for answers, chances in judges]
    rest = [index for index, label in enumerate(truths) if not is_missing(label)]
    total, thresholds, shares = len(rest), [], []
    hits: list[float] = []
    sure = [confidences_of(answers, chances) for answers, chances in columns]
    able = max(1, sum(any(not is_missing(each) for each in chances) for chances in sure))
    for answers, chances in columns:
        part = take(answers, rest), take(chances, rest), take(truths, rest)
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
    agreement = rate(hits) if hits else Result.undefined("nothing is taken")
    coverage = rate([1.0] * len(hits) + [0.0] * (total - len(hits)))
    return CascadeFindings(thresholds, coverage, agreement, shares)
