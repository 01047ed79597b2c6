"""What was read of several keys or columns, and what is not shown, stands in the verdict."""

import asyncio
import json
import re
from dataclasses import make_dataclass
from itertools import cycle, product
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from pydantic import BaseModel, create_model

from langchain_judges import (
    as_comparative_evaluator,
    as_evaluator,
    create_relative_judge,
    create_rubric_judge,
    judge_many,
)
from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.messages import leave_with
from langchain_judges.cli.row_files import checked_rows, judge_rows
from langchain_judges.integrations import serve, server, trajectory_evaluator
from langchain_judges.methods import create_jury
from langchain_judges.rows.checks import OF_OUTPUT
from langchain_judges.rows.columns import named_row
from langchain_judges.rows.data import is_nothing
from langchain_judges.rows.documents import CONTEXTS
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import readable
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import NOTES, comment_of
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.test_evaluators import a_run
from tests.test_front_door import SPEC, entered, written

RUBRIC = "Is it right?"
TASK = {"input": "Where?"}
TALK = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In Kyiv"}]
Note = tuple[str, str]
WHOLE = "is shown whole, as JSON, as none of its keys is a usual one"
LISTED = "is a list of no known messages, shown as JSON"
SPELT = "is the text of messages and shown as it stands; pass them as data"
FIRST = [("output", "has 2 replies; the first is shown")]
SAID = [{"message": {"role": "assistant", "content": each}} for each in ("Kyiv", "Oslo")]
# A row, and what is to be said of it: the field, and which key.
ROWS: dict[str, tuple[dict[str, Any], list[Note]]] = {
    "two answers": (
        {**TASK, "output": {"answer": "Kyiv", "response": "Oslo"}},
        [("output", "is read from 'response'; not shown: 'answer'")],
    ),
    "the same answer twice": ({**TASK, "output": {"answer": "Kyiv", "response": "Kyiv"}}, []),
    "data": (
        {**TASK, "output": {"city": "Kyiv", "days": 2}},
        [("output", f"{WHOLE}: 'city', 'days'")],
    ),
    "objects": (
        {**TASK, "output": [{"author": "agent", "content": {"parts": [{"text": "Kyiv"}]}}]},
        [("output", LISTED)],
    ),
    "turns of no known form": (
        {**TASK, "output": [{"role": "bot", "message": "Kyiv"}]},
        [("output", LISTED)],
    ),
    "turns of no known form under a key": (
        {**TASK, "output": {"output": [{"role": "agent", "message": "Kyiv"}]}},
        [("output", LISTED)],
    ),
    "objects under a key": (
        {**TASK, "output": {"messages": [{"source": "user", "content": "Where?"}]}},
        [("output", LISTED)],
    ),
    "a history": (
        {"input": {"question": "Where?", "chat_history": ["Hi."]}, "output": "Kyiv"},
        [("input", "is read from 'question'; not shown: 'chat_history'")],
    ),
    "a prompt of the system": (
        {"input": {"question": "Where?", "system_prompt": "Be brief."}, "output": "Kyiv"},
        [("input", "is read from 'question'; not shown: 'system_prompt'")],
    ),
    "an expected answer": (
        {**TASK, "output": "Kyiv", "expected": {"must_not_mention": "Oslo"}},
        [("expected", f"{WHOLE}: 'must_not_mention'")],
    ),
    "several fields": (
        {"input": {"place": "Kyiv", "days": 2}, "output": {"answer": "x", "trace": ["pay"]}},
        [
            ("input", f"{WHOLE}: 'place', 'days'"),
            ("output", "is read from 'answer'; not shown: 'trace'"),
        ],
    ),
    "a memory beside a reply": (
        {**TASK, "output": {"messages": TALK, "summary": "Asked."}},
        [("output", "is read from 'messages'; not shown: 'summary'")],
    ),
    "a reply and another": (
        {**TASK, "output": {"messages": TALK, "answer": "In Oslo", "final_report": "REJECT"}},
        [("output", "is read from 'messages'; not shown: 'answer', 'final_report'")],
    ),
    "a reply twice": ({**TASK, "output": {"messages": TALK, "answer": "In Kyiv "}}, []),
    "a reply beside a request": (
        {**TASK, "output": {"messages": TALK[:1], "answer": "Kyiv", "route": "maps"}},
        [("output", "is read from 'messages'; not shown: 'route'")],
    ),
    "a reply beside a request alone": (
        {**TASK, "output": {"messages": TALK[:1], "output": {"answer": "Kyiv"}}},
        [],
    ),
    "a word beside an answer": (
        {**TASK, "output": {"answer": "42", "reasoning": "because", "id": "a", "share": 0.5}},
        [("output", "is read from 'answer'; not shown: 'reasoning', 'share'")],
    ),
    "words that ask something": (
        {"input": {"question": "Where?", "language": "German", "max": 5}, "output": "Kyiv"},
        [("input", "is read from 'question'; not shown: 'language', 'max'")],
    ),
    "words about a task and its answer": (
        {
            "input": {"question": "Where?", "category": "towns", "userId": 7, "split": "test"},
            "output": "Kyiv",
            "expected": {"answer": "Kyiv", "level": "easy"},
        },
        [],
    ),
    "plain": ({**TASK, "output": "Kyiv", "expected": "Kyiv", "source": "A map."}, []),
    "two choices": ({**TASK, "output": {"choices": SAID}}, FIRST),
    "two choices under a key": ({**TASK, "output": {"answer": {"choices": SAID}}}, FIRST),
    "one choice": ({**TASK, "output": {"choices": SAID[:1]}}, []),
    "two generations": ({**TASK, "output": {"generations": [SAID]}}, FIRST),
    "two prompts": ({**TASK, "output": {"generations": [SAID[:1], [{"text": "Oslo"}]]}}, FIRST),
    "a line of a batch": (
        {**TASK, "output": {"status_code": 200, "body": {"choices": SAID}}},
        FIRST,
    ),
    "two candidates": (
        {**TASK, "output": {"candidates": [
            {"content": {"role": "model", "parts": [{"text": each}]}, "finishReason": "STOP"}
            for each in ("Kyiv", "Oslo")
        ]}},
        FIRST,
    ),
    "answers that a question offers": (
        {**TASK, "output": {"choices": [{"text": "Kyiv"}, {"text": "Oslo"}]}},
        [("output", f"{WHOLE}: 'choices'")],
    ),
    "texts under a key": (
        {**TASK, "output": {"output": ["Kyiv", "Oslo"]}},
        [("output", "is a list of 2 texts, shown as one")],
    ),
    "lists in a list": ({**TASK, "output": [["Kyiv", "Oslo"]]}, [("output", LISTED)]),
}  # fmt: skip
# Rows of columns, which are keys of a row, and of no field.
COLUMNS: dict[str, tuple[dict[str, Any], list[Note]]] = {
    "assertions": (
        {**TASK, "output": "Kyiv", "assertions": [{"key": "polite", "comment": "It thanks."}]},
        [("rubric", "is read from 'assertions', in place of a judge's own")],
    ),
    "two answers": (
        {"question": "Where?", "answer": "Kyiv", "response": "Oslo"},
        [("output", "is read from 'response'; not shown: 'answer'")],
    ),
    "an instruction": (
        {"instruction": "Translate", "input": "Good day", "output": "Bonjour"},
        [],
    ),
    "metadata": ({**TASK, "output": "Kyiv", "metadata": {"language": "en"}}, []),
    "known twice": (
        {**TASK, "output": "Kyiv", "reference": "Kyiv", "gold": "Oslo"},
        [("expected", "is read from 'reference'; not shown: 'gold'")],
    ),
    "lists": (
        {**TASK, "output": "Kyiv", "steps": ["look"], "scores": [0.5], "by": {"a": "b"}},
        [("row", "has columns that are not shown: 'steps', 'by', 'scores'")],
    ),
    "what is expected, by name": (
        {**TASK, "output": "Kyiv", "expectations": {"expected_response": "Lviv"}},
        [],
    ),
    "what is expected, as data": (
        {**TASK, "output": "Kyiv", "expectations": {"expected_facts": ["Lviv"]}},
        [("expected", f"{WHOLE}: 'expected_facts'")],
    ),
    "several answers": (
        {"question": "Where?", "answer": ["Kyiv", "Lviv"]},
        [("output", "is a list of 2 texts, shown as one")],
    ),
    "messages in JSON": (
        {**TASK, "output": '[{"content": "Kyiv", "role": "assistant"}]'},
        [("output", SPELT)],
    ),
    "messages in Python": (
        {"input": "[{'role': 'user'}]", "output": "Kyiv"},
        [("input", SPELT)],
    ),
    "messages by name": ({**TASK, "output": "[AIMessage(content='x')]"}, [("output", SPELT)]),
    "a state in JSON": (
        {**TASK, "output": '{"messages": [{"content": "Kyiv", "role": "assistant"}]}'},
        [("output", SPELT)],
    ),
    "a state in Python": (
        {"input": "{'messages': [HumanMessage(content='x')]}", "output": "Kyiv"},
        [("input", SPELT)],
    ),
    "a message in Python": (
        {**TASK, "output": "content='Kyiv' additional_kwargs={} id='7'"},
        [("output", SPELT)],
    ),
    "data in JSON": ({**TASK, "output": '{"role": "admin", "days": ["Monday"]}'}, []),
    "a prompt of the system": (
        {**TASK, "output": "Kyiv", "system_prompt": "Be brief.", "model": "x"},
        [("row", "has columns that are not shown: 'system_prompt', 'model'")],
    ),
    "an answer that is null": (
        {**TASK, "output": {"answer": None, "error": "timeout"}},
        [
            (
                "output",
                "is shown whole, as JSON, as nothing is under 'answer': 'answer', 'error'",
            )
        ],
    ),
    "a list and an answer": (
        {"question": "Where?", "answer": "Kyiv", "response": "Oslo", "steps": ["look"]},
        [
            ("output", "is read from 'response'; not shown: 'answer'"),
            ("row", "has columns that are not shown: 'steps'"),
        ],
    ),
    "columns that ask something": (
        {**TASK, "output": "Kyiv", "targetLanguage": "German", "max_words": 5, "who": "Ann"},
        [("row", "has columns that are not shown: 'targetLanguage', 'max_words', 'who'")],
    ),
    "what people know": (
        {**TASK, "output": "Kyiv", "label": 1, "human_votes": [1, 0], "who": "Ann", "ms": 7},
        [],
    ),
    "a list that is named as a part of a note is": (
        {"question": "Where?", "answer": "Kyiv", "response": "Oslo", "detail": ["look"]},
        [
            ("output", "is read from 'response'; not shown: 'answer'"),
            ("row", "has columns that are not shown: 'detail'"),
        ],
    ),
    "what was said on the page": (
        {**TASK, "output": "Kyiv", "answers": [{"by": "Ann", "label": 1, "note": "Fine."}]},
        [],
    ),
    "other answers": (
        {**TASK, "output": "Kyiv", "answers": ["Oslo"]},
        [("row", "has columns that are not shown: 'answers'")],
    ),
    "sources": ({**TASK, "output": "Kyiv", "docs": ["A map."]}, []),
    "a state": (
        {"messages": TALK, "summary": "Asked before."},
        [("output", "is read from 'messages'; not shown: 'summary'")],
    ),
    "a state whose answer is beside": ({"messages": TALK[:1], "answer": "Kyiv"}, []),
    "an empty one": ({"question": "Where?", "answer": "Kyiv", "reply": None}, []),
}  # fmt: skip
RUNS = ["rows", "frame", ".jsonl", ".json", "command.jsonl"]
PATHS = ["invoke", "ainvoke", "prepare", "jury", "graph", *RUNS[:-1]]


