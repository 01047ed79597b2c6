"""The result of a row: where it tells what, and what its verdict is of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langchain_judges.rows.kinds import kind_of_result

ResultRow = dict[str, Any]
"""`{"index", "key", "kind", "judged", "judge", "id", "content", "verdict", …}` and the
method's own results."""


def outcome_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where a result tells failures and usage: its verdict, or a written row itself."""
    return row if kind_of_result(row) == "task" else row.get("verdict") or {}


def judged_row(row: Mapping[str, Any]) -> bool:
    """Say whether a result holds a verdict, or a text if one was to be written."""
    if kind_of_result(row) == "task":
        return row["text"] is not None
    verdict = row.get("verdict") or {}
    return verdict.get("preference", verdict.get("label")) is not None


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


def content_key(row: Mapping[str, Any]) -> dict[str, str]:
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
