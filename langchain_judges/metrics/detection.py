"""A judge as a detector of one class: precision, recall, F1, and the area under the curve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

from langchain_judges.metrics import inputs, intervals
from langchain_judges.metrics.agreement import Errors, share
from langchain_judges.metrics.contingency import Tables, classes_of, mean_recall, table_result
from langchain_judges.metrics.inputs import (
    Cases,
    DrawnOptions,
    Floats,
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.result import Result
from langchain_judges.verdict import Label

# The class of what was not judged, which is never right.
_OTHER_CLASS: Any = object()


def precision(
    judge: Judgments, labels: RightLabels, positive: Label = 1, **options: Unpack[IntervalOptions]
) -> Result:
    """Share of the items the judge calls `positive` that are positive: its precision.

    Report it with `recall`: a judge that says `positive` only when certain is precise but
    misses most.

    Args:
        judge: A label for each item, or verdicts or rows; None is left out and counted.
        labels: The right label of each item.
        positive: The class that is looked for.
        options: `groups` and `confidence` of the interval, as for `rate`.

    Returns:
        The share in [0, 1] of the `n` items the judge calls positive; NaN if it calls none so.
    """
    return _share_of_class(inputs.match(judge, labels), 0, positive, options)


def recall(
    judge: Judgments, labels: RightLabels, positive: Label = 1, **options: Unpack[IntervalOptions]
) -> Result:
    """Share of the `positive` items that the judge calls positive: its recall, or sensitivity.

    Report it with `precision`: a judge that always says `positive` misses none.

    Arguments as for `precision`. The result is a share of the `n` items whose label is
    positive; NaN if there are none. `positive=0` gives the specificity.
    """
    return _share_of_class(inputs.match(judge, labels), 1, positive, options)


def _share_of_class(cases: Cases, side: int, positive: Label, options: IntervalOptions) -> Result:
    """Share of the judge's (0) or people's (1) `positive` items that are so in both columns."""
    column, other = cases.columns[side], cases.columns[1 - side]
    indices = [index for index, label in enumerate(column) if label == positive]
    if not indices:
        who = "no label is" if side else "the judge never says"
        return Result.undefined(f"{who} {positive!r}", n_failed=cases.failed)
    hits = [float(label == positive) for label in inputs.take(other, indices)]
    if (groups := options.get("groups")) is not None:
        options = {**options, "groups": cases.clusters(groups)[indices].tolist()}
    found = share(hits, cases.failed, **options)
    if len(hits) >= intervals.LEAST_OF_A_CLASS:
        return found
    return found.replace(interval=None, no_interval="too few items of a class")


def f1(
    judge: Judgments, labels: RightLabels, positive: Label = 1, **options: Unpack[DrawnOptions]
) -> Result:
    """The harmonic mean of precision and recall, with its interval.

    Not where the other class matters too: right answers on it do not count.

    Arguments as for `precision`, and the `seed` of the interval's draws; NaN if neither label
    nor judge is ever `positive`.
    """
    cases = inputs.match(judge, labels)
    columns: list[list[Label]] = [[label == positive for label in own] for own in cases.columns]
    answers, truth = columns
    if not any(truth) and not any(answers):
        return _undefined(cases, f"neither label nor judge is ever {positive!r}")
    return _with_interval(replace(cases, columns=columns), [False, True], _f1, options)


def balanced_accuracy(
    judge: Judgments, labels: RightLabels, errors: Errors = "drop", **options: Unpack[DrawnOptions]
) -> Result:
    """The mean of the recalls of all classes, with its interval.

    Not for ratings, whose distance it ignores (`concordance`, weighted `cohen_kappa`), nor
    where errors on a common label cost more.

    For two classes it is (TPR + TNR) / 2: what is called the AUC of hard labels. Always giving
    the most frequent label scores 1 / classes.

    Args:
        judge: A label for each item, or verdicts or rows; None was not judged.
        labels: The right label of each item; an item without one (None) is left out.
        errors: `drop` leaves a failed judgment out, `wrong` counts it as wrong.
        options: `groups`, `confidence` and the `seed` of the interval's draws.

    Returns:
        The mean in [0, 1] over `n` items; NaN if the labels have fewer than two classes.
        `n_failed` counts failed judgments under either setting.

    Source: Brodersen et al. 2010.
    """
    inputs.one_of("errors", errors, Errors)
    judgments, truths = inputs.as_list(judge), inputs.as_list(labels)
    cases = inputs.match(judgments, truths)
    if errors == "wrong":
        unread = [_OTHER_CLASS if inputs.value_of(each)[0] is None else each for each in judgments]
        cases = replace(inputs.match(unread, truths), failed=cases.failed)
    answers, truth = cases.columns
    targets = classes_of(truth)
    if len(targets) < 2:
        return _undefined(cases, "the labels have fewer than two classes")
    classes = targets + [each for each in classes_of(answers) if each not in targets]
    return _with_interval(cases, classes, partial(mean_recall, classes=len(targets)), options)


def _undefined(cases: Cases, reason: str) -> Result:
    return cases.undefined(reason if cases.n else "no items")


def _with_interval(
    cases: Cases, classes: list[Label], statistic: Callable[[Tables], Floats], options: DrawnOptions
) -> Result:
    place = {label: index for index, label in enumerate(classes)}
    columns, rows = ([place[label] for label in column] for column in cases.columns)
    rare = min(Counter(rows).values())
    return table_result(cases, rows, columns, statistic, rare=rare, **options)


def _f1(tables: Tables) -> Floats:
    true = 2 * tables[:, 1, 1]
    with np.errstate(invalid="ignore"):
        return np.asarray(true / (true + tables[:, 0, 1] + tables[:, 1, 0]))


# Which items are positive.
Flags = NDArray[np.bool_]


def auc(
    scores: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """The area under the ROC curve: how often a positive item scores above another.

    Not for a judge that gives labels alone, and it says nothing of where to cut: a good
    area may come with bad labels.

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
    intervals.check_shares(confidence=confidence)
    cases = inputs.match(scores, labels, "score")
    x = inputs.as_floats(cases.columns[0])
    y = np.asarray([label == positive for label in cases.columns[1]], dtype=bool)
    if not y.any() or y.all():
        return cases.undefined("one of the two classes is absent")
    value = _area(x, y)
    result = partial(Result, value, n=cases.n, n_failed=cases.failed)
    rare = int(min(y.sum(), (~y).sum()))
    if rare < intervals.LEAST_OF_A_CLASS:
        return result(no_interval="too few items of a class")
    se, freedom = _delong_error(x, y), rare - 1
    if groups is not None:
        clusters = cases.clusters(groups)
        if int(clusters.max()) + 1 < intervals.LEAST_GROUPS:
            return result(no_interval="too few groups")
        told = min(len(np.unique(clusters[y])), len(np.unique(clusters[~y])))
        areas = intervals.jackknife(clusters, lambda kept: _area(x[kept], y[kept]))
        clustered = intervals.jackknife_spread(areas)
        if math.isnan(clustered):
            return result(no_interval="a group holds nearly all of a class")
        se, freedom = max(se, clustered), max(2, min(freedom, len(areas) - 1, told - 1))
    return result(interval=intervals.share_interval(value, se, rare, freedom, confidence), se=se)


def _area(scores: Floats, positive: Flags) -> float:
    count = int(positive.sum())
    if count in (0, len(positive)):
        return math.nan
    ranks = inputs.average_ranks(scores)[positive].sum() - count * (count + 1) / 2
    return float(ranks / (count * (len(positive) - count)))


def _delong_error(x: Floats, y: Flags) -> float:
    """The standard error of the area of scores, by the ranks of Sun & Xu 2014."""
    m, n = int(y.sum()), int((~y).sum())
    ranks = inputs.average_ranks(x)
    over = (ranks[y] - inputs.average_ranks(x[y])) / n
    under = 1 - (ranks[~y] - inputs.average_ranks(x[~y])) / m
    return math.sqrt(float(over.var(ddof=1)) / m + float(under.var(ddof=1)) / n)
