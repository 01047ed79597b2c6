"""What each path shows a judge of what the user gave: under its name, and nothing else."""

import asyncio
import json
import re
import uuid
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
    messages_to_dict,
)
from typer.testing import CliRunner

from langchain_judges import (
    JudgeMiddleware,
    as_comparative_evaluator,
    as_evaluator,
    best_of,
    create_allure_judge,
    create_relative_judge,
)
from langchain_judges.cli import app
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations import serve
from langchain_judges.integrations.classic import JudgePairwiseEvaluator, JudgeStringEvaluator
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.rows.media import mark_of
from langchain_judges.testing import FakeModelServer, reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer, answer_call
from tests.test_evaluators import a_run, an_example

TASK, TEXT, KNOWN, SOURCE = "Greet the guest.", "Hey you.", "Good evening.", "The guest is Ann."
RUBRIC = "Is the reply polite?"
NAMES = {"reference": "expected-answer", "source": "source"}


def invoke(judge, reference=None, source=None, output=TEXT):
    fields = {"expected": reference, "source": source}
    case = {"input": TASK, "output": output} | {k: v for k, v in fields.items() if v}
    judge.invoke(case)


def called(judge, reference=None, source=None, output=TEXT):
    as_evaluator(judge)(
        inputs={"question": TASK}, outputs=output, reference_outputs=reference, context=source
    )


def rows(judge, reference=None, source=None, output=TEXT):
    inputs = {"question": TASK, **({"context": source} if source else {})}
    example = an_example(reference and {"answer": reference})
    example = example.model_copy(update={"inputs": inputs})
    run = a_run({"answer": output})
    as_evaluator(judge, reference="answer").evaluate_run(run, example)


def compared(judge, reference=None, source=None, output=TEXT):
    example = an_example(reference and {"answer": reference})
    inputs = {"question": TASK, "documents": [source] if source else None}
    example = example.model_copy(update={"inputs": inputs})
    compare = as_comparative_evaluator(judge, reference="answer")
    compare([a_run({"answer": output})], example)


def middleware(judge, reference=None, source=None, output=TEXT):
    options = {"reference": reference, "context": source, "max_revisions": 0}
    guard = JudgeMiddleware(judge, **options)
    final_text = output[-1] if isinstance(output, list) else output
    agent_made = create_agent(FakeChatModel(replies=[final_text]), middleware=[guard])
    before = output[:-1] if isinstance(output, list) else []
    agent_made.invoke({"messages": before or [HumanMessage(TASK)]})


def as_tool(judge, reference=None, source=None, output=TEXT):
    fields = {"input": TASK, "output": output, "expected": reference, "source": source}
    judge.as_tool().invoke({name: text for name, text in fields.items() if text})


def tool(judge, reference=None, source=None):
    fields = {"input": TASK, "output": TEXT, "expected": reference, "source": source}
    judge_tool(judge).invoke({name: text for name, text in fields.items() if text})


def best(judge, reference=None, source=None, output=TEXT):
    fields = {"input": TASK, "answers": [output], "reference": reference, "context": source}
    best_of(1, judge).invoke(fields)


def classic(judge, reference=None, source=None, output=TEXT):
    JudgeStringEvaluator(judge, reference=bool(reference)).evaluate_strings(
        prediction=output, input=TASK, reference=reference, context=source
    )


@contextmanager
def over_http(judge):
    """Serve a judge's fake model; what it is sent is recorded as if it ran in this process."""
    with FakeModelServer(answer_call) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("OPENAI_BASE_URL", server.url)
        # The server keeps models by name: each test has one of its own.
        patch.setenv("JUDGES_MODEL", f"openai:{uuid.uuid4()}")
        yield
        judge.model.prompts.extend(call.prompt for call in server.calls)
        judge.model.messages.extend(
            convert_to_messages(call.body["messages"]) for call in server.calls
        )


def row_of(reference, source, output):
    fields = {"expected": reference, "source": source}
    output = output if isinstance(output, str) else convert_to_openai_messages(output)
    return {"input": TASK, "output": output} | {k: v for k, v in fields.items() if v}


