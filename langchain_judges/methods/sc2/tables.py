"""Comparison tables: read from a reply, shown in a prompt, and rendered for people."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import InputError, OptionError
from langchain_judges.escaping import clean
from langchain_judges.methods.declaration import EvidenceTable, TableCells
from langchain_judges.methods.sc2.replies import (
    TableRow,
    aspect_names,
)
from langchain_judges.orders import Order, in_slots, naming_identities, naming_slots

NOTHING = "none"
"""What a cell holds that has nothing to say."""
SLOTS = ("common", "only_1", "only_2")
_EMPTY = {"", "none", "n/a", "na", "nil", "null", "nothing", "-", "–", "—"}
MOST_CHARACTERS = 4000
"""Characters in all cells of a table."""
_LEAST = 12
"""Characters of a cell that are always kept."""


def read_rows(data: Mapping[str, object], aspects: Sequence[str]) -> list[TableRow]:
    """Return one row for each aspect, in their order; cells that are missing say nothing.

    Tables are asked with A in the first slot, so slots and identities agree here.
    """
    rows: list[TableRow] = []
    for name, aspect in zip(aspect_names(len(aspects)), aspects, strict=True):
        value = data.get(name)
        row = value if isinstance(value, Mapping) else {}
        common, only_a, only_b = (_cell(row.get(slot)) for slot in SLOTS)
        rows.append({"aspect": aspect, "common": common, "only_a": only_a, "only_b": only_b})
    return rows


def silent_rows(rows: Sequence[TableRow]) -> list[str]:
    """Return the aspects whose row says nothing at all."""
    return [row["aspect"] for row in rows if set(_cells_of(row)) == {NOTHING}]


def _cells_of(row: TableRow) -> tuple[str, str, str]:
    return row["common"], row["only_a"], row["only_b"]


def fit(rows: Sequence[TableRow], budget: int = MOST_CHARACTERS) -> list[TableRow]:
    """Cut the longest cells until all of them together have at most `budget` characters.

    No row is dropped, and `_LEAST` characters of a cell are always kept.
    """
    lengths = [len(cell) for row in rows for cell in _cells_of(row)]
    if sum(lengths) <= budget:
        return list(rows)
    low, high = _LEAST, max(lengths)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(length, middle) for length in lengths) <= budget:
            low = middle
        else:
            high = middle - 1
    return [
        {
            "aspect": row["aspect"],
            "common": _cut(row["common"], low),
            "only_a": _cut(row["only_a"], low),
            "only_b": _cut(row["only_b"], low),
        }
        for row in rows
    ]


def in_prompt(rows: Sequence[TableRow], order: Order = "AB") -> str:
    """Render rows for a prompt, by slots of the order in which the texts are shown."""
    rows_by_slot: list[dict[str, str]] = []
    for row in rows:
        first, second = in_slots(order, row["only_a"], row["only_b"])
        rows_by_slot.append(
            {
                "aspect": row["aspect"],
                "common": naming_slots(row["common"], order),
                "only_a": naming_slots(first, order),
                "only_b": naming_slots(second, order),
            }
        )
    return markdown(rows_by_slot, ("aspect", "both", "only response 1", "only response 2"))


def _cell(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    empty = text.strip(" .").casefold() in _EMPTY
    return NOTHING if empty else naming_identities(text, "AB")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


TableLike = Mapping[str, Any] | Sequence[Mapping[str, str]]
"""A table `{"rows": […]}` of SC², a result that holds one as `table`, or a table's rows
`{"aspect", "common", "only_a", "only_b"}`."""

_CELLS = ("common", "only_a", "only_b")
_STYLE = (
    "border-collapse:collapse;font:14px/1.45 system-ui,sans-serif;max-width:72em;"
    "border-top:2px solid #444;border-bottom:2px solid #444"
)
_CELL = "padding:.5em .8em;vertical-align:top;text-align:left;border-bottom:1px solid #ddd;"
_TINTS = ("", "background:#eef4ee;", "background:#eef1fa;", "background:#faf1ea;")


def render_table(
    table: TableLike,
    format: Literal["markdown", "html"] = "markdown",
    *,
    names: tuple[str, str] = ("A", "B"),
) -> str:
    """Render a comparison table with its aspects as rows.

    Args:
        table: A table of `create_sc2_judge`, its rows, or the result that it returned.
        format: `"markdown"`, or `"html"` that stands alone, with every cell escaped.
        names: What the two texts are called in the head.

    Raises:
        OptionError: The format is another, or `names` are not two.
        InputError: It is no table, or a result without one.
    """
    rows = [{k: v and clean(v) for k, v in row.items()} for row in _rows(table)]
    if not isinstance(names, list | tuple) or list(map(type, names)) != [str, str]:
        raise OptionError(f"`names` must be two texts, got {names!r}")
    first, second = map(clean, names)
    heads = ("Aspect", "In both", f"Only in {first}", f"Only in {second}")
    if format == "markdown":
        return markdown(rows, heads)
    if format == "html":
        return _html(rows, heads)
    raise OptionError(f"`format` must be 'markdown' or 'html', got {format!r}")


def markdown(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    """Return the rows as a Markdown table; no cell can break out of its place."""
    lines = [heads, ["---"] * len(heads), *(_cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(map(_in_a_cell, line)) + " |" for line in lines)


def _rows(table: object) -> Sequence[Mapping[str, str]]:
    """Return the rows of a table, or say why they are none."""
    if isinstance(table, Mapping) and "rows" not in table and "table" in table:
        table = table["table"]
    if table is None:
        raise InputError("there is no table: SC² compared the texts without one")
    rows = table.get("rows") if isinstance(table, Mapping) else table
    if not isinstance(rows, list | tuple) or not all(map(_is_row, rows)):
        raise InputError(
            "a table must be a result of SC², its `table`, or rows with 'aspect', "
            f"{', '.join(map(repr, _CELLS))}, got {str(table)[:80]}"
        )
    return rows


def _is_row(row: object) -> bool:
    return (
        isinstance(row, Mapping)
        and isinstance(row.get("aspect"), str)
        and all(isinstance(row.get(name, 0), str | None) for name in _CELLS)
    )


def _cells(row: Mapping[str, str]) -> list[str]:
    return [row["aspect"], *(row[name] or NOTHING for name in _CELLS)]


def _in_a_cell(text: str) -> str:
    # A backslash before a bar would undo the bar's own: every bar gets an odd number.
    return " ".join(re.sub(r"(\\*)\|", r"\1\1\\|", text).split())


def _html(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL}{tint}">{html.escape(name)}</th>'
        for name, tint in zip(heads, _TINTS, strict=True)
    )
    body = "".join(f"<tr>{_html_row(_cells(row))}</tr>" for row in rows)
    return (
        f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _html_row(cells: Sequence[str]) -> str:
    parts = [f'<th scope="row" style="{_CELL}">{html.escape(cells[0])}</th>']
    for cell, tint in zip(cells[1:], _TINTS[1:], strict=True):
        faint = "color:#999;" if cell == NOTHING else "color:#222;"
        text = "–" if cell == NOTHING else html.escape(cell)
        parts.append(f'<td style="{_CELL}{tint}{faint}">{text}</td>')
    return "".join(parts)


def _table_rows(_: Mapping[str, object], table: Mapping[str, Any]) -> Sequence[TableCells]:
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
        _table_rows,
    ),
    EvidenceTable(
        "bracket",
        "How the table was chosen",
        (
            ("round", "Round"),
            ("winner", "Winner"),
            ("decided_by", "Decided by"),
            ("why", "Why"),
        ),
    ),
)
