"""A project watched: sampled, within a budget, each run once, whatever happens in between."""

import signal
import threading
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tracers.langchain import wait_for_all_tracers
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context
from langsmith.utils import LangSmithAPIError, LangSmithError
from typer.testing import CliRunner
from urllib3.util import Retry

from langchain_judges import load_judge
from langchain_judges.cli import app
from langchain_judges.cli.watch import sentence
from langchain_judges.errors import OptionError, RepeatedFailureError
from langchain_judges.integrations import create_online_evaluator
from langchain_judges.integrations.watch import Watch, in_sample, watch_every, watch_project
from langchain_judges.methods import create_jury
from langchain_judges.testing import FakeModelServer
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import answer, answer_call, bsm, labels, of_method
from tests.langsmith_server import LangSmithServer, now
from tests.processes import start, wait_until
from tests.test_lookups import rubric, wants

PROJECT = "production"


@pytest.fixture
def server():
    with LangSmithServer() as server:
        server._new_session(None, None, {"name": PROJECT})
        yield server


@pytest.fixture
def client(server):
    # Its own retries off: they would hide ours.
    options: dict[str, Any] = {"retry_config": Retry(0), "auto_batch_tracing": False}
    return Client(api_url=server.url, api_key="x", info=server.info, **options)


def production(server, *outputs, **also):
    """Put one run with each output into the project; return their ids."""
    [session] = server.sessions
    ids = []
    for number, output in enumerate(outputs):
        own = str(uuid.uuid4())
        server.runs[own] = {
            "id": own,
            "trace_id": own,
            "name": "app",
            "run_type": "chain",
            "start_time": now(),
            "dotted_order": f"{number}",
            "session_id": session,
            "inputs": {"question": f"Why {number}?"},
            "outputs": output and {"answer": output},
            "error": None if output else "Timeout",
            "extra": {},
            **also,
        }
        ids.append(own)
    return ids


def kept(server, key="labels"):
    return {each["run_id"]: each for each in server.feedback if each["key"] == key}


def test_each_run_gets_its_feedback_once(client, server):
    good, bad = production(server, "good", "bad")
    watch = watch_project(client, labels(), PROJECT)
    assert (watch.listed, watch.judged, watch.known, watch.stopped) == (2, 2, 0, "")
    feedback = kept(server)
    assert {run: each["score"] for run, each in feedback.items()} == {good: 0.9, bad: 0.1}
    assert (feedback[good]["value"], feedback[good]["comment"]) == (1, "against None")
    assert feedback[good]["feedback_config"] == {"type": "continuous", "min": 0, "max": 1}
    assert feedback[good]["feedback_source"]["type"] == "model"
    extra = feedback[good]["extra"]
    assert (extra["label"], extra["failures"]) == (1, [])
    assert extra["usage"].keys() == {"calls", "input_tokens", "output_tokens"}
    again = watch_project(client, labels(), PROJECT)
    assert (again.known, again.judged) == (2, 0)
    assert len(server.feedback) == 2
    # Another key is another feedback.
    assert watch_project(client, labels(), PROJECT, key="other").judged == 2


def test_what_the_provider_failed_is_judged_by_the_next_look_and_after_new_runs(client, server):
    production(server, "good", "good", "x")
    asked: list[str] = []

    def replies(prompt):
        asked.append(prompt)
        if is_down:
            raise TimeoutError("the provider is away")
        return "no label" if "\nx\n" in prompt else answer(prompt)

    is_down, model = True, FakeChatModel(replies=replies)
    judge = of_method("rubric", model, rubric=["Tone"], name="Tone")
    assert watch_project(client, judge, PROJECT).failed == 3
    posted = {run: each["id"] for run, each in kept(server, "Tone").items()}
    is_down = False
    [new] = production(server, "very new")
    asked.clear()
    watch = watch_project(client, judge, PROJECT, max_concurrency=1)
    assert (watch.known, watch.judged, watch.failed) == (0, 3, 1)
    assert "very new" in asked[0]
    assert {run: each["id"] for run, each in kept(server, "Tone").items() if run != new} == posted
    # A reply of no use is the model's own, and stays.
    assert watch_project(client, judge, PROJECT).known == 4


