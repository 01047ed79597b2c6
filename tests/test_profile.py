"""Property tests run under the profile of `conftest`: none races a clock."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from hypothesis import is_hypothesis_test, settings


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
