"""Tools that models call by themselves, on the wire, and judges with tools everywhere."""

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from langchain_judges import JudgeMiddleware, create_rubric_judge
from langchain_judges.cli.flags import PlanFlags
from langchain_judges.cli.judge_flags import tell_plan
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.methods.registry import estimate_calls
from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, error, reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judges import answer_call
from tests.test_lookups import CONSULTS, ITEM, rubric, wants


def calls_of(*calls: tuple[str, str], text: str | None = None) -> ServerReply:
    """A reply as OpenAI writes it: several calls of tools, each a name and its arguments."""
    named = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": given}}
        for n, (name, given) in enumerate(calls)
    ]
    return reply(text, finish="tool_calls", tool_calls=named)


def calling(*calls: tuple[str, str], text: str | None = None):
    """A server whose model calls tools once, says then that it has all, and judges."""

    def behave(call: ServerCall) -> Any:
        if CONSULTS not in call.prompt:
            return answer_call(call)
        done = "Looked up before" in call.prompt
        return reply("Nothing is left to check.") if done else calls_of(*calls, text=text)

    return behave


BREAD = ("price", '{"item": "bread"}')


def test_a_model_that_calls_tools_calls_them_by_itself_several_at_once(serve):
    server = serve(calling(BREAD, ("price", '{"item": "milk"}'), BREAD))
    verdict = rubric(chat(server)).invoke(ITEM)["verdict"]
    assert [each["text"] for each in verdict["lookups"]] == [
        "bread costs 7 euros",
        "milk costs 7 euros",
    ]
    assert verdict["usage"]["calls"] == len(server.calls) == 3
    first, second, judged = (call.body for call in server.calls)
    assert [each["function"]["name"] for each in first["tools"]] == ["price"]
    assert "response_format" not in first
    assert "milk costs 7 euros" in second["messages"][-1]["content"]
    assert "tools" not in judged
    assert verdict["failures"] == []


@for_each(
    ("call", "said"),
    [
        (("price", '{"item": '), "Field required"),
        (("rob", '{"bank": 1}'), "there is no tool 'rob'; there are price"),
    ],
)
def test_a_call_that_cannot_be_made_is_told_beside_those_that_can(serve, call, said):
    server = serve(calling(call, BREAD))
    verdict = rubric(chat(server)).invoke(ITEM)["verdict"]
    found = {each["status"]: each["text"] for each in verdict["lookups"]}
    assert (said in found["error"], found["ok"]) == (True, "bread costs 7 euros")
    assert [each["step"] for each in verdict["failures"]] == ["consult"]
    assert verdict["label"] is not None


@for_each("given", ["[1]", "7", '"bread"', "true"])
def test_arguments_that_are_no_object_are_paid_once_and_told(serve, given):
    server = serve(calling(("price", given), BREAD))
    verdict = rubric(chat(server)).invoke(ITEM)["verdict"]
    assert verdict["usage"]["calls"] == len(server.calls) == 3
    assert verdict["usage"]["by_step"]["consult"]["retries"] == 0
    assert {each["status"] for each in verdict["lookups"]} == {"error", "ok"}
    assert [each["unit"] for each in verdict["failures"]] == ["price"]


def test_a_verdict_beside_a_call_is_none(serve):
    said = '{"explanation": "Sure.", "label": "0"}'
    judge = rubric(chat(server := serve(calling(BREAD, text=said))))
    verdict = judge.invoke({**ITEM, "output": "good"})["verdict"]
    assert (verdict["label"], len(verdict["lookups"])) == (1, 1)
    assert not any(said in call.prompt for call in server.calls)


def test_a_server_that_takes_no_tools_is_asked_for_a_list_of_calls(serve):
    def behave(call: ServerCall) -> Any:
        if call.body.get("tools"):
            return error(400, "This model does not support tools.")
        if CONSULTS not in call.prompt:
            return answer_call(call)
        wanted = [] if "Looked up before" in call.prompt else [BREAD]
        return {"calls": [{"tool": name, "arguments": given} for name, given in wanted]}

    server = serve(behave)
    verdict = rubric(chat(server)).invoke(ITEM)["verdict"]
    assert [each["text"] for each in verdict["lookups"]] == ["bread costs 7 euros"]
    assert [bool(call.body.get("tools")) for call in server.calls] == [True, *[False] * 3]
    listed = json.dumps(server.calls[1].body["response_format"])
    assert '"enum": ["price"]' in listed
    assert '"maxItems": 8' in listed


