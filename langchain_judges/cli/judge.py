"""`langchain-judges judge`: judge every row of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.doubts import FirstToLabel, tell_first
from langchain_judges.cli.flags import OutputFlags, RowFlags, RunFlags, flag, unfolded
from langchain_judges.cli.judges import JudgeFlags, NamedJudge, named_judge, several_models
from langchain_judges.cli.messages import (
    error_console,
    leave_with,
    refusals_as_exits,
    run_rows,
)
from langchain_judges.cli.plan import price_list, tell_calls, tell_dry_run
from langchain_judges.cli.rows import RowFile, checked_rows, judge_rows
from langchain_judges.errors import OptionError
from langchain_judges.escaping import InertConsole

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.rate_limiters import BaseRateLimiter

    from langchain_judges.asking.batch_jobs import Job
    from langchain_judges.methods.describe import Outline
    from langchain_judges.methods.graph import JudgeGraph

_IN_JOBS, _OPEN_ROWS = 50_000, 2_000
"""Calls in flight and rows begun where calls become jobs, unless named."""


JudgedRows = Annotated[
    Path,
    typer.Argument(
        help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; for "
        "--method allure: input, output, expected. Or a public data set, by its name or "
        "folder."
    ),
]


@dataclass(frozen=True)
class LargeRunFlags(RunFlags):
    """How far a run over many rows goes, how fast, and where its calls are made."""

    max_cost: Annotated[float | None, flag("max_cost", "--max-cost")] = None
    rpm: Annotated[
        float | None, typer.Option("--rpm", min=0.001, help="Most requests a minute.")
    ] = None
    tpm: Annotated[
        float | None, typer.Option("--tpm", min=0.001, help="Most tokens a minute.")
    ] = None
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask by jobs of the provider's batch API, at half price, within a day. Needs "
            "--out or --records; the jobs are remembered beside it.",
        ),
    ] = False
    ray: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="PROCESSES",
            help="Judge on Ray in so many processes, into a folder.",
        ),
    ] = None

    show_prompt: Annotated[
        int | None,
        typer.Option(
            "--show-prompt",
            min=1,
            metavar="ROW",
            help="Print how a row is understood and what a judge is shown of it, and stop.",
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return what was set, as options of a run in Python."""
        in_jobs = {"max_concurrency": _IN_JOBS, "open_rows": _OPEN_ROWS} if self.batch else {}
        cost = {"max_cost": self.max_cost} if self.max_cost is not None else {}
        return {**in_jobs, **super().options(), **cost}


@unfolded
def judge(
    pairs: JudgedRows,
    judge: JudgeFlags,
    table: RowFlags,
    output: OutputFlags,
    run: LargeRunFlags,
) -> None:
    """Judge every row of a file; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address):
        named = named_judge(judge)
        _check_engine(judge, output, run)
        open_file = partial(judge_rows, pairs, named.rows_like, table)
        rows = checked_rows(open_file(), errors, f"{named.kind} to judge", kept=run.ray is None)
        _announce_shard(output.shard, rows.number, errors)
        if run.show_prompt:
            rows.tell_row(run.show_prompt, InertConsole(highlight=False, soft_wrap=True))
            return
        if run.dry_run:
            _tell_plan(named.outline(errors), rows, run, errors)
            return
        wrap = partial(_batched, out=output.file, errors=errors)
        built = named.build(wrap if run.batch else None)
        _announce(built, rows.number, errors)
        price_list(run.prices)  # refused before anything is asked
        options = {
            "out": output.out,
            "records": output.records,
            "shard": output.shard,
            **run.options(),
        }
        if run.ray is not None:
            _on_ray(open_file, named, options, run, judge.address)
            return
        options["rate_limiter"] = _limiter(run)
        show = output.show or not output.file
        options["columns"] = rows.columns
        first = FirstToLabel(rows, output.label_file)
        summary, stopped = asyncio.run(run_rows(built, rows.whole(), options, show, first.add))
        tell_first(first, summary)
        leave_with(
            *(summary, run.strict, judge.address),
            interrupted=stopped,
            saved=output.file is not None,
        )


def _tell_plan(plan: Outline, rows: RowFile, run: LargeRunFlags, errors: Console) -> None:
    """Say what the judge will ask and may cost; a batch is for one model."""
    if run.batch and len(plan.asked) > 1:
        raise several_models(plan.method, len(plan.asked))
    rows.tell_first(errors)
    tell_dry_run(plan, rows.amount, run.prices, errors, batch=run.batch)


def _batched(chat: BaseChatModel, *, out: Path | None, errors: Console) -> BaseChatModel:
    """Return the model with its calls turned into jobs, remembered in a file beside `out`."""
    from langchain_judges.asking.batches import batch_model
    from langchain_judges.runs.remote import url_of

    if out is None or url_of(out):
        raise OptionError(
            "--batch needs --out or --records, a file beside which the jobs are remembered"
        )

    def tell(job: Job) -> None:
        progress = f"{job.completed:,} of {job.requests:,} requests"
        errors.print(f"Job {job.name}: {job.status}, {progress}", markup=False)

    journal = out.with_name(f"{out.name}.batches")
    return batch_model(chat, journal, report=tell)


def _check_engine(judge: JudgeFlags, output: OutputFlags, run: LargeRunFlags) -> None:
    """Refuse what judging on Ray would leave out."""
    if run.ray is None:
        return
    flags = {
        "--batch": run.batch,
        "--memory": judge.memory,
        "--out": output.out,
        "--shard": output.shard,
        "--show": output.show,
    }
    if others := [name for name, value in flags.items() if value]:
        raise OptionError(f"--ray takes no {', '.join(others)}")
    if output.records is None:
        raise OptionError("--ray needs --records, a folder")


def _on_ray(
    source: Callable[[], Iterable[Mapping[str, object]]],
    named: NamedJudge,
    options: dict[str, Any],
    run: LargeRunFlags,
    address: str,
) -> None:
    """Judge on Ray, print the summary, and leave with the code that tells the end."""
    from langchain_judges.report.terminal import summary_table
    from langchain_judges.runs.on_ray import judge_dataset

    options.pop("out")
    options |= {"actors": run.ray, "rpm": run.rpm, "tpm": run.tpm}
    limits = {name: value for name, value in options.items() if value is not None}
    summary = judge_dataset(source, named.spec, **limits).summary
    InertConsole(highlight=False).print(summary_table(summary))
    leave_with(summary, run.strict, address)


def _limiter(run: LargeRunFlags) -> BaseRateLimiter | None:
    if run.rpm is None and run.tpm is None:
        return None
    from langchain_judges.asking.limiter import MinuteLimiter

    return MinuteLimiter(rpm=run.rpm, tpm=run.tpm)


def _announce_shard(shard: str | None, rows: int, errors: Console) -> None:
    if shard is None:
        return
    from langchain_judges.runs.shards import Shard

    of = Shard.parse(shard).of
    errors.print(f"Shard {shard} judges about {rows / of:,.0f} of {rows:,} rows.", markup=False)


def _announce(judge: JudgeGraph, rows: int, errors: Console) -> None:
    from langchain_judges.methods.describe import is_local, kind_of, metadata_of

    marks, kind, local = metadata_of(judge), kind_of(judge), is_local(judge)
    tell_calls(marks["method"], kind, marks["calls"], rows, errors, is_local=local)
