"""May this judge be trusted? Its report, where it comes from, and how it is written."""

from __future__ import annotations

import csv
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import TypedDict

from langchain_judges import metrics
from langchain_judges.errors import InputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.report.conclusions import (
    POLICY,
    Contest,
    Number,
    TrustPolicy,
    Use,
    UseAnswer,
    percent,
    percent_text,
    value_text,
    with_range,
)
from langchain_judges.report.drift import Drift, drift, row_answers
from langchain_judges.report.evidence import costliest
from langchain_judges.report.judged_columns import Sample
from langchain_judges.report.matched_rows import JudgedRow, join, judges_of, rows_in
from langchain_judges.report.measurements import headline_key, measure
from langchain_judges.report.overview import next_step, overview
from langchain_judges.report.use_cases import answers_of
from langchain_judges.rows.checks import SIDES
from langchain_judges.verdict import Usage, add_usage, is_abstention, no_usage

if TYPE_CHECKING:
    from pandas import DataFrame


class WrittenReport(ABC):
    """What every report can be written as."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data."""

    @abstractmethod
    def shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        """Return what a page shows: the reports, and the tests between their judges."""

    def to_dataframe(self) -> DataFrame:
        """Return the numbers, one a row: judge, key, value, interval, n and how many failed."""
        with needs("trust", "A data frame"):
            from pandas import DataFrame

        return DataFrame(self._numbers())

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Return the numbers as CSV, and write them to a file if there is a path."""
        text, rows = StringIO(), self._numbers()
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows({key: inert_cell(cell) for key, cell in row.items()} for row in rows)
        return written(text.getvalue(), path)

    def to_xlsx(self, path: str | PathLike[str]) -> None:
        """Write a workbook: what the report answers, and the numbers.

        Raises:
            MissingExtraError: openpyxl is not installed.
        """
        from langchain_judges.runs.book import Book
        from langchain_judges.runs.sheets import rounded

        reports, contests = self.shown()
        answers = [(each.name, each.sentence) for each in reports]
        answers += [("comparison", each.sentence) for each in contests]
        numbers, book = self._numbers(), Book()
        book.add("answers", ("judge", "answer"), lambda: answers)
        cells = [list(map(rounded, row.values())) for row in numbers]
        book.add("numbers", list(numbers[0]), lambda: cells)
        book.save(Path(path))

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the whole report as JSON, and write it to a file if there is a path."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, default=str)
        return written(inert_json(text) + "\n", path)

    def _numbers(self) -> list[dict[str, object]]:
        return [
            {"judge": clean(report.name), **number.to_dict()}
            for report in self.shown()[0]
            for number in report.numbers.values()
        ]

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to a file if there is a path.

        The page holds everything it needs, loads nothing and runs no script.
        """
        from langchain_judges.report.page import render, view

        reports, contests = self.shown()
        views = [view(each) for each in reports]
        return written(render(views, contests, reports[0].sample.confidence), path)


