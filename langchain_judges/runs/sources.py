"""The records of any table: of a list, a frame, a file, a data set of LangSmith."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows import checks, data, files, spreadsheets
from langchain_judges.rows.record import record_row

if TYPE_CHECKING:
    from langsmith import Client
    from pandas import DataFrame
# One record as its source has it.
SourceRecord = Mapping[str, Any]
# Rows of a DataFrame that are turned into records at a time.
_RECORDS_AT_ONCE = 1_000


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
            yield {str(name): data.plain_data(value) for name, value in record.items()}


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
            raise InputError(checks.KNOWN_NAMES["qualtrics"].format(told=told))
        frame: Any = rows if library == "pandas" else None
        return Source(_Again(partial(read, rows)), True, size, frame)
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        got = "one row" if isinstance(rows, Mapping) else repr(rows)
        raise OptionError(checks.KNOWN_NAMES["rows"].format(got=got))
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


def with_names(record: object) -> Mapping[str, Any]:
    """The fields of a record by their names.

    Raises:
        InputError: It cannot be read, or has none.
    """
    if isinstance(record, BadRecord):
        raise InputError(record.problem)
    row = record if isinstance(record, Mapping) else record_row(record)
    if not isinstance(row, Mapping):
        wanted = "a row must have named fields, such as {'input': …, 'output': …}"
        raise InputError(f"{wanted}, got {type(record).__name__}")
    return row


def first_object(records: Iterable[object]) -> Mapping[str, Any]:
    """The first record that has columns; without one an empty one."""
    return next((each for each in records if isinstance(each, Mapping)), {})
