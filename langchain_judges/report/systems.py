"""How strong each system is by the judge and by people, with style held equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.judged_row import preference_points
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample

LEAST_SYSTEMS, MOST_SYSTEMS = 3, 40
"""With two systems a win rate says it all; with many the regression would be large."""


def strengths(sample: Sample) -> list[Number]:
    """Return the strength of each system by the judge, and by people beside it."""
    if not sample.with_texts:
        return []
    part = sample.part(sample.with_texts)
    pairs = [pair for pair in part.systems if None not in pair]
    systems = {name for pair in pairs for name in pair}
    if not LEAST_SYSTEMS <= len(systems) <= MOST_SYSTEMS or any(a == b for a, b in pairs):
        return []
    texts = [a for a, _ in part.texts], [b for _, b in part.texts]
    outputs: dict[str, Any] = {"outputs_a": texts[0], "outputs_b": texts[1]}
    settings = {**part.settings, **outputs}
    people = [preference_points(target) for target in part.targets]
    by_judge = metrics.style_controlled_strengths(part.verdicts, part.systems, **settings)
    by_people: Mapping[str, Result] = {}
    if any(points is not None for points in people):
        fit = metrics.style_controlled_strengths(people, part.systems, **settings)
        by_people = fit.strengths
    numbers = []
    for name, strength in by_judge.strengths.items():
        numbers.append(Number(f"system.{name}.judge", name, strength, "number"))
        if name in by_people:
            title = f"{name}, by people"
            numbers.append(Number(f"system.{name}.people", title, by_people[name], "number"))
    return numbers
