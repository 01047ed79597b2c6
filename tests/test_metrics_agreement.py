"""Agreement with people: shares, orders, votes, raters, baselines, studies."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from pkgutil import iter_modules
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import langchain_judges.metrics as metrics
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    accuracy,
    beside_people,
    cohen_kappa,
    confusion,
    failure_rates,
    majority_agreement,
    majority_vote,
    oracle_agreement,
    order_accuracy,
    order_agreement,
    people_agreement,
    tie_rate,
    vote_agreement,
    win_rate,
)
from langchain_judges.metrics.intervals import wilson_interval
from langchain_judges.verdict import Preference
from tests.benchmarks import coverage
from tests.cases import for_each

REFUSED = {"preference": None, "failures": [{"reason": "refusal"}]}
WON = {"preference": "A", "failures": [{"reason": "truncated"}]}
preferences = st.sampled_from(["A", "B", "tie", None])

Votes = list[list[Preference | None]]


def test_the_flat_names_are_sorted_resolve_and_hide_no_module() -> None:
    assert metrics.__all__ == sorted(metrics.__all__)
    for name in metrics.__all__:
        assert getattr(metrics, name).__name__ == name
    assert not {module.name for module in iter_modules(metrics.__path__)} & set(metrics.__all__)


@pytest.mark.system
def test_importing_the_metrics_loads_no_library_of_statistics() -> None:
    code = "import sys, langchain_judges.metrics; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0
    # `import scipy` loads its parts, which take a second, when they are used.
    heavy = {"scipy.stats", "scipy.optimize", "sklearn", "statsmodels", "krippendorff"}
    assert not heavy & set(result.stdout.split())


def test_every_statistic_names_its_keywords() -> None:
    # One passed on by `**` would reach another function, which may take more than is meant.
    functions = [f for f in vars(metrics).values() if inspect.isfunction(f)]
    kinds = {p.kind for f in functions for p in inspect.signature(f).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert len(functions) > 40


def test_a_failed_judgment_is_wrong_or_left_out_and_always_counted() -> None:
    judged, labels = ["A", "B", None, "tie", "A"], ["A", "A", "A", "tie", None]
    result = accuracy(judged, labels)
    assert result == pytest.approx(2 / 4)
    assert (result.n, result.n_failed) == (4, {"not_judged": 1, "no_label": 1})
    dropped = accuracy(judged, labels, errors="drop")
    assert dropped == pytest.approx(2 / 3)
    assert (dropped.n, dropped.n_failed) == (3, result.n_failed)
    assert dropped.interval == wilson_interval(2, 3)


def test_verdicts_and_rows_are_read_with_their_reasons() -> None:
    results = accuracy([WON, {"verdict": REFUSED, "id": "2"}], ["A", "A"])
    assert (results, results.n_failed) == (0.5, {"refusal": 1})
    assert accuracy([{"verdict": {"label": 1}}, {"verdict": {"label": 0}}], [1, 1]) == 0.5


def test_numpy_arrays_and_pandas_columns_are_taken() -> None:
    import pandas as pd

    assert accuracy(np.array(["A", "B"]), np.array(["A", "A"])) == 0.5
    column = pd.Series(["A", None, "B"], dtype="str")
    assert accuracy(column, pd.Series(["A", "A", "B"])).n_failed == {"not_judged": 1}


# Only the keys would be compared, and they always agree.
def test_a_mapping_is_refused_where_one_value_for_each_item_is_needed() -> None:
    with pytest.raises(InputError, match="mapping"):
        accuracy({"1": "A"}, {"1": "B"})


@for_each("item", [{"verdict": None}, np.float32("nan"), np.nan])
def test_a_row_without_a_verdict_and_every_nan_were_not_judged(item) -> None:
    results = accuracy([item, "A"], ["A", "A"])
    assert (results, results.n_failed) == (0.5, {"not_judged": 1})


@for_each("value", [math.inf, "good", [1, 2]])
def test_scores_that_are_no_finite_numbers_are_refused(value) -> None:
    with pytest.raises(InputError, match="number"):
        metrics.correlate([value, 1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="number"):
        metrics.mean([value, 1])
    with pytest.raises(InputError, match="number"):
        metrics.auc([value, 1, 2], [1, 0, 0])


def test_nothing_judged_is_undefined_and_not_zero() -> None:
    result = accuracy([None, None], ["A", "B"], errors="drop")
    assert math.isnan(result)
    assert result.reason == "no judged items"
    assert accuracy([None, None], ["A", "B"]) == 0.0
    assert math.isnan(accuracy([], []))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="`judge` has 1, `labels` has 2"):
        accuracy(["A"], ["A", "B"])
    with pytest.raises(OptionError, match="'wrong', 'drop'"):
        accuracy(["A"], ["A"], errors=cast("Any", "skip"))


def test_orders_that_both_failed_do_not_agree() -> None:
    first, second = ["A", "B", None, "tie", None], ["A", "A", None, "tie", "A"]
    results = order_agreement(first, second)
    assert (results, results.n, results.n_failed) == (
        pytest.approx(2 / 5),
        5,
        {"not_judged": 2},
    )
    assert order_agreement(first, second, errors="drop") == pytest.approx(2 / 3)
    assert results.with_unread == pytest.approx(3 / 5)
    assert math.isnan(order_agreement([], []).with_unread)


@for_each(
    ("rule", "expected"),
    [
        # Items: (A,A) (A,B) (A,tie) (tie,tie) (B,B), all labelled A; then (A,B) labelled tie.
        ("both_right", 1 / 6),
        ("mean_of_orders", (1 + 0.5 + 0.5) / 6),
        ("sign_of_sum", (1 + 1 + 1) / 6),  # (A,A), (A,tie), and the tie of (A,B)
        ("strict", (1 + 1) / 6),
    ],
)
def test_the_rules_of_two_orders(rule, expected) -> None:
    first = ["A", "A", "A", "tie", "B", "A"]
    second = ["A", "B", "tie", "tie", "B", "B"]
    labels = ["A"] * 5 + ["tie"]
    assert order_accuracy(first, second, labels, rule) == pytest.approx(expected)


def test_a_failed_order_counts_by_the_rule() -> None:
    answers = (["A", "A"], ["A", None], ["A", "A"])
    assert order_accuracy(*answers, "mean_of_orders") == 0.75
    assert order_accuracy(*answers, "both_right") == 0.5
    assert order_accuracy(*answers, "sign_of_sum") == 1.0
    assert order_accuracy(*answers, "mean_of_orders", "drop") == 1.0


@given(st.lists(st.tuples(preferences, preferences, st.sampled_from("AB")), min_size=1))
def test_the_mean_of_orders_is_the_mean_of_the_accuracies(rows) -> None:
    first, second, labels = zip(*rows, strict=True)
    both = order_accuracy(first, second, labels, "mean_of_orders")
    assert both == pytest.approx((accuracy(first, labels) + accuracy(second, labels)) / 2)
    assert order_accuracy(first, second, labels) <= both + 1e-12


@given(st.lists(st.tuples(preferences, st.sampled_from(["A", "B", "tie", None]))))
def test_wrong_and_drop_differ_by_the_failed_items_alone(rows) -> None:
    judged, labels = [r[0] for r in rows], [r[1] for r in rows]
    wrong, drop = accuracy(judged, labels), accuracy(judged, labels, "drop")
    assert wrong.n_failed == drop.n_failed
    assert wrong.n == drop.n + wrong.n_failed.get("not_judged", 0)
    if drop.n:
        assert wrong * wrong.n == pytest.approx(drop * drop.n)


def test_each_vote_is_matched_on_its_own() -> None:
    assert vote_agreement(["A"], [["A", "A", "tie"]]) == pytest.approx(2 / 3)
    dropped = vote_agreement(["A"], [["A", "A", "tie"]], ties="drop")
    assert (dropped, dropped.n) == (1.0, 2)
    assert vote_agreement(["tie", "B"], [["A"], ["B"]], ties="drop").n == 1


# Letter by letter, the word "tie" would be three votes.
def test_a_bare_label_is_one_vote() -> None:
    bare: list[Any] = ["tie", ["A", "B"]]
    result = vote_agreement(["tie", "A"], bare)
    assert (result, result.n) == (pytest.approx(2 / 3), 3)
    assert majority_agreement(["tie"], bare[:1]) == 1.0
    numbers: list[Any] = [1, [1, None]]
    assert vote_agreement([1, 0], numbers) == 0.5
    assert people_agreement([bare[0], ["A", "A"]]).n == 1


def test_votes_on_a_failed_judgment_are_wrong_or_left_out() -> None:
    votes: Votes = [["A", "B"], ["B"], []]
    result = vote_agreement(["A", None, "A"], votes)
    assert (result, result.n) == (pytest.approx(1 / 3), 3)
    assert result.n_failed == {"not_judged": 1, "no_label": 1}
    assert vote_agreement(["A", None, "A"], votes, errors="drop") == 0.5


def test_the_majority_of_votes() -> None:
    ballots: Votes = [["A", "A", "B"], ["A", "B"], ["tie"], []]
    assert [majority_vote(each) for each in ballots] == ["A", "tie", "tie", None]
    votes: Votes = [["A", "A", "B"], ["A", "B"], ["B"], []]
    assert majority_agreement(["A", "A", "B", "A"], votes) == pytest.approx(2 / 3)
    assert majority_agreement(["A", "A", "B", "A"], votes, ties="drop") == 1.0


def test_people_are_compared_in_all_pairs_of_votes() -> None:
    # AAB: 1 of 3 pairs; AA: 1 of 1; a lone vote has no partner.
    result = people_agreement([["A", "A", "B"], ["A", "A"], ["B"]])
    assert (result, result.n) == (pytest.approx(2 / 4), 4)
    assert result.n_failed == {"fewer_than_two_votes": 1}
    assert people_agreement([["A", "tie", "A"]], ties="drop") == 1.0
    assert people_agreement([["A"]]).reason == "no item has two votes"


def exchangeable(rng, items: int) -> tuple[list, list]:
    """Return a judge and two people who say A with the same chance, and a referee's third."""
    chance = np.where(rng.random(items) < 0.5, 0.8, 0.2)[:, None]
    ballots = np.where(rng.random((items, 4)) < chance, "A", "B").tolist()
    votes = [[a, b] if a == b else [a, b, third] for _, a, b, third in ballots]
    return [row[0] for row in ballots], votes


