"""Suggest a fix for rows that no method can judge: name the column, or another method."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MISSING = re.compile(r"^the field `(\w+)` is missing or null; the fields are (.*)$")
_USUAL = {
    "input": ("question", "prompt", "query", "instruction", "task", "request"),
    "output": ("answer", "response", "prediction", "completion", "reply", "text"),
    "output_a": ("a", "answer_a", "response_a", "text_a", "chosen", "output_1"),
    "output_b": ("b", "answer_b", "response_b", "text_b", "rejected", "output_2"),
    "source": ("context", "contexts", "document", "documents"),
    "expected": ("reference", "ground_truth", "expected_output", "target"),
}
"""Usual names of columns, by the field that they stand for."""
_NOTHING = "there is nothing to judge by"
_GIVE = {
    "(`source`)": "Name the column of the source, as in --column source=contexts.",
    "(`expected`)": "Name the column of the reference, as in --column expected=answer.",
    "`rubric`)": "Say what to judge by, as in --set rubric='Is the reply polite?' or --preset "
    "helpfulness.",
}
"""What to add to the command where rows lack what they are judged by, by what they lack."""


def row_hint(problems: Sequence[str]) -> str:
    """Return what to add to the command if every bad row lacks the same, or nothing."""
    first = problems[0] if len(set(problems)) == 1 else ""
    if first.startswith(_NOTHING):
        return next((words for end, words in _GIVE.items() if first.endswith(end)), "")
    if not (match := _MISSING.match(first)):
        return ""
    field, columns = match[1], re.findall(r"'([^']*)'", match[2])
    if field in ("output_a", "output_b") and "output" in columns:
        return "These rows are single texts: name a method for them, such as --method rubric."
    if field == "output" and "output_a" in columns:
        return "These rows are pairs: name a method for them, such as --method bsm."
    by_lower = {column.lower(): column for column in columns}
    usual = (by_lower[name] for name in _USUAL.get(field, ()) if name in by_lower)
    return f"Name its column, as in --column {field}={next(usual, 'COLUMN')}."
