"""The report as one HTML page: its template, its list of rows, and what both show."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from langchain_judges.metrics import Result
from langchain_judges.report.answers import Use, UseAnswer, Word, with_range
from langchain_judges.report.content import Contest, ReportContent
from langchain_judges.report.evidence import (
    cost_of,
    differs,
    evidence,
    score_of,
    shown,
    texts_of,
)
from langchain_judges.report.number import (
    NO_BREAK,
    Number,
    count_text,
    p_text,
    percent,
    range_text,
    value_text,
)
from langchain_judges.report.rows import JudgedRow
from langchain_judges.report.sample import Sample
from langchain_judges.report.single import BALANCED

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def template(name: str) -> Template:
    """Return a template by its file's name."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
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
        plain=_plain,
        p=p_text,
    )
    environment.tests["undefined_number"] = _is_undefined
    return environment


def _is_undefined(number: Number) -> bool:
    return math.isnan(number.result)


def _plain(text: object) -> str:
    """Return a text that UTF-8 can carry."""
    return str(text).encode("utf-8", "replace").decode()


LONGEST = 6_000
"""Characters of one text in the list of all rows."""
MOST_CHARACTERS = 60_000_000
"""Characters of all texts of a page, costliest rows first; rows beyond have no texts."""


def script() -> str:
    """Return the page's own script, the only one that it runs."""
    return (files("langchain_judges.report") / "templates" / "rows.js").read_text("utf-8")


