"""The rows of a run: the records of any table as they are wanted, checked, and keyed."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.checks import ANNOTATIONS, RowKind, check_pair, check_task, kind_in
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.files import nearest_file, plain_cell, read_table
from langchain_judges.rows.lookup import OF_OUTPUT
from langchain_judges.runs.columns import Columns, SourceRecord, TableForm, understood
from langchain_judges.runs.rows import JUDGED, RunRow
from langchain_judges.runs.shards import Shard

if TYPE_CHECKING:
    from langsmith import Client
    from pandas import DataFrame

_AT_ONCE = 1_000
"""Rows of a DataFrame that are turned into records at a time."""


@dataclass(frozen=True)
class Source:
    """Records, and what is known of them before they are read.

    Attributes:
        is_table: Whether its columns have names of the user's own, and its cells may be
            empty.
        frame: The pandas DataFrame that the records are of.
        is_file: Whether labels may be spelled as people spell them.
        check: Raises `InputError` for a row that its judge cannot take.
    """

    records: Iterable[Any]
    is_table: bool
    size: int | None = None
    frame: DataFrame | None = None
    is_file: bool = False
    check: Callable[[dict[str, Any]], object] | None = None

    def first(self, number: int | None) -> Source:
        """Return the source of the first records; None: of all."""
        if number is None:
            return self
        return replace(self, records=_Again(partial(islice, self.records, number)))


@dataclass(frozen=True)
class BadRecord:
    """Stands in the place of a record that cannot be read.

    Attributes:
        own: What can be read of it.
    """

    problem: str
    own: Mapping[str, object] = field(default_factory=dict)


TABLES = ("pandas", "polars", "pyarrow")
"""Libraries whose tables in memory are read."""


def source_of(rows: object, client: Client | None = None) -> Source:
    """Return the records of a list, an iterator, a table in memory, a file or a data set.

    Args:
        rows: An iterable of dictionaries (a Hugging Face `Dataset` is one), a pandas or polars
            DataFrame, an Arrow table, the path of a table, or the name of a LangSmith data set.
        client: Reads the LangSmith data set.

    Raises:
        InputError: There is no such file or data set.
        OptionError: `rows` is nothing of these.
    """
    if isinstance(rows, Source):
        return rows
    if isinstance(rows, str | os.PathLike):
        return _named(rows, client)
    if isinstance(rows, Mapping):
        raise OptionError("`rows` must be a list or another iterable of rows, not one")
    library = type(rows).__module__.partition(".")[0]
    size = len(rows) if hasattr(rows, "__len__") else None
    if library == "pandas":
        return Source(_Again(lambda: _of_pandas(rows)), True, size, rows)
    if library == "polars":
        return Source(_Again(lambda: rows.iter_rows(named=True)), True, size)  # type: ignore[attr-defined]
    if library == "pyarrow":
        return Source(_Again(lambda: _of_arrow(rows)), True, size)
    if not isinstance(rows, Iterable):
        raise OptionError(
            f"`rows` must be a list or another iterable of rows, a table or a path, got "
            f"{rows!r}"
        )
    return Source(rows, library == "datasets", size)


class UnreadableTable(InputError):
    """A table whose columns are not understood: no row of it can be read."""


class Records:
    """The records of a source, and how each becomes a row.

    Args:
        source: Where they are from.
        columns: Columns of a table by field, as a person named them.
        takes: `"pair"` or `"item"`, if the judge says which.

    Attributes:
        form: Which columns are which fields, once a row was read; None: by their names.
        systems: The names of the columns of A and B, where a person named them.
    """

    def __init__(self, source: Source, columns: Columns | None, takes: str | None) -> None:
        """Read nothing yet."""
        self._named = TableForm(columns)  # which refuses a field that there is not
        self.source, self.takes = source, takes
        self._columns = columns
        self.form: TableForm | None = None
        self._known = False
        self.systems: list[str] | None = None

    def row(self, record: object, index: int) -> dict[str, Any]:
        """Return a record as a row; the first one decides which columns are which fields.

        Raises:
            InputError: It cannot be read, or its judge cannot take it.
            UnreadableTable: The columns of the table are not understood.
        """
        if isinstance(record, BadRecord):
            raise InputError(record.problem)
        if not isinstance(record, Mapping):
            raise InputError(f"a row must be an object, got {type(record).__name__}")
        if not self._known:
            self.form = self.form_of(record)
            self._known = True
        if self.form is None:
            row = plain_row(record)
        else:
            row = (self.form.cell_row if self.source.is_table else self.form.row)(record, index)
        if self.source.check:
            self.source.check(row)
        return row

    def form_of(self, first: Mapping[str, object]) -> TableForm | None:
        """Return how columns become fields; None for rows whose fields have their names.

        Raises:
            UnreadableTable: The columns of the table are not understood.
        """
        names = list(map(str, first))
        takes, columns = self.takes or kind_in(names), self._columns
        sides = [(columns or {}).get(field) for field in ("output_a", "output_b")]
        if all(sides):
            self.systems = [str(side) for side in sides]
        if self.source.is_table:
            try:
                self._named.row(first, 0)
            except InputError as exc:
                if str(exc).startswith("no column"):
                    raise UnreadableTable(str(exc)) from exc
        if takes in ("pair", "item") and "concepts" not in first:
            try:
                columns = understood(names, columns, takes)
            except InputError as exc:
                if self.source.is_table or columns:
                    raise UnreadableTable(str(exc)) from exc
        named = columns or self.source.is_table or self.source.is_file
        return TableForm(columns) if named else None


def kind_of_columns(
    records: Iterable[object],
    columns: Columns | None = None,
    kinds: Sequence[str] = ("pair", "item"),
) -> str | None:
    """Return the kind of row as which the columns of a table are understood.

    Args:
        records: The table's; its first object names the columns.
        columns: Columns by field, as a person named them.
        kinds: The kinds to try, the first that fits is returned.

    Returns:
        None where no kind fits, such as for labels beside ids.
    """
    first = next((each for each in records if isinstance(each, Mapping)), {})
    for kind in kinds:
        with suppress(InputError):
            understood(list(map(str, first)), columns, kind)
            return kind
    return None


@dataclass(frozen=True)
class _Again:
    """Records that can be read more than once."""

    read: Any

    def __iter__(self) -> Iterator[SourceRecord]:
        return iter(self.read())


def _named(name: str | os.PathLike[str], client: Client | None) -> Source:
    path = Path(name)
    if path.is_file():
        is_lines = path.name.removesuffix(".gz").rpartition(".")[2] in ("jsonl", "ndjson")
        read = partial(read_table, path, bad=BadRecord)
        return Source(_Again(read), not is_lines, is_file=True)
    if client is None:
        is_path = path.suffix or not isinstance(name, str)
        hint = "" if is_path else "; a LangSmith data set needs `client`"
        raise InputError(f"there is no file {name}{nearest_file(path)}{hint}")
    return Source(_Again(lambda: _of_langsmith(str(name), client)), True)


def _of_pandas(frame: Any) -> Iterator[SourceRecord]:
    for start in range(0, len(frame), _AT_ONCE):
        for record in frame.iloc[start : start + _AT_ONCE].to_dict("records"):
            yield {str(name): plain_cell(value) for name, value in record.items()}


def _of_arrow(table: Any) -> Iterator[SourceRecord]:
    batches = table.to_batches(_AT_ONCE) if hasattr(table, "to_batches") else [table]
    for batch in batches:
        yield from batch.to_pylist()


def _of_langsmith(name: str, client: Client) -> Iterator[SourceRecord]:
    """Yield the examples of a data set: the fields of inputs and outputs beside each other."""
    from langsmith.utils import LangSmithNotFoundError

    try:
        for example in client.list_examples(dataset_name=name):
            known = {**(example.metadata or {}), **(example.outputs or {})}
            yield {"id": str(example.id), **known, **(example.inputs or {})}
    except LangSmithNotFoundError as exc:
        raise InputError(f"LangSmith has no data set {name!r}") from exc


_SHOWN = (*JUDGED, OF_OUTPUT, "concepts", "instruction", "task_kind")
"""What a prompt may follow from."""


def fields_of(judge: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a row that a judge receives, and those its verdict may follow from.

    A memory chooses its examples by id, family and group; a judge that is no graph of this
    package may read whatever it is given.
    """
    # Loaded on use, as below: tables are read without a graph.
    from langchain_judges.methods.describe import memories_of

    remembers = bool(memories_of(judge))
    given = (*_SHOWN, "id", "family", *(["group"] if remembers else []))
    return given, _SHOWN if not remembers and _shows_texts_alone(judge) else given


