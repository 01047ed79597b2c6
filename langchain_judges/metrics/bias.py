"""Preferences unrelated to quality: a slot, and length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from typing_extensions import Unpack

from langchain_judges.metrics.agreement import Answers, in_both_orders, share
from langchain_judges.metrics.inputs import (
    IntervalOptions,
    Judgments,
    Votes,
    as_list,
    flat,
    same_length,
    value_of,
    votes_of,
)
from langchain_judges.metrics.result import Findings, Result


@dataclass(frozen=True)
class PositionBias(Findings):
    """Position bias: how far verdicts depend on the slot in which a text was shown.

    Attributes:
        flip_rate: The share of items whose verdict differs between the orders, into or out of a
            tie too: "PB" of Saha et al. 2023.
        toward_first: The share of items on which whatever stood in the first slot won, in both
            orders.
        toward_second: The share of items on which whatever stood in the second slot won.
        first_slot_rate: The share of all winners, of either order, that stood first; 0.5 is no
            bias.
    """

    flip_rate: Result
    toward_first: Result
    toward_second: Result
    first_slot_rate: Result


def position_bias(
    first: Judgments, second: Judgments, **options: Unpack[IntervalOptions]
) -> PositionBias:
    """Measure how far verdicts depend on the slot a text was shown in.

    Not from one order.

    Args:
        first: The preference in the order AB (A in the first slot) for each item, by
            identity of the text; or verdicts or rows. Items with a failed order are left
            out and counted.
        second: The preference in the order BA, by identity too.
        options: `groups` and `confidence` of the intervals, as for `rate`.

    Returns:
        Shares in [0, 1]. A judge that always takes the first slot has a flip rate of 1.

    Source: Saha et al. 2023.
    """
    pairs, failed = in_both_orders(first, second)
    options["groups"] = as_list(options.get("groups"))

    def rate_of(holds: Callable[[Answers], bool]) -> Result:
        hits = [None if None in pair else float(holds(pair)) for pair in pairs]
        return share(hits, failed, **options)

    winners = [[] if None in pair else _slots(pair) for pair in pairs]
    slots, clusters = flat(winners, options["groups"])
    by_winner: IntervalOptions = {**options, "groups": clusters}
    return PositionBias(
        flip_rate=rate_of(lambda pair: pair[0] != pair[1]),
        toward_first=rate_of(lambda pair: pair == ("A", "B")),
        toward_second=rate_of(lambda pair: pair == ("B", "A")),
        first_slot_rate=share(slots, failed, **by_winner),
    )


def _slots(pair: Answers) -> list[float]:
    """Whether each winner stood in the first slot."""
    return [float(side == slot) for side, slot in zip(pair, "AB", strict=True) if side != "tie"]


def length_bias(
    preferences: Judgments,
    votes: Votes,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    **options: Unpack[IntervalOptions],
) -> Result:
    """Share of the pairs in which people prefer the shorter text and the judge does not: "LB".

    Not a bias by itself, as some of these are plain errors: compare it with how often the
    longer text is missed, which is this with both lengths negated.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        votes: People's label, or the list of their votes, for each item.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B. Items of equal lengths are left out.
        options: As for `rate`; by default the votes on one item are a cluster.

    Returns:
        The share in [0, 1] of the `n` votes for the shorter text (the paper's denominator) on
        which the judge does not prefer that text; a tie of the judge is such a one.

    Source: Saha et al. 2023, section 4.
    """
    answers, people = as_list(preferences), votes_of(votes)
    a_column, b_column = as_list(lengths_a), as_list(lengths_b)
    same_length(preferences=answers, votes=people, lengths_a=a_column, lengths_b=b_column)
    rows: list[list[float | None]] = []
    failed = Counter[str]()
    for answer, own, a, b in zip(answers, people, a_column, b_column, strict=True):
        shorter = "A" if a < b else "B"
        count = own.count(shorter) if a != b else 0
        value, reason = value_of(answer)
        if count and value is None:
            failed[reason] += 1
        rows.append([None if value is None else float(value != shorter)] * count)
    hits, options["groups"] = flat(rows, options.get("groups"))
    if not any(hit is not None for hit in hits):
        return Result.undefined("the shorter text is never the preferred one", n_failed=failed)
    return share(hits, failed, **options)
