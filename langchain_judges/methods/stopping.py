"""Stopping early: whether the votes that are left can still change a verdict.

Exactly, or with a stated probability: that of adaptive consistency (Aggarwal et al. 2023,
arXiv:2305.11860), whose votes are draws from unknown shares with a uniform prior. What is
asked here is not whether the leader has the larger share, but whether the verdict would
be the same after all votes that were to be asked. The probability is the prior's: it holds
over pairs whose shares are spread evenly, at whichever vote one stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import comb, prod
from typing import Annotated

from annotated_types import Gt, Le
from pydantic import AfterValidator

from langchain_judges.options import Rule
from langchain_judges.verdict import Preference


def _surely(adaptive: bool | float) -> bool | float:
    return True if adaptive == 1 else adaptive


Adaptive = Annotated[
    bool | Annotated[float, Gt(0.5), Le(1)],
    AfterValidator(_surely),
    Rule("true, false or a probability above 0.5"),
]
"""False: everything is asked. True: until the verdict is settled. A probability: until the
verdict is the same as that of the full method with at least this probability."""

Combine = Callable[[Sequence[Preference]], Preference]
"""How the outcomes of the orders become one."""


def outcomes(
    counts: Mapping[Preference, int], remaining: int, labels: Sequence[Preference]
) -> dict[Preference, float]:
    """Return the probability of each plurality after `remaining` more votes.

    The votes that are left follow a Dirichlet-multinomial distribution with a uniform
    prior. Several labels with the most votes are a tie.

    Args:
        counts: The votes for each label so far.
        remaining: How many votes are left.
        labels: What a vote may say.

    >>> outcomes({"A": 2, "B": 0}, 1, ["A", "B"])
    {'A': 1.0}
    """
    votes = [counts.get(label, 0) for label in labels]
    ways = comb(sum(votes) + remaining + len(labels) - 1, remaining)
    chances: dict[Preference, float] = {}
    for more in _shares(remaining, len(labels)):
        final = dict(zip(labels, map(sum, zip(votes, more, strict=True)), strict=True))
        weight = prod(comb(n + k, k) for n, k in zip(votes, more, strict=True))
        winner = plurality(final)
        chances[winner] = chances.get(winner, 0) + weight / ways
    return chances


def plurality(counts: Mapping[Preference, int]) -> Preference:
    """Return the label of most votes; a tie where several have as many."""
    most = max(counts.values())
    leading = [label for label, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else "tie"


def _shares(votes: int, labels: int) -> Iterator[tuple[int, ...]]:
    if labels == 1:
        yield (votes,)
        return
    for first in range(votes + 1):
        for rest in _shares(votes - first, labels - 1):
            yield (first, *rest)


def settled(
    adaptive: bool | float,
    orders: Sequence[Mapping[Preference, float]],
    combine: Combine,
    now: Preference,
) -> bool:
    """Say whether the verdict stays what it is, surely or with the stated probability.

    Args:
        adaptive: True for surely; else the probability.
        orders: What each order can become, as `outcomes` returns it.
        combine: How the outcomes of the orders become a verdict.
        now: The verdict by the votes so far.
    """
    same = other = 0.0
    for each in product(*(order.items() for order in orders)):
        chance = prod(probability for _, probability in each)
        if combine([label for label, _ in each]) == now:
            same += chance
        else:
            other += chance
    return other == 0 if adaptive is True else same >= adaptive


def first_wave(
    adaptive: bool | float, votes: int, labels: Sequence[Preference], orders: int
) -> int:
    """Return how many votes of each order can settle a verdict at the earliest.

    >>> first_wave(True, 8, ["A", "B"], 1), first_wave(0.95, 8, ["A", "B"], 1)
    (5, 3)
    """
    for count in range(1, votes):
        unanimous = outcomes({"A": count}, votes - count, labels)
        if settled(adaptive, [unanimous] * orders, lambda labels: _same(labels), "A"):
            return count
    return votes


def _same(labels: Sequence[Preference]) -> Preference:
    return labels[0] if len(set(labels)) == 1 else "tie"


def not_asked_sentence(names: Sequence[str], adaptive: bool | float) -> str:
    """Say what was not asked and why; nothing where everything was."""
    if not names:
        return ""
    why = "it could not change the verdict"
    if adaptive is not True:
        why = f"the verdict would stay with a probability of at least {adaptive:g}"
    return f" Not asked, for {why}: {', '.join(names)}."
