"""What the plots of a sweep share: colours and markers that everybody can distinguish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protocols import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]

COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#B8A900",
)  # fmt: skip
"""Those of Okabe and Ito 2008; the yellow is darkened, for lines on white."""
MARKERS = "osD^vPX*"
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
}
"""The metrics that are drawn, and what they are called."""


def style(place: int) -> dict[str, Any]:
    """Return a colour and a marker of their own for a place in a list."""
    lines = ("-", "--", ":")
    count = len(COLOURS)
    return {
        "color": COLOURS[place % count],
        "marker": MARKERS[place % count],
        "linestyle": lines[place // count % len(lines)],
    }


def nothing(why: str) -> Figure:
    """Return a figure that says why there is nothing to draw."""
    figure, axes = canvas(8, 2)
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", va="center")
    return figure


def line(axes: Axes, xs: Sequence[float], figures: Sequence[Any], **look: Any) -> None:
    """Draw values with their intervals, undefined ones left out."""
    points = [
        (x, each)
        for x, each in zip(xs, figures, strict=True)
        if each and each["value"] is not None
    ]
    if not points:
        return
    at, values = [x for x, _ in points], [each["value"] for _, each in points]
    axes.errorbar(at, values, yerr=reach([each for _, each in points]), capsize=3, **look)


def reach(figures: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return how far the intervals reach below and above their values."""
    low = [f["value"] if f["low"] is None else min(f["low"], f["value"]) for f in figures]
    high = [f["value"] if f["high"] is None else max(f["high"], f["value"]) for f in figures]
    middle = [f["value"] for f in figures]
    return [
        [m - each for m, each in zip(middle, low, strict=True)],
        [each - m for m, each in zip(middle, high, strict=True)],
    ]


def spread(place: int, of: int) -> float:
    """Return a small shift, so that bars of intervals do not cover each other."""
    return 0.06 * (place - (of - 1) / 2)


def by_metric(axes: Axes, several: Sequence[Mapping[str, Any]]) -> None:
    """Draw one line for each metric, over the numbers of runs."""
    names = [name for name in METRICS if any(name in each for each in several)]
    for place, name in enumerate(names):
        xs = [x + spread(place, len(names)) for x in range(len(several))]
        values = [each.get(name) for each in several]
        line(axes, xs, values, label=METRICS[name], **style(place))


def majority_line(axes: Axes, results: Results) -> None:
    """Draw the accuracy of always giving the most frequent label."""
    axes.axhline(results["majority"], color="#555555", lw=1, ls=(0, (6, 3)))
    share = f"always the commonest label: {results['majority']:.3f}"
    axes.annotate(
        share, (0.01, results["majority"]), xycoords=("axes fraction", "data"), fontsize=8,
        xytext=(0, 2), textcoords="offset points", color="#555555",
    )  # fmt: skip


def metrics_plot(
    results: Results,
    runs: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    xlabel: str = "",
    **ticks: Any,
) -> Figure:
    """Return a plot of the metrics of runs, with the accuracy of the most frequent label."""
    figure, axes = canvas()
    by_metric(axes, runs)
    axes.set_xticks(range(len(names)), names, **ticks)
    axes.set(xlabel=xlabel, ylabel="on held-out items", ylim=(-0.03, 1.03))
    majority_line(axes, results)
    legend(axes)
    return figure


def run_metrics(results: Results, entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the metrics of the run that each entry names."""
    return [results["runs"][each["run"]]["metrics"] for each in entries]


def legend(axes: Axes, title: str | None = None) -> None:
    """Put a legend next to the axes, if anything has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, frameon=False, title=title
        )
