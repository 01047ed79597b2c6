"""What a win rate would be if both texts were equally long."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import (
    GroupKeys,
    IntervalOptions,
    Judgments,
)
from langchain_judges.metrics.inputs import (
    as_list,
    is_missing,
)
from langchain_judges.metrics.rates import win_rate
from langchain_judges.metrics.result import Interval, Result
from langchain_judges.metrics.slopes import preference_slopes
from langchain_judges.metrics.style import in_deviations


class EqualLength(Result):
    """A win rate at equal length.

    Attributes:
        raw: The win rate as it is, ties counted as half.
        length_slope: φ, the log-odds per unit of tanh(difference in length / sd).
    """

    raw: Result
    length_slope: Result


def equal_length_win_rate(
    preferences: Judgments,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    difficulty: Iterable[float] | None = None,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> EqualLength:
    """Return what A's win rate over B would be if their texts were equally long.

    logit P(A) = θ + φ · tanh((length A − length B) / sd) + ψ · γ_x; the result is the mean
    prediction with the length term at 0. It is not the length-controlled win rate of
    AlpacaEval 2, though of the same form: that one fits φ with a penalty and the difficulty of
    the instructions over all systems of its leaderboard, so that its numbers differ, by a lot
    where a system's texts are nearly always the shorter or the longer ones.

    Args:
        preferences: `A`, `B`, `tie` or a number in [0, 1] for each item, where A is always the
            same system and B the baseline; or verdicts or rows.
        lengths_a: The length of A's text in any unit.
        lengths_b: The length of B's text in the same unit.
        difficulty: γ_x, how hard the item is, if it is known from other systems; its mean
            is subtracted.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval, by the delta method on the log-odds.

    Source: the model is that of Dubois et al. 2024 (arXiv 2404.04475), section 3, fitted here
    to one system and its baseline without a penalty.
    """
    answers = as_list(preferences)
    gaps = [a - b for a, b in zip(as_list(lengths_a), as_list(lengths_b), strict=True)]
    features = {"length": [math.tanh(gap) for gap in in_deviations(gaps)]}
    if difficulty is not None:
        levels = as_list(difficulty)
        if any(map(is_missing, levels)):
            raise InputError("`difficulty` must be known for every item")
        features["difficulty"] = (np.asarray(levels) - np.mean(levels)).tolist()
    options = IntervalOptions(groups=as_list(groups), confidence=confidence)
    slopes = preference_slopes(answers, features, **options)
    raw, theta = win_rate(answers, **options), slopes["intercept"]
    result = partial(
        EqualLength, n=theta.n, n_failed=theta.n_failed, raw=raw, length_slope=slopes["length"]
    )
    if theta.reason or theta.interval is None or theta.se is None:
        why = theta.reason or theta.no_interval or "no interval"
        return result(math.nan, reason=why)
    shift = np.zeros(1)
    if difficulty is not None:
        shift = slopes["difficulty"] * np.asarray(features["difficulty"])

    def predicted(intercept: float) -> float:
        return float(np.mean(1 / (1 + np.exp(-(intercept + shift)))))

    value = predicted(theta)
    interval = Interval(predicted(theta.interval.low), predicted(theta.interval.high))
    return result(value, interval=interval, se=theta.se * value * (1 - value))