def test_feedback_of_another_judge_under_the_key_is_told(client, server, caplog):
    production(server, "good")
    model, told = FakeChatModel(replies=answer), []
    for words, name in (("Polite?", "a"), ("Polite?", "b"), ("Brief?", "a")):
        judge = of_method("rubric", model, rubric=words, name=name)
        watch_project(client, judge, PROJECT, key="rubric")
        told.append("1 of the sampled runs have the feedback 'rubric' of another" in caplog.text)
    assert told == [False, False, True]
    assert len(server.feedback) == 1


def test_a_watched_run_is_judged_with_look_ups(client, server):
    production(server, "7 euros.")
    watch = watch_project(client, rubric(wants(("price", {"item": "bread"}))), PROJECT)
    assert (watch.judged, watch.failed) == (1, 0)
    assert ["Looked up: price." in each["comment"] for each in server.feedback] == [True]


def test_what_was_posted_before_a_kill_is_posted_again_under_the_same_id(client, server):
    production(server, "good")
    watch_project(client, labels(), PROJECT)
    [first] = server.feedback
    # The feedback is there, and the next look does not find it yet.
    server._list_feedback = lambda *_: []
    watch_project(client, labels(), PROJECT)
    [second] = server.feedback
    assert first["id"] == second["id"]


@contextmanager
def traced(server):
    """Trace into the project what is called, until all of it is there."""
    client = Client(api_url=server.url, api_key="x", info=server.info)
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        yield
    wait_for_all_tracers()
    client.flush()
    server.read()


def test_the_pieces_of_a_traced_stream_are_judged_as_the_text_that_they_make(client, server):
    @traceable
    def app(question):
        yield from ["It", " is", " slo", "w.\n", "\n- So", "."]

    with traced(server):
        assert len([*app("Why?")]) == 6
    model = FakeChatModel(replies=answer)
    watch_project(client, of_method("rubric", model, rubric="Is it good?"), PROJECT)
    assert "\nIt is slow.\n\n- So.\n</response-" in model.prompts[0]
    assert "a list of 6 texts, shown as one" in server.feedback[0]["comment"]


def respond(state):
    return {"messages": [AIMessage(f"Paid: {interrupt('Shall I pay?')}")]}


@pytest.mark.parametrize("threads", [False, True])
def test_a_traced_run_that_waits_for_a_person_is_judged_as_one(client, server, threads):
    graph: Any = StateGraph(MessagesState).add_node(respond).add_edge(START, "respond")
    app, thread = graph.compile(checkpointer=InMemorySaver()), {"thread_id": "1"}
    model = FakeChatModel(replies=answer)
    judge, told = of_method("rubric", model, rubric="Is it good?", name="good"), []
    asked: list[Any] = [{"messages": [HumanMessage("Pay.")]}, Command(resume="yes")]
    for given in asked:
        with traced(server):
            app.invoke(given, {"configurable": thread, "metadata": thread})
        watch_project(client, judge, PROJECT, threads=threads)
        told += ["It was interrupted and waits: 'Shall I pay?'" in model.prompts[-1]]
    assert (len(model.prompts), told) == (2, [True, threads])


def test_judgments_traced_into_the_project_are_not_judged(client, server):
    production(server, "good")
    judge = of_method("rubric", rubric="Is it good?")
    with traced(server):
        for each in (judge, create_jury([judge] * 3)):
            each.invoke({"input": "Why?", "output": "good"})
    assert len(roots(server)) == 3
    watch = watch_project(client, labels(), PROJECT)
    assert (watch.listed, watch.judged, watch.failed) == (1, 1, 0)


def roots(server):
    return [run for run in server.runs.values() if not run.get("parent_run_id")]


