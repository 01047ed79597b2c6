"""Does the judge put texts and systems in the order in which people put them?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from langchain_judges.metrics import inputs, intervals
from langchain_judges.metrics.inputs import Floats, GroupKeys, Ints, Judgments, RightLabels
from langchain_judges.metrics.result import Findings, Interval, Result


def concordance(
    judge: Judgments, human: RightLabels, *, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Share of the pairs of texts rated differently by people that the judge orders as they do.

    It does not say how close ratings are: a judge that is one step too high everywhere orders
    perfectly (see `mean`). A tie of the judge is half right, so a judge that rates everything
    alike, or at random, scores ½.

    Args:
        judge: One rating for each text, or verdicts, whose `score` is read; None is left out.
        human: People's rating of the same texts, in any unit.
        groups: The cluster of each text, for the interval.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1]; `n` counts texts. NaN where people rate all texts alike. No
        interval with fewer than five groups, or where too few ratings differ.

    Source: Somers 1962, (D + 1) / 2; its error as of a U-statistic, Hoeffding 1948, and the
    interval as of `auc`. Ratings of more than 500 levels are cut into 500 ranges.
    """
    intervals.check_shares(confidence=confidence)
    cases = inputs.match(judge, human, "score")
    if cases.n < 2:
        return cases.undefined("fewer than two texts")
    said, truth = (_levels(column) for column in cases.floats())
    if not truth.max():
        return cases.undefined("people rate all texts alike")
    right, pairs = _ordered(said, truth)
    value = float(right.sum() / pairs.sum())
    result = partial(Result, value, n=cases.n, n_failed=cases.failed)
    clusters = cases.clusters(groups)
    varied = [truth, said] if said.max() else [truth]
    why = next(filter(None, (intervals.too_alike(column, clusters) for column in varied)), None)
    units = int(clusters.max()) + 1
    if why or units < intervals.LEAST_GROUPS:
        return result(no_interval=why or "too few groups")
    residuals = np.bincount(clusters, right - value * pairs)
    error = 2 * math.sqrt(float(residuals @ residuals) * units / (units - 1)) / pairs.sum()
    size = min(intervals.telling(column, clusters) for column in varied)
    interval = intervals.share_interval(value, error, size, size - 1, confidence)
    return result(se=error, interval=interval)


# Ratings of more levels are cut into as many ranges of about one size.
MOST_LEVELS = 500


def _levels(column: Floats) -> Ints:
    """The level of each value, from 0, at most `MOST_LEVELS` of them."""
    values, places = np.unique(column, return_inverse=True)
    if len(values) > MOST_LEVELS:
        cuts = np.quantile(column, np.arange(1, MOST_LEVELS) / MOST_LEVELS)
        _, places = np.unique(np.searchsorted(cuts, column), return_inverse=True)
    return np.asarray(places.reshape(-1))


def _ordered(said: Ints, truth: Ints) -> tuple[Floats, Floats]:
    """Others that the judge orders as people do and others that people rate apart, by text.

    Ties of the judge are half right.
    """
    table = np.zeros((int(truth.max()) + 1, int(said.max()) + 1))
    np.add.at(table, (truth, said), 1.0)
    left = np.cumsum(table, axis=1) - table / 2  # by the judge lower, ties as half
    rows = table.sum(axis=1, keepdims=True)
    lower = np.cumsum(left, axis=0) - left  # and by people lower
    higher = (rows - left)[::-1].cumsum(axis=0)[::-1] - (rows - left)
    return (lower + higher)[truth, said], len(truth) - rows[truth, 0]


@dataclass(frozen=True)
class SystemPair(Findings):
    """Two systems, the first ahead by people.

    Attributes:
        judge: How far the judge has the first ahead, in the unit of the points.
        people: How far people have it ahead.
    """

    first: str
    second: str
    judge: Result
    people: Result

    @property
    def matches(self) -> bool | None:
        """Whether the judge has the same system ahead; None while either is not settled."""
        if not (settled(self.judge) and settled(self.people)):
            return None
        return bool((self.judge > 0) == (self.people > 0))


