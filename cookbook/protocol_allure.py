"""The protocol of ALLURE: what a judge gains from being shown its audited mistakes.

    python cookbook/protocol_allure.py --preset e1 --model openai:gpt-5-mini --data ../data

`--data` is a folder with `cogeval` for `e1` (planning answers) and `summeval16` for `e2`
(factual consistency of summaries), or the folder of the set itself. A run without examples
labels everything; its mistakes on the training groups, audited against known labels, are
remembered; further runs over held-out groups vary the examples (how many, without one failure
mode, as they were learnt) and the instructions. The folder gets results.json, report.html, its
plots and every verdict; the same command resumes where it stopped, and `--dry-run` counts the
calls alone.

Exit codes: 0 done, 1 a run judged nothing, 2 wrong use or refused, 3 --max-calls spent,
130 Ctrl-C.

Source: Hasanbeig et al. 2023, sections 4.1 and 4.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import protocols
import typer
from allure_sweep.page import sweep_table, write_report
from allure_sweep.plan import EXPERIMENTS, Plan, plan_sweep
from allure_sweep.run import OWN, SweepFailed, SweepStopped, run_sweep
from protocols import in_flight, inside, named, program, shared_model
from rich.console import Console

from langchain_judges.cli.flags import (
    SECONDS,
    DryRun,
    KeepFailed,
    MaxCalls,
    Settings,
    Timeout,
)
from langchain_judges.cli.judges import check_settable, set_options
from langchain_judges.cli.messages import FAILED, SPENT, address_of, error_console, tell_refusal
from langchain_judges.errors import OptionError
from langchain_judges.methods.registry import METHODS


def main(  # noqa: PLR0913 - one parameter for each option
    model: protocols.Model,
    preset: Annotated[
        str, typer.Option(help="e1: planning answers; e2: consistency of summaries.")
    ],
    base_url: protocols.BaseUrl = None,
    data: protocols.Data = None,
    out: protocols.Out = Path("allure-study"),
    limit: protocols.Limit = None,
    sizes: Annotated[
        str, typer.Option(help="Numbers of examples, with commas between.")
    ] = "0,4,8,15,30,45",
    draws: Annotated[int, typer.Option(min=1, help="Draws of examples for each number.")] = 3,
    portions: Annotated[int, typer.Option(min=1, help="Points of the learning curve.")] = 3,
    held_out: Annotated[
        float, typer.Option(help="Share of the items that is measured, by group.")
    ] = 0.3,
    allow_leak: Annotated[
        bool,
        typer.Option(
            "--allow-leak",
            help="The paper's own setting: measure the very items that examples come from.",
        ),
    ] = False,
    by_map: Annotated[
        bool,
        typer.Option(
            "--by-map",
            help="Show an item examples of its own cognitive map alone, as the paper does; "
            "none has its expected answer.",
        ),
    ] = False,
    option: Settings = None,
    seed: protocols.Seed = 0,
    concurrency: protocols.Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    keep_failed: KeepFailed = False,
    dry_run: DryRun = False,
) -> dict[str, Any] | None:
    """Run one experiment of ALLURE's paper; the same command resumes where it stopped."""
    errors = error_console()
    settings = set_options(option or [])
    check_settable(METHODS, "allure", settings.keys() - OWN)
    plan = plan_sweep(
        preset,
        data=_folder(preset, data),
        sizes=_numbers(sizes),
        seeds=draws,
        portions=portions,
        held_out=held_out,
        limit=limit,
        allow_leak=allow_leak,
        by_family=by_map,
        seed=seed,
    )
    _announce(plan, errors)
    if dry_run:
        return None
    chat, replies = shared_model(model, base_url, out, timeout)
    try:
        results = run_sweep(
            plan,
            chat,
            out,
            options=settings,
            max_concurrency=in_flight(model, concurrency),
            max_calls=max_calls,
            keep_failed=keep_failed,
            tell=lambda text: errors.print(text, markup=False),
        )
    except SweepFailed as exc:
        tell_refusal(exc, errors, address_of(model, base_url))
        raise typer.Exit(FAILED) from exc
    except SweepStopped as exc:
        errors.print(str(exc), style="yellow", markup=False)
        raise typer.Exit(SPENT) from exc
    page = write_report(results, out)
    Console(highlight=False).print(sweep_table(results))
    errors.print(replies.sentence())
    errors.print(f"The report: {page}", markup=False)
    return results


def _folder(preset: str, data: Path | None) -> Path:
    """Return the folder of the set that a preset reads: `data`, or what `data` has of it."""
    (name,) = named(preset, EXPERIMENTS, "--preset")
    dataset = EXPERIMENTS[name].dataset
    return data if data and data.name == dataset else inside(data, dataset)


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
        f"At most {plan.most_calls:,} calls, excluding retries: {items:,} without examples, "
        f"and {plan.most_runs} runs over {measured:,} items."
    )
    if plan.allow_leak:
        errors.print(
            "Leaks are allowed: examples come from the very items that are measured, as in "
            "the paper. The figures will say nothing of new items.",
            style="yellow",
        )


if __name__ == "__main__":
    program(main)()
