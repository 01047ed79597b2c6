"""May this judge be trusted? Reports on one judge or several, and their formats."""

from __future__ import annotations

import csv
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges import metrics
from langchain_judges.errors import InputError, needs
from langchain_judges.escaping import clean, inert_cell, inert_json
from langchain_judges.report import answers, evidence, joined_rows
from langchain_judges.report.answers import Number, TrustPolicy
from langchain_judges.report.compared_runs import Contest, contests, drift, row_answers
from langchain_judges.report.overview import BarCheck, Measured, next_step, overview, page
from langchain_judges.report.sample import Sample
from langchain_judges.rows import checks, files
from langchain_judges.rows.columns import Columns
from langchain_judges.runs import sheets, sources
from langchain_judges.runs.book import Book
from langchain_judges.runs.summary import Percent
from langchain_judges.verdict import Usage, add_usage, no_usage

if TYPE_CHECKING:
    from pandas import DataFrame

    from langchain_judges.runs.run_state import Rows


class WrittenReport(ABC):
    """Formats in which every report can be written."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Plain JSON data."""

    @abstractmethod
    def shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        """Contents of a page: the reports, and the tests between their judges."""

    def to_dataframe(self) -> DataFrame:
        """The numbers, one a row: judge, key, value, interval, n and how many failed."""
        with needs("trust", "A data frame"):
            from pandas import DataFrame

        return DataFrame(self._numbers())

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The numbers as CSV, written to a file too if there is a path."""
        text, rows = StringIO(), self._numbers()
        table = csv.writer(text, lineterminator="\n")
        table.writerows([[*rows[0]], *(map(inert_cell, row.values()) for row in rows)])
        return written(text.getvalue(), path)

    def to_xlsx(self, path: str | PathLike[str]) -> None:
        """Write a workbook: what the report answers, and the numbers.

        Raises:
            MissingExtraError: openpyxl is not installed.
        """
        reports, contests = self.shown()
        said = [(each.name, use.sentence) for each in reports for use in each.uses.values()]
        said += [("comparison", each.sentence) for each in contests]
        numbers, book = self._numbers(), Book()
        book.add("answers", ("judge", "answer"), lambda: said)
        cells = []
        for row in numbers:
            own, is_share = map(sheets.rounded_cell, row.values()), row["unit"] != "number"
            cells.append([Percent(v) if is_share and isinstance(v, float) else v for v in own])
        book.add("numbers", list(numbers[0]), lambda: cells)
        book.save(Path(path))

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The whole report as JSON, written to a file too if there is a path."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, default=str)
        return written(inert_json(text) + "\n", path)

    def _numbers(self) -> list[dict[str, object]]:
        both = ((clean(r.name), number) for r in self.shown()[0] for number in r.numbers.values())
        return [{"judge": name, **number.to_dict()} for name, number in both]

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """The report as one HTML page, written to a file too if there is a path.

        The page holds everything it needs, loads nothing and runs no script.
        """
        return written(page(*self.shown()), path)


class TrustReport(Measured, WrittenReport):
    """A judge's agreement with people, and its biases; created by `trust`.

    Attributes:
        data_name: The name of the data.
        absent: Rows of the data that the run does not hold, judged or not; no number counts
            them.
        confusion: Rows by people's label, columns by the judge's answer.
        disagreements: The costliest first.
        provenance: The report's origin: date, versions, judge, data, command.
        usage: What the verdicts cost.
        dollars: What they cost in dollars; None: the run was given no prices, or lacked one.
    """

    def __init__(self, sample: Sample, name: str, policy: TrustPolicy = answers.POLICY) -> None:
        """Measure a sample of judged rows."""
        super().__init__(sample, name, policy)
        self.data_name, self.absent = "", 0
        # Of pairs a tie stands in it only if there is one.
        ties = "tie" in [*sample.labels, *sample.answers]
        sides = checks.SIDES[: 2 + ties] if sample.pairs else None
        self.confusion = metrics.confusion(sample.verdicts, sample.labels, sides)
        self.disagreements = evidence.costliest(sample)
        self.provenance: dict[str, str] = {}
        # Verdicts of other runnables may lack parts of it.
        usages = (row.verdict.get("usage") or {} for row in sample.rows)
        self.usage: Usage = add_usage({**no_usage(), **usage} for usage in usages)
        costs: list[Any] = [row.row.get("cost") for row in sample.rows]
        self.dollars: float | None = None if None in costs else sum(costs)

    @property
    def n_disagreements(self) -> int:
        """Number of all disagreements."""
        return len(self.sample.mistakes)

    @property
    def sentence(self) -> str:
        """The answers, one a line, and what else the table says."""
        lines = [each.sentence for each in self.uses.values()]
        counts = [f"{line.title} {line.found}" for line in overview(self) if not line.answer]
        return "\n".join([*lines, f"{'; '.join(counts)}."])

    @property
    def wrong(self) -> Number:
        """Share of wrong single verdicts; with several criteria, of the worst one."""
        rates = [metrics.rate(part.misses, **part.settings) for part in self.sample.parts.values()]
        worst = max(rates, key=lambda rate: math.inf if math.isnan(rate) else rate)
        return Number("single.wrong", "Single verdicts that are wrong", worst)

    def __getitem__(self, key: str) -> metrics.Result:
        """A number by its key."""
        return self.numbers[key].result

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data: sentence, numbers, confusion, disagreements, cost."""
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
        """This report alone."""
        return [self], ()


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Make a text inert, write it to a file if there is one, and return it."""
    text = clean(text)
    if path is not None:
        files.write_text(path, text)
    return text


def _provenance(row: joined_rows.JudgedRow) -> dict[str, str]:
    """Date, package version, and what a row says of its judge."""
    judge = joined_rows.judge_in(row.row)
    parts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "langchain-judges": version("langchain-judges"),
        "method": judge.get("method"),
        "model": judge.get("model"),
        "judge settings": judge.get("mark"),
    }
    return {name: str(text) for name, text in parts.items() if text}


class ComparisonReport(WrittenReport):
    """Reports on several judges, and tests of each against each; made by `compare`.

    Attributes:
        reports: One `TrustReport` for each judge, the one that is right most often first.
        contests: The tests, pair by pair.
    """

    def __init__(self, reports: Sequence[TrustReport]) -> None:
        """Test every judge against every other."""
        self.reports = sorted(reports, key=_rank)
        self.contests = contests({report.name: report.sample for report in self.reports})

    def __getitem__(self, name: str) -> TrustReport:
        """The report on a judge by its name."""
        return next(report for report in self.reports if report.name == name)

    @property
    def sentence(self) -> str:
        """A line for each pair of judges: which one is right more often."""
        return "\n".join(contest.sentence for contest in self.contests)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "sentence": self.sentence,
            "judges": [report.to_dict() for report in self.reports],
            "contests": [contest.to_dict() for contest in self.contests],
        }

    def shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        """The reports, and the tests between their judges."""
        return self.reports, self.contests


def _rank(report: TrustReport) -> float:
    rights = [right for right in report.sample.rights if right is not None]
    return -sum(rights) / len(rights) if rights else math.inf


def gates(
    report: TrustReport, min_agreement: float | None = None, max_wrong: float | None = None
) -> list[BarCheck]:
    """Check a report against limits; a number that is unknown fails its limit.

    Args:
        report: The report; with an earlier one to compare (`report.drift`) it must not be
            clearly worse.
        min_agreement: The lowest share of agreement, a failed judgment counted as wrong; for
            ratings the lowest rank correlation, with several criteria that of the worst one.
        max_wrong: The highest share of single verdicts that are wrong, counted as in the
            answer for single verdicts; with several criteria that of the worst one.

    Returns:
        A check for each limit, with what was found and whether it passed.
    """
    found: list[tuple[str, Number, str, bool]] = []
    if min_agreement is not None:
        headline = report.headline
        rated = headline.unit == "number"
        plain = "rank correlation" if rated else "agreement"
        title = headline.title if report.sample.by_criteria else plain
        bar = f"at least {min_agreement if rated else f'{answers.percent(min_agreement)} %'}"
        # NaN, an unknown number, passes no limit.
        found.append((title, headline, bar, headline.result >= min_agreement))
    if max_wrong is not None:
        wrong, bar = report.wrong, f"at most {answers.percent_text(max_wrong)}"
        found.append(("wrong verdicts", wrong, bar, wrong.result <= max_wrong))
    if report.drift is not None:
        change = Number("drift", "", report.drift.change, "points")
        title = f"change since {report.drift.since or 'the baseline'} (n = {change.result.n:,})"
        found.append((title, change, "not clearly worse", not report.drift.worse))
    return [BarCheck(what, answers.with_range(number), bar, ok) for what, number, bar, ok in found]


def trust(  # noqa: PLR0913 - options
    verdicts: Iterable[Mapping[str, Any]],
    data: Rows | None = None,
    *,
    columns: Columns | None = None,
    name: str | None = None,
    data_name: str = "",
    policy: TrustPolicy = answers.POLICY,
    baseline: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    unread: int = 0,
) -> TrustReport:
    """Report how far a judge can be trusted, from its verdicts on rows that people labelled.

    Rows with a `label` give agreement, rows with several `human_votes` also how often people
    agree among themselves: the judge is then compared with each vote, as people are with each
    other. A `label` beside votes is people's answer; where each only repeats the majority, the
    votes are. Rows with a `group` make intervals count groups, not rows. A row that was judged
    several times counts once, by its last verdict.

    Args:
        verdicts: Rows of a run, as `judge_many` gives them, of one judge
            of pairs or of single texts.
        data: The rows that were judged, with texts and labels, in any form that `judge_many`
            takes; they are matched by the texts where the run keeps hashes of them, else by
            `id`, else by their place. Verdicts on an older text, and on rows that are not
            there, are left out and counted. None: what the run kept of the rows, without
            their texts.
        columns: Columns of the data by field, as of `judge_many`.
        name: The judge's name; by default its model and method.
        data_name: The name of the data.
        policy: What is good enough for each use; printed at the top of the report.
        baseline: An earlier report, as `to_dict` or its JSON gives it: the same rows are then
            compared, answer by answer (`report.drift`).
        confidence: The level of the intervals.
        unread: How many other rows are unusable, such as by their label; the report says so.

    Raises:
        InputError: There are no verdicts, those of several judges, or labels of pairs other
            than A, B and tie; or no verdict belongs to a row of the data.
    """
    rows = joined_rows.rows_in(verdicts, "verdicts")
    judges = joined_rows.judges_of(rows)
    if len(judges) > 1:
        raise InputError(answers.REFUSED["judges"].format(got=sorted(judges)[:5]))
    joined = joined_rows.join(rows, data, columns)
    counted, problems = joined.usable()
    sample = Sample(counted, confidence, unread + len(problems))
    first = [f"First: {each}." for each in problems[:1]]
    notes = [sample.unshared, joined.left_out, sample.note, *first]
    report = TrustReport(sample, next(iter(judges)) if name is None else name, policy)
    report.data_name, report.absent = data_name, joined.absent
    report.left_out = " ".join(filter(None, notes))
    report.provenance = _provenance(joined.rows[0])
    if baseline is not None:
        report.drift = drift(sample, report.uses, baseline)
    return report


def compare(
    runs: Mapping[str, Iterable[Mapping[str, Any]]], data: Rows | None = None, **options: Any
) -> ComparisonReport:
    """Report on several judges side by side, with paired tests on the rows they share.

    Two judges are compared by the paired difference of their agreement, with the p-value that
    belongs to its interval, adjusted by Holm for all pairs of judges.

    Args:
        runs: The rows of each judge, by its name; see `trust`.
        data: The rows that were judged.
        options: `columns`, `data_name`, `policy`, `confidence`, `unread`, as for `trust`.

    Raises:
        InputError: As `trust`, or judges of pairs and of single texts are mixed.
    """
    source = None if data is None else sources.source_of(data)
    # Each judge reads them anew.
    table = source and replace(source, records=[*source.records])
    reports = [trust(rows, table, name=name, **options) for name, rows in runs.items()]
    if not reports:
        raise InputError("there is no judge to report on")
    if len({report.sample.pairs for report in reports}) > 1:
        raise InputError("judges of pairs and of single texts cannot be compared")
    return ComparisonReport(reports)


def report_on(
    runs: Mapping[str, Iterable[Mapping[str, Any]]],
    data: Iterable[Mapping[str, Any]] | None,
    **options: Any,
) -> TrustReport | ComparisonReport:
    """Report on the judge of the only run, or on several side by side."""
    if len(runs) > 1:
        return compare(runs, data, **options)
    ((name, verdicts),) = runs.items()
    return trust(verdicts, data, **{"name": name, **options})
