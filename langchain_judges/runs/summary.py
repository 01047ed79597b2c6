"""The counts of a run: verdicts, failures, calls, tokens; and in sentences what it decides."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_judges import escaping, metrics
from langchain_judges.rows.checks import SIDES, kind_of_result, names_of_sides
from langchain_judges.runs.run_row import RUN_ERRORS, AnyVerdict, ResultRow, judged_row, outcome_of
from langchain_judges.verdict import Label, decision, failures_in, is_abstention


class Spelt(float):
    """A number with the format in which it is written, and the one of its cell in a sheet."""

    spelling, form = ".2f", "0.00"

    def __str__(self) -> str:
        return f"{self:{self.spelling}}"


class Percent(Spelt):
    """A share, which is shown as a percentage."""

    spelling, form = ".1%", "0.0%"


class Dollars(Spelt):
    """A cost."""

    spelling, form = ".4f", "0.0000"


Cell = str | int | Spelt
# Criterion, label (or mean, or not judged), rows, share or mean, its 95 % interval or why.
CountLine = tuple[str, Label, Cell, Cell, Label | Sequence[Spelt]]
# What the cells of a line are.
HEAD = ("criterion", "label", "rows", "share or mean", "95 % interval, or why")
# How many different causes are counted: every row may fail with a different message.
_MOST_CAUSES = 1000


@dataclass
class _Counts:
    """The counts of a criterion."""

    labels: Counter[Label] = field(default_factory=Counter)
    scores: array[float] = field(default_factory=lambda: array("d"))
    not_judged: Counter[str] = field(default_factory=Counter)
    # None stands in it too, of a part without one.
    best: set[Any] = field(default_factory=set)


class CriterionCounts:
    """The verdicts of a run, counted by criterion; of pairs, by who is preferred."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._counts: dict[str, _Counts] = defaultdict(_Counts)
        # Rows of which nothing was judged, by the reason.
        self._lost = Counter[str]()
        self._judges: dict[tuple[str, ...], None] = {}
        self._spent = Counter[str]()
        self._cost: float | None = None

    @property
    def several(self) -> bool:
        """Whether rows are judged by more than one criterion."""
        return len(self._counts) > 1

    def add(self, result: ResultRow, systems: Sequence[str] | None = None) -> None:
        """Count a result of `judge_many`; `systems` names A and B."""
        outcome, judge = outcome_of(result), result.get("judge") or {}
        usage = outcome.get("usage") or {}
        self._spent += Counter(
            rows=1,
            calls=usage.get("calls", 0),
            tokens=usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
        )
        if "cost" in result:
            self._cost = (self._cost or 0.0) + (result["cost"] or 0.0)
        names = (str(judge.get(name) or "") for name in ("method", "model", "prompts"))
        self._judges[tuple(names)] = None
        parts = [each for each in result.get("subscores") or [] if "label" in each]
        if len(parts) < 2 and not judged_row(result) and not is_abstention(outcome):
            reasons = (each["reason"] for each in outcome.get("failures") or [])
            self._lost[next(reasons, "unknown")] += 1
        elif len(parts) < 2:
            own = "label" if "label" in outcome else "preference"
            answer = decision(outcome)
            named = names_of_sides(result, systems)
            label = named.get(str(answer), answer) if own == "preference" else answer
            self._count(own, label, outcome.get("score"), outcome)
            self._counts[own].best |= {part.get("best") for part in parts}
        else:
            for part in parts:
                self._count(part["criterion"], part["label"], part.get("score"), outcome)
                self._counts[part["criterion"]].best.add(part.get("best"))
            self._count("total", None, outcome.get("score"), outcome)

    def _count(self, name: str, label: Any, score: object, outcome: Mapping[str, Any]) -> None:
        counts = self._counts[name]
        if isinstance(score, int | float):
            counts.scores.append(float(score))
        if label is not None:
            counts.labels[label] += 1
        elif not isinstance(score, int | float):
            failures = outcome.get("failures") or []
            own = [each["reason"] for each in failures if name in str(each.get("unit"))]
            reasons = own or [each["reason"] for each in failures]
            abstained = "cannot_assess" if is_abstention(outcome) else "unknown"
            counts.not_judged[next(iter(reasons), abstained)] += 1

    @property
    def best(self) -> set[str]:
        """The best label, where rows are judged by one criterion."""
        return {*map(str, self._counts.get("label", _Counts()).best - {None})}

    def lines(self) -> Iterator[CountLine]:
        """Yield what each criterion came to."""
        for name, counts in (self._counts or {"rows": _Counts()}).items():
            total = counts.labels.total()
            for label, number in sorted(counts.labels.items(), key=str):
                share = metrics.rate([1] * number + [0] * (total - number))
                yield name, label, number, Percent(share), [*map(Percent, share.interval or ())]
            if counts.scores:
                found = metrics.mean(counts.scores)
                reach = found.interval
                if reach and all(0 <= score <= 1 for score in counts.scores):
                    reach = reach.within(0, 1)
                limits = [*map(Spelt, reach)] if reach else found.no_interval or ""
                yield name, "mean score", len(counts.scores), Spelt(found), limits
            yield from ((name, "best label", "", "", best) for best in counts.best - {None})
            for reason, number in (counts.not_judged + self._lost).most_common():
                yield name, "not judged", number, "", reason

    def written(self) -> Iterator[list[str]]:
        """Yield the cells of each line as texts."""
        for name, label, *cells, end in self.lines():
            ends = " to ".join(map(_written, end)) if isinstance(end, list) else str(end)
            yield [name, str(label), *map(_written, cells), ends]

    def facts(self) -> Iterator[tuple[str, Cell]]:
        """Yield who judged, and what it took."""
        for method, model, prompts in self._judges:
            yield "judge", " ".join(filter(None, (method, model and f"by {model}")))
            if prompts:
                yield "prompts", prompts
        yield from self._spent.items()
        yield "dollars", "no prices were named" if self._cost is None else Dollars(self._cost)

    def markdown(self) -> str:
        """The counts as Markdown."""
        rows = [HEAD, tuple("---" for _ in HEAD), *self.written()]
        table = "".join(f"| {' | '.join(map(escaping.escaped, row))} |\n" for row in rows)
        facts = (f"- {name}: {escaping.escaped(_written(own))}\n" for name, own in self.facts())
        return f"{table}\n{''.join(facts)}"


