"""From a reply to a table by identity: rows in order, empty cells named, long ones cut."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from langchain_judges.methods.sc2.aspects import normal_form
from langchain_judges.methods.sc2.replies import ComparisonTable, TableRow, aspect_names
from langchain_judges.methods.sc2.table_view import NOTHING, markdown
from langchain_judges.orders import Order, in_slots, naming_identities, naming_slots

SLOTS = ("common", "only_1", "only_2")
_EMPTY = {"", "none", "n/a", "na", "nil", "null", "nothing", "-", "–", "—"}
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
    return [row["aspect"] for row in rows if not filled_cells(row)]


def cells_of(row: TableRow) -> tuple[str, str, str]:
    """Return a row's cells: common, only A, only B."""
    return row["common"], row["only_a"], row["only_b"]


def filled_cells(row: TableRow) -> dict[str, str]:
    """Return the cells that say something: of `common`, `only_a` and `only_b`."""
    cells = zip(("common", "only_a", "only_b"), cells_of(row), strict=True)
    return {name: cell for name, cell in cells if cell != NOTHING}


def fit(rows: Sequence[TableRow], budget: int) -> list[TableRow]:
    """Cut the longest cells until all of them together have at most `budget` characters.

    No row is dropped, and `_LEAST` characters of a cell are always kept.
    """
    lengths = [len(cell) for row in rows for cell in cells_of(row)]
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


def only_row(table: ComparisonTable, aspect: str) -> ComparisonTable:
    """Return a table with one of its rows, or the whole of it for no aspect."""
    if not aspect:
        return table
    return {**table, "rows": [row for row in table["rows"] if row["aspect"] == aspect]}


def parse_table(text: str, aspects: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """Read a Markdown table of four columns, by the names of its rows or by their order.

    >>> parse_table("| Tone | polite | brief | none |", ["tone"])
    {'aspect_1': {'common': 'polite', 'only_1': 'brief', 'only_2': 'none'}}
    """
    lines = [_split(line) for line in text.splitlines() if line.count("|") >= 3]
    rows = [cells for cells in lines if len(cells) == 4 and not _is_rule(cells)]
    positions = {normal_form(aspect): i for i, aspect in enumerate(aspects)}
    by_aspect: dict[str, dict[str, str]] = {}
    for name, *cells in rows:
        at = positions.get(normal_form(re.sub(r"^\d+[.)]\s*", "", name.strip("*_ `"))))
        if at is not None:
            by_aspect.setdefault(f"aspect_{at + 1}", dict(zip(SLOTS, cells, strict=True)))
    if not by_aspect and len(rows) == len(aspects) + 1:
        # A head and as many rows as aspects, called by other names.
        for i, (_, *cells) in enumerate(rows[1:]):
            by_aspect[f"aspect_{i + 1}"] = dict(zip(SLOTS, cells, strict=True))
    return by_aspect or None


def _cell(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    empty = text.strip(" .").casefold() in _EMPTY
    return NOTHING if empty else naming_identities(text, "AB")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _split(line: str) -> list[str]:
    # One bar at each end: a second one is an empty cell's.
    bare = re.sub(r"^\||(?<!\\)\|$", "", line.strip())
    parts = re.split(r"(?<!\\)\|", bare)
    return [part.strip().replace("\\|", "|") for part in parts]


def _is_rule(cells: Sequence[str]) -> bool:
    return all(set(cell) <= set("-: ") for cell in cells)
