"""Asks a member of a combined judge, and makes an opinion of what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph.errors import GraphBubbleUp

from langchain_judges.asking.faults import diagnosis
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import InputError, JudgeError, ModelAccessError
from langchain_judges.methods.items import item_of
from langchain_judges.methods.marks import Kind
from langchain_judges.methods.members import Member
from langchain_judges.methods.opinions import Opinion
from langchain_judges.methods.pairs import pair_of
from langchain_judges.verdict import Failure, FailureReason, Usage, no_usage


class MemberJudgment(NamedTuple):
    """What became of one member's judgment."""

    opinion: Opinion
    verdict: dict[str, Any]
    """Its verdict as it gave it."""
    failures: list[Failure]
    usage: Usage
    subscores: list[Any]
    """What it found by each criterion, where it judges by several."""


def ask_member(member: Member, kind: Kind, row: Mapping[str, object]) -> Steps[MemberJudgment]:
    """Ask a member about a row; what goes wrong with it is its failure, not the row's.

    Raises:
        JudgeError: The run was stopped, or the provider refuses the key.
    """
    judge = member.judge
    field = "preference" if kind == "pair" else "label"
    try:
        result = yield Effect(
            lambda: judge.invoke(row, {"run_name": member.name}),
            lambda: judge.ainvoke(row, {"run_name": member.name}),
        )
    except Exception as exc:  # a judge of any kind may raise anything: only it is lost
        if _ends_all(exc):
            raise
        problem = diagnosis(exc)
        invalid = isinstance(exc, InputError)
        reason: FailureReason = "invalid_input" if invalid else problem.reason
        detail = problem.detail[:500]
        failure: Failure = {"step": "ask", "unit": "", "reason": reason, "detail": detail}
        verdict: dict[str, Any] = {field: None, "failures": [failure]}
        result = {}
    else:
        verdict = result["verdict"]
    fields = (field, "score", "confidence", *(["flipped"] if kind == "pair" else []))
    failures: list[Any] = [
        {**failure, "unit": f"{member.name}: {failure['unit']}".removesuffix(": ")}
        for failure in verdict.get("failures") or []
    ]
    usage = verdict.get("usage") or no_usage()
    steps = {f"{member.name}: {step}": cost for step, cost in usage["by_step"].items()}
    opinion: Any = {
        "member": member.name,
        **{name: verdict.get(name) for name in fields},
        "rationale": verdict.get("rationale") or "",
        "calls": usage["calls"],
    }
    parts = result.get("subscores") or []
    return MemberJudgment(opinion, verdict, failures, {**usage, "by_step": steps}, parts)


def _ends_all(exc: Exception) -> bool:
    if isinstance(exc, ModelAccessError):
        return exc.status == 401
    is_of_judge = isinstance(exc, JudgeError) and not isinstance(exc, InputError)
    return is_of_judge or isinstance(exc, GraphBubbleUp)


def row_of(kind: Kind, state: Mapping[str, Any]) -> dict[str, object]:
    """Return the row that a state holds, as members are given it."""
    more = {name: state.get(name) for name in ("id", "group", "family")}
    row = {**pair_of(state), **more} if kind == "pair" else item_of(state)
    return {name: value for name, value in row.items() if value is not None}
