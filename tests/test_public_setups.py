"""Evaluations as public repositories have them: one import changed, or what each shape sends.

The forms are those of needle-in-a-haystack, deepagents' evals, a RAG comparison with openevals,
open_deep_research, agents-from-scratch, langsmith-starter-kit (mail and finance), the
agent-lifecycle workshop, customer-support-agent-evals, ChargeOps-AI (asynchronous graders),
fact-finder (pairs and scores by prompts of its own) and a shop's agent with four matches of its
calls; and, as their files have them, an export of LangSmith's runs, a log of Inspect, a run of
tau2-bench, messages of the AI SDK and rows of Alpaca. FinRAG stands for the RAG of
odsc-agents-evals on internal analyses of shares, whose graders are openevals'.
Their code is not copied.
"""

import json
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import uuid4

import langchain_classic.evaluation
import openevals.llm
import openevals.prompts
import openevals.trajectory.match
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langchain_openai import ChatOpenAI
from langgraph.types import Interrupt
from langsmith.evaluation import run_evaluator
from pydantic import SecretStr
from typing_extensions import TypedDict

from langchain_judges import (
    as_comparative_evaluator,
    as_evaluator,
    create_relative_judge,
    create_rubric_judge,
    judge_many,
)
from langchain_judges.compat import agentevals, langchain
from langchain_judges.compat import openevals as ours
from langchain_judges.errors import InputError
from langchain_judges.integrations import trajectory_evaluator
from langchain_judges.rows.checks import OF_OUTPUT
from langchain_judges.rows.fields import plain_row
from langchain_judges.testing import FakeChatModel, FakeModelServer
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import unfenced
from tests.judges import bsm

SCALE = {"accuracy": "Score 1: unrelated. Score 7: close. Score 10: the same. A number alone."}


def model_at(server):
    return ChatOpenAI(model="m", base_url=server.url, api_key=SecretStr("none"), temperature=0)


def needle_score(load_evaluator, model, response):
    """The score of a haystack's answer, as such tests read it."""
    evaluator = load_evaluator("labeled_score_string", criteria=SCALE, llm=model)
    texts = {"prediction": response, "reference": "Eat a sandwich.", "input": "What to do?"}
    return int(evaluator.evaluate_strings(**texts)["score"])


@for_each("reply, score", [("Near enough. Rating: [[7]]", 7), ("[[10]]", 10), ("[[1]]", 1)])
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_a_needles_score_is_the_same_number_behind_one_import(reply, score):
    for room in (langchain_classic.evaluation, langchain):
        with FakeModelServer([reply]) as server:
            assert needle_score(room.load_evaluator, model_at(server), "A sandwich.") == score
            assert "Score 7: close" in json.dumps(server.calls[0].body)


def all_met(create_llm_as_judge, model, criteria, said):
    """Each criterion judged by itself, and which of them failed for what reason."""
    prompt = "Do the responses meet it?\n\n{criterion}\n\nThe responses:\n\n{outputs}"
    judge = create_llm_as_judge(prompt=prompt, feedback_key="criterion", judge=model)
    results = [judge(outputs=said, criterion=each) for each in criteria]
    return [(each["key"], each["score"], each["comment"]) for each in results]


def met(call):
    asked = json.dumps(call.body)
    return json.dumps({"reasoning": "as it is", "score": "It is polite" in asked})


def test_criteria_one_by_one_pass_and_fail_as_they_did_behind_one_import():
    told = []
    for room in (openevals.llm, ours):
        with FakeModelServer(met) as server:
            criteria = ("It is polite", "It names a day")
            told.append(all_met(room.create_llm_as_judge, model_at(server), criteria, "Hi."))
    assert told[0] == told[1]
    assert [score for _, score, _ in told[0]] == [True, False]


METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "helpfulness": ("Does {outputs} help with {inputs}?", ("inputs", "outputs")),
    "groundedness": ("Does {outputs} follow from {context}?", ("context", "outputs")),
    "retrieval": ("Does {context} bear on {inputs}?", ("inputs", "context")),
    "correctness": (
        "Is {outputs} right for {inputs}, beside {reference_outputs}?",
        ("inputs", "outputs", "reference_outputs"),
    ),
}
ANSWERED = {
    "inputs": "What was the revenue of 2025?",
    "outputs": "12.4 million.",
    "context": "Revenue: 12.4 (2025), 11.0 (2024), in millions.",
    "reference_outputs": "",
}


def rag_scores(create_llm_as_judge, model):
    """Four numbers on one answer, each evaluator with the fields that it is about."""
    scores = {}
    for key, (prompt, names) in METRICS.items():
        judge = create_llm_as_judge(prompt=prompt, feedback_key=key, judge=model, continuous=True)
        result = judge(**{name: ANSWERED[name] for name in names})
        scores[result["key"]] = result["score"]
    return scores


