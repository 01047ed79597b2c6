"""The report as one HTML page: its template, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from langchain_judges.report.conclusions import (
    Contest,
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
        "uses": list(answers.values()),
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
