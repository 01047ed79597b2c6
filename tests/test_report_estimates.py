"""Ratings, confidence, unanimity, and what people would say of all rows."""

from __future__ import annotations

import pytest

from langchain_judges import metrics, report
from tests.judged_rows import data_of, run_of


def rated(pairs):
    """A report of ratings: (the judge's, people's) of each text."""
    rows = run_of(["A"] * len(pairs))
    for row, (answer, _) in zip(rows, pairs, strict=True):
        fields = {k: v for k, v in row["verdict"].items() if k not in ("preference", "flipped")}
        row["verdict"] = {**fields, "label": answer, "score": answer, "recalled": []}
    data = [
        {"id": f"r{i}", "input": "q", "output": "t", "label": label}
        for i, (_, label) in enumerate(pairs)
    ]
    return report.trust(rows, data)


# Always one step higher: the order is people's, and no rating is the same.
def test_a_judge_that_rates_a_step_higher_orders_as_people_do():
    trust_report = rated(
        [(label + 1, label) for label in (1, 2, 3, 4, 3, 2)] * 10 + [(3, 1), (4, 2)]
    )
    assert trust_report["agreement.label.wrong"] == 0
    assert trust_report["ratings.spearman"] > 0.9
    assert trust_report["ratings.offset"] == pytest.approx((60 + 2 + 2) / 62)
    assert trust_report["ratings.error"] == trust_report["ratings.offset"]
    assert trust_report.headline.key == "ratings.spearman"
    assert trust_report.uses["ordering"].word == "yes"
    assert trust_report.uses["averages"].word == "no"
    assert "Rank correlation with the labels" in trust_report.to_html()


def test_a_judge_that_rates_by_chance_is_a_not_yet():
    trust_report = rated([(1 + i % 5, 1 + (i // 5) % 5) for i in range(50)])
    assert trust_report.uses["ordering"].word != "yes"


# Of 40 answers at 90 % 36 are right, of 40 at 60 % 20: off by 0 and by 0.1.
def sure() -> tuple[list[str], list[str], list[float]]:
    answers = ["A"] * 80
    labels = ["A" if i % 10 else "B" for i in range(40)] + ["A", "B"] * 20
    return answers, labels, [0.9] * 40 + [0.6] * 40


def test_confidence_is_held_against_agreement():
    results = metrics.confidence_calibration(*sure())
    assert [each.agreement.n for each in results.bins] == [40, 40]
    assert results.ece == pytest.approx(0.5 * 0.1 + 0.5 * 0)
    # (36 · 0.01 + 4 · 0.81 + 20 · 0.16 + 20 · 0.36) / 80
    assert results.brier == pytest.approx((0.36 + 3.24 + 3.2 + 7.2) / 80)
    assert results.auc > 0.5


def test_the_surest_answers_are_taken_with_all_of_their_confidence():
    curve = metrics.abstention_curve(*sure(), shares=(1.0, 0.4))
    assert curve[0] == (1.0, pytest.approx(56 / 80))
    assert curve[1] == (0.5, pytest.approx(0.9))


def test_the_page_tells_of_confidence_where_a_judge_has_some():
    answers, labels, chances = sure()
    rows = run_of(answers)
    for row, chance in zip(rows, chances, strict=True):
        row["verdict"]["confidence"] = chance
    trust_report = report.trust(rows, data_of(labels))
    assert trust_report["confidence.surest.50"] == pytest.approx(0.9)
    assert "by chance alone up to" in trust_report.to_html()
    assert "surest" not in report.trust(run_of(answers), data_of(labels)).details


# Of ten groups of four all are right in five and wrong in five: ten items, not forty.
def test_the_surest_answers_count_groups_too():
    labels = [("A", "B")[i // 4 % 2] for i in range(40)]
    widths = []
    for groups in (None, [i // 4 for i in range(40)]):
        ((_, result),) = metrics.abstention_curve(
            ["A"] * 40, labels, [0.9] * 40, shares=(1.0,), groups=groups
        )
        widths.append(result.interval.high - result.interval.low)
    assert widths[1] > 1.7 * widths[0]


def test_agreement_is_parted_by_whether_people_are_of_one_mind():
    votes = [["A", "A"]] * 10 + [["A", "A", "B"]] * 10
    trust_report = report.trust(run_of(["A"] * 10 + ["B"] * 10), data_of(votes))
    assert (trust_report["people.unanimous"], trust_report["people.split"]) == (1, 0)


# People: A wins 10 of 20 labelled rows, the judge says A on all; so half of the rest is A.
def test_judgments_of_all_rows_are_corrected_by_the_labels():
    labels = ["A", "B"] * 10 + [None] * 30
    trust_report = report.trust(run_of(["A"] * 50), data_of(labels))
    assert trust_report["people.corrected"] == pytest.approx(0.5)
    assert "20 labels" in trust_report.numbers["people.corrected"].note
