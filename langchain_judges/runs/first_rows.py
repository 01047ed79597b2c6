"""Whether the first rows of a run, or all of them, fail with the same error: then it stops."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_judges.errors import RepeatedFailureError
from langchain_judges.runs.result_row import ResultRow, judged_row, outcome_of
from langchain_judges.verdict import Failure

ALIKE = 10
"""The run stops if this many first rows all fail with the same permanent error."""


class FirstRows:
    """The first rows of a run, the outcome of each, and the exceptions of the judge."""

    def __init__(self) -> None:
        """No row has started yet."""
        self._reasons: dict[int, str | None] = {}
        self._first_error: Exception | None = None
        self._raised = 0

    def start(self, index: int) -> None:
        """Count a row that starts, if it is one of the first."""
        if len(self._reasons) < ALIKE:
            self._reasons[index] = None

    def raised(self, exc: Exception) -> None:
        """Count a row whose judge raised an exception."""
        self._first_error = self._first_error or exc
        self._raised += 1

    def error_of_all(self, rows: int) -> Exception | None:
        """Return the first exception if the judge raised one on each of so many rows."""
        return self._first_error if self._raised == rows else None

    def error_of_first(self, result: ResultRow) -> Exception | None:
        """Take the result of a row; return the error that all first rows have in common."""
        detail = self._failure_of_all(result)
        if detail is None:
            return None
        if self._first_error and self._raised >= ALIKE:
            return self._first_error
        return RepeatedFailureError(f"The first {ALIKE} rows all failed with {detail}")

    def _failure_of_all(self, result: ResultRow) -> str | None:
        if result["index"] not in self._reasons:
            return None
        failures = [] if judged_row(result) else outcome_of(result)["failures"]
        self._reasons[result["index"]] = common_error(failures) or "none"
        reasons = set(self._reasons.values())
        if len(self._reasons) < ALIKE or len(reasons) != 1 or reasons & {None, "none"}:
            return None
        return next(str(each["detail"]) for each in failures if common_error([each]))


def common_error(failures: Sequence[Failure]) -> str | None:
    """Return the permanent error among some failures, if there is one.

    That is a client error, a lost connection, or an error that the model's own library raises
    before a request, such as a `ValueError` about a missing setting.
    """
    for failure in failures:
        detail = failure["detail"]
        if status := re.match(r"HTTP 4\d\d", detail):
            return status[0]
        if failure["reason"] == "invalid_input":
            return "invalid input"
        if failure["reason"] == "provider_error" and not detail.startswith("HTTP"):
            return detail.partition(":")[0]
    return None
