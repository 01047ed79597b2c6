"""The fakes and recordings that users test their judges with."""

import threading
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_judges import create_bsm_judge, create_direct_judge, judge_many
from langchain_judges.testing import (
    FakeChatModel,
    FakeModelServer,
    NotRecorded,
    ReplayChatModel,
    ServerReply,
    error,
    fitting_reply,
    reply,
)
from tests.fakes import FakeToolModel

PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}
FIRST = {"explanation": "A is good.", "preference": "1"}


@tool
def add(n: int) -> int:
    """Add 1."""
    return n + 1


def verdict_of(model):
    return create_direct_judge(model, orders="none").invoke(PAIR)["verdict"]


def test_a_judge_on_a_script_reports_what_it_was_told():
    assert verdict_of(FakeChatModel(replies=[FIRST]))["preference"] == "A"
    assert verdict_of(FakeToolModel(replies=[FIRST]))["preference"] == "A"
    assert verdict_of(FakeChatModel(replies=[]))["failures"][0]["detail"].startswith(
        "ScriptEnded: Call 1 "
    )


def test_the_fakes_play_an_agent_that_calls_a_tool():
    asked: Any = {"messages": [("user", "Add 2.")]}
    script: list[Any] = [
        AIMessage("", tool_calls=[{"name": "add", "args": {"n": 2}, "id": "1"}]),
        "Done.",
    ]
    fake = FakeChatModel(replies=script)
    with FakeModelServer(script) as server:
        for model in (fake, server.chat()):
            state = create_agent(model, [add]).invoke(asked)
            assert [m.text for m in state["messages"][1:]] == ["", "3", "Done."]
    assert fake.settings[0]["tools"][0]["function"]["name"] == "add"


def test_a_server_replies_by_a_list_and_then_says_that_it_ended():
    with FakeModelServer([error(503), FIRST]) as server:
        assert verdict_of(server.chat())["preference"] == "A"
        failure = verdict_of(server.chat())["failures"][0]
    assert failure["detail"].startswith("HTTP 400: ")
    assert "Call 3 " in failure["detail"]
    assert [call.number for call in server.calls] == [0, 1, 2]
    assert PAIR["input"] in server.calls[1].prompt


def test_a_server_listens_again_after_a_block():
    server = FakeModelServer(fitting_reply)
    for number in (1, 2):
        with server:
            verdict_of(server.chat())
        assert len(server.calls) == number


def test_a_reply_fits_the_schema_wherever_the_request_has_it():
    with FakeModelServer(fitting_reply) as server:
        assert verdict_of(server.chat())["preference"] in {"A", "B", "tie"}
        assert server.calls[0].schema
        prompted = server.chat(profile={"structured_output": False, "tool_calling": False})
        assert verdict_of(prompted)["preference"] in {"A", "B", "tie"}


def test_an_answer_is_held_until_its_event_is_set():
    event, arrived, verdicts = threading.Event(), threading.Event(), []

    def held(_: object) -> ServerReply:
        arrived.set()
        return ServerReply(hold=event, payload=reply(FIRST).payload)

    with FakeModelServer(held) as server:
        work = threading.Thread(target=lambda: verdicts.append(verdict_of(server.chat())))
        work.start()
        arrived.wait()
        assert (server.peak, verdicts) == (1, [])
        event.set()
        work.join()
    assert verdicts[0]["preference"] == "A"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recorded" / "replies.jsonl"


def recording(path, replies, **options):
    fake = FakeChatModel(replies=replies)
    return fake, ReplayChatModel(model=fake, path=path, **options)


def test_a_replayed_judge_gives_the_verdict_that_was_recorded(path):
    _, model = recording(path, lambda _: {"score_1": 4, "score_2": 2, "explanation": "Longer."})
    options: dict[str, Any] = {"criteria": ["Truth", "Tone"], "samples": 2}
    recorded = create_bsm_judge(model, **options).invoke(PAIR)
    replayed = create_bsm_judge(ReplayChatModel(path=path), **options).invoke(PAIR)
    assert replayed == recorded
    # Two criteria, two orders and two samples, told apart by their seeds.
    assert len(path.read_text().splitlines()) == 8


def test_another_request_is_refused_in_a_sentence_that_says_how_to_record_it(path):
    recording(path, ["yes"])[1].invoke("Is 2 + 2 = 4?", seed=1)
    model = ReplayChatModel(path=path)
    with pytest.raises(NotRecorded, match=r"'Is 2 \+ 2 = 5\?'.*ReplayChatModel\("):
        model.invoke("Is 2 + 2 = 5?", seed=1)
    with pytest.raises(NotRecorded, match=r"'seed': 2"):
        model.invoke("Is 2 + 2 = 4?", seed=2)


def test_a_run_ends_at_a_request_that_is_not_recorded(path):
    judge = create_direct_judge(ReplayChatModel(path=path), orders="none")
    how = r"Replies are replayed from .* {}.* run the same code once with ReplayChatModel\("
    with pytest.raises(NotRecorded, match=how.format("does not exist")):
        judge.invoke(PAIR)
    path.parent.mkdir()
    path.write_text("")
    with pytest.raises(NotRecorded, match=how.format("which lacks this request")):
        list(judge_many(judge, [PAIR], progress=False))
