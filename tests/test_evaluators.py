"""Judges as evaluators: every shape of inputs, both kinds of judges, sync and async."""

import asyncio
import base64
import io
import itertools
import json
import re
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langsmith.run_helpers import tracing_context
from langsmith.schemas import Example, Run
from openevals import prompts
from openevals.types import EvaluatorResult

from langchain_judges import (
    JudgeMiddleware,
    as_comparative_evaluator,
    as_evaluator,
    create_bsm_judge,
    create_relative_judge,
    create_rubric_judge,
    judge_many,
    load_judge,
)
from langchain_judges.errors import InputError, OptionError, RepeatedFailureError
from langchain_judges.integrations import (
    create_online_evaluator,
    eval_cases,
    trajectory_evaluator,
    watch_project,
)
from langchain_judges.integrations.feedback import feedback_of, posted, spans_of
from langchain_judges.methods import create_jury
from langchain_judges.methods.rubric import Criterion
from langchain_judges.methods.rubric.criteria import ready_names
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import readable
from langchain_judges.rows.work import outputs_of, work_in
from langchain_judges.runs.run_state import ALIKE
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, unfenced
from tests.judges import broken, bsm, fixed, labels, of_method
from tests.test_docs import ROOT

QUESTION, GOOD, BAD = {"question": "Why?"}, {"answer": "good good"}, {"answer": "bad"}


def a_run(outputs, **also):
    fields: dict[str, Any] = {"name": "r", "run_type": "chain", "inputs": QUESTION, **also}
    fields |= {"start_time": datetime.now(UTC), "trace_id": uuid.uuid4()}
    return Run(id=uuid.uuid4(), outputs=outputs, **fields)


def an_example(outputs=BAD, **also):
    moment = datetime.now(UTC)
    fields: dict[str, Any] = {"created_at": moment, "modified_at": moment}
    return Example(id=uuid.uuid4(), inputs=QUESTION, outputs=outputs, **fields, **also)


def test_it_returns_the_five_keys_of_openevals():
    result: Any = as_evaluator(bsm())(inputs=QUESTION, outputs=GOOD, reference_outputs=BAD)
    assert set(result) == set(EvaluatorResult.__annotations__)
    # Three against one on a scale of five, in both orders: 0.5 + (3 - 1) / (2 * 4).
    assert (result["key"], result["score"]) == ("bsm", 0.75)
    assert result["comment"].startswith("A is better.")
    assert result["metadata"]["preference"] == "A"
    assert result["source_run_id"] is None


FIVE: dict[str, Any] = {"rubric": "Is it kind?", "labels": [1, 2, 3, 4, 5]}


def three(model_replies=3):
    reply = {"explanation": "So so.", "label": "3"}
    return rubric_judge(model=FakeChatModel(replies=[reply] * model_replies), **FIVE)


@for_each(
    "scale, score, low, high", [("unit", 0.5, 0, 1), ("share", 0.6, 0.2, 1), ("raw", 3, 1, 5)]
)
def test_a_score_is_given_on_the_scale_that_is_asked_for_and_says_so(scale, score, low, high):
    evaluator = as_evaluator(three(), scale=scale)
    called, run = evaluator(outputs="Hm."), evaluator.evaluate_run(a_run({"answer": "Hm."}))
    said = {"scale": scale, "direction": f"{high} is good"}
    assert called["score"] == cast("Any", run).score == pytest.approx(score)
    assert called["metadata"].items() >= said.items()
    assert cast("Any", run).evaluator_info.items() >= said.items()
    drawn = {"type": "continuous", "min": low, "max": high}
    assert cast("Any", run).feedback_config == drawn


@for_each("best", [0, 1, None])
def test_feedback_says_which_label_is_taken_for_good_where_nobody_did(best):
    judge = rubric_judge(rubric="Is it rude?", best=best)
    evaluator = as_evaluator(judge)
    run: Any = evaluator.evaluate_run(a_run(GOOD))
    score = eval_cases.CaseScore("rubric", 1.0, "", 1)
    sent = posted(feedback_of(judge, score))["source_info"]
    for told in (evaluator(outputs="x")["metadata"], run.evaluator_info, sent):
        assert ("1 (yes) counts as good" in told.get("assumed", "")) == (best is None)


@for_each("other, drawn", [([1, 2, 3], (1, 3)), ([0, 1], (0, 1))])
def test_a_total_of_criteria_is_drawn_on_their_scale_if_they_have_one(other, drawn):
    criteria = [{"name": name, "description": "Good?", "labels": own}
                for name, own in (("tone", [1, 2, 3]), ("fit", other))]  # fmt: skip
    judge = rubric_judge(rubric=criteria, name="both")
    spans = spans_of(judge, key="both", scale="raw")
    assert (spans["fit"].low, spans["fit"].high) == drawn
    assert ("both" in spans) == (spans["fit"] == spans["tone"])


@for_each("label, score", [(1, 1), (2, 2), (5, 5)])
def test_a_raw_score_of_errors_is_drawn_from_few_to_many(label, score):
    model = FakeChatModel(replies=lambda _: {"explanation": "So.", "label": str(label)})
    judge = rubric_judge(model=model, rubric=[Criterion(name="Errors", scale=(1, 5), best=1)])
    run: Any = as_evaluator(judge, scale="raw").evaluate_run(a_run(GOOD))
    assert run.score == score
    assert run.feedback_config == {"type": "continuous", "min": 1, "max": 5}
    assert run.evaluator_info["direction"] == "1 is good"


NO_NUMBERS, RISING = {"labels": ["rude", "kind"]}, {"labels": [0, 1, 2]}
NO_SHARES = ({"labels": [1, 2, 5], "best": 1}, {"labels": [-1, 1]}, {"labels": [0, 1], "best": 0})


@for_each(
    "options, scales",
    [(None, ()), (NO_NUMBERS, ()), (RISING, ("share", "raw")), *((o, ("raw",)) for o in NO_SHARES)],
)
def test_a_scale_needs_numbers_and_a_share_those_that_rise_from_0_to_the_best(options, scales):
    judge = bsm() if options is None else rubric_judge(rubric="Is it kind?", **options)
    for scale in cast("Any", {"share", "raw"} - {*scales}):
        with pytest.raises(OptionError, match="labels are numbers"):
            as_evaluator(judge, scale=scale)
    assert all(as_evaluator(judge, scale=scale) for scale in scales)


def test_a_run_and_its_example_may_be_given_as_they_are_or_as_data():
    evaluator = as_evaluator(bsm())
    run, example = a_run(GOOD), an_example()
    for both in ((run, example), (run.model_dump(), example.model_dump()), (vars(run), None)):
        result = evaluator(*both)
        assert (result["score"] == 0.75) == (both[1] is not None), result


async def test_a_result_may_be_awaited():
    later = await as_evaluator(bsm())(inputs="w", outputs="good", reference_outputs="x")
    compare: Any = as_comparative_evaluator(bsm())
    found = await compare(inputs="w", outputs=["good", "x"])
    assert (later["key"], found["key"]) == ("bsm", "preference")


@for_each("part", ["inputs", "outputs", "reference"])
def test_parts_of_a_run_and_its_example_may_be_texts(part):
    given = {"inputs": QUESTION, "outputs": GOOD, "reference": BAD} | {part: "good"}
    run = {"id": "1", "outputs": given["outputs"]}
    example = {"inputs": given["inputs"], "outputs": given["reference"]}
    result: Any = as_evaluator(of_method("rubric", rubric="Good?"))(run, example)
    assert result["score"] == 1


def test_several_criteria_have_a_total_and_are_a_list_for_langsmith():
    model = FakeChatModel(replies=highest)
    evaluator = as_evaluator(rubric_judge(model=model, rubric=["Tone", "Depth"]))
    result = evaluator(outputs="x y")
    assert (result["key"], result["score"]) == ("rubric", 1)
    assert [each["key"] for each in result["results"]] == ["rubric", "Tone", "Depth"]
    told: Any = evaluator.evaluate_run(a_run(GOOD))
    assert [each.value for each in told["results"]] == [None, 1, 1]


NOBODY: Any = None  # a client that is not asked
# What gives feedback on the total and on criteria.
GIVING: dict[str, Any] = {
    "evaluator": as_evaluator,
    "middleware": JudgeMiddleware,
    "watch": lambda judge, **own: watch_project(NOBODY, judge, "app", **own),
    "online": lambda judge, **own: create_online_evaluator(
        NOBODY, judge, "own", project="app", dependencies=[], **own
    ),
}


