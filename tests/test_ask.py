"""For each way in which a model can fail: what comes out of `ask()`, and what it cost."""

import asyncio
import copy
import json
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import (
    ModelAuthenticationError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
)
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.prompts import (
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
)

from langchain_judges import create_direct_judge, create_self_consistency_judge
from langchain_judges.asking import failures
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import run
from langchain_judges.asking.question import Account, Question
from langchain_judges.errors import ModelAccessError
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.replies import scores_shape
from langchain_judges.runs import budget
from langchain_judges.testing import FakeModelServer, ServerReply, error, fitting_reply, reply
from tests.attacks import messages
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judges import PAIR
from tests.model_server import cut, filtered, refusal, scores, tool_call

VARIABLES = {"fence_request": "0", "request": "q", "focus": ""}


async def awaited(step):
    return await step


def question(server, **options):
    settings = {"timeout": 600, **options.pop("model", {})}
    return Question(
        method="test",
        step="solve",
        adapter=ModelAdapter(chat(server, **settings)),
        prompt=options.pop("prompt", BSM.templates["reference"]),
        reply_schema=scores_shape((1, 5), explain_first=False),
        version="v",
        **options,
    )


def asked(server, **options):
    return run(ask(question(server, **options), VARIABLES, Account(), unit="Depth (A first)"))


def always(answer):
    return lambda call: answer


def unread(written: str, message: str = "Failed to call a function.") -> ServerReply:
    """A reply that Groq could not read itself."""
    return ServerReply(400, {"error": {"message": message, "failed_generation": written}})


PASSING = [
    "Flex tier capacity exceeded, try again later",
    "The model is at capacity.",
    "The system encountered an unexpected error during processing. Try your request again.",
    "The server is busy",
    "Please retry in 2.5s",
]
NO_CHOICES = {**{"id": "x", "object": "chat.completion", "created": 1, "model": "m"}, "choices": []}
FAULTS = {
    # what the server does: (reason, replies paid, attempts without a reply)
    "garbage": (always(reply("I like the first one.")), "unparsable", 2, 0),
    "empty": (always(reply("")), "empty", 2, 0),
    "outside the scale": (always(reply(scores(9, 1))), "invalid_label", 2, 0),
    "tool call": (always(tool_call()), "unparsable", 2, 0),
    "refusal": (always(refusal()), "refusal", 1, 0),
    "content filter": (always(filtered()), "refusal", 1, 0),
    "cut": (always(cut()), "truncated", 1, 0),
    "unread call": (always(unread(f"<function=T>{scores(4, 2)}")), "unparsable", 2, 0),
    "unread and cut": (always(unread("{", "max completion tokens reached")), "truncated", 1, 0),
    "unread and empty": (always(unread("")), "provider_error", 0, 1),
    "400": (always(error(400)), "provider_error", 0, 1),
    "filter": (always(error(400, "content_filter: filtered")), "refusal", 0, 1),
    "context": (always(error(400, "context length exceeded")), "context_overflow", 0, 1),
    "413": (always(error(413)), "provider_error", 0, 1),
    "422": (always(error(422)), "provider_error", 0, 1),
    "408": (always(error(408)), "timeout", 0, 4),
    **{f"{n}": (always(error(n)), "provider_error", 0, 4) for n in (409, 424, 425, 429, 500, 503)},
    "498": (always(error(498, "no")), "provider_error", 0, 1),
    **{f"498 {said}": (always(error(498, said)), "provider_error", 0, 4) for said in PASSING},
    "402": (always(error(402, "Top up your balance and try again.")), "provider_error", 0, 1),
    "dropped": (always(ServerReply(drop=True)), "provider_error", 0, 4),
    "no choices": (always(ServerReply(payload=NO_CHOICES)), "provider_error", 0, 4),
    "nothing": (always(ServerReply(body=b"")), "provider_error", 0, 4),
    "half": (always(ServerReply(body=b'{"id": "x", "ob')), "provider_error", 0, 4),
    "a list": (always(ServerReply(body=b"[]")), "provider_error", 0, 4),
    "null": (
        always(ServerReply(payload={**NO_CHOICES, "choices": [None]})),
        *("provider_error", 0, 4),
    ),
}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_a_failure_with_its_reason_and_its_cost(serve, monkeypatch, fault, kind):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    behave, reason, cost, retries = FAULTS[fault]
    server = serve(behave)
    steps = ask(question(server), VARIABLES, Account(), unit="Depth (A first)")
    answer = asyncio.run(awaited(steps)) if kind == "async" else run(steps)
    assert answer.data is None
    assert [(f["step"], f["unit"], f["reason"]) for f in answer.failures] == [
        ("solve", "Depth (A first)", reason)
    ]
    assert answer.failures[0]["detail"]
    assert answer.usage["calls"] == cost
    assert answer.usage["by_step"]["solve"]["retries"] == retries
    assert len(server.calls) == cost + retries