def _written(cell: Cell) -> str:
    if isinstance(cell, Percent):
        return _spaced(f"{cell:.0%}")
    return f"{cell:,}" if type(cell) is int else str(cell)


def _spaced(percent: str) -> str:
    return percent.replace("%", " %")


@dataclass
class Summary:
    """The counts of a run.

    Attributes:
        total: Total number of rows, if known before they are read; of a shard about its
            share.
        rows: Rows counted so far.
        resumed: Rows taken from an earlier run.
        elsewhere: Of these, rows that the same models judged at another address.
        preferences: Judged rows by preference, or by label.
        systems: The names of A and B, where they are the same in all rows.
        names: The systems that rows name.
        labels: Rows of a judge of one text; `preferences` then counts its labels.
        totals: Of these, rows whose label is the total of several criteria.
        not_judged: Rows without a verdict, by the reason of their first failure.
        abstained: Rows that the judge said it cannot assess; they are neither judged nor
            failed.
        causes: Rows without a verdict, by the message of their first failure.
        failures: Every failure by reason, also those of rows that were judged; no note on how
            a row was read.
        both_orders: Rows judged in both orders; `flips` is out of these.
        one_order: Pairs that one order decided, so that position alone may have.
        labelled: Judged rows with a label (for pairs A, B or tie); `agreed` is out of
            these.
        agreed: Rows whose verdict equals their label.
        answers: Judged rows by the answer, the winner's name in their `systems`, the
            category and the group.
        others: Rows of other judges in the results file, not counted otherwise.
        stages: Rows by the judge of a cascade that decided them.
        criteria: The verdicts by criterion.
        wrote: Whether the run writes texts instead of verdicts.
        texts: Texts written; the next three counts are of these.
        complete: Texts that use every concept.
        concepts: Concepts that they should use.
        assumed: Whether a label counts as good though nobody said so.
        lost: Concepts missing from them, by the step that lost them.
        leaks: Rows whose judge saw an example of the item itself or of its group.
        calls: Replies that this run received; earlier runs are not counted.
        answered: Those of them by other models than was asked, by name: of a router, a gateway
            or a fallback.
        tokens: Input and output tokens of these replies.
        cached_tokens: Input tokens that the provider reports as read from its prompt cache.
        prices: Source and date of the prices; None without prices.
        cost: Dollars for this run's replies with a known price.
        unpriced: Replies with an unknown price.
        spent: Dollars that count against `max_dollars`: of replies whose tokens nobody counted
            by the length of their texts.
    """

    total: int | None = None
    rows: int = 0
    resumed: int = 0
    elsewhere: int = 0
    preferences: Counter[str] = field(default_factory=Counter)
    systems: Sequence[str] | None = None
    names: set[str] = field(default_factory=set)
    labels: int = 0
    totals: int = 0
    assumed: bool = False
    not_judged: Counter[str] = field(default_factory=Counter)
    abstained: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    flips: int = 0
    both_orders: int = 0
    one_order: int = 0
    labelled: int = 0
    agreed: int = 0
    answers: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    others: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    criteria: CriterionCounts = field(default_factory=CriterionCounts)
    wrote: bool = False
    texts: int = 0
    complete: int = 0
    concepts: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    leaks: int = 0
    calls: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cached_tokens: int = 0
    prices: str | None = None
    cost: float = 0.0
    unpriced: int = 0
    spent: float = 0.0
    seconds: float = 0.0

    def add(self, row: ResultRow) -> None:
        """Count one row."""
        verdict = outcome_of(row)
        is_judged = judged_row(row)
        self.rows += 1
        kind = kind_of_result(row)
        self.wrote = kind == "task"
        reasons = [failure["reason"] for failure in failures_in(verdict)]
        self.failures.update(reason for reason in reasons if reason != "cannot_assess")
        self.labels += kind == "item"
        self.criteria.add(row)
        if is_judged and kind == "task":
            omissions = row.get("missing") or []
            self.texts += 1
            self.complete += not omissions
            self.concepts += len(row.get("concepts") or [])
            self.lost.update(each["lost_in"] for each in omissions)
        elif is_judged:
            answer = decision(verdict)
            self.preferences[str(answer)] += 1
            by_side = names_of_sides(row, None)
            self.names.update(by_side.values())
            self.totals += len(row.get("subscores") or []) > 1 and kind == "item"
            label = row.get("label")
            own = [row.get(name) for name in ("category", "group")]
            category, group = ("" if value is None else str(value) for value in own)
            self.answers[str(answer), by_side.get(str(answer), ""), category, group] += 1
            like = str if isinstance(answer, str) else int | float
            if label in SIDES or (kind == "item" and isinstance(label, like)):
                self.labelled += 1
                self.agreed += label == answer
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
        else:
            self.one_order += verdict.get("preference") in {"A", "B"}

    @property
    def sides(self) -> list[tuple[str, metrics.Result]] | None:
        """Two systems, and their shares of the decided pairs; None: rows name more than two."""
        by_name = not self.systems and len(self.names) > 1
        keys = sorted(self.names) if by_name else ["A", "B"]
        names = [*zip(self.systems or keys, keys, strict=True)] if len(keys) == 2 else []
        return [(name, self.share(key, int(by_name))) for name, key in names] or None

    def share(self, key: str, place: int = 0, *, category: str | None = None) -> metrics.Result:
        """The share of an answer among the decided pairs, or labels, or by `place` 1 of a system.

        Rows of one group count together.
        """
        own = [row for row in self.answers.elements() if self.labels or row[0] != "tie"]
        rows = [row for row in own if category in (None, row[2])]
        groups = [row[3] or n for n, row in enumerate(rows)]
        is_shared = len({*groups}) < len(groups)
        return metrics.rate(
            [row[place] == key for row in rows], groups=groups if is_shared else None
        )


