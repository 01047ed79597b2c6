"""`langchain-judges judge`: judge every row of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli import row_files
from langchain_judges.cli.flags import OutputFlags, RowFlags, RunFlags, unfolded
from langchain_judges.cli.judge_flags import JudgeFlags, judge_spec, keyless, tell_plan
from langchain_judges.cli.label import FirstToLabel
from langchain_judges.cli.messages import error_console, leave_with, run_rows, say, tell_kept
from langchain_judges.escaping import InertConsole
from langchain_judges.runs.shards import Shard

# How much of the first row a dry run shows.
_FIRST_CHARACTERS = 2_000


@dataclass(frozen=True)
class LargeRunFlags(RunFlags):
    """Limits and speed of a run over many rows.

    Attributes:
        rpm: Maximum number of requests a minute.
        tpm: Maximum number of tokens a minute.
        show_prompt: Print how a row is understood and the requests for it, and stop.
    """

    rpm: Annotated[float | None, typer.Option(min=0.001)] = None
    tpm: Annotated[float | None, typer.Option(min=0.001)] = None
    shard: Annotated[str | None, typer.Option(metavar="NUMBER/OF")] = None
    show_prompt: Annotated[int | None, typer.Option(min=1, metavar="ROW")] = None


@unfolded
def judge(
    data: Path, judge: JudgeFlags, table: RowFlags, output: OutputFlags, run: LargeRunFlags
) -> None:
    """Judge every row of a file; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent, 130 Ctrl-C.

    Args:
        data: CSV, TSV, Excel, JSONL, JSON or Parquet file with input, output_a, output_b; of single
            texts input, output, and source or expected where the rubric needs it. Or a public data
            set, by its name or folder.

    Examples:
        langchain-judges judge pairs.csv --model openai:gpt-5-mini -o verdicts.csv
        langchain-judges judge a.csv --method rubric --set rubric=safety --model local
    """
    from langchain_judges.asking.limiter import MinuteLimiter
    from langchain_judges.methods.registry import estimate_calls, load_judge

    row_files.check_table(output.out)
    spec = judge_spec(row_files.with_method(judge, data, table))
    plan = estimate_calls(spec)
    read = row_files.open_rows(data, row_files.check_of(spec, labelled=False), table, plan.kind)
    rows = row_files.checked_rows(read, f"{plan.kind} to judge", kept=True)
    if run.show_prompt or run.dry_run:
        asked = load_judge({**spec, "model": keyless(spec["model"])})
    if run.show_prompt:
        rows.tell_row(run.show_prompt, InertConsole(soft_wrap=True), asked)
        return
    if run.shard:
        share = rows.number / Shard.parse(run.shard).of
        say(f"Shard {run.shard} judges about {share:,.0f} of {rows.number:,} rows.")
    if run.dry_run:
        rows.tell_row(None, error_console(), asked, _FIRST_CHARACTERS)
        rows.tell_warnings(asked)
    tell_plan(plan, rows.number, rows.size, run, spec, next(iter(rows)))
    tell_kept(output.file)
    if run.dry_run:
        return
    options = output.options() | run.options()
    if run.rpm or run.tpm:
        options["rate_limiter"] = MinuteLimiter(rpm=run.rpm, tpm=run.tpm)
    options["columns"] = rows.columns
    # A shard sees too few rows to choose those to label first.
    first = FirstToLabel(rows, None if run.shard else output.out or output.records)
    built, shows = load_judge(spec), output.file is None
    summary, stopped = run_rows(built, rows.whole(), options, shows, first.add)
    first.tell(summary)
    leave_with(summary, run.strict, output.file, interrupted=stopped)
