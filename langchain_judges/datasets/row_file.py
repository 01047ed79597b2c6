"""Reading pairs from a file or a public set, naming bad ones before any call is paid."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from langchain_judges.asking.tokens import bytes_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.checks import check_pair
from langchain_judges.rows.texts import texts_read

ValueCheck = Callable[[object], None]


_TABLES = {".csv", ".json", ".parquet", ".tsv"}


@dataclass
class PairsFile:
    """A JSONL file of pairs, optionally gzipped; iterate over it for its good rows.

    Args:
        path: The file.
        limit: Most good rows to take; None for all.
        check: Raises `InputError` for a bad row.
        columns: Field of a row → its column, as `datasets.rows` takes them.
    """

    path: Path
    limit: int | None = None
    check: ValueCheck = check_pair
    columns: Mapping[str, str] | None = None
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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the good rows, read as they are wanted."""
        return self._rows([])

    def _rows(self, bad: list[tuple[int, str]]) -> Iterator[dict[str, Any]]:
        good = 0
        with self._open() as file:
            for number, line in self._lines(file):
                if self.limit is not None and good >= self.limit:
                    return
                if not line.strip():
                    continue
                try:
                    yield self._row(line, number)
                    good += 1
                except InputError as exc:
                    bad.append((number, str(exc)))

    def _lines(self, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        try:
            for number, line in enumerate(file, 1):
                if number == 1 and line.strip() == b"[":
                    raise InputError(
                        f"{self.path} is a JSON array; put one object on each line."
                    )
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        except (OSError, EOFError) as exc:
            raise InputError(f"{self.path} cannot be read: {exc}") from exc

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        from langchain_judges.datasets.tables import as_row

        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise InputError(f"not JSON ({exc})") from exc
        if isinstance(row, dict):
            row = as_row(row, number - 1, self.columns)
        self.check(row)
        return cast("dict[str, Any]", row)

    def _open(self) -> IO[bytes]:
        try:
            if self.path.suffix == ".gz":
                return cast("IO[bytes]", gzip.open(self.path, "rb"))
            return self.path.open("rb")
        except OSError as exc:
            raise InputError(f"{self.path} cannot be read: {exc.strerror}.") from exc


class PairsSet(PairsFile):
    """The rows of a public set, by its name or folder, or of a table (CSV, TSV, Parquet)."""

    def _rows(self, bad: list[tuple[int, str]]) -> Iterator[dict[str, Any]]:
        from langchain_judges.datasets.tables import cell_row

        good = 0
        table = self.path.is_file()
        for number, record in enumerate(self._records(table), 1):
            if self.limit is not None and good >= self.limit:
                return
            try:
                row = cell_row(record, number - 1, self.columns) if table else record
                self.check(row)
            except InputError as exc:
                bad.append((number, str(exc)))
            else:
                yield row
                good += 1

    def _records(self, table: bool) -> Iterator[dict[str, Any]]:
        from langchain_judges.datasets import rows
        from langchain_judges.rows.files import read_table

        return read_table(self.path) if table else rows(self.path)


def open_rows(
    path: Path,
    limit: int | None = None,
    check: ValueCheck = check_pair,
    columns: Mapping[str, str] | None = None,
) -> PairsFile:
    """Return what reads the rows of a path: JSONL, a table, or a set by its name or folder.

    Raises:
        OptionError: `columns` names no field of a row, or the path is a set.
    """
    from langchain_judges.datasets import knows
    from langchain_judges.datasets.tables import check_columns

    check_columns(columns)
    if columns and knows(path):
        raise OptionError(f"columns are named for a table; {path} is a known set")
    ending = Path(path.stem if path.suffix == ".gz" else path).suffix
    table = path.is_file() and ending in _TABLES
    return (PairsSet if table or knows(path) else PairsFile)(path, limit, check, columns)
