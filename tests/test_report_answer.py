"""The first sentence of a report: yes, no or not yet, for what, and why."""

from __future__ import annotations

import re

from langchain_judges import report
from tests.cases import for_each
from tests.judged_rows import data_of, run_of

NBSP = "\u00a0"


def answer(answers, labels, **options):
    return report.trust(run_of(answers), data_of(labels), **options).answer


def long_and_short(labels, right):
    """Rows of which `right` in ten have the better text longer."""
    data = data_of(labels)
    for number, row in enumerate(data):
        longer = "output_a" if (row["label"] == "A") == (number % 10 < right) else "output_b"
        row["output_a"] = row["output_b"] = "x"
        row[longer] = "x" * 50
    return data


def test_a_judge_below_always_the_longer_text_is_a_no():
    labels = ["A", "B"] * 100
    wrong = [label if i % 2 else "tie" for i, label in enumerate(labels)]
    trust_report = report.trust(run_of(wrong), long_and_short(labels, 8))
    assert trust_report.answer.word == "no"
    assert trust_report.answer.text.startswith(
        "No: worse than always picking the longer text, by 30"
    )
    assert 'class="answer no"' in trust_report.to_html()


def test_without_labels_or_with_few_it_is_not_yet():
    assert answer(["A"], [None]).text == "Not yet: no judged row has a label."
    assert answer(["A"], ["A"]).text == "Not yet: too few labels (1) to say."
    assert answer(["A", "B"] * 3, ["A", "B"] * 3).word == "not yet"
    # A provider that was down says nothing of the judge.
    assert answer([None] * 30, ["A"] * 30).text == "Not yet: no row was judged."


def test_a_label_may_be_an_objective_key_and_is_not_called_people():
    trust_report = report.trust(run_of(["A", "B"] * 50), data_of(["A", "B"] * 50))
    assert trust_report.answer.text.startswith("Yes, for averages over many rows: better than")
    assert "differs from the label 0 times in 100" in trust_report.answer.text
    assert "agrees with people" not in trust_report.to_html().replace(trust_report.sentence, "")


# Strictly right on half of the rows, in one order alone on three quarters: beside A on all
# rows, which is right on half, stands what one order comes to.
def test_a_judge_of_two_orders_is_held_against_rules_by_one_order_alone():
    run = run_of([("A", "A"), ("A", "B"), ("B", "B"), ("B", "A")] * 50)
    data = data_of(["A", "A", "B", "B"] * 50, output_a="x", output_b="y")
    trust_report = report.trust(run, data)
    assert "by one order alone; a single verdict" in trust_report.answer.text
    html = trust_report.to_html()
    assert "the same by one order alone" in html
    assert "It, by one order alone" in html


def test_labels_that_may_be_a_key_are_nowhere_called_people():
    data = long_and_short(["A", "B"] * 50, 7)
    for number, row in enumerate(data):
        row |= {"category": f"c{number % 3}", "systems": ["x", "y"]}
    html = report.trust(run_of(["A"] * 100), data).to_html()
    body = html.partition("<body>")[2].partition("<script")[0]
    assert re.findall(r"[^>]*\bwith people\b[^<]*|[^>]*\bby people\b[^<]*", body) == []


# 149 of 200 are 74.5 %: 75 and 26 times in 100 would be more than all of them.
def test_agreement_and_the_rest_of_it_are_rounded_together():
    labels = ["A", "B"] * 100
    wrong = [label if i >= 51 else "AB"[label == "A"] for i, label in enumerate(labels)]
    trust_report = report.trust(run_of(wrong), data_of(labels))
    assert f"75{NBSP}%" in trust_report.details
    assert "differs from the label 25 times in 100" in trust_report.answer.text


# The judge follows the majority, and agrees with more people than the one who differs does.
def test_as_good_as_one_more_person_is_a_yes_and_clearly_worse_a_no():
    votes = [["A", "A", "B"], ["B", "B", "B"]] * 150
    good = answer(["A", "B"] * 150, votes)
    assert good.text.startswith("Yes, in place of one more person: no worse by 5 points")
    unanimous = [["A", "A", "A"], ["B", "B", "B"]] * 150
    often = [a if i % 5 else "tie" for i, a in enumerate(["A", "B"] * 150)]
    bad = answer(often, unanimous)
    assert bad.text.startswith("No, not in place of a person: agrees less with people")


@for_each(("least", "word"), [(0.6, "yes"), (0.8, "not yet"), (0.95, "no")])
def test_a_bar_of_ones_own_decides_by_the_whole_interval(least, word):
    labels = ["A", "B"] * 100
    eight_of_ten = [a if i % 10 < 8 else "tie" for i, a in enumerate(labels)]
    assert answer(eight_of_ten, labels, min_agreement=least).word == word


def test_the_winning_rate_and_non_inferiority_stand_on_the_page():
    trust_report = report.trust(run_of(["A", "B"] * 60), data_of([["A", "A"], ["B", "A"]] * 60))
    assert trust_report["agreement.winning_rate"].n == 2
    over = trust_report.numbers["agreement.over_people"]
    assert "one more person" in over.note
    assert over.note in trust_report.to_html()


def test_a_number_without_an_interval_says_why():
    data = data_of(["A", "B"] * 6)
    for number, row in enumerate(data):
        row["group"] = number % 3
    html = report.trust(run_of(["A"] * 6 + ["B"] * 6), data).to_html()
    assert "no range: too few groups" in html


# Right on half of the rows on which people are of one mind: far below them, and no better
# than always picking A.
def test_a_judge_far_below_people_is_a_no_also_where_no_rule_is_beaten():
    votes = [["A", "A"], ["B", "B"]] * 60
    answers = ["A", "B", "B", "A"] * 30
    text = answer(answers, votes).text
    assert text.startswith("No, not in place of a person")
    assert "not shown to be better than" in text
