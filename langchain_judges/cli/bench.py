"""`langchain-judges bench`: which methods pay with your model on your labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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


def bench(  # noqa: PLR0913 - one parameter for each option
    pairs: PairRows,
    model: Model,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs, a "
            "cascade of relative and bsm, and a jury of three methods."
        ),
    ] = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            help="A judge of yours as JSON, such as a calibrated cascade; repeatable."
        ),
    ] = None,
    budget_calls: Annotated[
        int,
        typer.Option(
            min=1, help="Calls for a pair within which methods run beside their own cost."
        ),
    ] = 16,
    prices: Prices = None,
    shots: Shots = 0,
    aspects: Aspects = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Directory for results, bench.json and bench.html; resumable."
        ),
    ] = Path("bench"),
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
    """Run every method on labelled rows and draw agreement against cost on a page.

    Each method runs with its own settings, and with those that fit a budget of calls where
    they differ. The same command resumes where it stopped. Needs the extra trust.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.report.pareto import comparison_page
    from langchain_judges.runs.studies.comparison import compare, save
    from langchain_judges.runs.studies.line_up import at_own_cost, line_up, of_specs

    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address), ctrl_c_as_exit(errors):
        names = names_in(methods) if methods else [*pair_methods(), "cascade", "jury"]
        settings = settings_by_method("bench", names, option or [])
        file = open_rows(pairs, limit, check_labelled_pair, named_columns(column))
        rows = checked(file, skip_bad, errors)
        warn_of_size(file.longest, errors)
        chat = chat_model(model, base_url, timeout, dry_run=dry_run)
        common: dict[str, Any] = {"shots": shots, "options": settings}
        common["aspects"] = names_in(aspects) if aspects else None
        with settings_as_flags(set_options(option or [])):
            within, skipped = line_up(names, chat, budget=budget_calls, **common)
            contestants = at_own_cost(names, chat, within, budget_calls, common)
        contestants += of_specs(spec or [])
        taking_part = {each["method"] for each in contestants}
        skipped = {name: why for name, why in skipped.items() if name not in taking_part}
        announce(contestants, skipped, rows, errors)
        if dry_run:
            return
        comparison = compare(
            contestants,
            Sized(file, rows),
            budget=budget_calls,
            skipped=skipped,
            prices=prices and str(prices),
            out=out,
            max_concurrency=concurrency,
            keep_failed=keep_failed,
        )
        save(comparison, out / "bench.json")
        page = out / "bench.html"
        page.write_text(comparison_page(comparison, pairs.name), encoding="utf-8")
    print_comparison(comparison, errors, address, strict=strict)
    errors.print(f"The picture is in {page}.", markup=False)
