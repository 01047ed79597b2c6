"""From ballots to a verdict: votes by role, and the sums of the paper's equation 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from langchain_judges.asking.question import Account, Reply
from langchain_judges.asking.reading import Problem, check
from langchain_judges.methods.drpe.options import DRPE, ConfidenceKind
from langchain_judges.methods.drpe.replies import Call, RoleBallot, RoleVote, unit_names
from langchain_judges.methods.pairs import OrderAnswer, first_reason, order_verdict
from langchain_judges.orders import ORDER_NAMES, Order, naming_ab, prefer, preferred_slot
from langchain_judges.verdict import Failure, FailureReason, Preference, Role, Verdict, Vote


def read_ballots(
    reply: Reply, call: Call, batch: bool, place: str
) -> tuple[list[RoleBallot], list[Failure]]:
    """The usable ballots of a reply, and a failure for every role without one.

    Args:
        reply: The reply.
        call: Whom it was asked of.
        batch: Whether roles were asked in one call.
        place: What is put behind a role's name to tell the call from others.
    """
    if reply.data is None:
        return [], []
    ballots: list[RoleBallot] = []
    failures: list[Failure] = []
    names = unit_names(len(call.positions))
    for name, position, role in zip(names, call.positions, call.voters, strict=True):
        part = reply.data.get(name) if batch else reply.data
        vote, _ = check(part, RoleVote)
        if vote is None:
            reason: FailureReason = "missing" if part is None else "invalid_label"
            detail = f"no vote for 1 or 2 from {role['type']}{place}: {str(part)[:80]}"
            failures.append(Problem(reason, detail).failure("vote", role["type"]))
            continue
        measured = reply.measured.get(name)
        ballots.append(
            {
                "position": position,
                "role": role["type"],
                "order": call.order,
                "sample": call.sample,
                "preference": preferred_slot(call.order, vote["vote"]),
                "reason": naming_ab(vote["reason"], call.order),
                "confidence": float(measured[0]) if measured else None,
                "confidence_source": "logprobs" if measured else "none",
                "tokens": int(measured[1]) if measured else None,
            }
        )
    return ballots, failures


def weighed(
    ballots: Sequence[RoleBallot], confidence: ConfidenceKind
) -> tuple[list[RoleBallot], list[Failure]]:
    """The ballots with their weights, where some log-probabilities are not known.

    Probabilities and plain counts are never summed together.
    """
    unmeasured = [ballot for ballot in ballots if ballot["confidence"] is None]
    if confidence not in {"auto", "logprobs"} or not unmeasured:
        return list(ballots), []
    if confidence == "auto":
        plain: list[RoleBallot] = [
            {**ballot, "confidence": None, "confidence_source": "none", "tokens": None}
            for ballot in ballots
        ]
        detail = "every vote weighs one: the model gave no token log-probabilities"
        return plain, [Problem("no_logprobs", detail).failure("vote", "panel")]
    missing = Problem("no_logprobs", "the vote needs token log-probabilities, none came")
    measured = [ballot for ballot in ballots if ballot["confidence"] is not None]
    return measured, [missing.failure("vote", ballot["role"]) for ballot in unmeasured]


def role_votes(
    roles: Sequence[Role], ballots: Sequence[RoleBallot], sampled: bool = False
) -> list[Vote]:
    """One vote for each role; over several samples or orders, the common one.

    A role whose ballots are divided evenly, or who has none, prefers nobody.

    Args:
        roles: The panel.
        ballots: Their ballots.
        sampled: Whether a vote's confidence is the share of its ballots that agree.
    """
    return [_vote(i, role, ballots, sampled) for i, role in enumerate(roles)]


def _vote(position: int, role: Role, ballots: Sequence[RoleBallot], sampled: bool) -> Vote:
    role_ballots = [ballot for ballot in ballots if ballot["position"] == position]
    sides = [ballot["preference"] for ballot in role_ballots]
    lead = sides.count("A") - sides.count("B")
    preference: Preference | None = "A" if lead > 0 else "B" if lead else None
    agreeing = [ballot for ballot in role_ballots if preference in {ballot["preference"], None}]
    sampled = sampled and preference is not None
    confidences = [b["confidence"] for b in agreeing if b["confidence"] is not None]
    confidence = fmean(confidences) if confidences else None
    if sampled:
        confidence = len(agreeing) / len(role_ballots)
    tokens = [b["tokens"] for b in agreeing if b["tokens"] is not None]
    return {
        "role": role["type"],
        "preference": preference,
        "reason": first_reason(agreeing[:1], "reason"),
        "confidence": confidence,
        "confidence_source": "samples" if sampled else "logprobs" if confidences else "none",
        "tokens": sum(tokens) if tokens else None,
    }


def order_sums(votes: Sequence[Vote]) -> dict[str, float]:
    """Sum the confidences of the votes for each text in one order (NLPCC, equation 4).

    A vote without a confidence weighs one.
    """
    sums = {"A": 0.0, "B": 0.0}
    for vote in votes:
        if vote["preference"]:
            weight = 1.0 if vote["confidence"] is None else vote["confidence"]
            sums[vote["preference"]] += weight
    return sums


def divided(by_order: Mapping[Order, Sequence[Vote]]) -> list[Failure]:
    """A failure for every role whose samples in an order are even."""
    detail = "as many samples for A as for B ({order}): the role has no vote"
    problems = {o: Problem("missing", detail.format(order=ORDER_NAMES[o])) for o in by_order}
    return [
        problems[order].failure("vote", vote["role"])
        for order, votes in by_order.items()
        for vote in votes
        if vote["preference"] is None and vote["reason"]
    ]


def decide(
    options: DRPE, votes: Sequence[Vote], by_order: Mapping[Order, Sequence[Vote]], account: Account
) -> Verdict:
    """Average the sums of the orders, and prefer as the rule says.

    `"score_mean"` and `"none"` prefer the larger sum; `"strict"` and `"lenient"` combine what
    each order prefers, and what they make even is a tie.

    Args:
        options: Say which orders were asked, and how they are combined.
        votes: One for each role, over all orders.
        by_order: The votes in each order.
        account: Of the row.
    """
    each = {order: order_sums(cast_votes) for order, cast_votes in by_order.items()}
    sums = {side: fmean(result[side] for result in each.values()) for side in ("A", "B")}
    answers = {order: OrderAnswer(prefer(own), scores=own) for order, own in each.items()}
    verdict = order_verdict(options, answers, account, _votes_reason(sums, votes))
    sources = {
        vote["confidence_source"]
        for votes_cast in by_order.values()
        for vote in votes_cast
        if vote["preference"]
    }
    if verdict["preference"] != "tie":
        verdict["score"] = sums["A"] / (sums["A"] + sums["B"])
    source = sources.pop() if len(sources) == 1 else "none"
    return {**verdict, "scores": sums, "confidence_source": source}


def _votes_reason(sums: Mapping[str, float], votes: Sequence[Vote]) -> str:
    parts = [f"Votes {sums['A']:.2f} (A) to {sums['B']:.2f} (B)."]
    for side in ("A", "B"):
        names = [vote["role"] for vote in votes if vote["preference"] == side]
        if names:
            parts.append(f"For {side}: {', '.join(names)}.")
    none = [vote for vote in votes if vote["preference"] is None]
    for what, names in (
        ("Divided", [vote["role"] for vote in none if vote["reason"]]),
        ("No vote", [vote["role"] for vote in none if not vote["reason"]]),
    ):
        if names:
            parts.append(f"{what}: {', '.join(names)}.")
    return " ".join(parts)


def norm(votes: Sequence[Vote]) -> float:
    """The sum for A over the number of valid votes; 0 if there are none."""
    valid = sum(vote["preference"] is not None for vote in votes)
    return order_sums(votes)["A"] / valid if valid else 0.0