def command_line(judge, reference=None, source=None, output=TEXT):
    rubric = judge.options.rubric
    options = ["--set", f"rubric={rubric}"] if rubric else []
    with over_http(judge), TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text(json.dumps(row_of(reference, source, output)))
        args = ["judge", str(rows), "--method", "allure", "--model", "openai:fake", *options]
        CliRunner().invoke(app, [*args, "-o", str(Path(folder, "out.jsonl"))])


async def served(name, runtime):
    return await serve(name)({}, runtime)


def assistant(judge, reference=None, source=None, output=TEXT):
    """Run an assistant of a LangGraph server, without the server."""
    context = {"rubric": judge.options.rubric} if judge.options.rubric else {}
    runtime: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=context))
    with over_http(judge):
        graph = asyncio.run(served("allure", runtime))
        graph.invoke(row_of(reference, source, output))


PATHS = [
    *(invoke, as_tool, called, rows, compared, middleware, tool, best, classic),
    *(command_line, assistant),
]
"""Every path of a judge of one text."""
WHOLE = [path for path in PATHS if path not in (tool, best)]
"""Those that judge an agent's whole work; the middleware on request."""
EACH = for_each("path", PATHS, ids=lambda path: path.__name__)


def blocks(prompt):
    """Return what stands between the tags of a prompt, by the name of the tag."""
    fenced = r"<(([a-z-]+?)(?:-\d)?-[0-9a-f]{10})>\n(.*?)\n</\1>"
    return {name: unfenced(text) for _, name, text in re.findall(fenced, prompt, re.DOTALL)}


def prompt_of(path, fields, **options):
    model = FakeChatModel(replies=answer)
    path(create_allure_judge(model, **options), **fields)
    (prompt,) = model.prompts
    return prompt


CALL = {"name": "look_up", "args": {"guest": "Ann"}, "id": "1"}
WORK = [
    HumanMessage(TASK),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("x" * 2500, tool_call_id="1"),
    AIMessage("Good evening, Ann."),
]
NO_ANSWER = "(there is no final answer)"
SHOWN = (
    '[call-of-look_up]\n{"guest": "Ann"}\n\n'
    f"[result-of-look_up]\n{'x' * 1000}\n[… 500 characters left out …]\n{'x' * 1000}\n\n"
    "[final-answer]\nGood evening, Ann."
)
FORMS = {
    "objects": WORK,
    "dictionaries": convert_to_openai_messages(WORK),
    "dumps": messages_to_dict(WORK),
    "serialised": [dumpd(message) for message in WORK],
}


@for_each("form", FORMS)
def test_an_agents_work_is_shown_with_its_calls_results_and_final_answer(form):
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    judge.invoke({"input": TASK, "output": FORMS[form]})
    as_evaluator(judge)(inputs={"question": TASK}, outputs={"messages": FORMS[form]})
    as_evaluator(judge).evaluate_run(a_run({"messages": FORMS[form]}), None)
    as_comparative_evaluator(judge)([a_run({"messages": FORMS[form]})], None)
    assert [blocks(prompt)["response"] for prompt in model.prompts] == [SHOWN] * 4


@for_each("path", WHOLE, ids=lambda path: path.__name__)
def test_an_agents_work_is_the_response_on_every_path(path):
    assert blocks(prompt_of(path, {"output": WORK}, rubric=RUBRIC))["response"] == SHOWN


def test_the_best_of_several_is_chosen_by_final_answers():
    prompt = prompt_of(best, {"output": WORK}, rubric=RUBRIC)
    assert blocks(prompt)["response"] == "Good evening, Ann."


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/ann.png"}}
PICTURE = [HumanMessage(TASK), AIMessage([{"type": "text", "text": "Ann:"}, IMAGE])]


@for_each("path", [*WHOLE, best], ids=lambda path: path.__name__)
def test_an_image_is_sent_in_the_response_on_every_path(path):
    model = FakeChatModel(replies=answer)
    path(create_allure_judge(model, rubric=RUBRIC), output=PICTURE)
    ((*_, requests),) = model.messages
    before, image, after = cast("Any", requests.content)[:3]
    assert image == IMAGE
    assert before["text"].endswith(f"Ann:\n{mark_of(IMAGE)}")
    assert after["text"].startswith("\n</response-")


