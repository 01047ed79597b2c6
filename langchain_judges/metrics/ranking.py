"""From pairs to a ranking: Bradley–Terry, with ties after Davidson."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import Floats, GroupKeys, Ints, Judgments, Systems
from langchain_judges.metrics.bootstrapping import percentile_interval
from langchain_judges.metrics.cases import Cases
from langchain_judges.metrics.inputs import as_list, is_missing, one_of, same_length, values_of
from langchain_judges.metrics.resampling import draws
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Label

_ANSWERS: dict[object, int] = {"A": 0, "B": 1, "tie": 2}


@dataclass(frozen=True)
class BradleyTerry(Findings):
    """The strengths of systems that were compared in pairs."""

    strengths: dict[str, Result]
    """log π of each system, strongest first; their mean is 0. A lead of 1 gives odds of e."""
    tie: Result
    """ν: 0 without ties; two equal systems tie with probability ν / (2 + ν)."""
    n: int
    """Pairs judged."""
    n_failed: dict[str, int]

    def probability(self, first: str, second: str) -> dict[str, float]:
        """Return how likely `first` wins, `second` wins, and neither does."""
        a, b = (math.exp(self.strengths[name]) for name in (first, second))
        tie = float(self.tie) * math.sqrt(a * b)
        total = a + b + tie
        return {"first": a / total, "second": b / total, "tie": tie / total}


def bradley_terry(
    preferences: Judgments,
    systems: Systems,
    *,
    groups: GroupKeys = None,
    resamples: int = 500,
    confidence: float = 0.95,
    seed: int = 0,
) -> BradleyTerry:
    """Fit the strengths of systems to verdicts on pairs of them, by maximum likelihood.

    P(i ≻ j) = π_i / (π_i + π_j + ν √(π_i π_j)), P(tie) = ν √(π_i π_j) / (the same).

    Args:
        preferences: `A`, `B`, `tie` or None for each pair, or verdicts or rows; a failed
            judgment is left out and counted.
        systems: Who wrote A and who wrote B, for each pair; where one is not known (None),
            the pair is left out and counted as `no_system`.
        groups: The cluster of each pair, such as its question; whole clusters are drawn for
            the intervals.
        resamples: How often to draw; 0 leaves the intervals out.
        confidence: The level of the intervals.
        seed: Of the bootstrap.

    Returns:
        Strengths; all NaN where every verdict is a tie, and where some systems win, directly
        or through others, against the rest and never lose or tie, for no finite strengths are
        then the likeliest. Resamples in which that happens are left out of the intervals.

    Source: Bradley & Terry 1952; Davidson 1970.
    """
    values, failed = values_of(preferences)
    authors = as_list(systems)
    same_length(preferences=values, systems=authors)
    indices: list[int] = []
    pairs: list[tuple[str, str, Label]] = []
    for index, (value, (first, second)) in enumerate(zip(values, authors, strict=True)):
        if value is None:
            continue
        if is_missing(first) or is_missing(second):
            failed["no_system"] += 1
            continue
        indices.append(index)
        pairs.append((first, second, value))
    cases = Cases([], np.asarray(indices, dtype=np.int64), failed, len(values))
    names = sorted({name for first, second, _ in pairs for name in (first, second)})
    size, cells, clusters = len(names), _cells(pairs, names), cases.clusters(groups)
    fit = _fit(np.bincount(cells, minlength=size * size * 3).astype(float), size)
    if fit is None:
        none = cases.undefined(_why_none({answer for *_, answer in pairs}))
        return BradleyTerry(dict.fromkeys(names, none), none, cases.n, dict(failed))
    replicates = _resampled(cells, clusters, size, resamples, seed, fit)
    units = int(clusters.max()) + 1
    results = [
        _result(value, replicates[:, place], confidence, units, cases)
        for place, value in enumerate(fit)
    ]
    ranked = sorted(zip(names, results, strict=False), key=lambda pair: -pair[1])
    return BradleyTerry(dict(ranked), results[-1], cases.n, dict(failed))


def _cells(pairs: Sequence[tuple[str, str, Label]], names: Sequence[str]) -> Ints:
    """Return where each pair counts in a table of first system, second system and answer."""
    place = {name: index for index, name in enumerate(names)}
    cells = []
    for first, second, answer in pairs:
        one_of("preferences", answer, _ANSWERS)
        if first == second:
            raise InputError(f"a pair needs two systems, got {(first, second)!r}")
        cells.append((place[first] * len(names) + place[second]) * 3 + _ANSWERS[answer])
    return np.asarray(cells, dtype=np.int64)


def _why_none(answers: set[Label]) -> str:
    """Return why there are no strengths."""
    if not answers:
        return "no items"
    if answers == {"tie"}:
        return "all verdicts are ties, which tell nothing of strengths"
    return "no finite strengths: some systems never lose to, or never meet, the others"


def _result(
    value: float, replicates: Floats, confidence: float, units: int, cases: Cases
) -> Result:
    """Return a fitted number with what its resamples tell of it."""
    interval = None
    if len(replicates) and units > 1:
        interval = percentile_interval(replicates, confidence, units)
    se = float(replicates.std(ddof=1)) if len(replicates) > 1 else None
    return Result(float(value), n=cases.n, n_failed=cases.failed, se=se, interval=interval)


def _resampled(
    cells: Ints, groups: Ints, size: int, resamples: int, seed: int, start: Floats
) -> Floats:
    if not resamples:
        return np.zeros((0, size + 1))
    count, width = int(groups.max()) + 1, size * size * 3
    sums = np.zeros((count, width))
    np.add.at(sums, (groups, cells), 1.0)
    tables = (row @ sums for block in draws(groups, resamples, seed) for row in block)
    fits = [_fit(table, size, start) for table in tables]
    return np.asarray([fit for fit in fits if fit is not None]).reshape(-1, size + 1)


def _connected(table: Floats) -> bool:
    """Say whether every system can be reached from every other by wins and ties."""
    from scipy.sparse.csgraph import connected_components

    wins = table[:, :, 0] + table[:, :, 1].T + table[:, :, 2] + table[:, :, 2].T
    parts, _ = connected_components(wins > 0, directed=True, connection="strong")
    return bool(parts == 1)


def _fit(flat: Floats, size: int, start: Floats | None = None) -> Floats | None:
    """Return the likeliest (log π of each, ν) by Newton's steps, or None if there is none."""
    table = flat.reshape(size, size, 3) if size > 1 else None
    if table is None or not _connected(table) or not table[:, :, :2].any():
        return None
    i, j = np.nonzero(table.sum(axis=2))
    counts, pairs = table[i, j], np.arange(len(i))
    answers = 3 if counts[:, 2].any() else 2
    features = np.zeros((len(i), 3, size + 1))
    features[pairs, 0, i] = features[pairs, 1, j] = features[pairs, 2, -1] = 1.0
    features[pairs, 2, i] = features[pairs, 2, j] = 0.5
    features, counts = features[:, :answers], counts[:, :answers]
    flatter, total = features.reshape(-1, size + 1), counts.sum(axis=1)
    theta = np.zeros(size + 1)
    if start is not None:
        theta[:size] = start[:size]
    for _ in range(100):
        odds = np.exp(features @ theta)
        p = odds / odds.sum(axis=1, keepdims=True)
        expected = total[:, None] * p
        gradient = (counts - expected).ravel() @ flatter
        mean = (p[:, None, :] @ features)[:, 0]
        hessian = flatter.T @ (expected.ravel()[:, None] * flatter)
        hessian -= mean.T @ (total[:, None] * mean)
        # Only differences of strengths matter: the least-norm step keeps their mean at 0.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-10)[0]
        longest = float(np.abs(step).max())
        theta += step * min(1.0, 2.0 / max(longest, 1e-300))
        if longest < 1e-9:
            break
    theta[:size] -= theta[:size].mean()
    theta[-1] = math.exp(theta[-1]) if answers == 3 else 0.0
    return theta
