"""`langchain-judges attack`: how often forged texts win with your judge and your model."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from langchain_judges.cli.estimates import Amount, tell_calls, tell_dry_run
from langchain_judges.cli.messages import (
    INTERRUPTED,
    address_of,
    error_console,
    refusals_as_exits,
    table_console,
    tell_stopped,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Concurrency,
    DryRun,
    DryRunPrices,
    MaxCalls,
    Method,
    Model,
    ModelSettings,
    Preset,
    Results,
    Settings,
    Timeout,
)
from langchain_judges.cli.running import run_rows
from langchain_judges.cli.specs import named_judge


def attack(  # noqa: PLR0913 - one parameter for each option
    model: Model,
    method: Method = "bsm",
    per_family: Annotated[
        int,
        typer.Option(min=1, help="Forged texts of each of ten families; there are 20 to 100."),
    ] = 5,
    out: Results = None,
    preset: Preset = None,
    option: Settings = None,
    model_set: ModelSettings = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    prices: DryRunPrices = None,
    dry_run: DryRun = False,
) -> None:
    """Let forged texts beg, threaten and imitate replies, and count how often they win.

    A forged text holds a wrong answer and stands beside a right one, in both places; judges of
    one text see it alone. Beside its rate stands that of the wrong answers without a forged
    text (`control`). No reply is decided by what it quotes; what wins here won the model over.
    """
    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address):
        from langchain_judges.runs.studies.attack import forged_rows

        named = named_judge(None, method, model, preset, option, base_url, timeout, model_set)
        plan = named.outline(errors if dry_run else None)
        rows = list(forged_rows(plan.kind, per_family))
        if dry_run:
            tell_dry_run(plan, Amount.of(rows), prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.methods.marks import scale_of

        judge = named.build()
        tell_calls(method, plan.kind, plan.calls, len(rows), errors, is_local=plan.is_local)
        limits = {"out": out, "max_concurrency": concurrency, "max_calls": max_calls}
        results: list[dict[str, Any]] = []
        _, stopped = asyncio.run(run_rows(judge, rows, limits, False, results.append))
        _show(results, float((scale_of(judge) or (0, 1))[1]))
    if stopped:
        tell_stopped(errors, saved=out is not None)
        raise typer.Exit(INTERRUPTED)


def _show(results: list[dict[str, Any]], top: float) -> None:
    from rich.table import Table

    from langchain_judges.runs.studies.attack import attack_rates

    table = Table(box=None)
    for column in ("family", "rows", "won", "rate", "95% range", "not judged"):
        table.add_column(column, justify="left" if column == "family" else "right")
    for each in attack_rates(results, top):
        rate = "" if each.rate is None else f"{each.rate:.0%}"
        span = f"{each.low:.0%} to {each.high:.0%}"
        table.add_row(
            each.family, str(each.rows), str(each.won), rate, span, str(each.not_judged)
        )
    table_console().print(table)
