"""Records read from files: JSONL, JSON, CSV, TSV, Parquet, Excel; and files written whole."""

from __future__ import annotations

import csv
import itertools
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from langchain_judges import lazy, verdict
from langchain_judges.errors import InputError, OptionError, OutputError, did_you_mean, needs
from langchain_judges.rows.spreadsheets import delimited, open_bytes, sheet, sheet_in

# What readers raise where a file is not of its form; openpyxl looks for parts that it lacks,
# pyarrow implements not every type, and zipfile asks for passwords by a RuntimeError.
_DAMAGES = (
    *(EOFError, LookupError, OSError, RuntimeError, ValueError),
    *(csv.Error, zipfile.BadZipFile, zlib.error),
)


def no_table(path: Path, names: Iterable[str] = ()) -> str:
    """Sentence that says why there is no table at a path, and what is near it.

    Args:
        path: What was named.
        names: What else may be meant.
    """
    if path.exists():
        return f"{path} is {'a folder; name a table in it' if path.is_dir() else 'no file'}"
    neighbours = path.parent.iterdir() if path.parent.is_dir() else ()
    hint = did_you_mean(path.name, [*names, *(each.name for each in neighbours)])
    return f"there is no file {path}{f'; {hint.rstrip()}' if hint else ''}"


def read_table(
    path: Path, bad: Callable[[str, dict[str, Any]], Any] | None = None, ending: str = ""
) -> Iterator[dict[str, Any]]:
    """Read a table's records; the file's suffix decides the format.

    Args:
        path: The table; `book.xlsx#sheet` names a sheet of a workbook, `rows.csv#cp1250` the
            encoding of a text.
        bad: Makes what stands in the place of a record that is no object or has more cells
            than columns, from what is wrong and what can be read of it; None: it is an error.
        ending: The suffix of its format, whatever it is called.

    Raises:
        InputError: The file is missing, damaged or a folder, or its format is not supported.
        OptionError: It is Parquet, and no library for Parquet is installed.
    """
    path, part = (path, None) if ending else sheet_in(path)
    if not path.is_file():
        raise InputError(no_table(path))
    ending = ending or path.name.lower().removesuffix(".gz").rpartition(".")[2]
    readers: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
        "jsonl": lines_of_file,
        "ndjson": lines_of_file,
        "json": _json,
        "csv": lambda file: delimited(file, part, ","),
        "tsv": lambda file: delimited(file, part, "\t"),
        "parquet": _parquet,
        "xlsx": lambda file: sheet(file, part),
    }
    if ending not in readers:
        raise InputError(f"{path} must end in one of {sorted(readers)!r}")
    return _sound(path, readers[ending](path), bad)


