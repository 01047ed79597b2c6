"""Does the judge order things as people do? Correlations, of judges and of a jury's errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import inputs, intervals
from langchain_judges.metrics.inputs import Floats, Ints, Judgment, Judgments, RightLabels
from langchain_judges.metrics.result import Interval, Result
from langchain_judges.verdict import Label

Correlation = Literal["pearson", "spearman", "kendall"]
Level = Literal["global", "group", "system"]


def correlate(
    judge: Judgments,
    human: RightLabels,
    kind: Correlation = "pearson",
    *,
    level: Level = "global",
    groups: inputs.GroupKeys = None,
    confidence: float = 0.95,
) -> Result:
    """The correlation of the judge's scores with people's at one of three levels.

    Not to choose a judge whose numbers are used as they are: a correlation is blind to an
    offset and to scale.

    Args:
        judge: One score for each item (or verdicts, whose `score` is read); None is left out.
        human: People's score of the same items, in any unit.
        kind: `pearson`, `spearman` or `kendall` (τ_b).
        level: `global` pools all items; `group` correlates within each group, such as an
            article, and averages over the groups; `system` averages the items of each group,
            such as a system, and correlates those means.
        groups: The group of each item; needed by `group` and `system`. With `global` they
            are the clusters of the interval, of which it needs five.
        confidence: The level of the interval.

    Returns:
        The correlation in [−1, 1]; `n` counts items, groups or systems by level. Groups
        within which a side does not vary are left out, counted as `constant_group`.

    Source: `scipy.stats`; intervals by Fisher's z, after Bonett & Wright 2000 or, where that is
    wider, a jackknife, for ratings have ties. Section 4 of Wu et al. 2023 (DRPE) pools and
    prints absolute values; Liu et al. 2023 (G-Eval) averages over articles.
    """
    inputs.one_of("kind", kind, Correlation)
    inputs.one_of("level", level, Level)
    cases = inputs.match(judge, human, "score")
    x, y = cases.floats()
    clusters = None if groups is None else cases.clusters(groups)
    if level == "global":
        return _global(kind, x, y, clusters, confidence, cases.failed)
    if clusters is None:
        raise OptionError(f"`level` {level!r} needs `groups`")
    if level == "group":
        return _within_groups(kind, x, y, clusters, confidence, cases.failed)
    if cases.n:
        x, y = (np.bincount(clusters, side) / np.bincount(clusters) for side in (x, y))
    return _global(kind, x, y, None, confidence, cases.failed)


def _coefficient(kind: str, x: Floats, y: Floats) -> tuple[float, str | None]:
    """The coefficient, or NaN and why."""
    if len(x) < 2:
        return math.nan, "fewer than two items"
    if (x == x[0]).all() or (y == y[0]).all():
        return math.nan, "all values of a side are equal"
    if kind == "kendall" and len(x) > 100:
        return float(scipy.stats.kendalltau(x, y).statistic), None
    if kind == "kendall":  # the correlation of the orders of all pairs, faster for few
        x, y = (np.sign(np.subtract.outer(side, side)).ravel() for side in (x, y))
    x, y = map(inputs.average_ranks, (x, y)) if kind == "spearman" else (x, y)
    dx, dy = (side - side.mean() for side in (x / np.abs(x).max(), y / np.abs(y).max()))
    return max(min(float(dx @ dy / math.sqrt((dx @ dx) * (dy @ dy))), 1.0), -1.0), None


def _global(
    kind: Correlation,
    x: Floats,
    y: Floats,
    clusters: Ints | None,
    level: float,
    failed: Mapping[str, int],
) -> Result:
    intervals.check_shares(confidence=level)
    value, why = _coefficient(kind, x, y)
    if why:
        return Result.undefined(why, n=len(x), n_failed=failed)
    groups = np.arange(len(x)) if clusters is None else clusters
    least = intervals.LEAST_APART
    few = f"fewer than {least} items" if len(x) < least else None
    why = few or intervals.too_alike(x, groups) or intervals.too_alike(y, groups)
    if abs(value) > 1 - 1e-12:  # sums of floats miss 1 by a little
        why = "a perfect correlation tells nothing of its error"
    error, freedom = (math.nan, 0.0) if why else _fisher_error(kind, x, y, groups)
    if math.isnan(error):
        why = why or "too few items or groups"
        return Result(value, n=len(x), n_failed=failed, no_interval=why)
    if clusters is None:  # ratings are not normal, and not much surer than normal scores
        scale = {"pearson": 1.0, "spearman": 1 + value**2 / 2, "kendall": 0.0}[kind]
        error = max(error, math.sqrt(scale / (len(x) - 3)))
    freedom = min(freedom, intervals.telling(x, groups) - 1, intervals.telling(y, groups) - 1)
    half = error * intervals.student_quantile(level, max(2.0, freedom))
    interval = Interval(*map(math.tanh, Interval.around(math.atanh(value), half)))
    return Result(value, n=len(x), n_failed=failed, interval=interval)


def _fisher_error(kind: str, x: Floats, y: Floats, groups: Ints) -> tuple[float, float]:
    """The error of Fisher's z by leaving out each group in turn, and its freedom."""
    if int(groups.max()) + 1 < intervals.LEAST_GROUPS:
        return math.nan, math.nan
    r = intervals.jackknife(groups, lambda kept: _coefficient(kind, x[kept], y[kept])[0])
    r = np.where(np.abs(r) < 1 - 1e-12, r, math.nan)
    return intervals.jackknife_spread(np.arctanh(r)), len(r) - 1.0


