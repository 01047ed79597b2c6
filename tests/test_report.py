"""The numbers of a report: they are the metrics', over the rows that count."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from langchain_judges import metrics, report
from langchain_judges.errors import InputError
from langchain_judges.metrics.agreement import majority_vote
from langchain_judges.report.compared_runs import Contest
from langchain_judges.report.overview import overview
from langchain_judges.report.terminal import verdict_panel
from langchain_judges.verdict import POINTS, Preference, no_usage
from tests.cases import for_each
from tests.judged_rows import data_of, items_of, run_of, texts_of, verdict
from tests.test_report_uses import seen

NBSP = "\u00a0"
LABELS = ["A", "B"] * 20


# ---- agreement


VOTES: list[list[Preference | None]] = [
    ["A", "A"],
    ["A", "B"],
    ["B", "B"],
    ["tie", "B"],
    ["A", "A"],
    ["B", "A"],
] * 5


ANSWERS = [("A", "A"), ("A", "B"), ("B", "B"), ("B", "A"), (None, "A"), ("A", "A")] * 5


def voted():
    rows = run_of(ANSWERS)
    for row in rows:
        if None in [each["preference"] for each in row["by_order"].values()]:
            row["verdict"] = verdict(None)
    return rows, data_of(VOTES, category="c")


def test_every_agreement_is_the_metrics_own():
    rows, data = voted()
    trust_report = report.trust(rows, data)
    labels = [majority_vote(votes) for votes in VOTES]
    first, second = ([answer[i] for answer in ANSWERS] for i in (0, 1))
    assert trust_report["agreement.votes.wrong"] == metrics.vote_agreement(rows, VOTES)
    assert trust_report["agreement.label.wrong"] == metrics.accuracy(rows, labels)
    once = metrics.order_accuracy(first, second, labels, "mean_of_orders")
    assert trust_report["agreement.mean_of_orders.wrong"] == once
    assert trust_report["agreement.people"] == metrics.people_agreement(VOTES)
    assert trust_report["bias.flips"] == metrics.position_bias(first, second).flip_rate
    assert trust_report["agreement.votes.wrong"].n_failed == {"refusal": 5}
    # Each order by itself beside people, every row alike: what failed agrees with nobody.
    beside = metrics.beside_people(first, VOTES, second)
    assert trust_report["agreement.over_people"] == pytest.approx(float(beside.lead))


def test_the_sentence_ends_with_agreement_people_flips_and_failures():
    rows, data = voted()
    last = report.trust(rows, data).sentence.replace(NBSP, " ").splitlines()[-1]
    assert re.match(r"Agreement with people 50 % \([\d.–]+\); People among themselves", last)
    assert "Flips when the texts swap places 40 % (" in last
    assert last.endswith("; Not judged 16.7 %.")


def test_the_table_says_how_often_a_judge_cannot_assess_and_whether_people_could():
    rows, data = items_of([1, 0, None, None, None]), texts_of([1, 0, 1, None, 1])
    for row in rows[2:4]:
        failure = {"step": "evaluate", "unit": "", "reason": "cannot_assess", "detail": "-"}
        row["verdict"]["failures"] = [failure]
    numbers = report.trust(rows, data)
    told = {line.title: (line.found[:4], line.rows) for line in overview(numbers)}
    assert told["Not assessed by the judge, but labelled by people"] == ("50\xa0%", "1 of 2 rows")
    assert told["Not judged"] == ("60\xa0%", "3 of 5 rows")
    assert numbers["failures.abstained.labelled"] == 0.5


def test_rules_without_a_judge_are_counted_as_its_mistakes_are():
    rows, data = voted()
    numbers = report.trust(rows, data)
    # By majority A, tie, B, tie, A, tie: a tie is half right where people name a text.
    labels = [majority_vote(votes) for votes in VOTES]
    leads = [len(row["output_a"]) - len(row["output_b"]) for row in data]
    longer = ["A" if lead > 0 else "B" if lead < 0 else "tie" for lead in leads]
    rules = {"length": longer, "first_slot": ["A"] * 30, "majority": ["tie"] * 30}
    right = {
        name: sum(1 - abs(POINTS[a] - POINTS[b]) for a, b in zip(own, labels, strict=True)) / 30
        for name, own in rules.items()
    }
    assert {name: float(numbers[f"baseline.{name}"]) for name in right} == pytest.approx(right)
    # Of six verdicts four are right, one is A against a tie, and one is missing.
    assert numbers["baseline.lead"] == pytest.approx(4.5 / 6 - max(right.values()))
    assert numbers.uses["single"].number.result == pytest.approx(1.5 / 6)
    assert all(part in numbers.sentence for part in ("Of 30: 5 half wrong", "5 not judged"))
    assert numbers.n_disagreements == 5


def test_judges_of_one_text_have_balanced_accuracy_and_no_slots():
    truth = [1, 1, 1, 1, 1, 0, 0, 0]
    rows, data = items_of([1, 1, 1, 0, None, 1, 1, 0]), texts_of(truth, expected=["x", "y"])
    trust = report.trust(rows, data)
    # Recall of 1 is 3 of 5, of 0 it is 1 of 3.
    assert trust["agreement.balanced.wrong"] == pytest.approx((3 / 5 + 1 / 3) / 2)
    assert (trust["agreement.label.wrong"], trust["baseline.majority"]) == (4 / 8, 5 / 8)
    assert trust.confusion.counts == [[1, 2], [1, 3]]
    assert trust.confusion.not_judged == [0, 1]
    assert not [key for key in trust.numbers if key.startswith("bias.")]
    assert overview(trust)[0][:3] == ("Agreement with the labels", "", "50\xa0% (21.5–78.5)")
    assert "x / y" in trust.to_html()


def test_the_costliest_disagreements_come_first():
    rows = run_of(["B", "B", "B", None, "A"])
    for row, score in zip(rows, (0.4, 0.1, 0.0, None, 1.0), strict=True):
        row["verdict"]["score"] = score
    data = data_of([["A", "A"], ["A", "A"], ["A", "A", "B"], ["A", "A"], ["A", "A"]])
    trust_report = report.trust(rows, data)
    # Sure to 0.9 where all agree; to 1 where two of three do; to 0.6.
    assert [each.id for each in trust_report.disagreements] == ["r1", "r2", "r0"]
    assert [round(each.cost, 3) for each in trust_report.disagreements] == [0.9, 0.667, 0.6]


TWICE = [*run_of(["A", "B"]), *run_of(["B", "B"]), *run_of(["A", "B"])]


@for_each(
    ("run", "data", "expected"),
    [
        # Two people agree on 1, 3 and 1 of 3 pairs.
        (
            run_of(["A", "B", "B"] * 5),
            data_of([["A", "A", "B"], ["B", "B", "B"], ["A", "B", "B"]] * 5),
            {"agreement.people": 5 / 9},
        ),
        # A wins 10 of 20 labelled rows by people and all by the judge: half of the rest is A.
        (run_of(["A"] * 50), data_of(["A", "B"] * 10 + [None] * 30), {"people.corrected": 0.5}),
        # The same label counts whichever is rare: people say 1 of 15 of 20 texts.
        (items_of([1] * 50), texts_of([1, 1, 1, 0] * 5 + [None] * 30), {"people.corrected": 0.75}),
        # The last verdict on a row is the one that counts.
        (TWICE, data_of(["A", "B"]), {"agreement.label.wrong": 1}),
        # Matched by id wherever they stand, and by place where there is none; or without data.
        (run_of(["A", "B", "tie"])[::-1], data_of(["A", "B", "tie"]), {"agreement.kappa": 1}),
        (run_of(["A", "B"], id=None), data_of(["A", "B"], id=None), {"agreement.kappa": 1}),
        (run_of(["A", "B", "A", "A"], label="A"), None, {"agreement.label.wrong": 0.75}),
    ],
)
def test_a_number_is_the_one_worked_out_by_hand(run, data, expected):
    trust = report.trust(run, data)
    assert {key: float(trust[key]) for key in expected} == pytest.approx(expected)


def test_what_failed_is_counted_where_people_are_spoken_for():
    trust_report = report.trust(run_of([None, *["A"] * 50]), data_of(["A", "B"] * 10 + [None] * 31))
    assert sum(trust_report["people.corrected"].n_failed.values()) == 1


def test_divided_people_are_no_sample_of_those_without_a_label():
    # Whoever leaves out what people disagree on has easier rows.
    votes = [[1, 0, 1], [0, 1]] * 30
    data = [
        {**row, "human_votes": own} for row, own in zip(texts_of([None] * 60), votes, strict=True)
    ]
    assert "people.corrected" not in report.trust(items_of([1] * 60), data).numbers


def test_a_field_of_any_kind_stands_beside_a_verdict():
    array = pytest.importorskip("numpy").array([1, 2])
    assert report.trust(run_of(["A"] * 5, notes=array, label="A"))["agreement.label.wrong"] == 1


# ---- biases


def test_a_judge_that_follows_slot_and_length_is_told_on():
    data = data_of(["A", "B"] * 20, output_a="longer", output_b="short")
    slotted = report.trust(run_of([("A", "B")] * 30 + [("A", "A")] * 10), data)
    assert slotted["bias.first_slot_rate"] == pytest.approx(0.875)
    assert "87.5" in slotted.sentence
    longer = report.trust(run_of(["A"] * 40), data)
    assert math.isnan(longer["bias.flips"])
    assert (longer["bias.length"], longer["bias.length.longer"]) == (1, 0)


# ---- ratings, confidence, criteria


def rated(pairs):
    """A report of ratings: (the judge's, people's) of each text."""
    ours, theirs = zip(*pairs, strict=True)
    return report.trust(items_of(list(ours)), texts_of(list(theirs)))


# Always one step higher: the order is people's, and no rating is the same.
def test_a_judge_that_rates_a_step_higher_orders_as_people_do():
    trust_report = rated(
        [(label + 1, label) for label in (1, 2, 3, 4, 3, 2)] * 10 + [(3, 1), (4, 2)]
    )
    assert trust_report["agreement.label.wrong"] == 0
    assert trust_report["ratings.spearman"] > 0.9
    offset = trust_report.uses["averages"].number.result
    assert offset == pytest.approx((60 + 2 + 2) / 62)
    assert trust_report.headline.key == "ratings.spearman"
    assert trust_report.uses["ordering"].word == "yes"
    assert trust_report.uses["averages"].word == "no"


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


def test_of_several_criteria_the_one_with_too_few_labels_is_named():
    labels = [(1, i % 2) for i in range(3)]
    verdict = {"label": 0.5, "score": 0.5, "failures": [], "usage": no_usage()}
    answers = [[{"criterion": c, "label": n} for c, n in zip("fg", own, strict=True)]
               for own in labels]  # fmt: skip
    run = [{"id": str(i), "verdict": verdict, "subscores": a} for i, a in enumerate(answers)]
    texts = {"input": "q", "output": "t"}
    data = [
        {"id": str(i), **texts, "labels": dict(zip("fg", own, strict=True))}
        for i, own in enumerate(labels)
    ]
    assert "by g, too few labels" in report.trust(run, data).uses["single"].text


def rows(**more):
    """Fifty texts whose two criteria have nothing to do with each other."""
    labels = [(1 + i % 4, 1 + (i // 5) % 5) for i in range(50)]
    data = [
        {"id": str(i), "input": "q", "output": "t", "labels": {"facts": a, "flow": b}, **more}
        for i, (a, b) in enumerate(labels)
    ]
    return judged(labels), data


def test_each_criterion_has_its_own_agreement_and_part_in_the_answer():
    trust = report.trust(*rows())
    assert trust["criterion.facts.spearman"] == pytest.approx(1)
    assert trust["criterion.facts.agreement"] == 0
    assert trust["criterion.flow.spearman"] == pytest.approx(0, abs=0.01)
    # Quadratic κ of a constant step: 2·cov / (var + var + step²), var = 1.2496 at 13:13:12:12.
    expected = 2 * 1.2496 / (2 * 1.2496 + 1)
    assert trust["criterion.facts.kappa"] == pytest.approx(expected, abs=0.01)
    run, data = rows()
    for row in data[::5]:
        row["labels"]["facts"] = 2
    trust = report.trust(run, data)
    assert trust.uses["ordering"].word != "yes"
    assert "yes for facts (" in trust.uses["ordering"].text
    assert trust.headline.key == "criterion.flow.spearman"
    assert "By criterion" in trust.to_html()
    # It is of the labels: a mean is never the very same number.
    whole, texts = rows(label=0.75)
    for row in whole:
        row["verdict"] = {**row["verdict"], "confidence": 0.9}
    assert not report.trust(whole, texts).sample.has_confidence


# ---- which rows count


@for_each(
    ("rows", "data", "message"),
    [
        ([], None, "no verdicts to report on"),
        ([{"id": "x", "index": 0}], None, "without a verdict"),
        (run_of(["A"]), [{"id": "other", "label": "A"}], "1 of rows that are not in the data"),
        (run_of(["A"], label="left"), None, "must be 'A', 'B' or 'tie', got 'left'"),
        (
            [*run_of(["A"]), {"id": "i", "index": 1, "verdict": {"label": 1}}],
            None,
            "pairs and on single texts need separate reports",
        ),
        (
            [*run_of(["A"], judge={"mark": "1"}), *run_of(["A"], judge={"mark": "2"})],
            None,
            "verdicts of one judge",
        ),
        (None, None, "`verdicts` must be rows, got 'None'"),
        ([None], None, "`verdicts` must be rows, got 'None'"),
        ("v.jsonl", None, "`verdicts` must be rows, got 'v.jsonl'; `read_verdicts`"),
        (run_of(["A"])[0], None, '`verdicts` must be rows, got "{'),
        (run_of(["A"]), "d.jsonl", "there is no file d.jsonl"),
        (run_of(["A"]), data_of(["A"], group={"a": 1}), "row r0: `group` must be a text"),
    ],
)
def test_what_cannot_be_reported_on_is_one_sentence(rows, data, message):
    with pytest.raises(InputError, match=re.escape(message)):
        report.trust(rows, data)


def test_a_row_without_a_text_or_a_group_leaves_the_others_theirs():
    data = data_of(LABELS)
    whole = report.trust(run_of(LABELS[::-1]), data)
    data[7]["output_a"] = ""
    for number, row in enumerate(data):
        row["group"] = f"g{number // 4}"
    del data[5]["group"]
    trust_report = report.trust(run_of(LABELS[::-1]), data)
    # Ten groups of four; one row of the second has left it.
    assert len(set(trust_report.sample.groups)) == 11
    assert trust_report["baseline.length"].n == whole["baseline.length"].n - 1 == 39
    assert trust_report["bias.length"].n in (whole["bias.length"].n, whole["bias.length"].n - 1)
    assert trust_report.numbers["baseline.length"].note == "of the 39 rows with texts"
    assert trust_report.left_out == (
        "Rows without a group, which count by their input, or each by itself: 1."
    )


COUNTED_BY_GROUPS = (
    "agreement.label.wrong",
    "agreement.kappa",
    "agreement.mean_of_orders.wrong",
    "baseline.length",
    "baseline.first_slot",
    "baseline.lead",
    "bias.flips",
    "bias.first_slot_rate",
    "bias.length",
    "confidence.brier",
    "confidence.auc",
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


@for_each(("own", "label"), [(1, "1"), ("1", 1)])
def test_labels_are_read_as_the_type_of_the_judges_labels(own, label):
    verdict = {"label": own, "score": 1.0, "failures": [], "usage": no_usage()}
    run = [{"id": f"{n}", "index": n, "verdict": verdict} for n in range(4)]
    # A table of CSV whose texts have other names than the judge's fields.
    data = [{"id": f"{n}", "question": "Q", "label": label} for n in range(4)]
    assert report.trust(run, data)["agreement.label.wrong"] == 1


# ---- several judges


def test_judges_are_tested_in_pairs_and_the_better_comes_first():
    runs = {
        "poor": run_of(["A"] * 8 + ["B"] * 12),
        "good": run_of(["A"] * 18 + ["B"] * 2),
        "none": run_of([None] * 20),
    }
    both = report.compare(runs, data_of(["A"] * 20))
    assert [each.name for each in both.reports] == ["good", "poor", "none"]
    first = next(each for each in both.contests if {each.first, each.second} == {"good", "poor"})
    assert abs(first.difference) == 0.5
    p = sorted(both.contests, key=lambda each: each.p)
    assert p[0].holm_p == pytest.approx(3 * p[0].p)
    assert p[2].holm_p == pytest.approx(max(p[2].p, 2 * p[1].p))
    assert set(both.to_dataframe()["judge"]) == {"good", "poor", "none"}
    assert all(each.sentence in both.to_html() for each in both.contests)
    # All 18 right of 20 against none: 18 wins of 18, where 90 ± 14 points are settled.
    sentences = both.sentence.splitlines()
    assert f"good is right more often than none by 90.0{NBSP}points" in both.sentence
    assert len(sentences) == 3
    shown = seen(both.to_html())
    assert all(each.replace(NBSP, " ") in shown for each in sentences)
    # One table of answers, and a fold for each judge.
    assert shown.count("Averages over many rows") == 1
    assert len(shown.split()) < 250
    assert len(re.findall(r"\d[\d.,]*", shown)) < 50
    apart = [run_of(["A"] * 6)[:3], run_of(["A"] * 6)[3:]]
    assert (
        report.compare(dict(zip("ab", apart, strict=True)), data_of(["A"] * 6)).contests[0].n == 0
    )


@for_each(
    ("difference", "ends", "p", "sentence"),
    [
        (
            0.05,
            (-0.084, 0.184),
            0.5,
            "Not settled between a and b: so far a leads by 5.0 points (−8.4 to 18.4). "
            "Even 2,000 more labels may not settle it.",
        ),
        (0.05, (0.01, 0.09), 0.01, "a is right more often than b by 5.0 points (1.0–9.0)."),
        (
            0.0,
            (-0.1, 0.1),
            1.0,
            "Not settled between a and b: right equally often (−10.0 to 10.0). Even 2,000 more "
            "labels may not settle it.",
        ),
    ],
)
def test_who_is_ahead_is_said_with_the_interval_of_that_lead(difference, ends, p, sentence):
    result = metrics.Result(difference, n=40, interval=metrics.Interval(*ends))
    contest = Contest("a", "b", 40, result, p, p)
    assert contest.sentence.replace(NBSP, " ") == sentence
    data = contest.to_dict()
    assert [data[name] for name in ("difference", "low", "high", "p")] == [difference, *ends, p]


@for_each(
    "verdict, headline",
    [
        ({"preference": None}, "not judged"),
        ({"preference": "A", "flipped": False}, "A preferred, score 0.20, both orders agree"),
        ({"preference": "tie", "flipped": True}, "tie, score 0.20, the orders disagree"),
        ({"preference": "B", "flipped": None}, "B preferred, score 0.20"),
        ({"label": "good"}, "label good, score 0.20"),
    ],
)
def test_a_panel_is_headed_by_what_the_verdict_came_to(verdict, headline):
    own = {"score": None if verdict == {"preference": None} else 0.2, "rationale": ""}
    parts = {"failures": [], "usage": no_usage(), "flipped": None}
    panel: Any = verdict_panel({"id": "r", "verdict": {**parts, **own, **verdict}})
    assert panel.title.plain == f"r: {headline}"
