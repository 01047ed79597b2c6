"""`langchain-judges write`: write a text for every list of concepts in a file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langchain_judges.cli.flags import (
    OutputFlags,
    Preset,
    RowFlags,
    RunFlags,
    Settings,
    Without,
    unfolded,
)
from langchain_judges.cli.judges import (
    ModelFlags,
    check_settable,
    set_options,
    settings_as_flags,
)
from langchain_judges.cli.messages import error_console, leave_with, refusals_as_exits, run_rows
from langchain_judges.cli.rows import checked_rows, open_rows
from langchain_judges.rows.checks import check_task


@dataclass(frozen=True)
class WriterFlags(ModelFlags):
    """What writes."""

    method: Annotated[str, typer.Option(help="branch, or single_prompt for the baselines.")] = (
        "branch"
    )
    preset: Preset = None
    option: Settings = None


@unfolded
def write(
    tasks: Annotated[Path, typer.Argument(help="JSONL file with concepts, instruction.")],
    writer: WriterFlags,
    *,
    output: Annotated[OutputFlags, Without("shard")],
    rows: Annotated[RowFlags, Without("column")],
    run: Annotated[RunFlags, Without("prices")],
) -> None:
    """Write a text that uses every concept of a list, for every list of a file.

    The same command resumes where it stopped. Exit codes: 0 done, 1 no text written, or
    failures under --strict, 2 wrong use or refused, 3 budget spent, 130 Ctrl-C.
    """
    from langchain_judges.methods.registry import options_of
    from langchain_judges.writing.registry import WRITERS, load_writer

    errors, method = error_console(), writer.method
    with refusals_as_exits(errors, writer.address):
        settings = set_options(writer.option or [])
        check_settable(WRITERS, method, settings)
        file = open_rows(tasks, check_task, rows)
        good = checked_rows(file, errors, "list of concepts", kept=True)
        with settings_as_flags(settings):
            calls = options_of(WRITERS, method, writer.preset, settings).calls()
        is_local = writer.model.partition(":")[0] == "local"
        _tell_texts(method, calls, good.number, errors, is_local=is_local)
        if run.dry_run:
            writer.check(errors)
            return
        with settings_as_flags(settings):
            built = load_writer(method, writer.chat(), preset=writer.preset, **settings)
        options = {"out": output.out, "records": output.records, **run.options()}
        show = output.show or not output.file
        summary, stopped = asyncio.run(run_rows(built, good.whole(), options, show))
        leave_with(
            *(summary, run.strict, writer.address),
            interrupted=stopped,
            saved=output.file is not None,
        )


def _tell_texts(method: str, calls: int, rows: int, errors: Console, *, is_local: bool) -> None:
    """Say how many calls the texts take at most, and what a small local model is worth."""
    texts = "text" if rows == 1 else "texts"
    errors.print(
        f"{rows:,} {texts} by {method}: at most {rows * calls:,} calls "
        f"({calls} for each text), excluding retries."
    )
    if is_local:
        errors.print(
            "A small local model shows how the method works; its texts are poor. "
            "Name a larger model for texts to read.",
            style="yellow",
        )
