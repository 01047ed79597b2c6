"""One case judged for another framework: how it is asked, and what the outcome says."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NotRequired, Unpack

from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.errors import InputError, JudgeError
from langchain_judges.methods.describe import unwrapped
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.rows.kinds import kind_of_verdict
from langchain_judges.runs.workload import Judge
from langchain_judges.verdict import Failure, LabelVerdict, Verdict, no_usage, not_judged

CaseVerdict = Verdict | LabelVerdict
"""The verdict of a judge of either kind; that of another runnable may lack fields."""


class JudgmentResult(TypedDict):
    """What a judge returns, as far as another framework reads it."""

    verdict: CaseVerdict
    subscores: NotRequired[list[CriterionScore]]
    """Those of a judge of pairs have other fields."""


def config_for(judge: Judge, **config: Unpack[RunnableConfig]) -> RunnableConfig:
    """Return the configuration of one judgment, with a new thread if it is checkpointed."""
    if getattr(unwrapped(judge), "checkpointer", None):
        config["configurable"] = {"thread_id": str(uuid.uuid4())}
    return config


def verdict_of(
    judge: Judge, case: Mapping[str, object], config: RunnableConfig
) -> Steps[CaseVerdict]:
    """Judge one case and return its verdict.

    Raises:
        InputError: The case cannot be judged as it is.
        ModelAccessError: The provider rejects every call.
    """
    outcome = yield from outcome_of(judge, case, config)
    return outcome["verdict"]


def outcome_of(
    judge: Judge, case: Mapping[str, object], config: RunnableConfig
) -> Steps[JudgmentResult]:
    """Judge one case and return the judge's whole outcome; raises what `verdict_of` does."""
    outcome: JudgmentResult = yield Wait(
        lambda: judge.invoke(dict(case), config), lambda: judge.ainvoke(dict(case), config)
    )
    return outcome


def criteria_of(outcome: JudgmentResult, key: str) -> list[CriterionScore]:
    """Return the sub-scores of a judge of one text with several criteria."""
    parts = outcome.get("subscores") or []
    if len(parts) < 2 or kind_of_verdict(parts[0]) == "pair":
        return []
    # Questions drafted from a task are specific to it: no columns for a data set.
    return [part for part in parts if not part.get("drafted") and part["criterion"] != key]


def reason_for(subscore: CriterionScore) -> str:
    """Return the reason for a criterion's label, or that it was not judged."""
    return "Not judged." if subscore["label"] is None else subscore["reason"]


def error_verdict(exc: JudgeError) -> Verdict:
    """Return the verdict of a row that failed before it was judged."""
    is_input = isinstance(exc, InputError)
    failure: Failure = {
        "step": "input" if is_input else "judge",
        "unit": "",
        "reason": "missing" if is_input else "provider_error",
        "detail": str(exc),
    }
    return not_judged([failure], no_usage())