def test_a_run_is_always_in_the_sample_or_always_out_of_it(client, server):
    ids = production(server, *["good"] * 8)
    watch = watch_project(client, labels(), PROJECT, sample=0.5)
    chosen = {each for each in ids if in_sample(each, 0.5)}
    assert kept(server).keys() == chosen
    assert (watch.listed, watch.sampled) == (8, len(chosen))
    names = list(map(str, range(100)))
    shares = [{name for name in names if in_sample(name, share)} for share in (0, 0.25, 0.5, 1)]
    assert shares[0] < shares[1] < shares[2] < shares[3] == set(names)


def test_what_could_not_be_judged_has_no_score_and_goes_to_the_queue(client, server):
    _, lost = production(server, "good", None)
    watch = watch_project(client, labels(), PROJECT, queue="doubtful")
    assert (watch.judged, watch.failed, watch.queued) == (1, 1, 1)
    assert server.queued == [("doubtful", lost)]
    feedback = kept(server)[lost]
    assert feedback.get("score") is None
    assert "no output: Timeout" in feedback["comment"]
    # What is in the queue is not put there again, even if its feedback is lost.
    server.feedback.clear()
    assert watch_project(client, labels(), PROJECT, queue="doubtful").queued == 0
    assert (len(server.queues), len(server.queued)) == (1, 1)


def test_runs_on_which_a_jury_disagrees_go_to_the_queue(client, server):
    agreed, disputed = production(server, "good", "fine")
    strict = FakeChatModel(replies=answer)  # it finds "good" alone good
    mild = FakeChatModel(replies=lambda _: {"label": "1", "explanation": "-"})
    jury = create_jury(
        [of_method("rubric", model, rubric=["Tone"]) for model in (strict, mild, mild)]
    )
    watch = watch_project(client, jury, PROJECT, queue="doubtful", doubtful=0)
    assert (watch.judged, watch.queued) == (2, 1)
    assert server.queued == [("doubtful", disputed)]
    assert agreed in kept(server, "jury")


def test_a_budget_of_calls_ends_a_look_and_the_next_one_goes_on(client, server):
    production(server, *["good"] * 6)
    model = FakeChatModel(replies=answer)
    judge = of_method("rubric", model, rubric=["Tone"])
    options: dict[str, Any] = {"max_calls": 3, "max_concurrency": 1}
    watch = watch_project(client, judge, PROJECT, **options)
    assert (watch.judged, watch.stopped) == (3, "the budget is spent")
    assert len(model.prompts) == 3
    assert watch_project(client, judge, PROJECT, **options).judged == 3
    assert len(kept(server, "Tone")) == 6


def test_a_look_judges_at_most_so_many_runs_and_the_next_one_goes_on(client, server):
    production(server, *["good"] * 5)
    judged = [watch_project(client, labels(), PROJECT, max_rows=2).judged for _ in range(4)]
    assert judged == [2, 2, 1, 0]
    assert len(server.feedback) == 5


def test_a_busy_server_is_asked_again_later(client, server, monkeypatch):
    production(server, "good")
    waits: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", waits.append)
    server.busy = 2
    watch = watch_project(client, labels(), PROJECT, stop=stop)
    assert watch.judged == 1
    assert waits == [1, 2]


def test_a_score_that_a_busy_server_refuses_is_posted_again_after_a_wait(
    client, server, monkeypatch
):
    production(server, "good")
    waits: list[float] = []
    stop, queried = threading.Event(), server._query_runs

    def busy_from_here(match, query, payload):
        server.busy = 1 if "filter" in payload else 0  # of steps, before feedback is posted
        return queried(match, query, payload)

    monkeypatch.setattr(stop, "wait", waits.append)
    monkeypatch.setattr(server, "_query_runs", busy_from_here)
    assert watch_project(client, labels(), PROJECT, stop=stop).judged == 1
    assert (waits, len(server.feedback)) == ([1], 1)


