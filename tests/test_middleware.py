"""A judge inside an agent: revisions, scores in state and in LangSmith, tools, best of n."""

import asyncio
import json
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any, NotRequired, cast

import httpx
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelResponse,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from langsmith import Client
from langsmith.run_helpers import tracing_context
from langsmith.utils import LangSmithError
from pydantic import BaseModel

from langchain_judges import JudgeMiddleware, best_of, create_bsm_judge, create_rubric_judge
from langchain_judges.errors import InputError, ModelSetupError, OptionError
from langchain_judges.integrations import feedback
from langchain_judges.integrations.middleware import rubric_in
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.methods import create_jury
from langchain_judges.methods.rubric.criteria import ready_names
from langchain_judges.testing import error, reply
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import comment_of
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, FakeToolModel, unfenced
from tests.judges import PAIR, answer, answer_call, bsm, labels, of_method
from tests.langsmith_server import LangSmithServer
from tests.processes import wait_until
from tests.shapes import IN_KYIV, ONE, TASK, call, track
from tests.shapes import agent as agent_with_a_tool
from tests.test_docs import ROOT, blocks

ASKED: Any = {"messages": [HumanMessage("Why?")]}
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


def writer(*answers):
    """A model that gives these answers one after the other, then the last again."""
    queue = list(answers)
    return FakeChatModel(replies=lambda prompt: queue.pop(0) if len(queue) > 1 else queue[0])


def agent(judge, *answers, checkpointer=None, **options):
    model = writer(*answers)
    middleware = [JudgeMiddleware(judge, **options)]
    return create_agent(model, middleware=middleware, checkpointer=checkpointer), model


def answers_of(state):
    return [message.text for message in state["messages"]]


# ---- revisions


@KINDS
async def test_an_answer_below_the_threshold_is_revised_once_and_told_why(kind):
    assistant, model = agent(bsm(), "bad", "good good good", reference="good x")
    state = assistant.invoke(ASKED) if kind == "sync" else await assistant.ainvoke(ASKED)
    assert [round(each["score"], 3) for each in state["judged"]] == [0.375, 0.75]
    assert answers_of(state)[-1] == "good good good"
    assert "A is your answer and B a known answer. B is better." in model.prompts[1]
    assert len(model.prompts) == 2


def test_no_more_revisions_than_allowed_and_the_best_answer_stands():
    assistant, model = agent(
        bsm(), "good x", "bad", "worse", reference="good good good", max_revisions=2
    )
    state = assistant.invoke(ASKED)
    assert (len(model.prompts), answers_of(state)[-1]) == (3, "good x")
    none, model = agent(bsm(), "bad", reference="good", max_revisions=0)
    none.invoke(ASKED)
    assert len(model.prompts) == 1


@for_each(("second", "final"), [("good good", "good good"), ("bad", "good")])
def test_without_a_reference_each_draft_meets_the_best_before_it(second, final):
    state = agent(bsm(), "good", second)[0].invoke(ASKED)
    assert [each["verdict"] is None for each in state["judged"]] == [True, False]
    assert answers_of(state)[-1] == final


# How an agent ends without an answer.
ENDS: dict[str, Any] = {
    "empty": AIMessage(""),
    "blank": AIMessage(" \n"),
    "no blocks": AIMessage([]),
}


@for_each("ending", ENDS)
@for_each("trajectory", [False, True])
def test_an_agent_that_ends_without_an_answer_is_said_not_to_be_judged(ending, trajectory):
    model = FakeChatModel(replies=[])
    judge = create_rubric_judge(model, rubric="Is it right?")
    own = JudgeMiddleware(judge, trajectory=trajectory)
    returned = StructuredTool.from_function(track, return_direct=True)
    writes = FakeToolModel(replies=[ENDS[ending]])
    state: Any = create_agent(writes, [returned], middleware=[own]).invoke(ASKED)
    [judged] = state["judged"]
    assert (judged["answer"], judged["score"], model.prompts) == ("", None, [])
    [failure] = judged["verdict"]["failures"]
    assert "the agent's last message is no answer with text" in failure["detail"]


@for_each("trajectory", [False, True])
@for_each("calls, answer", [([7], "in Kyiv"), ([7, 9], "in Kyiv\n\nin Oslo")])
def test_a_result_that_a_tool_returns_to_the_user_is_the_answer(calls, answer, trajectory):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it right?")
    own = JudgeMiddleware(judge, trajectory=trajectory, max_revisions=0)
    returned = StructuredTool.from_function(track, return_direct=True)
    asks = AIMessage("", tool_calls=[call(number, str(number)) for number in calls])
    state: Any = create_agent(FakeToolModel(replies=[asks]), [returned], middleware=[own]).invoke(
        ASKED
    )
    assert [each["answer"] for each in state["judged"]] == [answer]
    mark = "final-answer-by-track" if trajectory else "response"
    assert f"[{mark}]\n{answer}" in unfenced(model.prompts[0])
    assert [message.type for message in state["messages"]][2:] == ["tool"] * len(calls)


def test_an_empty_answer_after_a_draft_is_said_and_the_draft_is_returned():
    state: Any = agent(labels(), "bad", "", threshold=0.95)[0].invoke(ASKED)
    assert [(each["answer"], each["score"]) for each in state["judged"]] == [
        ("bad", 0.1),
        ("", None),
    ]
    assert answers_of(state)[-1] == "bad"


def test_a_request_is_no_turn_of_the_user_and_a_trace_holds_no_message_twice():
    state = agent(labels(), "bad", "good", keep_drafts=True)[0].invoke(ASKED)
    assert [each["score"] for each in state["judged"]] == [0.1, 0.9]
    assert answers_of(state)[1::2] == ["bad", "good"]
    requests = [m for m in state["messages"] if m.name == "judge"]
    assert [m.additional_kwargs["lc_source"] for m in requests] == ["judge"]
    assert JudgeMiddleware.trace_policy.process_inputs({"messages": ["long"]}) == {}


def test_a_user_with_the_judges_name_is_a_user():
    model = FakeChatModel(replies=fitting_reply)
    said = [HumanMessage(text, name="judge") for text in ("Why?", "Who?")]
    guard = judge_that_sees(model, None)
    assistant = create_agent(FakeChatModel(replies=["So."]), middleware=[guard])
    state: Any = assistant.invoke({"messages": [*said, HumanMessage("Go on.")]})
    assert answers_of(state) == ["Why?", "Who?", "Go on.", "So."]
    [shown] = map(unfenced, model.prompts)
    assert "[turn-1-user-judge]\nWhy?\n\n[turn-2-user-judge]\nWho?" in shown


