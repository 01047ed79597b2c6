"""Keys of messages, read alike in the spellings and the places that libraries have for them."""

import json
import re
from itertools import product
from typing import Any

import pytest
from langchain_core.load import load
from langchain_core.messages import convert_to_messages, messages_from_dict

from langchain_judges.integrations import trajectory_evaluator
from langchain_judges.rows.checks import KNOWN_NAMES
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.texts import readable
from langchain_judges.verdict import NOTES
from tests.cases import for_each

VALUES: list[Any] = [
    "WORD of it",
    ["WORD of it"],
    {"name": "pay", "arguments": {"q": "WORD of it"}},
    [{"id": "1", "name": "pay", "args": {"q": "WORD of it"}}],
    [{"type": "text", "text": "WORD of it"}],
]
NAMES = [*KNOWN_NAMES["of_message"], *KNOWN_NAMES["also_of_message"]]


def camel_case(name):
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


SAY = {"role": "assistant", "content": "Done."}


def shown_of(*messages):
    """What is shown of messages after a task, and what is noted of them."""
    row = plain_row({"input": "A task.", "output": [*messages]})
    return readable(row["output"]), row.get(NOTES, [])


# What is about a message, or is a model's thought; the keys of its calls, blocks and results.
ABOUT = re.findall(
    r"\w+",
    """
    role name id type caller index state status date time timestamp created created_at
    updated_at title description origin attributes container agent author avatar country
    display_name header language provider sender tags username model models raw
    status_history system_fingerprint children_ids parent_id request_id run_id trace_id from
    additional_kwargs response_metadata usage_metadata usage metadata meta
    additional_metadata message_metadata provider_metadata provider_options
    provider_specific_fields extras model_config call_provider_metadata provider_executed
    logprobs finish_reason stop_reason stop_details safety_ratings context_management
    cache_control encrypted_content signature thought_signature reasoning reasoning_content
    reasoning_details thinking thinking_blocks thought tool_call_id tool_use_id
    tool_call_chunks tool tool_name tool_type call_id custom function artifact approval
    approval_request_id dynamic preliminary incomplete_details generation_info
    """,
)
# Where only data of its own form are read.
FORMS: dict[str, Any] = {
    **dict.fromkeys(["tool_calls", "tools_called", "invalid_tool_calls"], VALUES[3:4]),
    "tool_invocations": [[{**VALUES[3][0], "state": "call", "tool_call_id": "1"}]],
    "function_call": VALUES[2:3],
    "images": [["https://example.org/WORD.png"]],
    "audio": [{"transcript": "WORD of it"}],
}
SAID = [name for name in NAMES if camel_case(name) not in [*map(camel_case, ABOUT)]]


@for_each("name", SAID)
@for_each("content", ["It is so.", ""])
def test_what_stands_under_a_key_of_a_message_is_shown_or_named(name, content):
    for spelt, value in product({name, camel_case(name)}, FORMS.get(name, VALUES)):
        if name != "audio" or not content:  # it is what is said where nothing is written
            text, notes = shown_of({"role": "assistant", "content": content, spelt: value}, SAY)
            assert re.search("WORD|image [0-9a-f]", text) or f"'{name}'" in str(notes), value


@for_each("name", ["parts", "items", "blocks", "text", "value", "refusal"])
def test_what_is_said_twice_in_a_message_is_noted_only_where_it_differs(name):
    for value in ("It is so.", [{"type": "text", "text": "It is so."}]):
        said = {"role": "assistant", "content": "It is so.", name: value}
        assert shown_of(said) == ("It is so.", [])


def test_a_call_that_is_the_value_of_a_message_is_not_noted():
    call = {"from": "function_call", "value": '{"name": "pay", "arguments": {"sum": 9}}'}
    said = [{"from": "human", "value": "Pay."}, call, {"from": "gpt", "value": "It is done."}]
    text, notes = shown_of(*said)
    assert ("[call of pay]" in text, notes) == (True, [])


