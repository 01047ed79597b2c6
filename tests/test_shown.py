"""What each path shows a judge of what the user gave: under its name, and nothing else."""

import asyncio
import json
import re
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import numpy
import pandas
import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, convert_to_messages
from pydantic import BaseModel, RootModel, computed_field
from typer.testing import CliRunner

from langchain_judges import (
    JudgeMiddleware,
    as_comparative_evaluator,
    as_evaluator,
    best_of,
    create_allure_judge,
    create_relative_judge,
    judge_many,
)
from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.integrations import serve
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.rows.fences import sealed
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.media import mark_of
from langchain_judges.rows.texts import shown
from langchain_judges.rows.work import work_in
from langchain_judges.testing import FakeModelServer
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer, answer_call
from tests.shapes import PARALLEL, shapes
from tests.test_evaluators import a_run, an_example

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/ann.png"}}
TASK, TEXT, KNOWN, SOURCE = "Greet the guest.", "Hey you.", "Good evening.", "The guest is Ann."
RUBRIC = "Is the reply polite?"
NAMES = {"reference": "expected-answer", "source": "source"}


# ---- the paths of a judge of one text


def row_of(reference, source, output):
    fields = {"expected": reference, "source": source}
    return {"input": TASK, "output": output} | {k: v for k, v in fields.items() if v is not None}


def invoke(judge, reference=None, source=None, output=TEXT):
    judge.invoke(row_of(reference, source, output))


def many(judge, reference=None, source=None, output=TEXT):
    list(judge_many(judge, [row_of(reference, source, output)], progress=False))


def called(judge, reference=None, source=None, output=TEXT):
    as_evaluator(judge)(
        inputs={"question": TASK}, outputs=output, reference_outputs=reference, context=source
    )


def example_of(reference, source):
    inputs = {"question": TASK, **({} if source is None else {"context": source})}
    example = an_example(None if reference is None else {"answer": reference})
    return example.model_copy(update={"inputs": inputs})


def a_run_of(output):
    own = output if hasattr(output, "run_type") else a_run({"answer": output})
    if output is WITH_DOCUMENTS:
        own = a_run(output)
    return own.model_copy(update={"inputs": {"question": TASK}})


def rows(judge, reference=None, source=None, output=TEXT):
    evaluator = as_evaluator(judge, reference=None if reference is None else "answer")
    evaluator.evaluate_run(a_run_of(output), example_of(reference, source))


def middleware(judge, reference=None, source=None, output=TEXT):
    guard = JudgeMiddleware(judge, reference=reference, context=source, max_revisions=0)
    *before, final = output if isinstance(output, list) else [AIMessage(output)]
    agent = create_agent(FakeChatModel(replies=[final]), middleware=[guard])
    agent.invoke({"messages": [HumanMessage(TASK), *before]})


def tool(judge, reference=None, source=None):
    judge_tool(judge).invoke(row_of(reference, source, TEXT))


def best(judge, reference=None, source=None, output=TEXT):
    fields = {"input": TASK, "answers": [output], "reference": reference, "context": source}
    best_of(1, judge).invoke(fields)


HTTP = FakeModelServer(answer_call)


@pytest.fixture(scope="module", autouse=True)
def served_models():
    """Serve fake models over HTTP; each cell of a matrix counts its own calls."""
    with HTTP:
        yield


