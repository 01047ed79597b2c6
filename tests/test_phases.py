"""Where nobody but a trace listens, a run awaits a judge's phases and leaves LangGraph out."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.tracers.context import collect_runs, tracing_v2_enabled
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client

from langchain_judges import ajudge_many, create_relative_judge, judge_many
from langchain_judges.methods import graph
from langchain_judges.methods.direct.judge import BaselineSteps
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeChatModel
from tests.frozen_cases import CASES, PAIR
from tests.judges import answer
from tests.schema_models import Recorder
from tests.test_frozen import asked, build


async def in_a_loop(judge, rows, **options):
    async with ajudge_many(judge, rows, progress=False, **options) as run:
        return [row async for row in run]


def judged(name, *, in_loop=False, **options):
    """The rows and calls of a frozen case."""
    recorder = Recorder()
    judge, row = build(CASES[name], recorder)
    if in_loop:
        rows = asyncio.run(in_a_loop(judge, [row], **options))
    else:
        rows = list(judge_many(judge, [row], progress=False, **options))
    return rows, asked(recorder.calls)


@pytest.mark.whole
@pytest.mark.parametrize("name", CASES)
def test_a_row_comes_out_the_same_with_and_without_the_graph(name):
    by_graph = judged(name, config={"callbacks": [Listener()]})
    assert judged(name) == by_graph
    assert judged(name, in_loop=True) == by_graph


class Listener(BaseCallbackHandler):
    """Keeps the names of the runs that begin."""

    def __init__(self):
        self.names = []

    def on_chain_start(self, serialized, inputs, **details):
        self.names.append(details.get("name"))


@pytest.fixture
def skipped(monkeypatch):
    """The judgments that left LangGraph out."""
    rows, whole = [], graph.JudgeGraph.in_phases

    def in_phases(self, source, *rest):
        rows.append(source)
        return whole(self, source, *rest)

    monkeypatch.setattr(graph.JudgeGraph, "in_phases", in_phases)
    return rows


def relative(**options):
    return create_relative_judge(FakeChatModel(replies=answer), **options)


def test_the_graph_is_left_out_where_nobody_listens(skipped):
    list(judge_many(relative(), [PAIR]))
    assert len(skipped) == 1


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_caller_may_force_the_graph(skipped, in_loop):
    rows, calls = judged("relative", in_loop=in_loop, graph=True)
    assert not skipped
    assert (rows, calls) == judged("relative", in_loop=in_loop)
    assert len(skipped) == 1


def test_a_run_looks_for_listeners_once(monkeypatch):
    looks, whole = [], graph.JudgeGraph.phases

    def phases(self, config):
        looks.append(config)
        return whole(self, config)

    monkeypatch.setattr(graph.JudgeGraph, "phases", phases)
    assert len(list(judge_many(relative(), [PAIR] * 3))) == 3
    assert len(looks) == 1


def test_a_run_reads_a_row_once_where_the_graph_is_left_out(monkeypatch):
    monkeypatch.setattr(graph, "plain_row", None)
    monkeypatch.setattr(graph, "named_row", None)
    row = {**PAIR, "output_a": [{"role": "assistant", "content": "The moon."}]}
    assert all(each["judged"] for each in judge_many(relative(), [row]))


def test_callbacks_of_a_run_see_the_graph(skipped):
    listener = Listener()
    list(judge_many(relative(), [PAIR], config={"callbacks": [listener]}))
    assert not skipped
    assert listener.names[0] == "relative"


def test_callbacks_of_a_judge_see_the_graph(skipped):
    listener = Listener()
    list(judge_many(relative().with_config(callbacks=[listener]), [PAIR]))
    assert not skipped
    assert listener.names[0] == "relative"


def test_whoever_traces_or_counts_around_a_run_sees_the_graph(skipped):
    with get_usage_metadata_callback():
        list(judge_many(relative(), [PAIR]))
    with collect_runs() as runs:
        list(judge_many(relative(), [PAIR]))
    assert not skipped
    assert "relative" in [run.name for run in runs.traced_runs]


# What LangGraph writes of its own into metadata.
_GRAPHS = ("langgraph", "checkpoint", "ls_integration")


def told(trace, run=None):
    """What a trace says of the runs below one: kinds, data, metadata, and the runs below."""
    shown = []
    for r in trace.children(run):
        metadata = r["extra"]["metadata"].items()
        own = {name: value for name, value in metadata if not name.startswith(_GRAPHS)}
        # LangChain makes a set of tags: their order says nothing.
        tags = sorted(t for t in r.get("tags") or () if not t.startswith(("graph:", "seq:")))
        text = json.dumps([r["name"], r["run_type"], r["inputs"], r.get("outputs"), own, tags])
        text = text.replace('"notes_on_reading": []', '"notes_on_reading": null')
        error = r.get("error", "").partition("\n")[0]
        shown.append((re.sub('lc_run--[^"]*', "", text), error, told(trace, r)))
    return sorted(shown)


@pytest.mark.whole
@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("name", [*METHODS, "bsm unusable", "identical texts"])
def test_a_trace_without_the_graph_says_the_same(traced, skipped, name, in_loop):
    def both():
        judged(name, in_loop=in_loop, graph=True)
        assert not skipped
        judged(name, in_loop=in_loop)
        assert skipped

    by_graph, in_phases = told(traced(both))
    assert in_phases == by_graph


def test_a_trace_without_the_graph_says_which_phase_failed(traced, monkeypatch):
    monkeypatch.setattr(BaselineSteps, "_merged", lambda self, state, *rest: state["usagez"])

    def failed():
        with pytest.raises(KeyError):
            list(judge_many(relative(), [PAIR]))

    runs = traced(failed).runs.values()
    assert {run["name"] for run in runs if "usagez" in run.get("error", "")} == {
        "relative",
        "judge",
    }


def test_a_tracer_with_its_own_way_to_keep_runs_sees_the_graph(skipped):
    with tracing_v2_enabled(client=Client(auto_batch_tracing=False)):
        assert relative().phases(None)
    with collect_runs():
        assert relative().phases(None) is None


def test_a_checkpointer_is_written_to(skipped):
    saver = InMemorySaver()
    list(judge_many(relative(checkpointer=saver), [PAIR]))
    assert not skipped
    assert saver.storage


def test_what_is_wrapped_around_a_judge_is_called(skipped):
    list(judge_many(relative().with_retry(), [PAIR]))
    assert not skipped


def test_a_bug_in_a_phase_ends_the_run_without_the_graph_too(skipped, monkeypatch):
    def merged(self, state, *rest):
        return state["usagez"]

    monkeypatch.setattr(BaselineSteps, "_merged", merged)
    with pytest.raises(KeyError, match="usagez"):
        list(judge_many(relative(), [PAIR]))
    assert skipped
