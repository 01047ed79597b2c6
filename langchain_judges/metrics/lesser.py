"""How often a judge turns away from the text that has less: of length, lists, marks."""

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
from langchain_judges.metrics.style import list_items, markdown_marks

BiasUnit = Literal["vote", "sample"]


def lesser_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Judgments,
    votes: Votes,
    amounts_a: Iterable[float],
    amounts_b: Iterable[float],
    *,
    unit: BiasUnit = "vote",
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how often the judge turns away from the text that has less, but people prefer.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        votes: People's label, or the list of their votes, for each item.
        amounts_a: How much of something text A has, such as characters or list items.
        amounts_b: How much text B has. Items of equal amounts are left out.
        unit: `vote` counts each vote for the lesser text; `sample` each item whose
            majority prefers it.
        groups: The cluster of each item; by default the votes on one item are a cluster.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1], over `n` votes or items in which people prefer the text with
        less, of those in which the judge does not; a tie of the judge is one.

    Source: "LB" of Saha et al. 2023, with any amount in the place of length.
    """
    one_of("unit", unit, BiasUnit)
    answers, people = as_list(preferences), votes_of(votes)
    a_column, b_column, clusters = as_list(amounts_a), as_list(amounts_b), as_list(groups)
    same_length(preferences=answers, votes=people, amounts=a_column, and_b=b_column)
    same_length(preferences=answers, groups=clusters)
    rows: list[list[float | None]] = []
    failed = Counter[str]()
    for answer, own, a, b in zip(answers, people, a_column, b_column, strict=True):
        lesser = "A" if a < b else "B"
        ballots = [majority_vote(own)] if unit == "sample" else own
        count = ballots.count(lesser) if a != b else 0
        value, reason = value_of(answer)
        if count and value is None:
            failed[reason] += 1
        rows.append([None if value is None else float(value != lesser)] * count)
    hits, keys = flat(rows, clusters)
    if not any(hit is not None for hit in hits):
        return Result.undefined("the lesser text is never the preferred one", n_failed=failed)
    alone = groups is None and unit == "sample"
    return share(hits, failed, groups=None if alone else keys, confidence=confidence)


def length_bias(  # noqa: PLR0913 - as `lesser_bias`
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
        preferences: As for `lesser_bias`.
        votes: As for `lesser_bias`.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B in the same unit.
        unit: `vote`, as the paper's denominators show, or `sample`.
        groups: As for `lesser_bias`.
        confidence: The level of the interval.

    Source: Saha et al. 2023, section 4. It does not part bias from plain error: see
    `length_slope`.
    """
    return lesser_bias(
        preferences,
        votes,
        lengths_a,
        lengths_b,
        unit=unit,
        groups=groups,
        confidence=confidence,
    )


def list_bias(  # noqa: PLR0913 - as `lesser_bias`
    preferences: Judgments,
    votes: Votes,
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    unit: BiasUnit = "vote",
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return `lesser_bias` by the number of list items in the texts."""
    a, b = map(list_items, outputs_a), map(list_items, outputs_b)
    return lesser_bias(
        preferences, votes, a, b, unit=unit, groups=groups, confidence=confidence
    )


def markdown_bias(  # noqa: PLR0913 - as `lesser_bias`
    preferences: Judgments,
    votes: Votes,
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    unit: BiasUnit = "vote",
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return `lesser_bias` by all the markdown in the texts: headers, lists, bold, code."""
    a, b = map(markdown_marks, outputs_a), map(markdown_marks, outputs_b)
    return lesser_bias(
        preferences, votes, a, b, unit=unit, groups=groups, confidence=confidence
    )
