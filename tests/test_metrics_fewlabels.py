"""Few labels and many judgments; selective judging; rankings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from langchain_judges.errors import InputError
from langchain_judges.metrics import (
    alt_test,
    mean,
    ppi_mean,
    selective_cascade,
    selective_threshold,
    stratified_ppi_mean,
)
from langchain_judges.metrics.confidence import _upper_bound
from langchain_judges.metrics.labels import neyman_allocation
from tests.cases import for_each

Y, F, U = (list(map(int, digits)) for digits in ("11010101", "11011100", "1011011101101101"))


def test_ppi_gives_the_figures_worked_out_beforehand() -> None:
    result = ppi_mean(Y, F, U, lam=1)
    assert (result, result.se) == pytest.approx((0.687500, 0.223690), abs=5e-7)
    assert (result.n, result.n_unlabelled) == (8, 16)


def test_ppi_plus_plus_gives_the_figures_worked_out_beforehand() -> None:
    result = ppi_mean(Y, F, U)
    measures = (result.lam, result, result.se)
    assert measures == pytest.approx((0.326848, 0.645428, 0.168449), abs=5e-7)


def test_lambda_zero_is_the_labels_alone() -> None:
    assert ppi_mean(Y, F, U, lam=0) == pytest.approx(np.mean(Y))
    assert ppi_mean(Y, F, U, lam=0).se == pytest.approx(mean(Y).se)


def test_the_interval_nears_that_of_ppi_python_as_labels_grow() -> None:
    rng = np.random.default_rng(0)
    f, u = rng.normal(size=2000), rng.normal(size=9000)
    y = f + rng.normal(size=2000)
    # ppi_mean_ci(y, f, u, alpha=0.05, lam=1) of ppi-python 0.2.3
    assert ppi_mean(y, f, u, lam=1).interval == pytest.approx(
        (-0.02548805, 0.07044059), abs=3e-3
    )


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
@pytest.mark.parametrize("estimate", [partial(ppi_mean, lam=1), ppi_mean])
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
    if estimate is ppi_mean:
        assert np.mean([r.se for r in results]) < 0.9 * np.mean(alone)


def test_a_useless_judge_does_no_harm_to_ppi_plus_plus() -> None:
    rng = np.random.default_rng(4)
    y, f, u = rng.random(200), rng.random(200), rng.random(4000)
    result = ppi_mean(y, f, u)
    assert result.lam < 0.15
    assert result.se <= mean(y).se * 1.01
    assert ppi_mean(y, -y, u).lam == 0.0


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
        narrower += result.se < ppi_mean(y, f, u).se
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
    # The first 60 are right, then all are wrong. Of the walks from 100, 50 and 42 items (and 25
    # and 10, which is fewer than can pass), that from 100 fails at once; the one from 50 has a
    # sixth of δ = .1, and goes on while its bound holds.
    answers = ["A"] * 60 + ["B"] * 40
    levels = [1 - i / 1000 for i in range(100)]
    result = selective_threshold(answers, levels, ["A"] * 100, alpha=0.1)
    part = 0.1 / 6
    level = next(n for n in range(60, 100) if _upper_bound(n + 1 - 60, n + 1, part) > 0.1)
    assert result.value == levels[level - 1]
    assert result.coverage == pytest.approx(level / 100)
    assert result.bound == pytest.approx(_upper_bound(level - 60, level, part))
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


def test_findings_are_json_that_every_reader_takes() -> None:
    result = selective_threshold(["A"], [0.9], ["A"])
    assert result.value == math.inf
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["value"] is None
