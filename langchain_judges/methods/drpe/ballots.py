"""From the panel's replies to ballots, and what a ballot weighs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_judges.asking.question import Reply
from langchain_judges.methods.drpe.panel import ConfidenceKind
from langchain_judges.methods.drpe.parse import slot_vote, spoken_votes
from langchain_judges.methods.drpe.replies import RoleBallot, VoteWork, unit_names
from langchain_judges.orders import naming_identities, preferred_slot
from langchain_judges.verdict import Failure, FailureReason, Role


def vote_failure(unit: str, reason: FailureReason, detail: str) -> Failure:
    """Return what went wrong with a vote."""
    return {"step": "vote", "unit": unit, "reason": reason, "detail": detail}


def spoken(text: str, roles: Sequence[Role], batch: bool) -> dict[str, Any] | None:
    """Read votes in plain words into the shape that JSON replies have."""
    names = unit_names(len(roles))
    data = {
        names[position]: {"reason": vote.reason, "vote": vote.vote}
        for position, vote in spoken_votes(text, roles, alone=not batch).items()
    }
    return (data or None) if batch else data.get("role_1")


def read_ballots(
    reply: Reply, work: VoteWork, voters: Sequence[Role], batch: bool, place: str
) -> tuple[list[RoleBallot], list[Failure]]:
    """Return the usable ballots of a reply, and a failure for every role without one.

    Args:
        reply: The reply.
        work: What was asked.
        voters: The roles that were asked.
        batch: Whether they were asked in one call.
        place: What is put behind a role's name to tell the call from others.
    """
    if reply.data is None:
        return [], []
    ballots: list[RoleBallot] = []
    failures: list[Failure] = []
    names = unit_names(len(voters))
    for name, position, role in zip(names, work["positions"], voters, strict=True):
        part = reply.data.get(name) if batch else reply.data
        vote = slot_vote(part)
        if vote is None:
            reason: FailureReason = "missing" if part is None else "invalid_label"
            detail = f"no vote for 1 or 2 from {role['type']}{place}: {str(part)[:80]}"
            failures.append(vote_failure(role["type"], reason, detail))
            continue
        measured = reply.measured.get(name)
        ballots.append(
            {
                "position": position,
                "role": role["type"],
                "order": work["order"],
                "sample": work["sample"],
                "preference": preferred_slot(work["order"], vote.vote),
                "reason": naming_identities(vote.reason, work["order"], "candidate"),
                "confidence": float(measured[0]) if measured else None,
                "confidence_source": "logprobs" if measured else "none",
                "tokens": int(measured[1]) if measured else None,
            }
        )
    return ballots, failures


def weighed(
    ballots: Sequence[RoleBallot], confidence: ConfidenceKind
) -> tuple[list[RoleBallot], list[Failure]]:
    """Settle what ballots weigh where the log-probabilities of some are not known.

    Probabilities and plain ones are never summed together.
    """
    unmeasured = [ballot for ballot in ballots if ballot["confidence"] is None]
    if confidence not in {"auto", "logprobs", "soft"} or not unmeasured:
        return list(ballots), []
    if confidence == "auto":
        plain: list[RoleBallot] = [
            {**ballot, "confidence": None, "confidence_source": "none", "tokens": None}
            for ballot in ballots
        ]
        detail = "every vote weighs one: the model gave no token log-probabilities"
        return plain, [vote_failure("panel", "no_logprobs", detail)]
    detail = "the vote needs token log-probabilities, and the model gave none"
    return (
        [ballot for ballot in ballots if ballot["confidence"] is not None],
        [vote_failure(ballot["role"], "no_logprobs", detail) for ballot in unmeasured],
    )
