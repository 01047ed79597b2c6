"""One front door: what a caller gives is shown whole, or the caller is told what lacks."""

import asyncio
import json
import logging
import re
import sqlite3
import uuid
from collections import UserDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt
from pydantic import BaseModel, Field, RootModel, computed_field, create_model, field_serializer
from typing_extensions import TypedDict

from langchain_judges import (
    JudgeMiddleware,
    as_comparative_evaluator,
    as_evaluator,
    best_of,
    create_bsm_judge,
    create_drpe_judge,
    create_relative_judge,
    create_rubric_judge,
    judge_many,
    load_judge,
)
from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.row_files import (
    check_labelled_pair,
    checked_rows,
    judge_rows,
    named_columns,
)
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations import serve, server, trajectory_evaluator
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.methods import create_jury
from langchain_judges.methods.describe import assumptions_of, option_of
from langchain_judges.methods.rubric import Criterion
from langchain_judges.methods.rubric.criteria import warn_once
from langchain_judges.rows.data import as_json
from langchain_judges.rows.fields import plain_row, task_in
from langchain_judges.rows.work import work_in
from langchain_judges.runs import assert_judged
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.test_evaluators import a_run, an_example

ITEM = {"input": "Where is it?", "output": "In Kyiv."}


def judge_and_model(rubric="Is it right?", **options):
    model = FakeChatModel(replies=fitting_reply)
    return create_rubric_judge(model, rubric=rubric, **options), model


def evaluated(judge, outputs, reference=None, **places):
    return as_evaluator(judge, **places).evaluate_run(a_run(outputs), an_example(reference))


class Judged(TypedDict):
    input: str
    output: str
    verdict: Any


CALLS: dict[str, Any] = {
    "invoke": lambda judge, **own: judge.invoke(ITEM, **own),
    "ainvoke": lambda judge, **own: asyncio.run(judge.ainvoke(ITEM, **own)),
    "stream": lambda judge, **own: list(judge.stream(ITEM, **own)),
    "batch": lambda judge, **own: judge.batch([ITEM], **own),
}


@for_each("call", CALLS)
def test_a_context_that_no_judge_in_this_process_reads_is_refused(call):
    judge, model = judge_and_model()
    with pytest.raises(OptionError, match="only a server reads options from a `context`"):
        CALLS[call](judge, context={"rubric": "Is it polite?"})
    assert not model.prompts


def test_a_judge_within_a_graph_runs_beside_the_context_of_that_graph():
    graph: Any = StateGraph(Judged, context_schema=dict)
    graph.add_node("judge", judge_and_model()[0])
    graph.add_edge(START, "judge")
    result = graph.compile().invoke(ITEM, context={"rubric": "the user's"})
    assert result["verdict"]["label"] is not None


# ---- what people know of a row is checked alike


@for_each("label, warned", [("meh", True), ("1", False), (0, False), (None, False), ("", False)])
def test_a_label_that_is_none_of_the_judges_is_said_and_the_row_is_judged(label, warned, caplog):
    caplog.clear()
    judge, model = judge_and_model()
    [row] = judge_many(judge, [{**ITEM, "label": label}], progress=False)
    assert (row["judged"], len(model.prompts)) == (True, 1)
    told = "annotations cannot be used as labels: `label` must be one of 0, 1, got 'meh'"
    assert (told in caplog.text) == warned


@for_each("label", [1, 2, "maybe"])
def test_labels_that_are_no_sides_are_told_with_every_side_and_need_not_be_read(label, caplog):
    caplog.clear()
    judge = create_relative_judge(FakeChatModel(replies=fitting_reply))
    pair = {"input": "q", "output_a": "a", "output_b": "b", "label": label}
    list(judge_many(judge, [pair]))
    assert "labels={…: 'A', …: 'B', …: 'tie'}" in caplog.text
    assert "by `columns` label=[] (--column label=)" in caplog.text
    caplog.clear()
    [row] = judge_many(judge, [pair], columns=named_columns(["label="]))
    assert (row["judged"], row.get("label"), caplog.text) == (True, None, "")


def test_a_label_below_a_column_is_read_where_a_row_has_one(caplog):
    judge, _ = judge_and_model()
    rows = [{**ITEM, "rated": []}, {**ITEM, "rated": [{"user": "u", "value": 1}]}]
    run = judge_many(judge, rows, columns={"label": "rated"}, progress=False)
    assert all(row["judged"] for row in run)
    assert "named by `columns` label=COLUMN.0.value, got list" in caplog.text
    run = judge_many(judge, rows, columns={"label": "rated.0.value"}, progress=False)
    assert [row.get("label") for row in run] == [None, 1]


# ---- the direction of a scale is said


@for_each("best, score", [("polite", 1.0), ("rude", 0.0)])
def test_the_better_end_of_labels_is_the_one_that_is_named(best, score):
    says = FakeChatModel(replies=lambda _: {"explanation": "e", "label": "polite"})
    labels = ["polite", "neutral", "rude"]
    judge = create_rubric_judge(says, rubric="Tone?", labels=labels, best=best)
    assert judge.invoke(ITEM)["verdict"]["score"] == score
    own = create_rubric_judge(says, rubric=[{"name": "Tone", "labels": labels, "best": best}])
    assert own.invoke(ITEM)["verdict"]["score"] == score


@for_each(
    "labels, is_said",
    [(["polite", "rude"], True), ([1, 0], True), ([0, 1], False), (["1", "2"], False)],
)
def test_labels_whose_better_end_nobody_named_are_warned_of(labels, is_said, caplog):
    caplog.clear()
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        Criterion(name="Tone", labels=labels)
        Criterion(name="Tone", labels=labels)
    told = [record.getMessage() for record in caplog.records]
    end = f"from the worst, {labels[0]!r}, to the best, {labels[-1]!r}"
    assert [end in each for each in told] == [True] * is_said


def test_a_best_label_without_labels_is_refused():
    with pytest.raises(OptionError, match=r"'Tone' must be one of \[0, 1\], got 7"):
        judge_and_model([{"name": "Tone", "best": 7}])
    with pytest.raises(OptionError, match="'Tone' must be one of"):
        Criterion(name="Tone", best=2, scale=(1, 5))
    with pytest.raises(OptionError, match="judge needs `labels`"):
        judge_and_model("helpfulness", best=1)


