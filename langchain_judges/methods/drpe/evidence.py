"""What DRPE shows beside its verdict: the votes of the panel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.methods.options import EvidenceTable

EVIDENCE = (
    EvidenceTable(
        "votes",
        "Votes of the panel",
        (
            ("role", "Role"),
            ("preference", "Vote"),
            ("confidence", "Weight"),
            ("reason", "Reason"),
        ),
    ),
)


def sketch(row: Mapping[str, Any]) -> list[Any]:
    """Sketch the votes: a line for each role."""
    from rich.table import Table
    from rich.text import Text

    from langchain_judges.rows.printable import clean, shortened

    if not row.get("votes"):
        return []
    table = Table(box=None, pad_edge=False)
    for column in ("role", "vote", "weight", "reason"):
        table.add_column(column)
    for vote in row["votes"]:
        weight = "-" if vote["confidence"] is None else f"{vote['confidence']:.2f}"
        reason = Text(clean(shortened(vote["reason"], 120)))
        table.add_row(Text(clean(vote["role"])), vote["preference"] or "-", weight, reason)
    return [table]
