"""Shares of all items: wins, ties, failures, and what needs no judge to be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from langchain_judges.metrics.agreement import accuracy, share
from langchain_judges.metrics.arguments import (
    GroupKeys,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.inputs import (
    NOT_JUDGED,
    POINTS,
    as_list,
    is_missing,
    one_of,
    points_of,
    value_of,
    values_of,
)
from langchain_judges.metrics.intervals import rate
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Preference


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


def length_baseline(
    labels: RightLabels,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return the accuracy of always preferring the longer text; equal lengths are a tie.

    Args:
        labels: The right answer to each item, `A`, `B` or `tie`; None is left out.
        lengths_a: The length of text A in any unit, such as characters.
        lengths_b: The length of text B in the same unit.
        groups: The cluster of each label, such as its question, or its item if an item has a
            label of each person.
        confidence: The level of the interval.
    """
    longer = [
        "A" if a > b else "B" if b > a else "tie"
        for a, b in zip(as_list(lengths_a), as_list(lengths_b), strict=True)
    ]
    return accuracy(longer, labels, groups=groups, confidence=confidence)


def first_slot_baseline(
    labels: RightLabels,
    first: Iterable[Preference] | Literal["A", "B"] = "A",
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return the accuracy of always preferring the text that is shown first.

    Args:
        labels: The right answer to each item, `A`, `B` or `tie`; None is left out.
        first: Which text stood first, for all items or for each.
        groups: As for `length_baseline`.
        confidence: The level of the interval.
    """
    truths = as_list(labels)
    slots = [first] * len(truths) if isinstance(first, str) else first
    return accuracy(slots, truths, groups=groups, confidence=confidence)


def majority_baseline(
    labels: RightLabels, *, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return the accuracy of always giving the most frequent label; groups are of labels."""
    truths = as_list(labels)
    counts = Counter(label for label in truths if not is_missing(label)).most_common(1)
    answers = [counts[0][0] if counts else NOT_JUDGED] * len(truths)
    return accuracy(answers, truths, groups=groups, confidence=confidence)


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
