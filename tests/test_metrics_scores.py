"""Judges that score: correlations with people, their order, classes and areas."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import scipy

from langchain_judges import metrics
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    auc,
    balanced_accuracy,
    cohen_kappa,
    concordance,
    correlate,
    f1,
    paired_difference,
    precision,
    recall,
    system_order,
    williams_test,
)
from langchain_judges.metrics.correlation import _fisher_error
from tests.cases import for_each

pearson, spearman, kendall = (
    partial(correlate, kind=kind) for kind in ("pearson", "spearman", "kendall")
)
RNG = np.random.default_rng(5)
HUMAN = RNG.normal(size=80)
JUDGE = HUMAN + RNG.normal(size=80)


@for_each(
    ("ours", "theirs"), [(pearson, "pearsonr"), (spearman, "spearmanr"), (kendall, "kendalltau")]
)
def test_a_correlation_is_that_of_scipy_with_ties_and_without(ours, theirs) -> None:
    many = np.tile(JUDGE.round(), 3), np.roll(np.tile(HUMAN.round(), 3), 1)
    for x, y in [(JUDGE, HUMAN), (JUDGE.round(), HUMAN.round()), many]:
        expected = getattr(scipy.stats, theirs)(x, y).statistic
        assert ours(x, y) == pytest.approx(expected, abs=1e-12)


CORRELATIONS = {"pearson": "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}


@for_each("kind", sorted(CORRELATIONS))
@for_each("size", [1, 4])
def test_the_jackknife_of_a_correlation_leaves_out_one_group_at_a_time(kind, size) -> None:
    x, y, groups = JUDGE.round(), HUMAN.round(), np.arange(80) // size
    rest = [groups != group for group in range(80 // size)]
    theirs = getattr(scipy.stats, CORRELATIONS[kind])
    z = np.arctanh([theirs(x[kept], y[kept]).statistic for kept in rest])
    error, freedom = _fisher_error(kind, x, y, groups)
    n = len(rest)
    assert error == pytest.approx(math.sqrt((n - 1) / n * ((z - z.mean()) ** 2).sum()))
    assert freedom == n - 1


def test_a_rating_that_most_texts_share_leaves_few_that_tell_how_the_others_vary() -> None:
    x = np.repeat([5.0, 1, 2, 3, 4], [40, 3, 3, 3, 3])
    y = np.arange(52.0) % 7
    half = np.ptp(np.arctanh(pearson(x, y).interval)) / 2
    error = max(_fisher_error("pearson", x, y, np.arange(52))[0], 1 / math.sqrt(49))
    # Twelve texts are off the commonest rating: twelve degrees of freedom, not 51.
    assert half == pytest.approx(error * scipy.special.stdtrit(12, 0.975))


def test_the_standard_error_of_kappa_is_the_same_at_any_level() -> None:
    answers, labels = [0, 1] * 6 + [1, 0, 0], [0, 1] * 6 + [0, 1, 0]
    groups = [place // 3 for place in range(15)]
    errors = [
        cohen_kappa(answers, labels, confidence=level, groups=groups).se for level in (0.6, 0.95)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.06)


def test_every_two_systems_are_told_apart_at_once() -> None:
    rng = np.random.default_rng(0)
    names = [[name] for name in "abcd"] * 30
    points = [[float(each)] for each in rng.normal(size=120)]
    order = system_order(names, points, points)
    # Six pairs share the 5 %, of neighbours and of others; 60 rows tell of each.
    quantile = scipy.special.stdtrit(59, 1 - 0.05 / 6 / 2)
    for pair in order.pairs:
        assert pair.people.n == 60
        assert np.ptp(pair.people.interval) / 2 == pytest.approx(pair.people.se * quantile)


def test_groups_on_which_two_judges_are_alike_tell_nothing_of_their_lead() -> None:
    # Of twenty groups of two the judges differ in four: four degrees of freedom, not nineteen.
    first = [1.0] * 40
    second = [0.0 if i in (0, 2, 4, 6) else 1.0 for i in range(40)]
    change = paired_difference(first, second, groups=[i // 2 for i in range(40)])
    wide = math.sqrt(change.se**2 + 3 / (20 * 40))
    half = change.interval.high - change
    assert half == pytest.approx(wide * scipy.special.stdtrit(4, 0.975))


def test_a_correlation_of_very_large_or_small_numbers_is_that_of_usual_ones() -> None:
    usual = correlate([1.0, 0.1, 0.3, 0.2], [1, 2, 3, 4])
    for scale in (1e308, 1e-308):
        large = [number * scale for number in (1.0, 0.1, 0.3, 0.2)]
        assert correlate(large, [1, 2, 3, 4]) == pytest.approx(usual)


def test_a_perfect_correlation_has_no_interval_and_says_why() -> None:
    result = spearman([1, 2, 3, 4, 5, 6], [1, 3, 4, 5, 8, 9])
    assert result == pytest.approx(1.0)
    assert result.interval is None
    assert result.no_interval == "a perfect correlation tells nothing of its error"
    assert kendall([1, 2, 3], [1, 3, 2]).no_interval == "fewer than 8 items"


def test_correlations_of_groups_and_of_systems() -> None:
    # Group a: r = 1; group b: r = -1; group c is constant for people; mean of 1 and -1 is 0.
    judge, human = [1, 2, 3, 1, 2, 3, 1, 2], [2, 4, 6, 3, 2, 1, 5, 5]
    result = correlate(judge, human, level="group", groups=list("aaabbbcc"))
    assert (result, result.n) == (pytest.approx(0.0, abs=1e-12), 2)
    assert result.n_failed == {"constant_group": 1}
    assert result.interval == (-1.0, 1.0)
    # Judge means 1.5, 3, 6; human means 1, 2, 4: r of (1.5, 3, 6) and (1, 2, 4) is 1.
    judge, human = [1, 2, 3, 3, 5, 7], [2, 0, 1, 3, 4, 4]
    result = correlate(judge, human, level="system", groups=list("xxyyzz"))
    assert (result, result.n) == (pytest.approx(1.0), 3)
    with pytest.raises(OptionError, match="needs `groups`"):
        correlate([1, 2], [1, 2], level="group")


@for_each(
    ("correlations", "expected"),
    [
        ((0.816, 0.713, 0.70, 162), (3.011491, 0.001513)),
        ((0.5, 0.4, 0.3, 100), (0.981849, 0.164308)),
    ],
)
def test_williams_gives_the_figures_worked_out_beforehand(
    correlations: tuple[float, float, float, int], expected
):
    assert williams_test(*correlations)[:2] == pytest.approx(expected, abs=5e-7)


def test_williams_turns_a_metric_that_runs_against_people_with_all_its_correlations() -> None:
    # Metric 1 turned round: r12 and r23 change sign, and nothing else does.
    straight = williams_test(0.5, 0.4, -0.3, 100)
    assert williams_test(-0.5, 0.4, 0.3, 100).t == straight.t
    assert williams_test(-0.5, -0.4, -0.3, 100).t == straight.t
    # The closer two metrics are, the surer a difference: −.3 is less close than .3.
    assert straight.t < williams_test(0.5, 0.4, 0.3, 100).t


def test_williams_is_undefined_where_no_three_variables_correlate_so() -> None:
    assert "K is not positive" in (williams_test(0.9, 0.1, 0.9, 50).reason or "")
    assert math.isnan(williams_test(0.5, 0.4, 0.3, 3).p)
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        williams_test(1.2, 0.4, 0.3, 30)


# ---- order


def test_texts_are_ordered_as_people_order_them() -> None:
    # Of the five pairs that people rate apart: three in order, one tied, one reversed.
    result = concordance([1, 3, 2, 2], [1, 2, 2, 3])
    assert result == pytest.approx((3 + 0.5) / 5)
    assert concordance([5, 4, 3, 2, 1], [1, 2, 3, 4, 5]) == 0
    assert concordance([1, 1, 1], [1, 2, 3]) == 0.5
    assert concordance([1] * 20, list(range(20))).interval.covers(0.5)
    assert "alike" in concordance([1, 2], [3, 3]).reason


def test_systems_are_held_against_each_other_pair_by_pair() -> None:
    # Sixty rows of each two systems. People: x beats y 48:12 and z always, y beats z 31:29.
    systems = [("x", "y")] * 60 + [("x", "z")] * 60 + [("y", "z")] * 60
    people = [(1, 0)] * 48 + [(0, 1)] * 12 + [(1, 0)] * 60 + [(1, 0)] * 31 + [(0, 1)] * 29
    order = system_order(systems, people, people)
    assert list(order.people) == ["x", "y", "z"]
    assert order.people["x"] == pytest.approx(108 / 120)
    assert order.people["y"] == pytest.approx((12 + 31) / 120)
    assert [pair.matches for pair in order.neighbours] == [True, None]
    upside_down = system_order(systems, [(b, a) for a, b in people], people)
    assert [pair.matches for pair in upside_down.neighbours] == [False, None]
    assert upside_down.pairs[0].judge == pytest.approx(-(108 - 43) / 120)


# ---- classes

RNG_0 = np.random.default_rng(0)
TRUTH = RNG_0.integers(0, 2, 150)
SAID = np.where(RNG_0.random(150) < 0.75, TRUTH, 1 - TRUTH)
SCORES = TRUTH + RNG_0.normal(size=150)


@for_each("ours", [precision, recall, f1, balanced_accuracy])
def test_a_statistic_of_classes_is_that_of_scikit_learn(ours) -> None:
    from sklearn import metrics as sk

    assert balanced_accuracy(["A", "tie", "B", "B"], ["A", "A", "B", "B"]) == 0.75
    result = ours(SAID, TRUTH)
    theirs = sk.recall_score if ours is recall else getattr(sk, f"{ours.__name__}_score")
    assert result == pytest.approx(theirs(TRUTH, SAID), abs=1e-12)
    assert result.interval.low < result < result.interval.high
    clustered = ours(SAID, TRUTH, groups=np.arange(150) // 5)
    assert clustered == result
    assert clustered.interval.low < result < clustered.interval.high


def test_one_or_two_items_of_a_class_have_no_range() -> None:
    for ours in (cohen_kappa, balanced_accuracy, f1):
        few, enough = ([1] * count + [0] * 40 for count in (2, 3))
        assert ours(few, few) == 1
        assert ours(few, few).interval is None
        assert "fewer than 3" in (ours(few, few).no_interval or "")
        assert ours(enough, enough).interval is not None
    assert correlate([1, 2, 3, 4, 5, 7, 6], range(7)).no_interval == "fewer than 8 items"


def test_a_failed_judgment_is_left_out_of_balanced_accuracy_or_wrong() -> None:
    predictions, truth = [1, 1, None, 0, 1, None], [1, 1, 1, 0, 0, None]
    assert balanced_accuracy(predictions, truth) == (2 / 2 + 1 / 2) / 2
    wrong = balanced_accuracy(predictions, truth, "wrong", groups=[1, 1, 2, 2, 3, 3])
    assert wrong == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert wrong.n == 5
    assert sum(wrong.n_failed.values()) == 2
    assert balanced_accuracy([None, None], [0, 1], "wrong") == 0
    with pytest.raises(OptionError, match="errors"):
        balanced_accuracy(predictions, truth, cast("Any", "never"))


def test_what_is_undefined_says_why() -> None:
    assert balanced_accuracy([1, 0], [1, 1]).reason == "the labels have fewer than two classes"
    assert precision([0, 0], [1, 0]).reason == "the judge never says 1"
    assert recall([0, 1], [0, 0]).reason == "no label is 1"
    assert f1([0, 0], [0, 0]).reason == "neither label nor judge is ever 1"
    assert auc([0.1, 0.2], [1, 1]).reason == "one of the two classes is absent"
    assert math.isnan(balanced_accuracy([None], [1]))


def test_an_area_of_too_few_has_no_interval() -> None:
    result = auc([0.9, 0.8, 0.1, 0.2, 0.3], [1, 1, 0, 0, 0])
    assert (result, result.interval) == (1.0, None)
    assert result.no_interval == "too few items of a class"
    perfect = auc([0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4], [1] * 4 + [0] * 4)
    assert perfect.interval.high == pytest.approx(1.0)
    assert perfect.interval.low < 0.6


def test_auc_is_how_often_a_positive_scores_higher() -> None:
    from sklearn import metrics as sk

    # Positives .9 and .4 against negatives .4 and .1: 1, 1, ½, 1 of 4.
    assert auc([0.9, 0.4, 0.4, 0.1], [1, 1, 0, 0]) == pytest.approx(3.5 / 4)
    assert auc(SCORES, TRUTH) == pytest.approx(sk.roc_auc_score(TRUTH, SCORES))
    assert auc(-SCORES, TRUTH) == pytest.approx(1 - auc(SCORES, TRUTH))
    assert auc(SAID, TRUTH) == pytest.approx(balanced_accuracy(SAID, TRUTH))
    verdicts: list[Any] = [{"label": 1, "score": 0.9}, {"label": 0, "score": None, "failures": []}]
    assert auc([*verdicts, 0.1], [1, 1, 0]).n_failed == {"not_judged": 1}


def delong_by_definition(x, y) -> float:
    """The variance of the area by DeLong's own sums over all pairs."""
    a, b = x[y == 1], x[y == 0]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return wins.mean(1).var(ddof=1) / len(a) + wins.mean(0).var(ddof=1) / len(b)


def test_delongs_error_is_that_of_the_definition() -> None:
    for x in (SCORES, SCORES.round()):
        assert auc(x, TRUTH).se ** 2 == pytest.approx(delong_by_definition(x, TRUTH))


def test_of_the_surest_share_ties_are_taken_together_and_the_rest_left() -> None:
    # Sure .9 on 2 of 8 and right; .6 on 4, half of them right; .5 on 2 and wrong.
    sure = [0.9, 0.9, 0.6, 0.6, 0.6, 0.6, 0.5, 0.5]
    answers, labels = ["A"] * 8, ["A", "A", "A", "A", "B", "B", "B", "B"]
    curve = metrics.abstention_curve(answers, labels, sure, (0.1, 0.25, 0.5, 1.0))
    assert [(share, float(right)) for share, right in curve] == [
        *[(0.25, 1.0)] * 2,
        (0.75, pytest.approx(4 / 6)),
        (1.0, 0.5),
    ]
    grouped = metrics.abstention_curve(answers, labels, sure, (0.5,), groups=list("aabbccdd"))
    assert grouped[0][1].n == 6
    assert metrics.abstention_curve([], [], [], (0.5,)) == []
