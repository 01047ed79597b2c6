"""Is one judge better than another? Paired tests, and many of them at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from langchain_judges.errors import InputError, needs
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
            hypothesis, as in `sign_flip_test`, for items that share a question are not tests
            of their own.

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


def sign_flip_test(
    first: Judgments, second: RightLabels, *, groups: GroupKeys = None
) -> Significance:
    """Test whether two judges score alike on the same items, by changing their sides.

    Where neither judge is better, the lead of the first on a cluster of items might as well
    be that of the second. p is the share of all 2^clusters ways to give the signs in which the
    sum of leads is at least as far from 0 as it is.

    Args:
        first: One number for each item, such as 1 where the first judge was right, or the
            share of people's votes it matched.
        second: The same items, by the second judge.
        groups: The cluster of each item; without, each item is its own.

    Returns:
        The mean lead and the two-sided p; `n` counts items. It is exact however few clusters
        there are; with five clusters it cannot be below 1/16.

    Source: Fisher 1935, The Design of Experiments, section 21. All ways are counted at once by
    the characteristic function Π cos(t · lead).
    """
    cases = match(first, second, "score")
    outcome = partial(Significance, n=cases.n, alternative="two-sided", n_failed=cases.failed)
    if not cases.n:
        return outcome(math.nan, math.nan, reason="no items in common")
    a, b = cases.floats()
    leads = as_floats(np.bincount(cases.clusters(groups), a - b))
    return outcome(float((a - b).mean()), _flipped_p(leads))


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


class Adjusted(NamedTuple):
    """The combined result of several comparisons."""

    p: list[float]
    """Adjusted p-values, in the order given; compare them with the level as usual."""
    rejected: list[bool]


def holm(p_values: Sequence[float], level: float = 0.05) -> Adjusted:
    """Adjust p-values so that any false rejection at all is as rare as `level`.

    Source: Holm 1979; `statsmodels.stats.multitest.multipletests`.
    """
    return _adjust(p_values, level, "holm")


def benjamini_yekutieli(p_values: Sequence[float], level: float = 0.05) -> Adjusted:
    """Adjust p-values of dependent tests so that a share `level` of rejections is false.

    Source: Benjamini & Yekutieli 2001; `statsmodels.stats.multitest.multipletests`.
    """
    return _adjust(p_values, level, "fdr_by")


def _adjust(p_values: Sequence[float], level: float, method: str) -> Adjusted:
    with needs("trust", "Adjusting p-values"):
        from statsmodels.stats.multitest import multipletests

    raw = np.asarray(p_values, dtype=float)
    if not np.all((raw >= 0) & (raw <= 1)):
        raise InputError("p-values must lie between 0 and 1")
    if not len(raw):
        return Adjusted([], [])
    rejected, adjusted, _, _ = multipletests(raw, alpha=level, method=method)
    return Adjusted(adjusted.tolist(), rejected.tolist())