@contextmanager
def over_http(judge):
    """Serve a judge's fake model; what it is sent is recorded as if it ran in this process."""
    before = len(HTTP.calls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("OPENAI_BASE_URL", HTTP.url)
        # The server of judges keeps models by name, and an address is that of one module's run.
        patch.setenv("JUDGES_MODEL", f"openai:shown-{HTTP.url.rpartition(':')[2]}")
        yield
    calls = HTTP.calls[before:]
    judge.model.prompts.extend(call.prompt for call in calls)
    judge.model.messages.extend(convert_to_messages(call.body["messages"]) for call in calls)


def own_options(judge):
    options = judge.options
    if not hasattr(options, "orders"):
        return {"rubric": options.rubric} if options.rubric else {}
    rubric = options.instructions
    return {"orders": "none"} | ({"instructions": rubric} if rubric else {})


def on_the_command_line(judge, method, lines):
    """Judge rows of a file by the command."""
    options = [f"--set={name}={value}" for name, value in own_options(judge).items()]
    with over_http(judge), TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        path.write_text("\n".join(map(json.dumps, lines)))
        args = ["judge", str(path), "--method", method, "--model", "openai:fake", *options]
        more = ["--records", str(Path(folder, "out.jsonl")), "--concurrency", "1"]
        return CliRunner().invoke(app, [*args, *more])


def on_the_server(judge, method, lines):
    """Judge rows by an assistant of a LangGraph server, without the server."""
    context = SimpleNamespace(context=own_options(judge))
    runtime: Any = SimpleNamespace(execution_runtime=context)

    async def served():
        return await serve(method)({}, runtime)

    with over_http(judge):
        graph = asyncio.run(served())
        for line in lines:
            graph.invoke(line)


def as_json(row):
    return json.loads(json.dumps(plain_row(row)))


def command_line(judge, reference=None, source=None, output=TEXT):
    row = row_of(reference, source, output)
    on_the_command_line(judge, "allure", [row if output is WITH_DOCUMENTS else as_json(row)])


def assistant(judge, reference=None, source=None, output=TEXT):
    on_the_server(judge, "allure", [as_json(row_of(reference, source, output))])


PATHS = [*(invoke, many, called, rows, middleware, tool, best), *(command_line, assistant)]
"""Every path of a judge of one text."""
EACH = for_each("path", PATHS, ids=lambda path: path.__name__)


def blocks(prompt):
    """The text between the tags of a prompt, by the name of the tag."""
    fenced = r"<(([a-z-]+?)(?:-\d)?-[0-9a-f]{10})>\n(.*?)\n</\1>"
    return {name: unfenced(text) for _, name, text in re.findall(fenced, prompt, re.DOTALL)}


def as_shown(output):
    """An output as a prompt shows it."""
    row = plain_row(row_of(None, None, output))
    return unfenced(sealed([shown(row["output"])])[0])


@cache
def judge_by(**options):
    """A judge for many cells, which differ in what it is given."""
    return create_allure_judge(FakeChatModel(replies=answer), **options)


def prompt_of(path, fields, **options):
    judge = judge_by(**options)
    judge.model.prompts.clear()
    path(judge, **fields)
    (prompt,) = judge.model.prompts
    return prompt


@EACH
@for_each("what", [(), ("reference", "source")])
def test_a_prompt_holds_what_was_given_under_its_name_and_nothing_else(path, what):
    texts = {"reference": KNOWN, "source": SOURCE}
    prompt = prompt_of(path, {name: texts[name] for name in what}, rubric=RUBRIC)
    expected = {NAMES[name]: texts[name] for name in what}
    assert blocks(prompt) == {"request": TASK, "response": TEXT, **expected}
    assert RUBRIC in prompt.split("<request-")[0]


@EACH
def test_with_nothing_to_judge_by_no_model_is_asked(path):
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model)
    if path in (invoke, many, best, assistant):
        with pytest.raises(InputError):
            path(judge)
    else:
        path(judge)
    assert model.prompts == []


# ---- each type of value, in each field, on each path is the same text


class Color(Enum):
    """A value with a name."""

    RED = "red"


@dataclass
class Place:
    """Data of a person's own."""

    city: str
    days: int


class Stay(BaseModel):
    """Data of a person's own, which are checked."""

    city: str
    days: int


class Booking(Stay):
    """A model with a field that follows from others."""

    @computed_field
    def nights(self) -> int:
        """One less than the days."""
        return self.days - 1


