"""How many labels are needed, and which rows to label next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
import scipy

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics.arguments import Judgments, RightLabels
from langchain_judges.metrics.fewlabels import neyman_allocation
from langchain_judges.metrics.inputs import as_list, is_missing, same_length, values_of

MOST_LABELS = 1_000_000


def _power(lead: float, disagreement: float, n: int, level: float, seed: int) -> float:
    """Return in how many of 4,000 samples of n items McNemar's exact test finds a lead."""
    rng = np.random.default_rng(seed)
    apart = rng.binomial(n, disagreement, 4000)
    wins = rng.binomial(apart, (disagreement + lead) / (2 * disagreement))
    p = 2 * scipy.stats.binom.sf(wins - 1, apart, 0.5)
    return float(((p <= level) & (2 * wins > apart)).mean())


def labels_needed(
    lead: float, disagreement: float, power: float = 0.8, *, level: float = 0.05, seed: int = 0
) -> int:
    """Return how many labels it takes to find a lead between two judges.

    Args:
        lead: How much more often the first judge is right, such as 0.05.
        disagreement: The share of items on which exactly one of the two is right, at least
            the lead; two good judges of one family may have 0.1, two of different ones 0.3.
        power: How often the lead is to be found.
        level: Of the test.
        seed: Of the draws.

    Raises:
        OptionError: The lead is not between 0 and the disagreement, or more than a million
            labels are needed.

    Source: simulation of the test in `mcnemar`. Of items that share questions count the
    questions.
    """
    if not 0 < lead <= disagreement <= 1:
        raise OptionError(
            "`lead` must be above 0, and at most `disagreement`, which is at most 1; got "
            f"{lead!r} and {disagreement!r}"
        )
    if not 0 < power < 1:
        raise OptionError(f"`power` must lie between 0 and 1, got {power!r}")

    def enough(n: int) -> bool:
        return _power(lead, disagreement, n, level, seed) >= power

    high = 8
    while not enough(high):
        high *= 2
        if high > MOST_LABELS:
            raise OptionError(f"a lead of {lead!r} takes more than {MOST_LABELS:,} labels")
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def label_next(
    judged: Judgments,
    labels: RightLabels,
    strata: Iterable[Hashable],
    budget: int,
    *,
    seed: int = 0,
) -> list[int]:
    """Return the places of the rows to label next, so that estimates become surest.

    Labels go to the strata in proportion to their size and to how far the judge has been from
    people there, and within a stratum to rows by chance: so `stratified_ppi_mean` stays right
    as labels come in. Make strata of what goes with mistakes, such as (category, whether
    two judges disagree, whether the judge flipped), to have doubtful rows labelled first.

    Args:
        judged: The judge's number for each row, such as 1 where it prefers A; or verdicts,
            whose score is read; None was not judged.
        labels: People's number for each row in the same unit; None is not labelled yet.
        strata: The stratum of each row.
        budget: How many rows to name.
        seed: Of the choice within a stratum.

    Returns:
        Places in the order of the rows. A stratum without two labels is taken to be as
        doubtful as the worst; none gets more than it has rows left.

    Source: Neyman 1934; Fisch et al. 2024 (arXiv 2406.04291).
    """
    (values, _), truths, names = values_of(judged, "score"), as_list(labels), list(strata)
    same_length(judged=values, labels=truths, strata=names)
    if budget < 1:
        raise OptionError(f"`budget` must be at least 1, got {budget!r}")
    gaps: dict[Hashable, list[float]] = {name: [] for name in names}
    unlabelled: dict[Hashable, list[int]] = {name: [] for name in names}
    for place, (value, label, name) in enumerate(zip(values, truths, names, strict=True)):
        if is_missing(label):
            unlabelled[name].append(place)
        elif value is not None:
            gaps[name].append(float(label) - float(value))
    if not any(unlabelled.values()):
        raise InputError("every row is labelled")
    counts = _more(gaps, unlabelled, Counter(names), budget)
    rng = np.random.default_rng(seed)
    places = [
        unlabelled[name][i]
        for name in unlabelled
        for i in rng.permutation(len(unlabelled[name]))[: counts[name]]
    ]
    return sorted(places)


def _more(
    gaps: dict[Hashable, list[float]],
    unlabelled: dict[Hashable, list[int]],
    sizes: Mapping[Hashable, int],
    budget: int,
) -> dict[Hashable, int]:
    """Return how many labels each stratum gets beside those it has."""
    spreads = {name: float(np.std(own, ddof=1)) for name, own in gaps.items() if len(own) > 1}
    worst = max(spreads.values(), default=1.0) or 1.0
    # A stratum without a mistake so far is not certain to have none.
    doubts = [max(spreads.get(name, worst), 0.1 * worst) for name in gaps]
    total = max(2 * len(gaps), budget + sum(map(len, gaps.values())))
    targets = neyman_allocation([sizes[name] for name in gaps], doubts, total)
    short = {
        name: max(0, target - len(gaps[name]))
        for name, target in zip(gaps, targets, strict=True)
    }
    counts = dict.fromkeys(gaps, 0)
    for _ in range(min(budget, sum(map(len, unlabelled.values())))):
        open_ones = [name for name in gaps if counts[name] < len(unlabelled[name])]
        best = max(
            open_ones, key=lambda name: (short[name] - counts[name], len(unlabelled[name]))
        )
        counts[best] += 1
    return counts