def test_where_a_yes_is_a_fault_the_better_end_is_no():
    says = FakeChatModel(replies=lambda _: {"explanation": "e", "label": "1"})
    for best, score in ((0, 0.0), (1, 1.0)):
        judge = create_rubric_judge(says, rubric="Is it rude?", best=best)
        assert judge.invoke(ITEM)["verdict"]["score"] == score
        assert ("0: no" in says.prompts[-1], "1: yes" in says.prompts[-1]) == (True, True)
    with pytest.raises(OptionError, match=r"`best` of the judge must be one of \[0, 1\]"):
        create_rubric_judge(says, rubric="Is it rude?", best=2)


@for_each(
    ("best", "labels", "worst_to_best"),
    [(0, None, (1, 0)), (1, None, (0, 1)), (1, [1, 2, 3], (3, 2, 1)), (3, [1, 2, 3], (1, 2, 3))],
)
def test_a_criterion_names_the_better_end_of_the_labels_of_its_judge(best, labels, worst_to_best):
    rubric = [{"name": "Insults", "best": best}, "Tone"]
    judge, _ = judge_and_model(rubric, labels=labels)
    insults, tone = judge.options.own_rubric.criteria
    assert (insults.names, insults.best) == (worst_to_best, best)
    assert tone.names == tuple(labels or (0, 1))


@for_each("labels", [[0, 3, 1], [1, 5, 3], [0, 1, -1], {"1": "a", "3": "b", "2": "c"}])
def test_numbers_that_neither_rise_nor_fall_are_no_labels(labels):
    with pytest.raises(OptionError, match=r"`labels` must be .* from lowest"):
        Criterion(name="Tone", labels=labels)


@for_each("labels", [None, [0, 1], {0: "it is not", 1: "it is"}, {"0": "no", "1": "yes"}])
@for_each("best", [0, 1])
def test_the_better_end_is_the_same_in_the_spec_of_a_judge(labels, best):
    given = {"labels": labels} if labels else {}
    judge = create_rubric_judge("local", rubric="Is it rude?", best=best, **given)
    again = load_judge(json.loads(json.dumps(judge.spec)))
    for own in (judge, again):
        criterion = option_of(own, "own_rubric").criteria[0]
        assert (criterion.names, criterion.best) == ((1 - best, best), best)


ASSUMED = [
    ({"rubric": "Is it rude?"}, ["Of 'rubric', 1 (yes)"]),
    ({"prompts": "Is {outputs} rude?"}, ["Of 'score', 1 (yes)"]),
    ({"rubric": "How rude?", "labels": [1, 2, 3]}, ["Of 'rubric', 3"]),
    (
        {"rubric": [{"name": "Rude"}, {"name": "Kind", "scale": (1, 5), "best": 5}]},
        ["Of 'Rude', 1 (yes)"],
    ),
    ({"rubric": "Is it rude?", "best": 0}, []),
    ({"rubric": [{"name": "Rude"}], "best": 1}, []),
    ({"rubric": "Tone?", "labels": ["rude", "polite"]}, []),
    ({"rubric": [{"name": "Tone", "scale": (1, 5), "least": 4}]}, []),
    ({"rubric": "toxicity"}, []),
    ({}, []),
]


@for_each("options, ends", ASSUMED)
def test_what_acts_on_a_good_label_knows_which_nobody_named(options, ends):
    judge = create_rubric_judge(FakeChatModel(), **options)
    for own in (judge, create_jury([judge, judge.with_retry(), judge])):
        told = [each.partition(" counts as good")[0] for each in assumptions_of(own)]
        assert {*told} == {*ends}


@for_each("act", [JudgeMiddleware, lambda judge: best_of(2, judge, "local")])
def test_what_chooses_by_a_good_label_warns_once_of_one_that_nobody_named(act, caplog):
    caplog.clear()
    name = f"Rude {uuid.uuid4()}"  # once in a process
    judge = create_rubric_judge(FakeChatModel(), rubric=[{"name": name}])
    for _ in range(2):
        act(judge)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"Of {name!r}, 1 (yes) counts as good"
    ]


def test_what_orders_the_labels_of_a_criterion_is_its_own(caplog):
    own = [{"name": n, "labels": [f"{n}1", f"{n}2"]} for n in ("t", "l")]
    with caplog.at_level(logging.WARNING):
        judge_and_model(own)
        caplog.clear()
        judge_and_model([{**each, "best": each["labels"][1]} for each in own])
    assert caplog.records == []
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        judge_and_model(own)
    told = [record.getMessage() for record in caplog.records]
    ends = [f"own \"best\", '{n}1' or '{n}2'" for n in ("t", "l")]
    assert [end in own for own, end in zip(told, ends, strict=True)] == [True, True]


def test_a_best_label_stands_at_an_end():
    with pytest.raises(OptionError, match="`best` of 'Tone'"):
        Criterion(name="Tone", labels=["a", "b", "c"], best="b")


def test_no_ready_rubric_leaves_its_direction_open(caplog):
    from langchain_judges.methods.rubric.criteria import ready_names, ready_rubric

    ready_rubric.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert all(map(ready_rubric, ready_names()))
    assert caplog.records == []


# ---- the exact request of a row


def test_a_judge_shows_the_request_that_it_sends_and_sends_none():
    judge, model = judge_and_model()
    shown = judge.show(ITEM)
    assert model.prompts == []
    judge.invoke(ITEM)
    [(system, human)] = model.messages
    assert shown.startswith(f"=== evaluate\n\n[system]\n{system.text}\n\n[human]\n{human.text}")
    assert '"label"' in shown.split("[the reply]")[1]


@for_each(
    "create, names",
    [
        (create_relative_judge, ["judge A first", "judge B first"]),
        (create_bsm_judge, ["branch"]),
        (lambda m: create_drpe_judge(m, task="summary"), ["roles coarse", "roles fine"]),
    ],
)
def test_calls_of_the_first_phase_are_shown(create, names):
    shown = create(FakeChatModel(replies=[])).show(
        {"input": "Why?", "output_a": "a", "output_b": "b"}
    )
    assert set(names) <= set(re.findall("^=== (.*)$", shown, re.MULTILINE))


