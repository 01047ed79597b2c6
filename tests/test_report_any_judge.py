"""Judges that are not ours: columns of a table, evaluators, and feedback of LangSmith."""

from __future__ import annotations

import csv
import json
import re
from typing import Any, cast

import numpy as np
import pytest
from openevals.exact import exact_match
from scipy.stats import spearmanr

from langchain_judges import datasets
from langchain_judges.errors import InputError
from langchain_judges.metrics import ppi_mean
from langchain_judges.report import TrustReport, trust, trust_columns, trust_evaluator
from langchain_judges.report.overview import markdown, next_step
from langchain_judges.rows.lookup import not_given_at
from langchain_judges.rows.texts import CONVERSATION, NO_TASK
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.sources import Source
from langchain_judges.runs.table_form import spelt_votes
from langchain_judges.verdict import Notes
from tests.cases import for_each


def table(judge: list, *people: list, **more: Any) -> list[dict]:
    rows = []
    for place, answers in enumerate(zip(judge, *people, strict=True)):
        names = ["gpt", *(f"ann{i}" for i in range(len(people)))]
        rows.append({**dict(zip(names, answers, strict=True)), "input": f"q{place}", **more})
    return rows


def test_a_csv_with_two_columns_is_a_report(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("gpt,ann\n" + "A,model_a\nB,B\ntie,A\n,B\n" * 10)
    with path.open() as file:
        report: Any = trust_columns(csv.DictReader(file), judge="gpt", label="ann")
    assert report.name == "gpt"
    assert report["agreement.label.wrong"] == 0.5
    assert report["failures.failed"] == 0.25
    assert report.uses["averages"].number.result == pytest.approx((1 + 0 + 0.5) / 3 - 2 / 3)


def test_a_column_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(InputError, match="no row has a column 'gtp'; did you mean 'gpt'"):
        trust_columns(table(["A"], ["A"]), "gtp", "ann0")


# A label as tools for annotations have it: Argilla's, Label Studio's.
ANNOTATED = {
    "a vote": lambda label: [{"user_id": "u", "value": label, "status": "submitted"}],
    "a rating": lambda label: [{"rating": label}],
    "a choice": lambda label: {"choices": [label]},
    "an annotation": lambda label: [{"id": 5, "result": [{"value": {"selected": label}}]}],
    "a criterion": lambda label: [{"coherence": label}],
}


@for_each("kind", ANNOTATED)
@for_each("own", [["A", "B", "tie"], [1, 2, 3], ["polite", "rude", "odd"]])
def test_the_place_that_is_advised_for_a_nested_label_holds_it(own, kind):
    rows = table([*own, own[0]] * 9, [*own, own[1]] * 9)
    nested = [{**row, "ann0": ANNOTATED[kind](row["ann0"])} for row in rows]
    nested += [{"gpt": own[0], "ann0": []}]
    with pytest.raises(InputError) as refused:
        trust_columns(nested, "gpt", "ann0")
    place = re.findall("name the labels in it: '(.*)'", str(refused.value))[0]
    found: Any = trust_columns(nested, "gpt", place)
    flat: Any = trust_columns([*rows, {"gpt": own[0], "ann0": None}], "gpt", "ann0")
    assert found["agreement.label.wrong"] == flat["agreement.label.wrong"]


# What a tool for annotations has beside an answer that is given, and beside one that is not.
MARKS = [
    *(("status", "submitted", word) for word in ("discarded", "draft", "pending", "skipped")),
    *(("response_status", "SUBMITTED", "DISCARDED"), ("was_cancelled", False, True)),
    *(("skipped", None, True), ("is_draft", 0, True), ("ignored", False, True)),
]


def annotated(form: Any, label: str, *, given: bool) -> tuple[str, dict[str, Any]]:
    """The column of a label, and the cells of its row, as a tool for annotations has them."""
    if form == "Argilla's lists":
        marks = ["submitted" if given else "discarded"]
        return "said.responses", {"said.responses": [label], "said.responses.status": marks}
    if form == "Prodigy's answers":
        return "answer", {"answer": label if given else "ignore", "_task_hash": 5}
    if form == "Prodigy's choices":
        own = {"accept": [label], "answer": "accept" if given else "ignore"}
        return "accept.0", {**own, "_task_hash": 5}
    name, yes, no = form
    annotation = {"result": [{"value": {"choices": [label]}}], name: yes if given else no}
    return "said.0.result.0.value.choices.0", {"said": [annotation]}


@for_each("form", ["Argilla's lists", "Prodigy's answers", "Prodigy's choices", *MARKS])
def test_an_answer_that_is_marked_as_not_given_is_no_label_and_is_counted(form):
    rows: list[Any] = []
    for n in range(30):  # of every third it is not given, and would be wrong
        own = "good" if n % 2 else "bad"
        column, cells = annotated(form, own if n % 3 else "odd", given=n % 3 > 0)
        rows.append({"gpt": own, "input": f"q{n}", **cells})
    report: Any = trust_columns(rows, "gpt", column)
    assert (report["agreement.label.wrong"], report["agreement.label.wrong"].n) == (1, 20)
    assert "left as a draft, and left out: 10." in report.left_out
    read = list(datasets.rows([{**row, "output": "So."} for row in rows], {"human_votes": column}))
    votes = [[row["gpt"]] if n % 3 else [] for n, row in enumerate(rows)]
    assert [row.get("human_votes", []) for row in read] == votes
    told = [column in {each["unit"] for each in Notes.of(row)} for row in read]
    assert told == [n % 3 == 0 for n in range(30)]


@for_each(
    "beside",
    [{"status": "draft"}, {"answer": "ignore"}, {"skipped": True}, {"delivery_status": "pending"}],
)
def test_a_column_beside_a_label_may_be_of_the_text_that_is_judged(beside):
    rows = [{"gpt": n % 2, "said": n % 2, "input": f"q{n}", **beside} for n in range(30)]
    report: Any = trust_columns(rows, "gpt", "said")
    assert (report["agreement.label.wrong"].n, "draft" in report.left_out) == (30, False)


@for_each(
    "column", ["status", "labels.polite", "labels.skipped", "human.polite", "cancelled", "answer"]
)
def test_a_label_that_is_called_as_a_mark_is_a_label(column):
    states = ["pending", "shipped", "cancelled"]
    rows: list[Any] = [
        {
            **{"gpt": states[n % 3], "status": states[n % 3], "cancelled": n % 2 == 0},
            **{key: {"polite": n % 2, "skipped": n % 2 == 0} for key in ("labels", "human")},
            "answer": "ignore",
            "input": f"q{n}",
        }
        for n in range(30)
    ]
    assert {not_given_at(row, column) for row in rows} == {0}
    if column == "status":
        report: Any = trust_columns(rows, "gpt", "status")
        assert (report["agreement.label.wrong"], report["agreement.label.wrong"].n) == (1, 30)


def test_a_person_who_gave_no_answer_has_a_column_all_the_same():
    votes = [{"value": 4, "status": "submitted"}, {"value": 2, "status": "discarded"}]
    rows = [{"gpt": 4 + n % 2, "said": votes, "input": f"q{n}"} for n in range(30)]
    report: Any = trust_columns(rows, "gpt", ["said.0.value", "said.1.value"])
    assert [row.votes for row in report.sample.rows] == [[4]] * 30
    assert "left out: 30." in report.left_out


@for_each(
    ("systems", "said", "is_clear"),
    [
        (["a", "b"], "a", True),
        (["b", "a"], "a", False),
        (["B", "A"], "B", False),
        (["model_b", "model_a"], "model_b", False),
        (["b", "a"], "A", True),  # a side, for it is no system's name
        (["gpt", "a"], "b", True),
    ],
)
def test_a_side_that_is_the_name_of_the_system_on_the_other_side_is_refused(
    systems, said, is_clear
):
    rows = table([said, "tie"] * 9, ["A", "B"] * 9, systems=systems)
    if is_clear:
        assert trust_columns(rows, "gpt", "ann0")
        return
    with pytest.raises(InputError, match=f"'gpt' says '{said}' in row 1: .* other names"):
        trust_columns(rows, "gpt", "ann0")


@for_each("library", ["pandas", "polars"])
def test_a_data_frame_is_its_rows_and_its_empty_cells_are_missing(library):
    made = pytest.importorskip(library, reason=f"needs {library}")
    own = {"gpt": ["A", "B", "tie", None] * 10, "ann": ["A", "B", "A", "B"] * 10}
    report: Any = trust_columns(made.DataFrame(own), judge="gpt", label="ann")
    assert report["agreement.label.wrong"] == 0.5
    assert report["failures.failed"] == 0.25
    evaluated: Any = trust_evaluator(
        lambda outputs: outputs == "x",
        made.DataFrame({"output": ["x", "y"] * 20, "label": [1, 1] * 20}),
    )
    assert evaluated["agreement.label.wrong"] == 0.5


@for_each(
    ("judge", "people", "use", "value"),
    [
        # Labels as words: half of what it calls safe is not.
        (["safe", "safe", "unsafe"] * 10, ["unsafe", "safe", "unsafe"] * 10, "single", 0.5),
        # Ratings as text, one step of four too high for a third of them.
        (["2", "3", "5"] * 20, ["1", "3", "5"] * 20, "averages", 1 / 3),
        ([True, False] * 20, [1, 0] * 20, "single", 0.0),
    ],
)
def test_answers_may_be_labels_words_or_ratings(judge, people, use, value):
    report: Any = trust_columns(table(judge, people), "gpt", "ann0")
    assert report.uses[use].number.result == pytest.approx(value)


def test_several_columns_of_people_are_votes_and_of_judges_a_comparison():
    rows = table(["A", "B"] * 30, ["A", "B"] * 30, ["A", "A"] * 30)
    report: Any = trust_columns(rows, "gpt", ["ann0", "ann1"])
    assert report["agreement.people"] == 0.5
    both: Any = trust_columns(rows, ["gpt", "ann1"], "ann0")
    assert [each.name for each in both.reports] == ["gpt", "ann1"]
    assert both.contests[0].difference == 0.5


# Right in both orders on ten rows, undecided or unread in one on twenty, turned round on ten.
ORDERS = [("A", "A", "A"), ("B", "B", "tie"), ("A", "A", "B"), ("B", "B", "")] * 10


@for_each("own", [["A", "B", "tie"], ["rude", "polite", "odd"], [1, 2, 3, 4, 5]])
def test_people_are_those_of_their_columns_in_any_order_and_over_empty_cells(own):
    rng, n = np.random.default_rng(len(own)), 40
    answers = rng.integers(0, len(own), (4, n))
    known = rng.random((4, n)) < np.array([[1], [0.9], [0.6], [0.3]])
    places = np.where(known, answers[0], answers).tolist()
    judge, *people = [[own[i] for i in column] for column in places]
    people[1][3] = people[2][5] = None
    rows = table(judge, *people)
    first, last = (
        cast("TrustReport", trust_columns(rows, "gpt", [f"ann{i}" for i in to]))
        for to in ("012", "201")
    )
    told = [str([each.to_dict() for each in one.numbers.values()]) for one in (first, last)]
    assert told[0] == told[1]
    assert first.sentence == last.sentence
    assert "left out" not in first.uses["person"].text
    assert first.numbers["agreement.winning_rate"].result.n == 3


def test_the_value_of_a_text_by_people_is_the_mean_of_their_ratings():
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 40)
    answers = np.clip(truth + rng.integers(-1, 2, (4, 40)), 1, 5)
    found: Any = trust_columns(table(*answers.tolist()), "gpt", ["ann0", "ann1", "ann2"])
    judge, means = answers[0], answers[1:].mean(axis=0)
    assert found.uses["averages"].number.result == pytest.approx((judge - means).mean())
    assert found["ratings.spearman"] == pytest.approx(spearmanr(judge, means).statistic)
    above = [np.sign(np.subtract.outer(side, side))[means[:, None] > means]
             for side in (judge, means)]  # fmt: skip
    same = (above[0] == above[1]) + (above[0] == 0) / 2
    assert found.uses["ordering"].number.result == pytest.approx(same.mean())
    assert (
        f"{means.mean():.3f} by people (the mean of their answers)" in found.uses["averages"].text
    )


