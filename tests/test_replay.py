"""Recorded replies: written once, replayed for the same request, refused for any other."""

import json
from typing import Any

import pytest

from langchain_judges import create_bsm_judge, create_direct_judge, judge_many
from langchain_judges.errors import ModelAccessError
from langchain_judges.testing import (
    FakeChatModel,
    NotRecorded,
    RecordingChatModel,
    ReplayChatModel,
)

PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}
FIRST = {"explanation": "A is good.", "preference": "1"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recorded" / "replies.jsonl"


def recording(path, replies, **options):
    fake = FakeChatModel(replies=replies)
    return fake, RecordingChatModel(model=fake, path=path, **options)


def test_a_replayed_judge_gives_the_verdict_that_was_recorded(path):
    _, model = recording(path, lambda _: {"score_1": 4, "score_2": 2, "explanation": "Longer."})
    options: dict[str, Any] = {"criteria": ["Truth", "Tone"], "samples": 2}
    recorded = create_bsm_judge(model, **options).invoke(PAIR)
    replayed = create_bsm_judge(ReplayChatModel(path=path), **options).invoke(PAIR)
    assert replayed == recorded
    # Two criteria, two orders and two samples, told apart by their seeds.
    assert len(path.read_text().splitlines()) == 8


def test_a_line_says_who_answered_what_and_when(path):
    _, model = recording(path, ["Hello."], answered_by="a model")
    model.invoke("Hi", seed=3, stop=["!"])
    (entry,) = ReplayChatModel(path=path).recorded
    assert (entry["model"], entry["date"][:2]) == ("a model", "20")
    assert entry["messages"] == [["human", "Hi"]]
    assert entry["settings"] == {"seed": 3, "stop": ["!"]}
    assert (entry["reply"]["text"], entry["reply"]["usage"]["total_tokens"]) == ("Hello.", 10)


def test_what_is_recorded_is_not_asked_again(path):
    recording(path, ["once"])[1].invoke("Hi")
    fake, model = recording(path, ["twice"])
    assert model.invoke("Hi").text == "once"
    assert fake.prompts == []


def test_a_keyword_that_the_model_does_not_take_is_recorded_but_not_sent(path):
    fake, model = recording(path, ["yes"], not_sent=["seed"])
    model.invoke("Hi", seed=3, temperature=1)
    assert fake.settings == [{"temperature": 1}]
    assert ReplayChatModel(path=path).invoke("Hi", seed=3, temperature=1).text == "yes"


def test_another_request_is_refused_in_a_sentence_that_says_how_to_record_it(path):
    recording(path, ["yes"])[1].invoke("Is 2 + 2 = 4?", seed=1)
    model = ReplayChatModel(path=path)
    with pytest.raises(NotRecorded, match=r"at '5\?.*recorded: '4\?.*RecordingChatModel\("):
        model.invoke("Is 2 + 2 = 5?", seed=1)
    with pytest.raises(NotRecorded, match=r"at '2\}', recorded: '1\}'"):
        model.invoke("Is 2 + 2 = 4?", seed=2)


def test_a_run_ends_at_a_request_that_is_not_recorded(path):
    path.parent.mkdir()
    path.write_text("")
    judge = create_direct_judge(ReplayChatModel(path=path), orders="none")
    with pytest.raises(ModelAccessError, match=r"holds no recorded reply\. To record it"):
        list(judge_many(judge, [PAIR], progress=False))


def test_an_edited_request_answers_itself_and_not_the_one_it_was(path):
    recording(path, ["yes"])[1].invoke("Hi")
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({**entry, "messages": [["human", "Ho"]]}))
    assert ReplayChatModel(path=path).invoke("Ho").text == "yes"
    with pytest.raises(NotRecorded):
        ReplayChatModel(path=path).invoke("Hi")
