"""The results of SC²'s studies: accuracy, calls and decoded length, and the paper's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from protocols import canvas
from rich.table import Table

from langchain_judges.asking.models.embeddings import default_embeddings
from langchain_judges.errors import MissingExtraError
from langchain_judges.methods.sc2.check import TableCheck, check_table, phrases_of
from langchain_judges.rows.texts import judged
from langchain_judges.runs.studies.comparison import Comparison

SEARCH = ("table", "match")
"""Steps whose tokens are the decoded length of the paper's Table 2."""

Pairs = Mapping[str, Mapping[str, Any]]


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


def fidelity(folder: Path, arm: str, pairs: Pairs) -> dict[str, float | None]:
    """Return the mean entailment and coverage of the tables that an arm chose.

    Args:
        folder: Of its results.
        arm: Its label.
        pairs: The judged pairs by id.
    """
    checks = []
    for row in results(folder, arm):
        table = row.get("table")
        if table:
            pair = pairs[row["id"]]
            a, b = judged(pair["output_a"]), judged(pair["output_b"])
            vectors = _vectors(phrases_of([table], [a, b]))
            checks.append(check_table(TableCheck(embed=bool(vectors)), table, a, b, vectors))
    means: dict[str, float | None] = {}
    for name in ("entailment", "coverage"):
        all_values: list[float | None] = [check[name] for check in checks]
        values = [value for value in all_values if value is not None]
        means[name] = fmean(values) if values else None
    return means


def _vectors(phrases: Sequence[str]) -> dict[str, list[float]]:
    try:
        return dict(zip(phrases, default_embeddings().embed_documents([*phrases]), strict=True))
    except MissingExtraError:
        return {}


def draw(points: Mapping[int, Mapping[str, float | None]], path: Path, title: str) -> None:
    """Draw accuracy, and entailment and coverage, over the number of tables (Figures 3, 5).

    Args:
        points: `accuracy`, `entailment` and `coverage` by |C|.
        path: Of the picture.
        title: Of the picture.
    """
    figure, (left, right) = canvas(9, 4, ncols=2)
    figure.suptitle(title)
    for axes, name, style in (
        (left, "accuracy", "o-"),
        (right, "entailment", "o-"),
        (right, "coverage", "s--"),
    ):
        line = [(n, each[name]) for n, each in points.items() if each[name] is not None]
        axes.plot([n for n, _ in line], [value for _, value in line], style, label=name)
        axes.set_xlabel("tables |C|")
        axes.set_xticks(list(points))
        axes.legend()
    figure.savefig(path, dpi=150)
