"""State and replies of the DRPE judge, and from ballots to a verdict: equation 4 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, create_model

from langchain_judges.asking import reading, reply_text
from langchain_judges.asking.question import Account, Reply
from langchain_judges.methods.drpe.options import DRPE, ConfidenceKind
from langchain_judges.methods.pairs import OrderAnswer, PairState, first_reason, order_verdict
from langchain_judges.orders import ORDER_NAMES, Order, Slot, naming_ab, prefer, preferred_slot
from langchain_judges.verdict import Failure, FailureReason, Preference, Role, Verdict, Vote


class RoleBallot(Vote):
    """One role's vote in one order and sample, before they are summed.

    Attributes:
        position: Of the role in the panel.
    """

    position: int
    order: Order
    sample: int


class DRPEState(PairState, total=False):
    """State of the graph; every value is plain JSON.

    Attributes:
        proposed: The roles a model named, coarse before fine, before any were chosen.
        roles: The panel.
        score_norm: The sum for A over its number of valid votes: what the protocol correlates.
        roles_key: Equal keys mean that the roles may be used again.
        task: What was judged: the name of a task, or `"own"`.
    """

    proposed: list[Role]
    roles: list[Role]
    ballots: list[RoleBallot]
    votes: list[Vote]
    score_norm: float | None
    roles_key: str
    task: str


class Call(NamedTuple):
    """Whom one call asks.

    Attributes:
        roles: The panel.
        positions: Those of the panel that are asked, as the prompt shows them.
    """

    roles: Sequence[Role]
    positions: Sequence[int]
    order: Order
    sample: int

    @property
    def voters(self) -> list[Role]:
        """The roles that are asked."""
        return [self.roles[position] for position in self.positions]


class Reader(BaseModel):
    """A kind of reader, as a model names it; one without a description is dropped later."""

    type: str = Field(json_schema_extra={"maxLength": 40})
    description: str


# What a text wants, as the model that names its readers says.
WantedTask = Literal["summary", "response"]


@cache
def readers_shape(pool: int, merged: bool = False, *, is_open: bool = False) -> type[BaseModel]:
    """The shape of a list of `pool` readers; more or fewer are no error.

    Args:
        pool: Readers.
        merged: Whether the reply is to the merged prompt, which asks for two lists.
        is_open: Whether the reply also says what the text asks for.
    """
    limit = Field(min_length=1, json_schema_extra={"maxItems": pool, "minItems": pool})
    names = ("general", "familiarity") if merged else ("readers",)
    fields: dict[str, Any] = dict.fromkeys(names, (list[Reader], limit))
    if is_open:
        fields = {"wanted": (WantedTask, ""), **fields}
    return create_model("BothReaders" if merged else "Readers", **fields)


class RoleVote(BaseModel):
    """One role's vote; the reason first, as in the papers."""

    reason: str
    vote: Slot


def unit_names(count: int) -> list[str]:
    """The names, in a reply, of so many roles."""
    return [f"role_{number}" for number in range(1, count + 1)]


@cache
def votes_shape(count: int) -> type[BaseModel]:
    """The shape of the votes of `count` roles: `role_1`, `role_2` …, all required."""
    return reading.shape_of("Votes", dict.fromkeys(unit_names(count), RoleVote))


# Of a role's reply whose tokens count.
PARTS = ("reason", "vote")


def confidences(message: AIMessage, data: Mapping[str, object]) -> dict[str, list[float | int]]:
    """`{"role_1": [confidence, tokens], …}` of the roles whose tokens are known.

    Eq. 3 of the paper is taken over the tokens of the reason and the vote themselves: no
    names, quotes or commas, which the format and not the role decides.
    """
    letters = reply_text.Spelling.of(message)
    if letters is None:
        return {}
    places = reply_text.json_spans(letters.text)
    measured = {
        # A role that was asked alone has no name in its reply.
        str(path[0]) if len(path) > 1 else "role_1": letters.confidence(
            [places[*path[:-1], part] for part in PARTS if (*path[:-1], part) in places]
        )
        for path in places
        if path[-1:] == ("vote",)
    }
    return {unit: list(confidence) for unit, confidence in measured.items() if confidence}


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
        vote, _ = reading.check(part, RoleVote)
        if vote is None:
            reason: FailureReason = "missing" if part is None else "invalid_label"
            detail = f"no vote for 1 or 2 from {role['type']}{place}: {str(part)[:80]}"
            failures.append(reading.Problem(reason, detail).failure("vote", role["type"]))
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
        return plain, [reading.Problem("no_logprobs", detail).failure("vote", "panel")]
    missing = reading.Problem("no_logprobs", "the vote needs token log-probabilities, none came")
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
    detail = "as many samples for A as for B ({}): the role has no vote"
    problems = {o: reading.Problem("missing", detail.format(ORDER_NAMES[o])) for o in by_order}
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
