"""What is told of a model, and what is kept to oneself."""

import json
import warnings
from functools import cached_property, wraps
from typing import Any, cast, get_args

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai.resources.chat.completions import Completions
from pydantic import Field, SecretStr

from langchain_judges import (
    FailureMemory,
    best_of,
    create_allure_audit,
    create_bsm_writer,
    create_direct_judge,
    create_rubric_judge,
    create_self_consistency_judge,
)
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.masking import masked
from langchain_judges.asking.models import (
    model_identity,
    resolve_model,
    with_plain_json,
    without_own_retries,
)
from langchain_judges.asking.reading import shape_of
from langchain_judges.asking.reply_text import Spelling
from langchain_judges.errors import OptionError
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.methods.declaration import OtherModel
from langchain_judges.methods.registry import METHODS
from langchain_judges.options import Rule
from langchain_judges.testing import FakeModelServer, ServerReply, error, reply
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import PAIR
from tests.loopback import Handler, listening, send

[CHAT_MODEL] = (each for each in get_args(OtherModel) if isinstance(each, Rule))


class Hosted(FakeChatModel):
    """A class with settings of its own, as providers' packages have them."""

    model: str = "small"
    top_k: int = 0
    style: str = ""
    target_uri: str = ""
    service_domain: str = ""
    account_id: str = ""
    username: str = ""
    api_token: str = ""
    model_kwargs: dict = Field(default_factory=dict)
    max_retries: int = 6

    @cached_property
    def _client(self):
        return f"a client that retries {self.max_retries} times"

    @cached_property
    def weights(self):
        return object()


SECRETS: dict[str, Any] = {
    "target_uri": "http://10.9.9.9:77",
    "service_domain": "inside.example",
    "account_id": "ACCOUNT",
    "username": "BOB",
    "api_token": "TOKEN",
    "model_kwargs": {"top_p": 0.5, "api_key": "DEEP", "odd": {"password": "DEEPER", "way": 1}},
}


def test_no_address_name_or_key_is_told_and_none_decides_which_model_it_is():
    judge = create_direct_judge(Hosted(top_k=5, **SECRETS))
    metadata = json.dumps(judge.config["metadata"])
    for secret in ("10.9.9.9", "inside.example", "ACCOUNT", "BOB", "TOKEN", "DEEP"):
        assert secret not in metadata
    elsewhere = {**SECRETS, "target_uri": "http://10.0.0.1", "api_token": "OTHER"}
    elsewhere["model_kwargs"] = {**SECRETS["model_kwargs"], "api_key": "OTHER"}
    assert model_identity(Hosted(**SECRETS)) == model_identity(Hosted(**elsewhere))


@for_each(
    "settings",
    [
        {"top_k": 5},
        {"model": "large"},
        {"style": "harsh"},
        {"model_kwargs": {"top_p": 0.9}},
        {"model_kwargs": {"odd": {"way": 2}}},
        {"model_kwargs": {"lora_name": "poet"}},
    ],
)
def test_what_may_decide_the_replies_makes_it_another_model(settings):
    assert model_identity(Hosted(**settings)) != model_identity(Hosted())


def test_retries_of_a_library_are_off_in_a_copy_and_its_client_is_made_anew():
    own = Hosted()
    weights = own.weights
    assert own._client == "a client that retries 6 times"
    quiet: Any = without_own_retries(own)
    assert quiet._client == "a client that retries 0 times"
    assert quiet.weights is weights
    assert own._client == "a client that retries 6 times"
    assert without_own_retries(quiet) is quiet
    assert model_identity(quiet) == model_identity(own)


@for_each(
    ("address", "problem"),
    [
        ("127.0.0.1:8000/v1", "`base_url` must begin with http://"),
        ("http://me:geheim@127.0.0.1/v1", "address holds a password"),
    ],
)
def test_an_address_that_shows_too_much_or_too_little_is_refused(address, problem):
    with pytest.raises(OptionError, match=problem) as refusal:
        resolve_model("m", base_url=address)
    assert "geheim" not in str(refusal.value)


# -- what a `ChatOpenAI` sends and returns when its client's own types are left out

