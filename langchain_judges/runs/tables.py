"""A run as a table: the user's own columns as they came, then those of the judge."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from langchain_judges.errors import OutputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.files import LARGEST_CELL
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.rows import JUDGED, ResultRow, outcome_of

_AT_ONCE = 10_000
"""Rows of a group in a Parquet file."""
_TYPES = {
    "score": "double",
    "confidence": "double",
    "flipped": "bool",
    "calls": "int64",
    "cost": "double",
}
"""Types of the judge's columns in Parquet; the others are texts, labels may be numbers."""


def judged_cells(result: ResultRow, systems: Sequence[str] | None = None) -> dict[str, object]:
    """Return what a judge said of a row as cells by column.

    Args:
        result: A row of `judge_many`.
        systems: Who wrote A and B; None: the row's own `systems`, else A and B.
    """
    outcome: Mapping[str, Any] = outcome_of(result)
    usage = outcome.get("usage") or {}
    end = {
        "failures": "; ".join(map(_failure, outcome.get("failures") or [])) or None,
        "calls": usage.get("calls"),
        **({"cost": result["cost"]} if "cost" in result else {}),
    }
    kind = kind_of_result(result)
    if kind == "task":
        lost = [each.get("concept") for each in result.get("missing") or []]
        return {"text": result.get("text"), "missing": ", ".join(map(str, lost)), **end}
    shared = {
        "score": outcome.get("score"),
        "confidence": outcome.get("confidence"),
        "reason": outcome.get("rationale") or None,
    }
    if kind == "item":
        return {"label": outcome.get("label"), **shared, **_by_criterion(result), **end}
    names = dict(zip("AB", systems or result.get("systems") or "AB", strict=False))
    preference = outcome.get("preference")
    return {
        "preference": names.get(str(preference), preference),
        **shared,
        "flipped": outcome.get("flipped"),
        **end,
    }


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


def joined_cells(
    own: Mapping[str, object], result: ResultRow, systems: Sequence[str] | None = None
) -> dict[str, object]:
    """Return a row of the table: own cells unchanged, the judge's behind them.

    Where a column of one's own has a name of the judge's, the judge's becomes `judge.NAME`.
    """
    judged = judged_cells(result, systems).items()
    named = {f"judge.{name}" if name in own else name: cell for name, cell in judged}
    return {**own, **{name: _readable(cell) for name, cell in named.items()}}


def known_cells(result: ResultRow) -> dict[str, object]:
    """Return what a stored result knows of its row, in place of the user's own columns."""
    known = {"id": result.get("id")} if result.get("id") is not None else {}
    fields = (*JUDGED, *ANNOTATIONS)
    named = {name: result[name] for name in fields if result.get(name) is not None}
    # A label of the data must not stand where the judge's is looked for.
    return {**known, **{"known_label" if n == "label" else n: v for n, v in named.items()}}


def _readable(cell: object) -> object:
    """Return a cell that steers no terminal."""
    return clean(cell) if isinstance(cell, str) else cell


def _text(cell: object) -> object:
    return json.dumps(cell, ensure_ascii=False, default=str) if _is_nested(cell) else cell


def _is_nested(cell: object) -> bool:
    return isinstance(cell, list | tuple | dict)


def _valid(text: str) -> str:
    """Return a text without lone surrogates, which Parquet cannot hold."""
    return text.encode("utf-8", "replace").decode()


class TableFile(Protocol):
    """A table that is being written."""

    def write(self, own: Mapping[str, object], cells: Mapping[str, object]) -> None:
        """Write a row: the user's own cells, and all of them with the judge's."""

    def close(self) -> None:
        """Write what is left."""


