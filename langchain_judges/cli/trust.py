"""`langchain-judges trust`: may this judge be trusted? Its verdicts against people's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.busy import busy
from langchain_judges.cli.flags import BoundedRunFlags, RowFlags, unfolded
from langchain_judges.cli.judges import JudgeFlags, NamedJudge, named_judge, tell_plan
from langchain_judges.cli.label import is_labelled, write_first_of
from langchain_judges.cli.messages import (
    FAILED,
    INTERRUPTED,
    SPENT,
    UNDER_BAR,
    refusals_as_exits,
    run_rows,
    say,
    tell_stopped,
    tell_undone,
    warn,
)
from langchain_judges.cli.rows import (
    RowFile,
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    judge_rows,
    known_rows,
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
            check_file("--out", path, made=True)
        # Nothing but the next report may take the place of the last one.
        pages = [path for path in self.paths if path.suffix != ".json"]
        check_not_read([*read, self.baseline], [*pages, self.records])
        check_not_read(read, self.paths)

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


def _of_columns(
    path: Path, flags: VerdictFlags, table: RowFlags, options: dict[str, Any]
) -> Any:
    """Create the report on judges whose answers stand in columns of a table."""
    from langchain_judges.report import trust_columns
    from langchain_judges.rows.files import read_table

    rows = list(islice(read_table(path), table.limit))
    return trust_columns(rows, flags.judge or [], flags.label or ["label"], **options)


def _of_runs(
    runs: Mapping[str, Sequence[ResultRow]],
    table: Sequence[Mapping[str, object]] | None,
    options: dict[str, Any],
) -> TrustReport | ComparisonReport:
    """Create the report on some runs, by the name of their judge."""
    from langchain_judges.report import compare
    from langchain_judges.report import trust as report_on

    if len(runs) == 1:
        ((name, rows),) = runs.items()
        return report_on(rows, table, name=name, **options)
    return compare(runs, table, **options)


def _tell(answer: TrustReport | ComparisonReport) -> None:
    """Print what a report answers."""
    console = InertConsole(highlight=False, soft_wrap=True)
    several = getattr(answer, "reports", None)
    for each in several or [answer]:
        name = f"{each.name}: " if several else ""
        console.print(f"{name}{each.sentence}", markup=False)
        if each.drift is not None:
            console.print(each.drift.sentence, markup=False)
        if each.left_out:
            warn(f"{name}{each.left_out}")
    if several:
        console.print(answer.sentence, markup=False)


def _summary(
    answer: TrustReport | ComparisonReport, min_agreement: float | None
) -> tuple[str, bool]:
    """Say which bars were passed; return a summary, and whether all were."""
    from langchain_judges.report.report import gates, markdown

    parts, passed = [], True
    for report in getattr(answer, "reports", None) or [answer]:
        checks = gates(report, min_agreement)
        parts.append(markdown(report, checks))
        for check in checks:
            passed = passed and check.passed
            word, style = ("passed", "green") if check.passed else ("failed", "red")
            say(f"{word}: {check.title} {check.value}; the bar is: {check.bar}", style)
    return "\n".join(parts), passed


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
    judge: VerdictFlags,
    report: ReportFlags,
    table: RowFlags,
    run: BoundedRunFlags,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows as judge takes them, with label, labels or human_votes: a table (JSONL, "
            "CSV, Parquet), or a known set. May be left out with --verdicts."
        ),
    ] = None,
) -> None:
    """Report whether a judge may be trusted; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent (the report then covers what was judged), 4 under a bar or worse than the
    baseline, 130 Ctrl-C.
    """
    with refusals_as_exits():
        _check_use(data, judge, table, dry_run=run.dry_run)
        path, results = Path(data) if data else None, judge.verdicts or []
        report.check_paths([*([path] if path else []), *results])
        options = _options(report, path, len(judge.judge or results))
        rows: list[dict[str, object]] | None = None
        runs: dict[str, Sequence[ResultRow]] = {}
        spent = False
        if path and judge.judge:
            answer = _of_columns(path, judge, table, options)
        else:
            named = None if results else named_judge(judge)
            runs = _read_runs(results)
            if path:
                file = _labelled(path, named, table, runs)
                if named:
                    tell_plan(named.outline(), file.number, file.size, run)
                if run.dry_run:
                    return
                rows = list(file)
            if named and rows:
                runs, spent = _judge_rows(named, rows, report.verdicts, run)
            with busy("Computing the report"):
                answer = _of_runs(runs, rows, options)
        _tell(answer)
        summary, passed = _summary(answer, report.min_agreement)
        with busy("Drawing the report"):
            report.write(answer, summary)
        if rows is not None:
            _tell_first(answer, rows, list(runs.values()), report.paths[0])
    if runs:
        _leave(runs, spent=spent, strict=run.strict)
    if not passed:
        raise typer.Exit(UNDER_BAR)


def _tell_first(
    answer: TrustReport | ComparisonReport,
    rows: Sequence[Mapping[str, object]],
    runs: Sequence[Sequence[ResultRow]],
    beside: Path,
) -> None:
    """Write the rows to label first where more labels would settle an answer, and say so."""
    reports = getattr(answer, "reports", None) or [answer]
    uses = [each for own in reports for each in own.uses.values() if each.word == "not yet"]
    if uses:
        write_first_of(rows, runs, max(each.labels or 0 for each in uses), beside)


def _options(flags: ReportFlags, data: Path | None, judges: int) -> dict[str, Any]:
    """Return the options of a report in Python.

    Raises:
        OptionError: A baseline is named for several judges.
        InputError: The baseline cannot be read.
    """
    # Loaded here: help needs nothing of it.
    from langchain_judges.report import read_baseline

    options: dict[str, Any] = {"data_name": data.name if data else ""}
    if flags.min_agreement is not None:
        options["max_wrong"] = 1 - flags.min_agreement
    if flags.baseline is not None:
        if judges > 1:
            raise OptionError(f"--baseline is for one judge, got {judges}")
        options["baseline"] = read_baseline(flags.baseline)
    return options


def _check_use(
    data: str | None, judge: VerdictFlags, table: RowFlags, *, dry_run: bool
) -> None:
    asks = bool(judge.model or judge.spec)
    if judge.judge and table.column:
        raise OptionError("--column goes with a model or --verdicts; else use --label COLUMN")
    if judge.label and not judge.judge:
        raise OptionError("--label goes with --judge; else use --column label=COLUMN")
    if asks + bool(judge.verdicts) + bool(judge.judge) != 1:
        raise OptionError(
            "name either --model, to judge, or --verdicts of a finished run, or a column by "
            "--judge"
        )
    if not judge.verdicts and data is None:
        raise OptionError("name the rows to judge: a table, or a known set")
    if not asks and dry_run:
        raise OptionError("--dry-run is for --model: else nothing is asked")


def _labelled(
    path: Path,
    judge: NamedJudge | None,
    flags: RowFlags,
    runs: Mapping[str, Sequence[ResultRow]],
) -> RowFile:
    """Return the rows with their labels, checked by what their judge will need of them."""
    if judge is None:
        return checked_rows(known_rows(path, check_known_of, flags, runs.values()), "row")
    file = checked_rows(judge_rows(path, judge.rows_like, flags), "row")
    if not any(map(is_labelled, file)):
        raise InputError(
            "no row has a `label`, `labels` or `human_votes` to compare the judge with; name "
            "their column, as in --column label=COLUMN. There are "
            f"{', '.join(map(repr, next(iter(file))))}. Nothing was asked."
        )
    return file


def _judge_rows(
    named: NamedJudge, table: Sequence[dict[str, object]], out: Path, run: BoundedRunFlags
) -> tuple[dict[str, Sequence[ResultRow]], bool]:
    """Judge the rows, keep the verdicts in `out`; return them and whether a budget is spent."""
    from langchain_judges.report.rows import judges_of

    judge = named.build()
    say(f"Verdicts are kept in {out}.")
    rows: list[ResultRow] = []
    options = {"records": out, **run.options()}
    summary, interrupted = run_rows(judge, table, options, False, rows.append)
    if interrupted:
        tell_stopped()
        raise typer.Exit(INTERRUPTED)
    over_budget = summary.not_judged["over_budget"]
    if over_budget == summary.rows:
        warn("No row was asked: the budget is spent.")
        raise typer.Exit(SPENT)
    name = next(iter(judges_of(rows)))
    return {name: rows}, over_budget > 0


def _leave(runs: Mapping[str, Sequence[ResultRow]], *, spent: bool, strict: bool) -> None:
    """Say what was not judged, and leave with its code where that is not 0."""
    rows = [row for run in runs.values() for row in run]
    failures = [row for row in rows if not judged_row(row)]
    causes = Counter(cause_of(outcome_of(row)) for row in failures)
    tell_undone(len(failures), len(rows), causes)
    if spent:
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
