"""One text by several criteria: what is asked, what is read, and what becomes of it."""

import csv
import json
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_judges import (
    FailureMemory,
    as_evaluator,
    create_allure_judge,
    create_direct_judge,
    create_relative_judge,
    create_rubric_judge,
    judge_many,
    load_judge,
)
from langchain_judges.errors import InputError, OptionError, RepeatedFailureError
from langchain_judges.integrations.feedback import Span
from langchain_judges.methods.rubric import Criterion, criteria
from langchain_judges.methods.rubric.criteria import ready_names, ready_rubric
from langchain_judges.methods.rubric.options import RubricOptions
from langchain_judges.methods.rubric.prompts import label_words
from langchain_judges.methods.rubric.replies import parse_label, subscore
from langchain_judges.options import OF_CRITERION
from langchain_judges.report.terminal import summary_table
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import is_abstention
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced, with_logprobs
from tests.judges import answer
from tests.memories import Letters
from tests.shapes import TALK
from tests.test_evaluators import CHAT, a_run, an_example

ITEM = {"input": "Where is my parcel?", "output": "It comes today."}
WORK = {"input": "Where is parcel 7?", "output": CHAT}
TWO: list[dict[str, Any]] = [
    {"name": "Tone", "description": "Is the reply polite?", "weight": 3},
    {"name": "Length", "scale": [1, 5], "anchors": {1: "it rambles", 5: "it is brief"}},
]


def says(*labels):
    """A model that gives one label by each criterion."""
    parts = {
        f"criterion_{n}": {"explanation": f"reason {n}", "label": str(label)}
        for n, label in enumerate(labels, 1)
    }
    return FakeChatModel(replies=lambda _: parts["criterion_1"] if len(labels) == 1 else parts)


def lacked(judge, row):
    """The failure of a row that lacks something, by a verdict that cost no call."""
    verdict = judge.invoke(row)["verdict"]
    [failure] = verdict["failures"]
    assert (verdict["label"], verdict["score"], verdict["usage"]["calls"]) == (None, None, 0)
    assert failure["reason"] == "lacking"
    assert failure["detail"] in verdict["rationale"]
    return failure["detail"]


def judged(labels, item=ITEM, **options):
    return create_rubric_judge(says(*labels), repairs=0, **options).invoke(item)


def marks(judge):
    return judge.config["metadata"]["options"]


@for_each("rubric", ["Is it rude? It is if it blames.", "丁寧ですか。", "Politeness"])
def test_yes_and_no_are_told_alike_of_questions_and_statements(rubric):
    model = FakeChatModel(replies=[{"explanation": "", "label": "1"}])
    create_rubric_judge(model, rubric=rubric).invoke(ITEM)
    assert "The labels: 0: no; 1: yes.\n" in model.prompts[0]


@for_each(
    ("options", "told"),
    [
        ({"labels": ["billing", "other", "sales"]}, "billing, other or sales."),
        (
            {"labels": ["none", "some", "much"], "best": "none"},
            "much, some or none (much scores lowest, none highest).",
        ),
        ({"labels": ["bad", "good"], "best": "good"}, "(bad scores lowest, good highest)."),
        ({"labels": [1, 2, 3]}, "1, 2 or 3 (1 scores lowest, 3 highest)."),
        ({"scale": (1, 3), "best": 1}, "3, 2 or 1 (3 scores lowest, 1 highest)."),
    ],
)
def test_a_prompt_orders_labels_only_where_somebody_did(options, told):
    model = FakeChatModel(replies=lambda _: "?")
    own = {"rubric": {"name": "Topic", **options}} if "scale" in options else options
    create_rubric_judge(model, **{"rubric": "Topic", **own}).invoke(ITEM)
    assert told in model.prompts[0]


def test_a_scale_may_have_its_best_end_below_and_a_run_says_which_it_is():
    harm = {"name": "Harm", "scale": (1, 5), "best": 1}
    judge = create_rubric_judge(says(2, 5), rubric=[harm, {**harm, "name": "Wit", "best": 5}])
    run = judge_many(judge, [ITEM], progress=False)
    [row] = run
    assert [(part["best"], part["score"]) for part in row["subscores"]] == [(1, 0.75), (5, 1)]
    lines = run.summary.criteria.lines()
    told = [(name, best) for name, kind, *_, best in lines if kind == "best label"]
    assert told == [("Harm", 1), ("Wit", 5)]


@for_each("best, told", [(1, "the best"), (None, "counts as good; `best` says otherwise")])
def test_a_run_by_one_criterion_says_which_label_is_the_best(best, told):
    judge = create_rubric_judge(says(0), rubric="Is it toxic?", best=best)
    list(run := judge_many(judge, [ITEM], progress=False))
    lines = zip(*(column.cells for column in summary_table(run.summary).columns), strict=True)
    assert ["label 1", "0", told] in [[str(cell) for cell in line] for line in lines]


