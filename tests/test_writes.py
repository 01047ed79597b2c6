"""Every entry point survives its death at any write: nothing is paid twice, nothing is lost."""

import json

import pytest

from tests.attacks.writes import ENTRIES
from tests.processes import start

# In a process of its own: a small one is forked in a moment, and has one thread.
TRY = """
import json
from tests.attacks.writes import problems
print(json.dumps(list(problems({!r}, parts=7))))
"""


@pytest.mark.system
@pytest.mark.parametrize("entry", ENTRIES)
def test_death_at_a_write_costs_no_reply_that_was_stored_and_changes_no_result(entry):
    trying = start("-c", TRY.format(entry), imports=["tests.attacks.writes"])
    printed, errors = trying.communicate()
    assert trying.returncode == 0, errors
    tries = json.loads(printed)
    assert tries
    assert [each for each in tries if each] == []
