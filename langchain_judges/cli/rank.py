"""`langchain-judges rank`: many systems' outputs on the same tasks, ranked by a judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli.messages import (
    FAILED,
    MISUSED,
    address_of,
    end_stopped,
    error_console,
    table_console,
    tell_refusal,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Concurrency,
    KeepFailed,
    Method,
    ModelSettings,
    OptionalModel,
    Preset,
    Results,
    Settings,
    Spec,
    Timeout,
)
from langchain_judges.cli.specs import judge_of
from langchain_judges.errors import JudgeError


def rank(  # noqa: PLR0913 - one parameter for each option
    data: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet: input and outputs (an object by system) of each "
            "task, or input, system and output of each text."
        ),
    ],
    model: OptionalModel = None,
    method: Method = "relative",
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Most comparisons; by default until the order is settled."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Of the intervals that must part.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the tasks drawn and the slots.")] = 0,
    out: Results = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="Write the ranking as JSON too.")
    ] = None,
    preset: Preset = None,
    spec: Spec = None,
    option: Settings = None,
    model_set: ModelSettings = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    keep_failed: KeepFailed = False,
) -> None:
    """Rank systems by their outputs; the same command with --out resumes where it stopped.

    Pairs of systems are compared where their order is in doubt, until it is settled.

    Exit codes: 0 done, 1 nothing was judged, 2 wrong use or refused, 130 Ctrl-C.
    """
    # Loaded here: other commands need nothing of it.
    from langchain_judges.report.ranking import ranking_table
    from langchain_judges.rows.files import read_table
    from langchain_judges.runs.rank import rank as rank_systems

    errors, address = error_console(), address_of(model, base_url)
    try:
        judge = judge_of(spec, method, model, preset, option, base_url, timeout, model_set)
        ranking = rank_systems(
            read_table(data),
            judge,
            budget=budget,
            confidence=confidence,
            seed=seed,
            out=out,
            max_concurrency=concurrency,
            keep_failed=keep_failed,
            progress=False,
        )
    except JudgeError as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(MISUSED) from exc
    except KeyboardInterrupt:
        end_stopped(errors, saved=out is not None)
    table_console().print(ranking_table(ranking))
    if json_out is not None:
        json_out.write_text(json.dumps(ranking, indent=2, ensure_ascii=False) + "\n")
    comparisons, possible = ranking["comparisons"], ranking["possible"]
    errors.print(
        f"{comparisons:,} of {possible:,} possible comparisons ({comparisons / possible:.0%}), "
        f"{ranking['not_judged']:,} not judged, {ranking['calls']:,} calls, "
        f"{ranking['tokens']:,} tokens; the order is "
        f"{'settled' if ranking['settled'] else 'not settled'}.",
        markup=False,
    )
    if ranking["not_judged"] == comparisons:
        raise typer.Exit(FAILED)