@for_each(
    "answers, final",
    [(("bad", "good"), "good"), (("good x", "bad"), "good x"), (("bad", ""), "bad")],
)
def test_neither_drafts_nor_criticism_stay_in_the_users_thread(answers, final):
    assistant, _ = agent(labels(), *answers, threshold=0.95, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for number in (1, 2):
        state = assistant.invoke({"messages": [("user", "Why?")]}, config)
        assert answers_of(state)[:2] == ["Why?", final]
        assert len(state["messages"]) == 2 * number


def test_the_best_answer_keeps_its_image():
    shown: Any = [{"type": "text", "text": "good x"}, {"type": "image", "url": "http://x/a.png"}]
    model = GenericFakeChatModel(messages=iter([AIMessage(shown), AIMessage("bad")]))
    assistant = create_agent(model, middleware=[JudgeMiddleware(labels(), threshold=0.95)])
    state: Any = assistant.invoke(ASKED)
    assert [each["score"] for each in state["judged"]] == [0.9, 0.1]
    [_, last] = state["messages"]
    assert [block["type"] for block in last.content_blocks] == ["text", "image"]


def by_rubric(*, cites):
    part = {"explanation": "so", "label": "1"}
    return {"criterion_1": {**part, "label": str(int(cites))}, "criterion_2": part}


def test_a_rubric_of_the_state_is_judged_by_in_the_words_of_deepagents():
    evaluations: list[Any] = []
    model = FakeChatModel(replies=[by_rubric(cites=False), by_rubric(cites=True)])
    judge, options = create_rubric_judge(model), {"threshold": 1, "max_iterations": 3}
    heard: Any = {**options, "on_evaluation": evaluations.append}
    assistant, _ = agent(judge, "Soon.", "Soon, says the post.", **heard)
    rubric = "- It cites a source.\n- It is brief."
    state = assistant.invoke({**ASKED, "rubric": rubric})
    assert answers_of(state) == ["Why?", "Soon, says the post."]
    assert [(e["iteration"], e["result"]) for e in evaluations] == [
        (0, "needs_revision"),
        (1, "satisfied"),
    ]
    failed = {"name": "It cites a source.", "passed": False, "gap": "so"}
    assert evaluations[0]["criteria"][0] == failed
    assert len({e["grading_run_id"] for e in evaluations}) == 1


@for_each(
    "replies, rubric, result",
    [
        ([by_rubric(cites=False)] * 2, "- It cites.\n- It is brief.", "max_iterations_reached"),
        ([RuntimeError("down")] * 2, "It cites a source.", "grader_error"),
        ([], "- It cites.\n- It cites.", "failed"),
    ],
)
def test_how_an_evaluation_ends_is_said(replies, rubric, result):
    evaluations: list[Any] = []
    judge = create_rubric_judge(FakeChatModel(replies=replies))
    heard: Any = {"threshold": 1, "max_iterations": 1, "on_evaluation": evaluations.append}
    state = agent(judge, "Soon.", **heard)[0].invoke({**ASKED, "rubric": rubric})
    assert [each["result"] for each in evaluations] == [result]
    assert answers_of(state) == ["Why?", "Soon."]


def test_without_a_rubric_a_judge_without_one_stays_out_of_it():
    state = agent(create_rubric_judge(FakeChatModel(replies=[])), "Soon.")[0].invoke(ASKED)
    assert (state["judged"], answers_of(state)) == ([], ["Why?", "Soon."])


def test_it_works_in_a_deep_agent():
    deepagents = pytest.importorskip("deepagents", reason="deepagents is installed by .ci/bounds")
    model = FakeChatModel(replies=[by_rubric(cites=False), by_rubric(cites=True)])
    guard = JudgeMiddleware(create_rubric_judge(model), threshold=1)
    drafts = [AIMessage("Soon."), AIMessage("Soon, says the post.")]
    model_of_agent = FakeToolModel(replies=drafts)
    assistant = deepagents.create_deep_agent(model_of_agent, middleware=[guard])
    state = assistant.invoke({**ASKED, "rubric": "- It cites a source.\n- It is brief."})
    assert answers_of(state) == ["Why?", "Soon, says the post."]


class Place(BaseModel):
    city: str


def called(city, number):
    call = {"name": "Place", "args": {"city": city}, "id": str(number), "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


@for_each("trajectory", [True, False])
@for_each(
    ("cities", "final"),
    [(["bad", "good"], "good"), (["bad good", "bad"], "bad good")],
    ids=["the last stands", "an earlier one stands"],
)
def test_a_structured_response_of_a_tool_is_judged(cities, final, trajectory):
    options: Any = {"trajectory": trajectory, "keep_drafts": True}
    middleware = JudgeMiddleware(labels(), threshold=0.95, **options)
    turns = [called(city, n) for n, city in enumerate(cities)]
    strategy = ToolStrategy(Place)
    assistant = agent_with_a_tool(*turns, middleware=[middleware], response_format=strategy)
    state = assistant.invoke(ASKED)
    assert [json.loads(each["answer"])["city"] for each in state["judged"]] == cities
    assert [each["score"] for each in state["judged"]] == [
        0.9 if "good" in city else 0.1 for city in cities
    ]
    assert not any("work" in each for each in state["judged"])
    assert state["structured_response"] == Place(city=final)
    calls = [m for m in state["messages"] if m.type == "ai" and m.tool_calls]
    ends_earlier = final != cities[-1]
    assert len(calls) == 2
    assert state["messages"][-1].type == ("ai" if ends_earlier else "tool")


def both(*answers):
    return AIMessage("", tool_calls=[own for each in answers for own in each.tool_calls])


def tracked(number):
    return AIMessage("", tool_calls=[call(number, f"track {number}")])


# How a draft may be said, and which of it ran and is work.
DRAFTS: dict[str, Any] = {
    "text": (AIMessage("bad"), []),
    "structured": (called("bad", 1), []),
    "returned": (tracked(7), ["in Kyiv"]),
    "returned twice": (both(tracked(7), tracked(9)), ["in Kyiv", "in Oslo"]),
    "structured beside a call": (both(called("bad", 1), tracked(7)), ["in Kyiv"]),
}


@for_each("draft", DRAFTS)
@for_each("last", ["good", "worse"])
def test_no_call_that_ran_goes_with_a_rejected_draft(draft, last):
    said, ran = DRAFTS[draft]
    model = FakeChatModel(replies=lambda p: {"explanation": "", "label": str(int("good" in p))})
    guard = JudgeMiddleware(create_rubric_judge(model, rubric="Is it kind?"))
    tools = [StructuredTool.from_function(track, return_direct=True)]
    form = ToolStrategy(Place) if "structured" in draft else None
    writes = FakeToolModel(replies=[said, AIMessage(last)])
    assistant: Any = create_agent(writes, tools, middleware=[guard], response_format=form)
    state = assistant.invoke(ASKED)
    assert len(state["judged"]) == 2
    done = [m.text for m in state["messages"] if m.type == "tool" and m.name == "track"]
    assert done == ran
    assert [each in model.prompts[1] for each in ran] == [True] * len(ran)
    assert "judge" not in [message.name for message in state["messages"]]


def test_each_run_on_a_thread_has_its_own_revisions():
    assistant, model = agent(bsm(), "bad", reference="good", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for _ in range(2):
        state = assistant.invoke(ASKED, config)
        assert len(state["judged"]) == 2
    assert len(model.prompts) == 4


# ---- answers that no model wrote


def stops(state, runtime):
    if "bomb" in state["messages"][-1].text:
        return {"messages": [AIMessage("Blocked.")], "jump_to": "end"}


def replaces(state, runtime):
    last = state["messages"][-1]
    if last.text == "bad":
        gone = RemoveMessage(last.id)
        return {"messages": [gone, AIMessage("Blocked.")], "jump_to": "end"}


@wrap_model_call
async def answers_itself(request, handler):
    return ModelResponse([AIMessage("Blocked.")])


@wrap_model_call
async def fails(request, handler):
    raise ValueError("down")


# Who ends a run in place of the agent's model, by the model's turns until then.
ENDERS: dict[str, tuple[Any, list[AIMessage]]] = {
    "before the agent": ([before_agent(can_jump_to=["end"])(stops)], []),
    "before the model": ([before_model(can_jump_to=["end"])(stops)], []),
    "after the model": ([after_model(can_jump_to=["end"])(replaces)], [AIMessage("bad")]),
    "around the model": ([answers_itself], []),
    "a call that failed": ([ModelRetryMiddleware(max_retries=0), fails], []),
    "calls of the model": ([ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")], [ONE]),
    "calls of tools": ([ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")], [ONE, ONE]),
}
BOMB: Any = {"messages": [HumanMessage("How is a bomb made?")]}


@for_each("ender", ENDERS)
@for_each("is_first", [True, False])
async def test_an_answer_that_no_model_wrote_is_judged_once_and_never_sent_back(ender, is_first):
    others, turns = ENDERS[ender]

    def made(middleware):
        model = FakeToolModel(replies=[*turns, AIMessage("Here is how.")])
        return create_agent(model, [track], middleware=middleware), model

    alone, model = made(others)
    ends = (await alone.ainvoke(BOMB))["messages"]
    assert (ends[-1].text != "Here is how.", len(model.prompts)) == (True, len(turns))
    own = [JudgeMiddleware(labels(), max_revisions=2)]
    judged, model = made([*own, *others] if is_first else [*others, *own])
    state = await judged.ainvoke(BOMB)
    assert (state["messages"][-1].text, len(model.prompts)) == (ends[-1].text, len(turns))
    assert [each["score"] for each in state["judged"]] == [0.1]


def rebuilt(word):
    """Middleware that gives the reply as a new message, each at another place."""

    @wrap_model_call
    def around(request, handler):
        [said] = handler(request).result
        return AIMessage(f"{word} {said.text}" if word else "Translated.")

    def after(state, runtime):
        last = state["messages"][-1]
        return {"messages": [RemoveMessage(last.id), AIMessage(f"{word} {last.text}")]}

    return {"around": around, "after": after_model(after)}


@for_each("place", ["around", "after"])
@for_each("is_first", [True, False])
def test_a_reply_that_other_middleware_rebuilds_is_sent_back(place, is_first):
    model = FakeToolModel(replies=[AIMessage("bad"), AIMessage("good")])
    both: list[Any] = [JudgeMiddleware(labels()), rebuilt("Cited:")[place]]
    made = create_agent(model, middleware=both if is_first else both[::-1])
    judged = made.invoke(ASKED)["judged"]
    assert [each["answer"] for each in judged] == ["Cited: bad", "Cited: good"]


@for_each("is_first", [True, False])
def test_a_reply_without_a_word_of_the_model_is_sent_back_where_the_judge_heard_it_said(
    is_first, caplog
):
    caplog.clear()
    model = FakeToolModel(replies=[AIMessage("bad")] * 2)
    both: list[Any] = [JudgeMiddleware(labels()), rebuilt("")["around"]]
    made = create_agent(model, middleware=both if is_first else both[::-1])
    assert len(made.invoke(ASKED)["judged"]) == 1 + is_first
    assert ("is not revised" in caplog.text) == (not is_first)


@for_each("is_first", [True, False])
def test_a_turn_that_ends_before_the_judge_begins_has_nothing_of_the_turn_before(is_first):
    judge_model = FakeChatModel(replies=[{"label": 1, "explanation": "y"}] * 2)
    guard = before_agent(can_jump_to=["end"])(stops)
    own: Any = JudgeMiddleware(create_rubric_judge(judge_model, rubric="Is it kind?"))
    model = FakeToolModel(replies=[called("good", 1)])
    order = [own, guard] if is_first else [guard, own]
    form = ToolStrategy(Place)
    made = create_agent(model, middleware=order, response_format=form, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    made.invoke(ASKED, thread)
    state = made.invoke(BOMB, thread)
    [judged] = state["judged"]
    assert (state["messages"][-1].text, judged["answer"]) == ("Blocked.", "Blocked.")
    assert "structured_response" not in judged
    request, response = unfenced(judge_model.prompts[-1]).split("[response]")
    assert "How is a bomb made?" in request
    assert response.startswith("\nBlocked.\n\n")
    assert "good" not in response


def test_a_draft_stands_where_the_call_that_would_revise_it_is_one_too_many():
    limit: Any = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    model = FakeToolModel(replies=[AIMessage("bad")])
    state = create_agent(model, middleware=[limit, JudgeMiddleware(labels())]).invoke(ASKED)
    assert [each["answer"] == "bad" for each in state["judged"]] == [True, False]
    assert answers_of(state) == ["Why?", "bad"]


def test_a_draft_that_one_judge_returns_is_sent_back_by_the_next():
    model = FakeToolModel(replies=[AIMessage(each) for each in ("good", "bad", "good good")])
    first = JudgeMiddleware(bsm(), key="first", threshold=0.9)  # runs last, of the drafts
    owns: Any = [JudgeMiddleware(labels(), key="second", threshold=0.95), first]
    create_agent(model, middleware=owns).invoke(ASKED)
    assert len(model.prompts) == 3


def test_what_the_model_wrote_is_sent_back_after_a_person_was_asked_or_where_it_was_redacted():
    asks: Any = HumanInTheLoopMiddleware(interrupt_on={"track": True})
    hides: Any = PIIMiddleware("email", apply_to_output=True)
    replies = [ONE, AIMessage("bad: a@b.example"), AIMessage("good")]
    model = FakeToolModel(replies=replies)
    made = create_agent(
        model,
        [track],
        middleware=[asks, hides, JudgeMiddleware(labels())],
        checkpointer=InMemorySaver(),
    )
    thread: Any = {"configurable": {"thread_id": "1"}}
    made.invoke(ASKED, thread)
    state = made.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    answers = [each["answer"] for each in state["judged"]]
    assert answers == ["bad: [REDACTED_EMAIL]", "good"]


@for_each(
    ("options", "says"),
    [
        ({"threshold": 5}, "`threshold` must be a number of at least 0 and at most 1, got 5"),
        ({"reference": 4}, "`reference` must be a text or a function of the agent's state"),
    ],
)
def test_options_that_cannot_be_are_refused(options, says):
    with pytest.raises(OptionError, match=says):
        JudgeMiddleware(bsm(), **options)


def test_a_state_without_messages_has_no_answer():
    guard = JudgeMiddleware(bsm())
    assert guard.after_agent(cast("Any", {"messages": []}), cast("Any", None)) == {"judged": []}


@tool
def delegate(call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Let another agent answer, and hand back its state as deepagents does."""
    answer = {"answer": "good good", "score": 1.0, "run": "1", "judge": "JudgeMiddleware"}
    said = ToolMessage("good good", tool_call_id=call_id)
    return Command(update={"judged": [answer], "messages": [said]})


def test_what_subagents_judged_decides_nothing_for_the_agent_that_called_them():
    calls = [{"name": "delegate", "args": {}, "id": str(n), "type": "tool_call"} for n in (1, 2)]
    model = FakeToolModel(replies=[AIMessage("", tool_calls=calls), *map(AIMessage, ("bad", "so"))])
    guard = JudgeMiddleware(labels(), trajectory=False)
    state: Any = create_agent(model, [delegate], middleware=[guard]).invoke(ASKED)
    assert [each["answer"] for each in state["judged"]] == ["bad", "so"]
    assert answers_of(state)[-1] == "so"


@tool
def look(call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Show a picture, as a message under the user's role."""
    shown = HumanMessage("A picture."), HumanMessage("Another.", name="camera")
    return Command(update={"messages": [ToolMessage("Done.", tool_call_id=call_id), *shown]})


def test_what_is_said_in_the_users_place_during_the_work_is_shown_there_and_is_no_request():
    model = FakeChatModel(replies=fitting_reply)
    guard = JudgeMiddleware(create_rubric_judge(model, rubric="Right?"), max_revisions=0)
    calls = [{"name": "look", "args": {}, "id": "1", "type": "tool_call"}]
    turns = FakeToolModel(replies=[AIMessage("", tool_calls=calls), AIMessage("Seen.")])
    create_agent(turns, [look], middleware=[guard]).invoke(ASKED)
    [prompt] = map(unfenced, model.prompts)
    assert "[request]\nWhy?\n" in prompt
    work = "[participant-during_the_work]\nA picture.\n\n[participant-camera]\nAnother."
    assert work in prompt.split("[response]")[1]


def test_an_earlier_draft_is_returned_with_all_that_its_message_has():
    draft = AIMessage("good", name="bob", response_metadata={"model_name": "x"})
    guard = JudgeMiddleware(labels(), threshold=0.95)
    state: Any = create_agent(writer(draft, "bad"), middleware=[guard]).invoke(ASKED)
    last = state["messages"][-1]
    assert (last.text, last.name, last.response_metadata) == ("good", "bob", {"model_name": "x"})


def test_each_of_two_judges_asks_for_as_many_revisions_as_it_may():
    own = [JudgeMiddleware(labels(), key=key, threshold=t) for key, t in (("a", 0.95), ("b", 0.5))]
    made: Any = create_agent(writer("good", "bad", "good"), middleware=own)
    judged = [(each["judge"][-1], each["answer"]) for each in made.invoke(ASKED)["judged"]]
    assert judged == [("b", "good"), ("a", "good"), ("b", "bad"), ("b", "good"), ("a", "good")]


# ---- an agent's whole work


def judged_agent(*turns, **options):
    """Run an agent with a tool; return its state, and the prompts of its judge, unfenced."""
    model = FakeChatModel(replies=answer)
    guard = JudgeMiddleware(of_method("rubric", model, rubric=["Tone"]), **options)
    state = agent_with_a_tool(*turns, middleware=[guard]).invoke({"messages": [("user", TASK)]})
    return state, [unfenced(prompt) for prompt in model.prompts]


DID = '[assistant]\nLet me look.\n\n[call-of-track]\n{"n": 7}\n\n[result-of-track]\nin Kyiv'


@for_each("whole", [True, False])
def test_the_work_with_its_results_is_judged_or_the_answer_alone(whole):
    state, [prompt] = judged_agent(ONE, IN_KYIV, trajectory=whole, max_revisions=0)
    assert (f"{DID}\n\n[final-answer]\nIt is in Kyiv." in prompt) == whole
    assert ("in Kyiv\n\n[final-answer]" in prompt) == whole
    assert answers_of(state)[-1] == "It is in Kyiv."


def test_a_rejected_draft_is_no_part_of_the_work():
    state, prompts = judged_agent(ONE, AIMessage("Hey."), AIMessage("All good."))
    assert [each["answer"] for each in state["judged"]] == ["Hey.", "All good."]
    for text, prompt in zip(("Hey.", "All good."), prompts, strict=True):
        assert f"{DID}\n\n[final-answer]\n{text}" in prompt


# ---- the agent's instructions, as its model got them


@dynamic_prompt
def polite(request):
    return f"{request.system_prompt or 'You are a clerk.'} Be polite."


@wrap_model_call
def asks_another_model(request, handler):
    """Ask another model twice before the agent's, and after it."""
    other = FakeChatModel(replies=["Safe."] * 3)
    for _ in "12":
        other.invoke([("system", "You are a guard."), ("user", "Is it safe?")])
    said = handler(request)
    other.invoke([("system", "You are a guard."), ("user", said.result[-1].text)])
    return said


def labels_of(word):
    """A judge that gives 1 to an answer that holds a word."""

    def reply(prompt):
        said = prompt.split("<response-")[-1].partition("</response-")[0]
        return {"explanation": "e", "label": str(int(word in said))}

    return create_rubric_judge(FakeChatModel(replies=reply), rubric=f"Is it {word}?")


def judge_that_sees(model, by):
    needs: Any = {"needs": "instructions"} if by == "needs" else {}
    judge = create_rubric_judge(model, rubric="Does it keep to its role?", **needs)
    return JudgeMiddleware(judge, system=by == "system", max_revisions=0)


@KINDS
@for_each("by", ["system", "needs", None])
@for_each("place", ["first", "last", None])
@for_each("prompt", ["You are a pirate.", None])
async def test_the_judge_is_shown_what_the_agents_model_was_told(kind, by, place, prompt):
    model = FakeChatModel(replies=fitting_reply)
    guard = judge_that_sees(model, by)
    middleware = [guard, *[polite] * bool(place)][:: -1 if place == "first" else 1]
    writer = FakeChatModel(replies=["Arr."])
    assistant = create_agent(writer, middleware=middleware, system_prompt=prompt)
    state = assistant.invoke(ASKED) if kind == "sync" else await assistant.ainvoke(ASKED)
    told = [m.text for m in writer.messages[0] if m.type == "system"]
    assert told == [f"{prompt or 'You are a clerk.'} Be polite."] * bool(place) or [prompt] * bool(
        prompt
    )
    if by == "needs" and not told:
        [failure] = state["judged"][0]["verdict"]["failures"]
        assert (failure["reason"], model.prompts) == ("lacking", [])
        return
    [shown] = map(unfenced, model.prompts)
    assert [f"[system]\n{each}\n\n[turn-1-user]\nWhy?" in shown for each in told] == [
        by is not None
    ] * len(told)
    assert ("[system]" in shown) == bool(by and told)
    assert set(state) == {"messages", "judged"}


def test_instructions_in_the_messages_are_shown_once():
    model = FakeChatModel(replies=fitting_reply)
    assistant, _ = agent(judge_that_sees(model, "system").judge, "Arr.", system=True)
    assistant.invoke({"messages": [("system", "You are a pirate."), ("user", "Why?")]})
    assert [prompt.count("You are a pirate.") for prompt in model.prompts] == [1]


def test_judges_of_one_agent_are_shown_the_same_instructions():
    model = FakeChatModel(replies=fitting_reply)
    own = judge_that_sees(model, "system")
    second = JudgeMiddleware(own.judge, system=True, max_revisions=0, key="role: again")
    writer = FakeChatModel(replies=["Arr."])
    middleware = [own, asks_another_model, second]
    create_agent(writer, middleware=middleware, system_prompt="Be brief.").invoke(ASKED)
    assert [prompt.count("Be brief.") for prompt in model.prompts] == [1, 1]
    assert "You are a guard." not in "".join(model.prompts)


@KINDS
async def test_judges_of_one_agent_count_and_compare_their_own_answers(kind):
    tone, good = (labels_of(word) for word in ("polite", "good"))
    middleware = [
        JudgeMiddleware(tone, key="tone", max_revisions=1),
        JudgeMiddleware(good, key="good", max_revisions=1),
    ]
    writer = FakeChatModel(replies=["bad", "good", "good, polite"])
    assistant = create_agent(writer, middleware=middleware)
    state = assistant.invoke(ASKED) if kind == "sync" else await assistant.ainvoke(ASKED)
    assert answers_of(state) == ["Why?", "good, polite"]
    told = [(each["judge"].split()[-1], each["answer"]) for each in state["judged"]]
    assert told == [
        *[("good", "bad"), ("good", "good")],
        *[("tone", "good"), ("good", "good, polite"), ("tone", "good, polite")],
    ]
    assert len({each["run"] for each in state["judged"]}) == 1


def test_a_judge_in_a_deep_agent_is_shown_all_that_its_model_was_told():
    deepagents = pytest.importorskip("deepagents", reason="deepagents is installed by .ci/bounds")
    model = FakeChatModel(replies=fitting_reply)
    writer = FakeToolModel(replies=[AIMessage("Arr.")])
    guard = judge_that_sees(model, "needs")
    assistant = deepagents.create_deep_agent(
        writer, middleware=[guard], system_prompt="You are a pirate."
    )
    assistant.invoke(ASKED)
    told = writer.messages[0][0].text
    assert "You are a pirate." in told
    assert f"[system]\n{told}\n\n" in unfenced(model.prompts[0])


# ---- a judge that fails, and feedback


def refused(serve):
    return create_bsm_judge(chat(serve(lambda call: error(401))), criteria=["Depth"])


@KINDS
async def test_a_refused_key_of_the_judge_lets_the_answer_out_and_is_said(serve, kind, caplog):
    assistant, _ = agent(refused(serve), "an answer", reference="good")
    if kind == "sync":
        (feedback,), _ = feedback_of(assistant)
        assert feedback.get("score") is None
        assert feedback["comment"].startswith("Not judged. provider_error (")
    state = assistant.invoke(ASKED) if kind == "sync" else await assistant.ainvoke(ASKED)
    assert answers_of(state) == ["Why?", "an answer"]
    assert state["judged"][0]["score"] is None
    [failure] = state["judged"][0]["verdict"]["failures"]
    assert failure["reason"] == "provider_error"
    assert "An answer passes without a score" in caplog.messages[-1]
    assert failure["detail"] in caplog.messages[-1]


@for_each(
    "rubric, options, said",
    [
        ("groundedness", {}, "needs a source"),
        ("tool_use", {"trajectory": False}, "no tool calls"),
        ("Is it good?", {}, "unparsable"),
    ],
)
def test_an_answer_that_passes_unjudged_is_logged_with_what_to_give(rubric, options, said, caplog):
    caplog.clear()
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: "prose"), rubric=rubric)
    agent(judge, "an answer", **options)[0].invoke(ASKED)
    # Which label counts as good is told once in a process, by whatever test is the first.
    (message,) = [each for each in caplog.messages if "passes without a score" in each]
    assert said in message
    assert "`context=` and `trajectory=`" in message


def test_a_choice_that_nothing_decided_is_logged(caplog):
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: "prose"), rubric="Is it good?")
    best_of(2, judge).invoke({"input": "Why?", "answers": ["a", "b"]})
    assert "No answer was judged" in caplog.text


def test_an_answer_that_a_judge_of_one_text_failed_on_has_no_label(serve):
    judge = create_rubric_judge(chat(serve(lambda call: error(401))), rubric="Is it good?")
    state = agent(judge, "an answer")[0].invoke(ASKED)
    assert state["judged"][0]["verdict"]["label"] is None


def feedback_of(assistant, number=1):
    """Run an agent that is traced; return its feedback and the server."""
    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="x")
        with tracing_context(enabled=True, client=client, project_name="P"):
            assistant.invoke(ASKED)

        def arrived():
            client.flush()
            return len(server.read().feedback) == number

        wait_until(arrived)
        client.cleanup()
    return server.feedback, server


def test_the_score_of_an_agent_below_others_is_feedback_on_its_own_run():
    inner, _ = agent(bsm(), "good", reference="good good")

    def ask(question: str) -> str:
        """Ask."""
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].text)

    calls = AIMessage("", tool_calls=[{"name": "ask", "args": {"question": "?"}, "id": "1"}])
    model = FakeChatModel(replies=[calls, "good good"])
    judge = JudgeMiddleware(bsm(), reference="good", trajectory=False)
    top = create_agent(model, [ask], name="top", middleware=[judge])
    feedback, server = feedback_of(RunnableLambda(lambda asked: top.invoke(asked)), 2)
    scores = {server.runs[each["run_id"]]["name"]: each["score"] for each in feedback}
    assert scores == {"LangGraph": 0.375, "top": 0.625}
    assert {each["trace_id"] for each in feedback} == {server.children(None)[0]["id"]}


def test_the_score_is_feedback_on_the_agents_run():
    assistant, _ = agent(bsm(), "bad", "good good", reference="good")
    (feedback,), server = feedback_of(assistant)
    (root,) = server.children(None)
    assert (feedback["key"], feedback["score"]) == ("bsm", 0.625)
    assert feedback["run_id"] == root["id"]
    assert feedback["feedback_source"]["metadata"]["__run"]["run_id"] in server.runs
    assert feedback["extra"]["revisions"] == 1


def test_each_criterion_of_a_rubric_is_feedback_of_its_own():
    part = {"explanation": "It is so.", "label": "1"}
    reply = {"criterion_1": part, "criterion_2": {**part, "label": "0"}}
    judge = create_rubric_judge(FakeChatModel(replies=[reply]), rubric=["Tone", "Fit"])
    feedback, _ = feedback_of(agent(judge, "an answer", max_revisions=0)[0], 3)
    scores = {each["key"]: each["score"] for each in feedback}
    assert scores == {"rubric": 0.5, "Tone": 1.0, "Fit": 0.0}


def test_a_langsmith_that_hangs_does_not_hold_the_agent():
    with LangSmithServer(hang=True) as server:
        client = Client(api_url=server.url, api_key="x")
        with tracing_context(enabled=True, client=client, project_name="P"):
            agent(bsm(), "good", reference="x")[0].invoke(ASKED)  # while LangSmith says nothing
        server.recover()
        client.cleanup()


class Sent:
    """A client of LangSmith that keeps the feedback that it is given, or refuses it."""

    def __init__(self, refuses=None):
        self.given, self.refuses = [], refuses

    def create_feedback(self, *run, **fields):
        self.given.append((*run, fields))
        if self.refuses:
            raise self.refuses


def sent(monkeypatch, client, *answers, replies: Any = answer, **options):
    """Run an agent in a trace whose client this is, and wait for its feedback."""
    tree = SimpleNamespace(client=client, trace_id="trace", parent_run_id="agent")
    monkeypatch.setattr(feedback, "get_current_run_tree", lambda: tree)
    judge = create_rubric_judge(FakeChatModel(replies=replies), rubric="Good?", name="own")
    others = {*threading.enumerate()}
    state = agent(judge, *answers, **options)[0].invoke(ASKED)
    for thread in {*threading.enumerate()} - others:
        if thread.name == "judge-feedback":
            thread.join()
    return state


def test_feedback_says_which_run_it_is_on_what_judged_and_after_how_many_revisions(monkeypatch):
    client = Sent()
    state = sent(monkeypatch, client, "bad", "good", key="tone")
    [(run, fields)] = client.given
    assert (run, fields["trace_id"], fields["key"]) == ("agent", "trace", "tone")
    assert (fields["score"], fields["value"], fields["comment"]) == (1, 1, "because")
    assert fields["extra"].items() >= {"revisions": 1, "failures": [], "label": 1}.items()
    assert fields["source_info"]["method"] == "rubric"
    assert str(fields["source_run_id"]) != state["judged"][0]["run"]
    client.given.clear()
    sent(monkeypatch, client, "good", replies=lambda _: "?")
    [(_, fields)] = client.given
    assert (fields["key"], fields["score"]) == ("own", None)
    assert {each["reason"] for each in fields["extra"]["failures"]} == {"unparsable"}


@for_each("refusal", [LangSmithError("no"), OSError("no"), ValueError("no")])
def test_feedback_that_langsmith_refuses_is_a_warning(refusal):
    with pytest.MonkeyPatch.context() as patch:
        heard: list[Any] = []
        patch.setattr(feedback._LOGGER, "warning", lambda *said: heard.append(said))
        state = sent(patch, Sent(refusal), "good")
    assert answers_of(state) == ["Why?", "good"]
    assert heard == [("The score was not sent to LangSmith: %s", refusal)]


@for_each(
    "text, criteria",
    [
        ("1. It cites.\n\n  2) It is brief. ", ["It cites.", "It is brief."]),
        ("* It cites.\n• It is brief.", ["It cites.", "It is brief."]),
        ("- It cites.", "- It cites."),
        ("Look:\n- It cites.\n- It is brief.", "Look:\n- It cites.\n- It is brief."),
        ("", None),
        (None, None),
    ],
)
def test_the_lines_of_a_list_are_criteria_and_any_other_text_is_one_rubric(text, criteria):
    found: Any = rubric_in(text)
    several = [{"name": each, "description": each} for each in criteria or ()]
    assert found == (several if isinstance(criteria, list) else criteria)


def test_the_stream_of_an_agent_has_no_word_of_its_judge():
    replies: Any = [AIMessage("So."), AIMessage("Why not.")]
    said = [{"explanation": "SECRET", "label": label} for label in "01"]

    def streamed(mode):
        judge = create_rubric_judge(FakeChatModel(replies=said), rubric="Is it good?")
        model = GenericFakeChatModel(messages=iter(replies))
        inner: Any = create_agent(model, middleware=[JudgeMiddleware(judge)])
        outer = StateGraph(AgentState).add_node("inner", inner).add_edge(START, "inner").compile()
        return [event for _, event in outer.stream(ASKED, stream_mode=mode, subgraphs=True)]

    written = [part.text for part, _ in streamed("messages") if part.type != "human"]
    assert "".join(written) == "So.Why not."
    assert not streamed("custom")


def test_whoever_writes_again_is_told_what_each_criterion_misses_and_no_note():
    said = {
        "criterion_1": {"explanation": "It calls the customer an idiot.", "label": "0"},
        "criterion_2": {"explanation": "It is brief.", "label": "1"},
        "criterion_3": {"explanation": "It names no place.", "label": "0"},
    }
    rubric = ["Tone: polite?", "Length: brief?", "Place: a place?"]
    judge = create_rubric_judge(FakeChatModel(replies=[said] * 2), rubric=rubric)
    assistant, model = agent(judge, "bad", "good", context=lambda _: {"hours": {"open": 9}})
    assistant.invoke(ASKED)
    request = model.prompts[1].split("not good enough yet. ")[1]
    assert "- Tone: It calls the customer an idiot.\n- Place: It names no place.\n" in request
    assert "It is brief." not in request
    assert "Note" not in request
    tool = judge_tool(create_rubric_judge(FakeChatModel(replies=[said]), rubric=rubric))
    told = json.loads(tool.invoke({"input": "Why?", "output": "So."}))["rationale"]
    assert told.endswith("- Tone: It calls the customer an idiot.\n- Place: It names no place.")


def test_a_first_draft_and_an_earlier_one_are_asked_for_in_their_own_words():
    assistant, model = agent(bsm(), "good", "bad", "bad", max_revisions=2)
    assistant.invoke(ASKED)
    first, second = model.prompts[1:]
    assert "Look at your answer again and give a better one, whole and on its own." in first
    assert "Your answer was judged and is not good enough yet. A is your answer" in second
    assert "and B your earlier draft. B is better." in second
    assistant, model = agent(labels(), "bad")
    assistant.invoke(ASKED)
    assert "A is your answer" not in model.prompts[1]
    assert "Give a better answer, whole and on its own." in model.prompts[1]


def test_a_reference_and_a_source_may_be_functions_of_the_state():
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric=["correctness: Is it right?"])
    said: Any = {
        "reference": lambda state: f"Known: {state['messages'][0].text}",
        "context": lambda state: f"Read: {len(state['messages'])}",
    }
    agent(judge, "So.", max_revisions=0, **said)[0].invoke(ASKED)
    assert all(text in model.prompts[0] for text in ("Known: Why?", "Read: 2"))
    for name in said:
        with pytest.raises(OptionError, match=f"`{name}` must be a text or a function"):
            JudgeMiddleware(judge, **cast("Any", {name: 3}))


def test_the_name_of_a_judge_in_an_agent_tells_it_from_others():
    names = [JudgeMiddleware(labels(), key=key).name for key in (None, "a:b|c")]
    assert names == ["JudgeMiddleware", "JudgeMiddleware a_b_c"]


def test_the_run_of_a_judge_in_an_agent_is_named_by_its_key_and_found_in_the_state():
    heard: list[Any] = []
    judge = labels().with_listeners(on_start=lambda run: heard.append(run))
    state = agent(judge, "good", key="tone")[0].invoke(ASKED)
    assert [(run.name, str(run.id)) for run in heard] == [("tone", state["judged"][0]["run"])]


def test_an_evaluation_has_the_words_and_the_run_of_its_judgment():
    heard: list[Any] = []
    state = agent(labels(), "good", on_evaluation=heard.append)[0].invoke(ASKED)
    assert heard == [
        {
            "grading_run_id": state["judged"][0]["run"],
            "iteration": 0,
            "result": "satisfied",
            "explanation": "against None",
            "criteria": [],
            "unverified": False,
        }
    ]


# A score at the threshold is good enough; `labels` gives 0.1 or 0.9.
@KINDS
async def test_what_was_asked_and_done_is_judged_where_other_middleware_summed_it_up(kind):
    sums = FakeChatModel(replies=lambda _: "It looked.")
    told = SummarizationMiddleware(sums, trigger=("messages", 4), keep=("messages", 1))
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it right?")
    own = [JudgeMiddleware(judge, key=key, threshold=0.0) for key in "ab"]
    # An agent names the messages that it is given, in place: others may have used these.
    turns = [AIMessage("", tool_calls=[call(number, str(n))]) for n, number in enumerate((7, 9, 7))]
    replies = [*turns, AIMessage("In Kyiv."), turns[0].model_copy(), AIMessage("Yes.")]
    thread: Any = {"configurable": {"thread_id": "1"}}
    assistant = create_agent(
        FakeToolModel(replies=replies),
        [track],
        middleware=[told, *own],
        checkpointer=InMemorySaver(),
    )
    for text in (TASK, "Sure?"):
        asked: Any = {"messages": [HumanMessage(text)]}
        state: Any = (
            assistant.invoke(asked, thread)
            if kind == "sync"
            else await assistant.ainvoke(asked, thread)
        )
    assert not {"seen", "answers"} & state.keys()
    first, _, later, _ = map(unfenced, model.prompts)
    assert f"[request]\n{TASK}" in first
    assert [first.count(f"[result-{n}-of-track]") for n in (1, 2, 3)] == [1, 1, 1]
    assert "It looked." not in first
    assert "[summary]\nHere is a summary" in later
    assert "-user]\nSure?" in later.split("[response]")[0]
    assert "[call-of-track]" in later.split("[response]")[1]


@for_each("threshold, asked", [(0.9, 1), (0.91, 2)])
def test_a_score_at_the_threshold_is_good_enough(threshold, asked):
    assistant, model = agent(labels(), "good", threshold=threshold)
    assistant.invoke(ASKED)
    assert len(model.prompts) == asked


# ---- a judge as a tool


@KINDS
async def test_a_judge_is_a_tool(kind):
    tool = judge_tool(bsm())
    call = {"name": tool.name, "args": PAIR, "id": "1", "type": "tool_call"}
    message = tool.invoke(call) if kind == "sync" else await tool.ainvoke(call)
    said = json.loads(message.content)
    assert said.keys() == {"preference", "score", "rationale"}
    assert (said["preference"], said["rationale"]) == ("A", comment_of(message.artifact))
    assert message.artifact["score"] == 0.75
    assert set(tool.args) == {"input", "output_a", "output_b"}
    assert "empty" in tool.invoke({**call, "args": {**PAIR, "output_a": " "}}).content


def test_a_tool_says_by_what_it_judges():
    judge = of_method("rubric", rubric=["Tone: Is the reply polite?"])
    assert judge_tool(judge).description.endswith("Is the reply polite?")
    assert "Be brief." in judge_tool(bsm(instructions="Be brief.")).description


@KINDS
async def test_a_judge_of_one_text_is_a_tool_that_takes_what_is_known(kind):
    tool = judge_tool(labels())
    assert (tool.name, judge_tool(bsm()).name) == ("judge_text", "compare_texts")
    assert set(tool.args) == {"input", "output", "expected", "source"}
    args = {"input": "Why?", "output": "good", "expected": "So."}
    call = {"name": tool.name, "args": args, "id": "1", "type": "tool_call"}
    message = tool.invoke(call) if kind == "sync" else await tool.ainvoke(call)
    said = {"label": 1, "score": 0.9, "rationale": "against So."}
    assert json.loads(message.content) == said
    assert tool.invoke({**args, "expected": None}) == json.dumps(
        {**said, "rationale": "against None"}
    )


@for_each("rubric", [*ready_names(), None])
def test_a_tool_is_judged_by_what_it_can_be_given_or_refused(rubric):
    model = FakeChatModel(replies=fitting_reply)
    judge: Any = create_rubric_judge(model, rubric=rubric)
    needs = {*judge.options.needed, *(["source"] if judge.options.needs_source else [])}
    if needs - {"expected", "source"}:
        with pytest.raises(OptionError, match="and a tool is given texts alone"):
            judge_tool(judge)
        return
    texts = {"input": "Why?", "output": "So.", "source": ""}
    for lost in needs:
        assert judge_tool(judge).invoke(texts).startswith(f"give {', '.join(sorted(needs))} too")
        texts[lost] = "It rained."
        needs = needs - {lost}
    judge_tool(judge).invoke({**texts, "expected": "It rained."})
    assert "It rained." in model.prompts[0]


def test_a_tool_of_several_judges_needs_what_each_of_them_does():
    makes = [{"rubric": "Is it kind?"}, {"rubric": "Is it brief?"}, {"rubric": "correctness"}]
    members = [of_method("rubric", name=str(n), **each) for n, each in enumerate(makes)]
    told = judge_tool(create_jury(members)).invoke({"input": "Why?", "output": "good"})
    assert json.loads(told)["label"] == 1


@for_each("judge", [labels, bsm])
def test_a_tool_drops_nothing_that_a_model_gives_it(judge):
    with pytest.raises(ValueError, match="context"):
        judge_tool(judge()).invoke({"input": "Why?", "output": "So.", "context": "It rained."})


def test_a_tool_has_the_name_and_the_words_that_its_owner_gives():
    tool = judge_tool(labels(), name="check", description="Check é it.")
    assert (tool.name, tool.description) == ("check", "Check é it.")
    for name in ("name", "description"):
        with pytest.raises(OptionError, match=f"`{name}` must be"):
            judge_tool(labels(), **{name: ""})
    purposes = ["Judge a text.", "Say which of two texts answers a task better."]
    assert judge_tool(labels()).description == purposes[0]
    own = judge_tool(bsm(instructions="x" * 2000)).description
    assert own.startswith(f"{purposes[1]} It is judged by: xxx")
    assert len(own) == 1000


# ---- the best of n


def test_a_writer_may_be_the_name_of_a_model():
    with pytest.raises(ModelSetupError, match="nobody"):
        best_of(2, bsm(), "nobody:small")


def test_the_samples_of_an_agent_are_no_turns_of_its_thread():
    model = FakeChatModel(replies=["good"] * 2)
    kept: Any = create_agent(model, [], checkpointer=InMemorySaver())
    for writer in (kept, kept.with_config(tags=["own"])):
        with pytest.raises(OptionError, match="samples would be turns of one thread"):
            best_of(2, labels(), writer)
    result = best_of(2, labels(), create_agent(model, [])).invoke(ASKED)
    assert (result["index"], len(result["answers"])) == (0, 2)
    assert not any("good" in prompt for prompt in model.prompts)


@KINDS
async def test_a_writer_keeps_its_limit_of_steps_unless_the_caller_sets_one(kind):
    steps = StateGraph(AgentState).add_node("step", lambda _: {"messages": [AIMessage("good")]})
    steps.add_edge(START, "step").add_conditional_edges(
        "step", lambda state: "step" if len(state["messages"]) < 40 else END
    )
    contest = best_of(2, labels(), steps.compile().with_config(recursion_limit=100))
    best = contest.invoke(ASKED) if kind == "sync" else await contest.ainvoke(ASKED)
    assert (best["index"], best["failures"]) == (0, [])
    with pytest.raises(InputError, match="Recursion limit of 10 reached"):
        contest.invoke(ASKED, {"recursion_limit": 10})


def test_of_equal_answers_the_first_is_the_best_and_the_contest_has_a_name():
    contest = best_of(3, labels())
    result = contest.invoke({"input": "Why?", "answers": ["bad", "good a", "good b"]})
    assert (result["index"], contest.get_name()) == (1, "best of 3")
    assert [match["a"] for match in result["bracket"]] == [0, 1, 2]
    assert {(m["round"], m["b"]) for m in result["bracket"]} == {(1, None)}


@for_each(
    "judge, names",
    [
        (labels, {"answer 1", "answer 2"}),
        (bsm, {"match 1.1: answer 1 vs answer 2", "match 1.1: answer 2 vs answer 1"}),
    ],
)
def test_each_judgment_of_a_contest_is_named_by_its_answers(judge, names):
    heard: list[str] = []
    listened = judge().with_listeners(on_start=lambda run: heard.append(run.name))
    best_of(2, listened).invoke({"input": "Why?", "answers": ["bad", "good"]})
    assert {*heard} <= names
    assert len(heard) == (2 if judge is labels else 1)


@KINDS
async def test_the_best_of_n_wins_a_knockout(kind):
    best = best_of(5, bsm(), writer("a", "good b", "good good good c", "d", "good e"))
    result = best.invoke("Why?") if kind == "sync" else await best.ainvoke("Why?")
    assert result["output"] == "good good good c"
    assert [match["round"] for match in result["bracket"]] == [1, 1, 2, 3]
    assert result["bracket"][-1]["winner"] == result["index"]
    assert result["usage"]["calls"] == 8
    assert json.loads(json.dumps(result)) == result


def test_the_answers_may_be_brought_and_the_same_draw_is_the_same_bracket():
    fields = {"input": "Why?", "answers": ["x", "good", "y"]}
    results = [best_of(3, bsm(), seed=4).invoke(fields) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0]["output"] == "good"
    model, two = FakeChatModel(), {"answers": ["x", "y"], "context": "Oslo is wet."}
    best_of(2, create_bsm_judge(model, criteria=["Depth"])).invoke({**fields, **two})
    assert all("Oslo is wet." in prompt for prompt in model.prompts)
    with pytest.raises(InputError, match="a list of 2"):
        best_of(2, bsm()).invoke(fields)


KNOWN = ("expected", "reference")


def test_a_judge_of_one_text_chooses_the_highest_label():
    result = best_of(3, labels(), writer("x", "good", "y")).invoke({"question": "Why?"})
    assert (result["output"], len(result["bracket"])) == ("good", 3)


@for_each("rubric, name", [("groundedness", "context"), *(("correctness", n) for n in KNOWN)])
def test_what_is_known_of_a_task_is_shown_to_the_judge_of_each_answer(rubric, name):
    model = FakeChatModel(replies=fitting_reply)
    fields = {"input": "Why?", "answers": ["x", "y"], name: "Oslo is wet."}
    best_of(2, create_rubric_judge(model, rubric=rubric)).invoke(fields)
    assert ["Oslo is wet." in prompt for prompt in model.prompts] == [True, True]
    if name in KNOWN:
        best_of(2, create_bsm_judge(model, criteria=["Depth"])).invoke(fields)
        assert all("Oslo is wet." in prompt for prompt in model.prompts)


@for_each("rubric", ["groundedness", "context_precision", "Is it good?"])
def test_each_answer_is_judged_by_the_documents_and_with_the_notes_that_a_judge_reads(rubric):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric=rubric)
    drafts = [{"answer": f"At {n}.", "documents": [f"Open till {n}."], "to": "a b"} for n in (8, 9)]
    alone = [judge.invoke({"input": "When?", "output": each})["verdict"] for each in drafts]
    wanted = sorted(model.prompts)
    left = iter(drafts)
    for contest, task in [
        (best_of(2, judge, lambda _: next(left)), "When?"),
        (best_of(2, judge), {"input": "When?", "answers": drafts}),
    ]:
        model.prompts.clear()
        result = contest.invoke(task)
        assert sorted(model.prompts) == wanted
        assert [each["verdict"]["failures"] for each in result["bracket"]] == [
            each["failures"] for each in alone
        ]
        assert sorted(map(str, result["answers"])) == ["At 8.", "At 9."]


