"""`langchain-judges trust`: may this judge be trusted? Its verdicts against people's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges import escaping, progress, verdict
from langchain_judges import report as reports
from langchain_judges.cli import label, messages, row_files
from langchain_judges.cli.flags import Outs, Paths, RowFlags, RunFlags, unfolded
from langchain_judges.cli.judge_flags import JudgeFlags, judge_spec, tell_plan
from langchain_judges.cli.row_files import RowFile, check_known_of, known_rows
from langchain_judges.errors import InputError, OptionError
from langchain_judges.report.labelling import FIRST, doubts, is_labelled, row_identity
from langchain_judges.rows import checks, texts
from langchain_judges.rows.columns import columns_in, mapped
from langchain_judges.rows.files import read_table, writing
from langchain_judges.runs.run_row import ResultRow, judged_row, outcome_of
from langchain_judges.runs.summary import cause_of
from langchain_judges.runs.table_form import TableForm

if TYPE_CHECKING:
    from langchain_judges.report import ComparisonReport, TrustReport
    from langchain_judges.report.overview import FileNames

# The verdicts of each judge, by its name.
Runs = dict[str, Sequence[ResultRow]]
_Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ReportFlags:
    """Limits of a report, and its output.

    Attributes:
        out: What to write, repeatable: the page (.html), everything (.json), the numbers
            (.csv, .xlsx), a summary in Markdown (.md, .txt, no ending); default: report.html.
        records: Where verdicts are kept; default: OUT with .verdicts.jsonl.
        min_agreement: Exit with 4 below this agreement, such as 0.7; the report does not
            change.
        max_wrong: Exit with 4 above this share of wrong single verdicts, such as 0.2; the
            report does not change.
        baseline: An earlier report as JSON: exit with 4 if the judge is clearly worse on the
            same rows.
    """

    out: Outs = None
    records: Path | None = None
    min_agreement: Annotated[float | None, typer.Option(min=0, max=1)] = None
    max_wrong: Annotated[float | None, typer.Option(min=0, max=1)] = None
    baseline: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """Files to write."""
        return self.out or [Path("report.html")]

    def check_paths(self, read: Sequence[Path]) -> None:
        """Check that what is written is no folder and nothing that is read.

        Args:
            read: The rows and verdicts.

        Raises:
            OptionError: It is.
        """
        for path in self.paths:
            row_files.check_file("--out", path, _FORMS, made=True)
        # Nothing but the next report may take the place of the last one.
        pages = [path for path in self.paths if path.suffix != ".json"]
        row_files.check_not_read([*read, self.baseline], [*pages, self.records])
        row_files.check_not_read(read, self.paths)

    def write(self, report: TrustReport | ComparisonReport, summary: str) -> None:
        """Write a report in the form of each path.

        Raises:
            OutputError: A file cannot be written.
        """
        from langchain_judges.report.report import written

        for path in self.paths:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                # `to_html`, `to_json` …; a summary has other endings, or none.
                getattr(report, f"to_{path.suffix[1:]}", partial(written, summary))(path)


# The summary of a step on GitHub has no ending.
_FORMS = (".html", ".json", ".csv", ".xlsx", ".md", ".txt", "")


@dataclass(frozen=True)
class VerdictFlags(JudgeFlags):
    """A judge to run, or the verdicts of finished runs.

    Attributes:
        verdicts: Results of a finished run, in place of a model; repeatable.
        judge: The column of any judge's answers, in place of a model; repeatable. Two columns
            with a comma: its answers with A and with B shown first. People's answers are in
            label, or as in --column label=ann; repeat it for several people; a file of labels
            then counts as another person.
        order_rule: How the answers in both orders are combined: strict, lenient or score_mean.
    """

    verdicts: Paths = None
    judge: Annotated[list[str] | None, typer.Option(metavar="<column>")] = None
    order_rule: str = "strict"


@unfolded
def trust(
    judge: VerdictFlags,
    report: ReportFlags,
    table: RowFlags,
    run: RunFlags,
    data: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    """Report how far to trust a judge; the same command resumes where it stopped.

    With several methods, or several --verdicts, it says which judge agrees best with people.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused, 3
    budget spent (the report then covers what was judged), 4 a limit missed or worse than the
    baseline, 130 Ctrl-C.

    Args:
        data: Rows as judge takes them, with label, labels or human_votes: a table (JSONL, CSV,
            Parquet), or a known set; then files that label wrote. May be left out with --verdicts.

    Examples:
        langchain-judges trust rows.csv --model openai:gpt-5-mini --column label=best
        langchain-judges trust pairs.csv --model local --method relative,bsm
    """
    results, paths = judge.verdicts or [], [Path(each) for each in data or ()]
    path, labels = (paths[0] if paths else None), paths[1:]
    _check_use(judge, has_rows=path is not None, dry_run=run.dry_run)
    report.check_paths([*paths, *results])
    options = _options(report, path, len(judge.judge or results))
    records = report.records or report.paths[0].with_suffix(".verdicts.jsonl")
    rows: list[dict[str, Any]] | None = None
    runs, spent = _read_runs(results), False
    if path and judge.judge:
        people, texts = _people(table.column)
        fields = TableForm(row_files.named_columns(texts)).columns or {}
        read = [*islice(read_table(path), table.max_rows)]
        # A record of JSON may lack a column that others have.
        blank = dict.fromkeys({*columns_in(fields)} & {name for each in read for name in each})
        read = [blank | each for each in read]
        columns = [_column(name, read) for name in judge.judge]
        # A column of answers may be a field too; one of texts has the field's name alone.
        kept = blank.keys() & {*people, *chain(*columns)}
        cells = [{n: each[n] for n in kept} | mapped(each, fields, None, {}) for each in read]
        options["order_rule"] = judge.order_rule
        people = people or ["label"]
        if labels:
            cells = _relabelled(cells, paths, replace(table, column=texts), people)
        answer = reports.trust_columns(cells, columns, people, **options)
    else:
        if path and results:
            reader = partial(known_rows, check=check_known_of, runs=runs.values())
            rows, options["unread"] = _read_rows(paths, table, reader)
        elif path:
            specs = _specs(row_files.with_method(judge, path, table))
            rows, options["unread"] = _labelled(paths, specs, table, run)
            messages.tell_kept(records)
            if run.dry_run:
                return
            for spec in specs:
                own, is_spent = _judged(spec, rows, records, run)
                runs, spent = runs | own, spent or is_spent
        with progress.busy("Computing the report"):
            from langchain_judges.report.report import report_on

            answer = report_on(runs, rows, **options)
    for each in answer.shown()[0]:
        each.files = _named(paths, judge, table, results[0] if results else records)
    text, passed = _tell(answer, report)
    with progress.busy("Drawing the report"):
        report.write(answer, text)
    messages.say(f"Written: {', '.join(map(str, report.paths))}.")
    if rows is not None:
        _tell_first(answer, rows, list(runs.values()), report.paths[0])
    _leave(runs, spent=spent, strict=run.strict)
    if not passed:
        raise typer.Exit(messages.UNDER_BAR)


def _column(name: str, cells: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A judge's column, or its two for the two orders, which a comma sets apart."""
    first, comma, second = name.partition(",")
    whole = not comma or any(name in row for row in cells)
    return (name,) if whole else (first.strip(), second.strip())


