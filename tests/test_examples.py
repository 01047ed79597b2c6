"""Remembered examples in the prompts of the judges of pairs."""

import re
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import FailureMemory, create_bsm_judge, judge_many
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.registry import METHODS
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import REMEMBERING, answer, item_of, of_method
from tests.memories import Letters

PAIR = {
    "id": "p",
    "family": "tides",
    "group": "g",
    "input": "Why are there tides?",
    "output_a": "good good: the moon.",
    "output_b": "Magic.",
    "reference": "The moon pulls the sea.",
}


def lesson(n=0, **fields):
    return {
        "family": "tides",
        "input": f"Why is the sea salty, {n}?",
        "output": {"output_a": f"Salt of rivers {n}.", "output_b": f"Fish cry {n}."},
        "wrong": "B",
        "corrected": "A",
        "source": f"q{n}",
        "group": f"h{n}",
        **fields,
    }


OPTIONS: dict[str, dict[str, Any]] = {
    "bsm": {"max_criteria": 1, "merge": "model"},
    "drpe": {"panel": {"static": ["Critic: is strict", "Child: wants fun"], "dynamic": 0}},
    "sc2": {},
}
judges = pytest.mark.parametrize("method", OPTIONS)


def made(method, memory=None, **options):
    """A judge that asks both orders, and its model."""
    model = FakeChatModel(replies=answer)
    settings = {"orders": "score_mean", "instructions": "Be fair.", **OPTIONS[method]}
    return of_method(method, model, memory=memory, **settings, **options), model


@pytest.fixture
def memory():
    return FailureMemory(embeddings=Letters())


def sent(method, item, **options):
    """Every prompt and all settings that a method sends for an item."""
    model = FakeChatModel(replies=answer)
    verdict = of_method(method, model, **options).invoke(item)["verdict"]
    calls = zip(model.prompts, map(str, model.settings), strict=True)
    return sorted(calls), verdict


@for_each("method", ["allure", "bsm", "drpe", "relative", "rubric", "sc2"])
def test_with_an_empty_memory_every_prompt_is_what_it_is_without(method):
    memory = FailureMemory(embeddings=Letters())
    item = {**PAIR, **item_of(method)}
    without, verdict = sent(method, item, **REMEMBERING.get(method, {}))
    assert verdict.get("preference", verdict.get("label")) in {"A", 1}
    assert sent(method, item, memory=memory) == (without, verdict)
    wrong, corrected = ("B", "A") if METHODS[method].takes == "pair" else (0, 1)
    output = lesson()["output"] if METHODS[method].takes == "pair" else "Salt of rivers."
    memory.remember([lesson(wrong=wrong, corrected=corrected, output=output)])
    prompts, verdict = sent(method, item, memory=memory)
    assert len(prompts) == len(without)
    examples = [prompt for prompt, _ in prompts if "Salt of rivers" in prompt]
    unchanged = [call for call in prompts if call in without]
    # Steps that do not judge see nothing of the memory; all others see its example.
    assert len(examples) + len(unchanged) == len(prompts)
    assert examples
    memory.forget(source="q0")
    assert sent(method, item, memory=memory)[0] == without


@judges
def test_examples_are_fenced_and_stand_in_the_slots_of_the_call(method, memory):
    memory.remember([lesson(note="Rivers carry salt.")])
    judge, model = made(method, memory)
    result = judge.invoke(PAIR)
    assert result["verdict"]["preference"] == "A"
    assert len(result["recalled"]["ids"]) == 1
    prompts = [prompt for prompt in model.prompts if "Why is the sea salty" in prompt]
    noun = "response"
    first = [p for p in prompts if f"Right: {noun} 1 is better. A judge said {noun} 2" in p]
    second = [p for p in prompts if f"Right: {noun} 2 is better. A judge said {noun} 1" in p]
    assert len(first) == len(second) == len(prompts) / 2 > 0
    assert all(p.index("Salt of rivers") < p.index("Fish cry") for p in first)
    assert all(p.index("Fish cry") < p.index("Salt of rivers") for p in second)
    for prompt in prompts:
        fence = re.search(r"<example-(\w+)>", prompt)[1]
        assert f"</example-{fence}>" in prompt
        assert f"<example-why-{fence}>\nRivers carry salt.\n" in prompt
        assert "Be fair." in prompt
    # Steps that judge nothing, such as a plan, see no examples.
    assert any("sea salty" not in prompt for prompt in model.prompts) == (method != "drpe")


class CallsInOrder(BaseCallbackHandler):
    """The prompts that show texts in an order, with the slot of A."""

    def __init__(self):
        self.calls = []

    def on_chat_model_start(self, serialized, messages, **more):
        metadata = more["metadata"]
        if metadata.get("order"):
            slot = "1" if metadata["order"] == "AB" else "2"
            self.calls += [("\n".join(each.text for each in one), slot) for one in messages]


