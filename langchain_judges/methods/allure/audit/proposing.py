"""What an auditor is asked in a round: a proposal for each label that nobody has decided."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.methods.allure.audit.modes import Mode, corpus_of, suggest_mode
from langchain_judges.methods.allure.audit.review import AuditItem, AuditProposal
from langchain_judges.methods.allure.audit.state import AuditState, PlainDoubt

UNDOUBTED = "no rule doubts this label; it was drawn to see whether the judge is right"
"""Told to the auditor of a label that was drawn."""


def proposals_of(
    state: AuditState, check: str, modes: Sequence[Mode]
) -> tuple[list[AuditProposal], list[AuditProposal]]:
    """Return the proposals of the labels that the check doubts, and those of all others."""
    decisions = {(each["id"], each["wrong"]) for each in state["decisions"]}
    corpus = corpus_of(state["pool"])
    doubts: list[AuditProposal] = []
    others: list[AuditProposal] = []
    for item in state["pool"]:
        label = state["verdicts"][item["id"]]["label"]
        if label is None or (item["id"], label) in decisions:
            continue
        if doubt := state["doubts"].get(item["id"]):
            mode = suggest_mode(item, corpus, modes)
            doubts.append(_proposal(state, item, doubt, check, mode))
        else:
            others.append(
                _proposal(state, item, {"label": label, "why": UNDOUBTED}, check, None)
            )
    return doubts, others


def _proposal(
    state: AuditState,
    item: AuditItem,
    doubt: PlainDoubt,
    check: str,
    mode: str | None,
) -> AuditProposal:
    verdict = state["verdicts"][item["id"]]
    assert verdict["label"] is not None  # noqa: S101 - what was not judged is not audited
    return {
        "id": item["id"],
        "round": state["round"],
        "item": item,
        "label": verdict["label"],
        "score": verdict["score"],
        "rationale": verdict["rationale"],
        "proposed": doubt["label"],
        "why": doubt["why"],
        "check": check,
        "mode": mode,
    }
