"""The fakes that users test their judges with."""

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError

from langchain_judges import create_direct_judge, testing
from langchain_judges.testing import (
    FakeChatModel,
    FakeModelServer,
    FakeToolModel,
    ScriptEnded,
    ServerReply,
    error,
    reply,
    with_logprobs,
)

ROOT = Path(__file__).parents[1]
PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}
FIRST = {"explanation": "A is good.", "preference": "1"}


def verdict_of(model):
    return create_direct_judge(model, orders="none").invoke(PAIR)["verdict"]


def test_a_list_gives_each_call_its_next_reply_and_then_says_that_it_ended():
    model = FakeChatModel(replies=["one", {"two": 2}])
    assert [model.invoke("a").text, model.invoke("b").text] == ["one", '{"two": 2}']
    assert model.prompts == ["a", "b"]
    with pytest.raises(ScriptEnded, match="Call 3 of a script of 2 replies"):
        model.invoke("c")


def test_a_function_replies_to_the_prompt_and_exceptions_are_raised():
    model = FakeChatModel(replies=lambda prompt: prompt.upper() if prompt else OSError("cut"))
    assert model.invoke("why").text == "WHY"
    with pytest.raises(OSError, match="cut"):
        model.invoke("")


def test_the_keywords_of_every_call_are_kept():
    model = FakeChatModel(replies=["a", "b"])
    model.invoke("q", seed=3)
    model.bind(seed=4).invoke("q")
    assert [settings["seed"] for settings in model.settings] == [3, 4]


def test_a_misspelt_option_of_a_fake_is_refused():
    with pytest.raises(ValidationError, match="reply"):
        FakeChatModel(replies=["a"], **cast("Any", {"reply": "b"}))


def test_a_model_with_tools_fills_what_is_asked_for():
    class Colour(BaseModel):
        name: str

    structured = FakeToolModel(replies=[{"name": "red"}]).with_structured_output(Colour)
    assert structured.invoke("Which colour?") == Colour(name="red")


def test_a_judge_on_a_script_reports_what_it_was_told():
    assert verdict_of(FakeChatModel(replies=[FIRST]))["preference"] == "A"
    assert verdict_of(FakeToolModel(replies=[FIRST]))["preference"] == "A"
    assert verdict_of(FakeChatModel(replies=[]))["failures"][0]["detail"] == (
        "ScriptEnded: Call 1 of a script of 0 replies"
    )


def test_a_server_replies_by_a_list_and_then_says_that_it_ended():
    with FakeModelServer([error(503), FIRST]) as server:
        assert verdict_of(server.chat())["preference"] == "A"
        failure = verdict_of(server.chat())["failures"][0]
    assert failure["detail"].startswith("HTTP 400: ")
    assert "Call 3 of a script of 2 replies" in failure["detail"]
    assert [call.number for call in server.calls] == [0, 1, 2]
    assert PAIR["input"] in server.calls[1].prompt


def test_log_probabilities_come_the_same_way_from_a_server():
    message = with_logprobs(("ye", 0.5), ("s", 1, {"s": 1.0}))
    with FakeModelServer([message]) as server:
        answer = server.chat(logprobs=True).invoke("q")
    assert answer.text == message.text == "yes"
    content = answer.response_metadata["logprobs"]["content"]
    assert content == message.response_metadata["logprobs"]["content"]


@pytest.mark.parametrize("answer", [ServerReply(body=b"<html>"), reply("no")])
def test_a_broken_reply_is_a_failure_and_no_verdict(answer):
    with FakeModelServer(lambda call: answer) as server:
        verdict = verdict_of(server.chat(timeout=60))
    assert (verdict["preference"], len(verdict["failures"])) == (None, 1)


def test_an_answer_is_held_until_its_event_is_set():
    event, verdicts = threading.Event(), []
    with FakeModelServer(
        lambda call: ServerReply(hold=event, payload=reply(FIRST).payload)
    ) as server:
        work = threading.Thread(target=lambda: verdicts.append(verdict_of(server.chat())))
        work.start()
        server.wait_for_calls(1)
        assert (server.peak, verdicts) == (1, [])
        event.set()
        work.join()
    assert verdicts[0]["preference"] == "A"


def test_requests_that_do_not_come_are_a_timeout():
    with FakeModelServer([]) as server, pytest.raises(TimeoutError, match="0 of 1 requests"):
        server.wait_for_calls(1, timeout=0.01)


def test_every_name_is_documented_on_its_page():
    page = (testing.__doc__ or "") + (ROOT / "docs" / "testing.md").read_text()
    assert [name for name in testing.__all__ if name not in page] == []


def test_the_prompt_of_a_call_in_blocks_is_its_texts():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    call = testing.ServerCall(
        0, {"messages": [{"content": "be fair"}, {"content": [{"text": "why?"}, image]}]}, {}
    )
    assert call.prompt == "be fair\nwhy?"