def test_each_criterion_has_a_label_and_a_reason_beside_the_weighed_total():
    result = judged([0, 5], rubric=TWO)
    # Tone 0 of weight 3, Length (5 - 1) / (5 - 1) = 1 of weight 1: 1 / 4.
    assert (result["verdict"]["label"], result["verdict"]["score"]) == (0.25, 0.25)
    assert [(s["criterion"], s["label"], s["reason"]) for s in result["subscores"]] == [
        ("Tone", 0, "reason 1"),
        ("Length", 5, "reason 2"),
    ]
    assert result["verdict"]["rationale"] == "Total 0.25 of 1. Tone: 0; Length: 5."
    assert result["verdict"]["usage"]["calls"] == 1


def test_each_asks_a_call_for_each_criterion_and_comes_to_the_same():
    model = FakeChatModel(
        replies=lambda p: {"explanation": "x", "label": "0" if "Tone" in p else "5"}
    )
    judge = create_rubric_judge(model, rubric=TWO, each=True)
    result = judge.invoke(ITEM)
    assert judge.config["metadata"]["calls"] == len(model.prompts) == 2
    assert result["verdict"]["score"] == judged([0, 5], rubric=TWO)["verdict"]["score"]
    assert not any("Tone" in prompt and "Length" in prompt for prompt in model.prompts)


@for_each(
    ("rubric", "names"),
    [
        ("Is it polite?", ["rubric"]),
        ({"Tone": "Is it polite?", "Length": {"scale": [1, 5]}}, ["Tone", "Length"]),
        (["Tone", "Length: not too long", Criterion(name="Wit")], ["Tone", "Length", "Wit"]),
        ({"name": "Tone", "description": "Is it polite?"}, ["Tone"]),
        ([{"Tone": "Is it polite?"}, {"Length": {"scale": [1, 5]}}], ["Tone", "Length"]),
        (Criterion(name="Tone"), ["Tone"]),
    ],
)
def test_criteria_are_given_in_many_forms(rubric, names):
    judge = create_rubric_judge(says(1), rubric=rubric)
    assert [each["name"] for each in marks(judge)["criteria"]["criteria"]] == names


@for_each("labels", [(0, 0.5, 1), (0.0, 0.5, 1.0)])
@for_each("form", [str, float, round, lambda label: f" {label} "])
def test_a_label_that_is_a_number_may_be_written_as_any_form_of_it(labels, form):
    for label in labels[::2] if form is round else labels:
        reply = json.dumps({"explanation": "", "label": form(label)})
        model = FakeChatModel(replies=[reply])
        judge = create_rubric_judge(model, rubric="Is it polite?", labels=labels)
        assert judge.invoke(ITEM)["verdict"]["label"] == label
        assert len(model.prompts) == 1


@for_each("wrong", [{"weight": "much"}, {"scale": "1-5"}, {"labels": [1]}, {"lables": [0, 1]}])
@for_each(
    "form", [lambda own: {"T": own}, lambda own: [{"T": own}], lambda own: [{"name": "T"} | own]]
)
def test_a_criterion_that_cannot_be_read_is_named(wrong, form):
    with pytest.raises(OptionError, match=f"^criterion 'T': .*{next(iter(wrong))}"):
        create_rubric_judge(says(1), rubric=form(wrong))
    with pytest.raises(OptionError, match=r"criterion {'weight': 2}: .*`name`"):
        create_rubric_judge(says(1), rubric=[{"weight": 2}])


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_rubric_in_a_file(form, tmp_path):
    file = tmp_path / f"rubric.{form}"
    data = {"criteria": [{"name": "Rude", "labels": ["yes", "no"]}], "needs": "source"}
    text = "criteria:\n- name: Rude\n  labels: [yes, no]\nneeds: source\n"
    file.write_text(json.dumps(data) if form == "json" else text)
    judge = create_rubric_judge(says("no"), file=file)
    # A spec holds what was read: the file may change, or be in another place.
    spec = json.dumps(judge.options.sendable())
    file.write_text("- Kind")
    again = load_judge("rubric", says("no"), **json.loads(spec))
    for each in (judge, again):
        assert "needs a source" in lacked(each, ITEM)
        assert each.invoke({**ITEM, "source": "s"})["verdict"]["label"] == "no"
        assert each.config["metadata"] == judge.config["metadata"]
    other = create_rubric_judge(says("no"), file=file)
    assert other.config["metadata"] != judge.config["metadata"]


@for_each(
    ("options", "message"),
    [
        ({"rubric": ["Depth", "depth"]}, "two criteria are named 'depth'"),
        ({"rubric": [{"name": "T", "lables": [1, 2]}]}, "did you mean 'labels'"),
        ({"rubric": [{"name": "T", "labels": [1]}]}, "`labels` must be two or more"),
        ({"rubric": [{"name": "T", "labels": {"good": 1.0, "bad": 0.0}}]}, "means, in words, got"),
        ({"rubric": "Tone", "labels": {"bad": 0, "good": 1}}, "means, in words, got"),
        ({"rubric": [{"name": "T", "scale": [1, 500]}]}, "at most 100 apart"),
        ({"rubric": [{"name": "T", "scale": [1, 5], "anchors": {9: "x"}}]}, "not on its scale"),
        ({"rubric": "Tone", "file": {"criteria": "Wit"}}, "`rubric` or `file`, not both"),
        ({"rubric": TWO, "min_valid": 3}, "`min_valid` must be at most 2, got 3"),
    ],
)
def test_a_bad_rubric_is_named(options, message):
    with pytest.raises(OptionError, match=message):
        create_rubric_judge(says(1), **options)


