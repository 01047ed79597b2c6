"""The table on the page about agents, line by line: what is sent, and what lacks."""

from collections import namedtuple
from io import BytesIO
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langgraph.types import GraphOutput, Interrupt
from pydantic import create_model

from langchain_judges import JudgeMiddleware, as_evaluator, create_rubric_judge, judge_many
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import unfenced
from tests.shapes import IMAGE, OFFLOADED, PARALLEL, STEPS, TASK
from tests.test_docs import ROOT


def table():
    """The lines of the table on the page, by what is passed."""
    page = (ROOT / "docs/agents.md").read_text()
    lines = page.partition("| what you pass |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = ([cell.strip() for cell in line.strip("| ").split(" |")] for line in lines)
    return {cells[0]: cells[1:] for cells in rows}


def row(output, **fields):
    return {"input": TASK, "output": output, **fields}


TOLD = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TASK}]
NO_CALLS = ("tool_use", "there are no tool calls in the output")
NO_SOURCE = ("groundedness", "there is nothing to judge by")
FOUND = {"answer": "In Oslo.", "documents": [Document("Parcel 9 is in Oslo.")]}
CRITERIA = [{"key": "polite", "comment": "It thanks."}]
TRACED = {"inputs": [{"n": 7}], "outputs": {"results": [{"x": 1}], "steps": [["agent"]]}}
# By a part of the first cell: a rubric, a row, what its prompt holds; a rubric and a row that
# lack something, and what is said of it.
LINES: dict[str, tuple[tuple[str, Any, list[str]], tuple[str, str, Any] | None]] = {
    "a state, messages": (
        (
            "tool_use",
            row(OFFLOADED, input=TOLD),
            ["[result-of-track]", "[file-/report.md]\nIt is in Kyiv."],
        ),
        (*NO_CALLS, row("In Kyiv.")),
    ),
    "an AgentExecutor's": (
        (
            "tool_use",
            {"input": TASK, "output": "Both.", "intermediate_steps": STEPS},
            ["[call-2-of-track]", "in Oslo", "[final-answer]\nBoth."],
        ),
        (*NO_CALLS, {"input": TASK, "output": "Both.", "intermediate_steps": []}),
    ),
    '`{"answer": …': (
        ("groundedness", row(FOUND), ["In Oslo.", "Parcel 9 is in Oslo."]),
        (*NO_SOURCE, row({**FOUND, "documents": []})),
    ),
    "an image in `source`": (
        ("groundedness", row("In Oslo.", source=[IMAGE]), ["[image "]),
        ("image_safety", "there is no image in the output", row("In Oslo.")),
    ),
    "`rubric`": (("", row("Thanks.", rubric=CRITERIA), ["polite", "It thanks."]), None),
    "agentevals'": (
        ("Is it right?", row(TRACED), ['[input]\n{"n": 7}', "[nodes]\nagent", '{"x": 1}']),
        None,
    ),
    '`invoke(…, version="v2")`': (
        (
            "Is it right?",
            row(GraphOutput({"messages": PARALLEL}, (Interrupt("Paid?", id="i"),))),
            ["[final-answer]\nOslo and Kyiv.", "waits: Paid?"],
        ),
        None,
    ),
    "data without a usual key": (
        ("Is it right?", row({"city": "Oslo", "days": 2}), ['{"city": "Oslo", "days": 2}']),
        None,
    ),
}
OF_AGENT = "`JudgeMiddleware(…, system=True)`"


def judge_and_model(rubric, **options):
    model = FakeChatModel(replies=fitting_reply)
    own = {"rubric": rubric} if rubric else {}
    return create_rubric_judge(model, **own, **options), model


def test_each_line_of_the_page_is_tried():
    cells = [*table()]
    tried = [next(key for key in (*LINES, OF_AGENT) if key in cell) for cell in cells]
    assert sorted(tried) == sorted([*LINES, OF_AGENT])


@for_each("line", LINES)
def test_what_the_page_says_of_a_shape_is_sent_and_what_lacks_is_said(line):
    (rubric, given, texts), lacks = LINES[line]
    judge, model = judge_and_model(rubric)
    judge.invoke(given)
    [prompt] = map(unfenced, model.prompts)
    for text in texts:
        assert text in prompt
    [(_, *cells)] = [(cell, *rest) for cell, rest in table().items() if line in cell]
    assert bool(lacks) == bool(cells[1:] and cells[1].strip("| "))
    if lacks:
        judge, model = judge_and_model(lacks[0])
        verdict = judge.invoke(lacks[2])["verdict"]
        assert (verdict["label"], model.prompts) == (None, [])
        assert lacks[1] in verdict["rationale"]


@for_each("prompt", ["Be brief.", None])
def test_an_agents_instructions_are_shown_or_their_lack_is_said(prompt):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="In its role?", needs=("instructions",))
    agent = create_agent(
        FakeChatModel(replies=["Arr."]),
        middleware=[JudgeMiddleware(judge, system=True, max_revisions=0)],
        system_prompt=prompt,
    )
    state = agent.invoke({"messages": [HumanMessage(TASK)]})
    verdict = state["judged"][0]["verdict"]
    assert [f"[system]\n{prompt}" in unfenced(each) for each in model.prompts] == [True] * bool(
        prompt
    )
    assert ("no system message" in verdict["rationale"]) == (prompt is None)