FORM = {"type": "json_schema", "json_schema": {"name": "S", "schema": {"type": "object"}}}


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
def test_the_reply_says_what_the_client_would_have_read(answer: ServerReply):
    with FakeModelServer([answer, answer]) as server:
        model = server.chat(max_retries=0)
        own, plain = (
            each.invoke("Why?", response_format=FORM) for each in (model, with_plain_json(model))
        )
    assert plain.content == own.content
    assert plain.additional_kwargs.get("refusal") == own.additional_kwargs.get("refusal")
    assert plain.tool_calls == own.tool_calls
    assert plain.usage_metadata == own.usage_metadata
    assert plain.response_metadata["finish_reason"] == own.response_metadata["finish_reason"]


def test_the_body_says_what_the_client_would_have_sent():
    with FakeModelServer([reply("{}")] * 2) as server:
        model = server.chat(max_retries=0, seed=7, extra_body={"top_k": 1})
        for each in (model, with_plain_json(model)):
            each.invoke("Why?", response_format=FORM, logprobs=True)
    own, plain = (call.body for call in server.calls)
    assert {"stream": False, **plain} == own


def test_who_puts_a_create_of_his_own_to_trace_calls_still_reads_the_model(monkeypatch):
    seen, own = [], Completions.create

    @wraps(own)
    def create(self, **keywords):
        seen.append(keywords["model"])
        return own(self, **keywords)

    monkeypatch.setattr(Completions, "create", create)
    with FakeModelServer([reply("{}")]) as server:
        with_plain_json(server.chat(model="small")).invoke("Why?", response_format=FORM)
    assert seen == ["small"]


def test_azure_is_asked_at_the_address_of_its_model():
    class Azure(Handler):
        def do_POST(self):
            paths.append(self.path)
            send(self, reply("So.").payload)

    paths: list[str] = []
    with listening(Azure) as server:
        place = f"http://127.0.0.1:{server.server_port}"
        keys: dict[str, Any] = {
            "azure_endpoint": place,
            "api_version": "1",
            "api_key": SecretStr("x"),
        }
        model = AzureChatOpenAI(model="small", **keys)
        assert with_plain_json(model).invoke("Why?").text == "So."
    assert paths == ["/openai/deployments/small/chat/completions?api-version=1"]


def test_log_probabilities_stand_once_in_a_reply_and_so_in_its_trace_as_one_text():
    answer = reply("{}")
    answer.payload["choices"][0]["logprobs"] = {"content": [{"token": "{}", "logprob": -0.5}]}
    with FakeModelServer([answer]) as server:
        model = masked(with_plain_json(server.chat(api_key=SecretStr("sk-secret-key"))))
        [[generation]] = model.generate([[HumanMessage("Why?")]], logprobs=True).generations
    assert "logprobs" not in (generation.generation_info or {})
    metadata = cast("ChatGeneration", generation).message.response_metadata
    assert json.loads(metadata["logprobs"]["content"]) == [{"token": "{}", "logprob": -0.5}]


def test_a_token_that_spells_nothing_stays_one():
    answer = reply("yes")
    pieces = {"ye": [121, 101], "<pad>": [], "s": [115]}
    tokens = [{"token": each, "bytes": own, "logprob": -0.5} for each, own in pieces.items()]
    answer.payload["choices"][0]["logprobs"] = {"content": tokens}
    with FakeModelServer([answer]) as server:
        model = with_plain_json(server.chat(api_key=SecretStr("x")))
        message = model.invoke("Why?", logprobs=True)
    letters = Spelling.of(message)
    assert letters
    assert letters.pieces == [b"ye", b"", b"s"]


def test_what_calls_have_in_common_is_masked_once():
    asked = []

    class Counted(ChatOpenAI):
        def _get_invocation_params(self, stop=None, **settings):
            asked.append(settings)
            return super()._get_invocation_params(stop, **settings)

    own: Any = masked(Counted(model="m", api_key=SecretStr("sk-secret-key")))
    other = own.model_copy(update={"temperature": 0.5})
    calls = [(own, "a"), (own, "a"), (own, "b"), (other, "b")]
    told = [model._get_invocation_params(user=user) for model, user in calls]
    assert [each["user"] for each in told] == ["a", "a", "b", "b"]
    assert [each.get("temperature") for each in told] == [None, None, None, 0.5]
    assert asked == [{"user": "a"}, {"user": "b"}, {"user": "b"}]