@for_each("giver", GIVING)
@for_each(
    ("own", "options"),
    [
        ({"rubric": ["Tone", "Depth"]}, {"key": "Tone"}),
        ({"rubric": ["Tone", "Depth"], "name": "Depth"}, {}),
        ({"rubric": ["rubric", "Depth"]}, {}),
    ],
)
def test_a_total_is_not_given_under_the_name_of_a_criterion(giver, own, options, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = load_judge("rubric", "openai:small", **own)
    with pytest.raises(OptionError, match="the total and a criterion both give the feedback"):
        GIVING[giver](judge, **options)


@for_each("name", ready_names())
def test_no_criterion_of_a_ready_rubric_is_called_as_the_rubric(name):
    assert name not in as_evaluator(rubric_judge(rubric=name)).feedback_keys[1:]


def test_further_fields_are_those_of_the_row_or_are_refused():
    model = FakeChatModel(replies=highest)
    evaluator = as_evaluator(rubric_judge(model=model, rubric="correctness"))
    assert evaluator(inputs="2+2?", outputs="4", expected="Four.", rubric="Is it so?")["score"]
    assert "Is it so?" in model.prompts[0]
    with pytest.raises(OptionError, match="`plan`"):
        evaluator(outputs="4", plan="Count.")


@for_each("options", [{"rubric": "correctness"}, {"rubric": "Is it so?", "needs": ("calls",)}])
def test_what_a_row_lacks_is_told_once_and_by_the_keys_that_people_know(options):
    evaluator = as_evaluator(rubric_judge(model=FakeChatModel(replies=[]), **options))
    told = evaluator(inputs={"query": "Where?"}, outputs={"reply": "Kyiv"})
    assert "the fields are 'query', 'reply'; " in told["comment"]
    assert told["comment"].count("the fields are") == 1


@for_each(
    ("options", "fields", "told"),
    [
        (
            {},
            {"inputs": {"messages": []}, "outputs": "x"},
            "`input`: expected .*messages, got \\[]",
        ),
        ({}, {"outputs": {"messages": []}}, "`output`: expected a text or messages, got \\[]"),
        ({"rubric": "correctness"}, {"outputs": "x"}, "`reference=` within `reference_outputs`"),
    ],
)
def test_a_call_of_an_evaluator_is_told_what_it_lacks_in_its_own_words(options, fields, told):
    judge = rubric_judge(model=FakeChatModel(replies=[]), **{"rubric": "Kind?", **options})
    assert re.search(told, as_evaluator(judge)(**fields)["comment"])


def test_why_a_row_is_not_judged_is_told_once():
    told = as_evaluator(bsm())(inputs="Where?", outputs="Kyiv")
    reason = "`reference_outputs` has nothing to compare with"
    assert told["comment"] == f"Not judged. invalid_input (judge): {reason}"


def test_attachments_of_a_call_are_sent_with_its_task():
    model = FakeChatModel(replies=highest)
    evaluator = as_evaluator(rubric_judge(model=model, rubric="Is it good?"))
    image = {"mime_type": "image/png", "data": "aGk="}
    coded = {**image, "data": "data:image/png;base64,aGk="}
    for attached, name in ((coded, None), ({**image, "name": "cat.png"}, "cat.png")):
        evaluator(outputs="a cat", attachments=attached)
        content: Any = model.messages[-1][-1].content
        [block] = [block for block in content if block["type"] == "image"]
        assert (block["base64"], block.get("filename")) == ("aGk=", name)


def test_a_source_and_files_are_turns_of_their_own():
    image = {"mime_type": "image/png", "data": "aGk="}
    asked: Any = eval_cases.pair_for("Count.", "a", "b", source="Two cats.")["input"]
    assert [turn["role"] for turn in asked] == ["user", "source"]
    [turn] = cast("Any", eval_cases.with_attachments("Count.", image))
    assert (turn["role"], turn["content"][0]) == ("user", {"type": "text", "text": "Count."})
    said: Any = [{"role": "system", "content": "Mild."}]
    _, after = cast("Any", eval_cases.with_attachments(said, image))
    assert (after["role"], len(after["content"])) == ("user", 1)


def test_sources_may_come_without_a_task():
    model = FakeChatModel(replies=highest)
    evaluator = as_evaluator(rubric_judge(model=model, rubric="groundedness"))
    assert evaluator(outputs="It rained.", context="It rained in Oslo.")["score"] == 1


def test_runs_are_compared_as_data_or_by_their_outputs():
    compare: Any = as_comparative_evaluator(bsm())
    runs, example = [a_run(GOOD), a_run(BAD)], an_example(None)
    objects = compare(runs, example)
    assert compare([run.model_dump() for run in runs], example.model_dump()) == objects
    texts = compare(inputs=QUESTION, outputs=[GOOD, BAD])
    assert texts["scores"] == [*objects["scores"].values()] == [0.75, 0.25]
    assert len(texts["comment"]) == 2


def test_a_prompt_shows_a_field_of_the_inputs_of_an_example():
    model = FakeChatModel(replies=fitting_reply)
    evaluate = as_evaluator(create_rubric_judge(model, prompts="{outputs} {tone}"))
    example = {"inputs": {"question": "Rain?", "tone": "mild"}, "outputs": {}}
    evaluate(a_run({"answer": "Yes."}), example)
    assert "mild" in model.prompts[0]


def test_a_comparison_takes_a_context_attachments_and_variables_of_its_prompt():
    prompt = "{inputs} {outputs} {reference_outputs} {tone}"
    model = FakeChatModel(replies=fitting_reply)
    compare: Any = as_comparative_evaluator(create_relative_judge(model, prompts=prompt))
    image = {"mime_type": "image/png", "data": "aGk="}
    more = {"context": "Oslo is wet.", "attachments": image, "tone": "mild"}
    compare(inputs="Rain?", outputs=["Yes.", "No."], reference_outputs="Yes!", **more)
    runs = [a_run({"answer": text}) for text in ("Yes.", "No.")]
    read = {"pic": {"reader": io.BytesIO(b"hi"), "mime_type": "image/png"}}
    example = {"inputs": {"question": "Rain?"}, "outputs": {"answer": "Yes!"}, "attachments": read}
    compare(runs, example, context="Oslo is wet.", tone="mild")
    for prompt, messages in zip(model.prompts, model.messages, strict=True):
        assert all(text in prompt for text in ("Rain?", "Yes!", "Oslo is wet.", "mild"))
        blocks: Any = [block for message in messages for block in message.content]
        assert "image" in [block["type"] for block in blocks if isinstance(block, dict)]
    with pytest.raises(OptionError, match="`plan`"):
        compare(inputs="Rain?", outputs=["Yes.", "No."], tone="mild", plan="x")


def test_repetitions_of_one_experiment_are_not_compared_with_each_other():
    model = FakeChatModel(replies=highest)
    compare: Any = as_comparative_evaluator(create_relative_judge(model, orders="none"))
    first, second = uuid.uuid4(), uuid.uuid4()
    texts = ["good 1", "good 2", "bad 1", "bad 2"]
    owners = [first, first, second, second]
    runs = [
        a_run({"answer": text}, session_id=own) for text, own in zip(texts, owners, strict=True)
    ]
    for sides, number in ((runs, 4), (runs[:2], 1), (runs[1:], 2)):
        compare(sides, an_example())
        sent, model.prompts = len(model.prompts), []
        assert sent == number


def test_sync_works_twice_after_async_in_one_process(serve):
    server = serve()
    judge = create_bsm_judge(chat(server), criteria=["Depth"])
    evaluator, row = as_evaluator(judge), an_example()
    for _ in range(2):
        later: Any = asyncio.run(evaluator.aevaluate_run(a_run(GOOD), row))
        now: Any = evaluator.evaluate_run(a_run(GOOD), row)
        assert later.score == now.score == 0.75


@for_each(
    ("source", "text"),
    [
        (None, r"expected one of the keys 'output', .*, got the keys 'a', 'b'"),
        ("c", r"expected the key 'c', got the keys 'a', 'b'"),
        ("a.c", r"expected the key 'c' of 'a\.c', got a value of type int"),
        (lambda value: value["c"], r"the function failed \(KeyError: 'c'\) on the keys 'a'"),
    ],
)
def test_what_cannot_be_mapped_says_what_was_wanted_and_seen(source, text):
    with pytest.raises(InputError, match=text):
        work_in({"a": 1, "b": [AIMessage("Yes.")]}, source)


UNREADABLE: dict[str, tuple[Any, Any, str]] = {
    "no key": ({"outputs": {"x": "1", "y": [AIMessage("2")]}}, BAD, "got the keys 'x', 'y'"),
    "no outputs": ({"outputs": None}, BAD, "expected a text or messages, got null"),
    "no reference": ({"outputs": GOOD}, None, "`reference_outputs` has nothing to compare with"),
    "failed": ({"outputs": None, "error": "Boom"}, BAD, "the run failed and has no output: Boom"),
}


@for_each("case", UNREADABLE)
async def test_a_row_that_cannot_be_read_is_feedback_without_a_score(case):
    fields, reference, message = UNREADABLE[case]
    result: Any = await as_evaluator(bsm()).aevaluate_run(a_run(**fields), an_example(reference))
    assert (result.key, result.score, result.value) == ("bsm", None, None)
    assert message in result.comment
    assert result.extra["reason"] == "invalid_input"
    assert result.source_run_id is None


@for_each("kind", ["pair", "item"])
def test_feedback_has_what_decided_what_failed_and_what_it_cost(kind):
    item = rubric_judge(model=FakeChatModel(replies=highest), rubric="Is it so?")
    judge, calls = (item, 1) if kind == "item" else (bsm(), 2)
    flips = {} if kind == "item" else {"flipped": False}
    name, answer, source = ("label", 1, "none") if kind == "item" else ("preference", "A", "scores")
    judged, lost = (
        cast("Any", as_evaluator(judge).evaluate_run(run, an_example())).extra
        for run in (a_run(GOOD), a_run(None, error="Timeout"))
    )
    # The fake model counts 7 tokens for each prompt, and 3 for each reply.
    usage = {"calls": calls, "input_tokens": 7 * calls, "output_tokens": 3 * calls}
    rest = {"confidence": None, "confidence_source": source, **flips}
    assert judged == {name: answer, **rest, "failures": [], "usage": usage}
    [failure] = lost.pop("failures")
    assert failure["detail"] == "the run failed and has no output: Timeout"
    rest |= {"confidence_source": "none", **dict.fromkeys(flips)}
    nothing = dict.fromkeys(usage, 0)
    assert lost == {name: None, **rest, "usage": nothing, "reason": "invalid_input"}


EMAIL = {"author": "Ann", "subject": "Hi", "thread": "Where are you?"}


@for_each(
    "outputs",
    [{"a": 1, "b": 2}, {"name": "Ann", "age": 7}, {"triage": EMAIL, "n": 1}, {"mails": [EMAIL]}],
)
def test_data_without_a_usual_key_are_shown_whole_and_that_is_said(outputs):
    model = FakeChatModel(replies=[{"explanation": "Yes.", "label": "1"}] * 2)
    judge = rubric_judge(model=model, rubric="Is it good?")
    example = an_example(None).model_copy(update={"inputs": {"email_input": EMAIL}})
    result: Any = as_evaluator(judge).evaluate_run(a_run(outputs), example)
    assert result.score == 1
    assert all(json.dumps(each) in model.prompts[0] for each in (outputs, EMAIL))
    keys = ", ".join(map(repr, outputs))
    notes = [(note["unit"], note["reason"]) for note in result.extra["failures"]]
    assert notes == [("input", "read_as_json"), ("output", "read_as_json")]
    for words in ("Yes. Note: input", ": 'email_input'", f": {keys}."):
        assert words in result.comment


@for_each("key, is_said", [("answer", False), ("expected_answer", False), ("wrong", True)])
def test_a_reference_under_an_unusual_key_alone_is_said_to_be_read_from_it(key, is_said):
    judge = rubric_judge(rubric="correctness")
    told = as_evaluator(judge)(
        inputs={"question": "q"}, outputs={"answer": "a"}, reference_outputs={key: {"answer": "b"}}
    )
    assert (f"reference is read from the key {key!r}" in told["comment"]) == is_said


SAID = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "So."}]
CALL = {"name": "pay", "args": {"sum": 7}}
SEVERAL: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str, str]]]] = {
    "two answers": (
        {"question": "q"},
        {"answer": "a", "response": "b"},
        [("output", "response", "answer")],
    ),
    "the same twice": ({"question": "q"}, {"answer": "a", "response": "a"}, []),
    "a history": (
        {"question": "q", "chat_history": [{"role": "user", "content": "before"}]},
        {"answer": "a"},
        [("input", "question", "chat_history")],
    ),
    "an instruction": (
        {"instruction": "Translate", "input": "Good day"},
        {"output": "Bonjour"},
        [("input", "input", "instruction")],
    ),
    "below one key": ({"question": "q"}, {"result": {"text": "a", "completion": "b"}},
        [("output", "completion", "text")]),
    "names of steps": ({"question": "q"}, {"answer": "a", "trajectory": ["pay", "done"]},
        [("output", "answer", "trajectory")]),
    "ids": ({"question": "q"}, {"answer": "a", "retrieved_doc_ids": ["d1", "d2"]},
        [("output", "answer", "retrieved_doc_ids")]),
    "a trace": ({"question": "q"}, {"answer": "a", "trace": {"steps": [{"tool": "pay"}]}},
        [("output", "answer", "trace")]),
    "calls that cannot be read": ({"question": "q"}, {"answer": "a", "tool_calls": ["pay"]},
        [("output", "answer", "tool_calls")]),
    "choices": ({"question": "q", "choices": ["x", "y"]}, {"answer": "a"},
        [("input", "question", "choices")]),
    "beside messages": ({"question": "q"}, {"messages": SAID, "todos": ["Pay it."]},
        [("output", "messages", "todos")]),
    "calls that are shown": ({"question": "q"}, {"answer": "a", "tool_calls": [CALL]}, []),
    "told twice": ({"question": "q"}, {"messages": SAID, "texts": ["So."], "log": SAID}, []),
    "a source that is shown, and one that is not": (
        {"question": "q", "docs": ["x"]}, {"answer": "a", "contexts": ["y"]},
        [("output", "answer", "contexts")]),
    "numbers": ({"question": "q"}, {"answer": "a", "scores": [0.5, 1], "usage": {"in": 7}}, []),
    "empty lists": ({"question": "q"}, {"answer": "a", "steps": [], "trace": {}}, []),
    "names of nothing": ({"question": "q", "user_id": 7}, {"answer": "a", "ms": 12}, []),
}  # fmt: skip


