"""The area under the ROC curve of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from langchain_judges.metrics.arguments import Floats, GroupKeys, Judgments, RightLabels
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import as_floats
from langchain_judges.metrics.intervals import (
    LEAST_GROUPS,
    check_confidence,
    student_quantile,
    wilson,
)
from langchain_judges.metrics.resampling import jackknife_error
from langchain_judges.metrics.result import Interval, Result
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

    Source: Mann–Whitney U; DeLong, DeLong & Clarke-Pearson 1988. The
    interval is Wilson's on the effective number of items, and needs three of each class.
    """
    check_confidence(confidence)
    cases = match(scores, labels, "score")
    x, y = as_floats(cases.columns[0]), _flags(cases.columns[1], positive)
    if not y.any() or y.all():
        return cases.undefined("one of the two classes is absent")
    value = _area(x, y.astype(float))
    result = partial(Result, value, n=cases.n, n_failed=cases.failed)
    rare = int(min(y.sum(), (~y).sum()))
    if rare < LEAST_OF_A_CLASS:
        return result(no_interval="too few items of a class")
    se, freedom = _delong_error(x, y), rare - 1
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


def _delong_error(x: Floats, y: Flags) -> float:
    """Return the standard error of the area of scores, by the ranks of Sun & Xu 2014."""
    m, n = int(y.sum()), int((~y).sum())
    ranks = scipy.stats.rankdata(x)
    over = (ranks[y] - scipy.stats.rankdata(x[y])) / n
    under = 1 - (ranks[~y] - scipy.stats.rankdata(x[~y])) / m
    return math.sqrt(float(over.var(ddof=1)) / m + float(under.var(ddof=1)) / n)
