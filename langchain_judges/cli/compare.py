"""`langchain-judges compare`: several methods on the same rows and the same budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli.contests import (
    announce,
    names_in,
    pair_methods,
    print_comparison,
    settings_by_method,
)
from langchain_judges.cli.estimates import warn_of_size
from langchain_judges.cli.judges import chat_model
from langchain_judges.cli.messages import (
    address_of,
    ctrl_c_as_exit,
    error_console,
    refusals_as_exits,
)
from langchain_judges.cli.options import (
    SECONDS,
    Aspects,
    BaseUrl,
    Columns,
    Concurrency,
    DryRun,
    KeepFailed,
    Limit,
    MethodSettings,
    Model,
    PairRows,
    Prices,
    Shots,
    SkipBad,
    Strict,
    Timeout,
)
from langchain_judges.cli.row_files import Sized, check_labelled_pair, checked, named_columns
from langchain_judges.cli.settings import set_options, settings_as_flags
from langchain_judges.datasets.row_file import open_rows


def compare(  # noqa: PLR0913 - one parameter for each option
    pairs: PairRows,
    model: Model,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs."
        ),
    ] = None,
    budget_calls: Annotated[
        int, typer.Option(min=1, help="Most calls that a method may make for a pair.")
    ] = 16,
    prices: Prices = None,
    shots: Shots = 0,
    aspects: Aspects = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory for results and comparison.json; resumable."
        ),
    ] = None,
    option: MethodSettings = None,
    column: Columns = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    limit: Limit = None,
    dry_run: DryRun = False,
    skip_bad: SkipBad = False,
    keep_failed: KeepFailed = False,
    strict: Strict = False,
) -> None:
    """Compare methods on the same rows; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.runs.studies.comparison import compare as compare_methods
    from langchain_judges.runs.studies.comparison import save
    from langchain_judges.runs.studies.line_up import line_up

    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address), ctrl_c_as_exit(errors, saved=out is not None):
        names = names_in(methods) if methods else pair_methods()
        settings = settings_by_method("compare", names, option or [])
        file = open_rows(pairs, limit, check_labelled_pair, named_columns(column))
        rows = checked(file, skip_bad, errors)
        warn_of_size(file.longest, errors)
        chat = chat_model(model, base_url, timeout, dry_run=dry_run)
        with settings_as_flags(set_options(option or [])):
            contestants, skipped = line_up(
                names,
                chat,
                budget=budget_calls,
                shots=shots,
                aspects=names_in(aspects) if aspects else None,
                options=settings,
            )
        announce(contestants, skipped, rows, errors)
        if dry_run:
            return
        comparison = compare_methods(
            contestants,
            Sized(file, rows),
            budget=budget_calls,
            skipped=skipped,
            prices=prices and str(prices),
            out=out,
            max_concurrency=concurrency,
            keep_failed=keep_failed,
        )
        if out is not None:
            save(comparison, out / "comparison.json")
    print_comparison(comparison, errors, address, strict=strict)
