"""A judge as a detector of one class: precision, recall and their kin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from langchain_judges.metrics.agreement import Errors, share
from langchain_judges.metrics.arguments import (
    Floats,
    GroupKeys,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.cases import Cases, match
from langchain_judges.metrics.inputs import as_list, one_of, take, value_of
from langchain_judges.metrics.raters import classes_of
from langchain_judges.metrics.result import Result
from langchain_judges.metrics.tables import Tables, count_tables, mean_recall, table_interval
from langchain_judges.verdict import Label

_UNREAD: Any = object()
"""The class of what was not judged, which is never right."""


def precision(
    judge: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how often the judge is right where it says `positive`.

    Args:
        judge: A label for each item, or verdicts or rows; None is left out and counted.
        labels: The right label of each item.
        positive: The class that is looked for.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of the `n` items the judge calls positive; NaN if it calls none so.
    """
    return _share_of_class(
        match(judge, labels), 0, positive, groups=groups, confidence=confidence
    )


def recall(
    judge: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how many of the items that are `positive` the judge calls so.

    Arguments as for `precision`. The result is a share of the `n` items whose label is
    positive; NaN if there is none. `positive=0` gives the specificity.
    """
    return _share_of_class(
        match(judge, labels), 1, positive, groups=groups, confidence=confidence
    )


def _share_of_class(
    cases: Cases, side: int, positive: Label, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return how often both columns are `positive` where the judge's (0) or people's (1) is."""
    column, other = cases.columns[side], cases.columns[1 - side]
    indices = [index for index, label in enumerate(column) if label == positive]
    if not indices:
        who = "no label is" if side else "the judge never says"
        return Result.undefined(f"{who} {positive!r}", n_failed=cases.failed)
    hits = [float(label == positive) for label in take(other, indices)]
    clusters = None if groups is None else cases.clusters(groups)[indices]
    return share(hits, cases.failed, groups=clusters, confidence=confidence)


def f1(
    judge: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return the harmonic mean of precision and recall, with its interval.

    Arguments as for `precision`, and the `seed` of the interval's draws; NaN if neither label
    nor judge is ever `positive`.
    """
    cases = match(judge, labels)
    columns: list[list[Label]] = [
        [label == positive for label in column] for column in cases.columns
    ]
    answers, truth = columns
    if not any(truth) and not any(answers):
        return _undefined(cases, f"neither label nor judge is ever {positive!r}")
    binary = replace(cases, columns=columns)
    return _with_interval(
        binary, [False, True], _f1, groups=groups, confidence=confidence, seed=seed
    )


def balanced_accuracy(
    judge: Judgments,
    labels: RightLabels,
    errors: Errors = "drop",
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return the mean of the recalls of all classes, with its interval.

    For two classes it is (TPR + TNR) / 2: what is called the AUC of hard labels. Always
    giving the most frequent label has 1 / classes.

    Args:
        judge: A label for each item, or verdicts or rows; None was not judged.
        labels: The right label of each item; an item without one (None) is left out.
        errors: `drop` leaves a failed judgment out, `wrong` counts it as wrong.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.
        seed: Of the interval's draws.

    Returns:
        The mean in [0, 1] over `n` items; NaN if the labels have fewer than two classes.
        `n_failed` counts failed judgments under either setting.

    Source: Brodersen et al. 2010.
    """
    one_of("errors", errors, Errors)
    judgments, truths = as_list(judge), as_list(labels)
    cases = match(judgments, truths)
    if errors == "wrong":
        unread = [_UNREAD if value_of(each)[0] is None else each for each in judgments]
        cases = replace(match(unread, truths), failed=cases.failed)
    answers, truth = cases.columns
    targets = classes_of(truth)
    if len(targets) < 2:
        return _undefined(cases, "the labels have fewer than two classes")
    classes = targets + [each for each in classes_of(answers) if each not in targets]
    statistic = partial(mean_recall, classes=len(targets))
    return _with_interval(
        cases, classes, statistic, groups=groups, confidence=confidence, seed=seed
    )


def _undefined(cases: Cases, reason: str) -> Result:
    return cases.undefined(reason if cases.n else "no items")


def _with_interval(
    cases: Cases,
    classes: list[Label],
    statistic: Callable[[Tables], Floats],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    place = {label: index for index, label in enumerate(classes)}
    columns, rows = ([place[label] for label in column] for column in cases.columns)
    clusters = None if groups is None else cases.clusters(groups)
    tables = count_tables(rows, columns, len(classes), clusters)
    value = float(statistic(tables.sum(axis=0, keepdims=True))[0])
    interval = table_interval(
        tables,
        statistic,
        value,
        clustered=clusters is not None,
        confidence=confidence,
        seed=seed,
    )
    return Result(value, n=cases.n, n_failed=cases.failed, **interval)


def _f1(tables: Tables) -> Floats:
    true = 2 * tables[:, 1, 1]
    with np.errstate(invalid="ignore"):
        return np.asarray(true / (true + tables[:, 0, 1] + tables[:, 1, 0]))
