"""What applications return, in sixty shapes: made by the libraries whose shapes they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any
from uuid import UUID

from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.agents import AgentAction
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    message_to_dict,
    messages_to_dict,
)
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph, add_messages
from langgraph.types import GraphOutput, Interrupt
from langsmith.schemas import Run
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.fakes import FakeToolModel

TASK = "Where are my parcels?"
FOUND = {7: "in Kyiv", 9: "in Oslo"}
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def track(n: int) -> str:
    """Find a parcel."""
    return FOUND[n]


def call(number: int, id: str) -> dict[str, Any]:
    return {"name": "track", "args": {"n": number}, "id": id, "type": "tool_call"}


ANSWER = AIMessage("Oslo and Kyiv.")
PARALLEL = [
    AIMessage("", tool_calls=[call(7, "1"), call(9, "2")]),
    ToolMessage("in Oslo", tool_call_id="2", name="track"),
    ToolMessage("in Kyiv", tool_call_id="1", name="track"),
    ANSWER,
]
"""An agent's work whose results come back in another order than its calls."""
TALK = [
    HumanMessage("Hello"),
    AIMessage("Hi, what may I do?"),
    HumanMessage(TASK),
    AIMessage("In Oslo."),
    HumanMessage("thanks"),
]


class City(BaseModel):
    """Where it is."""

    name: str
    country: str


def agent(*turns: AIMessage, **options: Any) -> Any:
    """A real agent with the tool, whose model takes the given turns."""
    return create_agent(FakeToolModel(replies=list(turns)), [track], **options)


def state(*turns: AIMessage, **options: Any) -> dict[str, Any]:
    return agent(*turns, **options).invoke({"messages": [HumanMessage(TASK)]})


def waiting(*turns: AIMessage, **options: Any) -> tuple[dict[str, Any], Any]:
    """The state of an agent with a checkpointer, and its snapshot."""
    config: Any = {"configurable": {"thread_id": "1"}}
    own = agent(*turns, checkpointer=InMemorySaver(), **options)
    done: dict[str, Any] = {}
    with suppress(KeyError):  # of the tool
        done = own.invoke({"messages": [HumanMessage(TASK)]}, config)
    return done, own.get_state(config)


ASKS = AIMessage("", tool_calls=[call(7, "1"), call(9, "2")])
ONE = AIMessage("Let me look.", tool_calls=[call(7, "1")])
IN_KYIV = AIMessage("It is in Kyiv.")
BROKEN = invalid_tool_call(name="track", args='{"n": ', id="2", error="cut off")


def agents() -> Iterator[tuple[str, Any]]:
    """Yield states of `create_agent`."""
    yield "agent: an answer alone", state(AIMessage("In Oslo."))
    yield "agent: a tool", state(ONE, IN_KYIV)
    yield "agent: calls at once", state(ASKS, ANSWER)
    wrong = AIMessage("", tool_calls=[{**call(5, "1"), "args": {"n": 5}}])
    retries: Any = {"max_retries": 0, "on_failure": lambda exc: "there is no such parcel"}
    yield (
        "agent: a tool that fails",
        state(wrong, AIMessage("I do not know."), middleware=[ToolRetryMiddleware(**retries)]),
    )
    oslo = City(name="Oslo", country="NO").model_dump()
    answering = AIMessage("", tool_calls=[{"name": "City", "args": oslo, "id": "3"}])
    structured: Any = {"response_format": ToolStrategy(City)}
    yield "agent: a structured answer", state(answering, **structured)
    yield "agent: a tool, then a structured answer", state(ONE, answering, **structured)
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    yield "agent: at its limit of calls", state(ONE, IN_KYIV, middleware=[limit])
    human: Any = HumanInTheLoopMiddleware(interrupt_on={"track": True})
    stopped, snapshot = waiting(ONE, IN_KYIV, middleware=[human])
    yield "agent: interrupted", stopped
    yield "agent: the snapshot of an interrupted thread", snapshot
    yield "agent: the snapshot of a thread", waiting(ONE, IN_KYIV)[1]
    _, before = waiting(ONE, interrupt_before=["tools"])
    yield "agent: the snapshot of a thread that stopped before its tool", before
    failed = waiting(wrong)[1]
    yield "agent: the snapshot of a thread whose tool failed", failed
    task = {"id": "1", "name": "tools", "error": failed.tasks[0].error, "interrupts": []}
    thread = {"values": failed.values, "next": ["tools"], "tasks": [task], "interrupts": []}
    yield "agent: a thread whose tool failed, as a server returns it", thread
    cut = AIMessage("Oslo and", response_metadata={"finish_reason": "length"})
    yield "agent: a reply that was cut", state(ASKS, cut)
    yield "agent: nobody replied", {"messages": [HumanMessage(TASK)]}
    yield "agent: an invalid call", state(AIMessage("", invalid_tool_calls=[BROKEN]))