def judge_of_texts(**options):
    model = FakeChatModel(replies=fitting_reply)
    return create_rubric_judge(model, rubric=RUBRIC, **options)


def of_server(row):
    context: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context={"rubric": RUBRIC}))
    server._models.cache_clear()
    try:
        return asyncio.run(entered(serve("rubric"), context)).invoke(row)
    finally:
        server._models.cache_clear()


def failures(path, row, folder, monkeypatch):
    """The failures in the verdict on a row that comes by a path."""
    judge: Any = judge_of_texts()
    if path == "jury":
        judge = create_jury([judge_of_texts(), judge_of_texts(name="b")])
    if path in ("invoke", "jury"):
        return judge.invoke(row)["verdict"]["failures"]
    if path == "ainvoke":
        return asyncio.run(judge.ainvoke(row))["verdict"]["failures"]
    if path == "graph":
        model = FakeChatModel(replies=fitting_reply)
        monkeypatch.setattr(server, "resolve_model", lambda _: model)
        return of_server(row)["verdict"]["failures"]
    if path == "prepare":
        evaluator = as_evaluator(judge, prepare=lambda run, example: row)
        feedback: Any = evaluator({"id": "1", "outputs": {"o": 1}}, {})
        return feedback["metadata"]["failures"]
    rows: Any = [row]
    if path == "frame":
        rows = pd.DataFrame({name: [value] for name, value in row.items()})
    if path.startswith("."):
        rows = written(row, folder / f"table{path}")
    if path.startswith("command"):
        flags = judge_rows(written(row, folder / f"table{path[7:]}"), RowFlags(), SPEC)
        rows = checked_rows(flags).whole()
    [result] = judge_many(judge, rows, progress=False)
    return result["verdict"]["failures"]


