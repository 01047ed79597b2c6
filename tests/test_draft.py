"""Criteria drafted from the task: asked once for each task, and scored by the share of yes."""

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache

from langchain_judges import as_evaluator, create_rubric_judge
from langchain_judges.errors import InputError, OptionError
from tests.cases import for_each
from tests.fakes import FakeChatModel

ITEM = {"input": "Where is my parcel?", "output": "It comes today.", "source": "the source"}
ASKED = ["Does it name a day?", "Does it name a place?", "Is it polite?"]


def says(*labels, questions=ASKED):
    """Return a model that drafts questions, then answers what is asked of a response."""
    parts = {
        f"criterion_{n}": {"explanation": f"reason {n}", "label": str(label)}
        for n, label in enumerate(labels, 1)
    }
    labelled = parts if len(labels) > 1 else parts.get("criterion_1")
    drafted = {"questions": questions}
    return FakeChatModel(replies=lambda p: drafted if "checklist" in p else labelled)


def judge_of(model, **options):
    return create_rubric_judge(model, repairs=0, **{"draft": True, **options})


def test_the_score_is_the_share_of_yes_and_the_questions_are_shown():
    result = judge_of(says(1, 0, 1)).invoke(ITEM)
    assert result["verdict"]["score"] == 0.6667  # 2 of 3
    assert [(s["criterion"], s["label"], s["drafted"]) for s in result["subscores"]] == [
        (question, label, True) for question, label in zip(ASKED, (1, 0, 1), strict=True)
    ]
    assert result["verdict"]["usage"]["calls"] == 2


def test_a_draft_sees_the_task_alone_and_its_questions_are_asked_of_the_response():
    model = says(1, 0, 1)
    judge_of(model, draft=5, instructions="Be strict.").invoke({**ITEM, "expected": "today"})
    draft, evaluate = model.prompts
    assert "Where is my parcel?" in draft
    assert "at most 5" in draft
    assert all(text not in draft for text in ("It comes today.", "the source", "expected"))
    assert "criterion_2, Does it name a place?\nIts labels: 0: no; 1: yes." in evaluate
    assert all("adds: Be strict." in prompt for prompt in model.prompts)


def test_equal_tasks_share_a_draft():
    model = says(1, 0, 1)
    judge = judge_of(model)
    first, second = judge.invoke(ITEM), judge.invoke({**ITEM, "output": "I do not know."})
    assert sum("checklist" in prompt for prompt in model.prompts) == 1
    assert second["verdict"]["usage"]["by_step"]["draft"]["cached_calls"] == 1
    assert first["verdict"]["usage"]["by_step"]["draft"]["calls"] == 1
    judge.invoke({**ITEM, "input": "And where is hers?"})
    assert sum("checklist" in prompt for prompt in model.prompts) == 2
    # Another judge takes it from the cache.
    cache, model = InMemoryCache(), says(1, 0, 1)
    for _ in range(2):
        judge_of(model, cache=cache).invoke(ITEM)
    assert len(model.prompts) == 2


def test_own_criteria_come_first_with_their_weight_and_are_not_drafted_again():
    rubric = [{"name": "Tone", "description": "Is it kind?", "weight": 3}]
    model = says(1, 0, 0, questions=["tone", *ASKED[:2]])
    result = judge_of(model, rubric=rubric).invoke(ITEM)
    assert result["verdict"]["score"] == 0.6  # weights 3, 1, 1: 3 of 5
    assert [s["criterion"] for s in result["subscores"]] == ["Tone", *ASKED[:2]]
    assert "ask nothing that they ask:\n- Tone: Is it kind?" in model.prompts[0]


def test_each_question_can_be_asked_in_a_call_of_its_own():
    model = FakeChatModel(
        replies=lambda p: (
            {"questions": ASKED}
            if "checklist" in p
            else {"explanation": "x", "label": str(int("polite" in p))}
        )
    )
    judge = judge_of(model, draft=3, each=True)
    assert judge.invoke(ITEM)["verdict"]["score"] == 0.3333  # 1 of 3
    assert judge.config["metadata"]["calls"] == len(model.prompts) == 4


def test_no_draft_is_no_verdict_unless_there_are_criteria_of_ones_own():
    model = FakeChatModel(
        replies=lambda p: "No." if "checklist" in p else {"explanation": "x", "label": "1"}
    )
    alone = judge_of(model).invoke(ITEM)["verdict"]
    assert alone["label"] is None
    assert [failure["step"] for failure in alone["failures"]] == ["draft"]
    beside = judge_of(model, rubric="Is it polite?").invoke(ITEM)["verdict"]
    assert (beside["score"], [f["step"] for f in beside["failures"]]) == (1, ["draft"])
    with pytest.raises(InputError, match="a reference to compare with"):
        judge_of(model, rubric="correctness").invoke(ITEM)


@for_each("draft", [31, -1, "many"])
def test_a_bad_number_of_questions_is_named(draft):
    with pytest.raises(OptionError, match="`draft` must be a whole number from 0 to 30, True"):
        judge_of(says(1), draft=draft)


@for_each(("rubric", "keys"), [("Kind?", ["rubric"]), ({"Tone": "Kind?"}, ["Tone"])])
def test_drafted_questions_are_no_feedback_of_their_own(rubric, keys):
    evaluator = as_evaluator(judge_of(says(1, 1, 1, 1), rubric=rubric), key="quality")
    feedback: Any = evaluator(inputs=ITEM["input"], outputs=ITEM["output"])
    assert [each["key"] for each in feedback] == evaluator.feedback_keys == ["quality", *keys]