@for_each("case", SEVERAL)
def test_a_key_that_is_read_beside_others_that_fit_is_said(case):
    inputs, outputs, expected = SEVERAL[case]
    judge = rubric_judge(model=FakeChatModel(replies=highest), rubric="Is it good?")
    feedback: Any = as_evaluator(judge)(inputs=inputs, outputs=outputs)
    notes = feedback["metadata"]["failures"]
    assert [note["reason"] for note in notes] == ["one_of_several"] * len(expected)
    assert feedback["score"] == 1
    for field, read, rest in expected:
        assert f"{field} is read from {read!r}; not shown: {rest!r}" in feedback["comment"]


def test_a_key_that_a_person_named_is_in_no_doubt():
    judge = rubric_judge(model=FakeChatModel(replies=highest), rubric="Is it good?")
    evaluator = as_evaluator(judge, output="answer")
    feedback: Any = evaluator(inputs="q", outputs={"answer": "a", "response": "b"})
    assert feedback["metadata"]["failures"] == []


def test_a_named_output_of_a_run_that_failed_is_read_where_it_stands():
    judge = rubric_judge(model=FakeChatModel(replies=highest), rubric="Is it good?")
    run = a_run({"answer": "a", "response": "b"}).model_copy(update={"error": "late"})
    read: Any = as_evaluator(judge, output="answer").evaluate_run(run, an_example(None))
    assert (read.score, read.extra["failures"]) == (1, [])


def test_a_comparison_of_runs_says_which_key_is_read_of_either():
    both, one = {"answer": "good", "response": "bad"}, {"answer": "good"}
    compare: Any = as_comparative_evaluator(bsm())
    for runs, side in (([both, one], "output_a"), ([one, both], "output_b")):
        compared = compare([a_run(outputs) for outputs in runs], an_example(None))
        said = re.findall(r"(\w+) is read from 'response'; not shown: 'answer'", str(compared))
        assert {*said} == {side}


ASSERTIONS = [
    {"key": "polite", "comment": "It thanks the guest."},
    {"key": "brief", "comment": "It has one sentence."},
]
CRITERIA: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "assertions": ({}, {"assertions": ASSERTIONS}, ["polite", "brief"]),
    "one assertion": ({}, {"assertions": ASSERTIONS[:1]}, ["polite"]),
    "called as the total is": (
        {"key": "brief"},
        {"assertions": ASSERTIONS},
        ["polite", "brief.brief"],
    ),
    "one so called": ({"key": "polite"}, {"assertions": ASSERTIONS[:1]}, []),
    "beside an answer": ({}, {"answer": "Hello.", "assertions": ASSERTIONS}, ["polite", "brief"]),
    "a text": ({}, {"criteria": "It thanks the guest."}, []),
    "named": ({"rubric": "checks"}, {"checks": ["polite: It thanks the guest."]}, ["polite"]),
    "made": (
        {
            "prepare": lambda run, example: {
                "input": "Hi",
                "output": run.outputs["answer"],
                "rubric": example.outputs["own"],
            }
        },
        {"own": ASSERTIONS},
        ["polite", "brief"],
    ),
}