def test_an_answer_that_cannot_be_labelled_wins_nothing():
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: "?"), rubric="Kind?", repairs=0)
    result = best_of(2, judge, writer("x", "y")).invoke("Why?")
    assert [match["winner"] for match in result["bracket"]] == [None, None]


def test_where_every_sample_fails_it_is_said_why():
    def write(task):
        raise RuntimeError(f"no {task}")

    with pytest.raises(InputError, match=r"choose from: RuntimeError: no Why \(.*\); RuntimeError"):
        best_of(2, bsm(), write).invoke("Why")


def test_a_writer_has_the_settings_of_the_call_and_each_sample_its_name():
    told: list[Any] = []

    def write(task, config: RunnableConfig):
        told.append((config["tags"], config["metadata"]["who"]))
        return "good"

    names: list[str] = []
    heard = SimpleNamespace(add=lambda run: names.append(run.name))
    writing = RunnableLambda(write).with_listeners(on_start=heard.add)
    settings: RunnableConfig = {"tags": ["mine"], "metadata": {"who": "I"}}
    best_of(2, bsm(), writing).invoke("Why?", settings)
    assert told == [(["mine"], "I")] * 2
    assert sorted(names) == ["sample 1", "sample 2"]


def test_a_sample_that_fails_is_left_out():
    numbers = iter(range(3))

    def write(task):
        if next(numbers) == 1:
            raise RuntimeError("no")
        return "good"

    result = best_of(3, bsm(), write).invoke("Why?")
    assert result["answers"].count(None) == 1
    [failure] = result["failures"]
    unit = f"sample {result['answers'].index(None) + 1}"
    assert failure["detail"].startswith("RuntimeError: no (")
    assert (failure["step"], failure["unit"], failure["reason"]) == (
        "sample",
        unit,
        "internal_error",
    )


