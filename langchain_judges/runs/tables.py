"""A run as a table: the user's own columns unchanged, then those of the judge."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from langchain_judges.errors import OptionError, OutputError
from langchain_judges.rows import checks, files, texts
from langchain_judges.runs import book, run_row, sheets
from langchain_judges.runs.results import line_of, locked, read_receipt, write_receipt

_RECEIPT = "table"
_KNOWN = ("id", *texts.READ, *checks.ANNOTATIONS)
# What writes a table, by the ending of its name.
FORMS: dict[str, type[sheets.TableFile]] = {
    **dict.fromkeys((".csv", ".jsonl", ".md"), sheets.TableFile),
    **{".parquet": sheets.ParquetFile, ".tsv": sheets.TableFile, ".xlsx": book.XlsxFile},
}


def table_path(out: str | os.PathLike[str]) -> Path:
    """The path of a table.

    Raises:
        OptionError: Its ending names no form.
    """
    if Path(out).suffix not in FORMS:
        raise OptionError(f"`out` must end in {', '.join(FORMS)}, got {Path(out).name!r}")
    return Path(out)


def write_results(path: Path, results: Iterable[run_row.ResultRow]) -> None:
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
            file.add(dict(named), result)


class TableOut:
    """The table of a run: written in a hidden folder, and put in its place when the run ends.

    The folder holds what a later run resumes from, and a receipt of the table, which tells it
    from one that somebody has edited, and its judge from others.

    Args:
        path: The table.
        raw: Leave your own cells unchanged, formulas too.

    Attributes:
        records: The whole results, unless they are kept elsewhere.
    """

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        """Name the files; nothing is opened."""
        self._path, self._raw = path, raw
        self._folder = path.parent / f".{path.name}.run"
        self._draft = self._folder / f"draft.{path.name}"
        self._receipt = self._folder / "table.json"
        self.records = self._folder / "records.jsonl"
        self._file: sheets.TableFile | None = None
        self._held = ExitStack()
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
        with ExitStack() as undo, files.writing(self._path):
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            undo.enter_context(locked(self._folder, self._path))
            self._mark = mark
            if self._path.exists():
                self._check()
            if size is not None:
                self._check_rows(size)
            self._file = FORMS[self._path.suffix](self._draft, raw=self._raw)
            self._held = undo.pop_all()

    def _check(self) -> None:
        remedy = f"move {self._path} away, and the same call resumes into a new one"
        known = read_receipt(self._receipt, _RECEIPT, remedy)
        if known is None:
            raise self._refusal("is there, and no run wrote it; name another file or delete it")
        # A kill may come between the receipt of a new table and the table itself.
        if _fingerprint(self._path) not in known["sha256"]:
            raise self._refusal(run_row.RUN_ERRORS["table_changed"])
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

    def add(
        self, own: Mapping[str, object], result: run_row.ResultRow, systems: Sequence[str] | None
    ) -> None:
        """Write a row."""
        if self._file is not None:
            self._broken = True
            with files.writing(self._path):
                self._file.add(own, result, systems)
            self._broken = False
            self._rows += 1

    def close(self, *, whole: bool) -> None:
        """Put the table in its place, if it has every row, and let other runs in."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            with files.writing(self._path):
                is_kept = whole and not self._broken
                file.close(kept=is_kept)
                if is_kept:
                    self._check_rows(self._rows)
                    self._put_in_place()
        finally:
            self._draft.unlink(missing_ok=True)
            self._held.close()

    def _put_in_place(self) -> None:
        prints = [_fingerprint(each) for each in (self._draft, self._path) if each.exists()]
        receipt = {"sha256": prints, "mark": self._mark, "rows": self._rows}
        write_receipt(self._receipt, _RECEIPT, receipt)
        self._draft.replace(self._path)


def records_of(path: Path) -> Path:
    """The whole results that a run keeps for its table; any other file itself."""
    records = TableOut(path).records
    return records if records.is_file() else path


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
