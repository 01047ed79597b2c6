"""Preferences unrelated to quality: for a slot, or for the judge's own model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from langchain_judges.errors import OptionError
from langchain_judges.metrics.agreement import Answers, in_both_orders, share
from langchain_judges.metrics.arguments import (
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
    Systems,
)
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import (
    as_list,
    flat,
    same_length,
    take,
    values_of,
)
from langchain_judges.metrics.intervals import paired_difference, rate
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
    repetition_noise: Result | None
    """The share of repetitions of one order that differ: flips without any change of slot."""
    excess: Result | None
    """`flip_rate` − `repetition_noise` on the items that have both: what the order explains."""

    @property
    def slot(self) -> Literal["first", "second"] | None:
        """The slot that is preferred, None if neither is."""
        lean = self.toward_first - self.toward_second
        return "first" if lean > 0 else "second" if lean < 0 else None


def position_bias(
    first: Judgments,
    second: Judgments,
    *,
    repeats: Iterable[Judgments] | None = None,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> PositionBias:
    """Measure position bias, with the noise of mere repetition subtracted where it is known.

    Args:
        first: The preference in the order AB (A in the first slot) for each item, by
            identity of the text; or verdicts or rows. Items with a failed order are left
            out and counted.
        second: The preference in the order BA, by identity too.
        repeats: For each item the preferences when one order is asked again and again;
            an item with fewer than two of them has no noise.
        groups: The cluster of each item, such as its question, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Shares in [0, 1]. A judge that always takes the first slot has a flip rate of 1.

    Source: Saha et al. 2023; Shi et al. 2024 (arXiv 2406.07791) for repetition; Ye et al.
    2024 (arXiv 2410.02736) for subtracting it.
    """
    pairs, failed = in_both_orders(first, second)
    options = IntervalOptions(groups=as_list(groups), confidence=confidence)
    flips = _hits(pairs, lambda pair: pair[0] != pair[1])
    flip_rate = share(flips, failed, **options)
    winners = [[] if None in pair else _slots(pair) for pair in pairs]
    hits, clusters = flat(winners, options["groups"])
    noise = excess = None
    if repeats is not None:
        changes = [_change_share(row) for row in repeats]
        same_length(first=pairs, repeats=changes)
        noise = rate(changes, **options)
        excess = paired_difference(flips, changes, **options)
    return PositionBias(
        flip_rate=flip_rate,
        toward_first=share(_hits(pairs, lambda pair: pair == ("A", "B")), failed, **options),
        toward_second=share(_hits(pairs, lambda pair: pair == ("B", "A")), failed, **options),
        first_slot_rate=share(hits, failed, groups=clusters, confidence=confidence),
        repetition_noise=noise,
        excess=excess,
    )


def _hits(pairs: Iterable[Answers], holds: Callable[[Answers], bool]) -> list[float | None]:
    """Return whether something holds of the answers in both orders; None if one failed."""
    return [None if None in pair else float(holds(pair)) for pair in pairs]


def _slots(pair: Answers) -> list[float]:
    """Return for each winner whether it stood in the first slot."""
    return [float(side == slot) for side, slot in zip(pair, "AB", strict=True) if side != "tie"]


def _change_share(answers: Judgments) -> float | None:
    """Return how many of the pairs of repeated answers differ; None if there is no pair."""
    values = [value for value in values_of(answers)[0] if value is not None]
    pairs = list(combinations(values, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else None


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
