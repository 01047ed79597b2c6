"""A judge as a detector of one class: precision, recall and their kin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from langchain_judges.metrics.agreement import Errors, accuracy, share
from langchain_judges.metrics.inputs import (
    Floats,
    Matched,
    as_list,
    group_numbers,
    is_missing,
    match,
    one_of,
)
from langchain_judges.metrics.raters import classes_of
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.metrics.tables import Tables, count_tables, mean_recall, table_interval

_UNREAD = object()


def precision(
    judge: Iterable[Any],
    labels: Iterable[Any],
    positive: Any = 1,
    *,
    groups: Iterable[Any] | None = None,
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
    return _part(judge, labels, positive, 0, groups, confidence)


def recall(
    judge: Iterable[Any],
    labels: Iterable[Any],
    positive: Any = 1,
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return how many of the items that are `positive` the judge calls so.

    Arguments as for `precision`. The result is a share of the `n` items whose label is
    positive; NaN if there is none. `positive=0` gives the specificity.
    """
    return _part(judge, labels, positive, 1, groups, confidence)


def _part(
    judge: Iterable[Any],
    labels: Iterable[Any],
    positive: Any,
    side: int,
    groups: Iterable[Any] | None,
    confidence: float,
) -> Result:
    both, clusters = _matched(judge, labels, groups)
    rows = list(zip(both.judge, both.truth, strict=True))
    positions = [i for i, row in enumerate(rows) if row[side] == positive]
    if not positions:
        who = "no label is" if side else "the judge never says"
        return Result.undefined(f"{who} {positive!r}", n_failed=both.failed)
    hits = [float(rows[i][1 - side] == positive) for i in positions]
    keys = None if groups is None else [int(clusters[i]) for i in positions]
    return share(hits, both.failed, "drop", keys, confidence)


def _matched(
    judge: Iterable[Any], labels: Iterable[Any], groups: Iterable[Any] | None
) -> tuple[Matched, Any]:
    answers = as_list(judge)
    both = match(answers, labels)
    return both, group_numbers(groups, both.indices, len(answers))


