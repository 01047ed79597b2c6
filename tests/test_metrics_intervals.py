"""Intervals of rates and means, paired tests, many comparisons."""

from __future__ import annotations

import copy
import json
import math
import pickle  # noqa: TID251 - to show that results survive it

import numpy as np
import pytest
from scipy import stats

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    Interval,
    Result,
    mean,
    paired_difference,
    rate,
)
from langchain_judges.metrics.intervals import wilson_interval
from tests.cases import for_each


def test_wilson_gives_the_figures_worked_out_beforehand() -> None:
    low, high = wilson_interval(8, 10)
    assert (low, high) == pytest.approx((0.490162, 0.943318), abs=5e-7)
    assert wilson_interval(8, 10, 0.9).low > low
    # Newcombe 1998, table I.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


@for_each("successes", [0, 10])
def test_wilson_stays_within_0_and_1_and_keeps_its_width(successes) -> None:
    interval = wilson_interval(successes, 10)
    assert 0 <= interval.low < interval.high <= 1
    assert interval.covers(successes / 10)


def test_wilson_of_nothing_is_nan_and_of_too_much_an_error() -> None:
    assert all(math.isnan(end) for end in wilson_interval(0, 0))
    with pytest.raises(InputError, match="between 0 and `n`"):
        wilson_interval(11, 10)
    with pytest.raises(OptionError, match="between 0 and 1"):
        wilson_interval(1, 10, confidence=95)


def test_a_rate_counts_what_failed_and_leaves_it_out() -> None:
    result = rate([True, False, None, True, math.nan])
    assert result == pytest.approx(2 / 3)
    assert (result.n, result.n_failed) == (3, {"not_judged": 2})
    assert result.interval == wilson_interval(2, 3)


