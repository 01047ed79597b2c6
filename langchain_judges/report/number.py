"""One number of a report: a statistic under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from langchain_judges.metrics import Result
from langchain_judges.metrics.agreement import Errors

NumberUnit = Literal["share", "points", "number"]
"""A share in [0, 1], a difference of shares, or a number in units of its own."""

ERRORS: tuple[Errors, ...] = ("wrong", "drop")


@dataclass(frozen=True)
class Number:
    """One number of a report."""

    key: str
    """Its name, such as `agreement.label.wrong`; the first part is the section."""
    title: str
    result: Result
    unit: NumberUnit = "share"
    note: str = ""

    @property
    def section(self) -> str:
        """The section it stands in."""
        return self.key.partition(".")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, flat."""
        result = self.result.to_dict()
        low, high = result["interval"] or (None, None)
        return {
            "section": self.section,
            "key": self.key,
            "title": self.title,
            "value": result["value"],
            "low": low,
            "high": high,
            "n": result["n"],
            "n_failed": sum(result["n_failed"].values()),
            "unit": self.unit,
            "reason": result["reason"],
            "no_interval": result["no_interval"],
        }
