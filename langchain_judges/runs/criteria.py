"""The counts of a run by criterion: labels with shares, mean scores, what was not judged."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_judges.runs.run_row import ResultRow, judged_row, outcome_of
from langchain_judges.verdict import decision, is_abstention

Line = tuple[str, str, str, str, str]
"""Criterion, label (or mean, or not judged), rows, share or mean, its 95 % interval or why."""
HEAD: Line = ("criterion", "label", "rows", "share or mean", "95 % interval, or why")
"""What the cells of a line are."""


@dataclass
class _Counts:
    """The counts of a criterion."""

    labels: Counter[str] = field(default_factory=Counter)
    scores: array[float] = field(default_factory=lambda: array("d"))
    not_judged: Counter[str] = field(default_factory=Counter)


class Criteria:
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
            named = dict(zip("AB", systems or result.get("systems") or "AB", strict=False))
            label = named.get(str(answer), answer) if own == "preference" else answer
            self._count(own, label, outcome.get("score"), outcome)
        else:
            for part in parts:
                self._count(part["criterion"], part["label"], part.get("score"), outcome)
            self._count("total", None, outcome.get("score"), outcome)

    def _count(
        self, name: str, label: object, score: object, outcome: Mapping[str, Any]
    ) -> None:
        counts = self._counts[name]
        if isinstance(score, int | float):
            counts.scores.append(float(score))
        if label is not None:
            counts.labels[str(label)] += 1
        elif not isinstance(score, int | float):
            failures = outcome.get("failures") or []
            own = [each["reason"] for each in failures if name in str(each.get("unit"))]
            reasons = own or [each["reason"] for each in failures]
            abstained = "cannot_assess" if is_abstention(outcome) else "unknown"
            counts.not_judged[next(iter(reasons), abstained)] += 1

    def lines(self) -> Iterator[Line]:
        """Yield what each criterion came to."""
        # Loaded on use: statistics take longer to load than a short run.
        from langchain_judges.metrics.intervals import mean, wilson_interval

        for name, counts in (self._counts or {"rows": _Counts()}).items():
            total = counts.labels.total()
            for label, number in sorted(counts.labels.items()):
                low, high = wilson_interval(number, total)
                share, ends = f"{number / total:.0%}", f"{low:.0%} to {high:.0%}"
                yield name, label, f"{number:,}", _spaced(share), _spaced(ends)
            if counts.scores:
                found = mean(counts.scores)
                reach = found.interval
                if reach and all(0 <= score <= 1 for score in counts.scores):
                    reach = reach.within(0, 1)
                interval = (
                    f"{reach.low:.2f} to {reach.high:.2f}" if reach else found.no_interval
                )
                what = "mean score", f"{len(counts.scores):,}", f"{found:.2f}"
                yield name, *what, str(interval or "")
            for reason, number in (counts.not_judged + self._lost).most_common():
                yield name, "not judged", f"{number:,}", "", reason

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield who judged, and what it took."""
        for method, model, prompts in self._judges:
            yield "judge", " ".join(filter(None, (method, model and f"by {model}")))
            if prompts:
                yield "prompts", prompts
        yield from ((name, f"{number:,}") for name, number in self._spent.items())
        yield (
            "dollars",
            "no prices were named" if self._cost is None else f"{self._cost:.4f}",
        )

    def markdown(self) -> str:
        """Return the counts as Markdown."""
        rows = [HEAD, tuple("---" for _ in HEAD), *self.lines()]
        table = "".join(f"| {' | '.join(map(_in_markdown, row))} |\n" for row in rows)
        facts = "".join(f"- {name}: {_in_markdown(text)}\n" for name, text in self.facts())
        return f"{table}\n{facts}"


def _spaced(percent: str) -> str:
    return percent.replace("%", " %")


def _in_markdown(text: str) -> str:
    """Return a cell of Markdown: names of models and labels may hold its signs."""
    return "".join(f"\\{sign}" if sign in "|<>[]*`\\" else sign for sign in text)
