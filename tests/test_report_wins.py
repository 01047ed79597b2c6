"""How often each system wins, by the judge, by its graded score and by people."""

from __future__ import annotations

import pytest

from langchain_judges import report
from tests.judged_rows import data_of, run_of


def pairs(scores, **more):
    """A run that prefers A by these scores, on rows of which two people vote A and B."""
    rows = run_of(["A" if score > 0.5 else "B" for score in scores])
    for row, score in zip(rows, scores, strict=True):
        row["verdict"]["score"] = score
    return rows, data_of([["A", "B"]] * len(scores), **more)


# x is A on all rows: it wins three of four, and by its scores (0.9 + 0.6 + 0.8 + 0.1) / 4.
def test_each_system_wins_by_verdicts_by_graded_scores_and_by_votes():
    trust_report = report.trust(*pairs([0.9, 0.6, 0.8, 0.1], systems=["x", "y"]))
    wins = [trust_report[f"wins.x.{side}"] for side in ("judge", "score", "people")]
    assert wins == pytest.approx([0.75, 0.6, 0.5])
    assert trust_report["wins.y.score"] == pytest.approx(0.4)
    html = trust_report.to_html()
    assert "Wins, a tie as half" in html


def test_without_systems_a_wins_and_scores_of_bare_verdicts_are_not_graded():
    numbers = report.trust(run_of(["A", "tie", None]), data_of(["A", "B", "B"])).numbers
    assert numbers["wins.A.judge"].result == 0.75
    assert numbers["wins.A.judge"].result.n == 2
    assert "wins.A.score" not in numbers


def test_a_system_without_a_judged_row_has_no_rate():
    rows, data = run_of(["A", None]), data_of([None, None])
    for row, names in zip(data, (["x", "y"], ["z", "y"]), strict=True):
        row["systems"] = names
    numbers = report.trust(rows, data).numbers
    assert {key for key in numbers if "wins" in key} == {"wins.x.judge", "wins.y.judge"}
