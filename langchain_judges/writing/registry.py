"""Every writer by name: its presets and its factory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_judges.methods.registry import Method, load
from langchain_judges.writing.bsm import create_bsm_writer
from langchain_judges.writing.direct import create_direct_writer

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph

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
    return load(WRITERS, method, model, preset, options)