def test_a_required_criterion_that_fails_makes_the_whole_fail():
    rubric = [{**TWO[0], "required": True}, TWO[1]]
    verdict = judged([0, 5], rubric=rubric)["verdict"]
    assert (verdict["score"], "required: Tone. reason 1" in verdict["rationale"]) == (0, True)
    assert judged([1, 5], rubric=rubric)["verdict"]["score"] == 1
    unknown = judged(["maybe", 5, 1], rubric=[*rubric, "Wit"])["verdict"]
    assert (unknown["label"], unknown["score"]) == (None, None)
    assert "'Tone' has no label" in unknown["rationale"]


def test_a_criterion_that_failed_is_left_out_and_named_while_a_quorum_remains():
    rubric = [*TWO, "Wit"]
    result = judged([1, 9, 1], rubric=rubric)
    assert result["verdict"]["score"] == 1
    assert [s["label"] for s in result["subscores"]] == [1, None, 1]
    [failure] = result["verdict"]["failures"]
    assert (failure["unit"], failure["reason"]) == ("Length", "invalid_label")
    assert judged([1, 9, 1], rubric=rubric, min_valid=3)["verdict"]["label"] is None


def test_the_score_is_the_mean_of_the_labels_by_their_probability():
    tokens: list[Any] = [
        ('{"criterion_1": {"explanation": "x", "label": "', 1),
        ("1", 0.75, {"1": 0.75, "0": 0.25}),
        ('"}, "criterion_2": {"explanation": "y", "label": "', 1),
        ("1", 0.5, {"1": 0.5, "0": 0.5}),
        ('"}}', 1),
    ]
    model = FakeChatModel(replies=lambda _: with_logprobs(*tokens))
    verdict = create_rubric_judge(model, rubric=["Tone", "Wit"]).invoke(ITEM)["verdict"]
    assert verdict["score"] == (0.75 + 0.5) / 2
    # Both labels are right by 0.75 * 0.5.
    assert verdict["confidence"] == pytest.approx(0.375)


@for_each("lost", ["null", "[]", '"1"', '{"explanation": "y"}', '{"label": "9"}'])
def test_what_can_be_read_of_a_reply_with_log_probabilities_is_kept(lost):
    tokens: list[Any] = [
        ('{"criterion_1": {"explanation": "x", "label": "', 1),
        ("1", 0.75, {"1": 0.75, "0": 0.25}),
        (f'"}}, "criterion_2": {lost}}}', 1),
    ]
    model = FakeChatModel(replies=lambda _: with_logprobs(*tokens))
    judge = create_rubric_judge(model, rubric=["Tone", "Wit"], min_valid=1)
    assert judge.invoke(ITEM)["verdict"]["confidence"] == pytest.approx(0.75)


def test_an_evaluator_gives_feedback_for_the_total_and_for_each_criterion():
    evaluator = as_evaluator(create_rubric_judge(says(0, 5), rubric=TWO))
    feedback: Any = evaluator(inputs=ITEM["input"], outputs=ITEM["output"])
    assert [(each["key"], each["score"]) for each in feedback["results"]] == [
        ("rubric", 0.25),
        ("Tone", 0),
        ("Length", 1),
    ]
    evaluated: Any = evaluator.evaluate_run(a_run({"answer": "It comes."}), None)
    results = evaluated["results"]
    assert [each.key for each in results] == evaluator.feedback_keys
    assert [each.comment for each in results[1:]] == ["reason 1", "reason 2"]
    assert [each.value for each in results] == [None, 0, 5]
    assert {str(each.feedback_config) for each in results} == {str(Span().config)}


def test_a_rows_own_rubric_is_judged_by_in_a_run_too(caplog):
    model, own = says(1), {**ITEM, "rubric": "Is it brief?"}
    row, other = judge_many(
        create_rubric_judge(model, rubric="Is it kind?"),
        [own, ITEM],
        progress=False,
        max_concurrency=1,
    )
    assert sorted("Is it brief?" in prompt for prompt in model.prompts) == [False, True]
    assert row["key"] != other["key"]
    assert "their own `rubric`, in place of the judge's" in caplog.text


def test_the_scores_of_labels_in_either_order_begin_at_zero():
    for labels in ([1, 2, 3], [3, 2, 1]):
        criterion = Criterion(name="T", labels=labels, best=labels[-1])
        assert [str(criterion.position(each)) for each in labels] == ["0.0", "0.5", "1.0"]


@for_each("labels", [[0, "rude", 1], [False, True], ["a", "A "]])
def test_labels_of_two_kinds_or_alike_are_refused(labels):
    with pytest.raises(OptionError, match="distinct labels, all numbers or all texts"):
        Criterion(name="T", labels=labels)