def test_of_a_row_that_is_not_asked_about_the_reason_is_shown():
    judge, _ = judge_and_model("tool_use")
    assert "no tool calls" in judge.show(ITEM)


# ---- what lacks is named


def test_a_row_without_an_output_is_told_every_field_that_it_has():
    judge, model = judge_and_model()
    with pytest.raises(InputError, match="'input', 'a', 'b'"):
        list(judge_many(judge, [{"input": "q", "a": 1, "b": 2}], progress=False))
    assert model.prompts == []


def test_a_test_names_the_row_that_cannot_be_judged_and_goes_on_to_the_others():
    judge, _ = judge_and_model("helpfulness")
    rows = [{**ITEM, "id": "a"}, {"id": "b", "input": "q"}, {**ITEM, "id": "c"}]
    with pytest.raises(AssertionError, match=r"- b: .*`output` is missing") as info:
        assert_judged(judge, rows, passes=lambda row: True)
    assert str(info.value).startswith("2 of 3 rows pass")


def test_a_cell_that_is_not_a_number_is_an_empty_one_in_rows_and_frames():
    judge, _ = judge_and_model()
    rows = [{"input": "q", "output": 1.5}, {"input": "q", "output": float("nan")}]
    for table in (rows, pd.DataFrame(rows)):
        labels = [row["verdict"]["label"] for row in judge_many(judge, table, progress=False)]
        assert [label is None for label in labels] == [False, True]


# ---- LangSmith shows what a direct call shows, and what people know of a row to nobody


@for_each("rubric", ["Is it right?", "helpfulness", "correctness"])
def test_a_reference_is_shown_in_an_experiment_as_on_a_direct_call(rubric):
    judge, model = judge_and_model(rubric)
    evaluated(judge, {"answer": "In Kyiv."}, {"answer": "In Oslo.", "label": 7})
    judge.invoke({**ITEM, "expected": "In Oslo."})
    first, second = (re.findall(r"<expected-.*?>\n(.*?)\n<", p) for p in model.prompts)
    assert first == second == ["In Oslo."]


@for_each("rubric", ["Is it right?", "correctness"])
def test_a_label_of_people_is_no_expected_answer(rubric):
    judge, model = judge_and_model(rubric)
    evaluated(judge, {"answer": "In Kyiv."}, {"label": 1})
    assert not any("expected-answer" in prompt for prompt in model.prompts)


ASSERTIONS = [
    {"key": "thanks", "comment": "It thanks."},
    {"key": "short", "comment": "It is short."},
]


@for_each("rubric", ["correctness", "helpfulness", "Is it right?", None])
def test_assertions_are_one_feedback_for_each_key_by_any_judge(rubric):
    judge, model = judge_and_model(rubric)
    named = {"rubric": "assertions"} if rubric else {}
    result: Any = evaluated(judge, {"answer": "In Kyiv."}, {"assertions": ASSERTIONS}, **named)
    assert [each.key for each in result["results"]][1:] == ["thanks", "short"]
    assert "criterion_1, thanks: It thanks." in model.prompts[0]
    assert "expected-answer" not in model.prompts[0]


# ---- names in a reference trajectory are names

MADE = [AIMessage("", tool_calls=[{"name": n, "args": {}, "id": n} for n in ("write", "done")])]


@for_each(
    "reference, scores",
    [
        ({"steps": ["done"]}, (1.0, 0.0)),
        ({"steps": ["write", "done"]}, (1.0, 1.0)),
        (["write", "done"], (1.0, 1.0)),
        ([{"name": "write"}, {"name": "done"}], (1.0, 1.0)),
        ({"tool_calls": [{"name": "done"}]}, (1.0, 0.0)),
        ({"answer": "Kyiv"}, (None, None)),
        ([{"tool": "write"}], (None, None)),
        (5, (None, None)),
    ],
)
def test_a_reference_trajectory_is_read_as_names_and_calls_or_has_no_score(reference, scores):
    told = [
        trajectory_evaluator(order)(outputs=MADE, reference_outputs=reference)["score"]
        for order in ("superset", "same")
    ]
    assert tuple(told) == scores


# ---- the instructions of an agent

ANN: list[Any] = [
    SystemMessage("You are a pirate."),
    HumanMessage("Where is it?"),
    AIMessage("", tool_calls=[{"name": "track", "args": {}, "id": "1"}]),
    ToolMessage("in Kyiv", tool_call_id="1"),
    AIMessage("Arr."),
]


@for_each("form", ["messages", "state"])
def test_the_instructions_of_an_agent_are_shown_before_what_was_asked(form):
    judge, model = judge_and_model("role_adherence")
    judge.invoke({"output": ANN if form == "messages" else {"messages": ANN}})
    human = model.messages[0][-1].text
    assert human.index("You are a pirate.") < human.index("Where is it?") < human.index("Arr.")


def test_show_prompt_of_a_row_is_plain_json_beside_the_words():
    judge, _ = judge_and_model()
    schema = json.loads(judge.show(ITEM).split("[the reply]\n")[1])
    assert schema["required"] == ["explanation", "label"]


# ---- one table of fields and types on every path


@dataclass
class Trip:
    city: str
    days: int


