"""Every method by name: its presets and its factory. The one list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_judges.bsm import create_bsm_judge
from langchain_judges.drpe import create_drpe_judge
from langchain_judges.errors import OptionError

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


METHODS: dict[str, Method] = {
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
}


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
    known = _named(METHODS, method, "method")
    chosen = dict(_named(known.presets, preset, f"preset of {method!r}")) if preset else {}
    merged = {**chosen, **options}
    accepted = known.factory.__kwdefaults__ or {}
    for option in merged:
        if option not in accepted:
            raise OptionError(
                f"{method!r} has no option {option!r}; it takes {', '.join(sorted(accepted))}"
            )
    judge: CompiledStateGraph[Any, Any, Any, Any] = known.factory(model, **merged)
    return judge


def _named(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise OptionError(f"there is no {what} {name!r}; there are {', '.join(sorted(table))}")
    return table[name]
