"""Correlations with people, and tests between two judges."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    correlate,
    williams_test,
)
from tests.cases import for_each

pearson, spearman, kendall = (
    partial(correlate, kind=kind) for kind in ("pearson", "spearman", "kendall")
)
RNG = np.random.default_rng(5)
HUMAN = RNG.normal(size=80)
JUDGE = HUMAN + RNG.normal(size=80)
OTHER = HUMAN + 2 * RNG.normal(size=80)


@for_each(
    ("ours", "theirs"),
    [(pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)],
)
def test_a_correlation_is_that_of_scipy_with_ties_and_without(ours, theirs) -> None:
    for x, y in [(JUDGE, HUMAN), (JUDGE.round(), HUMAN.round())]:
        assert ours(x, y) == pytest.approx(theirs(x, y).statistic, abs=1e-12)


def test_pearsons_interval_is_about_that_of_scipy_for_normal_scores() -> None:
    ours, theirs = pearson(JUDGE, HUMAN), stats.pearsonr(JUDGE, HUMAN).confidence_interval()
    assert ours.interval.high - ours.interval.low >= theirs.high - theirs.low - 1e-12
    assert ours.interval == pytest.approx((theirs.low, theirs.high), abs=0.05)


def test_a_perfect_correlation_has_no_interval_and_says_why() -> None:
    result = spearman([1, 2, 3, 4, 5, 6], [1, 3, 4, 5, 8, 9])
    assert result == pytest.approx(1.0)
    assert result.interval is None
    assert result.no_interval == "a perfect correlation tells nothing of its error"
    assert kendall([1, 2, 3], [1, 3, 2]).no_interval == "too few items or groups"


@pytest.mark.figures
def test_kendalls_interval_covers_on_ratings_with_ties() -> None:
    # τ_b of these ratings is .442, by 200,000 of them.
    rng, covered = np.random.default_rng(14), 0
    cuts = stats.norm.ppf([0.2, 0.4, 0.6, 0.8])
    for _ in range(100):
        x, noise = rng.normal(size=(2, 40))
        ratings = np.searchsorted(cuts, x), np.searchsorted(cuts, 0.6 * x + 0.8 * noise)
        covered += kendall(*ratings).interval.covers(0.442)
    assert covered >= 90


def test_missing_scores_are_left_out_and_counted_by_reason() -> None:
    refused = {"score": None, "failures": [{"reason": "refusal"}]}
    result = pearson([1, 2, None, refused, 5, 9], [1, 2, 3, 4, None, 7])
    assert result == pytest.approx(stats.pearsonr([1, 2, 9], [1, 2, 7]).statistic)
    assert result.n == 3
    assert result.n_failed == {"not_judged": 1, "refusal": 1, "no_label": 1}


@for_each("kind", ["pearson", "spearman", "kendall"])
@for_each("level", ["global", "group", "system"])
def test_nothing_varies_and_it_is_nan_with_a_reason(kind, level) -> None:
    result = correlate([1, 1, 1, 1], [1, 2, 3, 4], kind, level=level, groups=[0, 0, 1, 1])
    assert math.isnan(result)
    assert result.reason


def test_the_group_level_averages_over_the_groups_that_vary() -> None:
    # Group a: r = 1; group b: r = -1; group c is constant for people; mean of 1 and -1 is 0.
    judge, human = [1, 2, 3, 1, 2, 3, 1, 2], [2, 4, 6, 3, 2, 1, 5, 5]
    results = correlate(judge, human, level="group", groups=list("aaabbbcc"))
    assert results == pytest.approx(0.0, abs=1e-12)
    assert results.n == 2
    assert results.n_failed == {"constant_group": 1}


def test_the_interval_of_a_mean_of_correlations_stays_within_their_range() -> None:
    groups = [1, 1, 1, 2, 2, 2]
    result = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 5, 6, 4], level="group", groups=groups)
    assert result.interval == (-1.0, 1.0)


def test_the_system_level_correlates_the_means() -> None:
    # Judge means 1.5, 3, 6; human means 1, 2, 4: r of (1.5, 3, 6) and (1, 2, 4) is 1.
    judge, human = [1, 2, 3, 3, 5, 7], [2, 0, 1, 3, 4, 4]
    results = correlate(judge, human, level="system", groups=list("xxyyzz"))
    assert results == pytest.approx(1.0)
    assert results.n == 3


def test_levels_that_speak_of_groups_need_them() -> None:
    with pytest.raises(OptionError, match="needs `groups`"):
        correlate([1, 2], [1, 2], level="group")


def test_a_judge_that_is_monotone_in_what_people_say_ranks_perfectly() -> None:
    assert spearman(np.exp(HUMAN), HUMAN) == pytest.approx(1.0)
    assert kendall(np.exp(HUMAN), HUMAN) == pytest.approx(1.0)
    assert pearson(np.exp(HUMAN), HUMAN) < 0.99


@for_each(
    ("correlations", "t", "one_sided", "two_sided"),
    [
        ((0.816, 0.713, 0.70, 162), 3.011491, 0.001513, 0.003025),
        ((0.5, 0.4, 0.3, 100), 0.981849, 0.164308, 0.328617),
    ],
)
def test_williams_gives_the_figures_worked_out_beforehand(
    correlations: tuple[float, float, float, int], t, one_sided, two_sided
):
    result = williams_test(*correlations)
    assert result[:2] == pytest.approx((t, one_sided), abs=5e-7)
    assert result.p_two_sided == pytest.approx(two_sided, abs=5e-7)
    assert williams_test(*correlations, "two-sided").p == result.p_two_sided
    assert williams_test(*correlations, "less").p == pytest.approx(1 - one_sided, abs=5e-7)


def test_williams_compares_absolute_values_and_mirrors() -> None:
    one = williams_test(0.816, 0.713, 0.70, 162)
    assert williams_test(-0.816, 0.713, -0.70, 162).t == one.t
    assert williams_test(0.713, 0.816, 0.70, 162).t == -one.t


def test_williams_turns_a_metric_that_runs_against_people_with_all_its_correlations() -> None:
    # Metric 1 turned round: r12 and r23 change sign, and nothing else does.
    straight = williams_test(0.5, 0.4, -0.3, 100)
    assert williams_test(-0.5, 0.4, 0.3, 100).t == straight.t
    assert williams_test(-0.5, -0.4, -0.3, 100).t == straight.t
    # The closer two metrics are, the surer a difference: −.3 is less close than .3.
    assert straight.t < williams_test(0.5, 0.4, 0.3, 100).t


@pytest.mark.figures
def test_williams_keeps_its_level_where_metrics_run_against_each_other() -> None:
    # Both follow people, and each other's noise in the opposite direction: r23 < 0.
    rng, rejected = np.random.default_rng(12), 0
    for _ in range(1500):
        human, noise, own, other = rng.normal(size=(4, 60))
        first, second = human + 1.5 * noise + own, human - 1.5 * noise + other
        r = np.corrcoef([human, first, second])
        rejected += williams_test(r[0, 1], r[0, 2], r[1, 2], 60).p < 0.05
    assert 0.035 < rejected / 1500 < 0.068


def test_williams_is_undefined_where_no_three_variables_correlate_so() -> None:
    assert "K is not positive" in (williams_test(0.9, 0.1, 0.9, 50).reason or "")
    assert math.isnan(williams_test(0.5, 0.4, 0.3, 3).p)
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        williams_test(1.2, 0.4, 0.3, 30)


@pytest.mark.figures
def test_williams_rejects_at_its_level_when_both_metrics_are_alike() -> None:
    rng, rejected = np.random.default_rng(1), 0
    for _ in range(2000):
        human = rng.normal(size=60)
        first, second = (human + rng.normal(size=60) for _ in range(2))
        r = np.corrcoef([human, first, second])
        rejected += williams_test(r[0, 1], r[0, 2], r[1, 2], 60).p < 0.05
    assert 0.035 < rejected / 2000 < 0.065
