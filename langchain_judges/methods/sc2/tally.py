"""Which tables meet and which one wins, and how preferences become the verdict.

Section 3.2 of the paper: the consistency of a table is known only through a comparator of
two tables, so the best of |C| samples is found by a knockout (|C| - 1 comparisons) instead
of comparing all with all. Everything here is a pure function of what was said so far.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from statistics import fmean
from typing import NamedTuple

from langchain_judges import verdict
from langchain_judges.asking.account import Account
from langchain_judges.methods.sc2.replies import (
    FORCED,
    Comparisons,
    ComparisonTable,
    DecidedBy,
    Inference,
    PreferenceReply,
    TableMatch,
    label_weight,
)
from langchain_judges.orders import Order, OrderRule, combine, disagree, prefer


class Pairing(NamedTuple):
    """Two tables that meet next, in the order they are shown; one alone has a bye."""

    match: int
    tables: tuple[int, ...]


def most_comparisons(mode: Inference, samples: int) -> int:
    """The most comparisons of the search (section 3.2, Table 2)."""
    exact = samples * (samples - 1)
    return {"random": 0, "tournament": samples - 1, "exact": exact}[mode]


def next_round(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> list[Pairing]:
    """Who meets whom next; nobody if the search is over.

    Args:
        mode: How the best table is found.
        entrants: The numbers of the tables.
        played: All matches so far, every one decided.
        seed: Of the shuffle and of which table stands first.
    """
    if mode == "random" or len(entrants) < 2:
        return []
    if mode == "exact":
        meetings = [] if played else permutations(entrants, 2)
        return [Pairing(i, pair) for i, pair in enumerate(meetings, 1)]
    contenders = survivors(entrants, played, seed)
    if len(contenders) < 2:
        return []
    number = max((match["round"] for match in played), default=0) + 1
    coin = seeded(seed, "slots", number)
    groups = [tuple(contenders[i : i + 2]) for i in range(0, len(contenders), 2)]
    return [
        Pairing(i, group if coin.random() < 0.5 else tuple(reversed(group)))
        for i, group in enumerate(groups, 1)
    ]


def champion(
    mode: Inference, entrants: Sequence[int], played: Sequence[TableMatch], seed: str
) -> int:
    """The number of the best table; equally many wins fall to a seeded coin."""
    if mode == "tournament":
        return survivors(entrants, played, seed)[0]
    winners = [match["winner"] for match in played]
    return max(shuffled(entrants, seed), key=winners.count)


def survivors(entrants: Sequence[int], played: Sequence[TableMatch], seed: str) -> list[int]:
    """Who is still in a knockout, in the order in which neighbours meet."""
    contenders = shuffled(entrants, seed)
    for number in sorted({match["round"] for match in played}):
        results = sorted(
            (match for match in played if match["round"] == number),
            # Whoever had a bye stands first, so that nobody has two while others have none.
            key=lambda match: (len(match["tables"]), match["match"]),
        )
        contenders = [match["winner"] for match in results if match["winner"] is not None]
    return contenders


def shuffled(entrants: Iterable[int], seed: str) -> list[int]:
    """Tables in an order that depends on the seed alone."""
    order = sorted(entrants)
    seeded(seed, "shuffle").shuffle(order)
    return order


def seeded(*parts: object) -> random.Random:
    """A source of coins that depends on `parts` alone."""
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - no secret


def advance(
    mode: Inference,
    played: Sequence[TableMatch],
    tables: Mapping[int, ComparisonTable],
    seed: str,
) -> tuple[list[TableMatch], list[TableMatch]]:
    """Matches that decide themselves, and the next that need the comparator."""
    decided: list[TableMatch] = []
    while True:
        so_far = [*played, *decided]
        number = max((match["round"] for match in so_far), default=0) + 1
        pending: list[TableMatch] = []
        pairings = next_round(mode, sorted(tables), so_far, seed)
        for pairing in pairings:
            match: TableMatch = {
                "round": number,
                "match": pairing.match,
                "tables": list(pairing.tables),
                "winner": None,
                "decided_by": "comparator",
                "why": "",
                "asked": True,
            }
            decision = _decision(match, tables, seed)
            (decided if decision else pending).append(decision or match)
        if pending or not pairings:
            return decided, pending


def _decision(
    match: TableMatch, tables: Mapping[int, ComparisonTable], seed: str
) -> TableMatch | None:
    """Decide a match without the comparator, if that can be done."""
    decision: TableMatch = {**match, "asked": False}
    if len(match["tables"]) == 1:
        return won(decision, match["tables"][0], "bye", "bye")
    valid = [n for n in match["tables"] if tables[n]["valid"]]
    if len(valid) == 1:
        return won(decision, valid[0], "validity", "the other table is not valid")
    if not valid:
        winner = seeded(seed, "invalid", match_name(match)).choice(sorted(match["tables"]))
        return won(decision, winner, "coin", "neither is valid")
    one, other = (tables[n]["rows"] for n in match["tables"])
    if one == other:
        # The first one: where both orders are drawn, each wins once.
        return won(decision, match["tables"][0], "identical", "the tables are identical")
    return None


def match_name(match: TableMatch) -> str:
    """The name of a match: `match 1.2: table 3 vs table 5`, first shown first."""
    tables = " vs ".join(f"table {number}" for number in match["tables"])
    return f"match {match['round']}.{match['match']}: {tables}"


def won(match: TableMatch, winner: int, by: DecidedBy, why: str) -> TableMatch:
    """A match with who won it and why."""
    return {**match, "winner": winner, "decided_by": by, "why": why}


def decide(
    rule: OrderRule,
    orders: Sequence[Order],
    choices: Sequence[PreferenceReply],
    account: Account,
    how: str,
) -> verdict.Verdict:
    """Combine the preferences of all orders into the verdict.

    Args:
        rule: How the orders become one.
        orders: Which were asked.
        choices: What the calls said.
        account: Of the row.
        how: How the table was found, for the rationale.
    """
    by_order = {choice["order"]: choice for choice in choices}
    if not by_order.keys() >= set(orders):
        return verdict.not_judged(
            **account.booked, rationale=_no_preference(account.failures, how)
        )
    # Probabilities and plain points are never averaged together.
    probable = all(choice["probability"] is not None for choice in choices)
    chances = [_chance_of_a(by_order[order], probable) for order in orders]
    preferences = [by_order[order]["preference"] for order in orders]
    score = fmean(chances)
    if rule == "score_mean":
        preference = prefer({"A": round(score, 9), "B": round(1 - score, 9)})
    else:
        preference = combine(rule, preferences)
    if preference == "tie":
        score = 0.5
    elif round(score, 9) == 0.5:
        score = FORCED if preference == "A" else 1 - FORCED
    confidence, source = _confidence(choices, preference, probable)
    return {
        "preference": preference,
        "score": score,
        "scores": {"A": score, "B": 1 - score},
        "confidence": confidence,
        "confidence_source": source,
        "flipped": disagree(preferences),
        "rationale": _rationale(preference, preferences, choices, how),
        "failures": account.failures,
        "usage": account.usage,
    }


def _chance_of_a(choice: PreferenceReply, probable: bool) -> float:
    """The probability that A is preferred: the label's, or else 1 and 0."""
    chance = label_weight(choice["probability"] if probable else None)
    return chance if choice["preference"] == "A" else 1 - chance


