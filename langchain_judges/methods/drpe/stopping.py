"""How many roles vote next, and when the votes that are left cannot change the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import fmean

from langchain_judges.methods.drpe.ballots import weighed
from langchain_judges.methods.drpe.options import DRPE
from langchain_judges.methods.drpe.replies import RoleBallot
from langchain_judges.methods.drpe.tally import fewest_valid, order_sums, votes_by_order
from langchain_judges.methods.stopping import first_wave, settled
from langchain_judges.orders import Order, combine
from langchain_judges.verdict import Preference, Role, Vote


def next_roles(
    options: DRPE,
    roles: Sequence[Role],
    ballots: Sequence[RoleBallot],
    orders: Sequence[Order],
    asked: int,
) -> int:
    """Return how many roles more are asked to vote; 0 once no vote can change the verdict.

    The first ones are as many as can settle it; then one role at a time, in every order.

    Args:
        options: How the panel votes, and how sure the verdict must be.
        roles: The panel, in the order in which it is asked.
        ballots: The ballots so far.
        orders: The orders that are asked.
        asked: How many roles were asked.
    """
    poll, remaining = options.poll, len(roles) - asked
    if not asked:
        return min(len(roles), first_wave(poll.adaptive, len(roles), ("A", "B"), len(orders)))
    readings = [weighed(ballots, poll.confidence)[0]]
    if poll.confidence == "auto":
        # One vote without log-probabilities makes every vote weigh one.
        readings.append([{**ballot, "confidence": None} for ballot in ballots])
    is_settled = remaining == 0 or all(
        _settled(options, roles[:asked], each, orders, remaining) for each in readings
    )
    return 0 if is_settled else 1


def _settled(
    options: DRPE,
    voters: Sequence[Role],
    ballots: Sequence[RoleBallot],
    orders: Sequence[Order],
    remaining: int,
) -> bool:
    poll = options.poll
    by_order = votes_by_order(voters, ballots, orders, poll.replies > 1)
    seats = len(voters) + remaining if poll.adaptive is True else len(voters)
    least = poll.min_valid or seats // 2 + 1
    if fewest_valid(by_order) < least:
        return False
    rule, groups = options.orders, [*by_order.values()]
    if rule not in {"strict", "lenient"}:
        # The sums of the orders are averaged: one lead decides.
        groups, remaining = (
            [[vote for votes in groups for vote in votes]],
            remaining * len(orders),
        )
    leads = [_leads(votes, poll.confidence == "soft") for votes in groups]
    chances = [_chances(each, remaining, exact=poll.adaptive is True) for each in leads]

    def verdict(preferences: Sequence[Preference]) -> Preference:
        return combine(rule, preferences)

    return settled(
        poll.adaptive, chances, verdict, verdict([_side(sum(each)) for each in leads])
    )


def _leads(votes: Sequence[Vote], soft: bool) -> list[float]:
    """Return what each vote adds to the lead of A."""
    sums = [order_sums([vote], soft) for vote in votes if vote["preference"]]
    return [each["A"] - each["B"] for each in sums]


def _chances(leads: Sequence[float], remaining: int, *, exact: bool) -> dict[Preference, float]:
    """Return the probability of what an order's sums come to.

    Exactly, a vote changes the lead by at most one, and its side is open. By a bound, the
    votes that are left weigh what those so far weigh on average, and go to A as often as
    these did (beta-binomial, uniform prior).
    """
    lead = sum(leads)
    if exact:
        reached = {_side(lead - remaining), _side(lead), _side(lead + remaining)}
        return dict.fromkeys(reached | ({"tie"} if len(reached) > 1 else set()), 1.0)
    chances: dict[Preference, float] = {}
    wins = sum(each > 0 for each in leads)
    weight, against = fmean(map(abs, leads)), len(leads) - wins
    for k in range(remaining + 1):
        side = _side(lead + weight * (2 * k - remaining))
        chance = comb(wins + k, k) * comb(against + remaining - k, remaining - k)
        chances[side] = chances.get(side, 0) + chance / comb(
            len(leads) + remaining + 1, remaining
        )
    return chances


def _side(lead: float) -> Preference:
    lead = round(lead, 9)
    return "A" if lead > 0 else "B" if lead < 0 else "tie"
