"""`langchain-judges trust`: may this judge be trusted? Its verdicts against people's labels."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.estimates import Amount, longest_of, tell_dry_run, warn_of_size
from langchain_judges.cli.messages import (
    FAILED,
    INTERRUPTED,
    SPENT,
    UNDER_BAR,
    address_of,
    error_console,
    refusals_as_exits,
    tell_stopped,
    tell_undone,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Columns,
    Concurrency,
    DryRun,
    KeepFailed,
    Limit,
    MaxCalls,
    MaxTokens,
    Memory,
    Method,
    OptionalModel,
    Preset,
    Prices,
    Settings,
    SkipBad,
    Strict,
    Timeout,
)
from langchain_judges.cli.reports import check_paths, gates_passed, reports, write
from langchain_judges.cli.row_files import check_of, checked, named_columns
from langchain_judges.cli.running import run_rows
from langchain_judges.cli.specs import named_judge
from langchain_judges.datasets.row_file import ValueCheck, open_rows
from langchain_judges.errors import InputError, OptionError
from langchain_judges.orders import OrderRule
from langchain_judges.rows.labels import check_annotations
from langchain_judges.runs.result_row import judged_row, outcome_of
from langchain_judges.runs.summary import cause_of


def trust(  # noqa: PLR0913 - one parameter for each option
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows with labels: a table (JSONL, CSV, Parquet), the folder of a known set, "
            "or its name. May be left out with --verdicts."
        ),
    ] = None,
    model: OptionalModel = None,
    method: Method = "bsm",
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Results of a finished run instead of a model; repeat it for several.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    results: Annotated[
        Path | None,
        typer.Option(help="Where verdicts are kept; default: OUT with .verdicts.jsonl."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the numbers as CSV too.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON too.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a summary in Markdown too, the bars first.")
    ] = None,
    min_agreement: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 under this agreement, such as 0.7."),
    ] = None,
    max_flips: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 over this share of flips, such as 0.1."),
    ] = None,
    orders: Annotated[
        OrderRule | None,
        typer.Option(
            help="How two orders become one answer on the page; default: as the judge did."
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="An earlier report as JSON (--json): exit with 4 if the judge is clearly "
            "worse on the same rows."
        ),
    ] = None,
    column: Columns = None,
    preset: Preset = None,
    option: Settings = None,
    memory: Memory = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    prices: Prices = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    skip_bad: SkipBad = False,
    keep_failed: KeepFailed = False,
    strict: Strict = False,
) -> None:
    """Report whether a judge may be trusted; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent (the report then covers what was judged), 4 under a bar or worse than the
    baseline, 130 Ctrl-C.
    """
    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address):
        _check_use(data, model, verdicts, dry_run=dry_run)
        read = [*map(Path, [data] if data else []), *(verdicts or [])]
        written = {"--out": out, "--results": results, "--csv": csv, "--markdown": markdown}
        check_paths(read, written, baseline, json)
        named = None
        check: ValueCheck = check_known_of
        if model is not None:
            named = named_judge(
                None, method, model, preset, option, base_url, timeout, None, memory
            )
            check = check_of(method, preset, named.options)
        table = None if data is None else _table(data, check, column or [], limit, skip_bad)
        if named is not None and table is not None:
            _check_labels(table)
            warn_of_size(longest_of(table), errors)
        if dry_run and named is not None and table is not None:
            tell_dry_run(named.outline(errors), Amount.of(table), prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.report import read_baseline
        from langchain_judges.report.provenance import command_text, judge_provenance

        earlier = None if baseline is None else read_baseline(baseline)
        summary, provenance = None, {"command": command_text(sys.argv)}
        if named is not None and table is not None:
            limits = {
                "out": results or out.with_suffix(".verdicts.jsonl"),
                "max_concurrency": concurrency,
                "max_calls": max_calls,
                "max_tokens": max_tokens,
                "keep_failed": keep_failed,
                "prices": prices and str(prices),
            }
            judge = named.build()
            provenance |= judge_provenance(judge.config["metadata"])
            summary, rows = _judge_rows(judge, method, table, limits, errors)
            runs = {_name(rows): rows}
        else:
            runs = _finished(verdicts or [])
        options = {
            "data_name": "" if data is None else Path(data).name,
            "min_agreement": min_agreement,
            "orders": orders,
            "baseline": earlier,
            "provenance": provenance,
        }
        report = reports(runs, table, options)
        passed = gates_passed(report, min_agreement, max_flips, markdown)
        write(report, {"html": out, "csv": csv, "json": json})
    _leave(runs, summary, errors, address, strict=strict)
    if not passed:
        raise typer.Exit(UNDER_BAR)


def _leave(
    runs: dict[str, list[dict[str, Any]]],
    summary: Any,
    errors: Console,
    address: str,
    *,
    strict: bool,
) -> None:
    """Say what was not judged, and leave with its code where that is not 0."""
    result_rows = [row for rows in runs.values() for row in rows]
    failures = [row for row in result_rows if not judged_row(row)]
    causes = Counter(cause_of(outcome_of(row)) for row in failures)
    tell_undone(len(failures), len(result_rows), causes, errors, address)
    if summary is not None and summary.not_judged["over_budget"]:
        raise typer.Exit(SPENT)
    if len(failures) == len(result_rows) or (strict and _anything_failed(runs)):
        raise typer.Exit(FAILED)


def check_known_of(row: object) -> None:
    """Check what people know of a row whose verdict is there already.

    Raises:
        InputError: It is no object, or a label cannot be used.
    """
    if not isinstance(row, dict):
        raise InputError(f"a row must be an object, got {type(row).__name__}")
    check_annotations(row)


def _check_use(
    data: str | None, model: str | None, verdicts: list[Path] | None, *, dry_run: bool
) -> None:
    if (model is None) == (not verdicts):
        raise OptionError("name either --model, to judge, or --verdicts of a finished run")
    if model is not None and data is None:
        raise OptionError("name the rows to judge: a table, or a known set")
    if model is None and dry_run:
        raise OptionError("--dry-run is for --model: with --verdicts nothing is asked")
    if not dry_run:  # which makes no report
        from langchain_judges.report.single import check_installed

        check_installed()


def _table(
    data: str, check: ValueCheck, columns: Sequence[str], limit: int | None, skip_bad: bool
) -> list[dict[str, Any]]:
    file = open_rows(Path(data), limit, check, named_columns(columns))
    checked(file, skip_bad, error_console(), "row")
    return list(file)


def _check_labels(table: Sequence[dict[str, Any]]) -> None:
    fields = ("label", "labels", "human_votes")
    if not any(row.get(name) not in (None, "", {}, []) for row in table for name in fields):
        raise InputError(
            "no row has a `label`, `labels` or `human_votes` to compare the judge with; name "
            "their column, as in --column label=COLUMN. There are "
            f"{', '.join(map(repr, table[0]))}. Nothing was asked."
        )


def _judge_rows(
    judge: Any,
    method: str,
    table: Sequence[dict[str, Any]],
    options: dict[str, Any],
    errors: Console,
) -> tuple[Any, list[dict[str, Any]]]:
    """Judge the rows and return what the run came to, and its verdicts on them."""
    each = judge.config["metadata"]["calls"]
    errors.print(
        f"{len(table):,} rows by {method}: at most {len(table) * each:,} calls "
        f"({each} for each row), excluding retries. Verdicts are kept in {options['out']}.",
        markup=False,
    )
    collected: list[dict[str, Any]] = []
    summary, interrupted = asyncio.run(
        run_rows(judge, table, options, show=False, collect=collected.append)
    )
    if interrupted:
        tell_stopped(errors)
        raise typer.Exit(INTERRUPTED)
    if summary.not_judged["over_budget"] == summary.rows:
        errors.print("No row was asked: the budget is spent.", style="yellow")
        raise typer.Exit(SPENT)
    return summary, collected


def _name(rows: Sequence[dict[str, Any]]) -> str:
    from langchain_judges.report.rows import judges_of

    return next(iter(judges_of(rows)))


def _finished(paths: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """Read the results of finished runs; two judges of one name are told apart by file."""
    from langchain_judges.report import read_verdicts

    runs: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        for name, rows in read_verdicts(path).items():
            own = f"{name} ({path.name})" if name in runs else name
            if own in runs:
                raise OptionError(f"the verdicts of {own} are named twice")
            runs[own] = rows
    return runs


def _anything_failed(runs: dict[str, list[dict[str, Any]]]) -> bool:
    return any(row["verdict"].get("failures") for rows in runs.values() for row in rows)