def test_a_server_that_stays_busy_is_asked_six_times_and_a_stop_ends_the_waiting(
    client, server, monkeypatch
):
    waits: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", waits.append)
    server.busy = 99
    with pytest.raises(LangSmithError):
        watch_project(client, labels(), PROJECT, stop=stop)
    assert (waits, server.busy) == ([1, 2, 4, 8, 16], 93)
    monkeypatch.undo()
    stop.set()
    with pytest.raises(LangSmithError):
        watch_project(client, labels(), PROJECT, stop=stop)
    assert server.busy == 92


def test_the_feedback_of_many_runs_is_asked_for_in_parts(client, server, monkeypatch):
    monkeypatch.setattr("langchain_judges.integrations.given_feedback._TOGETHER", 2)
    production(server, *["good"] * 5)
    assert watch_project(client, labels(), PROJECT).judged == 5
    server.requests.clear()
    assert watch_project(client, labels(), PROJECT).known == 5
    assert server.requests.count(("GET", "/feedback")) == 3


def test_a_stop_ends_a_look_after_what_was_begun(client, server):
    production(server, *["good"] * 5)
    stop = threading.Event()
    stop.set()
    watch = watch_project(client, labels(), PROJECT, stop=stop, max_concurrency=1)
    assert (watch.judged, watch.stopped) == (1, "it was asked to stop")
    assert list(watch_every(lambda: watch, timedelta(0), stop)) == []
    stop.clear()
    looks = watch_every(lambda: watch, timedelta(minutes=10), stop)
    assert next(looks) is watch
    stop.set()
    assert list(looks) == []


def test_a_thread_is_judged_as_one_conversation_whenever_it_began(client, server):
    first, last = production(server, "Hi.", "good", extra={"metadata": {"thread_id": "t"}})
    yesterday = datetime.now(UTC) - timedelta(days=1)
    server.runs[first]["start_time"] = yesterday.isoformat()
    production(server, "Out of a thread.")
    judged: dict[str, Any] = {"outputs": {"verdict": {"label": 1, "failures": []}}}
    judged["inputs"] = {"input": "Why?", "output": "good"}
    production(server, "-", **judged, extra={"metadata": {"thread_id": "j"}})
    model = FakeChatModel(replies=answer)
    judge = of_method("rubric", model, rubric=["Tone"])
    watch = watch_project(client, judge, PROJECT, threads=True)
    assert (watch.listed, watch.judged) == (2, 1)
    assert kept(server, "Tone").keys() == {last}
    [prompt] = model.prompts
    places = [prompt.index(text) for text in ("Why 0?", "Hi.", "Why 1?", "good")]
    assert places == sorted(places)


async def test_all_pages_are_listed_in_a_loop_too_and_no_deprecated_call_is_made(
    client, server, recwarn
):
    server.page = 3
    production(server, *["good"] * 8)
    assert watch_project(client, labels(), PROJECT).judged == 8
    # The connections of one list are none of the next one's, nor of the caller's own loop.
    [project] = server.sessions
    moment = datetime.now(UTC) - timedelta(days=1)
    for _ in range(2):
        query = client.runs.query(project_ids=[project], min_start_time=moment)
        assert len([run async for run in query]) == 8
        assert watch_project(client, labels(), PROJECT).known == 8
    assert {path for _, path in server.requests if "runs" in path} == {"/api/v2/runs/query"}
    assert not [each for each in recwarn if "deprecated" in str(each.message)]


@for_each("error", [LangSmithAPIError("500"), RepeatedFailureError("all failed")])
def test_a_look_that_fails_is_told_and_the_next_comes(caplog, error):
    def look(stop, outcomes):
        if len(outcomes) == 1:
            stop.set()
        found = outcomes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def looks(every, *outcomes):
        stop = threading.Event()
        return watch_every(partial(look, stop, [*outcomes]), every, stop)

    found = looks(timedelta(microseconds=1), Watch(judged=1), error, Watch(judged=3))
    assert [each.judged for each in found] == [1, 3]
    assert f"the next comes at its time: {error}" in caplog.text
    with pytest.raises(type(error)):  # of one look alone
        next(looks(timedelta(0), error, Watch()))


