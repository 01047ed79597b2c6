"""`langchain-judges rank`: systems by their outputs, two compared and several ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.flags import Limit, Outs, RowFlags, RunFlags, Settings, unfolded
from langchain_judges.cli.judge_flags import JudgeFlags, ModelFlags, judge_spec, tell_plan
from langchain_judges.cli.label import FirstToLabel
from langchain_judges.cli.messages import (
    FAILED,
    ctrl_c_as_exit,
    langsmith_client,
    leave_with,
    refusals_as_exits,
    run_rows,
    table_console,
    warn,
)
from langchain_judges.cli.row_files import (
    RowFile,
    check_file,
    check_labelled_pair,
    checked_rows,
    named_columns,
)
from langchain_judges.errors import OptionError
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.runs.summary import Summary, counted
from langchain_judges.runs.tables import FORMS

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.report.compared_systems import Duel, Order
    from langchain_judges.runs.run_row import ResultRow


@dataclass(frozen=True)
class ContestFlags:
    """Who takes part, and with which settings.

    Attributes:
        systems: The columns with the outputs of systems, or names for the files of systems.
        method: The judge of systems, by default relative. Or the methods to compare, separated
            by commas; default: all that judge pairs, a cascade of relative and bsm, and a jury
            of three methods.
        budget: Most calls of a method for a pair; of more than two systems most comparisons, by
            default until the order is settled.
        spec: A judge of yours as JSON, such as a calibrated cascade; repeatable.
        option: An option of the judge of systems: NAME=VALUE, with VALUE as JSON.
    """

    systems: Annotated[str | None, typer.Option(metavar="COLUMN,COLUMN")] = None
    method: str | None = None
    budget: Limit = None
    spec: list[Path] | None = None
    option: Settings = None


_PICTURED = {".md", ".png", ".svg"}
_FILES = {*FORMS, *_PICTURED, ".html", ".json"}
"""Endings of files, which no folder has."""


@dataclass(frozen=True)
class PlaceFlags:
    """Where results go.

    Attributes:
        out: Of methods: a folder for results. Of systems, repeatable: a table of two (.csv,
            .tsv, .jsonl, .parquet), a chart (.png, .svg), a summary for a pull request (.md).
            Resumable.
    """

    out: Outs = None
    records: Path | None = None

    def folder(self) -> Path | None:
        """Return the folder for the results of methods.

        Raises:
            OptionError: A file is named, or more than one folder.
        """
        out = self.out or []
        if self.records or len(out) > 1 or any(path.suffix in _FILES for path in out):
            raise OptionError("where methods are compared, --out is one folder for all results")
        return next(iter(out), None)

    def table(self, systems: int) -> Path | None:
        """Return the table of a comparison of systems, and check where the rest goes.

        Raises:
            OptionError: Two are tables, there are more than two systems, or a file is in no
                folder.
        """
        tables = [path for path in self.out or [] if path.suffix not in _PICTURED]
        if len(tables) > 1:
            raise OptionError(f"--out may name one table, got {', '.join(map(str, tables))}")
        if tables and systems > 2:
            raise OptionError("--out is a table of two systems; --records keeps comparisons")
        for path in self.out or []:
            if path not in tables:
                check_file("--out", path)
        return next(iter(tables), None)

    @property
    def journal(self) -> Path | None:
        """Where verdicts are kept as they come: `--records`, else beside the first file."""
        if self.records or not self.out:
            return self.records
        return self.out[0].with_name(f".{self.out[0].name}.run") / "records.jsonl"

    @property
    def places(self) -> tuple[Path | None, ...]:
        """What may be on the disk when a command is stopped."""
        return (self.records, *(self.out or []))

    def write(self, answer: Duel | Order) -> None:
        """Write the charts and the summaries."""
        from langchain_judges.report.compared_systems import save_chart

        for path in self.out or []:
            if path.suffix == ".md":
                path.write_text(answer.markdown(), encoding="utf-8")
            elif path.suffix in _PICTURED:
                save_chart(answer, path)


@unfolded
def rank(
    data: Annotated[
        list[str],
        typer.Argument(
            help="A table with --systems; or a file of each system, joined by id; "
            "langsmith:NAME is an experiment."
        ),
    ],
    model: ModelFlags,
    contest: ContestFlags,
    output: PlaceFlags,
    rows: RowFlags,
    run: RunFlags,
) -> None:
    """Rank systems by their outputs; the same command resumes where it stopped.

    Pairs of systems are compared where their order is in doubt, until it is settled.

    Exit codes: 0 done, 1 nothing was judged, or failures under --strict, 2 wrong use or
    refused, 130 Ctrl-C.

    Examples:
        langchain-judges rank texts.csv --systems v1,v2,v3 --model local -o ranks.md
        langchain-judges rank v1.jsonl v2.jsonl v3.jsonl --model local --budget 200
    """
    with refusals_as_exits(), ctrl_c_as_exit(*output.places):
        compare_systems(data, model, contest, rows, run, output)


_EXPERIMENT = "langsmith:"
"""Begins the name of an experiment of LangSmith, in place of a file."""


def _table_of_systems(
    paths: Sequence[str], systems: str | None, rows: RowFlags
) -> tuple[Source, list[str]]:
    """Return one table with a column for each system, and the names of these columns."""
    from langchain_judges.runs.comparison import joined

    names = [name.strip() for name in (systems or "").split(",") if name.strip()]
    if len(paths) == 1:
        source = source_of(Path(paths[0]))
        if len(set(names)) < 2:
            raise OptionError(f"--systems must name two columns or more, got {systems!r}")
        return source, names
    names = names or [Path(path.removeprefix(_EXPERIMENT)).stem for path in paths]
    if len(set(names)) < len(paths):
        raise OptionError(f"--systems must name each of {len(paths)} files, got {names!r}")
    sources = {name: _source(path) for name, path in zip(names, paths, strict=True)}
    table, alone = joined(sources, named_columns(rows.column))
    for name, number in alone.items():
        if number:
            warn(f"Of {name} {counted(number, 'row')} without a partner left out.")
    return Source(table, True), names


def _source(path: str) -> Source:
    if not path.startswith(_EXPERIMENT):
        return source_of(Path(path))
    from langchain_judges.integrations.langsmith_runs import experiment_rows

    with langsmith_client() as client:
        rows = experiment_rows(client, path.removeprefix(_EXPERIMENT))
    return Source(rows, True)


def _judge_of_systems(model: ModelFlags, contest: ContestFlags) -> dict[str, Any]:
    if not contest.spec:
        method = contest.method or "relative"
        return judge_spec(JudgeFlags(**vars(model), method=method, option=contest.option))
    if len(contest.spec) > 1 or contest.method or contest.option:
        raise OptionError("systems have one judge: a --spec, or --method with --set")
    return judge_spec(JudgeFlags(spec=contest.spec[0]))


def compare_systems(
    paths: Sequence[str],
    model: ModelFlags,
    contest: ContestFlags,
    rows: RowFlags,
    run: RunFlags,
    output: PlaceFlags,
) -> None:
    """Say which of two systems is better, or rank several.

    Raises:
        OptionError: A flag would do nothing, or is not allowed.
        InputError: A file cannot be read.
    """
    from langchain_judges.methods.describe import outline
    from langchain_judges.methods.registry import load_judge

    spec = _judge_of_systems(model, contest)
    plan = outline(spec)  # refused before the rows are read, as the table is
    source, names = _table_of_systems(paths, contest.systems, rows)
    output.table(len(names))
    if len(names) == 2 and contest.budget:
        raise OptionError("--budget is for methods, or for more than two systems")
    if len(names) > 2 and run.prices and not run.dry_run:
        raise OptionError("--prices of more than two systems is for --dry-run")
    own = rows.column or [] if len(paths) == 1 else []
    columns = {**(named_columns(own) or {}), "output_a": names[0], "output_b": names[1]}
    source = replace(source.first(rows.limit), check=check_labelled_pair)
    file = RowFile(Path(paths[0]), source, columns, "pair")
    good = checked_rows(file, kept=len(names) == 2)
    pairs = len(names) * (len(names) - 1) // 2
    tell_plan(plan, good.number * pairs, good.size * pairs, run)
    if run.dry_run:
        return
    judge = load_judge(spec)
    if len(names) == 2:
        _duel(judge, good, names, run, output)
    else:
        _order(judge, good, names, contest.budget, run, output)


def _duel(
    judge: JudgeGraph, rows: RowFile, names: Sequence[str], run: RunFlags, output: PlaceFlags
) -> None:
    """Say which of two systems is better, and leave with the code that tells the end."""
    from langchain_judges.report.compared_systems import Duel

    duel = Duel(names, Summary())
    table = output.table(len(names))
    first = FirstToLabel(rows, table or output.records)

    def add(result: ResultRow) -> None:
        duel.add(result)
        first.add(result)

    records = output.records if table else output.journal
    places = {"out": table, "records": records, "columns": rows.columns}
    duel.summary, stopped = run_rows(judge, rows.whole(), places | run.options(), False, add)
    first.tell(duel.summary)
    if not stopped:
        output.write(duel)
    leave_with(duel.summary, run.strict, *output.places, interrupted=stopped)


def _order(
    judge: JudgeGraph,
    rows: RowFile,
    names: Sequence[str],
    budget: int | None,
    run: RunFlags,
    output: PlaceFlags,
) -> None:
    """Rank several systems; leave with 1 where nothing was judged, or not all that must be."""
    from langchain_judges.report.compared_systems import Order
    from langchain_judges.report.terminal import ranking_table
    from langchain_judges.runs.comparison import rank

    tasks = (
        {**row, "outputs": {name: record[name] for name in names if record.get(name)}}
        for record, row in rows.with_records()
    )
    ranking = rank(
        tasks, judge, records=output.journal, budget=budget, progress=False, **run.options()
    )
    answer, console = Order(ranking), table_console()
    console.print(ranking_table(ranking))
    for sentence in answer.sentences():
        console.print(sentence, markup=False)
    output.write(answer)
    undone, asked = ranking["not_judged"], ranking["comparisons"]
    if undone:
        warn(f"{undone:,} of {counted(asked, 'comparison')} could not be judged")
    if undone == asked or (run.strict and undone):
        raise typer.Exit(FAILED)
