"""Tournament of the tables, and the verdict from the preferences.

Section 3.2 of the paper: the consistency of a table is known only through a comparator of
two tables, so the best of |C| samples is found by a knockout (|C| - 1 comparisons) instead
of comparing all with all. Everything here is a pure function of what was said so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from langchain_judges.asking.question import Account
from langchain_judges.methods.pairs import OrderAnswer, first_reason, order_verdict, seeded
from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.replies import (
    ComparisonTable,
    Inference,
    PreferenceReply,
    TableMatch,
)
from langchain_judges.verdict import Verdict


def meetings(
    mode: Inference, contenders: Sequence[int], number: int, seed: str
) -> list[tuple[int, ...]]:
    """Who meets whom in a round, in the order they are shown; one alone has a bye.

    Args:
        mode: How the best table is found.
        contenders: The numbers of the tables that are left; neighbours meet.
        number: Of the round.
        seed: Seed of which table comes first.
    """
    if mode == "exact":
        return list(permutations(sorted(contenders), 2))
    coin = seeded(seed, "slots", number)
    pairs = [tuple(contenders[i : i + 2]) for i in range(0, len(contenders), 2)]
    return [pair if coin.random() < 0.5 else pair[::-1] for pair in pairs]


def survivors(
    mode: Inference, contenders: Sequence[int], played: Sequence[TableMatch]
) -> list[int]:
    """Who is left after a round; with equal wins, whoever stands first among the contenders."""
    # Whoever had a bye stands first, so that nobody has two while others have none.
    winners = [match["winner"] for match in sorted(played, key=lambda m: len(m["tables"]))]
    return [max(contenders, key=winners.count)] if mode == "exact" else winners


def seeded_order(entrants: Iterable[int], seed: str) -> list[int]:
    """Tables in an order that depends on the seed alone."""
    order = sorted(entrants)
    seeded(seed, "shuffle").shuffle(order)
    return order


def decide(options: SC2, choices: Sequence[PreferenceReply], account: Account, how: str) -> Verdict:
    """Combine the preferences of all orders into the verdict.

    Args:
        options: Say which orders were asked, and how they are combined.
        choices: What the calls said.
        account: Of the row.
        how: How the table was found, for the rationale.
    """
    answers = {
        choice["order"]: OrderAnswer(choice["preference"], probability=choice["probability"])
        for choice in choices
    }
    verdict = order_verdict(options, answers, account, how)
    if (score := verdict["score"]) is None:
        return verdict
    agreeing = [c for c in choices if c["preference"] == verdict["preference"]]
    words = " ".join(first_reason(agreeing, "comparison").split())
    words = words if len(words) <= 300 else words[:299] + "…"
    scores = {"A": score, "B": 1 - score}
    return {**verdict, "scores": scores, "rationale": f"{verdict['rationale']} {words}".strip()}


def search_sentence(
    table: ComparisonTable | None, sampled: int, mode: Inference, bracket: Sequence[TableMatch]
) -> str:
    """Sentence that says which table decided, and after how many comparisons."""
    if table is None:
        return "There is no table: the texts were compared directly."
    name = f"Table {table['number']} of {sampled}"
    if mode == "random":
        return f"{name}, drawn at random."
    if not bracket:
        return f"{name}."
    calls = sum(match["asked"] for match in bracket)
    return f"{name} won: {calls} comparison{'s' * (calls != 1)}."
