"""Few labels: what people would say, how many more, which rows, and when a judge may decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy

from langchain_judges.errors import OptionError
from langchain_judges.metrics import (
    alt_test,
    confidence_calibration,
    labels_needed,
    ppi_mean,
    selective_cascade,
    selective_threshold,
)
from langchain_judges.metrics.annotators import _shortfall_p
from langchain_judges.metrics.confidence import _upper_bounds
from tests.cases import for_each

Y, F, U = (list(map(int, digits)) for digits in ("11010101", "11011100", "1011011101101101"))


# Worked out beforehand by the formulas of the papers: λ, the mean, its standard error.
@for_each(
    ("given", "expected"),
    [
        (1, (1, 0.687500, 0.223690)),
        (None, (0.326848, 0.645428, 0.168449)),
        (0, (0, 0.625000, 0.182981)),
    ],
)
def test_ppi_gives_the_figures_worked_out_beforehand(given, expected) -> None:
    result = ppi_mean(Y, F, U, lam=given)
    assert (result.lam, result, result.se) == pytest.approx(expected, abs=5e-7)
    assert (result.n, result.n_unlabelled) == (8, 16)


def test_an_estimate_of_verdicts_is_that_of_their_scores() -> None:
    labels, scores, more = [1, 0, 1, 1], [0.9, 0.2, 0.4, 0.8], [0.3, 0.6, 0.7]
    given = ([{"label": "fine", "score": score} for score in own] for own in (scores, more))
    assert ppi_mean(labels, *given).to_dict() == ppi_mean(labels, scores, more).to_dict()


def test_two_labels_are_the_fewest_for_an_estimate() -> None:
    assert ppi_mean([0, 1], [0, 1], [0, 1, 1], lam=0) == 0.5
    result = ppi_mean([1], [1], [0, 1, 1])
    assert result.reason == "fewer than two labelled or unlabelled items"


def test_a_threshold_is_never_between_equal_confidences() -> None:
    # All 60 of .9 are right, and of 160 of .8 the last 60 are wrong: 37 % of those.
    answers = ["A"] * 160 + ["B"] * 60
    gate = selective_threshold(answers, [0.9] * 60 + [0.8] * 160, ["A"] * 220, alpha=0.1)
    assert (gate.value, gate.coverage) == (0.9, pytest.approx(60 / 220))
    assert gate.needed is None


def test_ppi_is_that_of_ppi_python() -> None:
    rng = np.random.default_rng(0)
    f, u = rng.normal(size=2000), rng.normal(size=9000)
    y = f + rng.normal(size=2000)
    # ppi_mean_pointestimate(y, f, u, lam=lam) and ppi_mean_ci(…, alpha=0.05) of 0.2.3
    assert ppi_mean(y, f, u, lam=0.5) == pytest.approx(0.00324496, abs=5e-9)
    result = ppi_mean(y, f, u, lam=1)
    assert result == pytest.approx(0.02247627, abs=5e-9)
    assert result.interval == pytest.approx((-0.02548805, 0.07044059), abs=3e-3)


def test_an_estimate_of_a_share_stays_one() -> None:
    result = ppi_mean([1, 1, 0, 1, 1, 1], [1, 0, 0, 1, 0, 1], [1] * 50)
    assert result <= 1
    assert 0 <= result.interval.low < result.interval.high <= 1


def test_few_labels_of_a_rare_class_leave_room_for_it() -> None:
    # Ten labels, none of the class: 2 pseudo-labels of variance 1/n² each, by Student's t on
    # 9 degrees of freedom: 2.2622 √2 / 10.
    result = ppi_mean([0] * 10, [0] * 10, [0] * 100)
    assert result.interval == pytest.approx((0, 2.262157 * math.sqrt(2) / 10), abs=1e-6)


def test_the_alt_test_by_hand() -> None:
    # Item 1: judge x like the others; item 2: judge y unlike them. Against annotator a:
    # item 1 both right (1, 1), item 2 only a right (0, 1): advantage ½, rival 1.
    people: dict[str, Sequence[Any]] = {"a": ["x", "x"], "b": ["x", "x"], "c": ["x", "x"]}
    result = alt_test(["x", "y"], people, least_items=2)
    assert result.advantage == 0.5
    assert (result.annotators["a"].rival, result.passed) == (1.0, False)


def test_annotators_are_tested_as_scipy_does() -> None:
    rng = np.random.default_rng(6)
    lead = (rng.random(50) < 0.3).astype(float)
    theirs = scipy.stats.ttest_1samp(-lead, -0.2, alternative="less").pvalue
    assert _shortfall_p(lead, -0.2) == pytest.approx(theirs)


def test_annotators_are_tested_at_once_however_they_hang_together() -> None:
    # Each p-value is .0456: below .05, and above .05 · 6 / 11 of Benjamini and Yekutieli.
    people = {name: [1] * 50 for name in "abc"}
    found = alt_test([0] * 6 + [1] * 44, people)
    assert [round(each.p, 4) for each in found.annotators.values()] == [0.0456] * 3
    assert found.winning_rate == 0
    assert alt_test([0] * 5 + [1] * 45, people).winning_rate == 1


def test_equal_confidences_are_in_one_bin() -> None:
    found = confidence_calibration(["A"] * 60, ["A"] * 60, [0.9] * 60)
    assert [(each.confidence, each.agreement.n) for each in found.bins] == [(0.9, 60)]


def test_annotators_with_few_items_are_not_tested() -> None:
    people: dict[str, Sequence[Any]] = {"a": [1] * 40, "b": [1] * 40, "c": [1] * 5 + [None] * 35}
    results = alt_test([1] * 40, people)
    assert (results.n, results.n_failed) == (2, {"annotator_with_few_items": 1})
    assert alt_test([1], {"a": [1], "b": [1]}).passed is None


def sure(rng, n: int, skill: float = 1.0):
    """Answers, confidences and labels of a judge that is right as often as it says."""
    confidence = 0.5 + 0.5 * rng.random(n) ** (1 / skill)
    return np.where(rng.random(n) < confidence, "A", "B"), confidence, ["A"] * n


# The first 60 are right, then all are wrong. Of the walks from 100, 50 and 42 items (and 25
# and 10, which is fewer than can pass), that from 100 fails at once; the one from 50 has a
# sixth of δ = .1, and goes on while its bound holds. Half of all items were not judged.
def test_the_threshold_by_hand() -> None:
    answers = ["A"] * 60 + ["B"] * 40
    levels = [1 - i / 1000 for i in range(100)]
    verdicts = [
        {"preference": answer, "confidence": level, "failures": []}
        for answer, level in zip(answers, levels, strict=True)
    ]
    verdicts += [{"preference": None, "failures": [{"reason": "timeout"}]}] * 100
    result = selective_threshold(verdicts, None, ["A"] * 200, alpha=0.1)
    sizes = np.arange(61, 101)
    bounds = _upper_bounds(sizes - 60, sizes, 0.1 / 6)
    level = int(sizes[bounds > 0.1][0]) - 1
    assert result.value == levels[level - 1]
    assert result.bound == pytest.approx(bounds[level - 61])
    assert result.agreement == pytest.approx(60 / level)
    assert (result.coverage, result.n_failed) == (level / 200, {"timeout": 100})


# Clopper and Pearson 1934, as any table has it: none of 30 at 95 % is 1 - .05 ** (1 / 30).
def test_the_bound_of_a_threshold_is_exact() -> None:
    bounds = _upper_bounds(np.array([0, 40]), np.array([30, 40]), 0.05)
    assert bounds.tolist() == pytest.approx([1 - 0.05 ** (1 / 30), 1.0])


def test_a_cascade_hands_on_what_the_cheap_judge_is_not_sure_of() -> None:
    rng = np.random.default_rng(9)
    cheap, dear = sure(rng, 1500, 1.0), sure(rng, 1500, 6.0)
    judges = [cheap[:2], dear[:2]]
    result = selective_cascade(judges, cheap[2], alpha=0.1)
    alone = selective_threshold(*cheap, alpha=0.1)
    assert result.coverage > alone.coverage + 0.1
    assert result.agreement > 0.9
    assert sum(result.shares) == pytest.approx(result.coverage)


def test_a_judge_that_says_nothing_of_its_certainty_takes_no_share_of_delta():
    # Of 30 right answers the bound is 1 - delta^(1/30): 9.5 % at 0.05, 11.6 % at half of it.
    answers, sure = ["A"] * 30, [0.9] * 30
    silent = selective_cascade([(answers, [None] * 30), (answers, sure)], answers, delta=0.05)
    alone = selective_cascade([(answers, sure)], answers, delta=0.05)
    both = selective_cascade([(answers, sure), (answers, sure)], answers, delta=0.05)
    assert silent.shares == [0.0, *alone.shares] == [0.0, 1.0]
    assert both.shares == [0.0, 0.0]


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


def abstained(wrong: float, draws: int = 200) -> float:
    """Share of draws in which nothing is taken of 200 labels, where confidence says nothing."""
    rng, count = np.random.default_rng(4), 0
    for _ in range(draws):
        answers = np.where(rng.random(200) < wrong, "B", "A")
        result = selective_threshold(answers, rng.random(200), ["A"] * 200)
        count += math.isinf(result.value)
    return count / draws


@pytest.mark.figures
def test_a_judge_near_the_limit_mostly_abstains() -> None:
    # Wrong 8 times in 100 where 10 are allowed: no test at .1 passes more than P(X ≤ 14) of
    # Bin(200, .08) = .37 of samples, and with half of δ it is .18.
    assert abstained(0.08) == pytest.approx(0.82, abs=0.1)
    # Wrong 11 times in 100: whatever is taken breaks the limit.
    assert abstained(0.11) > 0.87


def test_abstaining_says_how_many_labels_would_do() -> None:
    answers = ["A"] * 46 + ["B"] * 4
    result = selective_threshold(answers, [0.9] * 50, ["A"] * 50)
    assert result.value == math.inf
    # 8 % wrong where 10 % are allowed: (1.645 σ / .02)² with σ = √(.08 · .92), about 500, and
    # Clopper and Pearson's bound is higher.
    assert 450 < result.needed < 750
    assert selective_threshold(["B"] * 50, [0.9] * 50, ["A"] * 50).needed is None


# ---- which rows


def test_smaller_leads_take_more_labels() -> None:
    few, many = labels_needed(0.1, 0.2), labels_needed(0.05, 0.2)
    # Connor 1987: (1.96 √d + .84 √(d − lead²))² / lead², with d = .2: 155 and 625.
    assert few == pytest.approx(155, rel=0.15)
    assert many == pytest.approx(625, rel=0.1)
    assert {labels_needed(0.1, 0.2) for _ in range(4)} == {few}
    with pytest.raises(OptionError, match="at most `disagreement`"):
        labels_needed(0.3, 0.2)


def test_a_threshold_that_takes_nothing_has_no_agreement_and_names_what_is_wrong() -> None:
    gate = selective_threshold(["B"] * 50, [0.9] * 50, ["A"] * 50)
    assert gate.agreement.reason == "nothing is taken"
    with pytest.raises(OptionError, match="`delta`"):
        selective_threshold(["A"], [0.9], ["A"], delta=2)


def test_a_verdict_without_a_confidence_is_never_taken_and_counted() -> None:
    gate = selective_threshold(["A"] * 60 + ["B"] * 5, [0.9] * 60 + [None] * 5, ["A"] * 65)
    assert (gate.agreement, gate.agreement.n, gate.n) == (1.0, 60, 65)


def test_labels_that_would_do_are_the_fewest() -> None:
    # None wrong, at half of δ = .1: 1 - .05 ** (1 / n) is at most .1 from 29 on, and 30 are
    # the fewest that are ever taken.
    assert selective_threshold(["A"] * 9, [0.9] * 9, ["A"] * 9).needed == 30
    # Wrong in a hair less than may be, it would take ten million: that is no answer.
    many = ["A"] * 1000
    assert (
        selective_threshold(many, [0.9] * 1000, ["B"] * 99 + many[99:], alpha=0.0991).needed is None
    )
