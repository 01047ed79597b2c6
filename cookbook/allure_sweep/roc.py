"""ROC curves of a sweep's arms (Hasanbeig et al. 2023, figures 3b and 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from allure_sweep.averages import Rows, has_probabilities, score_of
from allure_sweep.plan import Arm
from allure_sweep.results import Runs


def roc_curves(runs: Runs) -> dict[str, list[dict[str, Any]]]:
    """Return the curves by number of examples, and those of the ablation.

    The draws of one size are pooled in one curve.
    """
    sizes: dict[str, list[Arm]] = defaultdict(list)
    for arm in [*runs.of("none"), *runs.of("size"), *runs.of("all")]:
        sizes["all" if arm.kind == "all" else str(arm.size)].append(arm)
    ablated = [arm for kind in ("none", "all", "mode") for arm in runs.of(kind)]
    return {
        "sizes": [_curve(runs, name, arms) for name, arms in sizes.items()],
        "ablation": [_curve(runs, arm.name, [arm]) for arm in ablated],
    }


def _curve(runs: Runs, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
    rows = [runs.rows[arm.name] for arm in arms]
    return {"name": name, "runs": [arm.name for arm in arms], **roc(rows, runs.truth)}


def roc(several: Sequence[Rows], truth: Sequence[int]) -> dict[str, Any]:
    """Return the ROC curve of runs over the same items; label 1 is the positive class.

    Its points are `[false positive rate, true positive rate]` from (0, 0) to (1, 1), one for
    each threshold. Labels alone have one point between the corners, and the area is the
    balanced accuracy then. Without an item of each label there is no curve.
    """
    from sklearn.metrics import auc, roc_curve

    probable = all(map(has_probabilities, several))
    pairs = [
        (label, _value(row, probable))
        for rows in several
        for row, label in zip(rows, truth, strict=True)
        if row["verdict"]["label"] is not None
    ]
    source = "probabilities" if probable else "labels"
    if len({label for label, _ in pairs}) < 2:
        return {"source": source, "points": [], "area": None}
    labels, scores = zip(*pairs, strict=True)
    alarms, hits, _ = roc_curve(labels, scores, pos_label=1, drop_intermediate=False)
    points = [[float(x), float(y)] for x, y in zip(alarms, hits, strict=True)]
    return {"source": source, "points": points, "area": float(auc(alarms, hits))}


def _value(row: Mapping[str, Any], probable: bool) -> float | None:
    label: int = row["verdict"]["label"]
    return score_of(row) if probable else label
