"""The report as one HTML page: its template, its list of rows, and what both show."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from langchain_judges.report import charts
from langchain_judges.report.charts import ONE_ORDER
from langchain_judges.report.content import Contest, ReportContent
from langchain_judges.report.evidence import cost_of, differs, evidence, shown, texts_of
from langchain_judges.report.measure import MEASURES, SIDES_OF_WINS, criterion_key
from langchain_judges.report.number import (
    ERRORS,
    Number,
    count_text,
    p_text,
    percent,
    range_text,
    value_text,
)
from langchain_judges.report.rows import JudgedRow

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
        value=value_text, range=range_text, percent=percent, plain=_plain, p=p_text
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
    """Return all rows, compressed, as letters that no markup can hide in."""
    places: dict[Hashable, list[JudgedRow | None]] = {}
    for number, report in enumerate(reports):
        for row in report.sample.rows:
            own = places.setdefault(row.place, [None] * len(reports))
            own[number] = row
    numbered = list(enumerate(places.values()))
    numbered.sort(key=lambda pair: -max(_cost(row) for row in pair[1]))
    room = MOST_CHARACTERS
    rows: list[dict[str, Any]] = []
    for number, judgments in numbered:
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
    score = row.verdict.get("score")
    orders = [row.in_order("AB"), row.in_order("BA")] if row.has_orders else None
    return {
        "answer": None if row.answer is None else str(row.answer),
        "score": float(score) if isinstance(score, int | float) else None,
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


_RATINGS = {
    "ratings.kappa": "κ, weighted by squared distance",
    "ratings.error": "mean distance",
    "ratings.offset": "offset; above 0 it rates higher",
}
_BESIDE_PEOPLE = ("ratings.", "people.", "difficulty.")


def render(reports: Sequence[ReportContent], contests: Sequence[Contest] = ()) -> str:
    """Return the page of one report, or of several beside each other."""
    numbered = count(1)
    return template("report.html").render(
        views=[_view(report, next(numbered)) for report in reports],
        contests=contests,
        one_order=next((ONE_ORDER for each in reports if ONE_ORDER in each.numbers), ""),
        level=percent(reports[0].sample.confidence),
        whom=reports[0].sample.whom,
        lead_plot=charts.judges_plot(reports) if len(reports) > 1 else None,
        charts=charts,
        measures=MEASURES.values(),
        rows=packed_rows(reports),
        script=Markup(script()),  # noqa: S704 - ours
        script_hash=script_hash(),
        css=Markup(template("report.css").render()),  # noqa: S704 - ours
    )


def _view(report: ReportContent, number: int) -> dict[str, object]:
    """Return what the page shows of a report, under the names of its template."""
    numbers = report.numbers
    sample = report.sample
    return {
        "number": number,
        "report": report,
        "whom": "label" if sample.by_label else "people",
        "lost": sum(row.answer is None for row in sample.rows),
        "tiles": _tiles(report),
        "note": _tie_note(report),
        "agreement": [] if sample.by_criteria else _both_errors(report),
        "criteria": criteria_table(report),
        "singles": [] if sample.by_criteria else _singles(numbers),
        "people": _numbers_of(numbers, _BESIDE_PEOPLE),
        "confidence": _numbers_of(numbers, "confidence."),
        "bias": _numbers_of(numbers, "bias."),
        "systems": systems_table(report),
        "wins": wins_table(report),
        "win_columns": _win_columns(report),
        "failures": _numbers_of(numbers, "failures."),
        "drift": _drift(report),
        "confusion": _confusion(report),
    }


def _numbers_of(numbers: Mapping[str, Number], start: str | tuple[str, ...]) -> list[Number]:
    """Return the numbers of some parts of the report."""
    return [number for name, number in numbers.items() if name.startswith(start)]


def _singles(numbers: Mapping[str, Number]) -> list[Number]:
    """Return the numbers of agreement that have a line of their own, and the baselines."""
    names = ("kappa", "people", "oracle", "over_people", "winning_rate")
    agreement = [numbers.get(f"agreement.{name}") for name in names]
    return [n for n in agreement if n is not None] + _numbers_of(numbers, "baseline.")


def _whom(report: ReportContent) -> str:
    if report.sample.by_votes:
        return "each person's vote"
    return report.sample.whom


def _headline_name(report: ReportContent) -> str:
    if report.sample.by_criteria:
        return f"{report.headline.title}, the least of {len(report.sample.criteria)} criteria"
    if report.sample.rated:
        return f"rank correlation with {report.sample.whom}"
    coin = report.numbers.get("baseline.coin")
    chance = f"; a coin in both orders {value_text(coin, 0)}" if coin else ""
    return f"agrees with {_whom(report)}{chance}"


def _tiles(report: ReportContent) -> list[dict[str, object]]:
    """The numbers of the first screen."""
    numbers = report.numbers
    tiles = [(_headline_name(report), report.headline, "judge")]
    if report.sample.rated:
        tiles += [(_RATINGS[k], numbers[k], "") for k in _RATINGS]
    else:
        tiles += _beside_others(report)
    if "bias.flips" in numbers:
        tiles.append(("flips when the texts swap places", numbers["bias.flips"], ""))
    elif "agreement.balanced.wrong" in numbers and not report.sample.rated:
        tiles.append(("balanced accuracy", numbers["agreement.balanced.wrong"], ""))
    tiles.append(("not judged", numbers["failures.failed"], ""))
    return [{"name": name, "number": number, "kind": kind} for name, number, kind in tiles]


def _beside_others(report: ReportContent) -> list[tuple[str, Number, str]]:
    """The tiles of people and of the best baseline, each beside a number like itself."""
    numbers, tiles = report.numbers, []
    if not report.sample.by_label:
        tiles.append(("people among themselves", numbers["agreement.people"], "people"))
    if "baseline.coin" in numbers and ONE_ORDER in numbers:
        tiles.append(("the same by one order alone", numbers[ONE_ORDER], "judge"))
    lead = numbers.get("baseline.lead")
    best = next((n for n in numbers.values() if lead and n.title == lead.note), None)
    if best is not None:
        name = f"best baseline: {best.title[0].lower()}{best.title[1:]}"
        tiles.append((name, best, ""))
    return tiles


def _drift(report: ReportContent) -> list[Number]:
    if report.drift is None:
        return []
    since = f"since {report.drift.since}" if report.drift.since else ""
    change, changed = report.drift.change, report.drift.changed
    return [
        Number("drift.change", "Change of the agreement", change, "points", since),
        Number("drift.changed", "Rows with another answer than before", changed),
    ]


def criteria_table(report: ReportContent) -> list[tuple[str, list[Number | None]]]:
    """Return by criterion its number of each measure; None where it has none."""
    return [
        (name, [report.numbers.get(criterion_key(name, measure)) for measure in MEASURES])
        for name in report.sample.criteria
    ]


def systems_table(report: ReportContent) -> list[tuple[str, Number, Number | None]]:
    """Return each system with its strength by the judge, and by people where they voted."""
    numbers = report.numbers
    return [
        (number.title, number, numbers.get(key.removesuffix(".judge") + ".people"))
        for key, number in numbers.items()
        if key.startswith("system.") and key.endswith(".judge")
    ]


def _win_columns(report: ReportContent) -> list[str]:
    there = {key.rpartition(".")[2] for key in report.numbers if key.startswith("wins.")}
    return [side for side in SIDES_OF_WINS if side in there]


def wins_table(report: ReportContent) -> list[tuple[str, list[Number | None]]]:
    """Return each system with its win rate by each side, the judge's best first."""
    numbers, columns = report.numbers, _win_columns(report)
    keys = [key.removeprefix("wins.") for key in numbers if key.startswith("wins.")]
    names = dict.fromkeys(key.rpartition(".")[0] for key in keys)
    rows = [(name, [numbers.get(f"wins.{name}.{side}") for side in columns]) for name in names]
    return sorted(rows, key=lambda row: -float(row[1][0].result) if row[1][0] else 0.0)


