"""What a report says of a judge's consistency and of its own texts."""

from __future__ import annotations

import pytest

from langchain_judges import report
from langchain_judges.report.estimates import _of_family
from tests.cases import for_each
from tests.judged_rows import data_of, run_of


def pairs_of(systems, labels, groups):
    data = data_of(labels)
    for row, names, group in zip(data, systems, groups, strict=True):
        row |= {"systems": list(names), "group": group}
    return data


# On the first question x > y > z > x, a circle; on the second x > y > z and x > z.
def test_a_judge_that_goes_in_a_circle_contradicts_itself():
    systems = [("x", "y"), ("y", "z"), ("z", "x")] * 2
    data = pairs_of(systems, [None] * 6, ["q1"] * 3 + ["q2"] * 3)
    trust_report = report.trust(run_of(["A", "A", "A", "A", "A", "B"]), data)
    assert trust_report["bias.transitivity"] == 0.5
    assert trust_report["bias.transitivity"].n == 2


# Its own text wins three of four by the judge, and one of four by people.
def test_a_judge_that_favours_its_own_model_is_told_on():
    data = pairs_of([("gpt-4", "other")] * 4, ["A", "B", "B", "B"], range(4))
    rows = run_of(["A", "A", "A", "B"], judge={"mark": "m", "model": "openai:gpt-4-0613"})
    trust_report = report.trust(rows, data)
    assert trust_report["bias.self_preference"] == pytest.approx(0.75 - 0.25)
    assert "own: gpt-4" in trust_report.to_html()


@for_each(
    ("model", "system", "own"),
    [("gpt-4", "gpt-4", True), ("gpt-4o", "gpt-4", False), ("gpt-4", None, False)],
)
def test_a_version_of_a_model_is_of_its_family(model, system, own):
    assert _of_family(model, system) is own