def notes(found):
    assert {each["reason"] for each in found} <= {"read_as_json", "one_of_several"}
    assert {each["step"] for each in found} <= {"input"}
    return [(each["unit"], each["detail"]) for each in found]


def test_the_replies_of_a_run_in_a_row_are_counted():
    row = plain_row({**TASK, "output": a_run({"generations": [SAID]})})
    assert notes(row[NOTES]) == FIRST


@pytest.mark.whole
@for_each("path", [*PATHS, "command.jsonl"])
@for_each("case", ROWS)
def test_a_verdict_says_which_keys_were_read_on_every_path(path, case, tmp_path, monkeypatch):
    row, expected = ROWS[case]
    assert notes(failures(path, row, tmp_path, monkeypatch)) == expected


@pytest.mark.whole
@for_each("path", [*PATHS, "command.jsonl"])
@for_each("case", COLUMNS)
def test_a_verdict_says_which_columns_were_read_on_every_path(
    path, case, tmp_path, monkeypatch, caplog
):
    row, expected = COLUMNS[case]
    caplog.clear()
    found = notes(failures(path, row, tmp_path, monkeypatch))
    of_row = [note for note in expected if note[0] == "row"]
    if path in RUNS and of_row:  # which warn of what is not shown, once for all rows
        assert "Columns not shown to the judge: " in caplog.text
    assert found == expected


BESIDE: dict[str, Any] = {
    "profile": "She knows it all.",
    "most": 3,
    "tone": "pirate",
    "list": [1],
    "none": None,
}


TWO = "[1]\nIn Kyiv\n\n[2]\nIn Oslo"
TITLED = "[1] Kyiv\nA town. On a river.\n\n[2] Oslo\nA port."
SAYINGS = [["Kyiv", ["A town. ", "On a river."]], ["Oslo", ["A port."]]]
# A source as data sets and searches have it, its text, and whether it is told to be JSON.
SOURCES: dict[str, tuple[object, str, bool]] = {
    "HotpotQA": (SAYINGS, TITLED, False),
    "HotpotQA on the hub": (
        {"title": ["Kyiv", "Oslo"], "sentences": [each for _, each in SAYINGS]},
        TITLED,
        False,
    ),
    "Chroma": (
        {"ids": [["1", "2"]], "documents": [["In Kyiv", "In Oslo"]], "distances": [[0.1, 0.2]]},
        TWO,
        False,
    ),
    "a search": ({"query": "Where?", "documents": [{"text": "In Kyiv"}, "In Oslo"]}, TWO, False),
    "LlamaIndex": (
        [{"node": {"text": each, "id_": "7"}, "score": 0.5} for each in ("In Kyiv", "In Oslo")],
        TWO,
        False,
    ),
    "with their scores": ([(Document("In Kyiv"), 0.9), (Document("In Oslo"), 1)], TWO, False),
    "scores in JSON": ([[{"page_content": "In Kyiv"}, 0.9], [{"text": "In Oslo"}, 0]], TWO, False),
    "texts and numbers": ([["opens", 9]], "[1]\nopens\n\n[2]\n9", True),
    "lists in a list": ([["In Kyiv", "In Oslo"]], TWO, False),
    "of no known form": (
        {"body": "In Kyiv", "source": {"url": "a"}},
        '{"body": "In Kyiv", "source": {"url": "a"}}',
        True,
    ),
    "LaTeX": (["{\\it Kyiv} is wet."], "{\\it Kyiv} is wet.", False),
    "JSON in a document": ([Document('{"price": 3}')], '{"price": 3}', False),
    "JSON in texts": (['{"price": 3}', "In Oslo"], '[1]\n{"price": 3}\n\n[2]\nIn Oslo', False),
    "beside other texts": (
        {"documents": ["In Kyiv"], "remark": "Not so."},
        '{"documents": ["In Kyiv"], "remark": "Not so."}',
        True,
    ),
}


@for_each("form", SOURCES)
def test_a_source_of_a_data_set_or_a_search_is_its_documents_or_said_to_be_json(form):
    source, text, is_told = SOURCES[form]
    row = plain_row({**TASK, "output": "Kyiv", "context": source})
    assert row["source"] == text
    told = [("source", "has documents of no known form, shown as JSON")]
    assert notes(row.get(NOTES, [])) == (told if is_told else [])


@for_each("blocks", [[{}], [{}, {"type": "text", "text": "In Kyiv"}]])
def test_an_empty_block_of_a_message_is_said_to_be_json(blocks):
    row = plain_row({**TASK, "output": [{"role": "assistant", "content": blocks}]})
    told = ("output", "has messages with data shown as JSON: '{}'")
    assert ("{}" in readable(row["output"]), notes(row[NOTES])) == (True, [told])


ASKING = "audience format language length max_words style target_language targetLanguage tone"
# Of a row, as MATH, MMLU, HotpotQA and LangSmith have it.
OF_A_ROW = (
    "level subject topic lang uid userId hash score k row license region is_answerable "
    "max_score maxScores target_label max_tokens target_id annotator_language annotators_tone"
)


@for_each("value", ["German", 5])
@for_each("name", [*ASKING.split(), *OF_A_ROW.split()])
def test_a_word_or_a_number_beside_a_task_is_told_where_its_name_asks_something(name, value):
    under, beside = {"question": "Where?", name: value}, {**TASK, name: value}
    for row, field in (({"input": under}, "input"), (beside, "row")):
        told = notes(plain_row({**row, "output": "Kyiv"}).get(NOTES, []))
        # Of a row it is the language that a data set has.
        asks = name in ASKING.split() and (field, name) != ("row", "language")
        assert [unit for unit, _ in told] == [field] * asks