def test_samples_of_a_server_carry_distinct_seeds(serve):
    server = serve(lambda call: reply("an answer"))
    best_of(3, bsm(), chat(server)).invoke("Why?")
    assert sorted(call.body["seed"] for call in server.calls) == [0, 1, 2]
    server.calls.clear()
    best_of(3, bsm(), chat(server), seed=4).invoke("Why?")
    assert not {call.body["seed"] for call in server.calls} & {0, 1, 2}
    assert {call.body["temperature"] for call in server.calls} == {0.7}
    server.calls.clear()
    best_of(2, bsm(), chat(server, temperature=0.2)).invoke("Why?")
    assert {call.body["temperature"] for call in server.calls} == {0.2}


@for_each("options", [{"n": 0}, {"seed": -1}, {"answer": 4}])
def test_an_option_of_the_best_of_n_is_refused_by_its_name(options):
    with pytest.raises(OptionError, match=f"`{next(iter(options))}` must be"):
        best_of(**{"n": 2, "judge": bsm(), **options})


# ---- in an application


@pytest.mark.whole
async def test_one_judge_of_a_web_application_answers_fifty_requests_at_once(serve, monkeypatch):
    server = serve(lambda call: replace(answer_call(call), delay=0.05))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    [code] = [c for c in blocks(ROOT / "docs" / "langchain.md", "python") if "app =" in c]
    space: dict[str, Any] = {}
    exec(code.replace('rubric="helpfulness', 'rubric="answer_relevance'), space)
    texts = ["bad", "good"] * 25
    row = {"input": "?", "rubric": "Say 1."}
    rows = [{**row, "output": f"{text} {n}"} for n, text in enumerate(texts)]
    transport = httpx.ASGITransport(app=space["app"])
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        answers = await asyncio.gather(*(client.post("/judge", json=row) for row in rows))
        wrong = [
            await client.post("/judge", content=body)
            for body in ("{", "[1]", '{"input": "?"}', '{"input": "?", "output": ""}')
        ]
    assert [each.status_code for each in wrong] == [422] * 4
    assert not any("Say 1." in call.prompt for call in server.calls)
    assert [each.json()["score"] for each in answers] == [0, 1] * 25
    assert len(server.calls) == 50
    assert server.peak > 10  # at once, and not one after the other


