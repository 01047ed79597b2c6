"""The report as one HTML page: its template, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from langchain_judges.metrics import Result
from langchain_judges.report.conclusions import (
    NO_BREAK,
    Contest,
    Number,
    UseAnswer,
    Word,
    p_text,
    percent,
    range_text,
    value_text,
    with_range,
)
from langchain_judges.report.overview import Reported, next_step, overview
from langchain_judges.report.single_verdicts import BALANCED

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("langchain_judges.report"),
        autoescape=True,  # the judged texts are other people's, and may hold markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        value=value_text,
        ranged=with_range,
        range=range_text,
        percent=percent,
        plain=lambda text: str(text).encode("utf-8", "replace").decode(),  # UTF-8 carries it
        p=p_text,
    )
    environment.tests["undefined_number"] = lambda number: math.isnan(number.result)
    return environment.get_template("report.html")


MOST_PARTS = 6


def render(
    views: Sequence[Mapping[str, object]], contests: Sequence[Contest], confidence: float
) -> str:
    """Return the page of one report, or of several."""
    return _template().render(views=views, contests=contests, level=percent(confidence))


def view(report: Reported) -> dict[str, object]:
    """Return what the page shows of a report, under the names of its template."""
    sample, answers = report.sample, report.uses
    averages = answers["averages"]
    return {
        "report": report,
        "overview": overview(report),
        "step": next_step(report),
        "whom": "label" if sample.by_label else "people",
        "uses": [(answer, _scale(answer)) for answer in answers.values()],
        "parts": [(part, averages.word_of(part)) for part in averages.parts[:MOST_PARTS]],
        "more_parts": max(0, len(averages.parts) - MOST_PARTS),
        "by_label": _words_by_label(answers["single"]),
    }


def _words_by_label(answer: UseAnswer) -> list[tuple[str, Word]]:
    """Return the answer for each label that the judge gives, where they are not all alike."""
    words = [
        (part.title.removeprefix("where it says "), answer.word_of(part))
        for part in answer.parts
        if part.key != BALANCED
    ]
    mixed = 1 < len(words) <= MOST_PARTS and len({word for _, word in words}) > 1
    return words if mixed and words[0][1] == answer.word else []


def _scale(answer: UseAnswer) -> dict[str, object] | None:
    """Return where the number of an answer, its range and its limits stand, in percent."""
    number = answer.number
    if number is None or math.isnan(number.result):
        return None
    value, share = float(number.result), number.unit == "share"
    interval = number.result.interval or (value, value)
    limits = [end for end in answer.limit if math.isfinite(end)]
    ends = [*interval, *limits, value, *([] if share else [0.0])]
    low, high = min(ends), max(ends)
    room = 0.12 * (high - low or 1.0)
    low, high = low - room, high + room
    if share:
        low, high = max(0.0, low), min(1.0, high)

    def place(value: float) -> float:
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    least, most = (place(end) for end in answer.limit)
    return {
        "from": least,
        "to": most,
        "low": place(interval[0]),
        "high": place(interval[1]),
        "value": place(value),
        "zero": None if share else place(0.0),
        "limits": [(place(end), _limit_text(end, number)) for end in limits],
        "spoken": f"{answer.title}: {value_text(number)} {range_text(number)}",
    }


def _limit_text(end: float, number: Number) -> str:
    """Return a limit as it is written under the chart."""
    text = value_text(replace(number, result=Result(end, n=0)), 0)
    return text.removesuffix(f"{NO_BREAK}points")
