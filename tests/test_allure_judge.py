"""One text, one label: what the judge is asked, what it reads and what it remembers."""

import json
import re
from typing import Any

import pytest

from langchain_judges import FailureMemory, create_allure_judge, judge_many, load_judge
from langchain_judges.errors import InputError
from langchain_judges.memory.example import MEANINGS
from langchain_judges.methods.rubric.replies import parts_probabilities
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, with_logprobs
from tests.memories import Letters, example, ids_in, memory_of

ITEM = {"input": "Which path?", "output": "Answer: 1, 3", "expected": "1, 3", "id": "one"}


def says(label, reason="because"):
    return FakeChatModel(replies=lambda _: json.dumps({"label": label, "explanation": reason}))


@for_each(
    ("labels", "text", "label", "score"),
    [
        ((0, 1), "1", 1, 1.0),
        (("bad", "good"), "Good", "good", 1.0),
        ((1, 2, 3, 4, 5), 4, 4, 0.75),
        ((0.0, 0.5, 1.0), "0.5", 0.5, 0.5),
    ],
)
def test_the_label_is_one_of_those_given(labels, text, label, score):
    verdict = create_allure_judge(says(text), labels=labels).invoke(ITEM)["verdict"]
    assert (verdict["label"], verdict["score"]) == (label, score)


@for_each("text", [7, "yes", True])
def test_a_label_that_is_none_of_those_is_no_label(text):
    verdict = create_allure_judge(says(text), repairs=0).invoke(ITEM)["verdict"]
    assert verdict["label"] is None
    assert verdict["score"] is None
    assert verdict["failures"][0]["step"] == "evaluate"
    assert "Not judged" in verdict["rationale"]


def test_a_prompt_of_ones_own_is_the_criterion_whatever_the_row_brings():
    model = says("toxic")
    options: Any = {"prompts": "{outputs}\n\nIs this toxic?", "labels": ["clean", "toxic"]}
    for row in (ITEM, {"input": "Hi", "output": "So."}, {**ITEM, "source": "A text."}):
        verdict = create_allure_judge(model, **options).invoke(row)["verdict"]
        assert (verdict["label"], verdict["failures"]) == ("toxic", [])
    assert all("The labels: clean or toxic. Give" in prompt for prompt in model.prompts)
    # A prompt that shows the criteria is about those that the row brings.
    shown = create_allure_judge(says("1"), prompts="{outputs}\n{criteria}\n{labels}")
    with pytest.raises(InputError, match="nothing to judge by"):
        shown.invoke({"input": "Hi", "output": "So."})


def test_with_an_empty_memory_the_prompt_is_the_one_without():
    prompts = []
    for memory in (None, memory_of()):
        model = says("1")
        create_allure_judge(model, memory=memory).invoke(ITEM)
        prompts += model.prompts
    assert prompts[0] == prompts[1]


@for_each(
    ("mode", "meaning", "lesson"),
    [
        ("keywords", None, f"keywords: {MEANINGS['keywords']}"),
        # A user's own meaning stands before the paper's; an unknown name has none.
        ("keywords", "Only the words agree.", "keywords: Only the words agree."),
        ("promise", None, "promise."),
    ],
)
def test_a_lesson_says_what_was_right_why_and_what_misled(mode, meaning, lesson):
    fields = {"mode": mode, "mode_meaning": meaning, "note": "The order counts."}
    memory, model = memory_of(example("Answer: 3, 1", 0, **fields)), says("1")
    verdict = create_allure_judge(model, memory=memory).invoke(ITEM)["verdict"]
    system, question = model.prompts[0].split("\n---\n")
    assert re.search(r"<example-response-\w+>\nAnswer: 3, 1\n", system)
    assert re.search(r"<example-why-\w+>\nThe order counts.\n", system)
    assert f"Right: 0. A judge said 1. It was misled by {lesson}\n" in system
    assert "Answer: 1, 3" in question
    assert not re.search("<(request|response|expected-answer)-", system)
    assert verdict["recalled"] == ids_in(memory)


def test_a_judge_reads_that_a_case_was_judged_right():
    memory, model = memory_of(example("Answer: 1, 20, 50", 1, wrong=1)), says("1")
    create_allure_judge(model, memory=memory).invoke(ITEM)
    assert "Right: 1, as a judge said." in model.prompts[0]


def test_a_judge_recalls_as_it_is_told_or_else_as_its_memory_does():
    memory = memory_of(example("1", 0), example("3", 0), recall="knn:1")
    for recall, count in ((None, 1), ("knn:2", 2), ("all", 2), ("none", 0)):
        assert len(judged_with(memory, recall=recall)["recalled"]) == count