@for_each("name", [name for name in NAMES if "_" in name])
def test_a_key_of_a_message_is_read_alike_as_python_and_as_javascript_write_it(name):
    for value in VALUES:
        said, other = (
            shown_of({"role": "assistant", "content": "It is so.", spelt: value})
            for spelt in (name, camel_case(name))
        )
        assert said == other, value


@for_each("name", [*KNOWN_NAMES["call_arguments"], "tool_use_id", "tool_call_id", "tool_name"])
def test_a_key_of_a_call_is_read_alike_as_python_and_as_javascript_write_it(name):
    def called(spelt):
        call = {"id": "1", "name": "pay", spelt: {"sum": 9} if name not in NAMES else "2"}
        block = {"type": "tool_call", **call}
        ways = ({"tool_calls": [call]}, {"toolCalls": [call]}, {"content": [block]})
        return [shown_of({"role": "assistant", "content": "", **way}) for way in ways]

    assert called(name) == called(camel_case(name))


def test_a_key_that_no_library_spells_so_is_noted():
    _, notes = shown_of({"role": "assistant", "content": "So.", "Tool-Calls": VALUES[3]})
    assert [each["detail"] for each in notes] == [
        "has messages with keys that are not shown: 'Tool-Calls'"
    ]


def of_openai(arguments: str, id: str) -> Any:
    return {"id": id, "type": "function", "function": {"name": "pay", "arguments": arguments}}


GOOD, BAD = of_openai('{"sum": 9}', "1"), of_openai('{"sum": ', "2")
CALL = {"name": "pay", "args": {"sum": 9}, "id": "1", "type": "tool_call"}
OLD = {"name": "pay", "args": '{"sum": ', "id": "2", "error": None, "type": "invalid_tool_call"}
# How messages of LangChain hold calls and results, since the first of its versions.
HELD: dict[str, dict[str, Any]] = {
    "calls": {"type": "ai", "tool_calls": [CALL]},
    "apart": {"type": "ai", "additional_kwargs": {"tool_calls": [GOOD]}},
    "apart, and empty": {
        **{"type": "ai", "tool_calls": [], "invalid_tool_calls": []},
        "additional_kwargs": {"tool_calls": [GOOD]},
    },
    "apart, one invalid": {"type": "ai", "additional_kwargs": {"tool_calls": [BAD, GOOD]}},
    "both": {"type": "ai", "tool_calls": [CALL], "additional_kwargs": {"tool_calls": [GOOD]}},
    "both, invalid": {
        **{"type": "ai", "invalid_tool_calls": [OLD]},
        "additional_kwargs": {"tool_calls": [BAD]},
    },
    "OpenAI's": {"type": "ai", "tool_calls": [GOOD, of_openai("{}", "3")]},
    "a result": {"type": "tool", "tool_call_id": "1", "status": "success"},
    "an error": {"type": "tool", "tool_call_id": "1", "status": "error"},
}
CLASSES = {"ai": "AIMessage", "tool": "ToolMessage"}


def forms_of(fields):
    """A message as each dictionary that LangChain reads, beside LangChain's reading."""
    kind, own = fields["type"], {name: fields[name] for name in fields if name != "type"}
    role = {"ai": "assistant", "tool": "tool"}[kind]
    path = ["langchain", "schema", "messages", CLASSES[kind]]
    built = {"lc": 1, "type": "constructor", "id": path, "kwargs": own}
    yield fields, convert_to_messages
    yield {"role": role, **own}, convert_to_messages
    yield built, convert_to_messages
    if GOOD not in own.get("tool_calls", ()):  # which its classes do not take
        yield {"type": kind, "data": own}, messages_from_dict
        yield built, loaded
        if kind == "ai":
            yield {"type": "AIMessageChunk", "data": own}, messages_from_dict


def loaded(values):
    return load(values, allowed_objects="messages")


def calls_and_result(message):
    calls = [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]
    told = [[call[name] for name in ("name", "args", "id")] for call in calls]
    is_result = message.type == "tool"
    result = [message.content, message.tool_call_id, message.status] if is_result else []
    return sorted(told, key=str), result


