"""What a run came to: verdicts, failures, calls and tokens, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_judges.results import judged_row


@dataclass
class Summary:
    """What a run came to."""

    total: int | None = None
    """Pairs in all, if that can be known before they are read."""
    rows: int = 0
    resumed: int = 0
    """Rows taken from an earlier run."""
    preferences: Counter[str] = field(default_factory=Counter)
    not_judged: Counter[str] = field(default_factory=Counter)
    """Rows without a verdict, by the reason of their first failure."""
    failures: Counter[str] = field(default_factory=Counter)
    """Every failure by reason, those of rows that were judged all the same too."""
    flips: int = 0
    both_orders: int = 0
    """Rows on which both orders were asked; `flips` is out of these."""
    labelled: int = 0
    """Judged rows with a label A, B or tie; `agreed` is out of these."""
    agreed: int = 0
    """Rows whose verdict is their label."""
    others: int = 0
    """Rows of other judges in the results file, not counted otherwise."""
    calls: int = 0
    """Replies that this run received; earlier runs are not counted."""
    tokens: int = 0
    seconds: float = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        verdict = row["verdict"]
        self.rows += 1
        self.failures.update(failure["reason"] for failure in verdict["failures"])
        if judged_row(row):
            decided = verdict.get("preference", verdict.get("label"))
            self.preferences[str(decided)] += 1
            if row.get("label") in {"A", "B", "tie"}:
                self.labelled += 1
                self.agreed += row["label"] == decided
        else:
            self.not_judged[_reason(verdict)] += 1
        if verdict.get("flipped") is not None:
            self.both_orders += 1
            self.flips += verdict["flipped"]


def _reason(verdict: Mapping[str, Any]) -> str:
    return next((failure["reason"] for failure in verdict["failures"]), "unknown")
