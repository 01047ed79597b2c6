"""Plots of the runs that leave one failure mode out, and ROC curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protocols import canvas

from allure_sweep.drawing import (
    COLOURS,
    Results,
    legend,
    metrics_plot,
    nothing,
    reach,
    run_metrics,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def ablation(results: Results) -> Figure:
    """Draw errors and agreement where one failure mode is left out."""
    arms = results["ablation"]
    if not arms:
        return nothing("No example was remembered, so none can be left out.")
    figure, (left, right) = canvas(9, 0.5 * len(arms) + 2, ncols=2, sharey=True)
    ys = range(len(arms))
    left.barh(ys, [each["errors"] for each in arms], color=COLOURS[0])
    for y, each in enumerate(arms):
        change = each["change_percent"]
        more = "" if change is None or not y else f" ({change:+.0f} %)"
        left.text(each["errors"], y, f" {each['errors']}{more}", va="center", fontsize=8)
    left.set_yticks(ys, _names(arms))
    left.invert_yaxis()
    left.margins(x=0.25)
    left.set(xlabel=f"errors on {results['items']['held_out']} held-out items")
    points = [
        (y, each["kappa"]) for y, each in enumerate(arms) if each["kappa"]["value"] is not None
    ]
    if points:
        right.errorbar(
            [each["value"] for _, each in points],
            [y for y, _ in points],
            xerr=reach([each for _, each in points]),
            fmt="D", color=COLOURS[3], capsize=3,
        )  # fmt: skip
    right.set(xlabel="Cohen's κ with the run that has all examples")
    return figure


def _names(arms: Sequence[Mapping[str, Any]]) -> list[str]:
    return [each["left_out"] or "nothing left out" for each in arms]


def errors(results: Results) -> Figure:
    """Draw the errors by type of problem, run by run."""
    names = ["none", *(each["run"] for each in results["ablation"])]
    runs = [(name, results["runs"][name]["errors_by_problem"]) for name in names]
    problems = sorted(runs[0][1])
    figure, axes = canvas(9, max(3.5, 0.55 * len(problems) + 1.5))
    thick = 0.8 / len(runs)
    for place, (name, counts) in enumerate(runs):
        ys = [y + (place - (len(runs) - 1) / 2) * thick for y in range(len(problems))]
        axes.barh(
            ys, [counts[each]["errors"] for each in problems], thick,
            color=COLOURS[place % len(COLOURS)], label=run_name(name),
            hatch="" if place < 4 else "//", edgecolor="white", lw=0.3,
        )  # fmt: skip
    of = runs[0][1]
    axes.set_yticks(range(len(problems)), [f"{each} (of {of[each]['n']})" for each in problems])
    axes.invert_yaxis()
    axes.set(xlabel="errors on held-out items", ylabel=results["problems"])
    legend(axes, "examples")
    return figure


def run_name(name: str) -> str:
    """Return the name of a run as a legend says it."""
    return {"none": "none", "all": "all"}.get(name, name.replace("-", " "))


def kappa(results: Results) -> Figure:
    """Draw Cohen's κ between every two runs of the ablation."""
    import numpy as np

    names, matrix = results["kappa"]["runs"], results["kappa"]["matrix"]
    figure, axes = canvas(1.0 * len(names) + 3, 0.8 * len(names) + 2)
    values = np.asarray([[np.nan if v is None else v for v in row] for row in matrix], float)
    image = axes.imshow(
        values, cmap="cividis", vmin=min(0.0, np.nanmin(values, initial=0)), vmax=1
    )
    for (y, x), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.2f}"
        axes.text(x, y, text, ha="center", va="center", fontsize=8,
                  color="black" if value > 0.6 or np.isnan(value) else "white")  # fmt: skip
    labels = [run_name(name) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=35, ha="right")
    axes.set_yticks(range(len(names)), labels)
    figure.colorbar(image, ax=axes, label="Cohen's κ")
    return figure


def changes(results: Results) -> Figure:
    """Draw the labels that change, and the wrong ones by kind, where a mode is left out."""
    arms = results["ablation"]
    if not arms:
        return nothing("No example was remembered, so none can be left out.")
    figure, (left, right) = canvas(11, 0.5 * len(arms) + 2, ncols=2, sharey=True)
    _stacked(left, arms, {"changed_to_1": "0 → 1", "changed_to_0": "1 → 0"})
    wrong = {"false_positives": "false positives", "false_negatives": "false negatives"}
    _stacked(right, arms, wrong)
    left.set_yticks(range(len(arms)), _names(arms))
    left.invert_yaxis()
    left.set(xlabel="labels other than with all examples")
    right.set(xlabel=f"wrong labels on {results['items']['held_out']} held-out items")
    return figure


def _stacked(axes: Axes, arms: Sequence[Mapping[str, Any]], counts: Mapping[str, str]) -> None:
    ends = [0] * len(arms)
    for place, (name, label) in enumerate(counts.items()):
        widths = [each[name] for each in arms]
        axes.barh(
            range(len(arms)), widths, left=ends, label=label, color=COLOURS[place],
            hatch="//" if place else "", edgecolor="white",
        )  # fmt: skip
        for y, (begin, width) in enumerate(zip(ends, widths, strict=True)):
            if width:
                axes.text(begin + width / 2, y, str(width), ha="center", va="center",
                          fontsize=8, backgroundcolor="white")  # fmt: skip
        ends = [a + b for a, b in zip(ends, widths, strict=True)]
    axes.set_xlim(0, 1.05 * max(1, *ends))
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8, frameon=False)


def metrics_left_out(results: Results) -> Figure:
    """Draw the metrics of the runs in which one failure mode is left out."""
    arms = results["ablation"]
    if not arms:
        return nothing("No example was remembered, so none can be left out.")
    metrics = run_metrics(results, arms)
    return metrics_plot(results, metrics, _names(arms), rotation=20, ha="right")


def roc_sizes(results: Results) -> Figure:
    """Draw the ROC curves by number of examples."""
    return _roc(results["roc"]["sizes"], "examples")


def roc_ablation(results: Results) -> Figure:
    """Draw the ROC curves of the runs in which one failure mode is left out."""
    return _roc(results["roc"]["ablation"], "run")


def _roc(curves: Sequence[Mapping[str, Any]], title: str) -> Figure:
    curves_with_points = [each for each in curves if each["points"]]
    if not curves_with_points:
        return nothing("A curve needs judged items of both labels.")
    figure, axes = canvas(7.2, 4.8)
    axes.plot([0, 1], [0, 1], color="#999999", lw=1, ls=(0, (6, 3)))
    for place, each in enumerate(curves_with_points):
        xs, ys = zip(*each["points"], strict=True)
        few = len(xs) <= 3
        area = f"{run_name(each['name'])} ({each['area']:.3f})"
        look = style(place)
        axes.plot(xs, ys, label=area, **{**look, "marker": look["marker"] if few else None})
    axes.set(
        xlabel="false positive rate", ylabel="true positive rate", aspect="equal",
        xlim=(-0.02, 1.02), ylim=(-0.02, 1.02),
    )  # fmt: skip
    legend(axes, f"{title} (area)")
    return figure