def f1(
    judge: Iterable[Any],
    labels: Iterable[Any],
    positive: Any = 1,
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return the harmonic mean of precision and recall, with its interval.

    Arguments as for `precision`; NaN if neither label nor judge is ever `positive`.

    Source: `sklearn.metrics.f1_score`.
    """
    from sklearn.metrics import f1_score

    both, clusters = _matched(judge, labels, groups)
    truth = [label == positive for label in both.truth]
    answers = [label == positive for label in both.judge]
    if not any(truth) and not any(answers):
        return _undefined(both, f"neither label nor judge is ever {positive!r}")
    value = float(f1_score(truth, answers))
    binary = Matched(answers, truth, both.indices, both.failed)
    numbered = None if groups is None else clusters
    return _with_interval(value, binary, [False, True], numbered, _f1, confidence, seed)


def balanced_accuracy(
    judge: Iterable[Any],
    labels: Iterable[Any],
    errors: Errors = "drop",
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return the mean of the recalls of all classes, with its interval.

    For two classes it is (TPR + TNR) / 2: what is called the AUC of hard labels. Always
    giving the commonest label has 1 / classes.

    Args:
        judge: A label for each item, or verdicts or rows; None was not judged.
        labels: The right label of each item; an item without one (None) is left out.
        errors: `drop` leaves a failed judgment out, `wrong` counts it as wrong.
        groups: The cluster of each item; for the interval.
        confidence: The level of the interval.
        seed: Of the interval's draws.

    Returns:
        The mean in [0, 1] over `n` items; NaN if the labels have fewer than two classes.
        `n_failed` counts failed judgments under either setting.

    Source: `sklearn.metrics.recall_score`, averaged over the classes of the labels.
    """
    from sklearn.metrics import recall_score

    one_of("errors", errors, Errors)
    judge_labels = as_list(judge)
    both = match(judge_labels, labels)
    if errors == "wrong":
        both = _with_unread(judge_labels, as_list(labels), both)
    clusters = group_numbers(groups, both.indices, len(judge_labels))
    labelled = classes_of(both.truth)
    if len(labelled) < 2:
        return _undefined(both, "the labels have fewer than two classes")
    classes = labelled + [c for c in classes_of(both.judge) if c not in labelled]
    truth, answers = ([classes.index(v) for v in side] for side in (both.truth, both.judge))
    value = float(recall_score(truth, answers, labels=range(len(labelled)), average="macro"))
    numbered = None if groups is None else clusters
    return _with_interval(
        value,
        both,
        classes,
        numbered,
        partial(mean_recall, classes=len(labelled)),
        confidence,
        seed,
    )


def matthews(
    judge: Iterable[Any],
    labels: Iterable[Any],
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """Return Matthews' correlation coefficient (MCC), of two classes or more.

    Arguments as for `balanced_accuracy`. In [−1, 1]; NaN if the labels, or what the judge
    says, are all the same.

    Source: Matthews 1975; Gorodkin 2004; `sklearn.metrics.matthews_corrcoef`.
    """
    from sklearn.metrics import matthews_corrcoef

    both, clusters = _matched(judge, labels, groups)
    if len(set(both.truth)) < 2 or len(set(both.judge)) < 2:
        return _undefined(both, "labels or judge have fewer than two classes")
    classes = classes_of([*both.truth, *both.judge])
    coded = [[classes.index(v) for v in side] for side in (both.truth, both.judge)]
    value = float(matthews_corrcoef(*coded))
    numbered = None if groups is None else clusters
    return _with_interval(value, both, classes, numbered, _matthews, confidence, seed)


def _with_unread(judge_labels: list[Any], labels: list[Any], both: Matched) -> Matched:
    """Take in what was not judged, as a class of its own that is never right."""
    by_index = dict(zip(both.indices.tolist(), both.judge, strict=True))
    indices = [i for i in range(len(judge_labels)) if not is_missing(labels[i])]
    answers = [by_index.get(index, _UNREAD) for index in indices]
    truth = [labels[index] for index in indices]
    return Matched(answers, truth, np.asarray(indices, dtype=np.int64), both.failed)


def _undefined(both: Matched, why: str) -> Result:
    return Result.undefined(why if both.n else "no items", n=both.n, n_failed=both.failed)


def _with_interval(  # noqa: PLR0913 - a value, its table and how to draw
    value: float,
    both: Matched,
    classes: list[Any],
    clusters: Any,
    statistic: Callable[[Tables], Floats],
    confidence: float,
    seed: int,
) -> Result:
    place = {label: index for index, label in enumerate(classes)}
    rows, columns = ([place[v] for v in side] for side in (both.truth, both.judge))
    tables = count_tables(rows, columns, len(classes), clusters)
    settings: dict[str, Any] = {"clustered": clusters is not None, "confidence": confidence}
    interval = table_interval(tables, statistic, value, seed=seed, **settings)
    return Result(value, n=both.n, n_failed=both.failed, **interval)


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
    judge: Iterable[Any],
    labels: Iterable[Any],
    positive: Any = 1,
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Classification:
    """Return everything that a table of two classes tells; arguments as for `precision`.

    All labels but `positive` are taken as one class. Failed judgments are left out
    everywhere, from the accuracy too.
    """
    judge_labels = as_list(judge)
    both = match(judge_labels, labels)
    keys = None if groups is None else group_numbers(groups, both.indices, len(judge_labels))
    answers, truth = ([int(v == positive) for v in side] for side in (both.judge, both.truth))
    settings: dict[str, Any] = {"groups": keys, "confidence": confidence}
    figures = Classification(
        accuracy=accuracy(answers, truth, **settings),
        balanced_accuracy=balanced_accuracy(answers, truth, **settings),
        precision=precision(answers, truth, **settings),
        recall=recall(answers, truth, **settings),
        f1=f1(answers, truth, **settings),
        specificity=recall(answers, truth, 0, **settings),
        matthews=matthews(answers, truth, **settings),
    )
    parts = {name: part.with_failed(both.failed) for name, part in vars(figures).items()}
    return Classification(**parts)
