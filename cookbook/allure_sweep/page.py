"""The report of a sweep: plots as PNG files, one HTML page that holds them all, and a table."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rich.table import Table

from allure_sweep.plots import PLOTS

COLUMNS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "recall_of_0": "recall of 0",
    "f1": "F1",
    "d_prime": "d′",
    "criterion": "criterion",
}
"""The metrics of the tables, and what they are called."""


def write_report(results: Mapping[str, Any], out: str | PathLike[str]) -> Path:
    """Write the plots of a sweep and a page that holds all of them; return the page.

    Args:
        results: What `run_sweep` returned, or its `results.json`.
        out: The folder for `report.html` and the plots, `*.png`.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    plots = []
    for plot in PLOTS:
        buffer = io.BytesIO()
        plot.draw(results).savefig(buffer, format="png", dpi=130)
        (folder / f"{plot.name}.png").write_bytes(buffer.getvalue())
        code = base64.b64encode(buffer.getvalue()).decode()
        plot_fields = {"name": plot.name, "title": plot.title, "caption": plot.caption}
        plots.append({**plot_fields, "image": f"data:image/png;base64,{code}"})
    page = folder / "report.html"
    page.write_text(_page(results, plots), "utf-8", "replace")
    return page


def _page(results: Mapping[str, Any], plots: list[dict[str, str]]) -> str:
    from jinja2 import Environment, FileSystemLoader

    own = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own.filters["figure"] = figure_text
    return own.get_template("page.html").render(
        results=results, plots=plots, columns=_columns(results), areas=_areas(results)
    )


def _areas(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the area under the ROC curve of each run of the ablation."""
    curves = results["roc"]["ablation"]
    return {
        each["name"]: "–" if each["area"] is None else f"{each['area']:.3f}" for each in curves
    }


def _columns(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics that some run has; there is no AUC without probabilities."""
    names = {name for run in results["runs"].values() for name in run["metrics"]}
    return {name: title for name, title in COLUMNS.items() if name in names}


def figure_text(figure: Mapping[str, Any] | None) -> str:
    """Return a figure as people read it: its value, and its interval where there is one."""
    if not figure or figure["value"] is None:
        return "–"
    if figure["low"] is None:
        return f"{figure['value']:.3f}"
    return f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"


def sweep_table(results: Mapping[str, Any]) -> Table:
    """Return the sweep over sizes and the other runs as a table for the terminal."""
    table = Table(box=None, caption_justify="left", caption=_caption(results))
    columns = _columns(results)
    table.add_column("run")
    for name in ("shown", *columns.values(), "majority", "errors", "not judged"):
        table.add_column(name, justify="right")
    for each in results["sizes"]:
        runs = [results["runs"][name] for name in each["runs"]]
        name = f"{each['size']} examples"
        _add(table, name, each["metrics"], columns, runs)
    for name, run in results["runs"].items():
        if run["kind"] in {"instruct", "mode", "curve"}:
            _add(table, name.replace("-", " "), run["metrics"], columns, [run])
    return table


def _add(
    table: Table,
    name: str,
    metrics: Mapping[str, Any],
    columns: Mapping[str, str],
    runs: list[Mapping[str, Any]],
) -> None:
    count = len(runs)
    cells = [_short(metrics.get(each)) for each in columns]
    mean_examples = sum(run["shown"] for run in runs) / count
    errors = sum(run["errors"] for run in runs) / count
    table.add_row(
        name,
        f"{mean_examples:.1f}",
        *cells,
        f"{runs[0]['majority']:.3f}",
        f"{errors:.1f}".removesuffix(".0"),
        str(sum(run["not_judged"] for run in runs)),
    )


def _short(figure: Mapping[str, Any] | None) -> str:
    return "–" if not figure or figure["value"] is None else f"{figure['value']:.3f}"


def _caption(results: Mapping[str, Any]) -> str:
    if results["leak_allowed"]:
        return (
            "Leaks were allowed: examples come from the very items that are measured, so these "
            "figures say nothing of new items."
        )
    return "On held-out items; examples come from other groups. Majority: always that label."