def _people(columns: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The columns of people's answers as their table calls them, and the flags of others.

    Votes beside a label are among the others.
    """
    fields = {each: each.partition("=")[0].strip() for each in columns or ()}
    people = "label" if "label" in fields.values() else "human_votes"
    own = [each.partition("=")[2].strip() for each in fields if fields[each] == people]
    return own, [each for each in fields if fields[each] != people]


def _named(
    paths: Sequence[Path], judge: VerdictFlags, table: RowFlags, verdicts: Path
) -> FileNames:
    """Names of the rows, and of the verdicts or the judge's columns, in commands."""
    from langchain_judges.report.overview import FileNames

    named, own = table.column or [], judge.judge or []
    people, others = _people(named)
    if not own and people[1:]:
        named = [*others, *(f"human_votes={name}" for name in people)]
    return FileNames(
        [str(path) for path in paths or [verdicts]],
        "" if own else str(verdicts),
        [word for name in named for word in ("--column", name)],
        [word for name in own for word in ("--judge", name)],
    )


def _read_rows(
    paths: Sequence[Path], flags: RowFlags, reader: Callable[[Path, RowFlags], RowFile]
) -> tuple[_Rows, int]:
    """The rows of a table, and those that `label` wrote, whose fields have their own names.

    Returns:
        The rows, and how many of the table are bad.
    """
    files = _row_files(paths, flags, reader)
    rows, *labels = (list(row_files.checked_rows(file, "row")) for file in files)
    return _with_labels(rows, list(chain(*labels))), len(files[0].bad)


def _row_files(
    paths: Sequence[Path], flags: RowFlags, reader: Callable[[Path, RowFlags], RowFile]
) -> list[RowFile]:
    plain = replace(flags, column=None)
    return [reader(path, plain if place else flags) for place, path in enumerate(paths)]


def _relabelled(cells: _Rows, paths: list[Path], flags: RowFlags, people: list[str]) -> _Rows:
    """The cells of a table with labels of files; `people` gains a column if it has several.

    Of one column a label takes the place of its cell; beside several it is one more person's.
    """
    table, *labels = _row_files(paths, flags, partial(known_rows, check=check_known_of))
    known = table.at(range(len(cells)))
    rows = [known.get(place, {}) for place in range(len(cells))]
    if several := len(people) > 1:
        people.append(f"label in {paths[1]}")
    relabelled = []
    for cell, row, new in zip_longest(cells, rows, _with_labels(rows, list(chain(*labels)))):
        changed = {}
        if new is not row:
            *_, said = new.get("answers", [new]) if several else [new]
            changed = {people[-1]: said.get("label")}
        relabelled.append({**(cell or new), **changed})
    return relabelled


def _with_labels(rows: _Rows, labels: _Rows) -> _Rows:
    """The rows of a table as people labelled them since; those of other tables come last."""
    labelled = {row_identity(row): row for row in labels}
    known = [labelled.pop(row_identity(row), row) for row in rows] if labels else rows
    if labelled:
        number = f"{len(labelled):,}"
        messages.warn(f"Further rows, not in the table by id and texts: {number} labelled ones.")
    return [*known, *labelled.values()]


def _check_use(judge: VerdictFlags, *, has_rows: bool, dry_run: bool) -> None:
    asks = bool(judge.model or judge.spec)
    if asks + bool(judge.verdicts) + bool(judge.judge) != 1:
        raise OptionError("name either --model, --verdicts of a finished run, or --judge COLUMN")
    if not judge.verdicts and not has_rows:
        raise OptionError("name the rows to judge: a table, or a known set")
    if not asks and dry_run:
        raise OptionError("--dry-run needs --model: without it nothing is asked")


def _options(flags: ReportFlags, data: Path | None, judges: int) -> dict[str, Any]:
    """The options of a report in Python.

    Raises:
        OptionError: A baseline is named for several judges.
        InputError: The baseline cannot be read.
    """
    if flags.baseline and judges > 1:
        raise OptionError(f"--baseline is for one judge, got {judges}")
    earlier = reports.read_baseline(flags.baseline) if flags.baseline else None
    return {"data_name": data.name if data else "", "baseline": earlier}


def _specs(judge: JudgeFlags) -> list[dict[str, Any]]:
    """The judges to run: one for each method that --method names."""
    methods = [name.strip() for name in (judge.method or "").split(",") if name.strip()]
    if len(set(methods)) < len(methods):
        raise OptionError(f"--method names one twice: {judge.method}")
    return [judge_spec(replace(judge, method=each)) for each in methods or (judge.method,)]


def _labelled(
    paths: Sequence[Path], specs: Sequence[Mapping[str, Any]], flags: RowFlags, run: RunFlags
) -> tuple[_Rows, int]:
    """The rows to judge, of which some have labels, and how many are bad; the plan is said."""
    from langchain_judges.methods.registry import estimate_calls

    rows, bad = _read_rows(paths, flags, partial(row_files.judge_rows, spec=specs[0]))
    options = row_files.label_options_in(specs[0])
    rubric = options and options.own_rubric
    names = {criterion.name.casefold() for criterion in rubric.criteria} if rubric else set()
    of_none = {n for row in rows for n in row.get("labels") or () if n.casefold() not in names}
    known = [{**row, "labels": [*{*(row.get("labels") or ())} - of_none]} for row in rows]
    if not any(map(is_labelled, known if rubric else rows)):
        others = f"; labels of no criterion: {', '.join(sorted(of_none))}" if of_none else ""
        fields = checks.fields_of(rows[0])
        raise InputError(messages.WORDS["no_label"].format(fields=fields, others=others))
    for spec in specs:
        size = sum(texts.bytes_of(texts.texts_read(row)) for row in rows)
        tell_plan(estimate_calls(spec), len(rows), size, run, spec, rows[0])
    return rows, bad


def _judged(
    spec: Mapping[str, Any], table: Sequence[dict[str, Any]], out: Path, run: RunFlags
) -> tuple[Runs, bool]:
    """Judge the rows, keep the verdicts in `out`; return them and whether a budget is spent."""
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.report.joined_rows import judges_of

    judge = load_judge(spec)
    messages.say(f"Verdicts of {judge.get_name()} are kept in {out}.")
    rows: list[ResultRow] = []
    options = {**run.options(), "records": out}
    summary, interrupted = messages.run_rows(judge, table, options, False, rows.append)
    if interrupted:
        messages.leave_with(summary, run.strict, out, interrupted=True)
    over_budget = summary.not_judged["over_budget"]
    if over_budget == summary.rows:
        messages.warn("No row was asked: the budget is spent.")
        raise typer.Exit(messages.SPENT)
    return {next(iter(judges_of(rows))): rows}, over_budget > 0


def _leave(runs: Runs, *, spent: bool, strict: bool) -> None:
    """Report rows without a verdict, and exit with the matching code if it is not 0.

    Verdicts of other judges may lack fields, and a text that a judge cannot assess has no
    verdict to trust.
    """
    rows = [row for run in runs.values() for row in run]
    causes = Counter(cause_of(outcome_of(row)) for row in rows if not judged_row(row))
    failed = strict and any(verdict.failures_in(outcome_of(row)) for row in rows)
    messages.leave(causes, len(rows), spent=spent, failed=failed)


def _read_runs(paths: Sequence[Path]) -> Runs:
    """Read the results of finished runs; two judges of one name are distinguished by file."""
    runs: Runs = {}
    for path in paths:
        for name, rows in reports.read_verdicts(path).items():
            own = f"{name} ({path.name})" if name in runs else name
            if own in runs:
                raise OptionError(f"the verdicts of {own} are named twice")
            runs[own] = rows
    return runs


def _tell(answer: TrustReport | ComparisonReport, flags: ReportFlags) -> tuple[str, bool]:
    """Print what a report answers, and say which bars were passed.

    Returns:
        A summary in Markdown, and whether all bars were passed.
    """
    from langchain_judges.report import overview

    console = escaping.InertConsole(soft_wrap=True)
    shown, contests = answer.shown()
    parts, passed = [], True
    console.print(overview.head_text(shown[0]))
    for report in shown:
        name = f"{report.name}: " if len(shown) > 1 else ""
        if report.left_out:
            messages.warn(f"{name}{report.left_out}")
        console.print(overview.table_text(report))
        if report.drift is not None:
            console.print(report.drift.sentence)
        checks = reports.gates(report, flags.min_agreement, flags.max_wrong)
        parts.append(overview.markdown(report, checks))
        for check in checks:
            passed = passed and check.passed
            word, style = ("passed", "green") if check.passed else ("failed", "red")
            messages.say(f"{word}: {check.title} {check.value}; the bar is: {check.bar}", style)
    for contest in contests:
        console.print(contest.sentence)
        parts.append(f"- {escaping.escaped(contest.sentence)}")
    return "\n".join(parts), passed


def _tell_first(
    answer: TrustReport | ComparisonReport,
    rows: Sequence[Mapping[str, object]],
    runs: Sequence[Sequence[ResultRow]],
    beside: Path,
) -> None:
    """Write the rows to label first where more labels would settle an answer, and say so."""
    from langchain_judges.report.joined_rows import join

    uses = [each for report in answer.shown()[0] for each in report.uses.values()]
    if hopeful := [each for each in uses if each.hopeful]:
        number = min([each.labels for each in hopeful if each.labels], default=FIRST)
        judged = ({row.place: row.verdict for row in join(run, rows).rows} for run in runs)
        order = doubts(rows, judged)
        label.write_first(lambda places: {p: rows[p] for p in places}, order, number, beside)
