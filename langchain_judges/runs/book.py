"""Workbooks of Excel: every cell inert, heads frozen, texts wrapped, a colour by label."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_judges.errors import needs
from langchain_judges.escaping import clean, inert_cell
from langchain_judges.runs.run_row import ResultRow, outcome_of
from langchain_judges.runs.sheets import TableFile, criterion_columns
from langchain_judges.runs.summary import HEAD, Spelt

# Characters of a cell that Excel holds, and what stands at the end of a text that has more.
_MOST, _CUT = 32_767, " … (cut: a cell of Excel holds no more)"
# Characters of a column and lines of a row that are shown; points of a line.
_WIDEST, _TALLEST, _LINE = 60, 8, 15
# Pastel colours that colour-blind people can tell apart; none looks like good or bad.
_COLOURS = ("CFE2F3", "FFF2CC", "D9D2E9", "F8D7C4", "D5E8D4", "EAD1DC")
_UNJUDGED = "D9D9D9"
# The columns of the summary.
_SUMMED = (*HEAD[:-1], "95 % from", "to", "why not")
SheetRows = Callable[[], Iterable[Sequence[object]]]


def _excel_cell(cell: object, *, raw: bool) -> object:
    """A cell as Excel holds it: a number, or a text; only a raw one may be a formula."""
    # Of a longer number Excel would show other digits.
    is_long = isinstance(cell, int) and abs(cell) >= 10**15
    if cell is None or (isinstance(cell, int | float) and not is_long):
        return cell
    text = str((clean if raw else inert_cell)(str(cell))).replace("\r\n", "\n")
    return text if len(text) <= _MOST else text[: _MOST - len(_CUT)] + _CUT


class Book:
    """A workbook that is being written, row by row: it takes no memory by its size.

    Args:
        raw: Leave formulas as they are.

    Raises:
        MissingExtraError: openpyxl is not installed.
    """

    def __init__(self, *, raw: bool = False) -> None:
        """Begin an empty book."""
        with needs("excel", "Writing .xlsx"):
            import openpyxl.cell
            from openpyxl import styles, utils
        self._book = openpyxl.Workbook(write_only=True)
        self._cell, self._styles, self._is_raw = openpyxl.cell.WriteOnlyCell, styles, raw
        self._letters = utils.get_column_letter

    def add(
        self, title: str, head: Sequence[str], rows: SheetRows, labels: Collection[int] = ()
    ) -> None:
        """Write a sheet.

        Args:
            title: The sheet's name.
            head: The names of its columns.
            rows: Gives the rows; it is called twice.
            labels: The columns whose cells are coloured by what they hold.
        """
        sheet = self._book.create_sheet(title)
        widths, seen = [len(str(name)) for name in head], set[str]()
        for row in rows():
            for place, cell in enumerate(row):
                longest = max(map(len, str("" if cell is None else cell).split("\n")))
                widths[place] = max(widths[place], longest)
            seen |= {str(row[place]) for place in labels if row[place] is not None}
        widths = [min(_WIDEST, width + 2) for width in widths]
        colours = {label: _COLOURS[n % len(_COLOURS)] for n, label in enumerate(sorted(seen))}
        sheet.freeze_panes = "A2"
        # Printed, all columns stand on one page.
        sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
        sheet.sheet_properties.pageSetUpPr.fitToPage = True
        for place, width in enumerate(widths, 1):
            sheet.column_dimensions[self._letters(place)].width = width
        sheet.append([self._styled(sheet, name, bold=True) for name in head])
        number = 1
        for number, row in enumerate(rows(), 2):
            sheet.row_dimensions[number].height = _LINE * _lines_shown(row, widths)
            own = {place: colours.get(str(row[place]), _UNJUDGED) for place in labels}
            sheet.append(self._styled(sheet, cell, own.get(n, "")) for n, cell in enumerate(row))
        if head:
            sheet.auto_filter.ref = f"A1:{self._letters(len(head))}{number}"

    def _styled(self, sheet: Any, value: object, colour: str = "", *, bold: bool = False) -> Any:
        styles, cell = self._styles, self._cell(sheet, _excel_cell(value, raw=self._is_raw))
        if isinstance(value, Spelt):
            cell.number_format = value.form
        cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
        if bold:
            cell.font = styles.Font(bold=True)
        if colour:
            cell.fill = styles.PatternFill("solid", fgColor=colour)
        return cell

    def save(self, path: Path) -> None:
        """Write the book."""
        self._book.save(path)


def _lines_shown(row: Sequence[object], widths: Sequence[int]) -> int:
    """Number of lines shown of a row."""
    cells = ((str(cell or "").split("\n"), width) for cell, width in zip(row, widths, strict=True))
    lines = (sum(1 + len(line) // width for line in own) for own, width in cells)
    return min(_TALLEST, max(lines, default=1))


class XlsxFile(TableFile):
    """A workbook: the rows, a summary by criterion, and the failures."""

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        """Open the file in which rows wait."""
        self._book = Book(raw=raw)
        super().__init__(path, raw=raw)
        self._labels = set[str]()
        self._failures: list[tuple[object, ...]] = []

    def add(
        self, own: Mapping[str, object], result: ResultRow, systems: Sequence[str] | None = None
    ) -> None:
        """Take a row."""
        super().add(own, result, systems)
        parts = result.get("subscores") or []
        self._labels |= {each["criterion"] for each in parts if len(parts) > 1 and "label" in each}
        number = result.get("index", 0) + 2
        for each in outcome_of(result).get("failures") or []:
            of = (each.get(name) for name in ("step", "unit", "reason", "detail"))
            self._failures.append((number, *map(inert_cell, (result.get("id"), *of))))

    def _finish(self, names: Mapping[str, str]) -> None:
        labels = criterion_columns(self._labels).values() or ("label", "preference")
        coloured = {f"judge.{name}" for name in labels}
        places = [place for place, key in enumerate(names) if key in coloured]
        self._book.add("rows", list(names.values()), lambda: self._cells(names), places)
        lines: list[Sequence[object]] = []
        for *cells, end in self._criteria.lines():
            lines.append([*cells, *(end if isinstance(end, list) else ["", "", end])])
        lines += [(), *self._criteria.facts()]
        filled = [[*map(inert_cell, line), *[""] * (len(_SUMMED) - len(line))] for line in lines]
        self._book.add("summary", _SUMMED, lambda: filled)
        if self._failures:
            head = ("row", "id", "step", "unit", "reason", "detail")
            self._book.add("failures", head, lambda: self._failures)
        self._book.save(self._path)
