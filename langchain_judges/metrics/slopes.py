"""Regressions of verdicts on features of the pair: what its length and style are worth."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from langchain_judges.errors import OptionError, needs
from langchain_judges.metrics.arguments import (
    Floats,
    GroupKeys,
    IntervalOptions,
    Ints,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.cases import Cases, bare, cases_of, match
from langchain_judges.metrics.inputs import (
    POINTS,
    as_floats,
    as_list,
    is_missing,
    points_of,
    same_length,
    take,
    value_of,
)
from langchain_judges.metrics.intervals import LEAST_GROUPS, check_confidence, student_quantile
from langchain_judges.metrics.noise import noisy_slope_interval
from langchain_judges.metrics.result import Interval, Result
from langchain_judges.metrics.style import in_deviations


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

    Source: `statsmodels.api.GLM` with a binomial family.
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


def _fit(
    y: Floats, x: Floats, clusters: Ints | None
) -> tuple[list[tuple[float, float]] | None, str]:
    """Return (coefficient, standard error) of each column, or None and why."""
    with needs("trust", "A regression on style"):
        import statsmodels.api as sm
        from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    if len(y) <= x.shape[1] or np.linalg.matrix_rank(x) < x.shape[1]:
        return None, "too few items, or features that say the same"
    if np.ptp(y) == 0:
        return None, "all verdicts are the same"
    robust: dict[str, Any] = {"cov_type": "HC1"}
    if clusters is not None:
        robust = {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerfectSeparationWarning)
        try:
            model = sm.GLM(y, x, family=sm.families.Binomial()).fit(**robust)
        except PerfectSeparationWarning:
            return None, "the features tell the verdicts apart without error"
    steep = np.abs(model.params * np.maximum(x.std(axis=0), 1e-300))[1:]
    if not model.converged or (steep > 25).any():
        return None, "the features tell the verdicts apart without error"
    return list(zip(map(float, model.params), map(float, model.bse), strict=True)), ""


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
    labels see `noise.noisy_slope_interval`.
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
