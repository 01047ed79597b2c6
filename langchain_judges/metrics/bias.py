"""Preferences unrelated to quality: a slot, length, the judge's own model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from langchain_judges.errors import OptionError
from langchain_judges.metrics.agreement import Answers, in_both_orders, share
from langchain_judges.metrics.inputs import (
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
    Systems,
    Votes,
    as_list,
    flat,
    match,
    same_length,
    take,
    value_of,
    votes_of,
)
from langchain_judges.metrics.intervals import paired_difference
from langchain_judges.metrics.result import Findings, Result


@dataclass(frozen=True)
class PositionBias(Findings):
    """How far verdicts hang on the slot a text was shown in."""

    flip_rate: Result
    """The share of items whose verdict differs between the orders, into or out of a tie
    too: "PB" of Saha et al. 2023."""
    toward_first: Result
    """The share of items on which whatever stood in the first slot won, in both orders."""
    toward_second: Result
    """The share of items on which whatever stood in the second slot won."""
    first_slot_rate: Result
    """The share of all winners, of either order, that stood first; 0.5 is no bias."""

    @property
    def slot(self) -> Literal["first", "second"] | None:
        """The slot that is preferred, None if neither is."""
        lean = self.toward_first - self.toward_second
        return "first" if lean > 0 else "second" if lean < 0 else None


def position_bias(
    first: Judgments,
    second: Judgments,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> PositionBias:
    """Measure how far verdicts hang on the slot a text was shown in.

    Not from one order.

    Args:
        first: The preference in the order AB (A in the first slot) for each item, by
            identity of the text; or verdicts or rows. Items with a failed order are left
            out and counted.
        second: The preference in the order BA, by identity too.
        groups: The cluster of each item, such as its question, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Shares in [0, 1]. A judge that always takes the first slot has a flip rate of 1.

    Source: Saha et al. 2023.
    """
    pairs, failed = in_both_orders(first, second)
    options = IntervalOptions(groups=as_list(groups), confidence=confidence)
    flips = _hits(pairs, lambda pair: pair[0] != pair[1])
    flip_rate = share(flips, failed, **options)
    winners = [[] if None in pair else _slots(pair) for pair in pairs]
    hits, clusters = flat(winners, options["groups"])
    return PositionBias(
        flip_rate=flip_rate,
        toward_first=share(_hits(pairs, lambda pair: pair == ("A", "B")), failed, **options),
        toward_second=share(_hits(pairs, lambda pair: pair == ("B", "A")), failed, **options),
        first_slot_rate=share(hits, failed, groups=clusters, confidence=confidence),
    )


def _hits(pairs: Iterable[Answers], holds: Callable[[Answers], bool]) -> list[float | None]:
    """Return whether something holds of the answers in both orders; None if one failed."""
    return [None if None in pair else float(holds(pair)) for pair in pairs]


def _slots(pair: Answers) -> list[float]:
    """Return for each winner whether it stood in the first slot."""
    return [float(side == slot) for side, slot in zip(pair, "AB", strict=True) if side != "tie"]


@dataclass(frozen=True)
class SelfEnhancement(Findings):
    """How a judge treats the texts of its own model."""

    agreement: Result
    """The share of people's labels it matches, on the pairs with a text of its own."""
    own_win_rate: Result
    """How often it lets its own text win, a tie counted as half."""
    human_win_rate: Result
    """How often people let that text win."""
    excess: Result
    """`own_win_rate` − `human_win_rate`; above 0 it favours itself."""


def self_enhancement(
    preferences: Judgments,
    labels: RightLabels,
    systems: Systems,
    own: str | Iterable[str],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> SelfEnhancement:
    """Measure whether a judge favours the texts of its own model, or of its family.

    Not without people's answers: the judge's own model may be better.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        labels: People's answer to each item.
        systems: Who wrote A and who wrote B, for each item.
        own: The name of the judge's own system, or the names of its family.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Shares over the pairs of which exactly one text is the judge's own; the pairs
        are divided by their own number, not by that of all pairs.

    Raises:
        OptionError: A label is a list of votes.

    Source: "SB" of Saha et al. 2023, who divide position flips by all pairs; Panickssery et
    al. 2024 (arXiv 2404.13076).
    """
    names = {own} if isinstance(own, str) else set(own)
    answers, truths, authors = as_list(preferences), as_list(labels), list(systems)
    clusters = as_list(groups)
    same_length(preferences=answers, labels=truths, systems=authors, groups=clusters)
    if votes := next((label for label in truths if isinstance(label, list | tuple)), None):
        raise OptionError(
            f"`labels` must hold one answer for each item, got the votes {votes!r}; take their "
            "majority first"
        )
    sides = [(a in names, b in names) for a, b in authors]
    mixed = [index for index, (a, b) in enumerate(sides) if a != b]
    cases = match(take(answers, mixed), take(truths, mixed))
    indices = take(mixed, cases.indices)
    mine = ["A" if sides[index][0] else "B" for index in indices]
    options = IntervalOptions(groups=take(clusters, indices), confidence=confidence)
    points = [
        [
            0.5 if answer == "tie" else float(answer == side)
            for answer, side in zip(column, mine, strict=True)
        ]
        for column in cases.columns
    ]
    right = [float(a == b) for a, b in zip(*cases.columns, strict=True)]
    agreement, ours, theirs = (
        share(hits, cases.failed, **options) for hits in (right, *points)
    )
    gap = paired_difference(points[0], points[1], **options)
    return SelfEnhancement(agreement, ours, theirs, gap.replace(n_failed=cases.failed))


def length_bias(
    preferences: Judgments,
    votes: Votes,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """Return how often the judge does not prefer the shorter text where people do: "LB".

    Not by itself a bias: people may prefer longer texts for their content, see
    `length_slope`.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        votes: People's label, or the list of their votes, for each item.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B. Items of equal lengths are left out.
        groups: The cluster of each item; by default the votes on one item are a cluster.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1], over `n` votes for the shorter text, as the paper's denominators
        show, of those in which the judge does not prefer it; a tie of the judge is one.

    Source: Saha et al. 2023, section 4. It does not part bias from plain error: see
    `length_slope`.
    """
    answers, people = as_list(preferences), votes_of(votes)
    a_column, b_column, clusters = as_list(lengths_a), as_list(lengths_b), as_list(groups)
    same_length(preferences=answers, votes=people, lengths_a=a_column, lengths_b=b_column)
    same_length(preferences=answers, groups=clusters)
    rows: list[list[float | None]] = []
    failed = Counter[str]()
    for answer, own, a, b in zip(answers, people, a_column, b_column, strict=True):
        shorter = "A" if a < b else "B"
        count = own.count(shorter) if a != b else 0
        value, reason = value_of(answer)
        if count and value is None:
            failed[reason] += 1
        rows.append([None if value is None else float(value != shorter)] * count)
    hits, keys = flat(rows, clusters)
    if not any(hit is not None for hit in hits):
        return Result.undefined("the shorter text is never the preferred one", n_failed=failed)
    return share(hits, failed, groups=keys, confidence=confidence)
