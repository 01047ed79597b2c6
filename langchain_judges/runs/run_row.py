"""One row of a run: what is judged, its outcome if that was not possible, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_judges.asking.faults import diagnosis
from langchain_judges.errors import InputError, JudgeError, ModelAccessError
from langchain_judges.rows.checks import RowKind
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.result_row import ResultRow, content_key, judged_row, outcome_of
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
    data: Mapping[str, object]
    """The row itself, as plain JSON."""
    key: str
    kind: RowKind = "pair"
    over_budget: bool = False
    problem: str = ""
    """Why it cannot be judged at all; empty for a good row."""

    def labels(self) -> dict[str, object]:
        """Return the annotations of the row: its label, its group and the like."""
        return {name: self.data[name] for name in ANNOTATIONS if name in self.data}


def ends_the_run(exc: Exception) -> bool:
    """Return whether an exception concerns the run and not one row."""
    if isinstance(exc, ModelAccessError):
        return exc.status == 401
    return isinstance(exc, JudgeError) and not isinstance(exc, InputError)


def failed_outcome(
    row: RunRow, reason: FailureReason, detail: str, usage: Usage | None = None
) -> Mapping[str, object]:
    """Return the outcome of a row that was not judged, with its reason."""
    failure: Failure = {"step": "run", "unit": "", "reason": reason, "detail": detail[:500]}
    if row.kind == "task":
        return {"text": None, "failures": [failure], "usage": usage or no_usage()}
    without = not_labelled if row.kind == "item" else not_judged
    return {"verdict": without([failure], usage or no_usage())}


def outcome_of_error(row: RunRow, exc: Exception, usage: Usage) -> Mapping[str, object]:
    """Return the outcome of a row whose judge raised an exception."""
    if isinstance(exc, InputError):
        return failed_outcome(row, "invalid_input", str(exc), usage)
    if isinstance(exc, ModelAccessError):
        detail = str(exc).partition("refuses every call: ")[2] or str(exc)
        return failed_outcome(row, "provider_error", detail, usage)
    problem = diagnosis(exc)
    return failed_outcome(row, problem.reason, problem.detail, usage)


def result_row(
    row: RunRow,
    outcome: Mapping[str, Any],
    judge: Mapping[str, str],
    *,
    texts: Mapping[str, object],
    spent: Mapping[str, float | None],
) -> ResultRow:
    """Return the result of a row.

    Args:
        row: The row.
        outcome: What its judge returned, or why it was not judged.
        judge: The judge's method, model and mark.
        texts: The judged texts, where they are part of the result.
        spent: What it cost in dollars, as `cost`, where calls were made.
    """
    # The verdict of another runnable may omit these.
    empty = {"failures": [], "usage": no_usage()}
    if row.kind == "task":
        outcome = {"text": None, **empty, **outcome}
    else:
        outcome = {**outcome, "verdict": {**empty, **(outcome.get("verdict") or {})}}
    judged = {**outcome, "kind": row.kind}
    lacking = outcome_of(judged)["usage"].get("asked_without")
    # The fields by which a row is found again come first in its line.
    head = {
        "index": row.index,
        "key": row.key,
        "kind": row.kind,
        "judged": judged_row(judged),
        "judge": judge,
    }
    return {
        **head,
        "id": row.data.get("id"),
        **({} if row.kind == "task" else {"content": content_key(row.data)}),
        **texts,
        **row.labels(),
        **outcome,
        **spent,
        **({"asked_without": lacking} if lacking else {}),
        **head,
    }
