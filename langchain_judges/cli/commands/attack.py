"""`langchain-judges attack`: how often forged texts win with your judge and your model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from langchain_judges.cli.estimates import Amount, tell_calls, tell_dry_run
from langchain_judges.cli.flag_groups import DryRunFlags, ModelJudgeFlags
from langchain_judges.cli.flags import Concurrency, MaxCalls, Results
from langchain_judges.cli.messages import (
    INTERRUPTED,
    error_console,
    refusals_as_exits,
    table_console,
    tell_stopped,
)
from langchain_judges.cli.named_judge import named_judge
from langchain_judges.cli.running import run_rows
from langchain_judges.cli.unfolding import Without, unfolded


@dataclass(frozen=True)
class AttackRunFlags:
    """How far the run goes, and where its verdicts are stored."""

    out: Results = None
    max_concurrency: Concurrency = None
    max_calls: MaxCalls = None


@unfolded
def attack(
    judge: Annotated[ModelJudgeFlags, Without("spec", "memory")],
    run: AttackRunFlags,
    plan: DryRunFlags,
    per_family: Annotated[
        int,
        typer.Option(min=1, help="Forged texts of each of ten families; there are 20 to 100."),
    ] = 5,
) -> None:
    """Let forged texts beg, threaten and imitate replies, and count how often they win.

    A forged text holds a wrong answer and stands beside a right one, in both places; judges of
    one text see it alone. Beside its rate stands that of the wrong answers without a forged
    text (`control`). No reply is decided by what it quotes; what wins here won the model over.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address):
        from langchain_judges.runs.studies.attack import forged_rows

        named = named_judge(judge)
        outline = named.outline(errors if plan.dry_run else None)
        rows = list(forged_rows(outline.kind, per_family))
        if plan.dry_run:
            tell_dry_run(outline, Amount.of(rows), plan.prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.methods.marks import scale_of

        built = named.build()
        kind, calls, local = outline.kind, outline.calls, outline.is_local
        tell_calls(outline.method, kind, calls, len(rows), errors, is_local=local)
        results: list[dict[str, object]] = []
        _, stopped = asyncio.run(run_rows(built, rows, vars(run), False, results.append))
        _show(results, float((scale_of(built) or (0, 1))[1]))
    if stopped:
        tell_stopped(errors, saved=run.out is not None)
        raise typer.Exit(INTERRUPTED)


def _show(results: list[dict[str, object]], top: float) -> None:
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
