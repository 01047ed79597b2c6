"""How a reply ended, as each client says it: what was cut, stopped or broke off is no verdict."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from pydantic import SecretStr

from langchain_judges import create_rubric_judge
from langchain_judges.asking.reading import read
from langchain_judges.methods.replies import scores_shape
from langchain_judges.rows.responses import ENDS
from tests.cases import for_each
from tests.fakes import FakeChatModel, FakeToolModel
from tests.loopback import Handler, listening
from tests.test_adapter import asked

SCORES = scores_shape((1, 10), explain_first=True)
VALUE = {"explanation": "clear", "score_1": 7, "score_2": 10}
GOOD = json.dumps(VALUE)
# A parser that completes it reads another score.
CUT = GOOD.removesuffix("0}")
COMPLETED = {**VALUE, "score_2": 1}

# What else each client's messages say, where how they ended stands, and how: whole, cut, stopped.
CLIENTS: dict[str, tuple[dict[str, Any], str, tuple[str, str, str]]] = {
    "anthropic": ({"model_name": "m"}, "stop_reason", ("tool_use", "max_tokens", "refusal")),
    "bedrock_converse": (
        {"ResponseMetadata": {"HTTPStatusCode": 200}, "metrics": {"latencyMs": [5]}},
        *("stopReason", ("end_turn", "max_tokens", "guardrail_intervened")),
    ),
    "google_genai": ({"safety_ratings": []}, "finish_reason", ("STOP", "MAX_TOKENS", "SAFETY")),
    "bedrock": ({"stop_reason": None}, "stop_reason", ("stop", "length", "content_filtered")),
    "mistralai": ({"logprobs": None}, "finish_reason", ("tool_calls", "length", "content_filter")),
    "openrouter": (
        {"object": "chat.completion", "native_finish_reason": "STOP"},
        *("finish_reason", ("stop", "length", "content_filter")),
    ),
    "xai": ({}, "finish_reason", ("stop", "REASON_MAX_LEN", "content_filter")),
    "openai": ({"logprobs": None}, "finish_reason", ("stop", "length", "content_filter")),
    "openai, Responses": ({}, "status", ("completed", "incomplete", "failed")),
    "ollama": ({"done": True}, "done_reason", ("stop", "length", "load")),
    "": ({"token_count": {}}, "finish_reason", ("COMPLETE", "MAX_TOKENS", "ERROR_TOXIC")),  # Cohere
}
SAY_SO = ("anthropic", "bedrock_converse", "google_genai")


def message(client, end, text="", **call):
    beside, key, _ = CLIENTS[client]
    provider = {"model_provider": client.partition(",")[0]} if client else {}
    meta = {**beside, **provider, **({key: end} if end else {})}
    return AIMessage(text, response_metadata=meta, **call)


def call(args, written=None):
    raw = {"tool_calls": [{"function": {"name": "T", "arguments": written}}]} if written else {}
    return {"tool_calls": [{"name": "T", "args": args, "id": "1"}], "additional_kwargs": raw}


def reading(reply):
    data, problem = read(reply, SCORES, None, "T")
    return data or (problem and problem.reason)


@for_each("client", CLIENTS)
def test_every_client_says_in_its_words_that_a_reply_is_whole_cut_or_stopped(client):
    whole, limit, stopped = CLIENTS[client][2]
    for said in ({"text": GOOD}, call(VALUE), call(VALUE, GOOD)):
        assert reading(message(client, whole, **said)) == VALUE
    for said in ({"text": GOOD}, {"text": CUT}, {}, call(VALUE), call(COMPLETED, CUT)):
        assert reading(message(client, limit, **said)) == "truncated"
        assert isinstance(reading(message(client, stopped, **said)), str)
    assert reading(message(client, whole, **call(COMPLETED, CUT))) == "unparsable"


@for_each("client", CLIENTS)
def test_a_reply_without_an_end_counts_where_it_shows_by_itself_that_it_is_whole(client):
    broke_off = "truncated" if client in SAY_SO else "unparsable"
    assert reading(message(client, None, text=GOOD)) == VALUE
    assert reading(message(client, None, **call(VALUE, GOOD))) == VALUE
    assert reading(message(client, None, text=CUT)) == broke_off
    assert reading(message(client, None, **call(COMPLETED, CUT))) == broke_off
    # Read by the client: of a server that never says how a reply ended it is all there is.
    assert reading(message(client, None, **call(VALUE))) == (
        "truncated" if client in SAY_SO else VALUE
    )
    assert reading(message(client, None)) == "empty"


@for_each("client", CLIENTS)
def test_a_reply_without_an_end_is_a_verdict_as_a_line_and_asked_again_in_prose(client):
    rated = json.dumps({"explanation": "It thanks.", "label": "1"})
    for texts in (["Label: 1"], [f"It thanks, so: {rated}", rated], [f"{rated}\nDone.", rated]):
        model = FakeChatModel(replies=[message(client, None, text=text) for text in texts])
        judge = create_rubric_judge(model, rubric="Polite?")
        verdict = judge.invoke({"input": "Hello.", "output": "Hi."})["verdict"]
        if client in SAY_SO:
            assert [each["reason"] for each in verdict["failures"]] == ["truncated"]
        else:
            assert (verdict["label"], verdict["usage"]["calls"]) == (1, len(texts))


SPELLINGS = [
    str.upper,
    str.title,
    lambda word: word.title().replace("_", ""),
    lambda word: word[0] + word.title().replace("_", "")[1:],
    lambda word: word.replace("_", "-"),
    lambda word: f"FinishReason.{word.upper()}",
    lambda word: f"FINISH_REASON_{word.upper()}",
    lambda word: word + word,
]
REASONS = {"limits": "truncated", "broken": "truncated", "filtered": "refusal"}


@for_each("spell", SPELLINGS)
def test_an_end_is_known_in_every_spelling(spell):
    for kind, words in ENDS.items():
        for word in words:
            reply = AIMessage(GOOD, response_metadata={"finish_reason": spell(word)})
            assert reading(reply) == REASONS.get(kind, VALUE), spell(word)


def test_a_word_that_nobody_knows_is_not_taken_for_a_whole_reply():
    assert (
        reading(AIMessage(GOOD, response_metadata={"finish_reason": "petered_out"})) == "unparsable"
    )


PLACES = {*(key for _, key, _ in CLIENTS.values()), "end_reason", "incomplete_details"} - {"status"}


@for_each("key", sorted(PLACES))
def test_each_place_that_tells_how_a_reply_ended_is_read_whatever_a_status_says(key):
    for status in (None, "completed", "incomplete"):
        for word, reason in (("max_tokens", "truncated"), ("content_filter", "refusal")):
            reply = AIMessage(GOOD, response_metadata={"status": status, key: word})
            _, problem = read(reply, SCORES, None, "T")
            assert (problem.reason, word in problem.detail) == (reason, True)


@for_each("why", ["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "OTHER", "BlockedReason.JAILBREAK"])
def test_the_reason_that_a_filter_gives_is_told(why):
    feedback = {"block_reason": why, "safety_ratings": []}
    for end in (None, "STOP"):
        meta = {"prompt_feedback": feedback, **({"finish_reason": end} if end else {})}
        _, problem = read(AIMessage("", response_metadata=meta), SCORES, None, "T")
        assert problem.reason == "refusal"
        assert "prompt_blocked" in problem.detail
        assert why.rpartition(".")[2].lower() in problem.detail


USED = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


class OwnParser(FakeChatModel):
    """Gives what its parser makes of a reply, as langchain-cohere does, whatever it is asked."""

    def with_structured_output(self, schema, **_):
        return self | JsonOutputParser()


@for_each(
    "text, end, data, reasons",
    [
        (GOOD, "COMPLETE", VALUE, []),
        (CUT, "MAX_TOKENS", None, ["truncated"]),
        (GOOD, "ERROR_TOXIC", None, ["refusal"]),
        (CUT, None, None, ["unparsable"]),
    ],
)
def test_a_reply_counts_as_it_came_where_the_client_gives_only_its_own_reading(
    text, end, data, reasons
):
    meta = {"finish_reason": end} if end else {}
    reply = AIMessage(text, response_metadata=meta, usage_metadata=USED)
    answer = asked(OwnParser(replies=lambda _: reply), (1, 10))
    assert (answer.data, [each["reason"] for each in answer.failures]) == (data, reasons)
    assert answer.usage["output_tokens"] == 5 * answer.usage["calls"]


class OwnForm(FakeChatModel):
    """Asks for a form of its own, and gives what it reads of it."""

    def with_structured_output(self, schema, **_):
        return self | RunnableLambda(lambda raw: {**VALUE, "score_1": int(raw.text)})


@for_each("end, data", [("stop", VALUE), (None, VALUE), ("length", None)])
def test_a_form_that_is_no_json_is_what_its_client_reads_of_it(end, data):
    meta = {"finish_reason": end} if end else {}
    reply = AIMessage("7", response_metadata=meta, usage_metadata=USED)
    answer = asked(OwnForm(replies=lambda _: reply), (1, 10))
    assert (answer.data, answer.usage["calls"], answer.usage["output_tokens"]) == (data, 1, 5)


class Streams(FakeToolModel):
    """Calls its tool in parts, as a client does that asks for a stream; how it ends is unsaid."""

    parts: list[str]
    streaming: bool = False
    end: dict[str, Any] = {}

    def _stream(self, messages, stop=None, run_manager=None, **settings):
        name = settings["tools"][0]["function"]["name"]
        for number, part in enumerate(self.parts):
            chunk = tool_call_chunk(name=None if number else name, args=part, id="1", index=0)
            told = ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))
            yield told
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=self.end))


@for_each("end", [{}, {"finish_reason": "stop"}])
def test_arguments_that_langchain_completed_are_no_reply(end):
    whole, cut = ([text[:20], text[20:]] for text in (GOOD, CUT))
    assert asked(Streams(replies=[], parts=whole, end=end, streaming=True), (1, 10)).data == VALUE
    answer = asked(Streams(replies=[], parts=cut, end=end, streaming=True), (1, 10))
    assert (answer.data, answer.failures[0]["reason"]) == (None, "unparsable")


class BreaksOff(Handler):
    """Streams a call in Anthropic's protocol, and ends its answer in the middle."""

    def do_POST(self):
        tool = json.loads(self.rfile.read(int(self.headers["content-length"])))["tools"][0]["name"]
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
        block = {"type": "tool_use", "id": "t", "name": tool, "input": {}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**head, "usage": {**USED, "total_tokens": 0}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
        ]
        for part in (CUT[:20], CUT[20:]):
            delta = {"type": "input_json_delta", "partial_json": part}
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for each in events:
            self.wfile.write(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode())


@pytest.mark.system  # its client takes seconds to load
def test_a_stream_that_breaks_off_is_no_verdict():
    anthropic = pytest.importorskip("langchain_anthropic")
    with listening(BreaksOff) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        key = SecretStr("a-key")
        model = anthropic.ChatAnthropic(model="m", base_url=url, api_key=key, streaming=True)
        answer = asked(model, (1, 10))
    assert (answer.data, answer.failures[0]["reason"]) == (None, "truncated")
