"""`langchain-judges compare`: systems by their outputs, or methods on the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.flags import Records, RowFlags, RunFlags, Without, unfolded
from langchain_judges.cli.judges import (
    ModelFlags,
    check_settable,
    set_options,
    settings_as_flags,
)
from langchain_judges.cli.messages import (
    FAILED,
    ctrl_c_as_exit,
    error_console,
    langsmith_client,
    leave_with,
    refusals_as_exits,
    run_rows,
    table_console,
    tell_undone,
)
from langchain_judges.cli.plan import tell_calls, warn_of_size
from langchain_judges.cli.rows import (
    RowFile,
    check_file,
    check_labelled_pair,
    checked_rows,
    named_columns,
    open_rows,
)
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.methods.describe import metadata_of
from langchain_judges.runs.decision import counted
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.runs.summary import Summary
from langchain_judges.runs.tables import FORMS

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.report.systems import Duel, Order
    from langchain_judges.runs.comparison import Comparison, Contestant


@dataclass(frozen=True)
class LineUpFlags:
    """Who takes part, and with which settings."""

    systems: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,COLUMN",
            help="The columns with the outputs of systems, or names for the files of systems.",
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            help="The judge of systems, by default relative. Or the methods to compare, "
            "separated by commas; default: all that judge pairs, a cascade of relative and "
            "bsm, and a jury of three methods."
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most calls of a method for a pair; of more than two systems most "
            "comparisons, by default until the order is settled.",
        ),
    ] = None
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            help="A judge of yours as JSON, such as a calibrated cascade; repeatable."
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="An option of the judge of systems: NAME=VALUE; of one of several methods: "
            "METHOD.NAME=VALUE. VALUE is JSON.",
        ),
    ] = None

    def names(self) -> list[str]:
        """Return the names of the methods."""
        from langchain_judges.methods.registry import METHODS

        if self.method:
            return [name.strip() for name in self.method.split(",") if name.strip()]
        return [*(n for n, kind in METHODS.items() if kind.takes == "pair"), "cascade", "jury"]

    def contestants(
        self, names: Sequence[str], chat: BaseChatModel
    ) -> tuple[list[Contestant], dict[str, str]]:
        """Return who takes part, and why others do not."""
        from langchain_judges.runs.comparison import line_up, of_specs

        with settings_as_flags(set_options(self.option or [])):
            own = settings_by_method(names, self.option or [])
            contestants, skipped = line_up(names, chat, budget=self.budget, options=own)
        return [*contestants, *of_specs(self.spec or [])], skipped

    def judge(self, model: ModelFlags, *, dry_run: bool) -> JudgeGraph:
        """Return the judge of systems."""
        from langchain_judges.methods.options import read_spec
        from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge

        if self.spec:
            return load_judge(read_spec(self.spec[0]))
        method = self.method or "relative"
        options: dict[str, Any] = set_options(self.option or [])
        check_settable(METHODS | COMBINATIONS, method, options)
        with settings_as_flags(options):
            return load_judge(method, model.chat(dry_run=dry_run), **options)


def settings_by_method(
    names: Sequence[str], options: list[str]
) -> dict[str, dict[str, object]]:
    """Return what `--set METHOD.NAME=VALUE` gave, by method.

    Args:
        names: The methods that take part.
        options: The values of `--set`.

    Raises:
        OptionError: A method labels single texts or takes no part, or there is no such
            option.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, kind_of_rows

    if single := [name for name in names if kind_of_rows(name, {}) == "item"]:
        raise OptionError(
            f"`compare` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    by_method: dict[str, dict[str, object]] = {}
    for name, value in set_options(options).items():
        method, dot, option = name.partition(".")
        if not dot:
            raise OptionError(f"--set takes METHOD.NAME=VALUE here, got {name!r}")
        by_method.setdefault(method, {})[option] = value
    for method, own in by_method.items():
        if method not in names:
            nearest = did_you_mean(method, names)
            raise OptionError(
                f"--set {method}.… names no method that takes part; {nearest}there are "
                f"{', '.join(names)}"
            )
        check_settable(METHODS | COMBINATIONS, method, own)
    return by_method


_FILES = {*FORMS, ".html", ".json", ".md", ".png", ".svg"}
"""Endings of files, which no folder has."""


@dataclass(frozen=True)
class PlaceFlags:
    """Where results go."""

    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="<path>",
            help="Of methods: a folder for results and comparison.html. Of systems, "
            "repeatable: a table of two (.csv, .tsv, .jsonl, .parquet), a chart (.png, .svg), "
            "a summary for a pull request (.md). Resumable.",
        ),
    ] = None
    records: Records = None

    def folder(self) -> Path | None:
        """Return the folder for the results of methods.

        Raises:
            OptionError: A file is named, or more than one folder.
        """
        out = self.out or []
        if self.records or len(out) > 1 or any(path.suffix in _FILES for path in out):
            raise OptionError("where methods are compared, --out is one folder for all results")
        return next(iter(out), None)

    def _with(self, *endings: str) -> list[Path]:
        return [path for path in self.out or [] if path.suffix in endings]

    def table(self, systems: int) -> Path | None:
        """Return the table of a comparison of systems, and check where the rest goes.

        Raises:
            OptionError: Two are tables, there are more than two systems, or a file is in no
                folder.
        """
        others = self._with(".png", ".svg", ".md")
        tables = [path for path in self.out or [] if path not in others]
        if len(tables) > 1:
            raise OptionError(f"--out may name one table, got {', '.join(map(str, tables))}")
        if tables and systems > 2:
            raise OptionError("--out is a table of two systems; --records keeps comparisons")
        for path in others:
            check_file("--out", path)
        return next(iter(tables), None)

    def write(self, answer: Duel | Order) -> None:
        """Write the charts and the summaries."""
        from langchain_judges.report.systems import save_chart

        for chart in self._with(".png", ".svg"):
            save_chart(answer, chart)
        for note in self._with(".md"):
            note.write_text(answer.markdown(), encoding="utf-8")


