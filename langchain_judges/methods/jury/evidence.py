"""What a jury shows beside its verdict: what each member said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.methods.evidence import Cells, EvidenceTable


def cells(_: Mapping[str, Any], opinions: Any) -> Sequence[Cells]:
    """Return a line for each member; a preference and a label stand in one column."""
    return [{**each, "said": said_by(each)} for each in opinions]


def said_by(opinion: Mapping[str, Any]) -> str:
    """Return what a member said, for people."""
    value = opinion.get("preference", opinion.get("label"))
    return "not judged" if value is None else str(value)


OPINIONS = EvidenceTable(
    "members",
    "What each member said",
    (
        ("member", "Member"),
        ("said", "Verdict"),
        ("score", "Score"),
        ("confidence", "Confidence"),
        ("rationale", "Reason"),
    ),
    cells,
)


def sketch(row: Mapping[str, Any]) -> list[Any]:
    """Sketch the opinions: a line for each member."""
    from rich.table import Table
    from rich.text import Text

    from langchain_judges.rows.printable import clean

    if not row.get("members"):
        return []
    table = Table(box=None, pad_edge=False)
    for column in ("member", "verdict", "reason"):
        table.add_column(column)
    for each in row["members"]:
        reason = Text(clean(each["rationale"][:120]))
        table.add_row(Text(clean(each["member"])), said_by(each), reason)
    return [table]
