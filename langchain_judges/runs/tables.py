"""A run as a table: the user's own columns as they came, then those of the judge."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from langchain_judges.errors import OutputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.rows.checks import ANNOTATIONS, kind_of_result
from langchain_judges.rows.files import writing
from langchain_judges.runs.results import (
    line_of,
    locked_folder,
    read_receipt,
    write_receipt,
)
from langchain_judges.runs.run_row import JUDGED, ResultRow, outcome_of

# Rows of a group in a Parquet file.
_AT_ONCE = 1_000
_RECEIPT = "table"
_OWN, _JUDGE = "own.", "judge."
_KNOWN = ("id", *JUDGED, *ANNOTATIONS)
# Columns of the judge that hold numbers, even where all are missing.
_NUMBERS = {f"{_JUDGE}{name}" for name in ("score", "confidence", "cost")}


def judged_cells(result: ResultRow, systems: Sequence[str] | None = None) -> dict[str, object]:
    """Return what a judge said of a row as cells by column.

    Args:
        result: A row of `judge_many`.
        systems: Who wrote A and B; None: the row's own `systems`, else A and B.
    """
    outcome: Mapping[str, Any] = outcome_of(result)
    kind = kind_of_result(result)
    if kind == "task":
        lost = [str(each.get("concept")) for each in result.get("missing") or []]
        cells = {"text": result.get("text"), "missing": ", ".join(lost)}
    else:
        names = dict(zip("AB", systems or result.get("systems") or "AB", strict=False))
        answer = "label" if kind == "item" else "preference"
        cells = {
            answer: outcome.get(answer),
            "score": outcome.get("score"),
            "confidence": outcome.get("confidence"),
            "reason": outcome.get("rationale") or None,
        }
        if kind == "item":
            cells |= _by_criterion(result)
        else:
            cells["preference"] = names.get(str(cells["preference"]), cells["preference"])
            cells["flipped"] = outcome.get("flipped")
    cells["failures"] = "; ".join(map(_failure, outcome.get("failures") or [])) or None
    cells["calls"] = (outcome.get("usage") or {}).get("calls")
    return cells | ({"cost": result["cost"]} if "cost" in result else {})


def _failure(failure: Mapping[str, Any]) -> str:
    where = " ".join(filter(None, (failure.get("step"), failure.get("unit"))))
    return f"{where}: {failure.get('reason')} {failure.get('detail') or ''}".strip()


def _by_criterion(result: ResultRow) -> dict[str, object]:
    parts = [each for each in result.get("subscores") or [] if "criterion" in each]
    cells: dict[str, object] = {}
    for part in parts if len(parts) > 1 else []:
        cells[part["criterion"]] = part.get("label")
        cells[f"{part['criterion']}.reason"] = part.get("reason") or None
    return cells


def named_cells(own: Collection[str], judged: Mapping[str, object]) -> dict[str, object]:
    """Return the judge's cells; beside a column of one's own of that name as `judge.NAME`."""
    return {_free_name(name, own): _readable(cell) for name, cell in judged.items()}


def _free_name(name: str, own: Collection[str]) -> str:
    """Return a name for a column of the judge that no column of one's own has.

    A table that was judged before has `judge.NAME` too.
    """
    while name in own:
        name = f"judge.{name}"
    return name


def _readable(cell: object) -> object:
    """Return a cell that steers no terminal."""
    return clean(cell) if isinstance(cell, str) else cell


def _text(cell: object) -> object:
    is_nested = isinstance(cell, list | tuple | dict)
    return json.dumps(cell, ensure_ascii=False, default=str) if is_nested else cell


class TableFile:
    """A table that is being written: the user's own columns, and those of the judge.

    Rows wait in a file without a name, for a column may come late; the table is written when
    it is closed. A column of the judge gives way to one's own of that name as `judge.NAME`.

    Args:
        path: The table; its ending says its form.
    """

    def __init__(self, path: Path) -> None:
        """Open the file in which rows wait."""
        self._path, self._form = path, path.suffix
        # Each with whose it is before its name.
        self._columns: dict[str, None] = {}
        self._waiting: Any = TemporaryFile("wb+", dir=path.parent)  # noqa: SIM115 - see `close`
        path.touch()  # one that cannot be written is found before anything is paid

    def write(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Take a row: the user's own cells as they are, and the judge's."""
        row = {f"{_OWN}{name}": cell for name, cell in own.items()}
        row |= {f"{_JUDGE}{name}": _readable(cell) for name, cell in judged.items()}
        self._columns |= dict.fromkeys(row)
        self._wait(row)

    def close(self) -> None:
        """Write the table."""
        bare = {key: key.removeprefix(_OWN) for key in self._columns}
        own = {key: name for key, name in bare.items() if key != name}
        judged = (key for key in self._columns if key not in own)
        names = {key: _free_name(key.removeprefix(_JUDGE), own.values()) for key in judged}
        with self._waiting:
            self._finish(own | names)

    def _wait(self, row: dict[str, object]) -> None:
        self._waiting.write(json.dumps(row, default=str).encode() + b"\n")

    def _finish(self, names: Mapping[str, str]) -> None:
        """Write the table, with the columns under these names."""
        self._waiting.seek(0)
        rows = map(json.loads, self._waiting)
        with self._path.open("w", encoding="utf-8", newline="", errors="surrogatepass") as file:
            if self._form == ".jsonl":
                for row in rows:
                    cells = {names[key]: cell for key, cell in row.items()}
                    file.write(inert_json(json.dumps(cells, ensure_ascii=False)) + "\n")
                return
            writer = csv.writer(file, delimiter="\t" if self._form == ".tsv" else ",")
            if names:
                writer.writerow(names.values())
            for row in rows:
                cells = {key: _text(row.get(key)) for key in names}
                # One's own cells stay as they are; the judge's run in no spreadsheet.
                writer.writerow(
                    c if k.startswith(_OWN) else inert_cell(c) for k, c in cells.items()
                )


