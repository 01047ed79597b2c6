"""Finished calls of a judge with a checkpointer are paid once, whatever ends the run."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import ajudge_many, create_bsm_judge, judge_many
from langchain_judges.errors import ModelAccessError
from tests.fakes import FakeChatModel, goods, judged_by
from tests.model_server import pairs

KINDS = pytest.mark.parametrize("kind", ["sync", "async"])
THREAD = {"configurable": {"thread_id": "t"}}


class LateSaver(InMemorySaver):
    """Has not written a branch's result when the process dies; the journal it has."""

    def put_writes(self, config, writes, task_id, task_path=""):
        if config["configurable"]["thread_id"] != "t":
            super().put_writes(config, writes, task_id, task_path)


def invoke(judge, row, kind):
    if kind == "sync":
        return judge.invoke(row, THREAD)
    return asyncio.run(judge.ainvoke(row, THREAD))


@KINDS
def test_a_kill_before_the_checkpoint_is_written_costs_no_finished_call(kind):
    answered, answer = Counter[str](), judged_by(goods)
    alive: list[int] = []

    def respond(prompt):
        if "how much Tone" in prompt and not alive:
            return ModelAuthenticationError("the end of this process")
        answered[prompt] += 1
        return answer(prompt)

    criteria = [f"{name}: how much {name}" for name in ("Depth", "Clarity", "Tone")]
    judge = create_bsm_judge(
        FakeChatModel(replies=respond),
        criteria=criteria,
        orders="none",
        checkpointer=LateSaver(),
    ).with_config(max_concurrency=1)  # Tone comes last
    with pytest.raises(ModelAccessError):
        invoke(judge, pairs(1)[0], kind)
    assert answered.total() == 2
    alive.append(True)
    verdict = invoke(judge, None, kind)["verdict"]
    assert set(answered.values()) == {1}
    # What the journal held counts as paid in the verdict: three calls of 7 + 3 tokens.
    assert (verdict["usage"]["calls"], verdict["usage"]["input_tokens"]) == (3, 21)


@KINDS
def test_calls_beside_the_one_whose_key_is_revoked_come_back_and_are_paid_once(kind):
    answered, answer = Counter[str](), judged_by(goods)
    calls, revoked, good_key = iter(range(100)), threading.Event(), threading.Event()
    waiting = threading.Semaphore(0)

    def respond(prompt):
        number = next(calls)
        if not good_key.is_set() and number in {5, 6}:
            waiting.release()
            revoked.wait()
        if not good_key.is_set() and number == 7:
            waiting.acquire()
            waiting.acquire()
            revoked.set()
            return ModelAuthenticationError("revoked")
        answered[prompt] += 1
        return answer(prompt)

    judge = create_bsm_judge(FakeChatModel(replies=respond), checkpointer=InMemorySaver())
    with pytest.raises(ModelAccessError):
        judged(judge, kind)
    good_key.set()
    assert judged(judge, kind)[0]["verdict"]["preference"] == "A"
    # A plan and ten solves.
    assert (len(answered), set(answered.values())) == (11, {1})


def judged(judge, kind):
    settings: dict[str, Any] = {"max_concurrency": 3, "progress": False}
    if kind == "sync":
        return list(judge_many(judge, pairs(1), **settings))

    async def work():
        return [row async for row in ajudge_many(judge, pairs(1), **settings)]

    return asyncio.run(work())


@KINDS
def test_the_journal_is_gone_when_the_run_has_ended(kind):
    saver = InMemorySaver()
    judge = create_bsm_judge(FakeChatModel(), checkpointer=saver)
    invoke(judge, pairs(1)[0], kind)
    assert {each.config["configurable"]["thread_id"] for each in saver.list(None)} == {"t"}


@KINDS
def test_of_a_row_that_was_not_judged_only_what_failed_is_asked_again(kind):
    requests, usable, answer = Counter[str](), threading.Event(), judged_by(goods)

    def respond(prompt):
        requests[prompt] += 1
        return answer(prompt) if "how much Depth" in prompt or usable.is_set() else "no"

    judge = create_bsm_judge(
        FakeChatModel(replies=respond),
        criteria=["Depth: how much Depth", "Tone: how much Tone"],
        orders="none",
        repairs=0,
        checkpointer=InMemorySaver(),
    )
    assert judged(judge, kind)[0]["verdict"]["preference"] is None
    usable.set()
    assert judged(judge, kind)[0]["verdict"]["preference"] == "A"
    # Depth once, Tone twice.
    assert sorted(requests.values()) == [1, 2]