@for_each("own", [[0, 1], ["odd", "rude"], [1, 2, 3]])
def test_rows_of_several_peoples_answers_correct_the_average_of_all_rows(own):
    rng = np.random.default_rng(4)
    places = rng.integers(0, len(own), (4, 60))
    judge, *people = [[own[i] for i in column] for column in places.tolist()]
    people = [[*column[:30], *[None] * 30] for column in people]
    found: Any = trust_columns(table(judge, *people), "gpt", ["ann0", "ann1", "ann2"])
    alone: Any = trust_columns(table(judge, *people)[:30], "gpt", ["ann0", "ann1", "ann2"])
    assert found["people.corrected"].n == 30
    worth = np.where(places == 1, 1, 0) if len(own) == 2 else places + 1
    first: Any = np.mean(worth[1:, :30], axis=0)
    first = np.round(first) if len(own) == 2 else first
    right = ppi_mean(first, worth[0, :30], worth[0, 30:])
    is_share_of_first = "share of odd" in found.numbers["people.corrected"].title
    assert found["people.corrected"] == pytest.approx(1 - right if is_share_of_first else right)
    assert "people.corrected" not in alone.numbers


@for_each(("whose", "value"), [("gpt", 55), ("ann0", 99), ("ann1", -99), ("ann0", -1), ("gpt", 11)])
def test_a_rating_outside_the_scale_of_all_others_widens_no_limit_and_is_named(whose, value):
    people = [1, 2, 3, 4, 5] * 12
    judge = [5 if i % 4 == 0 else own for i, own in enumerate(people)]
    rows = table(judge, people, people)
    clean, found = (
        cast("TrustReport", trust_columns(own, "gpt", ["ann0", "ann1"]))
        for own in (rows, [{**row, whose: value} if i == 19 else row for i, row in enumerate(rows)])
    )
    for use in ("averages", "single"):
        assert found.uses[use].limit == clean.uses[use].limit
        assert found.uses[use].word == clean.uses[use].word != "yes"
    assert f"not for the range: {value} (row 20)." in found.left_out
    assert clean.left_out == ""


