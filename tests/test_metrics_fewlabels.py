"""Few labels and many judgments; selective judging; rankings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    alt_test,
    binomial_upper_bound,
    bradley_terry,
    corrected_rate,
    mean,
    neyman_allocation,
    post_stratified_mean,
    ppi_mean,
    ppi_plus_plus_mean,
    rogan_gladen,
    selective_cascade,
    selective_threshold,
    stratified_ppi_mean,
)
from tests.cases import for_each

Y, F, U = (list(map(int, digits)) for digits in ("11010101", "11011100", "1011011101101101"))


def test_ppi_gives_the_figures_worked_out_beforehand() -> None:
    result = ppi_mean(Y, F, U)
    assert (result, result.se) == pytest.approx((0.687500, 0.223690), abs=5e-7)
    assert (result.n, result.n_unlabelled) == (8, 16)


def test_ppi_plus_plus_gives_the_figures_worked_out_beforehand() -> None:
    result = ppi_plus_plus_mean(Y, F, U)
    measures = (result.lam, result, result.se)
    assert measures == pytest.approx((0.326848, 0.645428, 0.168449), abs=5e-7)
    assert ppi_mean(Y, F, U, lam=None) == result


def test_lambda_zero_is_the_labels_alone() -> None:
    assert ppi_mean(Y, F, U, lam=0) == pytest.approx(np.mean(Y))
    assert ppi_mean(Y, F, U, lam=0).se == pytest.approx(mean(Y).se)


def test_the_interval_nears_that_of_ppi_python_as_labels_grow() -> None:
    rng = np.random.default_rng(0)
    f, u = rng.normal(size=2000), rng.normal(size=9000)
    y = f + rng.normal(size=2000)
    # ppi_mean_ci(y, f, u, alpha=0.05, lam=1) of ppi-python 0.2.3
    assert ppi_mean(y, f, u).interval == pytest.approx((-0.02548805, 0.07044059), abs=1e-4)


@for_each(("lam", "theirs"), [(0.5, 0.00324496), (1, 0.02247627)])
def test_the_mean_is_that_of_ppi_python(lam: float, theirs: float) -> None:
    rng = np.random.default_rng(0)
    f, u = rng.normal(size=2000), rng.normal(size=9000)
    y = f + rng.normal(size=2000)
    # ppi_mean_pointestimate(y, f, u, lam=lam) of ppi-python 0.2.3
    assert ppi_mean(y, f, u, lam=lam) == pytest.approx(theirs, abs=5e-9)


def test_missing_labels_and_failed_judgments_are_counted() -> None:
    results = ppi_mean([1, None, 0, 1], [1, 1, None, 0], [1, None, 0])
    assert results.n_failed == {"no_label": 1, "not_judged": 2}
    assert (results.n, results.n_unlabelled) == (2, 2)
    assert "fewer than two" in (ppi_mean([1], [1], [1, 0]).reason or "")


def draw(rng, n: int, rate: float = 0.6, tpr: float = 0.95, fpr: float = 0.4):
    """Return labels, and a judge that says yes too readily."""
    y = (rng.random(n) < rate).astype(int)
    return y, (rng.random(n) < np.where(y == 1, tpr, fpr)).astype(int)


@pytest.mark.figures
@pytest.mark.parametrize("estimate", [ppi_mean, ppi_plus_plus_mean])
def test_ppi_takes_the_judges_bias_out_and_covers_at_its_rate(estimate) -> None:
    rng, covered, results, naive, alone = np.random.default_rng(1), 0, [], [], []
    for _ in range(250):
        (y, f), (_, u) = draw(rng, 150), draw(rng, 3000)
        result = estimate(y, f, u)
        covered += result.interval.covers(0.6)
        results.append(result)
        naive.append(u.mean())
        alone.append(mean(y).se)
    assert np.mean(naive) > 0.7
    assert np.mean(results) == pytest.approx(0.6, abs=0.01)
    assert 0.915 < covered / 250 < 0.985
    if estimate is ppi_plus_plus_mean:
        assert np.mean([r.se for r in results]) < 0.9 * np.mean(alone)


def test_a_useless_judge_does_no_harm_to_ppi_plus_plus() -> None:
    rng = np.random.default_rng(4)
    y, f, u = rng.random(200), rng.random(200), rng.random(4000)
    result = ppi_plus_plus_mean(y, f, u)
    assert result.lam < 0.15
    assert result.se <= mean(y).se * 1.01
    assert ppi_plus_plus_mean(y, -y, u).lam == 0.0


@pytest.mark.figures
def test_strata_help_where_the_judge_differs_and_cover_at_their_rate() -> None:
    rng, covered, narrower = np.random.default_rng(2), 0, 0
    for _ in range(120):
        strata, strata_u = np.repeat([0, 1], 100), np.repeat([0, 1], 1500)
        estimates = []
        for where in (strata, strata_u):
            y = (rng.random(len(where)) < np.where(where, 0.8, 0.3)).astype(int)
            good = np.where(y, rng.random(len(where)) < 0.97, rng.random(len(where)) < 0.03)
            bad = rng.random(len(where)) < 0.9
            estimates.append((y, np.where(where, bad, good).astype(int)))
        (y, f), (_, u) = estimates
        result = stratified_ppi_mean(y, f, strata, u, strata_u)
        covered += result.interval.covers(0.55)
        narrower += result.se < ppi_plus_plus_mean(y, f, u).se
    assert 0.89 < covered / 120 <= 0.99
    assert narrower > 114


def test_a_stratum_that_is_unknown_or_unlabelled() -> None:
    with pytest.raises(InputError, match="every stratum"):
        stratified_ppi_mean(Y, F, list("aabbccdd"), U, ["a", "b"] * 8)
    lacking = stratified_ppi_mean(Y, F, ["a"] * 8, U, ["a", "b"] * 8)
    assert "a stratum has fewer" in (lacking.reason or "")


def test_neyman_buys_labels_where_they_cut_most() -> None:
    assert neyman_allocation([100, 100], [1, 3], 40) == [10, 30]
    assert sum(neyman_allocation([5, 7, 9], [0.1, 0, 2.2], 17)) == 17
    assert neyman_allocation([1, 1], [0, 0], 10) == [5, 5]
    with pytest.raises(InputError, match="two labels"):
        neyman_allocation([1, 1], [1, 1], 3)


def test_rogan_gladen_gives_the_figure_worked_out_beforehand() -> None:
    assert rogan_gladen(0.70, 0.85, 0.90) == pytest.approx(0.733333, abs=5e-7)
    assert rogan_gladen(0.05, 0.85, 0.90) == 0.0
    assert rogan_gladen(0.5, 0.5, 0.5).reason == "the judge is no better than chance"
    with pytest.raises(InputError, match="between 0 and 1"):
        rogan_gladen(70, 0.85, 0.9)


def test_the_corrected_interval_is_continuous_at_the_ends() -> None:
    options = {"n": 200, "n_negative": 50, "n_positive": 50}
    ends = [rogan_gladen(p, 0.9, 0.9, **options).interval for p in (0.099, 0.1, 0.101)]
    assert max(end.low for end in ends) == 0.0
    highs = [end.high for end in ends]
    assert highs == sorted(highs)
    assert highs[-1] - highs[0] < 0.005
    # A judge that finds too few to be explained by chance leaves a rate near 0, not none.
    assert 0 < rogan_gladen(0.0, 0.9, 0.9, **options).interval.high < 0.1
    # No better than chance for all one knows: any rate is possible.
    assert rogan_gladen(0.5, 0.52, 0.52, **options).interval == (0.0, 1.0)


@pytest.mark.figures
@pytest.mark.parametrize("theta", [0.0, 0.02, 0.5, 1.0])
def test_the_corrected_interval_covers_up_to_the_ends(theta) -> None:
    rng, covered = np.random.default_rng(13), 0
    for _ in range(400):
        p = rng.binomial(200, 0.9 * theta + 0.1 * (1 - theta)) / 200
        q0, q1 = rng.binomial(50, 0.9, 2) / 50
        options = {"n": 200, "n_negative": 50, "n_positive": 50}
        covered += rogan_gladen(p, q0, q1, **options).interval.covers(theta)
    assert 0.93 < covered / 400 <= 0.99


@pytest.mark.figures
def test_rogan_gladen_stands_a_shift_that_ppi_does_not() -> None:
    # Calibrated where half are positive, asked where four of five are.
    rng, covered, results, shifted = np.random.default_rng(3), 0, [], []
    for _ in range(300):
        (y, f), (_, u) = draw(rng, 400, 0.5, 0.9, 0.2), draw(rng, 2000, 0.8, 0.9, 0.2)
        result = corrected_rate(u, f, y)
        covered += result.interval.covers(0.8)
        results.append(result)
        shifted.append(ppi_mean(y, f, u))
    assert np.mean(results) == pytest.approx(0.8, abs=0.01)
    assert abs(np.mean(shifted) - 0.8) > 0.02
    assert 0.92 < covered / 300 < 0.985


def test_the_corrected_rate_needs_both_classes_and_zeros_and_ones() -> None:
    assert corrected_rate([1, 0], [1, 1], [1, 1]).reason == "a class is absent from calibration"
    with pytest.raises(InputError, match="0 or 1"):
        corrected_rate([1, 2], [1, 0], [1, 0])


def test_post_stratification_by_hand() -> None:
    # The judge says 1 to 3 of 4; people give 2/3 there and 1/2 where it says 0.
    result = post_stratified_mean([1, 1, 0, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0])
    assert result == pytest.approx(0.75 * 2 / 3 + 0.25 * 1 / 2)
    assert "fewer than two" in (post_stratified_mean([1, 0], [1, 1], [1]).reason or "")


@pytest.mark.figures
def test_post_stratification_covers_at_its_rate() -> None:
    rng, covered = np.random.default_rng(5), 0
    for _ in range(250):
        (y, f), (_, u) = draw(rng, 150), draw(rng, 2000)
        covered += post_stratified_mean(y, f, u).interval.covers(0.6)
    assert 0.915 < covered / 250 < 0.985


def annotators(rng, items: int, skills: dict[str, float]):
    truth = rng.integers(0, 3, items)
    return truth, {
        name: np.where(rng.random(items) < skill, truth, rng.integers(0, 3, items)).tolist()
        for name, skill in skills.items()
    }


def test_a_judge_as_good_as_people_passes_and_a_poor_one_does_not() -> None:
    rng = np.random.default_rng(6)
    truth, people = annotators(rng, 200, {"a": 0.8, "b": 0.8, "c": 0.8})
    good = alt_test(truth.tolist(), people, 0.15)
    assert (good.winning_rate, good.passed, good.n) == (1.0, True, 3)
    assert good.advantage > 0.85
    poor = alt_test(rng.integers(0, 3, 200).tolist(), people, 0.15)
    assert (poor.winning_rate, poor.passed) == (0.0, False)


def test_the_alt_test_by_hand() -> None:
    # Item 1: judge x like the others; item 2: judge y unlike them. Against annotator a:
    # item 1 both right (1, 1), item 2 only a right (0, 1): advantage ½, rival 1.
    people: dict[str, Sequence[Any]] = {"a": ["x", "x"], "b": ["x", "x"], "c": ["x", "x"]}
    result = alt_test(["x", "y"], people, least_items=2)
    assert result.advantage == 0.5
    assert (result.annotators["a"].rival, result.passed) == (1.0, False)


@pytest.mark.figures
def test_the_alt_test_rejects_wrongly_no_more_often_than_its_level() -> None:
    # The judge falls short of people by ε exactly: 1 − .8 in agreement with a steady truth.
    rng, passed = np.random.default_rng(7), 0
    for _ in range(200):
        people: dict[str, Sequence[Any]] = {name: [1] * 60 for name in "ab"}
        judge = (rng.random(60) >= 0.2).astype(int).tolist()
        passed += bool(alt_test(judge, people, 0.2).passed)
    assert passed / 200 < 0.08


def test_annotators_with_few_items_are_not_tested() -> None:
    people: dict[str, Sequence[Any]] = {
        "a": [1] * 40,
        "b": [1] * 40,
        "c": [1] * 5 + [None] * 35,
    }
    results = alt_test([1] * 40, people)
    assert (results.n, results.n_failed) == (2, {"annotator_with_few_items": 1})
    assert alt_test([1], {"a": [1], "b": [1]}).passed is None
    near = alt_test([3.1] * 40, {"a": [3] * 40, "b": [3.5] * 40}, score="rmse")
    assert near.advantage == 1.0


def test_the_upper_bound_gives_the_figure_worked_out_beforehand() -> None:
    assert binomial_upper_bound(5, 100, 0.1) == pytest.approx(0.090771, abs=5e-7)
    assert binomial_upper_bound(0, 0) == binomial_upper_bound(7, 7) == 1.0
    with pytest.raises(OptionError, match="`delta`"):
        binomial_upper_bound(1, 2, 0)


def sure(rng, n: int, skill: float = 1.0):
    """Return answers, confidences and labels of a judge that is right as often as it says."""
    confidence = 0.5 + 0.5 * rng.random(n) ** (1 / skill)
    return np.where(rng.random(n) < confidence, "A", "B"), confidence, ["A"] * n


@pytest.mark.figures
def test_the_threshold_keeps_its_promise() -> None:
    # Confidences are calibrated: from λ on the judge errs in (1 − λ) / 2 of the items.
    rng, broken = np.random.default_rng(8), 0
    for _ in range(300):
        result = selective_threshold(*sure(rng, 400), alpha=0.1, delta=0.1)
        if math.isfinite(result.value):
            broken += (1 - result.value) / 2 > 0.1
    assert broken / 300 < 0.13


def test_the_threshold_by_hand() -> None:
    # The first 60 are right, then all are wrong. Of the walks from 100, 50, 30 and 44 items
    # that from 100 fails at once; the one from 50 has a sixth of δ = .1, and goes on while its
    # bound holds.
    answers = ["A"] * 60 + ["B"] * 40
    levels = [1 - i / 1000 for i in range(100)]
    result = selective_threshold(answers, levels, ["A"] * 100, alpha=0.1)
    part = 0.1 / 6
    level = next(
        n for n in range(60, 100) if binomial_upper_bound(n + 1 - 60, n + 1, part) > 0.1
    )
    assert result.value == levels[level - 1]
    assert result.coverage == pytest.approx(level / 100)
    assert result.bound == pytest.approx(binomial_upper_bound(level - 60, level, part))
    assert result.agreement == pytest.approx(60 / level)


def test_a_good_judge_with_flat_confidence_does_not_abstain_from_everything() -> None:
    rng, abstained = np.random.default_rng(20), 0
    for _ in range(100):
        answers = np.where(rng.random(300) < 0.95, "A", "B")
        result = selective_threshold(answers, rng.random(300), ["A"] * 300)
        abstained += math.isinf(result.value)
    assert abstained < 10


@pytest.mark.figures
def test_the_threshold_keeps_its_promise_where_confidence_says_nothing() -> None:
    # Wrong in 11 % everywhere: whatever is taken breaks α = .1.
    rng, broken = np.random.default_rng(21), 0
    for _ in range(300):
        answers = np.where(rng.random(300) < 0.89, "A", "B")
        result = selective_threshold(answers, rng.random(300), ["A"] * 300)
        broken += math.isfinite(result.value)
    assert broken / 300 < 0.13


def test_where_nothing_meets_the_guarantee_the_judge_abstains() -> None:
    result = selective_threshold(["B"] * 50, [0.9] * 50, ["A"] * 50)
    assert (result.value, result.bound, result.coverage) == (math.inf, None, 0.0)
    assert result.agreement.reason == "nothing is taken"
    few = selective_threshold(["A"] * 29, [0.9] * 29, ["A"] * 29)
    assert few.value == math.inf


def test_failed_judgments_count_against_coverage() -> None:
    verdicts = [{"preference": "A", "confidence": 0.9, "failures": []}] * 50
    verdicts += [{"preference": None, "failures": [{"reason": "timeout"}]}] * 50
    results = selective_threshold(verdicts, None, ["A"] * 100)
    assert (results.coverage, results.n_failed) == (0.5, {"timeout": 50})


def test_a_cascade_hands_on_what_the_cheap_judge_is_not_sure_of() -> None:
    rng = np.random.default_rng(9)
    cheap, dear = sure(rng, 1500, 1.0), sure(rng, 1500, 6.0)
    judges = [cheap[:2], dear[:2]]
    result = selective_cascade(judges, cheap[2], alpha=0.1, costs=[1, 10])
    alone = selective_threshold(*cheap, alpha=0.1)
    assert result.coverage > alone.coverage + 0.1
    assert result.agreement > 0.9
    assert result.cost == pytest.approx(0.1 + 1 - result.shares[0])
    assert sum(result.shares) == pytest.approx(result.coverage)
    first, second = (gate.value for gate in result.thresholds)
    assert result.decide([("A", first), ("B", 1.0)]) == (0, "A")
    assert result.decide([("A", first - 0.01), ("B", second)]) == (1, "B")
    assert result.decide([(None, None), ("B", 0.0)]) is None


def played(rng, strengths: dict[str, float], nu: float, games: int):
    names = list(strengths)
    pairs = [tuple(rng.choice(names, 2, replace=False).tolist()) for _ in range(games)]
    answers = []
    for a, b in pairs:
        x, y = math.exp(strengths[a]), math.exp(strengths[b])
        weights = np.array([x, y, nu * math.sqrt(x * y)])
        answers.append(str(rng.choice(["A", "B", "tie"], p=weights / weights.sum())))
    return answers, pairs


def test_two_systems_have_the_odds_of_their_wins() -> None:
    # Three wins to one: log-odds ln 3, halved about the mean of 0.
    result = bradley_terry(["A", "A", "A", "B", None], [("x", "y")] * 5, resamples=0)
    assert result.strengths["x"] == pytest.approx(math.log(3) / 2)
    assert list(result.strengths) == ["x", "y"]
    assert result.probability("x", "y") == pytest.approx(
        {"first": 0.75, "second": 0.25, "tie": 0}
    )
    assert (result.n, result.n_failed, result.tie) == (4, {"not_judged": 1}, 0.0)


def test_pairs_of_unknown_systems_are_left_out_and_counted() -> None:
    wrote: list[Any] = [("x", "y"), ("y", "x"), (None, "x"), ("x", float("nan"))]
    result = bradley_terry(["A", "A", "A", "B"], wrote, resamples=0)
    assert (result.n, result.n_failed, sorted(result.strengths)) == (
        2,
        {"no_system": 2},
        ["x", "y"],
    )


def test_findings_are_json_that_every_reader_takes() -> None:
    result = selective_threshold(["A"], [0.9], ["A"])
    assert result.value == math.inf
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["value"] is None


def test_two_systems_with_ties_have_the_shares_that_were_seen() -> None:
    answers = ["A"] * 5 + ["B"] * 2 + ["tie"] * 3
    result = bradley_terry(answers, [("x", "y")] * 10, resamples=0)
    assert result.probability("x", "y") == pytest.approx(
        {"first": 0.5, "second": 0.2, "tie": 0.3}
    )


@pytest.mark.figures
def test_the_strengths_put_in_are_recovered_and_covered() -> None:
    truth, nu = {"a": 0.9, "b": 0.2, "c": -0.3, "d": -0.8}, 0.5
    rng, covered = np.random.default_rng(10), 0
    for trial in range(25):
        results = bradley_terry(*played(rng, truth, nu, 300), resamples=150, seed=trial)
        covered += sum(results.strengths[name].interval.covers(truth[name]) for name in truth)
        covered += results.tie.interval.covers(nu)
    assert 0.88 < covered / 125 < 0.99


def test_swapping_the_sides_of_every_pair_changes_nothing() -> None:
    rng = np.random.default_rng(11)
    answers, pairs = played(rng, {"a": 0.5, "b": 0, "c": -0.5}, 0.4, 200)
    other = {"A": "B", "B": "A", "tie": "tie"}
    one = bradley_terry(answers, pairs, resamples=0)
    two = bradley_terry([other[s] for s in answers], [(b, a) for a, b in pairs], resamples=0)
    for name, strength in one.strengths.items():
        assert two.strengths[name] == pytest.approx(strength, abs=1e-9)


def test_a_system_that_never_loses_has_no_finite_strength() -> None:
    result = bradley_terry(["A", "A", "B"], [("x", "y"), ("x", "z"), ("y", "z")])
    assert math.isnan(result.strengths["x"])
    assert "no finite strengths" in (result.tie.reason or "")
    with pytest.raises(InputError, match="two systems"):
        bradley_terry(["A"], [("x", "x")])


def test_ties_alone_tell_nothing_of_strengths() -> None:
    result = bradley_terry(["tie"] * 6, [("x", "y"), ("y", "z")] * 3)
    assert math.isnan(result.strengths["x"])
    assert result.tie.reason == "all verdicts are ties, which tell nothing of strengths"
    beside = bradley_terry(["A", "B", "tie"], [("x", "y"), ("x", "y"), ("y", "z")])
    assert beside.strengths["z"] == pytest.approx(0.0, abs=1e-6)
