"""Runs that are ended midway and resumed; `tests.attacks.matrix` tries all of them."""

import pytest

from tests.attacks.matrix import Case, tried

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    "case",
    [
        Case("bsm", "out, threads", "kill -9"),
        Case("relative", "out, async", "Ctrl-C"),
        Case("writer", "checkpointer, async", "cancellation"),
        Case("jury", "checkpointer, threads", "SIGTERM"),
        Case("bsm", "batch", "kill -9"),
    ],
    ids=", ".join,
)
def test_no_finished_call_is_paid_twice_and_the_verdicts_are_the_same(case):
    assert tried(case) == ""