@for_each("form", ["objects", "data"])
@for_each("case", CRITERIA)
def test_criteria_of_a_row_are_a_feedback_each_and_no_expected_answer(case, form):
    options, reference, names = CRITERIA[case]
    model = FakeChatModel(replies=highest)
    run, example = a_run({"answer": "Thank you."}), an_example(reference)
    if form == "data":
        run, example = run.model_dump(), example.model_dump()
    evaluator = as_evaluator(rubric_judge(model=model, rubric=None), **options)
    result: Any = evaluator.evaluate_run(run, example)
    results = result["results"] if names else [result]
    assert [each.key for each in results][1:] == names
    assert [each.score for each in results] == [1] * len(results)
    assert "It thanks the guest." in model.prompts[0]
    assert ("<expected-answer" in model.prompts[0]) == ("answer" in reference)
    assert "assertions" not in model.prompts[0]


@for_each("name", ["assertions", "criteria", "rubric"])
@for_each("rubric", ["helpfulness", "correctness", "Is it kind?", ["kind", "short"]])
def test_criteria_of_a_row_are_not_asked_in_place_of_a_judges_own(name, rubric):
    model = FakeChatModel(replies=fitting_reply)
    judge = rubric_judge(model=model, rubric=rubric)
    for evaluator in (as_evaluator(judge), as_evaluator(create_jury([judge, judge]))):
        told = evaluator(
            inputs=QUESTION, outputs=GOOD, reference_outputs={**GOOD, name: ASSERTIONS}
        )
        assert "rubric is the judge's own (one without" in told["comment"]
        assert told["comment"].endswith(f"not asked: {name!r}.")
    assert len(model.prompts) == 3
    assert not any("It thanks" in prompt for prompt in model.prompts)


def test_a_judge_without_a_rubric_says_which_criteria_of_a_row_it_does_not_ask():
    model = FakeChatModel(replies=highest)
    held = {"assertions": ASSERTIONS, "rubric": "It is kind."}
    evaluator = as_evaluator(rubric_judge(model=model, rubric=None))
    result: Any = evaluator.evaluate_run(a_run({"answer": "Hi."}), an_example(held))
    said = "rubric is read from 'assertions'; not asked: 'rubric'"
    assert said in result["results"][0].comment
    assert "It is kind." not in model.prompts[0]


def test_a_place_that_is_named_and_empty_is_no_verdict():
    model = FakeChatModel(replies=highest)
    for place, held in itertools.product(("reference", "rubric"), (None, {"other": "x"})):
        named: Any = {place: "answer"}
        evaluator: Any = as_evaluator(rubric_judge(model=model, rubric="Is it so?"), **named)
        result = evaluator.evaluate_run(a_run({"answer": "x"}), an_example(held))
        assert (result.score, f"`{place}`" in result.comment) == (None, True), held
    assert model.prompts == []


@for_each(
    "mime, kind", [("image/png", "image"), ("audio/wav", "audio"), ("application/pdf", "file")]
)
def test_attachments_of_an_example_are_sent_with_its_task(mime, kind):
    model = FakeChatModel(replies=highest)
    file = {"presigned_url": "", "reader": io.BytesIO(b"data"), "mime_type": mime}
    example = an_example(None).model_copy(update={"attachments": {"a.bin": file}})
    evaluator = as_evaluator(rubric_judge(model=model, rubric="Is it good?"))
    for _ in range(2):
        assert cast("Any", evaluator.evaluate_run(a_run({"answer": "x"}), example)).score == 1
        content: Any = model.messages[-1][-1].content
        sent = next(block for block in content if block.get("type") != "text")
        assert (sent["type"], base64.b64decode(sent["base64"])) == (kind, b"data")
        assert "Attached, a.bin:" in model.prompts[-1]
        file["reader"].read()  # as a target may leave it


def test_a_checkpointed_judge_gets_a_thread_for_each_row():
    persistent = bsm(checkpointer=InMemorySaver())
    for judge in (persistent, persistent.with_retry()):
        result: Any = as_evaluator(judge)(inputs="w", outputs="good", reference_outputs="x")
        assert result["score"] > 0.5


@for_each(
    ("judge", "options"),
    [(RunnableLambda(lambda x: x), {}), (bsm(), {"output": 3}), (bsm(), {"key": 3})],
)
def test_what_cannot_judge_is_refused(judge, options):
    with pytest.raises(OptionError):
        as_evaluator(judge, **options)
    with pytest.raises(OptionError, match="must compare pairs"):
        as_comparative_evaluator(labels())


def test_three_runs_are_compared_each_with_each():
    runs = [a_run({"answer": "good " * n + "x"}) for n in (2, 1, 0)]
    found: Any = as_comparative_evaluator(fixed("A", 1.0))(runs, an_example())
    # The fixed judge prefers whatever comes first: two wins, one, none.
    assert list(found["scores"].values()) == [1.0, 0.5, 0.0]
    own, one, two = (str(run.id) for run in runs)
    assert {*re.findall(r"compared with (\S+)\. ", found["comment"][own])} == {one, two}


def test_comparisons_without_a_verdict_have_reasons_and_no_score():
    one, two = a_run({"x": 1, "y": [AIMessage("2")]}), a_run(GOOD)
    for judge, outputs in ((bsm(), one), (broken(), a_run(BAD))):
        result = as_comparative_evaluator(judge)([outputs, two], an_example())
        assert set(result["scores"].values()) == {None}
        assert all("Not judged" in comment for comment in result["comment"].values())


def test_a_comparison_is_fed_back_by_its_key_and_reads_the_texts_where_they_are_named():
    model = FakeChatModel(replies=fitting_reply)
    places: Any = {"input": "q", "output": "said", "reference": "known", "context": "page"}
    compare: Any = as_comparative_evaluator(create_relative_judge(model), key="own", **places)
    inputs = {"q": "Rain?", "input": "-no-", "page": "Oslo is wet."}
    sides = [{"said": text, "output": "-no-"} for text in ("Yes.", "No.")]
    found = compare(inputs=inputs, outputs=sides, reference_outputs={"known": "Sun!", "x": "-no-"})
    assert (found["key"], compare.__name__) == ("own", "own")
    shown = "".join(model.prompts)
    assert all(text in shown for text in ("Rain?", "Oslo is wet.", "Yes.", "No.", "Sun!"))
    assert "-no-" not in shown
    with pytest.raises(OptionError, match="`key` must be"):
        as_comparative_evaluator(bsm(), key="")


ONE = (["Q", "A"], [QUESTION, GOOD], ["runs", "example"], ["run", "text"], ["example", "run"])


@for_each("given", [*ONE, ["runs", "examples"]])
def test_an_evaluator_says_how_it_is_called_and_what_compares_runs(given):
    runs, example = [a_run(GOOD), a_run(BAD)], an_example()
    things = {"run": runs[0], "runs": runs, "example": example, "examples": [example] * 2}
    for judge in (labels(), bsm()):
        with pytest.raises(OptionError, match=r"a run and its example.*as_comparative_eval"):
            as_evaluator(judge)(*(things.get(str(each), each) for each in given))


@for_each("given", [*ONE[:2], [[]], [["run"]], ["run", "example"], ["example"]])
def test_a_comparison_says_that_it_takes_two_runs_and_what_judges_one(given):
    things = {"run": a_run(GOOD), "example": an_example()}
    first, *more = given
    first = [*map(things.get, first)] if isinstance(first, list) else things.get(str(first), "Q")
    with pytest.raises(OptionError, match=r"two or more runs .*`as_evaluator`"):
        as_comparative_evaluator(bsm())(first, *(things.get(str(each)) for each in more))
    for outputs in ("text", ["one"], None):
        with pytest.raises(OptionError, match="two or more runs"):
            as_comparative_evaluator(bsm())(inputs="Q", outputs=outputs)


@for_each("given", [{}, {"example": an_example()}, {"example": an_example(), "outputs": "A"}])
def test_a_call_without_a_run_and_texts_is_told_what_it_takes(given):
    with pytest.raises(OptionError, match=r"called with a run and its example.*, got no run"):
        as_evaluator(labels())(**given)
    assert "got null" in as_evaluator(labels())(inputs="Q")["comment"]