def test_a_judge_exchangeable_with_people_has_no_lead_though_a_referee_was_asked() -> None:
    judge, votes = exchangeable(np.random.default_rng(17), 4000)
    # Pooled, two thirds of every referee's pairs disagree: people seem worse than they are.
    pooled = vote_agreement(judge, votes) - people_agreement(votes)
    assert pooled > 0.05
    assert beside_people(judge, votes).lead == pytest.approx(0.0, abs=0.025)
    mixed = [row[::-1] for row in votes]
    assert beside_people(judge, mixed).lead == pytest.approx(0.0, abs=0.025)


@pytest.mark.figures
def test_the_lead_over_people_covers_nothing_at_its_rate() -> None:
    rng, covered = np.random.default_rng(18), 0
    for _ in range(200):
        covered += beside_people(*exchangeable(rng, 30)).lead.interval.covers(0.0)
    assert 0.91 < covered / 200 <= 0.99


def test_beside_people_by_hand() -> None:
    # Votes AA, AB: people agree on 1 of 1 and 0 of 1; the judge with 2 of 2 and 1 of 2.
    result = beside_people(["A", "A", "B"], [["A", "A"], ["A", "B"], ["B"]], margin=0.9)
    assert (result.judge, result.people, result.lead) == (0.75, 0.5, 0.25)
    assert (result.n, result.n_failed) == (2, {"fewer_than_two_votes": 1})
    assert beside_people([None, "A"], [["A", "A"], ["A", "B"]]).judge == 0.25
    judge, votes = exchangeable(np.random.default_rng(19), 3000)
    assert beside_people(judge, votes, margin=0.05).non_inferior is True
    assert beside_people(["tie"] * 3000, votes).non_inferior is False


