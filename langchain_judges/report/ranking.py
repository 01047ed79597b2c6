"""A ranking of systems on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from langchain_judges.rows.printable import clean

if TYPE_CHECKING:
    from langchain_judges.runs.studies.rank import Ranking


def ranking_table(ranking: Ranking) -> Table:
    """Render a ranking: a line for each system, strongest first."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "system", "strength", "interval", "comparisons", "lead over the next"):
        table.add_column(column, justify="left" if column == "system" else "right")
    leads = {True: "settled", False: "open", None: ""}
    for place, each in enumerate(ranking["systems"], 1):
        table.add_row(
            str(place),
            Text(clean(each["system"])),
            f"{each['strength']:+.2f}",
            f"{each['low']:+.2f} to {each['high']:+.2f}",
            f"{each['comparisons']:,}",
            leads[each["parted"]],
        )
    return table
