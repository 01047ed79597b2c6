"""LangChain messages in place of texts: taken wherever texts are, and kept as JSON."""

import json

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import (
    FailureMemory,
    best_of,
    create_allure_audit,
    create_allure_judge,
    create_bsm_writer,
    judge_many,
)
from langchain_judges.datasets.row_file import open_rows
from langchain_judges.errors import InputError
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.memory.shown import RememberedPair
from langchain_judges.methods.registry import METHODS
from langchain_judges.report import trust
from langchain_judges.rows.applications import plain_row
from langchain_judges.rows.checks import check_item
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import answer, item_of, of_method
from tests.memories import ListMemory
from tests.planners import as_labelled, fooled_model, planning
from tests.test_memory import Letters

ASKED = [SystemMessage("Be brief."), ("user", "Why?")]
TOLD = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]


def said(text):
    return [{"role": "assistant", "content": text}]


def both_forms(method):
    """Return what a method judges in objects of LangChain's and in dictionaries."""
    row = item_of(method)
    sides = [name for name in row if name.startswith("output")]
    objects = {**row, "input": ASKED, **{name: [AIMessage(row[name])] for name in sides}}
    objects[sides[-1]] = AIMessage(row[sides[-1]])
    return objects, {**row, "input": TOLD, **{name: said(row[name]) for name in sides}}


@for_each("method", METHODS)
def test_every_judge_takes_messages_and_asks_as_it_does_of_dictionaries(method):
    models = FakeChatModel(replies=answer), FakeChatModel(replies=answer)
    results = [
        of_method(method, model).invoke(row)
        for model, row in zip(models, both_forms(method), strict=True)
    ]
    assert sorted(models[0].prompts) == sorted(models[1].prompts)
    assert json.dumps(results[0], sort_keys=True) == json.dumps(results[1], sort_keys=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_of_messages_is_the_row_of_its_dictionaries(method, tmp_path):
    objects, dictionaries = both_forms(method)
    out = tmp_path / "rows.jsonl"
    [result] = judge_many(of_method(method), [objects], out=out, progress=False)
    [again] = judge_many(of_method(method), [dictionaries], out=out, progress=False)
    assert again["key"] == result["key"]
    assert len(out.read_text().splitlines()) == 1


def test_a_file_may_hold_messages_in_every_form_too(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = {"input": [["user", "Why?"]], "output": {"type": "ai", "content": "So."}}
    path.write_text(json.dumps(row))
    [read] = open_rows(path, check=check_item)
    assert read == {"input": [TOLD[1]], "output": "So."}


@for_each("method", ["bsm", "allure"])
def test_no_checkpoint_holds_a_message_object(method):
    saver, (objects, dictionaries) = InMemorySaver(), both_forms(method)
    judge = of_method(method, checkpointer=saver)
    judge.invoke(objects, {"configurable": {"thread_id": "1"}})
    states = [each.checkpoint["channel_values"] for each in saver.list(None)]
    inputs = {k: v for k, v in states[-1]["__start__"].items() if v is not None}
    assert inputs == plain_row(dictionaries)
    assert json.loads(json.dumps([values.get("input") for values in states]))[0] == TOLD


async def test_messages_are_read_in_an_event_loop_too():
    objects, dictionaries = both_forms("bsm")
    result = await of_method("bsm").ainvoke(objects)
    assert result == await of_method("bsm").ainvoke(dictionaries)


@for_each(
    ("message", "role"),
    [
        (HumanMessage("Why?"), "user"),
        (HumanMessage("Why?").model_dump(), "user"),
        (HumanMessage("Why?").to_json(), "user"),
        (("human", "Why?"), "user"),
        (("ai", "Why?"), "assistant"),
        ({"role": "human", "content": "Why?"}, "user"),
        (ChatMessage(content="Why?", role="critic"), "critic"),
        (message_to_dict(ChatMessage(content="Why?", role="critic")), "critic"),
    ],
)
def test_a_message_is_read_in_every_form(message, role):
    row = {"input": [{"role": role, "content": "Why?"}]}
    assert plain_row({"input": [message]}) == plain_row({"input": message}) == row


def test_a_dictionary_with_a_role_keeps_what_else_it_has():
    message = {"role": "user", "content": "Why?", "name": "Ada"}
    assert plain_row({"input": [message]}) == {"input": [message]}


def test_a_message_in_place_of_a_text_stands_for_its_text():
    row = {"expected": [AIMessage("4"), "four"], "reference": HumanMessage("4")}
    assert plain_row(row) == {"expected": ["4", "four"], "reference": "4"}


@for_each("wrong", [("robot", "hi"), ["user", "hi"], [5], (), [AIMessage("")]])
def test_what_is_no_message_is_named(wrong):
    judge = of_method("bsm")
    with pytest.raises(InputError, match="`output_a`"):
        judge.invoke({"input": "Why?", "output_a": wrong, "output_b": "b"})


def test_the_schema_of_a_judge_still_says_what_it_takes():
    fields = of_method("bsm").get_input_jsonschema()["properties"]
    assert set(fields) == set(RememberedPair.__annotations__)


def test_a_writers_instruction_may_be_a_message():
    writer = create_bsm_writer(FakeChatModel(replies=answer))
    task = {"concepts": ["dog", "ball"], "instruction": HumanMessage("Write a tale.")}
    assert "dog" in writer.invoke(task)["text"]
    [row] = judge_many(writer, [task], progress=False)
    assert "ball" in row["text"]


@for_each("method", ["bsm", "allure"])
def test_best_of_and_a_tool_take_messages(method):
    options = {} if METHODS[method].takes == "pair" else {"rubric": "Is it good?"}
    judge = of_method(method, **options)
    answers = [AIMessage("bad"), AIMessage("good good")]
    best = best_of(2, judge).invoke({"input": ASKED, "answers": answers})
    assert best["output"] == "good good"
    objects, _ = both_forms(method)
    sides = {name: AIMessage(item_of(method)[name]) for name in objects if "output" in name}
    reply = judge_tool(judge).invoke({"input": HumanMessage("Why?"), **sides})
    assert json.loads(reply)["score"] > 0.5


def test_a_memory_remembers_messages_as_their_dictionaries_and_recalls_by_them():
    memory = FailureMemory(embeddings=Letters())
    lesson = {"wrong": "B", "corrected": "A"}
    sides = {"output_a": [AIMessage("good")], "output_b": AIMessage("bad")}
    ids = memory.remember([{"input": [("user", "Why?")], **sides, **lesson}])
    responses = {"output_a": said("good"), "output_b": said("bad")}
    task = [{"role": "user", "content": "Why?"}]
    assert memory.remember([{"input": task, "output": responses, **lesson}]) == ids
    other = {"input": HumanMessage("How?"), "output_a": AIMessage("x"), "output_b": "y"}
    assert [each["id"] for each in memory.recall(other, "all")] == ids


def test_an_audit_takes_messages():
    memory = ListMemory()
    items = [{**item, "output": AIMessage(item["output"])} for item in planning(3)]
    judge = create_allure_judge(fooled_model(), memory=memory, recall="all")
    audit = create_allure_audit(judge, memory, auditor=as_labelled)
    json.dumps(audit.invoke({"items": items}))
    assert len(memory) == 3


def test_a_report_shows_messages_as_their_text():
    data = [
        {**both_forms("bsm")[0], "id": str(n), "label": label}
        for n, label in enumerate(["A", "A", "B"])
    ]
    trust_report = trust(judge_many(of_method("bsm"), data, progress=False), data)
    assert "good good" in trust_report.to_json()