class Visit(BaseModel):
    """A model whose dump is not the same as its fields."""

    city: str
    key: str = Field(default="secret", exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def days(self) -> int:
        """Computed from the others."""
        return 2

    @field_serializer("city")
    def capital(self, city: str) -> str:
        """Another spelling."""
        return city.capitalize()


DAY = datetime(2024, 1, 2)
AS_JSON = '{"city": "Kyiv", "days": 2}'
# What a field holds, and the text that is shown for it; those of Python alone stand last.
VALUES: dict[str, tuple[Any, str]] = {
    "a text": ("In Kyiv.", "In Kyiv."),
    "a whole number": (4, "4"),
    "a number": (4.5, "4.5"),
    "a truth value": (True, "true"),
    "zero": (0, "0"),
    "a false one": (False, "false"),
    "texts": (["In Kyiv.", "Now."], "In Kyiv.\nNow."),
    "data": ({"city": "Kyiv", "days": 2}, AS_JSON),
    "data in data": (
        {"trip": {"city": "Kyiv"}, "at": [1, None]},
        '{"trip": {"city": "Kyiv"}, "at": [1, null]}',
    ),
    "a list of data": (
        [{"city": "Kyiv"}, {"city": "Oslo"}],
        '[{"city": "Kyiv"}, {"city": "Oslo"}]',
    ),
    "a data class": (Trip("Kyiv", 2), AS_JSON),
    "a model": (create_model("Visit", city=str, days=int)(city="Kyiv", days=2), AS_JSON),
    "a model with a dump of its own": (Visit(city="kyiv"), AS_JSON),
    "a model of texts": (RootModel(["In Kyiv.", "Now."]), "In Kyiv.\nNow."),
    "a model of a model": (RootModel(Visit(city="kyiv")), AS_JSON),
    "data with a data class": (
        {"days": 2, "trip": Trip("Kyiv", 2)},
        '{"days": 2, "trip": ' + AS_JSON + "}",
    ),
    "a whole number of numpy": (np.int64(4), "4"),
    "a truth value of numpy": (np.bool_(True), "true"),
    "texts of numpy": (np.array(["In Kyiv.", "Now."]), "In Kyiv.\nNow."),
    "a date": (DAY.date(), "2024-01-02"),
    "a time": (DAY.replace(hour=9), "2024-01-02T09:00:00"),
    "a day of pandas": (pd.Timestamp(DAY), "2024-01-02"),
    "a decimal": (Decimal("4.50"), "4.50"),
    "bytes": (b"In Kyiv.", "In Kyiv."),
    "texts in a tuple": (("In Kyiv.", "Now."), "In Kyiv.\nNow."),
}
# A table's columns hold one type each; CSV and workbooks hold texts and numbers.
FLAT = {"a text", "a whole number", "a number"}
IN_FILES = {*FLAT, "a truth value", "zero", "a false one", "texts", "data"}
FILES = (".jsonl", ".json", ".csv", ".xlsx", ".parquet")


def written(row, path):
    frame = pd.DataFrame([row])
    lines = {".json": [row], ".jsonl": row}
    if path.suffix in lines:
        path.write_text(json.dumps(lines[path.suffix]))
    else:
        write = {".csv": "to_csv", ".xlsx": "to_excel", ".parquet": "to_parquet"}[path.suffix]
        getattr(frame, write)(path, index=False)
    return path


shared_judge = cache(judge_and_model)


@cache
def shared_agent(rubric, needs):
    """An agent with a judge, and the row whose texts it gives it."""
    judge, _ = shared_judge(rubric, needs=needs)
    row: dict[str, Any] = {}
    texts: Any = {
        "reference": lambda _: row.get("expected"),
        "context": lambda _: row.get("source"),
    }
    guard = JudgeMiddleware(judge, max_revisions=0, **texts)
    writer = FakeChatModel(replies=lambda _: row["output"])
    return create_agent(writer, middleware=[guard]), row


@cache
def shared_graph(rubric, needs):
    """A judge as a server builds it."""
    _, model = shared_judge(rubric, needs=needs)
    context = {"rubric": rubric} | ({"needs": needs} if needs else {})
    running: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=context))
    server._models.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "resolve_model", lambda _: model)
        graph = asyncio.run(entered(serve("rubric"), running))
    server._models.cache_clear()
    return graph


def asked(path, row, folder, rubric="Is it right?", needs=()):
    """The model that was asked about a row which came by a path, and about no other row."""
    judge, model = shared_judge(rubric, needs=needs)
    model.prompts.clear()
    model.messages.clear()
    if path == "invoke":
        judge.invoke(row)
    elif path == "evaluator":
        names = {"inputs": "input", "outputs": "output", "reference_outputs": "expected"}
        names["context"] = "source"
        as_evaluator(judge)(**{name: row.get(field) for name, field in names.items()})
    elif path == "example":
        source = {name: row[name] for name in ("input", "source") if name in row}
        known = {"inputs": source, "outputs": {"expected": row.get("expected")}}
        own: Any = {"id": "1", "inputs": {}, "outputs": {"output": row["output"]}}
        as_evaluator(judge)(own, known)
    elif path == "prepare":
        as_evaluator(judge, prepare=lambda run, example: row)({"id": "1"}, {})
    elif path == "middleware":
        agent, given = shared_agent(rubric, needs)
        given.clear()
        given.update(row)
        agent.invoke({"messages": [("user", row["input"])]})
    elif path == "assert_judged":
        assert_judged(judge, [row], passes=lambda _: True)
    elif path == "graph":
        shared_graph(rubric, needs).invoke(row)
    elif path.startswith("command"):
        flags = judge_rows(written(row, folder / f"table{path[7:]}"), RowFlags(), SPEC)
        [own] = checked_rows(flags)
        judge.invoke(own)
    else:
        rows = {"rows": [row], "frame": pd.DataFrame({n: [v] for n, v in row.items()})}
        given = rows[path] if path in rows else written(row, folder / f"table{path}")
        list(judge_many(judge, given))
    return model


def sent(path, row, folder):
    """The prompts for a row that comes by a path."""
    return [*asked(path, row, folder).prompts]


async def entered(entry, running):
    return await entry({}, running)


SPEC = {"method": "rubric", "model": {"name": "local"}, "options": {"rubric": "Is it right?"}}
PATHS = ["rows", "frame", "evaluator", "example", "prepare", "assert_judged", "graph"]
# Where the task and the answer are an agent's own messages.
IN_AGENTS = ["middleware"]


# What a prompt calls a field.
TAGS = {
    "input": "request",
    "source": "source",
    "output": "response",
    "expected": "expected-answers?",
}


def in_turn(names, fields):
    """The name of a value for each field of a row: all rows hold each in every field once.

    In no row two fields that follow each other have the same text: a source that is the task,
    or two equal answers, would be another case.
    """
    for place in range(len(names)):
        yield {f: names[(place + 4 * turn) % len(names)] for turn, f in enumerate(fields)}


