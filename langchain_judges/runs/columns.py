"""A record of any table as a row: its columns by the names that people use, or as named."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows.checks import ANNOTATIONS, kind_in, number_in, read_label
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.files import read_table
from langchain_judges.rows.texts import Text
from langchain_judges.runs.rows import JUDGED

SourceRecord = Mapping[str, Any]
"""One record as its source has it."""
RowStream = Iterator[dict[str, Any]]
"""Rows of pairs (`Row`), or items (`Item`), as plain dictionaries."""
NO_TEXT = "(no text)"
"""Stands for an empty response, which people judged and no judge here accepts."""
FIELDS = frozenset({*JUDGED, *ANNOTATIONS, "id", "task_kind", "family", "chosen", "rejected"})
"""Fields of a row to which a column may be mapped."""

# Begins the name of a column with people's label by one criterion, as `label.accuracy`.
_CRITERION = "label."

Columns = Mapping[str, str]
"""Field of a row → its column."""


@dataclass(frozen=True)
class TableForm:
    """How the records of a table become rows.

    Attributes:
        labels: The spelling of a label → A, B or tie; None for the usual spellings.
        seed: Of shuffled slots.

    Raises:
        OptionError: `columns` names no field of a row.
    """

    columns: Columns | None = None
    labels: Mapping[Any, str] | None = None
    seed: int = 0

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
        if kind_in(row) == "item":
            row["label"] = number_in(row.get("label"))
            row["labels"] = {n: number_in(label) for n, label in row.get("labels", {}).items()}
        # A cell that is empty is a field that is missing.
        return {name: value for name, value in row.items() if value not in (None, "", {})}

    def row(self, record: SourceRecord, number: int) -> dict[str, Any]:
        """Read a record as a row: columns, messages, its id as a text, labels, shuffled slots.

        Args:
            record: A line of a file, or a record of a table.
            number: Its number, for the coin of the slots where it has no id.

        Raises:
            InputError: A column is missing, or a label is none of `labels`.
        """
        row = _labels_as_one(plain_row(mapped(record, self.columns or {})))
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


def _labels_as_one(row: dict[str, Any]) -> dict[str, Any]:
    """Put the labels by each criterion, one column each, into `labels`."""
    columns = [name for name in row if name.startswith(_CRITERION)]
    if not columns:
        return row
    labels = {name.removeprefix(_CRITERION): row[name] for name in columns}
    filled = {name: label for name, label in labels.items() if label not in (None, "")}
    rest = {name: value for name, value in row.items() if name not in columns}
    return {**rest, "labels": {**rest.get("labels", {}), **filled}}


# Two ways to name a pair's texts: naming one leaves columns that have the other's names.
_RIVALS = ({"output_a", "output_b"}, {"chosen", "rejected"})


def mapped(record: SourceRecord, columns: Columns) -> dict[str, Any]:
    """Return a record with the named columns as fields.

    Raises:
        InputError: A column is missing.
    """
    if missing := next((each for each in columns.values() if each not in record), None):
        hint = did_you_mean(missing, record)
        raise InputError(f"no column {missing!r}; {hint}there are {list(record)!r}")
    used = set(columns.values())
    for mine, others in (_RIVALS, _RIVALS[::-1]):
        used |= others if mine & columns.keys() else set()
    rest = {name: value for name, value in record.items() if name not in used}
    return rest | {field: record[column] for field, column in columns.items()}


_SIDE = "answer_{0} response_{0} text_{0} output_{1} answer_{1} response_{1} {0} completion_{0}"
_NAMES = {
    "input": "question prompt query instruction task request user article user_input inputs"
    " message problem",
    "output": "response reply completion prediction generation answer text model_output"
    " assistant summary outputs actual_output",
    "output_a": _SIDE.format("a", 1) + " model_a_output",
    "output_b": _SIDE.format("b", 2) + " model_b_output",
    "source": "context contexts document documents retrieved_contexts",
    "expected": "reference ground_truth expected_output reference_answer gold reference_output",
    "reference": "reference_answer ground_truth expected_output",
}
USUAL = {field: names.split() for field, names in _NAMES.items()}
"""Usual names of columns, by the field that they stand for."""
_NEEDED = {"pair": ["input", "output_a", "output_b"], "item": ["input", "output"]}
_OPTIONAL = {"pair": ["reference"], "item": ["expected", "source"]}


def understood(names: Sequence[str], columns: Columns | None, takes: str) -> dict[str, str]:
    """Return the columns of a table by field: those named, and those with a usual name.

    A field whose own name is a column keeps it.

    Args:
        names: The table's columns.
        columns: Field → column, as a person named them.
        takes: `"pair"` or `"item"`.

    Raises:
        InputError: A field that is needed has no column; the message names what is there, and
            the nearest.
    """
    found = dict(columns or {})
    plain = {_plain_name(name): name for name in names if name not in found.values()}
    rivals = {"chosen", "rejected"} <= {*names, *found}
    # `reference`, a field of pairs, is also what people call an item's `expected`.
    taken = FIELDS - {"reference"}
    for field in (*_NEEDED[takes], *_OPTIONAL[takes]):
        if field in found or field in names or (rivals and field.startswith("output_")):
            continue
        known = (name for name in (field, *USUAL[field]) if name in plain)
        if name := next((name for name in known if plain[name] not in taken), None):
            found[field] = plain.pop(name)
        elif field in _NEEDED[takes]:
            raise _not_found(field, names, takes)
    return found


def _plain_name(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", str(name).strip()).casefold()


def _not_found(field: str, names: Sequence[str], takes: str) -> InputError:
    own = {_plain_name(name) for name in names}
    if field == "output_a" and own & {"output", *USUAL["output"]}:
        what = "these rows are single texts, and the judge compares two"
    elif field == "output" and own & {"output_a", *USUAL["output_a"]}:
        what = "these rows are pairs, and the judge takes one text"
    else:
        usual = [field, *USUAL[field]]
        alike = (repr(name) for name in names if did_you_mean(_plain_name(name), usual))
        what = f"name it by `columns` {field}={next(alike, 'COLUMN')}"
    there = ", ".join(map(repr, names)) or "none"
    return InputError(f"no column for `{field}` is found; there are {there}; {what}")


def coin(seed: int, key: str) -> bool:
    """Toss a coin that falls the same way for the same seed and key, in any order of rows."""
    return hashlib.sha256(f"{seed}|{key}".encode()).digest()[0] % 2 == 1


def shuffled(
    seed: int, key: str, better: Text, worse: Text, systems: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the fields of a pair whose source puts the better text first.

    Args:
        seed: Of the coin that says which text is A.
        key: The row's id; the coin depends on it and not on the order of rows.
        better: The preferred text, or the messages of which the last is judged.
        worse: The other text.
        systems: Who wrote `better` and `worse`, in this order.
    """
    swap = coin(seed, key)
    first, second = (worse, better) if swap else (better, worse)
    row: dict[str, Any] = {
        "id": key,
        "output_a": shown(first),
        "output_b": shown(second),
        "label": "B" if swap else "A",
    }
    if systems is not None:
        row["systems"] = list(reversed(systems)) if swap else list(systems)
    return row


def shown(text: Text) -> Text:
    """Return a text as a judge is shown it: an empty one as `NO_TEXT`."""
    return NO_TEXT if isinstance(text, str) and not text.strip() else text
