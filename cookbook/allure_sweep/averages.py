"""The metrics of a sweep's runs: of one, and of the mean over draws of examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

RESAMPLES = 2000
_AUC_RESAMPLES = 200

Row = Mapping[str, Any]
Rows = Sequence[Row]
Figure = dict[str, Any]
"""`{"value", "low", "high"}` and what they rest on; None where there is no value; the ends are
those of a 95 % interval."""


def metrics_of(
    rows: Rows, truth: Sequence[int], groups: Sequence[Any] | None = None
) -> dict[str, Figure]:
    """Return how well a run tells the two labels apart; label 1 is the positive class.

    Items that were not judged are left out. The AUC is there only where every judged item
    has a probability; of labels alone it would be the balanced accuracy (section 4.1), which
    has its own name.
    """
    from langchain_judges import metrics

    labels = [row["verdict"]["label"] for row in rows]
    if all(label is None for label in labels):
        return {}
    d_prime, criterion = signal_detection(labels, truth)
    results = {
        "accuracy": metrics.accuracy(labels, truth, "drop", groups=groups),
        "balanced_accuracy": metrics.balanced_accuracy(labels, truth, groups=groups),
        "precision": metrics.precision(labels, truth, groups=groups),
        "recall": metrics.recall(labels, truth, groups=groups),
        "recall_of_0": metrics.recall(labels, truth, 0, groups=groups),
        "f1": metrics.f1(labels, truth, groups=groups),
        "d_prime": d_prime,
        "criterion": criterion,
    }
    if has_probabilities(rows):
        scores = [score_of(row) for row in rows]
        results["auc"] = metrics.auc(scores, truth, 1, groups=groups)
    return {name: figure_of(result) for name, result in results.items()}


def signal_detection(labels: Sequence[int | None], truth: Sequence[int]) -> tuple[Any, Any]:
    """Return d′ = z(H) − z(F) with its interval, and the criterion −½ (z(H) + z(F)).

    Source: Green & Swets 1966; Hautus 1995 adds a half to each count; Gourevitch & Galanter
    1967 for the standard error of d′.
    """
    import scipy

    from langchain_judges.metrics import Interval, Result

    normal = scipy.stats.norm
    pairs = [(own, right) for own, right in zip(labels, truth, strict=True) if own is not None]
    z, variance = {}, 0.0
    for right in (1, 0):
        answers = [own for own, label in pairs if label == right]
        if not answers:
            none = Result.undefined("one of the two classes is absent", n=len(pairs))
            return none, none
        share = (sum(answers) + 0.5) / (len(answers) + 1)
        z[right] = float(normal.ppf(share))
        variance += share * (1 - share) / (len(answers) * float(normal.pdf(z[right])) ** 2)
    d, half = z[1] - z[0], float(normal.ppf(0.975)) * math.sqrt(variance)
    n = len(pairs)
    return (
        Result(d, n=n, interval=Interval.around(d, half)),
        Result(-(z[1] + z[0]) / 2, n=n),
    )


def has_probabilities(rows: Rows) -> bool:
    """Say whether every item that was judged has a probability."""
    verdicts = [row["verdict"] for row in rows if row["verdict"]["label"] is not None]
    return bool(verdicts) and all(each["confidence_source"] == "logprobs" for each in verdicts)


def score_of(row: Row) -> float | None:
    """Return the probability of label 1, or the label; None where it was not judged."""
    verdict = row["verdict"]
    return None if verdict["label"] is None else verdict["score"]


def figure_of(result: Any) -> Figure:
    """Return a result of the metrics as plain data."""
    value, ends = float(result), result.interval
    if math.isnan(value):
        return {"value": None, "low": None, "high": None, "n": result.n}
    low, high = ends or (None, None)
    bad = ends is not None and any(math.isnan(end) for end in ends)
    return {
        "value": value,
        "low": None if bad else low,
        "high": None if bad else high,
        "n": result.n,
    }


def majority_of(truth: Sequence[int]) -> float:
    """Return the accuracy of always giving the most frequent label."""
    return max(map(truth.count, set(truth))) / len(truth)


def averaged(
    single: Sequence[Mapping[str, Figure]],
    several: Sequence[Rows],
    truth: Sequence[int],
    groups: Sequence[str],
) -> dict[str, Figure]:
    """Return the mean of each metric over runs of the same items.

    The interval is a bootstrap in which runs and groups of items are drawn again, so that it
    holds both the luck of the draw of examples and that of the items.

    Args:
        single: The metrics of each run.
        several: The rows of each run.
        truth: The known labels of the items.
        groups: The group of each item.
    """
    names = [name for name in single[0] if all(name in each for each in single)]
    times, weights, cells = _resampled(several, truth, groups)
    draws = {name: _weighted(of, weights) for name, of in _of_tables(cells).items()}
    if "auc" in names:
        few = slice(_AUC_RESAMPLES)
        draws["auc"] = _weighted(_areas(several, truth, groups, times[few]), weights[few])
    return {
        name: _mean([each[name]["value"] for each in single], draws[name]) for name in names
    }


def _mean(values: Sequence[float | None], draws: Any) -> Figure:
    import numpy as np

    figure: Figure = {"value": None, "low": None, "high": None, "runs": list(values)}
    numbers = [value for value in values if value is not None]
    defined = draws[~np.isnan(draws)]
    if numbers and len(numbers) == len(values):
        figure["value"] = sum(numbers) / len(numbers)
        if len(defined):
            low, high = np.quantile(defined, [0.025, 0.975])
            figure |= {"low": float(low), "high": float(high)}
    return figure


def _resampled(
    several: Sequence[Rows], truth: Sequence[int], groups: Sequence[str]
) -> tuple[Any, Any, Any]:
    """Return how often groups and runs are drawn, and each run's table in each resample."""
    import numpy as np

    own, count = _numbered(groups)
    tables = np.zeros((len(several), count, 4))
    for number, rows in enumerate(several):
        for place, row, label in zip(own, rows, truth, strict=True):
            answer = row["verdict"]["label"]
            if answer is not None:
                tables[number, place, 2 * (label == 1) + (answer == 1)] += 1
    draw = np.random.default_rng(0)
    times = draw.multinomial(count, [1 / count] * count, RESAMPLES)
    runs = len(several)
    weights = draw.multinomial(runs, [1 / runs] * runs, RESAMPLES) / runs
    return times, weights, np.einsum("bg,sgk->bsk", times, tables, optimize=True)


