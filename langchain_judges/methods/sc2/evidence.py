"""What SC² shows beside its verdict: preferences, the winning table, the bracket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.methods.options import EvidenceTable, TableCells


def _rows(_: Mapping[str, object], table: Mapping[str, Any]) -> Sequence[TableCells]:
    return table.get("rows") or []


EVIDENCE = (
    EvidenceTable(
        "choices",
        "Preferences beside the table",
        (("order", "Order"), ("preference", "Verdict"), ("comparison", "Comparison")),
    ),
    EvidenceTable(
        "table",
        "The table that won",
        (
            ("aspect", "Aspect"),
            ("common", "In both"),
            ("only_a", "Only in A"),
            ("only_b", "Only in B"),
        ),
        _rows,
    ),
)


def sketch(row: Mapping[str, Any]) -> list[Any]:
    """Sketch the aspects, the winning table and how it was chosen."""
    # Loaded on use, for `rich` is slow to load.
    from langchain_judges.methods.sc2.sketch import sketched

    return list(sketched(row))
