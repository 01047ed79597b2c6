"""Property tests run under the profile of `conftest`: none races a clock."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.cases import for_each


def property_tests():
    for path in Path(__file__).parent.glob("test_*.py"):
        if "\n@given" in path.read_text(encoding="utf-8"):
            found = vars(import_module(f"tests.{path.stem}")).items()
            yield from ((name, test) for name, test in found if is_hypothesis_test(test))


def test_no_property_test_has_a_deadline():
    tests = dict(property_tests())
    timed = [n for n, t in tests.items() if t._hypothesis_internal_use_settings.deadline]
    assert len(tests) > 10
    assert timed == []


def test_the_profile_of_the_suite_is_the_one_in_force():
    assert (settings.default.max_examples, settings.default.deadline) == (25, None)


def test_each_case_that_fails_is_named():
    @for_each("number", [1, 2, 3])
    def is_two(number):
        assert number == 2

    with pytest.raises(BaseExceptionGroup, match="2 cases fail") as caught:
        is_two()
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["in the case 1"],
        ["in the case 3"],
    ]