def pair_invoked(judge, reference=None, a=TEXT, b=KNOWN):
    pair = {"input": TASK, "output_a": a, "output_b": b, "reference": reference}
    judge.invoke(pair)


def pair_as_tool(judge, reference=None, a=TEXT, b=KNOWN):
    pair = {"input": TASK, "output_a": a, "output_b": b}
    judge.as_tool().invoke({**pair, "reference": reference} if reference else pair)


def pair_called(judge, reference=None, a=TEXT, b=KNOWN):
    evaluator = as_evaluator(judge, baseline=lambda inputs: {"answer": b})
    evaluator(inputs={"question": TASK}, outputs={"answer": a}, reference_outputs=reference)


def pair_of_runs(judge, reference=None, a=TEXT, b=KNOWN):
    example = an_example(reference and {"answer": reference})
    example = example.model_copy(update={"inputs": {"question": TASK}})
    compare = as_comparative_evaluator(judge, reference="answer")
    compare([a_run({"answer": a}), a_run({"answer": b})], example)


def pair_classic(judge, reference=None, a=TEXT, b=KNOWN):
    JudgePairwiseEvaluator(judge, reference=bool(reference)).evaluate_string_pairs(
        prediction=a, prediction_b=b, input=TASK, reference=reference
    )


def pair_row(reference, a, b):
    texts = [t if isinstance(t, str) else convert_to_openai_messages(t) for t in (a, b)]
    pair = {"input": TASK, "output_a": texts[0], "output_b": texts[1]}
    return {**pair, "reference": reference} if reference else pair


def own_options(judge):
    rubric = judge.options.instructions
    return {"orders": "none"} | ({"instructions": rubric} if rubric else {})


def pair_command_line(judge, reference=None, a=TEXT, b=KNOWN):
    options = [f"--set={name}={value}" for name, value in own_options(judge).items()]
    with over_http(judge), TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text(json.dumps(pair_row(reference, a, b)))
        args = ["judge", str(rows), "--method", "relative", "--model", "openai:fake", *options]
        CliRunner().invoke(app, [*args, "-o", str(Path(folder, "out.jsonl"))])


def pair_assistant(judge, reference=None, a=TEXT, b=KNOWN):
    runtime: Any = SimpleNamespace(
        execution_runtime=SimpleNamespace(context=own_options(judge))
    )
    with over_http(judge):
        graph = asyncio.run(served("relative", runtime))
        graph.invoke(pair_row(reference, a, b))


def pair_of_middleware(judge, reference=None, a=TEXT, b=KNOWN):
    """The agent's answer is A, what it is compared with is B; there is no third text."""
    model = FakeChatModel(replies=[AIMessage(a if isinstance(a, str) else a[-1].content)])
    agent_made = create_agent(model, middleware=[JudgeMiddleware(judge, reference=b)])
    agent_made.invoke({"messages": [HumanMessage(TASK)]})


PAIRED = for_each(
    "path",
    [
        pair_invoked,
        pair_as_tool,
        pair_called,
        pair_of_runs,
        pair_classic,
        pair_command_line,
        pair_assistant,
    ],
    ids=lambda path: path.__name__,
)


@PAIRED
@pytest.mark.parametrize("reference", [None, "Good day, Ann."])
def test_a_pair_is_shown_with_its_reference_and_the_callers_rubric(path, reference):
    model = FakeChatModel(replies=answer)
    path(create_relative_judge(model, orders="none", instructions=RUBRIC), reference)
    (prompt,) = model.prompts
    reference_block = {"reference": reference} if reference else {}
    texts = {"request": TASK, "response": blocks(prompt)["response"]}
    assert blocks(prompt) == {**texts, **reference_block}
    assert prompt.index(TEXT) < prompt.index(KNOWN)
    assert f"adds: {RUBRIC}" in prompt


