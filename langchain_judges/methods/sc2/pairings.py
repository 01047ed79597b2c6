"""Which tables meet next: searching the most consistent table with a pairwise comparator.

Section 3.2 of the paper: the consistency of a table is known only through a comparator of
two tables, so the best of |C| samples is found by a knockout (|C| - 1 comparisons) instead
of comparing all with all. Everything here is a pure function of the matches played so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import NamedTuple

from langchain_judges.methods.sc2.replies import Inference, TableMatch
from langchain_judges.methods.sc2.standings import (
    opponents,
    seeded,
    shuffled,
    survivors,
    wins_of,
)


class Pairing(NamedTuple):
    """Two tables that meet next, in the order they are shown; one alone has a bye."""

    match: int
    tables: tuple[int, ...]


def next_round(
    mode: Inference,
    entrants: Sequence[int],
    played: Sequence[TableMatch],
    seed: str,
    *,
    adaptive: bool = False,
) -> list[Pairing]:
    """Return who meets whom next; nobody if the search is over.

    Args:
        mode: How the best table is found.
        entrants: The numbers of the tables.
        played: All matches so far, every one decided.
        seed: Of the shuffle and of which table stands first.
        adaptive: Whether the matches of all with all are drawn while they can change who wins.
    """
    if mode == "random" or len(entrants) < 2:
        return []
    if adaptive and mode in {"exact", "exact_unordered"}:
        left = not_asked(mode, entrants, played, seed)
        return _worth_asking(entrants, played, left, seed)
    number = max((match["round"] for match in played), default=0) + 1
    coin = seeded(seed, "slots", number)
    if mode == "exact":
        meetings = [] if played else list(permutations(entrants, 2))
        return [Pairing(i + 1, pair) for i, pair in enumerate(meetings)]
    if mode == "exact_unordered":
        groups: list[tuple[int, ...]] = [] if played else list(combinations(entrants, 2))
    elif mode == "swiss":
        groups = _swiss(entrants, played, seed, number)
    else:
        groups = _knockout(entrants, played, seed)
    pairings: list[Pairing] = []
    for i, group in enumerate(groups):
        first = group if coin.random() < 0.5 else tuple(reversed(group))
        pairings.append(Pairing(i + 1, first))
        if mode == "double_round" and len(group) == 2:
            pairings.append(Pairing(i + 1, tuple(reversed(first))))
    return pairings


def _worth_asking(
    entrants: Sequence[int], played: Sequence[TableMatch], left: Sequence[Pairing], seed: str
) -> list[Pairing]:
    """Return the next matches of all with all, each table in one; none once the winner is sure.

    Of those that may still win, the ones that can reach most wins meet, each other first.
    """
    wins = wins_of(entrants, played)
    place = {one: i for i, one in enumerate(shuffled(entrants, seed))}
    most = {e: wins[e] + sum(e in pairing.tables for pairing in left) for e in entrants}
    leader = min(entrants, key=lambda e: (-wins[e], place[e]))
    rivals = [
        e
        for e in entrants
        if most[e] > wins[leader] or (most[e] == wins[leader] and place[e] < place[leader])
    ]
    if set(rivals) <= {leader}:
        return []
    waiting = sorted({leader, *rivals}, key=lambda e: (-most[e], -wins[e], place[e]))
    waiting += [e for e in entrants if e not in waiting]
    pairings: list[Pairing] = []
    best = 0
    while waiting:
        one = waiting.pop(0)
        if pairings and most[one] < best:
            break
        legs = {other: [p for p in left if set(p.tables) == {one, other}] for other in waiting}
        if other := next((each for each in waiting if legs[each]), None):
            best = best or most[one]
            waiting.remove(other)
            pairings += legs[other]
    return pairings


def not_asked(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> list[Pairing]:
    """Return the matches of all with all that were not needed."""
    if mode not in {"exact", "exact_unordered"}:
        return []
    meetings = {(match["match"], tuple(match["tables"])) for match in played}
    return [each for each in next_round(mode, entrants, [], seed) if each not in meetings]


def most_comparisons(mode: Inference, samples: int) -> int:
    """Return how many comparisons the search takes at most (section 3.2, Table 2)."""
    if samples < 2:
        return 0
    pairs = samples * (samples - 1)
    return {
        "random": 0,
        "tournament": samples - 1,
        "double_round": 2 * (samples - 1),
        "exact": pairs,
        "exact_unordered": pairs // 2,
        "swiss": rounds_of(samples) * (samples // 2),
    }[mode]


def rounds_of(samples: int) -> int:
    """Return the rounds of a knockout: log2 of the tables, rounded up."""
    return max(0, samples - 1).bit_length()


def _knockout(
    entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> list[tuple[int, ...]]:
    contenders = survivors(entrants, played, seed)
    if len(contenders) < 2:
        return []
    return [tuple(contenders[i : i + 2]) for i in range(0, len(contenders), 2)]


def _swiss(
    entrants: Sequence[int], played: Sequence[TableMatch], seed: str, number: int
) -> list[tuple[int, ...]]:
    """Pair tables with equally many wins; the last one without a bye sits out."""
    if number > rounds_of(len(entrants)):
        return []
    wins = wins_of(entrants, played)
    waiting = sorted(shuffled(entrants, seed), key=lambda e: -wins[e])
    with_bye = {match["winner"] for match in played if match["decided_by"] == "bye"}
    bye: list[tuple[int, ...]] = []
    if len(waiting) % 2:
        resting = next((e for e in reversed(waiting) if e not in with_bye), waiting[-1])
        waiting.remove(resting)
        bye = [(resting,)]
    groups: list[tuple[int, ...]] = []
    while waiting:
        one = waiting.pop(0)
        meetings = opponents(one, played)
        other = next((e for e in waiting if e not in meetings), waiting[0])
        waiting.remove(other)
        groups.append((one, other))
    return [*groups, *bye]