VALUES: dict[str, tuple[Any, str]] = {
    "a number": (4, "4"),
    "a fraction": (0.5, "0.5"),
    "a truth value": (True, "true"),
    "texts": (["Red.", "Blue."], "Red.\nBlue."),
    "data": ({"city": "Kyiv", "days": [1, 2]}, '{"city": "Kyiv", "days": [1, 2]}'),
    "a message": (HumanMessage("Red."), "Red."),
    "a dumped message": ({"role": "assistant", "content": "Red."}, "Red."),
    "blocks": ([{"type": "text", "text": "Red."}], "Red."),
    "messages": ([AIMessage("Red.")], "Red."),
    "a data class": (Place("Kyiv", 2), '{"city": "Kyiv", "days": 2}'),
    "a model": (Stay(city="Kyiv", days=2), '{"city": "Kyiv", "days": 2}'),
    "a computed field": (Booking(city="Rio", days=2), '{"city": "Rio", "days": 2, "nights": 1}'),
    "data with roles": ([{"role": ["admin"], "id": 1}], '[{"role": ["admin"], "id": 1}]'),
    "users": ([{"role": "user", "name": "Ann"}], '[{"role": "user", "name": "Ann"}]'),
    "a decimal": (Decimal("1.50"), "1.50"),
    "nothing that counts": (0, "0"),
    "a false one": (False, "false"),
    "numpy's number": (numpy.int64(4), "4"),
    "numpy's fraction": (numpy.float32(0.1), "0.1"),
    "numpy's truth": (numpy.bool_(True), "true"),
    "a time": (datetime(2026, 1, 2, 3), "2026-01-02T03:00:00"),
    "a day of pandas": (pandas.Timestamp("2026-01-02"), "2026-01-02"),
    "bytes": (b"Red.", "Red."),
    "an enumeration": (Color.RED, "red"),
    "an identifier": (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "a path": (Path("a/b"), "a/b"),
    "a set": ({"Red.", "Blue."}, "Blue.\nRed."),
    "a tuple": (("Red.", "Blue."), "Red.\nBlue."),
    "infinity": (float("inf"), "Infinity"),
    "a document": (
        Document("Red."),
        '{"id": null, "metadata": {}, "page_content": "Red.", "type": "Document"}',
    ),
}
NOTHING = [None, float("nan"), pandas.NA, pandas.NaT, "", [], {}]
# What is no text of its own in a source.
OF_SOURCE = {
    **{name: text for name, (_, text) in VALUES.items()},
    "texts": "[1]\nRed.\n\n[2]\nBlue.",
    "a set": "[1]\nBlue.\n\n[2]\nRed.",
    "a tuple": "[1]\nRed.\n\n[2]\nBlue.",
    "a document": "Red.",
    "data with roles": '{"role": ["admin"], "id": 1}',
    "users": '{"role": "user", "name": "Ann"}',
}
READERS = [invoke, many, called, rows, best, command_line, assistant]


@pytest.mark.whole
@for_each("path", READERS, ids=lambda path: path.__name__)
@for_each("name", VALUES)
def test_each_type_is_the_same_text_in_each_field_on_each_path(path, name):
    value, text = VALUES[name]
    if path in (command_line, assistant):  # a file has no objects
        if not isinstance(value, int | float | list | dict | HumanMessage):
            return
        value = value.model_dump() if isinstance(value, HumanMessage) else value
    fields = {"output": value, "source": value}
    expected = {"response": text, "source": OF_SOURCE[name]}
    if path not in (best, rows) or name in ("a message", "data"):
        fields["reference"] = value
        expected |= {"expected-answer": text}
    shown = blocks(prompt_of(path, fields, rubric=RUBRIC))
    assert shown == {"request": TASK, **expected}


def test_a_model_of_one_value_is_that_value():
    assert work_in(RootModel[list[str]](["Red.", "Blue."])) == "Red.\nBlue."


@pytest.mark.whole
@for_each("path", READERS, ids=lambda path: path.__name__)
@for_each("value", NOTHING)
@for_each("field", ["output", "reference"])
def test_what_is_nothing_is_judged_on_no_path(path, value, field):
    judge = judge_by(rubric=RUBRIC if field == "output" else "correctness")
    judge.model.prompts.clear()
    with suppress(InputError):  # raised where a person calls, said where a data set is read
        path(judge, **{field: value})
    assert judge.model.prompts == []


NAMES_OF_OTHERS = [
    {"question": TASK, "answer": TEXT, "ground_truth": KNOWN, "context": SOURCE},
    {"query": TASK, "prediction": TEXT, "reference": KNOWN, "contexts": [SOURCE]},
    {"prompt": TASK, "actual_output": TEXT, "expected_output": KNOWN, "documents": [SOURCE]},
    {"input": TASK, "actualOutput": TEXT, "expectedOutput": KNOWN, "retrievalContext": [SOURCE]},
    {"question": TASK, "answer": TEXT, "ground_truths": [KNOWN], "contexts": [SOURCE]},
    {"request": TASK, "response": TEXT, "expected_response": KNOWN, "retrieved_context": SOURCE},
    {"problem": TASK, "completion": TEXT, "target": KNOWN, "retrieval_context": SOURCE},
    {
        "messages": [{"role": "user", "content": TASK}],
        "answer": TEXT,
        "ideal": KNOWN,
        "source": SOURCE,
    },
]


@pytest.mark.whole
@for_each("row", NAMES_OF_OTHERS)
@for_each("path", ["invoke", "many", "frame", "file", "command"])
def test_fields_are_known_by_their_usual_names_on_each_path(row, path, tmp_path):
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    table = tmp_path / "rows.jsonl"
    table.write_text(json.dumps(row))
    if path == "invoke":
        judge.invoke(row)
    elif path == "command":
        on_the_command_line(judge, "allure", [row])
    else:
        of = {"many": [row], "frame": pandas.DataFrame([row]), "file": table}
        list(judge_many(judge, of[path], progress=False))
    expected = {"request": TASK, "response": TEXT, "expected-answer": KNOWN, "source": SOURCE}
    assert blocks(model.prompts[0]) == expected


def test_a_frame_of_numbers_is_judged_as_rows_of_them_are():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    frame = pandas.DataFrame({"input": ["a", "b"], "output": [3, 4]})
    for numbers in (frame, frame.to_dict("records"), frame.astype({"output": "int32"})):
        assert all(row["judged"] for row in judge_many(judge, numbers, progress=False))
    shown = [blocks(each)["response"] for each in model.prompts]
    assert sorted(shown) == ["3"] * 3 + ["4"] * 3  # rows are judged side by side


# ---- media of a source


@for_each("path", [invoke, many, called, rows, command_line, assistant])
@for_each("form", ["blocks", "message"])
def test_an_image_of_the_source_is_sent_on_every_path(path, form):
    model = FakeChatModel(replies=answer)
    picture = [{"type": "text", "text": "Ann:"}, IMAGE]
    source = picture if form == "blocks" else [{"role": "user", "content": picture}]
    path(create_allure_judge(model, rubric="groundedness"), source=source)
    ((*_, request),) = model.messages
    before, image, _ = cast("Any", request.content)[:3]
    assert image == IMAGE
    assert before["text"].endswith(mark_of(IMAGE))


# ---- each shape on each path is the same record


def is_taken(path, value):
    """Say whether a path takes a shape: an agent has messages alone."""
    messages = isinstance(value, list) and isinstance(value[0], AIMessage)
    return path is not middleware or messages


def responses(path, every):
    """The prompt of a path for each shape that it takes, or for one in so many."""
    names = [name for name, value in shapes().items() if is_taken(path, value)]
    names = names[PATHS.index(path) % every :: every]
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    if path in (command_line, assistant):
        lines = [as_json(row_of(None, None, shapes()[name])) for name in names]
        ways = {command_line: on_the_command_line, assistant: on_the_server}
        ways[path](judge, "allure", lines)
    else:
        for name in names:
            path(judge, output=shapes()[name])
    told = {n: blocks(p)["response"] for n, p in zip(names, model.prompts, strict=True)}
    return told


@pytest.mark.whole
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.figures)])
@for_each("path", [p for p in PATHS if p not in (invoke, tool)], ids=lambda path: path.__name__)
def test_each_shape_on_each_path_is_the_same_record(path, every):
    said = responses(path, every)
    assert said == {name: as_shown(shapes()[name]) for name in said}


