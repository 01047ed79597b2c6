"""A judge or writer run over rows until its end or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from langchain_judges.cli.messages import (
    FAILED,
    INTERRUPTED,
    SPENT,
    error_console,
    tell_stopped,
    tell_undone,
)
from langchain_judges.rows.printable import InertConsole

if TYPE_CHECKING:
    from langchain_judges.runs.result_row import ResultRow
    from langchain_judges.runs.summary import Summary
    from langchain_judges.runs.workload import Judge, Rows


def run_to_the_end(
    worker: Judge,
    rows: Rows,
    options: dict[str, Any],
    show: bool,
    *,
    strict: bool,
    address: str,
) -> None:
    """Run a judge or writer over the rows and leave with the code that tells the end."""
    summary, interrupted = asyncio.run(run_rows(worker, rows, options, show))
    leave_with(summary, strict, address, interrupted=interrupted, saved=bool(options["out"]))


def leave_with(
    summary: Summary,
    strict: bool,
    address: str,
    *,
    interrupted: bool = False,
    saved: bool = True,
) -> None:
    """Tell what was not judged, and leave with the code that tells the end."""
    errors = error_console()
    undone = sum(summary.not_judged.values())
    tell_undone(undone, summary.rows, summary.causes, errors, address)
    if interrupted:
        tell_stopped(errors, saved=saved)
        raise typer.Exit(INTERRUPTED)
    if summary.not_judged["over_budget"]:
        raise typer.Exit(SPENT)
    # A shard may have no rows: it has done its work.
    if (undone and undone == summary.rows) or (strict and summary.failures):
        raise typer.Exit(FAILED)


async def run_rows(
    worker: Judge,
    rows: Rows,
    options: dict[str, Any],
    show: bool,
    collect: Callable[[ResultRow], object] | None = None,
) -> tuple[Summary, bool]:
    """Run a judge or writer over the rows; return the summary and whether Ctrl-C ended it.

    `collect` gets every row as it comes.
    """
    from langchain_judges.report.terminal import summary_table, text_panel, verdict_panel
    from langchain_judges.runs.many import ajudge_many

    console = InertConsole(highlight=False)
    run = ajudge_many(worker, rows, **options)
    pressed: list[int] = []

    def interrupt() -> None:
        if pressed:
            # A reply may still be minutes away, and threads cannot be ended.
            os._exit(INTERRUPTED)
        pressed.append(1)
        InertConsole(stderr=True).print(
            "Stopping: calls in flight may finish. Press Ctrl-C again to stop at once."
        )
        run.stop()

    with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    try:
        async for row in run:
            if show:
                console.print(text_panel(row) if row["kind"] == "task" else verdict_panel(row))
            if collect:
                collect(row)
    finally:
        if run.summary.rows:
            console.print(summary_table(run.summary))
    return run.summary, bool(pressed)
