"""May this judge be trusted? Its report, where it comes from, and how it is written."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from langchain_judges.errors import InputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.orders import OrderRule, orders_of
from langchain_judges.report.answers import (
    MARGIN,
    MOST_WRONG,
    Number,
    percent,
    range_text,
    value_text,
    with_range,
)
from langchain_judges.report.content import Contest, ReportContent
from langchain_judges.report.rows import JudgedRow, join, judges_of, rows_in
from langchain_judges.report.sample import Sample
from langchain_judges.report.watch import answers_of, drift

if TYPE_CHECKING:
    from pandas import DataFrame


class WrittenReport(ABC):
    """What every report can be written as."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data."""

    @abstractmethod
    def shown(self) -> tuple[Sequence[ReportContent], Sequence[Contest]]:
        """Return what a page shows: the reports, and the tests between their judges."""

    def to_dataframe(self) -> DataFrame:
        """Return the numbers, one a row: judge, key, value, interval, n and how many failed."""
        return frame(number_rows(self.shown()[0]))

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Return the numbers as CSV, and write them to a file if there is a path."""
        text, rows = StringIO(), number_rows(self.shown()[0])
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows({key: inert_cell(cell) for key, cell in row.items()} for row in rows)
        return written(text.getvalue(), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the whole report as JSON, and write it to a file if there is a path."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, default=str)
        return written(inert_json(text) + "\n", path)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to a file if there is a path.

        The page holds everything it needs, loads nothing and runs no script.
        """
        from langchain_judges.report.page import render

        return written(render(*self.shown()), path)


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Make a text inert, write it to a file if there is one, and return it."""
    text = clean(text)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", errors="replace")
    return text


def _provenance(row: JudgedRow) -> dict[str, str]:
    """Return date, package version, and what a row says of its judge."""
    own = row.row.get("judge")
    judge = own if isinstance(own, Mapping) else {}
    parts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "langchain-judges": version("langchain-judges"),
        "method": judge.get("method"),
        "model": judge.get("model"),
        "judge settings": judge.get("mark"),
    }
    return {name: str(text) for name, text in parts.items() if text}


@dataclass(frozen=True)
class BarCheck:
    """One bar."""

    title: str
    value: str
    """What was measured, in words."""
    bar: str
    passed: bool


def gates(report: ReportContent, min_agreement: float | None = None) -> list[BarCheck]:
    """Check a report against a limit; an unknown number fails.

    Args:
        report: The report; with an earlier one beside it (`report.drift`) it must not be
            clearly worse.
        min_agreement: The lowest share of agreement, a failed judgment counted as wrong; of
            ratings the lowest rank correlation, by several criteria of the worst of them.
    """
    checks = []
    if min_agreement is not None:
        headline = report.headline
        rated = headline.unit == "number"
        title = "rank correlation" if rated else "agreement"
        if report.sample.by_criteria:
            title = headline.title
        bar = f"at least {min_agreement if rated else f'{percent(min_agreement)} %'}"
        # No number is at least a limit.
        passed = headline.result >= min_agreement
        checks.append(BarCheck(title, with_range(headline), bar, passed))
    if report.drift is not None:
        change = Number("drift", "", report.drift.change, "points")
        title = f"change since {report.drift.since or 'the baseline'} (n = {change.result.n:,})"
        passed = not report.drift.worse
        checks.append(BarCheck(title, with_range(change), "not clearly worse", passed))
    return checks


def markdown(report: ReportContent, checks: Sequence[BarCheck]) -> str:
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
    return clean("\n".join(lines) + "\n")


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is; names are other people's."""
    for mark in ("\\", "|", "<", "`", "*", "_", "[", "]"):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return " ".join(text.split())


class TrustReport(ReportContent, WrittenReport):
    """A judge's agreement with people, and its biases; created by `trust`."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data: sentence, numbers, confusion, disagreements, cost."""
        return {
            "judge": self.name,
            "data": self.data_name,
            "rows": len(self.sample.rows),
            "absent": self.absent,
            "left_out": self.left_out,
            "uses": [each.to_dict() for each in self.uses.values()],
            "sentence": self.sentence,
            "notes": self.notes,
            "numbers": [number.to_dict() for number in self.numbers.values()],
            "confusion": self.confusion.to_dict(),
            "n_disagreements": self.n_disagreements,
            "disagreements": [each.to_dict() for each in self.disagreements],
            "usage": self.usage,
            "dollars": self.dollars,
            "provenance": self.provenance,
            "drift": None if self.drift is None else self.drift.to_dict(),
            "answers": answers_of(self.sample),
        }

    def shown(self) -> tuple[Sequence[ReportContent], Sequence[Contest]]:
        """Return this report alone."""
        return [self], ()