def own_reading(message):
    told = [[call[n] for n in ("name", "args", "id")] for call in message.get("tool_calls", ())]
    result = [message["content"], message.get("tool_call_id"), message.get("status", "success")]
    return sorted(told, key=str), result if message["role"] == "tool" else []


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
@for_each("held", HELD)
def test_calls_and_results_are_those_that_langchain_reads_in_every_form(held):
    for form, read in forms_of({"content": "Said.", **HELD[held]}):
        [theirs] = read([json.loads(json.dumps(form))])
        assert [own_reading(each) for each in messages_in(form)] == [calls_and_result(theirs)]


BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "content": "Let me see."},
    {"type": "text", "content": "I pay."},
    {"type": "tool_call", "tool_name": "pay", "tool_kwargs": {"sum": 9}, "tool_call_id": "1"},
    {"type": "tool-call", "tool_name": "pay", "args": '{"sum": 8}', "tool_call_id": "2"},
    {"type": "tool_result", "tool_call_id": "1", "content": "paid"},
    {"type": "image", "url": "https://example.org/a.png"},
    {"type": "cache", "cache_control": {"type": "ephemeral"}},
]


@for_each("key", KNOWN_NAMES["kinds"])
def test_the_type_of_a_block_is_read_under_any_of_its_names(key):
    blocks = [{key if n == "type" else n: block[n] for n in block} for block in BLOCKS]
    if key in ("content_type", "kind"):  # words of any data, of which those are not left out
        blocks = blocks[1:-1]
    text, notes = shown_of({"role": "assistant", "blocks": blocks})
    assert re.sub("[0-9a-f]{10}", "…", text).split("\n\n") == [
        "[assistant]\nI pay.",
        '[call 1 of pay]\n{"sum": 9}',
        '[call 2 of pay]\n{"sum": 8}',
        "[result 1 of pay]\npaid",
        "[final answer]\n[image …]",
    ]
    assert notes == []


OF_DATA = ["application/pdf", "widget", *KNOWN_NAMES["keyed"], *KNOWN_NAMES["media"]]


@for_each("key", ["kind", "content_type"])
@for_each("kind", [*OF_DATA, "text", *KNOWN_NAMES["silent"]])
@for_each("own", [{"of": "it"}, {"name": "it"}, {"prompt": "it"}, {"value": 3}])
def test_what_names_no_type_of_a_block_is_left_as_it_is(key, kind, own):
    block = {key: kind, **own}
    text, notes = shown_of({"role": "assistant", "content": [block]})
    told = f"has messages with data shown as JSON: {key!r}"
    assert (text, [each["detail"] for each in notes]) == (json.dumps(block), [told])
    returned = {"role": "tool", "tool_call_id": "1", "content": [block]}
    text, _ = shown_of({"role": "assistant", "content": "", "tool_calls": [CALL]}, returned, SAY)
    assert f"[result of pay]\n{json.dumps(block)}\n" in text


def test_a_result_of_llamaindex_is_of_its_call():
    call = {"block_type": "tool_call", "tool_call_id": "1", "tool_name": "pay", "tool_kwargs": {}}
    other = {**call, "tool_call_id": "2", "tool_name": "look"}
    kept = {"additional_kwargs": {"tool_call_id": "1"}}
    text, _ = shown_of(
        {"role": "assistant", "blocks": [call, other]},
        {"role": "tool", "blocks": [{"block_type": "text", "text": "paid"}], **kept},
    )
    assert "[result 1 of pay]\npaid" in text


@for_each("key", ["additional_kwargs", "additionalKwargs"])
def test_trajectories_are_compared_by_calls_that_a_library_keeps_apart(key):
    def called(number):
        call = of_openai(json.dumps({"sum": number}), "1")
        return [{"type": "ai", "content": "So.", key: {"tool_calls": [call]}}]

    compare: Any = trajectory_evaluator("same")
    assert compare(outputs=called(1), reference_outputs=called(1))["score"] == 1
    assert compare(outputs=called(1), reference_outputs=called(2))["score"] == 0
