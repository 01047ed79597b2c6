"""Reading pairs from a file or a public set, naming bad ones before any call is paid."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, cast

from langchain_judges.asking.tokens import bytes_of
from langchain_judges.datasets import knows, rows
from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.checks import check_pair
from langchain_judges.rows.files import read_table
from langchain_judges.rows.texts import texts_read
from langchain_judges.runs.columns import Columns, RowStream, TableForm

ValueCheck = Callable[[object], None]
"""Raises `InputError` for a bad row."""
_TABLES = {".csv", ".json", ".parquet", ".tsv"}


@dataclass
class PairsFile:
    """A JSONL file of pairs, optionally gzipped; iterate over it for its good rows.

    Args:
        path: The file.
        limit: Most good rows to take; None for all.
        check: Raises `InputError` for a bad row.
        form: How the records of a table become rows.
    """

    path: Path
    limit: int | None = None
    check: ValueCheck = check_pair
    form: TableForm = field(default_factory=TableForm)
    noun: ClassVar[str] = "line"
    """What a row is called where a bad one is named."""
    repeated: int = 0
    """Good rows found by `count` whose id an earlier row has."""
    size: int = 0
    """Bytes of all texts of the good rows, found by `count`."""
    longest: int = 0
    """Bytes of the longest good row."""
    bad: list[tuple[int, str]] = field(default_factory=list)
    """The bad lines found by `count`: number from 1, and what is wrong."""

    def count(self) -> int:
        """Read the whole file, remember its bad lines and return how many good rows it has."""
        self.bad, self.repeated = [], 0
        self.size = self.longest = 0
        # Of an id a few bytes are kept: there may be millions.
        ids: set[int] = set()
        good = with_id = 0
        for row in self._rows(self.bad):
            good += 1
            size = bytes_of(texts_read(row))
            self.size += size
            self.longest = max(self.longest, size)
            if row.get("id") is not None:
                with_id += 1
                ids.add(hash(str(row["id"])))
        self.repeated = with_id - len(ids)
        return good

    def __iter__(self) -> RowStream:
        """Yield the good rows, read as they are wanted."""
        return self._rows([])

    def _rows(self, bad: list[tuple[int, str]]) -> RowStream:
        good = 0
        for number, record in self._records():
            if self.limit is not None and good >= self.limit:
                return
            try:
                row = self._row(record, number)
                self.check(row)
            except InputError as exc:
                bad.append((number, str(exc)))
            else:
                yield row
                good += 1

    def _records(self) -> Iterator[tuple[int, Any]]:
        """Yield what may be a row with its number from 1: here the lines that are not empty."""
        with self._open() as file:
            try:
                for number, line in enumerate(file, 1):
                    text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                    if number == 1 and text.strip() == b"[":
                        raise InputError(
                            f"{self.path} is a JSON array; put one object on each line."
                        )
                    if text.strip():
                        yield number, text
            except (OSError, EOFError) as exc:
                raise InputError(f"{self.path} cannot be read: {exc}") from exc

    def _row(self, record: Any, number: int) -> Any:
        """Return the row of a line; JSON that is no object is left to the check."""
        try:
            row = json.loads(record)
        except (ValueError, RecursionError) as exc:
            raise InputError(f"not JSON ({exc})") from exc
        return self.form.row(row, number - 1) if isinstance(row, dict) else row

    def _open(self) -> IO[bytes]:
        try:
            if self.path.suffix == ".gz":
                return cast("IO[bytes]", gzip.open(self.path, "rb"))
            return self.path.open("rb")
        except OSError as exc:
            raise InputError(f"{self.path} cannot be read: {exc.strerror}.") from exc


class PairsTable(PairsFile):
    """The rows of a table: CSV, TSV, JSON or Parquet."""

    noun: ClassVar[str] = "row"

    def _records(self) -> Iterator[tuple[int, Any]]:
        return enumerate(read_table(self.path), 1)

    def _row(self, record: Any, number: int) -> Any:
        return self.form.cell_row(record, number - 1)


class PairsSet(PairsFile):
    """The rows of a public set, by its name or folder."""

    noun: ClassVar[str] = "row"

    def _records(self) -> Iterator[tuple[int, Any]]:
        return enumerate(rows(self.path), 1)

    def _row(self, record: Any, number: int) -> Any:
        return record


def open_rows(
    path: Path,
    limit: int | None = None,
    check: ValueCheck = check_pair,
    columns: Columns | None = None,
) -> PairsFile:
    """Return what reads the rows of a path: JSONL, a table, or a set by its name or folder.

    Raises:
        OptionError: `columns` names no field of a row, or the path is a set.
    """
    form = TableForm(columns)
    if columns and knows(path):
        raise OptionError(f"columns are named for a table; {path} is a known set")
    if knows(path):
        return PairsSet(path, limit, check)
    ending = Path(path.stem if path.suffix == ".gz" else path).suffix
    table = path.is_file() and ending in _TABLES
    return (PairsTable if table else PairsFile)(path, limit, check, form)
