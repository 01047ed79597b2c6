"""Difficulty, the likely truth behind votes, and systems at equal style."""

from __future__ import annotations

import random

import pytest

from langchain_judges import report
from tests.judged_rows import data_of, run_of


def test_agreement_is_given_by_the_levels_of_difficulty():
    data = data_of(["A"] * 30)
    for number, row in enumerate(data):
        row["difficulty"] = "hard" if number % 3 else "easy"
    trust_report = report.trust(run_of([("B", "A")[n % 3 == 0] for n in range(30)]), data)
    assert (trust_report["difficulty.easy"], trust_report["difficulty.hard"]) == (1, 0)
    assert trust_report["difficulty.hard"].n == 20


# Right on the easier half: on all of the first third, half of the second, none of the last.
def test_numbers_of_difficulty_are_cut_in_thirds():
    data = data_of(["A"] * 60)
    for number, row in enumerate(data):
        row["difficulty"] = number / 10
    trust_report = report.trust(run_of(["A"] * 30 + ["B"] * 30), data)
    thirds = [
        n.result for key, n in trust_report.numbers.items() if key.startswith("difficulty.")
    ]
    assert thirds == pytest.approx([1, 0.5, 0])


def test_rows_of_one_difficulty_or_none_are_not_parted():
    for data in (data_of(["A"] * 20), data_of(["A"] * 20, difficulty="hard")):
        numbers = report.trust(run_of(["A"] * 20), data).numbers
        assert not any(key.startswith("difficulty.") for key in numbers)


# Two careless raters outvote a careful pair on some rows; the truth follows the careful pair.
def test_the_likely_truth_behind_votes_is_nearer_to_a_judge_who_knows_it():
    rng = random.Random(5)
    truth = [rng.choice("AB") for _ in range(200)]

    def vote(answer, right):
        return answer if rng.random() < right else "AB"[answer == "A"]

    votes = [[vote(t, q) for q in (0.95, 0.95, 0.55, 0.55, 0.55)] for t in truth]
    trust_report = report.trust(run_of(truth), data_of(votes))
    assert trust_report["people.likely"] > trust_report["agreement.label.wrong"]
    assert trust_report["people.likely"] > 0.93
    assert "5 raters" in trust_report.numbers["people.likely"].note


def test_two_votes_a_row_show_no_likely_truth():
    trust_report = report.trust(run_of(["A"] * 20), data_of([["A", "B"]] * 20))
    assert "people.likely" not in trust_report.numbers
