"""What commands say on the terminal: consoles, refusals, exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import typer
from rich.console import Console

from langchain_judges.errors import JudgeError, OptionError, OutputError
from langchain_judges.escaping import InertConsole

if TYPE_CHECKING:
    from langsmith import Client

    from langchain_judges.runs.rows import ResultRow
    from langchain_judges.runs.run_state import Judge, Rows
    from langchain_judges.runs.summary import Summary

FAILED, MISUSED, SPENT, UNDER_BAR, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes: nothing was judged, or failures under `--strict`; wrong use; a spent budget;
Ctrl-C."""


def error_console() -> Console:
    """Return where commands say what they do and what is wrong."""
    return InertConsole(stderr=True, highlight=False, soft_wrap=True)


def table_console() -> Console:
    """Return where tables of many columns go; a file or a pipe has no edge to fit into."""
    edge = sys.stdout.isatty() or "COLUMNS" in os.environ
    return InertConsole(highlight=False, width=None if edge else 240)


_UNREACHED = re.compile("connect|time(d )?out", re.I)


_FLAGS = {
    "base_url": "--base-url",
    "columns": "--column",
    "keep_failed": "--keep-failed",
    "max_calls": "--max-calls",
    "max_concurrency": "--concurrency",
    "max_cost": "--max-cost",
    "methods": "--method",
    "model": "--model",
    "out": "--out",
    "prices": "--prices",
    "records": "--records",
    "shard": "--shard",
}
"""What keywords of Python are called on a shell."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What stops a command."""
OWN_FLAGS: ContextVar[Mapping[str, str]] = ContextVar("own_flags", default=MappingProxyType({}))
"""The flags of the command that runs, by their names in Python."""


def tell_refusal(exc: JudgeError, errors: Console, address: str = "") -> None:
    """Print why a command was refused, and which server could not be reached."""
    at = f" ({address})" if address and _UNREACHED.search(str(exc)) else ""
    flags = {**_FLAGS, **(OWN_FLAGS.get() if isinstance(exc, OptionError) else {})}
    text = re.sub("`([a-z_]+)`", lambda name: flags.get(name[1], name[0]), str(exc))
    errors.print(f"{text}{at}", style="red", markup=False)


@contextlib.contextmanager
def refusals_as_exits(errors: Console, address: str = "") -> Iterator[None]:
    """Print why a command is refused, and leave with the code for wrong use."""
    try:
        yield
    except JudgeError as exc:
        tell_refusal(exc, errors, address)
        raise typer.Exit(MISUSED) from exc


@contextlib.contextmanager
def ctrl_c_as_exit(errors: Console, *, saved: bool = True) -> Iterator[None]:
    """End the process at Ctrl-C or SIGTERM, and say what becomes of the run."""
    # Loaded here: help needs nothing of it.
    from langchain_judges.asking.signals import stoppable

    try:
        with stoppable(SIGNALS, tell_stopping, leave_at_once):
            yield
    except KeyboardInterrupt:
        end_stopped(errors, saved=saved)


def tell_undone(
    undone: int, rows: int, causes: Counter[str], errors: Console, address: str = ""
) -> None:
    """Print how many rows were not judged, and the most frequent reason."""
    if not undone:
        return
    cause, times = causes.most_common(1)[0] if causes else ("unknown", undone)
    at = f" ({address})" if address and _UNREACHED.search(cause) else ""
    errors.print(
        f"{undone:,} of {rows:,} rows could not be judged; {times:,} by {cause}{at}",
        style="yellow",
        markup=False,
    )


def tell_stopped(errors: Console, *, saved: bool = True) -> None:
    """Print what becomes of a run that Ctrl-C ended."""
    promise = (
        "the same command resumes where it stopped" if saved else "without -o nothing is saved"
    )
    errors.print(f"Stopped; {promise}.")


def tell_stopping() -> None:
    """Print what the first Ctrl-C does."""
    error_console().print(
        "Stopping: calls in flight may finish. Press Ctrl-C again to stop at once."
    )


def leave_at_once() -> NoReturn:
    """End the process: a reply may still be minutes away, and threads cannot be ended."""
    error_console().print("Stopped at once; calls in flight are lost.")
    sys.stdout.flush()
    os._exit(INTERRUPTED)


def end_stopped(errors: Console, *, saved: bool = True) -> NoReturn:
    """End the process at once: a reply may be minutes away, and threads cannot be ended."""
    tell_stopped(errors, saved=saved)
    sys.stdout.flush()
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def langsmith_client() -> Iterator[Client]:
    """Give a LangSmith client, whose troubles end the command in one sentence.

    Raises:
        OutputError: LangSmith cannot be reached, or refuses.
    """
    from langsmith import Client, LangsmithError
    from langsmith.utils import LangSmithError
    from requests import RequestException

    # Its warnings would say the same again, at length and from a thread that outlives this.
    logging.getLogger("langsmith").setLevel(logging.ERROR)
    try:
        yield Client()
    except (LangSmithError, LangsmithError, RequestException) as exc:
        reason = " ".join(str(exc).split()).partition(". ")[0][:300]
        raise OutputError(f"LangSmith refused ({type(exc).__name__}): {reason}") from exc


def address_of(model: str | None, base_url: str | None) -> str:
    """Return the address of a model's server as far as it was named, without any secret."""
    if base_url is None and str(model).startswith(("openai:", "gpt-")):
        base_url = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    if not base_url:
        return ""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


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
    from langchain_judges.runs.decision import decision
    from langchain_judges.runs.many import ajudge_many

    console = InertConsole(highlight=False)
    run = ajudge_many(worker, rows, **options)
    pressed: list[int] = []

    def interrupt() -> None:
        if pressed:
            leave_at_once()
        pressed.append(1)
        tell_stopping()
        run.stop()

    with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
        for each in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(each, interrupt)
    try:
        async for row in run:
            if show:
                console.print(text_panel(row) if row["kind"] == "task" else verdict_panel(row))
            if collect:
                collect(row)
    finally:
        if run.summary.rows:
            console.print(summary_table(run.summary))
            for sentence in decision(run.summary, run.systems):
                console.print(sentence, markup=False, soft_wrap=True)
    return run.summary, bool(pressed)
