"""Every judging method by name: its presets and its factory. The one list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.methods.allure.judge import ALLURE
from langchain_judges.methods.base import GraphOptions
from langchain_judges.methods.bsm.judge import BSM
from langchain_judges.methods.budgets import Budget, fit
from langchain_judges.methods.direct.judge import (
    Absolute,
    ChainOfThought,
    Direct,
    LLMScore,
    PlanSolve,
    Relative,
    RelativeSelfConsistency,
    SelfConsistency,
)
from langchain_judges.methods.drpe.judge import DRPE
from langchain_judges.methods.evidence import EvidenceTable, Sketch
from langchain_judges.methods.sc2.judge import SC2
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph


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
    options_class: type[GraphOptions] | None = None

    @classmethod
    def of(cls, kind: type[GraphOptions]) -> Method:
        """Return the method that a class of options declares."""
        make = factory(kind, kind.build, f"create_{kind.method}_judge")
        return cls(
            make,
            kind.summary,
            kind.presets,
            kind=getattr(kind, "takes", "pair"),
            options_class=kind,
        )

    @property
    def budgets(self) -> Sequence[Budget]:
        """How it spends a budget of calls for a pair."""
        return self.options_class.budgets if self.options_class else ()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The default of each option."""
        if self.options_class:
            fields = self.options_class.model_fields
            return {name: field.get_default() for name, field in fields.items()}
        return self.factory.__kwdefaults__ or {}


METHODS: dict[str, Method] = {
    kind.method: Method.of(kind)
    for kind in (
        ALLURE,
        BSM,
        DRPE,
        SC2,
        Relative,
        Absolute,
        Direct,
        ChainOfThought,
        SelfConsistency,
        RelativeSelfConsistency,
        PlanSolve,
        LLMScore,
    )
}


def method_of(name: str) -> Method:
    """Return what judges under a name.

    Raises:
        OptionError: There is no such method.
    """
    found: Method = named(METHODS, name, "method")
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
    return load(METHODS, method, model, preset, options)


def within_budget(method: str, budget: int) -> dict[str, Any]:
    """Return the options with which a method spends at most `budget` calls for a pair.

    Raises:
        BudgetError: The budget is too small for the method.
        OptionError: It is not a whole number of at least 1, or the method has no rule for it.

    >>> within_budget("cot_sc", 16), within_budget("bsm", 16)
    ({'samples': 16}, {'max_criteria': 7})
    """
    if not (rules := method_of(method).budgets):
        raise OptionError(f"{method!r} has no rule how it spends a budget")
    return fit(method, rules, budget)


def evidence_tables() -> Sequence[EvidenceTable]:
    """Return what the methods show of their results on a page; each key once."""
    tables = [each for kind in _declared() for each in kind.evidence]
    return list({each.key: each for each in tables}.values())


def sketches() -> Sequence[Sketch]:
    """Return what the methods show of a result on a terminal."""
    return list(dict.fromkeys(each for kind in _declared() for each in kind.sketches))


def _declared() -> Sequence[type[GraphOptions]]:
    return [each.options_class for each in METHODS.values() if each.options_class]


def register(kind: type[GraphOptions]) -> None:
    """Let a method of your own be named, wherever methods are named.

    Raises:
        OptionError: There is another method of its name.
    """
    other = METHODS.get(kind.method)
    if other and other.options_class is not kind:
        raise OptionError(f"there is a method {kind.method!r} already")
    METHODS[kind.method] = Method.of(kind)


def build(spec: Mapping[str, Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Create the judge that a spec describes, as `judge.spec` returned it.

    Args:
        spec: `{"method", "model", "options"?, "preset"?}`, plain JSON.

    Raises:
        OptionError: A field is missing or unknown, or an option is not allowed.
        ModelSetupError: The model cannot be made.
    """
    names = set(spec) if isinstance(spec, Mapping) else set()
    if not {"method", "model"} <= names or names - {"method", "model", "options", "preset"}:
        raise OptionError(
            'a spec is {"method", "model", "options", "preset"}, the first two required; '
            f"got {sorted(map(str, names)) or spec!r}"
        )
    options = spec.get("options") or {}
    return load_judge(spec["method"], spec["model"], preset=spec.get("preset"), **options)


def load(
    table: Mapping[str, Method],
    method: str,
    model: str | BaseChatModel,
    preset: str | None,
    options: Mapping[str, Any],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Create what a table of methods holds under a name.

    Raises:
        OptionError: The method, preset or an option is unknown.
    """
    known = named(table, method, "method")
    chosen = dict(named(known.presets, preset, f"preset of {method!r}")) if preset else {}
    merged = {**known.options, **chosen, **options}
    for option in merged:
        if option not in known.defaults:
            raise OptionError(
                f"{method!r} has no option {option!r}; "
                f"it takes {', '.join(sorted(known.defaults))}"
            )
    made: CompiledStateGraph[Any, Any, Any, Any] = known.factory(model, **merged)
    return made


def named(table: Mapping[str, Any], name: str, what: str) -> Any:
    """Return what stands under a name, or raise `OptionError` with the names there are."""
    if name not in table:
        raise OptionError(f"there is no {what} {name!r}; there are {', '.join(sorted(table))}")
    return table[name]