SEEN = "I was in Kyiv"
OBJECTS: dict[str, Any] = {
    "messages": [HumanMessage(SEEN)],
    "a message": HumanMessage(SEEN),
    "a prompt": ChatPromptValue(messages=[HumanMessage(SEEN)]),
    "documents": [Document(SEEN)],
    "data": [{"role": "user", "content": SEEN}],
    "a text": SEEN,
}


@for_each("form", OBJECTS)
def test_a_column_of_objects_is_told_like_one_of_texts(form):
    for row in ({**TASK, "output": "Kyiv"}, {**TASK, "output_a": "Kyiv", "output_b": "Oslo"}):
        told = plain_row({**row, "memory": OBJECTS[form]})[NOTES]
        assert notes(told) == [("row", "has columns that are not shown: 'memory'")]
    assert not plain_row({"input": SEEN, "output": "Kyiv", "memory": OBJECTS[form]}).get(NOTES)


@for_each("prompt", [OBJECTS["a prompt"], StringPromptValue(text=SEEN)])
@for_each("field", ["input", "output", "expected", "source"])
def test_a_filled_prompt_is_shown_as_its_messages(field, prompt):
    judge = judge_of_texts()
    judge.invoke({**TASK, "output": "Kyiv", field: prompt})
    assert re.search(rf">\n(\[user\]\n)?{SEEN}\n<", judge.model.prompts[0])


@for_each("field", ["input", "output", "row"])
def test_a_note_that_names_what_is_not_shown_names_all_of_it(field):
    row: Any = {**TASK, "output": "Kyiv"}
    kept = {"input": "question", "output": "answer"}.get(field)
    row |= {field: {kept: row[field], **BESIDE}} if kept else BESIDE
    [note] = judge_of_texts().invoke(row)["verdict"]["failures"]
    assert {*re.findall(r"'(\w+)'", note["detail"].split("not shown: ")[1])} == {*BESIDE} - {"none"}


@for_each("case", ROWS)
def test_an_evaluator_says_of_its_parts_what_a_row_is_said_to_be(case):
    row, expected = ROWS[case]
    names = {"inputs": "input", "outputs": "output", "reference_outputs": "expected"}
    fields = {name: row.get(field) for name, field in names.items()}
    feedback: Any = as_evaluator(judge_of_texts())(**fields, context=row.get("source"))
    found = notes(feedback["metadata"]["failures"])
    assert found == [(unit.replace("expected", "reference"), text) for unit, text in expected]
    assert all(f"Note: {unit} {text}." in feedback["comment"] for unit, text in found)


PAIR = {"input": "Where?", "output_a": "Kyiv", "output_b": {"answer": "Oslo", "text": "Rome"}}
OF_PAIR = [("output_b", "is read from 'answer'; not shown: 'text'")]


def test_a_pair_is_noted_by_its_side_whether_it_is_asked_about_or_not():
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    [result] = judge_many(judge, [PAIR], progress=False)
    same = judge.invoke({**PAIR, "output_a": "Oslo"})["verdict"]
    for verdict in (judge.invoke(PAIR)["verdict"], result["verdict"], same):
        assert notes(verdict["failures"]) == OF_PAIR
        assert "Note: output_b is read from 'answer'" in comment_of(verdict)
    assert same["preference"] == "tie"


@for_each("name, value", [("docs", ["A map."]), ("source", "A map."), ("source", ["A map."])])
def test_documents_beside_a_pair_which_no_judge_of_pairs_is_shown_are_noted(name, value):
    row = {"input": "Where?", "output_a": "Kyiv", "output_b": "Oslo", name: value}
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    assert notes(judge.invoke(row)["verdict"]["failures"]) == [
        ("row", f"has columns that are not shown: {name!r}")
    ]


def test_a_run_warns_once_of_each_column_that_is_not_shown_and_each_verdict_notes_it(caplog):
    row: dict[str, Any] = {"input": "Where?", "output_a": "Kyiv", "output_b": "Oslo"}
    row |= {"source": "A map.", "team": "blue"}
    rows = [row, row, {**row, "documents": ["A book."]}, {**row, "documents": ["A book."]}]
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    results = list(judge_many(judge, rows, progress=False))
    assert [each["verdict"]["failures"] for each in results] == [
        judge.invoke(each)["verdict"]["failures"] for each in rows
    ]
    assert re.findall("not shown to the judge: (.*)", caplog.text) == [
        "'source', 'team'",
        "'documents'",
    ]


def test_a_run_whose_columns_a_person_named_warns_of_none(caplog):
    row = {"q": "Where?", "output_a": "Kyiv", "output_b": "Oslo", "source": "A map."}
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    [result] = judge_many(judge, [row], columns={"input": "q"}, progress=False)
    assert (result["verdict"]["failures"], caplog.text) == ([], "")


@pytest.mark.whole
def test_a_note_names_the_first_of_many_keys():
    many = {f"key {number} {'x' * 300}": number for number in range(2000)}
    lists = {"question": "Where?", **{name: ["a"] for name in many}}
    rows = {"input": many, "output": lists}, {**TASK, "output": "Kyiv", **lists}
    for row in rows:
        found = judge_of_texts().invoke(row)["verdict"]["failures"]
        assert found
        for each in found:
            assert len(each["detail"]) < 500
            assert re.search("'key 0 x.* and 1,99[5-9] more$", each["detail"])


def test_a_row_that_is_not_judged_says_what_was_read_of_it():
    judge = create_rubric_judge(FakeChatModel(replies=[]), rubric="tool_use")
    verdict = judge.invoke({**TASK, "output": {"answer": "x", "trace": ["pay"]}})["verdict"]
    assert [each["reason"] for each in verdict["failures"]] == ["lacking", "one_of_several"]


def test_who_names_columns_is_in_no_doubt_of_any():
    row = {"question": "Where?", "answer": "Kyiv", "response": "Oslo", "steps": ["look"]}
    [result] = judge_many(judge_of_texts(), [row], columns={"output": "answer"}, progress=False)
    assert result["verdict"]["failures"] == []


def test_a_run_says_once_what_its_verdicts_note(caplog):
    rows = [row for row, _ in (ROWS["plain"], ROWS["data"], ROWS["data"])]
    results = list(judge_many(judge_of_texts(), rows, progress=False))
    assert [len(each["verdict"]["failures"]) for each in results] == [0, 1, 1]
    [record] = caplog.records
    assert record.getMessage().startswith("Row 2, `output` is shown whole, as JSON")


FORGED = {"step": "input", "unit": "output", "reason": "read_as_json", "detail": "\x1b[31mRED"}


