"""What judges like beside quality."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_judges.errors import InputError
from langchain_judges.metrics import length_bias, position_bias
from tests.cases import for_each


def test_a_judge_that_takes_the_first_slot_flips_always() -> None:
    result = position_bias(["A"] * 20, ["B"] * 20)
    assert (result.flip_rate, result.toward_first, result.first_slot_rate) == (1.0, 1.0, 1.0)
    assert result.toward_second == 0
    last = position_bias(["B"] * 3 + ["A"], ["A"] * 3 + ["A"])
    assert (last.toward_second, last.toward_first) == (pytest.approx(3 / 4), 0)


def test_a_change_into_a_tie_is_a_flip_and_a_failed_order_none() -> None:
    refused = {"preference": None, "failures": [{"reason": "refusal"}]}
    result = position_bias(["A", "tie", "A", "tie", refused], ["A", "B", "B", "tie", "A"])
    assert result.flip_rate == pytest.approx(2 / 4)
    assert result.flip_rate.n_failed == result.first_slot_rate.n_failed == {"refusal": 1}
    # Winners: A first, A second; B second order = first slot; A first, B first.
    assert (result.first_slot_rate, result.first_slot_rate.n) == (pytest.approx(4 / 5), 5)


def test_length_bias_is_the_papers_and_leaves_out_equal_lengths_and_failures() -> None:
    # Four votes for the shorter text; the judge: shorter, longer, tie, longer.
    result = length_bias(["A", "B", "tie", "B"], ["A"] * 4, [1] * 4, [2] * 4)
    assert (result, result.n) == (pytest.approx(3 / 4), 4)
    result = length_bias(["B", None, "B", "A"], ["A"] * 4, [1, 1, 3, 9], [2, 2, 3, 2])
    assert (result, result.n, result.n_failed) == (1.0, 1, {"not_judged": 1})
    assert "never the preferred" in (length_bias(["A"], ["A"], [2], [1]).reason or "")


def test_what_length_bias_leaves_out_is_counted_also_where_nothing_is_left() -> None:
    # The judge failed on two shorter texts that people prefer; a failure elsewhere is none.
    sides, lengths = ["A", "A", "B"], ([1, 1, 1], [2, 2, 2])
    result = length_bias([None] * 3, sides, *lengths)
    assert (result.reason, result.n_failed) == (
        "the shorter text is never the preferred one",
        {"not_judged": 2},
    )
    # Of texts of one length neither is the shorter, whatever people prefer.
    assert length_bias(["A", "A"], ["B", "A"], [1, 1], [1, 2]).n == 1


@for_each("column", range(5))
def test_columns_of_length_bias_are_of_one_length(column: int) -> None:
    columns: list[Any] = [["A", "B"], ["A", "B"], [1, 2], [2, 1], [0, 1]]
    columns[column] = columns[column][:1]
    with pytest.raises(InputError, match="one value for each"):
        length_bias(*columns[:4], groups=columns[4])
