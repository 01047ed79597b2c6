"""The sample of mutants, and which of them no test could kill."""

from __future__ import annotations

from benchmarks import mutants
from tests.cases import for_each


def test_a_room_without_mutants_leaves_the_sample_to_the_others(monkeypatch):
    own = {"metrics": ["m1", "m2", "m3"], "report": ["r1"], "cli": ["c1", "c2"]}
    monkeypatch.setattr(mutants, "outcomes", lambda room: dict.fromkeys(own.get(room, [])))
    drawn = mutants.sample(0, 2)
    sizes = {"metrics": 2, "report": 1, "integrations": 0, "cli": 2}
    assert {room: len(names) for room, names in drawn.items()} == sizes


@for_each(
    "old, new, equivalent",
    [
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)", True),
        ("zip(a, b, strict=True)", "zip(a, b, )", True),
        ("zip(a, b, strict=True)", "zip(a, strict=True)", False),
        ('x.decode("utf-8")', 'x.decode("UTF-8")', True),
        ('x.decode("utf-8")', 'x.decode("XXutf-8XX")', False),
        ("return a < b", "return a <= b", False),
        ('warn(text, "yellow")', 'warn(text, "YELLOW")', True),
        ('warn(text, "yellow")', 'warn(text, "XXyellowXX")', False),
        ('x = "green" if y else "red"', 'x = "green" if y else "RED"', True),
        ("told.join(0.5)", "told.join(1.5)", True),
        ('say("No row was asked.")', 'say("XXNo row was asked.XX")', True),
        ('say("No row was asked.")', 'say("no row was asked.")', True),
        ("f\"{' and '.join(names['no'])}\"", "f\"{'XX and XX'.join(names['no'])}\"", True),
        ("f\"so {' and '.join(names['no'])}\"", "f\"so {' and '.join(names['NO'])}\"", False),
        ('row.get("labels")', 'row.get("LABELS")', False),
        ('now("%Y-%m-%d %H:%M")', 'now("%y-%m-%d %h:%m")', False),
        ('say("No row was asked.")', "say(None)", False),
    ],
)
def test_a_change_that_no_test_can_tell_has_its_reason(old, new, equivalent):
    diff = f"--- a.py\n+++ a.py\n@@ -1 +1 @@\n-{old}\n+{new}\n"
    assert bool(mutants.reason(diff)) is equivalent
