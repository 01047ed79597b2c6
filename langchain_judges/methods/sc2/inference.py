"""Who meets whom: searching the most consistent table with a pairwise comparator.

Section 3.2 of the paper: the consistency of a table is known only through a comparator of
two tables, so the best of |C| samples is found by a knockout (|C| - 1 comparisons) instead
of comparing all with all. Everything here is a pure function of the matches played so far.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from typing import Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

Inference = Literal["tournament", "exact", "exact_unordered", "double_round", "random", "swiss"]
"""How the best table is found; `create_sc2_judge` explains each."""

DecidedBy = Literal["comparator", "coin", "bye", "validity", "check", "identical"]


class TableMatch(TypedDict):
    """A meeting of two tables, or a bye."""

    round: int
    match: int
    tables: list[int]
    """Their numbers, in the order in which the comparator sees them; one for a bye."""
    winner: int | None
    """None while it is not decided."""
    decided_by: DecidedBy
    why: str
    asked: bool
    """Whether the comparator was asked."""
    aspect: str
    """The row it is about with `row_wise=True`; else empty."""
    probability: NotRequired[float | None]
    """Of the comparator's label, where `crown="strength"` asked for it."""


class Pairing(NamedTuple):
    """Two tables that meet next, in the order they are shown; one alone has a bye."""

    match: int
    tables: tuple[int, ...]


def seeded(*parts: object) -> random.Random:
    """Return a source of coins that depends on `parts` alone."""
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - no secret


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
    wins = _wins(entrants, played)
    place = {one: i for i, one in enumerate(_shuffled(entrants, seed))}
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


def disputed(played: Sequence[TableMatch], seed: str) -> list[TableMatch]:
    """Return a coin for each match whose two orders disagree (`double_round`)."""
    coins: list[TableMatch] = []
    for legs in _legs(played).values():
        winners = {leg["winner"] for leg in legs}
        if len(winners) > 1 and not any(leg["decided_by"] == "coin" for leg in legs[2:]):
            coin = seeded(seed, "tie", legs[0]["round"], legs[0]["match"])
            coins.append(
                {
                    **legs[0],
                    "winner": coin.choice(sorted(legs[0]["tables"])),
                    "decided_by": "coin",
                    "why": "the comparator changed its mind with the order",
                    "asked": False,
                }
            )
    return coins


def champion(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> int | None:
    """Return the number of the best table; ties fall to a seeded coin."""
    if not entrants:
        return None
    if mode in {"tournament", "double_round"}:
        return _survivors(entrants, played, seed)[0]
    order = _shuffled(entrants, seed)
    wins = _wins(entrants, played)
    if mode == "swiss":
        strength = {e: sum(wins[o] for o in _met(e, played)) for e in entrants}
        return max(order, key=lambda e: (wins[e], strength[e]))
    return max(order, key=lambda e: wins[e])


def strongest(entrants: Sequence[int], played: Sequence[TableMatch], seed: str) -> int | None:
    """Return the number of the table of most strength; equals fall to a seeded coin.

    Strengths are Bradley and Terry's, fitted to all comparisons. A comparison that is won with
    probability p is worth p to the winner and 1 - p to the other, if every label of the
    comparator has a probability; else 1 and 0. What a coin decided is worth a half each.
    """
    if not entrants:
        return None
    import numpy as np

    from langchain_judges.metrics.tournament import tournament

    place = {table: i for i, table in enumerate(entrants)}
    points = np.zeros((len(entrants), len(entrants)))
    asked = [match for match in played if match["decided_by"] == "comparator"]
    probable = all(match.get("probability") is not None for match in asked)
    for match in played:
        winner = match["winner"]
        for loser in match["tables"]:
            if winner is not None and loser != winner:
                share = _worth(match, probable)
                points[place[winner], place[loser]] += share
                points[place[loser], place[winner]] += 1 - share
    strengths = tournament(points).strengths
    return max(_shuffled(entrants, seed), key=lambda e: round(float(strengths[place[e]]), 6))


def _worth(match: TableMatch, probable: bool) -> float:
    """Return what a match is worth to its winner."""
    if match["decided_by"] == "coin":
        return 0.5
    probability = match.get("probability") if probable else None
    # Where a format forced the label, its own tokens may have had less.
    return 1.0 if probability is None else max(_FORCED, min(1.0, probability))


_FORCED = 0.51


def cyclic_triples(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch]
) -> int | None:
    """Count the triples that beat each other in a circle; None where not all have met.

    With `exact` a pair counts as decided where both orders agree. What a coin, the check or
    the validity of a table decided says nothing of the comparator.
    """
    if mode not in {"exact", "exact_unordered"}:
        return None
    lead: dict[tuple[int, int], int] = {}
    for match in played:
        winner = match["winner"] if match["decided_by"] == "comparator" else None
        for loser in match["tables"]:
            if winner is not None and loser != winner:
                lead[winner, loser] = lead.get((winner, loser), 0) + 1
                lead[loser, winner] = lead.get((loser, winner), 0) - 1
    circles, legs = 0, 2 if mode == "exact" else 1
    for a, b, c in combinations(entrants, 3):
        signs = [lead.get(pair, 0) for pair in ((a, b), (b, c), (c, a))]
        circles += all(s >= legs for s in signs) or all(s <= -legs for s in signs)
    return circles


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


