"""What a `ChatOpenAI` sends and returns when its client's own types are left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_judges.asking.models.clients import with_plain_json
from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, reply
from tests.cases import for_each

FORM = {"type": "json_schema", "json_schema": {"name": "S", "schema": {"type": "object"}}}


def both(answer: ServerReply, **settings: Any) -> tuple[list[AIMessage], list[ServerCall]]:
    """Return the replies and requests of a model as it is, and with plain JSON."""
    with FakeModelServer([answer, answer]) as server:
        model = server.chat(max_retries=0, **settings)
        replies = [
            each.invoke("Why?", response_format=FORM)
            for each in (model, with_plain_json(model))
        ]
    return replies, server.calls


def test_the_request_is_the_one_that_the_client_would_have_sent() -> None:
    settings = {"extra_body": {"top_k": 3}, "temperature": 0, "seed": 7}
    _, (own, plain) = both(reply("{}"), **settings)
    assert {**plain.body, "stream": False} == own.body  # false is every server's default
    assert plain.body["top_k"] == 3


@for_each(
    "answer",
    [
        reply('{"a": 1}'),
        reply(None, refusal="I cannot."),
        reply(
            None,
            tool_calls=[
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        ),
    ],
    ids=["text", "refusal", "tool"],
)
def test_the_reply_says_what_the_client_would_have_read(answer: ServerReply) -> None:
    (own, plain), _ = both(answer)
    assert plain.content == own.content
    assert plain.additional_kwargs.get("refusal") == own.additional_kwargs.get("refusal")
    assert plain.tool_calls == own.tool_calls
    assert plain.usage_metadata == own.usage_metadata
    assert plain.response_metadata["finish_reason"] == own.response_metadata["finish_reason"]


def test_a_reply_that_was_cut_is_returned_and_not_raised() -> None:
    with FakeModelServer([reply('{"a', finish="length")]) as server:
        message = with_plain_json(server.chat()).invoke("Why?", response_format=FORM)
    assert message.response_metadata["finish_reason"] == "length"


def test_log_probabilities_come_without_what_says_nothing_more() -> None:
    whole = {"token": "é", "bytes": [195, 169], "logprob": -0.1, "top_logprobs": []}
    half = {"token": "\ufffd", "bytes": [195], "logprob": -0.2}  # of a split character
    answer = reply("é")
    answer.payload["choices"][0]["logprobs"] = {"content": [{**half, "top_logprobs": [whole]}]}
    (_, plain), _ = both(answer)
    slim = {"token": "é", "logprob": -0.1}
    tokens = plain.response_metadata["logprobs"]["content"]
    assert tokens == [{**half, "top_logprobs": [slim]}]


async def test_an_event_loop_gets_the_same() -> None:
    with FakeModelServer([reply('{"a": 1}')]) as server:
        message = await with_plain_json(server.chat()).ainvoke("Why?", response_format=FORM)
    assert json.loads(message.text) == {"a": 1}


def test_a_page_in_place_of_json_fails_as_it_does_with_the_client() -> None:
    page = ServerReply(body=b"<html>", headers={"content-type": "text/html"})
    with (
        FakeModelServer([page]) as server,
        pytest.raises(ValueError, match="Unexpected response"),
    ):
        with_plain_json(server.chat(max_retries=0)).invoke("Why?", response_format=FORM)


def test_a_class_of_another_package_keeps_its_client() -> None:
    with FakeModelServer([]) as server:
        model = server.chat()
    other = type("Other", (type(model),), {"__module__": "elsewhere"})
    own = other(model="m", api_key="none", base_url="http://127.0.0.1:9/v1")
    assert with_plain_json(own) is own