class ParquetFile(TableFile):
    """A Parquet file; rows wait as Arrow tables, each with the types of its cells."""

    def __init__(self, path: Path) -> None:
        """Open the file in which rows wait."""
        with needs("hub", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet
        super().__init__(path)
        self._arrow, self._parquet = pyarrow, parquet
        self._rows: list[dict[str, object]] = []
        # The type of each column, as far as all cells have one.
        self._types: dict[str, Any] = {}

    def _wait(self, row: dict[str, object]) -> None:
        self._rows.append(row)
        if len(self._rows) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        pa = self._arrow
        columns = {
            key: self._array([row.get(key) for row in self._rows]) for key in self._columns
        }
        for key, array in columns.items():
            self._types[key] = self._common(self._types.get(key, pa.null()), array.type)
        table = pa.table(columns or {"": pa.nulls(len(self._rows))})
        with pa.ipc.new_stream(self._waiting, table.schema) as stream:
            stream.write_table(table)
        self._rows.clear()

    def _array(self, cells: Sequence[object]) -> Any:
        pa = self._arrow
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            return pa.array(cells)
        # Parquet cannot hold lone surrogates.
        texts = (None if cell is None else str(_text(cell)) for cell in cells)
        return pa.array([text and text.encode("utf-8", "replace").decode() for text in texts])

    def _common(self, one: Any, other: Any) -> Any:
        """Return a type that holds the cells of both; that of texts holds all."""
        pa = self._arrow
        both = [pa.schema([("", each)]) for each in (one, other)]
        with suppress(pa.ArrowTypeError):
            return pa.unify_schemas(both, promote_options="permissive").field(0).type
        return pa.string()

    def _finish(self, names: Mapping[str, str]) -> None:
        pa = self._arrow
        self._flush()
        fields = []
        for key, name in names.items():
            kind = self._types[key]
            if pa.types.is_null(kind):
                kind = pa.float64() if key in _NUMBERS else pa.string()
            fields.append(pa.field(name, kind))
        schema = pa.schema(fields)
        self._waiting.seek(0)
        with self._parquet.ParquetWriter(self._path, schema, compression="zstd") as writer:
            while self._waiting.peek(1):
                table = pa.ipc.open_stream(self._waiting).read_all()
                columns = [
                    self._cast(table, *each) for each in zip(names, schema.types, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    def _cast(self, table: Any, key: str, kind: Any) -> Any:
        """Return a column of some rows in its type."""
        pa = self._arrow
        if key not in table.column_names:
            return pa.nulls(len(table), kind)
        if table[key].type == kind:
            return table[key]
        cells = table[key].to_pylist()
        if pa.types.is_string(kind):
            cells = [None if cell is None else str(_text(cell)) for cell in cells]
        return pa.array(cells, kind)


FORMS: dict[str, type[TableFile]] = {
    ".csv": TableFile,
    ".tsv": TableFile,
    ".parquet": ParquetFile,
    ".jsonl": TableFile,
}
"""What writes a table, by the ending of its name."""


def write_results(path: Path, results: Iterable[ResultRow]) -> None:
    """Write stored results: `.jsonl` unchanged, any other form as a table.

    Args:
        path: The file; its ending says its form.
        results: Rows of `judge_many`.
    """
    if path.suffix == ".jsonl":
        with path.open("wb") as lines:
            lines.writelines(map(line_of, results))
        return
    with closing(FORMS[path.suffix](path)) as file:
        for result in results:
            # What a stored result knows of its row, in place of the user's own columns.
            known = {n: result[n] for n in _KNOWN if result.get(n) is not None}
            # A label of the data must not stand where the judge's is looked for.
            named = (("known_label" if n == "label" else n, known[n]) for n in known)
            # Nobody's own cells: they are as safe as the judge's.
            cells = {name: _readable(cell) for name, cell in named}
            file.write({}, {**cells, **named_cells(cells, judged_cells(result))})


class TableOut:
    """The table of a run: written in a hidden folder, and put in its place when the run ends.

    The folder holds what a later run resumes from, and a receipt of the table, which tells it
    from one that somebody has edited, and its judge from others.

    Args:
        path: The table.

    Attributes:
        records: The whole results, unless they are kept elsewhere.
    """

    def __init__(self, path: Path) -> None:
        """Name the files; nothing is opened."""
        self._path = path
        self._folder = path.with_name(f".{path.name}.run")
        self._draft = self._folder / f"draft{path.suffix}"
        self._receipt = self._folder / "table.json"
        self.records = self._folder / "records.jsonl"
        self._file: TableFile | None = None
        self._lock: int | None = None
        self._mark = ""
        self._rows = self._least = 0
        self._broken = False

    def open(self, mark: str, size: int | None) -> None:
        """Check what is there, keep other runs out, and begin a draft.

        Args:
            mark: The judge's.
            size: How many rows the run has, if that is known.

        Raises:
            OutputError: The table is somebody else's, was edited, is of another judge or has
                more rows; another run writes it; or the folder cannot be written to.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked_folder(self._folder, self._path)
            self._mark = mark
            if self._path.exists():
                self._check()
            if size is not None:
                self._check_rows(size)
            self._file = FORMS[self._path.suffix](self._draft)
        except BaseException as exc:
            self._free()
            if isinstance(exc, OSError):
                raise OutputError(f"{self._path} cannot be written: {exc.strerror}") from exc
            raise

    def _check(self) -> None:
        remedy = f"move {self._path} away, and the same call resumes into a new one"
        known = read_receipt(self._receipt, _RECEIPT, remedy)
        if known is None:
            raise self._refusal(
                "is there, and no run wrote it; name another file, or delete it"
            )
        # A kill may come between the receipt of a new table and the table itself.
        if _fingerprint(self._path) not in known["sha256"]:
            raise self._refusal(
                "was changed since a run wrote it; move it away, and the same call resumes "
                "into a new one"
            )
        self._least = known["rows"]
        if known["mark"] != self._mark:
            what = "the table of another judge, or of other settings"
            raise self._refusal(f"is {what}; name another file, or move it away")

    def _check_rows(self, rows: int) -> None:
        if rows < self._least:
            what = f"a table of {self._least:,} rows, and this run has {rows:,}"
            raise self._refusal(f"is {what}; name another file, or move it away")

    def _refusal(self, why: str) -> OutputError:
        return OutputError(f"{self._path} {why}")

    def write(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Write a row."""
        if self._file is not None:
            self._broken = True
            with writing(self._path):
                self._file.write(own, judged)
            self._broken = False
            self._rows += 1

    def close(self, *, whole: bool) -> None:
        """Put the table in its place, if it has every row, and let other runs in."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            with writing(self._path):
                file.close()
                if whole and not self._broken:
                    self._check_rows(self._rows)
                    self._put_in_place()
        finally:
            self._draft.unlink(missing_ok=True)
            self._free()

    def _put_in_place(self) -> None:
        prints = [_fingerprint(each) for each in (self._draft, self._path) if each.exists()]
        receipt = {"sha256": prints, "mark": self._mark, "rows": self._rows}
        write_receipt(self._receipt, _RECEIPT, receipt)
        self._draft.replace(self._path)

    def _free(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def records_of(path: Path) -> Path:
    """Return the whole results that a run keeps for its table; any other file itself."""
    records = TableOut(path).records
    return records if records.is_file() else path


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