def test_a_rag_comparison_has_the_same_four_numbers_behind_one_import():
    told = []
    replies = [{"reasoning": "r", "score": score} for score in (0.25, 1.0, 0.0, 0.5)]
    for room in (openevals.llm, ours):
        with FakeModelServer(replies) as server:
            told.append(rag_scores(room.create_llm_as_judge, model_at(server)))
            sent = [json.dumps(call.body) for call in server.calls]
        assert ["Revenue: 12.4 (2025)" in each for each in sent] == [False, True, True, False]
    assert told[0] == told[1] == dict(zip(METRICS, (0.25, 1.0, 0.0, 0.5), strict=True))


# A RAG on analyses of shares: its documents are LangChain's, each grader has a form of its own.
FINANCE: dict[str, Any] = {
    "inputs": {"question": "What was the revenue of 2025?"},
    "outputs": {
        "answer": "It was 12.4 million.",
        "documents": [Document("Revenue: 12.4\nin millions"), Document("Staff: 80")],
    },
    "reference_outputs": {"answer": "12.4 million in 2025"},
}
GRADERS = {
    "correctness": "QUESTION: {question}\nTRUE ANSWER: {expected}\nANSWER: {answer}",
    "groundedness": "FACTS: {facts}\nANSWER: {answer}",
    "relevance": "QUESTION: {question}\nANSWER: {answer}",
    "retrieval_relevance": "FACTS: {facts}\nQUESTION: {question}",
}


class Grade(TypedDict):
    """A grade."""

    explanation: Annotated[str, ..., "The reasons for it"]
    met: Annotated[bool, ..., "True if all criteria are met"]


def finance_grades(create_llm_as_judge, model, inputs, outputs, reference_outputs):
    """The score of each grader for one row."""
    texts = {
        "question": inputs["question"],
        "answer": outputs["answer"],
        "expected": reference_outputs["answer"],
        "facts": "\n\n".join(each.page_content for each in outputs["documents"]),
    }
    grades = {}
    for key, prompt in GRADERS.items():
        judge = create_llm_as_judge(
            prompt=prompt, system=f"Grade {key}.", judge=model, output_schema=Grade
        )
        grades[key] = judge(**{name: texts[name] for name in texts if f"{{{name}}}" in prompt})
    return grades


def test_graders_of_a_finance_rag_say_the_same_in_their_own_form_behind_one_import():
    replies = [{"explanation": f"no. {n}", "met": n % 2 == 0} for n in range(4)]
    facts, told = ("Revenue: 12.4\nin millions\n\nStaff: 80", "12.4 million in 2025"), []
    for room in (openevals.llm, ours):
        with FakeModelServer(replies) as server:
            told.append(finance_grades(room.create_llm_as_judge, model_at(server), **FINANCE))
            sent = ["\n".join(m["content"] for m in call.body["messages"]) for call in server.calls]
            forms = [call.body["response_format"]["json_schema"] for call in server.calls]
        assert all(f"Grade {key}." in text for key, text in zip(GRADERS, sent, strict=True))
        shown = [[text in each for text in facts] for each in sent]
        assert shown == [[False, True], [True, False], [False, False], [True, False]]
        fields = forms[0]["schema"]["properties"]
        assert [each["type"] for each in fields.values()] == ["string", "boolean"]
        assert fields["met"]["description"] == "True if all criteria are met"
    assert told[0] == told[1] == dict(zip(GRADERS, replies, strict=True))


@for_each("name", ["CORRECTNESS", "CONCISENESS"])
def test_a_published_prompt_shows_a_finance_row_as_the_same_json_behind_one_import(name):
    prompt = getattr(openevals.prompts, f"{name}_PROMPT")
    row, told = {**FINANCE, "outputs": {"answer": "It was 12.4 million."}}, []
    for room in (openevals.llm, ours):
        with FakeModelServer([{"reasoning": "so", "score": True}]) as server:
            judge = room.create_llm_as_judge(
                prompt=prompt, judge=model_at(server), feedback_key=name.lower()
            )
            told.append(judge(**row))
            sent = server.calls[0].body["messages"][-1]["content"]
        assert '{"question": "What was the revenue of 2025?"}' in sent
        assert '{"answer": "It was 12.4 million."}' in sent
        assert ('{"answer": "12.4 million in 2025"}' in sent) == ("{reference_outputs}" in prompt)
    assert told[0] == told[1]
    assert (told[0]["key"], told[0]["score"]) == (name.lower(), True)


def test_documents_in_what_a_rag_returns_are_shown_as_data_where_openevals_stops():
    asks: Any = {"prompt": "Is {outputs} in {context}?"}
    with pytest.raises(TypeError, match="not JSON serializable"):
        openevals.llm.create_llm_as_judge(judge=FakeChatModel(replies=["1"]), **asks)(**FINANCE)
    model = FakeChatModel(replies=[{"reasoning": "so", "score": True}])
    judge = ours.create_llm_as_judge(judge=model, **asks)
    assert judge(**FINANCE, context=FINANCE["outputs"]["documents"])["score"] is True
    assert model.prompts[0].count('"page_content": "Revenue: 12.4\\nin millions"') == 2
    assert "page_content=" not in model.prompts[0]


