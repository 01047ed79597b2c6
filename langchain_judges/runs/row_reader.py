"""The rows of a run: records as its judge takes them, checked and keyed."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.rows import checks
from langchain_judges.rows.columns import Columns, columns_of, mapped, understood, with_variables
from langchain_judges.rows.data import as_plain_json
from langchain_judges.rows.fields import asked_in
from langchain_judges.rows.notes import unshown
from langchain_judges.rows.record import record_row
from langchain_judges.rows.texts import READ
from langchain_judges.runs import shards, sources, table_form
from langchain_judges.runs.run_row import RUN_ERRORS, RunRow, digest_of
from langchain_judges.verdict import Notes, first_names

_LOGGER = logging.getLogger(__name__)
# What a prompt may follow from.
_SHOWN = (*READ, checks.OF_OUTPUT, "media", "concepts", "instruction", "task_kind", "variables")


class UnreadableTable(InputError):
    """A table whose columns are not understood: no row of it can be read."""


class Records:
    """The records of a source, and how each becomes a row.

    Args:
        source: Where they are from.
        columns: Columns of a table by field, as a person named them.
        takes: `"pair"` or `"item"`, if the judge says which.

    Attributes:
        systems: The names of the columns of A and B, where a person named them.

    Raises:
        OptionError: `columns` names no field of a row.
    """

    def __init__(self, source: sources.Source, columns: Columns | None, takes: str | None) -> None:
        """Check the names; nothing is read yet."""
        self.source, self.takes = source, takes
        self._columns = table_form.TableForm(columns).columns or {}
        sides = [self._columns.get(field) for field in ("output_a", "output_b")]
        self.systems = [str(side) for side in sides] if all(sides) else None
        self._form: table_form.TableForm | None = None

    def row(self, record: object, index: int) -> dict[str, Any]:
        """A record as a row; the first of a table decides which columns are which fields.

        Raises:
            InputError: It cannot be read, or its judge cannot take it.
            UnreadableTable: The columns of the table are not understood.
        """
        record = sources.with_names(record)
        form, is_table = self._form or self.form_of(record), self.source.is_table
        if is_table or self._columns:
            self._form = form
        row = form.cell_row(record, index) if is_table else form.row(record, index)
        if "id" in record and not (self._form or self.source.is_file):
            row["id"] = record["id"]  # of any type
        if self.source.check:
            self.source.check(row)
        return row

    def form_of(self, first: Mapping[str, object]) -> table_form.TableForm:
        """Form by which columns become fields.

        Raises:
            UnreadableTable: The columns of the table are not understood.
        """
        names, columns = {str(name): cell for name, cell in first.items()}, self._columns
        takes, is_table = self.takes or checks.kind_in(names), self.source.is_table
        if not (is_table or columns):
            return table_form.TableForm(columns_of(first, self.takes), takes=self.takes)
        try:
            if is_table:
                mapped(first, columns, None, {})
            if takes in ("pair", "item") and "concepts" not in first:
                needed = () if self.source.textless else _needed(first)
                columns = understood(names, columns, takes, needed=needed)
        except InputError as exc:
            raise UnreadableTable(str(exc)) from exc
        return table_form.TableForm(columns, takes=takes, named=self._columns)


def _needed(first: Mapping[str, object]) -> Sequence[str]:
    """Fields that need a column: the task may stand at the beginning of the work."""
    outputs = ("output", "output_a", "output_b")
    return outputs if any(map(asked_in, first.values())) else ("input", *outputs)


def kind_of_columns(
    rows: Iterable[object], columns: Columns | None = None, kinds: Sequence[str] = ("pair", "item")
) -> str | None:
    """The kind of row as which the columns of a table are understood.

    Args:
        rows: The table's; its first object names the columns.
        columns: Columns by field, as a person named them.
        kinds: The kinds to try, the first that fits is returned.

    Returns:
        None where no kind fits, such as for labels beside ids.
    """
    first = sources.first_object(rows)
    for kind in kinds:
        with suppress(InputError):
            understood(list(map(str, first)), columns, kind, needed=_needed(first))
            return kind
    return None


def seen_fields(judge: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a row that a judge receives, and those its verdict may follow from.

    A memory chooses its examples by id, family and group; a judge that is not a graph of this
    package may read whatever it is given.
    """
    # Loaded on use: tables are read without a graph.
    from langchain_judges.methods.describe import leaves_of, memories_of, unwrapped
    from langchain_judges.methods.graph import JudgeGraph

    remembers = bool(memories_of(judge))
    given = (*_SHOWN, "id", "family", *(["group"] if remembers else []))
    graphs = map(unwrapped, (judge, *leaves_of(judge)))
    shows_texts_alone = all(isinstance(each, JudgeGraph) for each in graphs)
    return given, _SHOWN if shows_texts_alone and not remembers else given