def number_rows(reports: Sequence[ReportContent]) -> list[dict[str, object]]:
    """Return the numbers of reports, with the name of the judge."""
    return [
        {"judge": clean(report.name), **number.to_dict()}
        for report in reports
        for number in report.numbers.values()
    ]


def frame(rows: Sequence[Mapping[str, object]]) -> DataFrame:
    """Return rows as a data frame."""
    with needs("trust", "A data frame"):
        from pandas import DataFrame

    return DataFrame(rows)


def _check_shared(sample: Sample) -> None:
    """Refuse labels of single texts that are not on the judge's scale.

    One label each, as of a judge that is wrong on every row, may well be of one scale.

    Raises:
        InputError: The judge's labels and people's have none in common.
    """
    judge = set(sample.answers) - {None}
    people = {label for target in sample.targets for label in target}
    if sample.pairs or not judge or not people or judge & people:
        return
    mine, theirs = ({isinstance(label, str) for label in own} for own in (judge, people))
    if mine == theirs and (mine == {False} or min(len(judge), len(people)) == 1):
        return
    said, right = (", ".join(sorted(map(str, own))) for own in (judge, people))
    raise InputError(
        f"the judge's labels and people's have no label in common: the judge says {said}, "
        f"people say {right}; give both the same names"
    )


class TrustOptions(TypedDict, total=False):
    """What reports on one judge and on several take; see `trust`."""

    data_name: str
    margin: float
    max_wrong: float
    orders: OrderRule | None
    confidence: float


def trust(  # noqa: PLR0913 - options
    verdicts: Iterable[Mapping[str, Any]],
    data: Iterable[Mapping[str, Any]] | None = None,
    *,
    name: str | None = None,
    data_name: str = "",
    margin: float = MARGIN,
    max_wrong: float = MOST_WRONG,
    baseline: Mapping[str, Any] | None = None,
    orders: OrderRule | None = None,
    confidence: float = 0.95,
) -> TrustReport:
    """Report how far a judge can be trusted, from its verdicts on rows that people labelled.

    Rows with a `label` give agreement, rows with several `human_votes` also how often people
    agree among themselves: the judge is then compared with each vote, as people are with each
    other. Rows with a `group` make intervals count groups, not rows. A row that was judged
    several times counts once, by its last verdict.

    Args:
        verdicts: Rows of a run, as `judge_many` gives them, of one judge
            of pairs or of single texts.
        data: The rows that were judged, with texts and labels; they are matched by the texts
            where the run keeps hashes of them, else by `id`, else by their place. Verdicts on
            an older text, and on rows that are not there, are left out and counted. None:
            what the run kept of the rows, which is no text.
        name: What the judge is called; by default its model and method.
        data_name: What the data are called.
        margin: How far the judge's mean may be from people's, as a share; of ratings, of their
            range.
        max_wrong: The share of single verdicts that may be wrong.
        baseline: An earlier report, as `to_dict` or its JSON gives it: the same rows are then
            compared, answer by answer (`report.drift`).
        orders: How two orders become one answer on the whole page: `strict` (a winner only
            where both agree), `lenient` (the sign of their sum) or `none` (the order with A
            first); by default as the judge itself combined them. Rows of one order stay.
        confidence: The level of the intervals.

    Raises:
        InputError: There are no verdicts, those of several judges, or labels of pairs other
            than A, B and tie; or no verdict belongs to a row of the data.
    """
    rows = rows_in(verdicts, "verdicts")
    judges = judges_of(rows)
    if len(judges) > 1:
        raise InputError(
            f"`trust` takes the verdicts of one judge, got {sorted(judges)[:5]!r}; "
            "`compare` takes several"
        )
    table = None if data is None else rows_in(data, "data")
    joined = join(rows, table)
    label = next(iter(judges)) if name is None else name
    if orders is not None:
        orders_of(orders)  # refuses a rule that there is not
        label += f" (orders combined by {orders})"
        joined = replace(joined, rows=[row.by_rule(orders) for row in joined.rows])
    sample = Sample(joined.rows, confidence)
    _check_shared(sample)
    report = TrustReport(sample, label, data_name, margin=margin, max_wrong=max_wrong)
    if table is not None:
        report.absent = len(table) - len({row.place for row in joined.rows})
    divided = sum(row.is_divided for row in joined.rows)
    said = f"Rows on which people differ, without a majority: {divided:,}." if divided else ""
    report.left_out = " ".join(filter(None, (joined.left_out, said)))
    report.provenance = _provenance(joined.rows[0])
    if baseline is not None:
        report.drift = drift(sample, report.uses, baseline)
    return report