PERSONA = "Be a pirate."
IN_CHAT = [{"role": "user", "content": TASK}]
# Requests as clients of providers send them, and as their runs are traced.
REQUESTS = {
    "Responses": {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": TASK}],
        "instructions": PERSONA,
    },
    "Anthropic": {"model": "m", "max_tokens": 9, "messages": IN_CHAT, "system": PERSONA},
    "Anthropic, blocks": {
        "model": "m",
        "messages": IN_CHAT,
        "system": [{"type": "text", "text": PERSONA}],
    },
    "Converse": {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": TASK}]}],
        "system": [{"text": PERSONA}],
    },
    "Gemini": {
        "contents": [{"role": "user", "parts": [{"text": TASK}]}],
        "systemInstruction": {"parts": [{"text": PERSONA}]},
    },
    "Gemini, client": {"model": "m", "contents": TASK, "config": {"system_instruction": PERSONA}},
    "Gemini, traced": {
        "model": "m",
        "messages": IN_CHAT,
        "config": {"system_instruction": PERSONA, "temperature": 0},
    },
}


@for_each("client", REQUESTS)
@for_each("path", ["row", "evaluator"])
def test_what_a_model_is_told_beside_the_messages_of_a_request_is_shown_first(client, path):
    judge, model = judge_and_model("In its role?", needs=("instructions",))
    if path == "row":
        verdict = judge.invoke({"input": REQUESTS[client], "output": "Arr."})["verdict"]
        assert verdict["failures"] == []
    else:
        as_evaluator(judge)(inputs=REQUESTS[client], outputs={"answer": "Arr."})
    [prompt] = map(unfenced, model.prompts)
    assert prompt.index(f"[system]\n{PERSONA}") < prompt.index(TASK)
    assert (prompt.count(PERSONA), prompt.count(TASK)) == (1, 1)


NOTED = {"model": "m", "instructions": PERSONA}  # as a data set's columns are named too
NO_REQUESTS: dict[str, dict[str, Any]] = {
    "no model": {"messages": IN_CHAT, "system": PERSONA},
    "a question": {"question": TASK, **NOTED},
    "a text": {"input": TASK, **NOTED},
    "data": {"input": {"question": TASK, "k": 3}, **NOTED},
    "an answer": {"messages": IN_CHAT, "system": PERSONA, "model": "m", "response": "Arr."},
}


@for_each("inputs", NO_REQUESTS)
@for_each("path", ["row", "evaluator"])
def test_what_is_not_plainly_a_request_to_a_model_has_no_system_message(inputs, path):
    judge, model = judge_and_model("Good?")
    if path == "row":
        judge.invoke({"input": NO_REQUESTS[inputs], "output": "Arr."})
    else:
        as_evaluator(judge)(inputs=NO_REQUESTS[inputs], outputs="Arr.")
    assert "[system]" not in unfenced(model.prompts[0])
    assert f"\n{TASK}\n" in unfenced(model.prompts[0])


LABELLED: list[dict[str, Any]] = [
    {"input": TASK, "output": "Arr.", **NOTED},
    {"input": TASK, "response": "Arr.", **NOTED},
    {"messages": IN_CHAT, "response": "Arr.", "system": "bot1", "model": "m"},
    {"messages": [*IN_CHAT, {"role": "assistant", "content": "Arr."}], "system": "b", "model": "m"},
]


@for_each("row", [0, 1, 2, 3])
def test_a_row_of_a_table_is_no_request_to_a_model_in_any_form(row):
    fields = LABELLED[row]
    make: Any = namedtuple
    types: Any = dict.fromkeys(fields, (Any, ...))
    whole: Any = create_model("Row", **types)
    prompts = []
    for each in (fields, make("Row", fields)(**fields), whole(**fields)):
        judge, model = judge_and_model("Good?")
        [judged] = judge_many(judge, [each])
        assert judged["judged"]
        prompts += model.prompts
    assert [prompts[0]] * 3 == prompts
    assert "[system]" not in unfenced(prompts[0])


def test_data_and_assertions_of_an_example_are_said_and_have_feedback_of_their_own():
    judge, _ = judge_and_model("Is it right?")
    told = as_evaluator(judge)(inputs={"question": TASK}, outputs={"city": "Oslo", "days": 2})
    assert "none of its keys is a usual one: 'city', 'days'" in told["comment"]
    judge, _ = judge_and_model("")
    graded: Any = as_evaluator(judge, rubric="assertions")(
        inputs={"question": TASK},
        outputs={"answer": "Thanks."},
        reference_outputs={"assertions": [*CRITERIA, {"key": "brief", "comment": "Short."}]},
    )
    assert {"polite", "brief"} <= {each["key"] for each in graded["results"]}


def test_attachments_of_an_example_are_sent_in_place():
    judge, model = judge_and_model("Does the answer fit the picture?")
    file = BytesIO(b"\x89PNG\r\n\x1a\n")
    as_evaluator(judge)(
        inputs={"question": TASK},
        outputs={"answer": "In Oslo."},
        attachments={"map.png": {"mime_type": "image/png", "reader": file}},
    )
    ((*_, sent),) = model.messages
    assert any(part.get("type") in ("image", "image_url") for part in sent.content)
