"""Intervals keep their promise where labels are few, classes rare and judges perfect."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from langchain_judges.metrics import (
    concordance,
    confidence_calibration,
    order_accuracy,
    ppi_mean,
    selective_threshold,
    stratified_ppi_mean,
    system_order,
)
from tests.benchmarks.coverage import SETTINGS, STANDARD, covered

FAST = ["accuracy", "offset", "few labels", "few labels by stratum"]
SMALL = ["n=10", "10%,n=20", "5%,n=50", "20x5", "perfect,n=20", "useless,n=20"]


@pytest.mark.figures
@pytest.mark.parametrize("measure", FAST)
@pytest.mark.parametrize("setting", SMALL)
def test_intervals_hold_the_truth_as_often_as_the_standard_says(measure, setting) -> None:
    at = next(each for each in SETTINGS if each.name == setting)
    share, none, _ = covered(measure, at, 250)
    # A share of .92 of 250 samples has a standard error of .017.
    assert none == 1 or share > STANDARD - 2.5 * 0.017


def test_an_estimate_of_a_share_stays_one() -> None:
    result = ppi_mean([1, 1, 0, 1, 1, 1], [1, 0, 0, 1, 0, 1], [1] * 50)
    assert result <= 1
    assert 0 <= result.interval.low < result.interval.high <= 1


def test_few_labels_of_a_rare_class_leave_room_for_it() -> None:
    # Ten labels, none of the class: 2 pseudo-labels of variance 1/n² each, by Student's t on
    # 9 degrees of freedom: 2.2622 √2 / 10.
    result = ppi_mean([0] * 10, [0] * 10, [0] * 100)
    assert result.interval == pytest.approx((0, 2.262157 * math.sqrt(2) / 10), abs=1e-6)
    halves = [0] * 5 + [1] * 5
    stratified = stratified_ppi_mean([0] * 10, [0] * 10, halves, [0] * 100, [0, 1] * 50)
    # Each half weighs ½ and has 5 of the 10 labels: 2 · 2 · ¼ / 50, on 8 degrees of freedom.
    half = 2.306004 * math.sqrt(2 * 2 / 4 / 50)
    assert stratified.interval == pytest.approx((0, half), abs=1e-6)


def test_an_unread_order_beside_a_right_one_counts_as_right_by_the_rule_of_judgebench() -> None:
    first, second = ["A", "A", None, "A", "B"], [None, "B", None, "A", None]
    labels = ["A"] * 5
    # Right and unread is right; right and wrong, both unread, wrong and unread are not.
    assert order_accuracy(first, second, labels, "sign_of_sum") == 2 / 5
    assert order_accuracy(first, second, labels, "sign_of_sum", "drop") == 1 / 2
    assert order_accuracy(first, second, labels, "strict") == 1 / 5


def test_a_perfectly_calibrated_judge_is_told_from_a_boastful_one() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 60)
    right = np.where(rng.random(60) < sure, "A", "B")
    honest = confidence_calibration(right, ["A"] * 60, sure)
    assert 0.05 < honest.ece_by_chance < 0.25
    assert honest.ece < honest.ece_by_chance
    boastful = confidence_calibration(["A", "B"] * 30, ["A"] * 60, [0.95] * 60)
    assert boastful.ece == pytest.approx(0.45)
    assert boastful.ece > boastful.ece_by_chance


def abstained(guarantee: Literal["each", "average"], wrong: float, draws: int = 200) -> float:
    """Return how often nothing is taken of 200 labels, where confidence says nothing."""
    rng, count = np.random.default_rng(4), 0
    for _ in range(draws):
        answers = np.where(rng.random(200) < wrong, "B", "A")
        result = selective_threshold(answers, rng.random(200), ["A"] * 200, guarantee=guarantee)
        count += math.isinf(result.value)
    return count / draws


@pytest.mark.figures
def test_a_guarantee_on_average_halves_the_abstention_of_a_good_judge() -> None:
    # Wrong 8 times in 100 where 10 are allowed: no test at .1 passes more than P(X ≤ 14) of
    # Bin(200, .08) = .37 of samples, and with half of δ it is .18; the average needs X ≤ 19,
    # which is .83.
    assert abstained("each", 0.08) == pytest.approx(0.82, abs=0.1)
    assert abstained("average", 0.08) < 0.35
    # Wrong 11 times in 100: whatever is taken breaks the limit.
    assert abstained("each", 0.11) > 0.87


def test_the_average_rule_by_hand() -> None:
    # Nine right, then one wrong: with all ten (1 + 1) / (10 + 1) = .18, without it 1 / 11.
    answers, sure = ["A"] * 9 + ["B"], [1 - i / 100 for i in range(10)]
    result = selective_threshold(answers, sure, ["A"] * 10, guarantee="average")
    assert (result.value, result.bound) == (pytest.approx(0.92), pytest.approx(1 / 11))
    assert selective_threshold(answers, sure, ["A"] * 10).value == math.inf


def test_abstaining_says_how_many_labels_would_do() -> None:
    answers = ["A"] * 46 + ["B"] * 4
    result = selective_threshold(answers, [0.9] * 50, ["A"] * 50)
    assert result.value == math.inf
    # 8 % wrong where 10 % are allowed: (1.645 σ / .02)² with σ = √(.08 · .92), about 500, and
    # Clopper and Pearson's bound is higher.
    assert 450 < result.needed < 750
    assert selective_threshold(["B"] * 50, [0.9] * 50, ["A"] * 50).needed is None


def test_texts_are_ordered_as_people_order_them() -> None:
    # Of the five pairs that people rate apart: three in order, one tied, one reversed.
    result = concordance([1, 3, 2, 2], [1, 2, 2, 3])
    assert result == pytest.approx((3 + 0.5) / 5)
    assert concordance([5, 4, 3, 2, 1], [1, 2, 3, 4, 5]) == 0
    assert concordance([1, 1, 1], [1, 2, 3]) == 0.5
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
