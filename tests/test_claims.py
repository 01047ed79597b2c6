"""Correctness and groundedness claim by claim: what is asked, and what the shares are."""

import re
from typing import Any

import pytest

from langchain_judges import create_rubric_judge
from langchain_judges.errors import OptionError
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.shapes import a_run

SOURCED = {
    "input": "When is the library open?",
    "output": "The library opens on Sundays, closes at six and has a café.",
    "source": "The library stays open until six, and it opens on Sundays.",
}
EXPECTED = {**SOURCED, "expected": "Until six, also on Sundays, from May on, for all."}
OWN = ["It opens on Sundays.", "It closes at six.", "It has a café."]
GOLD = ["Until six.", "On Sundays.", "From May on.", "For all."]


def says(labels, claims=OWN, expected=None):
    """A model that lists claims, then labels them: 1, 0, or None for no label."""
    listed = {"claims": claims} if expected is None else {"claims": claims, **expected}
    checked = {
        name: {"explanation": f"as to {name}", "label": str(label)}
        for name, label in labels.items()
    }
    return FakeChatModel(replies=lambda p: checked if "You check claims" in p else listed)


def named(*labels, side="claim"):
    return {f"{side}_{n}": label for n, label in enumerate(labels, 1)}


def judge_of(model, **options):
    return create_rubric_judge(model, claims=True, repairs=0, **options)


def test_the_score_of_groundedness_is_the_share_of_supported_claims():
    result = judge_of(says(named(1, 1, 0))).invoke(SOURCED)
    verdict = result["verdict"]
    assert (verdict["label"], verdict["score"]) == (0.6667, 0.6667)  # 2 of 3
    assert re.fullmatch("2 of 3 .*“It has a café.”.", verdict["rationale"])
    assert [c["claim"] for c in result["claims"] if not c["supported"]] == ["It has a café."]
    assert result["claims"][2]["reason"] == "as to claim_3"
    assert verdict["usage"]["calls"] == 2


def test_the_score_of_correctness_is_f1_of_precision_and_recall():
    labels = named(1, 1, 0) | named(1, 0, 0, 0, side="expected")
    result = judge_of(says(labels, expected={"expected_claims": GOLD})).invoke(EXPECTED)
    # Precision 2/3, recall 1/4: 2 * 2/3 * 1/4 / (2/3 + 1/4) = (1/3) / (11/12) = 4/11.
    assert result["verdict"]["score"] == round(4 / 11, 4)
    assert [(s["criterion"], s["label"]) for s in result["subscores"]] == [
        ("precision", 0.6667),
        ("recall", 0.25),
    ]
    assert result["verdict"]["rationale"].endswith("“On Sundays.”; “From May on.”; “For all.”.")


def test_groundedness_is_asked_of_the_source_alone():
    model = says(named(1, 1, 0))
    judge_of(model, rubric="groundedness").invoke({**SOURCED, "expected": "GOLDEN"})
    split, check = model.prompts
    assert "List the claims of the response." in split
    assert "until six, and" not in split
    assert "<source-" in check
    assert "claim_3: It has a café." in check
    assert "the source states it" in check
    assert "<response-" not in check
    assert "GOLDEN" not in split + check


def test_a_response_without_claims_is_not_judged_against_a_source():
    result = judge_of(says({}, claims=[" "])).invoke(SOURCED)
    assert result["verdict"]["label"] is None
    assert result["verdict"]["rationale"].startswith("Not judged: ")
    assert result["verdict"]["failures"][0]["reason"] == "empty"
    assert result["verdict"]["usage"]["calls"] == 1


def test_a_response_without_claims_has_none_of_the_expected_ones():
    result = judge_of(says({}, claims=[], expected={"expected_claims": GOLD})).invoke(EXPECTED)
    assert result["verdict"]["score"] == 0
    assert [s["score"] for s in result["subscores"]] == [None, 0]
    assert "0 of 4 claims" in result["verdict"]["rationale"]


def test_a_claim_without_a_label_is_left_out_and_named_while_a_quorum_remains():
    result = judge_of(says(named(1, None, 0))).invoke(SOURCED)
    assert result["verdict"]["score"] == 0.5  # 1 of the 2 that were checked
    [failure] = result["verdict"]["failures"]
    assert (failure["step"], failure["unit"]) == ("check", "claim_2")
    verdict = judge_of(says(named(1, None, None))).invoke(SOURCED)["verdict"]
    assert (verdict["label"], len(verdict["failures"])) == (None, 2)
    assert "1 of 3 claims" in verdict["rationale"]


@for_each(("count", "notes"), [(49, 0), (50, 1), (53, 1)])
def test_as_many_claims_as_a_prompt_allows_may_not_be_all(count, notes):
    claims = [f"Claim number {n}." for n in range(count)]
    model = says(named(*[1] * min(count, 50)), claims)
    verdict = judge_of(model).invoke(SOURCED)["verdict"]
    assert (verdict["label"], len(verdict["failures"])) == (1.0, notes)
    for failure in verdict["failures"]:
        assert (failure["reason"], failure["unit"]) == ("input_cut", "response")
        assert failure["detail"] == "claims beyond the first 50, if any, were not checked"