def test_without_a_rubric_it_is_what_the_row_brings():
    for field, name in (("expected", "correctness"), ("source", "groundedness")):
        assert judged([1], {**ITEM, field: "x"})["subscores"][0]["criterion"] == name
    with pytest.raises(InputError, match="nothing to judge by"):
        judged([1])


def test_the_reply_by_one_criterion_is_checked_once(monkeypatch):
    monkeypatch.setattr("langchain_judges.methods.rubric.judge.check", None)
    assert judged([1], rubric="It is right.")["verdict"]["label"] == 1


def test_of_the_ready_rubrics_a_judge_reads_its_own_alone():
    ready_rubric.cache_clear()
    load_judge("rubric", says(1), rubric="The answer is right.")
    assert ready_rubric.cache_info().currsize == 0
    load_judge("rubric", says(1), preset="correctness")
    assert ready_rubric.cache_info().currsize == 1


@pytest.mark.whole
@for_each("name", ready_names())
def test_a_ready_rubric_judges_and_refuses_rows_that_lack_what_it_needs(name):
    rubric = ready_rubric(name)
    assert rubric.about.endswith((".", "`."))
    best = [criterion.names[-1] for criterion in rubric.criteria]
    judge = load_judge("rubric", says(*best), preset=name)
    of_work = {"calls", "image", "audio", "conversation"} & {*rubric.needs}
    whole = {**(WORK if of_work else ITEM), "expected": "today", "source": ["It comes."] * 5}
    assert judge.invoke(whole)["subscores"][0]["holds"]
    if rubric.needs:
        _, row = judge_many(judge, [whole, ITEM], progress=False)
        assert row["verdict"]["label"] is None
        assert row["verdict"]["usage"]["calls"] == 0
        assert row["verdict"]["failures"][0]["reason"] == "lacking"


# Ready rubrics about every text, or about what `needs` brings.
_OF_EVERY_TEXT = {
    *("code_injection", "conciseness", "fairness", "hallucination", "harmfulness"),
    *("helpfulness", "perceived_error", "personal_data", "prompt_injection", "safety"),
    *("tone", "toxicity", "user_praise"),
    *("context_precision", "context_relevance", "correctness", "groundedness"),
    *("image_safety", "tool_use", "transcription"),
}


@for_each("name", ready_names())
def test_a_ready_rubric_gives_no_number_where_its_subject_is_missing(name):
    criteria = ready_rubric(name).criteria
    labels = ["cannot_assess" if each.unless else each.names[-1] for each in criteria]
    row = {**WORK, "expected": "today", "source": ["It comes."] * 5}
    verdict = load_judge("rubric", says(*labels), preset=name).invoke(row)["verdict"]
    assert (verdict["score"] is None) is (name not in _OF_EVERY_TEXT)
    assert is_abstention(verdict) is (verdict["score"] is None)


def test_what_leaves_nothing_to_judge_is_told_with_the_labels():
    plan = ready_rubric("plan_adherence").criteria[0]
    assert label_words(plan).endswith(
        "; cannot_assess: neither the task nor the agent's own words hold a plan"
    )


def test_corrections_of_the_whole_are_not_shown_as_labels_of_a_criterion():
    memory = FailureMemory(embeddings=Letters())
    memory.remember(
        [{"input": "Where?", "output": "There.", "wrong": 1, "corrected": 0, "note": "Vague."}]
    )
    model = FakeChatModel(
        replies=lambda _: {f"criterion_{n}": {"explanation": "x", "label": "1"} for n in (1, 2)}
    )
    judge = create_rubric_judge(model, rubric=["Tone", "Wit"], memory=memory)
    result = judge.invoke({"input": "Where to?", "output": "There!"})
    assert len(result["verdict"]["recalled"]) == 1
    for messages in model.messages:
        assert [message.type for message in messages] == ["system", "human"]
        words = messages[0].text
        assert "a label in them says nothing of any one criterion" in words
        assert words.index("as a whole") < words.index("Vague.")


# ---- what a text as a rubric may not be


@pytest.mark.parametrize(
    ("rubric", "hint"),
    [
        ("rubric.yaml", "file='rubric.yaml'"),
        ("Is {outputs} polite, given {inputs}?", "holds {outputs}: it is a whole prompt"),
        ("Groundedness", "did you mean 'groundedness'"),
        (["groundedness", "Tone"], "Give `rubric='groundedness'`, with a judge for each"),
    ],
)
def test_a_text_that_is_a_file_or_a_ported_prompt_is_refused(rubric, hint):
    with pytest.raises(OptionError, match=hint):
        create_rubric_judge(says(1), rubric=rubric)
    judge = create_rubric_judge(says(1), rubric="Is it polite?")
    with pytest.raises(InputError, match=hint):
        judge.invoke({**ITEM, "rubric": rubric})


