"""Agreement with people: shares, orders, votes, raters and juries."""

from __future__ import annotations

import math
from contextlib import nullcontext
from importlib import import_module
from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest

import langchain_judges.metrics as metrics
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    accuracy,
    beside_people,
    cohen_kappa,
    effective_voters,
    majority_agreement,
    order_accuracy,
    order_agreement,
    people_agreement,
    people_beyond_chance,
    vote_agreement,
)
from langchain_judges.metrics.agreement import majority_vote
from langchain_judges.metrics.intervals import wilson_interval
from langchain_judges.verdict import Preference
from tests.cases import for_each

REFUSED = {"preference": None, "failures": [{"reason": "refusal"}]}
WON = {"preference": "A", "failures": [{"reason": "truncated"}]}

Votes = list[list[Preference | None]]


def test_a_failed_judgment_is_wrong_or_left_out_and_always_counted() -> None:
    judged, labels = ["A", "B", None, "tie", "A"], ["A", "A", "A", "tie", None]
    result = accuracy(judged, labels)
    assert result == pytest.approx(2 / 4)
    assert (result.n, result.n_failed) == (4, {"not_judged": 1, "no_label": 1})
    dropped = accuracy(judged, labels, errors="drop")
    assert dropped == pytest.approx(2 / 3)
    assert (dropped.n, dropped.n_failed) == (3, result.n_failed)
    assert dropped.interval == wilson_interval(2, 3)


@for_each("measure", [accuracy, cohen_kappa, vote_agreement, metrics.balanced_accuracy, metrics.f1])
def test_labels_that_are_texts_beside_numbers_are_refused_and_empty_ones_are_none(measure) -> None:
    judged = [1, 0, 1, 0]
    with pytest.raises(InputError, match="some labels are texts and others numbers"):
        measure(judged, ["1", "0", "1", "1"])
    found = measure(judged, [1, "", 1, 0])
    assert (found.n, found.n_failed) == (3, {"no_label": 1})


def test_votes_in_a_csv_are_numbers_where_distances_count() -> None:
    votes = [[1, 2], [3, 3], [10, 9]] * 5
    texts = [list(map(str, each)) for each in votes]
    for level in ("ordinal", "interval"):
        alpha = people_beyond_chance(votes, level).alpha
        assert people_beyond_chance(texts, level).alpha == alpha
        with pytest.raises(InputError, match="a number for each item"):
            people_beyond_chance([["good", "bad"]] * 5, level)


@for_each(
    ("judged", "labels", "expected", "failed"),
    [
        ([None, None], ["A", "B"], 0.0, {"not_judged": 2}),
        ([WON, {"verdict": REFUSED, "id": "2"}], ["A", "A"], 0.5, {"refusal": 1}),
        ([{"verdict": {"label": 1}}, {"verdict": {"label": 0}}], [1, 1], 0.5, {}),
        ([{"verdict": None}, "A"], ["A", "A"], 0.5, {"not_judged": 1}),
        (np.array(["A", "B"]), np.array(["A", "A"]), 0.5, {}),
        ([np.nan, "A"], ["A", "A"], 0.5, {"not_judged": 1}),
    ],
)
def test_verdicts_rows_and_arrays_are_read_alike(judged, labels, expected, failed):
    result = accuracy(judged, labels)
    assert (result, result.n_failed) == (pytest.approx(expected), failed)
    nothing = accuracy([None, None], ["A", "B"], errors="drop")
    assert (math.isnan(nothing), nothing.reason) == (True, "no judged items")


def test_columns_of_a_data_frame_are_read_alike() -> None:
    series = import_module("pandas").Series
    result = accuracy(series(["A", None, "B"]), series(["A", "A", "B"]))
    assert (result, result.n_failed) == (pytest.approx(2 / 3), {"not_judged": 1})


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="`judge` has 1, `labels` has 2"):
        accuracy(["A"], ["A", "B"])
    with pytest.raises(OptionError, match="'wrong', 'drop'"):
        accuracy(["A"], ["A"], errors=cast("Any", "skip"))
    # Only the keys would be compared, and they always agree.
    with pytest.raises(InputError, match="mapping"):
        accuracy({"1": "A"}, {"1": "B"})
    values: list[Any] = [math.inf, "good", [1, 2]]
    for value in values:
        with pytest.raises(InputError, match="number"):
            metrics.correlate([value, 1, 2], [1, 2, 3])