@dataclass(frozen=True)
class SystemOrder(Findings):
    """The systems by the judge and by people, and which of them can be told apart.

    Attributes:
        judge: The mean points that the judge gives each system, the best first.
        people: Those that people give.
        pairs: Every two systems; intervals hold for all of them at once.
        neighbours: The pairs that are next to each other in people's order.
        n: Rows that were counted.
    """

    judge: dict[str, float]
    people: dict[str, float]
    pairs: list[SystemPair]
    neighbours: list[SystemPair]
    n: int


def settled(gap: Result) -> bool:
    """Whether the interval of a lead leaves out 0."""
    return gap.interval is not None and not gap.interval.covers(0.0)


def system_order(
    systems: Iterable[Sequence[str | None]],
    judge: Iterable[Sequence[float | None]],
    people: Iterable[Sequence[float | None]],
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> SystemOrder:
    """Order systems by their mean points from the judge and from people, and compare.

    Not for systems that met different rivals: mean points depend on them.

    Args:
        systems: Who wrote the texts of each row: two of a pair, one of a single text.
        judge: The points of each of these texts by the judge, such as 1 for the text that wins
            and ½ for a tie, or a rating. A row with a None is left out.
        people: Their points by people.
        groups: The cluster of each row.
        confidence: The level of the intervals, Bonferroni's for all pairs of systems at once.

    Source: differences of ratio means with clustered errors as in Cochran 1977, section 6.
    """
    intervals.check_shares(confidence=confidence)
    names, ours, theirs = inputs.as_list(systems), inputs.as_list(judge), inputs.as_list(people)
    inputs.same_length(systems=names, judge=ours, people=theirs)
    given = list(zip(names, ours, theirs, strict=True))
    indices = [i for i, (own, a, b) in enumerate(given) if None not in (*own, *a, *b)]
    cases = inputs.Cases([], np.asarray(indices, np.int64), Counter(), len(given))
    rows, clusters = inputs.take(given, indices), cases.clusters(groups)
    found = sorted({str(name) for row in rows for name in row[0]})
    columns = _points_of_systems(found, rows)
    level = 1 - (1 - confidence) / max(1, len(found) * (len(found) - 1) // 2)

    def means(side: int) -> dict[str, float]:
        points = {name: float(own[side].sum() / own[0].sum()) for name, own in columns.items()}
        return dict(sorted(points.items(), key=lambda pair: -pair[1]))

    by_people, gap = means(2), partial(_gap, clusters=clusters, level=level)
    pairs = [
        SystemPair(a, b, *(gap(columns[a], columns[b], side=side) for side in (1, 2)))
        for a, b in combinations(by_people, 2)
    ]
    following = set(pairwise(by_people))
    neighbours = [pair for pair in pairs if (pair.first, pair.second) in following]
    return SystemOrder(means(1), by_people, pairs, neighbours, len(rows))


_Row = tuple[Sequence[str | None], Sequence[float | None], Sequence[float | None]]


def _points_of_systems(names: Sequence[str], rows: Sequence[_Row]) -> dict[str, Floats]:
    """The number of texts of each system by row, and their points by either side."""
    columns = {name: np.zeros((3, len(rows))) for name in names}
    for place, row in enumerate(rows):
        for name, ours, theirs in zip(*row, strict=True):
            columns[str(name)][:, place] += (1.0, float(ours or 0), float(theirs or 0))
    return columns


def _gap(one: Floats, other: Floats, *, clusters: Ints, level: float, side: int) -> Result:
    """Lead of one system's mean points over another's."""
    size, rivals = float(one[0].sum()), float(other[0].sum())
    mean, rival = float(one[side].sum()) / size, float(other[side].sum()) / rivals
    residuals = (one[side] - mean * one[0]) / size - (other[side] - rival * other[0]) / rivals
    gap, added = mean - rival, 0.25 / size**2 + 0.25 / rivals**2
    telling = int((np.bincount(clusters, one[0] + other[0]) > 0).sum())
    if telling < 3:
        return Result(gap, n=one.shape[1], no_interval="too few rows or groups")
    squares = float((np.bincount(clusters, residuals) ** 2).sum())
    scale = min(1.0, float(np.ptp(np.concatenate([one[side], other[side]]))) or 1.0)
    error = math.sqrt(squares * telling / (telling - 1) + added * scale**2)
    interval = Interval.around(gap, error * intervals.student_quantile(level, telling - 1))
    return Result(gap, n=int(size + rivals), se=error, interval=interval)
