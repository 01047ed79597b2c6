"""`langchain-judges judge`: judge every row of a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from langchain_judges.cli.estimates import (
    Amount,
    price_list,
    tell_calls,
    tell_dry_run,
    warn_of_size,
)
from langchain_judges.cli.judges import kind_of
from langchain_judges.cli.messages import address_of, error_console, refusals_as_exits
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Batch,
    Columns,
    Concurrency,
    DryRun,
    KeepFailed,
    Limit,
    LiveAfter,
    MaxCalls,
    MaxCost,
    MaxTokens,
    Memory,
    Method,
    ModelSettings,
    OpenMegabytes,
    OpenRows,
    OptionalModel,
    Preset,
    Prices,
    RequestsAMinute,
    Results,
    Settings,
    ShardOf,
    SkipBad,
    Spec,
    Strict,
    Timeout,
    TokensAMinute,
    WithTexts,
)
from langchain_judges.cli.row_files import Sized, checked, rows_of
from langchain_judges.cli.running import leave_with, run_to_the_end
from langchain_judges.cli.specs import named_judge, several_models
from langchain_judges.errors import OptionError
from langchain_judges.rows.console import InertConsole

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.rate_limiters import BaseRateLimiter

    from langchain_judges.asking.batches.journal import Job
    from langchain_judges.methods.outline import Outline

_IN_JOBS, _OPEN_ROWS = 50_000, 2_000
"""Calls in flight and rows begun where calls become jobs, unless named."""


def judge(  # noqa: PLR0913 - one parameter for each option
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; for "
            "--method allure: input, output, expected. Or a public data set, by its name or "
            "folder."
        ),
    ],
    model: OptionalModel = None,
    method: Method = "bsm",
    out: Results = None,
    column: Columns = None,
    preset: Preset = None,
    option: Settings = None,
    spec: Spec = None,
    model_set: ModelSettings = None,
    memory: Memory = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    limit: Limit = None,
    shard: ShardOf = None,
    with_texts: WithTexts = False,
    batch: Batch = False,
    live_after: LiveAfter = None,
    open_rows: OpenRows = None,
    open_mb: OpenMegabytes = 1000.0,
    prices: Prices = None,
    max_cost: MaxCost = None,
    engine: Annotated[
        Literal["here", "ray"],
        typer.Option(help="Judge in this process, or on Ray; --out is then a folder."),
    ] = "here",
    actors: Annotated[
        int | None, typer.Option(min=1, help="Processes on Ray; by default 2.")
    ] = None,
    rpm: RequestsAMinute = None,
    tpm: TokensAMinute = None,
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
    with refusals_as_exits(errors, address):
        named = named_judge(
            spec, method, model, preset, option, base_url, timeout, model_set, memory
        )
        _check_ways(engine, actors, batch=batch, live_after=live_after)
        _check_engine(engine, out, batch=batch, memory=memory, shard=shard, show=show)
        read, own_preset, own = named.rows_like
        open_file = partial(rows_of, pairs, read, limit, column, own_preset, own)
        file = open_file()
        rows = checked(file, skip_bad, errors, f"{kind_of(read, own)} to judge")
        _announce_shard(shard, rows, errors)
        warn_of_size(file.longest, errors)
        if dry_run:
            amount = Amount(file, rows, file.size)
            _tell_plan(named.outline(errors), amount, prices, errors, batch=batch)
            return
        options: dict[str, Any] = {
            "out": out,
            "max_concurrency": concurrency or (_IN_JOBS if batch else None),
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "keep_failed": keep_failed,
            "shard": shard,
            "with_texts": with_texts,
            "open_rows": open_rows or (_OPEN_ROWS if batch else None),
            "open_mb": open_mb,
            "prices": prices and str(prices),
            "max_cost": max_cost,
        }
        wrap = partial(_batched, out=out, live_after=live_after, errors=errors)
        built = named.build(wrap if batch else None)
        _announce(built, rows, errors)
        price_list(prices)  # refused before anything is asked
        if engine == "ray":
            options |= {"actors": actors or 2, "rpm": rpm, "tpm": tpm}
            _on_ray(open_file, named.spec, options, strict, address)
        else:
            options["rate_limiter"] = _limiter(rpm, tpm)
            run_to_the_end(built, Sized(file, rows), options, show or not out, strict, address)


def _tell_plan(
    plan: Outline, amount: Amount, prices: Path | None, errors: Console, *, batch: bool
) -> None:
    """Say what the judge will ask and may cost; a batch is for one model."""
    if batch and len(plan.asked) > 1:
        raise several_models(plan.method, len(plan.asked))
    tell_dry_run(plan, amount, prices, errors, batch=batch)


def _batched(
    chat: Any, *, out: Path | None, live_after: float | None, errors: Console
) -> BaseChatModel:
    """Return the model with its calls turned into jobs, remembered in a file beside `out`."""
    from langchain_judges.asking.batches.model import batch_model
    from langchain_judges.runs.files.remote import url_of

    if out is None or url_of(out):
        raise OptionError("--batch needs --out, a file beside which the jobs are remembered")

    def tell(job: Job) -> None:
        progress = f"{job.completed:,} of {job.requests:,} requests"
        errors.print(f"Job {job.name}: {job.status}, {progress}", markup=False)

    journal = out.with_name(f"{out.name}.batches")
    return batch_model(chat, journal, live_after=live_after, report=tell)


def _check_ways(
    engine: str, actors: int | None, *, batch: bool, live_after: float | None
) -> None:
    """Refuse what belongs to another way of judging: it would be ignored."""
    if live_after is not None and not batch:
        raise OptionError("--live-after is for --batch")
    if actors is not None and engine != "ray":
        raise OptionError("--actors is for --engine ray")


def _check_engine(engine: str, out: Path | None, **flags: Any) -> None:
    """Refuse what judging on Ray would leave out."""
    if engine != "ray":
        return
    if others := [f"--{name}" for name, value in flags.items() if value]:
        raise OptionError(f"--engine ray takes no {', '.join(others)}")
    if out is None:
        raise OptionError("--engine ray needs --out, a folder")


def _on_ray(
    source: Any, spec: Mapping[str, Any], options: dict[str, Any], strict: bool, address: str
) -> None:
    """Judge on Ray, print what it came to, and leave with the code that tells the end."""
    from langchain_judges.report.terminal import summary_table
    from langchain_judges.runs.on_ray import judge_dataset

    limits = {name: value for name, value in options.items() if value is not None}
    summary = judge_dataset(source, spec, **limits).summary
    InertConsole(highlight=False).print(summary_table(summary))
    leave_with(summary, strict, address)


def _limiter(rpm: float | None, tpm: float | None) -> BaseRateLimiter | None:
    if rpm is None and tpm is None:
        return None
    from langchain_judges.asking.rates import MinuteLimiter

    return MinuteLimiter(rpm=rpm, tpm=tpm)


def _announce_shard(shard: str | None, rows: int, errors: Console) -> None:
    if shard is None:
        return
    from langchain_judges.runs.files.shards import Shard

    of = Shard.parse(shard).of
    errors.print(f"Shard {shard} judges about {rows / of:,.0f} of {rows:,} rows.", markup=False)


def _announce(judge: Any, rows: int, errors: Console) -> None:
    from langchain_judges.methods.marks import is_local
    from langchain_judges.methods.marks import kind_of as kind_of_judge

    marks = judge.config["metadata"]
    kind, local = kind_of_judge(judge), is_local(judge)
    tell_calls(marks["method"], kind, marks["calls"], rows, errors, is_local=local)