class Keeping(AgentState[Any]):
    """The state of an agent that puts results into files, as deep agents do."""

    files: NotRequired[dict[str, Any]]


class Writing(AgentMiddleware[Any, Any, Any]):
    """Puts a file into the state, and another text into one that is there."""

    state_schema = Keeping

    def before_model(self, state, runtime):
        new = {"/notes.md": {"content": ["Paid", "in full."]}, "/log.md": "Later."}
        new["/conversation_history/s.md"] = "Summed up."  # by deepagents
        return {"files": {**state.get("files", {}), **new}}


def merged(left, right):
    """Files as a deep agent's state merges them: None takes one out."""
    return {name: file for name, file in {**(left or {}), **right}.items() if file is not None}


class Merging(AgentState[Any]):
    """The state of a deep agent."""

    files: NotRequired[Annotated[dict[str, Any], merged]]


class Drafting(AgentMiddleware[Any, Any, Any]):
    """Puts another text into a file for each draft, and leaves a file beside the second."""

    def __init__(self, schema, form):
        self.state_schema, self.form = schema, form

    def before_model(self, state, runtime):
        old = state.get("files", {})
        new = {"/r.md": f"Text {len(old)}.", f"/{len(old)}.md": "x"}
        return {"files": {**old, **{name: self.form(text) for name, text in new.items()}}}


