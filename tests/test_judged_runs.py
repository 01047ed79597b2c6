"""What was judged, and what people then say of it: a run, or a thread of one or of several."""

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context

from langchain_judges import (
    as_comparative_evaluator,
    as_evaluator,
    create_relative_judge,
    create_rubric_judge,
)
from langchain_judges.cli.audit import _queued
from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.judge_flags import JudgeFlags, judge_spec
from langchain_judges.errors import InputError
from langchain_judges.integrations import feedback_rows, labelled_runs, watch_project
from langchain_judges.integrations.langsmith_runs import experiment_rows
from langchain_judges.rows.documents import context_in
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import CONVERSATION
from tests.cases import for_each
from tests.fakes import FakeChatModel, FakeToolModel, unfenced
from tests.judges import answer
from tests.langsmith_server import LangSmithServer, now
from tests.test_annotation_queue import says
from tests.test_watch import PROJECT, production

THREAD: Any = {"extra": {"metadata": {"thread_id": "t"}}}
PLACES: Any = {"input": "topic", "output": "final", "context": "page"}
COLUMNS = ["input=topic", "output=final", "source=page"]


@pytest.fixture
def server():
    with LangSmithServer() as server:
        server._new_session(None, None, {"name": PROJECT})
        yield server


@pytest.fixture
def client(server, monkeypatch):
    client = Client(api_url=server.url, api_key="x", info=server.info, auto_batch_tracing=False)
    monkeypatch.setattr("langsmith.Client", lambda: client)
    return client


def turns(server, number, **more):
    """Runs of an application with texts at usual places and at others; their ids."""
    server.runs.clear()
    server.feedback.clear()
    server.queued.clear()
    asked, said = ("question", "topic"), ("answer", "final")
    ids = []
    for n in range(number):
        inputs = {name: f"{name} {n}" for name in (*asked, "page")}
        own = {"inputs": inputs, "outputs": {name: f"{name} {n}" for name in said}}
        ids += production(server, "-", **own, end_time=now(), **more)
    return ids


def shown(number, named):
    """The task, the work and the source of so many turns."""
    asked, said = ("topic", "final") if named else ("question", "answer")
    source = [f"page {n}" for n in range(number)] if named else []
    if number == 1:
        return f"{asked} 0", f"{said} 0", context_in(source)
    work = [
        {"role": role, "content": f"{text} {n}"}
        for n in range(number)
        for role, text in (("user", asked), ("assistant", said))
    ]
    return CONVERSATION, work, context_in(source)


def unsure():
    """A judge whose replies are of no use, so that people see what it was shown."""
    model = FakeChatModel(replies=lambda _: "no label")
    return create_rubric_judge(model, rubric="Is it good?", name="good"), model


@for_each("named", [False, True])
@for_each("number, threads", [(1, False), (1, True), (2, True)])
def test_a_run_or_thread_is_judged_audited_and_listed_as_it_was_shown(
    client, server, number, threads, named
):
    ids = turns(server, number, **(THREAD if threads else {}))
    judge, model = unsure()
    places = PLACES if named else {}
    watch_project(client, judge, PROJECT, queue="q", threads=threads, **places)
    says(server, ids[-1], "good.people", "1")
    task, work, source = shown(number, named)
    every = [
        f"{name} {n}" for name in ("question", "answer", "topic", "final", "page") for n in "01"
    ]
    texts = str((task, work, source))
    assert {t for t in every if t in model.prompts[0]} == {t for t in every if t in texts}
    [item] = labelled_runs(client, "q", judge, **places).items
    assert (item["input"], item["output"], item.get("source")) == (task, work, source)
    spec = judge_spec(JudgeFlags("openai:m", method="allure", option=["rubric=Good?"]))
    table = RowFlags(COLUMNS if named else None)
    assert [*_queued(Path("langsmith:q"), table, spec)] == [item]
    [row] = feedback_rows(client, queue="q")
    listed = str(row)
    assert all((f"final {n}" in listed) == (n < number) for n in (0, 1))


def test_a_label_is_of_what_the_judge_of_its_name_was_shown(client, server):
    *_, last = turns(server, 2, **THREAD)
    judge, _ = unsure()
    watch_project(client, judge, PROJECT, queue="q", threads=True, key="talk")
    watch_project(client, judge, PROJECT, queue="q", key="turn")
    says(server, last, "other", 1)
    [(_, why)] = [own for own in labelled_runs(client, "q", judge).left_out if own[0] == last]
    assert "labelled as `KEY.people` of one" in why
    for key, is_whole in (("talk", True), ("turn", False)):
        says(server, last, f"{key}.people", 1)
        [item] = labelled_runs(client, "q", judge, key=f"{key}.people").items
        assert ("answer 0" in str(item["output"])) == is_whole


