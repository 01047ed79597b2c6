"""What models take and refuse: found once, from the provider's words and no judged text's."""

import asyncio
import json
import re
from typing import Any, Literal

import httpx
import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel

from langchain_judges import (
    ajudge_many,
    create_absolute_judge,
    create_rubric_judge,
    judge_many,
    resolve_model,
)
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import run
from langchain_judges.asking.failures import complaint_of, in_a_line
from langchain_judges.asking.question import Account, Question
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.replies import scores_shape
from langchain_judges.testing import error
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, FakeToolModel
from tests.judges import answer_call
from tests.model_server import scores

VALUE = {"score_1": 4, "score_2": 2, "explanation": "because"}


def question_of(
    model: BaseChatModel, adapter: ModelAdapter | None = None, scale: tuple[int, int] = (1, 5)
) -> Any:
    adapter = adapter or ModelAdapter(model)
    what = Question("t", "s", adapter, BSM.templates["reference"], scores_shape(scale, False), "v")
    return ask(what, {"fence_request": "0", "request": "q", "focus": ""}, Account())


def asked(model: BaseChatModel, scale: tuple[int, int] = (1, 5)) -> Any:
    return run(question_of(model, scale=scale))


class WithStructure(FakeChatModel):
    def with_structured_output(self, schema, *, include_raw=False, **_):
        assert include_raw
        return self | RunnableLambda(lambda raw: {"raw": raw, "parsed": None})


class GivesObjects(FakeChatModel):
    def with_structured_output(self, schema, *, include_raw=False, **_):
        return RunnableLambda(lambda _: {"raw": None, "parsed": VALUE})