def with_values(row, names):
    return row | {field: VALUES[name][0] for field, name in names.items()}


def fenced(prompt, tag):
    return re.search(rf"<({tag}-\w{{10}})>\n(.*?)\n</\1>", prompt, re.DOTALL)[2]


def text_in(field, name):
    """The text of a value in a field."""
    text = VALUES[name][1]
    if text == "In Kyiv.\nNow." and field == "expected":  # each of them is a right answer
        return "Any of these is right:\n- In Kyiv.\n- Now."
    if text == "In Kyiv.\nNow." and field == "source":  # each of them is a document
        return "[1]\nIn Kyiv.\n\n[2]\nNow."
    documents = '[1]\n{"city": "Kyiv"}\n\n[2]\n{"city": "Oslo"}'
    return documents if (name, field) == ("a list of data", "source") else text


@cache
def sent_directly(names):
    return sent("invoke", with_values(ITEM, dict(names)), None)


@pytest.mark.whole
@for_each("path", [*PATHS, *IN_AGENTS, *FILES, *(f"command{ending}" for ending in FILES)])
def test_each_type_in_each_field_is_sent_alike_on_every_path(path, tmp_path):
    ending = path.removeprefix("command")
    held = FLAT if ending in (".csv", ".xlsx") else IN_FILES if ending in FILES else VALUES
    fields = ["expected", "source"] if path in IN_AGENTS else [*TAGS]
    for names in in_turn(sorted(held), fields):
        [prompt] = sent(path, with_values(ITEM, names), tmp_path)
        texts = {field: fenced(prompt, TAGS[field]) for field in names}
        assert texts == {field: text_in(field, name) for field, name in names.items()}, names
        assert [prompt] == sent_directly((*names.items(),)), names


@pytest.mark.whole
@for_each("path", ["invoke", *PATHS, *IN_AGENTS])
@for_each("empty", [None, float("nan"), np.nan, pd.NA, pd.NaT, [], {}])
def test_a_missing_value_is_no_expected_answer_on_any_path(path, empty, tmp_path):
    [prompt] = sent(path, {**ITEM, "expected": empty}, tmp_path)
    assert [prompt] == sent("invoke", ITEM, tmp_path)


@for_each("path", ["invoke", *PATHS])
def test_an_image_in_any_shape_of_a_source_is_sent_beside_its_mark(path, tmp_path):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for source in (image, [image], ["See:", image], [HumanMessage([image])]):
        [(_, human)] = asked(path, {**ITEM, "source": source}, tmp_path).messages
        marks = [each for each in human.content if "[image " in each.get("text", "")]
        assert (len(marks), image in human.content) == (1, True), source


CRITERIA: dict[str, Any] = {
    "a text": "Is it in Kyiv?",
    "texts": ["Is it in Kyiv?"],
    "criteria": [{"name": "place", "description": "Is it in Kyiv?"}],
    "assertions": [{"key": "place", "comment": "Is it in Kyiv?"}],
}


@for_each("path", ["invoke", "rows", "frame", "assert_judged", "graph", ".jsonl", ".parquet"])
@for_each("rubric", CRITERIA)
def test_the_criteria_of_a_row_are_sent_in_any_shape_on_every_path(path, rubric, tmp_path):
    [prompt] = sent(path, {**ITEM, "rubric": CRITERIA[rubric]}, tmp_path)
    assert "Is it in Kyiv?" in prompt
    assert "Is it right?" not in prompt


@for_each(
    ("expected", "shown"),
    [
        ([{"answer": "x1"}, {"answer": "y1"}], "- x1\n- y1"),
        ([{"page_content": "p1"}, {"page_content": "q1"}], "- p1\n- q1"),
        (["x1", {"a": 1}], '["x1", {"a": 1}]'),
    ],
)
def test_several_right_answers_are_read_by_their_usual_names(expected, shown):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="correctness")
    judge.invoke({"input": "q?", "output": "a", "expected": expected})
    assert shown in model.prompts[0]


@for_each("output", [["x", AIMessage("y")], [None]])
def test_lists_of_messages_beside_texts_and_of_nothing_are_refused(output):
    judge = create_rubric_judge(FakeChatModel(), rubric="correctness")
    with pytest.raises(InputError, match="`output` must be"):
        judge.invoke({"input": "q?", "output": output, "expected": "e"})


def test_times_of_numpy_are_shown_as_times():
    model = FakeChatModel(replies=fitting_reply)
    when = {"at": np.datetime64("2024-01-02", "ns"), "took": np.timedelta64(3, "s")}
    create_rubric_judge(model, rubric="Good?").invoke({"input": "q?", "output": when})
    assert "2024-01-02T00:00:00" in model.prompts[0]
    assert "3 seconds" in model.prompts[0]


# ---- whatever has named fields is a row


def _of_sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("SELECT ? AS input, ? AS output", (*ITEM.values(),)).fetchone()


ROWS: dict[str, Callable[[], Any]] = {
    "a named tuple": lambda: namedtuple("Case", ITEM)(**ITEM),
    "a data class": lambda: make_dataclass("Case", ITEM)(**ITEM),
    "a model": lambda: create_model("Case", input=(str, ...), output=(str, ...))(**ITEM),
    "a mapping": lambda: UserDict(ITEM),
    "a row of `iterrows`": lambda: pd.Series(ITEM),
    "a row of `itertuples`": lambda: next(pd.DataFrame([ITEM]).itertuples(index=False)),
    "a row of a database": _of_sqlite,
}


@for_each("make", ROWS.values(), ids=ROWS)
def test_whatever_has_named_fields_is_a_row_on_every_path(make):
    judge, model = judge_and_model()
    judge.invoke(ITEM)
    judge.invoke(make())
    frame = judge_many(judge, iter([make()]), progress=False).to_pandas()
    assert model.prompts == [model.prompts[0]] * 3
    assert dict(frame[[*ITEM]].iloc[0]) == ITEM