class Reply(BaseModel):
    """A possible result of a chain."""

    answer: str
    score: int


class Talk(BaseModel):
    """A state of a graph."""

    messages: list[BaseMessage]


class Found(TypedDict):
    question: str
    documents: list[Document]
    answer: str


class Team(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    plan: str


DOCUMENTS = [
    Document("Parcel 7 is in Kyiv.", metadata={"title": "Parcels", "source": "a.html"}),
    Document("Parcel 9 is in Oslo."),
]


def graph(kind: Any, update: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The state at the end of a graph of one node."""
    builder = StateGraph(kind)
    builder.add_node("work", lambda _: update)
    builder.set_entry_point("work")
    builder.set_finish_point("work")
    return builder.compile().invoke(given)


STEPS = [
    (AgentAction("track", {"n": 7}, "I look."), "in Kyiv"),
    (AgentAction("track", {"n": 9}, ""), "in Oslo"),
]
OFFLOADED = {
    "messages": [
        AIMessage("", tool_calls=[call(7, "1")]),
        ToolMessage("Too large: /large_tool_results/1", tool_call_id="1", name="track"),
        AIMessage("In Kyiv."),
    ],
    "files": {
        "/large_tool_results/1": {"content": ["parcel 7", "in Kyiv"], "created_at": "2026"},
        "/report.md": "It is in Kyiv.",
    },
}
"""The state of a deep agent that keeps a long result in a file."""
SUPERVISED = [
    AIMessage("", name="supervisor", tool_calls=[call(7, "1")]),
    ToolMessage("to the finder", tool_call_id="1", name="track"),
    AIMessage("", name="finder", tool_calls=[call(9, "2")]),
    ToolMessage("in Oslo", tool_call_id="2", name="track"),
    AIMessage("In Oslo.", name="finder"),
    AIMessage("It is in Oslo.", name="supervisor"),
]


def executors() -> Iterator[tuple[str, Any]]:
    """Yield what agents return whose work is not in messages alone."""
    yield "executor: its steps", {"input": TASK, "output": "Both.", "intermediate_steps": STEPS}
    traced = [[action.model_dump(), seen] for action, seen in STEPS]
    yield "executor: traced", {"output": "Both.", "intermediate_steps": traced}
    yield "deep agent: a result in a file", OFFLOADED
    yield "graph: a supervisor's thread", {"messages": [HumanMessage(TASK), *SUPERVISED]}


def graphs() -> Iterator[tuple[str, Any]]:
    """Yield states of graphs and of chains with documents."""
    found = {"documents": DOCUMENTS, "answer": "In Oslo."}
    yield "graph: documents and an answer", graph(Found, found, {"question": TASK})
    speakers = [AIMessage("I look.", name="planner"), AIMessage("In Oslo.", name="finder")]
    team = {"messages": speakers, "plan": "look"}
    yield "graph: agents with names", graph(Team, team, {"messages": [("user", TASK)]})
    chain = RunnablePassthrough.assign(context=lambda _: DOCUMENTS, answer=lambda _: "In Oslo.")
    yield "chain: a retrieval chain", chain.invoke({"question": TASK})
    legacy = {"query": TASK, "result": "In Oslo.", "source_documents": DOCUMENTS}
    yield "chain: RetrievalQA", legacy
    work = {"messages": messages_to_dict([HumanMessage(TASK), *PARALLEL])}
    yield "server: a thread", {"values": work, "next": [], "tasks": [], "interrupts": []}
    yield "graph: version 2 of its result", GraphOutput({"messages": PARALLEL})
    paused = GraphOutput(Talk(messages=PARALLEL), (Interrupt("Is it paid?", id="i"),))
    yield "graph: version 2, a model that waits", paused
    done = {"results": [{"messages": messages_to_dict(PARALLEL)}, {}], "steps": [["agent"], []]}
    yield "graph: a trajectory of agentevals", {"inputs": [{"n": 7}], "outputs": done}
    tools = [{"name": "track", "description": "Find a parcel."}]
    yield "graph: with the tools available", {"messages": PARALLEL, "tools": tools}


USED = [
    {"type": "tool_use", "id": id, "name": "track", "input": {"n": n}}
    for id, n in (("1", 7), ("2", 9))
]
KYIV = [{"type": "text", "text": "in Kyiv"}]
RESULTS = [
    {"type": "tool_result", "tool_use_id": "2", "content": "in Oslo"},
    {"type": "tool_result", "tool_use_id": "1", "content": KYIV},
]
ANTHROPIC = [
    {"role": "assistant", "content": USED},
    {"role": "user", "content": RESULTS},
    {"role": "assistant", "content": "Oslo and Kyiv."},
]
RESPONSES = [
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "name": "track", "arguments": '{"n": 7}', "call_id": "1"},
    {"type": "function_call", "name": "track", "arguments": '{"n": 9}', "call_id": "2"},
    {"type": "function_call_output", "call_id": "2", "output": "in Oslo"},
    {"type": "function_call_output", "call_id": "1", "output": "in Kyiv"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Oslo and Kyiv."}],
    },
]
SEARCHED: list[str | dict[Any, Any]] = [
    {"type": "text", "text": "I look."},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "parcel 7"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "In Kyiv"}]},
    {"type": "text", "text": "In Kyiv."},
]
"""What a model of Anthropic does that searches by itself."""
BEDROCK = [
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "1", "name": "track", "input": {"n": 7}}}],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "in Kyiv"}]}}],
    },
    {"role": "assistant", "content": [{"text": "In Kyiv."}]},
]
GEMINI = [
    {"role": "model", "parts": [{"function_call": {"name": "track", "args": {"n": 7}}}]},
    {
        "role": "user",
        "parts": [{"function_response": {"name": "track", "response": {"at": "Kyiv"}}}],
    },
    {"role": "model", "parts": [{"text": "Kyiv?", "thought": True}, {"text": "In Kyiv."}]},
]
STANDARD: list[str | dict[Any, Any]] = [
    {"type": "reasoning", "reasoning": "Let me see."},
    {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"query": "parcel 7"}},
    {"type": "server_tool_result", "tool_call_id": "s", "status": "error", "output": "too slow"},
    {"type": "non_standard", "value": {"page": 4}},
    {"type": "refusal", "refusal": "I may not say."},
]
"""Content blocks of LangChain's standard, and of providers."""
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/oslo.png"}}


def messages() -> Iterator[tuple[str, Any]]:
    """Yield messages, in the forms of LangChain and of providers."""
    yield "messages: objects", PARALLEL
    yield "messages: with the question", {"messages": [HumanMessage(TASK), *PARALLEL]}
    yield "messages: model_dump", [message.model_dump() for message in PARALLEL]
    yield "messages: messages_to_dict", messages_to_dict(PARALLEL)
    yield "messages: dumpd", [dumpd(message) for message in PARALLEL]
    yield "messages: OpenAI", convert_to_openai_messages(PARALLEL)
    yield "messages: Anthropic", ANTHROPIC
    yield "messages: OpenAI Responses", RESPONSES
    yield "messages: Anthropic's own tools", [AIMessage(SEARCHED)]
    yield "messages: Bedrock", BEDROCK
    yield "messages: Gemini", GEMINI
    yield "messages: standard blocks", [AIMessage(STANDARD)]
    yield "messages: data", [{"role": "assistant", "content": {"city": "Oslo"}}]
    yield "response: OpenAI Responses", {"object": "response", "output": RESPONSES}
    failed = ToolMessage("no such parcel", tool_call_id="1", status="error")
    yield "messages: a call that failed", [ONE, failed, AIMessage("It is lost.")]
    yield "messages: a conversation", TALK
    yield "messages: tuples", [("user", "Hello"), ("ai", "Hi."), ("user", "thanks")]
    yield "messages: a role of one's own", [ChatMessage(content="In Oslo.", role="critic")]
    yield "messages: text blocks", [AIMessage([{"type": "text", "text": "In Oslo."}])]
    yield "messages: an image", [AIMessage([{"type": "text", "text": "There:"}, IMAGE])]
    said = {"role": "assistant", "content": "In Oslo."}
    yield "response: a chat completion", {"choices": [{"index": 0, "message": said}]}
    generation = {"text": "In Oslo.", "message": dumpd(AIMessage("In Oslo."))}
    yield "response: generations", {"generations": [[generation]], "llm_output": None}
    yield "message: an object", AIMessage("In Oslo.")
    yield "message: its content", [{"type": "text", "text": "I look."}, USED[0]]
    yield "message: its calls", [call(7, "1"), call(9, "2")]
    yield "message: its text and data", [KYIV[0], {"type": "json", "data": {"at": 7}}]
    yield "message: message_to_dict", message_to_dict(AIMessage("In Oslo."))


def a_run(number: int, outputs: Any, *, inputs: Any = None, **also: Any) -> Run:
    """A run as LangSmith's client does: data that went through JSON."""
    fields: dict[str, Any] = {
        "id": UUID(int=number),
        "trace_id": UUID(int=1),
        "name": "agent",
        "run_type": "chain",
        "start_time": MOMENT,
        "dotted_order": f"{number}",
        "inputs": inputs or {"question": TASK},
        "outputs": outputs and json.loads(json.dumps(outputs, default=dumpd)),
        **also,
    }
    return Run(**fields)


def runs() -> Iterator[tuple[str, Any]]:
    """Yield runs of LangSmith."""
    yield "run: of an agent", a_run(1, state(ASKS, ANSWER))
    yield "run: its answer alone", a_run(1, {"answer": "In Oslo."})
    tools = [
        a_run(3, {"output": "in Kyiv"}, inputs={"n": 7}, name="track", run_type="tool"),
        a_run(4, None, inputs={"n": 9}, name="track", run_type="tool", error="Timeout"),
    ]
    inner = a_run(2, {}, child_runs=tools)
    yield "run: with its child runs", a_run(1, {"output": "In Kyiv."}, child_runs=[inner])
    model = {"generations": [[{"text": "In Oslo.", "message": dumpd(AIMessage("In Oslo."))}]]}
    yield "run: of a model", a_run(1, model, run_type="llm")


def texts() -> Iterator[tuple[str, Any]]:
    """Yield answers that are texts, or that hold one."""
    yield "text", "In Oslo."
    yield "key: a usual one", {"answer": "In Oslo.", "score": 3}
    yield "key: the only one", {"whatever": "In Oslo."}
    yield "key: nested", {"output": {"generation": {"text": "In Oslo."}}}
    kept = [{"kind": "Memory", "content": {"text": word}} for word in ("tea", "Oslo")]
    yield "key: memories", {"memories": kept}
    yield "data: a list of memories", kept
    yield "data: a model", City(name="Oslo", country="NO")
    yield "data: a model with an answer", Reply(answer="In Oslo.", score=3)
    yield "key: data", {"answer": {"city": "Oslo", "days": [1, 2]}}


@cache
def shapes() -> dict[str, Any]:
    """Every shape by its name."""
    kinds: tuple[Callable[[], Iterator[tuple[str, Any]]], ...]
    kinds = (agents, executors, graphs, messages, runs, texts)
    return {name: value for kind in kinds for name, value in kind()}
