"""The counts of a run: verdicts, failures, calls and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_judges.escaping import InertConsole
from langchain_judges.rows.checks import SIDES, kind_of_result
from langchain_judges.runs.rows import AnyVerdict, ResultRow, answer_of, judged_row, outcome_of
from langchain_judges.verdict import is_abstention

_MOST_CAUSES = 1000
"""How many different causes are counted: every row may fail with a different message."""


@dataclass
class Summary:
    """The counts of a run."""

    total: int | None = None
    """Total number of rows, if known before they are read; of a shard about its share."""
    rows: int = 0
    resumed: int = 0
    """Rows taken from an earlier run."""
    preferences: Counter[str] = field(default_factory=Counter)
    labels: int = 0
    """Rows of a judge of one text; `preferences` then counts its labels."""
    totals: int = 0
    """Of these, rows whose label is the total of several criteria."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Rows without a verdict, by the reason of their first failure."""
    abstained: int = 0
    """Rows that the judge said it cannot assess; they are neither judged nor failed."""
    causes: Counter[str] = field(default_factory=Counter)
    """Rows without a verdict, by the message of their first failure."""
    failures: Counter[str] = field(default_factory=Counter)
    """Every failure by reason, also those of rows that were judged."""
    flips: int = 0
    both_orders: int = 0
    """Rows judged in both orders; `flips` is out of these."""
    labelled: int = 0
    """Judged rows with a label (for pairs A, B or tie); `agreed` is out of these."""
    agreed: int = 0
    """Rows whose verdict equals their label."""
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Judged rows by category and answer."""
    right: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Judged rows with a label by category, and whether the verdict equals it."""
    others: int = 0
    """Rows of other judges in the results file, not counted otherwise."""
    stages: Counter[str] = field(default_factory=Counter)
    """Rows by the judge of a cascade that decided them."""
    wrote: bool = False
    """Whether the run writes texts instead of verdicts."""
    texts: int = 0
    """Texts written; the next three counts are of these."""
    complete: int = 0
    """Texts that use every concept."""
    concepts: int = 0
    """Concepts that they should use."""
    lost: Counter[str] = field(default_factory=Counter)
    """Concepts missing from them, by the step that lost them."""
    leaks: int = 0
    """Rows whose judge saw an example of the item itself or of its group."""
    calls: int = 0
    """Replies that this run received; earlier runs are not counted."""
    tokens: int = 0
    prices: str | None = None
    """Source and date of the prices; None without prices."""
    cost: float = 0.0
    """Dollars for this run's replies with a known price."""
    unpriced: int = 0
    """Replies with an unknown price."""
    seconds: float = 0.0

    def add(self, row: ResultRow) -> None:
        """Count one row."""
        verdict = outcome_of(row)
        is_judged = judged_row(row)
        self.rows += 1
        kind = kind_of_result(row)
        self.wrote = kind == "task"
        reasons = [failure["reason"] for failure in verdict["failures"]]
        self.failures.update(reason for reason in reasons if reason != "cannot_assess")
        self.labels += kind == "item"
        if is_judged and kind == "task":
            self._add_text(row)
        elif is_judged:
            answer = answer_of(verdict)
            self.preferences[str(answer)] += 1
            self.totals += len(row.get("subscores") or []) > 1 and kind == "item"
            label, category = row.get("label"), str(row.get("category") or "")
            self.answers[category, str(answer)] += 1
            if label in SIDES or (kind == "item" and label is not None):
                self.labelled += 1
                self.agreed += label == answer
                self.right[category, label == answer] += 1
        elif is_abstention(verdict):
            self.abstained += 1
        else:
            self.not_judged[next(iter(reasons), "unknown")] += 1
            cause = cause_of(verdict)
            if cause in self.causes or len(self.causes) < _MOST_CAUSES:
                self.causes[cause] += 1
        if stage := row.get("stage"):
            self.stages[stage] += 1
        self.leaks += bool((row.get("recalled") or {}).get("leaked"))
        if (flipped := verdict.get("flipped")) is not None:
            self.both_orders += 1
            self.flips += flipped

    def _add_text(self, row: ResultRow) -> None:
        omissions = row.get("missing") or []
        self.texts += 1
        self.complete += not omissions
        self.concepts += len(row.get("concepts") or [])
        self.lost.update(each["lost_in"] for each in omissions)

    def sides(self) -> list[str]:
        """Return the kinds of verdicts that are counted: the sides, or the labels."""
        return sorted(self.preferences) if self.labels else ["A", "B", "tie"]


def cause_of(verdict: AnyVerdict) -> str:
    """Return the reason why a row could not be judged: its first failure."""
    first = next(iter(verdict.get("failures") or []), None)
    if first is None:
        return "unknown"
    return f"{first['reason']}: {first['detail']}" if first["detail"] else str(first["reason"])


@contextmanager
def show_progress(summary: Summary) -> Iterator[Callable[[], None]]:
    """Show rows, calls, tokens, failures and the remaining time; give what draws them again.

    Nothing is shown if the output is not a terminal, such as a log file.
    """
    console = InertConsole(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (
        TextColumn("judging"),
        BarColumn(bar_width=30),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=summary.total)
        yield lambda: progress.update(
            task, completed=summary.rows, description=_progress_of(summary)
        )


def _progress_of(summary: Summary) -> str:
    failed = sum(summary.failures.values())
    of = f"/{summary.total:,}" if summary.total else ""
    return (
        f"{summary.rows:,}{of} rows  {summary.calls:,} calls  "
        f"{summary.tokens:,} tokens  {failed:,} failures"
    )
