"""The plots of a sweep: colours and markers that the colour-blind tell apart."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_judges.errors import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_TURNED_SHOWN = 6
_WIDTH = 46

Results = Mapping[str, Any]


class Plot(NamedTuple):
    """A plot: its file without ending, its heading, what it shows, and who draws it."""

    name: str
    title: str
    caption: str
    draw: Callable[[Results], Figure]


def style(place: int) -> dict[str, Any]:
    """Return a colour and a marker of their own for a place in a list."""
    lines = ("-", "--", ":")
    count = len(COLOURS)
    return {
        "color": COLOURS[place % count],
        "marker": MARKERS[place % count],
        "linestyle": lines[place // count % len(lines)],
    }


def _figure(width: float = 8.0, height: float = 4.6, **grid: Any) -> tuple[Figure, Any]:
    with needs("trust", "A plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(**grid)
    return figure, axes


def _nothing(why: str) -> Figure:
    figure, axes = _figure(8, 2)
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", va="center")
    return figure


def _line(axes: Axes, xs: Sequence[float], figures: Sequence[Any], **look: Any) -> None:
    """Draw values with their intervals, undefined ones left out."""
    known = [
        (x, each)
        for x, each in zip(xs, figures, strict=True)
        if each and each["value"] is not None
    ]
    if not known:
        return
    at, values = [x for x, _ in known], [each["value"] for _, each in known]
    axes.errorbar(at, values, yerr=_reach([each for _, each in known]), capsize=3, **look)


def _reach(figures: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    low = [f["value"] if f["low"] is None else min(f["low"], f["value"]) for f in figures]
    high = [f["value"] if f["high"] is None else max(f["high"], f["value"]) for f in figures]
    middle = [f["value"] for f in figures]
    return [
        [m - each for m, each in zip(middle, low, strict=True)],
        [each - m for m, each in zip(middle, high, strict=True)],
    ]


def _spread(place: int, of: int) -> float:
    """Return a small shift, so that bars of intervals do not cover each other."""
    return 0.06 * (place - (of - 1) / 2)


def _by_metric(axes: Axes, several: Sequence[Mapping[str, Any]]) -> None:
    names = [name for name in METRICS if any(name in each for each in several)]
    for place, name in enumerate(names):
        xs = [x + _spread(place, len(names)) for x in range(len(several))]
        told = [each.get(name) for each in several]
        _line(axes, xs, told, label=METRICS[name], **style(place))


def _majority(axes: Axes, results: Results) -> None:
    axes.axhline(results["majority"], color="#555555", lw=1, ls=(0, (6, 3)))
    share = f"always the commonest label: {results['majority']:.3f}"
    axes.annotate(
        share, (0.01, results["majority"]), xycoords=("axes fraction", "data"), fontsize=8,
        xytext=(0, 2), textcoords="offset points", color="#555555",
    )  # fmt: skip


def _legend(axes: Axes, title: str | None = None) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, frameon=False, title=title
        )


def sweep(results: Results) -> Figure:
    """Draw the metrics over the number of examples."""
    figure, axes = _figure()
    sizes = results["sizes"]
    _by_metric(axes, [each["metrics"] for each in sizes])
    axes.set_xticks(range(len(sizes)), [_size(each) for each in sizes])
    axes.set(xlabel="examples", ylabel="on held-out items", ylim=(-0.03, 1.03))
    _majority(axes, results)
    _legend(axes)
    return figure


def _size(each: Mapping[str, Any]) -> str:
    return f"all\n({each['shown']:.0f})" if each["size"] == "all" else str(each["size"])


def systems(results: Results) -> Figure:
    """Draw the accuracy on each system's responses over the number of examples."""
    sizes = results["sizes"]
    names = sorted({name for each in sizes for name in each["by_system"]})
    figure, axes = _figure(height=max(4.6, 0.28 * len(names) + 2))
    for place, name in enumerate(names):
        told = [each["by_system"].get(name) for each in sizes]
        xs = [x + _spread(place, len(names)) / 2 for x in range(len(sizes))]
        majority = next(each["majority"] for each in told if each)
        _line(axes, xs, told, label=f"{name} (majority {majority:.2f})", **style(place))
    axes.set_xticks(range(len(sizes)), [_size(each) for each in sizes])
    axes.set(xlabel="examples", ylabel="accuracy", ylim=(-0.03, 1.03))
    _legend(axes, "system")
    return figure


def instructions(results: Results) -> Figure:
    """Draw what each part of the prompt adds."""
    figure, axes = _figure()
    told = results["instructions"]
    _by_metric(axes, [results["runs"][each["run"]]["metrics"] for each in told])
    names = [each["name"] for each in told]
    axes.set_xticks(range(len(names)), [n if not k else f"+ {n}" for k, n in enumerate(names)])
    axes.set(ylabel="on held-out items", ylim=(-0.03, 1.03))
    _majority(axes, results)
    _legend(axes)
    return figure


def curve(results: Results) -> Figure:
    """Draw the metrics over the number of training items that were audited."""
    figure, axes = _figure()
    points = results["learning_curve"]
    _by_metric(axes, [results["runs"][each["run"]]["metrics"] for each in points])
    names = [f"{each['audited']}\n({each['examples']})" for each in points]
    axes.set_xticks(range(len(names)), names)
    axes.set(
        xlabel="training items audited (examples remembered)",
        ylabel="on held-out items",
        ylim=(-0.03, 1.03),
    )
    _majority(axes, results)
    _legend(axes)
    return figure