def test_a_rate_of_clusters_that_are_all_alike_is_not_certain() -> None:
    results = rate([1] * 40, groups=[i // 10 for i in range(40)])
    assert results == 1.0
    # Four clusters, not forty items, have been seen.
    assert results.interval.low < wilson_interval(40, 40).low - 0.2


def coverage(make, trials: int, truth: float) -> float:
    rng = np.random.default_rng(11)
    return sum(make(rng).interval.covers(truth) for _ in range(trials)) / trials


@pytest.mark.figures
@pytest.mark.parametrize(("p", "n"), [(0.5, 30), (0.8, 100), (0.95, 60)])
def test_wilson_covers_at_its_rate(p, n) -> None:
    result = coverage(lambda rng: rate(rng.random(n) < p), 1000, p)
    assert 0.93 < result < 0.98


@pytest.mark.figures
@pytest.mark.parametrize("p", [0.5, 0.85])
def test_the_clustered_interval_covers_where_the_plain_one_does_not(p) -> None:
    groups = np.repeat(np.arange(25), 6)

    def judged(rng, grouping):
        chance = rng.beta(p * 2, (1 - p) * 2, 25)[groups]  # questions differ in difficulty
        return rate(rng.random(150) < chance, groups=grouping)

    assert coverage(lambda rng: judged(rng, None), 500, p) < 0.87
    assert 0.92 < coverage(lambda rng: judged(rng, groups), 500, p) < 0.985


@pytest.mark.figures
def test_the_interval_of_a_clustered_mean_covers_at_its_rate() -> None:
    groups = np.repeat(np.arange(20), 5)
    statistic = lambda rng: mean(  # noqa: E731
        3 + rng.normal(size=20)[groups] + rng.normal(size=100), groups=groups
    )
    assert 0.92 < coverage(statistic, 500, 3.0) < 0.98


def test_a_paired_difference_is_surer_than_two_samples() -> None:
    rng = np.random.default_rng(3)
    hard = rng.normal(size=200)
    first, second = (hard + 0.2 * rng.normal(size=200) for _ in range(2))
    result = paired_difference(first + 0.1, second)
    assert result == pytest.approx((first + 0.1 - second).mean())
    a, b = (float(mean(values).se) for values in (first, second))
    correlated = a**2 + b**2 - 2 * a * b * np.corrcoef(first, second)[0, 1]
    assert result.se == pytest.approx(math.sqrt(correlated))
    assert result.se < 0.3 * math.hypot(a, b)


def test_the_test_of_a_difference_is_that_of_its_interval() -> None:
    # Nine items on which the first alone was right, three the second alone, of 36, and one
    # more of each: the mean is 6/36, its variance s²/36 + 1/36² with s² = (12 − 1) / 35.
    first = [1] * 20 + [1] * 9 + [0] * 3 + [0] * 4
    second = [1] * 20 + [0] * 9 + [1] * 3 + [0] * 4
    error = math.sqrt((12 - 36 / 36) / 35 / 36 + 1 / 36**2)
    result = paired_difference(first, second)
    assert result.p == pytest.approx(2 * stats.t.sf(6 / 36 / error, 35))
    assert (result.interval.low < 0) == (result.p > 0.05)
    at_p = paired_difference(first, second, confidence=1 - result.p)
    assert at_p.interval.low == pytest.approx(0, abs=1e-12)
    assert paired_difference([1, 0], [1, 0]).p == 1.0


def test_a_result_is_a_number_that_cannot_be_changed() -> None:
    result = rate([1, 0, 1, 1])
    assert isinstance(result, float)
    assert result == pytest.approx(0.75)
    assert f"{result:.1%}" == "75.0%"
    assert json.dumps([result]) == "[0.75]"
    assert result.to_dict()["interval"] == list(result.interval)
    with pytest.raises(AttributeError, match="cannot be changed"):
        result.n = 3
    with pytest.raises(TypeError):
        result.n_failed["x"] = 1  # type: ignore[index]  # what is refused


@for_each("again", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_results_and_outcomes_survive_copies(again) -> None:
    result, tested = rate([1, 0, None]), paired_difference([1, 0, 1], [0, 0, 1])
    assert again(result) == result
    assert again(result).__dict__ == result.__dict__
    assert again(tested) == tested
    assert again(tested).p == tested.p


def test_nan_needs_a_reason_and_a_reason_nan() -> None:
    with pytest.raises(ValueError, match="reason"):
        Result(math.nan, n=0)
    with pytest.raises(ValueError, match="reason"):
        Result(0.5, n=2, reason="why")
    nothing = rate([])
    assert math.isnan(nothing)
    assert nothing.to_dict() == {
        "value": None,
        "n": 0,
        "interval": None,
        "no_interval": None,
        "reason": "no items",
        "se": None,
        "n_failed": {},
    }


def test_an_interval_is_a_pair() -> None:
    assert Interval(0.1, 0.2) == (0.1, 0.2)
    assert Interval(0.1, 0.2).covers(0.2)


# One group tells nothing of how groups differ; its residuals add up to rounding dust.
def test_a_rate_in_one_group_has_no_standard_error() -> None:
    result = rate([1, 1, 0], groups=["q"] * 3)
    assert (result.se, result.interval) == (None, Interval(0.0, 1.0))


# Each of the groups has the same share, with dust (a third) and without it (a half): whatever
# makes them balance, the error is less than that of items on their own.
@for_each("group", [[1, 0], [1, 0, 0], [1, 0, 0, 0, 0, 0, 0]])
def test_groups_whose_items_balance_are_surer_than_items(group) -> None:
    results = rate(group * 8, groups=[n for n in range(8) for _ in group])
    p, n, t = 1 / len(group), 8 * len(group), stats.t.ppf(0.975, 7)
    size = p * (1 - p) / min(p * (1 - p) / n, 0.5 / (8 * n))
    centre = (p + t * t / (2 * size)) / (1 + t * t / size)
    half = t * math.sqrt(p * (1 - p) / size + t * t / (4 * size * size)) / (1 + t * t / size)
    assert results.interval == pytest.approx((centre - half, centre + half))


def test_ties_make_a_win_rate_surer() -> None:
    # Wins, ties, losses 2, 16, 2 vary a fifth as much as 10 wins and 10 losses.
    wide, narrow = (
        rate(values).interval for values in ([1] * 10 + [0] * 10, [1, 0] * 2 + [0.5] * 16)
    )
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)
    all_ties = rate([0.5] * 20).interval
    assert 0.02 < all_ties.high - all_ties.low < 0.3


def test_equal_values_have_no_interval_and_say_why() -> None:
    result = mean([3.0] * 8)
    assert (result.interval, result.no_interval) == (None, "all values are equal")
    assert mean([1.0]).no_interval == "only one item or group"
    # Two judges who are right together may still differ on the next item.
    same = paired_difference([1, 0, 1, 1] * 5, [1, 0, 1, 1] * 5)
    assert same == 0.0
    assert same.interval == pytest.approx((-0.1047, 0.1047), abs=5e-4)  # 2.093 / 20


def test_an_item_without_a_group_is_a_group_of_its_own() -> None:
    values = [1, 0, 1, 1, 0, 1]
    alone = rate(values, groups=range(6)).interval
    assert rate(values, groups=[None, math.nan, None, "x", "y", None]).interval == alone


def test_the_test_by_clusters_rejects_no_more_often_than_its_level() -> None:
    # Twenty questions of ten items, on each of which one judge is better, by a coin. Of 200
    # samples 5 % are 10, and more than 18 are as rare as 1 %; items alone reject too many.
    rng, rejected, plain = np.random.default_rng(15), 0, 0
    groups = np.repeat(np.arange(20), 10)
    for _ in range(200):
        better = np.where(rng.random(20) < 0.5, 0.9, 0.6)[groups]
        first, second = rng.random(200) < better, rng.random(200) < 1.5 - better
        rejected += paired_difference(first, second, groups=groups).p < 0.05
        plain += paired_difference(first, second).p < 0.05
    assert rejected <= 18
    assert plain > 30