# An assistant for charging stations: asynchronous graders inside evaluators of LangSmith.
FAITHFUL = "Are citations faithful?\n<context>\n{context}\n</context>\n<outputs>\n{outputs}\n"


async def grades_of_runs(create_async_llm_as_judge, model, outputs):
    """The feedback that LangSmith gets for each run: a chosen number, and true or false."""
    choice = create_async_llm_as_judge(
        prompt=FAITHFUL, feedback_key="faithful", judge=model, choices=[0.0, 0.5, 1.0]
    )
    plain = create_async_llm_as_judge(
        prompt=openevals.prompts.RAG_GROUNDEDNESS_PROMPT, feedback_key="grounded", judge=model
    )

    @run_evaluator
    async def graded(run, example=None):
        context = {"documents": [json.dumps(each) for each in run.outputs["evidence"]]}
        given = {"context": context, "outputs": {"answer": run.outputs["answer"]}}
        results = [await grade(**given) for grade in (choice, plain)]
        return {"results": [{k: each[k] for k in ("key", "score")} for each in results]}

    runs = [SimpleNamespace(id=uuid4(), outputs=each) for each in outputs]
    return [(await graded.aevaluate_run(run, None))["results"] for run in runs]


def faithful(call):
    asked, form = json.dumps(call.body["messages"]), call.body["response_format"]
    score = form["json_schema"]["schema"]["properties"]["score"]
    holds = "limit of 32 A" in asked
    said = score["enum"][-holds] if "enum" in score else holds
    return json.dumps({"reasoning": "so", "score": said})


async def test_asynchronous_graders_inside_langsmiths_say_the_same_behind_one_import():
    outputs = [
        {"answer": "32 A [KB1].", "evidence": [{"id": "KB1", "text": "a limit of 32 A"}]},
        {"answer": "16 A [KB2].", "evidence": []},
    ]
    told = []
    for room in (openevals.llm, ours):
        with FakeModelServer(faithful) as server:
            factory = room.create_async_llm_as_judge
            results = await grades_of_runs(factory, model_at(server), outputs)
            told.append([[(each.key, each.score) for each in result] for result in results])
    assert told[0] == told[1]
    assert told[0][0] == [("faithful", 1.0), ("grounded", True)]
    assert told[0][1] == [("faithful", 0.0), ("grounded", False)]


# A shop's agent: calls with arguments that are no text yet, compared by those that matter.
SHOP = [
    {"role": "user", "content": "Where is 1003?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "order", "arguments": {"id": 1003, "note": "x"}}}],
    },
    {"role": "assistant", "content": "final answer"},
]


@for_each("wanted, matches", [(1003, True), (1004, False)])
def test_calls_of_a_shops_agent_match_in_four_ways_behind_one_import(wanted, matches):
    call = {"function": {"name": "order", "arguments": {"id": wanted}}}
    known = [SHOP[0], {"role": "assistant", "content": "", "tool_calls": [call]}, SHOP[2]]
    for mode in ("strict", "unordered", "subset", "superset"):
        told = [
            room.create_trajectory_match_evaluator(
                trajectory_match_mode=mode, tool_args_match_overrides={"order": ["id"]}
            )(outputs=SHOP, reference_outputs=known)
            for room in (openevals.trajectory.match, agentevals)
        ]
        assert told[0] == told[1]
        assert told[0]["score"] is matches


# A research agent: a question of two turns, notes of any length, a report.
RESEARCH: dict[str, Any] = {
    "inputs": {
        "messages": [
            {"role": "user", "content": "Compare heat pumps."},
            {"role": "assistant", "content": "For which climate?"},
            {"role": "user", "content": "For Oslo."},
        ]
    },
    "outputs": {
        "final_report": "# Heat pumps in Oslo\n\nGround source lasts longer [1].",
        "raw_notes": ["note " * 2_000 + "needle of the notes", "[1] a survey of 2024"],
        "research_brief": "Which heat pump suits Oslo?",
    },
}
QUALITIES = ["research_depth_score", "source_quality_score", "writing_quality_score"]


def test_scores_of_a_research_report_are_shares_of_five_under_its_keys():
    reply = {f"criterion_{n}": {"explanation": "so", "label": "3"} for n in (1, 2, 3)}
    model = FakeChatModel(replies=[reply])
    judge = create_rubric_judge(model, rubric=QUALITIES, labels=[1, 2, 3, 4, 5], name="report")
    result = as_evaluator(judge, output="final_report", scale="share")(**RESEARCH)
    parts = {each["key"]: each["score"] for each in result["results"]}
    assert parts == {"report": 0.6, **dict.fromkeys(QUALITIES, 0.6)}
    [sent] = model.prompts
    places = [sent.index(text) for text in ("Compare heat pumps.", "For Oslo.", "lasts longer")]
    assert places == sorted(places)
    assert "needle of the notes" not in sent


