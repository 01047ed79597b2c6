"""Is one judge better than another? A paired test."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy

from langchain_judges.metrics.arguments import Floats, GroupKeys, Ints, Judgments, RightLabels
from langchain_judges.metrics.cases import match
from langchain_judges.metrics.inputs import as_floats
from langchain_judges.metrics.result import Significance


class McNemar(Significance):
    """McNemar's test; `only_first` and `only_second` count who alone was right."""

    only_first: int
    only_second: int


def mcnemar(first: Judgments, second: RightLabels, *, groups: GroupKeys = None) -> McNemar:
    """Test whether two judges are right equally often on the same items, exactly.

    Args:
        first: True or 1 where the first judge was right, for each item.
        second: The same items, by the second judge.
        groups: The cluster of each item; whole clusters then change sides under the null
            hypothesis, for items that share a question are not tests of their own.

    Returns:
        The smaller of the two discordant counts and the two-sided p of the exact binomial
        test, or of the exact test over clusters. With no discordant item p is 1.

    Source: McNemar 1947; with clusters Fisher's (1935) permutation of pairs.
    """
    cases = match(first, second)
    hits = [(bool(a), bool(b)) for a, b in zip(*cases.columns, strict=True)]
    only_first, only_second = hits.count((True, False)), hits.count((False, True))
    outcome = partial(
        McNemar,
        n=cases.n,
        alternative="two-sided",
        n_failed=cases.failed,
        only_first=only_first,
        only_second=only_second,
    )
    if not hits:
        return outcome(math.nan, math.nan, reason="no items in common")
    leads = np.bincount(cases.clusters(groups), [float(a) - float(b) for a, b in hits])
    return outcome(min(only_first, only_second), _flipped_p(as_floats(leads)))


FINEST_GRID = 2**18


def _flipped_p(leads: Floats) -> float:
    """Return how many of the sums ± lead ± lead … are as far from 0 as the sum of leads."""
    leads = np.asarray(leads[np.abs(leads) > 1e-12])
    if not len(leads):
        return 1.0
    steps = _on_a_grid(leads)
    total, reach = abs(int(steps.sum())), int(np.abs(steps).sum())
    sizes, counts = np.unique(np.abs(steps), return_counts=True)
    if len(sizes) == 1:
        size = int(counts[0])
        wins = (size + total // int(sizes[0])) // 2
        return float(min(1.0, 2 * scipy.stats.binom.sf(wins - 1, size, 0.5)))
    # The sums have a period that none of them reaches.
    period = 2 * reach + 1
    turns = 2 * np.pi * np.arange(period) / period
    waves = np.ones(period)
    for size, count in zip(sizes, counts, strict=True):
        waves *= np.cos(turns * size) ** count
    chances = np.fft.ifft(waves).real
    beyond = chances[total : reach + 1].sum()
    smallest = 2.0 ** (1 - min(len(steps), 1000))
    return float(min(1.0, max(2 * beyond, smallest)))


def _on_a_grid(leads: Floats) -> Ints:
    """Return leads as whole numbers: exactly where they are shares of a few votes."""
    for parts in (1, 2, 3, 4, 5, 6, 12, 60, 420):
        steps = leads * parts
        if np.abs(steps).sum() < FINEST_GRID and np.abs(steps - steps.round()).max() < 1e-6:
            break
    else:
        steps = leads * (FINEST_GRID / np.abs(leads).sum())
    return np.asarray(steps.round(), dtype=np.int64)