def cause_of(verdict: AnyVerdict) -> str:
    """The reason why a row could not be judged: its first failure."""
    first = next(iter(verdict.get("failures") or []), {"reason": "unknown", "detail": ""})
    return ": ".join(filter(None, (first["reason"], first["detail"])))


@contextmanager
def show_progress(summary: Summary, *, on: bool) -> Iterator[Callable[[], None]]:
    """Show rows, calls, tokens, failures and the remaining time; give what draws them again.

    Nothing is shown unless `on`, nor if the output is not a terminal, such as a log file.
    """
    console = escaping.InertConsole(stderr=True)
    if not on or not console.is_terminal:
        yield lambda: None
        return
    columns = BarColumn(bar_width=30), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress("judging", *columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=summary.total)

        def show() -> None:
            of = f"/{summary.total:,}" if summary.total else ""
            cost = f"{summary.calls:,} calls  {summary.tokens:,} tokens"
            rows = f"{summary.rows:,}{of} rows"
            description = f"{rows}  {cost}  {summary.failures.total():,} failures"
            progress.update(task, completed=summary.rows, description=description)

        yield show


# Quantiles of a normal: 97.5 %, and the share of draws that is to settle, 80 %.
_Z, _Z_OF_POWER = 1.959964, 0.841621


