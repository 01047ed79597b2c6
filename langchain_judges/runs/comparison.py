"""Methods side by side: who takes part, the same rows and budget of calls, one table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import TypedDict

from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError
from langchain_judges.methods.declaration import BudgetError, read_spec
from langchain_judges.methods.describe import kind_of, metadata_of
from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge, within_budget
from langchain_judges.options import with_options
from langchain_judges.rows.checks import SIDES
from langchain_judges.rows.files import whole_file
from langchain_judges.runs.many import Run, judge_many
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.rows import judged_row
from langchain_judges.runs.run_state import Judge, Rows

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def line_up(
    methods: Sequence[str],
    model: str | BaseChatModel,
    *,
    budget: int | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[dict[str, Judge], dict[str, str]]:
    """Create a judge for each method, with the settings that fit the budget.

    Args:
        methods: Names of methods, `"cascade"` and `"jury"` among them.
        model: A model, as for `resolve_model`; the same for every method.
        budget: The most calls for one pair, excluding repairs; None for each method's own cost.
        options: More options of a method, by its name; they override the budget's settings,
            and a method that then needs more calls than the budget is skipped.

    Returns:
        The judges by method, and the reasons of the methods that were skipped: the budget is
        too small for one, or it judges no pairs.

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
    judges: dict[str, Judge] = {}
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
        judge = load_judge(method, chat, **{**settings, **own.get(method, {})})
        calls = metadata_of(judge)["calls"]
        if budget is not None and calls > budget:
            skipped[method] = f"{calls} calls for a pair are more than the budget of {budget}"
        else:
            judges[method] = judge
    if not judges:
        reasons = "; ".join(f"{method}: {why}" for method, why in skipped.items())
        raise OptionError(f"no method can take part: {reasons}")
    return judges, skipped


def of_specs(paths: Sequence[str | os.PathLike[str]]) -> dict[str, Judge]:
    """Return the judges that files describe, each by the name of its file.

    Args:
        paths: JSON files of judges of pairs, as `judge.spec` returns them.

    Raises:
        OptionError: A file holds no spec, or a judge labels single texts.
        ModelSetupError: A model cannot be made.
    """
    names = [Path(path).stem for path in paths]
    if len(set(names) - METHODS.keys() - COMBINATIONS.keys()) < len(names):
        raise OptionError(
            f"the file of a spec names its judge: no method's name, none twice; got {names!r}"
        )
    judges: dict[str, Judge] = {
        name: load_judge(read_spec(Path(path))) for name, path in zip(names, paths, strict=True)
    }
    if single := [name for name, judge in judges.items() if kind_of(judge) != "pair"]:
        raise OptionError(f"{single[0]} labels single texts, and a comparison needs pairs")
    return judges


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


class Comparison(TypedDict):
    """The results of a comparison; plain JSON.

    Attributes:
        methods: Results by the name of the judge.
        agreement: How often two judges agree, of the rows that both judged: by the name of the
            first, then by that of a later one.
    """

    methods: dict[str, Standing]
    agreement: dict[str, dict[str, Rate]]


class CompareOptions(RunLimits):
    """How `compare` runs.

    Attributes:
        prices: Prices of tokens, as in `judge_many`.
        out: Directory with a results file for each method, from which an interrupted run
            resumes.
    """

    called: ClassVar[str] = "compare"

    prices: FilePath = None
    out: FilePath = None


@with_options(CompareOptions)
def compare(judges: Mapping[str, Judge], rows: Rows, options: CompareOptions) -> Comparison:
    """Run several judges on the same rows and count the verdicts.

    Args:
        judges: Judges of pairs by name, such as the first result of `line_up`.
        rows: The pairs; read once for each judge.
        options: Each by its name.

    Returns:
        The comparison.

    Raises:
        InputError, ModelAccessError, RepeatedFailureError, OutputError: As `judge_many`.
    """
    rows = rows if not hasattr(rows, "__next__") else list(rows)
    standings: dict[str, Standing] = {}
    preferences: dict[str, dict[int, str]] = {}
    for name, judge in judges.items():
        run = judge_many(
            judge,
            rows,
            records=Path(options.out) / f"{name}.jsonl" if options.out is not None else None,
            max_concurrency=options.max_concurrency,
            progress=options.progress,
            prices=options.prices,
        )
        standings[name], preferences[name] = _standing(judge, run)
    agreement: dict[str, dict[str, Rate]] = {name: {} for name in judges}
    for a, b in combinations(judges, 2):
        agreement[a][b] = _same(preferences[a], preferences[b])
    return {"methods": standings, "agreement": agreement}


def _standing(judge: Judge, run: Run) -> tuple[Standing, dict[int, str]]:
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
    labels, metadata = counts["labels"], metadata_of(judge)
    standing: Standing = {
        "options": metadata.get("options") or {},
        "calls_each": metadata["calls"],
        "rows": summary.rows,
        "verdicts": {side: summary.preferences[side] for side in SIDES},
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
    with whole_file(Path(path)) as draft:
        draft.write_text(json.dumps(comparison, indent=2, ensure_ascii=False) + "\n", "utf-8")