def test_a_table_in_a_column_that_is_not_shown_changes_nothing():
    judge, model = judge_and_model()
    for more in ({}, {"rows": pd.DataFrame([ITEM])}, {"rows": pd.DataFrame()}):
        judge.invoke({**ITEM, **more})
    assert len({*model.prompts}) == 1


def test_a_table_and_values_without_names_are_no_row():
    judge, model = judge_and_model()
    with pytest.raises(
        InputError, match=r"must be a dictionary with .* got DataFrame; `judge_many` takes tables"
    ):
        judge.invoke(pd.DataFrame([ITEM, ITEM]))
    with pytest.raises(InputError, match=r"must have named fields, such as .* got tuple"):
        list(judge_many(judge, zip(["Where is it?"], ["In Kyiv."], strict=True)))
    assert not model.prompts


# ---- data of Python: the same text in every process, or a refusal


class Odd:
    """A class that has no form in JSON."""


@dataclass
class Holder:
    part: Any


# Leaves that differ by the process or have no JSON; with their twin in another order.
LEAVES: dict[str, tuple[Any, Any, str]] = {
    "a set": ({8, 0}, {0, 8}, "[0, 8]"),
    "a frozen set of pairs": (
        frozenset({(8, "a"), (0, "b")}),
        frozenset({(0, "b"), (8, "a")}),
        '[[0, "b"], [8, "a"]]',
    ),
    "broken bytes": (b"\xff", b"\xff", '"\\\\xff"'),
    "a set of broken bytes": ({b"\xff"}, {b"\xff"}, '["\\\\xff"]'),
    "an object": (Odd(), Odd(), '"<tests.test_front_door.Odd object>"'),
    "a key that is no text": ({(1, 2): 3}, {(1, 2): 3}, '{"(1, 2)": 3}'),
}
HELD: dict[str, Any] = {
    "data": lambda leaf: {"a": leaf, "b": 1},
    "a list": lambda leaf: {"a": [leaf], "b": 1},
    "a data class": lambda leaf: {"a": Holder(leaf), "b": 1},
    "a model": lambda leaf: {"a": create_model("Model", part=(Any, ...))(part=leaf), "b": 1},
    "a queue": lambda leaf: {"a": deque([leaf]), "b": 1},
}


@for_each("held", HELD)
@for_each("leaf", LEAVES)
def test_data_of_python_are_shown_alike_in_every_process(held, leaf):
    one, twin, text = LEAVES[leaf]
    prompts = []
    for value in (one, twin):
        judge, model = judge_and_model()
        judge.invoke({**ITEM, "output": HELD[held](value)})
        prompts += model.prompts
    assert prompts[0] == prompts[1]
    assert text in prompts[0]


@for_each("make", [dict, list, lambda: Holder(None)])
@for_each("field", ["input", "output", "expected", "source", "group"])
def test_data_that_contain_themselves_are_refused(make, field):
    endless: Any = make()
    if isinstance(endless, Holder):
        endless.part = endless
    else:
        endless.update(a=endless) if make is dict else endless.append(endless)
    judge, model = judge_and_model()
    with pytest.raises(InputError, match="contain themselves"):
        judge.invoke({**ITEM, field: endless})
    _, row = judge_many(judge, [ITEM, {**ITEM, field: endless}])
    assert "contain themselves" in row["verdict"]["failures"][0]["detail"]
    assert len(model.prompts) == 1


class Failing(BaseModel):
    city: str

    @field_serializer("city")
    def town(self, city: str) -> str:
        raise KeyError(city)


def test_a_serializer_that_fails_is_named():
    for value in (Failing(city="Kyiv"), {"in": [Failing(city="Kyiv")]}):
        with pytest.raises(InputError, match=r"KeyError: .Kyiv"):
            as_json(value)


# ---- the instructions of an agent are sent on every path

LED: list[Any] = [
    {"role": "system", "content": "You are a pirate."},
    {"role": "user", "content": "Where is it?"},
]
WORK: list[Any] = [{"role": "assistant", "content": "Arr, in Kyiv."}]


@for_each("path", ["invoke", *PATHS, ".jsonl", ".json", "command.jsonl"])
@for_each("place", ["input", "output"])
def test_the_instructions_of_an_agent_are_sent_on_every_path(path, place, tmp_path):
    row = {"input": LED, "output": WORK} if place == "input" else {"output": [*LED, *WORK]}
    [prompt] = asked(path, row, tmp_path, "helpfulness").prompts
    parts = ["You are a pirate.", "Where is it?", "Arr, in Kyiv."]
    assert [prompt.count(each) for each in parts] == [1, 1, 1]
    assert sorted(map(prompt.index, parts)) == [*map(prompt.index, parts)]


@for_each("path", ["middleware", "best_of", "tool", "example"])
def test_the_instructions_of_an_agent_are_sent_by_what_stands_in_an_agent(path):
    judge, model = judge_and_model("helpfulness")
    if path == "middleware":
        writer = FakeChatModel(replies=["Arr, in Kyiv."] * 2)
        create_agent(writer, middleware=[JudgeMiddleware(judge)]).invoke({"messages": LED})
    elif path == "best_of":
        judge = create_relative_judge(model)
        writer = FakeChatModel(replies=["Arr, in Kyiv.", "Arr, in Oslo."])
        best_of(2, judge, writer).invoke(LED)
    elif path == "tool":
        judge_tool(judge).invoke({"input": "You are a pirate.\nWhere is it?", "output": "Arr."})
    else:
        run: Any = a_run({"messages": WORK})
        example: Any = SimpleNamespace(inputs={"messages": LED}, outputs=None)
        as_evaluator(judge).evaluate_run(run, example)
    assert model.prompts[0].count("You are a pirate.") == 1
    assert model.prompts[0].index("You are a pirate.") < model.prompts[0].index("Where is it?")


# ---- what people know of a row is read alike on every path

ASKED = {"input": "Where is it?"}
SIDES = {"output_a": "In Kyiv.", "output_b": "In Oslo."}
KNOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a label": ({**SIDES, "label": "model_b"}, {"label": "B"}),
    "an empty label": ({**SIDES, "label": ""}, {}),
    "a label by criterion": ({**SIDES, "label.tone": "A"}, {"labels": {"tone": "A"}}),
    "votes": ({**SIDES, "human_votes": ["A>B", "c"]}, {"human_votes": ["A", "tie"]}),
    "systems": ({**SIDES, "systems": '["x", "y"]'}, {"systems": ["x", "y"]}),
    "the better text": ({"chosen": "In Kyiv.", "rejected": "In Oslo."}, {"label": None}),
}


