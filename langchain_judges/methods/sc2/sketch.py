"""What SC² found, on a terminal: the aspects, the table that won, the bracket, the check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from langchain_judges.methods.sc2.replies import CheckedTable, Comparisons, TableMatch
from langchain_judges.methods.sc2.table_view import render_table
from langchain_judges.rows.printable import clean, shortened

_MOST = 12
"""Matches that are listed one by one, where all met."""


def sketched(row: Mapping[str, Any]) -> list[RenderableType]:
    """Sketch the aspects, the winning table and how it was chosen."""
    parts: list[RenderableType] = []
    if row.get("aspects"):
        names = Text(" · ".join(map(clean, row["aspects"])), style="bold")
        parts.append(Text("aspects: ") + names)
    if row.get("table"):
        parts.append(render_table(row["table"], "rich"))
    played = [match for match in row.get("bracket") or [] if not match["aspect"]]
    if played and row.get("comparisons"):
        mode = row["comparisons"]["mode"]
        knockout = mode in {"tournament", "double_round"}
        parts.append(_tree(played) if knockout else _list(played, row["comparisons"]))
    if row.get("checks"):
        parts.append(_checks(row["checks"], row.get("comparisons")))
    return parts


def _tree(played: Sequence[TableMatch]) -> Tree:
    """Draw a knockout from its last match down; a match stands under the winner's next one."""
    # Of the two orders of a match the last entry decides.
    last_legs = {(match["round"], match["match"]): match for match in played}
    final = last_legs[max(last_legs)]
    tree = Tree(_line(final), guide_style="dim")
    _grow(tree, final, last_legs)
    return tree


def _grow(
    tree: Tree, match: TableMatch, last_legs: Mapping[tuple[int, int], TableMatch]
) -> None:
    for number in match["tables"]:
        for (round_, _), before in last_legs.items():
            if round_ == match["round"] - 1 and before["winner"] == number:
                _grow(tree.add(_line(before)), before, last_legs)


def _line(match: TableMatch) -> Text:
    winner = Text(f"table {match['winner']}", style="bold")
    losers = [n for n in match["tables"] if n != match["winner"]]
    beat = f" beat table {losers[0]}" if losers else " had a bye"
    how = "" if match["decided_by"] in {"comparator", "bye"} else f" by {match['decided_by']}"
    why = f": {match['why']}" if losers and match["why"] else ""
    head = Text(f"match {match['round']}.{match['match']}  ", style="dim")
    return head + winner + Text(clean(shortened(f"{beat}{how}{why}", 150)))


def _list(played: Sequence[TableMatch], comparisons: Comparisons) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    wins = Counter(match["winner"] for match in played if match["winner"] is not None)
    order = sorted(wins.items(), key=lambda item: (-item[1], item[0]))
    standing = ", ".join(f"table {number}: {count}" for number, count in order)
    circles = comparisons["cyclic_triples"]
    note = "" if circles is None else f"; {circles} circles of three"
    table.add_row(Text(f"wins: {standing}{note}"))
    for match in played[:_MOST]:
        table.add_row(_line(match))
    if len(played) > _MOST:
        table.add_row(Text(f"… and {len(played) - _MOST} more matches", style="dim"))
    return table


def _checks(checks: Sequence[CheckedTable], comparisons: Comparisons | None) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("table check", "overlap", "entailment", "coverage", "unsupported", "passed"):
        table.add_column(column, justify="left" if column == "table check" else "right")
    for each in checks:
        shares = [each["overlap"], each["entailment"], each["coverage"]]
        cells = ["-" if share is None else f"{share:.2f}" for share in shares]
        passed = "yes" if each["clean"] else "no"
        unsupported = str(len(each["unsupported"]))
        table.add_row(f"table {each['number']}", *cells, unsupported, passed)
    if comparisons:
        saved, calls = comparisons["saved"], comparisons["spent"]
        table.add_row(Text(f"{saved} of {saved + calls} comparisons saved", style="dim"))
    return table