@for_each("name", ["input", "output", "reference_output"])
def test_a_misspelt_field_of_a_call_is_refused_with_its_name(name):
    right = {"input": "inputs", "output": "outputs"}.get(name, "reference_outputs")
    fields = {"inputs": "Q", "outputs": ["A", "B"], "reference_outputs": "G"}
    wrong = {name if each == right else each: text for each, text in fields.items()}
    for evaluator in (as_evaluator(labels()), as_comparative_evaluator(bsm())):
        with pytest.raises(OptionError, match=f"`{name}` is shown.*did you mean '{right}'"):
            cast("Any", evaluator)(**wrong)


def test_what_prepares_rows_takes_whatever_an_evaluator_is_called_with():
    made = {"input": "Q", "output": "good good"}
    evaluator = as_evaluator(labels(), prepare=lambda run, example: {**made, "input": run.q})
    assert evaluator({"q": "Why?"})["score"] is not None


def test_a_call_with_a_run_shows_its_variables_too():
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, prompts="Is {outputs} {tone}?")
    as_evaluator(judge)(a_run(GOOD), an_example(), tone="mild")
    assert "mild" in model.prompts[0]


def test_of_a_target_that_raised_the_comment_says_what_it_raised():
    error = "ValueError('target broke')\n\nTraceback (most recent call last):\n  File"
    failed = a_run({"output": None}, error=error)
    for found in (
        as_evaluator(labels())(failed, an_example())["comment"],
        *as_comparative_evaluator(bsm())([failed, a_run(GOOD)], None)["comment"].values(),
    ):
        assert found.endswith("the run failed and has no output: ValueError('target broke')")


def listened(judge):
    """A judge, and what its runs are: id, name, metadata."""
    runs: list[Any] = []
    return judge.with_listeners(on_start=lambda run: runs.append(run)), runs


@pytest.mark.parametrize("kind", ["sync", "async", "called", "compared"])
async def test_the_run_of_a_judge_is_named_and_leads_to_what_it_judged(kind):
    judge, heard = listened(bsm())
    evaluator, run, own = as_evaluator(judge, key="own"), a_run(GOOD), uuid.uuid4()
    if kind == "compared":
        other = a_run(BAD)
        as_comparative_evaluator(judge)([run, other], an_example())
        told = {"run_a": str(run.id), "run_b": str(other.id)}
    elif kind == "called":
        feedback = evaluator(run, an_example())
        # It is traced nowhere.
        assert (feedback["source_run_id"], heard[0].name) == (None, "own")
        told = {}
    else:
        given = (run, an_example(), own)
        if kind == "sync":
            result: Any = evaluator.evaluate_run(*given)
        else:
            result = await evaluator.aevaluate_run(*given)
        assert (result.source_run_id, heard[0].id, heard[0].name) == (own, own, "own")
        told = {"target_run_id": str(run.id)}
    assert heard[0].metadata.items() >= told.items()


def test_an_experiment_whose_first_rows_all_lack_the_same_ends_and_one_that_began_goes_on():
    judge = rubric_judge(model=FakeChatModel(replies=highest), rubric="groundedness")
    lacking, full = a_run(GOOD), a_run({**GOOD, "context": "It rained."})
    evaluator: Any = as_evaluator(judge)
    for _ in range(ALIKE - 1):
        assert "needs a source" in evaluator.evaluate_run(lacking).comment
    with pytest.raises(RepeatedFailureError, match=f"first {ALIKE} rows .*: `context`: the"):
        evaluator.evaluate_run(lacking)
    began: Any = as_evaluator(judge)
    assert began.evaluate_run(full).score == 1
    assert [began.evaluate_run(lacking).score for _ in range(ALIKE + 1)] == [None] * (ALIKE + 1)


def test_a_call_in_a_test_of_langsmith_logs_each_feedback_in_a_trace_of_its_own(monkeypatch):
    logged: list[tuple[Any, ...]] = []

    @contextmanager
    def traced(*, name):
        logged.append((name,))
        yield

    monkeypatch.setattr("langsmith.testing.trace_feedback", traced)

    def said(*, key, score, comment, **_):
        logged.append((key, score, comment))

    monkeypatch.setattr("langsmith.testing.log_feedback", said)
    model = FakeChatModel(replies=highest)
    as_evaluator(rubric_judge(model=model, rubric=["Tone", "Fit"]))(outputs="x y")
    assert [each[:2] for each in logged] == [("rubric",), ("rubric", 1), ("Tone", 1), ("Fit", 1)]
    assert logged[2][2] == "-"
    logged.clear()
    compared: Any = as_comparative_evaluator(bsm())(inputs="w", outputs=["good", "x"])
    own = ("preference", compared["scores"][0], compared["comment"][0])
    assert logged == [("preference",), own]
    logged.clear()
    trajectory_evaluator(key="calls")(outputs=["a"], reference_outputs=["a"])
    assert [each[:2] for each in logged] == [("calls",), ("calls", 1)]


def test_two_evaluators_of_one_key_on_one_run_of_an_experiment_are_refused():
    run, judges = a_run(GOOD), (bsm(), of_method("relative"))
    said = "'bsm' and 'relative', give the feedback 'k': name one of them by `as_evaluator"
    first, second = (as_evaluator(judge, key="k") for judge in judges)
    with tracing_context(metadata={"experiment": "e"}):
        first.evaluate_run(run, an_example())
        with pytest.raises(OptionError, match=re.escape(said)):
            second.evaluate_run(run, an_example())
        second.evaluate_run(a_run(GOOD), an_example())


def test_a_prepared_row_that_is_none_is_named():
    prepare: Any = lambda run, example: [run]  # noqa: E731
    result: Any = as_evaluator(bsm(), prepare=prepare).evaluate_run(a_run(GOOD))
    assert "`prepare` must return a row, got list" in result.comment
    with pytest.raises(OptionError, match="`prepare` must be"):
        as_evaluator(bsm(), prepare=cast("Any", "x"))


@for_each(
    "attached, block",
    [
        ("http://x/a.png", {"type": "image", "url": "http://x/a.png"}),
        (
            {"mime_type": " Video/MP4 ", "data": "https://x/a.mp4", "name": "a"},
            {"type": "video", "mime_type": "video/mp4", "url": "https://x/a.mp4"}
            | {"filename": "a"},
        ),
        (
            {"mime_type": "application/pdf", "data": "data:application/pdf;base64,aGk="},
            {"type": "file", "mime_type": "application/pdf", "base64": "aGk="},
        ),
        ({"mime_type": "audio/wav", "data": "aGk="},
         {"type": "audio", "mime_type": "audio/wav", "base64": "aGk="}),
        ({"type": "image", "url": "http://x/b.png"}, {"type": "image", "url": "http://x/b.png"}),
        ({"mime_type": "application/zip", "data": "aGk="}, None),
        ({"mime_type": "image/png"}, None),
        ({"mime_type": "image/png", "data": b""}, None),
        ({"reader": io.BytesIO(), "mime_type": "text/plain"}, None),
        (7, None),
    ],
)  # fmt: skip
def test_an_attachment_is_a_block_of_its_kind_or_is_refused(attached, block):
    if block is None:
        with pytest.raises(InputError, match="an attachment is an address"):
            eval_cases.attachment_blocks(attached)
        told = as_evaluator(labels())(inputs="q", outputs="a", attachments={"map": attached})
        assert told["comment"].startswith("Not judged. invalid_input")
        return
    for given in (attached, [attached, None]):
        [made] = eval_cases.attachment_blocks(given)
        assert {name: made[name] for name in made if name != "id"} == block


@for_each("data", [b"hi", "aGk=", "data:image/png;base64,aGk="])
def test_files_by_name_are_given_as_examples_of_langsmith_are(data):
    for file in (("image/png", data), {"mime_type": "image/png", "data": data}):
        named, sent = eval_cases.attachment_blocks({"a.png": file})
        assert named["text"] == "Attached, a.png:"
        assert (sent["type"], sent["base64"], sent["mime_type"]) == ("image", "aGk=", "image/png")


WRITTEN = ("text/plain", "TEXT/CSV; charset=utf-8", "application/json", "application/ld+json",
    "application/xml", "application/x-yaml", "application/x-ndjson", "image/svg+xml")  # fmt: skip


@for_each("mime", WRITTEN)
def test_a_file_of_an_example_that_is_text_is_shown_as_text_or_refused(mime):
    for data in ("caf\u00e9".encode(), "caf\u00e9".encode("utf-8-sig")):
        _, block = eval_cases.attachment_blocks(
            {"a": {"reader": io.BytesIO(data), "mime_type": mime}}
        )
        assert block == {"type": "text", "text": "caf\u00e9"}
    for encoding in ("latin-1", "utf-16"):
        told = as_evaluator(labels())(
            outputs="x", attachments={"a": (mime, "caf\u00e9".encode(encoding))}
        )
        assert (
            f"the attachment 'a', {mime.lower().partition(';')[0]}, is not in UTF-8"
            in told["comment"]
        )