def ablation(results: Results) -> Figure:
    """Draw errors and agreement where one failure mode is left out."""
    told = results["ablation"]
    if not told:
        return _nothing("No example was remembered, so none can be left out.")
    figure, (left, right) = _figure(9, 0.5 * len(told) + 2, ncols=2, sharey=True)
    names = [each["left_out"] or "nothing left out" for each in told]
    ys = range(len(told))
    left.barh(ys, [each["errors"] for each in told], color=COLOURS[0])
    for y, each in enumerate(told):
        change = each["change_percent"]
        more = "" if change is None or not y else f" ({change:+.0f} %)"
        left.text(each["errors"], y, f" {each['errors']}{more}", va="center", fontsize=8)
    left.set_yticks(ys, names)
    left.invert_yaxis()
    left.margins(x=0.25)
    left.set(xlabel=f"errors on {results['items']['held_out']} held-out items")
    known = [
        (y, each["kappa"]) for y, each in enumerate(told) if each["kappa"]["value"] is not None
    ]
    if known:
        right.errorbar(
            [each["value"] for _, each in known],
            [y for y, _ in known],
            xerr=_reach([each for _, each in known]),
            fmt="D", color=COLOURS[3], capsize=3,
        )  # fmt: skip
    right.set(xlabel="Cohen's κ with the run that has all examples")
    return figure


def errors(results: Results) -> Figure:
    """Draw the errors by type of problem, run by run."""
    names = ["none", *(each["run"] for each in results["ablation"])]
    runs = [(name, results["runs"][name]["errors_by_problem"]) for name in names]
    problems = sorted(runs[0][1])
    figure, axes = _figure(9, max(3.5, 0.55 * len(problems) + 1.5))
    thick = 0.8 / len(runs)
    for place, (name, counts) in enumerate(runs):
        ys = [y + (place - (len(runs) - 1) / 2) * thick for y in range(len(problems))]
        axes.barh(
            ys, [counts[each]["errors"] for each in problems], thick,
            color=COLOURS[place % len(COLOURS)], label=_run(name),
            hatch="" if place < 4 else "//", edgecolor="white", lw=0.3,
        )  # fmt: skip
    of = runs[0][1]
    axes.set_yticks(range(len(problems)), [f"{each} (of {of[each]['n']})" for each in problems])
    axes.invert_yaxis()
    axes.set(xlabel="errors on held-out items", ylabel=results["problems"])
    _legend(axes, "examples")
    return figure


def _run(name: str) -> str:
    return {"none": "none", "all": "all"}.get(name, name.replace("-", " "))


def kappa(results: Results) -> Figure:
    """Draw Cohen's κ between every two runs of the ablation."""
    import numpy as np

    names, matrix = results["kappa"]["runs"], results["kappa"]["matrix"]
    figure, axes = _figure(1.0 * len(names) + 3, 0.8 * len(names) + 2)
    values = np.asarray([[np.nan if v is None else v for v in row] for row in matrix], float)
    shown = axes.imshow(
        values, cmap="cividis", vmin=min(0.0, np.nanmin(values, initial=0)), vmax=1
    )
    for (y, x), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.2f}"
        axes.text(x, y, text, ha="center", va="center", fontsize=8,
                  color="black" if value > 0.6 or np.isnan(value) else "white")  # fmt: skip
    labels = [_run(name) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=35, ha="right")
    axes.set_yticks(range(len(names)), labels)
    figure.colorbar(shown, ax=axes, label="Cohen's κ")
    return figure


def skills(results: Results) -> Figure:
    """Draw how many examples there are of each type of problem, by failure mode."""
    counts = results["examples"]["by_problem"]
    if not counts:
        return _nothing("The judge made no mistake that could be remembered.")
    modes = sorted(results["examples"]["by_mode"])
    figure, axes = _figure(8, max(2.5, 0.4 * len(counts) + 1.5))
    begun = [0] * len(counts)
    for place, mode in enumerate(modes):
        widths = [each.get(mode, 0) for each in counts.values()]
        axes.barh(
            list(counts), widths, left=begun, label=mode,
            color=COLOURS[place % len(COLOURS)], hatch="" if place < 4 else "//",
            edgecolor="white",
        )  # fmt: skip
        begun = [a + b for a, b in zip(begun, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="examples", ylabel=results["problems"])
    _legend(axes, "failure mode")
    return figure


def example_map(results: Results) -> Figure:
    """Draw the t-SNE map of the examples under each seed."""
    told = results["map"]
    if not told["seeds"]:
        return _nothing("A map needs four examples.")
    count = len(told["seeds"])
    figure, several = _figure(4 * count + 1.5, 4, ncols=count, squeeze=False)
    modes = sorted(set(told["modes"]))
    for axes, seed, places in zip(several[0], told["seeds"], told["places"], strict=True):
        for place, mode in enumerate(modes):
            own = [xy for xy, each in zip(places, told["modes"], strict=True) if each == mode]
            look = style(place)
            axes.scatter(
                [x for x, _ in own], [y for _, y in own], s=22, alpha=0.8, label=mode,
                color=look["color"], marker=look["marker"], edgecolors="none",
            )  # fmt: skip
        axes.set(title=f"seed {seed}", xticks=[], yticks=[])
    _legend(several[0][-1], "failure mode")
    return figure


def turned(results: Results) -> Figure:
    """Draw the items that memory turned from wrong to right beside their nearest examples."""
    items = results["turned"]["items"]
    if not items:
        return _nothing("No held-out item was turned from wrong to right.")
    shown = items[:_TURNED_SHOWN]
    figure, axes = _figure(11, 0.95 * len(shown) + 1.1)
    axes.axis("off")
    cells = []
    for item in shown:
        near = item["nearest"] or {}
        said = str(near.get("output", "–"))
        cells.append(
            [
                _short(item["output"]),
                f"{item['before']} → {item['label']}",
                _short(said),
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
    rest = len(items) - len(shown)
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
