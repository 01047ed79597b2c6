"""Which table leads: wins, who is left in a knockout, the winner, and circles.

Everything here is a pure function of the matches played so far.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from langchain_judges.methods.sc2.parse import label_weight
from langchain_judges.methods.sc2.replies import Inference, TableMatch


def seeded(*parts: object) -> random.Random:
    """Return a source of coins that depends on `parts` alone."""
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - no secret


def champion(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> int:
    """Return the number of the best table; ties fall to a seeded coin."""
    if mode in {"tournament", "double_round"}:
        return survivors(entrants, played, seed)[0]
    order = shuffled(entrants, seed)
    wins = wins_of(entrants, played)
    if mode == "swiss":
        strength = {e: sum(wins[o] for o in opponents(e, played)) for e in entrants}
        return max(order, key=lambda e: (wins[e], strength[e]))
    return max(order, key=lambda e: wins[e])


def strongest(entrants: Sequence[int], played: Sequence[TableMatch], seed: str) -> int:
    """Return the number of the table of most strength; equals fall to a seeded coin.

    Strengths are Bradley and Terry's, fitted to all comparisons. A comparison that is won with
    probability p is worth p to the winner and 1 - p to the other, if every label of the
    comparator has a probability; else 1 and 0. What a coin decided is worth a half each.
    """
    import numpy as np

    from langchain_judges.metrics.tournament import tournament

    place = {table: i for i, table in enumerate(entrants)}
    points = np.zeros((len(entrants), len(entrants)))
    asked = [match for match in played if match["decided_by"] == "comparator"]
    probable = all(match.get("probability") is not None for match in asked)
    for match in played:
        share = _worth(match, probable)
        for winner, loser in _defeats(match):
            points[place[winner], place[loser]] += share
            points[place[loser], place[winner]] += 1 - share
    strengths = tournament(points).strengths
    return max(shuffled(entrants, seed), key=lambda e: round(float(strengths[place[e]]), 6))


def _worth(match: TableMatch, probable: bool) -> float:
    """Return what a match is worth to its winner."""
    if match["decided_by"] == "coin":
        return 0.5
    return label_weight(match.get("probability") if probable else None)


def _defeats(match: TableMatch) -> list[tuple[int, int]]:
    """Return winner and loser of a match; nothing for a bye, or while it is not decided."""
    winner = match["winner"]
    if winner is None:
        return []
    return [(winner, loser) for loser in match["tables"] if loser != winner]


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
        for winner, loser in _defeats(match) if match["decided_by"] == "comparator" else ():
            lead[winner, loser] = lead.get((winner, loser), 0) + 1
            lead[loser, winner] = lead.get((loser, winner), 0) - 1
    circles, legs = 0, 2 if mode == "exact" else 1
    for a, b, c in combinations(entrants, 3):
        signs = [lead.get(pair, 0) for pair in ((a, b), (b, c), (c, a))]
        circles += all(s >= legs for s in signs) or all(s <= -legs for s in signs)
    return circles


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


def survivors(entrants: Sequence[int], played: Sequence[TableMatch], seed: str) -> list[int]:
    """Return who is still in a knockout, in the order in which neighbours meet."""
    contenders = shuffled(entrants, seed)
    legs = _legs(played)
    for number in sorted({match["round"] for match in played}):
        # The last leg decides: where two orders disagreed it is the coin.
        results = [legs[key][-1] for key in sorted(legs) if key[0] == number]
        # Whoever had a bye stands first, so that nobody has two while others have none.
        results.sort(key=lambda match: len(match["tables"]))
        contenders = [match["winner"] for match in results if match["winner"] is not None]
    return contenders


def shuffled(entrants: Iterable[int], seed: str) -> list[int]:
    """Return tables in an order that depends on the seed alone."""
    order = sorted(entrants)
    seeded(seed, "shuffle").shuffle(order)
    return order


def wins_of(entrants: Iterable[int], played: Iterable[TableMatch]) -> Mapping[int, int]:
    """Return how many matches each table has won."""
    wins = dict.fromkeys(entrants, 0)
    for match in played:
        if match["winner"] is not None:
            wins[match["winner"]] += 1
    return wins


def opponents(one: int, played: Iterable[TableMatch]) -> list[int]:
    """Return the tables that one has met, once for each match."""
    return [
        o for match in played if one in match["tables"] for o in match["tables"] if o != one
    ]


def _legs(played: Iterable[TableMatch]) -> dict[tuple[int, int], list[TableMatch]]:
    legs: dict[tuple[int, int], list[TableMatch]] = {}
    for match in played:
        legs.setdefault((match["round"], match["match"]), []).append(match)
    return legs
