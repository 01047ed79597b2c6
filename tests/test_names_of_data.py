"""Which text of data is read: by its name, by what stands under it, and never without its key."""

from itertools import cycle, product
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_judges import as_evaluator, create_rubric_judge
from langchain_judges.errors import InputError
from langchain_judges.rows.checks import KNOWN_NAMES, NAMES
from langchain_judges.rows.columns import named_row
from langchain_judges.rows.data import as_json
from langchain_judges.rows.documents import context_in
from langchain_judges.rows.fields import expected_in, plain_row, task_in
from langchain_judges.rows.lookup import USUAL
from langchain_judges.rows.work import work_in
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.sources import Source
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import NOTES
from tests.cases import for_each

READ: dict[Any, Any] = {"input": task_in, "output": work_in, "reference": expected_in}
READ["context"] = context_in
TELLING = ["closed_on", "error", "diagnosis_excluded", "must_not_mention", "user_id", "output_id"]
# The wrong answer is none of these, nor is what is no answer.
TELLING += ["wrong_answer", "rejected_text", "not_the_output", "unanswered_question"]
AROUND: dict[str, Any] = {
    "alone": lambda own: own,
    "in a wrapper": lambda own: {"data": own},
    "in two": lambda own: {"payload": {"result": own}},
    "around one": lambda own: {name: {"text": held} for name, held in own.items()},
    "around two": lambda own: {name: {"value": {"text": held}} for name, held in own.items()},
}


@for_each("field, name, form", product(READ, TELLING, AROUND))
def test_an_only_key_that_says_something_is_shown(field, name, form):
    shown = READ[field](AROUND[form]({name: "Mondays"}))
    assert f'"{name}": ' in shown
    assert "Mondays" in shown


@for_each("field", READ)
def test_no_two_only_keys_look_alike_unless_they_say_nothing(field):
    for one, other in product(TELLING, [*TELLING, "text", "result"]):
        shown = [READ[field]({name: "Mondays"}) for name in (one, other)]
        assert (shown[0] == shown[1]) == (one == other)


def plain_names(field):
    words = KNOWN_NAMES["plain"]
    for number, word in enumerate([*words["any"], *words[field]]):
        yield (word, f"final_{word}s", f"Final{word.title()}")[number % 3]


@for_each("field", READ)
def test_an_only_key_that_says_nothing_is_not_shown(field):
    for name in plain_names(field):
        for held in ({name: "Mondays"}, {"data": {name: {"text": "Mondays"}}}):
            assert READ[field](held) == "Mondays", held


@for_each("field", ["input", "output", "reference"])
def test_usual_names_are_read_through_any_step(field):
    for name in (n for n in USUAL[field] if n not in ("messages", "conversation", "conversations")):
        for key in (name, "llm", "agent", "model"):
            assert READ[field]({key: {name: "Mondays"}}) == "Mondays", (key, name)


SAID = [{"role": "assistant", "content": "Mondays"}]
# What a step or a search returned, in the forms of libraries.
STEPS: dict[str, tuple[list[Any], Any]] = {
    "messages": (["output", "reference"], SAID),
    "a state": (["output", "reference"], {"messages": SAID}),
    "Haystack": (["output"], {"replies": ["Mondays"], "meta": [{"model": "m"}]}),
    "an answer": (["output", "reference"], {"answer": "Mondays", "score": 1}),
    "documents": (["context"], [Document("Mondays")]),
    "data of documents": (["context"], [{"text": "Mondays", "id": 7}]),
    "a message": (["context"], SAID),
}


@for_each("step", STEPS)
@for_each("key", ["research", "closed_on", "agent"])
def test_an_only_key_around_what_is_known_is_read_through(key, step):
    fields, held = STEPS[step]
    for field in fields:
        assert READ[field]({key: held}) == "Mondays"


def notes_of(row):
    return [
        each["detail"] for each in plain_row({"input": "q", "output": "a", **row}).get(NOTES, [])
    ]


@for_each("name, is_said", [*((name, True) for name in TELLING), ("final_answer", False)])
def test_an_only_key_that_is_shown_or_read_through_is_noted(name, is_said):
    for field, held in product(("output", "expected"), ("Mondays", {"answer": "Mondays"})):
        assert [repr(name) in each for each in notes_of({field: {name: held}})] == [True] * is_said
    assert bool(notes_of({"source": {name: "Mondays"}})) == (is_said or name not in ("text",))


# ---- of several usual names, the one that holds a text


DOUBTED = [name for name in KNOWN_NAMES["doubted"] if name in NAMES["input"]]
CERTAIN = ["message", "user_input", "question", "problem", "query"]
LITTLE: list[Any] = ["bo", "7", 7, "u_123", "Bo Diddley", {"id": 3, "name": "Bo"}, ["bo"]]
TEXTS: list[Any] = ["Where is my parcel?", "hi", "¿Dónde está?", "我的包裹在哪里"]
ASKED = [{"role": "user", "content": "Where is my parcel?"}]


