"""`langchain-judges trust`: may this judge be trusted? Its verdicts against people's labels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.common import (
    FAILED,
    INTERRUPTED,
    MISUSED,
    SPENT,
    build_judge,
    error_console,
    is_local,
    open_memory,
    run_rows,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Concurrency,
    KeepFailed,
    Limit,
    MaxCalls,
    MaxTokens,
    Memory,
    OptionalModel,
    Preset,
    Settings,
    Strict,
    Timeout,
)
from langchain_judges.errors import InputError, JudgeError, OptionError, OutputError
from langchain_judges.texts import check_item, check_pair


def trust(  # noqa: PLR0913 - one parameter for each option
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows with labels: a table (JSONL, CSV, Parquet), the folder of a known set, "
            "or its name. May be left out with --verdicts."
        ),
    ] = None,
    model: OptionalModel = None,
    method: Annotated[str, typer.Option(help="How to judge.")] = "bsm",
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(help="Results of a finished run instead of a model; again for several."),
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
    column: Annotated[
        list[str] | None,
        typer.Option(help="A column of the table: FIELD=COLUMN, such as label=winner."),
    ] = None,
    preset: Preset = None,
    option: Settings = None,
    memory: Memory = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    limit: Limit = None,
    keep_failed: KeepFailed = False,
    strict: Strict = False,
) -> None:
    """Report whether a judge may be trusted; the same command goes on where it was.

    Exit codes: 0 done, 1 failures under --strict, 2 wrong use or refused, 3 budget spent
    (the report then covers what was judged), 130 Ctrl-C.
    """
    errors = error_console()
    try:
        _check_use(data, model, verdicts)
        table = None if data is None else _table(data, column or [], limit)
        summary = None
        if model is not None and table is not None:
            kept = results or out.with_suffix(".verdicts.jsonl")
            more = {} if memory is None else {"memory": open_memory(memory)}
            judge = build_judge(method, model, preset, option or [], base_url, timeout, **more)
            options = {
                "out": kept,
                "max_concurrency": concurrency or (4 if is_local(judge) else 16),
                "max_calls": max_calls,
                "max_tokens": max_tokens,
                "keep_failed": keep_failed,
            }
            summary, rows = _judged(judge, method, table, options, errors)
            runs = {_name(rows): rows}
        else:
            runs = _finished(verdicts or [])
        _report(runs, table, data, {"html": out, "csv": csv, "json": json})
    except JudgeError as exc:
        errors.print(str(exc), style="red", markup=False)
        raise typer.Exit(MISUSED) from exc
    if summary is not None and summary.not_judged["over_budget"]:
        raise typer.Exit(SPENT)
    if strict and _anything_failed(runs):
        raise typer.Exit(FAILED)


def _check_use(data: str | None, model: str | None, verdicts: list[Path] | None) -> None:
    if (model is None) == (not verdicts):
        raise OptionError("name either --model, to judge, or --verdicts of a finished run")
    if model is not None and data is None:
        raise OptionError("name the rows to judge: a table, or a known set")


def _table(data: str, columns: Sequence[str], limit: int | None) -> list[dict[str, Any]]:
    from langchain_judges.datasets import rows

    named: dict[str, str] = {}
    for each in columns:
        field, equals, column = each.partition("=")
        if not equals:
            raise OptionError(f"--column takes FIELD=COLUMN, got {each!r}")
        named[field.strip()] = column
    found = list(islice(rows(data, named or None), limit))
    if not found:
        raise InputError(f"{data} has no row")
    return found


def _judged(
    judge: Any,
    method: str,
    table: Sequence[dict[str, Any]],
    options: dict[str, Any],
    errors: Console,
) -> tuple[Any, list[dict[str, Any]]]:
    """Judge the rows and return what the run came to, and its verdicts on them."""
    from langchain_judges.methods import METHODS

    check = check_item if METHODS[method].kind == "item" else check_pair
    for number, row in enumerate(table):
        try:
            check(row)
        except InputError as exc:
            raise InputError(f"row {number + 1}: {exc}; nothing was asked") from exc
    each = judge.config["metadata"]["calls"]
    errors.print(
        f"{len(table):,} rows by {method}: at most {len(table) * each:,} calls "
        f"({each} for each row), repairs apart. Verdicts are kept in {options['out']}.",
        markup=False,
    )
    collected: list[dict[str, Any]] = []
    summary, interrupted = asyncio.run(
        run_rows(judge, table, options, show=False, collect=collected.append)
    )
    if interrupted:
        errors.print("Stopped; the same command goes on where it was.")
        raise typer.Exit(INTERRUPTED)
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


def _report(
    runs: dict[str, list[dict[str, Any]]],
    table: Sequence[dict[str, Any]] | None,
    data: str | None,
    paths: dict[str, Path | None],
) -> None:
    from langchain_judges.report import compare
    from langchain_judges.report import trust as report_on

    told: dict[str, Any] = {"data_name": "" if data is None else Path(data).name}
    console = Console(highlight=False, soft_wrap=True)
    made: Any
    if len(runs) == 1:
        ((name, rows),) = runs.items()
        made = report_on(rows, table, name=name, **told)
        console.print(made.sentence, markup=False)
    else:
        made = compare(runs, table, **told)
        for each in made.reports:
            console.print(f"{each.name}: {each.sentence}", markup=False)
    for form, path in paths.items():
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            getattr(made, f"to_{form}")(path)
        except OSError as exc:
            raise OutputError(f"{path} cannot be written: {exc.strerror}") from exc


def _anything_failed(runs: dict[str, list[dict[str, Any]]]) -> bool:
    return any(row["verdict"].get("failures") for rows in runs.values() for row in rows)
