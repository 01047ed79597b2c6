"""The figures of the Branch-Solve-Merge study: agreement, biases, likeness of plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

from rich.table import Table as Screen

from langchain_judges.metrics import (
    Result,
    length_bias,
    majority_agreement,
    people_agreement,
    rate,
    vote_agreement,
)
from langchain_judges.rows.texts import judged

Row = Mapping[str, Any]
Figures = dict[str, Any]


def figures(rows: Sequence[Row], results: Mapping[str, Row], majority: bool = False) -> Figures:
    """Return Ag, PB and LB of the pairs with what each is out of; None where that is none.

    `Ag_interval` is clustered by question.
    """
    votes = [_votes(row) for row in rows]
    row_results = [results[row["id"]] for row in rows]
    questions = [row.get("group", row["id"]) for row in rows]
    agree = majority_agreement if majority else vote_agreement
    agreement = agree(row_results, votes, groups=questions)
    lengths = [[len(judged(row[f"output_{side}"])) for row in rows] for side in "ab"]
    bias = length_bias(row_results, votes, *lengths)
    verdicts = [result["verdict"] for result in row_results if result["verdict"]["preference"]]
    flips = rate(verdict["flipped"] for verdict in verdicts)
    return {
        "Ag": _value(agreement),
        "Ag_interval": list(agreement.interval) if agreement.interval else None,
        "PB": _value(flips),
        "LB": _value(bias),
        "pairs": len(rows),
        "votes": agreement.n,
        "both_orders": flips.n,
        "for_the_shorter": bias.n,
        "not_judged": len(row_results) - len(verdicts),
    }


def _value(result: Result) -> float | None:
    return None if result.reason else float(result)


def _votes(row: Row) -> list[Any]:
    return list(row.get("human_votes") or [row["label"]])


def human_agreement(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how often two people agree on a pair, with which a judge is compared."""
    ceiling = people_agreement([_votes(row) for row in rows])
    return {"agreement": _value(ceiling), "pairs": ceiling.n}


def screen_table(table: Mapping[str, Any]) -> Screen:
    """Return a table of the study for the terminal."""
    names = ["overall", "turn 1", "turn 2"]
    screen = Screen(title=f"Table {table['number']}. {table['title']}", title_justify="left")
    screen.add_column("setting")
    screen.add_column("category")
    for name in names:
        screen.add_column(f"{name}: Ag PB LB", justify="right")
    screen.add_column("not judged", justify="right")
    for line in table["lines"]:
        cells = [_cell(line.get(name)) for name in names]
        failed = f"{line['overall']['not_judged']}/{line['overall']['pairs']}"
        screen.add_row(line["setting"], line["category"], *cells, failed)
    return screen


def _cell(figure: Figures | None) -> str:
    if figure is None:
        return "-"
    shares = (figure["Ag"], figure["PB"], figure["LB"])
    return " ".join("-" if share is None else f"{share:.2f}" for share in shares)


def plan_likeness(pairs: Iterable[tuple[Row, Row]]) -> dict[str, Any]:
    """Return how alike the plans of two questions are, within a category and between two.

    Likeness is the Jaccard index of the names of their criteria; a question counts once.

    Args:
        pairs: Rows with their results.
    """
    plans: dict[Any, tuple[str, set[str]]] = {}
    for row, result in pairs:
        names = {each["name"].casefold() for each in result.get("criteria") or []}
        if names:
            plans.setdefault(
                (row["category"], row.get("group"), row["turn"]), (row["category"], names)
            )
    indices: dict[str, list[float]] = {"within": [], "between": []}
    for (one, mine), (other, theirs) in combinations(plans.values(), 2):
        index = len(mine & theirs) / len(mine | theirs)
        indices["within" if one == other else "between"].append(index)
    means = {name: fmean(each) if each else None for name, each in indices.items()}
    return {"plans": len(plans), **means}