@for_each(
    ("cell", "names"),
    [
        ('["Tone", "Wit"]', ["Tone", "Wit"]),
        ('[{"name": "Tone", "description": "It thanks."}, "Wit"]', ["Tone", "Wit"]),
        ('{"Tone": "It thanks."}', ["Tone"]),
        ("N/A", ["rubric"]),
        ("- It thanks.\n- It is [brief].", ["rubric"]),
    ],
)
def test_a_cell_of_a_table_holds_criteria_as_json(cell, names, tmp_path):
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["input", "output", "rubric"], ["q", "a", cell]])
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it polite?")
    [row] = judge_many(judge, tmp_path / "rows.csv", progress=False)
    assert [part["criterion"] for part in row["subscores"]] == names
    noted = [failure["unit"] for failure in row["verdict"]["failures"]]
    assert noted == ["rubric"] * (cell == "N/A")


@for_each(
    ("create", "options"),
    [
        (create_rubric_judge, {"rubric": ""}),
        (create_rubric_judge, {"rubric": " \u200b"}),
        (create_rubric_judge, {"rubric": {"Q": ""}}),
        (create_rubric_judge, {"rubric": ["Q:"]}),
        (create_rubric_judge, {"rubric": ["\u200b"]}),
        (create_rubric_judge, {"rubric": "Polite?", "steps": ["Read it.", " "]}),
        (create_rubric_judge, {"rubric": "Polite?", "labels": ["bad", "\u200b"]}),
        (create_rubric_judge, {"prompts": {"evaluate": " "}}),
        (create_allure_judge, {"rubric": ""}),
        (create_relative_judge, {"criteria": {"": "Is it polite?"}}),
        (create_direct_judge, {"aspects": ["\u200b"]}),
    ],
)
def test_a_text_of_an_option_that_says_nothing_is_refused(create, options):
    with pytest.raises(OptionError):
        create(says(1), **options)


@for_each(
    ("text", "named"),
    [
        ("Rate the help that it gives from 1 to 5.", "1 to 5"),
        ("Bewerte die Antwort von 1 bis 10.", "1 bis 10"),
        ("1〜5で評価してください。", "1〜5"),
        ("Score it (0-100).", "0-100"),
        *((each, each) for each in ("١ – ٥", "۱ – ۵", "१ – ५", "১ – ৫", "๑ – ๕", "１〜５", "𝟎-𝟏𝟎")),
        ("Score how kind it is out of 10.", "Score how kind it is out of 10"),
        ("Rate it from one to five stars.", "Rate it from one to five"),
        ("5段階で評価してください。", "5段階"),
        ("1点：悪い\n2点：普通\n3点：良い", "1, 2, 3"),
        ("Does it name 3 out of 10 items, in one to five sentences?", ""),
        ("It gives from one to five examples, and a rate of 3 out of 10.", ""),
        ("Is it under 100 words, in 2 or 3 sentences?", ""),
        ("Does it name version 1.5, and 1,000 words at 1:30?", ""),
        ("Was it made in 2024-2025, on 01-12, for 24/7?", ""),
        ("1: rude\n2: curt\n3: warm", "1, 2, 3"),
        ("Give 0 = rude, 1 = curt, 2 = warm.", "0, 1, 2"),
        ("- **5**: warm\n- **3**: neutral\n- **1**: rude", "1, 3, 5"),
        ("0 points: rude\n1 point: warm\n2 points: kind", "0, 1, 2"),
        ("Score 1: rude\nScore 5: warm", "1, 5"),
        ("Score 0: rude\nScore 1: warm", ""),
        *((f"{each} 0: rude\n{each} 2: warm", "0, 2") for each in ("Level", "Score of", "Rating")),
        ("Score 0 (bad): rude\nScore 3 (good): warm", "0, 3"),
        ("Score 0: rude\nScore 1-3: warm", "0, 1, 3"),
        ("Rate how kind it is:\n1: rude\n2: curt\n3: warm", "1, 2, 3"),
        ("How kind is it?\n1: rude\n2: curt\n3: warm", "1, 2, 3"),
        ("Judge how polite it is:\n1: rude\n2: neutral\n3: polite", "1, 2, 3"),
        ("Helpfulness:\n- 1: none\n- 2: some\n- 3: all", "1, 2, 3"),
        ("Steps:\n1: Read it.\n2: Compare.\n3: Decide.", ""),
        ("The answer must list 3 items:\n\n- 1: name\n- 2: age\n- 3: city", ""),
        ("Chapter 1: the talk\nChapter 2: the end\nChapter 3: the rest", ""),
        ("1. Read it.\n2. Is it polite?\n3. Is it short?", ""),
    ],
)
def test_a_rubric_with_a_scale_that_is_not_its_labels_is_told(text, named, caplog):
    caplog.clear()
    criteria.warn_once.cache_clear()
    create_rubric_judge(says(1), rubric=text)
    create_allure_judge(says(1), rubric=text)
    create_rubric_judge(says(1), rubric="Kind?", instructions=text)
    create_rubric_judge(says(1), rubric=text, labels=[0, 1, 2, 3, 4, 5])
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == bool(named)
    own = create_rubric_judge(says(1), rubric="Kind?").invoke({**ITEM, "rubric": text})["verdict"]
    notes = [note["detail"] for note in own["failures"]]
    assert len(notes) == bool(named)
    assert all(f"names {named!r}, and its labels are 0, 1" in each for each in told + notes)


