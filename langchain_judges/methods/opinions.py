"""What each member of a judge made of judges said: its form, a table and a sketch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired

from typing_extensions import TypedDict

from langchain_judges.methods.evidence import EvidenceTable, Sketch, TableCells
from langchain_judges.verdict import Preference

if TYPE_CHECKING:
    from rich.console import RenderableType


class Opinion(TypedDict):
    """What one member decided."""

    member: str
    preference: NotRequired[Preference | None]
    """Of a judge of pairs; None: not judged."""
    label: NotRequired[int | float | str | None]
    """Of a judge of one text; None: not judged."""
    score: float | None
    confidence: float | None
    flipped: NotRequired[bool | None]
    rationale: str
    calls: int


def _cells(_: Mapping[str, object], opinions: Sequence[Opinion]) -> Sequence[TableCells]:
    """Return a line for each member; a preference and a label stand in one column."""
    return [{**each, "said": _said_by(each)} for each in opinions]


def _said_by(opinion: Opinion) -> str:
    value = opinion.get("preference", opinion.get("label"))
    return "not judged" if value is None else str(value)


def opinion_table(key: str, title: str, *more: tuple[str, str]) -> EvidenceTable:
    """Return the table of what members said.

    Args:
        key: The key of the result that holds it.
        title: Above the table.
        *more: Further columns: a field of an opinion, and its name.
    """
    columns = (("member", "Judge"), ("said", "Verdict"), *more, ("rationale", "Reason"))
    return EvidenceTable(key, title, columns, _cells)


def opinion_sketch(key: str, *more: str) -> Sketch:
    """Return what sketches the opinions under a key: a line for each member.

    Args:
        key: The key of the result that holds them.
        *more: Further fields to show.
    """

    def sketch(row: Mapping[str, Any]) -> list[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        from langchain_judges.rows.printable import clean, shortened

        if not row.get(key):
            return []
        table = Table(box=None, pad_edge=False)
        for column in ("judge", "verdict", *more, "reason"):
            table.add_column(column)
        for each in row[key]:
            cells = ["-" if each[name] is None else f"{each[name]:.2f}" for name in more]
            reason = Text(clean(shortened(each["rationale"], 120)))
            table.add_row(Text(clean(each["member"])), _said_by(each), *cells, reason)
        return [table]

    return sketch
