"""A judge's outcome as scores: the total, and one for each criterion."""

from __future__ import annotations

from typing import NamedTuple

from langchain_judges.integrations.judging import (
    CaseVerdict,
    JudgmentResult,
    criteria_of,
    reason_for,
)
from langchain_judges.verdict import (
    Label,
    comment_of,
    decision,
    no_usage,
    reason_of,
    score_of,
)

_SHOWN = {"preference", "label", "confidence", "confidence_source", "flipped"}


class CaseScore(NamedTuple):
    """One score of a row."""

    key: str
    score: float | int | None
    comment: str
    answer: Label | None
    """The preference or the label; None: not judged."""
    extra: dict[str, object] | None = None
    """The parts of the verdict that are shown next to its score; None for a criterion."""

    @property
    def word(self) -> str | None:
        """The answer, if it is not a number."""
        return self.answer if isinstance(self.answer, str) else None


def scores_of(outcome: JudgmentResult, key: str) -> list[CaseScore]:
    """Return the total score under `key`, then that of each criterion under its name."""
    verdict = outcome["verdict"]
    total = CaseScore(
        key, score_of(verdict), comment_of(verdict), decision(verdict), _extra(verdict)
    )
    parts = [
        CaseScore(part["criterion"], part["score"], reason_for(part), part["label"])
        for part in criteria_of(outcome, key)
    ]
    return [total, *parts]


def _extra(verdict: CaseVerdict) -> dict[str, object]:
    usage = verdict.get("usage") or no_usage()
    extra = {name: value for name, value in verdict.items() if name in _SHOWN}
    extra["failures"] = [dict(failure) for failure in verdict.get("failures") or []]
    extra["usage"] = {
        "calls": usage["calls"],
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
    }
    if decision(verdict) is None:
        extra["reason"] = reason_of(verdict)
    return extra
