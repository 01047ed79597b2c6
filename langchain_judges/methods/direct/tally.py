"""From a reply to its ballot, and from ballots to a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from langchain_judges.asking.account import Account
from langchain_judges.asking.question import Reply
from langchain_judges.methods.direct.options import Baseline
from langchain_judges.methods.direct.replies import DirectBallot
from langchain_judges.methods.pairs import BARELY, beside, side_by_coin
from langchain_judges.methods.replies import PlanLine, PlanScore
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    by_identity,
    combine,
    disagree,
    naming_identities,
    prefer,
    preferred_slot,
)
from langchain_judges.verdict import (
    POINTS,
    PREFERENCE_WORDS,
    ConfidenceSource,
    Pair,
    Preference,
    Verdict,
    not_judged,
)


def balloted(options: Baseline, order: Order, sample: int, reply: Reply) -> DirectBallot | None:
    """The ballot of a reply that holds a label or two scores; None of one without data."""
    if not (data := reply.data):
        return None
    ballot: DirectBallot = {
        "order": order,
        "sample": sample,
        "preference": None,
        "scores": None,
        "explanation": naming_identities(data["explanation"], order, options.noun),
        "probability": reply.measured.get("label"),
        "confidence": reply.measured.get("joint"),
    }
    if options.form.reads == "scores":
        scores = by_identity(order, float(data["score_1"]), float(data["score_2"]))
        return {**ballot, "scores": scores, "preference": prefer(scores)}
    return {**ballot, "preference": preferred_slot(order, data["preference"])}


class _OrderResult(NamedTuple):
    preference: Preference
    score: float
    scores: dict[str, float] | None


def decide(
    options: Baseline,
    pair: Pair,
    ballots: Sequence[DirectBallot],
    account: Account,
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
            why = (
                f"Not judged: {len(votes)} of {form.samples} samples are valid "
                f"({ORDER_NAMES[order]}), at least {least} must be."
            )
            return not_judged(**account.booked, rationale=why if form.samples > 1 else "")
    # Probabilities and plain points are never averaged together.
    probable = all(ballot["probability"] is not None for ballot in usable)
    results = {o: _order_result(options, votes, probable) for o, votes in by_order.items()}
    mean, scores = fmean(result.score for result in results.values()), _sum(results)
    combined = _combined(options, results, mean, scores)
    preference = toss(options, pair, combined)
    confidence = _confidence(options, usable, preference, probable)
    source: ConfidenceSource = "samples" if form.samples > 1 else "logprobs"
    without: ConfidenceSource = "scores" if form.reads == "scores" else "none"
    return {
        "preference": preference,
        "score": beside(preference, mean),
        "scores": scores,
        "confidence": confidence,
        "confidence_source": without if confidence is None else source,
        "flipped": disagree([result.preference for result in results.values()]),
        "rationale": _rationale(options, preference, results, usable, preference != combined),
        "failures": account.failures,
        "usage": account.usage,
    }


def _combined(
    options: Baseline,
    results: Mapping[Order, _OrderResult],
    mean: float,
    scores: Mapping[str, float] | None,
) -> Preference:
    """The preference that the rule makes of the orders."""
    if options.order_rule != "score_mean":
        preferences = [result.preference for result in results.values()]
        return combine(options.order_rule, preferences)
    by_scores = scores if options.form.reads == "scores" else None
    sides = by_scores or {"A": mean, "B": 1 - mean}
    return prefer({side: round(value, 9) for side, value in sides.items()})


def _order_result(
    options: Baseline, ballots: Sequence[DirectBallot], probable: bool
) -> _OrderResult:
    """The result of one order: its label, or the label of most samples."""
    if options.form.samples > 1:
        counts = Counter(ballot["preference"] or "tie" for ballot in ballots)
        score = fmean(POINTS[label] for label in counts.elements())
        return _OrderResult(_plurality(counts), score, {s: counts[s] for s in ("A", "B")})
    ballot = ballots[0]
    preference = ballot["preference"] or "tie"
    score = POINTS[preference]
    if probable and preference != "tie":
        # Of three labels one wins below a half; above it means A, whatever the method.
        likely = max(ballot["probability"] or 0.0, 0.5 + BARELY)
        score = likely if preference == "A" else 1 - likely
    return _OrderResult(preference, score, ballot["scores"])


def _plurality(counts: Mapping[Preference, int]) -> Preference:
    leading = [label for label, count in counts.items() if count == max(counts.values())]
    return leading[0] if len(leading) == 1 else "tie"


def _sum(results: Mapping[Order, _OrderResult]) -> dict[str, float] | None:
    scored = [result.scores for result in results.values() if result.scores]
    if len(scored) < len(results):
        return None
    return {side: float(sum(scores[side] for scores in scored)) for side in ("A", "B")}


def _confidence(
    options: Baseline, ballots: Sequence[DirectBallot], preference: Preference, probable: bool
) -> float | None:
    """The certainty of the judge.

    That is the share of the samples that agree; of single replies the mean probability of
    their labels, where they say what the verdict says. A tie of two orders, which no reply
    said, has none.
    """
    agreeing = [ballot for ballot in ballots if ballot["preference"] == preference]
    if not agreeing:
        return None
    if options.form.samples > 1:
        return len(agreeing) / len(ballots)
    probabilities = [b["probability"] for b in agreeing if b["probability"] is not None]
    return fmean(probabilities) if probabilities and probable else None


def toss(options: Baseline, pair: Pair, preference: Preference) -> Preference:
    """Toss a coin for a tie of one order, where the method forbids ties.

    It follows the texts, so that swapping them mirrors the verdict.
    """
    if preference != "tie" or not options.form.coin or len(options.order_list) > 1:
        return preference
    return side_by_coin(pair, f"{options.form.seed}:")


def _rationale(
    options: Baseline,
    preference: Preference,
    results: Mapping[Order, _OrderResult],
    ballots: Sequence[DirectBallot],
    tossed: bool,
) -> str:
    parts = [f"{PREFERENCE_WORDS[preference]}."]
    if options.form.samples > 1:
        agreeing = sum(ballot["preference"] == preference for ballot in ballots)
        parts.append(f"{agreeing} of {len(ballots)} samples say so.")
    if tossed:
        parts.append("The samples are even; a seeded coin decided.")
    if options.form.reads == "scores" and (totals := _sum(results)):
        parts.append(f"Scores {totals['A']:g} (A) to {totals['B']:g} (B).")
    if len({result.preference for result in results.values()}) > 1:
        answers = [f"{result.preference} ({ORDER_NAMES[o]})" for o, result in results.items()]
        parts.append(f"The orders disagree: {', '.join(answers)}.")
    reasons = [b for b in ballots if b["preference"] == preference and b["explanation"]]
    for ballot in reasons[:1]:
        parts.append(f"With {ORDER_NAMES[ballot['order']]}: {ballot['explanation']}")
    return " ".join(parts)


def order_totals(
    orders: Sequence[Order],
    criteria: Sequence[PlanLine],
    subscores: Sequence[PlanScore],
) -> tuple[list[DirectBallot], str]:
    """Sum the criteria of each order, or say what is missing.

    Totals over different criteria could not be compared: a criterion that one order lacks
    is left out of the other too.

    Args:
        orders: The orders that were asked.
        criteria: The plan.
        subscores: The scores on each criterion.
    """
    if not criteria:
        return [], "Not judged: there is no plan of criteria."
    scored = {(line["criterion"], line["order"]) for line in subscores}
    names = [c["name"] for c in criteria if all((c["name"], o) in scored for o in orders)]
    least = len(criteria) // 2 + 1
    if len(names) < least:
        return [], (
            f"Not judged: {len(names)} of {len(criteria)} criteria could be scored, at least "
            f"{least} must be."
        )
    return [_total(order, names, subscores) for order in orders], ""


def _total(order: Order, names: Sequence[str], subscores: Sequence[PlanScore]) -> DirectBallot:
    lines = [s for s in subscores if s["order"] == order and s["criterion"] in names]
    totals = {side: float(sum(line["scores"][side] for line in lines)) for side in ("A", "B")}
    return {
        "order": order,
        "sample": 0,
        "preference": prefer(totals),
        "scores": totals,
        "explanation": lines[0]["explanation"],
        "probability": None,
        "confidence": None,
    }


def weights(ballots: Sequence[DirectBallot]) -> dict[str, float]:
    """`1(preferred) · P` for each text, averaged over the orders (DRPE, equation 4)."""
    weights = [
        (ballot["preference"], 1.0 if ballot["confidence"] is None else ballot["confidence"])
        for ballot in ballots
    ]
    return {
        side: fmean(p if side == label else 0.0 for label, p in weights) for side in ("A", "B")
    }
