"""Which samples of self-consistency are asked next, and when no more are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from langchain_judges.methods.direct.options import Baseline
from langchain_judges.methods.direct.replies import DirectBallot
from langchain_judges.methods.direct.tally import toss
from langchain_judges.methods.stopping import first_wave, outcomes, plurality, settled
from langchain_judges.orders import Order, combine
from langchain_judges.verdict import Pair, Preference


def next_samples(
    options: Baseline,
    pair: Pair,
    ballots: Sequence[DirectBallot],
    counts_asked: Mapping[Order, int],
) -> dict[Order, int]:
    """Return how many samples more each order is asked for; none once nothing can change.

    The first ones are as many as can settle the verdict; then one at a time, of the orders
    that are open.

    Args:
        options: Samples, labels, order rule, quorum and how sure the verdict must be.
        pair: On whose texts a coin depends.
        ballots: The valid replies so far.
        counts_asked: How many samples each order was asked for.
    """
    total, labels, certainty = options.form.replies, options.form.labels, options.form.adaptive
    remaining = {order: total - counts_asked[order] for order in options.order_list}
    if not any(counts_asked.values()):
        return dict.fromkeys(remaining, first_wave(certainty, total, labels, len(remaining)))
    counts = {order: _counts(ballots, order) for order in remaining}
    chances = {order: outcomes(counts[order], remaining[order], labels) for order in remaining}

    def verdict(preferences: Sequence[Preference]) -> Preference:
        return toss(options, pair, combine(options.order_rule, preferences))

    now = [plurality(counts[order]) for order in remaining]
    enough = all(
        counts[order].total()
        >= options.form.quorum(total if certainty is True else counts_asked[order])
        for order in remaining
    )
    if enough and settled(certainty, list(chances.values()), verdict, verdict(now)):
        return {}
    waiting = [order for order in remaining if remaining[order]]
    undecided = [
        o for o in waiting if max(chances[o].values()) < (1 if certainty is True else certainty)
    ]
    return dict.fromkeys(undecided or waiting, 1)


def _counts(ballots: Sequence[DirectBallot], order: Order) -> Counter[Preference]:
    empty: Counter[Preference] = Counter({"A": 0, "B": 0})
    empty.update(b["preference"] for b in ballots if b["order"] == order and b["preference"])
    return empty
