"""A judge's lean to a place, taken out of its probabilities."""

import math

import pytest

from langchain_judges.errors import InputError
from langchain_judges.metrics import calibrated_slots, slot_probabilities


def chance(odds):
    return 1 / (1 + math.exp(-odds))


def leaning(qualities, lean):
    """Return P(first) in both orders: log-odds of quality and of the place add up."""
    return [chance(q + lean) for q in qualities], [chance(lean - q) for q in qualities]


def test_a_lean_that_is_added_is_taken_out_whole():
    qualities = [-2.0, -0.5, 0.25, 1.0, 3.0]
    found = calibrated_slots(*leaning(qualities, 1.5))
    assert found.probabilities == pytest.approx([chance(q) for q in qualities])
    # Before, the place outweighs the qualities -0.5, 0.25 and 1.
    assert (found.flips_before.n, float(found.flips_before)) == (5, pytest.approx(3 / 5))
    assert float(found.flips_after) == 0
    assert found.preferences == ["B", "B", "A", "A", "A"]


def test_a_judge_that_does_not_lean_is_left_as_it_is():
    first, second = leaning([-1.0, 0.5, 2.0], 0.0)
    found = calibrated_slots(first, second)
    assert found.probabilities == pytest.approx(first)
    assert found.of(0.5) == pytest.approx(0.5)


def test_the_order_of_the_probabilities_stays():
    found = calibrated_slots([0.9, 0.8, 0.99, 0.6], [0.7, 0.95, 0.6, 0.9])
    assert found.calibrated == sorted(found.calibrated)


def test_a_pair_without_an_order_has_no_probability():
    found = calibrated_slots([0.9, None, 0.3], [0.2, 0.5, 0.8])
    assert found.probabilities[1] is None
    assert found.flips_before.n == 2
    with pytest.raises(InputError, match="both orders"):
        calibrated_slots([None], [0.5])
    with pytest.raises(InputError, match="between 0 and 1"):
        calibrated_slots([1.5], [0.5])


def test_probabilities_are_read_from_rows_by_place():
    ballots = [
        {"order": "AB", "preference": "B", "probability": 0.8},
        {"order": "BA", "preference": "B", "probability": 0.7},
    ]
    first, second = slot_probabilities([{"ballots": ballots}, {"ballots": []}])
    # First stands A: 1 - 0.8; then B: 0.7.
    assert (first, second) == ([pytest.approx(0.2), None], [0.7, None])
