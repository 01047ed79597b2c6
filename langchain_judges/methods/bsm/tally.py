"""State and replies, and from sub-scores to a verdict: means, totals, a rule for the orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_judges.asking.question import Account
from langchain_judges.methods import declaration, lookups, pairs
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.replies import PlanLine, PlanScore, ScoreCells, totals_of
from langchain_judges.orders import Order, in_slots, naming_slots, prefer
from langchain_judges.verdict import Preference, Verdict


class OrderResult(TypedDict):
    """The result of one order: totals of the mean scores, and the text they prefer.

    Attributes:
        explanation: The merging model's reason; empty where scores were summed.
    """

    totals: dict[str, float]
    preference: Preference | None
    explanation: str


class BSMState(pairs.PairState, lookups.LookupState, total=False):
    """State of the graph.

    Attributes:
        criteria: The plan, best first.
        written_reference: The pair's own reference, or the one that `reference_model` wrote.
    """

    criteria: list[PlanLine]
    written_reference: str | None
    subscores: list[PlanScore]
    by_order: dict[Order, OrderResult]


class Answer(BaseModel):
    """A reference answer."""

    answer: str = Field(min_length=1)


def order_totals(order: Order, cells: ScoreCells) -> OrderResult:
    """Sum the scores of one order and prefer the larger total (Algorithm 1, line 10)."""
    totals = totals_of(order, cells)
    return {"totals": totals, "preference": prefer(totals), "explanation": ""}


def scores_shown(
    criteria: Sequence[PlanLine], subscores: Sequence[PlanScore], order: Order, cells: ScoreCells
) -> str:
    """Render the scores of one order's solve calls, in slots, as they saw the texts."""
    lines: list[str] = []
    for criterion in criteria:
        name = criterion["name"]
        if (name, order) not in cells or criterion.get("order", order) != order:
            continue
        first, second = in_slots(order, cells[name, order]["A"], cells[name, order]["B"])
        explanation = next(
            subscore["explanation"]
            for subscore in subscores
            if (subscore["criterion"], subscore["order"]) == (name, order)
        )
        lines.append(
            f"{declaration.with_name(name, criterion['description'])}\n"
            f"response 1 scored {first:g}, response 2 scored {second:g}. "
            f"{naming_slots(explanation, order)}"
        )
    return "\n\n".join(lines)


def decide(
    options: BSM, cells: ScoreCells, by_order: Mapping[Order, OrderResult], account: Account
) -> Verdict:
    """Combine the orders into the verdict."""
    summed = options.merge == "sum"
    answers = {
        order: pairs.OrderAnswer(result["preference"], scores=result["totals"] if summed else None)
        for order, result in by_order.items()
        if result["preference"]
    }
    totals = {
        side: round(sum(result["totals"][side] for result in by_order.values()), 9)
        for side in ("A", "B")
    }
    verdict = pairs.order_verdict(options, answers, account, _totals_reason(totals, cells))
    if (said := verdict["preference"]) is None:
        return verdict
    if summed and said != "tie":
        low, high = options.scale
        margin = fmean((c["A"] - c["B"]) / (2 * (high - low)) for c in cells.values())
        verdict["score"] = 0.5 + margin
    agreeing = [{"order": o, **r} for o, r in by_order.items() if r["preference"] == said]
    rationale = f"{verdict['rationale']} {pairs.first_reason(agreeing)}".strip()
    return {**verdict, "scores": totals, "rationale": rationale}


def _totals_reason(totals: Mapping[str, float], cells: ScoreCells) -> str:
    parts = [f"Totals {totals['A']:g} (A) to {totals['B']:g} (B)."]
    leads: dict[str, float] = {}
    for at, cell in cells.items():
        leads[at[0]] = round(leads.get(at[0], 0.0) + cell["A"] - cell["B"], 2)
    for side, sign in (("A", 1), ("B", -1)):
        winners = sorted((-sign * own, name) for name, own in leads.items() if sign * own > 0)
        if winners:
            named = ", ".join(f"{name} +{-lead:g}" for lead, name in winners)
            parts.append(f"For {side}: {named}.")
    if not any(leads.values()):
        parts.append("No criterion tells them apart.")
    return " ".join(parts)
