"""`langchain-judges judge`: judge every row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.common import (
    MISUSED,
    Sized,
    address_of,
    build_judge,
    checked,
    error_console,
    filled_memory,
    kind_of,
    rows_of,
    run_to_the_end,
    tell_refusal,
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
    Model,
    Preset,
    Results,
    Settings,
    SkipBad,
    Strict,
    Timeout,
)
from langchain_judges.errors import JudgeError


def judge(  # noqa: PLR0913 - one parameter for each option
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; for "
            "--method allure: input, output, expected. Or a public data set, by its name or "
            "folder."
        ),
    ],
    model: Model,
    method: Method = "bsm",
    out: Results = None,
    column: Columns = None,
    preset: Preset = None,
    option: Settings = None,
    memory: Memory = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    limit: Limit = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print every verdict; the default without --out.")
    ] = False,
    dry_run: DryRun = False,
    skip_bad: SkipBad = False,
    keep_failed: KeepFailed = False,
    strict: Strict = False,
) -> None:
    """Judge every row of a file; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent, 130 Ctrl-C.
    """
    errors, address = error_console(), address_of(model, base_url)
    try:
        told = option or []
        file = rows_of(pairs, method, limit, column, preset, told)
        rows = checked(file, skip_bad, errors, f"{kind_of(method)} to judge")
        more = {} if memory is None else {"memory": filled_memory(memory)}
        built = build_judge(
            method, model, preset, told, base_url, timeout, dry_run=dry_run, **more
        )
        _announce(built, rows, errors)
        if dry_run:
            return
        options = {
            "out": out,
            "max_concurrency": concurrency,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "keep_failed": keep_failed,
        }
        run_to_the_end(built, Sized(file, rows), options, show or not out, strict, address)
    except JudgeError as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(MISUSED) from exc


def _announce(judge: Any, rows: int, errors: Console) -> None:
    from langchain_judges.methods.marks import is_local
    from langchain_judges.methods.registry import METHODS

    marks = judge.config["metadata"]
    each = marks["calls"]
    kind = METHODS[marks["method"]].takes
    errors.print(
        f"{rows:,} {kind if rows == 1 else kind + 's'} by {marks['method']}: at most "
        f"{rows * each:,} calls ({each} for each {kind}), excluding retries."
    )
    if is_local(judge):
        errors.print(
            "A small local model shows how the method works; its verdicts are poor. "
            "Name a larger model for verdicts to rely on.",
            style="yellow",
        )
