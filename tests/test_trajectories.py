"""An agent's work as what is judged, in every form in which people have it."""

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    messages_to_dict,
)
from langgraph.types import StateSnapshot
from typer.testing import CliRunner

from langchain_judges import (
    JudgeMiddleware,
    as_comparative_evaluator,
    as_evaluator,
    create_allure_judge,
)
from langchain_judges.cli import app
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeModelServer, FakeToolModel
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer, answer_call, of_method
from tests.test_evaluators import a_run
from tests.test_shown import RUBRIC, TASK, blocks

CALL = {"name": "look_up", "args": {"guest": "Ann"}, "id": "1"}
WORK = [
    HumanMessage(TASK),
    AIMessage("I look her up.", tool_calls=[CALL]),
    ToolMessage("Ann is here.", tool_call_id="1"),
    AIMessage("Good evening, Ann."),
]
DID = (
    "[assistant]\nI look her up.\n\n"
    '[call-of-look_up]\n{"guest": "Ann"}\n\n[result-of-look_up]\nAnn is here.\n\n'
    "[final-answer]\nGood evening, Ann."
)
READABLE = DID.replace("-of-", " of ").replace("final-", "final ")
LONG = [*WORK[:2], ToolMessage("x" * 2500, tool_call_id="1"), AIMessage("All good.")]


def thread_of(messages: Any) -> StateSnapshot:
    return StateSnapshot({"messages": messages}, (), {}, None, None, None, (), ())


STATES = {
    "state": {"messages": WORK},
    "snapshot": thread_of(WORK),
    "thread": {"values": {"messages": messages_to_dict(WORK)}, "next": [], "tasks": []},
}


@for_each("form", STATES)
def test_states_of_agents_and_threads_are_read_as_they_come(form):
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    judge.invoke({"input": TASK, "output": STATES[form]})
    as_evaluator(judge)(inputs=TASK, outputs=STATES[form])
    assert [blocks(prompt)["response"] for prompt in model.prompts] == [DID] * 2


def test_of_a_state_without_tools_the_last_message_is_judged():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    judge.invoke({"input": TASK, "output": {"messages": [WORK[0], WORK[3]]}})
    assert blocks(model.prompts[0])["response"] == "Good evening, Ann."


@for_each("method", METHODS)
def test_a_cut_result_is_reported_beside_a_verdict_that_stands(method):
    model = FakeChatModel(replies=answer)
    if METHODS[method].takes == "item":
        case: dict[str, Any] = {"input": TASK, "output": LONG, "expected": "good"}
        field = "output"
    else:
        case, field = {"input": TASK, "output_a": LONG, "output_b": "bad"}, "output_a"
    verdict = of_method(method, model).invoke(case)["verdict"]
    assert verdict.get("preference", verdict.get("label")) is not None
    [failure] = [each for each in verdict["failures"] if each["step"] == "begin"]
    assert (failure["reason"], failure["unit"]) == ("input_cut", field)
    assert (
        failure["detail"]
        == "1 of the tool results are shown without their middle, in 2,000 characters"
    )
    assert any("[… 500 characters left out …]" in prompt for prompt in model.prompts)


def test_an_evaluator_reports_a_cut_result_too():
    judge = create_allure_judge(FakeChatModel(replies=answer), rubric=RUBRIC)
    feedback: Any = as_evaluator(judge)(inputs=TASK, outputs={"messages": LONG})
    assert feedback["score"] is not None
    assert [each["reason"] for each in feedback["metadata"]["failures"]] == ["input_cut"]


HISTORY = [*WORK, HumanMessage("And Bob?")]
TOLD = (
    f"[turn-1-user]\n{TASK}\n\n"
    '[turn-1-assistant]\nI look her up.\n\n[call-of-look_up]\n{"guest": "Ann"}\n\n'
    "[result-of-look_up]\nAnn is here.\n\n[turn-1-assistant]\nGood evening, Ann.\n\n"
    "[turn-2-user]\nAnd Bob?"
)


def test_calls_of_tools_in_the_task_are_shown():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    judge.invoke({"input": HISTORY, "output": "Good."})
    judge.invoke({"input": {"messages": messages_to_dict(HISTORY)}, "output": "Good."})
    as_evaluator(judge)(inputs={"messages": HISTORY}, outputs="Good.")
    assert [blocks(prompt)["request"] for prompt in model.prompts] == [TOLD] * 3


@for_each("field", ["reference", "expected"])
def test_a_reference_may_be_an_agents_work(field):
    model = FakeChatModel(replies=answer)
    method = "allure" if field == "expected" else "relative"
    sides = ["output"] if field == "expected" else ["output_a", "output_b"]
    texts = dict(zip(sides, ["good", "bad"], strict=False))
    for form in (WORK, {"messages": WORK}, json.loads(json.dumps(messages_to_dict(WORK)))):
        of_method(method, model).invoke({"input": TASK, **texts, field: form})
    tag = "expected-answer" if field == "expected" else "reference"
    assert {blocks(prompt)[tag] for prompt in model.prompts} == {READABLE}


def a_child(kind, name, inputs=None, outputs=None, children=()):
    run = a_run(outputs)
    changes = {"run_type": kind, "name": name, "inputs": inputs or {}}
    return run.model_copy(update={**changes, "child_runs": list(children)})


