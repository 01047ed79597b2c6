"""State and replies of the baselines, and from ballots to a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges import orders
from langchain_judges import verdict as verdicts
from langchain_judges.asking.question import Account, Reply
from langchain_judges.asking.reading import check, shape_of
from langchain_judges.asking.reply_text import ChoiceFields
from langchain_judges.methods import lookups, pairs
from langchain_judges.methods import replies as shared
from langchain_judges.methods.direct.options import Baseline

# What names the preferred text, and the reason.
CHOICE = ChoiceFields()


class DirectBallot(TypedDict):
    """The decision of one reply, by identity of the texts.

    Attributes:
        preference: The label that was said; of two scores, the text with the higher one.
        scores: The two scores, where the judge asks for scores.
        probability: Of the label's tokens; None where the model gave no log-probabilities.
        confidence: Length-normalised probability of explanation and label together (DRPE,
            equation 3).
    """

    order: orders.Order
    sample: int
    preference: verdicts.Preference | None
    scores: dict[str, float] | None
    explanation: str
    probability: float | None
    confidence: float | None


class DirectState(pairs.PairState, lookups.LookupState, total=False):
    """State of the graph.

    Attributes:
        criteria: The plan; empty for all but plan & solve.
        llm_score: `1(A preferred) · P` in [0, 1], the number to correlate with people's.
    """

    criteria: list[shared.PlanLine]
    ballots: list[DirectBallot]
    subscores: list[shared.PlanScore]
    llm_score: float | None


@cache
def sheet_shape(scale: tuple[int, int], criteria: int, explain_first: bool) -> type[BaseModel]:
    """The shape of the scores on every criterion, in the order of the plan.

    Args:
        scale: Lowest and highest score.
        criteria: How many criteria there are.
        explain_first: Whether the explanation comes before the scores.
    """
    lines = dict.fromkeys(map(line_name, range(criteria)), line_shape(scale))
    reason = {"explanation": str}
    return shape_of("Sheet", {**reason, **lines} if explain_first else {**lines, **reason})


@cache
def line_shape(scale: tuple[int, int]) -> type[BaseModel]:
    """The shape of the scores on one criterion."""
    return shape_of("Line", dict.fromkeys(("score_1", "score_2"), shared.score_within(scale)))


def line_name(position: int) -> str:
    """The name, in a reply, of the scores on one criterion of the plan."""
    return f"criterion_{position + 1}"


def read_sheet(
    data: Mapping[str, Any],
    plan: Sequence[shared.PlanLine],
    order: orders.Order,
    unit: str,
    scale: tuple[int, int],
) -> tuple[list[shared.PlanScore], list[verdicts.Failure]]:
    """The scores of every criterion in a reply, and a failure for each without.

    Args:
        data: The reply.
        plan: The criteria.
        order: In which the texts were shown.
        unit: What the call is named.
        scale: Lowest and highest score.
    """
    lines, failures = list[shared.PlanScore](), list[verdicts.Failure]()
    explanation = orders.naming_ab(str(data.get("explanation") or ""), order)
    for position, criterion in enumerate(plan):
        scores, problem = check(data.get(line_name(position)), line_shape(scale))
        if problem:
            name = ", ".join(filter(None, [criterion["name"], unit]))
            failures.append(problem.failure("judge", name))
        elif scores:
            line: shared.PlanScore = {
                "criterion": criterion["name"],
                "order": order,
                "sample": 0,
                "scores": orders.by_identity(order, scores["score_1"], scores["score_2"]),
                "explanation": explanation,
            }
            lines.append(line)
    return lines, failures


def balloted(
    options: Baseline, order: orders.Order, sample: int, reply: Reply
) -> DirectBallot | None:
    """The ballot of a reply that holds a label or two scores; None of one without data."""
    if not (data := reply.data):
        return None
    ballot: DirectBallot = {
        "order": order,
        "sample": sample,
        "preference": None,
        "scores": None,
        "explanation": orders.naming_ab(data["explanation"], order, options.noun),
        "probability": reply.measured.get("label"),
        "confidence": reply.measured.get("joint"),
    }
    if options.form.reads == "scores":
        scores = orders.by_identity(order, float(data["score_1"]), float(data["score_2"]))
        return {**ballot, "scores": scores, "preference": orders.prefer(scores)}
    return {**ballot, "preference": orders.preferred_slot(order, data["preference"])}


def decide(
    options: Baseline, pair: verdicts.Pair, ballots: Sequence[DirectBallot], account: Account
) -> verdicts.Verdict:
    """Combine the ballots of every order into the verdict.

    Args:
        options: Orders, samples and what a reply holds.
        pair: On whose texts a coin depends.
        ballots: What the replies decided, by order and sample.
        account: Of the row.
    """
    form, usable = options.form, [ballot for ballot in ballots if ballot["preference"]]
    by_order = {o: [b for b in usable if b["order"] == o] for o in options.order_list}
    least = form.min_valid or form.samples // 2 + 1
    for order, votes in by_order.items():
        if len(votes) < least:
            share = f"{len(votes)} of {form.samples} samples are valid"
            lost = f"{share} ({orders.ORDER_NAMES[order]}), at least {least} must be"
            why = verdicts.why_not(account.failures, lost if form.samples > 1 else "")
            return verdicts.not_judged(**account.booked, rationale=why)
    answers = {o: _answer(options, pair, votes) for o, votes in by_order.items()}
    verdict = pairs.order_verdict(options, answers, account)
    agreeing = [b for b in usable if b["preference"] == verdict["preference"]]
    parts = [verdict["rationale"]]
    if form.samples > 1:
        verdict["confidence"] = len(agreeing) / len(usable) if agreeing else None
        verdict["confidence_source"] = "samples" if agreeing else "none"
        parts.append(f"{len(agreeing)} of {len(usable)} samples say so.")
        shares = verdict["scores"] or {}
        if form.coin and len(by_order) == 1 and shares["A"] == shares["B"]:
            parts.append("The samples are even; a seeded coin decided.")
    elif totals := verdict["scores"]:
        parts.append(f"Scores {totals['A']:g} (A) to {totals['B']:g} (B).")
    parts.append(pairs.first_reason(agreeing))
    return {**verdict, "rationale": " ".join(filter(None, parts))}


def _answer(
    options: Baseline, pair: verdicts.Pair, ballots: Sequence[DirectBallot]
) -> pairs.OrderAnswer:
    """The answer of one order: its label, or the label of most samples."""
    form, ballot = options.form, ballots[0]
    if form.samples == 1:
        label = ballot["preference"] or "tie"
        return pairs.OrderAnswer(label, None, ballot["scores"], ballot["probability"])
    counts = Counter(ballot["preference"] or "tie" for ballot in ballots)
    most = [label for label, count in counts.items() if count == max(counts.values())]
    label = most[0] if len(most) == 1 else "tie"
    if label == "tie" and form.coin and len(options.order_list) == 1:
        # The method forbids ties; swapped texts mirror the verdict.
        label = pairs.coin_side(pair, form.seed)
    score = fmean(verdicts.POINTS[said] for said in counts.elements())
    return pairs.OrderAnswer(label, score, {side: counts[side] for side in ("A", "B")})


def summed(
    order: orders.Order, subscores: Sequence[shared.PlanScore], cells: shared.ScoreCells
) -> DirectBallot:
    """The ballot of an order: the sums of the criteria that every order has."""
    totals = shared.totals_of(order, cells)
    lines = (s for s in subscores if s["order"] == order and (s["criterion"], order) in cells)
    return {
        "order": order,
        "sample": 0,
        "preference": orders.prefer(totals),
        "scores": totals,
        "explanation": next(lines)["explanation"],
        "probability": None,
        "confidence": None,
    }


def weights(ballots: Sequence[DirectBallot]) -> dict[str, float]:
    """`1(preferred) · P` for each text, averaged over the orders (DRPE, equation 4)."""
    weights = [
        (ballot["preference"], 1.0 if ballot["confidence"] is None else ballot["confidence"])
        for ballot in ballots
    ]
    return {s: fmean(p if s == label else 0.0 for label, p in weights) for s in ("A", "B")}
