"""The plots of a sweep, in the order of its report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from protocols import canvas

from allure_sweep.ablation_plots import (
    ablation,
    changes,
    errors,
    kappa,
    metrics_left_out,
    roc_ablation,
    roc_sizes,
)
from allure_sweep.drawing import (
    COLOURS,
    Results,
    legend,
    line,
    metrics_plot,
    nothing,
    run_metrics,
    spread,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TURNED_SHOWN = 6
_WIDTH = 46


class Plot(NamedTuple):
    """A plot: its file without ending, its heading, what it shows, and who draws it."""

    name: str
    title: str
    caption: str
    draw: Callable[[Results], Figure]


def sweep(results: Results) -> Figure:
    """Draw the metrics over the number of examples."""
    sizes = results["sizes"]
    metrics = [each["metrics"] for each in sizes]
    return metrics_plot(results, metrics, [_size(each) for each in sizes], "examples")


def _size(each: Mapping[str, Any]) -> str:
    return f"all\n({each['shown']:.0f})" if each["size"] == "all" else str(each["size"])


def systems(results: Results) -> Figure:
    """Draw the accuracy on each system's responses over the number of examples."""
    sizes = results["sizes"]
    names = sorted({name for each in sizes for name in each["by_system"]})
    figure, axes = canvas(height=max(4.6, 0.28 * len(names) + 2))
    for place, name in enumerate(names):
        figures_by_size = [each["by_system"].get(name) for each in sizes]
        xs = [x + spread(place, len(names)) / 2 for x in range(len(sizes))]
        majority = next(each["majority"] for each in figures_by_size if each)
        line(
            axes, xs, figures_by_size, label=f"{name} (majority {majority:.2f})", **style(place)
        )
    axes.set_xticks(range(len(sizes)), [_size(each) for each in sizes])
    axes.set(xlabel="examples", ylabel="accuracy", ylim=(-0.03, 1.03))
    legend(axes, "system")
    return figure


def instructions(results: Results) -> Figure:
    """Draw what each part of the prompt adds."""
    entries = results["instructions"]
    names = [
        f"+ {each['name']}" if place else each["name"] for place, each in enumerate(entries)
    ]
    return metrics_plot(results, run_metrics(results, entries), names)


def curve(results: Results) -> Figure:
    """Draw the metrics over the number of training items that were audited."""
    points = results["learning_curve"]
    names = [f"{each['audited']}\n({each['examples']})" for each in points]
    title = "training items audited (examples remembered)"
    return metrics_plot(results, run_metrics(results, points), names, title)