@for_each("known", KNOWN)
@for_each("path", ["rows", "frame", ".jsonl", ".json"])
def test_what_people_know_of_a_pair_is_read_alike_on_every_path(path, known, tmp_path):
    given, read = KNOWN[known]
    row, judge = {**ASKED, **given, "id": "1"}, create_relative_judge(for_kyiv())
    tables = {"rows": [row], "frame": pd.DataFrame([row])}
    table: Any = tables[path] if path in tables else written(row, tmp_path / f"table{path}")
    [result] = judge_many(judge, table)
    names = ("label", "labels", "human_votes", "systems")
    found = {name: result[name] for name in names if result.get(name)}
    preference = result["verdict"]["preference"]
    assert preference in ("A", "B")
    if known == "the better text":  # its slot is drawn, and the label and its name with it
        sides = ["chosen", "rejected"]
        read = {"label": preference, "systems": sides if preference == "A" else sides[::-1]}
    assert found == read


def for_kyiv():
    """A model that prefers what is in Kyiv, wherever it stands."""
    first = re.compile(r"<response-1-\w+>\s*In Kyiv")
    return FakeChatModel(
        replies=lambda prompt: {
            "explanation": "e",
            "preference": "1" if first.search(prompt) else "2",
        }
    )


@for_each(
    "wrong", [{"label": "huh"}, {"category": ["a"]}, {"human_votes": ["A", 3]}, {"group": {"x": 1}}]
)
@for_each("path", ["rows", "frame", "command"])
def test_annotations_that_cannot_be_used_are_told_by_one_rule(path, wrong, caplog, tmp_path):
    row = {**ASKED, **SIDES, **wrong}
    if path == "command":
        with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be"):
            check_labelled_pair(row)
        return
    rows = [row, {**row, "input": "And now?"}]
    caplog.clear()
    table: Any = rows if path == "rows" else pd.DataFrame(rows)
    results = list(judge_many(create_relative_judge(for_kyiv()), table))
    assert [each["verdict"]["preference"] for each in results] == ["A", "A"]
    [told] = [each.getMessage() for each in caplog.records]
    assert re.search(f"Row 1 .*`{next(iter(wrong))}`", told)


# ---- pairs: one table of fields and types on every path

PAIR = {"input": "Where is it?", "output_a": "Near Kyiv.", "output_b": "In Oslo."}
BY_RUNS = ["comparative", "called"]
PAIR_PATHS = ["rows", "frame", ".jsonl", "prepare", "against the reference", "in an agent"]


@cache
def shared_for_kyiv():
    model = for_kyiv()
    return create_relative_judge(model), model


@cache
def shared_agent_for_kyiv():
    """An agent whose text is compared with another, and the row that holds both."""
    judge, _ = shared_for_kyiv()
    row: dict[str, Any] = {}
    other: Any = {"reference": lambda _: row["output_b"], "max_revisions": 0}
    writer = FakeChatModel(replies=lambda _: row["output_a"])
    return create_agent(writer, middleware=[JudgeMiddleware(judge, **other)]), row


def asked_of_pair(path, row, folder):
    """The prompts of a judge of pairs for a row that comes by a path, in either order."""
    judge, model = shared_for_kyiv()
    model.prompts.clear()
    sides = [{"outputs": {"output": row[side]}, "id": side} for side in ("output_a", "output_b")]
    known = {"inputs": {"input": row["input"]}, "outputs": {"reference": row.get("reference")}}
    if path == "invoke":
        judge.invoke(row)
    elif path == "comparative":
        as_comparative_evaluator(judge)(sides, known)
    elif path == "called":
        reference = {"reference_outputs": row.get("reference")}
        texts = [row["output_a"], row["output_b"]]
        as_comparative_evaluator(judge)(inputs=row["input"], outputs=texts, **reference)
    elif path == "prepare":
        as_evaluator(judge, prepare=lambda run, example: row)({"id": "1"}, {})
    elif path == "against the reference":
        known["outputs"] = {"reference": row["output_b"]}
        as_evaluator(judge)(sides[0], known)
    elif path == "in an agent":
        agent, given = shared_agent_for_kyiv()
        given.update(row)
        agent.invoke({"messages": [("user", row["input"])]})
    else:
        tables = {"rows": [row], "frame": pd.DataFrame({n: [v] for n, v in row.items()})}
        table: Any = tables[path] if path in tables else written(row, folder / f"pair{path}")
        list(judge_many(judge, table))
    return sorted(model.prompts)


@cache
def asked_directly(names):
    return asked_of_pair("invoke", with_values(PAIR, dict(names)), None)


@pytest.mark.whole
@for_each("path", [*PAIR_PATHS, *BY_RUNS])
def test_each_type_in_each_field_of_a_pair_is_sent_alike_on_every_path(path, tmp_path):
    held = IN_FILES if path == ".jsonl" else VALUES
    fields = ["input", "output_a", "output_b", "reference"]
    few = {"in an agent": ["output_b"], "against the reference": fields[:3]}
    for names in in_turn(sorted(held), few.get(path, fields)):
        prompts = asked_of_pair(path, with_values(PAIR, names), tmp_path)
        for (field, name), prompt in product(names.items(), prompts):
            assert f">\n{VALUES[name][1]}\n</" in prompt, (field, name, prompt)
        assert len(prompts) == 2
        assert prompts == asked_directly((*names.items(),)), names


@for_each("path", ["rows", "frame", *BY_RUNS])
@for_each("empty", [None, float("nan"), "", pd.NA, []])
def test_a_missing_value_is_no_reference_of_a_pair(path, empty, tmp_path):
    prompts = asked_of_pair(path, {**PAIR, "reference": empty}, tmp_path)
    assert prompts == asked_of_pair("invoke", PAIR, tmp_path)