def test_langsmith_is_told_how_to_draw_each_score(client, server):
    production(server, "good")
    judge = of_method("rubric", rubric=["Tone", "Fit"], name="reply")
    watch_project(client, judge, PROJECT)
    scale = {"type": "continuous", "min": 0, "max": 1}
    drawn = {each["key"]: each["feedback_config"] for each in server.feedback}
    assert drawn == {"reply": scale, "Tone": scale, "Fit": scale}
    # The total comes last: where it is, all is there. Each belongs to the run's project.
    assert [each["key"] for each in server.feedback] == ["Tone", "Fit", "reply"]
    assert [each["session_id"] for each in server.feedback] == [*server.sessions] * 3


def heard(server, monkeypatch, name):
    """The bodies of the requests that a handler of the server answers."""
    bodies, answered = [], getattr(server, name)

    def handle(match, query, body):
        bodies.append(body)
        return answered(match, query, body)

    monkeypatch.setattr(server, name, handle)
    return bodies


@pytest.mark.parametrize("threads", [False, True])
def test_langsmith_is_asked_for_what_passes_a_filter_since_a_time(
    client, server, monkeypatch, threads
):
    asked = heard(server, monkeypatch, "_query_threads" if threads else "_query_runs")
    since, named = datetime(2026, 1, 2, tzinfo=UTC), 'eq(name, "app")'
    which: Any = {"threads": threads, "filter": named}
    watch_project(client, labels(), PROJECT, since=since, **which)
    before = datetime.now(UTC)
    watch_project(client, labels(), PROJECT, threads=threads)
    assert [each.get("filter") for each in asked] == [named, None]
    told, hour_ago = (datetime.fromisoformat(each["min_start_time"]) for each in asked)
    assert told == since
    hour = timedelta(hours=1)
    assert before - hour <= hour_ago <= datetime.now(UTC) - hour


def test_a_doubtful_run_is_queued_with_its_project_and_time(client, server, monkeypatch):
    items = heard(server, monkeypatch, "_queue_runs")
    [lost] = production(server, None)
    watch_project(client, labels(), PROJECT, queue="doubtful")
    [[entry]] = [each["items"] for each in items]
    [project] = server.sessions
    assert (entry["item_type"], entry["run_id"], entry["project_id"]) == ("RUN", lost, project)
    began = datetime.fromisoformat(server.runs[lost]["start_time"])
    assert datetime.fromisoformat(entry["start_time"]).replace(tzinfo=UTC) == began


def test_what_is_left_of_the_time_between_two_looks_is_waited(monkeypatch):
    waits: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", waits.append)
    for minutes in (0, 10):
        looks = watch_every(Watch, timedelta(minutes=minutes), stop)
        assert next(looks) == next(looks) == Watch()
    assert waits[0] == 0
    assert 0 < waits[1] <= 600


def test_the_labels_of_the_judge_are_offered_to_people_as_categories(client, server):
    for names in (["rude", "fine"], ["rude", "fine", "kind"]):
        production(server, None)
        judge = of_method("rubric", rubric="Is it kind?", labels=names, name="tone")
        watch_project(client, judge, PROJECT, queue="doubtful")
    categories = server.configs["tone.people"]["categories"]
    assert [each["label"] for each in categories] == ["rude", "fine", "kind"]
    assert [each["value"] for each in categories] == [0, 1, 2]
    assert server.configs["tone.people"]["type"] == "categorical"
    [queue] = server.queues.values()
    assert queue["rubric_items"] == [{"feedback_key": "tone.people"}]


def test_options_that_cannot_be_are_refused(client):
    with pytest.raises(OptionError, match="this one compares pairs"):
        watch_project(client, bsm(), PROJECT)
    with pytest.raises(OptionError, match="max_call"):
        watch_project(client, labels(), PROJECT, max_call=3)