@unfolded
def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Pairs: a table or a public data set. Or outputs of systems: a table with "
            "--systems, or a file of each, joined by id; langsmith:NAME is an experiment."
        ),
    ],
    model: ModelFlags,
    contest: LineUpFlags,
    output: PlaceFlags,
    rows: RowFlags,
    run: Annotated[RunFlags, Without("max_calls")],
) -> None:
    """Compare systems by their outputs, or methods by agreement with labels, flips and cost.

    More than two systems are ranked: pairs of systems are compared where their order is in
    doubt, until it is settled. The same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.runs.comparison import compare as compare_methods

    errors = error_console()
    with (
        refusals_as_exits(errors, model.address),
        ctrl_c_as_exit(errors, saved=bool(output.out)),
    ):
        if contest.systems or len(data) > 1:
            _compare_systems(data, model, contest, rows, run, output)
            return
        pairs = Path(data[0])
        folder = output.folder()
        names = contest.names()
        settings_by_method(names, contest.option or [])  # refused before the rows are read
        good = _labelled_pairs(pairs, rows, errors)
        chat = model.chat(dry_run=run.dry_run)
        contestants, skipped = contest.contestants(names, chat)
        _announce(contestants, skipped, good.number, errors)
        if run.dry_run:
            return
        comparison = compare_methods(
            contestants,
            good,
            budget=contest.budget,
            skipped=skipped,
            out=folder,
            **run.options(),
        )
        if folder is not None:
            _write(comparison, folder, pairs.name, errors)
    _print(comparison, errors, model.address, strict=run.strict)


_EXPERIMENT = "langsmith:"
"""Begins the name of an experiment of LangSmith, in place of a file."""


def _table_of_systems(
    paths: Sequence[str], systems: str | None, rows: RowFlags, errors: Console
) -> tuple[Source, list[str]]:
    """Return one table with a column for each system, and the names of these columns."""
    names = [name.strip() for name in (systems or "").split(",") if name.strip()]
    if len(paths) == 1:
        if len(set(names)) < 2:
            raise OptionError(f"--systems must name two columns or more, got {systems!r}")
        return source_of(paths[0]), names
    from langchain_judges.runs.ranking import joined

    names = names or [Path(path.removeprefix(_EXPERIMENT)).stem for path in paths]
    if len(set(names)) < len(paths):
        raise OptionError(f"--systems must name each of {len(paths)} files, got {names!r}")
    sources = {name: _source(path) for name, path in zip(names, paths, strict=True)}
    table, alone = joined(sources, named_columns(rows.column))
    for name, number in alone.items():
        if number:
            text = f"Of {name} {counted(number, 'row')} without a partner left out."
            errors.print(text, style="yellow", markup=False)
    return Source(table, True), names


def _source(path: str) -> Source:
    if not path.startswith(_EXPERIMENT):
        return source_of(path)
    from langchain_judges.integrations.langsmith_runs import experiment_rows

    with langsmith_client() as client:
        rows = experiment_rows(client, path.removeprefix(_EXPERIMENT))
    return Source(rows, True)


def _compare_systems(
    paths: Sequence[str],
    model: ModelFlags,
    contest: LineUpFlags,
    rows: RowFlags,
    run: RunFlags,
    output: PlaceFlags,
) -> None:
    """Say which of two systems is better, or rank several."""
    errors = error_console()
    source, names = _table_of_systems(paths, contest.systems, rows, errors)
    output.table(len(names))  # refused before the rows are read
    own = [] if len(paths) > 1 else rows.column or []
    columns = {**(named_columns(own) or {}), "output_a": names[0], "output_b": names[1]}
    if rows.limit is not None:
        source = replace(source, records=list(islice(iter(source.records), rows.limit)))
    file = RowFile(Path(paths[0]), replace(source, check=check_labelled_pair), columns, "pair")
    good = checked_rows(file, errors, kept=len(names) == 2)
    warn_of_size(good.longest, errors)
    judge = contest.judge(model, dry_run=run.dry_run)
    pairs = good.number * len(names) * (len(names) - 1) // 2
    marks = metadata_of(judge)
    tell_calls(marks["method"], "pair", marks["calls"], pairs, errors, is_local=False)
    if run.dry_run:
        return
    if len(names) == 2:
        _duel(judge, good, names, run, output, model.address)
    else:
        _order(judge, good, names, contest.budget, run, output)


def _duel(
    judge: JudgeGraph,
    rows: RowFile,
    names: Sequence[str],
    run: RunFlags,
    output: PlaceFlags,
    address: str,
) -> None:
    """Say which of two systems is better, and leave with the code that tells the end."""
    from langchain_judges.report.systems import Duel

    duel = Duel(names, Summary())
    table = output.table(len(names))
    places = {"out": table, "records": output.records, "columns": rows.columns}
    options = {**places, **run.options()}
    running = run_rows(judge, rows.whole(), options, False, duel.add)
    duel.summary, stopped = asyncio.run(running)
    if not stopped:
        output.write(duel)
    saved = bool(table or output.records)
    leave_with(duel.summary, run.strict, address, interrupted=stopped, saved=saved)


def _order(
    judge: JudgeGraph,
    rows: RowFile,
    names: Sequence[str],
    budget: int | None,
    run: RunFlags,
    output: PlaceFlags,
) -> None:
    """Rank several systems, and leave with 1 where nothing was judged."""
    from langchain_judges.report.systems import Order
    from langchain_judges.report.terminal import ranking_table
    from langchain_judges.runs.ranking import rank

    tasks = (
        {**row, "outputs": {name: record[name] for name in names if record.get(name)}}
        for record, row in rows.with_records()
    )
    options = {name: each for name, each in run.options().items() if name != "prices"}
    ranking = rank(
        tasks, judge, records=output.records, budget=budget, progress=False, **options
    )
    answer, console = Order(ranking), table_console()
    console.print(ranking_table(ranking))
    for sentence in answer.sentences():
        console.print(sentence, markup=False)
    output.write(answer)
    if ranking["not_judged"] == ranking["comparisons"]:
        raise typer.Exit(FAILED)


def _labelled_pairs(path: Path, flags: RowFlags, errors: Console) -> RowFile:
    pairs = checked_rows(open_rows(path, check_labelled_pair, flags, "pair"), errors)
    warn_of_size(pairs.longest, errors)
    return pairs


def _announce(
    contestants: Sequence[Contestant], skipped: Mapping[str, str], rows: int, errors: Console
) -> None:
    """Print what each method asks at most, and which take no part."""
    from langchain_judges.methods.describe import is_local

    for contestant in contestants:
        each = contestant["calls"]
        errors.print(
            f"{contestant['name']}: at most {rows * each:,} calls ({each} for each pair), "
            "excluding retries."
        )
    for method, why in skipped.items():
        errors.print(f"{method} takes no part: {why}.", style="yellow", markup=False)
    if any(is_local(contestant["judge"]) for contestant in contestants):
        errors.print(
            "A small local model shows how the methods work; its verdicts are poor.",
            style="yellow",
        )


def _write(comparison: Comparison, out: Path, data_name: str, errors: Console) -> None:
    from langchain_judges.report.methods import comparison_page
    from langchain_judges.runs.comparison import save

    save(comparison, out / "comparison.json")
    page = out / "comparison.html"
    page.write_text(comparison_page(comparison, data_name), encoding="utf-8")
    errors.print(f"The picture is in {page}.", markup=False)


def _print(comparison: Comparison, errors: Console, address: str, *, strict: bool) -> None:
    """Print the results of every method, and exit with 1 if nothing was judged."""
    from langchain_judges.report.methods import comparison_table

    table_console().print(comparison_table(comparison))
    standings = comparison["methods"]
    for method, each in standings.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes, errors, address)
    if all(each["not_judged"] == each["rows"] for each in standings.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in standings.values()):
        raise typer.Exit(FAILED)