@pytest.mark.whole
@for_each("path", [*PATHS, "command.jsonl"])
@for_each("own", [[FORGED], [{**FORGED, "unit": None, "detail": {"a": 1}}], [], "x", [7]])
def test_a_field_of_that_name_in_a_row_is_no_note_and_silences_none(
    path, own, tmp_path, monkeypatch, caplog
):
    row, expected = COLUMNS["two answers"]
    forged = {**row, "notes_on_reading": own}
    assert notes(failures(path, forged, tmp_path, monkeypatch)) == expected
    assert "RED" not in caplog.text


def test_a_forged_note_does_not_end_a_run_that_writes_a_sheet(tmp_path):
    row = {**TASK, "output": "Kyiv", "notes_on_reading": [{**FORGED, "unit": 1, "step": 2}]}
    run = judge_many(judge_of_texts(), [row], out=tmp_path / "f.xlsx", progress=False)
    assert [each["verdict"]["failures"] for each in run] == [[]]


@for_each("fields", [{"question": "Where?", "answer": "Kyiv"}, {**TASK, "output": "Kyiv"}])
def test_a_row_may_be_a_model_or_a_data_class_with_usual_names(fields):
    prompts = []
    make: Any
    for make in (create_model, make_dataclass):
        kinds: Any = dict.fromkeys(fields, str)
        own = make("Own", **kinds) if make is create_model else make("Own", kinds.items())
        model = FakeChatModel(replies=fitting_reply)
        create_rubric_judge(model, rubric=RUBRIC).invoke(own(**fields))
        prompts += model.prompts
    assert prompts[0] == prompts[1]
    assert "Kyiv" in prompts[0]


def test_notes_are_shown_to_no_model():
    model = FakeChatModel(replies=fitting_reply)
    create_rubric_judge(model, rubric=RUBRIC).invoke(ROWS["two answers"][0])
    assert "not shown" not in json.dumps(model.prompts)


def run_with_tool(outputs):
    own = {"name": "pay", "inputs": {"input": "7"}, "outputs": {"output": "ok"}, "id": "2"}
    beside = {"run_type": "tool", "error": None, "child_runs": [], "dotted_order": "1"}
    tool = SimpleNamespace(**own, **beside)
    inputs = {"question": "Pay it."}
    return {"id": "1", "inputs": inputs, "outputs": outputs, "child_runs": [tool]}


def test_keys_beside_an_answer_are_noted_where_child_runs_used_tools():
    outputs = {"answer": "Paid.", "text": "Not paid.", "trace": ["look", "pay"]}
    run = run_with_tool(outputs)
    feedback: Any = as_evaluator(judge_of_texts())(run, None)
    assert notes(feedback["metadata"]["failures"]) == [
        ("output", "is read from 'answer'; not shown: 'text', 'trace'")
    ]
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    other = {**run, "id": "3", "child_runs": [], "outputs": {"answer": "No."}}
    compared: Any = as_comparative_evaluator(judge)([run, other], {"inputs": run["inputs"]})
    assert "Note: output_a is read from 'answer'; not shown: 'text', 'trace'" in str(compared)


def test_a_note_is_not_a_failure_of_a_run_nor_under_strict():
    [row, _] = COLUMNS["two answers"]
    run = judge_many(judge_of_texts(), [row], progress=False)
    [result] = run
    assert result["verdict"]["failures"]
    assert not run.summary.failures
    leave_with(run.summary, strict=True)  # would exit


@for_each("steps, score", [(["pay"], 1.0), (None, 1.0), (["look", "pay"], None)])
def test_two_lists_of_calls_that_differ_have_no_score(steps, score):
    wanted = {"trajectory": ["pay"], "steps": steps}
    feedback = trajectory_evaluator()(outputs={"steps": ["pay"]}, reference_outputs=wanted)
    assert feedback["score"] == score
    assert score or "several lists of calls, 'trajectory' and 'steps'" in feedback["comment"]


@for_each("value", [{"answer": "x"}, {"answer": "x", "id": 4}, "x"])
def test_an_interrupt_that_is_not_shown_is_noted(value):
    waits = [{"value": "Pay?", "id": "1"}]
    row = plain_row({"input": "q", "output": {"value": value, "interrupts": waits}})
    assert row["output"] == "x"
    assert "'__interrupt__'" in row[NOTES][0]["detail"]


# Texts in a list, and what stands between them where they are shown.
PIECES: list[tuple[list[str], str]] = [
    (["It", " is", " slo", "w.\n", "\n- So", "."], ""),
    (["", "It ", "is ", "slow."], ""),
    (["- one", "- two "], "\n"),
    (["red", " blue", " green"], "\n"),
    (["Paris ", "London"], "\n"),
    (["Paris", "London ", "Rome", "Oslo"], "\n"),
]


@for_each(("parts", "joint"), PIECES)
def test_texts_in_a_list_are_lines_unless_most_are_cut_at_a_space_and_some_in_a_word(parts, joint):
    row = plain_row({"input": "q", "output": parts})
    assert row["output"] == joint.join(parts)
    assert row[NOTES][0]["detail"] == f"is a list of {len(parts)} texts, shown as one"


ASKED = {"role": "user", "content": "Where?"}


@for_each(
    ("better", "found"),
    [
        ([ASKED, {"role": "assistant", "content": "Kyiv"}], []),
        (["Kyiv", "Lviv"], [("chosen", "is a list of 2 texts, shown as one")]),
    ],
)
def test_a_preferred_text_is_noted_where_it_is_several_and_not_for_what_is_shown(better, found):
    row = {"prompt": "Where?", "chosen": better, "rejected": "Oslo", "messages": better[-1:]}
    [result] = judge_many(create_relative_judge(FakeChatModel(replies=fitting_reply)), [row])
    assert notes(result["verdict"]["failures"]) == found


# Values of every type; a word stands in a text that no other field of a row has.
VALUES: list[Any] = [
    *("Speak like WORD.", "WORD", "\n  WORD\nand so on", "请像WORD一样说话吧", "WORD 2026"),
    *(["WORD"], [["a", "WORD"]], {"style": "WORD"}, {"by": [{"how": "WORD"}]}, ("WORD", 1)),
    [{"role": "user", "content": "WORD"}],
    *("2026-WORD", 71346, 0.5134, None, "", [], float("nan")),
]
NAMES = ["system", "persona", "ms", "docs", "steps", "history", "answer", "prompt", "Notes"]