def traced(answer):
    """Return an agent's run as LangSmith has it: its outputs are the answer alone."""
    tool = a_child("tool", "look_up", {"guest": "Ann"}, {"output": "Ann is here."})
    inner = a_child("tool", "within", {"x": 1}, {"output": "never shown"})
    tool = tool.model_copy(update={"child_runs": [inner]})
    below = [a_child("llm", "chat"), a_child("chain", "tools", children=[tool])]
    return a_child("chain", "agent", {"question": TASK}, answer, below)


USED = '[call-of-look_up]\n{"guest": "Ann"}\n\n[result-of-look_up]\nAnn is here.\n\n'


def test_the_tools_of_a_runs_child_runs_are_shown():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    run = traced({"output": "Good evening."})
    as_evaluator(judge).evaluate_run(run, None)
    as_comparative_evaluator(judge)([run], None)
    responses = [blocks(prompt)["response"] for prompt in model.prompts]
    assert responses == [f"{USED}[final-answer]\nGood evening."] * 2


def test_of_a_run_whose_answer_is_named_the_answer_alone_is_judged():
    model = FakeChatModel(replies=answer)
    evaluator = as_evaluator(create_allure_judge(model, rubric=RUBRIC), output="output")
    evaluator.evaluate_run(traced({"output": "Good evening."}), None)
    assert blocks(model.prompts[0])["response"] == "Good evening."


def test_the_command_line_judges_an_agents_work(tmp_path, monkeypatch):
    messages = convert_to_openai_messages(LONG)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"input": TASK, "output": messages}))
    with FakeModelServer(answer_call) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        options = [
            "--model",
            "fake",
            "--base-url",
            server.url,
            "-o",
            str(tmp_path / "out.jsonl"),
        ]
        rubric = ["--method", "allure", "--set", f"rubric={RUBRIC}"]
        result = CliRunner().invoke(
            app, ["judge", str(tmp_path / "rows.jsonl"), *rubric, *options]
        )
        assert result.exit_code == 0, result.output
        [call] = server.calls
    assert "[call-of-look_up]" in blocks(call.prompt)["response"]
    [line] = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [each["reason"] for each in json.loads(line)["verdict"]["failures"]] == ["input_cut"]


def an_agent(turns, middleware=()):
    """Return an agent with a real tool, whose model takes the given turns."""
    model = AgentModel(replies=turns)
    return create_agent(model, [look_up], middleware=list(middleware))


class AgentModel(FakeToolModel):
    """Calls tools by its own script."""

    def _message(self, reply, settings):
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


def look_up(guest: str) -> str:
    """Look a guest up."""
    return f"{guest} is here."


TURNS = [AIMessage("", tool_calls=[CALL]), "Good evening, Ann."]
BY_TOOL = f"{USED}[final-answer]\nGood evening, Ann."


@for_each(("whole", "expected"), [(True, BY_TOOL), (False, "Good evening, Ann.")])
async def test_the_middleware_judges_the_work_or_the_answer(whole, expected):
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    guard = JudgeMiddleware(judge, trajectory=whole, max_revisions=0)
    agent = an_agent(TURNS, [guard])
    state = await agent.ainvoke({"messages": [HumanMessage(TASK)]})
    assert blocks(model.prompts[0]) == {"request": TASK, "response": expected}
    assert state["messages"][-1].text == "Good evening, Ann."


def test_a_rejected_draft_is_no_part_of_the_work():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    agent = an_agent([TURNS[0], "Hey.", "All good."], [JudgeMiddleware(judge, trajectory=True)])
    state = agent.invoke({"messages": [HumanMessage(TASK)]})
    responses = [blocks(prompt)["response"] for prompt in model.prompts]
    assert responses == [f"{USED}[final-answer]\n{text}" for text in ("Hey.", "All good.")]
    assert [each["answer"] for each in state["judged"]] == ["Hey.", "All good."]


def test_without_a_reference_the_work_meets_the_work_before_it():
    model = FakeChatModel(replies=answer)
    guard = JudgeMiddleware(of_method("relative", model), trajectory=True)
    agent = an_agent([TURNS[0], "Hey.", "All good."], [guard])
    agent.invoke({"messages": [HumanMessage(TASK)]})
    texts = (f"{USED}[final-answer]\n{text}" for text in ("Hey.", "All good."))
    assert all(text in unfenced(model.prompts[0]) for text in texts)


def test_tools_of_earlier_turns_stand_in_the_task_of_the_middleware():
    model = FakeChatModel(replies=answer)
    judge = create_allure_judge(model, rubric=RUBRIC)
    agent = an_agent(["Good."], [JudgeMiddleware(judge, max_revisions=0)])
    agent.invoke({"messages": HISTORY})
    assert blocks(model.prompts[0]) == {"request": TOLD, "response": "Good."}


def test_an_evaluator_takes_the_state_of_an_agent_with_tools():
    state = an_agent(TURNS).invoke({"messages": [HumanMessage(TASK)]})
    model = FakeChatModel(replies=answer)
    as_evaluator(create_allure_judge(model, rubric=RUBRIC))(inputs=TASK, outputs=state)
    assert blocks(model.prompts[0]) == {"request": TASK, "response": BY_TOOL}
