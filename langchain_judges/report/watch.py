"""The same rows judged again later: did the judge change, and does it meet its limits?"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.report.content import Drift, ReportContent
from langchain_judges.report.number import Number, percent, range_text, value_text
from langchain_judges.report.sample import MetricSettings, Sample
from langchain_judges.verdict import Label


class RowAnswer(TypedDict):
    """A judge's answer to a row."""

    row: str
    """The name of the row's texts, the same in another run."""
    answer: Label | None
    right: float | None
    """How far it was right."""


def answers_of(sample: Sample) -> list[RowAnswer]:
    """Return each row's answer under a name that the same texts have in another run."""
    names = Counter[str]()
    answers: list[RowAnswer] = []
    for row, right in zip(sample.rows, sample.rights, strict=True):
        content = row.row.get("content") or {}
        name = ".".join(content[field] for field in sorted(content)) or str(row.place)
        names[name] += 1
        own = name if names[name] == 1 else f"{name}#{names[name]}"
        answers.append({"row": own, "answer": row.answer, "right": right})
    return answers


def drift(report: ReportContent, earlier: Mapping[str, Any]) -> Drift:
    """Compare a report with an earlier one, row by row.

    Args:
        report: The report of now.
        earlier: What `to_dict` or the JSON of a report gives.

    Raises:
        InputError: It is no such report, or has no row of this one.
    """
    _check_report(earlier, "the baseline")
    before = {each["row"]: each for each in earlier["answers"]}
    then = {each["use"]: each["answer"] for each in earlier["uses"]}
    now = answers_of(report.sample)
    pairs = [
        (i, each, before[each["row"]]) for i, each in enumerate(now) if each["row"] in before
    ]
    if not pairs:
        raise InputError("no row of the baseline is in this run")
    groups = report.sample.groups
    settings: MetricSettings = {
        "groups": groups and [groups[i] for i, _, _ in pairs],
        "confidence": report.sample.confidence,
    }
    return Drift(
        since=earlier["provenance"].get("date", ""),
        change=metrics.paired_difference(
            [new["right"] for _, new, _ in pairs],
            [old["right"] for _, _, old in pairs],
            **settings,
        ),
        changed=metrics.rate(
            [float(new["answer"] != old["answer"]) for _, new, old in pairs], **settings
        ),
        words={
            use: (then[use], now_answer.word)
            for use, now_answer in report.uses.items()
            if then.get(use, now_answer.word) != now_answer.word
        },
    )


def read_baseline(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a report that was written as JSON.

    Raises:
        InputError: There is no such file, or it is not a report.
    """
    try:
        earlier = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise InputError(f"the baseline {path} cannot be read: {exc}") from exc
    _check_report(earlier, f"the baseline {path}")
    return dict(earlier)


def _check_report(earlier: object, name: str) -> None:
    parts = {"answers": list, "uses": list, "provenance": Mapping}
    if not isinstance(earlier, Mapping) or not all(
        isinstance(earlier.get(part), kind) for part, kind in parts.items()
    ):
        raise InputError(f"{name} is not a report: create one with `trust --json`")


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
