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
    win_rate,
)
from langchain_judges.metrics.slopes import preference_slopes, style_features
from tests.cases import for_each

BETA, PHI, SHARPNESS = 0.8, 0.6, 1.5


def simulated(seed: int = 0, items: int = 4000, beta: float = BETA, phi: float = PHI):
    """Return a judge's preferences in both orders, and what they came from.

    logit P(A) = SHARPNESS · quality + phi · length lead ± beta for the first slot.
    """
    rng = np.random.default_rng(seed)
    quality, length = rng.normal(size=(2, items))

    def asked(slot: int):
        odds = SHARPNESS * quality + phi * length + slot * beta
        return np.where(rng.random(items) < 1 / (1 + np.exp(-odds)), "A", "B").tolist()

    return asked(1), asked(-1), quality, length, asked


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
    assert result.excess is None


def test_the_noise_of_repetition_is_subtracted() -> None:
    _, _, _, _, requests = simulated(beta=0.0)
    first, again, second = requests(1), requests(1), requests(-1)
    repeats = list(zip(first, again, strict=True))
    noisy = position_bias(first, second, repeats=repeats)
    assert noisy.flip_rate > 0.2  # a judge without any bias flips all the same
    assert noisy.excess.interval.covers(0.0)
    first, second, *_, requests = simulated(beta=1.5)
    biased = position_bias(first, second, repeats=list(zip(first, requests(1), strict=True)))
    assert biased.excess.interval.low > 0.05
    assert biased.excess == pytest.approx(biased.flip_rate - biased.repetition_noise)


def test_the_slopes_are_those_that_were_put_in() -> None:
    first, second, quality, length, _ = simulated()
    result = preference_slopes(
        first + second,
        {
            "slot": [1] * 4000 + [-1] * 4000,
            "length": [*length, *length],
            "quality": [*quality, *quality],
        },
        groups=[*range(4000)] * 2,
    )
    assert result["slot"].interval.covers(BETA)
    assert result["length"].interval.covers(PHI)
    assert result["quality"].interval.covers(SHARPNESS)
    assert result["intercept"].interval.covers(0.0)
    assert result["slot"].se < 0.05


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

    first, _, quality, length, _ = simulated(1, 200)
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


# Three and two votes; the second item's majority is a tie. The judge says longer, shorter.
@for_each(("unit", "value", "n"), [("vote", 2 / 3, 3), ("sample", 1.0, 1)])
def test_length_bias_counts_votes_or_items(unit, value, n) -> None:
    votes = [["A", "A", "B"], ["A", "tie"]]
    result = length_bias(["B", "A"], votes, [1, 1], [2, 2], unit=unit)
    assert (result, result.n) == (pytest.approx(value), n)


def test_length_bias_is_the_papers_and_leaves_out_equal_lengths_and_failures() -> None:
    # Four votes for the shorter text; the judge: shorter, longer, tie, longer.
    result = length_bias(["A", "B", "tie", "B"], ["A"] * 4, [1] * 4, [2] * 4)
    assert (result, result.n) == (pytest.approx(3 / 4), 4)
    result = length_bias(["B", None, "B", "A"], ["A"] * 4, [1, 1, 3, 9], [2, 2, 3, 2])
    assert (result, result.n, result.n_failed) == (1.0, 1, {"not_judged": 1})
    assert "never the preferred" in (length_bias(["A"], ["A"], [2], [1]).reason or "")


@for_each(
    ("text", "counts"),
    [
        ("One line of prose, then - a dash and 3 apples.", (0, 0, 0, 0)),
        ("# Fruit\n- apples\n- pears\n1. first\n**bold**\n```\ncode\n```\n", (3, 1, 1, 1)),
        ("Run:\n```sh\n# a comment\n- x\n__init__\n```\n# Header", (0, 1, 0, 1)),
    ],
)
def test_style_is_counted_and_not_in_code(text, counts) -> None:
    features = style_features(text)
    assert features.pop("characters") == len(text)
    names = ("list_items", "headers", "bold", "code_blocks")
    assert tuple(features[name] for name in names) == counts


def test_graded_preferences_win_as_far_as_they_prefer() -> None:
    verdicts = [{"preference": "A", "score": 0.7}, {"preference": "tie", "score": 0.5}]
    assert win_rate([0.9, 0.2, "tie"]) == pytest.approx(1.6 / 3)
    assert win_rate(verdicts) == 0.75
    assert win_rate(verdicts, graded=True) == pytest.approx(0.6)
    with pytest.raises(OptionError, match="'A', 'tie', 'B'"):
        win_rate([1.5])
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