class RowReader:
    """Reads the rows of a run.

    Args:
        records: Pairs, items or tasks, or the records of a table.
        fingerprint: What decides the judge's verdicts; part of each key.
        shard: The shard whose rows are read; None reads them all.
        judge: What it receives, and what its verdicts follow from.
        numbers_repeats: Whether a repeated row gets a key of its own.

    Attributes:
        labels: The judge's, where every row is judged by them.
        content: The digest of the rows read, where they are a shard's and others.
    """

    def __init__(
        self,
        records: Records,
        fingerprint: Mapping[str, object],
        shard: shards.Shard | None,
        *,
        judge: object,
        numbers_repeats: bool,
    ) -> None:
        """Set what is read; nothing is read yet."""
        self.read_rows = self.own_rows = 0
        self.content = hashlib.sha256()
        self.ended = False
        self._records = records
        self._rows = enumerate(records.source.records)
        self._judge_digest = digest_of(fingerprint).hex()
        self._shard = shard
        from langchain_judges.methods.describe import fields_named, option_of

        self._named = fields_named(judge) - {*_SHOWN}
        self._given, self._keyed = seen_fields(judge)
        self._rubric = option_of(judge, "own_rubric")
        self._task = option_of(judge, "task")
        by_name = {name: [*own] for name, own in (option_of(judge, "parts") or {}).items()}
        self._labels: checks.OwnLabels = by_name or [*(option_of(judge, "human_labels") or ())]
        # Without a rubric of the judge's own a row may bring other labels.
        self.labels = self._labels if self._rubric or by_name else []
        self._numbers_repeats = numbers_repeats
        self._seen: set[bytes] = set()
        self._repeats: Counter[str] = Counter()
        self._warned = self._told = False
        # Columns that a prompt shows, and those of which it is said that none does.
        self._unshown = {*self._named}
        # Kind of the last good row; before the first, what the judge says it takes.
        self._kind: checks.RowKind = "item" if records.takes == "item" else "pair"

    def next(self) -> RunRow | None:
        """The next row of this shard, good or not; None at the end."""
        for index, raw in self._rows:
            self.read_rows = index + 1
            if row := self._row(index, raw):
                self.own_rows += 1
                return row
        self.ended = True
        return None

    def judged_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """The fields of a row that the judge receives."""
        part = {field: row[field] for field in self._given if field in row}
        if checks.kind_in(part):
            return part
        # What is judged is missing: the judge says so, and which fields there are.
        return {name: value for name, value in row.items() if name not in checks.ANNOTATIONS}

    def _row(self, index: int, raw: Any) -> RunRow | None:
        """A row, good or not; None: it is another shard's."""
        own = raw.own if isinstance(raw, sources.BadRecord) else raw
        problem = ""
        try:
            if own is raw and not isinstance(raw, Mapping):
                raw = own = record_row(raw)
            data = self._checked(raw, index)
            key = self._key({field: data[field] for field in self._keyed if field in data})
        except UnreadableTable:
            raise
        except (TypeError, ValueError, RecursionError) as exc:
            is_bad = isinstance(exc, InputError)
            problem = str(exc) if is_bad else f"a field cannot be written: {exc}"
            name = raw.get("id") if isinstance(raw, Mapping) else None
            data = {"id": name if isinstance(name, str) else None}
            key = self._key({"input": problem}, {"index": index})
        known = own if isinstance(own, Mapping) else {}
        return RunRow(index, data, key, self._kind, problem=problem, own=known) if key else None

    def _checked(self, raw: object, index: int) -> dict[str, object]:
        """A good row as plain JSON."""
        if isinstance(raw, Mapping):
            raw = with_variables(raw, self._named)
        row = self._records.row(raw, index)
        # A judge of what was retrieved needs no output.
        kind = checks.kind_in(row) or ("item" if self._records.takes == "item" else "pair")
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            checks.check_task(row)
        elif kind == "pair":
            checks.check_pair(row)
        known = [name for name in (*checks.ANNOTATIONS, "id") if name in row]
        row |= {name: as_plain_json(row[name]) for name in known}
        self._check_annotations(row, index)
        self._tell(row, index)
        self._kind = kind
        return row

    def _tell(self, row: Mapping[str, Any], index: int) -> None:
        """Warn of the first row with notes, and once of each column that is not shown."""
        notes = Notes.of(row)
        own = [note for note in notes if note["unit"] != "row"]
        for note in () if self._told else own:
            _LOGGER.warning(RUN_ERRORS["noted"], index + 1, note["unit"], note["detail"])
            self._told = True
        if row.get("task_kind") and self._task not in (None, "auto", row["task_kind"]):
            _LOGGER.warning(RUN_ERRORS["other_task"], index + 1, row["task_kind"], self._task)
            self._task = None
        if row.get("rubric") and self._rubric and not index:
            _LOGGER.warning("Rows are judged by their own `rubric`, in place of the judge's")
        if len(own) == len(notes) and (index or notes.named):
            return
        said = " ".join(each["detail"] for each in own)
        rest = (name for name in unshown(row) if name not in self._unshown)
        if facts := [name for name in rest if repr(name) not in said]:
            _LOGGER.warning("Columns not shown to the judge: %s", first_names(facts))
        self._unshown.update(facts)

    def _check_annotations(self, row: Mapping[str, Any], index: int) -> None:
        """Warn of the first row whose annotations cannot be counted as labels; it is judged."""
        try:
            checks.check_annotations(row, () if row.get("rubric") else self._labels, outside=False)
        except InputError as exc:
            if not self._warned:
                _LOGGER.warning(RUN_ERRORS["no_labels"], index + 1, exc)
            self._warned = True

    def _key(self, content: object, place: object = None) -> str | None:
        """A row's key under this judge, repeated ones of a file with a number.

        It is None where the row is another shard's, by its content or the place of a bad one.
        """
        if self._shard:
            self.content.update(digest := digest_of(place or content))
            if not self._shard.holds(digest):
                return None
        digest = digest_of([self._judge_digest, content])
        key = digest.hex()[:32]
        if not self._numbers_repeats:
            return key
        if digest[:8] not in self._seen:
            self._seen.add(digest[:8])
            return key
        self._repeats[key] += 1
        return f"{key}-{self._repeats[key] + 1}"