def call_of(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": VALUE, "id": "1"}])


@for_each(
    "model",
    [
        FakeChatModel(replies=lambda _: scores(4, 2)),
        FakeToolModel(replies=[VALUE]),
        FakeToolModel(replies=[scores(4, 2)]),
        WithStructure(replies=lambda _: scores(4, 2)),
        WithStructure(replies=lambda _: call_of("Scores")),
        GivesObjects(),
    ],
)
def test_every_rung_brings_the_same_data(model):
    assert asked(model).data == VALUE


class DoesNotForce(FakeChatModel):
    """Asks like langchain-anthropic or -aws where the model thinks: a text is an exception."""

    def with_structured_output(self, schema, *, include_raw=False, **_):
        return RunnableParallel(raw=self | RunnableLambda(self.called))

    def called(self, message):
        if not message.tool_calls:
            raise OutputParserException("no tool was called")
        return message


class ParsesOutside(WithStructure):
    """Raises what it makes of any reply."""

    def with_structured_output(self, schema, *, include_raw=False, **_):
        return self | RunnableLambda(self.parsed)

    def parsed(self, message):
        raise KeyError(message.id)


REPLIES: list[tuple[AIMessage, tuple[str, ...], int]] = [
    # the reply: (why it is no verdict, calls)
    (AIMessage(json.dumps(VALUE)), (), 1),
    (call_of("Scores"), (), 1),
    (AIMessage("", response_metadata={"stop_reason": "refusal"}), ("refusal",), 1),
    (AIMessage("So", response_metadata={"stop_reason": "max_tokens"}), ("truncated",), 1),
    (AIMessage("The first."), ("unparsable",), 2),
    (AIMessage(""), ("empty",), 2),
]


@for_each("client, drive", [(DoesNotForce, run), (ParsesOutside, asyncio.run)])
@for_each("message, reasons, calls", REPLIES)
def test_a_reply_is_read_and_paid_whatever_its_client_raises_of_it(
    client, drive, message, reasons, calls
):
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    model = client(replies=lambda _: message.model_copy(update={"usage_metadata": usage}))
    answer = drive(question_of(model))
    assert tuple(each["reason"] for each in answer.failures) == reasons
    assert (answer.usage["calls"], answer.usage["output_tokens"]) == (calls, 5 * calls)
    assert not answer.usage["by_step"]["s"]["retries"]


def test_a_reply_that_its_client_has_lost_is_not_asked_for_again():
    def lose(prompt):
        raise OutputParserException("arguments that are no JSON")

    answer = asked(FakeChatModel(replies=lose))
    assert [each["reason"] for each in answer.failures] == ["unparsable"]
    assert (answer.usage["calls"], answer.usage["by_step"]["s"]["retries"]) == (1, 0)


def test_a_repair_shows_the_call_that_was_wrong():
    calls = [{"name": "Scores", "args": {**VALUE, "score_1": 9}, "id": "1"}]
    model = WithStructure(replies=[AIMessage("So:", tool_calls=calls), scores(4, 2)])
    assert asked(model).data == VALUE
    assert re.search(r'So:\n.*"score_1": 9', model.prompts[1])


class KnowsNoForm(FakeToolModel):
    """A client that knows neither the keywords of its base nor a tool as OpenAI writes it."""

    def with_structured_output(self, schema, **settings):
        raise TypeError(f"got an unexpected keyword argument {next(iter(settings))!r}")

    def bind_tools(self, tools, **_):
        raise ValueError("unsupported dict type")


def test_a_client_without_a_form_for_replies_is_asked_in_words(caplog):
    model = KnowsNoForm(replies=lambda _: scores(4, 2))
    with caplog.at_level("WARNING", "langchain_judges"):
        answer = asked(model)
    assert (answer.data, answer.usage["calls"]) == (VALUE, 1)
    assert "JSON schema" in model.prompts[0]
    assert [each.args[0] for each in caplog.records] == ["structured_output", "tools"]


class TakesMethods(WithStructure):
    """A client that cannot read a text beside tools, and has another way, by JSON schema."""

    methods: list[str] = []

    def with_structured_output(
        self, schema, *, include_raw=False, method: Literal["tools", "json_schema"] = "tools", **_
    ):
        def read(raw):
            if method == "tools":
                raise OutputParserException("no tool was called")
            return {"raw": raw}

        return self.bind(method=method) | RunnableLambda(read)

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        self.methods.append(settings.pop("method"))
        return super()._generate(messages, stop, run_manager, **settings)


@for_each(
    "profile, methods",
    [({"structured_output": True}, ["tools", "tools", "json_schema"]), ({}, ["tools"] * 3)],
)
def test_a_client_that_cannot_read_two_replies_is_asked_by_json_schema_from_then_on(
    profile, methods
):
    model = TakesMethods(profile=profile, methods=[], replies=lambda _: scores(4, 2))
    adapter = ModelAdapter(model)
    answers = [run(question_of(model, adapter)) for _ in methods]
    assert [each.data for each in answers] == [VALUE] * 3
    assert [each.usage["calls"] for each in answers] == [1] * 3
    assert not any("asked_without" in each.usage for each in answers)
    assert model.methods == methods


SPOKEN: list[str | dict[Any, Any]] = [
    {"type": "text", "text": "I'll score both."},
    {"type": "tool_use", "id": "1"},
]
CALLED = AIMessage(SPOKEN, tool_calls=call_of("Scores").tool_calls)
CHOICES: list[tuple[object, bool]] = [
    # what a client sends: whether the model is free to speak
    (None, True),
    ("auto", True),
    ({"type": "auto", "disable_parallel_tool_use": True}, True),
    ({"auto": {}}, True),
    ("any", False),
    ({"type": "tool", "name": "Scores"}, False),
    ({"function_calling_config": {"mode": "ANY"}}, False),
]


class Chooses(FakeToolModel):
    choice: Any = None

    def with_structured_output(self, schema, *, include_raw=False, **_):
        calling = self.bind(tools=[schema], tool_choice=self.choice)
        return RunnableParallel(raw=calling | RunnableLambda(lambda raw: raw))


@for_each("choice, is_free", CHOICES)
def test_a_model_may_speak_before_its_call_where_its_client_forces_none(choice, is_free):
    answer = asked(Chooses(choice=choice, replies=[CALLED, CALLED]))
    assert answer.data == (VALUE if is_free else None)
    assert answer.usage["calls"] == (1 if is_free else 2)


def test_replies_without_words_are_no_reason_to_ask_in_another_way():
    profile: Any = {"structured_output": True}
    refused = AIMessage("", response_metadata={"stop_reason": "refusal"})
    model = TakesMethods(profile=profile, methods=[], replies=lambda _: refused)
    adapter = ModelAdapter(model)
    answers = [run(question_of(model, adapter)) for _ in range(3)]
    assert [each.failures[0]["reason"] for each in answers] == ["refusal"] * 3
    assert model.methods == ["tools"] * 3


class Router(WithStructure):
    """Asks another model first, and fails then."""

    def with_structured_output(self, schema, *, include_raw=False, **_):
        return self | RunnableLambda(lambda raw: {"raw": raw})

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        FakeToolModel(replies=[scores(4, 2)]).invoke(messages)
        failed: Any = ValueError("no server")
        failed.status_code = 400
        raise failed


def test_a_reply_to_a_model_that_then_fails_is_no_reply_of_it():
    answer = asked(Router(replies=[]))
    assert answer.data is None
    assert {each["reason"] for each in answer.failures} == {"provider_error"}


class Refuses(FakeToolModel):
    """Answers like a provider whose model does not take a setting."""

    setting: str = "temperature"

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        if self.setting in settings:
            refusal: Any = ValueError("unsupported")
            refusal.status_code = 400
            refusal.body = {"error": {"param": self.setting, "message": "unsupported"}}
            raise refusal
        return super()._generate(messages, stop, run_manager, **settings)


def test_a_verdict_says_what_it_was_asked_without_and_so_does_a_cached_one():
    reply = {"score_1": 8, "score_2": 2, "explanation": "because"}
    pair = {"input": "Why?", "output_a": "good", "output_b": "bad"}
    asked_without = []
    for model in (Refuses, FakeToolModel):
        judge = create_absolute_judge(model(replies=lambda _: reply), cache=InMemoryCache())
        usages = [judge.invoke(pair)["verdict"]["usage"] for _ in range(2)]
        assert [usage["calls"] > 0 for usage in usages] == [True, False]
        (row,) = judge_many(judge, [pair], progress=False)
        asked_without.append([each.get("asked_without") for each in (*usages, row)])
    assert asked_without == [[["temperature"]] * 3, [None] * 3]


@pytest.mark.whole
async def test_no_more_is_refused_than_was_in_flight_at_the_first_refusal(serve, caplog):
    refused: list[str] = []

    def behave(call):
        for name in ("temperature", "logprobs"):
            if call.body.get(name) is not None:
                refused.append(name)
                return error(400, f"Unsupported parameter: '{name}' is not supported.")
        return answer_call(call)

    rows = [{"input": str(number), "output": "good"} for number in range(20)]
    for count in (1, 2):  # threads, then an event loop
        refused.clear()
        server = serve(behave)
        judge = create_rubric_judge(chat(server), rubric="Polite?")
        with caplog.at_level("WARNING", "langchain_judges"):
            if count == 1:
                results = list(judge_many(judge, rows, max_concurrency=8, progress=False))
            else:
                later = ajudge_many(judge, rows, max_concurrency=8, progress=False)
                results = [result async for result in later]
        assert all(result["judged"] for result in results)
        assert len(server.calls) == 20 + len(refused)
        assert {*refused} == {"temperature", "logprobs"}
        assert len(refused) <= 2 * 8
        assert len(caplog.records) == 2 * count


def test_what_a_profile_says_a_model_refuses_is_not_tried():
    adapter = ModelAdapter(resolve_model("openai:o3", api_key="x"))
    request = adapter.request(scores_shape((1, 5), False), adapter.sampling(False, None))
    assert "temperature" not in request.settings
    assert adapter.asked_without(request, seed=False, logprobs=True) >= {"temperature", "logprobs"}


SETTINGS = ("temperature", "seed")


class Refused(Exception):
    def __init__(self, message, param=None):
        super().__init__(message)
        self.body = {"message": message, "param": param}


@for_each(
    ("message", "param", "setting"),
    [
        ("Unsupported value: 'temperature'", None, "temperature"),
        ("This model only allows the default. It has no `seed`.", None, "seed"),
        ("`temperature` may only be set to 1 when thinking is enabled.", None, "temperature"),
        ("`temperature` and `top_p` cannot both be specified.", None, "temperature"),
        ("temperature must be in (0, 2]", None, "temperature"),
        ("The room_temperature is high, and the seeds are sown", None, None),
        ("anything", "temperature", "temperature"),
        ("Unsupported value: 'temperature'", "messages[0].content", None),
        ("I read: weather. Temperature unsupported", None, None),
        ("Invalid text: 'temperature unsupported'", None, None),
    ],
)
def test_a_setting_is_refused_by_the_provider_and_not_by_a_text_it_quotes(message, param, setting):
    complaint = complaint_of(Refused(message, param), ["Today's temperature unsupported."])
    assert complaint.refused(SETTINGS) == setting


@for_each(
    ("message", "param", "rejected"),
    [
        ("response_format of this type is unavailable", None, True),
        ("There is no such model.", None, False),
        ("anything", "response_format.json_schema", True),
        ("response_format is unavailable", "messages", False),
        ("The text 'my json_schema fails' is not allowed", None, False),
    ],
)
def test_a_format_is_rejected_by_the_provider_and_not_by_a_text_it_quotes(message, param, rejected):
    complaint = complaint_of(Refused(message, param), ["So my json_schema fails again"])
    assert complaint.format_rejected == rejected


def test_a_server_that_is_not_there_is_named_without_its_password():
    request: Any = httpx.Request("POST", "http://me:secret@127.0.0.1:9/v1/chat/completions")
    said = in_a_line(openai.APIConnectionError(request=request))
    assert said == "APIConnectionError: Connection error. (http://127.0.0.1:9/v1)"
