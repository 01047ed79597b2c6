"""Which samples of self-consistency are asked next, and when no more are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_judges.methods.direct.replies import Ballot
from langchain_judges.methods.direct.tally import toss
from langchain_judges.methods.stopping import first_wave, outcomes, plurality, settled
from langchain_judges.orders import Order, combine
from langchain_judges.verdict import Pair, Preference

if TYPE_CHECKING:
    from langchain_judges.methods.direct.judge import Baseline


def next_samples(
    options: Baseline,
    pair: Pair,
    ballots: Sequence[Ballot],
    asked: Mapping[Order, int],
) -> dict[Order, int]:
    """Return how many samples more each order is asked for; none once nothing can change.

    The first ones are as many as can settle the verdict; then one at a time, of the orders
    that are open.

    Args:
        options: Samples, labels, order rule, quorum and how sure the verdict must be.
        pair: On whose texts a coin depends.
        ballots: The valid replies so far.
        asked: How many samples each order was asked for.
    """
    total, labels, certainty = options.replies, options.labels, options.certainty
    left = {order: total - asked[order] for order in options.order_list}
    if not any(asked.values()):
        return dict.fromkeys(left, first_wave(certainty, total, labels, len(left)))
    counts = {order: _counts(ballots, order) for order in left}
    chances = {order: outcomes(counts[order], left[order], labels) for order in left}

    def verdict(preferences: Sequence[Preference]) -> Preference:
        return toss(options, pair, combine(options.order_rule, preferences))

    now = [plurality(counts[order]) for order in left]
    enough = all(
        counts[order].total() >= options.quorum(total if certainty is True else asked[order])
        for order in left
    )
    if enough and settled(certainty, list(chances.values()), verdict, verdict(now)):
        return {}
    waiting = [order for order in left if left[order]]
    open_ = [
        o for o in waiting if max(chances[o].values()) < (1 if certainty is True else certainty)
    ]
    return dict.fromkeys(open_ or waiting, 1)


def _counts(ballots: Sequence[Ballot], order: Order) -> Counter[Preference]:
    empty: Counter[Preference] = Counter({"A": 0, "B": 0})
    empty.update(b["preference"] for b in ballots if b["order"] == order and b["preference"])
    return empty
