"""A test of many cases runs each of them and names the one that fails."""

import pytest

from tests.cases import for_each


def test_every_case_is_run_until_one_fails_which_is_named():
    runs = []

    @for_each("number", [1, 2, 3])
    def is_odd(number):
        runs.append(number)
        assert number % 2

    with pytest.raises(AssertionError) as error:
        is_odd()
    assert (runs, error.value.__notes__) == ([1, 2], ["in the case 2"])


def test_fixtures_and_stacked_cases_come_together():
    runs = []

    @for_each("letter", "ab")
    @for_each(("low", "high"), [(1, 2), (3, 4)], ids=["small", "large"])
    def note(folder, letter, low, high):
        runs.append((folder, letter, low, high))

    note(folder="f")
    assert runs == [("f", "a", 1, 2), ("f", "a", 3, 4), ("f", "b", 1, 2), ("f", "b", 3, 4)]


async def test_coroutines_are_awaited():
    runs = []

    @for_each("number", [1, 2])
    async def note(number):
        runs.append(number)

    await note()
    assert runs == [1, 2]


def test_a_check_that_raises_too_little_names_its_case():
    @for_each("number", [1], ids=lambda number: f"the number {number}")
    def refuses(number):
        with pytest.raises(ValueError, match="never"):
            str(number)

    with pytest.raises(pytest.fail.Exception) as error:
        refuses()
    assert error.value.__notes__ == ["in the case the number 1"]


def test_no_cases_are_refused():
    with pytest.raises(ValueError, match="no case"):
        for_each("number", [])