def test_notes_of_a_research_agent_are_the_whole_source_of_its_report():
    model = FakeChatModel(replies=[{"explanation": "so", "label": "1"}])
    judge = create_rubric_judge(model, rubric="Is each claim in the source?", needs=("source",))
    evaluator = as_evaluator(judge, output="final_report", context="raw_notes", key="grounded")
    result = evaluator(**RESEARCH)
    assert (result["key"], result["score"]) == ("grounded", 1.0)
    assert "needle of the notes" in model.prompts[0]
    assert "a survey of 2024" in model.prompts[0]


def test_two_reports_for_one_question_have_a_score_each():
    reports = [{"final_report": text} for text in ("good", "x")]
    compare = as_comparative_evaluator(bsm(), output="final_report")
    result = compare(inputs=RESEARCH["inputs"], outputs=reports)
    assert result["scores"][0] > 0.5 > result["scores"][1]


# An assistant for mail: what it did, and what one test asks of it.
DONE = [
    {"role": "user", "content": "Respond to the email: is the API documented?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"name": "write_email", "args": {"content": "I will check."}, "id": "1"},
            {"name": "done", "args": {"done": True}, "id": "2"},
        ],
    },
    {"role": "tool", "content": "Email sent", "tool_call_id": "1"},
    {"role": "tool", "content": "", "tool_call_id": "2"},
]
CRITERIA = "\n• Send an email that acknowledges the question\n• Ask for nothing\n"


def test_the_criteria_of_one_test_are_sent_as_they_are_beside_what_was_done():
    model = FakeChatModel(replies=[{"explanation": "so", "label": "1"}])
    evaluator = as_evaluator(create_rubric_judge(model), rubric="criteria", key="grade")
    result = evaluator(
        inputs={"criteria": CRITERIA}, outputs={"messages": DONE}, reference_outputs=None
    )
    assert (result["key"], result["score"]) == ("grade", 1.0), result["comment"]
    for text in ("• Send an email that acknowledges", "I will check.", "Email sent"):
        assert text in model.prompts[0]


@for_each("wanted, score", [(["write_email", "done"], 1.0), (["schedule_meeting", "done"], 0.0)])
def test_the_tools_that_a_test_expects_are_names_among_those_called(wanted, score):
    evaluator = trajectory_evaluator("superset")
    assert evaluator(outputs={"messages": DONE}, reference_outputs=wanted)["score"] == score


def told(judge_rubric, places, **row):
    """The feedback on a row, and the prompt that was sent for it."""
    model = FakeChatModel(replies=fitting_reply)
    evaluator = as_evaluator(create_rubric_judge(model, rubric=judge_rubric), **places)
    return evaluator(**row), model.messages[0][-1].text


def test_a_mail_agents_reply_and_its_expected_action_are_shown_and_said_to_be_data():
    result, prompt = told(
        "Is the reply professional?",
        {},
        inputs={"email_input": {"author": "Ann", "email_thread": "Is it documented?"}},
        outputs={"output": {"content": "RESPOND\n\nDear Ann"}, "trajectory": ["triage"]},
        reference_outputs={"classification": "respond", "trajectory": ["triage"]},
    )
    assert "RESPOND\n\nDear Ann\n</response" in prompt
    assert '{"author": "Ann", "email_thread": "Is it documented?"}' in prompt
    assert '{"classification": "respond", "trajectory": ["triage"]}' in prompt
    assert "'classification', 'trajectory'" in result["comment"]


@for_each("made, score", [(["triage", "write_email"], 1.0), (["write_email", "triage"], 0.0)])
def test_the_steps_of_a_mail_agent_are_names_beside_other_fields(made, score):
    wanted = {"classification": "respond", "trajectory": ["triage", "write_email"]}
    result = trajectory_evaluator("same")(outputs={"trajectory": made}, reference_outputs=wanted)
    assert result["score"] == score


