"""From pairs to a ranking at equal style: Bradley–Terry with style beside strength."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import GroupKeys, IntervalOptions, Judgments, Systems
from langchain_judges.metrics.inputs import as_list, is_missing, same_length
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.metrics.slopes import preference_slopes
from langchain_judges.metrics.style import style_gaps


@dataclass(frozen=True)
class StyleControlled(Findings):
    """The strengths of systems at equal style."""

    strengths: dict[str, Result]
    """Log-odds beside the mean of all systems, strongest first."""
    style: dict[str, Result]
    """Log-odds for each standard deviation of the lead in a feature of style."""
    first: Result
    """Log-odds for text A whatever it is: the position bias, if A is shown first."""
    n: int
    n_failed: dict[str, int]


def style_controlled_strengths(
    preferences: Judgments,
    systems: Systems,
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> StyleControlled:
    """Fit the strengths of systems, and what length, lists, headers and bold win beside them.

    logit P(A) = θ + s_A − s_B + Σ φ_k x_k, with the strengths s adding up to 0.

    Args:
        preferences: `A`, `B`, `tie` (half a win) or a number in [0, 1] for each pair, or
            verdicts or rows; None is left out and counted.
        systems: Who wrote A and who wrote B; a pair of which one is not known is left out.
        outputs_a: The texts A.
        outputs_b: The texts B.
        groups: The cluster of each pair, such as its question, for the intervals.
        confidence: The level of the intervals, robust to groups.

    Returns:
        Strengths and slopes with intervals; NaN where they are not finite.

    Raises:
        InputError: There are fewer than two systems, or a pair has the same system twice.

    Source: style control of Chatbot Arena (Li, Angelopoulos & Chiang 2024), with the features
    of Arena-Hard v2: differences of length and of marks per character, over their sums.
    """
    answers, authors = as_list(preferences), as_list(systems)
    gaps = style_gaps(outputs_a, outputs_b)
    same_length(preferences=answers, systems=authors, **gaps)
    pairs = [
        None if is_missing(first) or is_missing(second) else (first, second)
        for first, second in authors
    ]
    if same := next((pair for pair in pairs if pair and pair[0] == pair[1]), None):
        raise InputError(f"a pair needs two systems, got {same!r}")
    names = sorted({name for pair in pairs if pair for name in pair})
    if len(names) < 2:
        raise InputError(f"strengths need two systems, got {names!r}")
    options = IntervalOptions(groups=as_list(groups), confidence=confidence)

    def fit(last: str) -> dict[str, Result]:
        # Strengths add up to 0: the last one is minus all others.
        sides = {
            f"system {name}": [pair and _lead(pair, name) - _lead(pair, last) for pair in pairs]
            for name in names
            if name != last
        }
        return preference_slopes(answers, {**sides, **gaps}, **options)

    slopes = fit(names[-1])
    strengths = {name: slopes[f"system {name}"] for name in names[:-1]}
    strengths[names[-1]] = fit(names[0])[f"system {names[-1]}"]
    ranked = dict(sorted(strengths.items(), key=lambda pair: -pair[1]))
    first = slopes["intercept"]
    style = {name: slopes[name] for name in gaps}
    return StyleControlled(ranked, style, first, first.n, dict(first.n_failed))


def _lead(pair: tuple[str, str], name: str) -> float:
    """Return 1 where a system wrote A, −1 where it wrote B, and 0 elsewhere."""
    return float((pair[0] == name) - (pair[1] == name))
