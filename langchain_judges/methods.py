"""Every method by name: its presets and its factory. The one list of them.

`METHODS` judge, `WRITERS` write; the same name may stand in both, as Branch-Solve-Merge does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from langchain_judges.allure import create_allure_judge
from langchain_judges.bsm import create_bsm_judge, create_bsm_writer, create_direct_writer
from langchain_judges.budgets import RULES, BudgetError, fit
from langchain_judges.direct import (
    create_absolute_judge,
    create_cot_judge,
    create_direct_judge,
    create_llm_score_judge,
    create_plan_solve_judge,
    create_relative_judge,
    create_self_consistency_judge,
)
from langchain_judges.drpe import create_drpe_judge
from langchain_judges.errors import OptionError
from langchain_judges.models import resolve_model
from langchain_judges.sc2 import create_sc2_judge
from langchain_judges.sc2.options import AspectsLike, read_aspects
from langchain_judges.writing import STORY_RUBRIC

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph

    from langchain_judges.compare import Contestant


@dataclass(frozen=True)
class Method:
    """A method that can be named: on the command line, in a configuration."""

    factory: Callable[..., CompiledStateGraph[Any, Any, Any, Any]]
    summary: str
    presets: Mapping[str, Mapping[str, Any]]
    """Options by name; a preset is data, not another code path."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What makes the method of a factory that makes several."""
    kind: Literal["pair", "item"] = "pair"
    """What it judges: two texts, or one."""


METHODS: dict[str, Method] = {
    "allure": Method(
        factory=create_allure_judge,
        summary="ALLURE: label one text, shown the audited mistakes that matter for it.",
        presets={
            "bare": {"instruct": "bare", "recall": None},
            "criteria": {"instruct": "criteria", "recall": None},
            "steps": {"instruct": "steps", "recall": None},
            "examples": {"instruct": "steps"},
            "e1": {"rubric": "correctness", "recall": "all", "explain": "none"},
            "e2": {"rubric": "consistency", "recall": "all", "explain": "none"},
        },
        kind="item",
    ),
    "bsm": Method(
        factory=create_bsm_judge,
        summary="Branch-Solve-Merge: a plan of criteria, each scored in both orders, summed.",
        presets={
            "paper": {"reuse_plan": False},
            "neural_merge": {"merge": "model"},
            "self_consistency": {"samples": 5},
            "ten_points": {"scale": (1, 10)},
        },
    ),
    "drpe": Method(
        factory=create_drpe_judge,
        summary="DRPE: a panel of static and generated role-players votes; votes are weighed.",
        presets={
            "drpe": {},
            "drpe_v1": {
                "panel": {
                    "dynamic": 5,
                    "clustering": "dbscan",
                    "capped": True,
                    "merged_prompt": True,
                },
                "voting": {"order": "random"},
            },
            "manual": {"panel": {"static": "manual", "dynamic": 0}},
            "no_batch": {"voting": {"batch": False}},
            "no_clustering": {"panel": {"clustering": None}},
            "no_dynamic": {"panel": {"dynamic": 0}},
            "no_static": {"panel": {"static": []}},
        },
    ),
    "sc2": Method(
        factory=create_sc2_judge,
        summary="SC²: tables of what is shared and what differs; the most consistent decides.",
        presets={
            "paper": {"samples": 8, "inference": "tournament"},
            "one_table": {"samples": 1},
            "random": {"inference": "random"},
            "exact": {"inference": "exact"},
            "exact_unordered": {"inference": "exact_unordered"},
            "double_round": {"inference": "double_round"},
            "swiss": {"inference": "swiss"},
            "row_wise": {"row_wise": True},
            "few_shot": {"shots": 3},
            "both_orders": {"orders": "strict"},
            "table_only": {"table_only": True},
            "table_check": {"table_check": True},
        },
    ),
    "relative": Method(
        factory=create_relative_judge,
        summary="Zero-shot relative: which is better, or a tie; both orders must agree.",
        presets={"one_order": {"orders": "none"}},
    ),
    "absolute": Method(
        factory=create_absolute_judge,
        summary="Zero-shot absolute: two scores in one call; both orders must agree.",
        presets={"five_points": {"scale": (1, 5)}},
    ),
    "direct": Method(
        factory=create_direct_judge,
        summary="Direct prompting: one call, A or B.",
        presets={
            "with_aspects": {
                "aspects": ["relevance", "accuracy", "completeness", "clarity", "conciseness"]
            },
            "both_orders": {"orders": "strict"},
        },
    ),
    "cot": Method(
        factory=create_cot_judge,
        summary="Chain of thought: one call that reasons first, then A or B.",
        presets={"one_shot": {"shots": 1}, "few_shot": {"shots": 5}},
    ),
    "cot_sc": Method(
        factory=create_self_consistency_judge,
        summary="Self-consistency of SC²'s paper: the majority of eight chains of thought.",
        presets={"one_shot": {"shots": 1}, "few_shot": {"shots": 5}},
        options={"prompt": "cot"},
    ),
    "relative_sc": Method(
        factory=create_self_consistency_judge,
        summary="Self-consistency of BSM's paper: five relative verdicts in each order.",
        presets={"one_shot": {"shots": 1}, "few_shot": {"shots": 5}},
        options={"prompt": "relative"},
    ),
    "plan_solve": Method(
        factory=create_plan_solve_judge,
        summary="Plan & solve: a plan of criteria, then all of them scored in one call.",
        presets={"ten_points": {"scale": (1, 10)}},
    ),
    "llm_score": Method(
        factory=create_llm_score_judge,
        summary="DRPE's judge without roles: one choice, weighed by its token confidence.",
        presets={"both_orders": {"orders": "strict"}},
    ),
}