@for_each("mime", ["", "application/octet-stream", "application/zip", "application/pdf"])
def test_a_file_of_an_example_that_is_no_text_is_a_file(mime):
    _, block = eval_cases.attachment_blocks({"b": {"reader": io.BytesIO(b"hi"), "mime_type": mime}})
    assert block == {"type": "file", "base64": "aGk=", "mime_type": mime}


@for_each(
    "order, made, wanted, comment",
    [
        ("same", ["a", "b"], ["a", "b"], "The calls agree (2 made, 2 in the reference)."),
        ("subset", ["a"], ["a", "b"], "The calls agree (1 made, 2 in the reference)."),
        ("same", ["b", "a"], ["a", "b"], "another order: b, a"),
        ("any", ["a", "c"], ["a", "b"], "missing: b; not in the reference: c"),
        ("subset", ["a", "c"], ["a", "b"], "not in the reference: c"),
        ("superset", ["a", "c"], ["a", "b"], "missing: b"),
        ("same", [], ["a", "b"], "missing: a, b"),
    ],
)
def test_a_comparison_of_trajectories_names_what_is_missing_or_too_many(
    order, made, wanted, comment
):
    compare = trajectory_evaluator(order, key="calls", output="o", reference="r")
    result = compare(outputs={"o": made, "x": []}, reference_outputs={"r": wanted})
    assert (result["key"], result["comment"]) == ("calls", comment)
    assert result["score"] == float("agree" in comment)
    assert compare.__name__ == "calls"


def test_the_calls_of_a_run_are_those_of_its_tools():
    moment = datetime.now(UTC)
    tool = a_run({"output": "Paid."}).model_copy(
        update={"name": "pay", "run_type": "tool", "inputs": {"sum": 7}, "start_time": moment}
    )
    whole = a_run({"answer": "Done."}).model_copy(update={"child_runs": [tool]})
    for run in (whole, whole.model_dump()):
        result = trajectory_evaluator()(outputs=run, reference_outputs=["pay"])
        assert result["score"] == 1, result["comment"]
    named, steps = trajectory_evaluator(output="steps"), a_run({"steps": ["pay"], "log": ["x"]})
    assert named(outputs=steps, reference_outputs=["pay"])["score"] == 1


PAY = {"name": "pay", "run_type": "tool", "inputs": {"sum": 7}, "outputs": {"output": "ok"}}
PLACES: Any = [None, "answer", "inner.text", lambda outputs: outputs["answer"]]


@for_each("place", PLACES)
@for_each("error", [None, "Timeout"])
@for_each("tools", [[], [PAY]])
def test_a_named_output_is_judged_with_the_tools_and_the_error_of_its_run(place, error, tools):
    runs = [
        a_run({"answer": text, "inner": {"text": text}, "notes": [f"{text} it is"]}, error=error)
        for text in ("Yes", "No")
    ]
    for each in runs:
        each.child_runs = [a_run(None).model_copy(update=tool) for tool in tools]
    model = FakeChatModel(replies=fitting_reply)
    judge = rubric_judge(model=model, rubric="Is it so?", needs=("source",))
    as_evaluator(judge, output=place, context="notes").evaluate_run(runs[0], an_example())
    compare: Any = as_comparative_evaluator(create_relative_judge(model), output=place)
    compare(runs, an_example())
    for prompt, sides in ((model.prompts[0], 1), (model.prompts[1], 2)):
        assert prompt.count("<call-of-pay-") == prompt.count("\nok\n") == sides * len(tools)
        assert prompt.count("It failed: Timeout") == sides * bool(error)
        assert "\nYes\n" in prompt
    assert "Yes it is" in model.prompts[0]


@for_each(
    "inputs", [{"sum": 7}, {"sum": 7, "currency": "EUR"}, {"sum": "7"}, {"input": "{'sum': 7}"}, {}]
)
@for_each("told", ["1", None, "2"])
def test_a_call_of_a_child_run_is_that_of_the_messages_by_its_id_or_if_it_may_be(inputs, told):
    result: Any = "ok" if told is None else ToolMessage("ok", tool_call_id=told)
    called = {"role": "assistant", "content": "", "tool_calls": [{**PAY_CALL, "id": "1"}]}
    messages = [PAID[0], called, *PAID[2:]]
    run = a_run({"messages": messages})
    tool = {**PAY, "inputs": inputs, "outputs": {"output": result}}
    run.child_runs = [a_run(None).model_copy(update=tool)]
    wanted = 2 if told == "2" else 1
    made = trajectory_evaluator("any")(outputs=run, reference_outputs=["pay"] * wanted)
    assert made["score"] == 1, made["comment"]


@for_each(
    "name, inputs, output, is_held",
    [
        ("run_tool", {"name": "pay", "args": {"sum": 7}}, "ok", True),  # passes it on
        ("pay_impl", {"sum": 7}, "ok", True),
        ("pay_impl", {"amount": 7}, "Paid 7.", True),
        ("look_up", {"id": 1}, "none", False),
    ],
)
@for_each("has_inner", [True, False])
def test_a_run_under_another_name_is_the_call_that_it_may_be_and_others_are_shown(
    name, inputs, output, is_held, has_inner
):
    called = {"role": "assistant", "content": "", "tool_calls": [{**PAY_CALL, "id": "1"}]}
    result = {"role": "tool", "content": "Paid 7.", "tool_call_id": "1"}
    run = a_run({"messages": [PAID[0], called, result, PAID[-1]]})
    pay, other = [
        a_run(None).model_copy(update={"run_type": "tool", **each})
        for each in (PAY, {"name": name, "inputs": inputs, "outputs": {"output": output}})
    ]
    run.child_runs = [other.model_copy(update={"child_runs": [pay] * has_inner})]
    run.child_runs += [
        other.model_copy(),
        other.model_copy(),
    ]  # more runs than calls: these are surely others
    wanted = ["pay", *[name] * (3 - (is_held or has_inner))]
    made = trajectory_evaluator("any", arguments="ignored")(outputs=run, reference_outputs=wanted)
    assert made["score"] == 1, made["comment"]


FAILED = {"error": "ValueError('boom')\n\nTraceback (most recent call last):\n  File"}
RUN_FORMS: list[Any] = [
    lambda run: run,
    lambda run: run.model_dump(),
    lambda run: json.loads(run.model_dump_json()),
]


@for_each("form", RUN_FORMS)
@for_each("place", [None, "output"])
@for_each("outputs", [None, {"output": None}])
def test_a_run_that_failed_without_an_output_is_refused_by_its_error(form, place, outputs):
    judge = rubric_judge(model=FakeChatModel(replies=fitting_reply), rubric="Is it so?")
    runs = (form(a_run(outputs, **FAILED)), form(a_run(GOOD)))
    row, good = ({place: run} if place else run for run in runs)
    whole, lost = judge_many(judge, [good, row])
    assert whole["judged"], whole["verdict"]
    [failure] = lost["verdict"]["failures"]
    assert failure["detail"] == "the run failed and has no output: ValueError('boom')"


@for_each(
    ("error", "told"),
    [
        ("OSError('full')Traceback (most recent call last):\n  File", "OSError('full')"),
        ("Error: refused\n    at fetch (/app/a.js:1:2)\n    at run", "Error: refused"),
        ("Traceback (most recent call last):\n  File\nOSError: full", "OSError: full"),
        ("E()\n  + Exception Group Traceback (most recent call last):\n  | x", "E()"),
        ("503\nbusy " * 99, ("503\nbusy " * 99).strip()),
        ("Too few:\n    at least 3, got 2", "Too few:\n    at least 3, got 2"),
        ("no\n    at /app/a.js:10:12", "no"),
        ("Busy: " + "x y " * 999, "Busy: " + "x y " * 247 + "x y …"),
    ],
)
def test_of_a_tool_that_failed_the_error_is_shown_without_its_stack_to_a_limit(error, told):
    run = a_run({"answer": "I could not."})
    fetch = {"name": "fetch", "run_type": "tool", "inputs": {"url": "x"}, "error": error}
    run.child_runs = [a_run(None).model_copy(update=fetch)]
    result = plain_row({"output": run})["output"][1]
    assert (result["role"], result["content"]) == ("tool", told)


def test_tries_of_a_call_that_failed_before_it_had_a_result_are_that_call():
    called = {"role": "assistant", "content": "", "tool_calls": [{**PAY_CALL, "id": "1"}]}
    result = {"role": "tool", "content": "ok", "tool_call_id": "1"}
    for tries in range(4):
        for output in ("ok", ToolMessage("ok", tool_call_id="1")):
            run = a_run({"messages": [PAID[0], called, result, PAID[-1]]})
            failed = {**PAY, "outputs": None, "error": "later"}
            parts = [*[failed] * tries, {**PAY, "outputs": {"output": output}}]
            run.child_runs = [a_run(None).model_copy(update=each) for each in parts]
            made = trajectory_evaluator("same")(outputs=run, reference_outputs=["pay"])
            assert made["score"] == 1, (tries, output, made["comment"])