# What people say of a pair: as it is shown where A is in slot 1 and in slot 2, and whether the
# prompt has to say which response is A.
SAID = {
    "Response A invents the sea.": ("Response 1 invents", "Response 2 invents", False),
    "response 1 invents the sea.": ("response 1 invents", "response 2 invents", False),
    "Better is text B (mild).": ("is text 2 (mild)", "is text 1 (mild)", False),
    "A is wrong.": ("A is wrong.", "A is wrong.", True),
    "Passages A and B agree": ("Passages 1 and 2", "Passages 2 and 1", False),
    "Response A is as good as B": ("Response A is as", "Response A is as", True),
    "The first names it, text 2 does not": (
        "first names it, text 2",
        "first names it, text 2",
        True,
    ),
    "Response 1 names it, 2 does not.": ("Response 1 names it, 2", "Response 1 names it, 2", True),
    "In text 1 of the source it is so.": ("text 1 of the", "text 1 of the", True),
    "A better answer is short.": ("A better answer", "A better answer", True),
    "Text 2 rambles. A better answer is short": ("ext 2 rambles", "ext 1 rambles", False),
    "Both say it. A names the sea": ("A names the sea", "A names the sea", True),
    "output_b is right": ("output_b is right", "output_b is right", True),
    "Antwort B lügt": ("Antwort B lügt", "Antwort B lügt", True),
    "B错了": ("B错了", "B错了", True),
    "Text B错了": ("Text B错了", "Text B错了", True),
    "Відповідь А краща": ("Відповідь А краща", "Відповідь А краща", True),
    "La seconde ment.": ("La seconde ment.", "La seconde ment.", True),
    "(1) is right": ("(1) is right", "(1) is right", True),
}
OF_PAIRS = [name for name, kind in METHODS.items() if kind.takes == "pair" and kind.examples_in]


@pytest.mark.whole
@for_each("method", OF_PAIRS)
@for_each("said", SAID)
@for_each("field", ["note", "mode", "mode_meaning", "instructions"])
def test_what_people_say_of_a_pair_is_of_the_same_text_in_both_orders(method, said, field):
    in_first, in_second, is_named = SAID[said]
    memory, calls = FailureMemory(embeddings=Letters()), CallsInOrder()
    options, told = {}, {"mode": "parroting", field: said}
    if field == "instructions":
        options, told = {field: said}, {}
        in_first = in_second = said
        is_named = bool(re.search(r"\b[AB]\b(?! better)|output_[ab]|B错|А", said))
    memory.remember([lesson(**told)])
    judge = of_method(method, FakeChatModel(replies=answer), memory=memory, **options)
    judge.invoke(PAIR, {"callbacks": [calls]})
    shown = [call for call in calls.calls if (in_second if call[1] == "2" else in_first) in call[0]]
    orders = getattr(
        METHODS[method](**{**REMEMBERING.get(method, {}), **options}), "order_list", []
    )
    assert {slot for _, slot in shown} == ({"1", "2"} if len(orders) == 2 else {shown[0][1]})
    for prompt, slot in shown:
        which = re.findall(r"A is (\w+) (\d) and B is \1 (\d)\.", prompt)
        assert not re.search(r"\w Where people", prompt)
        assert [own[1:] for own in which] == [(slot, "21"[slot == "2"])] * is_named, prompt
        assert (in_first in prompt) == (slot == "1" or in_first == in_second)


@for_each("method", ["allure", "bsm", "rubric", "sc2"])
def test_rows_share_what_stands_before_them(method):
    memory = FailureMemory(embeddings=Letters())
    note = "Rivers carry salt. " * 24
    of_text = METHODS[method].takes != "pair"
    single = {"output": "Salt of rivers.", "wrong": 1, "corrected": 0} if of_text else {}
    memory.remember([lesson(n, note=note, **single) for n in range(20)])
    runs = []
    for n in range(2):
        model = FakeChatModel(replies=answer)
        judge = of_method(method, model, memory=memory, recall="all")
        new = {"id": f"new {n}", "family": "tides", "group": None, "input": f"{n}?"}
        judge.invoke({**item_of(method), **new})
        runs.append([prompt for prompt in model.prompts if "Salt" in prompt])
    before, after = runs
    shares = [max(shared_by(one, two) for one in before) / len(two) for two in after]
    assert shares
    assert min(shares) > 0.9


def shared_by(one, two):
    """Number of characters that two prompts begin with in common."""
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))


def test_overall_verdicts_are_shown_to_the_plan_or_the_merge_and_never_to_a_solve(memory):
    memory.remember([lesson()])

    def shown_in(**options):
        model = FakeChatModel(replies=answer)
        create_bsm_judge(model, max_criteria=2, memory=memory, **options).invoke(PAIR)
        prompts = [prompt for prompt in model.prompts if "Salt of rivers" in prompt]
        return len(prompts), {("really differ" in each, "findings" in each) for each in prompts}

    assert shown_in() == (1, {(True, False)})
    assert shown_in(merge="model") == (2, {(False, True)})


