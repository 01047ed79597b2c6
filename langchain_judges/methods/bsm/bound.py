"""Stopping early by a bound: how probable it is that the criteria left change no verdict.

The criteria that were solved say what those left are like, by an urn (Blackwell and MacQueen
1973, the Dirichlet process): the leads of A in both orders on a criterion are drawn again from
those of the criteria so far, and with the weight of one criterion from scores that are all as
probable. The probability is that model's, not a guarantee on your rows; a script of
`tests/benchmarks` measures how often a verdict stays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from langchain_judges.orders import OrderRule, combine, prefer
from langchain_judges.verdict import Preference

DRAWS = 2_000
"""Draws of what is left; the error of a probability of 0.95 is then 0.5 points."""

Leads = Sequence[float]
"""How far A leads on one criterion, in each order."""


def chance_to_stay(
    leads: Sequence[Leads],
    weights: Sequence[float],
    open_weights: Sequence[float],
    scale: tuple[int, int],
    rule: OrderRule,
) -> float:
    """Return the probability that the verdict stays what it is by the criteria so far.

    Args:
        leads: The leads on the criteria that were solved, one for each order.
        weights: The weight of each of these.
        open_weights: The weights of the criteria that nobody was asked about.
        scale: The lowest and the highest score.
        rule: How the orders become one verdict.
    """
    orders = range(len(leads[0]))
    sums = [
        sum(w * by_order[o] for w, by_order in zip(weights, leads, strict=True)) for o in orders
    ]
    now, stays = _verdict(sums, rule), 0
    chance = random.Random(0)  # noqa: S311 - the same on every run
    for _ in range(DRAWS):
        urn, ends = list(leads), list(sums)
        for weight in open_weights:
            lead_draw = _draw(urn, len(ends), scale, chance)
            urn.append(lead_draw)
            ends = [end + weight * lead for end, lead in zip(ends, lead_draw, strict=True)]
        stays += _verdict(ends, rule) == now
    return stays / DRAWS


def _draw(
    urn: Sequence[Leads], orders: int, scale: tuple[int, int], chance: random.Random
) -> Leads:
    place = chance.randrange(len(urn) + 1)
    if place < len(urn):
        return urn[place]
    draw: Callable[[], int] = lambda: chance.randint(*scale)  # noqa: E731
    return [draw() - draw() for _ in range(orders)]


def _verdict(sums: Sequence[float], rule: OrderRule) -> Preference:
    if rule == "score_mean":
        sums = [sum(sums)]
    preferences = [prefer({"A": round(lead, 9), "B": 0.0}) for lead in sums]
    return preferences[0] if len(preferences) == 1 else combine(rule, preferences)


@lru_cache(maxsize=256)
def first_wave(
    weights: tuple[float, ...],
    scale: tuple[int, int],
    rule: OrderRule,
    orders: int,
    least: float,
) -> int:
    """Return how many of the first criteria can settle a verdict at the earliest.

    That is if A leads by the whole scale on each of them, in every order.

    Args:
        weights: Those of the whole plan, largest first.
        scale: The lowest and the highest score.
        rule: How the orders become one verdict.
        orders: How many are asked.
        least: The probability that is asked for.
    """
    leads = [[float(scale[1] - scale[0])] * orders]
    for count in range(1, len(weights)):
        past, rest = weights[:count], weights[count:]
        if chance_to_stay(leads * count, past, rest, scale, rule) >= least:
            return count
    return len(weights)