def ways(fields):
    """The task that is read of some fields, where they are inputs, a field and columns."""
    yield task_in(fields)
    yield plain_row({"input": fields, "output": "a"})["input"]
    row = {**fields, "response": "a"}
    yield plain_row(named_row(row, "item"))["input"]
    for is_table in (False, True):
        yield Records(Source([row], is_table), None, "item").row(row, 0)["input"]


@for_each("doubted", DOUBTED)
def test_a_name_that_may_be_of_something_else_gives_way_to_a_text(doubted):
    for little, text, name in zip(LITTLE, cycle(TEXTS), cycle(CERTAIN), strict=False):
        for fields in ({doubted: little, name: text}, {name: text, doubted: little}):
            assert [*ways(fields)] == [text] * 5, fields


@for_each("doubted", DOUBTED)
def test_messages_are_the_task_beside_a_name_that_holds_little(doubted):
    for little in LITTLE:
        inputs = {doubted: little, "messages": ASKED}
        assert task_in(inputs) == plain_row({"input": inputs, "output": "a"})["input"] == ASKED
        # Below a name of a row's own it is a task.
        assert task_in({doubted: {"question": "Where is it?"}, "id": little}) == "Where is it?"


SOUND: list[tuple[dict[str, Any], str]] = [
    ({"question": "Why?", "article": "A long text on towns."}, "Why?"),
    ({"query": "Kyiv", "document": "A long text on towns."}, "Kyiv"),
    ({"task": "Translate to German.", "text": "Good day to you all."}, "Translate to German."),
    ({"task": "Write a poem.", "user": "bo"}, "Write a poem."),
    ({"request": "Where is it?", "message": "hi"}, "Where is it?"),
    ({"article": "A long text on towns.", "user": "Ann"}, "A long text on towns."),
    ({"request": "Refund", "content": 7}, "Refund"),
    ({"user": "hi", "document": "d-7"}, "hi"),
    ({"user": "hi"}, "hi"),
]


@for_each("inputs, task", SOUND)
def test_a_task_that_stands_first_stays_the_task(inputs, task):
    assert task_in(inputs) == task


# ---- usual names that hold nothing


EMPTY: list[Any] = [None, "", " ", [], {}]


@for_each("field", ["input", "output", "reference"])
def test_a_usual_name_that_holds_nothing_is_as_if_it_were_absent(field):
    first, *others = (n for n in USUAL[field] if not n.startswith(("messages", "conversation")))
    for name, empty in product(others, EMPTY):
        for fields in ({first: empty, name: "Mondays"}, {name: "Mondays", first: empty}):
            assert READ[field](fields) == "Mondays", fields


@for_each("name", ["final_report", "final_answer", "summary"])
def test_a_reply_of_a_state_is_read_where_the_answer_is_empty(name):
    for empty, usual in product(EMPTY, ("answer", "output", "messages")):
        assert work_in({usual: empty, name: "Mondays", "plan": "look it up"}) == "Mondays"


TRIAGE = {"email_input": {"subject": "Where are you?"}, "classification_decision": "ignore"}


@for_each("empty", [None, []])
def test_fields_that_nodes_wrote_are_the_answer_where_nobody_said_anything(empty):
    outputs = {"messages": empty, **TRIAGE}
    assert work_in(outputs) == plain_row({"input": "q", "output": outputs})["output"]
    assert work_in(outputs) == as_json(outputs)
    [note] = notes_of({"output": outputs})
    assert "as nothing is under 'messages'" in note
    for rest in ({}, {"remaining_steps": 24}, {"run_id": "r-7", "is_last_step": False}):
        with pytest.raises(InputError):
            work_in({"messages": empty, **rest})


TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "I ignore it."}]
RIGHT: list[Any] = ["ignore", {"classification": "ignore"}, {"classification_decision": "ignore"}]
RIGHT += [{"answer": "ignore", "criteria": "brief"}, None]


@for_each("right, name", product(RIGHT, ["messages", "answer"]))
def test_a_word_beside_an_answer_is_named_whatever_else_there_is(right, name):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it so?")
    outputs = {name: TALK if name == "messages" else "I ignore it.", **TRIAGE}
    told: Any = as_evaluator(judge)(
        inputs={"email": TRIAGE["email_input"]}, outputs=outputs, reference_outputs=right
    )
    [note] = [each for each in told["comment"].split(";") if "not shown: " in each]
    assert "'classification_decision'" in note
    assert "email_input" not in told["comment"]  # which is the task


def test_a_right_answer_that_an_application_returns_is_no_word_beside_its_own():
    notes = notes_of({"output": {"answer": "Lviv", "ground_truth": "Kyiv"}, "expected": "Kyiv"})
    assert notes == []
