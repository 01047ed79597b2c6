"""Several criteria of one text: each with its own agreement, on the page and in the answer."""

from __future__ import annotations

import pytest

from langchain_judges import report
from langchain_judges.errors import InputError
from langchain_judges.report.watch import gates
from langchain_judges.rows.labels import check_countable
from langchain_judges.runs.columns import TableForm
from langchain_judges.verdict import no_usage


def judged(labels):
    """A judge that rates facts one step higher than people, and flow by chance."""
    verdict = {"label": 0.5, "score": 0.5, "failures": [], "usage": no_usage()}
    return [
        {
            "id": str(i),
            "verdict": verdict,
            "subscores": [
                {"criterion": "facts", "label": facts + 1},
                {"criterion": "flow", "label": 1 + i % 5},
                {"criterion": "style", "label": "plain"},
            ],
        }
        for i, (facts, _) in enumerate(labels)
    ]


def rows(**more):
    """Fifty texts whose two criteria have nothing to do with each other."""
    labels = [(1 + i % 4, 1 + (i // 5) % 5) for i in range(50)]
    data = [
        {"id": str(i), "input": "q", "output": "t", "labels": {"facts": a, "flow": b}, **more}
        for i, (a, b) in enumerate(labels)
    ]
    return judged(labels), data


def test_each_criterion_has_its_own_agreement():
    trust_report = report.trust(*rows())
    assert trust_report["criterion.facts.spearman"] == pytest.approx(1)
    assert (
        trust_report["criterion.facts.offset"],
        trust_report["criterion.facts.agreement"],
    ) == (1, 0)
    assert trust_report["criterion.flow.spearman"] == pytest.approx(0, abs=0.01)
    assert "perfect correlation" in trust_report["criterion.facts.spearman"].no_interval
    # Quadratic κ of a constant step: 2·cov / (var + var + step²), var = 1.2496 at 13:13:12:12.
    assert trust_report["criterion.facts.kappa"] == pytest.approx(
        2 * 1.2496 / (2 * 1.2496 + 1), abs=0.01
    )
    assert trust_report.sample.criteria == ["facts", "flow"]


def test_the_confidence_of_a_total_is_not_held_against_peoples_totals():
    # It is of the labels: a mean is never the very same number.
    run, data = rows(label=0.75)
    for row in run:
        row["verdict"] = {**row["verdict"], "confidence": 0.9}
    assert not report.trust(run, data).sample.has_confidence


def test_the_answer_names_the_criteria_that_may_be_trusted():
    run, data = rows()
    for row in data[::5]:
        row["labels"]["facts"] = 2
    trust_report = report.trust(run, data)
    answer = trust_report.uses["ordering"]
    assert answer.word != "yes"
    assert "yes by facts (" in answer.text
    assert "by flow (" in answer.text
    assert trust_report.headline.key == "criterion.flow.spearman"
    assert not gates(trust_report, min_agreement=0.5)[0].passed


def test_the_page_has_a_line_for_each_criterion():
    page = report.trust(*rows()).to_html()
    assert page.count('data-key="criterion.') >= 8
    assert "<caption>By criterion</caption>" in page


def test_a_label_of_the_whole_stays_the_headline():
    trust_report = report.trust(*rows(label=0.5))
    assert trust_report.headline.key == "agreement.label.wrong"
    assert "By criterion" in trust_report.to_html()


def test_judges_are_compared_by_their_criteria():
    run, data = rows()
    both = report.compare({"one": run, "two": run}, data)
    assert "By criterion" in both.to_html()


def test_columns_of_a_table_are_labels_by_criterion():
    record = {"input": "q", "output": "t", "label.facts": "4", "flow": "", "label.tone": "warm"}
    row = TableForm({"label.flow": "flow"}).cell_row(record, 0)
    assert row["labels"] == {"facts": 4, "tone": "warm"}


def test_labels_by_criterion_have_names():
    with pytest.raises(InputError, match="name a label for each criterion"):
        check_countable({"input": "q", "output": "t", "labels": [4, 5]})
