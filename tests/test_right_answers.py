"""What of an example's outputs is the right answer, on every path to a judge."""

import json
import re
import uuid
from itertools import product
from typing import Any

from langchain_core.messages import AIMessage
from langsmith import Client
from pydantic import create_model

from langchain_judges import as_comparative_evaluator, as_evaluator, judge_many
from langchain_judges.integrations.langsmith_runs import experiment_rows
from langchain_judges.rows.checks import ANNOTATIONS
from langchain_judges.rows.documents import CONTEXTS
from langchain_judges.runs.comparison import joined
from langchain_judges.runs.sources import Source
from langchain_judges.testing import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import of_method
from tests.langsmith_server import LangSmithServer

INPUTS = {"question": "Who?"}
MINE, OTHER = {"answer": "Di"}, {"answer": "Cy"}


def judged_one(judge, outputs, right, **places):
    run = {"id": "1", "inputs": INPUTS, "outputs": outputs}
    told = as_evaluator(judge, **places)(run, {"inputs": INPUTS, "outputs": right})
    return told["comment"]


def called(judge, outputs, right, **places):
    texts: dict[str, Any] = {"outputs": outputs, "reference_outputs": right}
    return as_evaluator(judge, **places)(inputs=INPUTS, **texts)["comment"]


def compared(judge, outputs, right, **places):
    runs = [
        {"id": n, "inputs": INPUTS, "outputs": own} for n, own in (("1", OTHER), ("2", outputs))
    ]
    compare: Any = as_comparative_evaluator(judge, **places)
    return str(compare(runs, {"inputs": INPUTS, "outputs": right})["comment"])


def texts_compared(judge, outputs, right, **places):
    compare: Any = as_comparative_evaluator(judge, **places)
    texts = {"outputs": [OTHER, outputs], "reference_outputs": right}
    return str(compare(inputs=INPUTS, **texts)["comment"])


PAIRS = {"compared": compared, "texts": texts_compared, "one": judged_one, "called": called}
PATHS: dict[str, tuple[str, Any]] = {
    "item": ("rubric", judged_one),
    "item called": ("rubric", called),
    **{f"pair {name}": ("relative", path) for name, path in PAIRS.items()},
}
NAMES = (*ANNOTATIONS, "assertions", "criteria", "rubric")
BESIDE: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "a usual name": ({"answer": "Bo"}, {"answer": "Al"}),
    "another name": ({"name": "Bo", "age": "3"}, {"name": "Al", "age": "4"}),
    "nothing": ({}, {}),
}


def on_path(path, outputs, right, **places):
    method, judge_by = PATHS[path]
    model = FakeChatModel(replies=fitting_reply)
    options = {"rubric": "correctness"} if method == "rubric" else {}
    told = judge_by(of_method(method, model, **options), outputs, right, **places)
    return told, "\n".join(model.prompts)


@for_each("path, name, beside", product(PATHS, NAMES, BESIDE))
def test_a_field_is_part_of_the_answer_where_it_is_returned_and_else_named(path, name, beside):
    theirs, right = BESIDE[beside]
    known = {**right, name: "zebra"}
    told, prompts = on_path(path, theirs or MINE, known)
    assert "zebra" not in prompts
    assert repr(name) in told
    told, prompts = on_path(path, {**theirs, name: "horse"}, known)
    is_shown = beside != "a usual name"
    assert ("zebra" in prompts) == is_shown
    assert (f"leaves out {name!r}" in told) == (not is_shown)


@for_each("path, name", product(PATHS, NAMES))
def test_a_named_field_is_the_answer_and_what_is_right_or_empty_is_not_told(path, name):
    assert "zebra" in on_path(path, MINE, {"name": "Al", name: "zebra"}, reference=name)[1]
    right = {"answer": "Al", name: "zebra"}
    pairs = [({"answer": "Bo", name: "zebra"}, right), (MINE, {**right, name: None})]
    assert not any("leaves out" in on_path(path, *each)[0] for each in pairs)


# What no two runs share, and its neighbours, which a person may have asked for.
VARYING = (
    *("id", "runId", "model", "model_name", "created_at", "timestamp", "latency", "latency_ms"),
    *("response_time", "total_tokens", "confidence", "probability", "score", "cost_usd"),
)
ASKED = ("order_id", "car_model", "cooking_time", "token_holder", "date", "version")


@for_each("path, name", product(PATHS, (*VARYING, *ASKED)))
def test_what_differs_by_its_nature_from_run_to_run_is_not_told(path, name):
    for ours, right in (("1", "2"), (1, 2), (0.5, 1.0), ("run-7", "run-8")):
        told, _ = on_path(path, {"answer": "Bo", name: ours}, {"answer": "Al", name: right})
        assert (f"leaves out {name!r}" in told) == (name in ASKED)
        assert name in ASKED or name not in told


@for_each("path", PATHS)
def test_nothing_to_compare_with_is_told_in_a_sentence(path):
    told, _ = on_path(path, MINE, {"label": "neg"})
    if path in ("pair one", "pair called"):
        rest = "a reference leaves out 'label': name it by `reference=`"
        assert f"`reference_outputs` has nothing to compare with; {rest}" in told
    assert "neg" in on_path(path, MINE, {"label": "neg"}, reference="label")[1]


FORMS: dict[str, Any] = {
    "as it is": lambda fields: fields,
    "below a name": lambda fields: {"output": fields},
    "as JSON": lambda fields: {"answer": json.dumps(fields)},
    "in a fence": lambda fields: {"answer": f"```json\n{json.dumps(fields)}\n```"},
    "as a message": lambda fields: {"messages": [AIMessage(json.dumps(fields))]},
    "of a model": lambda fields: {"output": create_model("Ticket", label=str)(**fields)},
}


