"""Asking the second order only where the first one is unsure.

Asking both orders doubles a judgment to find out whether the place of a text decided. Where
the first order is sure, it rarely does. Which order is first is drawn from the texts, so that
neither side gains over many pairs, and swapping the texts mirrors the verdict.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar

from annotated_types import Gt, Le
from langgraph.types import Send
from pydantic import PrivateAttr, model_validator
from typing_extensions import TypedDict

from langchain_judges.asking.nodes import Next, Node, Route
from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.methods.options import JudgeOptions
from langchain_judges.options import Rule
from langchain_judges.orders import ORDER_NAMES, Order, orders_of
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Pair, Verdict

if TYPE_CHECKING:
    from langchain_judges.methods.context import JudgeContext, MethodGraph

OrderState = TypeVar("OrderState")
TwoOrdersT = TypeVar("TwoOrdersT", bound="TwoOrders")

SecondOrder = Annotated[
    Literal["always"] | Annotated[float, Gt(0), Le(1)],
    Rule("'always' or a number above 0, at most 1"),
]


class FirstOrder(TypedDict):
    """The order that was asked first, and whether the second one followed."""

    order: Order
    certainty: float | None
    """How sure the judge was in it, from 0 to 1; None where nothing says so."""
    second_asked: bool


class TwoOrders(JudgeOptions):
    """A judge of pairs that can ask both orders."""

    second_order: SecondOrder = "always"
    """`"always"` asks all orders of `orders` at once (the papers); a number such as 0.9 asks
    one order first, chosen by a hash of the texts, and the other only if the first is less
    certain: by the probability of its label, the share of samples that agree, or the lead of
    the better text as a share of the scale (for a panel, of its votes). Without a certainty
    both are asked. `first_order` in the result says what was asked."""

    _only: Order | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _there_is_a_second_order(self) -> Self:
        if self.second_order != "always" and self.order_rule == "none":
            raise OptionError("`second_order` needs both orders: not `orders='none'`")
        return self

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked."""
        if self._only:
            return (self._only,)
        return (self.single,) if self.order_rule == "none" else orders_of(self.order_rule)

    @property
    def waits(self) -> bool:
        """Whether the second order waits for the first."""
        return self.second_order != "always"

    def refuse_waiting(self, clash: Mapping[str, bool]) -> None:
        """Check that the second order is not to wait for a first one that cannot decide.

        Args:
            clash: What does not go with it, in the words of the options.

        Raises:
            OptionError: Something does not.
        """
        names = [name for name, set_so in clash.items() if set_so]
        if self.waits and names:
            raise OptionError(f"`second_order` does not go with {' or '.join(names)}")

    def in_order(self, order: Order) -> Self:
        """Return the options of a judge of the same kind that asks one order alone."""
        copy = self.model_copy()
        copy._only = order
        return copy


def first_of(pair: Pair) -> Order:
    """Return which order of a pair is asked first, by a coin that follows the texts."""
    return "AB" if side_by_coin(pair) == "A" else "BA"


def side_by_coin(pair: Pair, seed: str = "") -> Literal["A", "B"]:
    """Return a side by a coin that follows the texts: swapped texts give the same text."""
    a, b = judged(pair["output_a"]), judged(pair["output_b"])
    coin = random.Random(f"{seed}{sorted([a, b])}:{transcript(pair['input'])}")  # noqa: S311 - a coin, no secret
    return "A" if coin.choice(sorted([a, b])) == a else "B"


def due_orders(
    options: TwoOrders, pair: Pair, first: FirstOrder | None, orders: tuple[Order, ...]
) -> tuple[Order, ...]:
    """Return the orders that are asked next.

    Args:
        options: Whether the second order waits.
        pair: Which is judged.
        first: The result of the first order; None: it was not asked.
        orders: All that may be asked.
    """
    if not options.waits:
        return orders
    if first is None:
        return (first_of(pair),)
    return ("BA" if first["order"] == "AB" else "AB",) if first["second_asked"] else ()


def options_of(options: TwoOrdersT, first: FirstOrder | None) -> TwoOrdersT:
    """Return the options by which a verdict is made: of one order, where one was asked."""
    if first is None or first["second_asked"]:
        return options
    return options.in_order(first["order"])


def first_order(
    options: TwoOrders, order: Order, verdict: Verdict, margin: float | None = None
) -> FirstOrder:
    """Return the result of the first order: whether it decides alone.

    Args:
        options: From which certainty on it decides.
        order: Which it was.
        verdict: By it alone.
        margin: How far the better text leads, from 0 to 1, where its confidence is unknown.
    """
    certainty = margin if verdict["confidence"] is None else verdict["confidence"]
    least = 0.0 if options.second_order == "always" else options.second_order
    # Without a verdict of one order there is none of both.
    second_asked = verdict["preference"] is not None and (
        certainty is None or certainty < least
    )
    return {"order": order, "certainty": certainty, "second_asked": second_asked}


def first_order_sentence(options: TwoOrders, first: FirstOrder | None) -> str:
    """Say that one order was asked, and why; nothing where both were."""
    if first is None or first["second_asked"] or first["certainty"] is None:
        return ""
    return (
        f" Asked with {ORDER_NAMES[first['order']]} alone: {first['certainty']:.2f} sure, and "
        f"{options.second_order:g} is enough."
    )


def add_second_order(
    graph: MethodGraph,
    context: JudgeContext,
    asking: tuple[str, Node],
    weigh: Callable[[OrderState], Update],
    ask: Callable[[OrderState], Next],
    after: str,
) -> None:
    """Add the nodes that weigh the first order and ask the second one where it is due.

    Args:
        graph: The graph of the method, with the node that asks the first order.
        context: Makes nodes.
        asking: That node's name, and itself.
        weigh: From the state to its `first_order`.
        ask: From the state to what is asked next, sent to that node.
        after: Where the graph goes when all was asked.
    """
    name, node = asking
    again = f"{name}_second"

    def second(state: OrderState) -> Next:
        works = [send for send in ask(state) if isinstance(send, Send)]
        return [Send(again, send.arg) for send in works] or after

    graph.add_node("first_order", context.plain(weigh))
    graph.add_node(again, node)
    graph.add_edge(name, "first_order")
    graph.add_conditional_edges("first_order", Route(second), [again, after])
    graph.add_edge(again, after)
