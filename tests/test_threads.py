"""Runs of one thread are one conversation, and a run of it answers its last request."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_judges import as_evaluator, create_relative_judge
from langchain_judges.integrations.eval_cases import TextSources, thread_of
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import readable
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer, of_method
from tests.shapes import MOMENT, a_run


def user(text):
    return {"role": "user", "content": text}


def reply(text):
    return {"role": "assistant", "content": text}


USUAL = TextSources()
CALL = {"name": "track", "args": {"n": 7}, "id": "1"}
LOOKED = [
    {**reply(""), "tool_calls": [CALL]},
    {"role": "tool", "content": "-", "tool_call_id": "1"},
]


def as_runs(turns, inputs, outputs):
    """The runs of an application that gets and returns this of its turns."""
    runs: list[Any] = []
    before: list[Any] = []
    for number, (asked, work) in enumerate(turns):
        data = {"inputs": inputs(before, asked), "start_time": MOMENT.replace(minute=number)}
        runs.append(a_run(number, outputs(before, asked, work), **data))
        before = [*before, asked, *work]
    return runs, before


def messages(*parts):
    return {"messages": [*parts]}


def said(before):
    return [each for each in before if each["role"] != "tool" and each["content"]]


# Of what was said before, inputs and outputs of an application: nothing, all, or the last of it.
APPLICATIONS: dict[str, Any] = {
    "nothing": (lambda b, u: messages(u), lambda b, u, w: messages(*w)),
    "its request": (lambda b, u: messages(u), lambda b, u, w: messages(u, *w)),
    "inputs: all": (lambda b, u: messages(*b, u), lambda b, u, w: messages(*w)),
    "inputs: what was said": (lambda b, u: messages(*said(b), u), lambda b, u, w: messages(*w)),
    "inputs: the last": (lambda b, u: messages(*b[-3:], u), lambda b, u, w: messages(*w)),
    "both": (lambda b, u: messages(*b, u), lambda b, u, w: messages(*b, u, *w)),
    "outputs: all": (lambda b, u: messages(u), lambda b, u, w: messages(*b, u, *w)),
    "outputs: the last": (lambda b, u: messages(u), lambda b, u, w: messages(*b[-3:], u, *w)),
    "a question": (lambda b, u: {"question": u["content"]}, lambda b, u, w: messages(*b, u, *w)),
}
# Few texts, so that turns are alike.
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["Cancel it.", "Hello"]).map(user),
        st.tuples(st.sampled_from([[], LOOKED]), st.sampled_from(["Sorry?", "Hi."]).map(reply)).map(
            lambda work: [*work[0], work[1]]
        ),
    ),
    max_size=5,
)


@pytest.mark.parametrize("name", APPLICATIONS)
@given(turns=TURNS)
@settings(max_examples=25, deadline=None)
def test_a_thread_is_what_was_said_whoever_keeps_the_history(name, turns):
    runs, talk = as_runs(turns, *APPLICATIONS[name])
    assert readable(thread_of(runs[::-1], USUAL)) == readable(talk)


def test_a_summary_in_place_of_the_history_is_no_turn():
    runs, talk = as_runs(
        [(user("Hello"), [reply("Hi.")]), (user("Bye"), [reply("See you.")])],
        lambda b, u: messages(u),
        lambda b, u, w: messages(*([{"role": "system", "content": "A chat."}] if b else []), u, *w),
    )
    assert thread_of(runs, USUAL) == talk


# What runs were asked and replied, of which the last was asked something that nobody had said.
UNSEEN: dict[str, list[tuple[list[Any], str]]] = {
    "a turn that was not traced": [
        ([user("Hi")], "Sorry?"),
        ([user("Hi"), reply("Sorry?"), user("Cancel it."), reply("Sorry?"), user("No")], "Bye."),
    ],
    "no history": [([user("yes")], "ok"), ([user("New one"), user("yes"), user("go")], "Done.")],
    "a reply that was written for it": [
        ([user("Read A.")], "ok"),
        ([user("Read B."), reply("ok"), user("Sum up.")], "Done."),
    ],
    # It cannot be told from what was not seen.
    "an edited history": [
        ([user("Read A, at length.")], "ok"),
        ([user("Read A"), reply("ok"), user("Sum up.")], "Done."),
    ],
}


@for_each("name", UNSEEN)
def test_what_nobody_has_seen_is_kept_before_a_message_that_repeats(name):
    runs: list[Any] = []
    for number, (asked, replied) in enumerate(UNSEEN[name]):
        began = MOMENT.replace(minute=number)
        run = a_run(number, messages(reply(replied)), inputs=messages(*asked), start_time=began)
        runs.append(run)
    last = [*UNSEEN[name][-1][0], reply(UNSEEN[name][-1][1])]
    assert thread_of(runs, USUAL)[-len(last) :] == last


def test_instructions_that_change_from_turn_to_turn_stand_where_they_changed():
    turns = [(user(f"q{n}"), [reply(f"a{n}")]) for n in (1, 2, 3)]
    rules = [{"role": "system", "content": f"It is {hour}."} for hour in (1, 2, 2)]
    changed = [rules[0], turns[0][0], *turns[0][1], rules[1], turns[1][0], *turns[1][1]]

    def history(before, asked):
        return messages(rules[len(before) // 2], *before, asked)

    applications: list[Any] = [
        lambda before, asked, work: messages(*work),
        lambda before, asked, work: messages(*history(before, asked)["messages"], *work),
    ]
    for returned in applications:
        runs, _ = as_runs(turns, history, returned)
        assert thread_of(runs, USUAL) == [*changed, turns[2][0], *turns[2][1]]


def thread_of_a_graph(*inputs):
    """The runs of one thread of a LangGraph application with a checkpointer."""

    def respond(state):
        last = state["messages"][-1].content
        if last == "Fail":
            raise ValueError("boom")
        done = f"Deleted: {interrupt('Sure?')}" if last == "Delete" else f"You said {last}"
        return {"messages": [AIMessage(done)]}

    graph: Any = StateGraph(MessagesState).add_node(respond).add_edge(START, "respond")
    app, runs = graph.compile(checkpointer=InMemorySaver()), RunCollectorCallbackHandler()
    for data in inputs:
        try:
            app.invoke(data, {"configurable": {"thread_id": "1"}, "callbacks": [runs]})
        except ValueError:
            continue
    return runs.traced_runs


def test_a_thread_of_a_graph_with_a_checkpointer_has_each_turn_once():
    asked = [messages(user(text)) for text in ("Hello", "Hello", "Fail", "Delete")]
    record = thread_of(thread_of_a_graph(*asked, Command(resume="yes"), None), USUAL)
    assert [(each["role"], each["content"]) for each in record] == [
        *[("user", "Hello"), ("assistant", "You said Hello")] * 2,
        *[("user", "Fail"), ("how it ended", "It failed: ValueError('boom')")],
        *[("user", "Delete"), ("how it ended", "It was interrupted and waits: 'Sure?'")],
        *[("user", "yes"), ("assistant", "Deleted: yes")],
    ]


# ---- a run alone

BEFORE = [user("Hello"), *LOOKED, reply("Hi.")]


@for_each("asked", ["Bye", "Hello", [user("Bye")], [user("I go."), user("Bye")]])
def test_the_conversation_before_a_request_is_its_context(asked):
    request = [user(asked)] if isinstance(asked, str) else asked
    row = plain_row({"input": asked, "output": [*BEFORE, *request, *LOOKED, reply("See you.")]})
    assert readable(row["input"]) == readable([*BEFORE, *request])
    assert readable(row["output"]) == readable([*LOOKED, reply("See you.")])
    assert plain_row(row) == row


@for_each(
    "asked, record",
    [
        ("Hello", [user("Hello"), reply("Hi."), user("Bye"), reply("See you.")]),
        ("Hello", [user("Hello"), *LOOKED, user("Hello"), reply("Hi.")]),
        ("Bye", [*BEFORE, user("Bye"), reply("See you."), user("Wait"), reply("Yes?")]),
        ("Else", [*BEFORE, user("Bye"), reply("See you.")]),
    ],
)
def test_a_conversation_that_does_not_end_with_a_request_and_its_answer_stays_whole(asked, record):
    row = plain_row({"input": asked, "output": record})
    assert row["input"] == asked
    assert row["output"][-3:] == record[-3:]


def test_a_run_of_a_kept_thread_is_compared_by_its_answer_alone():
    model = FakeChatModel(replies=answer)
    state = messages(*BEFORE, user("Bye"), reply("See you."))
    run = a_run(1, state, inputs=messages(user("Bye")))
    other = {"inputs": messages(user("Bye")), "outputs": messages(reply("Ciao."))}
    as_evaluator(create_relative_judge(model, orders="none"))(run, other)
    first = unfenced(model.prompts[0])
    assert "[turn-1-assistant]\nHi.\n" in first.split("[response-1]")[0]
    assert "[response-1]\nSee you.\n\n[response-2]\nCiao.\n" in first


def test_sides_with_different_conversations_before_keep_them():
    sides = {side: [user("Hello"), reply(side), user("Bye"), reply("See you.")] for side in "AB"}
    row = plain_row({"input": "Bye", "output_a": sides["A"], "output_b": sides["B"]})
    assert (row["input"], row["output_a"]) == ("Bye", sides["A"])


def test_a_run_that_was_tried_again_without_inputs_has_the_task_of_its_state():
    model = FakeChatModel(replies=answer)
    run = a_run(1, messages(user("Hello"), reply("Hi.")), inputs={"input": None})
    as_evaluator(of_method("rubric", model, rubric="Is it good?"))(run)
    assert "[request]\nHello\n\n[response]\nHi." in unfenced(model.prompts[0])
