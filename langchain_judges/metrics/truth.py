"""What is likely true where people err, and where a judge contradicts itself."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from langchain_judges.metrics.arguments import Floats, Judgments, Systems
from langchain_judges.metrics.inputs import (
    POINTS,
    as_list,
    flat,
    is_missing,
    one_of,
    same_length,
    values_of,
)
from langchain_judges.metrics.intervals import rate
from langchain_judges.metrics.raters import Ratings, classes_of, ratings_of
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Label


@dataclass(frozen=True)
class DawidSkene(Findings):
    """The truth behind raters who err, each in their own way."""

    classes: list[Label]
    labels: list[Label | None]
    """The likeliest label of each item; None where nobody rated it."""
    chances: list[list[float] | None]
    """The chance of each class, in the order of `classes`, for each item."""
    accuracy: list[float]
    """How often each rater is right, by the chances; NaN for one who rated nothing."""
    confusion: list[list[list[float]]]
    """For each rater, by true class (rows), the share of each answer."""
    shares: list[float]
    """The share of each class."""
    n: int
    """Items that somebody rated."""
    converged: bool


def dawid_skene(
    ratings: Ratings, *, most_steps: int = 2000, smoothing: float = 0.5
) -> DawidSkene:
    """Estimate the true label of each item and each rater's mistakes, by EM.

    A judge may be one of the raters. Three raters or more are needed for it to tell more than
    the majority does, and they must err apart from each other.

    Args:
        ratings: One row for each rater, (raters, items); None is no rating.
        most_steps: Most steps of EM.
        smoothing: Answers of each kind that a rater is lent, spread over the classes, so that
            few ratings make nobody infallible.

    Returns:
        Chances that start from the shares of votes, so that raters who are mostly right keep
        their sense of the classes.

    Source: Dawid & Skene 1979 (Appl. Stat. 28).
    """
    rows = ratings_of(ratings)
    classes = classes_of(value for row in rows for value in row if value is not None)
    place = {label: index for index, label in enumerate(classes)}
    size, items = len(classes), len(rows[0]) if rows else 0
    # (raters, items, answers): 1 where the rater gave the answer.
    votes = np.zeros((len(rows), items, size))
    for number, row in enumerate(rows):
        for item, value in enumerate(row):
            if value is not None:
                votes[number, item, place[value]] = 1.0
    has_votes = votes.sum(axis=(0, 2)) > 0
    if not has_votes.any():
        return DawidSkene([], [None] * items, [None] * items, [], [], [], 0, True)
    chances, confusion, shares, converged = _expect(votes[:, has_votes], most_steps, smoothing)
    right = np.einsum("ric,ic->r", votes[:, has_votes], chances)
    answers = votes.sum(axis=(1, 2))
    everywhere = iter(chances.tolist())
    by_item = [next(everywhere) if present else None for present in has_votes]
    return DawidSkene(
        classes,
        [None if own is None else classes[int(np.argmax(own))] for own in by_item],
        by_item,
        [float(r / g) if g else math.nan for r, g in zip(right, answers, strict=True)],
        confusion.tolist(),
        shares.tolist(),
        int(has_votes.sum()),
        converged,
    )


def _expect(
    votes: Floats, most_steps: int, smoothing: float
) -> tuple[Floats, Floats, Floats, bool]:
    """Alternate between the raters' mistakes and the items' chances until neither moves.

    Items with the same ratings have the same chances, so that each pattern of ratings is
    weighted by its number of items: a few raters leave few patterns, however many the items.
    """
    raters, items, size = votes.shape
    by_item = votes.transpose(1, 0, 2).reshape(items, raters * size)
    patterns, pattern_of, counts = np.unique(
        by_item, axis=0, return_inverse=True, return_counts=True
    )
    votes = patterns.reshape(len(patterns), raters, size).transpose(1, 0, 2)
    chances = votes.sum(axis=0) / votes.sum(axis=(0, 2))[:, None]
    converged = False
    for _ in range(most_steps):
        weighted = chances * counts[:, None]
        confusion = np.einsum("it,ria->rta", weighted, votes) + smoothing / size
        confusion /= confusion.sum(axis=2, keepdims=True)
        shares = weighted.sum(axis=0) / items
        weights = np.einsum("ria,rta->it", votes, np.log(confusion))
        weights += np.log(np.maximum(shares, 1e-300))
        better = np.exp(weights - weights.max(axis=1, keepdims=True))
        better /= better.sum(axis=1, keepdims=True)
        moved = float(np.abs(better - chances).max())
        chances = better
        if converged := moved < 1e-6:
            break
    return chances[pattern_of.reshape(-1)], confusion, shares, converged


def transitivity(
    preferences: Judgments,
    systems: Systems,
    groups: Iterable[Hashable],
    *,
    confidence: float = 0.95,
) -> Result:
    """Return how often a judge's verdicts on three texts can be put in one order.

    It needs no labels: a judge that prefers x to y, y to z and z to x contradicts itself,
    whoever is right. So does one that calls x and y, and y and z, ties, and prefers x to z.

    Args:
        preferences: `A`, `B`, `tie` or None for each pair, or verdicts or rows.
        systems: What A and B are, such as the names of their systems.
        groups: The question of each pair: only texts on the same question are compared.
        confidence: The level of the interval, by questions.

    Returns:
        The share in [0, 1] of `n` triples of texts of which all three pairs were judged; NaN
        without any. Of pairs judged several times the sum counts.

    Source: total order violations as in Sage (arXiv 2512.16041); ties by weak orders.
    """
    values, failed = values_of(preferences)
    authors, keys = as_list(systems), as_list(groups)
    same_length(preferences=values, systems=authors, groups=keys)
    leads: dict[Hashable, dict[tuple[str, str], float]] = {}
    for value, (a, b), key in zip(values, authors, keys, strict=True):
        if value is None or is_missing(a) or is_missing(b) or a == b:
            continue
        one_of("preferences", value, POINTS)
        own = leads.setdefault(key, {})
        own[a, b] = own.get((a, b), 0.0) + 2 * POINTS[value] - 1
        own[b, a] = -own[a, b]
    hits, clusters = flat([_triples(own) for own in leads.values()], list(leads))
    if not hits:
        return Result.undefined("no three texts were all compared", n_failed=failed)
    return rate(hits, groups=clusters, confidence=confidence).replace(n_failed=failed)


def _triples(leads: Mapping[tuple[str, str], float]) -> list[float]:
    """Return for each three texts that were all compared whether they have an order."""
    names = dict.fromkeys(name for pair in leads for name in pair)
    triples = [((x, y), (y, z), (z, x)) for x, y, z in combinations(names, 3)]
    return [
        float(_ordered([float(np.sign(leads[pair])) for pair in pairs]))
        for pairs in triples
        if all(pair in leads for pair in pairs)
    ]


def _ordered(signs: Sequence[float]) -> bool:
    """Say whether x > y, y > z and z > x by these signs fit a weak order: no way round."""
    return not any(signs) or (min(signs) < 0 < max(signs))
