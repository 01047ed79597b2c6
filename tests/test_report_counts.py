"""Which rows a report counts: missing texts and groups, repeated verdicts, two orders."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from scipy import stats

from langchain_judges import report
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.judged_rows import data_of, run_of

LABELS = ["A", "B"] * 20


def test_a_row_without_a_text_leaves_the_others_their_lengths():
    data = data_of(LABELS)
    whole = report.trust(run_of(LABELS[::-1]), data)
    data[7]["output_a"] = ""
    trust_report = report.trust(run_of(LABELS[::-1]), data)
    assert trust_report["baseline.length"].n == whole["baseline.length"].n - 1 == 39
    assert trust_report["bias.length"].n in (whole["bias.length"].n, whole["bias.length"].n - 1)
    assert trust_report.numbers["baseline.length"].note == "of the 39 rows with texts"
    assert (
        "1 row lacks a text; numbers of length and style are of the others."
        in trust_report.notes
    )


def test_a_row_without_a_group_is_a_group_of_its_own():
    data = data_of(LABELS)
    for number, row in enumerate(data):
        row["group"] = f"g{number // 4}"
    del data[5]["group"]
    trust_report = report.trust(run_of(LABELS), data)
    # Ten groups of four; one row of the second has left it.
    assert len(set(trust_report.sample.groups)) == 11
    assert trust_report.notes == ["1 row has no group and counts as a group of its own."]


def test_rows_with_several_verdicts_count_once_by_the_last_that_says_something():
    rows = [*run_of(["A", "B", None]), *run_of(["B", "B", "A"]), *run_of(["A", None, None])]
    trust_report = report.trust(rows, data_of(["A", "B", "A"]))
    assert trust_report["agreement.label.wrong"].n == 3
    assert trust_report["agreement.label.wrong"] == 1
    assert "6 of rows with a later verdict" in trust_report.left_out


# Of the pairs of verdicts on a row, the first has 1 of 3 alike, the second all.
def test_repeated_verdicts_show_how_often_a_judge_says_the_same_again():
    rows = [*run_of(["A", "B"]), *run_of(["B", "B"]), *run_of(["A", "B"])]
    trust_report = report.trust(rows, data_of(["A", "B"]))
    assert trust_report["bias.repeats"] == pytest.approx((1 / 3 + 1) / 2)


def test_a_strict_judge_stands_beside_a_coin_that_is_tossed_twice():
    answers = [("A", "A"), ("A", "B"), ("B", "B"), ("B", "A")] * 10
    trust_report = report.trust(run_of(answers), data_of(["A", "A", "B", "B"] * 10))
    assert trust_report["baseline.coin"] == 0.25
    # Strictly right on 20 of 40 rows; in one order alone on 20 and half of the other 20.
    assert trust_report["agreement.label.wrong"] == 0.5
    assert trust_report["agreement.mean_of_orders.wrong"] == 0.75
    best = max(
        trust_report[f"baseline.{name}"] for name in ("length", "first_slot", "majority")
    )
    assert trust_report["baseline.lead"] == pytest.approx(0.75 - best)


def test_every_rule_for_two_orders_is_counted():
    answers = [("A", "A"), ("A", "tie"), ("A", "B"), ("B", "B")]
    trust_report = report.trust(run_of(answers), data_of(["A"] * 4))
    rules = ("both_right", "mean_of_orders", "sign_of_sum", "strict")
    shares = [float(trust_report[f"agreement.{rule}.wrong"]) for rule in rules]
    # Both right: row 1. Means 1, ½, ½, 0. The sum prefers A on rows 1 and 2; strict on 1.
    assert shares == [0.25, 0.5, 0.5, 0.25]


COUNTED_BY_GROUPS = (
    "agreement.label.wrong",
    "agreement.kappa",
    "agreement.mean_of_orders.wrong",
    "baseline.length",
    "baseline.first_slot",
    "baseline.lead",
    "bias.flips",
    "bias.first_slot_rate",
    "bias.length_slope",
    "bias.length",
    "confidence.brier",
    "confidence.auc",
    "confidence.surest.50",
    "wins.A.judge",
)


def styled_rows(copies):
    """Forty rows, each written down this often under one group."""
    rng = random.Random(7)
    answers, data = [], data_of(rng.choices(["A", "B"], k=40))
    for number, row in enumerate(data):
        answers.append((rng.choice([row["label"], "A", "B"]), rng.choice([row["label"], "B"])))
        row["group"] = f"g{number}"
        row["output_a"] = "- item\n" * rng.randint(0, 4) + "**bold** " * rng.randint(0, 4) + "x"
        row["output_b"] = "- item\n" * rng.randint(0, 4) + "**bold** " * rng.randint(0, 4) + "y"
    rows = run_of([answer for answer in answers for _ in range(copies)])
    for number, row in enumerate(rows):
        row["verdict"]["confidence"] = 0.5 + (number // copies * 7 % 40) / 100
    copied = [
        {**row, "id": f"r{i}"} for i, row in enumerate(r for r in data for _ in range(copies))
    ]
    return report.trust(rows, copied)


def test_rows_that_repeat_in_a_group_make_no_number_of_the_page_surer():
    once, often = styled_rows(1), styled_rows(9)
    for key in COUNTED_BY_GROUPS:
        spans = [each[key].interval for each in (once, often)]
        widths = [span.high - span.low for span in spans]
        # Rows that are counted alone would leave a third of the width.
        assert widths[1] > 0.8 * widths[0], key


def test_tests_of_judges_count_groups_and_are_adjusted():
    data = data_of(["A"] * 60)
    for number, row in enumerate(data):
        row["group"] = number // 10
    runs = {
        "one": run_of(["A"] * 50 + ["B"] * 10),
        "two": run_of(["B"] * 30 + ["A"] * 30),
        "three": run_of(["B"] * 40 + ["A"] * 20),
    }
    contests = {(c.first, c.second): c for c in report.compare(runs, data).contests}
    # The leads of the six groups are 10, 10, 10, 0, 0 and −10 rows: s / √6 of them,
    # and Student's t on the four groups with a lead.
    leads = [1, 1, 1, 0, 0, -1]
    error = math.sqrt(statistics.variance(leads) / 6 + 1 / (6 * 60))
    assert contests["one", "two"].p == pytest.approx(2 * stats.t.sf(1 / 3 / error, 4))
    for each in contests.values():
        assert each.holm_p >= each.p


def test_people_among_themselves_and_the_most_that_answers_reach_stand_apart():
    votes = [["A", "A", "B"], ["B", "B", "B"], ["A", "B", "B"]] * 5
    trust_report = report.trust(run_of(["A", "B", "B"] * 5), data_of(votes))
    # Two people agree on 1, 3 and 1 of 3 pairs; the commonest votes are 2, 3 and 2 of 3.
    assert trust_report["agreement.people"] == pytest.approx(5 / 9)
    assert trust_report["agreement.oracle"] == pytest.approx(7 / 9)
    html = trust_report.to_html()
    assert "People among themselves" in html
    assert "The most that any answers could reach" in html
    assert "ceiling" not in html.lower()


# Of four rows two were asked in both orders; one failed, which no order of it can make right.
def test_rules_for_two_orders_count_no_row_that_was_asked_in_one():
    trust_report = report.trust(run_of([("A", "A"), ("A", "B"), "A", None]), data_of(["A"] * 4))
    assert trust_report["agreement.both_right.wrong"].n == 3
    assert trust_report["agreement.both_right.wrong"] == pytest.approx(1 / 3)
    assert trust_report["agreement.label.wrong"].n == 4


def test_categories_and_disagreements_that_are_cut_say_how_many_there_are():
    data = data_of(["A"] * 46)
    for number, row in enumerate(data):
        row["category"] = f"c{number % 23}"
    html = report.trust(run_of(["B"] * 20 + ["A"] * 26), data).to_html()
    assert "17 more, all nearer to 0" in html
    assert "10 of 20, the surest first" in html
    all_of_them = report.trust(run_of(["A", "B", "B"]), data_of(["A"] * 3)).to_html()
    assert "the surest first" not in all_of_them
    assert "all nearer to 0" not in all_of_them


# Alike on rows 1, 2 and 4; either is wrong on rows 2, 3 and 4, and both alike on 2 and 4.
def test_judges_are_held_against_each_other_and_the_better_comes_first():
    data = data_of(["A", "A", "A", "A"])
    runs = {"worse": run_of(["A", "B", "tie", "B"]), "better": run_of(["A", "B", "A", "B"])}
    both = report.compare(runs, data)
    assert [each.name for each in both.reports] == ["better", "worse"]
    (contest,) = both.contests
    assert contest.same == 3 / 4
    assert contest.same_error == 2 / 3


@for_each(("own", "label"), [(1, "1"), ("1", 1)])
def test_labels_are_read_as_the_type_of_the_judges_labels(own, label):
    verdict = {"label": own, "score": 1.0, "failures": [], "usage": no_usage()}
    run = [{"id": f"{n}", "index": n, "verdict": verdict} for n in range(4)]
    # A table of CSV whose texts have other names than the judge's fields.
    data = [{"id": f"{n}", "question": "Q", "label": label} for n in range(4)]
    assert report.trust(run, data)["agreement.label.wrong"] == 1
