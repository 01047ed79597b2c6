"""Regressions of verdicts on features of the pair: what its length and style are worth.

A text that is longer than its rival is often better too. Where a label is wrong, its length
still tells which is better, so that a judge without any bias who sees more than the label says
seems to follow length. `noisy_slope_interval` allows for that: the better text is unknown, and
the label is right with a given chance, whatever the length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics.inputs import (
    POINTS,
    Cases,
    Floats,
    GroupKeys,
    IntervalOptions,
    Ints,
    Judgments,
    RightLabels,
    as_floats,
    as_list,
    bare,
    cases_of,
    is_missing,
    match,
    points_of,
    same_length,
    take,
    value_of,
)
from langchain_judges.metrics.intervals import LEAST_GROUPS, check_confidence, student_quantile
from langchain_judges.metrics.result import Interval, Result


def in_deviations(values: Sequence[float]) -> list[float]:
    """Return numbers in units of their standard deviation."""
    spread = float(np.std(values)) if len(values) else 0.0
    return [value / spread if spread else 0.0 for value in values]


STEP = 1e-4


def _log_likelihood(
    beta: Floats, points: Floats, lead: Floats, label: Floats, a: float
) -> tuple[Floats, Floats]:
    """Return the log-likelihood of each item and its slopes (items, 5).

    β is (θ, φ, γ), and (α0, α1) of quality: the better text is one or the other, and each of
    the two cases counts as likely as it is.
    """
    theta, phi, gamma, base, slope = beta
    parts, slopes = [], []
    for better in (1.0, -1.0):
        odds = theta + phi * lead + gamma * better
        ahead = better * (base + slope * lead)
        answer = -points * np.logaddexp(0.0, -odds) - (1 - points) * np.logaddexp(0.0, odds)
        right = np.where(label == 0, 0.5, np.where(label == better, a, 1 - a))
        parts.append(answer - np.logaddexp(0.0, -ahead) + np.log(np.maximum(right, 1e-12)))
        missed = points - scipy.special.expit(odds)
        doubt = better * scipy.special.expit(-ahead)
        columns = [missed, missed * lead, missed * better, doubt, doubt * lead]
        slopes.append(np.stack(columns, axis=1))
    total = np.logaddexp(*parts)
    shares = [np.exp(part - total)[:, None] for part in parts]
    return total, shares[0] * slopes[0] + shares[1] * slopes[1]


def noisy_slope_interval(
    points: Floats,
    lead: Floats,
    label: Floats,
    label_accuracy: float,
    *,
    groups: Ints,
    confidence: float,
) -> Interval | None:
    """Return the interval of φ in logit P(A) = θ + φ · lead + γ · quality.

    Args:
        points: How far the judge prefers A, in [0, 1].
        lead: The feature's lead of A.
        label: What people say: +1 for A, −1 for B, 0 for a tie, which says nothing.
        label_accuracy: How often a label names the better text, above ½.
        groups: The number of each item's group.
        confidence: The level of the interval, robust to groups.

    Returns:
        The interval, None where the likelihood has no clear maximum.

    Source: misclassified covariates by maximum likelihood as in Carroll et al. 2006,
    Measurement Error in Nonlinear Models, chapter 15.
    """
    items = (points, lead, label, label_accuracy)
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])

    def loss(beta: Floats) -> tuple[float, Floats]:
        total, slopes = _log_likelihood(beta, *items)
        return 1e-6 * beta @ beta - total.mean(), 2e-6 * beta - slopes.mean(axis=0)

    beta = np.asarray(scipy.optimize.minimize(loss, start, jac=True).x)
    if not np.isfinite(beta).all() or np.abs(beta[:2]).max() > 20:
        return None

    def scores(at: Floats) -> Floats:
        return _log_likelihood(at, *items)[1]

    steps = STEP * np.eye(len(beta))
    bend = np.stack(
        [(scores(beta + s).sum(0) - scores(beta - s).sum(0)) / (2 * STEP) for s in steps]
    )
    # A quality that the judge follows without fail has no curvature left; φ still has.
    inverse = np.linalg.pinv(-(bend + bend.T) / 2 + 1e-6 * np.eye(len(beta)))
    units = int(groups.max()) + 1
    summed = np.zeros((units, len(beta)))
    np.add.at(summed, groups, scores(beta))
    variance = float((inverse @ (summed.T @ summed) @ inverse)[1, 1]) * units / (units - 1)
    if not variance > 0:
        return None
    half = math.sqrt(variance) * student_quantile(confidence, units - 1)
    return Interval.around(float(beta[1]), half)


def preference_slopes(
    preferences: Judgments,
    features: Mapping[str, Iterable[float | None]],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> dict[str, Result]:
    """Regress the judge's preference on features of the pair: logit P(A) = θ + Σ φ_k x_k.

    Args:
        preferences: `A`, `B` or `tie` (half a win) for each item, a number in [0, 1] that
            says how far A is preferred, or verdicts or rows; a failed judgment is left out
            and counted.
        features: By name one number for each item, positive where it should speak for A:
            +1 where A stood first and −1 where B did, a difference of lengths, of human
            scores. Items that lack one are left out as `no_feature`.
        groups: The cluster of each item; errors are then robust to clusters, else to
            unequal variance.
        confidence: The level of the intervals, by Student's t; for an interval a feature
            needs five of the rarer verdict, and there must be five groups, of which three
            hold it; the groups that hold it are the degrees of freedom, and one more.

    Returns:
        `intercept` and the slope of each feature, in log-odds per unit of the feature; NaN
        where the features tell the verdicts apart without error, for no slope is then
        finite.

    Source: McCullagh & Nelder 1989; errors after MacKinnon & White 1985 (HC1) and, of
    clusters, as `statsmodels.api.GLM` has them.
    """
    check_confidence(confidence)
    answers = as_list(preferences)
    columns = {name: as_list(values) for name, values in features.items()}
    same_length(preferences=answers, **columns)
    values = [value_of(answer) for answer in answers]
    cases = cases_of([*(bare(each, "no_feature") for each in columns.values()), values])
    names = ["intercept", *columns]
    *leads, preferred = cases.columns
    y = np.asarray([points_of(value) for value in preferred])
    x = np.stack([np.ones(cases.n), *map(as_floats, leads)], axis=1)
    clusters = None if groups is None else cases.clusters(groups)
    slopes, why = _fit(y, x, clusters)
    if slopes is None:
        return dict.fromkeys(names, cases.undefined(why))
    units = len(y) if clusters is None else int(clusters.max()) + 1
    freedom = units - len(names) if clusters is None else _telling_groups(y, clusters) - 1
    too_few = _too_few(y, units, freedom, len(names) - 1)
    reach = student_quantile(confidence, max(1, freedom))
    return {
        name: Result(
            slope,
            n=cases.n,
            n_failed=cases.failed,
            se=se,
            interval=None if too_few else Interval.around(slope, reach * se),
            no_interval=too_few,
        )
        for name, (slope, se) in zip(names, slopes, strict=True)
    }


def _telling_groups(y: Floats, clusters: Ints) -> int:
    """Return how many groups hold the rarer verdict: only these tell how sure a slope is."""
    rarer = y if y.sum() <= (1 - y).sum() else 1 - y
    return len(np.unique(clusters[rarer > 0]))


LEAST_EVENTS = 5
LEAST_FREEDOM = 2


def _too_few(y: Floats, units: int, freedom: int, features: int) -> str | None:
    """Say why slopes have no interval: each feature needs a few of the rarer verdict."""
    if min(y.sum(), (1 - y).sum()) < LEAST_EVENTS * max(1, features):
        return "too few of a verdict"
    too_few = units < LEAST_GROUPS or freedom < LEAST_FREEDOM
    return "too few groups" if too_few else None


_SEPARATED = "the features tell the verdicts apart without error"


def _fit(
    y: Floats, x: Floats, clusters: Ints | None
) -> tuple[list[tuple[float, float]] | None, str]:
    """Return (coefficient, standard error) of each column, or None and why.

    Newton's steps to the maximum, which a logistic regression has one of. Errors are HC1's, or
    those of clusters. Written out, for loading statsmodels takes a second.
    """
    n, columns = x.shape
    if n <= columns or np.linalg.matrix_rank(x) < columns:
        return None, "too few items, or features that say the same"
    if np.ptp(y) == 0:
        return None, "all verdicts are the same"
    beta = np.zeros(columns)
    for _ in range(50):
        p = scipy.special.expit(x @ beta)
        information = (x * (p * (1 - p))[:, None]).T @ x
        if np.linalg.cond(information) > 1e12:
            return None, _SEPARATED
        step = np.linalg.solve(information, x.T @ (y - p))
        beta = beta + step
        if np.abs(step).max() < 1e-9:
            break
    else:
        return None, _SEPARATED
    if (np.abs(beta * x.std(axis=0))[1:] > 25).any():
        return None, _SEPARATED
    scores, wider = x * (y - p)[:, None], n / (n - columns)
    if clusters is not None:
        units = int(clusters.max()) + 1
        scores = np.stack([np.bincount(clusters, column) for column in scores.T], axis=1)
        wider = units / max(1, units - 1) * (n - 1) / (n - columns)
    inverse = np.linalg.inv(information)
    errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse) * wider)
    return list(zip(beta.tolist(), errors.tolist(), strict=True)), ""


def _quality(labels: RightLabels) -> list[float | None]:
    """Return how far people prefer A: their numbers as they are, A +1, tie 0, B −1."""
    return [
        None
        if is_missing(label)
        else 2 * POINTS[label] - 1
        if label in POINTS
        else float(label)
        for label in as_list(labels)
    ]


def length_slope(  # noqa: PLR0913 - two texts, what people say, and the interval
    preferences: Judgments,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    labels: RightLabels | None = None,
    *,
    label_accuracy: float | tuple[float, float] = (0.8, 1.0),
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return φ: how the odds of preferring A grow with A's lead in length.

    Not with a few dozen pairs, nor where lengths hardly differ.

    logit P(A) = θ + φ · (length A − length B) / sd + γ · quality.

    Args:
        preferences: As for `preference_slopes`.
        lengths_a: The length of text A in any unit, such as characters.
        lengths_b: The length of text B in the same unit.
        labels: What people say: `A`, `B`, `tie`, or a number that says how far A is better.
            With it the slope is what length does beyond quality.
        label_accuracy: How often a label `A` or `B` names the better text: 1 for an objective
            key, and where it is not known, the least and the most it may be. Numbers other
            than −1, 0 and 1 are taken as they are.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.

    Returns:
        Log-odds per standard deviation of the difference in length; 0 is no bias. The number
        takes labels as they are; the interval holds the slope for every accuracy that labels
        may have, so that a judge is not accused of what wrong labels explain.

    Source: the length term of Dubois et al. 2024 (arXiv 2404.04475), linear here; for wrong
    labels see `noisy_slope_interval`.
    """
    gaps = [a - b for a, b in zip(as_list(lengths_a), as_list(lengths_b), strict=True)]
    lead, quality = in_deviations(gaps), None if labels is None else _quality(labels)
    features = {"length": lead} | ({"quality": quality} if quality is not None else {})
    options = IntervalOptions(groups=as_list(groups), confidence=confidence)
    answers = as_list(preferences)
    slope = preference_slopes(answers, features, **options)["length"]
    accuracies = label_accuracy if isinstance(label_accuracy, tuple) else (label_accuracy,)
    if not 0.5 < min(accuracies) <= max(accuracies) <= 1:
        raise OptionError(f"`label_accuracy` must lie in (0.5, 1], got {label_accuracy!r}")
    signs = set(quality or ()) - {None}
    certain = not signs or not signs <= {-1.0, 0.0, 1.0} or min(accuracies) == 1
    if slope.interval is None or quality is None or certain:
        return slope
    cases = match(answers, quality)
    return _for_wrong_labels(slope, cases, take(lead, cases.indices), accuracies, **options)


