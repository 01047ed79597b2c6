"""How often a judge turns away from the shorter text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from langchain_judges.metrics.agreement import majority_vote, share
from langchain_judges.metrics.arguments import (
    GroupKeys,
    Judgments,
    Votes,
)
from langchain_judges.metrics.inputs import (
    as_list,
    flat,
    one_of,
    same_length,
    value_of,
    votes_of,
)
from langchain_judges.metrics.result import Result

BiasUnit = Literal["vote", "sample"]


def length_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Judgments,
    votes: Votes,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    *,
    unit: BiasUnit = "vote",
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how often the judge does not prefer the shorter text where people do: "LB".

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        votes: People's label, or the list of their votes, for each item.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B. Items of equal lengths are left out.
        unit: `vote` counts each vote for the shorter text, as the paper's denominators
            show; `sample` each item whose majority prefers it.
        groups: The cluster of each item; by default the votes on one item are a cluster.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1], over `n` votes or items in which people prefer the shorter text,
        of those in which the judge does not; a tie of the judge is one.

    Source: Saha et al. 2023, section 4. It does not part bias from plain error: see
    `length_slope`.
    """
    one_of("unit", unit, BiasUnit)
    answers, people = as_list(preferences), votes_of(votes)
    a_column, b_column, clusters = as_list(lengths_a), as_list(lengths_b), as_list(groups)
    same_length(preferences=answers, votes=people, lengths_a=a_column, lengths_b=b_column)
    same_length(preferences=answers, groups=clusters)
    rows: list[list[float | None]] = []
    failed = Counter[str]()
    for answer, own, a, b in zip(answers, people, a_column, b_column, strict=True):
        shorter = "A" if a < b else "B"
        ballots = [majority_vote(own)] if unit == "sample" else own
        count = ballots.count(shorter) if a != b else 0
        value, reason = value_of(answer)
        if count and value is None:
            failed[reason] += 1
        rows.append([None if value is None else float(value != shorter)] * count)
    hits, keys = flat(rows, clusters)
    if not any(hit is not None for hit in hits):
        return Result.undefined("the shorter text is never the preferred one", n_failed=failed)
    alone = groups is None and unit == "sample"
    return share(hits, failed, groups=None if alone else keys, confidence=confidence)