def test_a_finance_answer_is_shown_with_its_search_and_beside_its_answer_alone():
    done: list[dict[str, Any]] = [
        {"type": "human", "content": "Revenue of 2025?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}, "id": "t"}]},
        {"type": "tool", "content": "10-K: 12.4", "tool_call_id": "t", "artifact": {"n": [1]}},
        {"type": "ai", "content": "12.4 million.\n\nRelevant docs:\n- 10-K 2025"},
    ]
    known = {"answer": "12.4 million", "retrieved_chunks": "10-K 2025: 12.4"}
    row = {"inputs": {"question": "Revenue of 2025?"}, "outputs": {"messages": done}}
    _, prompt = told("correctness", {}, **row, reference_outputs=known)
    for text in (">\n12.4 million\n</expected", "<result-of-search-", "- 10-K 2025\n</final-"):
        assert text in prompt
    assert "retrieved_chunks" not in prompt
    _, prompt = told("groundedness", {}, **row, context=known["retrieved_chunks"])
    assert ">\n10-K 2025: 12.4\n</source" in prompt


# A customer's thread with a supervisor, which waits for a person.
SUPPORT = [
    HumanMessage("Why was I charged twice?"),
    AIMessage("Let me look.", name="supervisor"),
    HumanMessage("Please do."),
    AIMessage("", name="supervisor", tool_calls=[{"name": "db", "args": {}, "id": "1"}]),
    ToolMessage("Two charges of 12.", tool_call_id="1", artifact={"rows": [[12], [12]]}),
]


def test_a_thread_that_waits_for_a_person_is_shown_with_what_it_waits_for():
    waiting = {"messages": SUPPORT, "__interrupt__": [Interrupt("Your email?", id="i")]}
    _, prompt = told("tool_use", {}, outputs=waiting)
    assert "Two charges of 12." in prompt
    assert "waits: Your email?" in prompt
    assert "no final answer" in prompt


def test_calls_in_openais_form_agree_in_any_order_with_a_reference():
    done = {"messages": convert_to_openai_messages(SUPPORT)}
    calls = [{"type": "function", "id": "1", "function": {"name": "db", "arguments": "{}"}}]
    wanted = {"messages": [{"role": "assistant", "content": "", "tool_calls": calls}]}
    agree = agentevals.create_trajectory_match_evaluator(
        trajectory_match_mode="unordered", tool_args_match_mode="ignore"
    )
    assert agree(outputs=done, reference_outputs=wanted)["score"] is True
    assert agree(outputs=done, reference_outputs={"messages": []})["score"] is False


# What a science agent returns, and what an example asks of it: names of files and of tools.
FOUND = {
    "answer": "Residues 48-124.",
    "artifact_names": ["chart.png"],
    "root_turns": 2,
    "tool_calls": ["eval", "task"],
    "duration_seconds": 61.2,
}
ASKED_FOR = {"rubric": "It names residues 48-124 in a chart.", "expects_artifact": ["image"]}


@for_each(
    "places, unread",
    [
        ({}, "not shown: 'artifact_names', 'tool_calls', 'root_turns'."),
        ({"output": lambda outputs: outputs}, ""),
    ],
)
def test_files_and_tools_that_a_science_agent_names_beside_its_answer_are_said(places, unread):
    result, prompt = told(
        None,
        {"rubric": "rubric", **places},
        inputs={"question": "Which residues, in a chart?"},
        outputs=FOUND,
        reference_outputs=ASKED_FOR,
    )
    assert "Residues 48-124." in prompt
    assert ("chart.png" in prompt) == (unread == "")
    assert ("output is read" in result["comment"]) == (unread != "")
    assert unread in result["comment"]
    assert "none of its keys is a usual one: 'expects_artifact'" in result["comment"]


# Rows as files of other tools have them, and what is sent of each.
INSPECTED = {"id": "c1", "function": "browser_go", "arguments": {"url": "a.org"}}
TOGGLED = {"id": "c2", "name": "toggle_data", "arguments": {}}
SDK_CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "track", "input": {"n": 7}}
SDK_FAILED = {"toolCallId": "c1", "output": {"type": "error-text", "value": "no such"}}
PAGE_CALL = {"toolCallId": "a", "input": {"n": 7}, "output": "in Kyiv"}
PAGE_FAILED: dict[str, Any] = {"toolName": "find", "toolCallId": "b", "state": "output-error"}
PAGE_FAILED |= {"input": {"n": 9}, "errorText": "no such"}
PAGE_CALL_4: dict[str, Any] = {"toolName": "track", "toolCallId": "d", "state": "result"}
PAGE_CALL_4 |= {"args": {"n": 8}, "result": "in Oslo"}
TOOL_RUN = {"run_type": "tool", "name": "track", "id": "t", "inputs": {"n": 7}}
EXPORTED: dict[str, Any] = {
    "run_type": "chain",
    "inputs": {"question": "Where is it?"},
    "outputs": {"answer": "In Kyiv."},
    "child_runs": [
        {"run_type": "chain", "child_runs": [{**TOOL_RUN, "outputs": {"output": "seen"}}]}
    ],
}
OF_HAYSTACK = {"id": "c", "tool_name": "track", "arguments": {"n": 7}}
FAILED = {"result": "no such", "origin": OF_HAYSTACK, "error": True}
SK_CALL = {"id": "c", "name": "p-track", "arguments": '{"n": 7}'}
SEEN = {"id": "c", "name": "p-track", "result": "in Kyiv"}
OF_FILES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a run of LangSmith": (
        EXPORTED,
        ['[call-of-track]\n{"n": 7}', "[result-of-track]\nseen", "[final-answer]\nIn Kyiv."],
    ),
    "a run in a field": ({"input": "Where?", "output": EXPORTED}, ["[result-of-track]\nseen"]),
    "a sample of Inspect": (
        {
            "input": "Go.",
            "output": [
                {"role": "assistant", "content": "", "tool_calls": [INSPECTED]},
                {"role": "tool", "content": "seen", "tool_call_id": "c1"},
            ],
        },
        ["[call-of-browser_go]", "[result-of-browser_go]\nseen"],
    ),
    "a user of tau2-bench who calls a tool": (
        {
            "messages": [
                {"role": "user", "content": None, "tool_calls": [TOGGLED]},
                {"role": "tool", "content": "off", "id": "c2", "error": True},
                {"role": "assistant", "content": "Again?"},
                {"role": "user", "content": "No."},
            ]
        },
        ['[turn-1-user]\n[{"id": "c2", "name": "toggle_data"', "[error-of-a_tool]\noff"],
    ),
    "a call of the AI SDK": (
        {"input": "Where?", "output": [{"role": "assistant", "content": [SDK_CALL]}]},
        ['[call-of-track]\n{"n": 7}'],
    ),
    "messages of the AI SDK with a call that failed": (
        {
            "input": "Where?",
            "output": [
                {"role": "assistant", "content": [SDK_CALL]},
                {"role": "tool", "content": [{"type": "tool-result", **SDK_FAILED}]},
                {"role": "assistant", "content": "Lost."},
            ],
        },
        ["[error-of-track]\nno such", "[final-answer]\nLost."],
    ),
    "messages of a page of the AI SDK": (
        {
            "messages": [
                {"role": "user", "parts": [{"type": "text", "text": "Where?"}]},
                {
                    "role": "assistant",
                    "content": "",
                    "parts": [
                        {"type": "step-start"},
                        {"type": "tool-track", "state": "output-available", **PAGE_CALL},
                        {"type": "dynamic-tool", **PAGE_FAILED},
                        {"type": "tool-invocation", "toolInvocation": PAGE_CALL_4},
                        {"type": "text", "text": "Kyiv", "state": "done"},
                    ],
                },
            ]
        },
        [
            *('[call-1-of-track]\n{"n": 7}', "[result-1-of-track]\nin Kyiv"),
            *('[call-2-of-find]\n{"n": 9}', "[error-2-of-find]\nno such"),
            *('[call-3-of-track]\n{"n": 8}', "[result-3-of-track]\nin Oslo"),
            "[final-answer]\nKyiv",
        ],
    ),
    "a row of MLflow": (
        {
            "inputs": {"question": "Where?"},
            "outputs": "Kyiv",
            "expectations": {"expected_response": "Lviv"},
        },
        ["[expected-answer]\nLviv", "[response]\nKyiv"],
    ),
    "an agent of Haystack": (
        {
            "messages": [
                {"role": "user", "content": [{"text": "Where?"}]},
                {"role": "assistant", "content": [{"text": "Hm."}, {"tool_call": OF_HAYSTACK}]},
                {"role": "tool", "content": [{"tool_call_result": FAILED}]},
                {"role": "assistant", "content": [{"text": "Lost."}]},
            ]
        },
        ['[assistant]\nHm.\n\n[call-of-track]\n{"n": 7}', "[error-of-track]\nno such", "Lost."],
    ),
    "a chat of Semantic Kernel": (
        {
            "messages": [
                {"role": "user", "items": [{"content_type": "text", "text": "Where?"}]},
                {"role": "assistant", "items": [{"content_type": "function_call", **SK_CALL}]},
                {"role": "tool", "items": [{"content_type": "function_result", **SEEN}]},
                {"role": "assistant", "items": [{"content_type": "text", "text": "Kyiv"}]},
            ]
        },
        ['[call-of-p-track]\n{"n": 7}', "[result-of-p-track]\nin Kyiv", "[final-answer]\nKyiv"],
    ),
    "messages of smolagents": (
        {
            "input": "Where?",
            "output": [
                {"role": "tool-call", "content": [{"type": "text", "text": "Calling"}]},
                {"role": "tool-response", "content": [{"type": "text", "text": "in Kyiv"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Kyiv"}]},
            ],
        },
        ["[assistant]\nCalling", "[result-of-a_tool]\nin Kyiv", "[final-answer]\nKyiv"],
    ),
    "a rollout of verifiers, whose calls are JSON, beside the right answer": (
        {
            "prompt": [{"role": "user", "content": "Where?"}],
            "completion": [
                {"role": "assistant", "content": "", "tool_calls": [json.dumps(SK_CALL), "??"]},
                {"role": "tool", "content": "in Kyiv", "tool_call_id": "c"},
                {"role": "assistant", "content": "Kyiv"},
            ],
            "answer": "Oslo",
        },
        ['[call-1-of-p-track]\n{"n": 7}', "[call-2-of-a_tool]\n??", "[final-answer]\nKyiv"],
    ),
    "an example of DSPy beside its prediction": (
        {"question": "Where?", "answer": "Oslo", "prediction": {"answer": "Kyiv"}},
        ["[response]\nKyiv\n"],
    ),
    "replies of a pipeline of Haystack": (
        {"question": "Where?", "output": {"llm": {"replies": ["Kyiv"], "meta": []}}},
        ["[response]\nKyiv\n"],
    ),
    "a row of Alpaca": (
        {"instruction": "Name a city.", "input": "", "output": "Kyiv"},
        ["Name a city.", "[response]\nKyiv"],
    ),
}


@for_each("row, texts", OF_FILES.values(), ids=list(OF_FILES))
def test_a_row_of_another_tools_file_is_shown_with_all_that_happened(row, texts):
    model = FakeChatModel(replies=fitting_reply)
    [result] = judge_many(create_rubric_judge(model, rubric="Is it right?"), [row])
    assert result["judged"], result["verdict"]
    for text in texts:
        assert text in unfenced(model.prompts[0])


def test_an_exported_run_is_judged_by_an_evaluator_with_the_calls_of_its_child_runs():
    example = {"inputs": EXPORTED["inputs"], "outputs": {"answer": "Kyiv"}}
    result, prompt = told("tool_use", {}, run=EXPORTED, example=example)
    assert result["score"] is not None
    assert "[result-of-track]\nseen" in unfenced(prompt)


@for_each("output", ["The source says so.", {"answer": "The source says so."}])
@for_each("error", [None, "Timeout"])
@for_each("children", [[], EXPORTED["child_runs"]])
def test_an_exported_run_is_a_row_with_its_calls_and_its_error(output, error, children):
    model = FakeChatModel(replies=fitting_reply)
    run = {**EXPORTED, "outputs": output, "error": error, "child_runs": children}
    [result] = judge_many(create_rubric_judge(model, rubric="Is it right?"), [run])
    assert result["verdict"]["failures"] == []
    assert ("It failed: Timeout" in model.prompts[0]) == bool(error)
    assert ("[call-of-track]" in unfenced(model.prompts[0])) == bool(children)


HOURS: Any = {"page_content": "We open at 10.", "metadata": {"page": 3}}
# What a retriever's run returns, of LangChain and of a function of one's own.
RETRIEVED = [{"documents": [HOURS]}, {"documents": [Document(**HOURS)]}, {"output": [HOURS]}]
TRACKED = [
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "track", "args": {}, "id": "1"}]},
    {"role": "tool", "content": "seen", "tool_call_id": "1"},
    {"role": "assistant", "content": "In Kyiv."},
]
SEARCHED = {"run_type": "retriever", "name": "search", "id": "s", "inputs": {"query": "hours"}}