@for_each("step", ["list the claims", "check claims"])
def test_a_step_whose_reply_cannot_be_read_leaves_the_text_unjudged(step):
    good = says(named(1, 1, 0)).replies
    model = FakeChatModel(replies=lambda p: "Fine." if f"You {step}" in p else good(p))
    verdict = judge_of(model).invoke(SOURCED)["verdict"]
    assert verdict["label"] is None
    assert verdict["failures"]
    assert verdict["usage"]["calls"] == len(model.prompts)


@for_each(
    ("options", "message"),
    [
        ({"rubric": "helpfulness"}, "the ready rubrics 'correctness' and 'groundedness'"),
        ({"each": True}, "`each` does not go with `claims`"),
        ({"steps": ["Read."]}, "`steps` does not go with `claims`"),
    ],
)
def test_options_that_claims_do_not_take_are_named(options, message):
    with pytest.raises(OptionError, match=message):
        judge_of(says({}), **options)


def looked(id="1", said="Let me look: SEEN is so."):
    call = {"name": "search", "args": {"q": "SEEN"}, "id": id}
    result = {"role": "tool", "content": "SEEN documents claim much.", "tool_call_id": id}
    return [{"role": "assistant", "content": said, "tool_calls": [call]}, result]


CALL = {"name": "Report", "args": {"height": 330}, "id": "1"}
SEARCH = {"tool": "search", "tool_input": "SEEN", "log": "SEEN is so."}
RETRIEVED = a_run(
    2, {"documents": [{"page_content": "SEEN"}]}, inputs={"query": "SEEN"}, run_type="retriever"
)
ANSWERED = {"role": "tool", "content": "In Kyiv.", "tool_call_id": "1"}
NO_ANSWER = "(there is no final answer, unless the last result is one)"
ASKED, ANSWER = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}
REPORT = {"files": {"/r.md": "REPORT"}}
STRUCTURED: Any = [{"role": "assistant", "content": "", "tool_calls": [CALL]}, *looked()[1:]]
# Of an agent's work what its claims are listed of, in each form in which it comes.
WORK: dict[str, tuple[Any, list[str]]] = {
    "messages": ([ASKED, *looked(), ANSWER], ["So."]),
    "two calls": ([ASKED, *looked(), *looked("2"), ANSWER], ["So."]),
    "instructions": ([{"role": "system", "content": "SEEN rules."}, ASKED, ANSWER], ["So."]),
    "a state": ({"messages": [ASKED, *looked(), ANSWER], "tools": ["SEEN"]}, ["So."]),
    "files": ({"messages": [ASKED, *looked(), ANSWER], **REPORT}, ["So.", "REPORT"]),
    "a structured answer": (
        {"messages": [ASKED, *looked(), *STRUCTURED], "structured_response": {"height": 330}},
        ['{"height": 330}'],
    ),
    "an executor": (
        {"input": "Why?", "output": "So.", "intermediate_steps": [[SEARCH, "SEEN"]]},
        ["So."],
    ),
    "messages of the Responses API": (
        [
            {"type": "message", "role": "assistant", "content": "SEEN is so."},
            {"type": "function_call", "call_id": "1", "name": "search", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "SEEN"},
            {"type": "message", "role": "assistant", "content": "So."},
        ],
        ["So."],
    ),
    "a conversation": (
        [ASKED, *looked(), ANSWER, {"role": "user", "content": "And?"}, *looked("2"), ANSWER],
        ["Why?", "So.", "And?", "So."],
    ),
    "a run": (a_run(1, {"answer": "So."}, child_runs=[RETRIEVED]), ["So."]),
    "interrupted": (
        {"messages": [ASKED, *looked()], "__interrupt__": [{"value": "SEEN?", "id": "1"}]},
        ["There is no reply"],
    ),
    "what a tool answers": ([ASKED, *looked(said="")[:1], ANSWERED], ["In Kyiv.", NO_ANSWER]),
    "before the last call": ([ASKED, *looked(), ANSWER, *looked("2", "")], ["So."]),
    "beside the last call": ([ASKED, *looked(), *looked("2", "So.")], ["So."]),
    "beside it, and files": (
        {"messages": [ASKED, *looked(), *looked("2", "So.")], **REPORT},
        ["So.", "REPORT"],
    ),
}


@for_each("form", WORK)
@for_each("rubric", ["groundedness", "correctness"])
def test_the_claims_are_those_of_the_answers_alone_in_any_form_of_an_agents_work(form, rubric):
    work, said = WORK[form]
    model = says(named(1), claims=["It is."], expected={"expected_claims": ["It is."]})
    row = {"input": "Why?", "output": work, "source": "It rains.", "expected": "It is."}
    row = {name: row[name] for name in row if name != "input" or form != "a conversation"}
    judge_of(model, rubric=rubric).invoke(row)
    for prompt in model.prompts if rubric == "correctness" else model.prompts[:1]:
        shown = re.search("<response-(.*?)>\n(.*)\n</response-\\1>", prompt, re.DOTALL)
        lines = [line for line in shown[2].splitlines() if not line.startswith("<")]
        assert lines == said
        assert "SEEN" not in prompt
