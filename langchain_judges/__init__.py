"""Published ways to judge text with a language model, as LangGraph state machines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_judges.asking.batches.model import batch_model
    from langchain_judges.asking.limiter import MinuteLimiter
    from langchain_judges.asking.models import resolve_model
    from langchain_judges.errors import JudgeError
    from langchain_judges.integrations.best_of import best_of
    from langchain_judges.integrations.evaluators import as_evaluator
    from langchain_judges.integrations.experiments import as_comparative_evaluator
    from langchain_judges.integrations.langsmith_runs import end_traces
    from langchain_judges.integrations.middleware import JudgeMiddleware
    from langchain_judges.integrations.server import serve
    from langchain_judges.memory.failure_memory import FailureMemory
    from langchain_judges.memory.faiss.store import FaissStore
    from langchain_judges.methods.allure import create_allure_judge
    from langchain_judges.methods.allure.audit import create_allure_audit
    from langchain_judges.methods.bsm import create_bsm_judge
    from langchain_judges.methods.cascade import create_cascade
    from langchain_judges.methods.direct import (
        create_absolute_judge,
        create_cot_judge,
        create_direct_judge,
        create_llm_score_judge,
        create_plan_solve_judge,
        create_relative_judge,
        create_self_consistency_judge,
    )
    from langchain_judges.methods.drpe import Panel, Voting, create_drpe_judge
    from langchain_judges.methods.jury import create_jury
    from langchain_judges.methods.registry import build, load_judge
    from langchain_judges.methods.rubric import Criterion, create_rubric_judge
    from langchain_judges.methods.sc2 import create_sc2_judge, learn_aspects
    from langchain_judges.runs.assertion import assert_judged
    from langchain_judges.runs.calibration import calibrate_cascade
    from langchain_judges.runs.many import ajudge_many, judge_many
    from langchain_judges.runs.rank import rank
    from langchain_judges.verdict import (
        Failure,
        Item,
        LabelVerdict,
        Pair,
        Role,
        Row,
        Usage,
        Verdict,
        Vote,
    )
    from langchain_judges.writing.bsm import create_bsm_writer

# Resolved on first use: importing a name here would load numpy, LangGraph and langchain.
_HOMES = {
    "Criterion": "methods.rubric",
    "Failure": "verdict",
    "FailureMemory": "memory.failure_memory",
    "FaissStore": "memory.faiss.store",
    "Item": "verdict",
    "JudgeError": "errors",
    "JudgeMiddleware": "integrations.middleware",
    "LabelVerdict": "verdict",
    "MinuteLimiter": "asking.limiter",
    "Pair": "verdict",
    "Panel": "methods.drpe",
    "Role": "verdict",
    "Row": "verdict",
    "Usage": "verdict",
    "Verdict": "verdict",
    "Vote": "verdict",
    "Voting": "methods.drpe",
    "ajudge_many": "runs.many",
    "as_comparative_evaluator": "integrations.experiments",
    "as_evaluator": "integrations.evaluators",
    "assert_judged": "runs.assertion",
    "batch_model": "asking.batches.model",
    "best_of": "integrations.best_of",
    "build": "methods.registry",
    "calibrate_cascade": "runs.calibration",
    "create_absolute_judge": "methods.direct",
    "create_allure_audit": "methods.allure.audit",
    "create_allure_judge": "methods.allure",
    "create_bsm_judge": "methods.bsm",
    "create_bsm_writer": "writing.bsm",
    "create_cascade": "methods.cascade",
    "create_cot_judge": "methods.direct",
    "create_direct_judge": "methods.direct",
    "create_drpe_judge": "methods.drpe",
    "create_jury": "methods.jury",
    "create_llm_score_judge": "methods.direct",
    "create_plan_solve_judge": "methods.direct",
    "create_relative_judge": "methods.direct",
    "create_rubric_judge": "methods.rubric",
    "create_sc2_judge": "methods.sc2",
    "create_self_consistency_judge": "methods.direct",
    "end_traces": "integrations.langsmith_runs",
    "judge_many": "runs.many",
    "learn_aspects": "methods.sc2",
    "load_judge": "methods.registry",
    "rank": "runs.rank",
    "resolve_model": "asking.models",
    "serve": "integrations.server",
}

__all__ = [
    "Criterion",
    "Failure",
    "FailureMemory",
    "FaissStore",
    "Item",
    "JudgeError",
    "JudgeMiddleware",
    "LabelVerdict",
    "MinuteLimiter",
    "Pair",
    "Panel",
    "Role",
    "Row",
    "Usage",
    "Verdict",
    "Vote",
    "Voting",
    "ajudge_many",
    "as_comparative_evaluator",
    "as_evaluator",
    "assert_judged",
    "batch_model",
    "best_of",
    "build",
    "calibrate_cascade",
    "create_absolute_judge",
    "create_allure_audit",
    "create_allure_judge",
    "create_bsm_judge",
    "create_bsm_writer",
    "create_cascade",
    "create_cot_judge",
    "create_direct_judge",
    "create_drpe_judge",
    "create_jury",
    "create_llm_score_judge",
    "create_plan_solve_judge",
    "create_relative_judge",
    "create_rubric_judge",
    "create_sc2_judge",
    "create_self_consistency_judge",
    "end_traces",
    "judge_many",
    "learn_aspects",
    "load_judge",
    "rank",
    "resolve_model",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("langchain-judges")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