@for_each(
    "name, value", [("sample", 2), ("doubtful", -1), ("key", ""), ("queue", ""), ("filter", "")]
)
def test_an_option_is_refused_by_its_name(client, name, value):
    options: dict[str, Any] = {name: value}
    with pytest.raises(OptionError, match=f"`{name}` must be"):
        watch_project(client, labels(), PROJECT, **options)


# One of four votes is another: the confidence is 0.75.
@for_each("doubtful, queued", [(0.75, 0), (0.76, 1)])
def test_a_verdict_below_the_confidence_is_doubtful_and_one_at_it_is_not(
    client, server, doubtful, queued
):
    production(server, "good")
    judge = labels() | (lambda state: {"verdict": {**state["verdict"], "confidence": 0.75}})
    judge = judge.with_config(metadata={"method": "labels", "model": {}, "takes": "item"})
    watch = watch_project(client, judge, PROJECT, queue="doubtful", doubtful=doubtful)
    assert (watch.judged, watch.queued) == (1, queued)


# ---- from the command line


def command(server, *more):
    return [
        *("-m", "langchain_judges.cli", "watch", "--project", PROJECT, "--model", "fake"),
        *("--base-url", server.url, "--set", 'rubric=["Tone"]', *more),
    ]


@pytest.fixture
def environment(server, monkeypatch):
    monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
    monkeypatch.setenv("LANGSMITH_API_KEY", "x")
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.usefixtures("environment")
def test_the_command_looks_once_and_says_what_it_did(server):
    production(server, "good", "good", None)
    with FakeModelServer(answer_call) as model:
        result = CliRunner().invoke(app, command(model, "--queue", "doubtful")[2:])
    assert result.exit_code == 0, result.output
    said = "3 of 3 sampled; 0 had feedback already; 2 judged by 2 calls; 1 could not be judged"
    assert said in " ".join(result.stderr.split())
    assert len(kept(server, "Tone")) == 3
    wrong = CliRunner().invoke(app, command(model, "--since", "yesterday")[2:])
    assert wrong.exit_code == 2
    assert "--since must be" in " ".join(wrong.stderr.split())


@pytest.mark.usefixtures("environment")
def test_a_handler_of_a_signal_never_waits_for_the_event_that_ends_a_look(server, monkeypatch):
    """The thread that it interrupts may hold the lock of the event, which setting it takes."""
    setters: list[threading.Thread] = []

    class Told(threading.Event):
        def set(self):
            setters.append(threading.current_thread())
            super().set()

    def look(client, *, stop, **_):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.wait(30)
        assert threading.main_thread() not in setters
        return Watch(stopped="it was asked to stop")

    own = SimpleNamespace(Event=Told, Thread=threading.Thread)
    watch_command = import_module("langchain_judges.cli.watch")
    monkeypatch.setattr(watch_command, "threading", own)
    monkeypatch.setattr(watch_command.messages, "begin_to_stop", lambda leave: None)
    monkeypatch.setattr("langchain_judges.integrations.watch.watch_project", look)
    result = CliRunner().invoke(app, command(server)[2:])
    assert (result.exit_code, len(setters)) == (130, 1), result.output


@pytest.mark.system
@pytest.mark.usefixtures("environment")
def test_a_signal_ends_the_command_while_it_waits(server):
    production(server, "good")
    with FakeModelServer(answer_call) as model:
        program = start(*command(model, "--every", "10m"))
        wait_until(lambda: kept(server, "Tone"))
        program.send_signal(signal.SIGTERM)
        program.communicate()
    assert program.returncode == 130
    assert len(kept(server, "Tone")) == 1


# ---- as LangSmith's own online evaluator


