"""What leaving out one failure mode does: errors, changed labels and agreement of the arms.

Hasanbeig et al. 2023, figures 6 and 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from allure_sweep.averages import figure_of
from allure_sweep.results import Runs


def ablation(runs: Runs) -> list[dict[str, Any]]:
    """Return what becomes of errors and labels where one failure mode is left out."""
    if not runs.named("all"):
        return []
    whole = runs.labels("all")
    full = sum(wrong_labels(whole, runs.truth).values())
    return [
        {
            "run": arm.name,
            "left_out": "none named" if arm.mode == "None" else arm.mode,
            **ablated(runs.labels(arm.name), whole, runs.truth),
            "change_percent": error_change(runs.labels(arm.name), runs.truth, full),
        }
        for arm in [*runs.of("all"), *runs.of("mode")]
    ]


def ablated(
    labels: Sequence[Any], whole: Sequence[Any], truth: Sequence[int]
) -> dict[str, Any]:
    """Return the errors of a run, and its labels against those of the run with all examples.

    `changed_to_1` and `changed_to_0` are counted among items that both runs judged;
    `labels_changed` counts items that only one of them judged too.
    """
    from langchain_judges.metrics import cohen_kappa

    wrong = wrong_labels(labels, truth)
    changes = Counter(
        new for new, old in zip(labels, whole, strict=True) if old is not None and new != old
    )
    return {
        "errors": sum(wrong.values()),
        **wrong,
        "labels_changed": sum(a != b for a, b in zip(labels, whole, strict=True)),
        "changed_to_1": changes[1],
        "changed_to_0": changes[0],
        "kappa": figure_of(cohen_kappa(labels, whole)),
    }


def wrong_labels(labels: Sequence[Any], truth: Sequence[int]) -> dict[str, int]:
    """Count the wrong labels by kind; label 1 is the positive class."""
    wrong = Counter(a for a, b in zip(labels, truth, strict=True) if a is not None and a != b)
    return {"false_positives": wrong[1], "false_negatives": wrong[0]}


def error_change(labels: Sequence[Any], truth: Sequence[int], full: int) -> float | None:
    """Return the change of the number of errors in per cent; None from no error at all."""
    errors = sum(wrong_labels(labels, truth).values())
    return 100 * (errors - full) / full if full else None


def kappas(runs: Runs) -> dict[str, Any]:
    """Return Cohen's κ between the runs of the ablation; None where it is not defined."""
    from langchain_judges.metrics import cohen_kappa

    names = [arm.name for kind in ("none", "all", "mode") for arm in runs.of(kind)]
    table: list[list[float | None]] = []
    for first in names:
        own = runs.labels(first)
        row = [figure_of(cohen_kappa(own, runs.labels(other))) for other in names]
        table.append([each["value"] for each in row])
    return {"runs": names, "matrix": table}
