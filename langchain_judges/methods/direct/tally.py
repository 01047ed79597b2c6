"""From a reply to its ballot, and from ballots to a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from langchain_judges import orders
from langchain_judges.asking.question import Account, Reply
from langchain_judges.methods.direct.options import Baseline
from langchain_judges.methods.direct.replies import DirectBallot
from langchain_judges.methods.pairs import OrderAnswer, coin_side, first_reason, order_verdict
from langchain_judges.methods.replies import PlanScore, ScoreCells, totals_of
from langchain_judges.verdict import POINTS, Pair, Verdict, not_judged, why_not


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
    options: Baseline, pair: Pair, ballots: Sequence[DirectBallot], account: Account
) -> Verdict:
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
            why = why_not(account.failures, lost if form.samples > 1 else "")
            return not_judged(**account.booked, rationale=why)
    answers = {o: _answer(options, pair, votes) for o, votes in by_order.items()}
    verdict = order_verdict(options, answers, account)
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
    parts.append(first_reason(agreeing))
    return {**verdict, "rationale": " ".join(filter(None, parts))}


def _answer(options: Baseline, pair: Pair, ballots: Sequence[DirectBallot]) -> OrderAnswer:
    """The answer of one order: its label, or the label of most samples."""
    form, ballot = options.form, ballots[0]
    if form.samples == 1:
        label = ballot["preference"] or "tie"
        return OrderAnswer(label, None, ballot["scores"], ballot["probability"])
    counts = Counter(ballot["preference"] or "tie" for ballot in ballots)
    most = [label for label, count in counts.items() if count == max(counts.values())]
    label = most[0] if len(most) == 1 else "tie"
    if label == "tie" and form.coin and len(options.order_list) == 1:
        # The method forbids ties; swapped texts mirror the verdict.
        label = coin_side(pair, form.seed)
    score = fmean(POINTS[said] for said in counts.elements())
    return OrderAnswer(label, score, {side: counts[side] for side in ("A", "B")})


def summed(order: orders.Order, subscores: Sequence[PlanScore], cells: ScoreCells) -> DirectBallot:
    """The ballot of an order: the sums of the criteria that every order has."""
    totals = totals_of(order, cells)
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