PICTURE = [AIMessage([{"type": "text", "text": "Ann:"}, IMAGE])]


@for_each("path", [path for path in PATHS if path is not tool], ids=lambda path: path.__name__)
def test_an_image_is_sent_in_the_response_on_every_path(path):
    model = FakeChatModel(replies=answer)
    path(create_allure_judge(model, rubric=RUBRIC), output=PICTURE)
    ((*_, requests),) = model.messages
    before, image, after = cast("Any", requests.content)[:3]
    assert image == IMAGE
    assert before["text"].endswith(f"Ann:\n{mark_of(IMAGE)}")
    assert after["text"].startswith("\n</response-")


# ---- the paths of a judge of pairs


def pair_of(reference, a, b):
    pair = {"input": TASK, "output_a": a, "output_b": b}
    return {**pair, "reference": reference} if reference else pair


def pair_invoked(judge, reference=None, a=TEXT, b=KNOWN):
    judge.invoke(pair_of(reference, a, b))


def pair_of_runs(judge, reference=None, a=TEXT, b=KNOWN):
    compare = as_comparative_evaluator(judge, reference="answer")
    compare([a_run_of(a), a_run_of(b)], example_of(reference, None))


def pair_on_the_command_line(judge, reference=None, a=TEXT, b=KNOWN):
    on_the_command_line(judge, "relative", [as_json(pair_of(reference, a, b))])