ODD = [None, 5, "x", [], {}, True, [1], {"a": 1}]


def places_in(data, path=()):
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    for name, part in inside:
        yield (*path, name)
        if isinstance(part, dict | list):
            yield from places_in(part, (*path, name))


def changed(payload, path, value):
    whole = copy.deepcopy(payload)
    part = whole
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return ServerReply(payload=whole)


@pytest.mark.whole
def test_an_answer_with_any_part_changed_is_a_verdict_or_is_asked_for_again(serve, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    good = reply(scores(4, 2))
    faults = [changed(good.payload, p, v) for p in places_in(good.payload) for v in ODD]
    byte = json.dumps(good.payload).encode().replace(b"score_1", b"score_\xe9")
    broken = [ServerReply(body=body) for body in (byte, b"[" * 100_000, b'{"error": "no"}')]
    queue: list[ServerReply] = []
    asks = question(serve(lambda call: queue.pop(0)))
    for fault in faults + broken:
        # One that is not of the protocol is retried, and one without a reply is repaired.
        queue[:] = [fault, good]
        found = run(ask(asks, VARIABLES, Account()))
        assert (found.data and found.data["score_1"], found.failures) == (4, []), fault


@pytest.mark.whole
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[*HealthCheck])
@given(messages.messages())
def test_no_message_of_any_form_is_raised_or_makes_another_verdict(drawn):
    assert messages.problem(drawn) == ""


def with_fields(error, /, **fields):
    vars(error).update(fields)
    return error


def of_client(said, /, **fields):
    return with_fields(type("OfClient", (Exception,), {})(said), **fields)


BODY = {"error": {"message": "Provider returned error", "code": 502}, "user_id": "u"}
# Errors of clients for an answer that had begun as a success: what they hold, and what is said.
SUCCESSES = {
    "its body as text": (dict(status_code=200, body=json.dumps(BODY)), "HTTP 502: Provider retur"),
    "its body": (dict(response=httpx.Response(200), body=BODY), "HTTP 502: Provider returned"),
    "no object": (dict(status_code=200, body="<html>Wait</html>"), "OfClient: 6 fields required"),
    "an event of a stream": (dict(body={"message": "EOF", "code": "x"}), "OfClient: EOF"),
    "a stream without a status": (dict(status_code=-1, error="EOF"), "OfClient: 6 fields"),
    "an error in words": (dict(status_code=200, body={"error": "EOF"}), "OfClient: EOF"),
    "of boto": (dict(response={"ResponseMetadata": {"HTTPStatusCode": 200}}), "OfClient: 6 fi"),
}


@for_each("fields, said", SUCCESSES.values(), ids=SUCCESSES)
def test_an_error_under_a_success_is_told_and_asked_again_whatever_the_client(
    fields, said, monkeypatch
):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    verdict = asking(FakeChatModel(replies=lambda _: of_client("6 fields required", **fields)))
    assert verdict["failures"][0]["detail"].startswith(said)
    assert verdict["usage"]["by_step"]["judge"]["retries"] == 4


@for_each("status", [302, 404, 451])
def test_an_error_with_a_status_of_its_own_is_final(status, monkeypatch):
    failed = of_client("no", status_code=status, body={"message": "no"})
    assert not failures.can_pass(failed)


class Mute(Exception):
    def __str__(self):
        raise ValueError


