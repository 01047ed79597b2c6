"""How often each system wins: by the judge, by its graded score, and by people."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges import metrics
from langchain_judges.report.judged_row import preference_points
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample

MOST_SYSTEMS = 40
SIDES_OF_WINS = ("judge", "score", "people")
"""Who says it: the verdicts, the scores behind them, and people."""

_UNGRADED = {0.0, 0.5, 1.0}


def win_rates(sample: Sample) -> list[Number]:
    """Return how often each system wins, a tie counted as half; of A where none are named.

    A score that says how far A is preferred wins that far, and a row with several votes is won
    by the share of them.
    """
    titles = {
        "judge": "by the judge",
        "score": "by how far the judge prefers it",
        "people": f"by {sample.whom}",
    }
    columns = _columns(sample)
    return [
        Number(f"wins.{name}.{side}", f"{name} wins, {titles[side]}", result)
        for name, places in _systems(sample).items()
        for side, points in columns.items()
        if (result := _rate(sample, points, places)).n
    ]


def _columns(sample: Sample) -> dict[str, list[float | None]]:
    answers = [[] if answer is None else [answer] for answer in sample.answers]
    columns = {"judge": [preference_points(each) for each in answers]}
    scores = [
        None if row.answer is None or (score := row.verdict.get("score")) is None else score
        for row in sample.rows
    ]
    if set(scores) - _UNGRADED - {None}:
        columns["score"] = scores
    columns["people"] = [preference_points(target) for target in sample.targets]
    return columns


def _systems(sample: Sample) -> dict[str, list[tuple[int, bool]]]:
    """Return by name the places of a system's pairs, and whether it wrote A there."""
    places: dict[str, list[tuple[int, bool]]] = {}
    for place, (a, b) in enumerate(sample.systems):
        if a is not None and b is not None and a != b:
            places.setdefault(a, []).append((place, True))
            places.setdefault(b, []).append((place, False))
    if not places:
        return {"A": [(place, True) for place in range(len(sample.rows))]}
    return places if len(places) <= MOST_SYSTEMS else {}


def _rate(
    sample: Sample, points: Sequence[float | None], places: Sequence[tuple[int, bool]]
) -> metrics.Result:
    shares = [
        None if (value := points[place]) is None else value if first else 1 - value
        for place, first in places
    ]
    groups = sample.groups and [sample.groups[place] for place, _ in places]
    return metrics.rate(shares, groups=groups, confidence=sample.confidence)
