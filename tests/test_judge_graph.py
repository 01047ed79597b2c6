"""A judge inside other graphs, and its streams."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges import create_direct_judge
from tests import judges
from tests.cases import for_each
from tests.fakes import FakeChatModel

PAIR = {"input": "Why?", "output_a": "Because of rain.", "output_b": "No idea."}


def judge():
    reply = '{"explanation": "It says why.", "preference": "1"}'
    return create_direct_judge(FakeChatModel(replies=lambda _: reply))


class Typed(TypedDict, total=False):
    input: Any
    output_a: Any
    output_b: Any
    verdict: Any


class Model(BaseModel):
    input: Any = None
    output_a: str = ""
    output_b: str = ""
    verdict: Any = None


@dataclass
class Data:
    input: Any = None
    output_a: str = ""
    output_b: str = ""
    verdict: Any = None


@for_each("state", [Typed, Model, Data])
def test_a_judge_is_a_node_of_a_graph_of_any_state(state):
    parent = StateGraph(state)
    parent.add_node("judge", judge())
    parent.add_edge(START, "judge")
    assert parent.compile().invoke(PAIR)["verdict"]["preference"] == "A"


class NoThreads(ThreadPoolExecutor):
    def submit(self, *_, **__):
        raise AssertionError("a thread")


async def test_an_asynchronous_judge_starts_no_thread_to_find_its_way():
    asyncio.get_running_loop().set_default_executor(NoThreads())
    same = {**PAIR, "output_b": PAIR["output_a"]}  # a tie at once: the model's own calls apart
    assert (await judge().ainvoke(same))["verdict"]["preference"] == "tie"


def test_a_judge_of_one_call_in_each_order_takes_one_node_and_tells_each_vote_once():
    relative = judges.of_method("relative")
    kinds = [event["kind"] for event in relative.stream(PAIR, stream_mode="custom")]
    assert [node for node in relative.nodes if node != "__start__"] == ["judge"]
    assert sorted(kinds) == ["reply", "reply", "verdict", "vote", "vote"]


def test_a_thread_keeps_nothing_of_its_pair_before_in_one_node():
    relative = judges.of_method("relative", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    first, second = (relative.invoke(PAIR, config) for _ in range(2))
    assert len(first["ballots"]) == len(second["ballots"]) == 2
    assert second["verdict"]["usage"]["calls"] == 2


async def test_closing_a_stream_closes_the_run_below():
    stream = judges.bsm().astream(PAIR, stream_mode="updates")
    first = await anext(stream)
    await stream.aclose()
    assert "begin" in first
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


def test_a_copy_keeps_what_a_judge_says_of_itself():
    own = judge()
    copy = own.with_config(tags=["x"])
    assert (type(copy), copy.options, copy.model) == (type(own), own.options, own.model)
