"""The data of a report are read as the run read them, and their labels as the judge's."""

from __future__ import annotations

import random
import re
from ast import literal_eval
from contextlib import nullcontext
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

from langchain_judges import create_relative_judge, create_rubric_judge, datasets, judge_many
from langchain_judges.errors import InputError
from langchain_judges.report import compare, trust
from langchain_judges.report.joined_rows import JudgedRow
from langchain_judges.report.labelling import is_labelled
from langchain_judges.report.rating_scale import RatingScale
from langchain_judges.report.sample import Sample
from langchain_judges.report.use_cases import answers_of
from langchain_judges.rows.checks import check_annotations, number_in, read_label
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.sources import source_of
from langchain_judges.runs.table_form import TableForm
from langchain_judges.testing import FakeChatModel, fitting_reply
from tests.cases import for_each
from tests.judged_rows import data_of, items_of, run_of, texts_of

ONE = FakeChatModel(replies=lambda prompt: {"explanation": "e", "label": "1"})
GOOD = create_rubric_judge(ONE, rubric="Is it good?")
FORMS = ("frame", "dicts", "file")
NAMES = [("input", "output"), ("question", "reply"), ("q", "t")]


def data_in(form: str, names: tuple[str, str], folder: Path) -> Any:
    """Six texts in columns of these names."""
    task, text = names
    table = DataFrame({task: "q", text: [f"t{i}" for i in range(6)], "label": [0, 1] * 3})
    table.to_csv(folder / "t.csv", index=False)
    forms = {"frame": table, "dicts": table.to_dict("records"), "file": folder / "t.csv"}
    return forms[form]


@for_each("names, judged, passed", product(NAMES, FORMS, FORMS))
def test_data_are_read_as_the_run_read_them(names, judged, passed, tmp_path):
    columns = {"input": "q", "output": "t"} if "q" in names else None
    rows = list(judge_many(GOOD, data_in(judged, names, tmp_path), columns=columns))
    report = trust(rows, data_in(passed, names, tmp_path), columns=columns)
    assert (len(report.sample.rows), report.absent) == (6, 0)
    assert report["agreement.label.wrong"] == 0.5


def test_several_judges_are_compared_on_data_that_can_be_read_once(tmp_path):
    data = data_in("dicts", ("q", "t"), tmp_path)
    columns = {"input": "q", "output": "t"}
    rows = list(judge_many(GOOD, data, columns=columns))
    report = compare({"a": rows, "b": rows}, iter(data), columns=columns)
    assert [len(each.sample.rows) for each in report.reports] == [6, 6]


def test_columns_that_nobody_named_are_named_by_the_error(tmp_path):
    data = data_in("frame", ("q", "t"), tmp_path)
    rows = list(judge_many(GOOD, data, columns={"input": "q", "output": "t"}))
    with pytest.raises(InputError, match=r"fields are 'q', 't', 'label'; `columns=` names"):
        trust(rows, data)


def test_labels_beside_ids_need_no_texts():
    labels = DataFrame({"id": ["r0", "r1"], "label": [1, 0]})
    assert trust(items_of([1, 1]), labels)["agreement.label.wrong"] == 0.5


def test_repeated_texts_keep_their_own_labels_in_every_form():
    table = DataFrame({"question": "q", "reply": ["same", "same"], "label": [0, 1]})
    report = trust(list(judge_many(GOOD, table)), table.to_dict("records"))
    assert report["agreement.label.wrong"].n == 2


def test_labels_of_single_texts_are_no_spellings_of_sides():
    rows, data = items_of(["a", "b"] * 5), texts_of(["a", "b"] * 5)
    for row in data:
        del row["input"], row["output"]
    assert trust(rows, data)["agreement.label.wrong"] == 1


TONE = create_rubric_judge(
    FakeChatModel(replies=lambda prompt: {"explanation": "e", "label": "polite"}),
    rubric="Tone ok?",
    labels=["rude", "polite"],
    best="polite",
)


def labelled_by(judge: Any, right: Any, other: Any) -> Any:
    """A report on 20 rows of which every fourth has the other label."""
    data = [
        {"input": "q", "output": f"t{i}", "label": right if i % 4 else other} for i in range(20)
    ]
    return trust(list(judge_many(judge, data)), data)


