"""Shares of all items: wins, ties, failures, and what needs no judge to be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_judges.metrics.agreement import share
from langchain_judges.metrics.arguments import (
    GroupKeys,
    Judgments,
)
from langchain_judges.metrics.inputs import (
    POINTS,
    as_list,
    one_of,
    points_of,
    value_of,
    values_of,
)
from langchain_judges.metrics.intervals import rate
from langchain_judges.metrics.result import Findings, Result


def win_rate(
    preferences: Judgments,
    *,
    graded: bool = False,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how often A wins, a tie counted as half: (wins + ½ ties) / n.

    Args:
        preferences: `A`, `B` or `tie` for each item, or a number in [0, 1] that says how far
            A is preferred; or verdicts or rows; None is left out.
        graded: Read the `score` of verdicts, which is graded, in place of the preference.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.

    Returns:
        The rate in [0, 1]; print `tie_rate` beside it.
    """
    values, failed = values_of(preferences, "score" if graded else None)
    hits = [None if value is None else points_of(value) for value in values]
    return share(hits, failed, groups=groups, confidence=confidence)


def tie_rate(
    preferences: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return the share of ties among the judged items; without `graded` as for `win_rate`."""
    values, failed = values_of(preferences)
    for value in set(values) - {None}:
        one_of("preferences", value, POINTS)
    hits = [None if value is None else float(value == "tie") for value in values]
    return share(hits, failed, groups=groups, confidence=confidence)


@dataclass(frozen=True)
class FailureRates(Findings):
    """How often, and why, there was no verdict."""

    failed: Result
    """The share of items without a verdict."""
    refused: Result
    """The share of items the judge refused to judge."""
    by_reason: dict[str, Result]
    """The share of items without a verdict, by the reason of their first failure."""


def failure_rates(
    judgments: Judgments, *, groups: GroupKeys = None, confidence: float = 0.95
) -> FailureRates:
    """Return how often the judge gave no verdict, and why.

    Args:
        judgments: Verdicts, rows, or bare answers where None is a failure.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.
    """
    readings = map(value_of, as_list(judgments))
    reasons = [reason if value is None else None for value, reason in readings]
    clusters = as_list(groups)

    def of(hits: Iterable[bool]) -> Result:
        return rate(map(float, hits), groups=clusters, confidence=confidence)

    distinct = sorted({reason for reason in reasons if reason})
    return FailureRates(
        failed=of(reason is not None for reason in reasons),
        refused=of(reason == "refusal" for reason in reasons),
        by_reason={name: of(reason == name for reason in reasons) for name in distinct},
    )