def _numbered(groups: Sequence[str]) -> tuple[Any, int]:
    import numpy as np

    places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    return np.asarray([places[group] for group in groups]), len(places)


def _weighted(values: Any, share: Any) -> Any:
    """Return the means over the runs drawn; an undefined value of a run not drawn is none."""
    import numpy as np

    return np.where(share > 0, values * np.where(share > 0, share, 0), 0).sum(axis=1)


def _of_tables(cells: Any) -> dict[str, Any]:
    """Return each metric of tables (…, 4): true and false 0, false and true 1."""
    import numpy as np
    from scipy import stats

    tn, fp, fn, tp = np.moveaxis(cells, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, of_0, precision = tp / (tp + fn), tn / (tn + fp), tp / (tp + fp)
        statistics = {
            "accuracy": (tp + tn) / cells.sum(axis=-1),
            "balanced_accuracy": (recall + of_0) / 2,
            "precision": precision,
            "recall": recall,
            "recall_of_0": of_0,
            "f1": 2 * tp / (2 * tp + fp + fn),
        }
    hit = stats.norm.ppf((tp + 0.5) / (tp + fn + 1))
    alarm = stats.norm.ppf((fp + 0.5) / (fp + tn + 1))
    both = (tp + fn > 0) & (fp + tn > 0)
    statistics["d_prime"] = np.where(both, hit - alarm, np.nan)
    statistics["criterion"] = np.where(both, -(hit + alarm) / 2, np.nan)
    return statistics


def _areas(
    several: Sequence[Rows], truth: Sequence[int], groups: Sequence[str], times: Any
) -> Any:
    import numpy as np
    from sklearn.metrics import roc_auc_score

    own, _ = _numbered(groups)
    scores_by_run = [[score_of(row) for row in rows] for rows in several]
    scores = np.asarray(scores_by_run, dtype=float)
    labels = np.asarray(truth)
    areas = np.full((len(times), len(several)), np.nan)
    for number, draw in enumerate(times):
        weights = draw[own].astype(float)
        for run, column in enumerate(scores):
            mask = (weights > 0) & ~np.isnan(column)
            if len(set(labels[mask].tolist())) == 2:
                areas[number, run] = roc_auc_score(
                    labels[mask], column[mask], sample_weight=weights[mask]
                )
    return areas


def mean_accuracy(
    several: Sequence[Rows], truth: Sequence[int], groups: Sequence[str]
) -> Figure:
    """Return the mean accuracy over runs of the same items, as `averaged` does."""
    values = []
    for rows in several:
        pairs = [
            (row["verdict"]["label"], label) for row, label in zip(rows, truth, strict=True)
        ]
        judged_ones = [answer == label for answer, label in pairs if answer is not None]
        values.append(sum(judged_ones) / len(judged_ones) if judged_ones else None)
    _, weights, cells = _resampled(several, truth, groups)
    return _mean(values, _weighted(_of_tables(cells)["accuracy"], weights))
