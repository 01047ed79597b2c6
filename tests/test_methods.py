"""What every method keeps, and a judge as a node of a graph."""

import copy
import json
import pickle  # noqa: TID251 - as Ray and joblib send a judge
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from pydantic import BaseModel, ValidationError

from langchain_judges import (
    JudgeMiddleware,
    as_evaluator,
    best_of,
    create_bsm_judge,
    create_direct_judge,
    create_rubric_judge,
    judge_many,
)
from langchain_judges.asking.failures import failure_of
from langchain_judges.errors import OptionError
from langchain_judges.integrations import judge_tool
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.registry import BUILDERS, METHODS
from langchain_judges.testing import check_method, fitting_reply
from tests import judges
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.loopback import Handler, listening

PAIR = {"input": "Why is the sky blue?", "output_a": "Rayleigh.", "output_b": "It is."}


@pytest.mark.whole
@for_each("method", METHODS)
def test_every_method_keeps_the_contract(method):
    check_method(METHODS[method], BUILDERS[method])


@pytest.mark.filterwarnings("ignore:This API is in beta")
@for_each("method", METHODS)
def test_a_judge_as_a_tool_of_langchain_needs_no_more_than_what_is_judged(method):
    judge = judges.of_method(method, FakeChatModel(replies=judges.answer))
    tool = judge.as_tool(description="Judge it.")
    item = judges.item_of(method)
    assert tool.invoke(item)["verdict"] == judge.invoke(item)["verdict"]
    with pytest.raises(ValidationError, match="output"):
        tool.invoke({"input": "Why?"})


def test_the_graph_of_a_server_says_what_is_lacking_and_is_a_judge_when_told():
    there = RemoteGraph("direct", url="http://127.0.0.1:9")
    with pytest.raises(OptionError, match="Of another runnable say it by"):
        as_evaluator(there)
    told = there.with_config(metadata={"takes": "pair"})
    assert as_evaluator(told).reader.kind == "pair"


# What a proxy or another server may say of an error.
OTHER_FORMS = {
    "no class": {"detail": "x"},
    "no message": {"error": "InputError"},
    "a list": {"error": ["InputError"]},
    "nothing": {},
    "a text": "boom",
}


class Graphs(Handler):
    """LangGraph's server, whose graphs fail with the class that the row names."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        told = {"error": asked["output"], "message": "An internal error occurred"}
        event, data = "error", OTHER_FORMS.get(asked["output"], told)
        if asked["output"] == "good":
            event, data = "values", {"verdict": {"label": 1}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())


FAILURES_THERE = {
    "LackingError": "lacking",
    "InputError": "invalid_input",
    "OverBudget": "over_budget",
    "ValueError": "provider_error",
    "OptionError": "provider_error",
    **dict.fromkeys(OTHER_FORMS, "provider_error"),
    "no message": "invalid_input",
}


def judged_as_a_row(judge, text):
    rows = [{"input": "q", "output": each} for each in (text, "good")]
    first, _ = judge_many(judge, rows)
    return first["verdict"]


def judged_in_an_agent(judge, text):
    guard = JudgeMiddleware(judge, max_revisions=0)
    agent: Any = create_agent(FakeChatModel(replies=[text]), middleware=[guard])
    return agent.invoke({"messages": [("user", "q")]})["judged"][0]["verdict"]


def judged_by_a_tool(judge, text):
    call = {"type": "tool_call", "id": "1", "name": "judge_text"}
    return judge_tool(judge).invoke({**call, "args": {"input": "q", "output": text}}).artifact


def judged_in_a_contest(judge, text):
    fields = {"input": "q", "answers": [text, "good"]}
    return best_of(2, judge).invoke(fields)["bracket"][0]["verdict"]


# The verdict on a text, by what calls a judge.
CALLERS: dict[str, Any] = {
    "rows": judged_as_a_row,
    "evaluator": lambda judge, text: as_evaluator(judge)(inputs="q", outputs=text)["metadata"],
    "agent": judged_in_an_agent,
    "tool": judged_by_a_tool,
    "contest": judged_in_a_contest,
}


@for_each("caller", CALLERS)
def test_an_error_on_a_server_costs_its_text_alone(caller):
    with listening(Graphs) as server:
        there = RemoteGraph("rubric", url=f"http://127.0.0.1:{server.server_port}")
        judge: Any = there.with_config(metadata={"takes": "item"})
        told = {text: CALLERS[caller](judge, text) for text in ("good", *FAILURES_THERE)}
    assert told.pop("good")["label"] == 1
    reasons = {text: each["failures"][0]["reason"] for text, each in told.items()}
    assert reasons == FAILURES_THERE
    assert {each["label"] for each in told.values()} == {None}
    assert failure_of(RemoteException(), "run")["reason"] == "provider_error"


def test_a_replaced_prompt_must_belong_to_a_step():
    with pytest.raises(OptionError, match=r"`prompts`.*'branch', .*'solve'\], got 'x'"):
        create_bsm_judge(FakeChatModel(), prompts={"x": BSM.templates["branch"]})


def judge():
    reply = '{"explanation": "It says why.", "preference": "1"}'
    return create_direct_judge(FakeChatModel(replies=lambda _: reply))


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


@for_each("state", [Model, Data])
def test_a_judge_is_a_node_of_a_graph_of_any_state(state):
    parent = StateGraph(state)
    parent.add_node("judge", judge())
    parent.add_edge(START, "judge")
    assert parent.compile().invoke(PAIR)["verdict"]["preference"] == "A"


def test_a_judge_of_one_call_in_each_order_takes_one_node_and_tells_each_vote_once():
    relative = judges.of_method("relative")
    kinds = [event["kind"] for event in relative.stream(PAIR, stream_mode="custom")]
    assert [node for node in relative.nodes if node != "__start__"] == ["judge"]
    assert sorted(kinds) == ["reply", "reply", "verdict", "vote", "vote"]


def test_a_judge_is_copied_with_its_model_and_is_not_pickled():
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it kind?")
    for same in (copy.copy(judge), copy.deepcopy(judge)):
        same.invoke({"input": "Hi?", "output": "Hi."})
    assert len(model.prompts) == 2
    with pytest.raises(OptionError, match=r"`judge.spec`.* `load_judge\(spec\)`"):
        pickle.dumps(judge)