def conclusion(summary: Summary, systems: Sequence[str] | None = None) -> list[str]:
    """Decisions of a run, one sentence each; none where no row was judged.

    Of pairs: who is better, in how many, with the 95 % interval of Wilson, whether that is
    settled, and about how many more pairs would settle it in 80 of 100 draws from these. Of
    labels: the rate of each.

    Args:
        summary: Of the run.
        systems: The names of A and B; None: those that the rows name, else A and B.
    """
    if summary.wrote or not summary.preferences:
        return []
    if summary.labels:
        return [_of_labels(summary)]
    sides = summary.sides if systems is None else replace(summary, systems=systems).sides
    if sides is None:
        systems_met = f"{len(summary.names):,} systems stand as A and B"
        return [f"{systems_met}, others from row to row: nothing is decided between two of them."]
    return [_of_pairs(summary, sides)]


def is_unsettled(summary: Summary) -> bool:
    """Whether a run of pairs does not settle which system is better."""
    if summary.wrote or summary.labels or not summary.preferences.total():
        return False
    best = max((share for _, share in summary.sides or ()), default=None)
    if not best or not best.interval:
        return True
    # Position may have decided every pair that was asked in one order.
    return best.interval[0] <= 0.5 or not _is_ahead(number_of(best) - summary.one_order, best.n)


def _of_pairs(summary: Summary, sides: Sequence[tuple[str, metrics.Result]]) -> str:
    (first, a), (second, b) = sides
    ties, decided = summary.preferences["tie"], a.n
    tied = f"; {counted(ties, 'tie is', 'ties are')} left out" if ties else ""
    if not decided:
        pairs = "The one pair is a tie" if ties == 1 else f"All {ties:,} pairs are ties"
        return f"{pairs}: nothing is decided."
    best, share = max(sides, key=lambda side: side[1])
    wins, text = number_of(share), f"{rate_text(share)}{tied}"
    found = f"{best} is better in {text}"
    if a == b:
        return f"{first} and {second} are even, {wins:,} to {wins:,}{tied}: not settled."
    if not is_unsettled(summary):
        return f"{found}: settled."
    if summary.one_order:
        pairs = counted(summary.one_order, "pair")
        return RUN_ERRORS["one_order"].format(best=best, share=text, pairs=pairs)
    if _is_ahead(wins, decided):
        return RUN_ERRORS["few_groups"].format(best=best, share=text)
    more = counted(_more_pairs(wins, decided - wins, ties), "more pair")
    return f"{found}: not settled; about {more} would settle a lead of this size."


def _is_ahead(wins: int, of: int) -> bool:
    """Whether the lower end of Wilson's interval of pairs on their own is above a half."""
    return 2 * wins - of > _Z * math.sqrt(of)


def _more_pairs(wins: int, losses: int, ties: int) -> int:
    """Number of further pairs that settle the lead in 80 of 100 draws from those at hand."""
    # Loaded on use: statistics take longer to load than a short run.
    from langchain_judges.metrics.inputs import fewest

    lead, decided, pairs = wins - losses, wins + losses, wins + losses + ties

    def settles(more: int) -> bool:
        growth = 1 + more / pairs
        spread = math.sqrt(more * (decided / pairs - (lead / pairs) ** 2))
        return lead * growth - _Z_OF_POWER * spread > _Z * math.sqrt(decided * growth)

    return fewest(settles) or 0


def _of_labels(summary: Summary) -> str:
    counts, total = summary.preferences, summary.preferences.total()
    if summary.totals:
        mean = sum(float(score) * number for score, number in counts.items()) / total
        return f"The mean total of {counted(total, 'row')} is {mean:.2f} (0 to 1)."
    rates = (f"{name} in {rate_text(summary.share(name))}" for name in sorted(counts))
    return f"Label {'; '.join(rates)}."


def rate_text(share: metrics.Result) -> str:
    """A count with its share and its 95 % interval.

    >>> rate_text(metrics.rate([1] * 24 + [0] * 16))
    '24 of 40 (60 %, 45–74 %)'
    """
    low, high = share.interval or (0.0, 1.0)
    return _spaced(f"{number_of(share):,} of {share.n:,} ({share:.0%}, {100 * low:.0f}–{high:.0%})")


def number_of(share: metrics.Result) -> int:
    """The number of answers that a share stands for."""
    return round(share * share.n) if share.n else 0


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "pair"), counted(2_000, "pair"), counted(2, "tie is", "ties are")
    ('1 pair', '2,000 pairs', '2 ties are')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"