def test_the_middleware_compares_the_answer_with_what_it_is_given():
    model = FakeChatModel(replies=answer)
    pair_of_middleware(create_relative_judge(model, orders="none", instructions=RUBRIC))
    (prompt,) = model.prompts
    assert blocks(prompt) == {"request": TASK, "response": blocks(prompt)["response"]}
    assert prompt.index(TEXT) < prompt.index(KNOWN)
    assert f"adds: {RUBRIC}" in prompt


def test_the_best_of_several_are_compared_two_by_two():
    model = FakeChatModel(replies=answer)
    judge = create_relative_judge(model, orders="none", instructions=RUBRIC)
    best_of(2, judge, FakeChatModel(replies=[TEXT, KNOWN])).invoke([HumanMessage(TASK)])
    (prompt,) = model.prompts
    assert blocks(prompt)["request"] == TASK
    assert TEXT in prompt
    assert KNOWN in prompt
    assert f"adds: {RUBRIC}" in prompt


@PAIRED
def test_an_agents_work_and_an_image_are_compared_on_every_path(path):
    model = FakeChatModel(replies=answer)
    path(create_relative_judge(model, orders="none"), a=WORK, b=PICTURE)
    *_, requests = model.messages[0]
    first: Any = requests.content[0]
    assert SHOWN in unfenced(first["text"])
    assert IMAGE in requests.content


@for_each("kind", ["pair", "item"])
def test_a_cut_result_of_a_known_trajectory_is_reported(kind):
    model = FakeChatModel(replies=answer)
    if kind == "pair":
        case = {"input": TASK, "output_a": TEXT, "output_b": KNOWN, "reference": WORK}
        verdict = create_relative_judge(model).invoke(case)["verdict"]
    else:
        case = {"input": TASK, "output": TEXT, "expected": WORK}
        verdict = create_allure_judge(model).invoke(case)["verdict"]
    (failure,) = verdict["failures"]
    assert failure["reason"] == "input_cut"
    assert failure["unit"] == ("reference" if kind == "pair" else "expected")


def test_judges_of_pairs_compare_an_agents_work():
    model = FakeChatModel(replies=answer)
    judge = create_relative_judge(model)
    judge.invoke({"input": TASK, "output_a": WORK, "output_b": WORK[:3]})
    fields = {"outputs": {"messages": WORK}, "reference_outputs": {"messages": WORK[:3]}}
    as_evaluator(judge)(inputs=TASK, **fields)
    unfinished = SHOWN.replace("[final-answer]\nGood evening, Ann.", NO_ANSWER)
    for prompt in map(unfenced, model.prompts):
        assert SHOWN in prompt
        assert unfinished in prompt


def test_the_answer_alone_is_judged_where_its_place_is_named():
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(create_allure_judge(model, rubric=RUBRIC), output="messages.-1")
    evaluator(inputs={"question": TASK}, outputs={"messages": WORK})
    assert blocks(model.prompts[0]) == {"request": TASK, "response": "Good evening, Ann."}


def test_an_agent_with_tools_is_judged_by_what_it_did(serve):
    turns = iter([reply(None, finish="tool_calls", tool_calls=[WIRE]), reply("Done.")])
    agent = create_agent(chat(serve(lambda call: next(turns))), [look_up])
    state = agent.invoke({"messages": [HumanMessage(TASK)]})
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    as_evaluator(judge)(inputs={"question": TASK}, outputs=state)
    did = '[call-of-look_up]\n{"guest": "Ann"}\n\n[result-of-look_up]\nAnn is here.'
    assert blocks(model.prompts[0])["response"] == f"{did}\n\n[final-answer]\nDone."


def look_up(guest: str) -> str:
    """Look a guest up."""
    return f"{guest} is here."


WIRE = {
    "id": "1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"guest": "Ann"}'},
}


@EACH
@pytest.mark.parametrize("what", [(), ("reference",), ("source",), ("reference", "source")])
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
    if path in (invoke, as_tool, best, classic, assistant):
        with pytest.raises(InputError):
            path(judge)
    else:
        path(judge)
    assert model.prompts == []


