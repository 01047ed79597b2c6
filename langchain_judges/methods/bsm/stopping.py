"""Stopping early: which criteria can still change the verdict of summed scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import TYPE_CHECKING

from langchain_judges.methods.bsm.tally import Cells, weight_of
from langchain_judges.methods.plans import Criterion
from langchain_judges.orders import combine
from langchain_judges.verdict import Preference

if TYPE_CHECKING:
    from langchain_judges.methods.bsm.judge import BSM


def first_wave(weights: Sequence[float]) -> int:
    """Return how many of the first criteria must be solved before the rest can be settled.

    No lead in fewer of them can outweigh what the rest might still bring.

    >>> first_wave([1, 1, 1, 1, 1]), first_wave([10, 3, 2])
    (3, 1)
    """
    done = 0.0
    for count, weight in enumerate(weights, 1):
        done += weight
        if done >= sum(weights) - done:
            return count
    return len(weights)


def settled(
    options: BSM, plan: Sequence[Criterion], left: Collection[str], cells: Cells
) -> bool:
    """Say whether the criteria that are left cannot change the verdict.

    A criterion of weight w changes the lead of an order by at most w (high - low). What the
    verdict can still become is what the order rule makes of every outcome that each order
    can still have.

    Args:
        options: Order rule, scale, weights and the fewest criteria of a verdict.
        plan: The whole plan.
        left: The names of the criteria that nobody was asked about.
        cells: The mean scores of the others.
    """
    if not left:
        return True
    valid = len({name for name, _ in cells})
    if valid < (options.min_valid or 1):
        return False
    low, high = options.scale
    by_name = {criterion["name"]: weight_of(options, criterion) for criterion in plan}
    rest = sum(by_name[name] for name in left) * (high - low)
    leads = [
        sum(by_name[n] * (c["A"] - c["B"]) for (n, o), c in cells.items() if o == order)
        for order in options.order_list
    ]
    if options.order_rule == "score_mean":
        return len(_outcomes(sum(leads), rest * len(leads))) == 1
    outcomes = [_outcomes(lead, rest) for lead in leads]
    verdicts = {combine(options.order_rule, each) for each in product(*outcomes)}
    return len(verdicts) == 1


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


def not_asked_sentence(names: Sequence[str]) -> str:
    """Say which criteria were not asked about; nothing where all were."""
    if not names:
        return ""
    return f" Not asked, for it could not change the verdict: {', '.join(names)}."