def test_no_answers_match_more_votes_than_the_most_frequent() -> None:
    votes: Votes = [["A", "A", "B"], ["A", "B"], ["tie"]]
    result = oracle_agreement(votes)
    assert (result, result.n) == (pytest.approx(4 / 6), 6)
    assert max(
        vote_agreement([a, b, c], votes)
        for a in ("A", "B")
        for b in ("A", "B", "tie")
        for c in ("A", "tie")
    ) == pytest.approx(result)


def test_the_agreement_of_people_who_are_right_with_chance_p_is_recovered() -> None:
    rng = np.random.default_rng(2)
    votes = np.where(rng.random((3000, 3)) < 0.8, "A", "B").tolist()
    result = people_agreement(votes)
    assert result.interval.covers(0.8**2 + 0.2**2)


# People are right four times in five: two of them agree on .8² + .2² = .68 of the items, and a
# judge that knows the truth agrees with each of them on .8. The most frequent of three votes
# matches all of them on .8³ + .2³ = .52 of the items and two on .48: .84, and nothing more.
def test_people_among_themselves_are_no_ceiling_and_the_oracle_bound_is_one() -> None:
    rng = np.random.default_rng(24)
    truth = rng.choice(["A", "B"], 10_000)
    wrong = np.where(truth == "A", "B", "A")
    votes = np.where(rng.random((3, 10_000)) < 0.8, truth, wrong).T.tolist()
    shares = people_agreement(votes), vote_agreement(truth, votes), oracle_agreement(votes)
    assert shares == pytest.approx((0.68, 0.80, 0.84), abs=0.01)


