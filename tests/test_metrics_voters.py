"""How many voters a jury is worth, and their weights."""

import math
import random

import pytest

from langchain_judges.errors import InputError
from langchain_judges.metrics import effective_voters, learned_weights


def test_voters_who_copy_each_other_are_one_voter():
    votes = {"x": ["A", "B", "A", "B"], "y": ["A", "B", "A", "B"]}
    assert effective_voters(votes) == 1.0


def test_independent_voters_count_in_full():
    # Each pair of answers once: no correlation, so 2 / (1 + 0).
    assert effective_voters({"x": [1, 1, 0, 0], "y": [1, 0, 1, 0]}) == 2.0


def test_with_labels_errors_count_and_not_what_both_know():
    labels = ["A", "B", "A", "B"]
    # Errors: x on the first, y on the last. φ = (0 - 1/16) / (3/16) = -1/3, taken as 0.
    votes = {"x": ["B", "B", "A", "B"], "y": ["A", "B", "A", "A"]}
    assert effective_voters(votes, labels) == 2.0
    # The votes: x has 1 A and 3 B, y 3 A and 1 B; φ = (1/4 - 3/16) / (3/16) = 1/3.
    assert effective_voters(votes) == pytest.approx(2 / (1 + 1 / 3))


def test_nobody_who_errs_cannot_be_correlated():
    results = effective_voters({"x": ["A", "B"], "y": ["A", "B"]}, ["A", "B"])
    assert math.isnan(results)
    assert results.reason == "no two voters vary on the same items"


def test_rows_of_a_jury_are_read_and_missing_votes_left_out():
    rows = [
        {"members": [{"member": "x", "preference": a}, {"member": "y", "preference": b}]}
        for a, b in (("A", "A"), ("B", "B"), ("A", None))
    ]
    assert effective_voters(rows) == 1.0
    with pytest.raises(InputError, match="answers by voter, or rows of a jury"):
        effective_voters([{"verdict": {}}])


def test_weights_are_learned_without_labels():
    draw = random.Random(0)
    truth = [draw.choice("AB") for _ in range(600)]
    other = {"A": "B", "B": "A"}
    skills = {"good": 0.9, "fair": 0.75, "other": 0.75, "third": 0.75, "coin": 0.5}
    votes = {
        name: [t if draw.random() < skill else other[t] for t in truth]
        for name, skill in skills.items()
    }
    weights = learned_weights(votes)
    # log(0.9 / 0.1) = 2.20 and log(0.75 / 0.25) = 1.10.
    assert weights["good"] > weights["fair"] > weights["coin"]
    assert weights["fair"] == pytest.approx(1.1, abs=0.4)
    assert weights["coin"] < 0.3
    with pytest.raises(InputError, match="three voters or more"):
        learned_weights({"x": ["A"]})