def test_orders_that_both_failed_do_not_agree() -> None:
    first, second = ["A", "B", None, "tie", None], ["A", "A", None, "tie", "A"]
    result = order_agreement(first, second)
    assert (result, result.n_failed) == (pytest.approx(2 / 5), {"not_judged": 2})
    assert order_agreement(first, second, errors="drop") == pytest.approx(2 / 3)
    assert result.with_unread == pytest.approx(3 / 5)


# Items: (A,A) (A,B) (A,tie) (tie,tie) (B,B), labelled A; then (A,B) labelled tie. Unread: right
# and unread, wrong and unread, both unread: by JudgeBench's rule the first alone is right.
@for_each(
    ("rule", "read", "unread", "dropped"),
    [
        ("both_right", 1 / 6, 0, 1),
        ("mean_of_orders", (1 + 0.5 + 0.5) / 6, 1 / 6, 1),
        ("sign_of_sum", (1 + 1 + 1) / 6, 1 / 3, 1),  # (A,A), (A,tie), and the tie of (A,B)
        ("strict", (1 + 1) / 6, 0, 1),
    ],
)
def test_the_rules_of_two_orders(rule, read, unread, dropped) -> None:
    first = ["A", "A", "A", "tie", "B", "A"]
    second = ["A", "B", "tie", "tie", "B", "B"]
    assert order_accuracy(first, second, ["A"] * 5 + ["tie"], rule) == pytest.approx(read)
    half = ["A", "B", None], [None] * 3, ["A"] * 3
    assert order_accuracy(*half, rule) == pytest.approx(unread)
    pairs = ["A", *half[0]], ["A", *half[1]], ["A"] * 4
    assert order_accuracy(*pairs, rule, "drop") == dropped


def test_each_vote_is_matched_on_its_own() -> None:
    assert vote_agreement(["A"], [["A", "A", "tie"]]) == pytest.approx(2 / 3)
    dropped = vote_agreement(["A"], [["A", "A", "tie"]], ties="drop")
    assert (dropped, dropped.n) == (1.0, 2)
    votes: Votes = [["A", "B"], ["B"], []]
    result = vote_agreement(["A", None, "A"], votes)
    assert (result, result.n) == (pytest.approx(1 / 3), 3)
    assert result.n_failed == {"not_judged": 1, "no_label": 1}
    assert vote_agreement(["A", None, "A"], votes, errors="drop") == 0.5
    # Letter by letter, the word "tie" would be three votes.
    bare: list[Any] = ["tie", ["A", "B"]]
    assert vote_agreement(["tie", "A"], bare).n == 3