class TrustReport(WrittenReport):
    """A judge's agreement with people, and its biases; created by `trust`.

    Attributes:
        name: What the judge is called.
        policy: What right enough means for each use.
        absent: Rows of the data that the run does not hold, judged or not; no number counts
            them.
        files: What commands call the rows and the verdicts.
        left_out: Which verdicts are of no row, or of an older text, in a sentence; no number
            counts them.
        numbers: Every number by its key, such as `agreement.label.wrong`.
        uses: For each use whether the judge may be trusted: `yes`, `no` or `not yet`, and why.
        details: What was measured, in one sentence.
        notes: Which rows some numbers cannot count, a sentence each.
        confusion: Rows by people's label, columns by the judge's answer.
        disagreements: The costliest first.
        n_disagreements: How many there are in all.
        provenance: Where the report comes from: date, versions, judge, data, command.
        drift: What changed since an earlier report.
        usage: What the verdicts cost.
        dollars: What they cost in dollars; None: the run was given no prices, or lacked one.
    """

    def __init__(
        self,
        sample: Sample,
        name: str,
        data_name: str,
        policy: TrustPolicy = POLICY,
    ) -> None:
        """Measure a sample of judged rows."""
        self.sample = sample
        self.policy = policy
        self.name = name
        self.data_name = data_name
        self.absent = 0
        self.files = ("ROWS.jsonl", "VERDICTS.jsonl")
        self.left_out = ""
        self.numbers: dict[str, Number] = {n.key: n for n in measure(sample)}
        self.uses: dict[Use, UseAnswer] = answers_of(sample, self.numbers, policy)
        self.details = _details(sample, self.numbers, self.headline)
        self.notes = sample.notes()
        self.confusion = metrics.confusion(sample.verdicts, sample.labels, _classes(sample))
        self.disagreements = costliest(sample)
        self.n_disagreements = len(sample.mistakes)
        self.provenance: dict[str, str] = {}
        self.drift: Drift | None = None
        # Verdicts of other runnables may lack parts of it.
        usages = (row.verdict.get("usage") or {} for row in sample.rows)
        self.usage: Usage = add_usage({**no_usage(), **usage} for usage in usages)
        self.dollars = _dollars(sample)

    @property
    def sentence(self) -> str:
        """The answers, one a line, and what else was counted."""
        lines = [f"{each.title}. {each.text}" for each in self.uses.values()]
        return "\n".join([*lines, self.details])

    @property
    def headline(self) -> Number:
        """The agreement that the sentence tells."""
        return self.numbers[headline_key(self.sample, self.numbers)]

    @property
    def wrong(self) -> Number:
        """How many single verdicts are wrong; by several criteria of the worst of them."""
        sample = self.sample
        names = sample.criteria if sample.by_criteria else []
        parts = [sample.by_criterion(name) for name in names] or [sample]
        rates = [metrics.rate(part.misses, **part.settings) for part in parts]
        worst = max(rates, key=lambda rate: math.inf if math.isnan(rate) else rate)
        return Number("single.wrong", "Single verdicts that are wrong", worst)

    def __getitem__(self, key: str) -> metrics.Result:
        """Return a number by its key."""
        return self.numbers[key].result

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data: sentence, numbers, confusion, disagreements, cost."""
        return {
            "judge": self.name,
            "data": self.data_name,
            "rows": len(self.sample.rows),
            "absent": self.absent,
            "left_out": self.left_out,
            "policy": asdict(self.policy),
            "overview": [line._asdict() for line in overview(self)],
            "next_step": next_step(self)._asdict(),
            "uses": [each.to_dict() for each in self.uses.values()],
            "sentence": self.sentence,
            "notes": self.notes,
            "numbers": [number.to_dict() for number in self.numbers.values()],
            "confusion": self.confusion.to_dict(),
            "n_disagreements": self.n_disagreements,
            "disagreements": [asdict(each) for each in self.disagreements],
            "usage": self.usage,
            "dollars": self.dollars,
            "provenance": self.provenance,
            "drift": None if self.drift is None else self.drift.to_dict(),
            "answers": row_answers(self.sample),
        }

    def shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        """Return this report alone."""
        return [self], ()


def _classes(sample: Sample) -> Sequence[str] | None:
    """Return the answers of pairs, a tie only if there is one; None: whatever there is."""
    if not sample.pairs:
        return None
    return SIDES if "tie" in [*sample.labels, *sample.answers] else SIDES[:2]


def _dollars(sample: Sample) -> float | None:
    """Return what the rows cost if the run knew the price of every reply."""
    costs = [row.row["cost"] for row in sample.rows if "cost" in row.row]
    complete = len(costs) == len(sample.rows) and None not in costs
    return sum(costs) if complete else None


def _details(sample: Sample, numbers: Mapping[str, Number], headline: Number) -> str:
    """Return what else was counted, in one sentence."""
    count = len(sample.rows)
    lost = sum(row.answer is None and not is_abstention(row.verdict) for row in sample.rows)
    parts = [
        _agreed(sample, headline),
        _flips(numbers),
        _leaning(numbers),
        _abstained(numbers, count),
        f"{lost:,} of {count:,} not judged",
    ]
    sentence = "; ".join(filter(None, parts))
    return f"{sentence[0].upper()}{sentence[1:]}."


def _agreed(sample: Sample, headline: Number) -> str:
    if math.isnan(headline.result):
        return "how far it agrees with people is unknown, because no judged row has a label"
    if sample.by_criteria:
        return f"least with {sample.whom} by {headline.title} {value_text(headline)}"
    if sample.rated:
        return f"rank correlation with {sample.whom} {with_range(headline)}"
    return f"agrees with {sample.whom} {with_range(headline, 0)} of the time"


def _abstained(numbers: Mapping[str, Number], rows: int) -> str:
    """Say how often the judge abstained, and whether people would have judged."""
    number = numbers.get("failures.abstained.labelled")
    if number is None:
        return ""
    count, labelled = number.result.n, round(number.result * number.result.n)
    return (
        f"says of {count:,} of {rows:,} that it cannot assess them; people labelled "
        f"{labelled:,} of these"
    )


def _flips(numbers: Mapping[str, Number]) -> str:
    flips = numbers.get("bias.flips")
    if flips is None:
        return ""
    if math.isnan(flips.result):
        return f"flips unknown: {flips.result.reason}"
    other, undecided = numbers.get("bias.flips.other"), numbers.get("bias.flips.undecided")
    if other is None or undecided is None:
        return f"flips on {value_text(flips, 0)}"
    return (
        f"when the texts swap places it names the other text on {value_text(other, 0)} of rows "
        f"and is undecided on {value_text(undecided, 0)}"
    )


def _leaning(numbers: Mapping[str, Number]) -> str:
    number = numbers.get("bias.first_slot_rate")
    interval = None if number is None else number.result.interval
    if interval is None or interval.covers(0.5):
        return ""
    return f"leans to the {'first' if interval.low > 0.5 else 'second'} slot"


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


class BarCheck(NamedTuple):
    """One bar.

    Attributes:
        value: What was measured, in words.
    """

    title: str
    value: str
    bar: str
    passed: bool


def gates(
    report: TrustReport, min_agreement: float | None = None, max_wrong: float | None = None
) -> list[BarCheck]:
    """Check a report against limits, which change nothing in it; an unknown number fails.

    Args:
        report: The report; with an earlier one beside it (`report.drift`) it must not be
            clearly worse.
        min_agreement: The lowest share of agreement, a failed judgment counted as wrong; of
            ratings the lowest rank correlation, by several criteria of the worst of them.
        max_wrong: The highest share of single verdicts that are wrong, counted as for their
            use; by several criteria of the worst of them.
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
    if max_wrong is not None:
        wrong = report.wrong
        bar = f"at most {percent_text(max_wrong)}"
        passed = wrong.result <= max_wrong
        checks.append(BarCheck("wrong verdicts", with_range(wrong), bar, passed))
    if report.drift is not None:
        change = Number("drift", "", report.drift.change, "points")
        title = f"change since {report.drift.since or 'the baseline'} (n = {change.result.n:,})"
        passed = not report.drift.worse
        checks.append(BarCheck(title, with_range(change), "not clearly worse", passed))
    return checks