def test_a_row_without_room_is_looked_into_by_itself_and_no_other():
    long = {**ITEM, "output": "x " * 20_000 + "7 euros." + " y" * 20_000}
    judge = create_rubric_judge(
        wants(("search", {"text": "7 euros"})), rubric="Is it right?", context=4_000
    )
    verdict = judge.invoke(long)["verdict"]
    assert "x 7 euros. y" in verdict["lookups"][0]["text"]
    assert verdict["failures"] == []
    assert "lookups" not in judge.invoke(ITEM)["verdict"]
    assert list(judge.nodes) == ["__start__", "evaluate"]


def test_where_nothing_was_looked_up_the_verdict_says_what_was_cut():
    long = {**ITEM, "output": "x " * 40_000}
    judge = create_rubric_judge(wants(), rubric="Is it right?", context=4_000)
    [failure] = judge.invoke(long)["verdict"]["failures"]
    assert failure["reason"] == "input_cut"


@for_each(
    ("reason", "named"),
    [
        ("It says so [look-up 2].", 'Look-ups that decided: 2 price({"item": "milk"}).'),
        ("It says so [look-up 7].", "Looked up: price."),
        ("It says so.", "Looked up: price."),
    ],
)
def test_the_rationale_names_the_look_ups_that_decided(reason, named):
    asked = wants(("price", {"item": "bread"}), ("price", {"item": "milk"}))

    def replies(prompt):
        if CONSULTS in prompt:
            return asked.replies(prompt)
        return {"explanation": reason, "label": "1"}

    verdict = rubric(FakeChatModel(replies=replies)).invoke(ITEM)["verdict"]
    assert verdict["rationale"].endswith(named)


def test_the_most_calls_are_told_before_a_run(capsys):
    spec = {"method": "rubric", "model": "local", "options": {"rubric": "Is it right?"}}
    tell_plan(estimate_calls(spec), 2, 100, PlanFlags(dry_run=True))
    said = capsys.readouterr()
    told = " ".join((said.out + said.err).split())
    assert "at most 2 calls" in told
    assert "up to 4 calls" in told
    own = {"rubric": "Is it right?", "tools": ["tests.test_lookups:price"]}
    assert estimate_calls({**spec, "options": own}).calls == 5


# ---- wherever a judge stands


def test_members_of_a_jury_and_stages_of_a_cascade_look_up_on_their_own():
    jury = create_jury([rubric(wants(("price", {"item": f"{n}"}))) for n in range(3)])
    assert jury.invoke(ITEM)["verdict"]["usage"]["calls"] == 9
    first = rubric(wants(("price", {"item": "bread"})))
    cascade = create_cascade([first, rubric(wants())], thresholds=0.0)
    # Unsure, as nothing measured its confidence: 3 calls, and 2 of the next.
    assert cascade.invoke(ITEM)["verdict"]["usage"]["calls"] == 5


def test_a_stream_tells_look_ups_as_they_come():
    judge = rubric(wants(("price", {"item": "bread"})))
    kinds = [event["kind"] for event in judge.stream(ITEM, stream_mode="custom")]
    assert kinds == ["reply", "lookup", "reply", "reply", "subscore", "verdict"]


def test_an_agents_answer_is_judged_with_look_ups():
    judge = rubric(wants(("price", {"item": "bread"})))
    writer = FakeChatModel(replies=lambda _: "7 euros.")
    agent = create_agent(writer, middleware=[JudgeMiddleware(judge, max_revisions=0)])
    state = agent.invoke({"messages": [HumanMessage("What does bread cost?")]})
    assert state["judged"][0]["verdict"]["lookups"][0]["text"] == "bread costs 7 euros"


def test_a_client_of_a_server_names_no_tools():
    judge = create_rubric_judge("local", rubric="Is it right?")
    options = json.dumps(judge.get_context_jsonschema())
    assert '"instructions"' in options
    assert not any(f'"{name}"' in options for name in ("tools", "evidence_tools"))


@for_each("calls", [5, ["x"], {"a": 1}, [{"function": {"arguments": "[" * 100_000}}]])
def test_calls_of_another_form_are_no_bug(monkeypatch, calls):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    server = FakeModelServer(lambda _: reply(None, tool_calls=calls))
    with server:
        failures = rubric(chat(server)).invoke(ITEM)["verdict"]["failures"]
    assert {each["reason"] for each in failures} <= {"provider_error", "unparsable"}, failures