def test_with_nothing_to_judge_by_the_feedback_says_what_is_needed():
    judge = create_allure_judge(FakeChatModel(replies=answer))
    result: Any = as_evaluator(judge)(inputs=TASK, outputs=TEXT)
    assert result["score"] is None
    assert result["comment"].startswith("Not judged")
    assert "needs a reference to compare with, or a source" in result["comment"]


@for_each(
    ("rubric", "fields", "need"),
    [("correctness", {"context": SOURCE}, "a reference"), ("consistency", {}, "a source")],
)
def test_a_named_rubric_needs_what_it_speaks_of(rubric, fields, need):
    judge = create_allure_judge(FakeChatModel(replies=answer), rubric=rubric)
    result: Any = as_evaluator(judge)(inputs=TASK, outputs=TEXT, **fields)
    assert (result["score"], f"the judge needs {need}" in result["comment"]) == (None, True)


def test_a_rubric_is_not_shown_a_reference_that_nobody_named():
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(create_allure_judge(model, rubric=RUBRIC))
    evaluator.evaluate_run(a_run({"answer": TEXT}), an_example({"answer": KNOWN}))
    assert blocks(model.prompts[0]) == {"request": "Why?", "response": TEXT}


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
    fields: dict[str, Any] = {"inputs": {"question": TASK}, "outputs": {"answer": TEXT}}
    fields |= CONTEXTS[case]
    model, where = FakeChatModel(replies=answer), fields.pop("where", None)
    as_evaluator(create_allure_judge(model), context=where)(**fields)
    assert blocks(model.prompts[0]) == {"request": TASK, "response": TEXT, "source": SOURCE}


def test_a_context_that_is_not_there_is_not_judged():
    model = FakeChatModel(replies=answer)
    result: Any = as_evaluator(create_allure_judge(model), context="docs")(
        inputs={"question": TASK}, outputs={"answer": TEXT}
    )
    assert (result["score"], model.prompts) == (None, [])
    assert "`context`: expected the key 'docs', got the keys 'answer'" in result["comment"]


def test_a_judge_of_pairs_reads_the_context_behind_the_task():
    model = FakeChatModel(replies=answer)
    judge = create_relative_judge(model)
    fields = {"outputs": TEXT, "reference_outputs": KNOWN, "context": SOURCE}
    as_evaluator(judge)(inputs=TASK, **fields)
    asked = f"[turn-1-user]\n{TASK}\n\n[source]\n{SOURCE}"
    assert blocks(model.prompts[0])["request"] == asked
    as_evaluator(judge)(inputs=[HumanMessage(TASK)], **fields)
    assert blocks(model.prompts[-1])["request"] == asked


@for_each("kind", ["sync", "async"])
async def test_an_unknown_keyword_is_refused_by_name(kind):
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(create_allure_judge(model, rubric=RUBRIC))
    fields = {"inputs": TASK, "outputs": TEXT, "refrence_outputs": KNOWN}
    with pytest.raises(OptionError, match="'refrence_outputs'; did you mean 'reference_outp"):
        evaluator(**fields) if kind == "sync" else await evaluator.acall(**fields)
    assert model.prompts == []


def test_the_rubric_of_the_middleware_is_the_criteria():
    model = FakeChatModel(replies=answer)
    options: dict[str, Any] = {"rubric": RUBRIC, "max_revisions": 0}
    agent_made = create_agent(
        FakeChatModel(replies=[TEXT]),
        middleware=[JudgeMiddleware(create_allure_judge(model), **options)],
    )
    agent_made.invoke({"messages": [HumanMessage(TASK)]})
    assert blocks(model.prompts[0]) == {"request": TASK, "response": TEXT}
    assert RUBRIC in model.prompts[0].split("<request-")[0]


def test_a_tool_tells_the_model_that_there_is_nothing_to_judge_by():
    judge = create_allure_judge(FakeChatModel(replies=answer))
    text = judge_tool(judge).invoke({"input": TASK, "output": TEXT})
    assert "there is nothing to judge by" in text
    fields = {"input": TASK, "output": TEXT, "source": SOURCE}
    assert json.loads(judge_tool(judge).invoke(fields))["label"] == 0
