"""The papers' plots, of the cells of a study: a point for each arm, with its interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cookbook.study.runner import slug


class Plot(NamedTuple):
    """A figure of a paper, as columns of a table.

    Attributes:
        arms: The arms on its x-axis; what stands in the group is their label.
        columns: What is drawn, each in a panel of its own.
    """

    table: str
    arms: str
    columns: tuple[str, ...]


PLOTS: Mapping[str, Mapping[str, Plot]] = {
    "allure": {
        "figure 3": Plot("e1", r"size (\d+), draw 0|(all)", ("F1", "accuracy")),
        "figure 6": Plot("e1", r"(all)|without (\D+)", ("accuracy", "F1", "errors")),
        "figure 8": Plot("e2", r"size (\d+), draw 0|(all)", ("accuracy", "balanced")),
    },
    "drpe": {"panel sizes": Plot("sizes", r"(.+ roles)", ("|Pearson|",))},
    "sc2": {"figure 3": Plot("figure 3", r"sc2 C(\d+)", ("accuracy",))},
}
"""The figures that are drawn, by paper and name."""


def draw(paper: str, cells: Sequence[Mapping[str, Any]], out: Path) -> list[str]:
    """Draw the figures whose table was run, and return the names of their files."""
    written = []
    for name, plot in PLOTS.get(paper, {}).items():
        points = chosen(plot, cells)
        if not points:
            continue
        path = out / f"{slug(name)}.svg"
        _draw(name, plot, points, path)
        written.append(path.name)
    return written


Point = tuple[str, Mapping[str, Any]]


def chosen(plot: Plot, cells: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The cells of a figure, each with what its arm is called on the x-axis."""
    points = []
    for cell in cells:
        found = re.fullmatch(plot.arms, cell["arm"])
        known = cell["table"] == plot.table and cell["value"] is not None
        if found and known and cell["column"] in plot.columns:
            points.append((next(filter(None, found.groups())), cell))
    return points


def _draw(name: str, plot: Plot, points: Sequence[Point], path: Path) -> None:
    from matplotlib.figure import Figure  # slow to load

    figure = Figure(figsize=(4 * len(plot.columns), 3.2), layout="constrained")
    panels = figure.subplots(1, len(plot.columns), squeeze=False)[0]
    lines = dict.fromkeys((cell["model"], cell["part"]) for _, cell in points)
    for panel, column in zip(panels, plot.columns, strict=True):
        for line in lines:
            own = [
                (label, cell)
                for label, cell in points
                if cell["column"] == column and (cell["model"], cell["part"]) == line
            ]
            values = [cell["value"] for _, cell in own]
            ends = [[_reach(cell, end) for _, cell in own] for end in ("low", "high")]
            labels, shown = [label for label, _ in own], ", ".join(line)
            panel.errorbar(labels, values, yerr=ends, fmt="o-", capsize=3, label=shown)
        panel.set_ylabel(column)
        panel.tick_params(axis="x", rotation=30)
    panels[0].legend(fontsize="small")
    figure.suptitle(name)
    figure.savefig(path)


def _reach(cell: Mapping[str, Any], end: str) -> float:
    """Distance of an end of a cell's interval from its value."""
    return 0.0 if cell[end] is None else abs(float(cell["value"]) - float(cell[end]))
