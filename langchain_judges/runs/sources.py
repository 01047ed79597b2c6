"""The rows of a run: the records of any table as they are wanted, checked, and keyed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows import checks, files, lookup, spreadsheets
from langchain_judges.rows.fields import asked_in, plain_row
from langchain_judges.rows.messages import KNOWN_NAMES, plain_data, spelt
from langchain_judges.rows.record import record_row
from langchain_judges.rows.texts import READ, Text
from langchain_judges.runs.run_row import RunRow, digest_of
from langchain_judges.runs.shards import Shard
from langchain_judges.verdict import NOTES, Label, Notes, first_names

if TYPE_CHECKING:
    from langsmith import Client
    from pandas import DataFrame

_LOGGER = logging.getLogger(__name__)
# One record as its source has it.
SourceRecord = Mapping[str, Any]
# Rows of pairs (`Row`), or items (`Item`), as plain dictionaries.
RowStream = Iterator[dict[str, Any]]
# Stands for an empty response, which people judged and no judge here accepts.
NO_TEXT = "(no text)"
# What tables write where a value is missing or an error, and what may stand for none.
_LOST, _DOUBTFUL = KNOWN_NAMES["lost"], KNOWN_NAMES["doubtful"]
_UNASKED = ("source", "rubric")
# Begins the name of a column with people's label by one criterion, as `label.accuracy`, or as
# pandas calls it where it flattens `labels`; or of one with several people's.
_CRITERION = ("label.", "labels.", "human_votes.")


# Rows of a DataFrame that are turned into records at a time.
_RECORDS_AT_ONCE = 1_000
# What a prompt may follow from.
_SHOWN_FIELDS = (
    *(*READ, checks.OF_OUTPUT, "media", "concepts", "instruction", "task_kind", "variables"),
)


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

    columns: lookup.Columns | None = None
    labels: Mapping[Any, Label] | None = None
    seed: int = 0
    takes: str | None = None
    named: lookup.Columns | None = None

    def __post_init__(self) -> None:
        fields = {name for name in self.columns or {} if not name.startswith(_CRITERION)}
        if unknown := fields - lookup.FIELDS:
            name = sorted(unknown)[0]
            hint = did_you_mean(name, lookup.FIELDS)
            raise OptionError(
                f"`columns` names no field {name!r}; {hint}it takes "
                f"{', '.join(sorted(lookup.FIELDS))}, label.CRITERION and human_votes.CRITERION"
            )
        lookup.check_columns(self.columns or {})

    def rows(self, source: Any) -> RowStream:
        """Read a table as rows: a file, or any that a run takes.

        Raises:
            InputError: A record cannot be read; the message names its row, and the file.
        """
        named = isinstance(source, str | os.PathLike)
        records = files.read_table(Path(source)) if named else source_of(source).records
        for number, record in enumerate(records):
            try:
                yield self.cell_row(_with_names(record), number)
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
        given = lookup.mapped(record, self.columns or {}, takes, self.named or {})
        row = _labels_as_one(plain_row(given))
        if row.get("id") in (None, ""):
            row.pop("id", None)
        else:
            row["id"] = str(row["id"])
        is_pair = checks.kind_in(row) == "pair"
        is_drawn = {"chosen", "rejected"} <= row.keys() and self.takes != "item" and not is_pair
        if isinstance(own := row.get("systems"), str) and (is_pair or is_drawn):
            row["systems"] = spelt(own)  # a cell of CSV holds them as JSON
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
    known = spelt(row.get("labels") or {})  # a cell of CSV holds them as JSON
    if not isinstance(known, Mapping):
        row[NOTES] = Notes.of(row)
        row[NOTES].add("labels", f"is not read, as it holds no label by criterion: {known!r}")
        known = {}
    columns = [name for name in row if str(name).startswith(_CRITERION)]
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
    if text.startswith("[") and (found := lookup.listed_in(text) or spelt(text)) != text:
        return found
    text = text.strip("[]")
    between = next((sign for sign in ";|\n," if sign in text), None)
    votes = [each.strip() for each in text.split(between)]
    is_mixed = re.search(r",\S.*,\s|,\s.*,\S", text)  # two numbers, or four
    others = (each for each in votes if each and each.lower() not in checks.SPELLINGS)
    if len(votes) < 2 or is_mixed or any(checks.number_in(each) == each for each in others):
        return cell
    if checks.number_in(text) == text:
        return votes
    told = f"{text} (write {text.replace(',', '.')}, or {';'.join(votes)} for two votes)"
    return told if are_many else cell


def coin(seed: int, key: str) -> bool:
    """Toss a coin that falls the same way for the same seed and key, in any order of rows."""
    return hashlib.sha256(f"{seed}|{key}".encode()).digest()[0] % 2 == 1


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
    swap = coin(seed, key)
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


@dataclass(frozen=True)
class Source:
    """Records, and what is known of them before they are read.

    Attributes:
        records: Can be iterated again, unless they are an iterator of the caller's.
        is_table: Whether its columns have names of the user's own, and its cells may be empty.
        size: How many there are, if known.
        frame: The pandas DataFrame that the records come from.
        is_file: Whether labels may be spelled as people spell them.
        check: Raises `InputError` for a row that its judge cannot take.
        textless: Whether a table may lack columns of texts, as of labels beside ids.
    """

    records: Iterable[Any]
    is_table: bool
    size: int | None = None
    frame: DataFrame | None = None
    is_file: bool = False
    check: Callable[[dict[str, Any]], object] | None = None
    textless: bool = False

    def first(self, number: int | None) -> Source:
        """The source of the first records; None: of all."""
        if number is None:
            return self
        records = _Again(partial(islice, self.records, number))
        size = None if self.size is None else min(self.size, number)
        frame = None if self.frame is None else self.frame.iloc[:number]
        return replace(self, records=records, size=size, frame=frame)


@dataclass(frozen=True)
class BadRecord:
    """Stands in the place of a record that cannot be read; `own` is what can be read of it."""

    problem: str
    own: Mapping[str, object]


@dataclass(frozen=True)
class _Again:
    """Records that can be read more than once."""

    read: Callable[[], Iterator[SourceRecord]]

    def __iter__(self) -> Iterator[SourceRecord]:
        return self.read()


def _of_pandas(frame: Any) -> Iterator[SourceRecord]:
    if frame.ndim == 1:
        frame = frame.to_frame("output" if frame.name is None else None)
    for start in range(0, len(frame), _RECORDS_AT_ONCE):
        for record in frame.iloc[start : start + _RECORDS_AT_ONCE].to_dict("records"):
            yield {str(name): plain_data(value) for name, value in record.items()}


def _of_arrow(table: Any) -> Iterator[SourceRecord]:
    is_table = hasattr(table, "to_batches")
    return files.records_in(table.to_batches(_RECORDS_AT_ONCE) if is_table else [table])


def _of_langsmith(name: str, client: Client) -> Iterator[SourceRecord]:
    """Yield the examples of a data set: the fields of inputs and outputs beside each other."""
    from langsmith.utils import LangSmithNotFoundError

    try:
        for example in client.list_examples(dataset_name=name):
            known = {**(example.metadata or {}), **(example.outputs or {})}
            yield {"id": str(example.id), **known, **(example.inputs or {})}
    except LangSmithNotFoundError as exc:
        raise InputError(f"LangSmith has no data set {name!r}") from exc


# Readers of tables in memory, by the library that they are of.
TABLES: Mapping[str, Callable[[Any], Iterator[SourceRecord]]] = {
    "pandas": _of_pandas,
    "polars": lambda frame: frame.iter_rows(named=True),
    "pyarrow": _of_arrow,
}


def source_of(rows: object, client: Client | None = None) -> Source:
    """The records of a list, an iterator, a table in memory, a file or a data set.

    Args:
        rows: An iterable of dictionaries (a Hugging Face `Dataset` is one), a pandas or polars
            DataFrame, an Arrow table, the path of a table, or the name of a LangSmith data set.
        client: Reads the LangSmith data set.

    Raises:
        InputError: There is no such file or data set.
        OptionError: `rows` is none of these.
    """
    if isinstance(rows, Source):
        return rows
    if isinstance(rows, str | os.PathLike):
        return _named_source(rows, client)
    library = type(rows).__module__.partition(".")[0]
    size = len(rows) if isinstance(rows, Sized) else None
    if read := TABLES.get(library):
        if told := spreadsheets.describing([*islice(read(rows), 3)]):
            raise InputError(
                f"the first {told} rows of the table tell what its columns are, as Qualtrics "
                f"writes them; give `TABLE[{told}:]`"
            )
        frame: Any = rows if library == "pandas" else None
        return Source(_Again(partial(read, rows)), True, size, frame)
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise OptionError(
            "`rows` must be a list or another iterable of rows, a table or a path, got "
            f"{'one row' if isinstance(rows, Mapping) else repr(rows)}"
        )
    is_hub = library == "datasets"
    if is_hub and (features := getattr(rows, "features", None)):
        rows = _Again(partial(files.named_classes, rows, features.to_dict()))
    return Source(rows, is_hub, size)


def _named_source(name: str | os.PathLike[str], client: Client | None) -> Source:
    path = Path(name)
    if spreadsheets.sheet_in(path)[0].is_file():
        is_lines = path.name.removesuffix(".gz").rpartition(".")[2] in ("jsonl", "ndjson")
        read = partial(files.read_table, path, bad=BadRecord)
        return Source(_Again(read), not is_lines, is_file=True)
    if client is not None:
        return Source(_Again(partial(_of_langsmith, str(name), client)), True)
    is_path = path.suffix or not isinstance(name, str)
    hint = "" if is_path else "; a LangSmith data set needs `client`"
    raise InputError(f"{files.no_table(path)}{hint}")


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

    def __init__(self, source: Source, columns: lookup.Columns | None, takes: str | None) -> None:
        """Check the names; nothing is read yet."""
        self.source, self.takes = source, takes
        self._columns = TableForm(columns).columns or {}
        sides = [self._columns.get(field) for field in ("output_a", "output_b")]
        self.systems = [str(side) for side in sides] if all(sides) else None
        self._form: TableForm | None = None

    def row(self, record: object, index: int) -> dict[str, Any]:
        """A record as a row; the first of a table decides which columns are which fields.

        Raises:
            InputError: It cannot be read, or its judge cannot take it.
            UnreadableTable: The columns of the table are not understood.
        """
        record = _with_names(record)
        form, is_table = self._form or self.form_of(record), self.source.is_table
        if is_table or self._columns:
            self._form = form
        row = form.cell_row(record, index) if is_table else form.row(record, index)
        if "id" in record and not (self._form or self.source.is_file):
            row["id"] = record["id"]  # of any type
        if self.source.check:
            self.source.check(row)
        return row

    def form_of(self, first: Mapping[str, object]) -> TableForm:
        """Form by which columns become fields.

        Raises:
            UnreadableTable: The columns of the table are not understood.
        """
        names, columns = {str(name): cell for name, cell in first.items()}, self._columns
        takes, is_table = self.takes or checks.kind_in(names), self.source.is_table
        if not (is_table or columns):
            return TableForm(lookup.columns_of(first, self.takes), takes=self.takes)
        try:
            if is_table:
                lookup.mapped(first, columns, None, {})
            if takes in ("pair", "item") and "concepts" not in first:
                needed = () if self.source.textless else _needed(first)
                columns = lookup.understood(names, columns, takes, needed=needed)
        except InputError as exc:
            raise UnreadableTable(str(exc)) from exc
        return TableForm(columns, takes=takes, named=self._columns)


def _with_names(record: object) -> Mapping[str, Any]:
    if isinstance(record, BadRecord):
        raise InputError(record.problem)
    row = record if isinstance(record, Mapping) else record_row(record)
    if not isinstance(row, Mapping):
        wanted = "a row must have named fields, such as {'input': …, 'output': …}"
        raise InputError(f"{wanted}, got {type(record).__name__}")
    return row


def _needed(first: Mapping[str, object]) -> Sequence[str]:
    """Fields that need a column: the task may stand at the beginning of the work."""
    outputs = ("output", "output_a", "output_b")
    return outputs if any(map(asked_in, first.values())) else ("input", *outputs)


def first_object(records: Iterable[object]) -> Mapping[str, Any]:
    """The first record that has columns; without one an empty one."""
    return next((each for each in records if isinstance(each, Mapping)), {})


def kind_of_columns(
    records: Iterable[object],
    columns: lookup.Columns | None = None,
    kinds: Sequence[str] = ("pair", "item"),
) -> str | None:
    """The kind of row as which the columns of a table are understood.

    Args:
        records: The table's; its first object names the columns.
        columns: Columns by field, as a person named them.
        kinds: The kinds to try, the first that fits is returned.

    Returns:
        None where no kind fits, such as for labels beside ids.
    """
    first = first_object(records)
    for kind in kinds:
        with suppress(InputError):
            lookup.understood(list(map(str, first)), columns, kind, needed=_needed(first))
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
    given = (*_SHOWN_FIELDS, "id", "family", *(["group"] if remembers else []))
    graphs = map(unwrapped, (judge, *leaves_of(judge)))
    shows_texts_alone = all(isinstance(each, JudgeGraph) for each in graphs)
    return given, _SHOWN_FIELDS if shows_texts_alone and not remembers else given


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
        shard: Shard | None,
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
        self._fingerprint = fingerprint
        self._shard = shard
        from langchain_judges.methods.describe import fields_named, option_of

        self._named = fields_named(judge) - {*_SHOWN_FIELDS}
        self._given, self._keyed = seen_fields(judge)
        self._rubric = option_of(judge, "own_rubric")
        # Without a rubric of the judge's own a row may bring other labels.
        of_each = option_of(judge, "parts") or {}
        self.labels: checks.OwnLabels = {name: [*own] for name, own in of_each.items()}
        if self._rubric and not of_each:
            self.labels = [*option_of(judge, "human_labels")]
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
        own = raw.own if isinstance(raw, BadRecord) else raw
        problem = ""
        try:
            if own is raw and not isinstance(raw, Mapping):
                raw = own = record_row(raw)
            data = self._checked(raw, index)
            content = {field: data[field] for field in self._keyed if field in data}
            if self._is_elsewhere(content):
                return None
            key = self._key(content)
        except UnreadableTable:
            raise
        except (TypeError, ValueError, RecursionError) as exc:
            is_bad = isinstance(exc, InputError)
            problem = str(exc) if is_bad else f"a field cannot be written: {exc}"
            if self._is_elsewhere({"index": index}):
                return None
            name = raw.get("id") if isinstance(raw, Mapping) else None
            data = {"id": name if isinstance(name, str) else None}
            key = self._key({"input": problem})
        known = own if isinstance(own, Mapping) else {}
        return RunRow(index, data, key, self._kind, problem=problem, own=known)

    def _is_elsewhere(self, content: Mapping[str, object]) -> bool:
        """Whether a row is another shard's."""
        if not self._shard:
            return False
        digest = digest_of(content)
        self.content.update(digest)
        return not self._shard.holds(digest)

    def _checked(self, raw: object, index: int) -> dict[str, object]:
        """A good row as plain JSON."""
        if isinstance(raw, Mapping):
            raw = lookup.with_variables(raw, self._named)
        row = self._records.row(raw, index)
        # A judge of what was retrieved needs no output.
        kind = checks.kind_in(row) or ("item" if self._records.takes == "item" else "pair")
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            checks.check_task(row)
        elif kind == "pair":
            checks.check_pair(row)
        self._check_annotations(row, index)
        self._tell(row, index)
        json.dumps([row.get(name) for name in (*checks.ANNOTATIONS, "id")])
        self._kind = kind
        return row

    def _tell(self, row: Mapping[str, Any], index: int) -> None:
        """Warn of the first row with notes, and once of each column that is not shown."""
        notes = Notes.of(row)
        own = [note for note in notes if note["unit"] != "row"]
        for note in () if self._told else own:
            told = "Row %s, `%s` %s. Each such verdict notes it; `columns` names a column"
            _LOGGER.warning(told, index + 1, note["unit"], note["detail"])
            self._told = True
        if row.get("rubric") and self._rubric and not index:
            _LOGGER.warning("Rows are judged by their own `rubric`, in place of the judge's")
        if len(own) == len(notes) and (index or notes.named):
            return
        said = " ".join(each["detail"] for each in own)
        rest = (name for name in lookup.unshown(row) if name not in self._unshown)
        if facts := [name for name in rest if repr(name) not in said]:
            _LOGGER.warning("Columns not shown to the judge: %s", first_names(facts))
        self._unshown.update(facts)

    def _check_annotations(self, row: Mapping[str, Any], index: int) -> None:
        """Warn of the first row whose annotations cannot be counted as labels; it is judged."""
        try:
            checks.check_annotations(row, self.labels, outside=False)
        except InputError as exc:
            if not self._warned:
                told = "Row %s is judged, but its annotations cannot be used as labels: %s"
                _LOGGER.warning(told, index + 1, exc)
            self._warned = True

    def _key(self, content: Mapping[str, object]) -> str:
        """A row's key under this judge; in a file, a repeated key gets a number."""
        digest = digest_of([self._fingerprint, content])
        key = digest.hex()[:32]
        if not self._numbers_repeats:
            return key
        if digest[:8] not in self._seen:
            self._seen.add(digest[:8])
            return key
        self._repeats[key] += 1
        return f"{key}-{self._repeats[key] + 1}"