def with_word(value, word):
    if isinstance(value, dict):
        return {name: with_word(part, word) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(with_word(part, word) for part in value)
    return value.replace("WORD", word) if isinstance(value, str) else value


ROW_KINDS: list[Any] = [
    (lambda model: create_rubric_judge(model, rubric=RUBRIC), {"output": "It is Kyiv"}),
    (create_relative_judge, {"output_a": "It is Kyiv", "output_b": "It is Oslo"}),
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=4),
    st.sampled_from(ROW_KINDS),
)
def test_each_field_of_a_row_is_shown_or_named(caplog, drawn, kind):
    own = {name: with_word(value, f"kept{n}") for n, (name, value) in enumerate(drawn.items())}
    model, (create, texts) = FakeChatModel(replies=fitting_reply), kind
    caplog.clear()
    [result] = judge_many(create(model), [{**TASK, **texts, **own}], progress=False)
    told = f"{model.prompts}{result['verdict']['failures']}{caplog.messages}"
    for number, (name, value) in enumerate(own.items()):
        word = str(value) if isinstance(value, float | int) else f"kept{number}"
        assert word in told or repr(name) in told or is_nothing(value), (name, value)


SAYS = {"role": "assistant", "content": "It is so."}
CALL = {"id": "1", "name": "pay"}
PAID = {"type": "tool_result", "tool_use_id": "1", "content": "paid"}


def with_own(own):
    """Messages of which one part has a key of its own, by what that is a part of."""
    blocks = {
        "a text": {"type": "text", "text": "So.", **own},
        "a text of OpenTelemetry": {"type": "text", "content": "So.", **own},
        "a call": {"type": "tool_use", **CALL, "input": {}, **own},
        "a call of Gemini": {"functionCall": {"name": "pay", "args": {}, **own}},
        "a call without arguments": {"type": "tool_call", **CALL, **own},
        "a result": {**PAID, **own},
        "an unknown block": {"type": "widget", **own},
    }
    return {
        **{name: [{**SAYS, "content": [block]}, SAYS] for name, block in blocks.items()},
        "a message": [{**SAYS, **own}],
        "a message with parts": [{"role": "assistant", "parts": [{"text": "So."}], **own}],
        "a content": [{**SAYS, "content": {"city": "Kyiv", **own}}],
        "a message of a tool": [{"role": "tool", "tool_call_id": "1", "content": "paid", **own}],
        "a listed call": [{**SAYS, "tool_calls": [{**CALL, "args": {}, **own}]}],
        "a listed call without arguments": [{**SAYS, "tool_calls": [{**CALL, **own}]}],
        "a listed call with its result": [{**SAYS, "tool_calls": [{**CALL, "result": 1, **own}]}],
    }


class Turn(BaseModel, extra="allow"):
    """A message of some framework."""

    role: str | None = None


HOLDERS: dict[str, Any] = {
    "a list": list,
    "a state": lambda said: {"messages": said},
    "models": lambda said: [Turn(**each) for each in said],
    "a response": lambda said: {"choices": [{"message": said[0]}]},
    "an answer": lambda said: {"answer": said},
}
KEPT: list[Any] = ["WORD of it", ["WORD"], {"a": "WORD"}, [{"b": ["c", "WORD"]}], "WORD\nthen"]


WAYS = product(["own", "ownKey", "output", "notes"], KEPT, ["input", "output"])


@for_each("place, way", zip(product(HOLDERS, with_own({})), cycle(WAYS), strict=False))
def test_what_stands_on_a_part_of_a_message_is_shown_or_named(place, way):
    (holder, part), (name, own, field) = place, way
    said = HOLDERS[holder](with_own({name: own})[part])
    row = plain_row({**TASK, "output": "x", field: said})
    told = f"{readable(row[field])} {[each['detail'] for each in row.get(NOTES, [])]}"
    assert "WORD" in told or f"'{name}'" in told


# Messages with all that their providers write beside what is said.
USAGE = {"input_tokens": 3, "details": {"tier": "standard"}}
FORMATS: dict[str, Any] = {
    "OpenAI": {
        **{"role": "assistant", "content": "So.", "refusal": None, "annotations": []},
        **{"audio": None, "function_call": None, "tool_calls": None, "id": "msg_1"},
    },
    "OpenAI's Responses": {
        **{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"},
        "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}],
    },
    "OpenAI's threads": {
        **{"role": "assistant", "object": "thread.message", "thread_id": "t", "run_id": "r"},
        "content": [{"type": "text", "text": {"value": "So.", "annotations": []}}],
    },
    "Anthropic": {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"},
        **{"stop_reason": "end_turn", "stop_sequence": None, "usage": USAGE},
        "content": [
            {"type": "thinking", "thinking": "I think so.", "signature": "abc"},
            {"type": "text", "text": "So.", "citations": None},
        ],
    },
    "LangChain": AIMessage(
        [{"type": "reasoning", "summary": [{"text": "I think."}]}, {"type": "text", "text": "So."}],
        additional_kwargs={"reasoning_content": "I think so."},
        response_metadata={"finish_reason": "stop", "model_name": "a model", "usage": USAGE},
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        id="run-1",
    ),
    "Ollama": {"role": "assistant", "content": "So.", "thinking": "I think so.", "images": None},
    "OpenTelemetry": {
        **{"role": "assistant", "finish_reason": "stop"},
        "parts": [
            {"type": "reasoning", "content": "I think so."},
            {"type": "text", "content": "So."},
        ],
    },
    "the AI SDK": {
        **{"id": "1", "role": "assistant", "createdAt": "2026-01-01", "metadata": {"a": "b c"}},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "I think so.", "state": "done"},
            {"type": "text", "text": "So.", "state": "done", "providerMetadata": {"a": {"b": "c"}}},
        ],
    },
    "Bedrock": {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "I think so.", "signature": "a"}}},
            {"text": "So."},
            {"cachePoint": {"type": "default"}},
        ],
    },
    "Gemini": {
        "role": "model",
        "parts": [
            {"text": "I think so.", "thought": True},
            {"text": "So.", "thoughtSignature": "abc"},
        ],
    },
    "LlamaIndex": {
        **{"role": "assistant", "additional_kwargs": {"a": ["b"]}},
        "blocks": [{"block_type": "text", "text": "So."}],
    },
    "deepeval": {
        **{"role": "assistant", "content": "So.", "user_id": None, "retrieval_context": None},
        **{"tools_called": None, "additional_metadata": {"a": "b"}},
    },
    "Open WebUI": {
        **{"role": "assistant", "content": "So.", "parentId": "a b", "childrenIds": ["a"]},
        **{"models": ["a"], "provider": "Azure OpenAI", "tags": ["a b"], "author": "Ann Lee"},
    },
}