def judged_with(memory, item=ITEM, **options):
    return create_allure_judge(says("1"), memory=memory, **options).invoke(item)["verdict"]


def test_the_leak_guard_bites_and_what_leaked_is_said_aloud():
    memory = FailureMemory(embeddings=Letters())
    [own] = memory.remember([example("1", 0, group="g")])
    request = {**ITEM, "group": "g"}
    quiet = create_allure_judge(says("1"), memory=memory)
    loud = create_allure_judge(says("1"), memory=memory, allow_leak=True)
    assert quiet.invoke(request)["recalled"]["ids"] == []
    assert loud.invoke(request)["recalled"] == {
        "ids": [own],
        "left_out": 0,
        "leaked": [own],
        "allow_leak": True,
        "version": memory.version,
    }
    rows = judge_many(loud, [request], progress=False)
    assert [row["recalled"]["leaked"] for row in rows] == [[own]]
    assert rows.summary.leaks == 1


def test_the_memory_says_what_is_shown_unless_the_judge_is_told():
    memory = FailureMemory(embeddings=Letters(), recall="all", budget=1200)
    ids = memory.remember([example(f"No {n}. " + "x" * 400, 0) for n in range(9)])
    verdict = judged_with(memory)
    assert verdict["recalled"] == ids[-2:]
    assert "7 of 9" in verdict["failures"][0]["detail"]
    assert len(judged_with(memory, recall="knn:1")["recalled"]) == 1


def test_examples_take_24000_characters_unless_all_are_wanted():
    memory = memory_of(*(example("x" * 3500 + f" {n}", 0) for n in range(12)))
    # Six times 3,500 and a few hundred characters around them; a seventh has no room.
    assert len(judged_with(memory, recall="knn:12")["recalled"]) == 6
    assert len(judged_with(memory, recall="all")["recalled"]) == 12


def test_examples_beyond_the_context_are_cut_visibly():
    memory = memory_of(*(example(f"{n}" * 400, 0) for n in range(9)))
    model = says("1")
    model.profile = {"max_input_tokens": 2000}
    verdict = create_allure_judge(model, memory=memory, recall="all").invoke(ITEM)["verdict"]
    assert 0 < len(verdict["recalled"]) < 9
    assert verdict["recalled"] == ids_in(memory)[-len(verdict["recalled"]) :]
    assert "there is no room" in verdict["failures"][0]["detail"]
    assert verdict["label"] == 1


@for_each(
    ("scale", "labels", "is_shown"),
    [
        ([0, 1], (0, 1), True),
        *[(own, labels, False) for own in ([0, 1], None) for labels in [range(6), range(-2, 3)]],
        ([0, 1], (1, 0), False),
        ([0, 1], (0, 1, 2), False),
        (["0", "1"], (0, 1), True),
        ([], tuple(range(6)), True),
        ([], (1, 2, 3), False),
    ],
)
def test_an_example_is_shown_to_judges_with_its_scale(scale, labels, is_shown):
    lesson = {"input": "2 + 2?", "output": "It is 4.", "wrong": 0, "corrected": 1, "scale": scale}
    judge = create_allure_judge(says("1"), memory=memory_of(lesson), rubric="-", labels=[*labels])
    verdict = judge.invoke({"input": "3 + 3?", "output": "It is 6."})["verdict"]
    assert bool(verdict["recalled"]) == is_shown
    assert [each["reason"] for each in verdict["failures"]] == ["input_cut"] * (not is_shown)


def test_examples_given_to_a_judge_are_on_its_scale():
    lesson = {"input": "2 + 2?", "output": "It is 4.", "wrong": 0, "corrected": 1}
    judge = create_allure_judge(says("1"), memory=[lesson], rubric="-", labels=[*range(6)])
    assert judge.invoke({"input": "3 + 3?", "output": "It is 6."})["verdict"]["recalled"]


def test_the_papers_settings_show_every_example_and_ask_for_the_label_alone():
    memory = memory_of(*(example(f"{n}", 0) for n in range(12)))
    model = says("1")
    judge = load_judge("allure", model, preset="e1", memory=memory)
    assert len(judge.invoke(ITEM)["verdict"]["recalled"]) == 12
    system, *turns, question = model.prompts[0].split("\n---\n")
    assert turns[1::2] == ['{"label": "0"}'] * 12
    assert not re.search("task-|misled|ask", question)
    assert "what misled" not in system


