"""The counts of a run: verdicts, failures, calls and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from langchain_judges.escaping import InertConsole
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.labels import SIDES
from langchain_judges.runs.rows import AnyVerdict, ResultRow, answer_of, judged_row, outcome_of
from langchain_judges.verdict import Label, is_abstention

_MOST_CAUSES = 1000
"""How many different causes are counted: every row may fail with a different message."""


_Opinions = tuple[Label | None, tuple[tuple[str, Label | None], ...]]
"""The label of a row, and the verdict of each member of a jury by its name."""


@dataclass
class Summary:
    """The counts of a run."""

    total: int | None = None
    """Total number of rows, if known before they are read; of a shard about its share."""
    rows: int = 0
    resumed: int = 0
    """Rows taken from an earlier run."""
    elsewhere: int = 0
    """Of these, rows that the same models judged at another address."""
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
    panels: int = 0
    """Rows on which at least two roles of a panel voted."""
    panel_votes: int = 0
    panel_agreement: float = 0.0
    """Summed over those rows: the share of pairs of roles with the same vote."""
    opinions: Counter[_Opinions] = field(default_factory=Counter)
    """The members' verdicts of a jury with the row's label, and how often each occurs."""
    stages: Counter[str] = field(default_factory=Counter)
    """Rows by the judge of a cascade that decided them."""
    silent: Counter[str] = field(default_factory=Counter)
    """Rows that a judge of a cascade handed on because nothing says how sure it is."""
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
    live: int = 0
    """Replies to ordinary calls, at the full price, for what batch jobs did not answer."""
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
        self._add_panel([v["preference"] for v in row.get("votes") or [] if v["preference"]])
        if members := row.get("members"):
            opinions = ((m["member"], m.get("preference", m.get("label"))) for m in members)
            self.opinions[row.get("label"), tuple(opinions)] += 1
        self._add_stages(row)
        self.leaks += bool((row.get("recalled") or {}).get("leaked"))
        if (flipped := verdict.get("flipped")) is not None:
            self.both_orders += 1
            self.flips += flipped

    def _add_stages(self, row: ResultRow) -> None:
        if stage := row.get("stage"):
            self.stages[stage] += 1
        for each in row.get("stages") or []:
            if each["certainty"] is None and each["member"] != stage:
                self.silent[each["member"]] += answer_of(each) is not None

    def _add_text(self, row: ResultRow) -> None:
        omissions = row.get("missing") or []
        self.texts += 1
        self.complete += not omissions
        self.concepts += len(row.get("concepts") or [])
        self.lost.update(each["lost_in"] for each in omissions)

    def sides(self) -> list[str]:
        """Return the kinds of verdicts that are counted: the sides, or the labels."""
        return sorted(self.preferences) if self.labels else ["A", "B", "tie"]

    def _add_panel(self, sides: Sequence[str]) -> None:
        pairs = list(combinations(sides, 2))
        if pairs:
            self.panels += 1
            self.panel_votes += len(sides)
            self.panel_agreement += sum(a == b for a, b in pairs) / len(pairs)

    @property
    def effective_voters(self) -> float | None:
        """How many independent voters the panel is worth; None if no panel voted.

        `N / (1 + (N - 1) r)`, where r is the mean agreement of two roles, rescaled so that
        agreeing on half of the rows, as two coins do, is no correlation.
        """
        if not self.panels:
            return None
        voters = self.panel_votes / self.panels
        correlation = max(0.0, 2 * self.panel_agreement / self.panels - 1)
        return voters / (1 + (voters - 1) * correlation)

    def jury(self) -> tuple[int, float, bool] | None:
        """Return the number of members of a jury, and of independent ones with the same weight.

        The last part says whether the estimate uses their errors, which needs ten labelled
        rows; otherwise it uses their votes and is lower. None without a jury or an estimate.
        """
        if not self.opinions:
            return None
        # Loaded on use, because the metrics load numpy.
        from langchain_judges.metrics import effective_voters

        rows = [opinion for opinion in self.opinions.elements() if opinion[0] is not None]
        labelled = len(rows) >= _LEAST_LABELLED
        rows = rows if labelled else list(self.opinions.elements())
        answers = [dict(opinion) for _, opinion in rows]
        names = dict.fromkeys(name for own in answers for name in own)
        votes = {name: [own.get(name) for own in answers] for name in names}
        voters = effective_voters(votes, [label for label, _ in rows] if labelled else None)
        return None if voters.reason else (len(names), float(voters), labelled)


_LEAST_LABELLED = 10


def cause_of(verdict: AnyVerdict) -> str:
    """Return the reason why a row could not be judged: its first failure."""
    first = next(iter(verdict.get("failures") or []), None)
    if first is None:
        return "unknown"
    return f"{first['reason']}: {first['detail']}" if first["detail"] else str(first["reason"])


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