def _for_wrong_labels(
    slope: Result,
    cases: Cases,
    lead: list[float],
    accuracies: Sequence[float],
    groups: GroupKeys,
    confidence: float,
) -> Result:
    """Return the slope with an interval that holds it for each accuracy of the labels."""
    points = np.asarray([points_of(value) for value in cases.columns[0]])
    label = as_floats(cases.columns[1])
    # Who errs apart from the labels cannot agree with them more often than they are right.
    answer = np.sign(2 * points - 1)
    decided = (label != 0) & (answer != 0)
    agreed = float((answer == label)[decided].mean()) if decided.any() else 0.5
    least = min(0.99, max(min(accuracies), agreed))
    candidates = {least, *(a for a in accuracies if least < a < 1)}
    fit = partial(
        noisy_slope_interval,
        points,
        np.asarray(lead),
        label,
        groups=cases.clusters(groups),
        confidence=confidence,
    )
    intervals = [fit(label_accuracy=accuracy) for accuracy in candidates]
    ends = [each for each in intervals if each is not None]
    if len(ends) < len(intervals):
        return slope.replace(interval=None, no_interval="labels may be too often wrong")
    if max(accuracies) == 1 and slope.interval:
        ends.append(slope.interval)
    return slope.replace(
        interval=Interval(min(each.low for each in ends), max(each.high for each in ends))
    )
