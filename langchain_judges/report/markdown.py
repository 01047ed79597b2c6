"""A report in a few lines of Markdown, for the summary of a build."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.report.bars import BarCheck
from langchain_judges.report.content import ReportContent
from langchain_judges.report.wording import range_text, value_text


def markdown(report: ReportContent, checks: Sequence[BarCheck] = ()) -> str:
    """Return a short summary of a report in Markdown, the bars first."""
    lines = [f"### May I trust {_escaped(report.name)}?", "", _escaped(report.sentence), ""]
    if checks:
        lines += ["| | measured | bar | |", "|---|---|---|---|"]
        lines += [
            f"| {_escaped(check.title)} | {check.value} | {check.bar} "
            f"| {'passed' if check.passed else '**failed**'} |"
            for check in checks
        ]
        lines.append("")
    keys = ("baseline.lead", "agreement.people", "bias.flips", "failures.failed")
    numbers = [report.headline, *(report.numbers[k] for k in keys if k in report.numbers)]
    lines += ["| | value | range | n |", "|---|---|---|---|"]
    lines += [
        f"| {_escaped(number.title)} | {value_text(number)} | {range_text(number)} "
        f"| {number.result.n:,} |"
        for number in numbers
    ]
    if report.left_out or report.notes:
        lines += ["", _escaped(" ".join(filter(None, [report.left_out, *report.notes])))]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is; names are other people's."""
    for mark in ("\\", "|", "<", "`", "*", "_", "[", "]"):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return " ".join(text.split())