def skills(results: Results) -> Figure:
    """Draw how many examples there are of each type of problem, by failure mode."""
    counts = results["examples"]["by_problem"]
    if not counts:
        return nothing("The judge made no mistake that could be remembered.")
    modes = sorted(results["examples"]["by_mode"])
    figure, axes = canvas(8, max(2.5, 0.4 * len(counts) + 1.5))
    starts = [0] * len(counts)
    for place, mode in enumerate(modes):
        widths = [each.get(mode, 0) for each in counts.values()]
        axes.barh(
            list(counts), widths, left=starts, label=mode,
            color=COLOURS[place % len(COLOURS)], hatch="" if place < 4 else "//",
            edgecolor="white",
        )  # fmt: skip
        starts = [a + b for a, b in zip(starts, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="examples", ylabel=results["problems"])
    legend(axes, "failure mode")
    return figure


def example_map(results: Results) -> Figure:
    """Draw the t-SNE map of the examples under each seed."""
    layout = results["map"]
    if not layout["seeds"]:
        return nothing("A map needs four examples.")
    count = len(layout["seeds"])
    figure, several = canvas(4 * count + 1.5, 4, ncols=count, squeeze=False)
    modes = sorted(set(layout["modes"]))
    for axes, seed, places in zip(several[0], layout["seeds"], layout["places"], strict=True):
        for place, mode in enumerate(modes):
            own = [xy for xy, each in zip(places, layout["modes"], strict=True) if each == mode]
            look = style(place)
            axes.scatter(
                [x for x, _ in own], [y for _, y in own], s=22, alpha=0.8, label=mode,
                color=look["color"], marker=look["marker"], edgecolors="none",
            )  # fmt: skip
        axes.set(title=f"seed {seed}", xticks=[], yticks=[])
    legend(several[0][-1], "failure mode")
    return figure


def turned(results: Results) -> Figure:
    """Draw the items that memory turned from wrong to right beside their nearest examples."""
    items = results["turned"]["items"]
    if not items:
        return nothing("No held-out item was turned from wrong to right.")
    visible = items[:_TURNED_SHOWN]
    figure, axes = canvas(11, 0.95 * len(visible) + 1.1)
    axes.axis("off")
    cells = []
    for item in visible:
        near = item["nearest"] or {}
        reply = str(near.get("output", "–"))
        cells.append(
            [
                _short(item["output"]),
                f"{item['before']} → {item['label']}",
                _short(reply),
                f"{near.get('corrected', '–')}",
                _short(str(near.get("mode") or "none named"), 18),
            ]
        )
    table = axes.table(
        cells,
        colLabels=["response", "label", "nearest example", "its label", "failure mode"],
        colWidths=[0.36, 0.07, 0.36, 0.07, 0.14],
        cellLoc="left",
        bbox=(0, 0, 1, 1),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    rest = len(items) - len(visible)
    more = f", {rest} more in the report" if rest else ""
    axes.set_title(f"{len(items)} turned right, {results['turned']['worsened']} wrong{more}")
    return figure


def _short(text: str, width: int = _WIDTH) -> str:
    """Return the end of a text, where answers stand, on at most three lines."""
    plain = " ".join(text.split())
    if len(plain) > 3 * width - 2:
        plain = f"… {plain[-(3 * width - 4) :]}"
    # A dollar sign would begin a formula.
    return "\n".join(textwrap.wrap(plain, width)[:3]).replace("$", r"\$")


PLOTS = (
    Plot("sweep", "Number of examples", "Mean over draws of examples, with 95 % intervals over "
         "draws and groups of items.", sweep),
    Plot("systems", "Accuracy by system", "Accuracy on the responses of each system over the "
         "number of examples, beside that of always giving its commonest label.", systems),
    Plot("instructions", "What each part of the prompt adds", "Labels alone, then criteria, "
         "steps and all examples.", instructions),
    Plot("curve", "Learning curve", "All examples that were known when so many training items "
         "had been audited.", curve),
    Plot("ablation", "Failure modes left out", "Errors without the examples of one failure "
         "mode, and how far the labels stay the same.", ablation),
    Plot("metrics_left_out", "Metrics without one failure mode", "Each run over the same "
         "held-out items.", metrics_left_out),
    Plot("changes", "Label changes by failure mode", "Labels that are others than with all "
         "examples once one mode is left out, and the wrong labels by kind: a false positive "
         "is a wrong response labelled 1.", changes),
    Plot("roc_sizes", "ROC curves by number of examples", "Draws of one size are pooled. "
         "Curves of two straight lines come from labels without probabilities; their area is "
         "the balanced accuracy.", roc_sizes),
    Plot("roc_ablation", "ROC curves without one failure mode", "Beside the runs without and "
         "with all examples.", roc_ablation),
    Plot("errors", "Errors by type of problem", "Wrong labels on held-out items.", errors),
    Plot("kappa", "Agreement between runs", "Cohen's κ; a dash where both runs always give the "
         "same one label.", kappa),
    Plot("skills", "Examples by type of problem", "What the memory holds.", skills),
    Plot("map", "Map of the examples", "t-SNE of their embeddings. What changes from seed to "
         "seed is no structure; distances between clusters mean nothing.", example_map),
    Plot("turned", "Turned right by memory", "Held-out items that were wrong without and are "
         "right with all examples, each beside the nearest of them.", turned),
)  # fmt: skip
"""Every plot of the report, in its order."""
