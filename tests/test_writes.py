"""Every entry point survives its death at any write: nothing is paid twice, nothing is lost."""

import pytest

from tests.attacks.writes import ENTRIES, problems


@pytest.mark.system
@pytest.mark.parametrize("entry", ENTRIES)
def test_death_at_a_write_costs_no_reply_that_was_stored_and_changes_no_result(entry):
    tries = list(problems(entry, parts=7))
    assert tries
    assert [each for each in tries if each] == []