@for_each(
    ("judge", "right", "other"),
    [
        *((TONE, "polite", other) for other in ("", " ", None, "n/a", "pollite")),
        *((GOOD, "1", other) for other in ("", None, "n/a")),
    ],
)
def test_a_label_that_is_none_is_no_mistake_of_the_judge(judge, right, other):
    agreement = labelled_by(judge, right, other)["agreement.label.wrong"]
    assert (agreement, agreement.n) == (1, 15)


@for_each(
    ("judge", "right", "other"), [(TONE, "polite", "POLITE"), (GOOD, 1, True), (GOOD, True, "1")]
)
def test_a_label_in_another_spelling_is_the_judges_own(judge, right, other):
    agreement = labelled_by(judge, right, other)["agreement.label.wrong"]
    assert (agreement, agreement.n) == (1, 20)


def test_rows_with_a_label_that_is_none_of_the_judges_are_counted_and_one_is_named():
    report = labelled_by(TONE, "polite", "pollite")
    assert "unusable: 5. First: row 1: `label` must be one of rude, polite" in report.left_out
    assert "15 of 20 rows; left out: 5 unusable" in report.uses["averages"].text


BOTH = create_rubric_judge(
    FakeChatModel(
        replies=lambda prompt: {
            "criterion_1": {"explanation": "e", "label": "polite"},
            "criterion_2": {"explanation": "e", "label": "1"},
        }
    ),
    rubric=[
        {"name": "tone", "description": "Tone ok?", "labels": ["rude", "polite"]},
        {"name": "help", "description": "Does it help?"},
    ],
)


@for_each(
    ("criterion", "right", "other", "number"),
    [
        *(("tone", "polite", other, 15) for other in ("", " ", None, "n/a", "pollite")),
        *(("help", "1", other, 15) for other in ("", None, "n/a")),
        ("tone", "polite", "POLITE", 20),
        ("help", 1, True, 20),
    ],
)
def test_labels_by_criterion_are_read_as_that_criterions(criterion, right, other, number):
    assert agreement_on(criterion, [right if i % 4 else other for i in range(20)]) == (1, number)


def agreement_on(criterion, labels, named="label."):
    """The share of labels that the judge of both criteria shares, and of how many."""
    texts = [{"input": "q", "output": "t", "id": str(i)} for i, _ in enumerate(labels)]
    data = [{**row, named + criterion: own} for row, own in zip(texts, labels, strict=True)]
    found = trust(judged_by_both(len(texts)), data)[f"criterion.{criterion}.agreement"]
    return found, found.n


@cache
def judged_by_both(number):
    rows = [{"input": "q", "output": "t", "id": str(i)} for i in range(number)]
    return list(judge_many(BOTH, rows, progress=False))


def test_labels_by_criterion_are_columns_as_pandas_calls_them_too():
    assert agreement_on("help", [1] * 20, "labels.") == (1, 20)


def test_labels_that_are_all_none_of_the_judges_are_refused():
    with pytest.raises(InputError, match=r"row 1: `label` must be one of rude, polite"):
        labelled_by(TONE, "good", "bad")


def test_an_empty_vote_is_no_vote():
    rows, data = items_of([1, 0] * 4), texts_of([None] * 8, human_votes=["1", "", "1"])
    assert trust(rows, data)["agreement.votes.wrong"].n == 16


def test_empty_labels_leave_ratings_ratings():
    rows, data = items_of([1, 2, 3, 4, 5] * 2), texts_of([1, 2, 3, 4, ""] * 2)
    assert trust(rows, data).sample.rated


@for_each(
    ("judge", "people"),
    [
        *((range(1, 6), people) for people in (range(5), range(20, 101, 20), [1, 2, 3, 4, 6])),
        ([0, 1, 0, 0, 1], range(1, 6)),
    ],
)
def test_labels_off_the_judges_scale_measure_the_order_alone(judge, people):
    rows = items_of([*judge] * 20, judge={"labels": sorted({*judge})})
    report = trust(rows, texts_of([*people] * 20))
    assert {report.uses[use].word for use in ("single", "averages")} == {"not measured"}
    assert "on different scales only the order of texts counts" in report.uses["single"].text