def test_scores_with_meanings_in_a_rubric_are_its_scale():
    text = "[Kind?]\nScore 1: It is rude.\nScore 2: It is curt.\nScore 3: It is warm."
    own = create_rubric_judge(says(2), rubric=text).invoke(ITEM)["verdict"]
    of_row = create_rubric_judge(says(2), rubric="Good?").invoke({**ITEM, "rubric": text})[
        "verdict"
    ]
    other = create_rubric_judge(says(2), rubric=text, labels=[1, 2]).invoke(ITEM)["verdict"]
    assert [own["score"], of_row["score"], other["score"]] == [0.5, 0.5, 1.0]


GRADES = "Grade 1: very good\nGrade 2: good\nGrade 3: fair\nGrade 4: poor\nGrade 5: fail"


@pytest.mark.parametrize(
    ("rubric", "options", "best"),
    [
        (GRADES, {}, None),
        (GRADES, {"best": 1}, 1),
        (GRADES, {"best": 5}, 5),
        ({"name": "grade", "description": GRADES, "best": 1}, {}, 1),
        ({"name": "grade", "description": GRADES, "scale": (1, 5)}, {}, 5),
        (GRADES, {"labels": [1, 2, 3, 4, 5]}, 5),
        ("Score 0: bad\nScore 1: good", {}, 1),
    ],
)
def test_scores_in_a_rubric_are_read_to_the_best_and_told_where_nobody_named_it(
    rubric, options, best, caplog
):
    caplog.clear()
    criteria.warn_once.cache_clear()
    own = create_rubric_judge(says(1), rubric=rubric, **options).invoke(ITEM)["verdict"]
    told = [record.getMessage() for record in caplog.records]
    row = {**ITEM, "rubric": rubric}
    rows = create_rubric_judge(says(1), rubric="Good?")
    notes = [note["detail"] for note in rows.invoke(row)["verdict"]["failures"]]
    doubt = "is read from the worst, 1, to the best, 5: say which is the best by `best`"
    assert own["score"] == (best == 1)
    assert told == ([] if best else [f"A rubric or a prompt {doubt}"])
    is_told = isinstance(rubric, str) and rubric == GRADES
    assert notes == [doubt] * is_told


def test_a_row_whose_own_rubric_says_nothing_is_refused():
    with pytest.raises(InputError, match="empty text"):
        create_rubric_judge(says(1), rubric="Polite?").invoke({**ITEM, "rubric": " "})


@for_each(
    ("name", "meant"),
    [
        ("faithfulness", "groundedness"),
        ("politness", "tone"),
        ("answer_relevancy", "answer_relevance"),
        ("helpfullness", "helpfulness"),
        ("pii", "personal_data"),
    ],
)
def test_a_rubric_of_another_name_or_spelling_is_offered_by_what_it_means(name, meant):
    with pytest.raises(OptionError, match=f"did you mean '{meant}'"):
        create_rubric_judge(says(1), rubric=name)


def test_every_other_name_of_a_rubric_leads_to_one_that_is_there():
    assert set(criteria.other_names().values()) <= set(criteria.ready_names())
    assert not criteria.other_names().keys() & set(criteria.ready_names())


def test_a_word_that_is_like_none_of_the_rubrics_is_offered_none():
    with pytest.raises(OptionError, match="no rubric 'sincerity'; "):
        create_rubric_judge(says(1), rubric="sincerity")


@pytest.mark.parametrize("name", ["criteria", "prompt"])
def test_the_names_that_other_packages_use_lead_to_rubric(name):
    wrong: Any = {name: "Is it polite?"}
    with pytest.raises(OptionError, match="did you mean 'rubric'"):
        create_rubric_judge(says(1), **wrong)


def test_an_option_of_a_criterion_alone_is_said_to_be_one():
    alone = Criterion.model_fields.keys() - RubricOptions.model_fields.keys()
    assert alone == {*OF_CRITERION}
    for name in alone:
        wrong: Any = {name: 1}
        with pytest.raises(OptionError, match=rf"rubric=\[Criterion\(name=…, {name}=…\)\]"):
            create_rubric_judge(says(1), rubric="Is it polite?", **wrong)


def abstains(prompt):
    """Cannot assess what is cut off; else give the label 1."""
    if "cut off" in prompt:
        return {"explanation": "The end is missing.", "label": "cannot_assess"}
    return {"explanation": "Polite.", "label": "1"}


def test_a_judge_may_say_that_it_cannot_assess():
    model = FakeChatModel(replies=abstains)
    judge = create_rubric_judge(model, rubric="Is it polite?", abstain=True)
    verdict = judge.invoke({**ITEM, "output": "Dear, cut off"})["verdict"]
    assert (verdict["label"], verdict["score"], verdict["confidence"]) == (None, None, None)
    assert verdict["rationale"].endswith("The end is missing.")
    (failure,) = verdict["failures"]
    assert (failure["reason"], failure["detail"]) == ("cannot_assess", "The end is missing.")
    assert judge.invoke(ITEM)["verdict"]["label"] == 1


