"""`langchain-judges compare`: systems by their outputs, or methods on the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from langchain_judges.cli.flags import RowFlags, RunFlags, Without, unfolded
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

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.runs.comparison import Comparison, Contestant


@dataclass(frozen=True)
class LineUpFlags:
    """The methods that take part, and with which settings."""

    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs, a "
            "cascade of relative and bsm, and a jury of three methods."
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most calls of a method for a pair; default: what each takes by itself."
        ),
    ] = None
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,COLUMN",
            help="Compare systems instead: the columns with their outputs, or the names of "
            "the files' systems; --methods names the judge, by default relative.",
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
            "--set", help="An option of one method: METHOD.NAME=VALUE, VALUE as JSON."
        ),
    ] = None

    def names(self) -> list[str]:
        """Return the names of the methods."""
        from langchain_judges.methods.registry import METHODS

        if self.methods:
            return [name.strip() for name in self.methods.split(",") if name.strip()]
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
    *,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="<path>",
            help="Of methods: a folder for results and comparison.html. Of systems, "
            "repeatable: a table (.csv, .tsv, .jsonl, .parquet), a chart (.png, .svg), a "
            "summary for a pull request (.md). Resumable.",
        ),
    ] = None,
    rows: RowFlags,
    run: Annotated[RunFlags, Without("max_calls", "max_tokens")],
) -> None:
    """Compare systems by their outputs, or methods by agreement with labels, flips and cost.

    The same command resumes where it stopped. Exit codes: 0 done, 1 no row judged, or failures
    under --strict, 2 wrong use or refused, 130 Ctrl-C.
    """
    from langchain_judges.runs.comparison import compare as compare_methods

    errors = error_console()
    with refusals_as_exits(errors, model.address), ctrl_c_as_exit(errors, saved=bool(out)):
        if contest.systems or len(data) > 1:
            _compare_systems(data, model, contest, rows, run, out or [])
            return
        pairs = Path(data[0])
        if len(out or []) > 1:
            raise OptionError("--out is one folder where methods are compared")
        folder = out[0] if out else None
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
    out: Sequence[Path],
) -> None:
    """Say which of two systems is better, or rank several."""
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.report.systems import Duel, Order, save_chart
    from langchain_judges.report.terminal import ranking_table
    from langchain_judges.runs.ranking import rank

    errors = error_console()
    table, charts, notes = _by_ending(out)
    source, names = _table_of_systems(paths, contest.systems, rows, errors)
    own = [] if len(paths) > 1 else rows.column or []
    columns = {**(named_columns(own) or {}), "output_a": names[0], "output_b": names[1]}
    if rows.limit is not None:
        source = replace(source, records=list(islice(iter(source.records), rows.limit)))
    source = replace(source, check=check_labelled_pair)
    good = checked_rows(
        RowFile(Path(paths[0]), source, columns, "pair"), errors, kept=len(names) == 2
    )
    method = contest.methods or "relative"
    judge = load_judge(method, model.chat(dry_run=run.dry_run))
    pairs = good.number * len(names) * (len(names) - 1) // 2
    calls = metadata_of(judge)["calls"]
    tell_calls(method, "pair", calls, pairs, errors, is_local=False)
    if run.dry_run:
        return
    if len(names) == 2:
        duel = Duel(names, Summary())
        options = {"out": table, "columns": columns, **run.options()}
        duel.summary, stopped = asyncio.run(
            run_rows(judge, good.whole(), options, False, duel.add)
        )
        answer: Duel | Order = duel
    else:
        tasks = (
            {**row, "outputs": {name: record[name] for name in names if record.get(name)}}
            for record, row in good.with_records()
        )
        answer, stopped = Order(rank(tasks, judge, records=table, progress=False)), False
        table_console().print(ranking_table(answer.ranking))
        for sentence in answer.sentences():
            table_console().print(sentence, markup=False)
    if not stopped:
        for chart in charts:
            save_chart(answer, chart)
        for note in notes:
            note.write_text(answer.markdown(), encoding="utf-8")
    if isinstance(answer, Duel):
        saved = table is not None
        summary, address = answer.summary, model.address
        leave_with(summary, run.strict, address, interrupted=stopped, saved=saved)


def _by_ending(out: Sequence[Path]) -> tuple[Path | None, list[Path], list[Path]]:
    """Return the table, the charts and the summaries in Markdown that are to be written."""
    charts = [path for path in out if path.suffix in (".png", ".svg")]
    notes = [path for path in out if path.suffix == ".md"]
    tables = [path for path in out if path not in (*charts, *notes)]
    if len(tables) > 1:
        raise OptionError(f"--out may name one table, got {', '.join(map(str, tables))}")
    for path in (*charts, *notes):
        check_file("--out", path)
    return next(iter(tables), None), charts, notes


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
