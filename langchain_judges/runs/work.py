"""One row of a run, and its outcome if it could not be judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_judges.asking.faults import diagnosis
from langchain_judges.errors import InputError, JudgeError, ModelAccessError
from langchain_judges.rows.kinds import RowKind
from langchain_judges.verdict import (
    Failure,
    FailureReason,
    Usage,
    no_usage,
    not_judged,
    not_labelled,
)


@dataclass
class RunRow:
    """One row of a run."""

    index: int
    pair: dict[str, Any]
    key: str
    kind: RowKind = "pair"
    over_budget: bool = False
    problem: str = ""
    """Why it cannot be judged at all; empty for a good row."""


def ends_the_run(exc: Exception) -> bool:
    """Return whether an exception concerns the run and not one row."""
    if isinstance(exc, ModelAccessError):
        return exc.status == 401
    return isinstance(exc, JudgeError) and not isinstance(exc, InputError)


def over_budget(
    work: RunRow, usage: Usage | None, detail: str = "the budget is spent"
) -> dict[str, Any]:
    """Return the outcome of a row that the budget no longer allows."""
    return failed_outcome(work, "over_budget", detail, usage)


def failed_outcome(
    work: RunRow, reason: FailureReason, detail: str, usage: Usage | None = None
) -> dict[str, Any]:
    """Return the outcome of a row that was not judged, with its reason."""
    failure: Failure = {"step": "run", "unit": "", "reason": reason, "detail": detail[:500]}
    if work.kind == "task":
        return {"text": None, "failures": [failure], "usage": usage or no_usage()}
    without = not_labelled if work.kind == "item" else not_judged
    return {"verdict": without([failure], usage or no_usage())}


def outcome_of_error(work: RunRow, exc: Exception, usage: Usage) -> dict[str, Any]:
    """Return the outcome of a row whose judge raised an exception."""
    if isinstance(exc, InputError):
        return failed_outcome(work, "invalid_input", str(exc), usage)
    if isinstance(exc, ModelAccessError):
        detail = str(exc).partition("refuses every call: ")[2] or str(exc)
        return failed_outcome(work, "provider_error", detail, usage)
    problem = diagnosis(exc)
    return failed_outcome(work, problem.reason, problem.detail, usage)


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