@for_each("weights", [None, "linear", "quadratic"])
def test_cohens_kappa_is_that_of_scikit_learn(weights) -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    first = rng.integers(1, 6, 200)
    second = np.where(rng.random(200) < 0.5, first, rng.integers(1, 6, 200))
    ours = cohen_kappa(first, second, weights=weights)
    assert ours == pytest.approx(cohen_kappa_score(first, second, weights=weights), abs=1e-12)
    assert ours.interval.covers(ours)


def test_cohens_kappa_worked_by_hand() -> None:
    # Agreement 7/10; both say yes to 5 and 6 of 10: chance .5·.6 + .5·.4 = .5; κ = .2/.5.
    first = ["y"] * 5 + ["n"] * 5
    second = ["y", "y", "y", "y", "n", "y", "y", "n", "n", "n"]
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_kappa_of_one_label_alone_is_undefined() -> None:
    result = cohen_kappa(["A", "A", None], ["A", "A", "B"])
    assert math.isnan(result)
    assert (result.n, result.n_failed) == (2, {"not_judged": 1})
    assert result.reason == "both raters always give the same label"


def test_kappa_of_raters_who_never_agree_is_no_better_than_chance() -> None:
    # Agreement 0, and 0 by chance, for they use different labels.
    assert cohen_kappa(["A", "A"], ["B", "B"]) == 0.0


def test_weighted_kappa_measures_how_far_apart_labels_are() -> None:
    # Nobody said 3 or 4: 1 and 5 are still four apart, and 2 and 5 three.
    first, second = [1, 2, 5, 5, 1, 2], [1, 5, 5, 2, 2, 2]
    gaps = np.abs(np.subtract.outer([1, 2, 5], [1, 2, 5]))
    margins = np.array([2, 2, 2]) / 6, np.array([1, 3, 2]) / 6
    expected = 1 - (3 + 3 + 1) / 6 / (margins[0] @ gaps @ margins[1])
    assert cohen_kappa(first, second, weights="linear") == pytest.approx(expected)


def test_weighted_kappa_of_words_needs_their_order() -> None:
    words = {1: "poor", 2: "fair", 3: "good"}
    numbers = [1, 2, 3, 3, 2, 1, 1], [1, 2, 2, 3, 3, 1, 2]
    ratings = [[words[n] for n in side] for side in numbers]
    with pytest.raises(InputError, match="`order` of the labels"):
        cohen_kappa(*ratings, weights="linear")
    result = cohen_kappa(*ratings, weights="linear", order=["poor", "fair", "good"])
    assert result == pytest.approx(cohen_kappa(*numbers, weights="linear"))


@pytest.mark.figures
def test_weighted_kappas_interval_covers_on_twenty_ratings_with_ties() -> None:
    # Ratings of 1 to 5 whose latent scores correlate .6, as in tests/benchmarks/coverage.py.
    rng, covered, at = np.random.default_rng(25), 0, coverage.Setting("", 20)
    for _ in range(300):
        ours, theirs = coverage.ratings(rng, at)
        interval = cohen_kappa(ours, theirs, weights="quadratic").interval
        covered += interval.covers(coverage.true_weighted_kappa(0.5, at.skill))
    assert 0.93 < covered / 300 < 0.995