@for_each("path, form", product(PATHS, FORMS))
def test_a_field_may_be_returned_in_any_form(path, form):
    _, prompts = on_path(path, FORMS[form]({"label": "horse"}), {"label": "zebra", "name": "Al"})
    assert '"label": "zebra"' in prompts


@for_each("beginning", ["[", '{"a": ', '{"label": ["', '{"label": '])
def test_a_text_that_is_nested_however_deep_is_judged(beginning):
    for depth in (1, 300, 990, 100_000):
        for end in ("", "1" + ("}" if "{" in beginning else "]") * depth):
            told, prompts = on_path("item", {"answer": beginning * depth + end}, {"answer": "Al"})
            assert "Not judged" not in told
            assert beginning * min(depth, 50) in prompts


OF_RUN: dict[str, Any] = {"name": "app", "run_type": "chain", "trace_id": str(uuid.UUID(int=1)),
    "id": str(uuid.UUID(int=1)), "start_time": "2026-01-01T00:00:00+00:00"}  # fmt: skip
STATES: list[dict[str, Any]] = [
    {**OF_RUN, "inputs": {"q": "Who?"}, "outputs": {"answer": "Al"}},
    {"messages": [{"role": "assistant", "content": "Al"}]},
    {"value": {"messages": [{"role": "assistant", "content": "Al"}]}, "interrupts": []},
    {"graph": None, "update": {"answer": "Al"}, "resume": None, "goto": []},
]


@for_each("path, known", product(PATHS, STATES))
def test_a_label_beside_whatever_an_agent_or_a_run_returned_is_left_out(path, known):
    for form in (known, {"output": known}):
        told, prompts = on_path(path, MINE, {**form, "label": "zebra"})
        assert "Al" in prompts
        assert ("zebra" in prompts, "leaves out 'label'" in told) == (False, True)


def test_a_text_that_shows_json_returns_no_field():
    shown = {"answer": 'Reply {"label": "horse"}, as here.'}
    assert "zebra" not in on_path("item", shown, {"name": "Al", "label": "zebra"})[1]


@for_each("name", CONTEXTS)
def test_documents_of_a_reference_are_named_where_they_are_not_shown_as_the_source(name):
    model = FakeChatModel(replies=fitting_reply)
    evaluator = as_evaluator(of_method("rubric", model, rubric="correctness"))
    known = {"answer": "Al", name: ["It rained in Oslo."]}
    for context, is_told in (("It snowed.", True), ("It rained in Oslo.", False)):
        texts: dict[str, Any] = {"inputs": {"question": "Who?", "context": context}}
        told = evaluator(**texts, outputs=MINE, reference_outputs=known)["comment"]
        assert (f"not shown: {name!r}" in told) == is_told


FEW = ("label", "category", "assertions")


@for_each("beside, is_returned", product(BESIDE, (True, False)))
def test_experiments_have_the_same_right_answers(beside, is_returned):
    theirs, right = BESIDE[beside]
    known = {**right, **{name: f"zebra-{name}" for name in FEW}}
    answers = [OTHER, {**(theirs or MINE), **dict.fromkeys(FEW if is_returned else (), "horse")}]
    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="x", info=server.info)
        data = client.create_dataset("people")
        client.create_example(inputs=INPUTS, reference_outputs=known, dataset_id=data.id)
        done = [client.evaluate(lambda inputs, own=own: own, data="people") for own in answers]
        client.flush()
        rows = experiment_rows(client, *(each.experiment_name for each in done))
        client.cleanup()
    [row], *_ = joined({name: Source(own, True) for name, own in zip("ab", rows, strict=True)})
    model = FakeChatModel(replies=fitting_reply)
    [result] = judge_many(
        of_method("relative", model), [row], columns={"output_a": "a", "output_b": "b"}
    )
    is_shown = is_returned and beside != "a usual name"
    notes = str(result["verdict"]["failures"])
    for name in FEW:
        assert (f"zebra-{name}" in "\n".join(model.prompts)) == is_shown
        assert (re.search(f"leaves out [^.]*'{name}'", notes) is not None) == (not is_shown)


CITIES = ["Lyon", "Nice"]
ANY = "Any of these is right:\n- Lyon\n- Nice"


@for_each(
    "name, output, shown, note",
    [
        ("expected", "Lyon", ANY, ""),
        ("answer", "Lyon", ANY, "a list of 2, any of which counts as right"),
        ("target", "Lyon", ANY, "a list of 2, any of which counts as right"),
        ("expected", ["Lyon"], ANY, ""),
        ("answer", ["Lyon"], ANY, "a list of 2, any of which counts as right"),
        ("expected", CITIES, "Lyon\nNice", "a list of 2 texts, shown as one"),
        ("answer", CITIES, "Lyon\nNice", "a list of 2 texts, shown as one"),
        ("expected", '["Lyon", "Nice"]', "Lyon\nNice", "a list of 2 texts, shown as one"),
    ],
)
def test_a_list_of_right_answers_is_of_alternatives_unless_a_list_is_judged(
    name, output, shown, note
):
    for path in ("item", "item called"):
        told, prompts = on_path(path, {"answer": output}, {name: CITIES})
        assert shown in prompts
        assert note in told
        assert bool(note) == ("a list of" in told)


def test_a_list_of_right_answers_in_a_named_column_is_in_no_doubt():
    rows, judge = [{"input": "q", "output": "Lyon", "reference": CITIES}], of_method("rubric")
    [guessed] = judge_many(judge, rows)
    [named] = judge_many(judge, rows, columns={"expected": "reference"})
    assert "any of which" in guessed["verdict"]["failures"][0]["detail"]
    assert not named["verdict"]["failures"]