ODD_ERRORS = [
    Mute(),
    ValueError({"message": None, "code": "429"}),
    OSError("\ud800\x1b[2J"),
    KeyError(b"\xff"),
    StopIteration(),
    ExceptionGroup("several", [OSError("one")]),
    *(with_fields(RuntimeError("no"), response=each) for each in ODD),
    *(with_fields(RuntimeError("no"), response=SimpleNamespace(headers=each)) for each in ODD),
    *(with_fields(OSError("no"), request=SimpleNamespace(url=each)) for each in ODD),
    *(with_fields(RuntimeError("no"), body=each, code=each, status_code=each) for each in ODD),
    *(with_fields(RuntimeError("no"), response={"ResponseMetadata": each}) for each in ODD),
]


@for_each("raised", ODD_ERRORS)
def test_an_error_of_any_form_is_a_failure_that_a_file_can_hold(raised, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    verdict = asking(FakeChatModel(replies=lambda _: raised))
    assert [each["reason"] for each in verdict["failures"]] == ["provider_error"]
    assert json.dumps(verdict, ensure_ascii=False).encode()


HALF = '{"preference": "1 \ud800'


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
@for_each("kind", ["served", "tools", "bound"])
def test_a_reply_of_langchains_cache_is_no_paid_call(kind, monkeypatch, serve):
    monkeypatch.setattr("langchain_core.globals._llm_cache", InMemoryCache())
    model = FakeChatModel(replies=fitting_reply)
    models = {"served": chat(serve(fitting_reply)), "tools": model, "bound": model.bind(user="Ann")}
    judge = create_direct_judge(models[kind])
    first, again = (judge.invoke(PAIR)["verdict"] for _ in range(2))
    assert again["preference"] == first["preference"]
    assert (first["usage"]["calls"], again["usage"]["calls"]) == (1, 0)
    assert again["usage"]["by_step"]["judge"]["cached_calls"] == 1
    assert again["usage"]["input_tokens"] == again["usage"]["output_tokens"] == 0
    bounded = budget(max_calls=1)
    assert [judge.invoke(PAIR, bounded)["verdict"]["failures"] for _ in range(3)] == [[]] * 3


@for_each("first", [reply(HALF), reply("x", finish="\ud800"), reply(json.dumps(HALF))])
def test_a_reply_with_half_a_character_is_asked_for_once_more(first):
    good = reply('{"preference": "1", "explanation": "\ud800"}')
    with FakeModelServer([first, good]) as server:
        found = create_direct_judge(server.chat()).invoke(PAIR)["verdict"]
    assert found["rationale"].endswith("\ufffd")
    assert (found["preference"], found["failures"], len(server.calls)) == ("A", [], 2)


def test_a_request_is_sent_four_times_and_once_for_each_setting_that_is_refused(serve, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    refused = {"temperature", "logprobs", "response_format"}

    def refusing(call):
        if sent := sorted(refused & call.body.keys()):
            return ServerReply(400, {"error": {"message": "no", "param": sent[0]}})
        return error(503)

    server = serve(refusing)
    asked(server, logprobs=True)
    unsupported = sum(bool(refused & call.body.keys()) for call in server.calls)
    assert len(server.calls) == unsupported + 4
    assert unsupported <= len(refused) + 2  # a format has up to three ways


def test_redirects_in_a_circle_are_not_asked_again(serve):
    server = serve(always(ServerReply(307, headers={"location": "/v1/chat/completions"})))
    failure = asked(server).failures[0]
    assert "circle (http" in failure["detail"]
    # As far as the client library follows them, once.
    assert len(server.calls) <= 21


def test_a_hanging_provider_is_a_time_out(serve, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.ATTEMPTS", 2)
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    server = serve(always(ServerReply(hold=threading.Event())))
    answer = asked(server, model={"timeout": 0.2})
    assert answer.failures[0]["reason"] == "timeout"
    assert answer.usage["by_step"]["solve"]["retries"] == 2


class Refusing(FakeChatModel):
    """A model of a class that is not OpenAI's, whose library raises by its own habit."""

    error: Exception
    max_retries: int = 2

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        for _ in range(self.max_retries):
            self.prompts.append("tried in vain")
        self.prompts.append("the last try")
        raise self.error


def coded(code):
    error: Any = RuntimeError("said by Google")
    error.code = code
    return error


def botos(status):
    error: Any = RuntimeError("said by boto")
    error.response = {"ResponseMetadata": {"HTTPStatusCode": status}}
    return error


def asking(model):
    judge = create_direct_judge(model, repairs=0)
    return judge.invoke({"input": "?", "output_a": "a", "output_b": "b"})["verdict"]


@for_each(
    "raised",
    [
        ModelAuthenticationError("no"),
        ModelPermissionDeniedError("no"),
        ModelNotFoundError("no"),
        *map(coded, (401, 403, 404)),
        botos(403),
    ],
)
def test_a_refused_key_raises_at_once_however_a_library_says_so(raised):
    model = Refusing(error=raised)
    with pytest.raises(ModelAccessError, match="refuses every call"):
        asking(model)
    assert len(model.prompts) == 1


@for_each(
    ("raised", "reason"),
    [
        *((each, "provider_error") for each in (coded(429), coded(503), botos(503))),
        *((each, "timeout") for each in (coded(408), coded(504))),
    ],
)
def test_errors_that_pass_are_retried_by_us_alone(monkeypatch, raised, reason):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    model = Refusing(error=raised)
    assert asking(model)["failures"][0]["reason"] == reason
    # Four attempts, and none of the library's own between them.
    assert model.prompts == ["the last try"] * 4


def test_one_repair_shows_what_was_wrong(serve):
    def behave(call):
        return reply(scores(4, 2)) if len(call.body["messages"]) > 2 else reply(scores(9, 2))

    server = serve(behave)
    answer = asked(server)
    assert answer.data["score_1"] == 4
    assert answer.failures == []
    assert answer.usage["calls"] == 2
    mistake, correction = server.calls[1].body["messages"][-2:]
    assert '"score_1": 9' in mistake["content"]
    assert "equal to 5" in correction["content"]


def test_a_reply_is_read_where_its_provider_could_not(serve):
    answer = asked(serve(always(unread(scores(4, 2)))))
    assert (answer.data["score_1"], answer.failures, answer.usage["calls"]) == (4, [], 1)


@pytest.mark.parametrize(
    "first",
    [
        error(429),
        error(503, **{"retry-after-ms": "nan"}),
        ServerReply(payload={"error": {"message": "overloaded", "code": 503}}),
        ServerReply(payload={"id": "x"}),
    ],
)
def test_an_error_that_passes_costs_retries_and_no_failure(serve, monkeypatch, first):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    answer = asked(serve([first, reply(scores(4, 2))]))
    assert (answer.data["score_2"], answer.failures) == (2, [])
    assert answer.usage["by_step"]["solve"]["retries"] == 1


@for_each(
    ("text", "sent"),
    [("near: 'room temperature'", [True, False]), ("A text of grammar is not allowed", [True])],
)
def test_an_error_that_quotes_a_text_teaches_nothing(serve, text, sent):
    server = serve(always(error(400, text)))
    what = question(server)
    run(ask(what, VARIABLES, Account()))
    assert run(ask(what, VARIABLES, Account())).failures[0]["reason"] == "provider_error"
    assert all("response_format" in call.body for call in server.calls)
    # It is asked once without what the error names, and as ever for the next row.
    assert ["temperature" in call.body for call in server.calls] == sent * 2


class Told(Exception):
    """An error of a client's own, which may have headers or a response with them."""

    headers: Any = None
    response: Any = None


def told(message="busy", *, headers=None, response=None, cause=None, context=None):
    error = Told(message)
    error.headers, error.response = headers, response
    error.__cause__, error.__context__ = cause, context
    return error


LATER = httpx.Response(429, headers={"retry-after": "5"})
DELAY = "429 RESOURCE_EXHAUSTED. {'error': {'details': [{'@type': 'x', 'retryDelay': '37s'}]}}"


@for_each(
    "failed, seconds",
    [
        (told(response=LATER), 5),
        (told(headers=LATER.headers), 5),
        (told(headers={"retry-after-ms": "1500", "retry-after": "9"}), 1.5),
        (told(cause=told(response=LATER)), 5),
        (told(context=told(cause=told(response=LATER))), 5),
        (told(headers={"x-id": "7"}, cause=told(response=LATER)), 5),
        (told(headers={"retry-after": "soon"}, response=LATER), 5),
        (told(DELAY), 37),
        (told(DELAY.replace("'", '\\"')), 37),
        (told("retry_delay {\n  seconds: 37\n}"), 37),
        (told("retry_delay { seconds: 2.5 }"), 2.5),
        (told(DELAY, headers={"retry-after": "soon"}), 37),
        (told(headers={"retry-after": "Sat, 01 Jan 2050 00:00:00 GMT"}), failures.LONGEST_WAIT),
    ],
)
def test_a_wait_is_as_long_as_the_server_says_wherever_the_client_has_it(failed, seconds):
    assert failures.wait_after(failed, 0.0) == seconds


def test_a_wait_is_our_own_where_the_server_says_nothing():
    assert failures.wait_after(told(response=httpx.Response(429), headers=["x"]), 0.0) == 0.0


# The end of a limit, 40 seconds after 2030 has begun, in every form.
NEW_YEAR = 1893456000
ENDS = ["40", "40.0", "40s", "40000ms", "0m40s", "0h0m39.5s500ms", str(NEW_YEAR + 40)]
ENDS += [f"{NEW_YEAR + 40}000", "2030-01-01T00:00:40Z", "2030-01-01T01:00:40+01:00"]
ENDS += ["Tue, 01 Jan 2030 00:00:40 GMT", "2030-01-01T00:00:40"]
LIMITS = ["X-RateLimit-Reset", "x-ratelimit-reset-tokens", "anthropic-ratelimit-requests-reset"]


def in_headers(name, end):
    return with_fields(told(headers={name: end}), status_code=429)


def in_body(name, end):
    said = {"error": {"message": "no", "code": 429, "metadata": {"headers": {name: end}}}}
    return with_fields(told(), status_code=429, body=json.dumps(said))


@for_each("place", [in_headers, in_body])
@for_each("name", [*LIMITS, "RateLimit-Reset", "x-rate-limit-reset", "Retry-After"])
@for_each("end", ENDS)
def test_the_end_of_a_limit_is_waited_for_in_whatever_form(place, name, end, monkeypatch):
    monkeypatch.setattr("time.time", lambda: NEW_YEAR)
    assert failures.wait_after(place(name, end), 0.0) == pytest.approx(40)


@for_each(
    "headers, seconds",
    [
        ({"x-ratelimit-reset": "2m"}, failures.LONGEST_WAIT),
        # No attempt would be made after hours.
        ({"x-ratelimit-reset": "7h12m0s", "x-ratelimit-remaining": "0"}, 0.0),
        ({"x-ratelimit-reset": "7s", "retry-after": "3"}, 3),
        ({"x-ratelimit-reset": "1999-01-01T00:00:00Z"}, 0.0),
        ({"x-ratelimit-reset": "soon"}, 0.0),
        # Of several limits those are waited for of which nothing remains.
        ({"x-ratelimit-reset-a": "5s", "x-ratelimit-reset-b": "7s"}, 7),
        (
            {
                "x-ratelimit-reset-a": "5s",
                "x-ratelimit-remaining-a": "0",
                "x-ratelimit-reset-b": "7s",
                "x-ratelimit-remaining-b": "60",
            },
            5,
        ),
    ],
)
def test_the_end_of_a_limit_counts_where_it_is_spent(headers, seconds):
    failed = with_fields(told(headers=headers), status_code=429)
    assert failures.wait_after(failed, 0.0) == seconds
    # Servers tell their limits with any answer.
    other = with_fields(told(headers=headers), status_code=503)
    assert failures.wait_after(other, 0.0) == float(headers.get("retry-after", 0.0))


TOO_LONG = [
    "prompt is too long: 210000 tokens > 200000 maximum",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "the request exceeds the available context size, try increasing it",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "litellm.ContextWindowExceededError: VertexAIException - the text does not fit",
]


REFUSED = [
    "Output blocked by content filtering policy",
    "The prompt triggered Azure OpenAI's content management policy.",
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    "Content Exists Risk",
    "Input data may contain inappropriate content.",
    "This request has been flagged for potentially violating our usage policy",
    "Your request was rejected as a result of our safety system.",
    "litellm.ContentPolicyViolationError: AzureException - The response was filtered",
    "{'error': 'Violated guardrail policy', 'bedrock_guardrail_response': 'BLOCKED'}",
]
FILTERS = ({"message": "no", "code": f"content_{kind}"} for kind in ("filter", "policy_violation"))
# What else is blocked: an address, an account, a key, an argument.
BLOCKED = [
    "Sorry, you have been blocked. You are unable to access this site.",
    "Your resource has been blocked, for it may violate our content policy.",
    "Your account was flagged for potential abuse",
    "This API key has been blocked",
    "Invalid parameter: input violates constraint max_length of the schema",
    "Access to chat content has been blocked for this project",
]


@for_each(
    ("answer", "reason"),
    [
        *((error(400, each), "context_overflow") for each in TOO_LONG),
        *((error(400, each), "refusal") for each in REFUSED),
        (error(403, "Content violates usage guidelines."), "refusal"),
        (error(403, "Your chosen model requires moderation and your input was flagged"), "refusal"),
        *((ServerReply(400, {"error": each}), "refusal") for each in FILTERS),
        (error(400, "Unrecognized request argument supplied: content_filter"), "provider_error"),
        (error(500, "the content filter is down"), "provider_error"),
        (error(429, "Too many tokens, please wait before trying again."), "provider_error"),
        (error(400, "The answer may have at most 4096 tokens"), "provider_error"),
    ],
)
def test_what_a_provider_says_of_a_request_that_it_rejects_is_told_apart(
    serve, monkeypatch, answer, reason
):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    assert [each["reason"] for each in asked(serve(always(answer))).failures] == [reason]


@for_each("said", BLOCKED)
def test_what_is_blocked_beside_a_text_is_no_refusal_of_it(serve, said):
    with pytest.raises(ModelAccessError, match="refuses every call"):
        asked(serve(always(error(403, said))))
    assert asked(serve(always(error(400, said)))).failures[0]["reason"] == "provider_error"


def test_a_rejected_format_moves_the_model_one_step_down_once(serve):
    def behave(call):
        if call.body.get("response_format"):
            return error(400, "response_format of this type is unavailable")
        function = call.body["tools"][0]["function"]["name"]
        body = {"name": function, "arguments": scores(4, 2)}
        request = {"id": "1", "type": "function", "function": body}
        return reply(None, finish="tool_calls", tool_calls=[request])

    server = serve(behave)
    what = question(server)
    first = run(ask(what, VARIABLES, Account()))
    second = run(ask(what, VARIABLES, Account()))
    assert first.data == second.data
    assert first.data["score_1"] == 4
    assert [first.usage["calls"], second.usage["calls"]] == [1, 1]
    assert len(server.calls) == 3


def test_samples_without_a_seed_are_not_answered_by_langchains_cache(serve):
    def behave(call):
        if "seed" in call.body:
            return error(400, "Unsupported value: 'seed'")
        return reply('{"explanation": "so", "preference": "1"}')

    server = serve(behave)
    set_llm_cache(InMemoryCache())
    try:
        judge = create_self_consistency_judge(chat(server), samples=4)
        verdict = judge.invoke({"input": "?", "output_a": "a", "output_b": "b"})["verdict"]
    finally:
        set_llm_cache(None)
    assert sum("seed" not in call.body for call in server.calls) == 4
    assert verdict["usage"]["calls"] == 4


@pytest.mark.parametrize(
    ("own", "override", "sampled", "expected"),
    [
        (None, None, False, 0.0),
        (None, None, True, 0.7),
        (0.3, None, True, 0.3),
        (0.3, 1.0, False, 1.0),
    ],
)
def test_temperature_is_the_models_own_unless_overridden(serve, own, override, sampled, expected):
    server = serve(always(reply(scores(4, 2))))
    adapter = ModelAdapter(chat(server, temperature=own), override)
    run(ask(replace(question(server, sampled=sampled), adapter=adapter), VARIABLES, Account()))
    assert server.calls[0].body["temperature"] == expected


def test_a_cache_answers_the_second_time_and_never_keeps_a_failure(serve):
    replies = iter([reply("no"), reply(scores(4, 2))])
    server = serve(lambda call: next(replies))
    what = question(server, cache=InMemoryCache(), repairs=0)
    failed, first, again = (run(ask(what, VARIABLES, Account())) for _ in range(3))
    assert failed.data is None
    assert first.data == again.data
    assert again.usage["calls"] == 0
    assert again.usage["by_step"]["solve"]["cached_calls"] == 1
    assert len(server.calls) == 2


def called(name="look", number=1, key="c", **more):
    calls = [{"name": name, "args": {"n": number}, "id": key}]
    return [AIMessage("", **{"tool_calls": calls, **more}), ToolMessage("ok", tool_call_id=key)]


def broken(arguments):
    calls = [{"name": "look", "args": arguments, "id": "c", "error": None}]
    return called(tool_calls=[], invalid_tool_calls=calls)


HISTORIES = [
    *(called(), called(number=2), called(name="find"), called(key="d"), called(tool_calls=[])),
    *(broken('{"n": '), broken("[")),
]


def test_histories_that_differ_in_calls_of_tools_alone_share_no_reply(serve):
    numbers = iter(range(1, 100))
    server = serve(lambda call: reply(scores(5, 1 + next(numbers) % 5)))
    prompt = ChatPromptTemplate([MessagesPlaceholder("history"), ("human", "Rate them.")])
    what = question(server, cache=InMemoryCache(), prompt=prompt)
    shown = [{**VARIABLES, "history": history} for history in HISTORIES]
    first, again = ([run(ask(what, each, Account())) for each in shown] for _ in range(2))
    assert len(server.calls) == len(HISTORIES)
    assert [each.data for each in again] == [each.data for each in first]


def test_a_client_shared_by_event_loops_answers_in_each_of_them(serve):
    server = serve(always(replace(reply(scores(4, 2)), delay=0.01)))
    what = question(server)

    async def many(n):
        return await asyncio.gather(*(ask(what, VARIABLES, Account()) for _ in range(n)))

    asyncio.run(many(20))
    answers = [*asyncio.run(many(2)), *asyncio.run(many(5))]
    assert all(answer.data for answer in answers)
    assert len(server.calls) == 27


class Drips(FakeChatModel):
    """Never finishes a reply before the test lets it."""

    timeout: float = 0.01

    async def _agenerate(self, *args, **kwargs):
        await asyncio.Event().wait()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.adapter.SLACK", 0.01)
    monkeypatch.setattr("langchain_judges.asking.send.ATTEMPTS", 1)


@pytest.mark.parametrize("drive", [run, lambda step: asyncio.run(awaited(step))])
def test_a_reply_that_never_ends_is_a_time_out(impatient, drive):
    ended = threading.Event()
    model = Drips(replies=lambda _: ended.wait() and scores(4, 2))
    what = Question(
        "t", "s", ModelAdapter(model), BSM.templates["reference"], scores_shape((1, 5), False), "v"
    )
    try:
        [failure] = drive(ask(what, VARIABLES, Account())).failures
    finally:
        ended.set()
    assert failure["reason"] == "timeout"
    assert "0.02 seconds" in failure["detail"]


TEMPLATES = (
    PromptTemplate.from_template("{request}!"),
    PromptTemplate(
        template="{request}{end}", input_variables=["request"], partial_variables={"end": "!"}
    ),
    PromptTemplate.from_template("{{request}}!", template_format="mustache"),
)


def test_every_kind_of_template_is_filled(serve):
    server = serve(always(reply(scores(4, 2))))
    for template in TEMPLATES:
        human = HumanMessagePromptTemplate(prompt=template)
        asked(server, prompt=ChatPromptTemplate.from_messages([("system", "Hm"), human]))
    sent = [[turn["content"] for turn in call.body["messages"]] for call in server.calls]
    assert sent == [["Hm", "q!"]] * len(TEMPLATES)