def test_a_memory_that_no_step_would_be_shown_is_refused(memory):
    with pytest.raises(OptionError, match="`memory` is shown"):
        create_bsm_judge(FakeChatModel(), criteria=["Depth"], memory=memory)


def test_an_example_that_was_judged_rightly_is_no_mistake(memory):
    memory.remember([lesson(wrong="A", corrected="A")])
    judge, model = made("bsm", memory)
    judge.invoke(PAIR)
    right = "Right: response 1 is better, as a judge said."
    assert any(right in prompt for prompt in model.prompts)
    assert not any("A judge said" in prompt for prompt in model.prompts)


@judges
@pytest.mark.parametrize("fields", [{"source": "p"}, {"group": "g"}])
def test_a_judge_never_sees_its_own_item_unless_told_to(method, memory, fields):
    [name] = memory.remember([lesson(**fields)])
    judge, model = made(method, memory)
    assert judge.invoke(PAIR)["recalled"]["ids"] == []
    assert not any("salty" in prompt for prompt in model.prompts)
    loud, model = made(method, memory, recall="all", allow_leak=True)
    report = loud.invoke(PAIR)["recalled"]
    assert (report["leaked"], report["allow_leak"]) == ([name], True)
    assert any("salty" in prompt for prompt in model.prompts)
    assert loud.config["metadata"]["options"]["memory"]["allow_leak"] is True


def test_what_has_no_room_is_left_out_and_reported():
    memory = FailureMemory(embeddings=Letters(), recall="all", budget=100)
    names = memory.remember([lesson(n) for n in range(3)])
    result = made("bsm", memory)[0].invoke(PAIR)
    assert result["recalled"]["ids"] == [names[-1]]
    assert result["recalled"]["left_out"] == 2
    [failure] = result["verdict"]["failures"]
    assert (failure["step"], failure["reason"]) == ("recall", "input_cut")
    assert failure["detail"].startswith("2 of 3 recalled examples")


@for_each(
    "wrong, corrected, is_shown",
    [(0, 1, False), (1, 0, False), (None, 1, True), (3, 1, True), (2, 2, True), ("rude", 1, False)],
)
@for_each("method", ["allure", "rubric"])
def test_an_example_is_shown_where_this_judge_has_both_of_its_labels(
    method, wrong, corrected, is_shown
):
    memory = FailureMemory(embeddings=Letters(), recall="all")
    memory.remember([lesson(output="Salt.", wrong=wrong, corrected=corrected)])
    model = FakeChatModel(replies=lambda _: {"explanation": "", "label": "2"})
    judge = of_method(method, model, rubric="Is it good?", memory=memory, labels=[1, 2, 3])
    result = judge.invoke({"family": "tides", "input": "Why?", "output": "Fish."})
    assert ("salty" in model.prompts[0]) == is_shown
    assert [own["step"] for own in result["verdict"]["failures"]] == ["recall"] * (not is_shown)


@for_each("method", ["allure", "sc2"])
def test_a_changed_memory_is_not_taken_for_the_old_one(method, memory, tmp_path):
    model = FakeChatModel(replies=answer)
    judge = of_method(method, model, memory=memory)

    def asked():
        before = len(model.prompts)
        rows = [{**PAIR, **item_of(method)}]
        list(judge_many(judge, rows, records=tmp_path / "out.jsonl", progress=False))
        return len(model.prompts) - before

    once = asked()
    assert (once > 0, asked()) == (True, 0)
    memory.remember([lesson(wrong=0, corrected=1, output="Salt.", family="other")])
    assert (asked(), asked()) == (once, 0)
    memory.forget(source="q0")
    # What was judged with an empty memory stands in the file.
    assert asked() == 0


@for_each(
    ("options", "says"),
    [
        ({"recall": "all"}, "need a `memory`"),
        ({"allow_leak": True}, "need a `memory`"),
        ({"memory": {}}, "must be a FailureMemory"),
        ({"memory": FailureMemory(embeddings=Letters()), "recall": "some"}, "`recall` must be"),
    ],
)
def test_options_of_memory_are_checked(options, says):
    with pytest.raises(OptionError, match=says):
        made("bsm", **options)


@for_each("method", ["bsm", "relative"])
def test_identical_texts_show_no_example_nor_those_of_the_last_pair(method):
    memory = FailureMemory(embeddings=Letters())
    model = FakeChatModel(replies=answer)
    judge = of_method(method, model, memory=memory, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    memory.remember([lesson()])
    assert judge.invoke(PAIR, config)["recalled"]["ids"]
    same = judge.invoke({**PAIR, "output_b": PAIR["output_a"]}, config)
    assert same["verdict"]["preference"] == "tie"
    assert same["recalled"] == {
        "ids": [],
        "left_out": 0,
        "leaked": [],
        "allow_leak": False,
        "version": memory.version,
    }


@for_each("method", sorted(METHODS))
@for_each("row", ["hi", ["hi"], 3])
def test_an_input_that_is_no_dictionary_is_one_sentence(method, row):
    with pytest.raises(InputError, match="a dictionary with `input`"):
        of_method(method).invoke(row)