def searched(found=RETRIEVED[0], holder="chain", outputs=EXPORTED["outputs"]):
    """A run with a retriever's, below a chain, a tool or another retriever."""
    inner = {**SEARCHED, "outputs": found, "child_runs": []}
    outer = {**SEARCHED, "run_type": holder, "outputs": found, "child_runs": [inner]}
    return {**EXPORTED, "outputs": outputs, "child_runs": [outer]}


@for_each("found", RETRIEVED)
@for_each("holder", ["chain", "tool", "retriever"])
@for_each("outputs", [EXPORTED["outputs"], {"messages": TRACKED}])
def test_a_retriever_of_a_run_is_a_step_once_and_no_call_of_an_agent(found, holder, outputs):
    run = searched(found, holder, outputs)
    row = plain_row({"output": run})
    assert str(row["output"]).count("We open at 10.") == 1
    assert row[OF_OUTPUT] == "We open at 10."
    made = trajectory_evaluator()(outputs=run, reference_outputs=["none"])
    assert ("search(" in str(made["comment"])) == (holder == "tool")


@for_each("rubric, steps", [("Is it right?", 1), ("groundedness", 1), ("context_relevance", 0)])
def test_what_retrievers_of_a_run_found_is_its_source_where_one_is_needed(rubric, steps):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric=rubric)
    assert judge.invoke({"output": searched()})["verdict"]["failures"] == []
    assert as_evaluator(judge)(searched())["score"] is not None
    for prompt in model.prompts:
        assert prompt.count("-of-search-") == 4 * steps
        assert prompt.count("We open at 10.") == steps + (rubric != "Is it right?")


