"""`langchain-judges write`: write a text for every list of concepts in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from langchain_judges.cli.flags import OutputFlags, RowFlags, RunFlags, unfolded
from langchain_judges.cli.judge_flags import ModelFlags, check_settable, set_options, tell_plan
from langchain_judges.cli.messages import leave_with, run_rows, tell_kept
from langchain_judges.cli.row_files import check_table, checked_rows, open_rows
from langchain_judges.rows.checks import check_task


@dataclass(frozen=True)
class WriterFlags(ModelFlags):
    """Writer and its model.

    Attributes:
        method: branch, or single_prompt for the baselines.
        preset: A preset of the method.
    """

    method: str = "branch"
    preset: str | None = None


@unfolded
def write(
    tasks: Path, writer: WriterFlags, output: OutputFlags, rows: RowFlags, run: RunFlags
) -> None:
    """Write a text that uses every concept of a list, for every list of a file.

    The same command resumes where it stopped. Exit codes: 0 done, 1 no text written, or
    failures under --strict, 2 wrong use or refused, 3 budget spent, 130 Ctrl-C.

    Args:
        tasks: JSONL file with concepts, instruction.

    Examples:
        langchain-judges write tasks.jsonl --model openai:gpt-5-mini -o texts.csv
        langchain-judges write tasks.jsonl --model local --preset paper --max-rows 1
    """
    from langchain_judges.asking.models import model_of_spec
    from langchain_judges.methods.registry import Asked, CallEstimate, options_of
    from langchain_judges.writing.writers import WRITERS, load_writer

    method, preset = writer.method, writer.preset
    check_table(output.out)
    settings = set_options(writer.option, ("model",))
    check_settable(WRITERS, method, settings)
    good = checked_rows(open_rows(tasks, check_task, rows), "list of concepts", kept=True)
    calls = options_of(WRITERS, method, preset, settings).calls()
    model = writer.spec_of(writer.model)
    tell_plan(CallEstimate(method, "item", (Asked(calls, model),)), good.number, good.size, run)
    tell_kept(output.file)
    if run.dry_run:
        return
    built = load_writer(method, model_of_spec(model), preset=preset, **settings)
    options = output.options() | run.options()
    summary, stopped = run_rows(built, good.whole(), options, output.file is None)
    leave_with(summary, run.strict, output.file, interrupted=stopped)
