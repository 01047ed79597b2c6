"""Judges inside LangChain, LangGraph and LangSmith: evaluators, agents, servers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_judges.integrations.best_of import best_of
    from langchain_judges.integrations.classic import load_classic_evaluator
    from langchain_judges.integrations.corrections import read_corrections
    from langchain_judges.integrations.evaluators import as_evaluator
    from langchain_judges.integrations.experiments import (
        as_comparative_evaluator,
        summary_evaluators,
    )
    from langchain_judges.integrations.langsmith_runs import baseline_outputs, end_traces
    from langchain_judges.integrations.middleware import JudgeMiddleware
    from langchain_judges.integrations.server import serve
    from langchain_judges.integrations.tool import judge_tool

# Resolved on first use: each loads the library that it plugs into.
_HOMES = {
    "JudgeMiddleware": "middleware",
    "as_comparative_evaluator": "experiments",
    "as_evaluator": "evaluators",
    "baseline_outputs": "langsmith_runs",
    "best_of": "best_of",
    "end_traces": "langsmith_runs",
    "judge_tool": "tool",
    "load_classic_evaluator": "classic",
    "read_corrections": "corrections",
    "serve": "server",
    "summary_evaluators": "experiments",
}

__all__ = [
    "JudgeMiddleware",
    "as_comparative_evaluator",
    "as_evaluator",
    "baseline_outputs",
    "best_of",
    "end_traces",
    "judge_tool",
    "load_classic_evaluator",
    "read_corrections",
    "serve",
    "summary_evaluators",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