CHANGES: dict[str, Any] = {
    "a setting": lambda model: setattr(model, "temperature", 0.5),
    "a part of one": lambda model: model.model_kwargs.update(user="Ann"),
}


@for_each("change", CHANGES)
def test_a_setting_that_is_changed_in_place_is_told_as_it_is(change):
    model: Any = ChatOpenAI(model="m", api_key=SecretStr("sk-secret-key"))
    own: Any = masked(model)
    before = own._get_invocation_params()
    CHANGES[change](own)
    CHANGES[change](model)
    after = own._get_invocation_params()
    assert after == model._get_invocation_params()
    assert after != before


LABEL = {"explanation": "-", "label": "1"}
TEXT = {"input": "Hi", "output": "Hello"}


@for_each("kind", ["bind", "with_retry", "with_fallbacks", "with_config"])
async def test_a_model_in_a_wrapper_of_langchain_is_asked(kind):
    model = FakeChatModel(replies=[LABEL, LABEL])
    down = FakeChatModel(replies=[ValueError("down")] * 9)
    wrapped: Any = {
        "bind": lambda: model.bind(stop=["END"]),
        "with_retry": lambda: model.with_retry(),
        "with_fallbacks": lambda: down.with_fallbacks([model]),
        "with_config": lambda: model.with_config(tags=["x"]),
    }[kind]()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        judge = create_rubric_judge(wrapped, rubric="Is it kind?")
    assert judge.invoke({"input": "Hi", "output": "Hello"})["verdict"]["label"] == 1
    later = await judge.ainvoke({"input": "Hi", "output": "Hey"})
    assert later["verdict"]["label"] == 1
    unknown = kind in ("bind", "with_fallbacks")
    assert ["neither the form" in str(each.message) for each in said] == [True] * unknown


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
def test_a_wrapped_model_is_taken_wherever_a_model_is():
    model = FakeChatModel(replies=fitting_reply)
    memory = FailureMemory()
    for wrapped in (model.with_retry(), model.bind(stop=["x"]), model.with_fallbacks([model])):
        for kind in METHODS.values():
            own = [n for n, each in kind.model_fields.items() if CHAT_MODEL in each.metadata]
            chosen: dict[str, Any] = dict.fromkeys(own, wrapped)
            options = kind(**kind.few, **chosen)
            assert all(isinstance(getattr(options, name), BaseChatModel) for name in own)
        assert create_jury([wrapped] * 3).invoke(PAIR)["verdict"]["preference"]
        assert create_cascade([wrapped] * 2).invoke(PAIR)["verdict"]["usage"]["calls"] > 0
        assert create_bsm_writer(wrapped).options.calls() > 0
        assert create_allure_audit(wrapped, memory, auditor=wrapped)
    writer = FakeChatModel(replies=["So."]).with_retry()
    # Of a row a model takes the task alone.
    row = {"input": "Why?", "reference": "Because."}
    assert best_of(1, create_direct_judge(model), writer).invoke(row)["output"] == "So."


BOUND = [
    *({"temperature": each} for each in (0.0, 0.3, 1.0)),
    *({"top_p": 0.5}, {"seed": 5}, {"max_tokens": 9}, {"stop": ["END"]}, {"logit_bias": {"1": 2}}),
    {"temperature": 0.3, "presence_penalty": 0.5},
]