@for_each("form", FORMATS)
def test_what_providers_write_beside_a_message_is_not_noted(form):
    for said in (FORMATS[form], [FORMATS[form]], {"messages": [FORMATS[form]]}):
        row = plain_row({**TASK, "output": said})
        assert (row["output"], row.get(NOTES, [])) == ("So.", [])


OPEN = "We open at 10."
ON_MESSAGES: list[Any] = [
    *({name: [OPEN]} for name in CONTEXTS if name != "source"),
    {"context": {"citations": [{"content": OPEN}], "intent": "[]"}},
    {"additional_kwargs": {"documents": [{"text": OPEN}]}},
]


@for_each("own", ON_MESSAGES)
def test_documents_on_messages_stand_beside_the_row_for_who_needs_a_source(own):
    said = [{"role": "user", "content": "When?"}, {**SAYS, **own}]
    row = plain_row({"output": said})
    assert (row[OF_OUTPUT], row.get(NOTES, [])) == (OPEN, [])


def test_documents_on_messages_are_the_source_that_a_judge_needs():
    said = [{"role": "user", "content": "When?"}, {**SAYS, "retrieval_context": [OPEN]}]
    judge: Any = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="groundedness")
    assert judge.invoke({"output": said})["verdict"]["failures"] == []
    as_evaluator(judge)(inputs={"question": "When?"}, outputs={"messages": said})
    assert [OPEN in each for each in judge.model.prompts] == [True] * len(judge.model.prompts)


DOCS, OTHERS = ["RETRIEVED one two"], ["SOMETHING else here"]
REPLY = {"answer": "Kyiv", "documents": DOCS}
# Where documents stand in a row, and under which key.
HELD: dict[str, tuple[str, dict[str, Any]]] = {
    "a column": ("documents", {"documents": DOCS}),
    "a task": ("documents", {"input": {"question": "Where?", "documents": DOCS}}),
    "an answer": ("documents", {"output": REPLY}),
    "titled": ("docs", {"output": {"answer": "Kyiv", "docs": [
        {"text": DOCS[0], "metadata": {"title": "On towns", "source": "a.html"}},
        {"text": "and more of it", "metadata": {"title": "On more of them"}},
    ]}}),
    "spelt": ("context", {"output": {"answer": "Kyiv", "context": json.dumps(DOCS)}}),
    "an answer, beside another": ("sources", {
        "output": {"answer": "Kyiv", "documents": OTHERS, "sources": DOCS}
    }),
    "an answer, beside a column": ("documents", {"source": OTHERS[0], "output": REPLY}),
    "an answer, and a column": ("documents", {"source": DOCS[0], "output": REPLY}),
    "a message": ("retrieval_context", {
        "output": [TALK[0], {**TALK[1], "retrieval_context": DOCS}]
    }),
    "a message of LangChain": ("documents", {
        "output": [HumanMessage("Where?"), AIMessage("Kyiv", additional_kwargs={"documents": DOCS})]
    }),
    "a reference": ("context", {
        "source": OTHERS[0], "expected": {"answer": "Lviv", "context": DOCS}
    }),
}  # fmt: skip
# Where they would be the source of a judge that needs one.
AS_SOURCE = ("an answer", "titled", "spelt", "a message", "a message of LangChain")
OF_SOURCES: dict[str, Any] = {
    "its own words": lambda model: create_rubric_judge(model, rubric=RUBRIC),
    "the last turn": lambda model: create_rubric_judge(model, rubric=RUBRIC, last_turn=True),
    "a source": lambda model: create_rubric_judge(model, rubric="groundedness"),
    "no source": lambda model: create_rubric_judge(model, rubric="helpfulness"),
    "a jury": lambda model: create_jury(
        [create_rubric_judge(model, rubric="groundedness", name=name) for name in "ab"]
    ),
    "pairs": create_relative_judge,
}


def verdict_by(path, judge, row, is_pair):
    """The failures of a judgment, of a row or of its parts as an evaluator gets them."""
    row = {**TASK, "output": "Kyiv", **row}
    if path == "evaluator":
        work, known, task = row.pop("output"), row.pop("expected", None), row.pop("input")
        inputs = {**(task if isinstance(task, dict) else {"question": task}), **row}
        outputs = {"messages": work} if isinstance(work, list) else work
        outputs = outputs if isinstance(outputs, dict) else {"answer": outputs}
        known = known or ({"answer": "Oslo"} if is_pair else None)
        told = as_evaluator(judge)(inputs=inputs, outputs=outputs, reference_outputs=known)
        return told["metadata"]["failures"]
    if is_pair:
        row |= {"output_a": row.pop("output"), "output_b": "Oslo"}
        row |= {"reference": row.pop("expected")} if "expected" in row else {}
    if path == "invoke":
        return judge.invoke(row)["verdict"]["failures"]
    [result] = judge_many(judge, [row], progress=False)
    return result["verdict"]["failures"]


@for_each("place, path, kind", product(HELD, ["invoke", "many", "evaluator"], OF_SOURCES))
def test_documents_are_shown_or_named_once(place, path, kind):
    name, row = HELD[place]
    model = FakeChatModel(replies=fitting_reply)
    found = verdict_by(path, OF_SOURCES[kind](model), row, kind == "pairs")
    if not model.prompts:  # the task is no source of a row
        assert (place, kind in ("a source", "a jury")) == ("a task", True)
    is_shown = DOCS[0] in "".join(model.prompts)
    told = [each["detail"] for each in found]
    named = [each for each in told if "documents beside it" in each and place in AS_SOURCE]
    named += [each for each in told if repr(name) in each.partition("not shown: ")[2]]
    # A ready rubric says what it needs: it is about no documents beside an answer.
    is_beside = place in AS_SOURCE and kind == "no source"
    assert len(named) == (not is_shown and not is_beside)
    is_source = kind in ("a source", "a jury") and place in ("an answer", "titled", "a message")
    assert is_shown or not is_source


ASKS = {"question": "Write to them.", "recipient": "Anna", "n": 3}
# What stands beside a task and says nothing of it, is shown, or is noted with the verdict.
SILENT: dict[str, Any] = {
    **dict.fromkeys(["id", "uuid", "user_id", "orderId", "model", "run_id", "thread_ids"], "a7"),
    **dict.fromkeys(["label", "labels", "group", "category", "family", "metadata"], "a7"),
    **{"none": None, "blank": " ", "empty": [], "sentence": "It is for Anna.", "language": "fr"},
    **{"context": "Anna", "list": ["Write to them."]},
}


