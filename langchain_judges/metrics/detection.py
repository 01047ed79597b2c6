"""A judge as a detector of one class: precision, recall and their kin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from langchain_judges.metrics.agreement import Errors, accuracy, share
from langchain_judges.metrics.arguments import (
    Floats,
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.cases import Cases, match
from langchain_judges.metrics.inputs import as_list, one_of, take, value_of
from langchain_judges.metrics.raters import classes_of
from langchain_judges.metrics.result import Findings, Result
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

    Source: `sklearn.metrics.f1_score`.
    """
    from sklearn.metrics import f1_score

    cases = match(judge, labels)
    columns: list[list[Label]] = [
        [label == positive for label in column] for column in cases.columns
    ]
    answers, truth = columns
    if not any(truth) and not any(answers):
        return _undefined(cases, f"neither label nor judge is ever {positive!r}")
    value = float(f1_score(truth, answers))
    binary = replace(cases, columns=columns)
    return _with_interval(
        value, binary, [False, True], _f1, groups=groups, confidence=confidence, seed=seed
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

    Source: `sklearn.metrics.recall_score`, averaged over the classes of the labels.
    """
    from sklearn.metrics import recall_score

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
    coded = ([classes.index(label) for label in column] for column in (truth, answers))
    value = float(recall_score(*coded, labels=range(len(targets)), average="macro"))
    statistic = partial(mean_recall, classes=len(targets))
    return _with_interval(
        value, cases, classes, statistic, groups=groups, confidence=confidence, seed=seed
    )


def matthews(
    judge: Judgments,
    labels: RightLabels,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return Matthews' correlation coefficient (MCC), of two classes or more.

    Arguments as for `balanced_accuracy`. In [−1, 1]; NaN if the labels, or what the judge
    says, are all the same.

    Source: Matthews 1975; Gorodkin 2004; `sklearn.metrics.matthews_corrcoef`.
    """
    from sklearn.metrics import matthews_corrcoef

    cases = match(judge, labels)
    answers, truth = cases.columns
    if len(set(truth)) < 2 or len(set(answers)) < 2:
        return _undefined(cases, "labels or judge have fewer than two classes")
    classes = classes_of([*truth, *answers])
    coded = ([classes.index(label) for label in column] for column in (truth, answers))
    value = float(matthews_corrcoef(*coded))
    return _with_interval(
        value, cases, classes, _matthews, groups=groups, confidence=confidence, seed=seed
    )


def _undefined(cases: Cases, reason: str) -> Result:
    return cases.undefined(reason if cases.n else "no items")


def _with_interval(  # noqa: PLR0913 - a value, its table and how to draw
    value: float,
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


def _matthews(tables: Tables) -> Floats:
    total = tables.sum(axis=(1, 2))
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    right = np.trace(tables, axis1=1, axis2=2)
    spread = (total**2 - (rows**2).sum(axis=1)) * (total**2 - (columns**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        coefficient = (right * total - (rows * columns).sum(axis=1)) / np.sqrt(spread)
    return np.asarray(np.where(spread > 0, coefficient, np.nan))


@dataclass(frozen=True)
class Classification(Findings):
    """How well a judge tells two classes apart."""

    accuracy: Result
    balanced_accuracy: Result
    precision: Result
    recall: Result
    f1: Result
    specificity: Result
    """The recall of what is not `positive`."""
    matthews: Result


def classification(
    judge: Judgments,
    labels: RightLabels,
    positive: Label = 1,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Classification:
    """Return everything that a table of two classes tells; arguments as for `precision`.

    All labels but `positive` are taken as one class. Failed judgments are left out
    everywhere, from the accuracy too.
    """
    cases = match(judge, labels)
    answers, truth = ([int(label == positive) for label in column] for column in cases.columns)
    clusters = None if groups is None else cases.clusters(groups)
    options = IntervalOptions(groups=clusters, confidence=confidence)
    parts = {
        "accuracy": accuracy(answers, truth, **options),
        "balanced_accuracy": balanced_accuracy(answers, truth, **options),
        "precision": precision(answers, truth, **options),
        "recall": recall(answers, truth, **options),
        "f1": f1(answers, truth, **options),
        "specificity": recall(answers, truth, 0, **options),
        "matthews": matthews(answers, truth, **options),
    }
    return Classification(
        **{name: part.replace(n_failed=cases.failed) for name, part in parts.items()}
    )