def test_weighted_kappas_interval_reaches_as_far_as_leaving_one_out() -> None:
    first, second = [1, 2, 3, 4, 5, 2, 3, 4, 1, 5], [1, 2, 4, 4, 5, 3, 3, 5, 2, 4]
    value = cohen_kappa(first, second, weights="quadratic")
    others = [
        cohen_kappa(
            first[:i] + first[i + 1 :], second[:i] + second[i + 1 :], weights="quadratic"
        )
        for i in range(10)
    ]
    z = np.arctanh([float(other) for other in others])
    # Student's t at 9 degrees of freedom is 2.262.
    half = 2.262 * math.sqrt(9 / 10 * ((z - z.mean()) ** 2).sum())
    assert value.interval.high >= math.tanh(math.atanh(value) + half) - 1e-4
    assert value.interval.low <= math.tanh(math.atanh(value) - half) + 1e-4
    assert cohen_kappa(first, first, weights="quadratic").interval.high == 1.0


def test_kappa_by_questions_is_less_sure_and_by_few_has_no_interval() -> None:
    first, second = (np.repeat(side, 5).tolist() for side in ([0, 1] * 10, [0, 1, 1, 1] * 5))
    width = lambda result: result.interval.high - result.interval.low  # noqa: E731
    alone = cohen_kappa(first, second)
    questions = cohen_kappa(first, second, groups=[i // 5 for i in range(100)])
    assert questions == alone
    assert width(questions) > 1.7 * width(alone)
    few = cohen_kappa(first, second, groups=[i // 50 for i in range(100)])
    assert (few.interval, few.no_interval) == (None, "too few groups")


def test_a_perfect_small_sample_is_not_certain() -> None:
    result = cohen_kappa([0, 1] * 5, [0, 1] * 5)
    assert (result, result.interval.high) == (1.0, 1.0)
    assert result.interval.low < 0.8


@pytest.mark.figures
def test_kappas_interval_covers_at_its_rate() -> None:
    # Both right with .8 on two even classes: agreement .68, chance .5, κ = .36.
    rng, covered = np.random.default_rng(4), 0
    for _ in range(250):
        truth = rng.integers(0, 2, 150)
        raters = [np.where(rng.random(150) < 0.8, truth, 1 - truth) for _ in range(2)]
        covered += cohen_kappa(*raters).interval.covers(0.36)
    assert 0.915 < covered / 250 < 0.985


def test_the_confusion_keeps_failures_apart() -> None:
    result = confusion(["A", "B", "tie", None], ["A", "A", "B", "A"])
    assert result.classes == ["A", "B", "tie"]
    assert result.counts == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert result.not_judged == [1, 0, 0]
    assert (result.n, result["n_failed"]) == (3, {"not_judged": 1})


def test_win_rate_counts_a_tie_as_half() -> None:
    result = win_rate(["A", "A", "tie", "B", None])
    assert (result, result.n) == (pytest.approx(2.5 / 4), 4)
    assert tie_rate(["A", "A", "tie", "B", None]) == 0.25
    with pytest.raises(OptionError, match="'A', 'tie', 'B'"):
        win_rate(["C"])


def test_failure_rates_by_reason() -> None:
    result = failure_rates([WON, REFUSED, None, "B"])
    assert (result.failed, result.refused) == (0.5, 0.25)
    assert {k: float(v) for k, v in result.by_reason.items()} == {
        "not_judged": 0.25,
        "refusal": 0.25,
    }


def test_whole_questions_decide_how_sure_an_accuracy_is() -> None:
    judged = ["A"] * 50 + ["B"] * 50
    alone = accuracy(judged, ["A"] * 100)
    shared = accuracy(judged, ["A"] * 100, groups=[i // 10 for i in range(100)])
    assert shared == alone
    assert shared.interval.high - shared.interval.low > 2 * (
        alone.interval.high - alone.interval.low
    )


def test_kappa_of_a_rater_who_never_varies_is_zero_without_a_warning():
    result = cohen_kappa(["A"] * 8, ["A", "B"] * 4)
    assert result == 0
    assert result.n == 8