def markdown(report: TrustReport, checks: Sequence[BarCheck]) -> str:
    """Return a summary of a report in Markdown: the table, the next step, the bars, and why."""
    lines = [f"### May I trust {_escaped(report.name)}?", "", report.policy.sentence, ""]
    lines += ["| | | found | rows |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(map(_escaped, line))} |" for line in overview(report)]
    step = next_step(report)
    lines += ["", f"**Next:** {_escaped(step.sentence)}", "", "```sh", step.command, "```", ""]
    if checks:
        lines += ["| | measured | bar | |", "|---|---|---|---|"]
        lines += [
            f"| {_escaped(check.title)} | {check.value} | {check.bar} "
            f"| {'passed' if check.passed else '**failed**'} |"
            for check in checks
        ]
        lines.append("")
    lines += ["<details><summary>Why</summary>", ""]
    lines += [f"- {_escaped(line)}" for line in report.sentence.splitlines()]
    lines += ["", "</details>"]
    if report.left_out or report.notes:
        lines += ["", _escaped(" ".join(filter(None, [report.left_out, *report.notes])))]
    return clean("\n".join(lines) + "\n")


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is; names are other people's."""
    for mark in ("\\", "|", "<", "`", "*", "_", "[", "]"):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return " ".join(text.split())


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
    policy: TrustPolicy
    confidence: float


def trust(  # noqa: PLR0913 - options
    verdicts: Iterable[Mapping[str, Any]],
    data: Iterable[Mapping[str, Any]] | None = None,
    *,
    name: str | None = None,
    data_name: str = "",
    policy: TrustPolicy = POLICY,
    baseline: Mapping[str, Any] | None = None,
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
        policy: What right enough means for each use; it stands at the top of the report.
        baseline: An earlier report, as `to_dict` or its JSON gives it: the same rows are then
            compared, answer by answer (`report.drift`).
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
    sample = Sample(joined.rows, confidence)
    _check_shared(sample)
    report = TrustReport(sample, label, data_name, policy)
    if table is not None:
        report.absent = len(table) - len({row.place for row in joined.rows})
    divided = sum(row.is_divided for row in joined.rows)
    said = f"Rows on which people differ, without a majority: {divided:,}." if divided else ""
    said += " Each of their answers counts in part." if divided else ""
    report.left_out = " ".join(filter(None, (joined.left_out, said)))
    report.provenance = _provenance(joined.rows[0])
    if baseline is not None:
        report.drift = drift(sample, report.uses, baseline)
    return report
