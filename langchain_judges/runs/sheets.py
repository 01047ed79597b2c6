"""Writers of tables by the ending of their name. In a spreadsheet no cell of theirs runs."""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from langchain_judges import errors, orders
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.rows import checks, data
from langchain_judges.runs.run_row import RUN_ERRORS, ResultRow, outcome_of
from langchain_judges.runs.summary import CriterionCounts

_LOG = logging.getLogger(__name__)
# Rows of a group in a Parquet file.
_ROWS_AT_ONCE = 1_000
_OWN, _JUDGE = "own.", "judge."
# Columns of the judge that hold numbers, even where all are missing.
_NUMBERS = {f"{_JUDGE}{name}" for name in ("score", "confidence", "cost")}
_OF_ITEMS = ("label", "score", "confidence", "reason", "failures", "calls", "cost")
_SPREADSHEETS = {".csv", ".tsv", ".xlsx"}


def judged_cells(result: ResultRow, systems: Sequence[str] | None = None) -> dict[str, object]:
    """Cells of a judge's verdict, by column.

    Args:
        result: A row of `judge_many`.
        systems: Who wrote A and B; None: the row's own `systems`, else A and B.
    """
    outcome: Mapping[str, Any] = outcome_of(result)
    kind = checks.kind_of_result(result)
    if kind == "task":
        lost = [str(each.get("concept")) for each in result.get("missing") or []]
        cells = {"text": result.get("text"), "missing": ", ".join(lost)}
    else:
        names = checks.names_of_sides(result, systems)
        answer = "label" if kind == "item" else "preference"
        cells = {
            answer: outcome.get(answer),
            "score": outcome.get("score"),
            "confidence": outcome.get("confidence"),
            "reason": orders.naming_sides(outcome.get("rationale") or "", names) or None,
        }
        if kind == "item":
            cells |= _by_criterion(result)
        else:
            cells["preference"] = names.get(str(cells["preference"]), cells["preference"])
            if names and not systems:  # from row to row another system stands as A
                cells["score_of"] = names["A"]
            cells["flipped"] = outcome.get("flipped")
    cells["failures"] = "; ".join(map(_failure_line, outcome.get("failures") or [])) or None
    cells["calls"] = (outcome.get("usage") or {}).get("calls")
    return cells | ({"cost": result["cost"]} if "cost" in result else {})


def _failure_line(failure: Mapping[str, Any]) -> str:
    where = " ".join(filter(None, (failure.get("step"), failure.get("unit"))))
    return f"{where}: {failure.get('reason')} {failure.get('detail') or ''}".strip()


def _by_criterion(result: ResultRow) -> dict[str, object]:
    parts = [each for each in result.get("subscores") or [] if "criterion" in each]
    columns = criterion_columns([each["criterion"] for each in parts])
    cells: dict[str, object] = {}
    for part in parts if len(parts) > 1 else []:
        name = columns[part["criterion"]]
        cells[name] = part.get("label")
        cells[f"{name}.score"] = part.get("score")
        cells[f"{name}.reason"] = part.get("reason") or None
    return cells


def criterion_columns(criteria: Collection[str]) -> dict[str, str]:
    """The column of each criterion: its name, or `criterion.NAME` where another has that.

    >>> criterion_columns(["Tone", "confidence"])
    {'Tone': 'Tone', 'confidence': 'criterion.confidence'}
    """
    taken = {*_OF_ITEMS, *(f"{name}.{own}" for name in criteria for own in ("score", "reason"))}
    return {name: f"criterion.{name}" if name in taken else name for name in criteria}


def named_cells(own: Iterable[str], judged: Mapping[str, object]) -> dict[str, object]:
    """Cells of the judge; beside a column of one's own of that name as `judge.NAME`."""
    return {
        free_name(clean(name), own): clean(cell) if isinstance(cell, str) else cell
        for name, cell in judged.items()
    }


def free_name(name: str, own: Iterable[str]) -> str:
    """Name for a column of the judge that no column of one's own has.

    A table that was judged before has `judge.NAME` too.
    """
    while name in own:
        name = f"judge.{name}"
    return name


def _cell_text(cell: object) -> object:
    return data.as_json(cell) if isinstance(cell, list | tuple | dict) else cell


def encodable(cell: Any) -> Any:
    """Replace lone surrogates of a text, which no encoding can hold."""
    return cell.encode("utf-8", "replace").decode() if isinstance(cell, str) else cell


def rounded_cell(cell: object) -> object:
    """Round a number for people to four digits."""
    return float(f"{cell:.4g}") if isinstance(cell, float) else cell


