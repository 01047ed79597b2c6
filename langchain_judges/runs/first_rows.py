"""Whether the first rows of a run all fail alike, so that asking on is useless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.runs.results import judged_row, outcome_of
from langchain_judges.runs.work import common_error

ALIKE = 10
"""The run stops if this many first rows all fail with the same permanent error."""


class FirstRows:
    """The first rows of a run, and what each of them came to."""

    def __init__(self) -> None:
        """No row has started yet."""
        self._reasons: dict[int, str | None] = {}

    def start(self, index: int) -> None:
        """Count a row that starts, if it is one of the first."""
        if len(self._reasons) < ALIKE:
            self._reasons[index] = None

    def failure_of_all(self, row: Mapping[str, Any]) -> str | None:
        """Take a row that has ended; return the error once it is that of all first rows."""
        if row["index"] not in self._reasons:
            return None
        failures = [] if judged_row(row) else outcome_of(row)["failures"]
        self._reasons[row["index"]] = common_error(failures) or "none"
        reasons = set(self._reasons.values())
        if len(self._reasons) < ALIKE or len(reasons) != 1 or reasons & {None, "none"}:
            return None
        return next(str(each["detail"]) for each in failures if common_error([each]))
