"""What a run decides, in a sentence: the better system or each label's rate, and how sure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.runs.summary import Summary

_LEAST_LEAD = 0.02
"""Smaller leads would take tens of thousands of pairs: no number is given."""
_DRAWS, _POWER, _Z = 2_000, 0.8, 1.959964
"""Draws of further pairs, the share that is to settle, and the 97.5 % quantile of a normal."""


def decision(summary: Summary, systems: Sequence[str] | None = None) -> list[str]:
    """Return what a run decides, one sentence each; nothing where no row was judged.

    Of pairs: who is better, in how many, with the 95 % interval of Wilson, whether that is
    settled, and about how many more pairs would settle it in 80 of 100 draws from these. Of
    labels: the rate of each. Then the category that differs from all others, if one does.

    Args:
        summary: Of the run.
        systems: The names of A and B; None: A and B.
    """
    if summary.wrote or not summary.preferences:
        return []
    if summary.labels:
        lines = _of_labels(summary)
    else:
        lines = [_of_pairs(summary, systems or "AB"), *_of_category(summary, systems or "AB")]
    return [*lines, *_of_errors(summary)]


def is_open(summary: Summary) -> bool:
    """Return whether a run of pairs does not settle which system is better."""
    decided = summary.preferences["A"] + summary.preferences["B"]
    if summary.wrote or summary.labels or not decided:
        return False
    return interval_of(max(summary.preferences[side] for side in "AB"), decided)[0] <= 0.5


def _of_pairs(summary: Summary, systems: Sequence[str]) -> str:
    a, b, ties = (summary.preferences[side] for side in ("A", "B", "tie"))
    decided = a + b
    tied = f"; {counted(ties, 'tie is', 'ties are')} left out" if ties else ""
    if not decided:
        pairs = "The one pair is a tie" if ties == 1 else f"All {ties:,} pairs are ties"
        return f"{pairs}: nothing is decided."
    best, wins = (systems[0], a) if a >= b else (systems[1], b)
    found = f"{best} is better in {rate_text(wins, decided)}"
    if a == b:
        return f"{systems[0]} and {systems[1]} are even, {a:,} to {b:,}{tied}: not settled."
    if interval_of(wins, decided)[0] > 0.5:
        return f"{found}{tied}: settled."
    lead = 2 * wins / decided - 1
    if lead < _LEAST_LEAD:
        return f"{found}{tied}: not settled, and too even for more pairs to settle it soon."
    more = _more_pairs(wins, decided - wins, ties)
    settling = f"about {counted(more, 'more pair')} would settle a lead of this size"
    return f"{found}{tied}: not settled; {settling}."


def _more_pairs(wins: int, losses: int, ties: int) -> int:
    """Return how many more pairs settle the lead in 80 of 100 draws from those at hand."""
    # Loaded on use: statistics take longer to load than a short run.
    import numpy as np

    known = np.array([wins, losses, ties])

    def settles(more: int) -> bool:
        draws = known + np.random.default_rng(0).multinomial(more, known / known.sum(), _DRAWS)
        won, lost = draws[:, 0], draws[:, 1]
        # The lower end of Wilson's interval is above a half.
        return bool(np.mean(won - lost > _Z * np.sqrt(won + lost)) >= _POWER)

    most = 1
    while not settles(most):
        most *= 2
    return bisect_left(range(most), True, lo=most // 2, key=settles)


def _of_category(summary: Summary, systems: Sequence[str]) -> list[str]:
    """Return the sentence on the category in which the lead is another, if one is."""
    side = max("AB", key=lambda each: summary.preferences[each])
    decided = Counter({key: n for key, n in summary.answers.items() if key[1] != "tie"})
    if not (apart := differing(_by_category(decided, side))):
        return []
    category, (own, of), (rest, of_rest) = apart
    return [
        f"In {category} {systems['AB'.index(side)]} is better in {rate_text(own, of)}, "
        f"elsewhere in {rate_text(rest, of_rest)}."
    ]


def _of_labels(summary: Summary) -> list[str]:
    counts, total = summary.preferences, summary.preferences.total()
    if summary.totals:
        mean = sum(float(score) * number for score, number in counts.items()) / total
        return [f"The mean total is {mean:.2f}, from 0 to 1, of {counted(total, 'row')}."]
    rates = (f"{name} in {rate_text(counts[name], total)}" for name in sorted(counts))
    lines = [f"Label {'; '.join(rates)}."]
    top = max(sorted(counts), key=lambda name: counts[name])
    if apart := differing(_by_category(summary.answers, top)):
        category, (own, of), (rest, of_rest) = apart
        lines.append(
            f"In {category} label {top} is given in {rate_text(own, of)}, elsewhere in "
            f"{rate_text(rest, of_rest)}."
        )
    return lines


def _of_errors(summary: Summary) -> list[str]:
    """Return the sentence on the category that carries the errors, if one does."""
    if not (apart := differing(_by_category(summary.right, True))):
        return []
    category, (own, of), (rest, of_rest) = apart
    return [
        f"The label is met in {rate_text(own, of)} of {category}, elsewhere in "
        f"{rate_text(rest, of_rest)}."
    ]


Counts = tuple[int, int]
"""How many, of how many."""


def _by_category(counts: Counter[Any], which: object) -> dict[str, Counts]:
    """Return how often one answer was given in each category."""
    categories: dict[str, Counts] = {}
    for (category, answer), number in counts.items():
        own, of = categories.get(category, (0, 0))
        categories[category] = own + number * (answer == which), of + number
    return categories


def differing(categories: Mapping[str, Counts]) -> tuple[str, Counts, Counts] | None:
    """Return the category that differs most from the others together, with both counts.

    It differs where the two intervals do not meet; None where none does.
    """
    total = Counter[str]()
    for count, of in categories.values():
        total.update(count=count, of=of)
    best: tuple[float, str, Counts, Counts] | None = None
    for name, (count, of) in categories.items():
        rest = total["count"] - count, total["of"] - of
        if not of or not rest[1] or not name:
            continue
        (low, high), (low_rest, high_rest) = interval_of(count, of), interval_of(*rest)
        gap = max(low - high_rest, low_rest - high)
        if gap > 0 and (best is None or gap > best[0]):
            best = gap, name, (count, of), rest
    return best and best[1:]


def rate_text(count: int, of: int) -> str:
    """Return a count with its share and its 95 % interval of Wilson.

    >>> rate_text(24, 40)
    '24 of 40 (60 %, 45–74 %)'
    """
    low, high = interval_of(count, of)
    return f"{count:,} of {of:,} ({count / of:.0%}, {100 * low:.0f}–{high:.0%})".replace(
        "%", " %"
    )


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "pair"), counted(2_000, "pair"), counted(2, "tie is", "ties are")
    ('1 pair', '2,000 pairs', '2 ties are')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def interval_of(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson of a share."""
    # Loaded on use: statistics take longer to load than a short run.

    from langchain_judges.metrics.intervals import wilson_interval

    return wilson_interval(count, of)