def test_a_step_stands_in_the_turn_of_its_run_where_an_earlier_one_made_the_same_call():
    turns: list[Any] = []
    for id in ("1", "2"):
        called = {"role": "assistant", "content": "", "tool_calls": [{**PAY_CALL, "id": id}]}
        turns += [PAID[0], called, {"role": "tool", "content": "ok", "tool_call_id": id}, PAID[-1]]
    run = a_run({"messages": turns})
    log = {"name": "log", "run_type": "tool", "inputs": {"x": 1}, "outputs": {"output": "noted"}}
    run.child_runs = [a_run(None).model_copy(update=each) for each in (PAY, log)]
    work: Any = outputs_of(run)
    names = [call["name"] for m in work["messages"] for call in m.get("tool_calls", ())]
    assert names == ["pay", "pay", "log"]


def test_a_call_that_no_message_asked_for_is_shown_once_where_its_result_is_a_message():
    result = ToolMessage("Paid 7.", tool_call_id="1", name="pay")
    run = a_run({"messages": [PAID[0], result, PAID[-1]]})
    tool = {**PAY, "inputs": {"sum": 7}, "outputs": {"output": result}}
    run.child_runs = [a_run(None).model_copy(update=tool)]
    assert readable(plain_row({"output": run})["output"]).count("Paid 7.") == 1


PAY_CALL: dict[str, Any] = {"name": "pay", "args": {"sum": 7}}
ARGS: list[Any] = ["args", "arguments", "input", "parameters", "input_parameters", "kwargs"]
ARGS += ["tool_input", "tool_args", "own"]
# A call as it stands in a list and in a message, bare or under a function.
FORMS: list[Any] = [dict, lambda call: {"id": "1", "type": "function", "function": call}]
HOLDERS: list[Any] = [lambda call: [call], lambda call: {"tool_calls": [call]}]


@for_each("name", ARGS)
@for_each("form", FORMS)
@for_each("holder", HOLDERS)
@for_each("side", ["outputs", "reference_outputs"])
def test_arguments_under_any_usual_name_are_compared_and_others_are_not(name, form, holder, side):
    other = {"outputs": "reference_outputs", "reference_outputs": "outputs"}[side]
    pay, scores = HOLDERS[0]({"name": "pay", "args": {"sum": 7}}), []
    for sum in (7, 8):
        made = holder(form({"name": "pay", name: {"sum": sum}}))
        values: dict[str, Any] = {side: made, other: pay}
        scores.append(trajectory_evaluator()(**values)["score"])
    assert scores == ([None, None] if name == "own" else [1.0, 0.0])


@for_each("side", ["outputs", "reference_outputs"])
def test_work_with_results_of_tools_in_which_no_call_is_read_agrees_with_none(side):
    said = {"role": "assistant", "content": "So."}
    paid = {"role": "tool", "content": "paid", "tool_call_id": "1"}
    values: dict[str, Any] = {"outputs": [said], "reference_outputs": [said]}
    assert trajectory_evaluator()(**values)["score"] == 1
    assert trajectory_evaluator()(**{**values, side: [paid, said]})["score"] is None


AGAIN = {"role": "user", "content": "Pay again."}
PAID = [
    {"role": "user", "content": "Pay."},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "pay", "args": {}, "id": "1"}]},
    {"role": "tool", "content": "ok", "tool_call_id": "1"},
    {"role": "assistant", "content": "Paid."},
]


@for_each(
    "inputs", [{"messages": [*PAID, AGAIN]}, {"messages": [AGAIN]}, {"question": "Pay again."}]
)
@for_each("does", [True, False])
def test_calls_before_the_request_are_not_compared(inputs, does):
    new = [{"role": "assistant", "content": "No."}] if not does else PAID[1:]
    state = {"messages": [*PAID, AGAIN, *new]}
    for wanted in (["pay"], {"messages": [*PAID, AGAIN, *PAID[1:]]}):
        result = trajectory_evaluator("any")(inputs=inputs, outputs=state, reference_outputs=wanted)
        assert (result["score"], "1 made, 1" in result["comment"]) == (does, does)


SPELT: dict[str, Any] = {
    "LangChain": lambda n: {"name": "pay", "args": {"n": n}, "id": "1"},
    "OpenAI": lambda n: {
        "type": "function",
        "function": {"name": "pay", "arguments": f'{{"n":{n}}}'},
    },
    "deepeval": lambda n: {"name": "pay", "input_parameters": {"n": n}, "output": "ok"},
    "Cohere": lambda n: {"name": "pay", "parameters": {"n": n}},
}
HELD: dict[str, Any] = {
    "a list": lambda call: [call],
    "an output": lambda call: {"answer": "x", "tool_calls": [call]},
    "a message": lambda call: {"role": "assistant", "content": "x", "tool_calls": [call]},
}


@for_each("form, other", itertools.product(SPELT, SPELT))
@for_each("place, another", itertools.product(HELD, HELD))
def test_calls_in_every_form_are_compared_with_their_arguments(form, other, place, another):
    made, compare = HELD[place](SPELT[form](1)), trajectory_evaluator()
    for n, score in ((1, 1.0), (2, 0.0)):
        wanted = HELD[another](SPELT[other](n))
        assert compare(outputs=made, reference_outputs=wanted)["score"] == score


@for_each("name, value", itertools.product(["output", "reference"], [None, "", {}, 3, {"a": 1}]))
def test_what_cannot_be_read_as_a_trajectory_is_named(name, value):
    values: Any = {"output": ["a"], "reference": ["a"], name: value}
    feedback = trajectory_evaluator()(
        outputs=values["output"], reference_outputs=values["reference"]
    )
    assert feedback["score"] is None
    assert feedback["comment"].startswith(f"Not compared: `{name}`")


@for_each("name", ["output", "reference"])
def test_what_holds_no_trajectory_is_named_and_has_no_score(name):
    values = {"output": ["a"], "reference": ["a"], name: "Good."}
    result = trajectory_evaluator()(outputs=values["output"], reference_outputs=values["reference"])
    assert (result["key"], result["score"]) == ("trajectory_match", None)
    assert result["comment"] == (
        f"Not compared: `{name}`: expected messages, calls or names of tools, got the text "
        f"'Good.'; name their place with `{name}=`"
    )
    with pytest.raises(OptionError, match=f"`{name}"):
        trajectory_evaluator(**cast("Any", {name: 3}))


def rubric_judge(**options: Any) -> Any:
    return of_method("rubric", **options)


# ---- openevals' published evaluators

MEDIA = [
    {"type": "image_url", "image_url": {"url": "https://example.org/oslo.png"}},
    {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
]
CHAT = [
    {"role": "user", "content": "Where is parcel 7?"},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "track", "args": {}}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Good: in Oslo."}, *MEDIA]},
    {"role": "user", "content": "Thanks."},
]
CALLED_HERE = {
    "AGENT_TONE": "tone",
    "AUDIO_QUALITY": "voice",
    "EXPLICIT_CONTENT": "image_safety",
    "LAZINESS": "effort",
    "PII_LEAKAGE": "personal_data",
    "RAG_GROUNDEDNESS": "groundedness",
    "RAG_HELPFULNESS": "answer_relevance",
    "RAG_RETRIEVAL_RELEVANCE": "context_relevance",
    "SENSITIVE_IMAGERY": "image_safety",
    "TASK_COMPLETION": "conversation_goal",
    "TOOL_SELECTION": "tool_use",
    "TRAJECTORY_ACCURACY": "goal_reached",
    "TRANSCRIPTION_ACCURACY": "transcription",
    "USER_INTERRUPTS": "voice",
    "USER_SATISFACTION": "user_satisfied",
    "VOCAL_AFFECT": "voice",
    "WINS": "user_praise",
}
"""The others are called here as there."""
LABELLED = {"LANGUAGE_DETECTION", "SUPPORT_INTENT"}
"""They name a language or a topic: `labels=` of one's own."""


