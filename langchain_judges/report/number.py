"""One number of a report, a statistic under a name, and how it is written."""

from __future__ import annotations

import math
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


NO_BREAK = "\u00a0"


def percent(value: float, digits: int = 0) -> str:
    """Return a share as a percentage without its sign."""
    return rounded(100 * value, digits)


def rounded(value: float, digits: int) -> str:
    """Return a number with halves rounded away from zero, as people do, and a true minus."""
    step = 10.0**digits
    size = math.floor(abs(value) * step + 0.5 + 1e-9) / step
    return f"{'−' if value < 0 and size else ''}{size:.{digits}f}"


def value_text(number: Number, digits: int = 1) -> str:
    """Return a number in its unit."""
    value = number.result
    if math.isnan(value):
        return "unknown"
    if number.unit == "share":
        return f"{percent(value, digits)}{NO_BREAK}%"
    if number.unit == "points":
        sign = "+" if value >= 0 else ""
        return f"{sign}{rounded(100 * value, digits)}{NO_BREAK}points"
    return rounded(value, 2)


def p_text(p: float) -> str:
    """Return a p-value as people print it."""
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def range_text(number: Number, digits: int = 1) -> str:
    """Return the ends of a number's interval, or nothing."""
    interval = number.result.interval
    if interval is None or math.isnan(interval.low):
        return ""
    scale, places = (1.0, 2) if number.unit == "number" else (100.0, digits)
    low, high = (rounded(scale * end, places) for end in interval)
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def count_text(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