def test_a_slip_of_people_that_the_judge_has_too_is_not_of_the_scale():
    for own, value in ((range(1, 6), 90), (range(6), -5)):
        people = [*[*own] * 9, value]
        found: Any = trust_columns(table([*people[:-1], value], people), "gpt", "ann0")
        assert (found.sample.scale.strays, found.sample.scale.width) == (
            {value},
            max(own) - min(own),
        )


def hope(answer: Any) -> int:
    """How near an answer is to yes: 2, or 1 where more labels may bring it."""
    return 2 if answer.word == "yes" else int(answer.word == "not yet" and answer.leaning == "yes")


@pytest.mark.whole
@for_each("steps", [[1, 2, 3, 4, 5], [0, 1], [*range(11)], [0, 0.2, 0.4, 0.9], [-25, -10, -5, 0]])
@for_each("sign", [1, -1])
def test_no_stray_answer_of_the_judge_brings_a_use_nearer_to_yes(steps, sign):
    rng = np.random.default_rng(5)
    places = np.sort(rng.integers(0, len(steps), 120))
    ours = np.where(rng.random(120) < 0.42, places + sign, places).clip(0, len(steps) - 1)
    other = np.where(rng.random(120) < 0.3, places[::-1], places)
    other[[0, -1]] = places[[0, -1]]
    judge, *people = ([steps[i] for i in own.tolist()] for own in (ours, places, other))

    def report_with(stray: Any) -> Any:
        own = judge if stray is None else [stray, *judge[1:]] if sign > 0 else [*judge[:-1], stray]
        return trust_columns(table(own, *people), "gpt", ["ann0", "ann1"])

    alone, end = report_with(None), max(steps) if sign > 0 else min(steps)
    for far in (0.3, 1.25, 4, 50):
        # On the side to which this judge errs, where people say the other end.
        beside = report_with(end + sign * far * (max(steps) - min(steps)))
        assert beside.sample.scale.ends == alone.sample.scale.ends
        for use, answer in alone.uses.items():
            assert beside.uses[use].limit == answer.limit, (use, far)
            assert hope(beside.uses[use]) <= hope(answer), (use, far)