AUTOGEN = {"source": "a", "content": [{"name": "track"}], "type": "ToolCallRequestEvent"}


@for_each("output", [[AUTOGEN], [{"agent": {"messages": []}}, {"tools": {"messages": []}}]])
def test_steps_of_no_known_form_are_refused_by_their_columns_and_what_is_read(output):
    model = FakeChatModel(replies=[])
    row = {"question": "Where?", "answer": output, "trace": ["x"]}
    [result] = judge_many(create_rubric_judge(model, rubric="tool_use"), [row])
    said = result["verdict"]["rationale"]
    assert "the fields are 'question', 'answer', 'trace'; name others by `columns`" in said
    assert "JSON is read as steps if it is messages of a provider" in said


@for_each("known", [{"chosen": "a", "rejected": "b"}, {"prompt": "q", "answers": ["a"]}])
def test_a_pair_that_lacks_a_field_is_told_its_own_columns(known):
    with pytest.raises(InputError, match=f"the fields are {', '.join(map(repr, known))}: "):
        list(judge_many(bsm(), [known]))


def test_a_text_that_lacks_its_answer_is_told_its_own_columns():
    row = {"question": "Where?", "answer": None, "error": "timeout"}
    judge = create_rubric_judge(FakeChatModel(replies=[]), rubric="Is it right?")
    said = r"the fields are 'question', 'answer' \(null\), 'error': .* --column output="
    for told in (lambda: list(judge_many(judge, [row])), lambda: judge.invoke(row)):
        with pytest.raises(InputError, match=said):
            told()


