"""Stopping early: how often each order is still asked for its preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.replies import PreferenceReply
from langchain_judges.methods.sc2.tally import chance_of_a
from langchain_judges.orders import Order, combine
from langchain_judges.verdict import Preference


def more_samples(
    options: SC2, choices: Sequence[PreferenceReply], asked: Mapping[Order, int]
) -> dict[Order, int]:
    """Return how many samples more each order is asked for; none once nothing can change.

    The first ones are as many as can settle an order; then one at a time.

    Args:
        options: Samples, and how the orders are combined.
        choices: What the samples so far said.
        asked: How many samples each order was asked for.
    """
    total = options.preference_samples
    if not any(asked.values()):
        return dict.fromkeys(options.order_list, total // 2 + 1)
    open_ = [order for order in options.order_list if asked[order] < total]
    counts = [sum(c["order"] == order for c in choices) for order in options.order_list]
    # Without a quorum a sample that fails would leave the pair unjudged.
    if not open_ or (min(counts) > total // 2 and _settled(options, choices, asked)):
        return {}
    return dict.fromkeys(open_, 1)


def _settled(
    options: SC2, choices: Sequence[PreferenceReply], asked: Mapping[Order, int]
) -> bool:
    """Say whether no reply that is left can change the verdict.

    A sample moves the sum of (P(A) - 1/2) of its order by at most a half. Probabilities count
    only where every reply has one, so while replies are left both readings must be settled.
    """
    probable = all(choice["probability"] is not None for choice in choices)
    return all(_settled_as(options, choices, asked, reading) for reading in {probable, False})


def _settled_as(
    options: SC2,
    choices: Sequence[PreferenceReply],
    asked: Mapping[Order, int],
    probable: bool,
) -> bool:
    leads = [
        sum(chance_of_a(c, probable) - 0.5 for c in choices if c["order"] == order)
        for order in options.order_list
    ]
    rests = [(options.preference_samples - asked[order]) / 2 for order in options.order_list]
    if options.order_rule == "score_mean":
        # The mean of each order counts as much, over however many samples it is.
        return len(_outcomes(sum(leads), sum(rests))) == 1 and not _uneven(choices, asked)
    outcomes = [_outcomes(lead, rest) for lead, rest in zip(leads, rests, strict=True)]
    return len({combine(options.order_rule, each) for each in product(*outcomes)}) == 1


def _uneven(choices: Sequence[PreferenceReply], asked: Mapping[Order, int]) -> bool:
    """Say whether a reply is missing, so that means of the orders have other weights."""
    return len(choices) < sum(asked.values())


def _outcomes(lead: float, rest: float) -> set[Preference]:
    """Return what an order can still prefer; even samples fall to a coin, to either side."""
    outcomes: set[Preference] = set()
    if round(lead + rest, 9) >= 0:
        outcomes.add("A")
    if round(lead - rest, 9) <= 0:
        outcomes.add("B")
    return outcomes
