"""Records of spreadsheets: what separates cells, the encoding, the row of names, a sheet."""

from __future__ import annotations

import codecs
import csv
import functools
import gzip
import io
import itertools
import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from charset_normalizer import from_bytes

from langchain_judges import lazy, verdict
from langchain_judges.errors import InputError, did_you_mean, needs
from langchain_judges.rows.number_formats import formatted

_LOG = logging.getLogger(__name__)
_NAMES: Mapping[str, Any] = lazy.packaged(__package__, "names.yaml")
# Characters of a cell of CSV: the most that a C `long` of every system holds.
LARGEST_CELL = 2**31 - 1
# Bytes of a workbook's part for each packed byte; of one of up to a megabyte, as if of one.
_MOST_PACKED = 100
_SEPARATORS = ",;\t|"
# Records by which the separator is found, and bytes of the file that are looked through.
_FIRST, _HEAD = 20, 1 << 16


class SheetRecord(dict[Any, Any]):
    """A record by column that knows its row of the sheet; that of the names is 0."""

    row = 0


def open_bytes(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file that may be gzipped."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def cell_name(column: int, row: int) -> str:
    """Name of a cell as spreadsheets show it, both counted from 0.

    >>> cell_name(0, 0), cell_name(27, 2)
    ('A1', 'AB3')
    """
    letters = ""
    column += 1
    while column:
        column, place = divmod(column - 1, 26)
        letters = chr(ord("A") + place) + letters
    return f"{letters}{row + 1}"


def sheet_in(path: Path) -> tuple[Path, str | None]:
    """Path of a table, and the sheet of a book or the encoding of a text that is named after it.

    >>> sheet_in(Path("replies.xlsx#March")), sheet_in(Path("replies.csv#cp1250"))[1]
    ((PosixPath('replies.xlsx'), 'March'), 'cp1250')
    """
    named = re.fullmatch(r"(.+\.(?:xlsx|[ct]sv(?:\.gz)?))#(.+)", str(path))
    return (Path(named[1]), named[2]) if named else (path, None)


def delimited(path: Path, encoding: str | None, separator: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a CSV file, in the encoding and with the separator that it has.

    Args:
        path: The file, which may be gzipped.
        encoding: Its encoding, if a person named it.
        separator: The one of its ending, which another needs better grounds to replace.

    Raises:
        InputError: Its first row names no columns, or its encoding is not known.
    """
    encoding = encoding or _encoding_of(path, path.stat().st_mtime_ns)
    with open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding=encoding, newline="")
        head = text.read(_HEAD)
        text.seek(0)
        is_told = head.startswith("sep=")  # in a line of Excel's
        separator = head[4] if is_told else _separator(head, separator)
        rows = _closed(path, itertools.islice(text, int(is_told), None), separator, 1 + is_told)
        yield from _data_records(path, _records(path, rows))


def _csv_records(text: Iterable[str], separator: str, *, strict: bool) -> Iterator[list[str]]:
    # The limit is the whole process's: it is set wherever a reader begins to read.
    csv.field_size_limit(LARGEST_CELL)
    return csv.reader(text, delimiter=separator, strict=strict)


def _closed(path: Path, lines: Iterator[str], separator: str, line: int) -> Iterator[list[str]]:
    """Yield the cells of each row; a quote that is not closed or not doubled is told by its line.

    Args:
        path: The file.
        lines: Its lines.
        separator: What stands between cells.
        line: Number of the first line.

    Raises:
        InputError: A quote is still open at the end, or one within a cell would be lost.
    """
    try:
        for cells in _csv_records(lines, separator, strict=True):
            line += 1 + sum(cell.count("\n") for cell in cells)
            yield cells
    except csv.Error as exc:
        raise InputError(_NAMES["bad_quote"].format(path, line, exc)) from exc


@functools.lru_cache(256)
def _warn_once(told: str, *about: object) -> None:
    _LOG.warning(told, *about)


def _separator(head: str, usual: str) -> str:
    """The separator by which most records have as many cells as the first has."""

    def fit(separator: str) -> tuple[float, bool, int]:
        read = filter(None, _csv_records(io.StringIO(head, newline=""), separator, strict=False))
        lines = list(itertools.islice(read, _FIRST))
        width = len(lines[0]) if lines else 0
        whole = lines[:-1] or lines  # the last one may be cut
        alike = sum(len(line) == width for line in whole) / len(whole) if whole else 0.0
        return (alike if width > 1 else -1.0, separator == usual, width)

    return max(_SEPARATORS, key=fit)


@functools.lru_cache(256)
def _encoding_of(path: Path, _changed: int) -> str:
    """The encoding of a file; one that is guessed is said, once."""
    with open_bytes(path) as file:
        head = file.peek(4)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        is_marked = head.startswith(codecs.BOM_UTF8)
        right, wrong, sample = 0, list[int](), b""
        for number, line in enumerate(file, 1):
            try:
                right += (len(line) - len(line.decode())) ** 2
            except UnicodeDecodeError:
                wrong.append(number)
                sample += line if len(sample) < _HEAD else b""
    if not wrong:
        return "utf-8-sig" if is_marked else "utf-8"
    # In another encoding two letters may read as one of UTF-8 (Ні); hardly more in a line.
    if is_marked or right >= 3 * len(wrong):
        raise InputError(_NAMES["but_for"].format(path, verdict.first_of([*map(str, wrong)])))
    page = _page_of(path, sample)
    _LOG.warning(_NAMES["guessed"], path, _PAGES[page][0])
    return page


# Encodings in which tables are written that are not UTF-8, each with the letters of its languages.
_PAGES: Mapping[str, tuple[str, str]] = _NAMES["encodings"]


def _page_of(path: Path, sample: bytes) -> str:
    """The encoding in which a text makes sense, where it makes less in all others.

    Raises:
        InputError: There is none, or several are as likely.
    """
    likely: dict[str, str] = {}
    for match in (matches := from_bytes(sample, cp_isolation=[*_PAGES])):
        text, best = str(match), matches[next(iter(likely), match.encoding)]
        letters = "".join({each for each in text.lower() if each.isalpha() and not each.isascii()})
        near = match.chaos <= best.chaos + 0.05 and match.coherence >= best.coherence - 0.15
        if near and not re.search(_NAMES["in_no_text"], text):
            pages = [page for page in _PAGES if page in match.could_be_from_charset]
            fit = [page for page in pages if re.fullmatch(_PAGES[page][1], letters)]
            likely |= dict.fromkeys(fit[:1], text)
    if len(likely) == 1:
        return next(iter(likely))
    words = {page: re.findall(r"[^\s,;\"]+", likely[page]) for page in _PAGES if page in likely}
    both = set[str].intersection(*map(set, words.values())) if words else ()
    own = {page: next((word for word in words[page] if word not in both), "") for page in words}
    may_be = " or ".join(f"{page} ({own[page]})" for page in own) or "none known here"
    raise InputError(_NAMES["unclear"].format(path=path, may_be=may_be, page=[*own, "cp1252"][0]))


def sheet(path: Path, name: str | None) -> Iterator[dict[str, Any]]:
    """Yield the records of a sheet of an Excel workbook: of the first, or of the one named.

    Raises:
        InputError: There is no such sheet, its first row names no columns, or it unpacks to
            far more than it is.
        MissingExtraError: openpyxl is not installed.
    """
    with needs("excel", "Reading .xlsx"):
        import openpyxl
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            if part.file_size > _MOST_PACKED * max(part.compress_size, 1 << 20):
                size = f"{part.file_size / 1e6:,.0f} MB"
                raise InputError(f"{path} unpacks to {size}, more than is read; save it as CSV")
        is_merged = any(_holds(packed, part, b"<mergeCell ") for part in packed.namelist())
    # What is merged is known of a book alone that is read as a whole.
    with closing(openpyxl.load_workbook(path, read_only=not is_merged, data_only=True)) as book:
        names = book.sheetnames
        if name is not None and name not in names:
            hint = did_you_mean(name, names)
            raise InputError(f"{path} has no sheet {name!r}; {hint}there are {names!r}")
        own = name or names[0]
        if name is None and len(names) > 1:
            _warn_once(_NAMES["one_sheet"], path, own, tuple(names), path)
        if is_merged:
            _fill_down(book[own])
        rows = ([_value(path, cell) for cell in row] for row in book[own].iter_rows())
        yield from _data_records(path, _records(path, rows))


def _value(path: Path, cell: Any) -> object:
    """The value of a cell; a number knows the text that its cell shows."""
    value, code = cell.value, cell.number_format
    number = formatted(value, code) if type(value) in (int, float) else value
    if number is None and value is not None:
        _warn_once(_NAMES["no_format"], path, code)
    return value if number is None else number


def _holds(packed: zipfile.ZipFile, part: str, word: bytes) -> bool:
    """Whether a part of a workbook holds a word; it is read bit by bit."""
    seen = b""
    with packed.open(part) as file:
        while word not in seen and (more := file.read(1 << 20)):
            seen = seen[-len(word) :] + more
    return word in seen


def _fill_down(page: Any) -> None:
    """Write into each row what stands in a cell that is merged over several, below the names."""
    for area in [*page.merged_cells.ranges]:
        if 1 < area.min_row < area.max_row:
            value = page.cell(area.min_row, area.min_col).value
            page.unmerge_cells(str(area))
            for row in range(area.min_row, area.max_row + 1):
                page.cell(row, area.min_col).value = value


def describing(records: Sequence[Mapping[Any, Any]]) -> int:
    """Number of records at the beginning of a table that tell what its columns are.

    Qualtrics writes two below the names, the second with an `ImportId` in each cell.
    """

    def is_id(_name: object, cell: object) -> bool:
        return str(cell).startswith('{"ImportId"')

    return next((n for n, each in enumerate(records[:3], 1) if _all_cells(each, is_id)), 0)


def _data_records(path: Path, records: Iterator[SheetRecord]) -> Iterator[SheetRecord]:
    """Yield the records that are data, without such as tell or repeat the names of columns."""
    ahead = list(itertools.islice(records, 3))
    described = describing(ahead)
    for number, record in enumerate(itertools.chain(ahead, records)):
        if number < described or _all_cells(record, lambda name, cell: cell == name):
            _warn_once(_NAMES["of_columns"], path, record.row + 1)
        else:
            yield record


def _all_cells(record: Mapping[Any, Any], test: Callable[[object, object], bool]) -> bool:
    filled = [(name, cell) for name, cell in record.items() if cell not in (None, "")]
    return len(filled) > 1 and all(itertools.starmap(test, filled))


def _records(path: Path, rows: Iterator[Sequence[Any]]) -> Iterator[SheetRecord]:
    """Yield the rows below the one of names; what is too much in one stands under None."""
    head = next(rows, None)
    if head is None:
        return
    ahead = list(itertools.islice(rows, _FIRST))
    _check_head(path, head, ahead)
    names = _column_names(head)
    for number, row in enumerate(itertools.chain(ahead, rows), 1):
        if not any(cell not in (None, "") for cell in row):
            continue
        record = SheetRecord(zip(names, row, strict=False))
        record.row = number
        record.update(dict.fromkeys(names[len(row) :]))
        if any(cell not in (None, "") for cell in row[len(names) :]):
            record[None] = list(row[len(names) :])
        yield record


def _check_head(path: Path, head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> None:
    """Refuse a first row that is a title, or whose cells are merged over columns.

    Raises:
        InputError: It is; the message names the cells.
    """
    filled = [place for place, name in enumerate(head) if name not in (None, "")]
    for number, row in enumerate(rows, 1):
        bare = [n for n, cell in enumerate(row) if cell not in (None, "") and n not in filled]
        if len(filled) < len(head) / 2 and len(bare) > 1:
            cells = {"first": cell_name(bare[0], 0), "cell": cell_name(bare[0], number)}
            got = str(row[bare[0]])[:40]
            raise InputError(_NAMES["no_head"].format(path=path, got=got, **cells))


def _column_names(head: Sequence[Any]) -> list[str]:
    """The names of the columns; one that is there twice, or missing, has its letter."""
    names: list[str] = []
    for place, cell in enumerate(head):
        name, letter = "" if cell is None else str(cell).strip(), cell_name(place, 0)[:-1]
        names.append((f"{name} ({letter})" if name in names else name) or f"column {letter}")
    while names and not str(head[len(names) - 1] or "").strip():
        names.pop()  # columns without a name at the end, which are mostly empty
    return names