def test_without_the_task_a_source_is_shown_alike_in_example_and_item():
    mistake = {**example("A cat.", 0), "input": "Sum up.\n\nA dog sat.", "expected": None}
    model = says("1")
    judge = load_judge("allure", model, preset="e2", memory=memory_of(mistake))
    judge.invoke({"input": "Sum up.", "output": "A cow.", "source": "A dog ran."})
    _, passage, _, question = model.prompts[0].split("\n---\n")
    plain = [re.sub(r"-\w{10}>", ">", each) for each in (passage, question)]
    assert plain[1].replace("ran", "sat").replace("cow", "cat").startswith(plain[0])


def test_the_nearest_example_stands_last():
    memory = FailureMemory(embeddings=Letters())
    near, far = memory.remember(
        [
            example("Answer: 1, 3 b", 0, input="Which path is it?"),
            example("zzzz zzzz zz", 0, input="Which door?"),
        ]
    )
    assert judged_with(memory, recall="knn:2")["recalled"] == [far, near]
    assert judged_with(memory, recall="knn:1")["recalled"] == [near]


def test_a_source_is_fenced_and_shown_once():
    model = says("1")
    judge = create_allure_judge(model)
    judge.invoke({"input": "Sum up.", "output": "A cat.", "source": "A dog </source-0> sat."})
    judge.invoke({"input": "A dog.", "output": "A cat.", "source": "A dog."})
    assert model.prompts[0].count("<source-") == 1
    assert model.prompts[1].count("A dog.") == 1
    assert "The request is the source as well." in model.prompts[1]


def test_what_people_know_of_an_item_is_not_shown():
    model = says("1")
    create_allure_judge(model).invoke({**ITEM, "label": "SECRET", "family": "maps"})
    assert "SECRET" not in model.prompts[0]


@for_each(
    ("item", "problem"),
    [
        ({"input": "x", "output": "y"}, "needs a reference to compare with, or a source"),
        ({**ITEM, "expected": []}, "needs a reference to compare with, or a source"),
        ({**ITEM, "source": "broken \ud83d"}, "`source` has a broken character"),
    ],
)
def test_a_bad_item_is_named(item, problem):
    with pytest.raises(InputError, match=problem):
        create_allure_judge(says("1")).invoke(item)


# Of 0.6 + 0.2 that begin a label, 0.6 is for 1: 0.75.
@for_each(
    ("tokens", "expected"),
    [
        ([('{"label": "', 1), ("1", 0.6, {"1": 0.6, "0": 0.2, "x": 0.2}), ('"}', 1)],
         {"0": 0.25, "1": 0.75}),
        ([('{"label":', 1), (' "1', 0.6, {' "1': 0.6, ' "0': 0.2, " 7": 0.2}),
          ('"}', 1)],
         {"0": 0.25, "1": 0.75}),
        ([('{"label": "', 1), ("1", 0.6), ('"}', 1)], {"0": 0.4, "1": 0.6}),
        ([('{"label": "0"}', 1)], {}),
        # Forced into the format, the model would have said something else.
        ([('{"label": "', 1), ("1", 0.01, {"The": 0.6, "Yes": 0.3}), ('"}', 1)], {}),
        ([('{"label": "', 1), ("1", 0.01), ('"}', 1)], {}),
    ],
)  # fmt: skip
def test_the_probability_of_a_label_is_read_from_its_tokens(tokens, expected):
    results = parts_probabilities(with_logprobs(*tokens), {"label": "1"}, {"": (0, 1)})
    assert results[""] == pytest.approx(expected)
    # Words are told apart by how they begin.
    words: list[Any] = [('{"label": "', 1), ("go", 0.5, {"go": 0.5, "b": 0.3, "bad": 0.2})]
    results = parts_probabilities(
        with_logprobs(*words, ('od"}', 1)), {"label": "good"}, {"": ("bad", "good")}
    )
    assert results[""] == pytest.approx({"bad": 0.5, "good": 0.5})


def test_probabilities_reach_the_verdict_over_the_wire(serve):
    def behave(call):
        assert (call.body["logprobs"], call.body["top_logprobs"]) == (True, 20)
        return with_logprobs(
            ('{"label": "', 1), ("1", 0.6, {"1": 0.6, "0": 0.2}), ('", "explanation": "so"}', 1)
        )

    verdict = create_allure_judge(chat(serve(behave))).invoke(ITEM)["verdict"]
    assert (verdict["score"], verdict["confidence"]) == pytest.approx((0.75, 0.75))
    assert verdict["confidence_source"] == "logprobs"
