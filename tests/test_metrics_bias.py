"""What judges like beside quality; simulated judges give back what was put into them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from langchain_judges.errors import OptionError
from langchain_judges.metrics import (
    length_bias,
    length_slope,
    position_bias,
    self_enhancement,
)
from langchain_judges.metrics.slopes import preference_slopes
from tests.cases import for_each


def test_a_judge_that_takes_the_first_slot_flips_always() -> None:
    result = position_bias(["A"] * 20, ["B"] * 20)
    assert (result.flip_rate, result.toward_first, result.first_slot_rate) == (1.0, 1.0, 1.0)
    assert result.slot == "first"
    assert position_bias(["B"] * 20, ["A"] * 20).slot == "second"


def test_a_change_into_a_tie_is_a_flip_and_a_failed_order_none() -> None:
    refused = {"preference": None, "failures": [{"reason": "refusal"}]}
    result = position_bias(["A", "tie", "A", "tie", refused], ["A", "B", "B", "tie", "A"])
    assert result.flip_rate == pytest.approx(2 / 4)
    assert result.flip_rate.n_failed == {"refusal": 1}
    # Winners: A first, A second; B second order = first slot; A first, B first.
    assert (result.first_slot_rate, result.first_slot_rate.n) == (pytest.approx(4 / 5), 5)
    assert result.slot == "first"


def judged_by_quality(rng, items: int, label_accuracy: float, pull: float):
    """Return verdicts, lengths and labels; the better text is longer, the judge .9 right."""
    quality = rng.choice([1, -1], items)
    length = 0.8 * quality + rng.normal(size=items)
    odds = math.log(9) * quality + pull * length
    judged = np.where(rng.random(items) < 1 / (1 + np.exp(-odds)), "A", "B").tolist()
    right = rng.random(items) < label_accuracy
    return judged, length, np.where((quality > 0) == right, "A", "B").tolist()


# A judge right in .9 without a lean, labels right in .95 and .8: labels as they are taken for
# the truth accuse it in nearly every sample of this size.
@for_each("label_accuracy", [0.8, 0.95])
def test_labels_that_are_sometimes_wrong_do_not_accuse_the_judge(label_accuracy) -> None:
    judged, length, labels = judged_by_quality(
        np.random.default_rng(24), 1000, label_accuracy, 0.0
    )
    assert length_slope(judged, length, 0 * length).interval.low > 0  # better texts are longer
    exact = length_slope(judged, length, 0 * length, labels, label_accuracy=1)
    assert exact.interval.low > 0
    assert length_slope(judged, length, 0 * length, labels).interval.covers(0.0)


def test_a_strong_pull_of_length_is_seen_through_wrong_labels() -> None:
    judged, length, labels = judged_by_quality(np.random.default_rng(23), 2000, 0.9, 1.5)
    assert length_slope(judged, length, 0 * length, labels).interval.low > 0
    # With the labels' accuracy known, what was put in: per standard deviation of the length.
    adjustment = length_slope(judged, length, 0 * length, labels, label_accuracy=0.9)
    assert adjustment.interval.covers(1.5 * float(np.std(length)))
    exact = length_slope(judged, length, 0 * length, labels, label_accuracy=1)
    assert exact.interval.low > 1.5 * float(np.std(length))
    with pytest.raises(OptionError, match="label_accuracy"):
        length_slope(judged, length, 0 * length, labels, label_accuracy=0.5)


@for_each("clustered", [False, True])
def test_slopes_and_their_errors_are_those_of_statsmodels(clustered) -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    quality, length = rng.normal(size=(2, 200))
    odds = 1.5 * quality + 0.6 * length
    first = np.where(rng.random(200) < 1 / (1 + np.exp(-odds)), "A", "B").tolist()
    y, groups = [{"A": 1.0, "B": 0.0}[each] for each in first], np.arange(200) // 4
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": groups}}
    model = sm.GLM(y, sm.add_constant(np.stack([quality, length], 1)), sm.families.Binomial())
    theirs = model.fit(**kind) if clustered else model.fit(cov_type="HC1")
    features = {"quality": quality, "length": length}
    ours = preference_slopes(first, features, groups=groups if clustered else None).values()
    assert [float(each) for each in ours] == pytest.approx(theirs.params.tolist())
    # Its HC1 of this model lacks n / (n − k), the 1 of its name.
    wider = 1 if clustered else math.sqrt(200 / 197)
    assert [each.se for each in ours] == pytest.approx((wider * theirs.bse).tolist(), rel=1e-6)
    apart = preference_slopes(
        ["A", "A", "A", "B", "B", "B"] * 5, {"lead": [1, 2, 3, -1, -2, -3] * 5}
    )
    assert "without error" in (apart["lead"].reason or "")


# B is said in four of twenty groups: Student's t of three degrees of freedom reaches 3.182
# standard errors, where nineteen would reach 2.093.
def test_slopes_are_as_sure_as_the_groups_that_hold_the_rarer_verdict() -> None:
    rng = np.random.default_rng(26)
    groups = np.arange(80) // 4
    judged = np.where((groups < 4) & (np.arange(80) % 4 < 2), "B", "A").tolist()
    slope = preference_slopes(judged, {"lead": rng.normal(size=80)}, groups=groups)["lead"]
    assert slope.interval.high - slope == pytest.approx(3.182 * slope.se, rel=1e-3)
    alone = ["B"] * 5 + ["A"] * 75
    few = preference_slopes(alone, {"lead": rng.normal(size=80)}, groups=groups)["lead"]
    assert few.no_interval == "too few groups"


def test_items_without_a_feature_are_counted_apart() -> None:
    judged = ["A", "B", "A", "B", None, "A", "B"] * 3
    result = length_slope(judged, range(21), [9] * 21, [None, *([1, -1] * 10)])
    assert (result.n, result.n_failed) == (17, {"no_feature": 1, "not_judged": 3})
    nothing = length_slope([None, None], [1, 2], [2, 1], ["A", "B"])
    assert (math.isnan(nothing), nothing.n) == (True, 0)


def test_length_bias_is_the_papers_and_leaves_out_equal_lengths_and_failures() -> None:
    # Four votes for the shorter text; the judge: shorter, longer, tie, longer.
    result = length_bias(["A", "B", "tie", "B"], ["A"] * 4, [1] * 4, [2] * 4)
    assert (result, result.n) == (pytest.approx(3 / 4), 4)
    result = length_bias(["B", None, "B", "A"], ["A"] * 4, [1, 1, 3, 9], [2, 2, 3, 2])
    assert (result, result.n, result.n_failed) == (1.0, 1, {"not_judged": 1})
    assert "never the preferred" in (length_bias(["A"], ["A"], [2], [1]).reason or "")


def test_graded_preferences_pull_as_far_as_they_prefer() -> None:
    slope = preference_slopes([0.9, 0.1, 0.6, 0.3] * 9, {"lead": [2, -2, 1, -1] * 9})["lead"]
    assert slope.interval.low > 0.5


def test_self_enhancement_is_measured_on_the_judges_own_pairs() -> None:
    systems = [("me", "x"), ("x", "me"), ("x", "y"), ("me", "me"), ("me", "y")]
    result = self_enhancement(
        ["A", "B", "A", "A", None], ["A", "A", "B", "A", "B"], systems, "me"
    )
    assert (result.agreement, result.agreement.n) == (0.5, 2)
    assert (result.own_win_rate, result.human_win_rate, result.excess) == (1.0, 0.5, 0.5)
    assert result.agreement.n_failed == {"not_judged": 1}
    family = self_enhancement(["tie"] * 5, ["A"] * 5, systems, ["me", "y"])
    assert family.agreement.n == 3