@for_each("measure", [vote_agreement, majority_agreement])
def test_groups_stay_with_their_items_where_ties_are_dropped(measure: Any) -> None:
    answers: list[Any] = ["A", "tie", "B", "A"] * 8
    votes = [[vote] for vote in "AAAB" * 8]
    groups = [place // 8 for place in range(32)]
    kept = [place for place, answer in enumerate(answers) if answer != "tie"]
    dropped = measure(answers, votes, ties="drop", groups=groups)
    alone = measure(*([column[i] for i in kept] for column in (answers, votes)),
                    groups=[groups[i] for i in kept])  # fmt: skip
    assert (dropped, dropped.interval) == (alone, alone.interval)


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
    assert people_agreement([["A"]]).reason == "no row has answers of two people"


def exchangeable(rng, items: int, always: int = 0) -> tuple[list, list]:
    """A judge and two people who say A with the same chance, and a referee's third.

    On the first rows all three are always asked.
    """
    chance = np.where(rng.random(items) < 0.5, 0.8, 0.2)[:, None]
    ballots = np.where(rng.random((items, 4)) < chance, "A", "B").tolist()
    asked = ((own, i < always or own[1] != own[2]) for i, own in enumerate(ballots))
    return [own[0] for own in ballots], [own[1:] if third else own[1:3] for own, third in asked]


def test_a_judge_exchangeable_with_people_has_no_lead_though_a_referee_was_asked() -> None:
    judge, votes = exchangeable(np.random.default_rng(17), 4000)
    # Pooled, two thirds of every referee's pairs disagree: people seem worse than they are.
    pooled = vote_agreement(judge, votes) - people_agreement(votes)
    assert pooled > 0.05
    mixed = [row[::-1] for row in votes]
    assert beside_people(judge, mixed).lead == pytest.approx(0.0, abs=0.025)
    # In columns, of which the referee's is the first, and some rows are of three by chance.
    judge, votes = exchangeable(np.random.default_rng(18), 4000, 800)
    columns: Votes = [[None, *row] if len(row) == 2 else row[::-1] for row in votes]
    found = beside_people(judge, columns)
    assert found.lead == pytest.approx(0.0, abs=0.025)
    assert found.called_in == sum(len(row) == 3 for row in votes)


def test_a_third_who_is_careless_and_has_gaps_is_no_referee() -> None:
    rng = np.random.default_rng(3)
    truth, gaps = rng.integers(0, 3, 400), rng.random(400) < 0.5
    careful, other, careless, judge = (
        np.where(rng.random(400) < p, truth, rng.integers(0, 3, 400)).tolist()
        for p in (0.85, 0.85, 0.3, 0.7)
    )
    third = [None if gap else vote for gap, vote in zip(gaps, careless, strict=True)]
    # Rows with a third agree less often, and the other two people no less often on them.
    assert beside_people(judge, rows_of([careful, other, third])).called_in == 0


def answers_of_three(rng, items: int = 60) -> tuple[list, list[list]]:
    """A judge, and three people of unequal skill of whom one in seven has no answer."""
    truth = rng.integers(0, 3, items)
    columns = [
        np.where(rng.random(items) < p, truth, rng.integers(0, 3, items)).tolist()
        for p in (0.8, 0.9, 0.6, 0.3)
    ]
    missing = rng.random((3, items)) < 1 / 7
    people = [
        [None if out else vote for vote, out in zip(column, own, strict=True)]
        for column, own in zip(columns[1:], missing, strict=True)
    ]
    return columns[0], people


def rows_of(people) -> list[list]:
    return [list(row) for row in zip(*people, strict=True)]


@for_each("seed", range(4))
def test_people_count_the_same_in_whatever_order_their_columns_stand(seed):
    judge, people = answers_of_three(np.random.default_rng(seed))
    found = {
        str(beside_people(judge, rows_of(own), groups=[i // 2 for i in range(60)]).to_dict())
        for own in permutations(people)
    }
    assert len(found) == 1


def test_an_answer_less_changes_no_more_than_its_own_row():
    judge, people = answers_of_three(np.random.default_rng(0))
    whole, n = beside_people(judge, rows_of(people)), 60
    for who in range(3):
        for place in range(0, n, 9):
            fewer = [[*own] for own in people]
            fewer[who][place] = None
            found = beside_people(judge, rows_of(fewer))
            assert found.called_in == 0
            # A row of n has a share between 0 and 1; one that drops out weighs those of n − 1.
            assert abs(found.lead - whole.lead) < 2 / whole.n
            assert abs(found.people - whole.people) < 2 / whole.n


def test_beside_people_of_columns_with_gaps_is_that_of_numpy():
    judge, people = answers_of_three(np.random.default_rng(1))
    cells, said = np.array(people, float).T, np.array(judge, float)[:, None]
    there = ~np.isnan(cells)
    kept = there.sum(axis=1) > 1
    ours = (cells == said).sum(axis=1)[kept] / there.sum(axis=1)[kept]
    pairs = [[0, 1], [0, 2], [1, 2]]
    both = np.stack([there[:, a] & there[:, b] for a, b in pairs], 1)
    same = np.stack([cells[:, a] == cells[:, b] for a, b in pairs], 1)
    theirs = (same & both).sum(axis=1)[kept] / both.sum(axis=1)[kept]
    found = beside_people(judge, rows_of(people))
    assert (found.judge, found.people) == pytest.approx((ours.mean(), theirs.mean()))
    by_name = dict(zip("abc", people, strict=True))
    assert found.winning_rate == metrics.alt_test(judge, by_name).winning_rate
    assert found.winning_rate.n == 3


def test_beside_people_by_hand() -> None:
    # Votes AA, AB: people agree on 1 of 1 and 0 of 1; the judge with 2 of 2 and 1 of 2.
    result = beside_people(["A", "A", "B"], [["A", "A"], ["A", "B"], ["B"]])
    assert (result.judge, result.people, result.lead) == (0.75, 0.5, 0.25)
    assert (result.n, result.n_failed) == (2, {"fewer_than_two_votes": 1})
    assert beside_people([None, "A"], [["A", "A"], ["A", "B"]]).judge == 0.25


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
    assert cohen_kappa(["A"] * 8, ["A", "B"] * 4) == 0
    assert cohen_kappa(["A", "A"], ["B", "B"]) == 0.0
    perfect = cohen_kappa([0, 1] * 5, [0, 1] * 5)
    assert (perfect, perfect.interval.high) == (1.0, 1.0)
    assert perfect.interval.low < 0.8
    alike = cohen_kappa(["A", "A", None], ["A", "A", "B"])
    assert alike.reason == "both raters always give the same label"


def test_kappa_of_ratings_that_hardly_repeat_has_a_value_and_no_table_of_draws() -> None:
    ratings = [n / 7 for n in range(300)]
    found = cohen_kappa(ratings, [*ratings[1:], 0.0], weights="quadratic")
    assert found > 0.9
    assert (found.interval, found.no_interval) == (None, "more than 128 classes")


def test_weighted_kappa_needs_numbers() -> None:
    with pytest.raises(InputError, match="labels that are numbers"):
        cohen_kappa(["poor", "good"], ["good", "good"], weights="linear")


# ---- juries


def test_voters_count_in_full_as_far_as_they_err_apart():
    assert effective_voters({"x": ["A", "B", "A", "B"], "y": ["A", "B", "A", "B"]}) == 1.0
    # Each pair of answers once: no correlation, so 2 / (1 + 0).
    assert effective_voters({"x": [1, 1, 0, 0], "y": [1, 0, 1, 0]}) == 2.0
    labels = ["A", "B", "A", "B"]
    # Errors: x on the first, y on the last. φ = (0 - 1/16) / (3/16) = -1/3, taken as 0.
    votes = {"x": ["B", "B", "A", "B"], "y": ["A", "B", "A", "A"]}
    assert effective_voters(votes, labels) == 2.0
    # The votes: x has 1 A and 3 B, y 3 A and 1 B; φ = (1/4 - 3/16) / (3/16) = 1/3.
    assert effective_voters(votes) == pytest.approx(2 / (1 + 1 / 3))


def test_rows_of_a_jury_are_read_and_missing_votes_left_out():
    rows = [
        {"members": [{"member": "x", "preference": a}, {"member": "y", "preference": b}]}
        for a, b in (("A", "A"), ("B", "B"), ("A", None))
    ]
    assert effective_voters(rows) == 1.0
    with pytest.raises(InputError, match="answers by voter"):
        effective_voters([{"verdict": {}}])


@for_each(("label", "hit"), [("A", 1.0), ("tie", 0.0), ("B", 0.0)])
def test_an_order_that_failed_is_neither_side_in_the_sum(label, hit):
    # As JudgeBench's own code has it: a tie and an order that failed are no tie.
    left = "tie" if label == "tie" else "A"
    assert metrics.order_accuracy([left], [None], [label], "sign_of_sum") == hit


# Ten items by three people in two to three classes.
RATED = [
    list(row) for row in ["aab", "aaa", "bbb", "abc", "ccc", "aac", "bbb", "aaa", "bcc", "abb"]
]


@pytest.mark.whole
def test_alpha_kappa_and_ac1_are_those_of_their_papers():
    found = metrics.people_beyond_chance(RATED)
    table = np.asarray([[row.count(each) for each in "abc"] for row in RATED])
    from statsmodels.stats.inter_rater import fleiss_kappa  # half a second, for one test

    assert found.fleiss == pytest.approx(fleiss_kappa(table))
    # α is κ with the chance of a small sample: 1 − (1 − κ) (1 − 1/N), of N = 30 votes.
    assert found.alpha == pytest.approx(1 - (1 - found.fleiss) * (29 / 30))
    # AC1: chance is the mean of π (1 − π) over the classes but one; π = 12, 11 and 7 of 30.
    chance = (12 * 18 + 11 * 19 + 7 * 23) / 900 / 2
    alike = ((table * (table - 1)).sum(axis=1) / 6).mean()
    assert found.ac1 == pytest.approx((alike - chance) / (1 - chance))
    for name in ("alpha", "fleiss", "ac1"):
        low, high = found[name].interval
        assert low < found[name] < high


def test_ratings_that_are_near_count_as_near_in_alpha():
    near, far = [[1, 2], [2, 3], [4, 4], [5, 4]] * 5, [[1, 5], [2, 4], [4, 4], [5, 1]] * 5
    ends = [metrics.people_beyond_chance(own, "interval").alpha for own in (near, far)]
    assert ends[0] > 0.7 > 0 > ends[1]
    rare = metrics.people_beyond_chance([[1, 1]] * 30 + [[0, 1], [0, 0]] * 3)
    assert rare.alpha.no_interval == "fewer than 8 items have a label that differs from the rest"
    same = metrics.people_beyond_chance([[1, 1]] * 5)
    assert same.alpha.reason == "people always give the same label"


def test_columns_of_two_orders_and_of_voters_are_of_one_length() -> None:
    with pytest.raises(InputError, match="first"):
        order_accuracy(["A"], ["A", "B"], ["A", "B"], "both_right")
    with pytest.raises(InputError, match="labels"):
        effective_voters({"x": [1, 0], "y": [0, 1]}, [1])


def test_an_item_that_a_voter_left_out_is_no_error_of_his() -> None:
    # On the two items that both answered they err on different ones; the third is one's own.
    votes = {"x": [1, 0, None], "y": [0, 1, 0]}
    assert effective_voters(votes, [1, 1, 1]) == 2.0
    assert (effective_voters({"x": [1, 0]}), effective_voters({"x": [1, 0]}).n) == (1.0, 1)


def test_votes_on_a_row_without_a_group_are_a_cluster_and_groups_are_of_one_length() -> None:
    votes = [["A", "A"], ["A", "B"], ["B", "B"], ["A", "A"]] * 5
    judged: list[Any] = ["A", "B"] * 10
    for measure in (lambda **own: vote_agreement(judged, votes, **own),
                    lambda **own: metrics.people_beyond_chance(votes, **own).ac1):  # fmt: skip
        assert measure(groups=[None] * 20).interval == measure().interval
        with pytest.raises(InputError, match="for each item is needed"):
            measure(groups=[0] * 21)


@for_each("differ", [2, 3])
def test_agreement_of_people_has_an_interval_where_they_differ_on_three_items(differ) -> None:
    votes = [[0, 0]] * 10 + [[1, 1]] * 10 + [[0, 1]] * differ
    found = metrics.people_beyond_chance(votes)
    assert [each.interval is None for each in (found.alpha, found.ac1)] == [differ < 3] * 2


def test_statistics_of_scores_read_the_scores_of_verdicts() -> None:
    scores, people = [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 4, [1, 2, 3, 4, 5, 5] * 4
    verdicts: Any = [{"label": "fine", "score": score, "failures": []} for score in scores]
    for measure in (metrics.concordance, metrics.correlate):
        assert measure(verdicts, people) == measure(scores, people)
        assert measure(verdicts, people).n == 24


@for_each("metric", [metrics.accuracy, metrics.balanced_accuracy, metrics.cohen_kappa])
@for_each(
    ("judge", "people", "is_refused"),
    [
        (["A", "B"] * 5, ["model_a", "model_b"] * 5, True),
        (["A", "B"], ["a", "b"], True),
        (["A", "B"], ["x", "y"], False),  # of two items that may be chance
        (["A"] * 12, ["B"] * 12, False),  # wrong on every one
        (["A", "B"] * 6, ["A", "b"] * 6, False),
    ],
)
def test_labels_in_two_codings_are_refused(metric, judge, people, is_refused):
    with pytest.raises(InputError, match="same names") if is_refused else nullcontext():
        metric(judge, people)
