"""The rows of a run as they are given: of one judge or of several, or in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.report.judged_row import VerdictRow
from langchain_judges.rows.files import read_table

VerdictRows = list[dict[str, Any]]


def rows_in(value: object, what: str) -> list[Mapping[str, Any]]:
    """Return rows as a list.

    Raises:
        InputError: They are a file's name, a single row, or no rows.
    """
    if isinstance(value, str | PathLike):
        reads = "`read_verdicts`" if what == "verdicts" else "`datasets.rows`"
        raise InputError(
            f"`{what}` must be rows, got the name {str(value)!r}; {reads} reads it"
        )
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise InputError(f"`{what}` must be rows, got {type(value).__name__}")
    rows = list(value)
    if bad := next((row for row in rows if not isinstance(row, Mapping)), None):
        raise InputError(f"`{what}` must be rows, got {str(bad)[:40]!r} among them")
    return rows


def judges_of(verdicts: Iterable[VerdictRow]) -> dict[str, VerdictRows]:
    """Part the rows of several judges; the names are of model and method."""
    by_mark: dict[str, VerdictRows] = {}
    names: dict[str, str] = {}
    for row in verdicts:
        description = row.get("judge")
        judge = description if isinstance(description, Mapping) else {}
        mark = str(judge.get("mark", ""))
        by_mark.setdefault(mark, []).append(dict(row))
        parts = [str(judge[part]) for part in ("model", "method") if judge.get(part)]
        names.setdefault(mark, " · ".join(parts) or "judge")
    alike = Counter(names.values())
    return {
        names[mark] if alike[names[mark]] == 1 else f"{names[mark]} ({mark[:6]})": rows
        for mark, rows in by_mark.items()
    }


def read_verdicts(path: str | PathLike[str]) -> dict[str, VerdictRows]:
    """Read a results file of `judge_many`: by judge its rows.

    Raises:
        InputError: The file is missing, damaged or empty.
    """
    judges = judges_of(read_table(Path(path)))
    if not judges:
        raise InputError(f"{path} has no verdict")
    return judges
