"""Methods side by side: who takes part, the same rows and budget of calls, one table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
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
    within_budget,
)
from langchain_judges.options import Rule, with_options
from langchain_judges.rows.checks import SIDES
from langchain_judges.runs.many import Run, judge_many
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.rows import judged_row
from langchain_judges.runs.run_state import Judge, Rows

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Contestant(TypedDict):
    """A method with its settings.

    Attributes:
        name: The method, or the file of a spec.
        calls: The most calls for one pair, excluding repairs.
    """

    name: str
    method: str
    options: dict[str, Any]
    calls: int
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
    known = {**METHODS, **COMBINATIONS}
    own = options or {}
    if not methods or len(set(methods)) < len(methods) or set(methods) - known.keys():
        names = ", ".join(sorted(name for name, each in known.items() if each.budgets))
        raise OptionError(f"`methods` must be among {names}, each once; got {list(methods)!r}")
    if beyond := set(own) - set(methods):
        raise OptionError(f"`options` are for methods that take part, got {sorted(beyond)!r}")
    chat = resolve_model(model)
    contestants: list[Contestant] = []
    skipped: dict[str, str] = {}
    for method in methods:
        if known[method].takes == "item" or (budget is not None and not known[method].budgets):
            skipped[method] = "it labels single texts, or has no rule for a budget"
            continue
        try:
            settings = {} if budget is None else within_budget(method, budget)
        except BudgetError as exc:
            skipped[method] = str(exc)
            continue
        settings |= own.get(method, {})
        contestant = _contestant(method, method, settings, load_judge(method, chat, **settings))
        calls = contestant["calls"]
        if budget is not None and calls > budget:
            skipped[method] = f"{calls} calls for a pair are more than the budget of {budget}"
        else:
            contestants.append(contestant)
    if not contestants:
        reasons = "; ".join(f"{method}: {why}" for method, why in skipped.items())
        raise OptionError(f"no method can take part: {reasons}")
    return contestants, skipped


def _contestant(name: str, method: str, options: Mapping[str, Any], judge: Judge) -> Contestant:
    calls = int(metadata_of(judge)["calls"])
    return Contestant(name=name, method=method, options=dict(options), calls=calls, judge=judge)


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
        contestants.append(_contestant(path.stem, spec["method"], options, judge))
    return contestants


class Rate(TypedDict):
    """A share with its 95 % interval (Wilson); the numbers are None where `of` is 0."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


class Standing(TypedDict):
    """The results of one method.

    Attributes:
        verdicts: The number of verdicts `A`, `B` and `tie`.
        both_orders: Rows judged in both orders; `flips` is out of these.
        failures: Every failure by reason, also those of rows that were judged.
        causes: Why rows were not judged: the most frequent of their first failures.
        dollars: Cost of all replies; None without prices, or if a price is unknown.
        labelled: Verdicts that equal their row's label. A row that was not judged counts as
            wrong; rows without a label A, B or tie are not counted. None if no row has one.
    """

    options: dict[str, Any]
    calls_each: int
    rows: int
    verdicts: dict[str, int]
    not_judged: int
    flips: int
    both_orders: int
    failures: dict[str, int]
    causes: dict[str, int]
    calls: int
    tokens: int
    dollars: float | None
    labelled: Rate | None


class Agreement(TypedDict):
    """How often two methods agree, of the rows that both judged."""

    methods: list[str]
    rate: Rate


class Comparison(TypedDict):
    """The results of a comparison; plain JSON.

    Attributes:
        methods: Results by the name of the contestant.
        skipped: Methods that were not compared, and why.
    """

    budget: int | None
    methods: dict[str, Standing]
    agreement: list[Agreement]
    skipped: dict[str, str]


class CompareOptions(RunLimits):
    """How `compare` runs.

    Attributes:
        budget: The budget given to `line_up`; stored in the comparison.
        prices: Prices of tokens, as in `judge_many`.
        skipped: The second result of `line_up`; stored in the comparison.
        out: Directory with a results file for each method, from which an interrupted run
            resumes.
    """

    called: ClassVar[str] = "compare"

    budget: int | None = None
    prices: FilePath = None
    skipped: Annotated[Mapping[str, str] | None, Rule("reasons by method")] = None
    out: FilePath = None


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
    standings: dict[str, Standing] = {}
    preferences: dict[str, dict[int, str]] = {}
    for contestant in contestants:
        name = contestant["name"]
        run = judge_many(
            contestant["judge"],
            rows,
            records=Path(options.out) / f"{name}.jsonl" if options.out is not None else None,
            max_concurrency=options.max_concurrency,
            progress=options.progress,
            prices=options.prices,
        )
        standings[name], preferences[name] = _standing(contestant, run)
    return {
        "budget": options.budget,
        "methods": standings,
        "agreement": [
            {"methods": [a, b], "rate": _same(preferences[a], preferences[b])}
            for a, b in combinations(standings, 2)
        ],
        "skipped": dict(options.skipped or {}),
    }


def _standing(contestant: Contestant, run: Run) -> tuple[Standing, dict[int, str]]:
    """Judge to the end; return the results, and the preference for every judged row.

    Calls, tokens and dollars are those of all rows, of earlier runs too.
    """
    preferences: dict[int, str] = {}
    counts, dollars, summary = Counter[str](), 0.0, run.summary
    with run:
        for row in run:
            verdict, cost = row["verdict"], row.get("cost")
            usage = verdict["usage"]
            if judged_row(row):
                preferences[row["index"]] = verdict["preference"]
            counts["labels"] += row.get("label") in SIDES
            counts["calls"] += usage["calls"]
            counts["tokens"] += usage["input_tokens"] + usage["output_tokens"]
            counts["unpriced"] += cost is None and usage["calls"] > 0
            dollars += cost or 0.0
    # Objects, such as embeddings, are named by their class.
    options = json.dumps(contestant["options"], default=lambda value: type(value).__name__)
    labels = counts["labels"]
    standing: Standing = {
        "options": json.loads(options),
        "calls_each": contestant["calls"],
        "rows": summary.rows,
        "verdicts": {side: summary.preferences[side] for side in ("A", "B", "tie")},
        "not_judged": summary.not_judged.total(),
        "flips": summary.flips,
        "both_orders": summary.both_orders,
        "failures": dict(summary.failures),
        "causes": dict(summary.causes.most_common(5)),
        "calls": counts["calls"],
        "tokens": counts["tokens"],
        "dollars": dollars if summary.prices and not counts["unpriced"] else None,
        "labelled": rate(summary.agreed, labels) if labels else None,
    }
    return standing, preferences


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
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(json.dumps(comparison, indent=2, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(path)