def test_a_judge_runs_as_the_code_of_an_online_evaluator(client, server, monkeypatch):
    with FakeModelServer(answer_call) as model:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        judge = load_judge("rubric", "openai:small", rubric=["Tone"], name="reply")
        secrets, needed = ["OPENAI_API_KEY"], ["langchain-judges", "langchain-openai"]
        asked: Any = {"project": PROJECT, "dependencies": needed, "sample": 0.1}
        made = create_online_evaluator(
            client, judge, "tone", **asked, secrets=secrets, context="docs"
        )
        [sent] = server.evaluators
        [rule] = server.rules
        assert (rule["evaluator_id"], [rule["session_id"]]) == (made, [*server.sessions])
        assert (rule["sampling_rate"], rule["filter"]) == (0.1, "eq(is_root, true)")
        own = sent["code_evaluator"]
        assert (sent["name"], sent["type"]) == ("tone", "code")
        assert (own["language"], own["workspace_secrets_keys"]) == ("python", secrets)
        assert "langchain-judges" in own["dependencies"]
        # It runs as LangSmith runs it: on the data of a run, by one function of this name.
        space: dict[str, Any] = {}
        exec(own["code"], space)
        run = {"inputs": {"question": "Why?", "docs": ["It rained."]}, "outputs": {"a": "good"}}
        assert space["perform_eval"](run) == {"reply": 1.0}
        assert "It rained." in model.calls[0].prompt
        assert space["perform_eval"]({"inputs": {}, "outputs": None}) == {}
        space["perform_eval"](run | {"error": "TimeoutError: no tool"})
        assert "It failed: TimeoutError: no tool" in model.calls[-1].prompt
    for refused, why in (
        (of_method("rubric", rubric="Is it good?"), "is an object"),
        (bsm(), "`judge` must label one text; this one compares pairs"),
        (labels(), "`judge` must be a judge of this package: its code"),
    ):
        with pytest.raises(OptionError, match=why):
            create_online_evaluator(client, refused, "tone", **asked)


def test_an_online_evaluator_is_told_which_runs_it_judges_and_where_texts_stand(
    client, server, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = load_judge("rubric", "openai:small", rubric=["Tone"])
    asked: Any = {"project": PROJECT, "dependencies": ["one", "two"]}
    places: Any = {"key": "mine", "input": "a.b", "output": "c"}
    create_online_evaluator(client, judge, "tone", **asked, **places, filter="eq(name, 'x')")
    [rule] = server.rules
    assert (rule["display_name"], rule["filter"]) == ("tone", "eq(name, 'x')")
    assert rule["sampling_rate"] == 1
    own = server.evaluators[0]["code_evaluator"]
    assert (own["dependencies"], own["workspace_secrets_keys"]) == ("one\ntwo", [])
    assert own["advanced_features_enabled"] is True
    space: dict[str, Any] = {}
    exec(own["code"], space)
    evaluator = space["EVALUATOR"]
    assert evaluator.key == "mine"
    assert evaluator.reader.places[:4] == ("a.b", "c", None, None)
    for name in ("project", "filter", "sample", *places, "context"):
        with pytest.raises(OptionError, match=f"`{name}` must be"):
            create_online_evaluator(client, judge, "tone", **{**asked, name: -1})
    with pytest.raises(OptionError, match="`name` must be"):
        create_online_evaluator(client, judge, "", **asked)


@for_each("threads", [False, True])
def test_a_run_or_thread_is_judged_when_it_is_over_and_not_before(client, server, threads):
    server.feedback.clear()
    *_, run = production(server, "good", None, extra={"metadata": {"thread_id": f"{threads}"}})
    server.runs[run] |= {"error": None, "end_time": None}
    assert run not in look_at(client, server, threads)
    server.runs[run] |= {"outputs": {"answer": "good"}, "end_time": now()}
    assert run in look_at(client, server, threads)


def look_at(client, server, threads):
    """The runs that have feedback after a look."""
    watch_project(client, labels(), PROJECT, threads=threads)
    return kept(server)


@for_each("left", [0, 3])
def test_a_look_says_how_many_runs_are_left(left):
    said = sentence(Watch(listed=9, sampled=6 + left, known=1, judged=3, failed=2))
    assert (f"; {left} left" in said) == bool(left)