def _within_groups(
    kind: str, x: Floats, y: Floats, groups: Ints, level: float, failed: Mapping[str, int]
) -> Result:
    count = int(groups.max()) + 1 if len(groups) else 0
    coefficients = [_coefficient(kind, x[groups == g], y[groups == g])[0] for g in range(count)]
    defined = [value for value in coefficients if value == value]
    failures = {**failed, "constant_group": count - len(defined)}
    if not defined:
        return Result.undefined("no group in which both sides vary", n_failed=failures)
    averaged = intervals.mean(defined, confidence=level)
    reach = averaged.interval and averaged.interval.within(-1.0, 1.0)
    return Result(averaged, n=len(defined), n_failed=failures, interval=reach, se=averaged.se)


class Williams(NamedTuple):
    """Williams' test: Student's t on `df` degrees of freedom, and its one-sided p.

    Attributes:
        reason: Why t and p are NaN; None if they are not.
    """

    t: float
    p: float
    df: int
    reason: str | None = None


def williams_test(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether one metric correlates better with people than another does.

    Not where several items share an article or question, for then p is too small.

    `t = (r12 − r13) √((n−1)(1+r23)) / √(2K(n−1)/(n−3) + ((r12+r13)²/4)(1−r23)³)` with
    `K = 1 − r12² − r13² − r23² + 2 r12 r13 r23`, on n − 3 degrees of freedom. Absolute values
    of r12 and r13 are compared, as is usual where a metric may run against people's scale:
    such a metric is turned round, which turns the sign of r23 with it.

    Args:
        r12: Correlation of people with metric 1.
        r13: Correlation of people with metric 2.
        r23: Correlation of the two metrics.
        n: Items all three were taken on. They must be independent; where several share an
            article p is too small.

    Returns:
        t and p of the alternative that metric 1 is better; NaN with a reason where K ≤ 0, for
        no three variables correlate so.

    Raises:
        InputError: A correlation lies outside [−1, 1].

    Source: Williams 1959; Graham & Baldwin 2014.
    """
    if not all(abs(r) <= 1 for r in (r12, r13, r23)):
        raise InputError(f"correlations lie in [-1, 1], got {r12!r}, {r13!r}, {r23!r}")
    a, b = abs(r12), abs(r13)
    c = r23 * math.copysign(1, r12) * math.copysign(1, r13)
    k = 1 - a * a - b * b - c * c + 2 * a * b * c
    why = "fewer than four items" if n < 4 else None
    if k <= 1e-12:
        why = why or "K is not positive: the three correlations cannot hold together"
    if why:
        return Williams(math.nan, math.nan, n - 3, why)
    below = 2 * k * (n - 1) / (n - 3) + ((a + b) ** 2 / 4) * (1 - c) ** 3
    t = (a - b) * math.sqrt((n - 1) * (1 + c)) / math.sqrt(below)
    return Williams(t, float(scipy.special.stdtr(n - 3, -t)), n - 3)


# Answers by voter, one for each item and None where there is none; or rows of a jury.
VoterAnswers = Mapping[str, Sequence[Judgment]] | Iterable[Mapping[str, object]]


def effective_voters(votes: VoterAnswers, labels: RightLabels | None = None) -> Result:
    """Number of independent voters that would be worth as much as these.

    Not with few items: correlations of rare errors are noise.

    n / (1 + (n − 1) r), the design effect of n equally correlated voters, where r is the mean
    correlation of two of them, at least 0.

    Args:
        votes: Answers by voter, or rows of a jury.
        labels: The right answer to each item. With labels r is the correlation of errors.
            Without, it is that of the votes, so that voters who are right together count as
            correlated too: the number is then a lower bound.

    Returns:
        A number from 1 to `n` voters; NaN where no two of them can be correlated, such as
        where nobody errs.

    Source: Kish 1965 (design effect); for juries of language models arXiv 2605.29800.
    """
    answers = [inputs.values_of(column)[0] for column in _voter_columns(votes).values()]
    if labels is not None:
        truths = inputs.values_of(labels)[0]
        inputs.same_length(labels=truths, votes=answers[0] if answers else [])
        answers = [
            [None if None in both else both[0] == both[1] for both in zip(own, truths, strict=True)]
            for own in answers
        ]
    size = len(answers)
    if size == 1:
        return Result(1.0, n=1)
    found = [_correlation(*pair) for pair in combinations(answers, 2)]
    correlations = [each for each in found if each is not None]
    if not correlations:
        return Result.undefined("no two voters vary on the same items", n=size)
    return Result(size / (1 + (size - 1) * max(0.0, float(np.mean(correlations)))), n=size)


def _voter_columns(votes: VoterAnswers) -> dict[str, list[Judgment]]:
    if isinstance(votes, Mapping):
        columns = {name: inputs.as_list(column) for name, column in votes.items()}
        inputs.same_length(**columns)
        return columns
    rows: list[Any] = list(votes)
    if not all(isinstance(row, Mapping) and "members" in row for row in rows):
        raise InputError("`votes` must be answers by voter, or rows of a jury (`members`)")
    by_row = [{each["member"]: each for each in row["members"]} for row in rows]
    names = dict.fromkeys(name for own in by_row for name in own)
    return {name: [own.get(name) for own in by_row] for name in names}


def _correlation(first: Sequence[Label | None], second: Sequence[Label | None]) -> float | None:
    """Correlation of two voters' answers: Pearson's of their indicators, summed.

    Of two answers it is φ. None where either always says the same.
    """
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    classes = list(dict.fromkeys(value for pair in both for value in pair))
    if not both:
        return None
    indicators = np.asarray([[[v == each for each in classes] for v in pair] for pair in both])
    x, y = np.swapaxes(indicators - indicators.mean(axis=0), 0, 1)
    spread = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / spread if spread > 1e-12 else None
