"""`langchain-judges judge`: judge every row of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.flags import (
    BoundedRunFlags,
    OutputFlags,
    RowFlags,
    flag,
    unfolded,
)
from langchain_judges.cli.judges import (
    JudgeFlags,
    NamedJudge,
    named_judge,
    several_models,
    tell_plan,
)
from langchain_judges.cli.label import FirstToLabel
from langchain_judges.cli.messages import (
    error_console,
    leave_with,
    refusals_as_exits,
    run_rows,
    say,
)
from langchain_judges.cli.rows import checked_rows, judge_rows
from langchain_judges.errors import OptionError
from langchain_judges.escaping import InertConsole

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.asking.batch_jobs import Job

_IN_JOBS, _OPEN_ROWS = 50_000, 2_000
"""Calls in flight and rows begun where calls become jobs, unless named."""
_FIRST_CHARACTERS = 2_000
"""How much of the first row a dry run shows."""


@dataclass(frozen=True)
class LargeRunFlags(BoundedRunFlags):
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
    shard: Annotated[str | None, flag("shard", "--shard", metavar="NUMBER/OF")] = None
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
        own = {"max_cost": self.max_cost, "shard": self.shard}
        given = {name: value for name, value in own.items() if value is not None}
        return {**in_jobs, **super().options(), **given}


@unfolded
def judge(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; of single "
            "texts input, output, and source or expected where the rubric needs it. Or a "
            "public data set, by its name or folder."
        ),
    ],
    judge: JudgeFlags,
    table: RowFlags,
    output: OutputFlags,
    run: LargeRunFlags,
) -> None:
    """Judge every row of a file; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent, 130 Ctrl-C.
    """
    with refusals_as_exits():
        named = named_judge(judge)
        if run.ray is not None:
            _check_ray(judge, output, run)
        open_file = partial(judge_rows, pairs, named.rows_like, table)
        rows = checked_rows(open_file(), f"{named.kind} to judge", kept=run.ray is None)
        if run.show_prompt:
            rows.tell_row(run.show_prompt, InertConsole(highlight=False, soft_wrap=True))
            return
        _announce_shard(run.shard, rows.number)
        plan = named.outline()
        if run.batch and len(plan.asked) > 1:
            raise several_models(plan.method, len(plan.asked))
        if run.dry_run:
            rows.tell_row(1, error_console(), _FIRST_CHARACTERS)
        tell_plan(plan, rows.number, rows.size, run, batch=run.batch)
        if run.dry_run:
            return
        options = {"out": output.out, "records": output.records, **run.options()}
        if run.ray is not None:
            _on_ray(open_file, named, options, run)
            return
        built = named.build(partial(_batched, out=output.file) if run.batch else None)
        if run.rpm or run.tpm:
            from langchain_judges.asking.limiter import MinuteLimiter

            options["rate_limiter"] = MinuteLimiter(rpm=run.rpm, tpm=run.tpm)
        options["columns"] = rows.columns
        # A shard sees too few rows to choose those to label first.
        first = FirstToLabel(rows, None if run.shard else output.out or output.records)
        summary, stopped = run_rows(built, rows.whole(), options, not output.file, first.add)
        first.tell(summary)
        saved = output.file is not None
        leave_with(summary, run.strict, interrupted=stopped, saved=saved)


def _batched(chat: BaseChatModel, *, out: Path | None) -> BaseChatModel:
    """Return the model with its calls turned into jobs, remembered in a file beside `out`."""
    from langchain_judges.asking.batches import batch_model
    from langchain_judges.runs.remote import url_of

    if out is None or url_of(out):
        raise OptionError(
            "--batch needs --out or --records, a file beside which the jobs are remembered"
        )

    def tell(job: Job) -> None:
        say(f"Job {job.name}: {job.status}, {job.completed:,} of {job.requests:,} requests")

    return batch_model(chat, out.with_name(f"{out.name}.batches"), report=tell)


def _check_ray(judge: JudgeFlags, output: OutputFlags, run: LargeRunFlags) -> None:
    """Refuse what judging on Ray would leave out."""
    flags = {
        "--batch": run.batch,
        "--memory": judge.memory,
        "--out": output.out,
        "--shard": run.shard,
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
) -> None:
    """Judge on Ray, print the summary, and leave with the code that tells the end."""
    from langchain_judges.report.terminal import summary_table
    from langchain_judges.runs.on_ray import judge_dataset

    options |= {"actors": run.ray, "rpm": run.rpm, "tpm": run.tpm}
    limits = {name: value for name, value in options.items() if value is not None}
    summary = judge_dataset(source, named.spec, **limits).summary
    InertConsole(highlight=False).print(summary_table(summary))
    leave_with(summary, run.strict)


def _announce_shard(shard: str | None, rows: int) -> None:
    if shard is None:
        return
    from langchain_judges.runs.shards import Shard

    of = Shard.parse(shard).of
    say(f"Shard {shard} judges about {rows / of:,.0f} of {rows:,} rows.")
