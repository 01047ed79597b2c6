"""A stored result: its verdict or text, whether it was judged, and what its verdict is of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import TypedDict

from langchain_judges.rows.checks import kind_of_result
from langchain_judges.verdict import ConfidenceSource, Failure, Label, Preference, Usage

ResultRow = dict[str, Any]
"""`{"index", "key", "kind", "judged", "judge", "id", "content", "verdict", …}` and the
method's own results."""


class AnyVerdict(TypedDict, total=False):
    """A verdict of either kind; of a written text only failures and usage."""

    preference: Preference | None
    label: Label | None
    score: float | None
    confidence: float | None
    confidence_source: ConfidenceSource
    flipped: bool | None
    rationale: str
    failures: list[Failure]
    usage: Usage


def outcome_of(result: Mapping[str, Any]) -> AnyVerdict:
    """Return where a result has failures and usage: its verdict, or a written row itself."""
    is_text = kind_of_result(result) == "task"
    return cast("AnyVerdict", result if is_text else result.get("verdict") or {})


def judged_row(result: Mapping[str, Any]) -> bool:
    """Return whether a result holds a verdict, or a text if one was to be written."""
    if kind_of_result(result) == "task":
        return result["text"] is not None
    return answer_of(outcome_of(result)) is not None


def answer_of(verdict: AnyVerdict) -> Label | None:
    """Return the preference or the label of a verdict; None if it has neither."""
    return verdict.get("preference", verdict.get("label"))


JUDGED = (
    "input",
    "output_a",
    "output_b",
    "reference",
    "output",
    "expected",
    "source",
    "rubric",
    "family",
)
"""What a verdict is of: the fields of a pair or an item that a judge is given."""


def content_key(row: Mapping[str, object]) -> dict[str, str]:
    """Return a short hash of each text of a row: they tell what a verdict is of.

    Unlike the key of a result it says nothing of the judge, the row's id or its place.
    """
    return {
        field: hashlib.sha256(
            json.dumps(row[field], sort_keys=True, default=str).encode()
        ).hexdigest()[:12]
        for field in JUDGED
        if row.get(field) not in (None, "")
    }