def _shuffled(entrants: Iterable[int], seed: str) -> list[int]:
    order = sorted(entrants)
    seeded(seed, "shuffle").shuffle(order)
    return order


def _legs(played: Iterable[TableMatch]) -> dict[tuple[int, int], list[TableMatch]]:
    legs: dict[tuple[int, int], list[TableMatch]] = {}
    for match in played:
        legs.setdefault((match["round"], match["match"]), []).append(match)
    return legs


def _survivors(entrants: Sequence[int], played: Sequence[TableMatch], seed: str) -> list[int]:
    """Return who is still in a knockout, in the order in which neighbours meet."""
    alive = _shuffled(entrants, seed)
    legs = _legs(played)
    for number in sorted({match["round"] for match in played}):
        # The last leg decides: where two orders disagreed it is the coin.
        ended = [legs[key][-1] for key in sorted(legs) if key[0] == number]
        # Whoever had a bye stands first, so that nobody has two while others have none.
        ended.sort(key=lambda match: len(match["tables"]))
        alive = [match["winner"] for match in ended if match["winner"] is not None]
    return alive


def _knockout(
    entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> list[tuple[int, ...]]:
    alive = _survivors(entrants, played, seed)
    if len(alive) < 2:
        return []
    return [tuple(alive[i : i + 2]) for i in range(0, len(alive), 2)]


def _swiss(
    entrants: Sequence[int], played: Sequence[TableMatch], seed: str, number: int
) -> list[tuple[int, ...]]:
    """Pair tables with equally many wins; the last one without a bye sits out."""
    if number > rounds_of(len(entrants)):
        return []
    wins = _wins(entrants, played)
    waiting = sorted(_shuffled(entrants, seed), key=lambda e: -wins[e])
    rested = {match["winner"] for match in played if match["decided_by"] == "bye"}
    bye: list[tuple[int, ...]] = []
    if len(waiting) % 2:
        out = next((e for e in reversed(waiting) if e not in rested), waiting[-1])
        waiting.remove(out)
        bye = [(out,)]
    groups: list[tuple[int, ...]] = []
    while waiting:
        one = waiting.pop(0)
        meetings = _met(one, played)
        other = next((e for e in waiting if e not in meetings), waiting[0])
        waiting.remove(other)
        groups.append((one, other))
    return [*groups, *bye]


def _wins(entrants: Iterable[int], played: Iterable[TableMatch]) -> Mapping[int, int]:
    wins = dict.fromkeys(entrants, 0)
    for match in played:
        if match["winner"] is not None:
            wins[match["winner"]] += 1
    return wins


def _met(one: int, played: Iterable[TableMatch]) -> list[int]:
    return [
        o for match in played if one in match["tables"] for o in match["tables"] if o != one
    ]