def test_a_label_of_a_thread_that_went_on_is_of_what_was_said_until_then(client, server):
    _, second, third = turns(server, 3, **THREAD)
    judge, _ = unsure()
    later = server.runs.pop(third)
    watch_project(client, judge, PROJECT, queue="q", threads=True)
    server.runs[third] = later
    says(server, second, "good.people", 1)
    [item] = labelled_runs(client, "q", judge).items
    [row] = feedback_rows(client, queue="q")
    for told in (str(item["output"]), str(row["output"])):
        assert [f"answer {n}" in told for n in range(3)] == [True, True, False]


# ---- what happened within a run


@traceable(run_type="retriever")
def found(q):
    return [{"page_content": f"Page on {q}", "type": "Document", "metadata": {}}]


@traceable(run_type="tool")
def look(q):
    return found(q)[0]["page_content"]


@traceable
def deeper(q):
    with suppress(KeyError):
        broken(q)


@traceable(run_type="tool")
def broken(q):
    raise KeyError(q)


@traceable
def app(question):
    look(f"{question} 1")
    deeper(f"{question} 2")
    found(f"{question} 3")
    return f"answer to {question}"


def target(inputs):
    return {"answer": app(inputs["question"])}


def steps_in(prompts):
    """What stands between the marks of steps, by the question that it is of."""
    shown = re.compile(r"<((?:call|result|error)[\w-]*)-\w+>\n(.*?)\n</", re.S)
    texts = [shown.findall(prompt) for prompt in prompts]
    return {Counter(re.findall(r"q\d", str(each))).most_common(1)[0][0]: each for each in texts}


QUESTIONS = ["q1", "q2", "q3"]


@pytest.fixture
def experiment(server, client):
    """An experiment of nested runs, and the steps that its own evaluator was shown."""
    client = Client(api_url=server.url, api_key="x", info=server.info)
    data = client.create_dataset("d")
    rows: Any = [
        {"inputs": {"question": q}, "reference_outputs": {"answer": "-"}} for q in QUESTIONS
    ]
    client.create_examples(dataset_id=data.id, examples=rows)
    judge, model = unsure()
    with tracing_context(enabled=True, client=client):
        run = client.evaluate(target, data="d", evaluators=[as_evaluator(judge)])
    client.flush()
    server.read()
    server.feedback.clear()
    server.requests.clear()
    assert len(steps_in(model.prompts)) == 3
    return client, run.experiment_name, steps_in(model.prompts)


def queries(server):
    return len([path for _, path in server.requests if path == "/api/v2/runs/query"])


def test_the_steps_of_a_running_experiment_are_those_of_every_path_that_reads_it_later(
    experiment, server
):
    client, name, steps = experiment
    marks = [["call-1-of-look", "result-1-of-look", "call-2-of-broken", "error-2-of-broken"]]
    marks = [[*marks[0], "call-3-of-found", "result-3-of-found"]]
    assert [[mark for mark, _ in each] for each in steps.values()] == marks * 3
    judge, model = unsure()
    client.evaluate(name, evaluators=[as_evaluator(judge), as_evaluator(judge, key="again")])
    assert steps_in(model.prompts) == steps
    assert queries(server) == 3  # of each run once, by whichever evaluator is first
    model.prompts.clear()
    server.requests.clear()
    watch_project(client, judge, name, queue="q", key="watched")
    assert steps_in(model.prompts) == steps
    assert queries(server) == 2  # of the runs, and of all their steps
    for _, run in server.queued:
        says(server, run, "watched.people", "1")
    for items in (labelled_runs(client, "q", judge).items, experiment_rows(client, name)[0]):
        model.prompts.clear()
        for item in items:
            judge.invoke(plain_row(item))
        assert steps_in(model.prompts) == steps
    for row in feedback_rows(client, name):
        assert "[call 1 of look]" in str(row["output"])


def test_a_watched_judge_by_a_source_has_the_documents_of_retrievers(experiment):
    client, name, _ = experiment
    judge = create_rubric_judge(FakeChatModel(replies=answer), rubric="groundedness", name="g")
    assert watch_project(client, judge, name, key="watched").judged == 3


def test_each_turn_of_a_watched_thread_has_its_steps_by_one_query(server):
    client = Client(api_url=server.url, api_key="x", info=server.info)
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        for question in QUESTIONS:
            app(question, langsmith_extra={"metadata": {"thread_id": "t"}})
    client.flush()
    judge, model = unsure()
    assert watch_project(client, judge, PROJECT, threads=True, queue="q").sampled == 1
    assert queries(server) == 1
    says(server, server.queued[0][1], "good.people", "1")
    item: Any = labelled_runs(client, "q", judge).items[0]
    called = [call["name"] for each in item["output"] for call in each.get("tool_calls", ())]
    assert called == ["look", "broken", "found"] * 3
    assert all(f"Page on {q} 1" in model.prompts[0] for q in QUESTIONS)


