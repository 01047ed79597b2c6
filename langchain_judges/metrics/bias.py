"""Preferences unrelated to quality: for a slot, length, lists, the judge's own model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Unpack

from langchain_judges.errors import OptionError
from langchain_judges.metrics.agreement import Answers, in_both_orders, majority_vote, share
from langchain_judges.metrics.arguments import (
    GroupKeys,
    IntervalOptions,
    Judgment,
    RightLabels,
    Systems,
    Votes,
)
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import (
    as_list,
    flat,
    one_of,
    same_length,
    take,
    value_of,
    values_of,
    votes_of,
)
from langchain_judges.metrics.intervals import paired_difference, rate
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.metrics.style import list_items, markdown_marks

BiasUnit = Literal["vote", "sample"]


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
    first: Iterable[Judgment],
    second: Iterable[Judgment],
    *,
    repeats: Iterable[Iterable[Judgment]] | None = None,
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
    options: IntervalOptions = {"groups": as_list(groups), "confidence": confidence}
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


def _change_share(answers: Iterable[Judgment]) -> float | None:
    """Return how many of the pairs of repeated answers differ; None if there is no pair."""
    values = [value for value in values_of(answers)[0] if value is not None]
    pairs = list(combinations(values, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else None


@dataclass(frozen=True)
class PerturbationBias(Findings):
    """How far a change that should not matter moves verdicts."""

    robustness: Result
    """The share of verdicts that the change leaves alone."""
    consistency: Result
    """The share of verdicts that mere repetition leaves alone."""
    excess: Result
    """(1 − robustness) − (1 − consistency): what the change alone explains."""


def perturbation_bias(
    original: Iterable[Judgment],
    perturbed: Iterable[Judgment],
    repeated: Iterable[Judgment],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> PerturbationBias:
    """Measure the effect of a change that should not matter, repetition noise subtracted.

    Args:
        original: The answer to each item; None is left out.
        perturbed: The answer after the change, such as a false authority cited.
        repeated: The answer when the original is asked once more.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Source: Ye et al. 2024 (CALM, arXiv 2410.02736), robustness and consistency rates.
    """
    options: IntervalOptions = {"groups": as_list(groups), "confidence": confidence}
    base = as_list(original)
    columns, shares = [], []
    for others in (perturbed, repeated):
        pairs, failed = in_both_orders(base, others)
        unchanged = _hits(pairs, lambda pair: pair[0] == pair[1])
        columns.append(unchanged)
        shares.append(share(unchanged, failed, **options))
    excess = paired_difference(columns[1], columns[0], **options)
    return PerturbationBias(shares[0], shares[1], excess)


class LesserBiasOptions(IntervalOptions, total=False):
    """What `lesser_bias` and its kin take beside preferences, votes and texts."""

    unit: BiasUnit


def lesser_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Iterable[Judgment],
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


def length_bias(
    preferences: Iterable[Judgment],
    votes: Votes,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    **options: Unpack[LesserBiasOptions],
) -> Result:
    """Return how often the judge does not prefer the shorter text where people do: "LB".

    Args:
        preferences: As for `lesser_bias`.
        votes: As for `lesser_bias`.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B in the same unit.
        options: As for `lesser_bias`; of its units the paper's denominators show `vote`.

    Source: Saha et al. 2023, section 4. It does not part bias from plain error: see
    `length_slope`.
    """
    return lesser_bias(preferences, votes, lengths_a, lengths_b, **options)


def list_bias(
    preferences: Iterable[Judgment],
    votes: Votes,
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    **options: Unpack[LesserBiasOptions],
) -> Result:
    """Return `lesser_bias` by the number of list items in the texts."""
    a, b = map(list_items, outputs_a), map(list_items, outputs_b)
    return lesser_bias(preferences, votes, a, b, **options)


def markdown_bias(
    preferences: Iterable[Judgment],
    votes: Votes,
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    **options: Unpack[LesserBiasOptions],
) -> Result:
    """Return `lesser_bias` by all the markdown in the texts: headers, lists, bold, code."""
    a, b = map(markdown_marks, outputs_a), map(markdown_marks, outputs_b)
    return lesser_bias(preferences, votes, a, b, **options)


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
    preferences: Iterable[Judgment],
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
    options: IntervalOptions = {"groups": take(clusters, indices), "confidence": confidence}
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
