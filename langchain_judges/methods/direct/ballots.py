"""From one reply of a baseline to its ballot, by identity of the texts."""

from __future__ import annotations

from langchain_judges.asking.question import Reply
from langchain_judges.asking.steps import Update
from langchain_judges.methods.direct.options import Baseline
from langchain_judges.methods.direct.replies import DirectBallot, JudgeWork
from langchain_judges.methods.expected import expected, lead_chance, no_expectation
from langchain_judges.orders import by_identity, naming_identities, prefer, preferred_slot


def balloted(options: Baseline, work: JudgeWork, reply: Reply, unit: str) -> Update:
    """Return the ballot of a reply that holds a label or two scores, and what it lacks.

    Args:
        options: The options.
        work: What was asked.
        reply: The reply; None in place of data makes no ballot.
        unit: What the call is named.
    """
    if not reply.data:
        return {}
    order = work["order"]
    ballot: DirectBallot = {
        "order": order,
        "sample": work["sample"],
        "preference": None,
        "scores": None,
        "explanation": naming_identities(reply.data["explanation"], order, options.noun),
        "probability": reply.measured.get("label"),
        "confidence": reply.measured.get("joint"),
    }
    if options.form.reads != "scores":
        ballot["preference"] = preferred_slot(order, reply.data["preference"])
        return {"ballots": [ballot]}
    scored = _scored(options, ballot, reply)
    if options.form.by_mean and not reply.measured.get(""):
        return {
            "ballots": [scored],
            "failures": [*reply.failures, no_expectation("judge", unit)],
        }
    return {"ballots": [scored]}


def _scored(options: Baseline, ballot: DirectBallot, reply: Reply) -> DirectBallot:
    """Return a ballot with the scores of a reply, as they were given or as expected."""
    order, data = ballot["order"], reply.data or {}
    chances = reply.measured.get("") if options.form.by_mean else None
    slots = (data["score_1"], data["score_2"])
    scores = by_identity(order, *(map(expected, chances) if chances else slots))
    leader = prefer({side: round(score, 9) for side, score in scores.items()})
    floats = {side: float(score) for side, score in scores.items()}
    result: DirectBallot = {**ballot, "scores": floats, "preference": leader}
    if chances:
        sides = by_identity(order, *chances)
        result["probability"] = lead_chance([(sides["A"], sides["B"], 1.0)], leader)
    return result