@traceable
def failing(question):
    look(question)
    raise ValueError("db down")


@for_each("place", range(3))
def test_a_turn_that_failed_is_shown_as_one_with_its_steps_wherever_it_stands(server, place):
    server.runs.clear()
    client = Client(api_url=server.url, api_key="x", info=server.info)
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        for number, question in enumerate(QUESTIONS):
            with suppress(ValueError):
                turn = failing if number == place else app
                turn(question, langsmith_extra={"metadata": {"thread_id": "t"}})
    client.flush()
    judge, model = unsure()
    watch_project(client, judge, PROJECT, threads=True)
    shown = model.prompts[0]
    asked = QUESTIONS[place]
    at = [shown.index(text) for text in (f"Page on {asked}\n", "It failed: ValueError('db down')")]
    others = [shown.index(f"answer to {q}") for q in QUESTIONS if q != asked]
    assert at == sorted(at)
    assert [n < at[0] for n in others] == [n < place for n in range(2)]


def an_agent(name, tool, call, *also, replies=()):
    calls = [AIMessage("", tool_calls=[{"name": tool, "args": call, "id": f"{name} 1"}])]
    return create_agent(FakeChatModel(replies=[*calls, *replies]), [*also], name=name)


def test_calls_of_agents_below_an_agent_stand_once_within_the_call_that_asked_them(server):
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool
    def ask_math(question: str) -> str:
        """Ask the agent for numbers."""
        math = an_agent("math", "add", {"a": 1, "b": 2}, add, replies=["It is 3."])
        return str(math.invoke({"messages": [("user", question)]})["messages"][-1].text)

    boss = an_agent("boss", "ask_math", {"question": "1 + 2?"}, ask_math, replies=["3."])

    def direct(state):  # a node that calls a tool of the same name itself
        add.invoke({"a": 5, "b": 5})

    made = StateGraph(MessagesState).add_node("boss", boss).add_node("direct", direct)
    graph: Any = made.add_edge(START, "boss").add_edge("boss", "direct").compile()
    client = Client(api_url=server.url, api_key="x", info=server.info)
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        graph.invoke({"messages": [("user", "What is 1 + 2?")]})
    client.flush()
    judge, model = unsure()
    watch_project(client, judge, PROJECT)
    marks = re.findall(r"<((?:call|result|final)[\w-]*?)(?:-by-boss)?-\w+>", model.prompts[0])
    below = [f"{kind}-{n}-of-add" for n in (2, 3) for kind in ("call", "result")]
    assert marks == ["call-1-of-ask_math", *below, "result-1-of-ask_math", "final-answer"]


def test_an_answer_to_an_interrupt_that_became_a_message_stands_once():
    said = [("user", "Weather?"), ("user", "Oslo"), ("ai", "Sunny.")]
    resumed = {"graph": None, "update": None, "resume": "Oslo", "goto": []}
    judge, model = unsure()
    as_evaluator(judge)(inputs=resumed, outputs={"messages": said})
    request, _ = unfenced(model.prompts[0]).split("[response]")
    assert request.count("Weather?") == request.count("Oslo") == 1


def test_a_run_that_resumes_after_an_approval_is_judged_by_what_the_user_asked(server):
    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return f"Paid {amount}."

    def paying(amount):
        return AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": amount}, "id": "1"}])

    asks: Any = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    model = FakeToolModel(replies=[AIMessage("Hello."), paying(7), AIMessage("Done.")])
    agent: Any = create_agent(model, [pay], checkpointer=InMemorySaver(), middleware=[asks])
    thread: Any = {"configurable": {"thread_id": "1"}}
    client = Client(api_url=server.url, api_key="x", info=server.info)
    for said in ("Hi", "Pay 7"):
        agent.invoke({"messages": [("user", said)]}, thread)
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    client.flush()
    judge, model = unsure()
    watch_project(client, judge, PROJECT)
    request, response = unfenced(model.prompts[0]).split("[response]")
    places = [request.find(said) for said in ("Hi", "Hello.", "Pay 7", '"approve"')]
    assert places == sorted(places)
    assert places[0] > 0
    assert re.findall(r"\[([a-z-]+)", response.split("[/response]")[0]) == MARKS_OF_PAY


MARKS_OF_PAY = ["call-of-pay", "result-of-pay", "final-answer"]