WRITERS: dict[str, Method] = {
    "bsm": Method(
        factory=create_bsm_writer,
        summary="Branch-Solve-Merge: concepts in groups, a draft of each, merged and mended.",
        presets={
            "paper": {"repair": 0},
            "tree": {"groups": 4, "merge": "tree"},
            "recursive": {"depth": 2},
        },
    ),
    "direct": Method(
        factory=create_direct_writer,
        summary="The paper's baselines: all concepts in one prompt, a topic first, samples.",
        presets={
            "zero_shot": {},
            "plan_solve": {"plan": True},
            "self_consistency": {"samples": 5},
            "best_coverage": {"samples": 5, "choose": "coverage"},
        },
    ),
}


def method_of(name: str) -> Method:
    """Return what judges under a name.

    Raises:
        OptionError: There is no such method.
    """
    found: Method = _named(METHODS, name, "method")
    return found


def load_judge(
    method: str, model: str | BaseChatModel, *, preset: str | None = None, **options: Any
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Create a judge by the name of its method.

    Args:
        method: A key of `METHODS`, such as `"bsm"`.
        model: What `resolve_model` takes.
        preset: One of the method's presets.
        **options: Keywords of the method's factory; they override the preset's.

    Raises:
        OptionError: The method, preset or an option is unknown.
    """
    return _load(METHODS, method, model, preset, options)


def load_writer(
    method: str, model: str | BaseChatModel, *, preset: str | None = None, **options: Any
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Create a writer by the name of its method.

    Args:
        method: A key of `WRITERS`: `"bsm"`, or `"direct"` for the baselines.
        model: What `resolve_model` takes.
        preset: One of the method's presets.
        **options: Keywords of the method's factory; they override the preset's.

    Raises:
        OptionError: The method, preset or an option is unknown.
    """
    return _load(WRITERS, method, model, preset, options)


def load_story_judge(
    model: str | BaseChatModel, **options: Any
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Create the default judge of `evaluate_writing`: zero-shot, relative, in both orders.

    Args:
        model: What `resolve_model` takes.
        **options: Keywords of the relative judge; `instructions` replaces the rubric of
            grammar, coherence and engagement.
    """
    return load_judge("relative", model, **{"instructions": STORY_RUBRIC, **options})


def line_up(
    methods: Sequence[str],
    model: str | BaseChatModel,
    *,
    budget: int,
    shots: int = 0,
    aspects: AspectsLike | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[list[Contestant], dict[str, str]]:
    """Make a judge of each method, with the settings that fit the budget.

    Args:
        methods: Names of methods.
        model: What `resolve_model` takes; every method is given the same.
        budget: Most calls for one pair, repairs apart.
        shots: Worked examples for every method that shows some.
        aspects: For every method that compares by aspects, as `create_sc2_judge` takes them;
            SC² gets `ASPECTS` without.
        options: More options of a method, by its name; they override the budget's, and a
            method that then asks more than the budget takes no part.

    Returns:
        The contestants, and why each of the others takes no part: it is not registered, or
        the budget is too small for it.

    Raises:
        OptionError: No method can take part, one is named twice or unknown, or an option is
            not allowed.
    """
    _check_names(methods, options or {})
    named, _ = read_aspects(aspects)
    chat = resolve_model(model)
    found: list[Contestant] = []
    skipped: dict[str, str] = {}
    for method in methods:
        try:
            shared = {"shots": shots, "aspects": list(named)}
            chosen = _chosen(method, budget, shared, (options or {}).get(method, {}))
        except _NoPart as exc:
            skipped[method] = str(exc)
            continue
        judge = load_judge(method, chat, **chosen)
        calls = int((judge.config or {})["metadata"]["calls"])
        if calls > budget:
            skipped[method] = f"asks {calls} calls for a pair, more than the budget of {budget}"
            continue
        found.append({"method": method, "options": chosen, "calls": calls, "judge": judge})
    if not found:
        reasons = "; ".join(f"{method}: {why}" for method, why in skipped.items())
        raise OptionError(f"no method can take part: {reasons}")
    return found, skipped


class _NoPart(Exception):
    """A method cannot take part."""


def _check_names(methods: Sequence[str], options: Mapping[str, Any]) -> None:
    if len(set(methods)) < len(methods):
        raise OptionError(f"each method can take part once, got {list(methods)!r}")
    unknown = set(methods) - METHODS.keys() - RULES.keys()
    if unknown or not methods:
        known = ", ".join(sorted(METHODS.keys() & RULES.keys()))
        raise OptionError(f"`methods` must be among {known}; got {sorted(unknown)!r}")
    if beyond := set(options) - set(methods):
        raise OptionError(f"`options` are for methods that take part, got {sorted(beyond)!r}")


def _chosen(
    method: str, budget: int, shared: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a method's options: the budget's, those that methods share, then its own."""
    if method not in METHODS:
        raise _NoPart("not registered")
    if METHODS[method].kind == "item":
        raise _NoPart("it labels single texts, and these are contests of pairs")
    if method not in RULES:
        raise _NoPart("there is no rule how it spends a budget")
    try:
        chosen = fit(method, budget)
    except BudgetError as exc:
        raise _NoPart(str(exc)) from exc
    takes = METHODS[method].factory.__kwdefaults__ or {}
    given = {name: value for name, value in shared.items() if value and name in takes}
    return {**chosen, **given, **own}


def _load(
    table: Mapping[str, Method],
    method: str,
    model: str | BaseChatModel,
    preset: str | None,
    options: Mapping[str, Any],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    known = _named(table, method, "method")
    chosen = dict(_named(known.presets, preset, f"preset of {method!r}")) if preset else {}
    merged = {**known.options, **chosen, **options}
    accepted = known.factory.__kwdefaults__ or {}
    for option in merged:
        if option not in accepted:
            raise OptionError(
                f"{method!r} has no option {option!r}; it takes {', '.join(sorted(accepted))}"
            )
    made: CompiledStateGraph[Any, Any, Any, Any] = known.factory(model, **merged)
    return made


def _named(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise OptionError(f"there is no {what} {name!r}; there are {', '.join(sorted(table))}")
    return table[name]