@for_each("labels", [range(-2, 3), range(1, 6), range(1, 11), range(101)])
@for_each("is_low", [True, False])
def test_no_rating_inside_the_judges_labels_is_a_stray_and_one_far_outside_is(labels, is_low):
    used = labels[:3] if is_low else labels[-3:]
    people = [*used] * 12
    rows = items_of(people, judge={"labels": [*labels]})
    for value in (*labels[:: len(labels) // 5], -99, 999):
        data = texts_of([value, *people[1:]])
        both = zip(rows, data, strict=True)
        sample = Sample([JudgedRow(row, facts, i) for i, (row, facts) in enumerate(both)], 0.95)
        assert sample.scale.strays == {value} - {*labels}, value
        assert sample.scale.ends == (min(labels), max(labels))  # whichever of them occur


@for_each("scale", [[*range(4)], [*range(1, 6)], [0, 0.5, 1], [*range(11)], [0.3, 1.7, 2.2]])
@for_each("number", range(1, 12))
def test_ratings_below_0_that_several_rows_have_are_of_the_scale(scale, number):
    rng = random.Random(number)
    for low in {-1, -0.5, -max(scale), *(-step for step in scale if step)}:
        people = [*rng.choices(scale, k=108), *scale, *[low] * number]
        found = RatingScale(people, [[vote] for vote in people], [], "people")
        assert found.strays == ({low} if number == 1 else set())
        assert found.ends == (min(scale if number == 1 else (low, *scale)), max(scale))
    codes = [*rng.choices(scale, k=108), *scale, *[-99] * number]
    assert RatingScale(codes, [[vote] for vote in codes], [], "people").strays == {-99}


SCALES = [[0, 1], [1, 2], [-1, 1], [0, 2], range(1, 6), range(5), range(11)]


@pytest.mark.whole
@for_each(("judge", "people", "is_known"), product(SCALES, SCALES, [True, False]))
def test_of_labels_in_other_numbers_the_order_alone_is_measured(judge, people, is_known):
    if not is_known and [0, 1] not in (judge, people):
        return  # it may be one scale, of which each side gave some
    known: Any = {"judge": {"labels": [*judge]}} if is_known else {}
    report = trust(items_of([*judge] * 20, **known), texts_of([*people] * 20))
    is_one = min(judge) <= min(people) and max(people) <= max(judge)
    is_one &= people != [0, 1] or judge == people
    words = {report.uses[use].word for use in ("single", "averages")}
    assert ("not measured" in words) != is_one


def test_a_judge_of_another_scale_than_the_labels_is_compared_with_none():
    runs = {n: items_of(s * 20, judge={"labels": s}) for n, s in (("a", [0, 1]), ("b", [1, 2]))}
    found = compare(runs, texts_of([0, 1] * 20))
    assert "a and b are not compared: one is of another scale." in found.sentence


def test_a_single_vote_off_the_judges_scale_is_one_too():
    rows = items_of([0, 1] * 10, judge={"labels": [0, 1]})
    data = texts_of([None] * 20, human_votes=[1, 1, 2])
    assert "from 1 to 2 by people" in trust(rows, data).uses["single"].text


@for_each(("judge", "people"), [(range(5), range(1, 6)), (range(1, 4), range(3))])
def test_all_steps_from_0_and_all_from_1_are_two_scales(judge, people):
    shifted = trust(items_of([*judge] * 20), texts_of([*people] * 20))
    assert shifted.uses["single"].word == "not measured"
    partly = trust(items_of([*judge] * 20), texts_of([people[0], *judge[1:]] * 20))
    assert partly.uses["single"].word != "not measured"


def test_the_average_of_all_rows_as_people_would_say_is_one_of_all_steps():
    people = [4, 5, 1, 2, None] * 20
    report = trust(items_of([5, 4, 1, 2, 3] * 20), texts_of(people))
    result = report["people.corrected"]
    assert (result.n, result.n_failed) == (80, {})
    assert result == pytest.approx(3, abs=0.2)


def test_labels_of_no_criterion_are_named_and_case_tells_no_two_apart():
    data = [
        {"id": str(i), "input": "q", "output": "t", "label.TONE": "polite", "label.wit": 1}
        for i in range(10)
    ]
    report = trust(list(judge_many(BOTH, data)), data)
    assert report["criterion.tone.agreement"] == 1
    assert "labels of no criterion of the judge (wit): 10" in report.left_out


@for_each("form", ["label.help", "human_votes.help"])
def test_votes_by_criterion_are_each_persons(form):
    texts = [{"input": "q", "output": "t", "id": str(i)} for i in range(20)]
    votes = [{**row, form: [1, "1", i % 4 > 0]} for i, row in enumerate(texts)]
    report = trust(judged_by_both(20), votes)
    assert report["criterion.help.agreement"] == 1
    # On every fourth row the judge agrees with 2 of 3 people, who agree in 1 of 3 pairs.
    assert report.uses["person"].number.result == pytest.approx((2 / 3 - 1 / 3) / 4)


LISTED: dict[str, list[Any]] = {
    **{sign.join("101"): [1, 0, 1] for sign in (";", "; ", "|", " | ", "\n", ",", ", ", " ", "\t")},
    **{"[1 0 1]": [1, 0, 1], "[1, 0]": [1, 0], "1;0": [1, 0], "1, 0": [1, 0], "[0,5]": [0, 5]},
    **{"1;": [1, None], "1;;0": [1, None, 0], "0,5; 1": [0.5, 1], "0.5 1": [0.5, 1]},
    **{"1": [1], "0,05": [0.05], ";": []},
}


@for_each("field", ["human_votes", "human_votes.help"])
@for_each("cell", LISTED)
def test_the_votes_in_a_cell_are_read_as_people_write_them(field, cell):
    row = TableForm().cell_row({"input": "q", "output": "t", field: cell}, 0)
    votes = row.get("human_votes") or row.get("labels", {}).get("help") or []
    assert [None if vote == "" else number_in(vote) for vote in votes] == LISTED[cell]


@for_each("field", ["human_votes", "human_votes.help"])
@for_each("cell", ["4,5", "1,0", "0,0", "-1,5", "3,5, 4,5", "3,5 4", "1;0|1", "1,000", "1/0"])
def test_a_cell_that_may_be_a_number_or_votes_is_refused(field, cell):
    row = TableForm().cell_row({"input": "q", "output": "t", field: cell}, 0)
    known = [0, 1, 4, 5, 4.5]
    with pytest.raises(InputError, match=re.escape(f"got '{cell}")):
        check_annotations(row, {"help": known} if "help" in field else known)


def test_a_report_on_cells_that_may_be_a_number_or_votes_is_refused_with_both_ways_out():
    frame = DataFrame([{"input": "q", "output": f"t{i}", "human_votes": "0,1"} for i in range(2)])
    rows = list(judge_many(GOOD, frame, progress=False))
    with pytest.raises(InputError, match=r"'0,1 \(write 0.1, or 0;1 for two votes\)'"):
        trust(rows, frame)


@for_each("known", [[0, 1], [1, 2, 3, 4, 5], [0.0, 0.5, 1.0], ["1", "2"]])
@for_each("said", [0, 0.5, 1, 1.1, "5,5", 99, -1, True, None])
@for_each("field", ["label", "human_votes", "label.help"])
def test_a_number_outside_the_judges_labels_is_told_and_may_be_of_another_scale(known, said, field):
    row: Any = {"output": "t", field: [known[0], said] if field == "human_votes" else said}
    labels: Any = {"help": known} if "help" in field else known
    row = {"output": "t", "labels": {"help": said}} if "help" in field else row
    is_outside = said is not None and not (
        str(said) in known if "1" in known else known[0] <= number_in(said) <= known[-1]
    )
    found = f"`{field}` must be one of {', '.join(map(str, known))}, got "
    with pytest.raises(InputError, match=found) if is_outside else nullcontext():
        check_annotations(row, labels, outside=False)
    if "1" not in known:
        check_annotations(row, labels)


def test_counts_of_labels_are_no_votes_of_people():
    counts = {"1": 0, "4": 2, "5": 1}
    with pytest.raises(InputError, match="a list in which each label stands as often"):
        check_annotations({"output": "t", "human_votes": counts}, [1, 2, 3, 4, 5])


@for_each("field", ["human_votes", "human_votes.help"])
@for_each("outputs", [("output",), ("output_a", "output_b")])
def test_a_row_whose_cells_of_people_are_all_empty_waits_for_labels(field, outputs):
    texts = {"input": "q", **{name: name for name in outputs}}
    cells = [("A", "", "B"), ("", "", ""), (None, None, None)]
    data = [{**texts, **dict(zip("abc", own, strict=True))} for own in cells]
    takes = "pair" if outputs[1:] else "item"
    records = Records(source_of(data), {field: ["a", "b", "c"]}, takes)
    rows = [records.row(row, place) for place, row in enumerate(data)]
    assert [is_labelled(row) for row in rows] == [True, False, False]


def test_votes_beside_a_label_of_the_same_criterion_are_noted():
    data = [{"input": "q", "output": "t", "label.help": 1, "human_votes.help": [0, 0]}]
    [row] = judge_many(BOTH, data, progress=False)
    assert row["labels"] == {"help": 1}
    assert [each["unit"] for each in row["verdict"]["failures"]] == ["human_votes.help"]


def test_the_one_criterion_of_a_judge_may_be_labelled_by_its_name():
    judge = create_rubric_judge(ONE, rubric=[{"name": "help", "description": "Does it help?"}])
    data = [{"input": "q", "output": f"t{i}", "label.help": str(i % 2)} for i in range(20)]
    assert trust(list(judge_many(judge, data)), data)["criterion.help.agreement"] == 0.5


def test_votes_on_the_whole_are_no_labels_of_a_criterion():
    votes: Any = {"input": "q", "output": "t", "human_votes": [1]}
    data = [{"id": str(i), **votes} for i in range(9)]
    data[0]["label.help"] = 1
    assert trust(judged_by_both(9), data)["criterion.help.agreement"].n == 1


# ---- a column that is advised is read


HELD: dict[str, Any] = {
    "each": {"help": 1, "tone": "polite"},
    "votes": [{"help": 1, "tone": "polite"}, {"help": 1, "tone": "rude"}],
    "numbers": [1, 1],
    "value": {"by": "Ann", "value": 1},
    "values": [{"by": "Ann", "value": 1}, {"by": "Bob", "value": 0}],
    "deep": {"help": [{"value": 1}, {"value": 0}]},
}


@pytest.mark.whole
@for_each(
    ("field", "held", "judge"),
    product(["label", "human_votes", "label.help", "human_votes.help"], HELD, [GOOD, BOTH]),
)
def test_columns_that_are_advised_for_a_label_can_be_named_as_they_stand(
    field, held, judge, caplog
):
    rows = [{"input": "q", "output": f"t{i}", "rated": HELD[held]} for i in range(9)]
    columns: Any = {field: "rated"}
    for _ in range(2):
        caplog.clear()
        judged = list(judge_many(judge, rows, columns=columns, progress=False))
        if "annotations cannot be used" not in caplog.text:
            break
        advised = re.search(r"named by `columns` (\S+?)=(\[.*?\]|\S+),", caplog.text)
        assert advised, caplog.text
        places = advised[2].replace("COLUMN", "rated").strip("[]").split(", ")
        columns = {advised[1]: places if "[" in advised[2] else places[0]}
    assert not caplog.messages
    assert trust(judged, rows, columns=columns).numbers


@for_each("label", [-2, 0, "left", "1"])
def test_values_that_are_no_sides_are_mapped_as_the_error_says(label, caplog):
    caplog.clear()
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    pairs = [{"input": "q", "output_a": "x", "output_b": "y", "label": label}]
    list(judge_many(judge, pairs, progress=False))
    advice = caplog.text.partition("datasets.rows(ROWS, labels=")[2].partition(")")[0]
    own = advice.replace("…", repr(label), 1)  # which value is which side, nobody else knows
    advised = literal_eval(own.replace("…", "'another'"))
    assert [*advised.values()][:1] == ["A"]
    mapped = datasets.rows(pairs, labels=advised)
    assert [row["label"] for row in judge_many(judge, mapped, progress=False)] == ["A"]


@for_each("form", ["{}", "[[{}]]"])
def test_verdicts_as_judges_of_arenas_spell_them_are_sides(form):
    sides = {"A": "A", "A>B": "A", "A>>B": "A", "A=B": "tie", "B>A": "B", "B>>A": "B", "C": "tie"}
    assert {said: read_label(form.format(said)) for said in sides} == sides
    assert [read_label(each) for each in ("A<B", "A<<B", "B<A", "b<<a")] == ["B", "B", "A", "A"]


# The answers of one kind, and a judge and people who mostly give the right one.
KINDS = {"pairs": "AB", "ratings": [1, 2, 3, 4, 5], "labels": [0, 1]}


def reports_of(kind: str, gold: Any) -> dict[str, Any]:
    """Reports by labels alone, by votes alone and by both; `gold` makes a label of the truth."""
    draw, steps = random.Random(7), KINDS[kind]
    truth = [draw.choice(steps) for _ in range(30)]
    votes = [[t, t, draw.choice(steps)] for t in truth]
    said = [t if draw.random() < 0.8 else draw.choice(steps) for t in truth]
    run = run_of(said) if kind == "pairs" else items_of(said)
    labels = [gold(t, steps) for t in truth]
    rows = data_of(labels) if kind == "pairs" else texts_of(labels)
    both = [{**row, "human_votes": own} for row, own in zip(rows, votes, strict=True)]
    without = [{**row, "label": None} for row in both]
    return {n: trust(run, d) for n, d in (("label", rows), ("votes", without), ("both", both))}


# By what each person said; all else is by people's answer.
BY_PERSON = (
    *("agreement.people", "agreement.over_people", "agreement.winning_rate", "agreement.alpha"),
    *("agreement.fleiss", "agreement.ac1", "agreement.people_rows"),
)


def figures(report: Any, *, by_person: bool) -> list[str]:
    own = [str(n.to_dict()) for k, n in report.numbers.items() if (k in BY_PERSON) == by_person]
    uses = [str(a.to_dict()) for u, a in report.uses.items() if (u == "person") == by_person]
    return [*own, *uses, "" if by_person else report.sample.whom]


@for_each("kind", KINDS)
def test_a_label_beside_votes_is_peoples_answer_in_every_figure(kind):
    found = reports_of(kind, lambda truth, steps: steps[(steps.index(truth) + 1) % len(steps)])
    for by_person, other in ((False, "label"), (True, "votes")):
        said = figures(found["both"], by_person=by_person)
        assert said == figures(found[other], by_person=by_person)
    assert "the votes count only among people, and in place of a person: 30." in (
        found["both"].left_out
    )
    assert {each.people.partition(" ")[0] for each in found["both"].disagreements} <= {
        str(step) for step in KINDS[kind]
    }


def test_labels_that_only_repeat_the_majority_leave_all_to_the_votes():
    found = reports_of("ratings", lambda truth, steps: truth)
    assert found["both"].to_dict()["uses"] == found["votes"].to_dict()["uses"]
    assert found["both"].left_out == found["votes"].left_out


POINTS, DECLARED = (
    "5 percentage points",
    "5 % of the ratings' range (1 to 7, by the judge's labels)",
)
SEEN = "5 % of the ratings' range ({} to {}, by the labels)"
MIDDLE, HELP, EITHER = [4, 5, 6], [3, 4, 7], [0, 1]


@for_each(
    ("steps", "is_known", "limit"),
    [
        ({"": MIDDLE}, True, DECLARED),
        ({"": MIDDLE}, False, SEEN.format(4, 6)),
        ({"": EITHER}, True, POINTS),
        ({"tone": MIDDLE, "help": HELP}, True, DECLARED),
        ({"tone": EITHER, "help": EITHER}, True, POINTS),
        ({"tone": MIDDLE, "help": EITHER}, True, f"{DECLARED} for tone, {POINTS} for help"),
        (
            {"tone": MIDDLE, "help": HELP},
            False,
            f"{SEEN.format(4, 6)} for tone, {SEEN.format(3, 7)} for help",
        ),
    ],
)
def test_a_limit_has_the_unit_of_its_number_and_the_range_that_is_declared(steps, is_known, limit):
    own = {name: EITHER if values == EITHER else [*range(1, 8)] for name, values in steps.items()}
    known: Any = {"judge": {"labels": own.get("", own)}} if is_known else {}
    rows, data = items_of([0.5] * 12, **known), texts_of([None] * 12)
    for i, (row, facts) in enumerate(zip(rows, data, strict=True)):
        said: dict[str, Any] = {name: values[i % len(values)] for name, values in steps.items()}
        facts |= {"label": said[""]} if "" in said else {"labels": said}
        row["verdict"] |= {"label": said.get("", 0.5)}
        row["subscores"] = [{"criterion": n, "label": v} for n, v in said.items() if n]
    report = trust(rows, data)
    told = report.limits["Averages over many rows"].replace("\xa0", " ")
    assert told == f"at most {limit} from people's, and rising where theirs rise"
    found = {n: answers_of(part, {}, report.policy) for n, part in report.sample.parts.items()}
    units = {
        name: each["averages"].number and each["averages"].number.unit
        for name, each in found.items()
    }
    assert units == {name: "points" if own[name] == EITHER else "number" for name in steps}
