"""The results of SC²'s studies: accuracy, calls and decoded length, and the paper's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from protocols import canvas
from rich.table import Table

from langchain_judges.runs.comparison import Comparison

SEARCH = ("table", "match")
"""Steps whose tokens are the decoded length of the paper's Table 2."""


def results(folder: Path, arm: str) -> list[dict[str, Any]]:
    """Return the results of an arm."""
    lines = (folder / f"{arm}.jsonl").read_text("utf-8").splitlines()
    return list(map(json.loads, lines))


def summary(rounds: Mapping[Path, Comparison]) -> dict[str, dict[str, Any]]:
    """Return accuracy, calls and decoded tokens of each arm, as means over the rounds.

    Args:
        rounds: The comparison of each round, by the folder of its results.
    """
    figures: dict[str, dict[str, Any]] = {}
    first = next(iter(rounds.values()))
    for arm in first["methods"]:
        standings = [each["methods"][arm] for each in rounds.values()]
        labelled = [each["labelled"] for each in standings if each["labelled"]]
        shares = [each["share"] for each in labelled if each["share"] is not None]
        usages = [row["verdict"]["usage"] for folder in rounds for row in results(folder, arm)]
        figures[arm] = {
            "accuracy": fmean(shares) if shares else None,
            "sd": stdev(shares) if len(shares) > 1 else None,
            "calls": fmean(usage["calls"] for usage in usages),
            "decoded": fmean(usage["output_tokens"] for usage in usages),
            "decoded_in_search": fmean(
                sum(usage["by_step"].get(s, {}).get("output_tokens", 0) for s in SEARCH)
                for usage in usages
            ),
            "not_judged": sum(each["not_judged"] for each in standings),
        }
    return figures


def summary_table(figures: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """Render the arms of a study; calls and tokens are those of a pair."""
    table = Table(
        *("arm", "accuracy", "calls", "decoded tokens", "of tables and matches"),
        "not judged",
        title=title,
    )
    for arm, row in figures.items():
        share = "-" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        if row["sd"] is not None:
            share += f" ± {row['sd']:.3f}"
        numbers = [f"{row[key]:,.1f}" for key in ("calls", "decoded", "decoded_in_search")]
        table.add_row(arm, share, *numbers, str(row["not_judged"]))
    return table


def sizes_table(sizes: Mapping[str, Mapping[str, int]]) -> Table:
    """Render how large each set is (the paper's Table 6)."""
    columns = ("pairs", "groups", "judged", "learned from")
    table = Table("set", *columns, title="Sizes of the sets")
    for name, row in sizes.items():
        table.add_row(name, *(f"{row[column]:,}" for column in columns))
    return table


def draw(points: Mapping[int, float | None], path: Path, title: str) -> None:
    """Draw accuracy over the number of tables (Figure 3).

    Args:
        points: Accuracy by |C|.
        path: Of the picture.
        title: Of the picture.
    """
    figure, axes = canvas(5, 4)
    figure.suptitle(title)
    line = [(n, share) for n, share in points.items() if share is not None]
    axes.plot([n for n, _ in line], [share for _, share in line], "o-")
    axes.set_xlabel("tables |C|")
    axes.set_ylabel("accuracy")
    axes.set_xticks(list(points))
    figure.savefig(path, dpi=150)