def test_one_criterion_that_cannot_be_assessed_leaves_the_others():
    result = judged([1, "cannot_assess", 1], rubric=["Tone", "Length", "Wit"], abstain=True)
    assert (result["verdict"]["label"], result["subscores"][1]["label"]) == (1, None)
    assert result["subscores"][1]["reason"] == "reason 2"
    (failure,) = result["verdict"]["failures"]
    assert (failure["reason"], failure["unit"]) == ("cannot_assess", "Length")
    none = judged(["cannot_assess"] * 2, rubric=["Tone", "Length"], abstain=True)
    assert none["verdict"]["label"] is None


def test_the_chance_of_an_abstention_lowers_the_confidence_and_not_the_score():
    part = subscore(
        Criterion(name="Tone"),
        {"label": "1", "explanation": ""},
        {"0": 0.2, "1": 0.6, "cannot_assess": 0.2},
    )
    assert (part["confidence"], part["score"]) == (0.6, pytest.approx(0.75))


def test_abstentions_are_counted_apart_and_asked_once(tmp_path):
    model = FakeChatModel(replies=abstains)
    judge = create_rubric_judge(model, rubric="Is it polite?", abstain=True)
    outputs = ["Dear all", "cut off", "cut off too"]
    rows = [{**ITEM, "id": str(n), "output": text} for n, text in enumerate(outputs)]
    out = tmp_path / "out.jsonl"
    run = judge_many(judge, rows, records=out, progress=False)
    assert [row["judged"] for row in run] == [True, False, False]
    assert (run.summary.abstained, run.summary.preferences) == (2, {"1": 1})
    assert not run.summary.failures + run.summary.not_judged + run.summary.causes
    again = judge_many(judge, rows, records=out, progress=False)
    list(again)
    assert (again.summary.abstained, again.summary.calls, len(model.prompts)) == (2, 0, 3)
    broken = FakeChatModel(replies=lambda _: "?")
    other = judge_many(create_rubric_judge(broken, rubric="?", abstain=True), rows[:1])
    list(other)
    assert (other.summary.abstained, other.summary.not_judged.total()) == (0, 1)


# ---- retrieval, and the last turn of a conversation

FOUND = [Document("It rained.", metadata={"title": "Oslo"}), Document("It snowed.")]


@for_each(
    "rubric, label, score",
    [
        ("context_relevance", 3, 1),
        ("context_precision", 1, 0.5),  # one of the two that were found
        ("context_recall", "most", 2 / 3),
    ],
)
def test_retrieval_is_judged_without_an_output(rubric, label, score):
    model = FakeChatModel(replies=[{"explanation": "-", "label": str(label)}] * 5)
    judge = create_rubric_judge(model, rubric=rubric)
    row = {"input": "How was it?", "expected": "wet"}
    for name in ("source", "documents", "retrieved_contexts"):
        verdict = judge.invoke({**row, name: FOUND})["verdict"]
        assert (verdict["label"], verdict["score"]) == (label, pytest.approx(score))
    [result] = judge_many(judge, [{**row, "source": FOUND}], progress=False)
    assert result["verdict"]["label"] == label
    fields: Any = {"inputs": {"question": "How was it?"}, "reference_outputs": "wet"}
    as_evaluator(judge)(**fields, outputs={"documents": FOUND})
    assert len(set(model.prompts)) == 1
    assert "[response]\n[1] Oslo\nIt rained.\n\n[2]\nIt snowed." in unfenced(model.prompts[0])
    assert "needs a source" in lacked(judge, {**row, "output": "It was wet."})


def test_the_last_turn_alone_is_judged_where_that_is_asked_for():
    model = FakeChatModel(replies=answer)
    judge = create_rubric_judge(model, rubric="Is it good?", last_turn=True)
    judge.invoke({"input": "A chat.", "output": TALK[:4]})
    as_evaluator(judge)(inputs="A chat.", outputs={"messages": TALK[:4]})
    for prompt in map(unfenced, model.prompts):
        before, response = prompt.split("[response]")
        assert response.startswith("\nIn Oslo.\n")
        assert "Hi, what may I do?" in before


@for_each(
    ("text", "label"),
    [
        ("1", None),
        ("Label: 1", "1"),
        ("**Label:** 0", "0"),
        ("It is wrong in two places.\nLabel: 0", None),
        ("How many of the claims hold?\n1", None),
        ("Label: 0\nLabel: 1", None),
    ],
)
def test_a_label_in_plain_words_is_one_that_is_said(text, label):
    assert (parse_label(text, (0, 1)) or {"label": None})["label"] == label


# ---- what a rubric is about must be there

IMAGE = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]


