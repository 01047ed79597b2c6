"""The scores of the solve calls as a merging model reads them, and its reply to them."""

from __future__ import annotations

from langchain_judges.asking.question import Reply
from langchain_judges.methods.bsm.replies import BSMState, OrderResult
from langchain_judges.methods.bsm.tally import ScoreCells
from langchain_judges.orders import (
    Order,
    in_slots,
    naming_identities,
    naming_slots,
    preferred_slot,
)


def findings(state: BSMState, order: Order, cells: ScoreCells) -> str:
    """Render the scores of one order's solve calls, in slots, as they saw the texts."""
    lines: list[str] = []
    for criterion in state["criteria"]:
        name = criterion["name"]
        if (name, order) not in cells:
            continue
        first, second = in_slots(order, cells[name, order]["A"], cells[name, order]["B"])
        explanation = next(
            subscore["explanation"]
            for subscore in state["subscores"]
            if (subscore["criterion"], subscore["order"]) == (name, order)
        )
        lines.append(
            f"{name}: {criterion['description']}\n"
            f"response 1 scored {first:g}, response 2 scored {second:g}. "
            f"{naming_slots(explanation, order)}"
        )
    return "\n\n".join(lines)


def weighed(order: Order, reply: Reply, result: OrderResult) -> OrderResult:
    """Return the result of an order with the merging model's verdict; None if it has none."""
    if not reply.data:
        return {**result, "preference": None}
    return {
        **result,
        "preference": preferred_slot(order, reply.data["preference"]),
        "explanation": naming_identities(reply.data["explanation"], order),
    }
