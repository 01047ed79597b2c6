"""`langchain-judges trust`: may this judge be trusted? Its verdicts against people's labels."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console

from langchain_judges.busy import busy
from langchain_judges.cli.flags import RowFlags, RunFlags, Without, unfolded
from langchain_judges.cli.judges import JudgeFlags, NamedJudge, named_judge
from langchain_judges.cli.messages import (
    FAILED,
    INTERRUPTED,
    SPENT,
    UNDER_BAR,
    error_console,
    refusals_as_exits,
    run_rows,
    tell_stopped,
    tell_undone,
)
from langchain_judges.cli.plan import Amount, tell_dry_run
from langchain_judges.cli.rows import (
    check_known_of,
    check_not_read,
    checked_rows,
    judge_rows,
    known_rows,
    named_columns,
)
from langchain_judges.errors import InputError, OptionError, OutputError
from langchain_judges.escaping import InertConsole
from langchain_judges.runs.rows import ResultRow, judged_row, outcome_of
from langchain_judges.runs.summary import cause_of

if TYPE_CHECKING:
    from langchain_judges.report import ComparisonReport, TrustReport


@dataclass(frozen=True)
class ReportFlags:
    """What a report must reach, and in which forms it is written."""

    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="<path>",
            help="What to write, repeatable: the page (.html), everything (.json), the numbers "
            "(.csv), a summary in Markdown (any other name); default: report.html.",
        ),
    ] = None
    records: Annotated[
        Path | None,
        typer.Option(help="Where verdicts are kept; default: OUT with .verdicts.jsonl."),
    ] = None
    min_agreement: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 under this agreement, such as 0.7."),
    ] = None
    max_flips: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 over this share of flips, such as 0.1."),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="An earlier report as JSON: exit with 4 if the judge is clearly "
            "worse on the same rows."
        ),
    ] = None

    @property
    def paths(self) -> list[Path]:
        """What is written."""
        return self.out or [Path("report.html")]

    @property
    def verdicts(self) -> Path:
        """Where the verdicts are kept."""
        return self.records or self.paths[0].with_suffix(".verdicts.jsonl")

    def check_paths(self, read: Sequence[Path]) -> None:
        """Check that what is written is no folder and nothing that is read.

        Args:
            read: The rows and verdicts.

        Raises:
            OptionError: It is.
        """
        for path in self.paths:
            if path.is_dir():
                raise OptionError(f"--out must name a file, and {path} is a folder")
        # Nothing but the next report may take the place of the last one.
        pages = [path for path in self.paths if path.suffix != ".json"]
        check_not_read([*read, self.baseline], [*pages, self.records])
        check_not_read(read, self.paths)

    def options(self) -> dict[str, Any]:
        """Return the options of a report in Python.

        Raises:
            InputError: The baseline cannot be read.
        """
        from langchain_judges.report import read_baseline

        return {
            **({} if self.min_agreement is None else {"max_wrong": 1 - self.min_agreement}),
            "baseline": read_baseline(self.baseline) if self.baseline else None,
        }

    def write(self, report: TrustReport | ComparisonReport, summary: str) -> None:
        """Write a report in the form of each path.

        Raises:
            OutputError: A file cannot be written.
        """

        def in_markdown(path: Path) -> object:
            return path.write_text(summary, encoding="utf-8", errors="replace")

        forms: dict[str, Callable[[Path], object]] = {
            ".html": report.to_html,
            ".json": report.to_json,
            ".csv": report.to_csv,
        }
        for path in self.paths:
            write = forms.get(path.suffix, in_markdown)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path)
            except OSError as exc:
                raise OutputError(f"{path} cannot be written: {exc.strerror}") from exc


def reports(
    runs: Mapping[str, Sequence[Mapping[str, object]]],
    table: Sequence[Mapping[str, object]] | None,
    *,
    baseline: Mapping[str, object] | None,
    **options: Any,
) -> TrustReport | ComparisonReport:
    """Create the report on some runs.

    Args:
        runs: The verdicts by judge.
        table: The labelled rows.
        baseline: An earlier report, for one judge.
        options: As `report.trust` and `report.compare` take them.
    """
    from langchain_judges.report import compare
    from langchain_judges.report import trust as report_on

    if len(runs) == 1:
        ((name, rows),) = runs.items()
        return report_on(rows, table, name=name, baseline=baseline, **options)
    if baseline is not None:
        raise OptionError(f"--baseline is for one judge, got {len(runs)}")
    return compare(runs, table, **options)


def _of_columns(
    path: Path, flags: VerdictFlags, table: RowFlags, options: dict[str, Any]
) -> Any:
    """Create the report on judges whose answers stand in columns of a table."""
    from langchain_judges.report import trust_columns
    from langchain_judges.rows.files import read_table

    judges = flags.judge or []
    if len(judges) > 1 and options.pop("baseline") is not None:
        raise OptionError(f"--baseline is for one judge, got {len(judges)}")
    people = [named_columns([each], ["label"]) or {} for each in table.column or []]
    labels = flags.label or [own["label"] for own in people] or ["label"]
    rows = list(islice(read_table(path), table.limit))
    return trust_columns(rows, judges, labels, data_name=path.name, **options)


def _tell(answer: TrustReport | ComparisonReport) -> None:
    """Print what a report answers."""
    console = InertConsole(highlight=False, soft_wrap=True)
    several = getattr(answer, "reports", None)
    for each in several or [answer]:
        name = f"{each.name}: " if several else ""
        console.print(f"{name}{each.sentence}", markup=False)
        if each.drift is not None:
            console.print(each.drift.sentence, markup=False)
        _say(each.left_out and f"{name}{each.left_out}")
    if several:
        console.print(answer.sentence, markup=False)


def summary_of(answer: TrustReport | ComparisonReport, flags: ReportFlags) -> tuple[str, bool]:
    """Say which bars were passed; return a summary, and whether all were."""
    from langchain_judges.report.report import gates, markdown

    reports = getattr(answer, "reports", None) or [answer]
    console, parts, passed = error_console(), [], True
    for report in reports:
        checks = gates(report, flags.min_agreement, flags.max_flips)
        parts.append(markdown(report, checks))
        for check in checks:
            passed = passed and check.passed
            word = "passed" if check.passed else "failed"
            style = "green" if check.passed else "red"
            text = f"{word}: {check.title} {check.value}; the bar is: {check.bar}"
            console.print(text, style=style, markup=False, highlight=False)
    return "\n".join(parts), passed


def _say(left_out: str) -> None:
    if left_out:
        error_console().print(left_out, style="yellow", markup=False)


class Verdicts(NamedTuple):
    """The verdicts that a report is about."""

    by_judge: Mapping[str, Sequence[ResultRow]]
    """Result rows."""
    budget_spent: bool = False


@dataclass(frozen=True)
class VerdictFlags(JudgeFlags):
    """A judge to run, or the verdicts of finished runs."""

    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Results of a finished run instead of a model; repeat it for several.",
        ),
    ] = None
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<column>",
            help="The column of any judge's answers instead of a model; repeat it for several.",
        ),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<column>",
            help="With --judge: the column of people's answers, default label; repeat it for "
            "several people.",
        ),
    ] = None


@unfolded
def trust(
    judge: Annotated[VerdictFlags, Without("spec", "model_set")],
    report: ReportFlags,
    table: RowFlags,
    run: RunFlags,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows with labels: a table (JSONL, CSV, Parquet), the folder of a known set, "
            "or its name. May be left out with --verdicts."
        ),
    ] = None,
) -> None:
    """Report whether a judge may be trusted; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent (the report then covers what was judged), 4 under a bar or worse than the
    baseline, 130 Ctrl-C.
    """
    errors, results = error_console(), judge.verdicts or []
    with refusals_as_exits(errors, judge.address):
        _check_use(data, judge, dry_run=run.dry_run)
        path = None if data is None else Path(data)
        report.check_paths([*([path] if path else []), *results])
        if report.baseline is not None:
            report.options()  # Read before anything is asked.
        if path is not None and judge.judge:
            if not _written(_of_columns(path, judge, table, report.options()), report):
                raise typer.Exit(UNDER_BAR)
            return
        named = named_judge(judge) if judge.model is not None else None
        runs = _read_runs(results)
        rows = None if path is None else _table(path, named, table, errors, runs)
        if run.dry_run and named is not None and rows is not None:
            tell_dry_run(named.outline(errors), Amount.of(rows), run.prices, errors)
            return
        if named is not None and rows is not None:
            judged = _judge_rows(named, rows, report.verdicts, run, errors)
        else:
            judged = Verdicts(runs)
        options = {
            "data_name": path.name if path else "",
            **report.options(),
        }
        with busy("Computing the report"):
            answer = reports(judged.by_judge, rows, **options)
        passed = _written(answer, report)
        if rows is not None:
            _tell_first(answer, rows, list(judged.by_judge.values()), report.paths[0])
    _leave(judged, errors, judge.address, strict=run.strict)
    if not passed:
        raise typer.Exit(UNDER_BAR)


def _tell_first(
    answer: TrustReport | ComparisonReport,
    rows: Sequence[Mapping[str, object]],
    runs: Sequence[Sequence[ResultRow]],
    beside: Path,
) -> None:
    """Write the rows to label first where more labels would settle an answer, and say so."""
    from langchain_judges.cli.doubts import FIRST, chosen, doubts, write_first

    reports = getattr(answer, "reports", None) or [answer]
    uses = [each for own in reports for each in own.uses.values() if each.word == "not yet"]
    if not uses:
        return
    number = max(each.labels or FIRST for each in uses)
    kinds = [
        "" if _is_labelled(row) else doubt
        for row, (_, doubt) in zip(rows, doubts(rows, runs)[1], strict=True)
    ]
    if places := chosen(kinds, number):
        path = beside.with_suffix(".label.jsonl")
        text = write_first(path, ({**rows[i], "doubt": kinds[i]} for i in places))
        error_console().print(text, markup=False)


def _written(answer: TrustReport | ComparisonReport, flags: ReportFlags) -> bool:
    """Print and write a report; return whether every bar was passed."""
    _tell(answer)
    summary, passed = summary_of(answer, flags)
    with busy("Drawing the report"):
        flags.write(answer, summary)
    return passed


def _check_use(data: str | None, judge: VerdictFlags, *, dry_run: bool) -> None:
    model = judge.model
    if judge.label and not judge.judge:
        raise OptionError("--label goes with --judge; else use --column label=COLUMN")
    if bool(model) + bool(judge.verdicts) + bool(judge.judge) != 1:
        raise OptionError(
            "name either --model, to judge, or --verdicts of a finished run, or a column by "
            "--judge"
        )
    if not judge.verdicts and data is None:
        raise OptionError("name the rows to judge: a table, or a known set")
    if model is None and dry_run:
        raise OptionError("--dry-run is for --model: else nothing is asked")


def _table(
    path: Path,
    judge: NamedJudge | None,
    flags: RowFlags,
    errors: Console,
    runs: Mapping[str, Sequence[ResultRow]],
) -> list[dict[str, object]]:
    """Return the rows with their labels, checked by what their judge will need of them."""
    if judge:
        file = judge_rows(path, judge.rows_like, flags)
    else:
        file = known_rows(path, check_known_of, flags, runs.values())
    table = list(checked_rows(file, errors, "row", held=True))
    if judge is not None:
        _check_labels(table)
    return table


def _is_labelled(row: Mapping[str, object]) -> bool:
    return any(
        row.get(name) not in (None, "", {}, []) for name in ("label", "labels", "human_votes")
    )


def _check_labels(table: Sequence[dict[str, object]]) -> None:
    if not any(map(_is_labelled, table)):
        raise InputError(
            "no row has a `label`, `labels` or `human_votes` to compare the judge with; name "
            "their column, as in --column label=COLUMN. There are "
            f"{', '.join(map(repr, table[0]))}. Nothing was asked."
        )


def _judge_rows(
    named: NamedJudge,
    table: Sequence[dict[str, object]],
    out: Path,
    run: RunFlags,
    errors: Console,
) -> Verdicts:
    """Judge the rows; the verdicts are kept in `out`."""
    from langchain_judges.methods.describe import metadata_of
    from langchain_judges.report.rows import judges_of

    judge = named.build()
    marks = metadata_of(judge)
    each = marks["calls"]
    errors.print(
        f"{len(table):,} rows by {marks['method']}: at most {len(table) * each:,} calls "
        f"({each} for each row), excluding retries. Verdicts are kept in {out}.",
        markup=False,
    )
    rows: list[ResultRow] = []
    options = {"records": out, **run.options()}
    summary, interrupted = asyncio.run(run_rows(judge, table, options, False, rows.append))
    if interrupted:
        tell_stopped(errors)
        raise typer.Exit(INTERRUPTED)
    over_budget = summary.not_judged["over_budget"]
    if over_budget == summary.rows:
        errors.print("No row was asked: the budget is spent.", style="yellow")
        raise typer.Exit(SPENT)
    name = next(iter(judges_of(rows)))
    return Verdicts({name: rows}, budget_spent=over_budget > 0)


def _leave(judged: Verdicts, errors: Console, address: str, *, strict: bool) -> None:
    """Say what was not judged, and leave with its code where that is not 0."""
    rows = [row for run in judged.by_judge.values() for row in run]
    failures = [row for row in rows if not judged_row(row)]
    causes = Counter(cause_of(outcome_of(row)) for row in failures)
    tell_undone(len(failures), len(rows), causes, errors, address)
    if judged.budget_spent:
        raise typer.Exit(SPENT)
    anything_failed = any(row["verdict"].get("failures") for row in rows)
    if len(failures) == len(rows) or (strict and anything_failed):
        raise typer.Exit(FAILED)


def _read_runs(paths: Sequence[Path]) -> dict[str, Sequence[ResultRow]]:
    """Read the results of finished runs; two judges of one name are distinguished by file."""
    from langchain_judges.report import read_verdicts

    runs: dict[str, Sequence[ResultRow]] = {}
    for path in paths:
        for name, rows in read_verdicts(path).items():
            own = f"{name} ({path.name})" if name in runs else name
            if own in runs:
                raise OptionError(f"the verdicts of {own} are named twice")
            runs[own] = rows
    return runs
