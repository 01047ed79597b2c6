"""The scale of ratings, by which limits are measured, and what lies outside it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from langchain_judges.report.answers import WORDS

Ratings = Sequence[Any]


class RatingScale:
    """The scale of people's ratings; of other labels one from 0 to 1.

    Limits are measured by the range of the labels that a run names for its judge, else by that of
    people's ratings without their strays; what the judge says never widens it.

    Attributes:
        answers: The judge's rating of each row.
        targets: What people say of each row.
        named: The labels that a run names for its judge.
        whom: People in words.
        ours: The judge's ratings.
        theirs: People's.
    """

    def __init__(
        self, answers: Ratings, targets: Sequence[Ratings], named: Ratings, whom: str
    ) -> None:
        """Read the ratings of both sides."""
        self.answers, self.targets, self.whom = answers, targets, whom
        self.named = {*map(float, named)}
        self.ours = [float(answer) for answer in answers if answer is not None]
        self.theirs = [float(vote) for own in targets for vote in own]

    @cached_property
    def strays(self) -> set[float]:
        """People's ratings outside any scale of the others: slips, or codes for no answer."""
        return _strays(self.theirs, self.named)

    @cached_property
    def seen(self) -> list[float]:
        """The ratings that people give, from the lowest."""
        return sorted({*self.theirs} - self.strays or {*self.theirs})

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        steps = self.named or self.seen or [0.0, 1.0]
        return min(steps), max(steps)

    @property
    def width(self) -> float:
        """The range; 1 where people give one rating alone."""
        return self.ends[1] - self.ends[0] or 1.0

    @property
    def text(self) -> str:
        """The ends, and where they are known from; empty of other labels."""
        source = "the judge's labels" if self.named else self.whom
        return f"{self.ends[0]:g} to {self.ends[1]:g}, by {source}" if self.theirs else ""

    @cached_property
    def notable(self) -> list[tuple[str, int, float]]:
        """Ratings outside the scale, or that alone make it wide, by note and place."""
        # So far outside an answer is wrong by any rating of people.
        (low, high), edge = self.ends, self.width / 4
        outside = {v for v in self.ours if not (low - edge <= v <= high + edge or self.apart)}
        found = [("strays", self.strays, self.targets), ("lone", self._lone, self.targets)]
        found.append(("outside", outside, [[each] for each in self.answers]))
        return [
            (note, place, value)
            for note, group, side in found
            for place, own in enumerate(side)
            for value in group & {*own}
        ]

    @property
    def _lone(self) -> set[float]:
        """Ends that one row alone has, and that make the range wider by half or more."""
        return {
            end
            for end, own in {self.ends[0]: self.seen[1:], self.ends[1]: self.seen[:-1]}.items()
            if len(own) > 2 and not self.named and self.width >= 1.5 * (own[-1] - own[0])
            if sum(end in target for target in self.targets) == 1
        }

    @cached_property
    def apart(self) -> str:
        """Finding that the sides rate on different scales; empty where that is not clear.

        On one scale whole numbers are shared; others hardly ever are, and go as high. No label
        lies outside the labels that a run names for its judge. 0 and 1 are two labels, and no
        ends of a scale.
        """
        if not self.ours or not self.theirs:
            return ""
        theirs = {*self.seen}
        out = {each for each in self.ours if not self.seen[0] <= each <= self.seen[-1]}
        ours = {*self.ours} - (out if is_few(self.ours, out) else set()) or {*self.ours}
        low, high = sorted(max(map(abs, side)) for side in (ours, theirs))
        differ = low < 0.6 * high
        if all(map(float.is_integer, ours | theirs)):
            differ = 2 * len(ours & theirs) < min(len(ours), len(theirs))
        differ &= min(len(ours), len(theirs)) > 2
        # All steps of one from 0, and all of one from 1.
        one_up = {each + 1 for each in min(ours, theirs, key=min)}
        differ |= 0 in ours | theirs and one_up == max(ours, theirs, key=min)
        if {0, 1} in (ours, theirs):
            differ |= high > (1 if len(ours) == len(theirs) else 3) or min(ours | theirs) < 0
        named = self.named or theirs
        differ |= min(theirs) < min(named) or max(theirs) > max(named)
        ends = min(ours), max(ours), min(theirs), max(theirs)
        return WORDS["apart"].format(*ends, self.whom) if differ else ""


def is_few(values: Collection[Any], group: Collection[Any]) -> bool:
    """Whether at most one, or a tenth, of the values are of a group."""
    return sum(value in group for value in values) <= max(1, len(values) / 10)


def _strays(values: Sequence[float], known: Collection[float]) -> set[float]:
    """Few values that are larger than any scale of all others, or the only one that is below 0."""
    # Three steps at least tell a scale that nobody names.
    sizes = sorted({*map(abs, values), *map(abs, known)})[0 if known else 2 :]
    tops = [low for low, high in pairwise(sizes) if _is_beyond(high, low)]
    groups = [{v for v in values if abs(v) > top} for top in tops]
    groups += [{v for v in values if v < 0}] if sum(v < 0 for v in values) == 1 else []
    alone = (own for own in groups if is_few(values, own) and own.isdisjoint(known))
    return set[float]().union(*alone)


def _is_beyond(size: float, top: float) -> bool:
    """Whether a rating is of no scale that others up to `top` may be of.

    Above 3 a 9 may be of a scale to 10, and above 22 a 95 of one to 100.
    """
    return size > max(1, 2 * top) and 10 ** math.ceil(math.log10(min(size, 1e300))) > 5 * top
