"""A bug is called a bug, and nothing that a provider did is."""

import asyncio
import json
import math
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import httpx
import openai
import pytest
from langchain_core import exceptions as langchain_errors
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.exceptions import ModelRateLimitError, OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt, GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from langchain_judges import (
    as_evaluator,
    best_of,
    create_drpe_judge,
    create_rubric_judge,
    judge_many,
)
from langchain_judges.asking import failures
from langchain_judges.asking.failures import ends_the_run, is_bug, place_of
from langchain_judges.errors import InputError, ModelAccessError, RepeatedFailureError, RunStopped
from langchain_judges.methods import create_jury
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import labels
from tests.test_drpe import respond
from tests.test_runs import collect

ROWS = [{"input": "q", "output": f"good {n}", "id": str(n)} for n in range(15)]
BAD = {"3", "7"}


def stumbling(state):
    """A judge with a bug that some rows meet."""
    if state["id"] in BAD:
        return state["usagez"]
    return {"verdict": {"label": 1, "score": 1.0, "rationale": ""}}


def judge(function=stumbling):
    return RunnableLambda(function).with_config(metadata={"method": "mine", "takes": "item"})


@pytest.fixture(autouse=True)
def forget_reports(monkeypatch):
    monkeypatch.setattr(failures, "_REPORTED", set())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_run_ends_at_the_first_bug_and_raises_it(kind):
    with pytest.raises(KeyError, match="usagez"):
        collect(judge(), ROWS, kind, max_concurrency=1)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_bugs_are_collected_with_their_place_and_one_traceback_for_each(kind, caplog):
    rows, _ = collect(judge(), ROWS, kind, on_bug="collect")
    failures = [f for row in rows for f in row["verdict"]["failures"]]
    assert [row["id"] for row in rows if not row["judged"]] == sorted(BAD)
    assert {failure["reason"] for failure in failures} == {"internal_error"}
    assert "KeyError: 'usagez' (stumbling, test_internal_errors.py:" in failures[0]["detail"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert 'return state["usagez"]' in caplog.text


def test_a_bug_in_a_member_ends_a_jury_and_an_evaluator_raises_it():
    jury = create_jury([labels(), judge()])
    with pytest.raises(KeyError, match="usagez"):
        jury.invoke(ROWS[3])


def test_a_bug_of_a_judge_leaves_an_evaluator_as_it_is():
    def fails(state):
        raise KeyError("usagez")

    evaluate = as_evaluator(judge(fails), key="mine")
    with pytest.raises(KeyError, match="usagez"):
        evaluate(inputs={"input": "q"}, outputs={"output": "a"})


def exceptions_of(module):
    # By what each is, not by what it says it is: the latter loads what a module loads on use.
    found = (each for each in vars(module).values() if issubclass(type(each), type))
    return [kind for kind in found if issubclass(kind, Exception)]


@for_each(
    "kind",
    [
        *exceptions_of(openai),
        *exceptions_of(httpx),
        *exceptions_of(langchain_errors),
        *exceptions_of(sqlite3),
        *(OutputParserException, ConnectionResetError, TimeoutError, asyncio.TimeoutError),
        *(OSError, InputError, ModelAccessError, RunStopped, GraphInterrupt),
    ],
)
def test_what_a_service_or_this_package_raises_is_no_bug(kind):
    assert not is_bug(kind.__new__(kind))


class OwnError(Exception):
    pass


@for_each(
    "error",
    [
        *(KeyError("a"), TypeError("a"), ValueError("a"), IndexError(), AttributeError("a")),
        *(ZeroDivisionError(), AssertionError(), RecursionError(), NotImplementedError()),
        *(UnicodeError("a"), RuntimeError("a"), OwnError(), GraphRecursionError("a")),
    ],
)
def test_what_code_raises_is_a_bug(error):
    assert is_bug(error)
    assert not ends_the_run(error)


def test_interrupts_stops_and_refused_keys_end_a_run():
    ending = GraphInterrupt(), RunStopped("s"), ModelAccessError("m", 401)
    assert all(map(ends_the_run, ending))
    assert not ends_the_run(ModelAccessError("m", 403))


def test_what_a_model_raises_is_the_providers_fault():
    model = FakeChatModel(replies=[KeyError("choices")] * 9)
    rows = judge_many(create_rubric_judge(model, rubric="Is it good?"), ROWS[:1])
    assert [f["reason"] for row in rows for f in row["verdict"]["failures"]] == ["provider_error"]


class Home(BaseChatModel):
    """A class of the caller's own."""

    does: Callable[[], Any]

    @property
    def _llm_type(self):
        return "home"

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        return self.does()


def raising(error):
    raise error


FAULTS: dict[str, Any] = {
    # what code does: (the reason, attempts)
    **{
        type(each).__name__: (partial(raising, each), "internal_error", 1)
        for each in (KeyError("choices"), IndexError("no"), RuntimeError("no room"), TypeError())
    },
    "a lookup in another library": (lambda: os.environ["NO_SUCH_KEY"], "internal_error", 1),
    "nothing where JSON should be": (lambda: json.loads(cast("Any", None)), "internal_error", 1),
    "no method": (lambda: cast("Any", None).content, "internal_error", 1),
    "no result": (lambda: "hi", "internal_error", 1),
    # what may pass, and what a service says
    "no reply": (lambda: ChatResult(generations=[]), "provider_error", 4),
    "no connection": (lambda: raising(ConnectionError()), "provider_error", 4),
    "half of JSON": (lambda: json.loads("{"), "provider_error", 4),
    "too late": (lambda: raising(TimeoutError()), "timeout", 4),
    "LangChain's own": (lambda: raising(ModelRateLimitError("no")), "provider_error", 4),
    "a library's": (lambda: raising(httpx.InvalidURL("no")), "provider_error", 1),
}


@pytest.mark.parametrize("kind", ["sync", "async"])
@for_each("fault", FAULTS)
def test_a_fault_in_the_code_of_a_model_is_its_own_and_asked_once(fault, kind, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.0)
    does, reason, attempts = FAULTS[fault]
    judge = create_rubric_judge(Home(does=does), rubric="Is it good?")
    rows, _ = collect(judge, ROWS[:1], kind)
    verdict = rows[0]["verdict"]
    assert [each["reason"] for each in verdict["failures"]] == [reason]
    assert verdict["usage"]["by_step"]["evaluate"]["retries"] == attempts


def test_a_fault_in_the_code_of_a_model_names_its_place_and_ends_a_run_that_has_no_other(caplog):
    judge = create_rubric_judge(
        Home(does=lambda: json.loads("{}")["choices"]), rubric="Is it good?"
    )
    with pytest.raises(RepeatedFailureError, match=r"'choices' \(.*test_internal_errors.py:"):
        collect(judge, ROWS, "sync")
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_place_is_the_last_one_that_is_no_frameworks():
    with pytest.raises(KeyError) as caught:
        RunnableLambda(stumbling).invoke({"id": "3"})
    assert place_of(caught.value).startswith("stumbling, test_internal_errors.py:")


class Embedder(DeterministicFakeEmbedding):
    """An embedder of the caller's own."""

    does: Callable[[], Any]

    def embed_documents(self, texts):
        return self.does()


def of_own_code(place, own):
    """A judge, or a sampler, one part of which is code of the caller's own."""
    if place == "model":
        return create_rubric_judge(Home(does=own), rubric="Is it good?")
    if place == "tool":
        calls = json.dumps({"calls": [{"tool": "own", "arguments": "{}"}]})
        tool = StructuredTool.from_function(own, name="own", description="Own.")
        return create_rubric_judge(FakeChatModel(replies=[calls] * 9), rubric="So?", tools=[tool])
    if place == "member":
        return create_jury([labels(), judge(lambda _: own())])
    if place == "embedder":
        return create_drpe_judge(
            FakeChatModel(replies=respond), embeddings=Embedder(size=8, does=own)
        )
    return best_of(2, labels(), lambda _: own())


@for_each("place", ["model", "tool", "member", "embedder", "writer"])
def test_an_interrupt_in_code_of_the_callers_own_reaches_the_caller(place):
    part = of_own_code(place, lambda: interrupt("May I?"))
    row = {"input": "q", **({"output_a": "a", "output_b": "b"} if place == "embedder" else ROWS[0])}
    graph = StateGraph(cast("Any", dict))
    graph.add_node("judge", lambda state: {"verdict": part.invoke(state)})
    graph.add_edge(START, "judge")
    stopped = graph.compile(InMemorySaver()).invoke(row, {"configurable": {"thread_id": "1"}})
    assert [each.value for each in stopped["__interrupt__"]] == ["May I?"]


def test_a_fault_in_the_code_of_a_writer_is_its_own():
    drafts = iter([{}, {"text": "good"}])
    best = best_of(2, labels(), lambda _: next(drafts)["text"]).invoke("q")
    assert [(each["unit"], each["reason"]) for each in best["failures"]] == [
        ("sample 1", "internal_error")
    ]


SCORED = {"label": 1, "score": 1.0, "rationale": "r", "failures": []}
# What a runnable returns that is no verdict, and what is told of it.
NO_VERDICTS: dict[str, tuple[Any, str]] = {
    "bare": ({"label": 1, "score": 1}, "verdict: Field required"),
    "openevals": ({"key": "k", "score": True, "comment": "c"}, "verdict: Field required"),
    "text": ("1", "result: Input should be a valid dictionary"),
    "number": (0.7, "result: Input should be a valid dictionary"),
    "text within": ({"verdict": "good"}, "verdict: Input should be"),
    "of a pair": ({"verdict": {"preference": "A", "score": 1.0}}, "label: Field required"),
    "label": ({"verdict": {**SCORED, "label": ["a"]}}, "label: Input should be"),
    "no label": ({"verdict": {"score": 0.5}}, "label: Field required, got {'verdict': {'score'"),
    **{
        f"score {share}": ({"verdict": {**SCORED, "score": share}}, "score: Input should be")
        for share in (5.0, -1, math.inf, math.nan, "good")
    },
}
ABSTAINS: dict[str, Any] = {"verdict": {"label": None, "score": None}}
# What may be wrong beside an answer.
BESIDE: dict[str, Any] = {
    "failures": ["x"],
    "recalled": "x",
    "rationale": ["a"],
    "confidence_source": "verbal",
    "lookups": 1,
    **{f"confidence {share}": share for share in (5.0, 1.0000001, -1, math.inf, math.nan, "good")},
    "usage": {"calls": 3},
    "usage of steps": {"calls": 3, "by_step": {"a": {"calls": 1}}, "asked_without": 1},
}
VERDICTS: dict[str, Any] = {
    "whole": {"verdict": SCORED},
    "least": {"verdict": {"label": "yes"}},
    "bool": {"verdict": {"label": True, "score": True}},
    "more": {"verdict": {**SCORED, "own": 1}, "other": 2},
}
# Where the results of a runnable come in, and the verdict that is made of one.
ROWS_OF_ONE = [{"input": "q", "output": "a", "expected": "a"}]
TAKERS: dict[str, Any] = {
    "many": lambda mine: next(iter(judge_many(mine, ROWS_OF_ONE)))["verdict"],
    "evaluator": lambda mine: as_evaluator(mine)(inputs="q", outputs="a")["metadata"],
    "member": lambda mine: create_jury([mine, judge(lambda _: {"verdict": SCORED})]).invoke(
        ROWS_OF_ONE[0]
    )["verdict"],
}


@for_each("taker", TAKERS)
@for_each("given", NO_VERDICTS)
def test_a_runnable_that_returns_no_verdict_judges_nothing_and_is_told_what_to_return(taker, given):
    result, said = NO_VERDICTS[given]
    verdict = TAKERS[taker](judge(lambda _: result))
    [failure, *_] = verdict["failures"]
    assert verdict["label"] is None
    assert (failure["step"], failure["reason"]) == ("judge", "internal_error")
    assert failure["detail"].startswith(f"the judge returns no verdict: {said}")
    assert "a judge returns {'verdict': {…}}" in failure["detail"]


@for_each("taker", ["many", "evaluator"])
@for_each("given", VERDICTS)
def test_a_verdict_of_a_runnable_need_not_be_whole(taker, given):
    verdict = TAKERS[taker](judge(lambda _: VERDICTS[given]))
    assert (verdict["label"], verdict["failures"]) == (VERDICTS[given]["verdict"]["label"], [])


@for_each("given", BESIDE)
def test_an_answer_of_a_runnable_stays_where_something_beside_it_is_wrong(given):
    field, _, _ = given.partition(" ")
    said = {**SCORED, field: BESIDE[given]}
    verdict = TAKERS["many"](judge(lambda _: {"verdict": said}))
    whole = TAKERS["many"](judge(lambda _: {"verdict": SCORED}))
    [note] = verdict["failures"]
    assert note["detail"].startswith(f"{field}: ")
    calls = 3 if field == "usage" else 0
    assert verdict["usage"]["calls"] == calls
    usage = {**verdict["usage"], "calls": 0, "asked_without": []}
    assert usage == {**whole["usage"], "asked_without": []}
    rest = {
        name: part for name, part in verdict.items() if name not in ("failures", "usage", field)
    }
    assert {**whole, **rest, "lookups": []} == {**whole, "lookups": []}


@for_each(
    "kind, labels, answer, score",
    [
        ("pair", None, "A", 1),
        ("pair", None, "tie", 0.5),
        ("pair", None, "B", 0),
        ("item", None, True, 1),
        ("item", None, False, 0),
        *(("item", None, label, None) for label in (0, 1, 4)),  # nobody says of which scale
        ("item", [1, 2, 3, 4, 5], 1, 0),
        ("item", [1, 2, 5], 2, 0.25),
        ("item", ["bad", "good"], "good", 1),
    ],
)
def test_an_answer_of_a_runnable_is_its_own_score_where_it_gives_none(kind, labels, answer, score):
    field = "label" if kind == "item" else "preference"
    options = {"takes": kind, "options": {"labels": labels}}
    mine = judge(lambda _: {"verdict": {field: answer}}).with_config(metadata=options)
    row = (
        {"input": "q", "output": "a"}
        if kind == "item"
        else {"input": "q", "output_a": "a", "output_b": "b"}
    )
    assert next(iter(judge_many(mine, [row])))["verdict"]["score"] == score


def test_the_cost_of_a_runnable_that_gives_no_answer_counts():
    taken = TAKERS["many"](judge(lambda _: {"verdict": {"usage": {"calls": 3}}}))
    not_a_number = TAKERS["many"](judge(lambda _: {"verdict": {**SCORED, "label": math.nan}}))
    assert taken["usage"]["calls"] == 3
    assert [each["reason"] for each in not_a_number["failures"]] == ["cannot_assess"]
    assert not_a_number["label"] is None


@for_each("taker", TAKERS)
def test_a_runnable_that_gives_no_answer_says_so_where_it_gives_no_reason(taker):
    verdict = TAKERS[taker](judge(lambda _: ABSTAINS))
    assert verdict["failures"][0]["reason"] == "cannot_assess"


def test_a_run_ends_where_no_row_gets_a_verdict_from_a_runnable():
    with pytest.raises(RepeatedFailureError, match="the judge returns no verdict"):
        collect(judge(lambda _: {"score": 1}), ROWS, "sync")
