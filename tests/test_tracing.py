"""What LangSmith's own client sends while a judge works."""

import asyncio
import json
import threading
import traceback
from typing import Any

import pytest

from langchain_judges import (
    FailureMemory,
    create_allure_audit,
    create_allure_judge,
    create_bsm_writer,
    judge_many,
)
from langchain_judges.errors import ModelAccessError
from langchain_judges.integrations import end_traces
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import ServerReply, reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, with_logprobs, writes
from tests.judges import answer_call, drpe, item_of, of_method
from tests.langsmith_server import LangSmithServer
from tests.memories import Letters
from tests.planners import as_labelled, fooled_model, planning
from tests.processes import start
from tests.test_ask import changed, places_in

PAIR = {"input": "Why?", "output_a": "good good", "output_b": "bad"}


def test_every_step_of_writing_has_a_name_of_its_own(traced):
    def respond(prompt):
        return '{"text": "Snow."}' if "Make one" in prompt else writes(prompt)

    writer = create_bsm_writer(FakeChatModel(replies=respond))
    trace = traced(lambda: writer.invoke({"concepts": ["snow", "goat", "vest"]}))
    assert [run["name"] for run in trace.children(None)] == ["write"]
    calls = [run["name"] for run in trace.runs.values() if run["run_type"] == "llm"]
    assert sorted(calls) == ["merge", "repair", "solve: group 1", "solve: group 2", "split"]


def test_each_role_of_a_panel_has_a_run_with_its_vote_under_the_call_it_came_by(traced):
    trace = traced(lambda: drpe().invoke(PAIR))
    [root] = trace.children(None)
    votes = root["outputs"]["votes"]
    played = [run for run in below(trace, root) if run["name"].startswith("role:")]
    assert {run["name"] for run in played} == {f"role:{vote['role']}" for vote in votes}
    assert len(played) == len(votes) == 5
    assert {trace.runs[run["parent_run_id"]]["name"] for run in played} == {"vote"}
    assert {run["outputs"]["preference"] for run in played} == {"A"}


def test_no_trace_has_a_key_a_header_or_a_query_of_the_model(traced, serve):
    server = serve(answer_call)
    model = chat(
        server,
        api_key="sk-HIDDEN1",
        default_headers={"X-Own": "HIDDEN2", "Authorization": "Bearer HIDDEN3"},
        default_query={"code": "HIDDEN4"},
        model_kwargs={"extra_headers": {"X-More": "HIDDEN5"}},
        extra_body={"api_key": "HIDDEN6"},
    )
    trace = traced(lambda: of_method("relative", model).invoke(PAIR))
    sent = server.calls[0]
    assert {"HIDDEN2", "Bearer HIDDEN3", "HIDDEN5"} <= set(sent.headers.values())
    assert trace.runs
    assert "HIDDEN" not in json.dumps([*trace.runs.values()], default=str)


KEY = "sk-HIDDEN-0123456789"


def repeating():
    """Answers that repeat the key: in any place of a reply, and of an error of any status."""
    call = {"id": "1", "type": "function", "function": {"name": "T", "arguments": "{"}}
    message: Any = {"tool_calls": [call], "refusal": "", "reasoning_content": ""}
    good = reply("x", **message).payload | {"system_fingerprint": "x", "service_tier": "x"}
    yield from (changed(good, place, KEY) for place in places_in(good))
    yield reply(with_logprobs(("sk-HIDDEN", 1), ("-0123456789", 1)))
    fields = {"error": {"message": KEY, "param": KEY, "code": KEY, "type": KEY}}
    for status in (307, 400, 401, 404, 500):
        for answer in (fields, {"error": KEY}):
            yield ServerReply(status, answer, {"x-echo": KEY, "location": f"/{KEY}"})
        yield ServerReply(status, body=KEY.encode())


@pytest.mark.whole
def test_no_answer_that_repeats_the_key_puts_it_into_a_result_a_file_or_a_trace(
    traced, serve, tmp_path, monkeypatch
):
    monkeypatch.setattr("langchain_judges.asking.send.ATTEMPTS", 1)
    answers: list[Any] = [*repeating()]
    found: list[Any] = []
    server = serve(lambda call: answers[0])
    model = chat(server, api_key=KEY, include_response_headers=True)

    def judged():
        judge = of_method("direct", model, repairs=0)
        records = tmp_path / f"{len(answers)}.jsonl"
        try:
            run = judge_many(judge, [PAIR], progress=False, records=records, keep_requests=True)
            found.extend(run)
        except ModelAccessError:
            found.append(traceback.format_exc())

    def all_judged():
        while answers:
            judged()
            answers.pop(0)

    tried = len(answers)
    trace = traced(all_judged)
    assert len(trace.children(None)) == tried
    found += [json.dumps([*trace.runs.values()], default=str)]
    found += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert [each for each in found if "HIDDEN" in str(each)] == []


def below(trace, run):
    """Every run under a run."""
    return [r for child in trace.children(run) for r in (child, *below(trace, child))]


ORDERS = {"judge:A first": "AB", "judge:B first": "BA"}
SAMPLES = {f"sample {n}": "AB" for n in (1, 2, 3)}
# Every call of a method, and the order in which it shows the texts.
CALLS: dict[str, dict[str, Any]] = {
    "allure": {"evaluate": None},
    "rubric": {"evaluate": None},
    "bsm": {
        f"{unit} ({order[0]} first)" if ":" in unit else f"{unit}:{order[0]} first": order
        for unit in ("solve:Depth", "solve:Tone", "merge")
        for order in ("AB", "BA")
    },
    "drpe": {"vote:panel": "BA"},
    "sc2": {
        **dict.fromkeys(["aspects:sample 1", "aspects:sample 2", "table 1", "table 2"]),
        "match 1.1: table 1 vs table 2": None,
        "preference:A first": "AB",
        "preference:B first": "BA",
    },
    "relative": ORDERS,
    "absolute": ORDERS,
    "direct": {"judge": "AB"},
    "cot": {"judge": "AB"},
    "cot_sc": SAMPLES,
    "relative_sc": {
        f"sample {n} ({order[0]} first)": order for n in (1, 2, 3) for order in ("AB", "BA")
    },
    "plan_solve": {"plan": None, **ORDERS},
    "llm_score": {"judge": "BA"},
}
STEPS = {"table": "table", "match": "match", "sample": "judge"}
"""The step of a call whose name is that of its unit alone."""


