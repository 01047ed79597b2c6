import json
import re
from typing import Any

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import json_schema, read
from langchain_judges.methods.replies import Choice, scores_shape
from langchain_judges.methods.rubric.replies import label_shape
from tests.cases import for_each

SCORES = scores_shape((1, 5), explain_first=False)
GOOD = '{"score_1": 4, "score_2": 2, "explanation": "clear"}'
VALUE = {"score_1": 4, "score_2": 2, "explanation": "clear"}


def reading(text):
    return read(AIMessage(text), SCORES, None, None)


@for_each(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are: {GOOD}",
        f"Sure! Here is the JSON:\n```json\n{GOOD}\n```",
        GOOD.replace("4", "4.0"),
        f'<think>{{"score_1": 1, "score_2": 1, "explanation": ""}}</think>{GOOD}',
    ],
)
def test_a_usable_reply_is_read_in_whatever_wrapping(text):
    value, problem = reading(text)
    assert problem is None
    assert value == VALUE


@for_each(
    ("text", "reason", "detail"),
    [
        ("", "empty", "empty"),
        ("I like the first.", "unparsable", "I like the first"),
        ('{"score_1": 4', "unparsable", "not the JSON object"),
        ('{"score_1": 4}', "unparsable", "score_2: Field required"),
        (GOOD.replace("4", "9"), "invalid_label", "score_1: .* less than or equal to 5"),
        (GOOD.replace("4", "3.5"), "invalid_label", "score_1"),
        (GOOD + GOOD.replace("4", "5"), "unparsable", "more stands behind"),
        (GOOD.replace("4", "true"), "unparsable", "not true or false"),
        (GOOD.replace("{", '{"score_1": 5, '), "unparsable", "given twice"),
        ("[" * 100_000, "unparsable", "not the JSON"),
    ],
)
def test_an_unusable_reply_is_told_apart_from_a_score(text, reason, detail):
    value, problem = reading(text)
    assert value is None
    assert problem.reason == reason
    assert re.search(detail, problem.detail)


@for_each("opening", ["<think>", ""])
def test_thoughts_that_may_quote_a_judged_text_say_what_stands_in_the_way(opening):
    said = AIMessage(f"{opening}Clear.</think>{GOOD}")
    assert read(said, SCORES, None, None, ["2 + 2 is <b>4</b>."]) == (VALUE, None)
    value, problem = read(said, SCORES, None, None, ["<think>2 + 2</think>4"])
    assert (value, problem.reason) == (None, "unparsable")
    assert "thoughts that may quote a judged text" in problem.detail
    _, problem = read(AIMessage("<think>Clear."), SCORES, None, None, ["<think>2 + 2</think>4"])
    assert "thoughts without an answer" in problem.detail


OTHER = GOOD.replace("4", "1")
ANSWER = {"type": "text", "text": GOOD}
THOUGHT_BLOCKS = {
    "Anthropic": {"type": "thinking", "thinking": OTHER, "signature": "s"},
    "Anthropic, redacted": {"type": "redacted_thinking", "data": "x"},
    "Bedrock": {"type": "reasoning_content", "reasoning_content": {"text": OTHER}},
    "Mistral": {"type": "thinking", "thinking": [{"type": "text", "text": OTHER}]},
    "OpenAI": {"type": "reasoning", "summary": [{"type": "summary_text", "text": OTHER}]},
    "LangChain": {"type": "reasoning", "reasoning": OTHER},
    "other clients": {"type": "reasoning", "text": OTHER},
    "a search": {"type": "web_search_call", "id": "1", "status": "completed"},
    "a tool of a server": {"type": "server_tool_call", "name": "s", "args": {}, "id": "1"},
    "its result": {"type": "web_search_tool_result", "content": [], "tool_use_id": "1"},
    "code": {"type": "executable_code", "executable_code": "print(1)"},
    "what it prints": {"type": "code_execution_result", "code_execution_result": OTHER},
    "a signature": {"type": "function_call_signature", "signature": "s"},
}


@for_each("block", THOUGHT_BLOCKS.values(), ids=THOUGHT_BLOCKS)
def test_blocks_that_are_no_answer_change_none_and_are_none(block):
    for answer in (ANSWER, GOOD, {**ANSWER, "annotations": [], "id": "m"}):
        assert read(AIMessage([block, answer]), SCORES, None, None) == (VALUE, None)
    assert read(AIMessage([block]), SCORES, None, None)[0] is None


CALL = {"name": "T", "id": "1"}
ANNOUNCED = ["I'll judge it.", "The reply is curt, so I record that.", "- First.\n- Then <b>."]


@for_each("words", ANNOUNCED)
def test_words_before_a_call_are_a_preamble_where_none_was_forced(words):
    call = {**CALL, "args": VALUE}
    thought: Any = THOUGHT_BLOCKS["Anthropic"]
    said: Any = {"type": "text", "text": words}
    made: Any = {"type": "tool_use", "input": VALUE, **CALL}
    for content in ([thought, said, made], [said, made], [said, said, made]):
        message = AIMessage(content, tool_calls=[call])
        assert read(message, SCORES, None, "T", is_free=True) == (VALUE, None)
        assert read(message, SCORES, None, "T")[0] is None
    # Its own label may stand there too, and no other.
    shape = label_shape((0, 1), "first")
    data = {"explanation": "", "label": "1"}
    for label, read_as in (("1", data), ("0", None), ("１", data), ("０", None)):
        named: Any = [{**said, "text": f"{words} Label: {label}"}, {**made, "input": data}]
        message = AIMessage(named, tool_calls=[{**CALL, "args": data}])
        assert read(message, shape, None, "T", is_free=True)[0] == read_as


@for_each("value", [1, 1.5, "one", None, ["1"]])
def test_what_stands_in_place_of_a_label_is_named_with_its_type(value):
    reply = AIMessage(json.dumps({"explanation": "", "preference": value}))
    _, problem = read(reply, Choice, None, None)
    assert problem.detail.endswith(f", got {value!r}")


OTHER_BLOCKS = {
    "Anthropic": {"type": "tool_use", "input": VALUE, **CALL},
    "OpenAI": {"type": "function_call", "arguments": GOOD, **CALL},
    "OpenAI, words": {"type": "output_text", "text": OTHER},
    "OpenAI, refusal": {"type": "refusal", "refusal": "No."},
    "Bedrock": {"text": OTHER},
    "LangChain": {"type": "tool_call", "args": VALUE, **CALL},
    "LangChain, a text": {"type": "text-plain", "text": OTHER},
    "a second text": {"type": "text", "text": OTHER},
    "words of whatever type": {"type": "correction", "text": "No, the other one."},
}


@for_each("block", OTHER_BLOCKS.values(), ids=OTHER_BLOCKS)
def test_a_block_with_words_or_a_call_beside_an_answer_makes_it_none(block):
    for content in ([ANSWER, block], [block, ANSWER], [GOOD, block]):
        assert read(AIMessage(content), SCORES, None, "T")[0] is None


def test_the_schema_is_flat_closed_and_in_the_order_of_the_paper():
    schema = json_schema(SCORES)
    assert list(schema["properties"]) == ["score_1", "score_2", "explanation"]
    assert schema["required"] == ["score_1", "score_2", "explanation"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["score_1"] == {"type": "integer", "minimum": 1, "maximum": 5}
