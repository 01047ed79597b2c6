"""`langchain-judges sweep`: the experiments of ALLURE's paper, with any model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from langchain_judges.cli.common import (
    FAILED,
    MISUSED,
    SPENT,
    address_of,
    check_settable,
    end_stopped,
    error_console,
    set_options,
    tell_refusal,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Concurrency,
    DryRun,
    KeepFailed,
    MaxCalls,
    Model,
    Settings,
    Timeout,
)
from langchain_judges.errors import JudgeError, OptionError

if TYPE_CHECKING:
    from langchain_judges.methods.allure.sweep import Plan


def sweep(  # noqa: PLR0913 - one parameter for each option
    preset: Annotated[
        str, typer.Option(help="e1: planning answers; e2: consistency of summaries.")
    ],
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for results and report; resumable.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the set: cogeval for e1, summeval16 for e2.")
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Numbers of examples, with commas between.")
    ] = "0,4,8,15,30,45",
    seeds: Annotated[int, typer.Option(min=1, help="Draws of examples for each number.")] = 3,
    portions: Annotated[int, typer.Option(min=1, help="Points of the learning curve.")] = 3,
    held_out: Annotated[
        float, typer.Option(help="Share of the items that is measured, by group.")
    ] = 0.3,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most items, drawn by whole groups.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split.")] = 0,
    allow_leak: Annotated[
        bool,
        typer.Option(
            "--allow-leak",
            help="The paper's own setting: measure the very items that examples come from.",
        ),
    ] = False,
    option: Settings = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    keep_failed: KeepFailed = False,
    dry_run: DryRun = False,
) -> None:
    """Show how a judge does with more and more of its audited mistakes before it.

    A run without examples labels everything; its mistakes on the training groups, audited
    against known labels, are remembered; further runs over held-out groups vary the examples
    (how many, without one failure mode, as they were learnt) and the instructions. The
    folder gets results.json, report.html, its plots and every verdict; the same command goes
    on where it was.

    Exit codes: 0 done, 1 a run judged nothing, 2 wrong use or refused, 3 --max-calls spent,
    130 Ctrl-C.
    """
    from langchain_judges.asking.models import resolve_model
    from langchain_judges.methods.allure.sweep import (
        OWN,
        SweepFailed,
        SweepStopped,
        plan_sweep,
        run_sweep,
    )
    from langchain_judges.methods.registry import METHODS
    from langchain_judges.report.sweep import sweep_table, write_report

    errors, address = error_console(), address_of(model, base_url)
    try:
        settings = set_options(option or [])
        check_settable(METHODS, "allure", settings.keys() - OWN)
        plan = plan_sweep(
            preset,
            data=data,
            sizes=_numbers(sizes),
            seeds=seeds,
            portions=portions,
            held_out=held_out,
            limit=limit,
            allow_leak=allow_leak,
            seed=seed,
        )
        _announce(plan, errors)
        if dry_run:
            return
        chat = resolve_model(model, base_url=base_url, timeout=timeout)
        local = model.partition(":")[0] == "local"
        results = run_sweep(
            plan,
            chat,
            out,
            options=settings,
            max_concurrency=concurrency or (4 if local else 16),
            max_calls=max_calls,
            keep_failed=keep_failed,
            tell=lambda text: errors.print(text, markup=False),
        )
        page = write_report(results, out)
    except SweepFailed as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(FAILED) from exc
    except SweepStopped as exc:
        errors.print(str(exc), style="yellow", markup=False)
        raise typer.Exit(SPENT) from exc
    except JudgeError as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(MISUSED) from exc
    except KeyboardInterrupt:
        end_stopped(errors)
    Console(highlight=False).print(sweep_table(results))
    errors.print(f"The report: {page}", markup=False)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as exc:
        raise OptionError(f"--sizes takes whole numbers such as 0,4,8, got {text!r}") from exc


def _announce(plan: Plan, errors: Console) -> None:
    items, measured = len(plan.items), len(plan.held_out)
    errors.print(
        f"{plan.experiment.title}: {items:,} items, {len(plan.train):,} for examples and "
        f"{measured:,} measured.",
        markup=False,
    )
    errors.print(
        f"At most {plan.most_calls:,} calls, repairs apart: {items:,} without examples, and "
        f"{plan.most_runs} runs over {measured:,} items."
    )
    if plan.allow_leak:
        errors.print(
            "Leaks are allowed: examples come from the very items that are measured, as in "
            "the paper. The figures will say nothing of new items.",
            style="yellow",
        )
