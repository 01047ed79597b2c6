"""Stopping early: which criteria can still change the verdict of summed scores, or would."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product

from langchain_judges.methods.bsm.bound import chance_to_stay
from langchain_judges.methods.bsm.bound import first_wave as bounded_wave
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.bsm.tally import ScoreCells, weight_of
from langchain_judges.methods.replies import PlanLine
from langchain_judges.orders import combine
from langchain_judges.verdict import Preference


def first_wave(options: BSM, plan: Sequence[PlanLine]) -> int:
    """Return how many of the first criteria must be solved before the rest can be settled.

    Exactly: no lead in fewer of them can outweigh what the rest might still bring.
    """
    weights = [weight_of(options, criterion) for criterion in plan]
    if options.adaptive is not True:
        orders = len(options.order_list)
        rule, least = options.order_rule, float(options.adaptive)
        return bounded_wave(tuple(weights), options.scale, rule, orders, least)
    solved = 0.0
    for count, weight in enumerate(weights, 1):
        solved += weight
        if solved >= sum(weights) - solved:
            return count
    return len(weights)


def settled(
    options: BSM, plan: Sequence[PlanLine], open_names: Collection[str], cells: ScoreCells
) -> bool:
    """Say whether the criteria that are left cannot change the verdict, or would not.

    A criterion of weight w changes the lead of an order by at most w (high - low). What the
    verdict can still become is what the order rule makes of every outcome that each order
    can still have.

    Args:
        options: Order rule, scale, weights, the fewest criteria of a verdict, and how sure it
            must be.
        plan: The whole plan.
        open_names: The names of the criteria that nobody was asked about.
        cells: The mean scores of the others.
    """
    if not open_names:
        return True
    valid = len({name for name, _ in cells})
    if valid < (options.min_valid or 1):
        return False
    low, high = options.scale
    by_name = {criterion["name"]: weight_of(options, criterion) for criterion in plan}
    if options.adaptive is not True:
        return _probably(options, by_name, open_names, cells)
    rest = sum(by_name[name] for name in open_names) * (high - low)
    leads = [
        sum(by_name[n] * (c["A"] - c["B"]) for (n, o), c in cells.items() if o == order)
        for order in options.order_list
    ]
    if options.order_rule == "score_mean":
        return len(_outcomes(sum(leads), rest * len(leads))) == 1
    outcomes = [_outcomes(lead, rest) for lead in leads]
    verdicts = {combine(options.order_rule, each) for each in product(*outcomes)}
    return len(verdicts) == 1


def _probably(
    options: BSM, weights: Mapping[str, float], open_names: Collection[str], cells: ScoreCells
) -> bool:
    """Say whether the verdict stays with the probability that is asked for."""
    names = list(dict.fromkeys(name for name, _ in cells))
    leads = [
        [cells[name, order]["A"] - cells[name, order]["B"] for order in options.order_list]
        for name in names
    ]
    solved, open_ = [weights[name] for name in names], [weights[name] for name in open_names]
    stays = chance_to_stay(leads, solved, open_, options.scale, options.order_rule)
    return stays >= float(options.adaptive)


def _outcomes(lead: float, rest: float) -> set[Preference]:
    """Return what a lead of A can become when it still changes by at most `rest`."""
    least, most = round(lead - rest, 9), round(lead + rest, 9)
    possible: set[Preference] = set()
    if most > 0:
        possible.add("A")
    if least < 0:
        possible.add("B")
    if least <= 0 <= most:
        possible.add("tie")
    return possible