def highest(prompt):
    """Give every criterion its highest label."""
    schema = json.loads(prompt[prompt.index('{"properties"') :])
    whole = schema["properties"]
    shapes = {**schema.get("$defs", {}), **whole}
    best = {"explanation": "-"}

    def reply(part):
        part = shapes[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
        labels = part["properties"]["label"]["enum"]
        return {**best, "label": [each for each in labels if each != "cannot_assess"][-1]}

    return reply(schema) if "label" in whole else {n: reply(p) for n, p in whole.items()}


@pytest.mark.whole
def test_each_evaluator_of_openevals_has_one_here_that_takes_its_input():
    words = "_PROMPT|_PROMPT_WITH_REFERENCE(_OUTPUTS)?"
    names = {re.sub(f"({words})$", "", n) for n in dir(prompts) if re.search(f"({words})$", n)}
    assert len(names) > 30
    assert names > CALLED_HERE.keys() | LABELLED
    page = (ROOT / "docs" / "compared.md").read_text()
    fields: dict[str, Any] = {
        "inputs": {"question": "Where is parcel 7?"},
        "outputs": {"messages": CHAT},
        "reference_outputs": {"answer": "In Oslo."},
        "context": {"documents": ["Parcel 7 is in Oslo."]},
    }
    for name in names - LABELLED:
        rubric = CALLED_HERE.get(name, name.lower())
        judge = rubric_judge(model=FakeChatModel(replies=highest), rubric=rubric)
        feedback: Any = as_evaluator(judge)(**fields)
        assert feedback["score"] == 1, (name, feedback["comment"])
        assert f"`{rubric}`" in page, rubric
        # A prompt that is carried over whole is refused, with the way to say it.
        with pytest.raises(OptionError, match="Say only what"):
            rubric_judge(rubric=getattr(prompts, f"{name}_PROMPT"))


# ---- agentevals' published evaluators


def asks(*calls):
    """A message with calls in the form of agentevals' README: without ids."""
    functions = [{"name": name, "arguments": json.dumps(args)} for name, args in calls]
    own = [{"function": function} for function in functions]
    return {"role": "assistant", "content": "", "tool_calls": own}


def went(*turns):
    """An agent's trajectory whose turns are calls that were made at once."""
    results = [{"role": "tool", "content": "80 degrees."}]
    work = [message for calls in turns for message in (asks(*calls), *results * len(calls))]
    question = {"role": "user", "content": "What is the weather in SF?"}
    return [question, *work, {"role": "assistant", "content": "It is 80 degrees."}]


SF, LOW, FUN = ({"city": "San Francisco"}, {"city": "san francisco"}, ("fun", {"city": "SF"}))
LOOKS, ASKS = ("get_weather", SF), ("forecast", SF)
UPPER = {"arguments": lambda name, made, wanted: made["city"].lower() == wanted["city"].lower()}
AGENTEVALS = [
    # The examples of agentevals 0.0.9's README, with the scores that stand there.
    ("same", {}, went([LOOKS, ASKS]), went([LOOKS]), 0),
    ("any", {}, went([LOOKS], [FUN]), went([FUN, LOOKS]), 1),
    ("superset", {}, went([LOOKS, ASKS]), went([LOOKS]), 1),
    ("same", UPPER, went([("get_weather", LOW)]), went([LOOKS]), 1),
    # What its source gives in cases that its README does not show.
    ("subset", {}, went([LOOKS]), went([LOOKS, ASKS]), 1),
    ("same", {}, went([LOOKS], [FUN]), went([FUN], [LOOKS]), 0),
    ("same", {}, went([LOOKS, FUN]), went([FUN, LOOKS]), 1),  # made at once: in no order
    ("same", {}, went([LOOKS, FUN]), went([LOOKS], [FUN]), 0),
    ("same", {"arguments": "ignored"}, went([("get_weather", {})]), went([LOOKS]), 1),
    ("same", {"arguments": "subset"}, went([("get_weather", {})]), went([LOOKS]), 1),
    ("same", {"arguments": "superset"}, went([("get_weather", {})]), went([LOOKS]), 0),
    ("superset", {}, went([LOOKS]), went([LOOKS], [LOOKS]), 0),  # each call counts
]


@for_each("order, options, made, wanted, score", AGENTEVALS)
def test_trajectories_of_agentevals_have_its_scores(order, options, made, wanted, score):
    evaluator = trajectory_evaluator(order, **options)
    for outputs in (made, {"messages": made}):
        result = evaluator(outputs=outputs, reference_outputs={"messages": wanted})
        assert result["score"] == score, result["comment"]


# What stands beside the messages is no trajectory, and messages without a call are none.
@for_each("outputs, score", [(went([LOOKS]), 1), (went(), 0)])
@for_each("beside", [{}, {"steps": ["pay"]}, {"trajectory": ["pay"]}])
def test_the_calls_of_a_state_are_those_of_its_messages(outputs, score, beside):
    state = {"messages": outputs, **beside}
    wanted = {"messages": went([LOOKS])}
    assert trajectory_evaluator()(outputs=state, reference_outputs=wanted)["score"] == score


def test_arguments_in_common_are_matched_wherever_a_matching_exists():
    city, day = ("w", {"city": "SF"}), ("w", {"city": "SF", "day": 2})
    evaluator = trajectory_evaluator("any", arguments="subset")
    assert evaluator(inputs="?", outputs=went([city]), reference_outputs=went([day]))["score"]
    # The first call fits both: taken in order (as agentevals does) the second is left over.
    assert evaluator(outputs=went([city, day]), reference_outputs=went([day, city]))["score"] == 1
    booked = [{"name": "book", "args": {"on": datetime(2026, 1, 2, tzinfo=UTC)}}]
    said = trajectory_evaluator()(outputs=booked, reference_outputs=["pay"])["comment"]
    assert said == ('missing: pay; not in the reference: book({"on": "2026-01-02 00:00:00+00:00"})')
    with pytest.raises(OptionError, match="`arguments` must be"):
        trajectory_evaluator(arguments=cast("Any", "exact"))


THREAD: dict[str, Any] = {
    "inputs": [
        {"__start__": {"messages": [{"role": "user", "content": "What's the weather in SF?"}]}},
        "__resuming__",
    ],
    "outputs": {
        "results": [{}, {"messages": [{"role": "ai", "content": "It is rainy, 70 degrees."}]}],
        "steps": [["__start__", "agent", "tools", "__interrupt__"], ["agent"]],
    },
}
"""The extract of a thread of LangGraph by agentevals, as in its README."""


def test_graph_trajectories_of_agentevals_are_judged_and_are_no_calls():
    taken = THREAD["outputs"]
    assert trajectory_evaluator()(outputs=taken, reference_outputs=taken)["score"] is None
    model = FakeChatModel(replies=highest)
    judge = rubric_judge(model=model, rubric="goal_reached")
    feedback: Any = as_evaluator(judge)(**THREAD)
    assert feedback["score"] == 1, feedback["comment"]
    [prompt] = model.prompts
    shown = unfenced(prompt)
    assert "[nodes]\n__start__ → agent → tools → __interrupt__\n" in shown
    assert "[nodes]\nagent\n\n[assistant]\nIt is rainy, 70 degrees." in shown
    assert "What's the weather in SF?" in shown[: shown.index("[nodes]")]


@for_each("reference", [None, went([LOOKS])])
def test_a_trajectory_without_inputs_is_judged_by_the_question_that_it_begins_with(reference):
    model = FakeChatModel(replies=highest)
    evaluator = as_evaluator(rubric_judge(model=model, rubric="goal_reached"))
    feedback: Any = evaluator(outputs=went([LOOKS]), reference_outputs=reference)
    assert feedback["score"] == 1, feedback["comment"]
    shown = unfenced(model.prompts[0])
    assert "[request]\nWhat is the weather in SF?" in shown
    assert '[call-of-get_weather]\n{"city": "San Francisco"}' in shown


ENDED: dict[str, tuple[Any, bool]] = {
    "its work ends with a call": ({"messages": [PAID[0], PAID[1]]}, True),
    "its work ends with a request": ({"messages": PAID[:1]}, True),
    "it was resumed in the same run": ({"messages": [PAID[0], PAID[-1]]}, False),
    "it says so itself": (
        {"messages": PAID[:1], "__interrupt__": [{"value": "Sure?", "id": "1"}]},
        True,
    ),
}


@for_each("case", ENDED)
@for_each("about", ["id='1', response_schema=None", "resumable=True, ns=['n:1'], when='during'"])
def test_a_run_that_was_interrupted_says_once_that_it_waits(case, about):
    outputs, waits = ENDED[case]
    run = a_run(outputs)
    error = f"GraphInterrupt((Interrupt(value='Sure?', {about}),))Traceback (most recent call last)"
    tool = a_run(None, name="ask", run_type="chain", error=error)
    run.child_runs = [a_run(None, error=error).model_copy(update={"child_runs": [tool]})]
    shown = readable(plain_row({"output": run})["output"])
    assert shown.count("interrupted and waits: ") == waits
    assert ("Sure?" in shown) == waits
