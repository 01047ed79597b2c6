"""Rows from any table: JSONL, JSON, CSV, TSV or Parquet, by a map of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.datasets.source import RowStream, SourceRecord, shuffled
from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows.applications import plain_row
from langchain_judges.rows.checks import kind_in, kind_of_row
from langchain_judges.rows.files import read_table
from langchain_judges.rows.labels import read_label

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
FIELDS = frozenset(
    {
        "input",
        "output_a",
        "output_b",
        "reference",
        "id",
        "label",
        "group",
        "category",
        "systems",
        "turn",
        "human_votes",
        "difficulty",
        "task_kind",
        "output",
        "expected",
        "source",
        "family",
        "chosen",
        "rejected",
    }
)
"""Fields of a row to which a column may be mapped."""

_CRITERION = "label."
"""Begins the name of a column with people's label by one criterion, as `label.accuracy`."""

Columns = Mapping[str, str | Sequence[str]]
"""Field of a row → its column, or the columns whose cells make a list."""


@dataclass(frozen=True)
class TableForm:
    """How the records of a table become rows.

    Raises:
        OptionError: `columns` names no field of a row.
    """

    columns: Columns | None = None
    labels: Mapping[Any, str] | None = None
    """The spelling of a label → A, B or tie; None for the usual spellings."""
    seed: int = 0
    """Of shuffled slots."""

    def __post_init__(self) -> None:
        fields = {name for name in self.columns or {} if not name.startswith(_CRITERION)}
        if unknown := fields - FIELDS:
            name = sorted(unknown)[0]
            raise OptionError(
                f"`columns` names no field {name!r}; {did_you_mean(name, FIELDS)}it takes "
                f"{', '.join(sorted(FIELDS))} and label.CRITERION"
            )

    def rows(self, path: Path) -> RowStream:
        """Read a table as rows.

        Raises:
            InputError: A record cannot be read; the message names file and row.
        """
        for number, record in enumerate(read_table(path)):
            try:
                yield self.cell_row(record, number)
            except InputError as exc:
                raise InputError(f"{path}, row {number + 1}: {exc}") from exc

    def cell_row(self, record: SourceRecord, number: int) -> dict[str, Any]:
        """Read a record of a table: with texts and without an id it is named by its number.

        The label of a single text is a number where its cell spells one, for cells of CSV have
        no types and judges' labels do.

        Raises:
            InputError: A column is missing, or a label is none of `labels`.
        """
        row = self.row(record, number)
        if "input" in row:
            # Labels alone must not meet, by a number that is nobody's, the verdicts on other
            # rows.
            row.setdefault("id", str(number))
        if kind_of_row(row) == "item":
            row["label"] = _number(row.get("label"))
            if "labels" in row:
                row["labels"] = {name: _number(label) for name, label in row["labels"].items()}
        # A cell that is empty is a field that is missing.
        return {name: value for name, value in row.items() if value not in (None, "")}

    def row(self, record: SourceRecord, number: int) -> dict[str, Any]:
        """Read a record as a row: columns, messages, its id as a text, labels, shuffled slots.

        Args:
            record: A line of a file, or a record of a table.
            number: Its number, for the coin of the slots where it has no id.

        Raises:
            InputError: A column is missing, or a label is none of `labels`.
        """
        row = _labels_as_one(plain_row(_mapped(record, self.columns or {})))
        if row.get("id") in (None, ""):
            row.pop("id", None)
        else:
            row["id"] = str(row["id"])
        if isinstance(row.get("human_votes"), str):
            row["human_votes"] = [row["human_votes"]]
        for field in {"label", "human_votes"} & row.keys():
            # What labels of single texts mean is the judge's own matter.
            if self.labels is not None or kind_in(row) != "item":
                row[field] = read_label(row[field], self.labels)
            if row[field] in (None, "", []):
                del row[field]
        if "chosen" in row and "rejected" in row and kind_in(row) != "pair":
            better, worse = row.pop("chosen"), row.pop("rejected")
            if better is None or worse is None:
                raise InputError("`chosen` or `rejected` is missing")
            row |= shuffled(self.seed, row.get("id", str(number)), better, worse)
        return row


def _number(cell: object) -> object:
    return json.loads(str(cell)) if _NUMBER.fullmatch(str(cell)) else cell


def _labels_as_one(row: dict[str, Any]) -> dict[str, Any]:
    """Put the labels by each criterion, one column each, into `labels`."""
    columns = [name for name in row if name.startswith(_CRITERION)]
    if not columns:
        return row
    labels = {name.removeprefix(_CRITERION): row[name] for name in columns}
    filled = {name: label for name, label in labels.items() if label not in (None, "")}
    rest = {name: value for name, value in row.items() if name not in columns}
    return {**rest, "labels": {**rest.get("labels", {}), **filled}}


_RIVALS = ({"output_a", "output_b"}, {"chosen", "rejected"})
"""Two ways to name a pair's texts: naming one leaves columns that have the other's names."""


def _mapped(record: SourceRecord, columns: Columns) -> dict[str, Any]:
    column_names: set[str] = set()
    fields: dict[str, Any] = {}
    for field, source_columns in columns.items():
        cells = []
        for column in [source_columns] if isinstance(source_columns, str) else source_columns:
            if column not in record:
                hint = did_you_mean(column, record)
                raise InputError(f"no column {column!r}; {hint}there are {list(record)!r}")
            cells.append(record[column])
            column_names.add(column)
        fields[field] = cells[0] if isinstance(source_columns, str) else cells
    for mine, others in (_RIVALS, _RIVALS[::-1]):
        column_names |= others if mine & fields.keys() else set()
    rest = {name: value for name, value in record.items() if name not in column_names}
    return {**rest, **fields}
