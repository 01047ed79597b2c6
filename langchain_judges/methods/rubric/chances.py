"""How probable the total of several criteria is, from the probabilities of their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from langchain_judges.methods.expected import sum_chances
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.replies import CriterionScore

_LEAST = 1e-5
"""Criteria with odd weights have no sums in common; the improbable ones are left out."""


def total_chance(valid: Sequence[tuple[Criterion, CriterionScore]]) -> float | None:
    """Return how probable it is that labels come to what those that were given come to.

    Each label is drawn from its own probabilities, independently of the others (ours). What
    fails a required criterion comes to 0.

    Args:
        valid: The criteria that have a label, and what was found by each.

    Returns:
        None where the probabilities of a label are not known.
    """
    if not valid or any("chances" not in part for _, part in valid):
        return None
    by_sum = sum_chances((_points(*each) for each in valid), _LEAST)
    if all(part["holds"] or not part["required"] for _, part in valid):
        return _near(by_sum, math.fsum(_value(c, part["label"]) for c, part in valid))
    passing = math.prod(
        math.fsum(_points(criterion, part).values())
        for criterion, part in valid
        if part["required"]
    )
    return 1 - passing + _near(by_sum, 0.0)


def _points(criterion: Criterion, part: CriterionScore) -> dict[float, float]:
    """Return the probability of what a criterion adds, where the text may still pass."""
    chances = part["chances"]
    return {
        _value(criterion, label): chances[str(label)]
        for label in criterion.names
        if not criterion.required or criterion.holds(label)
    }


def _value(criterion: Criterion, label: object) -> float:
    return criterion.weight * criterion.position(label)  # type: ignore[arg-type]


def _near(by_sum: dict[float, float], target: float) -> float:
    # Each step rounds to six places.
    return math.fsum(p for total, p in by_sum.items() if abs(total - target) < 1e-4)
