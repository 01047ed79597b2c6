"""Limits that a judge has to meet, for continuous integration, and their results."""

from __future__ import annotations

import math
from dataclasses import dataclass

from langchain_judges.report.content import ReportContent
from langchain_judges.report.number import Number
from langchain_judges.report.wording import percent, range_text, value_text


@dataclass(frozen=True)
class BarCheck:
    """One bar."""

    title: str
    value: str
    """What was measured, in words."""
    bar: str
    passed: bool


def gates(
    report: ReportContent, min_agreement: float | None = None, max_flips: float | None = None
) -> list[BarCheck]:
    """Check a report against limits; an unknown number fails.

    Args:
        report: The report; with an earlier one beside it (`report.drift`) it must not be
            clearly worse.
        min_agreement: The lowest share of agreement, a failed judgment counted as wrong; of
            ratings the lowest rank correlation, by several criteria of the worst of them.
        max_flips: The highest share of verdicts that change when the texts swap places.
    """
    checks = []
    if min_agreement is not None:
        share = report.headline.result
        passed = not math.isnan(share) and share >= min_agreement
        rated = report.headline.unit == "number"
        title = "rank correlation" if rated else "agreement"
        if report.sample.by_criteria:
            title = report.headline.title
        bar = f"at least {min_agreement if rated else f'{percent(min_agreement)} %'}"
        checks.append(BarCheck(title, _text(report.headline), bar, passed))
    if max_flips is not None:
        flips = report.numbers.get("bias.flips")
        passed = flips is not None and not math.isnan(flips.result)
        passed = passed and flips is not None and flips.result <= max_flips
        text = "unknown" if flips is None else _text(flips)
        checks.append(BarCheck("flips", text, f"at most {percent(max_flips)} %", passed))
    if report.drift is not None:
        change = Number("drift", "", report.drift.change, "points")
        since = f"since {report.drift.since}" if report.drift.since else "since the baseline"
        title = f"change {since} (n = {report.drift.change.n:,})"
        checks.append(
            BarCheck(title, _text(change), "not clearly worse", not report.drift.worse)
        )
    return checks


def _text(number: Number) -> str:
    span = range_text(number)
    return f"{value_text(number)} ({span})" if span else value_text(number)
