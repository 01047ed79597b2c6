import logging
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from langchain_judges import create_bsm_judge
from langchain_judges.asking.clients import Secrets, masked
from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import ModelAccessError
from langchain_judges.testing import error, reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.model_server import pairs, scores

KEY, HEADER, QUERY, PASSWORD = "mykey-1234", "tenant-5678", "version-9012", "pa:ss word"
ADDRESS = f"http://me:{PASSWORD}@host/v1".replace(" ", "%20").replace("pa:ss", "pa%3Ass")


def configured(server, **settings):
    return chat(
        server,
        api_key=KEY,
        default_headers={"X-Tenant": f"Bearer {HEADER}"},
        default_query={"v": QUERY},
        **settings,
    )


def bsm(model):
    return create_bsm_judge(model, criteria=["Depth"], orders="none", repairs=0)


@pytest.mark.parametrize("secret", [KEY, HEADER, QUERY])
@pytest.mark.parametrize("answer", ["error", "refused", "reply"])
def test_what_a_server_echoes_of_the_configuration_reaches_no_tracer(serve, secret, answer):
    failed = {"error": error(400, f"bad {secret}"), "refused": error(401, f"wrong {secret}")}
    server = serve(lambda call: failed.get(answer) or reply(scores(4, 2, f"as {secret} says")))
    traced = RunCollectorCallbackHandler()
    with suppress(ModelAccessError):
        bsm(configured(server)).invoke(pairs(1)[0], {"callbacks": [traced]})
    runs = [text for run in traced.traced_runs for text in shown_of(run)]
    assert [text for text in runs if secret in text] == []
    assert any(text.startswith("llm") and "***" in text for text in runs)


def shown_of(run):
    """Return what a tracer gets of a run and of those below."""
    below = [text for child in run.child_runs for text in shown_of(child)]
    return [f"{run.run_type} {run.inputs} {run.outputs} {run.error}", *below]


async def test_a_model_of_any_class_masks_what_it_says_and_raises():
    class Served(FakeChatModel):
        api_key: str = KEY

    secrets = Secrets(Served())
    model = masked(Served(replies=lambda _: f"key {KEY}"), secrets)
    assert model.invoke("?").text == (await model.ainvoke("?")).text == "key ***"
    assert type(model.model_copy(update={"name": "x"})).__name__ == "Served"
    with pytest.raises(ValueError, match=r"no \*\*\*"):
        masked(Served(replies=lambda _: ValueError(f"no {KEY}")), secrets).invoke("?")


class Listener(AsyncCallbackHandler):
    def __init__(self):
        self.pieces = []

    async def on_llm_new_token(self, token, **_):
        self.pieces.append(token)


@pytest.mark.parametrize("made", [{}, {"streaming": True}], ids=["whole", "streaming"])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_who_listens_to_the_tokens_of_a_judge_gets_no_secret(made, kind):
    class Served(FakeChatModel):
        api_key: str = KEY
        streaming: bool = False
        streamed: list[str] = []

        def _stream(self, messages, *rest, **settings):
            for piece in scores(4, 2, f"as {KEY} says"):
                self.streamed.append(piece)
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    model, listener = (
        Served(replies=lambda _: scores(4, 2, f"as {KEY} says"), **made),
        Listener(),
    )
    config = {"callbacks": [listener]}
    run = bsm(model).astream(pairs(1)[0], config, stream_mode="messages")
    if kind == "sync":
        run = iterated(bsm(model).stream(pairs(1)[0], config, stream_mode="messages"))
    messages = [message async for message, _ in run]
    assert [KEY in message.text for message in messages] == [False]
    assert "***" in messages[0].text
    assert listener.pieces == []
    assert bool(model.streamed) is bool(made)  # the server gets the request that it takes


async def iterated(values):
    for value in values:
        yield value


def test_a_password_in_the_address_is_sent_and_shown_to_nobody(serve, caplog):
    server = serve(lambda call: reply(scores(4, 2)))
    caplog.set_level(logging.INFO)
    traced = RunCollectorCallbackHandler()
    model = resolve_model("m", base_url=server.url.replace("://", "://me:geheim@"))
    bsm(model).invoke(pairs(1)[0], {"callbacks": [traced]})
    # base64 of me:geheim
    assert server.calls[0].headers["authorization"] == "Basic bWU6Z2VoZWlt"
    assert "geheim" not in caplog.text
    assert "geheim" not in str([run.model_dump_json() for run in traced.traced_runs])


@for_each(
    ("text", "masked"),
    [
        (f"at {ADDRESS}", "at http://me:***@host/v1"),
        (PASSWORD, "***"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_every_form_of_a_password_is_masked(text, masked):
    class Served(FakeChatModel):
        endpoint: str = ADDRESS

    assert Secrets(Served()).mask(text) == masked


def test_repr_of_a_model_shows_no_password_of_its_address():
    model: Any = resolve_model("m", base_url="http://user:pa55@127.0.0.1:1/v1")
    assert "pa55" not in repr(model) + str(model)
    assert (type(model).__name__, model.openai_api_base) == (
        "ChatOpenAI",
        "http://user:pa55@127.0.0.1:1/v1",
    )
