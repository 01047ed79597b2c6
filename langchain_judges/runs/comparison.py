"""Methods side by side: who takes part, the same rows and budget of calls, one table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from typing_extensions import TypedDict

from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError
from langchain_judges.methods.declaration import BudgetError, read_spec
from langchain_judges.methods.describe import kind_of, metadata_of
from langchain_judges.methods.registry import (
    COMBINATIONS,
    METHODS,
    load_judge,
    method_of,
    within_budget,
)
from langchain_judges.options import Rule, with_options
from langchain_judges.rows.checks import SIDES
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.rows import ResultRow, judged_row
from langchain_judges.runs.run_state import Judge, Rows
from langchain_judges.runs.summary import Summary

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Contestant(TypedDict):
    """A method with its settings."""

    name: str
    """The method, or the file of a spec."""
    method: str
    options: dict[str, Any]
    calls: int
    """The most calls for one pair, excluding repairs."""
    judge: Judge


def line_up(
    methods: Sequence[str],
    model: str | BaseChatModel,
    *,
    budget: int | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[list[Contestant], dict[str, str]]:
    """Create a judge for each method, with the settings that fit the budget.

    Args:
        methods: Names of methods, `"cascade"` and `"jury"` among them.
        model: A model, as for `resolve_model`; the same for every method.
        budget: The most calls for one pair, excluding repairs; None for each method's own cost.
        options: More options of a method, by its name; they override the budget's settings,
            and a method that then needs more calls than the budget is skipped.

    Returns:
        The contestants, and the reasons of the methods that were skipped: a method is not
        registered, or the budget is too small for it.

    Raises:
        OptionError: No method can take part, one is named twice or unknown, or an option is
            not allowed.
    """
    _check_names(methods, options or {})
    chat = resolve_model(model)
    contestants: list[Contestant] = []
    skipped: dict[str, str] = {}
    for method in methods:
        try:
            settings = _options_for(method, budget, (options or {}).get(method, {}))
            contestants.append(_contestant(method, chat, budget, settings))
        except _CannotTakePart as exc:
            skipped[method] = str(exc)
    if not contestants:
        reasons = "; ".join(f"{method}: {why}" for method, why in skipped.items())
        raise OptionError(f"no method can take part: {reasons}")
    return contestants, skipped


def _contestant(
    method: str, model: BaseChatModel, budget: int | None, settings: dict[str, Any]
) -> Contestant:
    contestant = contestant_of(method, method, settings, load_judge(method, model, **settings))
    calls = contestant["calls"]
    if budget is not None and calls > budget:
        raise _CannotTakePart(
            f"makes {calls} calls for a pair, more than the budget of {budget}"
        )
    return contestant


def contestant_of(
    name: str, method: str, options: Mapping[str, Any], judge: Judge
) -> Contestant:
    """Return a contestant, whose number of calls its judge's metadata say."""
    calls = int(metadata_of(judge)["calls"])
    return {
        "name": name,
        "method": method,
        "options": dict(options),
        "calls": calls,
        "judge": judge,
    }


def of_specs(paths: Sequence[str | os.PathLike[str]]) -> list[Contestant]:
    """Return the judges that files describe, each by the name of its file.

    Args:
        paths: JSON files of judges of pairs, as `judge.spec` returns them.

    Raises:
        OptionError: A file holds no spec, or a judge labels single texts.
        ModelSetupError: A model cannot be made.
    """
    contestants: list[Contestant] = []
    names = [Path(path).stem for path in paths]
    if len(set(names) - METHODS.keys() - COMBINATIONS.keys()) < len(names):
        raise OptionError(
            f"the file of a spec names its judge: no method's name, none twice; got {names!r}"
        )
    for path in map(Path, paths):
        spec = read_spec(path)
        judge = load_judge(spec)
        if kind_of(judge) != "pair":
            raise OptionError(f"{path} labels single texts, and a comparison needs pairs")
        options = spec.get("options") or {}
        contestants.append(contestant_of(path.stem, spec["method"], options, judge))
    return contestants


class _CannotTakePart(Exception):
    """A method cannot take part."""


def _check_names(methods: Sequence[str], options: Mapping[str, object]) -> None:
    if len(set(methods)) < len(methods):
        raise OptionError(f"each method can take part once, got {list(methods)!r}")
    unknown = set(methods) - METHODS.keys() - COMBINATIONS.keys()
    if unknown or not methods:
        methods_of_pairs = {**METHODS, **COMBINATIONS}.items()
        names = ", ".join(sorted(name for name, each in methods_of_pairs if each.budgets))
        raise OptionError(f"`methods` must be among {names}; got {sorted(unknown)!r}")
    if beyond := set(options) - set(methods):
        raise OptionError(f"`options` are for methods that take part, got {sorted(beyond)!r}")


def _options_for(
    method: str,
    budget: int | None,
    overrides: Mapping[str, object],
) -> dict[str, object]:
    """Return a method's options: the budget's, then its own."""
    kind = method_of(method)
    if kind.takes == "item":
        raise _CannotTakePart("it labels single texts, and a comparison needs pairs")
    if budget is not None and not kind.budgets:
        raise _CannotTakePart("it has no rule for a budget")
    try:
        settings = {} if budget is None else within_budget(method, budget)
    except BudgetError as exc:
        raise _CannotTakePart(str(exc)) from exc
    return {**settings, **overrides}


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
            records=Path(options.out) / f"{name}.jsonl" if options.out is not None else None,
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
