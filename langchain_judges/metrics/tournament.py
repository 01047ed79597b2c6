"""Strengths of systems after some comparisons, and which comparison tells most next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from langchain_judges.metrics.inputs import Floats, fewest

# Precision of the prior on each strength: it keeps a system that never lost finite.
STRENGTH_PRIOR = 0.1
USUAL_LEAD = 0.5
_DRAWS, _POWER, _MOST_MORE = 50, 0.8, 4096


@dataclass(frozen=True)
class Tournament:
    """Strengths of systems after some comparisons, and how sure their order is.

    Attributes:
        strengths: log π of each system; their mean is 0. A lead of 1 gives odds of e.
        errors: Standard error of each strength.
        leads: (systems, systems): how far each is ahead of each, as the difference of the two
            shares of wins, times 2: about that of the strengths where it is small.
        spreads: (systems, systems): standard error of such a lead between equal systems. That
            of strengths grows with the lead, so that 40 wins of 40 would tell next to nothing.
    """

    strengths: Floats
    errors: Floats
    leads: Floats
    spreads: Floats

    @property
    def order(self) -> list[int]:
        """The systems, strongest first."""
        return [int(place) for place in np.argsort(-self.strengths, kind="stable")]

    def unsettled(self, confidence: float) -> list[tuple[int, int]]:
        """The neighbours in the order whose difference has an interval around 0."""
        settled = self.settled(confidence)
        return [pair for pair in pairwise(self.order) if not settled[pair]]

    def settled(self, confidence: float) -> NDArray[np.bool_]:
        """(systems, systems): whether the order of two systems is settled.

        The intervals hold for all neighbours at once (Bonferroni), and at every check.
        """
        level = 1 - (1 - confidence) / max(1, self.strengths.shape[-1] - 1)
        reach = sequential_quantile(self.spreads, level) * self.spreads
        return np.asarray(np.abs(self.leads) > reach)


def sequential_quantile(errors: Floats, confidence: float) -> Floats:
    """Standard errors that an interval reaches to either side if it may be checked at any time.

    Of all checks together at most 1 − `confidence` have the truth outside. The interval is
    narrowest where differences are about 0.5, as of systems of which one wins 62 %.

    Source: the normal mixture of Robbins 1970 (Ann. Math. Stat. 41), as in Johari et al. 2022
    (Oper. Res. 70).
    """
    ratio = 1 + (USUAL_LEAD / errors) ** 2
    return np.asarray(np.sqrt(ratio / (ratio - 1) * (np.log(ratio) - 2 * np.log(1 - confidence))))


def tournament(points: Floats) -> Tournament:
    """Fit the strengths of systems to what they have won from each other.

    Bradley and Terry's model with a tie as half a win for each, and a normal prior of
    precision 0.1 on each strength. Intervals take comparisons for independent.

    Args:
        points: (..., systems, systems): what the system of the row won from that of the
            column, 1 for a win and 0.5 for a tie. Leading dimensions are several tournaments at
            once, and lead every result.

    Source: Bradley & Terry 1952; the maximum by Newton's steps.
    """
    points = np.asarray(points, dtype=float)
    played, theta = points + points.swapaxes(-1, -2), np.zeros(points.shape[:-1])
    diagonal = np.eye(points.shape[-1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-_leads(theta)))
        gradient = (points - played * p).sum(axis=-1) - STRENGTH_PRIOR * theta
        information = -played * p * (1 - p) * (1 - diagonal)
        information += diagonal * (STRENGTH_PRIOR - information.sum(axis=-1))[..., None]
        step = np.linalg.solve(information, gradient[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, keepdims=True)
        theta = theta + step * np.minimum(1.0, 2.0 / np.maximum(longest, 1e-300))
        if longest.max() < 1e-9:
            break
    # Only differences matter: errors are those of strengths around their mean.
    centre = diagonal - 1 / len(diagonal)
    covariance = centre @ np.linalg.inv(information) @ centre
    own = np.diagonal(covariance, axis1=-2, axis2=-1)
    spread = np.maximum(own[..., :, None] + own[..., None, :] - 2 * covariance, 1e-12)
    theta, half = theta - theta.mean(axis=-1, keepdims=True), _leads(theta) / 2
    # Of two systems alone this is the score test.
    return Tournament(theta, np.sqrt(own), 2 * np.tanh(half), np.sqrt(spread) / np.cosh(half))


def _leads(strengths: Floats) -> Floats:
    return strengths[..., :, None] - strengths[..., None, :]


def comparisons_to_settle(points: Floats, pair: tuple[int, int], confidence: float) -> int | None:
    """Number of further comparisons of two systems that would settle a lead of this size.

    They are drawn by the strengths of the two until four of five draws settle the order; the
    draws are the same at each call. None: more than 4,096.

    Args:
        points: As `tournament` takes them.
        pair: The better system and the worse.
        confidence: The level at which all neighbours' differences exclude 0 jointly, at
            every check.
    """
    state, generator = tournament(points), np.random.default_rng(0)
    lead = float(state.strengths[pair[0]] - state.strengths[pair[1]])
    chances = generator.random((_DRAWS, _MOST_MORE)) < 1 / (1 + np.exp(-lead))

    def settles(more: int) -> bool:
        draws = np.repeat(np.asarray(points, dtype=float)[None], _DRAWS, axis=0)
        wins = chances[:, :more].sum(axis=1)
        draws[:, pair[0], pair[1]] += wins
        draws[:, pair[1], pair[0]] += more - wins
        ends, (best, second) = tournament(draws), pair
        ahead = ends.strengths[:, best] > ends.strengths[:, second]
        return bool((ahead & ends.settled(confidence)[:, best, second]).sum() >= _POWER * _DRAWS)

    return fewest(settles, most=_MOST_MORE)


def next_pairs(
    state: Tournament, remaining: Floats, size: int, generator: Generator, confidence: float = 0.95
) -> list[tuple[int, int]]:
    """Draw the pairs of systems to compare next, by how doubtful their order is.

    Args:
        state: What is known so far.
        remaining: (systems, systems): comparisons of each pair that can still be made.
        size: How many to draw; fewer where fewer are left in doubt.
        generator: Of the draws.
        confidence: Pairs whose order is as sure as this are not drawn.
    """
    rows, columns = np.triu_indices(len(remaining), 1)
    doubt = scipy.special.ndtr(-np.abs(state.leads / state.spreads))[rows, columns]
    room = np.minimum(remaining, remaining.T)[rows, columns].astype(int)
    weights = np.where(~state.settled(confidence)[rows, columns] & (room > 0), doubt, 0.0)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < size and weights.sum() > 0:
        place = int(generator.choice(len(weights), p=weights / weights.sum()))
        pairs.append((int(rows[place]), int(columns[place])))
        room[place] -= 1
        if not room[place]:
            weights[place] = 0.0
    return pairs


def first_pairs(systems: int, rounds: int, remaining: Floats) -> list[tuple[int, int]]:
    """Pairs with which every system meets others equally often.

    Args:
        systems: How many there are.
        rounds: How many of the following systems each one meets.
        remaining: Comparisons of each pair that can be made.
    """
    pairs: Sequence[tuple[int, int]] = [
        (min(i, other), max(i, other))
        for step in range(1, min(rounds, systems - 1) + 1)
        for i in range(systems)
        if (other := (i + step) % systems) != i
    ]
    return [pair for pair in dict.fromkeys(pairs) if remaining[pair] > 0]
