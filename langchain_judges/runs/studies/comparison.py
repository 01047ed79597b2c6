"""Several methods side by side: the same rows, the same budget of calls, one table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import mkstemp
from typing import Annotated, Any, ClassVar

from typing_extensions import TypedDict

from langchain_judges.options import Rule, with_options
from langchain_judges.rows.labels import SIDES
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.result_row import ResultRow, judged_row
from langchain_judges.runs.studies.line_up import Contestant
from langchain_judges.runs.summary import Summary
from langchain_judges.runs.workload import Rows


class Rate(TypedDict):
    """A share with its 95 % interval (Wilson); the numbers are None where `of` is 0."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


class Standing(TypedDict):
    """The results of one method."""

    options: dict[str, Any]
    calls_each: int
    rows: int
    verdicts: dict[str, int]
    """The number of verdicts `A`, `B` and `tie`."""
    not_judged: int
    flips: int
    both_orders: int
    """Rows judged in both orders; `flips` is out of these."""
    failures: dict[str, int]
    """Every failure by reason, also those of rows that were judged."""
    causes: dict[str, int]
    """Why rows were not judged: the most frequent of their first failures."""
    calls: int
    tokens: int
    seconds: float
    """Seconds of this run; rows of an earlier run took none."""
    dollars: float | None
    """Cost of all replies; None without prices, or if a price is unknown."""
    labelled: Rate | None
    """Verdicts that equal their row's label. A row that was not judged counts as wrong; rows
    without a label A, B or tie are not counted. None if no row has one."""


class Agreement(TypedDict):
    """How often two methods agree, of the rows that both judged."""

    methods: list[str]
    rate: Rate


class Comparison(TypedDict):
    """The results of a comparison; plain JSON."""

    budget: int | None
    methods: dict[str, Standing]
    """Results by the name of the contestant."""
    agreement: list[Agreement]
    skipped: dict[str, str]
    """Methods that were not compared, and why."""


class CompareOptions(RunLimits):
    """How `compare` runs."""

    called: ClassVar[str] = "compare"

    budget: int | None = None
    """The budget given to `line_up`; stored in the comparison."""
    prices: FilePath = None
    """Prices of tokens, as in `judge_many`."""
    skipped: Annotated[Mapping[str, str] | None, Rule("reasons by method")] = None
    """The second result of `line_up`; stored in the comparison."""
    out: FilePath = None
    """Directory with a results file for each method, from which an interrupted run resumes."""


@with_options(CompareOptions)
def compare(
    contestants: Sequence[Contestant], rows: Rows, options: CompareOptions
) -> Comparison:
    """Run every contestant on the same rows and count the verdicts.

    Args:
        contestants: The first result of `line_up`.
        rows: The pairs; read once for each method.
        options: Each by its name.

    Returns:
        The comparison.

    Raises:
        InputError, ModelAccessError, RepeatedFailureError, OutputError: As `judge_many`.
    """
    rows = rows if not hasattr(rows, "__next__") else list(rows)
    entries: dict[str, _Entry] = {}
    for contestant in contestants:
        name = contestant["name"]
        run = judge_many(
            contestant["judge"],
            rows,
            out=Path(options.out) / f"{name}.jsonl" if options.out is not None else None,
            max_concurrency=options.max_concurrency,
            progress=options.progress,
            keep_failed=options.keep_failed,
            prices=options.prices,
        )
        entry = entries[name] = _Entry(contestant, run.summary)
        with run:
            for row in run:
                entry.add(row)
    return {
        "budget": options.budget,
        "methods": {name: entry.standing() for name, entry in entries.items()},
        "agreement": [
            {"methods": [a, b], "rate": _same(entries[a].preferences, entries[b].preferences)}
            for a, b in combinations(entries, 2)
        ],
        "skipped": dict(options.skipped or {}),
    }


@dataclass
class _Entry:
    """The run of one method, and what its summary does not count: earlier rows' costs too."""

    contestant: Contestant
    summary: Summary
    preferences: dict[int, str] = field(default_factory=dict)
    """The preference for every judged row, by the row's number."""
    labels: int = 0
    """Rows with a label A, B or tie, judged or not."""
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, row: ResultRow) -> None:
        verdict = row["verdict"]
        if judged_row(row):
            self.preferences[row["index"]] = verdict["preference"]
        self.labels += row.get("label") in SIDES
        usage, cost = verdict["usage"], row.get("cost")
        self.calls += usage["calls"]
        self.tokens += usage["input_tokens"] + usage["output_tokens"]
        self.cost += cost or 0.0
        self.unpriced += cost is None and usage["calls"] > 0

    def standing(self) -> Standing:
        summary = self.summary
        priced = summary.prices and not self.unpriced
        return {
            "options": _plain(self.contestant["options"]),
            "calls_each": self.contestant["calls"],
            "rows": summary.rows,
            "verdicts": {side: summary.preferences[side] for side in ("A", "B", "tie")},
            "not_judged": summary.not_judged.total(),
            "flips": summary.flips,
            "both_orders": summary.both_orders,
            "failures": dict(summary.failures),
            "causes": dict(summary.causes.most_common(5)),
            "calls": self.calls,
            "tokens": self.tokens,
            "seconds": summary.seconds,
            "dollars": self.cost if priced else None,
            "labelled": rate(summary.agreed, self.labels) if self.labels else None,
        }


def _plain(options: Mapping[str, object]) -> dict[str, Any]:
    """Return options as plain JSON; objects, such as embeddings, by their class."""
    text = json.dumps(options, default=lambda value: type(value).__name__)
    plain: dict[str, Any] = json.loads(text)
    return plain


def _same(first: Mapping[int, str], second: Mapping[int, str]) -> Rate:
    common = first.keys() & second.keys()
    return rate(sum(first[index] == second[index] for index in common), len(common))


def rate(count: int, of: int) -> Rate:
    """Return a share with its 95 % Wilson interval.

    >>> share = rate(8, 10)
    >>> round(share["low"], 4), round(share["high"], 4)
    (0.4902, 0.9433)
    """
    if not of:
        return {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    # Loaded on use, because the metrics load scipy.
    from langchain_judges.metrics.intervals import wilson_interval

    low, high = wilson_interval(count, of)
    return {"count": count, "of": of, "share": count / of, "low": low, "high": high}


def save(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write a comparison as JSON, atomically."""
    path = Path(path)
    text = json.dumps(comparison, indent=2, ensure_ascii=False) + "\n"
    file, copy = mkstemp(".tmp", ".comparison-", path.parent)
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(copy, 0o644)
        os.replace(copy, path)
    except BaseException:
        Path(copy).unlink(missing_ok=True)
        raise