def pair_on_the_server(judge, reference=None, a=TEXT, b=KNOWN):
    on_the_server(judge, "relative", [as_json(pair_of(reference, a, b))])


PAIRED = for_each(
    "path",
    [*(pair_invoked, pair_of_runs), *(pair_on_the_command_line, pair_on_the_server)],
    ids=lambda path: path.__name__,
)


@PAIRED
@for_each("reference", [None, "Good day, Ann."])
def test_a_pair_is_shown_with_its_reference_and_the_callers_rubric(path, reference):
    model = FakeChatModel(replies=answer)
    path(create_relative_judge(model, orders="none", instructions=RUBRIC), reference)
    (prompt,) = model.prompts
    reference_block = {"reference": reference} if reference else {}
    texts = {"request": TASK, "response": blocks(prompt)["response"]}
    assert blocks(prompt) == {**texts, **reference_block}
    assert prompt.index(TEXT) < prompt.index(KNOWN)
    assert f"adds: {RUBRIC}" in prompt


@PAIRED
def test_an_agents_work_and_an_image_are_compared_on_every_path(path):
    model = FakeChatModel(replies=answer)
    path(create_relative_judge(model, orders="none"), a=PARALLEL, b=PICTURE)
    *_, requests = model.messages[0]
    first: Any = requests.content[0]
    assert as_shown(PARALLEL) in unfenced(first["text"])
    assert IMAGE in requests.content


# ---- where an evaluator finds what a judge is shown


def test_a_rubric_is_shown_a_reference_and_nothing_that_people_know_of_the_row():
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(create_allure_judge(model, rubric=RUBRIC))
    for known in ({"answer": KNOWN, "label": 1}, {"label": 1}):
        evaluator.evaluate_run(a_run({"answer": TEXT}), an_example(known))
    first, second = map(blocks, model.prompts)
    assert second == {"request": "Why?", "response": TEXT}
    assert first == {**second, "expected-answer": KNOWN}


CONTEXTS: dict[str, dict[str, Any]] = {
    "documents": {"context": {"documents": [SOURCE]}},
    "objects": {"context": [Document(SOURCE)]},
    "a key": {"inputs": {"question": TASK, "found": SOURCE}, "where": "found"},
    "a path": {"inputs": {"question": TASK, "rag": {"found": [SOURCE]}}, "where": "rag.found"},
    "of the outputs": {"outputs": {"answer": TEXT, "docs": [SOURCE]}, "where": "docs"},
    "a function": {
        "outputs": {"answer": TEXT, "docs": [SOURCE]},
        "where": lambda row: row["outputs"]["docs"],
    },
    "a usual name": {"inputs": {"question": TASK, "context": SOURCE}},
}


@for_each("case", CONTEXTS)
def test_the_context_is_the_source_wherever_it_stands(case):
    model, fields = FakeChatModel(replies=answer), dict(CONTEXTS[case])
    evaluator = as_evaluator(create_allure_judge(model), context=fields.pop("where", None))
    evaluator(**{"inputs": {"question": TASK}, "outputs": {"answer": TEXT}, **fields})
    [prompt] = model.prompts
    assert blocks(prompt) == {"request": TASK, "response": TEXT, "source": SOURCE}


WITH_DOCUMENTS = {"answer": TEXT, "documents": [{"page_content": SOURCE}]}


@for_each("path", [invoke, many, called, rows, command_line, assistant])
@for_each("rubric", ["groundedness", RUBRIC])
def test_documents_beside_the_answer_are_the_source_of_a_judge_that_needs_one(path, rubric):
    prompt = prompt_of(path, {"output": WITH_DOCUMENTS}, rubric=rubric)
    source = {"source": SOURCE} if rubric == "groundedness" else {}
    assert blocks(prompt) == {"request": TASK, "response": TEXT, **source}


def test_a_judge_of_pairs_reads_the_context_behind_the_task():
    model = FakeChatModel(replies=answer)
    judge = create_relative_judge(model)
    fields = {"outputs": TEXT, "reference_outputs": KNOWN, "context": SOURCE}
    asked = f"[turn-1-user]\n{TASK}\n\n[source]\n{SOURCE}"
    for task in (TASK, [HumanMessage(TASK)]):
        as_evaluator(judge)(inputs=task, **fields)
        assert blocks(model.prompts[-1])["request"] == asked
