"""Where judge and people agree: by how far people do, by difficulty, and behind their votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from langchain_judges import metrics
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample, are_numbers
from langchain_judges.verdict import Label

MOST_LEVELS = 5
"""Levels of difficulty that are shown one by one; numbers of more levels are cut in thirds."""
LEAST_VOTES = 10
"""Votes that a place in the lists must hold to be a rater of its own."""
THIRDS = ("the easiest third", "the middle third", "the hardest third")


def unanimity(sample: Sample) -> list[Number]:
    """Return the agreement with the majority where people are of one mind, and where not."""
    several = [i for i, votes in enumerate(sample.votes) if len(votes) > 1]
    alike = [i for i in several if len(set(sample.votes[i])) == 1]
    split = [i for i in several if len(set(sample.votes[i])) > 1]
    if not alike or not split:
        return []
    return [
        _of_part(sample, "people.unanimous", "The majority, where people are unanimous", alike),
        _of_part(sample, "people.split", "The majority, where people disagree", split),
    ]


def difficulty(sample: Sample) -> list[Number]:
    """Return the agreement at each level of difficulty, where rows name one."""
    levels = [row.data_row.get("difficulty") for row in sample.rows]
    there = {level for level in levels if level is not None}
    if len(there) < 2 or not any(sample.targets):
        return []
    parts = _in_thirds(levels) if len(there) > MOST_LEVELS else _one_by_one(levels)
    return [
        _of_part(sample, f"difficulty.{name}", f"Difficulty: {name}", places)
        for name, places in parts.items()
        if places
    ]


def likely_labels(sample: Sample) -> list[Number]:
    """Return the agreement with the likely truth behind people's votes, beside the majority.

    The places in the lists of votes stand for people, as in the alt-test; the judge is none of
    the raters, so that its own answers do not make the truth.
    """
    most = max(map(len, sample.votes), default=0)
    raters = [
        [votes[place] if place < len(votes) else None for votes in sample.votes]
        for place in range(most)
    ]
    raters = [own for own in raters if sum(v is not None for v in own) >= LEAST_VOTES]
    if len(raters) < 3:
        return []
    truth = metrics.dawid_skene(raters)
    places: dict[Label | None, int] = {each: i for i, each in enumerate(truth.classes)}
    shares: list[float | None] = []
    for row, chances in zip(sample.rows, truth.chances, strict=True):
        index = places.get(row.answer)
        likely = 0.0 if index is None or chances is None else chances[index]
        shares.append(None if chances is None else likely)
    result = metrics.rate(shares, **sample.settings)
    title = "The likely truth behind people's votes"
    note = (
        f"Dawid & Skene, {len(raters)} raters, who are the places in the lists of votes; "
        "the interval takes the estimate as it is"
    )
    return [Number("people.likely", title, result, note=note)]


def _of_part(sample: Sample, key: str, title: str, places: Sequence[int]) -> Number:
    part = sample.part(places)
    result = metrics.accuracy(part.verdicts, part.labels, **part.settings)
    return Number(key, title, result)


def _one_by_one(levels: Sequence[Any]) -> dict[str, list[int]]:
    there = {level for level in levels if level is not None}
    ordered = sorted(there) if are_numbers(levels) else sorted(there, key=str)
    return {str(name): [i for i, own in enumerate(levels) if own == name] for name in ordered}


def _in_thirds(levels: Sequence[Any]) -> dict[str, list[int]]:
    """Return the places of each third; words of many levels are no difficulty."""
    if not are_numbers(levels):
        return {}
    low, high = np.quantile([level for level in levels if level is not None], [1 / 3, 2 / 3])
    parts: dict[str, list[int]] = {name: [] for name in THIRDS}
    for place, level in enumerate(levels):
        if level is not None:
            parts[THIRDS[int(level > low) + int(level > high)]].append(place)
    return parts
