"""Several methods side by side: the same rows, the same budget of calls, one table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import mkstemp
from typing import Annotated, Any, ClassVar

from typing_extensions import TypedDict

from langchain_judges.options import Rule, with_options
from langchain_judges.rows.labels import SIDES
from langchain_judges.runs.line_up import Contestant
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.results import judged_row
from langchain_judges.runs.summary import Summary, cause_of
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
    """Why rows were not judged: the commonest of their first failures."""
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
    counts: dict[str, _Count] = {}
    for contestant in contestants:
        name = contestant["name"]
        count = counts[name] = _Count(contestant["options"], contestant["calls"])
        run = judge_many(
            contestant["judge"],
            rows,
            out=Path(options.out) / f"{name}.jsonl" if options.out is not None else None,
            max_concurrency=options.max_concurrency,
            progress=options.progress,
            keep_failed=options.keep_failed,
            prices=options.prices,
        )
        with run:
            for row in run:
                count.add(row)
        count.end(run.summary)
    return {
        "budget": options.budget,
        "methods": {name: count.standing() for name, count in counts.items()},
        "agreement": [
            {"methods": [a, b], "rate": _same(counts[a].preferences, counts[b].preferences)}
            for a, b in combinations(counts, 2)
        ],
        "skipped": dict(options.skipped or {}),
    }


@dataclass
class _Count:
    """The counts of one method, updated while it runs."""

    options: dict[str, Any]
    calls_each: int
    preferences: dict[int, str] = field(default_factory=dict)
    """The preference for every judged row, by the row's number."""
    rows: int = 0
    flips: int = 0
    both_orders: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    tokens: int = 0
    labelled: int = 0
    agreed: int = 0
    seconds: float = 0.0
    priced: bool = False
    unpriced: int = 0
    dollars: float = 0.0

    def end(self, summary: Summary) -> None:
        self.seconds = summary.seconds
        self.priced = bool(summary.prices)

    def add(self, row: Mapping[str, Any]) -> None:
        verdict = row["verdict"]
        self.rows += 1
        if judged_row(row):
            self.preferences[row["index"]] = verdict["preference"]
        else:
            self.causes[cause_of(verdict)] += 1
        if verdict["flipped"] is not None:
            self.both_orders += 1
            self.flips += verdict["flipped"]
        self.failures.update(failure["reason"] for failure in verdict["failures"])
        usage = verdict["usage"]
        self.calls += usage["calls"]
        cost = row.get("cost")
        self.dollars += cost or 0.0
        self.unpriced += cost is None and usage["calls"] > 0
        self.tokens += usage["input_tokens"] + usage["output_tokens"]
        if row.get("label") in SIDES:
            self.labelled += 1
            self.agreed += row["label"] == verdict["preference"]

    def standing(self) -> Standing:
        verdicts = Counter(self.preferences.values())
        return {
            "options": _plain(self.options),
            "calls_each": self.calls_each,
            "rows": self.rows,
            "verdicts": {side: verdicts[side] for side in ("A", "B", "tie")},
            "not_judged": self.rows - len(self.preferences),
            "flips": self.flips,
            "both_orders": self.both_orders,
            "failures": dict(self.failures),
            "causes": dict(self.causes.most_common(5)),
            "calls": self.calls,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "dollars": self.dollars if self.priced and not self.unpriced else None,
            "labelled": rate(self.agreed, self.labelled) if self.labelled else None,
        }


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain JSON; objects, such as embeddings, by their class."""
    text = json.dumps(options, default=lambda value: type(value).__name__)
    return json.loads(text)  # type: ignore[no-any-return]


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
    from langchain_judges.metrics import wilson_interval

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