@for_each(
    ("own", "value"),
    [
        (range(8, 11), 1),
        (range(78, 101), 5),
        (range(1, 4), 10),
        (range(23), 95),
        (range(1, 6), 7),
        ([0, 0.01, 0.02, 0.03], 0.9),
    ],
)
def test_a_rating_of_people_that_may_be_the_end_of_the_scale_is_of_it_and_named(own, value):
    judge = [*own] * (60 // len(own))
    found: Any = trust_columns(table(judge, [value, *judge[1:]]), "gpt", "ann0")
    assert found.sample.scale.ends == (min(*own, value), max(*own, value))
    name = "Ratings of one row alone that make the range wider by half or more"
    assert found.left_out == f"{name}: {value:g} (row 1)."


@for_each("people", [[1, *[2, 3, 4, 5] * 5], [5, *[10, 15, 20, 25] * 5], [5, 1]])
def test_a_rating_of_one_row_that_hardly_widens_the_range_is_not_named(people):
    found: Any = trust_columns(table(people, people), "gpt", "ann0")
    assert found.left_out == ""


@for_each("people", [[1, 2, 3, 4, 5], [0, 0.25, 0.5, 0.75, 1], [-25, -10, -5, -1, 0]])
@for_each("value", [6.5, 9, 50, -30])
@for_each("times", [1, 6])
def test_a_judge_widens_no_limit_to_which_it_is_held(people, value, times):
    people = people * 12
    judge = [value] * times + people[times:]
    alone, beside = (
        cast("Any", trust_columns(table(own, people), "gpt", "ann0")) for own in (people, judge)
    )
    if not beside.sample.scale.apart:
        assert beside.sample.scale.ends == alone.sample.scale.ends
        assert beside.uses["averages"].limit == alone.uses["averages"].limit
        far = [abs(value - each) > (max(people) - min(people)) / 4 for each in people[:times]]
        assert beside.uses["single"].number.result == sum(far) / len(people)


def test_ratings_outside_the_scale_are_as_far_as_they_are_for_the_interval_of_a_mean():
    people = [1, 2, 3, 4, 5] * 12
    found: Any = trust_columns(table(people, [*people[:-6], *[900] * 6]), "gpt", "ann0")
    gap = found.uses["averages"].number.result
    assert found.uses["averages"].limit == pytest.approx((-0.2, 0.2))
    assert gap.interval.low < gap < -80  # six of 60 rows are off by about 900


def test_of_many_ratings_outside_the_scale_some_are_named_and_all_are_counted():
    people = [1, 2, 3, 4, 5] * 16
    found: Any = trust_columns(table(people, [*[99] * 8, *people[8:]]), "gpt", "ann0")
    assert "99 (row 1), 99 (row 2)" in found.left_out
    assert "99 (row 5) and 3 more." in found.left_out


@for_each("write", [str, lambda own: str(own).replace(", ", ","), json.dumps])
@for_each("own", [["1", "0"], ["good", "bad"], [1, 0]])
def test_votes_in_a_cell_are_read_as_json_or_as_python_writes_them(own, write):
    votes = [[own[0], own[i % 2], own[0]] for i in range(30)]
    rows = [{"gpt": each[1], "ann": write(each)} for each in votes]
    found: Any = trust_columns(rows, "gpt", "ann")
    assert found["agreement.people"] == pytest.approx((15 + 15 / 3) / 30)
    data = [{"id": str(i), "human_votes": write(each)} for i, each in enumerate(votes)]
    run = [{"id": str(i), "verdict": {"label": each[1]}} for i, each in enumerate(votes)]
    assert trust(run, data)["agreement.people"] == found["agreement.people"]


def test_a_vote_alone_counts_beside_cells_of_several():
    rows = [{"gpt": 1, "ann": cell} for cell in ["1;0", "1", 0, "", "1 1 1"] * 6]
    found: Any = trust_columns(rows, "gpt", "ann")
    assert [len(each) for each in found.sample.votes[:5]] == [2, 1, 1, 0, 3]
    for cells in (["4,5"], ["4,5", "1;0"], ["4,5", "1"]):
        rows = [{"gpt": i % 2, "human_votes": cell} for cell in cells for i in range(6)]
        with pytest.raises(InputError, match=r"4,5 \(write 4.5, or 4;5 for two votes"):
            trust_columns(rows, "gpt", "human_votes")


# Means of three people's ratings as German sheets write them, and those ratings.
MEANS = [2, 7 / 3, 8 / 3, 3.5, 13 / 3]


@for_each("places", [1, 2, 3, 4, 10])
@for_each("whose", ["gpt", "label"])
@for_each("are_short", [True, False])
def test_the_other_ratings_tell_what_a_comma_before_three_digits_is(places, whose, are_short):
    cells = [f"{mean:.{places}f}".replace(".", ",") for mean in MEANS]
    if are_short:  # as where a sheet writes no zeros at the end
        cells = [each.rstrip("0").rstrip(",") for each in cells]
    other = [*map(round, MEANS)]
    rows = [{"gpt": other[i % 5], "label": other[i % 5], whose: cells[i % 5]} for i in range(40)]
    if places == 3 and not are_short:
        with pytest.raises(InputError, match=rf"'{whose}' holds '2,000', whose comma may be of"):
            trust_columns(rows, "gpt", "label")
        return
    found: Any = trust_columns(rows, "gpt", "label")
    read = found.sample.answers if whose == "gpt" else found.sample.labels
    assert read[:5] == [pytest.approx(round(mean, places)) for mean in MEANS]


def test_two_numbers_with_a_comma_alone_between_are_no_two_votes():
    for cell in ("2,333", "12,345", "-1,250"):
        assert spelt_votes(cell) == cell
        assert f"{cell} (write {cell.replace(',', '.')}" in str(spelt_votes(cell, are_many=True))
    assert spelt_votes("2, 333") == ["2", "333"]


def test_people_who_never_agree_are_not_said_to_hardly_differ():
    found: Any = trust_columns(
        table([0, 1] * 20, [0, 1] * 20, [1, 0] * 20), "gpt", ["ann0", "ann1"]
    )
    assert found["agreement.alpha"].no_interval == "no row changes it by itself"


def test_labels_that_count_in_part_are_counted_so_beside_their_share():
    people = [[0] * 21 + [1] * 20, [0] * 20 + [1] * 21]
    found: Any = trust_columns(table([0] * 20 + [1] * 21, *people), "gpt", ["ann0", "ann1"])
    # The judge is right but for the one row on which people are divided.
    assert "where it says 1, 0.5 of 21 are wrong, 2.4\xa0%" in found.uses["single"].text.lower()


@for_each(("rule", "agreed"), [("strict", 0.25), ("lenient", 0.75)])
def test_two_columns_are_the_two_orders_of_one_judge(rule, agreed):
    rows = [dict(zip(("ann", "ab", "ba"), row, strict=True)) for row in ORDERS]
    report: Any = trust_columns(rows, ("ab", "ba"), "ann", order_rule=rule)
    assert report["bias.flips"] == pytest.approx(20 / 30)
    assert report["agreement.label.wrong"] == agreed
    assert report["agreement.both_right.wrong"] == 0.25
    assert report["agreement.sign_of_sum.wrong"] == 0.75
    assert report["agreement.mean_of_orders.wrong"] == pytest.approx((2 + 1 + 1 + 1) / 8)
    both: Any = trust_columns(rows, [("ab", "ba"), "ab"], "ann", order_rule=rule)
    assert {each.name for each in both.reports} == {
        "the judge of ab (A first) and ba (B first)",
        "ab",
    }


# o1-mini on JudgeBench's 350 pairs by GPT-4o (github.com/ScalerLab/JudgeBench, `outputs`): how
# often it gave each answer, A shown first and B shown first, by the text that is right.
JUDGEBENCH = {
    "A": "A:A 111, A:B 29, A:tie 4, B:A 14, B:B 22, tie:A 7, tie:B 4, tie:tie 2",
    "B": "A:A 10, A:B 29, B:A 4, B:B 92, B:tie 8, tie:A 3, tie:B 8, tie:tie 3",
}


def test_the_published_figure_of_a_judge_comes_from_its_two_columns():
    rows = [
        {"label": label, **dict(zip(("ab", "ba"), both.split(":"), strict=True))}
        for label, counts in JUDGEBENCH.items()
        for both, times in (each.split(" ") for each in counts.split(", "))
        for _ in range(int(times))
    ]
    found: Any = trust_columns(rows, ("ab", "ba"), "label", order_rule="lenient")
    assert round(100 * found["agreement.sign_of_sum.wrong"], 2) == 65.71
    assert found["agreement.label.wrong"] == found["agreement.sign_of_sum.wrong"]
    assert round(100 * found["bias.flips"], 1) == 31.4


# Answers that are no sides, as PandaLM codes them and as others write them.
CODED = [[0, 1, 2], ["0", "1", "2"], [1, 1.5, 2], [True, False], ["A", "B", "draw"], ["A = B", "A"]]


@for_each("names", [("output_a", "output_b"), ("response1", "response2"), ("Answer A", "Answer B")])
@for_each("own", [["A", "B", "tie"], *CODED])
def test_answers_on_two_texts_are_sides_wherever_a_run_finds_two_texts(names, own):
    said = [own[i % len(own)] for i in range(60)]
    rows = [
        {**dict.fromkeys(names, f"text {place}"), **row}
        for place, row in enumerate(table(said, said, said))
    ]
    record = Records(Source(rows, is_table=True), None, "pair").row(rows[0], 0)
    assert {"output_a", "output_b"} <= record.keys()
    if own not in CODED:
        report: Any = trust_columns(rows, "gpt", ["ann0", "ann1"])
        assert report.sample.pairs
        return
    for judge in ("gpt", ("gpt", "ann1")):
        allowed = rf"{', '.join(names)}\) are A, B or tie .or model_a …., and 'gpt' has"
        with pytest.raises(InputError, match=allowed):
            trust_columns(rows, judge, "ann0")
    rated = [{"output": row.pop(names[0]), **row} for row in rows]
    assert not cast("Any", trust_columns(rated, "gpt", ["ann0", "ann1"])).sample.pairs


# What people say of two texts that is no preference, and what may be one.
ON_BOTH = [[*range(6)], [*range(1, 6)], [0.2, 2.4, 4.8], ["1", "4", "5"], [0, 25, 100], [1, 4, 7]]
ON_BOTH += [["yes", "no"], ["same", "different"], ["entailment", "neutral", "contradiction"]]
MAYBE = [["first", "second"], ["1", "2", "3"], [-1, 0, 1], [0, 0.5, 1], ["Model 1", "Model 2"]]
MAYBE += [[-3, -1, 2], ["-2", "+2"], [1.02, 1.7, 1.4], ["1,2", "1,9"], [0.73, 0.2], [0.3, 1.5]]
MAYBE += [["1.0", "2.0"], ["the first", "equal"], ["A is better", "equal"], ["win", "loss", "draw"]]
TEXTS = [("text_a", "text_b"), ("a", "b"), ("output_a", "output_b"), ("output_0", "output_1")]


@for_each("names", [*TEXTS, ("conversation_a", "conversation_b"), ("chosen", "rejected")])
@for_each(("own", "is_open"), [*((own, False) for own in ON_BOTH), *((own, True) for own in MAYBE)])
def test_answers_on_both_texts_are_refused_only_where_they_may_be_sides(names, own, is_open):
    said = [own[i % len(own)] for i in range(60)]
    rows = table(said, said, **dict.fromkeys(names, "text"))
    if is_open:
        with pytest.raises(InputError, match=r"sentence_1|which text is A"):
            trust_columns(rows, "gpt", "ann0")
        rows = [{f"sentence_{i}": row[name] for i, name in enumerate(names)} | row for row in rows]
        rows = [{name: row[name] for name in row if name not in names} for row in rows]
    found: Any = trust_columns(rows, "gpt", "ann0")
    assert not found.sample.pairs
    assert found["agreement.label.wrong"] == 1
    is_rating = not is_open and not any(str(value).isalpha() for value in own)
    assert ("not as preferences" in found.left_out) == is_rating


def test_names_of_the_two_systems_are_no_answers_on_both_texts():
    both, texts = ["v1", "v2"], {"output_a": "x", "output_b": "y"}
    with pytest.raises(InputError, match="has 'v1', 'v2'; write the side"):
        trust_columns(table(both * 9, both * 9, systems=both, **texts), "gpt", "ann0")


def test_a_preferred_text_and_another_do_not_say_which_is_a():
    rows = table(["A", "B"] * 9, ["A", "B"] * 9, chosen="x", rejected="y")
    with pytest.raises(InputError, match="do not say which text is A; call them `output_a`"):
        trust_columns(rows, "gpt", "ann0")


@for_each(
    ("answers", "got"),
    [((1, 1, 1), "1"), (("A", "1", "A"), "'1'"), (("A", "tie", "draw"), "'draw'")],
)
def test_two_orders_are_of_pairs(answers, got):
    row = dict(zip(("x", "y", "ann"), answers, strict=True))
    with pytest.raises(InputError, match=rf"are A, B or tie \(or model_a …\), and '.*' has {got}"):
        trust_columns([row] * 3, ("x", "y"), "ann")


def test_a_judge_has_no_third_column():
    with pytest.raises(InputError, match=r"one column, or two .* got \('x', 'y', 'z'\)"):
        trust_columns([dict.fromkeys("xyz", "A")], ("x", "y", "z"), "z")


def test_an_error_names_the_vote_of_a_cell():
    rows = [{"gpt": 1, "ann": cell} for cell in ["1;2", "good", "2;1"]]
    with pytest.raises(InputError, match="'ann, vote 1' holds numbers beside 'good'"):
        trust_columns(rows, "gpt", "ann")


def test_of_many_answers_in_two_orders_the_first_are_named():
    rows = [{"x": n / 7, "y": n / 9, "ann": "A"} for n in range(1, 900)]
    with pytest.raises(InputError, match=r"'x' has 0\.14285714285714285, .* …;") as refused:
        trust_columns(rows, ("x", "y"), "ann")
    assert len(str(refused.value)) < 450


def test_an_evaluator_of_openevals_is_trusted_in_one_line():
    rows = [
        {"input": "q", "output": "x" if i % 4 else "y", "expected": "x", "label": i % 4 > 1}
        for i in range(80)
    ]
    report = trust_evaluator(exact_match, rows)
    assert report.name == "exact_match"
    # Called right on three of four, by people on two of four: all of these are found.
    assert report.uses["averages"].number.result == pytest.approx(0.25)
    assert report["agreement.label.wrong"] == 0.75


def test_an_evaluator_of_pairs_and_one_that_fails_now_and_then():
    def longer(output_a: str, output_b: str) -> str:
        if not output_a:
            raise RuntimeError("nothing to read")
        return "A" if len(output_a) > len(output_b) else "B"

    rows = [
        {"input": "q", "output_a": "" if i % 5 == 0 else "aaa", "output_b": "b", "label": "A"}
        for i in range(20)
    ]
    report = trust_evaluator(longer, rows)
    assert report["failures.failed"] == 0.2
    for row in rows:
        row["output_a"] = ""
    with pytest.raises(InputError, match="failed on every row; first RuntimeError: nothing"):
        trust_evaluator(longer, rows)


def test_what_an_evaluator_asks_for_must_be_there():
    with pytest.raises(InputError, match="`rows` "):
        trust_evaluator(exact_match, cast("Any", 3))
    with pytest.raises(InputError, match="no row has what the evaluator calls 'context'"):
        trust_evaluator(lambda context: 1, [{"input": "q", "label": 1}])

    async def later(outputs):
        return 1

    with pytest.raises(InputError, match="must not be asynchronous"):
        trust_evaluator(later, [{"output": "q", "label": 1}])


def test_people_who_differ_on_a_single_text_leave_it_without_a_majority():
    rows = table([0, 1] * 10 + [0] * 4, [0, 1] * 10 + [0] * 4, [0, 1] * 10 + [1] * 4)
    report: Any = trust_columns(rows, "gpt", ["ann0", "ann1"])
    assert "tie" not in report.sentence
    assert report.sample.labels == [0, 1] * 10 + [None] * 4
    said = "On 4 rows no label has a majority; each person's answer counts in part; on the other "
    assert report.sentence.count(f"{said}20 rows") == 1
    assert report.left_out == ""
    assert report["agreement.people"] == pytest.approx(20 / 24)


@for_each("write", ["{}/5", "{} out of 5", "{} %", "{}0%"])
def test_numbers_with_the_same_scale_on_both_sides_are_ratings(write):
    answers = [write.format(n % 5 + 1) for n in range(20)]
    report: Any = trust_columns(table(answers, answers), "gpt", "ann0")
    assert report.sample.rated
    assert report.sample.labels[:2] == ([10, 20] if "0" in write else [1, 2])


@for_each(
    ("judge", "people", "said"),
    [
        (["yes", "no"] * 10, ["yes", "n/a"] * 5 + ["yes", "no"] * 5, "the labels alone: n/a."),
        ([0.91, 0.12, 0.77, 0.3] * 10, [1, 0] * 20, ""),
        ([0.91, 0.12, 0.77, 0.3] * 10, [0.9, 0.1, 0.8, 0.25] * 10, ""),
        ([1, 2, 3, 4, 5] * 5, [1, 2, 3, 5, 5] * 5, ""),
        ([1, 2, 3, 4, 9] * 5, [1, 2, 3, 4, 5] * 5, "far outside people's, which count"),
    ],
)
def test_labels_that_one_side_alone_gives_are_named(judge, people, said):
    report: Any = trust_columns(table(judge, people), "gpt", "ann0")
    assert said in report.left_out
    assert bool(said) == bool(report.left_out)
    assert report.left_out in markdown(report, ()).partition("Agreement")[0]


@for_each(
    ("judge", "people", "ends"),
    [
        ([1, 2, 3, 4, 5] * 5, [2, 4, 6, 8, 10] * 5, "1 to 5 by the judge, and from 2 to 10"),
        ([0.5, 1, 0, 0.25] * 6, [5, 9, 1, 3] * 6, "0 to 1 by the judge, and from 1 to 9"),
    ],
)
def test_of_ratings_on_different_scales_the_order_alone_is_measured(judge, people, ends):
    rows = table(judge, people, people)
    report: Any = trust_columns(rows, "gpt", ["ann0", "ann1"])
    for use in ("averages", "single", "person"):
        answer = report.uses[use]
        assert (answer.word, answer.number) == ("not measured", None)
        assert f"ratings go from {ends} by people: on different scales" in answer.reason
    assert (report.uses["ordering"].word, report.disagreements) == ("yes", [])
    keys = {"agreement.label.wrong", "agreement.over_people", "baseline.lead", "ratings.kappa"}
    assert not keys & report.numbers.keys()


def test_a_judge_that_uses_one_end_of_peoples_scale_is_measured_on_it():
    for judge in ([0.8, 0.9, 1.0, 0.85, 0.95] * 5, [2, 1, 2, 1, 2] * 5):
        people = [each * 5 for each in (0.2, 0.6, 1, 0.4, 0.8)] * 5
        own = [each / 5 for each in people] if judge[0] < 1 else people
        report: Any = trust_columns(table(judge, own), "gpt", "ann0")
        assert report.uses["averages"].number is not None


def test_probabilities_beside_0_and_1_are_ranked():
    rows = table([0.91, 0.12, 0.77, 0.3, 1, 0] * 10, [1, 0] * 30)
    report: Any = trust_columns(rows, "gpt", "ann0")
    assert report.headline.key == "ratings.spearman"
    assert report.uses["ordering"].number.result == 1
    assert "share of" not in report.sentence


@for_each("odd", ["4/5", "80%", "n/a", "4 stars"])
def test_words_among_numbers_are_refused_with_what_to_do(odd):
    answers = [1, 2, 3, 4] * 5
    for judge, people in ((answers, [*answers[1:], odd]), ([*answers[1:], odd], answers)):
        with pytest.raises(InputError, match=f"numbers beside '{odd}'; write numbers alone"):
            trust_columns(table(judge, people), "gpt", "ann0")
    rows = [{"id": str(n), "output": str(n), "label": label} for n, label in enumerate([1, odd])]
    verdicts = [{"id": str(n), "verdict": {"label": n, "failures": []}} for n in (0, 1)]
    with pytest.raises(InputError, match=f"says numbers, and people '{odd}'; write numbers"):
        trust(verdicts, rows)


@for_each(
    ("texts", "kind"),
    [
        (("output",), "item"),
        (("response",), "item"),
        ((), "item"),
        (("output_a", "output_b"), "pair"),
    ],
)
def test_grades_are_labels_of_single_texts_and_c_is_a_tie_of_two_alone(texts, kind):
    rows = table(list("ABC") * 8, list("ABA") * 8, **dict.fromkeys(texts, "text"))
    report: Any = trust_columns([{**rows[0], "input": ""}, *rows], "gpt", "ann0")
    assert report.sample.pairs == (kind == "pair")
    for row in rows:
        del row["input"]
    report = trust_columns(rows, "gpt", "ann0")
    assert report.sample.pairs == (kind == "pair")
    assert ("win rate" in report.sentence) == (kind == "pair")


@for_each("form", ["lists", "arrays", "JSON"])
@for_each("named", ["votes", "label"])
def test_a_column_of_lists_holds_the_votes_of_several_people(form, named):
    votes = [[0, 1, 0], [1, 1]] * 10
    cells: dict[str, Any] = {
        "lists": votes,
        "arrays": [*map(np.array, votes)],
        "JSON": [*map(str, votes)],
    }
    rows = table([0, 1] * 10)
    column = "human_votes" if named == "label" else named
    for row, cell in zip(rows, cells[form], strict=True):
        row[column] = cell
    report: Any = trust_columns(rows, "gpt", named)
    assert [*map(list, report.sample.votes)] == votes


@for_each(
    ("judge", "people"),
    [
        ([True, False] * 5, ["True", "False"] * 5),
        ([1, 0] * 5, ["true", "false"] * 5),
        (["1", "5"] * 5, ["1,0", "5,0"] * 5),
    ],
)
def test_one_label_in_two_spellings_is_one(judge, people):
    report: Any = trust_columns(table(judge, people), "gpt", "ann0")
    assert (report["agreement.label.wrong"], report.left_out) == (1, "")


def test_rows_of_the_same_texts_count_together():
    rows = table([0, 1, 1] * 20, [0, 1, 0] * 20, output="So.")
    each: Any = trust_columns(rows, "gpt", "ann0")
    long: Any = trust_columns(rows * 3, "gpt", "ann0")
    assert "the same texts, and so count together" in long.left_out
    assert "60 groups of the same input" in long.sample.in_groups
    ends = [report["agreement.label.wrong"].interval for report in (each, long)]
    assert ends[1].high - ends[1].low == pytest.approx(ends[0].high - ends[0].low, rel=0.1)


@for_each(
    ("fields", "kind", "groups"),
    [
        (lambda n: {"input": f"q{n % 20}"}, "input", 20),
        # One instruction for all texts, or a mark for none: the source tells tasks apart.
        (lambda n: {"input": "Sum it up.", "source": f"s{n % 20}"}, "source", 20),
        (lambda n: {"input": NO_TASK, "source": f"s{n % 20}"}, "source", 20),
        (lambda n: {"input": f"q{n % 20}", "source": f"s{n % 10}"}, "input", 20),
        (lambda n: {"input": f"q{n % 20}", "group": f"g{n % 50}"}, "group", 50),
        (lambda n: {"input": f"q{n % 20}", "group": str(n)}, "group", None),
        (lambda n: {"input": f"q{n}"}, "input", None),
        (lambda n: {"input": f"q{n % 4}"}, "texts", None),
        (lambda n: {"input": CONVERSATION}, "texts", None),
        (lambda n: {"input": "", "output": f"a{n % 20}"}, "texts", 20),
        # Templates, or what several pipelines found for a question: nobody can tell.
        (lambda n: {"input": f"q{n % 6}", "source": f"s{n}"}, "input", 6),
        (lambda n: {"input": f"q{n % 6}", "source": f"s{n}", "group": n % 50}, "group", 50),
        (lambda n: {"input": f"q{n % 4}", "source": f"s{n % 50}"}, "source", 50),
        (lambda n: {"input": f"q{n % 20}", "source": f"s{n}"}, "input", 20),
        # Rows without an input beside others.
        (lambda n: {"input": f"q{n % 9}"} if n % 2 else {"output": n % 20}, "input texts", 19),
    ],
)
def test_rows_of_one_task_count_together(fields, kind, groups):
    rows = [{"gpt": n % 2, "ann": n % 3 % 2, "output": f"a{n}", **fields(n)} for n in range(100)]
    told: Any = trust_columns(rows, "gpt", "ann")
    assert {found for found, _ in told.sample.clusters} == {*kind.split()}
    assert (told.sample.groups and len({*told.sample.groups})) == groups
    assert bool(told.sample.in_groups) == bool(groups)


@for_each(
    ("inputs", "fields", "note"),
    [
        (1, ["source"], None),
        (4, [], "fewer than five inputs, for which alone the ranges hold: 40."),
        (4, ["source"], "fewer than five inputs, for which alone the ranges hold: 40."),
        (5, ["source"], "few inputs with many sources, which count together by input"),
        (9, ["source"], "few inputs with many sources, which count together by input"),
        (9, ["source", "group"], None),
        (9, ["source", "system"], None),
        (9, [], None),
        # Each question's own passages.
        (40, ["source"], None),
    ],
)
def test_where_the_input_may_be_no_task_the_report_says_so(inputs, fields, note):
    both = [(place, n) for place in range(inputs) for n in range(10)]
    all_fields = [{"source": f"{place} {n}", "system": str(n), "group": n} for place, n in both]
    own = [{name: each[name] for name in fields} for each in all_fields]
    rows = [
        {"gpt": n % 2, "ann": n % 3 % 2, "input": f"q{place}", "output": f"a{place} {n}", **each}
        for (place, n), each in zip(both, own, strict=True)
    ]
    told: Any = trust_columns(rows, "gpt", "ann")
    assert (note in told.left_out) if note else ("inputs" not in told.left_out)


@for_each(
    ("judge", "people"),
    [
        ([0, 1] * 5, ["rude", "polite"] * 5),
        (["good", "bad"] * 5, ["rude", "polite"] * 5),
        (["bad"] * 10, ["rude", "polite"] * 5),
    ],
)
def test_labels_of_which_none_is_shared_are_refused(judge, people):
    with pytest.raises(InputError, match=r"no label in common.*(0|bad).*polite, rude"):
        trust_columns(table(judge, people), "gpt", "ann0")


@for_each(
    ("judge", "people"),
    [(["1", "2", "tie"] * 4, ["model_a", "model_b", "tie"] * 4), (["A", "B", "tie"], [1, 2, 0])],
)
def test_sides_of_pairs_beside_other_names_are_refused_though_one_is_shared(judge, people):
    with pytest.raises(InputError, match=r"says A, B or tie, and '\w+' '?1'?; use the same"):
        trust_columns(table(judge, people), "gpt", "ann0")


def test_an_evaluator_may_be_called_as_a_field_of_the_rows_is():
    def label(outputs):
        return 1

    rows = [{"input": "q", "output": f"t{i}", "label": i % 2} for i in range(40)]
    found = trust_evaluator(label, rows, confidence=0.9)
    assert (found.name, found["agreement.label.wrong"]) == ("label", 0.5)
    assert found.sample.confidence == 0.9


def test_rows_on_which_people_differ_are_named_by_their_number_in_the_table():
    cells = [{"gpt": 1, "ann": 0, "bob": 1}, {"gpt": 0, "ann": 0, "bob": 0}]
    found = trust_columns(cells, "gpt", ["ann", "bob"])
    assert isinstance(found, TrustReport)
    assert next_step(found).rows == ["row 1"]


def test_the_page_says_of_each_system_whether_its_average_is_near_enough():
    ratings = [1, 5, 3] * 30
    rows = table(ratings, ratings)
    found = trust_columns([{**r, "system": f"s{i % 2}"} for i, r in enumerate(rows)], "gpt", "ann0")
    assert isinstance(found, TrustReport)
    part = r'<th scope="row">(s\d)</th>.*<span class="word not-yet">Not yet</span>'
    assert re.findall(part, found.to_html()) == ["s0", "s1"]


def test_a_row_without_a_label_counts_for_no_label():
    known = table([0, 1] * 20, [0, 1] * 20)
    found = [trust_columns(known + more, "gpt", "ann0") for more in ([], table([1], [None]))]
    every, part = (each.uses["single"] for each in found if isinstance(each, TrustReport))
    assert [(n.key, n.result, n.result.n) for n in part.parts] == [
        (n.key, n.result, n.result.n) for n in every.parts
    ]


# Every fifth row has no label, or no answer of the judge, or only the first of two people's.
@pytest.mark.whole
@for_each("kind", [(0, 1), ("A", "B", "tie"), ("x", "y", "z"), (1, 2, 3, 4, 5)])
@for_each("people", [["ann0"], ["ann0", "ann1"]])
@for_each("empty", [["gpt"], ["ann1"], ["ann0", "ann1"], ["gpt", "ann0", "ann1"]])
@for_each("more", [{}, {"group": 4}, {"system": 3, "category": 2}])
def test_a_report_leaves_out_what_is_missing(kind, people, empty, more):
    answers = [kind[i % len(kind)] for i in range(60)]
    rows = table(answers, answers[1:] + answers[:1], answers)
    for place, row in enumerate(rows):
        row.update({name: f"{name}{place % count}" for name, count in more.items()})
        row.update(dict.fromkeys(empty) if place % 5 == 0 else {})
    found: Any = trust_columns(rows, "gpt", people)
    assert len(found.sample.rows) == 60
    assert found.sample.answers.count(None) == (12 if "gpt" in empty else 0)
    assert [*map(bool, found.sample.choices)].count(False) == (12 if "ann0" in empty else 0)
    assert found.to_html()
