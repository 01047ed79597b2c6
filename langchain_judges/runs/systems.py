"""The outputs of several systems on the same inputs, joined into one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.runs.columns import Columns
from langchain_judges.runs.sources import Records, Source


def joined(
    systems: Mapping[str, Source], columns: Columns | None = None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Join files of outputs by `id`, or by `input` where a row has none.

    Args:
        systems: Rows with `input` and `output` by the name of the system.
        columns: Field → column, where names are unusual.

    Returns:
        A row for each input of all systems: the first system's own fields but its output, and
        the output of each under its name; and how many rows of each system have no partner.

    Raises:
        InputError: A row has no output, stands twice, or no row has a partner.
    """
    rows = {name: _by_key(name, source, columns) for name, source in systems.items()}
    first, *others = rows.values()
    shared = [key for key in first if all(key in other for other in others)]
    if not shared:
        raise InputError(f"no row of {' and '.join(rows)} has the same `id` or `input`")
    table = [
        {
            **{field: value for field, value in first[key].items() if field != "output"},
            **{name: own[key]["output"] for name, own in rows.items()},
        }
        for key in shared
    ]
    return table, {name: len(own) - len(shared) for name, own in rows.items()}


def _by_key(name: str, source: Source, columns: Columns | None) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for number, (key, row) in enumerate(_rows(source, columns), 1):
        if not row.get("output"):
            raise InputError(f"{name}, row {number}: the field `output` is missing or empty")
        if key in rows:
            raise InputError(f"{name}, row {number}: {key} stands twice")
        rows[key] = row
    return rows


def _rows(source: Source, columns: Columns | None) -> Iterator[tuple[str, dict[str, Any]]]:
    records = Records(source, columns, "item")
    named = (columns or {}).get("id", "id")
    for index, record in enumerate(source.records):
        row = records.row(record, index)
        # A table without ids numbers its rows: numbers of two tables must not meet.
        by_id = isinstance(record, Mapping) and record.get(str(named)) not in (None, "")
        if not by_id:
            row.pop("id", None)
        key = f"id {row['id']}" if by_id else json.dumps(row.get("input"), sort_keys=True)
        yield key, row
