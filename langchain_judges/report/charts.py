"""The plots of a report: which numbers they show, and what a screen reader says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from langchain_judges import metrics
from langchain_judges.report import plots
from langchain_judges.report.content import ReportContent
from langchain_judges.report.judged_row import preference_points
from langchain_judges.report.number import Number
from langchain_judges.report.wording import percent, range_text, value_text

MOST_CATEGORIES = 16
ONE_ORDER = "agreement.mean_of_orders.wrong"
"""The agreement of a judge that is asked in one order, mean of both."""


def _mark(number: Number, label: str, kind: str) -> plots.Mark:
    span = range_text(number, 0)
    text = f"{value_text(number)} ({span})" if span else value_text(number)
    return plots.Mark(label, float(number.result), number.result.interval, kind, text)


def agreement_plot(report: ReportContent) -> Markup | None:
    """The judge, people and the baselines."""
    headline = report.shares_headline
    if math.isnan(headline.result):
        return None
    numbers = report.numbers
    marks = [_mark(headline, "This judge", "judge")]
    if ONE_ORDER in numbers and "baseline.coin" in numbers:
        # Beside baselines that are asked once stands a judge that is asked once.
        marks.append(_mark(numbers[ONE_ORDER], "It, by one order alone", "judge"))
    marks += _people_and_baselines(numbers)
    unit = f"share of {'votes' if report.sample.by_votes else 'rows'} matched, %"
    return plots.shares(
        marks, unit, f"Agreement: judge, people and baselines. {_description(marks)}"
    )


def _people_and_baselines(numbers: Mapping[str, Number]) -> list[plots.Mark]:
    people = numbers["agreement.people"]
    marks = [
        _mark(number, number.title, "baseline")
        for key, number in numbers.items()
        if key.startswith("baseline.") and key != "baseline.lead"
    ]
    if math.isnan(people.result):
        return marks
    return [_mark(people, "People among themselves", "people"), *marks]


def _description(marks: Sequence[plots.Mark]) -> str:
    return "; ".join(f"{mark.label}: {mark.text}" for mark in marks)


def judges_plot(reports: Sequence[ReportContent]) -> Markup | None:
    """All judges, people and the baselines."""
    marks = [
        _mark(report.shares_headline, report.name, "judge")
        for report in reports
        if not math.isnan(report.shares_headline.result)
    ]
    if not marks:
        return None
    marks += _people_and_baselines(reports[0].numbers)
    unit = f"agreement with {reports[0].sample.whom}, %"
    return plots.shares(marks, unit, f"All judges. {_description(marks)}")


def slot_plot(report: ReportContent) -> Markup | None:
    """What becomes of verdicts when the texts swap places."""
    numbers = report.numbers
    if "bias.toward_first" not in numbers or math.isnan(numbers["bias.flips"].result):
        return None
    keys = ("bias.flips", "bias.toward_first", "bias.toward_second")
    flips, first, second = (float(numbers[key].result) for key in keys)
    parts = [
        ("same verdict in both orders", 1 - flips, "judge"),
        ("the first slot won both orders", first, "people"),
        ("the second slot won both orders", second, "other"),
        ("into or out of a tie", max(0.0, flips - first - second), "baseline"),
    ]
    description = "; ".join(f"{name}: {100 * share:.1f} %" for name, share, _ in parts)
    return plots.slots(parts, f"Verdicts when the texts swap places. {description}")


LEAST_ROWS = 20
"""With fewer rows whose texts differ in length there is no curve."""


def length_plot(report: ReportContent) -> Markup | None:
    """How often judge and people prefer the longer text, in up to four steps of its lead."""
    import numpy as np

    sample = report.sample
    if not sample.pairs:
        return None
    leads = []
    for place, a, b in zip(sample.with_texts, *sample.lengths, strict=True):
        row = sample.rows[place]
        judge = preference_points([row.answer] if row.answer is not None else [])
        people = preference_points(row.target)
        if a != b and judge is not None and people is not None:
            sides = [p if a > b else 1 - p for p in (judge, people)]
            leads.append((abs(a - b), *sides))
    if len(leads) < LEAST_ROWS:
        return None
    table = np.asarray(leads)
    # Quarters of the rows; where many leads are equal two quarters may be one step.
    cuts = np.unique(np.quantile(table[:, 0], (0.25, 0.5, 0.75), method="inverted_cdf"))
    step = np.searchsorted(cuts, table[:, 0])
    steps = [table[step == number] for number in range(len(cuts) + 1)]
    steps = [part for part in steps if len(part)]
    names = [_span(part[:, 0].min(), part[:, 0].max()) for part in steps]
    shares = [[float(part[:, column].mean()) for part in steps] for column in (1, 2)]
    description = "; ".join(
        f"{name} characters: judge {percent(j)} %, {report.sample.whom} {percent(p)} %"
        for name, j, p in zip(names, *shares, strict=True)
    )
    title = f"Preference for the longer text. {description}"
    return plots.lengths(names, shares[0], shares[1], title, whom=sample.whom)


def _span(low: float, high: float) -> str:
    return f"{int(low):,}" if low == high else f"{int(low):,}–{int(high):,}"


def categories(report: ReportContent) -> list[Number]:
    """Return the agreement in each category that has a label, largest category first."""
    return [
        number
        for key, number in report.numbers.items()
        if key.startswith("category.") and not math.isnan(number.result)
    ]


def category_plot(report: ReportContent) -> Markup | None:
    """The agreement in the largest categories."""
    numbers = categories(report)
    if len(numbers) < 2:
        return None
    marks = []
    for number in numbers[:MOST_CATEGORIES]:
        mark = _mark(number, number.title, "judge")
        marks.append(mark._replace(text=f"{value_text(number, 0)}, n = {number.result.n:,}"))
    unit = f"agreement with {report.sample.whom}, %"
    return plots.shares(marks, unit, f"Agreement by category. {_description(marks)}")


def history_plot(report: ReportContent) -> Markup | None:
    """The agreement of this report and of those before it."""
    if report.drift is None:
        return None
    marks = []
    for each in report.drift.history:
        if each["agreement"] is None:
            continue
        low, high = each["low"], each["high"]
        span = None if low is None or high is None else (low, high)
        text = f"{percent(each['agreement'], 1)} %, n = {each['n']:,}"
        marks.append(plots.Mark(each["date"] or "earlier", each["agreement"], span, text=text))
    return plots.shares(marks, "agreement, %", f"Agreement by date. {_description(marks)}")


def confidence_plot(report: ReportContent) -> Markup | None:
    """How often answers are right, by the confidence that the judge has in them."""
    sample = report.sample
    if not sample.has_confidence:
        return None
    calibration = metrics.confidence_calibration(
        sample.verdicts, sample.labels, **sample.settings
    )
    if len(calibration.bins) < 2:
        return None
    points = [
        (each.confidence, float(each.agreement), each.agreement.interval)
        for each in calibration.bins
    ]
    title = f"Agreement by confidence. {_right_at(points, 'confidence')}"
    return plots.calibration(points, title)


SHARES = tuple(tenths / 10 for tenths in range(10, 0, -1))


def abstention_plot(report: ReportContent) -> Markup | None:
    """How often the judge is right where only its surest answers are taken."""
    sample = report.sample
    if not sample.has_confidence:
        return None
    curve = metrics.abstention_curve(
        sample.verdicts, sample.labels, shares=SHARES, **sample.settings
    )
    results = {share: result for share, result in curve if result.n >= LEAST_ROWS}
    if len(results) < 3:
        return None
    points = [(share, float(own), own.interval) for share, own in results.items()]
    title = f"Agreement of the surest answers. {_right_at(points, 'surest')}"
    return plots.abstention(points, title)


def _right_at(points: plots.Points, unit: str) -> str:
    return "; ".join(f"{unit} {percent(x)} %: right {percent(y)} %" for x, y, _ in points)
