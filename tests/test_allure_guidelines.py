"""Guidelines drawn from mistakes: what is asked, what the guard says, what is refused."""

import json
import re

import pytest

from langchain_judges import FailureMemory, create_allure_judge
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure import draw_guidelines
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import example

RULE = "A range holds for its ends too."
DEV = [
    {"input": f"Count to {n}?", "output": f"{n}", "expected": f"{n}", "id": f"d{n}", "label": n % 2}
    for n in range(20, 28)
]


def reader(with_rule, *, rules=(RULE, "Read the unit.")):
    """Label every item 1; what is odd alone, or what is even, where the rule is shown."""

    def reply(prompt):
        if "You write guidelines" in prompt:
            return json.dumps({"guidelines": list(rules)})
        odd = any(f"Count to {n}?" in prompt for n in range(21, 28, 2))
        label = int(odd == (with_rule == "better")) if RULE in prompt else 1
        return json.dumps({"explanation": "-", "label": str(label)})

    return FakeChatModel(replies=reply)


def memory():
    own = FailureMemory()
    own.remember([example("from 1", 1), example("to 3", 0)])
    return own


@pytest.mark.whole
@for_each(("with_rule", "admitted", "after"), [("better", True, 1.0), ("worse", False, 0.0)])
def test_guidelines_are_admitted_where_nothing_falls_on_held_out_items(with_rule, admitted, after):
    model = reader(with_rule)
    drawn = draw_guidelines(model, memory(), DEV, instructions="Be strict.")
    assert drawn["guidelines"] == f"- {RULE}\n- Read the unit."
    # Always 1 is right for the four odd ones of eight.
    assert (drawn["before"]["accuracy"], drawn["after"]["accuracy"]) == (0.5, after)
    assert (drawn["admitted"], drawn["failures"]) == (admitted, [])
    assert drawn["usage"]["calls"] == len(model.prompts) == 17
    first, *others = model.prompts
    assert [text["output"] in first for text in memory().examples()] == [True, True]
    assert all("Be strict." in prompt for prompt in others)
    assert sum(RULE in prompt for prompt in others) == len(DEV)
    # What is admitted is shown by an ordinary judge.
    judge = create_allure_judge(model, instructions=drawn["guidelines"])
    judge.invoke(DEV[0])
    assert RULE in model.prompts[-1]


def test_guidelines_are_drawn_from_what_a_judge_can_be_shown():
    image = [{"type": "image", "url": "https://x.example/a.png"}]
    own = FailureMemory(budget=3 * len("Which way is it? 1, 3 from 1 0 1"))
    own.remember([example(f"from {n}", n % 2) for n in range(6)])
    of_others = [example("on five", 2, wrong=5, scale=[1, 2, 3, 4, 5])]
    of_others.append({**example("", 1), "output": [{"role": "assistant", "content": image}]})
    own.remember(of_others)
    model = reader("better")
    drawn = draw_guidelines(model, own, DEV)
    assert re.findall(r"from \d|on five|image", model.prompts[0]) == ["from 3", "from 4", "from 5"]
    (failure,) = drawn["failures"]
    assert (failure["reason"], failure["detail"][:11]) == ("input_cut", "5 of 8 reca")


def test_a_reply_that_cannot_be_used_admits_nothing():
    model = reader("better", rules=())
    drawn = draw_guidelines(model, memory(), DEV)
    assert (drawn["guidelines"], drawn["admitted"]) == ("", False)
    assert (drawn["before"], drawn["after"]) == (None, None)
    assert [failure["step"] for failure in drawn["failures"]] == ["guidelines"]
    # The question and its repair; no item of dev is paid for.
    assert drawn["usage"]["calls"] == len(model.prompts) == 2


def test_guidelines_under_which_nothing_was_judged_are_not_admitted():
    def reply(prompt):
        if "You write guidelines" in prompt:
            return json.dumps({"guidelines": [RULE]})
        return "I would rather not say."

    model = FakeChatModel(replies=reply)
    drawn = draw_guidelines(model, memory(), DEV, repairs=0)
    assert (drawn["admitted"], drawn["after"]["not_judged"]) == (False, len(DEV))
    assert len(drawn["failures"]) == 2 * len(DEV)
    assert drawn["usage"]["calls"] == len(model.prompts) == 17


def test_no_guidelines_and_a_memory_of_pairs_are_refused():
    model, own = reader("better"), FailureMemory()
    with pytest.raises(OptionError, match=r"`most`.* got 0"):
        draw_guidelines(model, memory(), DEV, most=0)
    sides = {"output_a": "In autumn.", "output_b": "In May."}
    own.remember([{"input": "When?", "output": sides, "wrong": "B", "corrected": "A"}])
    with pytest.raises(InputError, match=r"no mistake .* of one text without media"):
        draw_guidelines(model, own, DEV)
    assert model.prompts == []


@for_each(
    ("remembered", "dev", "match"),
    [
        ([], DEV, "no mistake"),
        ([example("x", 1, wrong=1)], DEV, "no mistake"),
        ([example("x", 2, wrong=5, scale=[1, 2, 3, 4, 5])], DEV, r"no mistake .* \[0, 1\]"),
        ([example("x", 1)], [{**DEV[0], "label": "odd"}], "true label"),
        (
            [example("x", 1, source="d20")],
            DEV,
            "d20 of dev shares its id or group with an item of the memory",
        ),
        (
            [example("x", 1, group="g")],
            [{**DEV[0], "group": "g"}, DEV[1]],
            "shares its id or group",
        ),
        ([example("x", 1, input="count to  20")], DEV, "shares its id or group"),
    ],
)
def test_nothing_is_asked_where_the_comparison_would_mean_nothing(remembered, dev, match):
    own, model = FailureMemory(), reader("better")
    own.remember(remembered)
    with pytest.raises(InputError, match=match):
        draw_guidelines(model, own, dev)
    assert model.prompts == []
