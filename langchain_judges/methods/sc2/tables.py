"""Comparison tables: read from a reply, shown in a prompt, and rendered for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.escaping import clean
from langchain_judges.methods.sc2.replies import TableRow, aspect_names
from langchain_judges.orders import Order, in_slots, naming_ab, naming_slots

# What a cell holds that has nothing to say.
NOTHING = "none"
# Characters of a cell that later prompts show; entries are meant to be short.
CELL_SIZE = 800
CELL_FIELDS = ("common", "only_1", "only_2")
_CELLS = ("common", "only_a", "only_b")
_EMPTY = {"", "none", "n/a", "na", "nil", "null", "nothing", "-", "–", "—"}


def read_rows(data: Mapping[str, object], aspects: Sequence[str]) -> list[TableRow]:
    """One row for each aspect, in their order; cells that are missing say nothing.

    Tables are asked with A in the first slot, so slots and identities agree here.
    """
    rows: list[TableRow] = []
    for name, aspect in zip(aspect_names(len(aspects)), aspects, strict=True):
        value = data.get(name)
        row = value if isinstance(value, Mapping) else {}
        common, only_a, only_b = (_table_cell(row.get(slot)) for slot in CELL_FIELDS)
        rows.append({"aspect": aspect, "common": common, "only_a": only_a, "only_b": only_b})
    return rows


def silent_rows(rows: Sequence[TableRow]) -> list[str]:
    """The aspects whose row says nothing at all."""
    said = [(row["aspect"], {row["common"], row["only_a"], row["only_b"]}) for row in rows]
    return [aspect for aspect, cells in said if cells == {NOTHING}]


def within(rows: Sequence[TableRow]) -> tuple[list[TableRow], list[str]]:
    """Rows with cells of at most `CELL_SIZE` characters, and the aspects of which some was cut.

    Every match and preference shows whole tables: one cell must not crowd out the others.
    """
    cut: Any = [{key: _up_to_most(str(cell)) for key, cell in row.items()} for row in rows]
    return cut, [row["aspect"] for row, other in zip(rows, cut, strict=True) if row != other]


def _up_to_most(cell: str) -> str:
    return cell if len(cell) <= CELL_SIZE else f"{cell[: CELL_SIZE - 1]}…"


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
    return as_table(rows_by_slot, ("aspect", "both", "only response 1", "only response 2"))


def _table_cell(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    empty = text.strip(" .").casefold() in _EMPTY
    return NOTHING if empty else naming_ab(text, "AB")


def render_table(table: Mapping[str, Any] | None, names: tuple[str, str] = ("A", "B")) -> str:
    """Render a comparison table in Markdown, with its aspects as rows.

    Args:
        table: A table of `create_sc2_judge`.
        names: What the two texts are called in the head.

    Raises:
        InputError: There is no table.
    """
    if table is None:
        raise InputError("there is no table: SC² compared the texts without one")
    heads = ("Aspect", "In both", *(f"Only in {clean(name)}" for name in names))
    rows = [{key: clean(cell) for key, cell in row.items()} for row in table["rows"]]
    return as_table(rows, heads)


def as_table(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    """The rows as a Markdown table; no cell can break out of its place."""
    cells = [[row[name] or NOTHING for name in ("aspect", *_CELLS)] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join("| " + " | ".join(map(_in_a_cell, line)) + " |" for line in lines)


def _in_a_cell(text: str) -> str:
    # A backslash before a bar would undo the bar's own: every bar gets an odd number.
    return " ".join(re.sub(r"(\\*)\|", r"\1\1\\|", text).split())
