"""The report as one HTML page: what the template shows, put into its form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from langchain_judges.report import plots
from langchain_judges.report.measure import ERRORS, Number
from langchain_judges.report.rows import preference_points
from langchain_judges.report.single import TrustReport
from langchain_judges.report.wording import p_told, percent, range_told, told

if TYPE_CHECKING:
    from jinja2 import Environment

    from langchain_judges.report.versus import Contest

_MOST_CATEGORIES = 16
_ONE_ORDER = "agreement.mean_of_orders.wrong"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("langchain_judges.report"),
        autoescape=True,  # the judged texts are other people's, and may hold markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(told=told, range=range_told, percent=percent, plain=_plain, p=p_told)
    made.tests["undefined_number"] = lambda number: math.isnan(number.result)
    return made


def _plain(text: object) -> str:
    """Return a text that UTF-8 can carry."""
    return str(text).encode("utf-8", "replace").decode()


def render(reports: Sequence[TrustReport], contests: Sequence[Contest] = ()) -> str:
    """Return the page of one report, or of several beside each other."""
    template = _environment().get_template("report.html")
    numbered = count(1)
    return template.render(
        views=[_view(report, next(numbered)) for report in reports],
        contests=contests,
        one_order=_ONE_ORDER if any(_ONE_ORDER in each.numbers for each in reports) else "",
        level=percent(reports[0].sample.confidence),
        lead_plot=_judges_plot(reports) if len(reports) > 1 else None,
        css=Markup(_environment().get_template("report.css").render()),  # noqa: S704 - ours
    )


def _view(report: TrustReport, number: int) -> dict[str, Any]:
    numbers = report.numbers
    sample = report.sample
    lost = sum(row.answer is None for row in sample.rows)
    return {
        "number": number,
        "report": report,
        "numbers": numbers,
        "headline": report.headline,
        "whom": _whom(report),
        "lost": lost,
        "tiles": _tiles(report),
        "note": _tie_note(report),
        "agreement_plot": _agreement_plot(report),
        "agreement": _both_errors(report),
        "singles": [
            numbers[k]
            for k in ("agreement.kappa", "agreement.ceiling", "agreement.oracle")
            if k in numbers
        ]
        + [n for k, n in numbers.items() if k.startswith("baseline.")],
        "bias": [n for k, n in numbers.items() if k.startswith("bias.")],
        "failures": [n for k, n in numbers.items() if k.startswith("failures.")],
        "slot_plot": _slot_plot(report),
        "length_plot": _length_plot(report),
        "category_plot": _category_plot(report),
        "confusion": _confusion(report),
        "steps": sorted(report.usage["by_step"].items()),
    }


def _whom(report: TrustReport) -> str:
    if report.sample.by_votes:
        return "each person's vote"
    return "people" if report.sample.pairs else "the labels"


def _tiles(report: TrustReport) -> list[dict[str, Any]]:
    """The five numbers of the first screen."""
    numbers = report.numbers
    base = [n for k, n in numbers.items() if k.startswith("baseline.") and "lead" not in k]
    best = max(base, key=lambda number: number.result) if base else None
    found: list[tuple[str, Number | None, str]] = [
        (f"agrees with {_whom(report)}", report.headline, "judge"),
        ("people among themselves", numbers["agreement.ceiling"], "people"),
        (f"best baseline: {best.title[0].lower()}{best.title[1:]}" if best else "", best, ""),
    ]
    if "bias.flips" in numbers:
        found.append(("flips when the texts swap places", numbers["bias.flips"], ""))
    elif "agreement.balanced.wrong" in numbers:
        found.append(("balanced accuracy", numbers["agreement.balanced.wrong"], ""))
    found.append(("not judged", numbers["failures.failed"], ""))
    return [
        {"name": name, "number": number, "kind": kind}
        for name, number, kind in found
        if number is not None
    ]


def _tie_note(report: TrustReport) -> str:
    sample = report.sample
    if not sample.pairs or any("tie" in target for target in sample.targets):
        return ""
    ties = sum(row.answer == "tie" for row in sample.rows if row.target)
    if not ties:
        return ""
    alone = report.numbers["agreement.no_ties.drop"]
    word = "tie" if ties == 1 else "ties"
    said = f"People never say tie here, so the judge's {ties:,} {word} count as wrong. "
    return said + f"Without them it agrees {told(alone)} of the time (n = {alone.result.n:,})."


def _both_errors(report: TrustReport) -> list[tuple[Number, Number]]:
    """Pair each agreement with failures as wrong and with failures left out."""
    numbers = report.numbers
    stems = [k.rpartition(".")[0] for k in numbers if k.endswith(f".{ERRORS[0]}")]
    return [(numbers[f"{stem}.wrong"], numbers[f"{stem}.drop"]) for stem in stems]


def _mark(number: Number, label: str, kind: str) -> plots.Mark:
    span = range_told(number, 0)
    said = f"{told(number)} ({span})" if span else told(number)
    return plots.Mark(label, float(number.result), number.result.interval, kind, said)


def _agreement_plot(report: TrustReport) -> Markup | None:
    if math.isnan(report.headline.result):
        return None
    numbers = report.numbers
    marks = [_mark(report.headline, "This judge", "judge")]
    if not math.isnan(numbers["agreement.ceiling"].result):
        marks.append(_mark(numbers["agreement.ceiling"], "People among themselves", "people"))
    for key, number in numbers.items():
        if key.startswith("baseline.") and key != "baseline.lead":
            marks.append(_mark(number, number.title, "baseline"))
    unit = f"share of {'votes' if report.sample.by_votes else 'rows'} matched, %"
    return plots.shares(marks, unit, f"Agreement: judge, people and baselines. {_said(marks)}")


def _said(marks: Sequence[plots.Mark]) -> str:
    return "; ".join(f"{mark.label}: {mark.told}" for mark in marks)


def _judges_plot(reports: Sequence[TrustReport]) -> Markup:
    marks = [
        _mark(report.headline, report.name, "judge")
        for report in reports
        if not math.isnan(report.headline.result)
    ]
    numbers = reports[0].numbers
    if not math.isnan(numbers["agreement.ceiling"].result):
        marks.append(_mark(numbers["agreement.ceiling"], "People among themselves", "people"))
    for key, number in numbers.items():
        if key.startswith("baseline.") and key != "baseline.lead":
            marks.append(_mark(number, number.title, "baseline"))
    return plots.shares(marks, "agreement with people, %", f"All judges. {_said(marks)}")


def _slot_plot(report: TrustReport) -> Markup | None:
    numbers = report.numbers
    if "bias.toward_first" not in numbers or math.isnan(numbers["bias.flips"].result):
        return None
    flips, first, second = (
        float(numbers[f"bias.{name}"].result)
        for name in ("flips", "toward_first", "toward_second")
    )
    parts = [
        ("same verdict in both orders", 1 - flips, "judge"),
        ("the first slot won both orders", first, "people"),
        ("the second slot won both orders", second, "other"),
        ("into or out of a tie", max(0.0, flips - first - second), "baseline"),
    ]
    said = "; ".join(f"{name}: {100 * share:.1f} %" for name, share, _ in parts)
    return plots.slots(parts, f"Verdicts when the texts swap places. {said}")


def _length_plot(report: TrustReport) -> Markup | None:
    """How often judge and people prefer the longer text, in four steps of its lead."""
    import numpy as np

    sample = report.sample
    if not sample.pairs or not sample.has_texts:
        return None
    known = []
    for row, a, b in zip(sample.rows, *sample.lengths, strict=True):
        judge = preference_points([row.answer] if row.answer is not None else [])
        people = preference_points(row.target)
        if a != b and judge is not None and people is not None:
            longer_is_a = a > b
            sides = [p if longer_is_a else 1 - p for p in (judge, people)]
            known.append((abs(a - b), *sides))
    if len(known) < 20:
        return None
    known.sort()
    steps = [part for part in np.array_split(np.asarray(known), 4) if len(part)]
    names = [f"{int(part[0][0]):,}–{int(part[-1][0]):,}" for part in steps]
    shares = [[float(part[:, column].mean()) for part in steps] for column in (1, 2)]
    said = "; ".join(
        f"{name} characters: judge {percent(j)} %, people {percent(p)} %"
        for name, j, p in zip(names, *shares, strict=True)
    )
    return plots.lengths(names, shares[0], shares[1], f"Preference for the longer text. {said}")


def _category_plot(report: TrustReport) -> Markup | None:
    found = [
        n
        for k, n in report.numbers.items()
        if k.startswith("category.") and not math.isnan(n.result)
    ]
    if len(found) < 2:
        return None
    marks = []
    for number in found[:_MOST_CATEGORIES]:
        mark = _mark(number, number.title, "judge")
        marks.append(mark._replace(told=f"{told(number, 0)}, n = {number.result.n:,}"))
    unit = "agreement with people, %"
    return plots.shares(marks, unit, f"Agreement by category. {_said(marks)}")


def _confusion(report: TrustReport) -> dict[str, Any]:
    table = report.confusion
    rows = []
    for name, counts, lost in zip(table.classes, table.counts, table.not_judged, strict=True):
        whole = sum(counts) + lost
        cells = [
            {"count": n, "share": n / whole if whole else 0.0, "right": name == other}
            for n, other in zip(counts, table.classes, strict=True)
        ]
        rows.append({"name": name, "cells": cells, "lost": lost, "whole": whole})
    return {"classes": table.classes, "rows": rows, "any_lost": any(table.not_judged)}