def script_hash() -> str:
    """Return the name of the script in the page's policy."""
    digest = hashlib.sha256(script().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def packed_rows(reports: Sequence[ReportContent]) -> Markup:
    """Return the costliest rows, compressed, as letters that no markup can hide in."""
    numbered = list(enumerate(_by_place(reports).values()))
    numbered.sort(key=lambda pair: -max(_cost(row) for row in pair[1]))
    room = MOST_CHARACTERS
    rows: list[dict[str, Any]] = []
    for number, judgments in numbered[:ROWS_ON_PAGE]:
        entry = _row(number, judgments, with_texts=room > 0)
        room -= sum(len(text) for _, text in entry["texts"]) + len(entry["task"])
        rows.append(entry)
    rows.sort(key=lambda entry: int(entry["number"]))
    sample = reports[0].sample
    data = {
        "judges": [report.name for report in reports],
        "people": "label" if sample.by_label else "people",
        "rows": rows,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
    return Markup(base64.b64encode(packed).decode())  # noqa: S704 - letters of base64


def _cost(row: JudgedRow | None) -> float:
    return 0.0 if row is None or not differs(row) else cost_of(row)


def _row(
    number: int, judgments: Sequence[JudgedRow | None], *, with_texts: bool
) -> dict[str, Any]:
    first = next(row for row in judgments if row is not None)
    own = first.row.get("id")
    texts = [(name, _cut(text)) for name, text in texts_of(first)] if with_texts else []
    task = _cut(shown(first.data_row.get("input") or "")) if with_texts else ""
    return {
        "number": number,
        "id": str(first.place if own is None else own),
        "category": first.category,
        "task": task,
        "texts": texts,
        "label": None if first.label is None else str(first.label),
        "votes": [str(vote) for vote in first.votes],
        "judges": [None if row is None else _judgment(row) for row in judgments],
    }


def _judgment(row: JudgedRow) -> dict[str, object]:
    orders = [row.in_order("AB"), row.in_order("BA")] if row.has_orders else None
    return {
        "answer": None if row.answer is None else str(row.answer),
        "score": score_of(row),
        "flipped": bool(row.verdict.get("flipped")),
        "orders": orders,
        "cost": round(_cost(row), 4),
        "reason": _cut(str(row.verdict.get("rationale") or "")),
        "evidence": [asdict(table) for table in evidence(row.row)],
    }


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"


ROWS_ON_PAGE = 1_000
"""Rows that a page lists, the costliest first."""
MOST_PARTS = 6
SECTIONS = {
    "agreement": "Agreement",
    "baseline": "What needs no judge",
    "criterion": "By criterion",
    "ratings": "Ratings",
    "people": "Where people agree",
    "category": "Agreement by category",
    "confidence": "Is it right as often as it says?",
    "bias": "Preferences unrelated to quality",
    "failures": "Failures",
}


def _by_place(
    reports: Sequence[ReportContent],
) -> dict[Hashable, list[JudgedRow | None]]:
    """Return the judgments of each row, one for each judge."""
    places: dict[Hashable, list[JudgedRow | None]] = {}
    for number, report in enumerate(reports):
        for row in report.sample.rows:
            own = places.setdefault(row.place, [None] * len(reports))
            own[number] = row
    return places


def render(reports: Sequence[ReportContent], contests: Sequence[Contest] = ()) -> str:
    """Return the page of one report, or of several."""
    rows = max(len(report.sample.rows) for report in reports)
    return template("report.html").render(
        views=[_view(report, number) for number, report in enumerate(reports, 1)],
        contests=contests,
        level=percent(reports[0].sample.confidence),
        words=_words(reports),
        asked=[_asked(reports, use) for use in reports[0].uses],
        beyond=rows if rows > ROWS_ON_PAGE else 0,
        listed=min(rows, ROWS_ON_PAGE),
        rows=packed_rows(reports),
        script=Markup(script()),  # noqa: S704 - ours
        script_hash=script_hash(),
        css=Markup(template("report.css").render()),  # noqa: S704 - ours
    )


def _view(report: ReportContent, number: int) -> dict[str, object]:
    """Return what the page shows of a report, under the names of its template."""
    sample = report.sample
    uses = [(answer, _scale(answer)) for answer in report.uses.values()]
    averages = report.uses["averages"]
    open_uses = any(answer.labels is not None for answer in report.uses.values())
    return {
        "number": number,
        "report": report,
        "whom": "label" if sample.by_label else "people",
        "uses": uses,
        "parts": [(part, averages.word_of(part)) for part in averages.parts[:MOST_PARTS]],
        "more_parts": max(0, len(averages.parts) - MOST_PARTS),
        "label_first": _label_first(sample) if open_uses else "",
        "flips": [
            report.numbers[key]
            for key in ("bias.flips.other", "bias.flips.undecided")
            if key in report.numbers
        ],
        "then_tie": _splits_are_ties(sample),
        "sections": _sections(report),
        "said": _said(report),
        "words": _words([report]),
        "by_label": _words_by_label(report.uses["single"]),
    }


def _words(reports: Sequence[ReportContent]) -> set[str]:
    """Return the answers that a page has, parts included."""
    answers = [answer for report in reports for answer in report.uses.values()]
    return {a.word for a in answers} | {a.word_of(part) for a in answers for part in a.parts}


def _words_by_label(answer: UseAnswer) -> list[tuple[str, Word]]:
    """Return the answer for each label that the judge gives, where they are not all alike."""
    words = [
        (part.title.removeprefix("where it says "), answer.word_of(part))
        for part in answer.parts
        if part.key != BALANCED
    ]
    mixed = 1 < len(words) <= MOST_PARTS and len({word for _, word in words}) > 1
    return words if mixed and words[0][1] == answer.word else []


def _asked(reports: Sequence[ReportContent], use: Use) -> str:
    """Return what is asked for in a use, by the first judge of which it is measured."""
    answers = [report.uses[use] for report in reports]
    return next((a for a in answers if a.word != "not measured"), answers[0]).asked


def _label_first(sample: Sample) -> str:
    """Say which rows to label first, where some have no label."""
    open_rows = [row for row in sample.rows if not row.target]
    doubtful = sum(bool(row.verdict.get("flipped")) for row in open_rows)
    if not open_rows:
        return "new rows, the same for every question, for all of these have a label"
    if doubtful:
        rows = count_text(doubtful, "row")
        return f"first {rows} without a label whose two orders disagree (`label` picks them)"
    return f"some of the {len(open_rows):,} rows without one (`label` picks them)"


def _splits_are_ties(sample: Sample) -> bool:
    """Say whether the judge calls a tie wherever its two orders differ."""
    both = [row for row in sample.rows if row.has_orders]
    split = [row.answer for row in both if row.in_order("AB") != row.in_order("BA")]
    return bool(split) and set(split) <= {"tie", None}


def _sections(report: ReportContent) -> list[tuple[str, list[Number]]]:
    """Return all numbers, each once, under the title of its section."""
    found: dict[str, list[Number]] = {name: [] for name in SECTIONS}
    for number in report.numbers.values():
        found[number.section].append(number)
    return [(SECTIONS[name], own) for name, own in found.items() if own]


def _scale(answer: UseAnswer) -> dict[str, object] | None:
    """Return where the number of an answer, its range and its limits stand, in percent."""
    number = answer.number
    if number is None or math.isnan(number.result):
        return None
    interval = number.result.interval or (float(number.result),) * 2
    limits = [end for end in answer.limit if math.isfinite(end)]
    ends = [
        *interval,
        *limits,
        float(number.result),
        *([0.0] if number.unit != "share" else []),
    ]
    low, high = min(ends), max(ends)
    room = 0.12 * (high - low or 1.0)
    if number.unit == "share":
        low, high = max(0.0, low - room), min(1.0, high + room)
    else:
        low, high = low - room, high + room

    def place(value: float) -> float:
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    least, most = (place(end) for end in answer.limit)
    return {
        "from": least,
        "to": most,
        "low": place(interval[0]),
        "high": place(interval[1]),
        "value": place(float(number.result)),
        "zero": place(0.0) if number.unit != "share" else None,
        "limits": [(place(end), _limit_text(end, number)) for end in limits],
        "spoken": f"{answer.title}: {value_text(number)} {range_text(number)}",
    }


def _limit_text(end: float, number: Number) -> str:
    """Return a limit as it is written under the chart."""
    text = value_text(replace(number, result=Result(end, n=0)), 0)
    return text.removesuffix(f"{NO_BREAK}points")


def _said(report: ReportContent) -> dict[str, object]:
    """Return a row for each answer of the judge: how often, and what people say there."""
    table, answer = report.confusion, report.uses["single"]
    parts = {part.key: part for part in answer.parts}
    columns = [*zip(*table.counts, strict=True), table.not_judged]
    rows = []
    for name, counts in zip([*table.classes, None], columns, strict=True):
        whole = sum(counts)
        part = parts.get(f"single.{name}")
        cells = [
            {
                "count": count,
                "share": count / whole if whole else 0.0,
                "kind": "right" if name == other else "wrong",
            }
            for count, other in zip(counts, table.classes, strict=True)
        ]
        title = "not judged" if name is None else f"it says {name}"
        word = part and answer.word_of(part)
        row = {"title": title, "cells": cells, "whole": whole, "part": part, "word": word}
        rows += [row] if whole else []
    balanced = parts.get(BALANCED)
    return {
        "classes": table.classes,
        "rows": rows,
        "by_label": 0 < len(table.classes) <= MOST_PARTS and balanced is not None,
        "balanced": balanced if answer.number is balanced else None,
        "balanced_word": answer.word,
    }
