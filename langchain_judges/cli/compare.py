"""`langchain-judges compare`: several methods on the same rows and the same budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.common import (
    FAILED,
    MISUSED,
    Sized,
    address_of,
    chat_model,
    check_labelled_pair,
    check_settable,
    checked,
    end_stopped,
    error_console,
    kind_of,
    named_columns,
    set_options,
    settings_named,
    table_console,
    tell_refusal,
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
    Model,
    Prices,
    SkipBad,
    Strict,
    Timeout,
)
from langchain_judges.datasets.row_file import open_rows
from langchain_judges.errors import JudgeError, OptionError


def compare(  # noqa: PLR0913 - one parameter for each option
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; or a public "
            "data set, by its name or folder."
        ),
    ],
    model: Model,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs, and "
            "with --own-cost a cascade of relative and bsm."
        ),
    ] = None,
    budget_calls: Annotated[
        int, typer.Option(min=1, help="Most calls that a method may make for a pair.")
    ] = 16,
    own_cost: Annotated[
        bool,
        typer.Option("--own-cost", help="Also run each method with its own settings."),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--html", help="Write a page: agreement against cost. Needs the extra trust."
        ),
    ] = None,
    prices: Prices = None,
    shots: Annotated[
        int, typer.Option(min=0, help="Worked examples for every method that shows some.")
    ] = 0,
    aspects: Annotated[
        str | None, typer.Option(help="Aspects to compare by, separated by commas.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory for results and comparison.json; resumable."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="An option of one method: METHOD.NAME=VALUE, VALUE as JSON."
        ),
    ] = None,
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
    from langchain_judges.report.pareto import comparison_page
    from langchain_judges.report.side_by_side import comparison_table
    from langchain_judges.runs.contest import at_own_cost, line_up, save
    from langchain_judges.runs.contest import compare as compare_methods

    errors, address = error_console(), address_of(model, base_url)
    try:
        names = _names(methods) if methods else _all_methods(own_cost)
        settings = _options(option or [])
        _check_methods(names, settings)
        file = open_rows(pairs, limit, check_labelled_pair, named_columns(column))
        rows = checked(file, skip_bad, errors)
        chat = chat_model(model, base_url, timeout, dry_run=dry_run)
        with settings_named(set_options(option or [])):
            common: dict[str, Any] = {"shots": shots, "options": settings}
            common["aspects"] = _names(aspects) if aspects else None
            contestants, skipped = line_up(names, chat, budget=budget_calls, **common)
            if own_cost:
                contestants = at_own_cost(names, chat, contestants, budget_calls, common)
                taking_part = {each["method"] for each in contestants}
                skipped = {m: why for m, why in skipped.items() if m not in taking_part}
        _announce(contestants, skipped, rows, errors)
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
        if page is not None:
            page.write_text(comparison_page(comparison, pairs.name), encoding="utf-8")
    except JudgeError as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(MISUSED) from exc
    except KeyboardInterrupt:
        end_stopped(errors, saved=out is not None)
    table_console().print(comparison_table(comparison))
    standings = comparison["methods"]
    for method, each in standings.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes, errors, address)
    if all(each["not_judged"] == each["rows"] for each in standings.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in standings.values()):
        raise typer.Exit(FAILED)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _all_methods(own_cost: bool) -> list[str]:
    from langchain_judges.methods.registry import METHODS

    pairs = [name for name, kind in METHODS.items() if kind.takes == "pair"]
    return [*pairs, "cascade"] if own_cost else pairs


def _check_methods(names: Sequence[str], settings: dict[str, dict[str, Any]]) -> None:
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    if single := [name for name in names if kind_of(name) == "item"]:
        raise OptionError(
            f"`compare` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    for method, options in settings.items():
        check_settable(METHODS | COMBINATIONS, method, options)


def _options(settings: list[str]) -> dict[str, dict[str, Any]]:
    by_method: dict[str, dict[str, Any]] = {}
    for name, value in set_options(settings).items():
        method, dot, option = name.partition(".")
        if not dot:
            raise OptionError(f"--set takes METHOD.NAME=VALUE here, got {name!r}")
        by_method.setdefault(method, {})[option] = value
    return by_method


def _announce(
    contestants: Sequence[Any], skipped: dict[str, str], rows: int, errors: Console
) -> None:
    from langchain_judges.methods.marks import is_local

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
