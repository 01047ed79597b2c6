"""Stop early, exactly: votes that cannot change the verdict any more are not asked.

The preference is that of all votes. Methods that ask one vote at a time share this; a method
says itself what its votes can still become.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TypeVar

from langchain_judges.asking.effects import gather
from langchain_judges.orders import Order
from langchain_judges.verdict import Preference

T = TypeVar("T")


def plurality(counts: Mapping[Preference, int]) -> Preference:
    """The label with most votes; a tie where several have as many."""
    most = max(counts.values())
    leading = [label for label, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else "tie"


def outcomes(
    counts: Mapping[Preference, int], remaining: int, labels: Sequence[Preference]
) -> set[Preference]:
    """Every plurality that `remaining` more votes can lead to.

    >>> outcomes({"A": 2, "B": 0}, 1, ["A", "B"])
    {'A'}
    """
    votes = Counter({label: counts.get(label, 0) for label in labels})
    more = map(Counter, combinations_with_replacement(labels, remaining))
    return {plurality(votes + rest or votes) for rest in more}


async def in_waves(
    orders: Sequence[Order],
    voters: int,
    ask: Callable[[Order, int], Awaitable[T]],
    undecided: Callable[[Sequence[T], Mapping[Order, int]], Collection[Order]],
) -> tuple[list[T], dict[Order, int]]:
    """Ask the voters of each order until the others cannot change the verdict.

    The first wave is as many as can settle it if they agree; then one voter at a time.

    Args:
        orders: The orders that are asked.
        voters: How many votes each order has.
        ask: Asks one voter, by its number from 0, in one order.
        undecided: From the votes so far, and the number of voters asked in each order, to
            the orders that need another vote; none once the verdict is settled.

    Returns:
        The votes, and how many voters were asked in each order.
    """
    votes: list[T] = []
    asked = dict.fromkeys(orders, 0)
    size = voters // 2 + 1
    due: Collection[Order] = orders
    while due:
        wave = [(order, n) for order in due for n in range(asked[order], asked[order] + size)]
        votes += await gather([ask(order, n) for order, n in wave])
        asked |= {order: asked[order] + size for order in due}
        due = [o for o in undecided(votes, asked) if asked[o] < voters]
        size = 1
    return votes, asked


def not_asked_sentence(names: Sequence[str]) -> str:
    """Say which votes were not asked, and why; empty where all were."""
    if not names:
        return ""
    return f" Not asked, for it could not change the verdict: {', '.join(names)}."