def _tie_note(report: ReportContent) -> str:
    sample = report.sample
    if not sample.pairs or any("tie" in target for target in sample.targets):
        return ""
    ties = sum(row.answer == "tie" for row in sample.rows if row.target)
    if not ties:
        return ""
    alone = report.numbers["agreement.no_ties.drop"]
    subject = "People never say" if not sample.by_label else "No label is a"
    note = f"{subject} tie here, so the judge's {count_text(ties, 'tie')} count as wrong. "
    share = value_text(alone)
    return note + f"Without them it agrees {share} of the time (n = {alone.result.n:,})."


def _both_errors(report: ReportContent) -> list[tuple[Number, Number]]:
    """Pair each agreement with failures as wrong and with failures left out."""
    numbers = report.numbers
    stems = [k.rpartition(".")[0] for k in numbers if k.endswith(f".{ERRORS[0]}")]
    return [(numbers[f"{stem}.wrong"], numbers[f"{stem}.drop"]) for stem in stems]


def _confusion(report: ReportContent) -> dict[str, object]:
    table = report.confusion
    rows = []
    for name, counts, failures in zip(
        table.classes, table.counts, table.not_judged, strict=True
    ):
        whole = sum(counts) + failures
        cells = [
            {"count": n, "share": n / whole if whole else 0.0, "right": name == other}
            for n, other in zip(counts, table.classes, strict=True)
        ]
        rows.append({"name": name, "cells": cells, "lost": failures, "whole": whole})
    return {"classes": table.classes, "rows": rows, "any_lost": any(table.not_judged)}