@for_each("settings", BOUND)
def test_what_is_bound_is_asked_as_if_the_model_had_it(settings):
    with FakeModelServer(fitting_reply) as server:
        for model in (server.chat(**settings), server.chat().bind(**settings)):
            create_rubric_judge(model, rubric="Is it kind?").invoke(TEXT)
            create_self_consistency_judge(model, samples=2).invoke(PAIR)
    bodies = sorted(json.dumps(call.body, sort_keys=True) for call in server.calls)
    assert bodies[::2] == bodies[1::2]


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
def test_a_model_in_a_wrapper_keeps_its_temperature_unless_the_judge_has_one():
    with FakeModelServer(lambda call: error(400)) as server:
        first, second = server.chat(temperature=1), server.chat(temperature=0.9)
        chain = first.bind(user="Ann").with_fallbacks([second])
        for temperature in (None, 0.2):
            judge = create_rubric_judge(chain, rubric="Is it kind?", temperature=temperature)
            judge.invoke(TEXT)
    assert [call.body["temperature"] for call in server.calls] == [1, 0.9, 0.2, 0.2]


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
def test_a_model_in_a_wrapper_neither_retries_nor_tells_its_key(monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    key = SecretStr("geheimnis")
    with FakeModelServer(lambda call: error(500, "no room for geheimnis")) as server:
        model = server.chat(api_key=key, max_retries=5)
        for wrapped in (model.bind(user="Ann"), model.with_fallbacks([model]).with_retry()):
            verdict = create_rubric_judge(wrapped, rubric="Is it kind?").invoke(TEXT)["verdict"]
            assert "no room for ***" in verdict["failures"][0]["detail"]
    # Four attempts at the one model, and four at both of the other.
    assert len(server.calls) == 4 + 4 * 2


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
def test_two_models_in_wrappers_share_no_reply_of_langchains_cache(monkeypatch):
    monkeypatch.setattr("langchain_core.globals._llm_cache", InMemoryCache())
    labels = []
    for label in ("0", "1"):
        model = FakeChatModel(replies=[{"explanation": "-", "label": label}])
        judge = create_rubric_judge(model.bind(user=label), rubric="Is it kind?")
        labels.append(judge.invoke(TEXT)["verdict"]["label"])
    assert labels == [0, 1]


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
@for_each("kind", ["a setting", "bound", "bound to others", "behind another"])
def test_a_model_that_gives_several_replies_to_a_request_is_refused(kind):
    model: Any = ChatOpenAI(model="m", api_key=SecretStr("x"))
    several = model.model_copy(update={"n": 2})
    with pytest.raises(OptionError, match="n=2 asks for several replies"):
        resolve_model(
            {
                "a setting": several,
                "bound": model.bind(n=2),
                "bound to others": model.with_fallbacks([model]).bind(n=2),
                "behind another": model.with_fallbacks([several]),
            }[kind]
        )


def test_the_temperature_that_a_library_has_by_default_is_not_the_callers():
    class Own(FakeChatModel):
        temperature: float | None = 0.7

    class Library(Own):
        __module__ = "openai.models"

    models = Own(replies=[]), Library(replies=[]), Library(replies=[], temperature=0.7)
    own, unset, chosen = map(ModelAdapter, models)
    assert own.sampling(False, None) == chosen.sampling(False, None) == {}
    assert unset.sampling(False, None) == {"temperature": 0.0}
    assert "temperature" not in unset.identity


CONFIGURABLE: dict[str, Any] = {
    "fields": lambda m: m.configurable_fields(temperature=ConfigurableField(id="t")),
    "alternatives": lambda m: m.configurable_alternatives(ConfigurableField(id="m"), other=m),
    "no name": lambda m: init_chat_model(configurable_fields=("model",)),
    "a name": lambda m: init_chat_model("openai:m", configurable_fields=("temperature",)),
    "structured": lambda m: m.with_structured_output(shape_of("A", {"a": str})),
    "a function": lambda m: str,
}


@for_each("kind", CONFIGURABLE)
def test_what_is_no_chat_model_yet_is_refused_with_the_way_out(kind, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    model = CONFIGURABLE[kind](ChatOpenAI(model="m", api_key=SecretStr("x")))
    with pytest.raises(OptionError, match=r"if nothing is left to configure.*got a"):
        create_direct_judge(model)


@pytest.mark.filterwarnings("ignore:of the model:UserWarning")
def test_what_is_bound_decides_which_model_it_is_and_is_not_told():
    model: Any = FakeChatModel(replies=[])
    lambda_of_str: Any = RunnableLambda(str)
    one, other = map(resolve_model, (model.bind(user=name) for name in ("Ann", "Bob")))
    assert model_identity(one) != model_identity(other)
    assert "Ann" not in json.dumps(model_identity(one))
    with pytest.raises(OptionError, match="got a RunnableLambda"):
        resolve_model(lambda_of_str)
