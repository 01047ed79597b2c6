"""The confidence that expected scores give a verdict, and what a reply without them lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from langchain_judges.asking.question import Reply
from langchain_judges.asking.steps import Update
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.bsm.replies import OrderResult, SolveWork
from langchain_judges.methods.bsm.tally import CellWeights
from langchain_judges.methods.expected import lead_chance, no_expectation
from langchain_judges.methods.replies import PlanScore
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.verdict import Preference, Verdict


def unmeasured(options: BSM, work: SolveWork, reply: Reply) -> Update:
    """Return a failure where expected scores were wanted and the reply has none."""
    if options.score == "mode" or len(reply.measured) == len(work["criteria"]):
        return {}
    names = ", ".join(criterion["name"] for criterion in work["criteria"])
    unit = f"{names} ({ORDER_NAMES[work['order']]})"
    return {"failures": [*reply.failures, no_expectation("solve", unit)]}


def with_confidence(
    options: BSM,
    by_order: Mapping[Order, OrderResult],
    verdict: Verdict,
    subscores: Sequence[PlanScore],
    weights: CellWeights,
) -> Verdict:
    """Return a verdict with its confidence, where the chances of all scores are known.

    That is how probable it is that the sums of an order prefer what the verdict prefers, if
    every score is drawn from its own chances; the mean over the orders that prefer it.

    Args:
        options: Whether scores are summed.
        by_order: The result of each order.
        verdict: That of all orders.
        subscores: Every score.
        weights: How much each criterion counts in each order, of those that count.
    """
    if options.merge == "model":
        return verdict
    agreeing = [
        o for o, result in by_order.items() if result["preference"] == verdict["preference"]
    ]
    chances = [
        _order_chance(order, verdict["preference"], subscores, weights) for order in agreeing
    ]
    if not agreeing or any(chance is None for chance in chances):
        return verdict
    sure = fmean(chance for chance in chances if chance is not None)
    return {**verdict, "confidence": sure, "confidence_source": "logprobs"}


def _order_chance(
    order: Order,
    preference: Preference | None,
    subscores: Sequence[PlanScore],
    weights: CellWeights,
) -> float | None:
    lines = [s for s in subscores if (s["criterion"], s["order"]) in weights]
    lines = [line for line in lines if line["order"] == order]
    if preference is None or not lines or not all("chances" in line for line in lines):
        return None
    # The samples of a criterion are averaged.
    samples = Counter(line["criterion"] for line in lines)
    parts = [
        (
            line["chances"]["A"],
            line["chances"]["B"],
            weights[line["criterion"], order] / samples[line["criterion"]],
        )
        for line in lines
    ]
    return lead_chance(parts, preference)
