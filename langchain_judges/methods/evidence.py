"""What a method shows beside its verdict: tables for a page, a sketch for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_judges.rows.kinds import kind_of_verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

TableCells = Mapping[str, object]
Sketch = Callable[[Mapping[str, Any]], "list[RenderableType]"]
"""From a result to what a terminal shows of it: `rich` renderables; empty where the result
holds nothing of the method's own."""


def _own(_: Mapping[str, object], rows: Sequence[TableCells]) -> Sequence[TableCells]:
    return rows


class EvidenceTable(NamedTuple):
    """One key of a result as a table."""

    key: str
    """The key of the result."""
    title: str
    columns: tuple[tuple[str, str], ...]
    """Where each column's cell stands in a row, such as `scores.A`, and its name."""
    rows: Callable[[Mapping[str, object], Any], Sequence[TableCells]] = _own
    """From the result and the value of the key to the rows; default the value itself."""


def scores_by_criterion(row: Mapping[str, Any]) -> list[RenderableType]:
    """Sketch sub-scores: a line for each criterion, a column for each order, or the label."""
    from rich.table import Table
    from rich.text import Text

    from langchain_judges.rows.printable import clean

    subscores = row.get("subscores") or []
    if not subscores:
        return []
    if kind_of_verdict(subscores[0]) == "item":
        return [_labels(subscores)]
    orders = list(dict.fromkeys(score["order"] for score in subscores))
    table = Table(box=None, pad_edge=False)
    table.add_column("criterion")
    for order in orders:
        table.add_column(f"{order[0]} first (A:B)", justify="right")
    for criterion in dict.fromkeys(score["criterion"] for score in subscores):
        cells = [
            " ".join(
                f"{score['scores']['A']}:{score['scores']['B']}"
                for score in subscores
                if (score["criterion"], score["order"]) == (criterion, order)
            )
            for order in orders
        ]
        table.add_row(Text(clean(criterion)), *(cell or "-" for cell in cells))
    return [table]


def _labels(subscores: Sequence[Mapping[str, Any]]) -> Table:
    """Sketch the labels of one text by each criterion."""
    from rich.table import Table
    from rich.text import Text

    from langchain_judges.rows.printable import clean

    table = Table(box=None, pad_edge=False)
    for column in ("criterion", "label", "reason"):
        table.add_column(column)
    for score in subscores:
        label = "not judged" if score["label"] is None else str(score["label"])
        cells = (score["criterion"], label, score["reason"])
        table.add_row(*(Text(clean(cell)) for cell in cells))
    return table


SUBSCORES = EvidenceTable(
    "subscores",
    "Scores by criterion",
    (
        ("criterion", "Criterion"),
        ("order", "Order"),
        ("scores.A", "A"),
        ("scores.B", "B"),
        ("explanation", "Explanation"),
        ("label", "Label"),
        ("score", "Score"),
        ("weight", "Weight"),
        ("reason", "Reason"),
    ),
)
"""Of methods that score by a plan of criteria."""