def by_call(evaluator):
    evaluator(inputs=ASKS, outputs={"answer": "Dear"}, reference_outputs={"answer": "Hello"})


def by_run(evaluator):
    run = {"id": "1", "inputs": ASKS, "outputs": {"answer": "Dear"}}
    evaluator(run, {"inputs": ASKS, "outputs": {"answer": "Hello"}})


def by_comparison(evaluator):
    runs = [{"id": n, "inputs": ASKS, "outputs": {"answer": "Dear"}} for n in "12"]
    evaluator(runs, {"inputs": ASKS})


def judge_of_pairs():
    return create_relative_judge(FakeChatModel(replies=fitting_reply))


BY: dict[str, tuple[Any, Any, Any]] = {
    "a call": (as_evaluator, judge_of_texts, by_call),
    "a run": (as_evaluator, judge_of_texts, by_run),
    "a pair": (as_evaluator, judge_of_pairs, by_call),
    "runs": (as_comparative_evaluator, judge_of_pairs, by_comparison),
}


@for_each("path", BY)
def test_words_beside_a_task_are_named_once_by_each_evaluator(path, caplog):
    made, judge, use = BY[path]
    caplog.clear()
    for evaluator in (made(judge()), made(judge())):
        use(evaluator)
        use(evaluator)
    told = [each.partition(";")[0] for each in caplog.messages]
    assert told == ["Inputs not shown to the judge: 'recipient', 'n'"] * 2


@for_each("name", SILENT)
def test_nothing_is_said_of_what_no_judge_has_to_see_beside_a_task(name, caplog):
    caplog.clear()
    inputs = {"question": "Write to them.", name: SILENT[name]}
    as_evaluator(judge_of_texts())(inputs=inputs, outputs={"answer": "Dear"})
    assert caplog.messages == []


@for_each("more", [{"input": "question"}, {"input": lambda inputs: f"{inputs}"}])
def test_nothing_is_said_beside_a_task_whose_place_is_named(more, caplog):
    caplog.clear()
    by_call(as_evaluator(judge_of_texts(), **more))
    prompts = {"evaluate": "{task} {response} {criteria} {recipient} {n}"}
    model = FakeChatModel(replies=fitting_reply)
    by_call(as_evaluator(create_rubric_judge(model, rubric=RUBRIC, prompts=prompts)))
    assert caplog.messages == []


# How a tool may write the documents that it found.
WRITTEN: dict[str, Any] = {
    **{"as text": "\n".join, "in JSON": json.dumps, "in Python": str},
    "in JSON for people": lambda found: json.dumps(found, ensure_ascii=False),
}


@for_each("form, number", product(WRITTEN, range(3)))
def test_documents_beside_an_answer_are_noted_unless_steps_show_all_of_them(form, number):
    found = ['The "Kyiv café"', "[2] and another one"]
    said: list[Any] = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "b", "args": {}}]},
        {"role": "tool", "tool_call_id": "a", "content": WRITTEN[form](found[:number])},
        {"role": "assistant", "content": "Kyiv"},
    ]
    judge = OF_SOURCES["its own words"](FakeChatModel(replies=fitting_reply))
    notes = judge.invoke({"output": {"messages": said, "documents": found}})["verdict"]["failures"]
    told = [each for each in notes if "documents beside it" in each["detail"]]
    assert len(told) == (number < len(found))


def test_documents_beside_an_answer_that_an_own_prompt_names_are_not_noted():
    prompts = {"evaluate": "{task} {response} {criteria} {documents}"}
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric=RUBRIC, prompts=prompts)
    told = as_evaluator(judge)(inputs={"question": "Where?"}, outputs=REPLY)
    assert (DOCS[0] in model.prompts[0], "Note" in told["comment"]) == (True, False)


def test_why_a_call_failed_is_shown_and_not_noted():
    call = {"name": "a", "args": {}, "error": "out of time", "result": None}
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    row = plain_row({**TASK, "output": [called, {"role": "assistant", "content": "So."}]})
    assert row.get(NOTES, []) == []


def test_calls_beside_those_that_are_shown_are_noted():
    calls = {"tool_calls": [{"name": "a", "args": {}}]}
    others = {"tools_called": [{"name": "b", "args": {}, "result": "other words"}]}
    for more, noted in (({}, []), (others, ["tools_called"])):
        notes = plain_row({**TASK, "output": {"answer": "So.", **calls, **more}}).get(NOTES, [])
        assert [name for each in notes for name in others if name in each["detail"]] == noted


@for_each(
    ("source", "is_name"),
    [
        *(
            (each, True)
            for each in ("evol_instruct", "sharegpt", ["anthropic-hh"], "mmlu-pro-math")
        ),
        *((each, False) for each in ("A map.", "Kyiv", "42", ["A map.", "flan"], None)),
    ],
)
def test_a_source_that_may_be_a_name_is_noted_on_every_path(source, is_name):
    row = {**TASK, "output": "Kyiv", "source": source}
    for judged in (judge_of_texts().invoke(row), *judge_many(judge_of_texts(), [row])):
        units = [each["unit"] for each in judged["verdict"]["failures"]]
        assert units == ["source"] * is_name


def talk(*said):
    return [{"role": ("user", "assistant")[n % 2], "content": each} for n, each in enumerate(said)]


@for_each(
    "row",
    [
        {"conversation_a": talk("p", "a", "q", "b"), "conversation_b": talk("p", "c", "q", "d")},
        {"input": talk("p", "a", "q"), "output_a": "b", "output_b": "d"},
        {"input": talk("p", "a", "q"), "output": "b"},
        {"input": "p", "output": talk("p", "a", "q", "b")[1:]},
        {"messages": talk("p", "a", "q", "b")},
    ],
)
def test_a_turn_that_is_not_the_last_is_noted(row):
    kind = "item" if {"output", "messages"} & row.keys() else "pair"
    told = [
        notes(plain_row(named_row({**row, "turn": turn}, kind)).get(NOTES, []))
        for turn in (1, "1", 0, "0", 2, None, "last", [1])
    ]
    note = ("turn", "is 1, and the conversation goes on to turn 2")
    assert [note in each for each in told] == [True] * 2 + [False] * 6
    assert not any(unit == "turn" for each in told[2:] for unit, _ in each)
