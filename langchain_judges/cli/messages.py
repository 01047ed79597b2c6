"""Messages of commands on the terminal: sentences, refusals, exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import logging
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console

from langchain_judges.errors import InputError, JudgeError, OutputError, OverBudget
from langchain_judges.escaping import InertConsole
from langchain_judges.lazy import packaged
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.run_row import ResultRow
from langchain_judges.runs.summary import Summary, conclusion

if TYPE_CHECKING:
    from langsmith import Client

    from langchain_judges.runs.run_state import Judge, Rows

# Exit codes: nothing was judged, or failures under `--strict`; wrong use; a spent budget;
# Ctrl-C.
FAILED, MISUSED, SPENT, UNDER_BAR, INTERRUPTED = 1, 2, 3, 4, 130
# Longer messages, by what they say.
WORDS: Mapping[str, Any] = packaged(__package__, "words.yaml")
# What stops a command.
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Begins the name of an experiment or a queue of LangSmith, in place of a file.
LANGSMITH = "langsmith:"
# Seconds after those of the calls in flight in which a run closes its files.
_LATE = 5.0


def error_console() -> InertConsole:
    """Console for messages and errors."""
    return InertConsole(stderr=True, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """Print a message or an error."""
    error_console().print(text, style=style)


def warn(text: str) -> None:
    """Print a warning."""
    say(text, "yellow")


def table_console() -> Console:
    """Console for wide tables; a file or a pipe has no width."""
    return InertConsole(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 240)


# Keywords of Python that are parameters of no command.
_KEYWORDS = {"columns": "--column", "methods": "--method"}


def _in_flags(said: JudgeError | str, context: typer.Context | None) -> str:
    """A message with flags in place of Python's keywords, and with how a list is set."""
    text, names, hint = str(said), dict(_KEYWORDS), ""
    if not context or isinstance(said, InputError):  # it names fields of rows
        return re.sub("`([a-z_]+)`", lambda found: names.get(found[1], found[0]), text)
    flags = {str(each.name): each.opts[0] for each in context.command.params}
    names |= {name: flag for name, flag in flags.items() if flag.startswith("--")}
    for setting in context.params.get("option") or ():
        name, _, value = setting.partition("=")
        names[name.rpartition(".")[2]] = f"--set {name}"
        if repr(value) in text and ("a list" in text or name == "labels"):
            listed = "[0, 1]" if name == "labels" else '["Accuracy", "Tone"]'
            hint = f"; VALUE is JSON, a list such as {name}='{listed}'"

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        if value is None or (name in RunOptions.model_fields and name not in names):
            return names.get(name, found[0])  # without a flag it is for Python
        own = names.get(name, f"--set {name}")
        if value == "True":
            return own
        return f"{own}{'=' if own.startswith('--set') else ' '}{value}"

    return re.sub("`([a-z_]+)(?:=([^`]+))?`", flag, text) + hint


class FlagWarnings(logging.Handler):
    """Prints each warning of the package once, and names flags of a command in it."""

    def __init__(self, context: typer.Context | None) -> None:
        """Have printed nothing yet."""
        super().__init__(logging.WARNING)
        self.context, self.told = context, set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        if (text := _in_flags(record.getMessage(), self.context)) not in self.told:
            self.told.add(text)
            warn(text)


@contextlib.contextmanager
def refusals_as_exits(context: typer.Context | None = None) -> Iterator[None]:
    """Print warnings, and why a command is refused, by its flags; leave with the exit code."""
    log, warnings = logging.getLogger("langchain_judges"), FlagWarnings(context)
    log.addHandler(warnings)
    try:
        yield
    except KeyboardInterrupt as exc:
        say("Stopped before anything was asked.")
        raise typer.Exit(INTERRUPTED) from exc
    except OverBudget as exc:
        say(f"{str(exc).capitalize()}; the same command with a higher one goes on.", "red")
        raise typer.Exit(SPENT) from exc
    except JudgeError as exc:
        say(_in_flags(exc, context), "red")
        raise typer.Exit(MISUSED) from exc
    except OSError as exc:
        if exc.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        say(f"The output cannot be written: {exc.strerror}.", "red")
        sys.stdout = io.StringIO()  # what is left would be tried again at the end
        raise typer.Exit(FAILED) from exc
    finally:
        log.removeHandler(warnings)


def is_saved(*places: Path | None) -> bool:
    """Whether the disk holds what a later run resumes from.

    Args:
        *places: What a command was told to write; what a run resumes from is the file itself,
            or stands in a folder of its own or the hidden one beside it.
    """
    for place in filter(None, places):
        for path in (place, place.with_name(f".{place.name}.run")):
            if any(path.iterdir()) if path.is_dir() else path.exists() and path.stat().st_size:
                return True
    return False


def tell_kept(*places: Path | None) -> None:
    """Print that a plan counts too what an earlier run finished, where the disk holds it."""
    if is_saved(*places):
        say("What an earlier run of this judge finished is counted too, and not asked again.")


@contextlib.contextmanager
def ctrl_c_as_exit(*places: Path | None) -> Iterator[None]:
    """End the process at Ctrl-C or SIGTERM, and say what becomes of the run.

    Args:
        *places: As for `is_saved`.
    """
    # Loaded here: help needs nothing of it.
    from langchain_judges.asking.effects import stoppable

    try:
        leave = partial(leave_stopped, *places)
        with stoppable(SIGNALS, partial(begin_to_stop, leave), leave_at_once):
            yield
    except KeyboardInterrupt:
        leave()