class Delimited:
    """A CSV or TSV file; a column that appears later is added to the rows before."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        self._path = path
        self._delimiter = "\t" if path.suffix == ".tsv" else ","
        self._columns: list[str] = []
        self._file = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")

    def write(self, own: Mapping[str, object], cells: Mapping[str, object]) -> None:
        """Write a row; own cells stay as they are, the judge's run in no spreadsheet."""
        if new := [name for name in cells if name not in self._columns]:
            self._widen(new, own)
        row = {n: _text(c) if n in own else inert_cell(_text(c)) for n, c in cells.items()}
        self._writer().writerow(row)

    def _writer(self) -> csv.DictWriter[str]:
        return csv.DictWriter(self._file, self._columns, delimiter=self._delimiter)

    def _widen(self, new: list[str], own: Mapping[str, object]) -> None:
        """Add columns: own ones before the judge's, as they came."""
        self._file.close()
        before = self._columns
        first = next((n for n, name in enumerate(before) if name not in own), len(before))
        mine = [name for name in new if name in own]
        rest = [name for name in new if name not in own]
        self._columns = [*before[:first], *mine, *before[first:], *rest]
        copy = self._path.with_name(f"{self._path.name}.wide")
        csv.field_size_limit(LARGEST_CELL)
        with self._path.open(encoding="utf-8", newline="", errors="surrogatepass") as old:
            rows = csv.DictReader(old, delimiter=self._delimiter)
            self._file = copy.open("w", encoding="utf-8", newline="", errors="surrogatepass")
            self._writer().writeheader()
            self._writer().writerows(rows if before else ())
        copy.replace(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Parquet:
    """A Parquet file; its columns are those of its first ten thousand rows."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet: the types of columns are those of their cells."""
        with needs("hub", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet
        self._arrow, self._parquet, self._path = pyarrow, parquet, path
        self._rows: list[Mapping[str, object]] = []
        self._own: set[str] = set()
        self._writer: Any = None

    def write(self, own: Mapping[str, object], cells: Mapping[str, object]) -> None:
        """Keep a row; ten thousand are written together."""
        self._rows.append(cells)
        self._own |= own.keys()
        if len(self._rows) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._schema = self._schema_of(self._rows)
            self._writer = self._parquet.ParquetWriter(
                self._path, self._schema, compression="zstd"
            )
        late = {name for row in self._rows for name in row} - set(self._schema.names)
        if late:
            raise OutputError(
                f"{self._path.name}: the columns {sorted(late)!r} come too late for Parquet; "
                "write .csv or .jsonl"
            )
        self._writer.write_table(self._table(self._rows, self._schema))
        self._rows.clear()

    def _schema_of(self, rows: Sequence[Mapping[str, object]]) -> Any:
        pa, fields = self._arrow, []
        for name in dict.fromkeys(name for row in rows for name in row):
            cells = [row.get(name) for row in rows]
            plain = name.removeprefix("judge.") if name not in self._own else ""
            if plain in _TYPES:
                fields.append((name, pa.type_for_alias(_TYPES[plain])))
                continue
            try:
                kind = pa.infer_type(cells)
                pa.array(cells, kind)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                kind = pa.string()
            fields.append((name, pa.string() if pa.types.is_null(kind) else kind))
        return pa.schema(fields)

    def _table(self, rows: Sequence[Mapping[str, object]], schema: Any) -> Any:
        pa, columns = self._arrow, []
        for field in schema:
            cells = [row.get(field.name) for row in rows]
            if pa.types.is_string(field.type):
                cells = [None if cell is None else _valid(str(_text(cell))) for cell in cells]
            columns.append(pa.array(cells, field.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def close(self) -> None:
        """Write the rows that are left."""
        self._flush()
        self._writer.close()


class Lines:
    """A JSONL file with an object of the same columns for each row."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        self._file = path.open("w", encoding="utf-8")

    def write(self, own: Mapping[str, object], cells: Mapping[str, object]) -> None:
        """Write a row."""
        data = json.dumps(cells, ensure_ascii=False, default=str)
        self._file.write(inert_json(data) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


FORMS: dict[str, Callable[[Path], TableFile]] = {
    ".csv": Delimited,
    ".tsv": Delimited,
    ".parquet": Parquet,
    ".jsonl": Lines,
}
"""What writes a table, by the ending of its name."""


def _write_lines(path: Path, results: Iterable[ResultRow]) -> None:
    from langchain_judges.runs.results import line_of

    with path.open("wb") as file:
        for result in results:
            file.write(line_of(result))


def write_results(path: Path, form: str, results: Iterable[ResultRow]) -> None:
    """Write stored results: `.jsonl` unchanged, any other form as a table.

    Args:
        path: The file.
        form: The ending of the name that it will have.
        results: Rows of `judge_many`.
    """
    if form == ".jsonl":
        _write_lines(path, results)
        return
    file = FORMS[form](path)
    try:
        for result in results:
            known = {name: _readable(cell) for name, cell in known_cells(result).items()}
            file.write({}, joined_cells(known, result))
    finally:
        file.close()


class TableOut:
    """The table of a run: written in a hidden folder, and put in its place when the run ends.

    The folder holds what a later run resumes from, and a fingerprint of the table, which tells
    it from one that somebody has edited.

    Args:
        path: The table.
    """

    def __init__(self, path: Path) -> None:
        """Name the files; nothing is opened."""
        self._path = path
        self._folder = path.with_name(f".{path.name}.run")
        self._draft = self._folder / f"draft{path.suffix}"
        self._prints = self._folder / "table.sha256"
        self.records = self._folder / "records.jsonl"
        """The whole results, unless they are kept elsewhere."""
        self._file: TableFile | None = None
        self._broken = False

    def check(self) -> None:
        """Check that no table of somebody else's is there, and make the folder.

        Raises:
            OutputError: There is one, or the folder cannot be written to.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OutputError(f"{self._path} cannot be written: {exc.strerror}") from exc
        if not self._path.exists():
            return
        if not self._prints.exists():
            raise OutputError(
                f"{self._path} is there, and no run wrote it; name another file, or delete it"
            )
        # A kill may come between the fingerprint of a new table and the table itself.
        if _fingerprint(self._path) not in self._prints.read_text().split():
            raise OutputError(
                f"{self._path} was changed since a run wrote it; move it away, and the same "
                "call resumes into a new one"
            )

    def begin(self) -> None:
        """Open a draft.

        Raises:
            OutputError: It cannot be written.
        """
        try:
            self._file = FORMS[self._path.suffix](self._draft)
        except OSError as exc:
            raise OutputError(f"{self._path} cannot be written: {exc.strerror}") from exc

    def write(self, own: Mapping[str, object], cells: Mapping[str, object]) -> None:
        """Write a row."""
        if self._file is not None:
            self._broken = True
            self._file.write(own, cells)
            self._broken = False

    def close(self, *, whole: bool) -> None:
        """Put the table in its place, if it has every row."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            file.close()
            if whole and not self._broken:
                before = self._prints.read_text().split()[:1] if self._prints.exists() else []
                self._prints.write_text("\n".join([_fingerprint(self._draft), *before]))
                self._draft.replace(self._path)
        finally:
            self._draft.unlink(missing_ok=True)


def records_of(path: Path) -> Path:
    """Return the whole results that a run keeps for its table; any other file itself."""
    records = TableOut(path).records
    return records if records.is_file() else path


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
