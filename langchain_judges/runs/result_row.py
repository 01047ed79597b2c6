"""The result of a row, as it is returned and as it is written to a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.results import content_key, judged_row, outcome_of
from langchain_judges.runs.work import RunRow
from langchain_judges.verdict import no_usage

ResultRow = dict[str, Any]
"""`{"index", "key", "kind", "judged", "judge", "id", "content", "verdict", …}` and the
method's own results."""

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