def tell_stopped(*, saved: bool) -> None:
    """Print what becomes of a run that Ctrl-C ended."""
    promise = "the same command resumes where it stopped"
    say(f"Stopped; {promise}." if saved else "Stopped before anything was saved, as by -o.")


def begin_to_stop(leave: Callable[[], object]) -> None:
    """Say so, and `leave` where a reply is still minutes away when a run must have ended."""
    # Loaded here: help needs nothing of it.
    from langchain_judges.asking.ask import GRACE

    text = "Stopping: calls in flight may finish. Press Ctrl-C again to stop at once."
    # The signal may have come amid another message, whose stream takes no second one here.
    told = threading.Thread(target=say, args=(text,), daemon=True)
    told.start()
    told.join(0.5)
    late = threading.Timer(GRACE + _LATE, leave)
    late.daemon = True
    late.start()


def leave_stopped(*places: Path | None) -> NoReturn:
    """End the process, and say what becomes of a run that Ctrl-C ended."""
    tell_stopped(saved=is_saved(*places))
    sys.stdout.flush()
    os._exit(INTERRUPTED)  # threads cannot be ended


def leave_at_once() -> NoReturn:
    """End the process: a reply may still be minutes away, and threads cannot be ended."""
    say("Stopped at once; calls in flight are lost.")
    sys.stdout.flush()
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def langsmith_client() -> Iterator[Client]:
    """Give a LangSmith client, whose troubles end the command in one sentence.

    Raises:
        OutputError: LangSmith cannot be reached, refuses, or answers off its schema.
    """
    from langsmith import Client, LangsmithError
    from langsmith.utils import LangSmithConnectionError, LangSmithError
    from pydantic import ValidationError
    from requests import ConnectionError, JSONDecodeError, RequestException

    # Its warnings would say the same again, at length and from a thread that outlives this.
    logging.getLogger("langsmith").setLevel(logging.ERROR)
    try:
        yield Client()
    except (LangSmithError, LangsmithError, RequestException, ValidationError) as exc:
        reason = re.split(r"\. | \[type=", " ".join(str(exc).split()))[0][:300]
        is_offline = isinstance(exc, (LangSmithConnectionError, ConnectionError))
        is_odd = isinstance(exc, (ValidationError, JSONDecodeError))
        trouble = "answered off its schema" if is_odd else "refused"
        trouble = "cannot be reached" if is_offline else trouble
        keyless = not any(map(os.environ.get, ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")))
        reason += "; no key is set by LANGSMITH_API_KEY" if keyless else ""
        raise OutputError(f"LangSmith {trouble} ({type(exc).__name__}): {reason}") from exc


def leave_with(
    summary: Summary, strict: bool, *places: Path | None, interrupted: bool = False
) -> None:
    """Report rows that were not judged, and exit with the matching code.

    Args:
        summary: Of the run.
        strict: Whether any failure counts.
        *places: As for `is_saved`.
        interrupted: Whether Ctrl-C ended it.
    """
    if interrupted:
        tell_stopped(saved=is_saved(*places))
    more = summary.not_judged.total() - summary.causes.total()
    causes = summary.causes + Counter({"other reasons": more})
    spent, failed = summary.not_judged["over_budget"] > 0, strict and bool(summary.failures)
    leave(causes, summary.rows, spent=spent, failed=failed, interrupted=interrupted)


def leave(
    causes: Counter[str], rows: int, *, spent: bool, failed: bool, interrupted: bool = False
) -> None:
    """Say which rows could not be judged and why, and exit with the matching code if not 0.

    Args:
        causes: How many rows could not be judged, by the reason.
        rows: How many there were; a shard may have none.
        spent: Whether a budget is spent.
        failed: Whether anything failed that must not.
        interrupted: Whether Ctrl-C ended the run.
    """
    if undone := causes.total():
        told = causes.most_common(3)
        left = undone - sum(times for _, times in told)
        told += [("other reasons", left)] if left else []
        why = "; ".join(f"{times:,} by {cause}" for cause, times in told)
        warn(f"{undone:,} of {rows:,} rows could not be judged; {why}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if spent:
        raise typer.Exit(SPENT)
    if failed or (undone and undone == rows):
        raise typer.Exit(FAILED)


def run_rows(
    worker: Judge,
    rows: Rows,
    options: dict[str, Any],
    show: bool,
    collect: Callable[[ResultRow], object] | None = None,
) -> tuple[Summary, bool]:
    """Run a judge or writer over the rows; return the summary and whether Ctrl-C ended it.

    `collect` gets every row as it comes.
    """
    from langchain_judges.asking.effects import StopSignal
    from langchain_judges.report import terminal
    from langchain_judges.runs.many import ajudge_many

    console = InertConsole()
    run = ajudge_many(worker, rows, **options)

    def stop() -> None:
        begin_to_stop(partial(leave_stopped, options.get("out"), options.get("records")))
        run.stop()

    signalled = StopSignal(stop, leave_at_once)

    async def judge() -> None:
        with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
            for each in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(each, signalled.give)
        try:
            async for row in run:
                if show:
                    panel = terminal.text_panel if row["kind"] == "task" else terminal.verdict_panel
                    console.print(panel(row))
                if collect:
                    collect(row)
        finally:
            if run.summary.rows:
                console.print(terminal.summary_table(run.summary))
                if run.summary.criteria.several:
                    console.print(terminal.criteria_table(run.summary))
                for sentence in conclusion(run.summary):
                    console.print(sentence, soft_wrap=True)

    asyncio.run(judge())
    return run.summary, signalled.came