CALLED = '{"name": "track", "arguments": {"n": 7}}'
# Of ShareGPT's form: what is said after the question, and what a prompt holds of it.
SAID_BY: dict[str, tuple[list[tuple[str, Any]], str]] = {
    "chatgpt": ([("chatgpt", "Kyiv")], "[response]\nKyiv\n"),
    "a call of LLaMA-Factory": (
        [("function_call", CALLED), ("observation", "seen"), ("gpt", "Kyiv")],
        '[call-of-track]\n{"n": 7}\n\n[result-of-track]\nseen\n\n[final-answer]\nKyiv',
    ),
    "several calls": (
        [("tool_call", f"[{CALLED}, {CALLED}]"), ("tool_response", "seen"), ("gpt", "Kyiv")],
        '{"n": 7}\n\n[call-2-of-track]\n{"n": 7}\n\n[result-of-one_of_2_calls]\nseen',
    ),
    "a call that is no JSON": ([("function_call", "track(7)")], "[response]\ntrack(7)\n"),
    "a speaker of a name": ([("Alice", "Kyiv?"), ("gpt", "Yes.")], "[participant-Alice]\nKyiv?"),
}


@for_each("kind", SAID_BY)
def test_every_speaker_of_a_file_of_sharegpt_is_shown(kind):
    said, shown = SAID_BY[kind]
    turns = [{"from": who, "value": text} for who, text in [("human", "Where?"), *said]]
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it right?")
    [result] = judge_many(judge, [{"conversations": turns}])
    assert shown in unfenced(model.prompts[0])
    assert result["verdict"]["failures"] == []


def test_data_with_a_beginning_and_a_value_are_no_conversation():
    model = FakeChatModel(replies=fitting_reply)
    flows = [{"from": "Oslo", "value": "7"}, {"from": "Rome", "value": "9"}]
    create_rubric_judge(model, rubric="Is it right?").invoke({"input": "Sum up.", "output": flows})
    assert json.dumps(flows) in model.prompts[0]


SHARED = [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "Kyiv"}]
ARENA = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Kyiv"}]


@for_each("column, talk", [("conversations", SHARED), ("conversation", ARENA)])
def test_a_conversation_of_a_public_set_is_a_request_and_its_answer(column, talk):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="Is it right?")
    [result] = judge_many(judge, [{"id": "s", column: talk}])
    prompt = unfenced(model.prompts[0])
    assert "[request]\nWhere?\n\n[response]\nKyiv\n" in prompt
    assert result["verdict"]["failures"] == []


@for_each("talk", [SHARED, ARENA])
def test_a_conversation_beside_its_own_request_and_answer_is_in_no_doubt(talk):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it right?")
    row = {"input": "Where?", "output": "Kyiv", "conversations": talk}
    [result] = judge_many(judge, [row])
    assert result["verdict"]["failures"] == []


def test_two_conversations_of_an_arena_are_a_pair_with_its_winner():
    model = FakeChatModel(replies=fitting_reply)
    other = [ARENA[0], {"role": "assistant", "content": "Oslo"}]
    row = {"conversation_a": ARENA, "conversation_b": other, "winner": "tie (bothbad)"}
    [result] = judge_many(create_relative_judge(model), [row], columns={"label": "winner"})
    assert result["label"] == "tie"
    shown = "[request]\nWhere?\n\n[response-1]\nKyiv\n\n[response-2]\nOslo\n"
    assert any(shown in unfenced(prompt) for prompt in model.prompts)


@for_each(
    ("content", "shown"),
    [
        ({"answer": "In Kyiv.\nNow."}, "In Kyiv.\nNow."),  # as in Arena-Hard
        ({"text": "In Kyiv."}, "In Kyiv."),
        ({"city": "Kyiv"}, '{"city": "Kyiv"}'),
        ({"answer": "Kyiv", "sure": True}, '{"answer": "Kyiv", "sure": true}'),
    ],
)
def test_an_answer_that_is_an_object_in_a_message_is_its_text_if_it_is_alone(content, shown):
    model = FakeChatModel(replies=fitting_reply)
    talk = [ARENA[0], {"role": "assistant", "content": content}]
    judge = create_rubric_judge(model, rubric="Is it right?")
    [result] = judge_many(judge, [{"uid": "u", "messages": talk}])
    assert result["judged"]
    assert f"[request]\nWhere?\n\n[response]\n{shown}\n" in unfenced(model.prompts[0])