def deep_file(text):
    return {"content": text, "encoding": "utf-8"}


def old_file(text):
    return {"content": [text], "created_at": "1", "modified_at": "1"}


@for_each("schema, form", [(Keeping, str), (Merging, deep_file), (Merging, old_file)])
def test_an_agent_that_ends_with_an_earlier_draft_has_its_files_of_then(schema, form):
    guard = JudgeMiddleware(labels(), threshold=0.95, trajectory=False)
    drafting = Drafting(schema, form)
    made: Any = create_agent(writer("good", "bad"), middleware=[drafting, guard])
    state = made.invoke({**ASKED, "files": {"/in.md": form("Theirs.")}})
    assert answers_of(state)[-1] == "good"
    wanted = {"/in.md": "Theirs.", "/r.md": "Text 1.", "/1.md": "x"}
    assert state["files"] == {name: form(text) for name, text in wanted.items()}


@for_each("trajectory", [True, False])
def test_the_files_that_an_agent_wrote_are_its_work_and_others_what_it_was_given(trajectory):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it right?")
    guard = JudgeMiddleware(judge, max_revisions=0, trajectory=trajectory)
    made: Any = create_agent(
        writer("Done.", "Twice."), middleware=[Writing(), guard], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    given = {"/log.md": "Before.", "/in.md": "Theirs."}
    state = made.invoke({**ASKED, "files": given}, thread)
    made.invoke(ASKED, thread)
    assert "files_before" not in state
    assert not any("Summed up." in prompt for prompt in model.prompts)
    for prompt, wrote in zip(map(unfenced, model.prompts), (True, False), strict=True):
        request, response = prompt.split("[response]")
        assert "[file-/in.md]\nTheirs." in request
        assert ("[file-/log.md]\nBefore." in request) == wrote
        assert "/in.md" not in response
        for text in ("[file-/notes.md]\nPaid\nin full.", "[file-/log.md]\nLater."):
            assert (text in response) == (trajectory and wrote)
            assert (text in request) == (not wrote)
