"""Who takes part in a comparison of methods: each at a budget of calls, or at its own cost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError
from langchain_judges.methods.describe import kind_of, metadata_of
from langchain_judges.methods.options import BudgetError, read_spec
from langchain_judges.methods.registry import (
    COMBINATIONS,
    METHODS,
    build,
    load_judge,
    method_of,
    within_budget,
)
from langchain_judges.runs.workload import Judge

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
        judge = build(spec)
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