def _shows_texts_alone(judge: object) -> bool:
    from langchain_judges.methods.describe import unwrapped
    from langchain_judges.methods.graph import JudgeGraph

    own = unwrapped(judge)
    members = getattr(own, "members", ())
    return isinstance(own, JudgeGraph) and all(_shows_texts_alone(m.judge) for m in members)


class RowReader:
    """Reads the rows of a run.

    Args:
        records: Pairs, items or tasks, or the records of a table.
        marks: What decides the judge's verdicts; part of each key.
        shard: The shard whose rows are read; None reads them all.
        judge: What it receives, and what its verdicts follow from.
        numbers_repeats: Whether a repeated row gets a key of its own.
    """

    def __init__(
        self,
        records: Records,
        marks: Mapping[str, object],
        shard: Shard | None,
        *,
        judge: object,
        numbers_repeats: bool,
    ) -> None:
        """Set what is read; nothing is read yet."""
        self.read_rows = self.own_rows = 0
        self.ended = False
        self._records = records
        self._rows = enumerate(records.source.records)
        self._marks = marks
        self._shard = shard
        self._given, self._keyed = fields_of(judge)
        self._numbers_repeats = numbers_repeats
        self._digests = [array("Q") for _ in range(256)]
        """Eight bytes of each row's key, in order, by the first of them."""
        self._repeats: Counter[str] = Counter()
        self._kind: RowKind = "item" if records.takes == "item" else "pair"
        """Kind of the last good row; before the first, what the judge says it takes."""

    def next(self) -> RunRow | None:
        """Return the next row of this shard, good or not; None at the end."""
        for index, raw in self._rows:
            self.read_rows = index + 1
            problem = ""
            try:
                row, content = self._checked(raw, index)
                is_own = self._shard is None or self._shard.holds(content)
            except UnreadableTable:
                raise
            except InputError as exc:
                problem = str(exc)
            except (TypeError, ValueError, RecursionError) as exc:
                problem = f"a field cannot be written: {exc}"
            if problem:
                row_id = raw.get("id") if isinstance(raw, Mapping) else None
                row = {"id": row_id if isinstance(row_id, str) else None}
                content = {"input": problem}
                is_own = self._shard is None or self._shard.holds({"index": index})
            if is_own:
                self.own_rows += 1
                own = raw.own if isinstance(raw, BadRecord) else raw
                return RunRow(
                    *(index, row, self._key(content), self._kind),
                    problem=problem,
                    own=own if isinstance(own, Mapping) else {},
                )
        self.ended = True
        return None

    def judged_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a row that the judge receives."""
        return {field: row[field] for field in self._given if field in row}

    def _checked(self, raw: object, index: int) -> tuple[dict[str, object], dict[str, object]]:
        """Return a good row as plain JSON, and what its verdict may follow from."""
        row = self._records.row(raw, index)
        # A judge of what was retrieved needs no output.
        kind = kind_in(row) or ("item" if self._records.takes == "item" else "pair")
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            check_task(row)
        elif kind == "pair":
            check_pair(row)
        json.dumps([row.get(name) for name in (*ANNOTATIONS, "id")])
        self._kind = kind
        return row, {field: row[field] for field in self._keyed if field in row}

    def _key(self, content: Mapping[str, object]) -> str:
        """Return a row's key under this judge; in a file, a repeated key gets a number."""
        data = json.dumps(
            [self._marks, content], sort_keys=True, ensure_ascii=True, default=str
        )
        digest = hashlib.sha256(data.encode()).digest()
        key = digest.hex()[:32]
        if not self._numbers_repeats:
            return key
        known, short = self._digests[digest[0]], int.from_bytes(digest[:8])
        place = bisect_left(known, short)
        if known[place : place + 1] != array("Q", [short]):
            known.insert(place, short)
            return key
        self._repeats[key] += 1
        return f"{key}-{self._repeats[key] + 1}"
