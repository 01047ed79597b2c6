"""Preferences unrelated to quality: for a slot, length, lists, the judge's own model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.metrics.agreement import in_both_orders, majority_vote, share
from langchain_judges.metrics.inputs import (
    as_list,
    as_votes,
    match,
    one_of,
    same_length,
    value_of,
    values_of,
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
    first: Iterable[Any],
    second: Iterable[Any],
    *,
    repeats: Iterable[Sequence[Any]] | None = None,
    groups: Iterable[Any] | None = None,
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
    keys = list(range(len(pairs))) if groups is None else as_list(groups)
    settings: dict[str, Any] = {"groups": None if groups is None else keys}
    settings["confidence"] = confidence

    def of(hits: list[float | None]) -> Result:
        return share(hits, failed, "drop", **settings)

    whole = [None not in pair for pair in pairs]
    flips = [float(p[0] != p[1]) if ok else None for p, ok in zip(pairs, whole, strict=True)]
    slots = [
        (float(winner == slot), key)
        for pair, ok, key in zip(pairs, whole, keys, strict=True)
        for winner, slot in zip(pair, "AB", strict=True)
        if ok and winner != "tie"
    ]
    noise = excess = None
    if repeats is not None:
        changes = [_change_share(row) for row in repeats]
        same_length(first=pairs, repeats=changes)
        noise = rate(changes, **settings)
        excess = paired_difference(flips, changes, **settings)
    return PositionBias(
        flip_rate=of(flips),
        toward_first=of(_same(pairs, whole, ("A", "B"))),
        toward_second=of(_same(pairs, whole, ("B", "A"))),
        first_slot_rate=share(
            [hit for hit, _ in slots], failed, "drop", [key for _, key in slots], confidence
        ),
        repetition_noise=noise,
        excess=excess,
    )


def _same(
    pairs: Sequence[tuple[Any, Any]], whole: Sequence[bool], target: tuple[str, str]
) -> list[float | None]:
    return [
        float(pair == target) if ok else None for pair, ok in zip(pairs, whole, strict=True)
    ]


def _change_share(answers: Sequence[Any]) -> float | None:
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
    original: Iterable[Any],
    perturbed: Iterable[Any],
    repeated: Iterable[Any],
    *,
    groups: Iterable[Any] | None = None,
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
    settings: dict[str, Any] = {"groups": None if groups is None else as_list(groups)}
    settings["confidence"] = confidence
    base = as_list(original)
    shares = []
    for others in (perturbed, repeated):
        pairs, failed = in_both_orders(base, others)
        unchanged = [None if None in pair else float(pair[0] == pair[1]) for pair in pairs]
        shares.append((unchanged, share(unchanged, failed, "drop", **settings)))
    (changed, robustness), (again, consistency) = shares
    return PerturbationBias(
        robustness, consistency, paired_difference(again, changed, **settings)
    )


def lesser_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Iterable[Any],
    votes: Iterable[Any],
    amounts_a: Iterable[float],
    amounts_b: Iterable[float],
    *,
    unit: BiasUnit = "vote",
    groups: Iterable[Any] | None = None,
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
    columns = [as_list(c) for c in (preferences, votes, amounts_a, amounts_b)]
    same_length(preferences=columns[0], votes=columns[1], amounts=columns[2], and_b=columns[3])
    keys = list(range(len(columns[0]))) if groups is None else as_list(groups)
    same_length(preferences=columns[0], groups=keys)
    hits: list[float | None] = []
    clusters: list[Any] = []
    failed: Counter[str] = Counter()
    for number, (answer, people, a, b) in enumerate(zip(*columns, strict=True)):
        lesser = "A" if a < b else "B"
        cast = _votes(people, unit).count(lesser) if a != b else 0
        value, reason = value_of(answer)
        if not cast:
            continue
        if value is None:
            failed[reason] += 1
        hits += [None if value is None else float(value != lesser)] * cast
        clusters += [keys[number]] * cast
    if not any(hit is not None for hit in hits):
        return Result.undefined("the lesser text is never the preferred one", n_failed=failed)
    alone = groups is None and unit == "sample"
    return share(hits, failed, "drop", None if alone else clusters, confidence)


def _votes(value: Any, unit: str) -> list[Any]:
    votes = as_votes(value)
    return [majority_vote(votes)] if unit == "sample" else votes


def length_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Iterable[Any],
    votes: Iterable[Any],
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    *,
    unit: BiasUnit = "vote",
    groups: Iterable[Any] | None = None,
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
    settings: dict[str, Any] = {"unit": unit, "groups": groups, "confidence": confidence}
    return lesser_bias(preferences, votes, lengths_a, lengths_b, **settings)


def list_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Iterable[Any],
    votes: Iterable[Any],
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    unit: BiasUnit = "vote",
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return `lesser_bias` by the number of list items in the texts."""
    amounts = [[list_items(text) for text in texts] for texts in (outputs_a, outputs_b)]
    settings: dict[str, Any] = {"unit": unit, "groups": groups, "confidence": confidence}
    return lesser_bias(preferences, votes, *amounts, **settings)


def markdown_bias(  # noqa: PLR0913 - two texts, the votes on them, and the interval
    preferences: Iterable[Any],
    votes: Iterable[Any],
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    unit: BiasUnit = "vote",
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return `lesser_bias` by all the markdown in the texts: headers, lists, bold, code."""
    amounts = [[markdown_marks(text) for text in texts] for texts in (outputs_a, outputs_b)]
    settings: dict[str, Any] = {"unit": unit, "groups": groups, "confidence": confidence}
    return lesser_bias(preferences, votes, *amounts, **settings)


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
    preferences: Iterable[Any],
    labels: Iterable[Any],
    systems: Iterable[tuple[str, str]],
    own: str | Iterable[str],
    *,
    groups: Iterable[Any] | None = None,
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
    preferred, truths, wrote = as_list(preferences), as_list(labels), list(systems)
    keys = list(range(len(preferred))) if groups is None else as_list(groups)
    same_length(preferences=preferred, labels=truths, systems=wrote, groups=keys)
    if votes := next((label for label in truths if isinstance(label, list | tuple)), None):
        raise OptionError(
            f"`labels` must hold one answer for each item, got the votes {votes!r}; take their "
            "majority first"
        )
    sides = [[name in names for name in pair] for pair in wrote]
    indices = [i for i, (a, b) in enumerate(sides) if a != b]
    mine = ["A" if sides[i][0] else "B" for i in indices]
    both = match([preferred[i] for i in indices], [truths[i] for i in indices])
    settings: dict[str, Any] = {"confidence": confidence, "groups": None}
    if groups is not None:
        settings["groups"] = [keys[indices[i]] for i in both.indices]
    points = [
        [_points(answer, mine[i]) for answer, i in zip(answers, both.indices, strict=True)]
        for answers in (both.judge, both.truth)
    ]
    right = [float(a == b) for a, b in zip(both.judge, both.truth, strict=True)]
    agreement, ours, theirs = (
        share(hits, both.failed, "drop", **settings) for hits in (right, *points)
    )
    gap = paired_difference(*points, **settings)
    return SelfEnhancement(agreement, ours, theirs, gap.with_failed(both.failed))


def _points(answer: Any, side: str) -> float:
    return 0.5 if answer == "tie" else float(answer == side)