def _confidence(
    choices: Sequence[PreferenceReply], preference: verdict.Preference, probable: bool
) -> tuple[float | None, verdict.ConfidenceSource]:
    """The certainty of the judge; of a tie nobody was asked."""
    agreeing = [choice for choice in choices if choice["preference"] == preference]
    probabilities = [c["probability"] for c in agreeing if c["probability"] is not None]
    if probable and probabilities:
        return fmean(probabilities), "logprobs"
    return None, "none"


def _no_preference(failures: Sequence[verdict.Failure], how: str) -> str:
    reasons = [f["reason"] for f in failures if f["step"] == "preference"]
    why = ", ".join(dict.fromkeys(reasons)) or "no preference"
    return f"Not judged: {why}. {how}".strip()


def _rationale(
    preference: verdict.Preference,
    preferences: Sequence[verdict.Preference],
    choices: Sequence[PreferenceReply],
    how: str,
) -> str:
    parts = [f"{verdict.PREFERENCE_WORDS[preference]}."]
    if len(set(preferences)) > 1:
        parts.append(f"The orders disagree: {preferences[0]} (A first), {preferences[1]}.")
    parts.append(how)
    choice = next((c for c in choices if c["preference"] == preference), choices[0])
    words = " ".join(choice["comparison"].split())
    parts.append(words if len(words) <= 300 else words[:299] + "…")
    return " ".join(part for part in parts if part)


def search_sentence(
    table: ComparisonTable | None, sampled: int, comparisons: Comparisons | None
) -> str:
    """Say in a sentence which table decided and what it took to find it."""
    if table is None or comparisons is None:
        return "There is no table: the texts were compared directly."
    name = f"Table {table['number']} of {sampled}"
    if comparisons["mode"] == "random":
        return f"{name}, drawn at random."
    if not comparisons["rounds"]:
        return f"{name}."
    calls = comparisons["spent"]
    return f"{name} won: {calls} comparison{'s' * (calls != 1)}."