@for_each(
    ("options", "told"),
    [
        ({"rubric": "tool_use"}, "there are no tool calls in the output; it holds: text"),
        ({"rubric": "image_safety"}, "there is no image in the output; it holds: text"),
        ({"rubric": "voice"}, "there is no audio in the output; it holds: text"),
        (
            {"rubric": "Is it kind?", "needs": ("conversation", "calls")},
            "there is no conversation of several turns in the output; it holds: text",
        ),
        (
            {"rubric": "Is it so?", "needs": "source"},
            "there is nothing to judge by: the judge needs a source to check against "
            "(`source`); the fields are 'input', 'output'",
        ),
    ],
)
def test_what_a_rubric_is_about_is_asked_for_and_no_call_is_paid(options, told):
    model = says(1)
    judge = create_rubric_judge(model, **options)
    assert lacked(judge, ITEM).startswith(told)
    feedback: Any = as_evaluator(judge)(inputs=ITEM["input"], outputs=ITEM["output"])
    total = feedback
    assert total["score"] is None
    assert told.partition(";")[0][-20:].partition(" (")[0] in total["comment"]
    rows = [{**ITEM, "id": str(n)} for n in range(12)]
    with pytest.raises(RepeatedFailureError, match=r"first 10 rows .* \(--column FIELD=…\)"):
        list(judge_many(judge, rows, progress=False))
    evaluator = as_evaluator(judge)
    for _ in range(9):
        evaluator.evaluate_run(a_run({"answer": "Yes."}), an_example(None))
    with pytest.raises(RepeatedFailureError, match=r"10 rows.* by `(output|context)=`"):
        evaluator.evaluate_run(a_run({"answer": "Yes."}), an_example(None))
    assert model.prompts == []


def test_one_row_that_has_what_the_others_lack_is_judged_and_the_run_goes_on():
    judge = create_rubric_judge(says(5), rubric="tool_use")
    rows = [WORK, *[{**ITEM, "id": str(n)} for n in range(12)]]
    assert [row["judged"] for row in judge_many(judge, rows, progress=False)] == [True] + [
        False
    ] * 12


@for_each(("number", "scale"), [(2, "0, 1 or 2"), (3, "0, 1, 2 or 3"), (7, "0, 1, 2, 3, 4 or 5")])
def test_precision_counts_to_the_documents_that_were_found(number, scale):
    model = says(min(number, 5))
    judge = create_rubric_judge(model, rubric="context_precision")
    row = {"input": "How was it?", "source": [f"Rain, {n}." for n in range(number)]}
    assert judge.invoke(row)["verdict"]["score"] == 1
    assert f"The labels: {scale} (0: none" in model.prompts[0]


@for_each(
    ("cell", "documents"),
    [
        ('["a", "b", "c"]', 3),
        ("['a', \"it's\", 'c']", 3),
        ('[{"page_content": "a", "metadata": {"title": "T"}}, {"page_content": "b"}]', 2),
        ("[{'page_content': 'a'}, {'text': 'b'}]", 2),
        # Python would join the texts that numpy writes.
        ("['a' 'b'\n 'c']", 3),
        ("['it\\'s' \"b's\"]", 2),
        ("array(['a', 'b'], dtype=object)", 2),
        ("[Document(page_content='a'), Document(page_content='b')]", None),
        ("['a' 'b' ... 'c']", None),
        ("['a''b']", None),
        ("['\\x' 'b']", None),
        ("array(['a', 'b'", None),
        ('["a", "b", "a cell that was c', None),
    ],
)
def test_a_cell_that_spells_a_list_counts_its_documents_and_says_so(cell, documents):
    judge = create_rubric_judge(says(1), rubric="context_precision")
    verdict = judge.invoke({"input": "q", "contexts": cell})["verdict"]
    assert verdict["score"] == 1 / (documents or 1)
    [note] = verdict["failures"]
    told = f"which is read as documents: {documents}" if documents else "and shown as it stands"
    assert note["detail"] == f"is the text of a list, {told}"


@for_each("source", ["[1] It rained.", "[Oslo]", "{'a': 'b'}", "It rained."])
def test_any_other_text_of_a_source_is_one_document_without_a_note(source):
    judge = create_rubric_judge(says(1), rubric="groundedness")
    verdict = judge.invoke({**ITEM, "source": source})["verdict"]
    assert (verdict["label"], verdict["failures"]) == (1, [])


def test_a_cell_of_an_empty_list_is_no_source():
    judge = create_rubric_judge(says(1), rubric="groundedness")
    verdict = judge.invoke({**ITEM, "source": "[]"})["verdict"]
    assert (verdict["label"], verdict["failures"][0]["reason"]) == (None, "lacking")


def test_a_cell_and_a_list_are_shown_alike(tmp_path):
    model = says(1)
    judge = create_rubric_judge(model, rubric="groundedness")
    (tmp_path / "rows.csv").write_text("input,context,output\nq,\"['a', 'b']\",x\n")
    list(judge_many(judge, tmp_path / "rows.csv"))
    judge.invoke({"input": "q", "context": ["a", "b"], "output": "x"})
    assert unfenced(model.prompts[0]) == unfenced(model.prompts[1])