def step_and_unit(name):
    step, _, unit = name.partition(":")
    whole = STEPS.get(step.partition(" ")[0])
    return (whole, name) if whole else (step, unit)


@pytest.mark.whole
@pytest.mark.parametrize("how", ["invoke", "abatch"])
@for_each("method", sorted(METHODS))
def test_the_runs_of_every_method(traced, method, how):
    options: dict[str, Any] = {"memory": FailureMemory(embeddings=Letters())}
    if method == "sc2":
        options |= {"aspects": None, "aspect_samples": 2, "samples": 2, "orders": "strict"}
    judge, item = of_method(method, **options), item_of(method)
    ways = {
        "invoke": lambda: judge.invoke(item),
        "abatch": lambda: asyncio.run(judge.abatch([item, item])),
    }
    trace = traced(ways[how])
    roots = trace.children(None)
    assert [root["name"] for root in roots] == [method] * (2 if "batch" in how else 1)
    for root in roots:
        runs = below(trace, root)
        assert all(run.get("end_time") and not run.get("error") for run in runs)
        assert sum(run["name"] == "recall" for run in runs) == 1
        llm_runs = [run for run in runs if run["run_type"] == "llm"]
        names = [_alike(run["name"]) for run in llm_runs]
        assert sorted(names) == sorted(CALLS[method])
        for name, run in zip(names, llm_runs, strict=True):
            step, unit = step_and_unit(run["name"])
            metadata = run["extra"]["metadata"]
            assert {method, step} <= set(run["tags"])
            assert (metadata["unit"], metadata["order"]) == (unit, CALLS[method][name])
            assert metadata["prompt_version"] == judge.config["metadata"]["prompt_version"]
            assert trace.runs[run["parent_run_id"]]["parent_run_id"] == root["id"]


def _alike(name):
    """A name whose tables are in order: a coin says which of two stands first."""
    return name.replace("table 2 vs table 1", "table 1 vs table 2")


def test_every_step_of_an_audit_and_every_label_in_it(traced):
    memory = FailureMemory(embeddings=Letters())
    judge = create_allure_judge(fooled_model(), memory=memory, recall="all")
    audit = create_allure_audit(judge, memory, auditor=as_labelled, max_rounds=1)
    trace = traced(lambda: asyncio.run(audit.ainvoke({"items": planning(1)})))
    [root] = trace.children(None)
    steps = [run["name"] for run in trace.children(root)]
    rest = ["check", "propose", "audit", "admit", "measure", "test", "conclude"]
    assert (root["name"], steps) == ("audit", ["prepare", "evaluate", *rest])
    both = trace.children(trace.children(root)[1])
    assert len(both) == 2
    for judged in both:
        assert judged["name"] == "allure"
        names = [run["name"] for run in trace.children(judged)]
        assert names[:3] == ["recall", "evaluate"]
    names_asked = {run["name"] for run in trace.runs.values() if run["run_type"] == "llm"}
    assert names_asked == {"evaluate:0r", "evaluate:0w"}


@pytest.mark.whole
def test_no_key_and_no_address_is_sent_by_any_method(traced, serve):
    server = serve(answer_call)

    def judged():
        for method in METHODS:
            of_method(method, chat(server, api_key="sk-SECRET")).invoke(item_of(method))

    trace = traced(judged)
    roots = trace.children(None)
    assert len(roots) == len(METHODS)
    assert all(below(trace, root)[1:] for root in roots)
    for run in trace.runs.values():
        text = str([run["name"], run.get("tags"), run.get("extra")])
        assert "sk-SECRET" not in str(run)
        assert server.url not in text


class Held:
    def __init__(self, arrival):
        self.flush = arrival.wait


@pytest.mark.parametrize("hangs", [True, False])
def test_langsmith_gets_a_bounded_time_to_take_the_last_traces(monkeypatch, hangs):
    arrival = threading.Event()
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setattr("langsmith.utils.tracing_is_enabled", lambda: True)
    monkeypatch.setattr("langchain_core.tracers.langchain.get_client", lambda: Held(arrival))
    if not hangs:
        arrival.set()
    assert end_traces(0.01 if hangs else 300) is not hangs
    arrival.set()


ENDS = """
import sys
from langchain_judges import create_relative_judge
from langchain_judges.asking import traces
from tests.fakes import FakeChatModel
from tests.judges import PAIR
traces.TRACES_WAIT = 0.1
create_relative_judge(FakeChatModel(replies=["-"] * 2), repairs=0, orders="none").invoke(PAIR)
sys.stdout.write("done")
"""


@pytest.mark.system
def test_a_program_ends_whatever_langsmith_does_and_says_what_is_lost(monkeypatch):
    with LangSmithServer(hang=True) as server:
        for name, value in {"TRACING": "true", "ENDPOINT": server.url, "API_KEY": "x"}.items():
            monkeypatch.setenv(f"LANGSMITH_{name}", value)
        printed, errors = start("-c", ENDS).communicate()
    assert printed == "done"
    assert "0.1 seconds" in errors


def test_without_tracing_nobody_is_waited_for():
    assert end_traces(0)
