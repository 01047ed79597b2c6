"""From pairs to a ranking at equal style: Bradley–Terry with style beside strength."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.metrics.inputs import as_list, is_missing, same_length
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.metrics.style import preference_slopes, style_gaps


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
    preferences: Iterable[Any],
    systems: Iterable[tuple[Any, Any]],
    outputs_a: Iterable[str],
    outputs_b: Iterable[str],
    *,
    groups: Iterable[Any] | None = None,
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

    Source: style control of Chatbot Arena (Li, Angelopoulos & Chiang 2024); the features are
    those of `style_slopes`.
    """
    answers, wrote = as_list(preferences), [tuple(pair) for pair in as_list(systems)]
    gaps = style_gaps(outputs_a, outputs_b)
    same_length(preferences=answers, systems=wrote, **gaps)
    complete = [not any(map(is_missing, pair)) for pair in wrote]
    if same := next(
        (p for p, ok in zip(wrote, complete, strict=True) if ok and p[0] == p[1]), None
    ):
        raise InputError(f"a pair needs two systems, got {same!r}")
    names = sorted({name for p, ok in zip(wrote, complete, strict=True) if ok for name in p})
    if len(names) < 2:
        raise InputError(f"strengths need two systems, got {names!r}")
    keys = None if groups is None else as_list(groups)
    settings: dict[str, Any] = {"groups": keys, "confidence": confidence}

    def fit(last: Any) -> dict[str, Result]:
        # Strengths add up to 0: the last one is minus all others.
        sides: dict[str, Any] = {
            f"system {name}": [
                float((a == name) - (b == name) - (a == last) + (b == last)) if ok else None
                for (a, b), ok in zip(wrote, complete, strict=True)
            ]
            for name in names
            if name != last
        }
        return preference_slopes(answers, {**sides, **gaps}, **settings)

    slopes = fit(names[-1])
    strengths = {name: slopes[f"system {name}"] for name in names[:-1]}
    strengths[names[-1]] = fit(names[0])[f"system {names[-1]}"]
    ranked = dict(sorted(strengths.items(), key=lambda pair: -pair[1]))
    first = slopes["intercept"]
    style = {name: slopes[name] for name in gaps}
    return StyleControlled(ranked, style, first, first.n, dict(first.n_failed))
