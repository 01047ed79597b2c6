"""One row of a run: what is judged, its outcome if that was not possible, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_judges.asking.faults import diagnosis
from langchain_judges.errors import InputError, JudgeError, ModelAccessError
from langchain_judges.rows.kinds import RowKind
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


_EMPTY: dict[str, Any] = {"failures": [], "usage": no_usage()}
"""Fields that the verdict of another runnable may omit."""


def result_row(
    work: RunRow,
    outcome: Mapping[str, Any],
    judge: Mapping[str, str],
    *,
    texts: Mapping[str, Any],
    spent: Mapping[str, Any],
) -> ResultRow:
    """Return the result of a row.

    Args:
        work: The row.
        outcome: What its judge returned, or why it was not judged.
        judge: The judge's method, model and mark.
        texts: The judged texts, where they are part of the result.
        spent: What it cost in dollars, as `cost`, where calls were made.
    """
    if work.kind == "task":
        outcome = {"text": None, **_EMPTY, **outcome}
    else:
        outcome = {**outcome, "verdict": {**_EMPTY, **(outcome.get("verdict") or {})}}
    judged = {**outcome, "kind": work.kind}
    lacking = outcome_of(judged)["usage"].get("asked_without")
    # The fields by which a row is found again come first in its line.
    head = {
        "index": work.index,
        "key": work.key,
        "kind": work.kind,
        "judged": judged_row(judged),
        "judge": judge,
    }
    return {
        **head,
        "id": work.pair.get("id"),
        **({} if work.kind == "task" else {"content": content_key(work.pair)}),
        **texts,
        **labels_of(work),
        **outcome,
        **spent,
        **({"asked_without": lacking} if lacking else {}),
        **head,
    }


def labels_of(work: RunRow) -> dict[str, Any]:
    """Return what people said of a row."""
    return {name: work.pair[name] for name in ANNOTATIONS if name in work.pair}
