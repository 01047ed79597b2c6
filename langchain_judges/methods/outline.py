"""What a judge takes and whom it asks how often, known before any model or graph is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_judges.asking.models import ModelSpec
from langchain_judges.errors import OptionError
from langchain_judges.methods.marks import Kind, one_kind
from langchain_judges.methods.registry import COMBINATIONS, METHODS, options_of
from langchain_judges.methods.specs import checked_spec

if TYPE_CHECKING:
    from langchain_judges.methods.combination import Combination
    from langchain_judges.methods.options import JudgeOptions


class Asked(NamedTuple):
    """A model, and how often it is asked about a row."""

    calls: int
    model: ModelSpec


class Outline(NamedTuple):
    """What a judge takes, and whom it asks how often."""

    method: str
    kind: Kind
    asked: tuple[Asked, ...]

    @property
    def calls(self) -> int:
        """The most calls for a row, excluding retries."""
        return sum(each.calls for each in self.asked)

    @property
    def is_local(self) -> bool:
        """Whether a model inside this process is asked."""
        return any(each.model["name"].partition(":")[0] == "local" for each in self.asked)


def outline(spec: Mapping[str, object]) -> Outline:
    """Return what the judge of a spec takes and asks; its options are checked.

    Args:
        spec: A judge as `build` takes it; `options` may hold a memory too.

    Raises:
        OptionError: A field or an option is not allowed, or members do not fit together.
    """
    judge = checked_spec(spec)
    method, model = judge["method"], judge["model"]
    options = options_of(
        METHODS | COMBINATIONS, method, judge.get("preset"), judge.get("options") or {}
    )
    if method not in COMBINATIONS:
        judge_options = cast("JudgeOptions", options)
        model_spec: ModelSpec = {"name": model} if isinstance(model, str) else model
        return Outline(method, judge_options.takes, (Asked(judge_options.calls(), model_spec),))
    members = [outline(each) for each in _members(cast("Combination", options), model)]
    kinds = [(member.method, member.kind) for member in members]
    cast("Combination", options).check_size(len(members))
    return Outline(
        method, one_kind(kinds), tuple(each for member in members for each in member.asked)
    )


def _members(combination: Combination, model: object) -> list[dict[str, Any]]:
    """Return the specs of a judge's members."""
    entries: list[Any] = list(model) if isinstance(model, list | tuple) else [model]
    if not entries:
        raise OptionError(f"{combination.method!r} needs at least one member")
    if not any(isinstance(each, Mapping) and "method" in each for each in entries):
        return combination.specs_of_models(entries)
    return [
        dict(each) if "method" in each else {"method": "relative", "model": each}
        for each in entries
    ]
