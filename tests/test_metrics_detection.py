"""Judges as detectors: classes, scores, signal detection."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest

from langchain_judges.errors import OptionError
from langchain_judges.metrics import (
    auc,
    balanced_accuracy,
    f1,
    precision,
    recall,
)
from tests.cases import for_each

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 150)
SAID = np.where(RNG.random(150) < 0.75, TRUTH, 1 - TRUTH)
SCORES = TRUTH + RNG.normal(size=150)


@for_each("ours", [precision, recall, f1, balanced_accuracy])
def test_a_statistic_of_classes_is_that_of_scikit_learn(ours) -> None:
    from sklearn import metrics as sk

    result = ours(SAID, TRUTH)
    theirs = getattr(sk, f"{ours.__name__}_score")
    assert result == pytest.approx(theirs(TRUTH, SAID), abs=1e-12)
    assert result.interval.low < result < result.interval.high
    clustered = ours(SAID, TRUTH, groups=np.arange(150) // 5)
    assert clustered == result
    assert clustered.interval.low < result < clustered.interval.high


def test_more_classes_than_two() -> None:
    from sklearn import metrics as sk

    truth, predictions = RNG.integers(0, 3, 90), RNG.integers(0, 3, 90)
    assert balanced_accuracy(predictions, truth) == pytest.approx(
        sk.balanced_accuracy_score(truth, predictions)
    )
    letters = [[("A", "B", "tie")[v] for v in side] for side in (predictions, truth)]
    assert balanced_accuracy(letters[0], letters[1]) == balanced_accuracy(predictions, truth)


def test_an_answer_that_is_no_label_is_wrong() -> None:
    assert balanced_accuracy(["A", "tie", "B", "B"], ["A", "A", "B", "B"]) == 0.75


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


def test_always_saying_one_has_half_of_balanced_accuracy() -> None:
    assert balanced_accuracy([1] * 100, [1] * 99 + [0]) == 0.5


def test_what_is_undefined_says_why() -> None:
    assert balanced_accuracy([1, 0], [1, 1]).reason == "the labels have fewer than two classes"
    assert precision([0, 0], [1, 0]).reason == "the judge never says 1"
    assert recall([0, 1], [0, 0]).reason == "no label is 1"
    assert f1([0, 0], [0, 0]).reason == "neither label nor judge is ever 1"
    assert auc([0.1, 0.2], [1, 1]).reason == "one of the two classes is absent"
    assert math.isnan(balanced_accuracy([None], [1]))


@pytest.mark.figures
def test_the_interval_of_balanced_accuracy_covers_at_its_rate() -> None:
    rng, covered = np.random.default_rng(3), 0
    for trial in range(200):
        truth = (rng.random(200) < 0.3).astype(int)
        right = np.where(truth == 1, rng.random(200) < 0.7, rng.random(200) < 0.9)
        predictions = np.where(right, truth, 1 - truth)
        covered += balanced_accuracy(predictions, truth, seed=trial).interval.covers(0.8)
    assert 0.90 < covered / 200 < 0.99


@pytest.mark.figures
@pytest.mark.parametrize("measure", [balanced_accuracy, f1])
def test_intervals_of_rare_classes_cover_and_are_never_of_no_width(measure) -> None:
    # Two of twenty are positive; found .75 and let alone .85 of the time: of a hundred items
    # 7.5 are hits, 2.5 misses, 13.5 false alarms and 76.5 rejected.
    truths = {balanced_accuracy: 0.8, f1: 15 / 31}
    rng, covered, trials = np.random.default_rng(16), 0, 0
    for _ in range(120):
        truth = (rng.random(20) < 0.1).astype(int)
        right = rng.random(20) < np.where(truth == 1, 0.75, 0.85)
        result = measure(np.where(right, truth, 1 - truth), truth)
        if result.interval is None:
            continue
        trials += 1
        covered += result.interval.covers(truths[measure])
        assert result.interval.high - result.interval.low > 0.05
    assert trials > 80
    assert covered / trials > 0.89


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
    verdicts: list[Any] = [
        {"label": 1, "score": 0.9},
        {"label": 0, "score": None, "failures": []},
    ]
    assert auc([*verdicts, 0.1], [1, 1, 0]).n_failed == {"not_judged": 1}


def delong_by_definition(x, y) -> float:
    """Return the variance of the area by DeLong's own sums over all pairs."""
    a, b = x[y == 1], x[y == 0]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return wins.mean(1).var(ddof=1) / len(a) + wins.mean(0).var(ddof=1) / len(b)


def test_delongs_error_is_that_of_the_definition() -> None:
    for x in (SCORES, SCORES.round()):
        assert auc(x, TRUTH).se ** 2 == pytest.approx(delong_by_definition(x, TRUTH))


def test_the_clustered_interval_of_auc_is_wider_where_items_repeat() -> None:
    groups = np.repeat(np.arange(40), 5)
    truth, scores = np.repeat(TRUTH[:40], 5), np.repeat(SCORES[:40], 5)
    plain, clustered = auc(scores, truth), auc(scores, truth, groups=groups)
    assert clustered == plain
    assert clustered.se > 1.7 * plain.se