@for_each("rubric", CRITERIA)
@for_each("place", ["inputs", "outputs"])
def test_the_criteria_of_an_example_are_sent_as_those_of_a_row(rubric, place, tmp_path):
    judge, model = judge_and_model()
    example: Any = {"inputs": {"input": ITEM["input"]}, "outputs": {"expected": "Kyiv"}}
    example[place]["by"] = CRITERIA[rubric]
    run: Any = {"id": "1", "outputs": {"output": ITEM["output"]}}
    as_evaluator(judge, rubric="by")(run, example)
    row = {**ITEM, "expected": "Kyiv", "rubric": CRITERIA[rubric]}
    assert model.prompts == sent("invoke", row, tmp_path)


@for_each("path", ["invoke", "rows", "example", "prepare", "assert_judged", "graph"])
@for_each("told", [True, False])
def test_a_rubric_that_needs_instructions_asks_nothing_without_them(path, told, tmp_path):
    judge, model = judge_and_model(needs=("instructions",), best=1)
    row = {**ITEM, "input": LED if told else LED[1:]}
    if path == "assert_judged" and not told:
        with pytest.raises(AssertionError, match="no system message says what the agent was"):
            assert_judged(judge, [row, {**ITEM, "input": LED}], min_pass=0.9)
        assert ["You are a pirate." in prompt for prompt in model.prompts] == [True]
        return
    model = asked(path, row, tmp_path, needs=("instructions",))
    assert ["You are a pirate." in prompt for prompt in model.prompts] == [True] * told


PAID = {"name": "pay", "args": {"sum": 7}, "id": "1"}
OPEN = {"id": "c9", "function": {"name": "pay", "arguments": '{"sum": 7}'}, "type": "function"}
NO_ANSWER = "(there is no final answer, unless the last result is one)"
CALLED, DONE = '[call-of-pay]\n{"sum": 7}', "[final-answer]\nDone."
BESIDE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "calls": ({"reply": "Done.", "tool_calls": [PAID]}, [CALLED, DONE]),
    "calls of OpenAI": ({"answer": "Done.", "tool_calls": [OPEN]}, [CALLED, DONE]),
    "results": (
        {"answer": "Done.", "tool_calls": [{**PAID, "result": {"ok": 1}}]},
        [CALLED, '[result-of-pay]\n{"ok": 1}', DONE],
    ),
    "two without ids": (
        {"output": "Done.", "tool_calls": [{"name": "find", "output": "x"}, {"name": "pay"}]},
        ["[call-1-of-find]", "[result-1-of-find]\nx", "[call-2-of-pay]", DONE],
    ),
    "no role": ({"content": "", "tool_calls": [PAID]}, [CALLED, NO_ANSWER]),
    "calls alone": ({"tool_calls": [PAID]}, [CALLED, NO_ANSWER]),
}


@pytest.mark.whole
@for_each("path", ["invoke", *PATHS, ".json", ".jsonl"])
@for_each("shape", BESIDE)
def test_calls_beside_an_answer_are_sent_with_it_on_every_path(path, shape, tmp_path):
    output, texts = BESIDE[shape]
    [prompt] = map(unfenced, sent(path, {**ITEM, "output": output}, tmp_path))
    assert all(text in prompt for text in texts)


FAILED: list[dict[str, Any]] = [
    {"answer": None, "error": "timeout"},
    {"output": None, "tool_calls": 3},
    {"messages": None, "answer": None},
    {"answer": None, "latency": 1.2, "model": "m"},
    {"text": None, "exception": "boom", "status": "failed"},
    {"text": None, "finish_reason": "error"},
    {"text": None, "a": None},
    *({"summary": None, **each} for each in ({"user_id": "42"}, {"n": 1}, {"title": "x"})),
    {"output": {"summary": None, "a": None}},
]


@for_each("outputs", [{"title": "x", "summary": None}, {"text": None, "exception": "boom"}])
def test_data_below_a_name_of_an_answer_are_shown_whole_though_a_part_is_null(outputs):
    assert work_in({"output": outputs}) == json.dumps(outputs)
    row = plain_row({"input": "q", "output": outputs})
    assert "read_as_json" in [each["reason"] for each in row["notes_on_reading"]]
    with pytest.raises(InputError, match="which hold nothing"):
        task_in({"text": None, "user_id": "42"})


def test_only_what_langgraph_returns_is_read_as_its_result():
    waits = [{"value": "Pay?", "id": "1"}]
    said = {"messages": [{"role": "assistant", "content": "Soon."}]}
    own: Any
    for own in ([], waits, [Interrupt(value="Pay?", id="1")]):
        shown = str(work_in({"value": said, "interrupts": own}))
        assert ("Soon." in shown, "Pay?" in shown, "interrupts" in shown) == (
            True,
            bool(own),
            False,
        )
    for other in (["door"], [{"at": 7}], {"door": 1}, "none", 3):
        outputs = {"value": "ok", "interrupts": other}
        assert work_in(outputs) == json.dumps(outputs)


@for_each("outputs", FAILED)
def test_an_answer_that_is_null_is_not_judged_by_what_stands_beside_it(outputs):
    with pytest.raises(InputError, match="the usual ones of which hold nothing"):
        work_in(outputs)
    assert "null" in str(work_in(outputs, lambda value: value))


COLUMNS: list[Any] = [3, "search", ["search"], [{"cost": 1}], {"search": 2}]


@for_each("value", COLUMNS)
def test_a_column_of_that_name_without_calls_is_neither_work_nor_an_answer(value):
    row = {"input": "q", "output": None, "tool_calls": value}
    assert plain_row(row)["output"] is None
    assert plain_row({**row, "output": "a"})["output"] == "a"
    pair = {"input": "q", "output_a": "a", "output_b": "b"}
    call = [{"name": "f", "args": {}}]
    for extra in (value, call):
        assert "output" not in plain_row({**pair, "tool_calls": extra})


def test_calls_in_a_column_beside_an_answer_are_sent(tmp_path):
    row = {**ITEM, "output": "Done.", "tool_calls": [PAID]}
    [prompt] = map(unfenced, sent("rows", row, tmp_path))
    assert CALLED in prompt
    assert DONE in prompt
