"""Results as a table: JSONL, CSV or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from langchain_judges.errors import needs
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.printable import clean, inert_cell, inert_json
from langchain_judges.runs.rows import ResultRow, outcome_of

_AT_ONCE = 10_000
"""Rows of a group in a Parquet file."""
_COLUMNS: dict[str, str] = {
    "index": "int64",
    "id": "string",
    "key": "string",
    "kind": "string",
    "judged": "bool",
    "method": "string",
    "model": "string",
    "mark": "string",
    "preference": "string",
    "label": "string",
    "score": "double",
    "confidence": "double",
    "confidence_source": "string",
    "flipped": "bool",
    "rationale": "string",
    "failures": "string",
    "calls": "int64",
    "input_tokens": "int64",
    "cached_tokens": "int64",
    "output_tokens": "int64",
    "known_label": "string",
    "group": "string",
    "category": "string",
    "result": "string",
}
"""Columns of a table; `result` is the complete row as JSON."""
_OF_VERDICT = "preference", "score", "confidence", "confidence_source", "flipped", "rationale"
_OF_USAGE = "calls", "input_tokens", "cached_tokens", "output_tokens"


def table_row(row: ResultRow) -> dict[str, object]:
    """Return a result as the cells of a table, by column.

    Args:
        row: A row of `judge_many`.
    """
    outcome: Mapping[str, Any] = outcome_of(row)
    judge, usage = row.get("judge") or {}, outcome.get("usage") or {}
    verdict = {} if kind_of_result(row) == "task" else outcome
    cells = {
        **{name: row.get(name) for name in ("index", "key", "kind", "judged")},
        **{name: judge.get(name) for name in ("method", "model", "mark")},
        **{name: verdict.get(name) for name in _OF_VERDICT},
        **{name: usage.get(name) for name in _OF_USAGE},
        "id": _text(row.get("id")),
        "label": _text(verdict.get("label")),
        "known_label": _text(row.get("label")),
        "group": _text(row.get("group")),
        "category": _text(row.get("category")),
        "failures": _json(outcome.get("failures") or []),
        "result": _json(row),
    }
    return {name: _readable(cells[name]) for name in _COLUMNS}


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _json(data: object) -> str:
    return inert_json(json.dumps(data, ensure_ascii=False))


def _readable(cell: object) -> object:
    """Return a cell that steers no terminal; `result` keeps what is replaced elsewhere."""
    return clean(cell) if isinstance(cell, str) else cell


def _write_lines(path: Path, rows: Iterable[ResultRow]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(_json(row) + "\n")


def _write_csv(path: Path, rows: Iterable[ResultRow]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(_COLUMNS))
        writer.writeheader()
        for row in rows:
            writer.writerow({name: inert_cell(cell) for name, cell in table_row(row).items()})


def _write_parquet(path: Path, rows: Iterable[ResultRow]) -> None:
    with needs("hub", "Writing Parquet"):
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

    types = {"int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    columns = [(name, types.get(kind, pa.string())) for name, kind in _COLUMNS.items()]
    schema = pa.schema(columns)
    with ParquetWriter(path, schema, compression="zstd") as writer:
        batch: list[dict[str, object]] = []
        for row in rows:
            batch.append(table_row(row))
            if len(batch) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch.clear()
        writer.write_table(pa.Table.from_pylist(batch, schema))


WRITERS: dict[str, Callable[[Path, Iterable[ResultRow]], None]] = {
    ".jsonl": _write_lines,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
"""What writes a table, by the ending of its name."""
