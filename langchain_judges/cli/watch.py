"""`langchain-judges watch`: the latest runs of a LangSmith project, judged as they come."""

from __future__ import annotations

import re
import threading
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_judges.cli import flags, judge_flags, messages, row_files
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from langchain_judges.integrations.watch import Watch

_SPAN = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class ItemJudgeFlags(judge_flags.JudgeFlags):
    """The judge of one text.

    Attributes:
        method: The judging method; langchain-judges show lists them.
    """

    method: str = "rubric"


@dataclass(frozen=True)
class SampleFlags:
    """Runs to judge.

    Attributes:
        project: Name of the LangSmith project.
        sample: Share of the runs, by a hash of their id.
        since: How far to look back: 30m, 1h, 2d.
        filter: A filter in LangSmith's query language.
        threads: Judge each thread as one conversation.
        column: Where the input, the output and the source are, in inputs or outputs.
        key: Name of the feedback.
        queue: Annotation queue for doubtful runs.
        max_rows: Judge at most this many new runs or threads; the next look goes on.
    """

    project: str
    sample: Annotated[float, typer.Option(min=0, max=1)] = 1.0
    since: str = "1h"
    filter: str | None = None
    threads: bool = False
    column: Annotated[list[str] | None, typer.Option(metavar="FIELD=PATH")] = None
    key: str | None = None
    queue: str | None = None
    max_rows: flags.AtLeastOne = None


@flags.unfolded
def watch(
    sample: SampleFlags, judge: ItemJudgeFlags, budget: flags.BudgetFlags, every: str | None = None
) -> None:
    """Judge the latest runs of a LangSmith project; each gets its feedback once.

    Exit codes: 0 done, 1 nothing could be judged, 2 wrong use or refused, 3 budget spent,
    130 Ctrl-C.

    Args:
        every: Repeat at this interval: 10m, 1h. Default: once.

    Examples:
        langchain-judges watch --project app --preset helpfulness --model local
        langchain-judges watch --project app --sample 0.05 --every 10m --spec j.json
    """
    # Loaded here: help needs nothing of it.
    from langchain_judges.asking.effects import stoppable
    from langchain_judges.integrations.watch import watch_every, watch_project
    from langchain_judges.methods.registry import load_judge

    stop = threading.Event()

    def stopping() -> None:
        # Not in this thread, which may have been interrupted while it holds the event's lock.
        threading.Thread(target=stop.set, daemon=True).start()
        messages.begin_to_stop(messages.leave_at_once)

    since, again = span(sample.since, "--since"), every and span(every, "--every")
    built = load_judge(judge_flags.judge_spec(judge))
    chosen = asdict(sample) | asdict(budget) | {"since": since, "stop": stop}
    columns = row_files.named_columns(chosen.pop("column"), [*row_files.PLACES]) or {}
    places = {row_files.PLACES[field]: place for field, place in columns.items()}
    look = partial(watch_project, judge=built, **places, **chosen)

    try:
        with (
            messages.langsmith_client() as client,
            stoppable(messages.SIGNALS, stopping, messages.leave_at_once),
        ):
            for found in watch_every(partial(look, client), again or timedelta(0), stop):
                messages.say(sentence(found))
                if not again:
                    break
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set():
        raise typer.Exit(messages.INTERRUPTED)
    if found.stopped:
        raise typer.Exit(messages.SPENT)
    if found.failed and not found.judged:
        raise typer.Exit(messages.FAILED)


def sentence(found: Watch) -> str:
    """Sentence about a look's result."""
    left = found.sampled - found.known - found.judged - found.failed
    told = {"all": True, "queued": found.queued, "left": left, "stopped": found.stopped}
    parts = [text for name, text in messages.WORDS["look"].items() if told[name]]
    return "".join(parts).format(left=left, **asdict(found)) + "."


def span(text: str, name: str) -> timedelta:
    """Read a span of time such as `30m`.

    Raises:
        OptionError: It is none.
    """
    match = _SPAN.fullmatch(text.strip())
    if not match:
        raise OptionError(f"{name} must be a number with s, m, h or d, as 30m, got {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
