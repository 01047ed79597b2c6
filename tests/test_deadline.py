import asyncio
import threading

import pytest

from langchain_judges import create_bsm_judge
from langchain_judges.asking.adapter import deadline_of
from langchain_judges.asking.models import resolve_model
from tests.fakes import FakeChatModel
from tests.model_server import pairs, scores


class Drips(FakeChatModel):
    """Never finishes a reply before the test lets it."""

    timeout: float = 0.01

    async def _agenerate(self, *args, **kwargs):
        await asyncio.Event().wait()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.adapter.SLACK", 0.01)
    monkeypatch.setattr("langchain_judges.asking.send.ATTEMPTS", 1)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_reply_that_never_ends_is_a_time_out(impatient, kind):
    ended = threading.Event()

    def respond(prompt):
        ended.wait()
        return scores(4, 2)

    judge = create_bsm_judge(Drips(replies=respond), criteria=["Depth"], orders="none")
    try:
        result = (
            judge.invoke(pairs(1)[0])
            if kind == "sync"
            else asyncio.run(judge.ainvoke(pairs(1)[0]))
        )
    finally:
        ended.set()
    failure = result["verdict"]["failures"][0]
    assert failure["reason"] == "timeout"
    assert failure["detail"] == "TimeoutError: no whole reply within 0.02 seconds"


def test_the_deadline_is_the_models_own_time_out_and_a_little_more():
    assert deadline_of(FakeChatModel()) is None
    assert deadline_of(Drips()) == 5.01
    assert deadline_of(resolve_model("m", base_url="http://x", timeout=30)) == 35
