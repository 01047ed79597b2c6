"""A run as a table: the user's own columns as they came, then those of the judge."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_judges.errors import OutputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.files import LARGEST_CELL
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.results import line_of, locked_folder
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


_PREFIXES = re.compile(r"^(?:judge\.)+")


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


class TableFile:
    """A table that is being written: the user's own columns, and those of the judge."""

    def __init__(self, path: Path) -> None:
        """Name the file."""
        self._path = path
        self._own: dict[str, None] = {}
        """The user's own columns so far."""
        self._judged: set[str] = set()
        """The judge's columns so far."""

    def write(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Write a row: the user's own cells as they are, and the judge's.

        A column of the judge gives its name to a column of one's own that comes later.
        """
        taken = own.keys() & self._judged
        self._own |= dict.fromkeys(own)
        if taken:
            self._rename({name: _free_name(name, self._own) for name in taken})
            self._judged -= taken
        cells = named_cells(self._own, judged)
        self._judged |= cells.keys()
        self._put(own, cells)

    def _put(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        raise NotImplementedError

    def _rename(self, names: Mapping[str, str]) -> None:
        """Give columns of the rows before other names."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left."""
        raise NotImplementedError


class Delimited(TableFile):
    """A CSV or TSV file; a column that appears later is added to the rows before."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        super().__init__(path)
        self._delimiter = "\t" if path.suffix == ".tsv" else ","
        self._columns: list[str] = []
        self._known: set[str] = set()
        self._file = self._opened(path, "w")

    @staticmethod
    def _opened(path: Path, mode: str) -> Any:
        return path.open(mode, encoding="utf-8", newline="", errors="surrogatepass")

    def _put(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Write a row; own cells stay as they are, the judge's run in no spreadsheet."""
        if not own.keys() | judged.keys() <= self._known:
            rest = [name for name in (*self._columns, *judged) if name not in self._own]
            self._copy([*self._own, *dict.fromkeys(rest)], {})
        safe = {name: inert_cell(_text(cell)) for name, cell in judged.items()}
        self._writer().writerow({name: _text(cell) for name, cell in own.items()} | safe)

    def _writer(self) -> csv.DictWriter[str]:
        return csv.DictWriter(self._file, self._columns, delimiter=self._delimiter)

    def _rename(self, names: Mapping[str, str]) -> None:
        self._copy([names.get(name, name) for name in self._columns], names)

    def _copy(self, columns: list[str], names: Mapping[str, str]) -> None:
        """Write the rows so far again, under other columns."""
        self._file.close()
        before, self._columns, self._known = bool(self._columns), columns, set(columns)
        copy = self._path.with_name(f"{self._path.name}.wide")
        csv.field_size_limit(LARGEST_CELL)
        with self._opened(self._path, "r") as old:
            rows = csv.DictReader(old, delimiter=self._delimiter) if before else ()
            self._file = self._opened(copy, "w")
            self._writer().writeheader()
            self._writer().writerows({names.get(n, n): c for n, c in r.items()} for r in rows)
        copy.replace(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Parquet(TableFile):
    """A Parquet file; its columns are those of its first ten thousand rows."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet: the types of columns are those of their cells."""
        super().__init__(path)
        with needs("hub", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet
        self._arrow, self._parquet = pyarrow, parquet
        self._rows: list[dict[str, object]] = []
        self._writer: Any = None

    def _put(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Keep a row; ten thousand are written together."""
        self._rows.append({**own, **judged})
        if len(self._rows) == _AT_ONCE:
            self._flush()

    def _rename(self, names: Mapping[str, str]) -> None:
        if self._writer is not None:
            raise self._late(names)
        self._rows = [{names.get(n, n): c for n, c in row.items()} for row in self._rows]

    def _late(self, names: Iterable[str]) -> OutputError:
        return OutputError(
            f"{self._path.name}: the columns {sorted(names)!r} come too late for Parquet; "
            "write .csv or .jsonl"
        )

    def _flush(self) -> None:
        if self._writer is None:
            self._schema = self._schema_of(self._rows)
            self._writer = self._parquet.ParquetWriter(
                self._path, self._schema, compression="zstd"
            )
        late = {name for row in self._rows for name in row} - set(self._schema.names)
        if late:
            raise self._late(late)
        self._writer.write_table(self._table(self._rows, self._schema))
        self._rows.clear()

    def _schema_of(self, rows: Sequence[Mapping[str, object]]) -> Any:
        pa, fields = self._arrow, []
        names = dict.fromkeys(name for row in rows for name in row)
        for name in [*self._own, *(name for name in names if name not in self._own)]:
            cells = [row.get(name) for row in rows]
            plain = _PREFIXES.sub("", name) if name not in self._own else ""
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


class Lines(TableFile):
    """A JSONL file with an object of the same columns for each row."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        super().__init__(path)
        self._file = path.open("w", encoding="utf-8")

    def _put(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Write a row."""
        data = json.dumps({**own, **judged}, ensure_ascii=False, default=str)
        self._file.write(inert_json(data) + "\n")

    def _rename(self, names: Mapping[str, str]) -> None:
        self._file.close()
        copy = self._path.with_name(f"{self._path.name}.named")
        with self._path.open(encoding="utf-8") as old:
            self._file = copy.open("w", encoding="utf-8")
            for row in map(json.loads, old):
                self._put({}, {names.get(name, name): cell for name, cell in row.items()})
        copy.replace(self._path)

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
            # Nobody's own cells: they are as safe as the judge's.
            file.write({}, {**known, **named_cells(known, judged_cells(result))})
    finally:
        file.close()


class TableOut:
    """The table of a run: written in a hidden folder, and put in its place when the run ends.

    The folder holds what a later run resumes from, and a receipt of the table, which tells it
    from one that somebody has edited, and its judge from others.

    Args:
        path: The table.
    """

    def __init__(self, path: Path) -> None:
        """Name the files; nothing is opened."""
        self._path = path
        self._folder = path.with_name(f".{path.name}.run")
        self._draft = self._folder / f"draft{path.suffix}"
        self._receipt = self._folder / "table.json"
        self.records = self._folder / "records.jsonl"
        """The whole results, unless they are kept elsewhere."""
        self._file: TableFile | None = None
        self._lock: int | None = None
        self._mark = ""
        self._rows = 0
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
        self._mark = mark
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked_folder(self._folder, self._path)
            self._check(size)
            self._file = FORMS[self._path.suffix](self._draft)
        except OSError as exc:
            self._free()
            raise OutputError(f"{self._path} cannot be written: {exc.strerror}") from exc
        except BaseException:
            self._free()
            raise

    def _check(self, size: int | None) -> None:
        if not self._path.exists():
            return
        if not self._receipt.exists():
            raise OutputError(
                f"{self._path} is there, and no run wrote it; name another file, or delete it"
            )
        known = json.loads(self._receipt.read_text(encoding="utf-8"))
        # A kill may come between the receipt of a new table and the table itself.
        if _fingerprint(self._path) not in known["sha256"]:
            raise OutputError(
                f"{self._path} was changed since a run wrote it; move it away, and the same "
                "call resumes into a new one"
            )
        what = ""
        if known["mark"] != self._mark:
            what = "the table of another judge, or of other settings"
        elif size is not None and size < known["rows"]:
            what = f"a table of {known['rows']:,} rows, and this run has {size:,}"
        if what:
            raise OutputError(f"{self._path} is {what}; name another file, or move it away")

    def write(self, own: Mapping[str, object], judged: Mapping[str, object]) -> None:
        """Write a row."""
        if self._file is not None:
            self._broken = True
            self._file.write(own, judged)
            self._broken = False
            self._rows += 1

    def close(self, *, whole: bool) -> None:
        """Put the table in its place, if it has every row, and let other runs in."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
                if whole and not self._broken:
                    self._put_in_place()
        finally:
            self._draft.unlink(missing_ok=True)
            self._free()

    def _put_in_place(self) -> None:
        prints = [_fingerprint(self._draft)]
        if self._receipt.exists():
            prints += json.loads(self._receipt.read_text(encoding="utf-8"))["sha256"][:1]
        receipt = {"sha256": prints, "mark": self._mark, "rows": self._rows}
        draft = self._receipt.with_suffix(".tmp")
        draft.write_text(json.dumps(receipt), encoding="utf-8")
        draft.replace(self._receipt)
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
