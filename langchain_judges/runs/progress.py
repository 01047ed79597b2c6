"""The progress of a run on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from langchain_judges.rows.printable import InertConsole

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary


@contextmanager
def show_progress(summary: Summary, refresh: Callable[[], None]) -> Iterator[None]:
    """Show rows, calls, tokens, failures and the remaining time during a run.

    Nothing is shown if the output is not a terminal, such as a log file.

    Args:
        summary: Read at every redraw.
        refresh: Brings `summary` up to date.
    """
    console = InertConsole(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (
        TextColumn("judging"),
        BarColumn(bar_width=30),
        _Count(summary, refresh),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=summary.total)
        columns[2].follow = lambda: progress.update(task, completed=summary.rows)
        yield


class _Count(TextColumn):
    def __init__(self, summary: Summary, refresh: Callable[[], None]) -> None:
        super().__init__("")
        self.summary = summary
        self.refresh = refresh
        self.follow: Callable[[], None] = lambda: None

    def render(self, task: Task) -> Text:
        self.refresh()
        self.follow()
        summary = self.summary
        failed = sum(summary.failures.values())
        of = f"/{summary.total:,}" if summary.total else ""
        return Text(
            f"{summary.rows:,}{of} pairs  {summary.calls:,} calls  "
            f"{summary.tokens:,} tokens  {failed:,} failures"
        )