def test_both_sides_of_a_comparison_have_their_steps(experiment, server):
    client, name, steps = experiment
    other = client.evaluate(lambda inputs: target(inputs) | {"answer": "-"}, data="d")
    client.flush()
    server.read()
    model = FakeChatModel(replies=answer)
    compare = as_comparative_evaluator(create_relative_judge(model, orders="none"))
    client.evaluate((name, other.experiment_name), evaluators=[compare])
    assert len(model.prompts) == 3
    for each in model.prompts:
        question = next(q for q in QUESTIONS if q in each)
        assert [text for _, text in steps_in([each])[question]] == [
            text for _, text in steps[question]
        ] * 2


# ---- answers of a judge and of people, in one form

# What people give where they mean a label, which is a category at a place, as LangSmith keeps it.
FORMS: dict[str, Any] = {
    "category": lambda place, label: {"value": str(label), "score": float(place)},
    "its number": lambda place, label: {"score": float(place)},
    "value": lambda place, label: {"value": label},
    "correction": lambda place, label: {"who": "model", "correction": {"label": label}},
}


@for_each(
    "key, form",
    [
        *(("gpt.people", "category"), ("gpt.people", "its number"), ("gpt.people", "value")),
        *(("mine", "category"), ("gpt", "correction")),
    ],
)
@for_each("labels", [(0, 1), (1, 2, 3, 4, 5), ("poor", "fair", "good")])
def test_people_who_mean_what_the_judge_says_have_its_answer(client, server, key, labels, form):
    ids = turns(server, len(labels))
    categories = [{"value": float(n), "label": str(own)} for n, own in enumerate(labels)]
    server.configs[key] = {"type": "categorical", "categories": categories}
    server.configs["gpt"] = {"type": "continuous", "min": 0, "max": 1}
    for n, (run, label) in enumerate(zip(ids, labels, strict=True)):
        says(server, run, "gpt", label, who="model", score=n / (len(labels) - 1))
        meant = n or 1  # of the first another
        says(server, run, key, **FORMS[form](meant, labels[meant]))
    people = "mine" if key == "mine" else "gpt.people"
    rows = feedback_rows(client, PROJECT)
    assert [row["gpt"] == row[people] for row in rows] == [False] + [True] * (len(labels) - 1)


UNIT, STARS = {"min": 0, "max": 1}, {"min": 1, "max": 5}


@for_each(
    "scales, judge, people, shown",
    [
        # Both are registered, so that a place on one is one on the other.
        ((UNIT, STARS), {"score": 0.75}, {"score": 4}, (0.75, 0.75)),
        ((STARS, UNIT), {"score": 4}, {"score": 1}, (0.75, 1)),
        ((STARS, STARS), {"score": 4}, {"score": 5}, (4, 5)),
        ((UNIT, None), {"score": 0.75}, {"score": 4}, (0.75, 4)),
        # A score beyond 0 to 1 is a label; from 0 to 1 it is a place.
        ((UNIT, None), {"score": 0.75, "value": 4}, {"score": 4}, (4, 4)),
        ((UNIT, None), {"score": 0.75, "value": 4}, {"score": 0.5}, (0.75, 0.5)),
        # Words and numbers are no labels of one kind.
        ((UNIT, None), {"score": 0.5, "value": "poor"}, {"value": 1}, (0.5, 1)),
        ((UNIT, None), {"score": None, "value": None}, {"value": 1}, (None, 1)),
    ],
)
def test_scores_are_of_one_scale_where_both_are_registered(
    client, server, scales, judge, people, shown
):
    [run] = turns(server, 1)
    named = zip(("gpt", "human"), scales, strict=True)
    server.configs = {key: {"type": "continuous", **own} for key, own in named if own}
    says(server, run, "gpt", who="model", **judge)
    says(server, run, "human", **people)
    [row] = feedback_rows(client, PROJECT)
    assert (row["gpt"], row["human"]) == shown


@for_each(
    "judge, people",
    [
        # A label is 4 of 5, a score the middle.
        ({"value": 4, "score": 0.75}, [{"value": 4}, {"score": 0.5}]),
        # Of labels the better comes first.
        ({"value": 1, "score": 0.0}, [{"score": 1}, {"score": 1}]),
    ],
)
@for_each("key", ["gpt.people", "mine"])
def test_numbers_that_may_be_labels_or_scores_are_refused(client, server, judge, people, key):
    for run, said in zip(turns(server, 2), people, strict=True):
        says(server, run, "gpt", who="model", **judge)
        says(server, run, key, **said)
    with pytest.raises(InputError, match=f"'{key}' has numbers .* give a value on each run"):
        feedback_rows(client, PROJECT)


def test_what_people_say_under_the_key_of_a_judge_keeps_it_from_no_run(client, server):
    [run] = turns(server, 1)
    says(server, run, "good", 1)
    judge, _ = unsure()
    assert watch_project(client, judge, PROJECT).known == 0
    assert watch_project(client, judge, PROJECT).known == 1