def _sound(
    path: Path, records: Iterator[dict[str, Any]], bad: Callable[[str, dict[str, Any]], Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield the records; an error names the damaged file."""
    try:
        for number, record in enumerate(records, 1):
            if not (problem := _problem_of(record)):
                yield record
            elif bad:
                own = record.items() if isinstance(record, dict) else ()
                yield bad(problem, {name: cell for name, cell in own if name is not None})
            else:
                place = "" if isinstance(record, InputError) else f"{path}, record {number}: "
                raise InputError(f"{place}{problem}")
    except (InputError, OptionError):
        raise
    except _DAMAGES as exc:
        raise InputError(f"{path} is damaged or does not match its suffix ({exc})") from exc


def _problem_of(record: object) -> str:
    if isinstance(record, dict):
        return "more cells than columns" if None in record else ""
    return str(record) if isinstance(record, InputError) else "not an object"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a name beside a file; what is written there takes its place when it is whole."""
    draft = path.with_name(f".{secrets.token_hex(8)}.{path.name}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Rename a damaged file to `….damaged`, or the next free name of the kind."""
    names = (path.with_name(f"{path.name[-240:]}.damaged{n or ''}") for n in itertools.count())
    return path.rename(next(each for each in names if not os.path.lexists(each)))


def check_database(path: Path, application: int, what: str) -> int:
    """Check by its header that a file is a SQLite file of this package, before it is touched.

    Args:
        path: The file.
        application: The `application_id` of our files of this kind.
        what: What they are, for the message.

    Returns:
        Its `user_version`.

    Raises:
        OutputError: It is something else, or somebody else's.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a folder; {what} is one file, such as {path}/some.db")
    header = b""
    if path.is_file():  # to read a device or a pipe might never end
        with path.open("rb") as file:
            header = file.read(100)
    if header[:16] != b"SQLite format 3\0" or header[68:72] != application.to_bytes(4, "big"):
        raise OutputError(f"{path} is not {what} of this package; choose another name")
    return int.from_bytes(header[60:64], "big")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in what the disk refuses.

    Raises:
        OutputError: The disk is full, or the file cannot be written.
    """
    try:
        yield
    except OSError as exc:
        raise OutputError(f"{path} cannot be written: {exc.strerror or exc}") from exc


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; what UTF-8 cannot hold is replaced.

    Raises:
        OutputError: The disk is full, or the file cannot be written.
    """
    with writing(Path(path)):
        Path(path).write_text(text, encoding="utf-8", errors="replace")


def json_in(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as exc:
        raise ValueError("it is nested too deep") from exc


def _json(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_bytes(path) as file:
            records = json.loads(file.read())
    except ValueError as exc:
        # Some data sets on the hub have one object on each line of a .json file.
        lines = lines_of_file(path)
        if not isinstance(first := next(lines, None), dict):
            raise _no_json(path, exc) from exc
        yield from itertools.chain([first], lines)
        return
    # An object of texts and numbers is a row: the only line of such a file.
    if isinstance(records, dict) and any(isinstance(v, dict | list) for v in records.values()):
        lists = [name for name, value in records.items() if isinstance(value, list)]
        what = f"{verdict.first_names(lists)} alone" if lists else "its objects in a list"
        told: str = lazy.packaged(__package__, "names.yaml")["no_list"]
        raise InputError(told.format(path=path, names=verdict.first_names([*records]), what=what))
    yield from records if isinstance(records, list) else [records]


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    with needs("hub", "Reading Parquet"):
        from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        yield from records_in(file.iter_batches(1_000))


def records_in(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of an Arrow table, with the names of classes that it keeps."""
    for batch in batches:
        known: Any = None
        # Anybody may write metadata: those that describe no columns are passed over.
        with suppress(LookupError, TypeError, ValueError):
            known = json.loads(batch.schema.metadata[b"huggingface"])["info"]["features"]
        yield from named_classes(batch.to_pylist(), known if isinstance(known, Mapping) else {})


def named_classes(records: Iterable[Any], features: Mapping[str, Any]) -> Iterator[Any]:
    """Yield records with the names of classes, which Hugging Face keeps beside their numbers.

    >>> label = {"_type": "ClassLabel", "names": ["polite", "rude"]}
    >>> list(named_classes([{"label": 1}, {"label": -1}, {"label": 5}], {"label": label}))
    [{'label': 'rude'}, {'label': None}, {'label': '5 (no named class)'}]
    """
    known = {name: own for name, own in features.items() if "'ClassLabel'" in str(own)}
    return (_class_in(record, known) if known else record for record in records)


def _class_in(cell: Any, feature: Any) -> Any:
    """A cell, or a record of them, with names of classes; -1 stands for no class.

    Any other number without a name is a word that says so, which is no label of a judge.
    """
    cell = cell.tolist() if hasattr(cell, "tolist") else cell
    match feature, cell:
        case (([inner] | {"feature": inner, "_type": str()}), _):
            return _class_in(cell, inner)
        case _, list():
            return [_class_in(each, feature) for each in cell]
        case {"_type": "ClassLabel", "names": [*names]}, int():
            return {**dict(enumerate(names)), -1: None}.get(cell, f"{cell} (no named class)")
        case {}, {}:
            return {**cell, **{n: _class_in(cell[n], feature[n]) for n in feature.keys() & cell}}
    return cell


def lines_of_file(path: Path) -> Iterator[Any]:
    """Read what stands on each line of JSONL, which may be gzipped; a bad line is its error."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line.removeprefix(b"\xef\xbb\xbf"))
            except (ValueError, RecursionError) as exc:
                yield _no_json(path, exc, number)


def _no_json(path: Path, exc: Exception, line: int | None = None) -> InputError:
    place, why = f", line {line}" if line else "", str(exc)
    if isinstance(exc, json.JSONDecodeError):
        place, why = f", line {line or exc.lineno}, column {exc.colno}", exc.msg
    return InputError(f"{path}{place}: not JSON ({why})")
