"""The area under the ROC curve of scores, and whether those of two judges differ."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import Floats, GroupKeys, Judgments, RightLabels
from langchain_judges.metrics.cases import match, match_all
from langchain_judges.metrics.inputs import as_floats, as_list, same_length
from langchain_judges.metrics.intervals import (
    LEAST_GROUPS,
    check_confidence,
    normal_quantile,
    student_quantile,
    wilson,
)
from langchain_judges.metrics.resampling import jackknife_error
from langchain_judges.metrics.result import Interval, Result, Significance
from langchain_judges.verdict import Label

Flags = NDArray[np.bool_]
"""Which items are positive."""


def auc(
    scores: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return the area under the ROC curve: how often a positive item scores above another.

    Args:
        scores: One score for each item, larger where the judge finds `positive` likelier;
            or verdicts, whose `score` is read; None is left out and counted.
        labels: The right label of each item.
        positive: The class that is looked for; all others are one class.
        groups: The cluster of each item; the error is then a jackknife's over groups.
        confidence: The level of the interval.

    Returns:
        The area in [0, 1], a tie of scores counted as half; NaN if there is one class only.

    Source: Mann–Whitney U; DeLong, DeLong & Clarke-Pearson 1988; `sklearn.metrics`. The
    interval is Wilson's on the effective number of items, and needs three of each class.
    """
    from sklearn.metrics import roc_auc_score

    check_confidence(confidence)
    cases = match(scores, labels, "score")
    x, y = as_floats(cases.columns[0]), _flags(cases.columns[1], positive)
    if not y.any() or y.all():
        return cases.undefined("one of the two classes is absent")
    value = float(roc_auc_score(y, x))
    result = partial(Result, value, n=cases.n, n_failed=cases.failed)
    rare = int(min(y.sum(), (~y).sum()))
    if rare < LEAST_OF_A_CLASS:
        return result(no_interval="too few items of a class")
    se, freedom = math.sqrt(max(0.0, float(_delong([x], y)[1][0, 0]))), rare - 1
    if groups is not None:
        clusters = cases.clusters(groups)
        if int(clusters.max()) + 1 < LEAST_GROUPS:
            return result(no_interval="too few groups")
        clustered, blocks = jackknife_error(_area, (x, y.astype(float)), clusters)
        if math.isnan(clustered):
            return result(no_interval="a group holds nearly all of a class")
        se, freedom = max(se, clustered), min(freedom, blocks - 1)
    return result(interval=_area_interval(value, se, rare, freedom, confidence), se=se)


def _flags(labels: Iterable[Label], positive: Label) -> Flags:
    return np.asarray([label == positive for label in labels], dtype=bool)


LEAST_OF_A_CLASS = 3


def _area_interval(
    area: float, se: float, rare: int, freedom: int, confidence: float
) -> Interval:
    """Return Wilson's interval on as many items as would give a share the same error.

    No area has a larger variance than that of a share of the rarer class (Van Dantzig 1951),
    and where the error is 0, as of a perfect area, that many items are what was seen.
    """
    size = float(rare)
    if se > 1e-12 and 0 < area < 1:
        size = max(1.0, area * (1 - area) / se**2)
    return wilson(area, size, student_quantile(confidence, freedom)).within(0.0, 1.0)


def _area(scores: Floats, labels: Floats) -> float:
    positives = int(labels.sum())
    if positives in (0, len(labels)):
        return math.nan
    ranks = scipy.stats.rankdata(scores)[labels > 0].sum() - positives * (positives + 1) / 2
    return float(ranks / (positives * (len(labels) - positives)))


def _delong(columns: list[Floats], y: Flags) -> tuple[Floats, Floats]:
    """Return the areas of several scores of the same items, and their covariance."""
    m, n = int(y.sum()), int((~y).sum())
    over, under = [], []
    for x in columns:
        ranks = scipy.stats.rankdata(x)
        over.append((ranks[y] - scipy.stats.rankdata(x[y])) / n)
        under.append(1 - (ranks[~y] - scipy.stats.rankdata(x[~y])) / m)
    areas = np.asarray([part.mean() for part in over])
    spread = [
        np.atleast_2d(np.cov(np.asarray(part))) / size
        if size > 1
        else np.zeros((len(part),) * 2)
        for part, size in ((over, m), (under, n))
    ]
    return areas, np.asarray(spread[0] + spread[1])


class DeLong(Significance):
    """DeLong's test; `difference` is the first area minus the second, with its interval."""

    first: float
    second: float
    difference: Result


def delong_test(
    first: Judgments,
    second: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    confidence: float = 0.95,
) -> DeLong:
    """Test whether two judges' scores of the same items have the same area under the curve.

    Args:
        first: The first judge's score of each item; None leaves the item out.
        second: The second judge's score of the same items.
        labels: The right label of each item.
        positive: The class that is looked for.
        confidence: The level of the interval of the difference.

    Returns:
        z and the two-sided p; NaN if a class has fewer than two items. Two rankings that are
        the same have z 0 and p 1.

    Source: DeLong, DeLong & Clarke-Pearson 1988, by the ranks of Sun & Xu 2014.
    """
    check_confidence(confidence)
    one, other, truths = as_list(first), as_list(second), as_list(labels)
    same_length(first=one, second=other, labels=truths)
    cases = match_all([one, other], truths, "score")
    *columns, right = cases.columns
    scores, y = [as_floats(column) for column in columns], _flags(right, positive)
    outcome = partial(DeLong, n=cases.n, n_failed=cases.failed, alternative="two-sided")
    if min(y.sum(), (~y).sum()) < 2:
        why = "a class has fewer than two items"
        none = cases.undefined(why)
        return outcome(
            math.nan, math.nan, reason=why, first=math.nan, second=math.nan, difference=none
        )
    areas, covariance = _delong(scores, y)
    gap = float(areas[0] - areas[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    se = math.sqrt(max(0.0, variance))
    z = gap / se if se > 1e-12 else 0.0
    p = float(2 * scipy.stats.norm.sf(abs(z)))
    interval = Interval.around(gap, normal_quantile(confidence) * se)
    difference = Result(gap, n=cases.n, n_failed=cases.failed, se=se, interval=interval)
    first_area, second_area = areas.tolist()
    return outcome(z, p, first=first_area, second=second_area, difference=difference)


def hard_label_auc(hit_rate: float, false_alarm_rate: float) -> float:
    """Return the area under the one-point ROC curve of hard labels: (TPR + 1 − FPR) / 2.

    It is the balanced accuracy; from items take `balanced_accuracy`, from scores `auc`.
    """
    if not (0 <= hit_rate <= 1 and 0 <= false_alarm_rate <= 1):
        raise InputError("rates must lie between 0 and 1")
    return (hit_rate + 1 - false_alarm_rate) / 2
