"""Each kind of judge in each place where it is plugged in: SC², a baseline, ALLURE."""

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from langchain_judges import JudgeMiddleware, as_comparative_evaluator, as_evaluator, best_of
from langchain_judges.integrations.classic import (
    JudgePairwiseEvaluator,
    JudgeStringEvaluator,
    load_classic_evaluator,
)
from langchain_judges.integrations.tool import judge_tool
from langchain_judges.methods.registry import METHODS as METHODS_BY_NAME
from langchain_judges.methods.rubric.criteria import ready
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import FEW, PAIR, answer, item_of, of_method
from tests.test_evaluators import BAD, GOOD, QUESTION, a_run, an_example

PAIRS = ["sc2", "relative"]
METHODS = pytest.mark.parametrize("method", [*PAIRS, "allure"])
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


def said_by(method):
    """Return what a method itself says of the texts that every test here plugs in."""
    item = {**item_of(method), "input": "Why?"}
    if method == "allure":
        item["expected"] = "bad"
    return of_method(method).invoke(item)["verdict"]


@KINDS
@METHODS
async def test_an_evaluator_says_what_its_judge_says(method, kind):
    evaluator, verdict = as_evaluator(of_method(method)), said_by(method)
    row = a_run(GOOD), an_example(BAD)
    result: Any = (
        evaluator.evaluate_run(*row) if kind == "sync" else await evaluator.aevaluate_run(*row)
    )
    assert (result.key, result.score) == (method, 1)
    assert result.comment == verdict["rationale"]
    assert result.value == verdict.get("preference", verdict.get("label"))
    fields = {"inputs": QUESTION, "outputs": GOOD, "reference_outputs": BAD}
    feedback: Any = evaluator(**fields) if kind == "sync" else await evaluator.acall(**fields)
    assert (feedback["score"], feedback["comment"]) == (1, verdict["rationale"])


@KINDS
async def test_a_label_is_against_the_reference_or_the_context(kind):
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(of_method("allure", model))

    async def prompt(**fields):
        request = {"inputs": QUESTION, **fields}
        sync = kind == "sync"
        feedback: Any = evaluator(**request) if sync else await evaluator.acall(**request)
        assert feedback["score"] == int(fields["outputs"] == GOOD)
        assert feedback["comment"] == "because"
        return model.prompts[-1]

    first_prompt = await prompt(outputs=GOOD, reference_outputs={"answer": "known"})
    assert "known" in first_prompt.split("<expected-answer-")[1].split("</expected")[0]
    assert ready("correctness").criteria[0].description in first_prompt
    alone = await prompt(outputs=BAD, context="It rained.")
    assert "Why?" in alone.split("<request-")[1].split("</request")[0]
    assert "It rained." in alone.split("<source-")[1].split("</source")[0]
    assert ready("consistency").criteria[0].description in alone
    assert "<expected-answer-" not in alone


@METHODS
def test_runs_are_compared(method):
    compare = as_comparative_evaluator(of_method(method))
    one, two = a_run(BAD), a_run(GOOD)
    scores = compare([one, two], an_example({"answer": "good"}))["scores"]
    assert scores == {one.id: 0, two.id: 1}


@KINDS
@METHODS
async def test_an_agent_is_sent_back_until_its_answer_is_good(method, kind):
    answers = ["bad", "good good"]
    writer = FakeChatModel(replies=lambda prompt: answers.pop(0))
    middleware = JudgeMiddleware(of_method(method), reference="good")
    agent = create_agent(writer, middleware=[middleware])
    request: Any = {"messages": [HumanMessage("Why?")]}
    state = agent.invoke(request) if kind == "sync" else await agent.ainvoke(request)
    assert [each["score"] for each in state["judged"]] == [0, 1]
    assert state["messages"][-1].text == "good good"


@KINDS
@METHODS
async def test_a_judge_is_a_tool(method, kind):
    tool = judge_tool(of_method(method))
    item = {**item_of(method), "input": "Why?"}
    call = {"name": tool.name, "args": item, "id": "1", "type": "tool_call"}
    message = tool.invoke(call) if kind == "sync" else await tool.ainvoke(call)
    content = json.loads(message.content)
    assert content.get("preference", content.get("label")) in {"A", 1}
    assert content["rationale"] == message.artifact["rationale"]


@pytest.mark.filterwarnings("ignore:This API is in beta")
@for_each("method", METHODS_BY_NAME)
def test_as_a_tool_a_judge_needs_what_its_input_needs(method):
    judge, item = of_method(method), item_of(method)
    tool = judge.as_tool()
    schema = tool.args_schema.model_json_schema()
    sides = ["output_a", "output_b"] if METHODS_BY_NAME[method].takes == "pair" else ["output"]
    assert schema["required"] == ["input", *sides]
    assert set(schema["properties"]) > {"input", *sides, "id"}
    assert tool.invoke(item)["verdict"] == judge.invoke(item)["verdict"]


@KINDS
@METHODS
async def test_the_best_of_three(method, kind):
    best = best_of(3, of_method(method))
    fields = {"input": "Why?", "answers": ["x", "good good", "y"], "reference": "good"}
    result = best.invoke(fields) if kind == "sync" else await best.ainvoke(fields)
    assert (result["output"], result["failures"]) == ("good good", [])


@KINDS
@METHODS
async def test_classic_evaluators(method, kind):
    model, verdict = FakeChatModel(replies=answer), said_by(method)
    evaluator = load_classic_evaluator(method, llm=model, **FEW.get(method, {}))
    fields = {"prediction": PAIR["output_a"], "input": "Why?"}
    if method in PAIRS:
        assert isinstance(evaluator, JudgePairwiseEvaluator)
        fields["prediction_b"] = PAIR["output_b"]
        way = evaluator.evaluate_string_pairs, evaluator.aevaluate_string_pairs
    else:
        evaluator = JudgeStringEvaluator(of_method(method), reference=True)
        fields["reference"] = "bad"
        way = evaluator.evaluate_strings, evaluator.aevaluate_strings
    result = way[0](**fields) if kind == "sync" else await way[1](**fields)
    assert (result["score"], result["verdict"]) == (1, verdict)
    assert result["reasoning"] == verdict["rationale"]