class TableFile:
    """A table that is being written: the user's own columns, and those of the judge.

    Rows wait in a file without a name, for a column may come late; the table is written when
    it is closed. A column of the judge gives way to one's own of that name as `judge.NAME`.
    What a spreadsheet reads is inert: a text that it would run as a formula gets a leading
    quote, and control characters are replaced. In other forms your own cells are unchanged;
    control characters in what the judge said are replaced in every form.

    Args:
        path: The table; its ending says its form.
        raw: Leave your own cells and names unchanged.
    """

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        """Open the file in which rows wait."""
        self._path, self._form = path, path.suffix
        self._is_raw = raw or self._form not in _SPREADSHEETS
        self._altered, self._criteria = 0, CriterionCounts()
        # Each with whose it is before its name.
        self._columns: dict[str, None] = {}
        self._waiting: Any = TemporaryFile("wb+", dir=path.parent)  # noqa: SIM115 - see `close`
        path.touch()  # one that cannot be written is found before anything is paid

    def add(
        self, own: Mapping[str, object], result: ResultRow, systems: Sequence[str] | None = None
    ) -> None:
        """Take a row: the user's own cells, and the judge's of a result of `judge_many`."""
        judged = named_cells((), judged_cells(result, systems))
        is_total = judged.get("label") == judged.get("score") and _by_criterion(result)
        if is_total and self._form in _SPREADSHEETS:
            del judged["label"]  # people need it once
        row = {f"{_OWN}{name}": self._own_cell(cell) for name, cell in own.items()}
        row |= {f"{_JUDGE}{name}": cell for name, cell in judged.items()}
        self._columns |= dict.fromkeys(row)
        if self._form in {".md", ".xlsx"}:
            self._criteria.add(result, systems)
        self._wait(row)

    def close(self, *, kept: bool = True) -> None:
        """Write the table, and warn of cells that are not as they came if it is kept."""
        bare = {key: key.removeprefix(_OWN) for key in self._columns}
        own = {key: name for key, name in bare.items() if key != name}
        judged = (key for key in self._columns if key not in own)
        names = {key: free_name(key.removeprefix(_JUDGE), own.values()) for key in judged}
        own = {key: str(self._own_cell(name)) for key, name in own.items()}
        if self._form in _SPREADSHEETS:
            names = {key: str(inert_cell(name)) for key, name in names.items()}
        with self._waiting:
            self._finish(own | names)
        if self._altered and kept:
            name = self._path.name.removeprefix("draft.")
            _LOG.warning(RUN_ERRORS["inert"], name, self._altered)

    def _own_cell(self, cell: object) -> object:
        if self._is_raw:
            return cell
        safe = inert_cell(_cell_text(cell))
        self._altered += safe != _cell_text(cell)
        return safe

    def _wait(self, row: dict[str, object]) -> None:
        # Escaped, two halves of a character side by side would come back as one.
        line = json.dumps(row, default=str, ensure_ascii=False)
        self._waiting.write(line.encode(errors="surrogatepass") + b"\n")

    def _rows(self) -> Iterator[dict[str, object]]:
        self._waiting.seek(0)
        return map(json.loads, self._waiting)

    def _cells(self, names: Iterable[str]) -> Iterator[list[object]]:
        """Yield the cells of each row for people: the judge's are rounded, and inert."""
        for row in self._rows():
            cells = ((key.startswith(_OWN), _cell_text(row.get(key))) for key in names)
            yield [cell if is_own else inert_cell(rounded_cell(cell)) for is_own, cell in cells]

    def _finish(self, names: Mapping[str, str]) -> None:
        """Write the table, with the columns under these names."""
        # With a byte-order mark Excel reads UTF-8.
        encoding = "utf-8-sig" if self._path.stem.endswith(".excel") else "utf-8"
        with self._path.open("w", encoding=encoding, newline="", errors="replace") as file:
            if self._form == ".md":
                file.write(self._criteria.markdown())
                return
            if self._form == ".jsonl":
                for row in self._rows():
                    cells = {names[key]: cell for key, cell in row.items()}
                    file.write(inert_json(json.dumps(cells, ensure_ascii=False)) + "\n")
                return
            writer = csv.writer(file, delimiter="\t" if self._form == ".tsv" else ",")
            if names:
                writer.writerow(names.values())
            writer.writerows(self._cells(names))


class ParquetFile(TableFile):
    """A Parquet file; rows wait as Arrow tables, each with the types of its cells."""

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        """Open the file in which rows wait."""
        with errors.needs("hub", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet
        super().__init__(path, raw=raw)
        self._arrow, self._parquet = pyarrow, parquet
        self._batch: list[dict[str, object]] = []
        # The type of each column, as far as all cells have one.
        self._types: dict[str, Any] = {}

    def _wait(self, row: dict[str, object]) -> None:
        self._batch.append(row)
        if len(self._batch) == _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        pa = self._arrow
        columns = {  # under names that Arrow can hold
            ascii(key): self._array([row.get(key) for row in self._batch]) for key in self._columns
        }
        for name, array in columns.items():
            self._types[name] = self._common(self._types.get(name, pa.null()), array.type)
        table = pa.table(columns or {"": pa.nulls(len(self._batch))})
        with pa.ipc.new_stream(self._waiting, table.schema) as stream:
            stream.write_table(table)
        self._batch.clear()

    def _array(self, cells: Sequence[object]) -> Any:
        pa = self._arrow
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            return pa.array(cells)
        # Parquet cannot hold lone surrogates, nor numbers of more than 64 bits.
        texts = (None if cell is None else str(_cell_text(cell)) for cell in cells)
        return pa.array([encodable(text) for text in texts])

    def _common(self, one: Any, other: Any) -> Any:
        """A type that holds the cells of both; that of texts holds all."""
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
            kind = self._types[ascii(key)]
            if pa.types.is_null(kind):
                kind = pa.float64() if key in _NUMBERS else pa.string()
            fields.append(pa.field(encodable(name), kind))
        schema = pa.schema(fields)
        self._waiting.seek(0)
        with self._parquet.ParquetWriter(self._path, schema, compression="zstd") as writer:
            while self._waiting.peek(1):
                table = pa.ipc.open_stream(self._waiting).read_all()
                kinds = zip(map(ascii, names), schema.types, strict=True)
                columns = [self._cast(table, *each) for each in kinds]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    def _cast(self, table: Any, name: str, kind: Any) -> Any:
        """A column of some rows in its type."""
        pa = self._arrow
        if name not in table.column_names:
            return pa.nulls(len(table), kind)
        if table[name].type == kind:
            return table[name]
        cells = table[name].to_pylist()
        if pa.types.is_string(kind):
            cells = [None if cell is None else str(_cell_text(cell)) for cell in cells]
        return pa.array(cells, kind)
