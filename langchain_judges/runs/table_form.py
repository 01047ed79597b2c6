"""Records of tables as rows: their columns, labels and votes, and slots by a coin."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows import checks, data, documents, files
from langchain_judges.rows.columns import Columns, check_columns, mapped
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import READ, Text
from langchain_judges.runs.run_row import RUN_ERRORS
from langchain_judges.runs.sources import SourceRecord, source_of, with_names
from langchain_judges.verdict import NOTES, Label, Notes

# Rows of pairs (`Row`), or items (`Item`), as plain dictionaries.
RowStream = Iterator[dict[str, Any]]
# Stands for an empty response, which people judged and no judge here accepts.
NO_TEXT = "(no text)"
# What tables write where a value is missing or an error, and what may stand for none.
_LOST, _DOUBTFUL = checks.KNOWN_NAMES["lost"], checks.KNOWN_NAMES["doubtful"]
_UNASKED = ("source", "rubric")


@dataclass(frozen=True)
class TableForm:
    """Conversion of a table's records to rows.

    Attributes:
        labels: The spelling of a label → the judge's; None for the usual spellings.
        seed: For shuffled slots.
        takes: What the judge takes, if known: for items, `chosen` and `rejected` are no pair.
        named: Those of the columns that a person named.

    Raises:
        OptionError: `columns` names no field of a row.
    """

    columns: Columns | None = None
    labels: Mapping[Any, Label] | None = None
    seed: int = 0
    takes: str | None = None
    named: Columns | None = None

    def __post_init__(self) -> None:
        fields = {name for name in self.columns or {} if not name.startswith(checks.BY_CRITERION)}
        if unknown := fields - checks.FIELDS:
            name = sorted(unknown)[0]
            hint = did_you_mean(name, checks.FIELDS)
            there = ", ".join(sorted(checks.FIELDS))
            raise OptionError(RUN_ERRORS["no_field"].format(name=name, hint=hint, there=there))
        check_columns(self.columns or {})

    def rows(self, source: Any) -> RowStream:
        """Read a table as rows: a file, or any that a run takes.

        Raises:
            InputError: A record cannot be read; the message names its row, and the file.
        """
        named = isinstance(source, str | os.PathLike)
        records = files.read_table(Path(source)) if named else source_of(source).records
        for number, record in enumerate(records):
            try:
                yield self.cell_row(with_names(record), number)
            except InputError as exc:
                raise InputError(f"{f'{source}, ' * named}row {number + 1}: {exc}") from exc

    def cell_row(self, record: SourceRecord, number: int) -> dict[str, Any]:
        """Read a record of a table: with texts and no id it is named by its number, from 1.

        What tables write where a value is missing or an error, such as `NaN`, is no text. The
        label of a single text is a number where its cell spells one, for cells of CSV have no
        types and judges' labels do.

        Raises:
            InputError: A column is missing, or a label is not one of `labels`.
        """
        row = self.row(record, number)
        _mark_placeholders(row)
        if "input" in row:
            # Labels alone must not meet, by a number that is nobody's, the verdicts on other
            # rows.
            row.setdefault("id", str(number + 1))
        if checks.kind_in(row) == "item":
            row["label"] = checks.number_in(row.get("label"))
            by_name = row.get("labels", {}).items()
            row["labels"] = {name: checks.number_in(label) for name, label in by_name}
        # A cell that is empty is a field that is missing.
        return {name: value for name, value in row.items() if value not in (None, "", {})}

    def row(self, record: SourceRecord, number: int) -> dict[str, Any]:
        """Read a record as a row: columns, messages, its id as a text, labels, shuffled slots.

        Args:
            record: A line of a file, or a record of a table.
            number: Its number, for the coin of the slots where it has no id.

        Raises:
            InputError: A column is missing, or a label is not one of `labels`.
        """
        takes = self.takes or checks.kind_in({*record, *(self.columns or {})})
        row = _labels_as_one(plain_row(mapped(record, self.columns or {}, takes, self.named or {})))
        if row.get("id") in (None, ""):
            row.pop("id", None)
        else:
            row["id"] = data.text_in(row["id"])
        is_pair = checks.kind_in(row) == "pair"
        is_drawn = {"chosen", "rejected"} <= row.keys() and self.takes != "item" and not is_pair
        if isinstance(own := row.get("systems"), str) and (is_pair or is_drawn):
            row["systems"] = data.spelt(own)  # a cell of CSV holds them as JSON
        if is_drawn:
            return self._drawn(row, number)
        if (votes := row.get("human_votes")) is not None:
            row["human_votes"] = _votes_in(votes)
        for field in {"label", "human_votes"} & row.keys():
            # What labels of single texts mean is the judge's own matter.
            if self.labels is not None or "item" not in (self.takes, checks.kind_in(row)):
                row[field] = checks.read_label(row[field], self.labels)
            if row[field] in (None, "", []):
                del row[field]
        return row

    def _drawn(self, row: dict[str, Any], number: int) -> dict[str, Any]:
        """A pair of a preferred text and another; a coin says which of them is A."""
        better, worse = row.pop("chosen"), row.pop("rejected")
        if better is None or worse is None:
            raise InputError("`chosen` or `rejected` is missing")
        notes = Notes.of(row)
        for field in [name for name in ("label", "human_votes") if name in row]:
            if (own := row.pop(field)) not in (None, "", []):
                row[NOTES] = notes
                notes.add(field, f"is not read, as `chosen` is the label: {own!r}")
        own, key = row.get("systems"), row.get("id", str(number))
        systems = own if isinstance(own, list | tuple) else ("chosen", "rejected")
        pair = by_coin(self.seed, key, better, worse, systems)
        if isinstance(own, str) and own:  # the check of annotations says what is wrong
            pair["systems"] = own
        return {**row, **pair, "id": row.get("id", str(number + 1))}


def _mark_placeholders(row: dict[str, Any]) -> None:
    """Leave out what tables write for a missing value or an error; note what may stand for it.

    What may stand for nothing is no source, and no rubric.
    """
    notes = Notes.of(row)
    for name, word in [(name, row.get(name)) for name in READ]:
        if is_lost := word in _LOST:
            notes.empty = {**notes.empty, name: str(word)}
        elif word in _DOUBTFUL:
            notes.add(name, f"is {word!r}, which may stand for nothing")
        if is_lost or word in _DOUBTFUL:
            row |= {NOTES: notes} | ({name: None} if is_lost or name in _UNASKED else {})


def _labels_as_one(row: dict[str, Any]) -> dict[str, Any]:
    """Put the labels by each criterion, one column each, into `labels`.

    What else a column `labels` holds is not read, which is noted.
    """
    known = data.spelt(row.get("labels") or {})  # a cell of CSV holds them as JSON
    if not isinstance(known, Mapping):
        row[NOTES] = Notes.of(row)
        row[NOTES].add("labels", f"is not read, as it holds no label by criterion: {known!r}")
        known = {}
    columns = [name for name in row if str(name).startswith(checks.BY_CRITERION)]
    labels: dict[str, Any] = {}
    for column in sorted(columns, reverse=True):  # a label before votes
        name, cell = column.partition(".")[2], row.pop(column)
        cell = _votes_in(cell) if column.startswith("human_votes") else cell
        if name in labels and cell not in (None, "", []):
            row[NOTES] = Notes.of(row)
            row[NOTES].add(column, f"is not read beside another label of {name!r}")
        elif cell not in (None, "", []):
            labels[name] = cell
    return {**row, "labels": {**known, **labels}} if columns or "labels" in row else row


def _votes_in(cell: object) -> object:
    """Votes as a list, empty where nobody has one; one vote is a list too."""
    votes = spelt_votes(cell, are_many=True)
    votes = [votes] if isinstance(votes, str | int | float) else votes
    return [] if isinstance(votes, list) and all(vote in (None, "") for vote in votes) else votes


def spelt_votes(cell: object, *, are_many: bool = False) -> object:
    """The list of votes that a cell of CSV holds, as JSON, Python or people write it.

    Args:
        cell: The cell.
        are_many: Whether its column is of several votes: what may be one number or two votes
            is a word then, which says so and is no label of a judge.

    >>> spelt_votes("1; 0;1"), spelt_votes("A, B"), spelt_votes("4,5"), spelt_votes("very good")
    (['1', '0', '1'], ['A', 'B'], '4,5', 'very good')
    >>> spelt_votes("4,5", are_many=True)
    '4,5 (write 4.5, or 4;5 for two votes)'
    """
    text = cell.strip() if isinstance(cell, str) else ""
    if text.startswith("[") and (found := documents.listed_in(text) or data.spelt(text)) != text:
        return found
    text = text.strip("[]")
    between = next((sign for sign in ";|\n," if sign in text), None)
    votes = [each.strip() for each in text.split(between)]
    is_mixed = re.search(r",\S.*,\s|,\s.*,\S", text)  # two numbers, or four
    others = (each for each in votes if each and each.lower() not in checks.SPELLINGS)
    if len(votes) < 2 or is_mixed or any(checks.number_in(each) == each for each in others):
        return cell
    if not checks.COMMA.fullmatch(text):
        return votes
    told = f"{text} (write {text.replace(',', '.')}, or {';'.join(votes)} for two votes)"
    return told if are_many else cell


def by_coin(
    seed: int, key: str, better: Text, worse: Text, systems: Sequence[str] = ("chosen", "rejected")
) -> dict[str, Any]:
    """The fields of a pair whose source puts the better text first.

    Args:
        seed: Of the coin that says which text is A.
        key: The row's id; the coin depends on it and not on the order of rows.
        better: The preferred text, or the messages of which the last is judged.
        worse: The other text.
        systems: Who wrote `better` and `worse`, in this order.
    """
    swap = hashlib.sha256(f"{seed}|{key}".encode()).digest()[0] % 2 == 1
    first, second = (worse, better) if swap else (better, worse)
    return {
        "id": key,
        "label": "B" if swap else "A",
        "output_a": or_no_text(first),
        "output_b": or_no_text(second),
        "systems": [*reversed(systems)] if swap else [*systems],
    }


def or_no_text(text: Text) -> Text:
    """A text as a judge is shown it: an empty one as `NO_TEXT`."""
    return NO_TEXT if isinstance(text, str) and not text.strip() else text
