"""What a judge's stream tells while it works, and that nobody has to listen."""

import asyncio
import json
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from langchain_judges import create_bsm_judge
from langchain_judges.asking.effects import Event
from langchain_judges.methods.registry import METHODS
from tests.cases import for_each
from tests.fakes import FakeChatModel, goods, judged_by
from tests.judges import PAIR, item_of, of_method


class Said(BaseModel):
    answer: str


def streamed(judge, kind, pair=PAIR):
    async def later():
        return [event async for event in judge.astream(pair, stream_mode="custom")]

    if kind == "async":
        return asyncio.run(later())
    return list(judge.stream(pair, stream_mode="custom"))


def of(events, kind):
    return [event["data"] for event in events if event["kind"] == kind]


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])
# Where a result holds what an event tells.
RESULTS = {
    "aspect": "aspects",
    "choice": "choices",
    "claim": "claims",
    "criterion": "criteria",
    "match": "bracket",
    "proposal": "proposals",
    "role": "roles",
    "subscore": "subscores",
    "table": "tables",
    "vote": "ballots",
}


def sorted_json(results):
    return sorted(json.dumps(each, sort_keys=True) for each in results)


@KINDS
@for_each("method", sorted(METHODS))
def test_every_result_of_every_method_is_told_as_it_lands(method, kind):
    # Three tables make a bye, which is a match without a call.
    options: dict[str, Any] = {}
    if method == "sc2":
        options = {"aspects": None, "aspect_samples": 2, "samples": 3}
    judge, item = of_method(method, **options), item_of(method)
    events, result = streamed(judge, kind, item), judge.invoke(item)
    assert all(set(event) == set(Event.__annotations__) for event in events)
    assert json.loads(json.dumps(events)) == events
    kinds = {event["kind"] for event in events}
    landed = {name: key for name, key in RESULTS.items() if result.get(key)}
    # Votes that are made of scores at the end land with the verdict.
    assert {*landed} - {"vote"} <= kinds - {"reply", "verdict"} <= {*RESULTS}
    steps = {*judge.nodes, *result["verdict"]["usage"]["by_step"]}
    assert {event["step"] for event in events} <= steps
    assert len(of(events, "reply")) == result["verdict"]["usage"]["calls"]
    assert of(events, "verdict") == [result["verdict"]]
    for called in kinds & {*landed}:
        assert sorted_json(of(events, called)) == sorted_json(result[landed[called]])


@KINDS
def test_a_result_is_told_while_others_are_still_at_work(kind):
    first_told, by_quality = threading.Event(), judged_by(goods)

    def respond(prompt):
        # The second criterion is answered only when the first has been told.
        if "Tone" in prompt:
            assert first_told.wait(20)
        return by_quality(prompt)

    judge = create_bsm_judge(
        FakeChatModel(replies=respond), criteria=["Depth", "Tone"], orders="none"
    )
    order = []

    def note(event):
        order.append((event["kind"], (event["data"] or {}).get("criterion")))
        if order[-1] == ("subscore", "Depth"):
            first_told.set()

    async def later():
        async for event in judge.astream(PAIR, stream_mode="custom"):
            note(event)

    if kind == "sync":
        for event in judge.stream(PAIR, stream_mode="custom"):
            note(event)
    else:
        asyncio.run(later())
    assert order.index(("subscore", "Depth")) < order.index(("subscore", "Tone"))
