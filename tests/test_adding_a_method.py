"""The method of docs/adding-a-method.md, built outside of the package as the page builds it."""

import asyncio
import json
import operator
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from typing_extensions import TypedDict

from langchain_judges import FailureMemory, as_evaluator, judge_many, load_judge
from langchain_judges.errors import OptionError
from langchain_judges.methods import Call
from langchain_judges.methods.registry import BUILDERS, METHODS, register
from langchain_judges.testing import check_method
from tests.fakes import FakeChatModel

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
PAIR = {"input": "Why is the sky blue?", "output_a": "Rayleigh.", "output_b": "It is."}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    code, check = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert "check_method(MeritsOptions, build)" in check
    folder = tmp_path_factory.mktemp("page")
    (folder / "merits.py").write_text(code)
    sys.path.insert(0, str(folder))
    yield import_module("merits")
    sys.path.remove(str(folder))
    del METHODS["merits"], BUILDERS["merits"], sys.modules["merits"]


def likes_the_blue(prompt: str) -> str:
    first = prompt.index("Rayleigh") < prompt.index("It is.")
    merits = {"merit_1": "the first", "merit_2": "the second"}
    return json.dumps({**merits, "preference": "1" if first else "2"})


def test_it_judges_in_both_orders(page):
    model = FakeChatModel(replies=likes_the_blue)
    judge = page.create_merits_judge(model)
    result = judge.invoke(PAIR)
    assert (result["verdict"]["preference"], result["verdict"]["score"]) == ("A", 1.0)
    assert result["verdict"]["usage"]["calls"] == judge.config["metadata"]["calls"] == 2
    assert asyncio.run(judge.ainvoke(PAIR))["verdict"] == result["verdict"]


def test_a_reply_that_cannot_be_used_is_no_verdict(page):
    model = FakeChatModel(replies=lambda _: "I cannot say.")
    verdict = page.create_merits_judge(model, orders="none").invoke(PAIR)["verdict"]
    assert verdict["preference"] is None
    assert verdict["rationale"] == "Not judged: no label (A first)."
    assert [failure["reason"] for failure in verdict["failures"]] == ["unparsable"]


def test_it_can_be_named_compared_and_plugged_in(page):
    model = FakeChatModel(replies=likes_the_blue)
    judge = load_judge("merits", model, preset="one_order")
    [row] = judge_many(judge, [PAIR], progress=False)
    assert row["verdict"]["preference"] == "A"
    score: Any = as_evaluator(judge)(
        inputs={"input": PAIR["input"]},
        outputs={"output": PAIR["output_a"]},
        reference_outputs={"output": PAIR["output_b"]},
    )
    assert score["score"] == 1.0


def test_it_takes_what_every_judge_takes(page):
    judge = page.create_merits_judge(FakeChatModel(), memory=FailureMemory(), recall="knn:2")
    assert "recall" in judge.get_graph().nodes
    with pytest.raises(OptionError, match="no option 'order'; did you mean 'orders'"):
        page.create_merits_judge(FakeChatModel(), order="none")


def test_what_was_recalled_is_shown(page):
    memory = FailureMemory()
    memory.remember(
        [
            {
                "input": "Why is the sea blue?",
                "output": {
                    "output_a": "Water absorbs red.",
                    "output_b": "It reflects the sky.",
                },
                "wrong": "B",
                "corrected": "A",
            }
        ]
    )
    model = FakeChatModel(replies=likes_the_blue)
    result = page.create_merits_judge(model, memory=memory, recall="knn:1").invoke(PAIR)
    assert len(result["recalled"]["ids"]) == 1
    assert [prompt.count("Water absorbs red.") for prompt in model.prompts] == [1, 1]


def test_a_thread_keeps_nothing_of_the_pair_before(page):
    config: Any = {"configurable": {"thread_id": "1"}}
    judge = page.create_merits_judge(
        FakeChatModel(replies=likes_the_blue), checkpointer=InMemorySaver()
    )
    other = {**PAIR, "output_a": PAIR["output_b"], "output_b": PAIR["output_a"]}
    first, second = judge.invoke(PAIR, config), judge.invoke(other, config)
    assert (first["verdict"]["preference"], second["verdict"]["preference"]) == ("A", "B")
    assert len(second["ballots"]) == second["verdict"]["usage"]["calls"] == 2


def test_it_keeps_the_contract(page):
    check_method(page.MeritsOptions, page.build)


def test_a_method_that_announces_too_few_calls_breaks_it(page):
    class Modest(page.MeritsOptions):  # type: ignore[name-defined,misc]  # as below
        """Announces half of its calls."""

        def calls(self):
            return 1

    with pytest.raises(AssertionError, match="2 calls are made, and 1 announced"):
        check_method(Modest, page.build)


def test_a_method_that_shows_nothing_of_what_it_recalled_breaks_it(page, monkeypatch):
    def blind(self, work):
        question = self.context.question("compare", page.Merits)
        pair = {**work["pair"], "examples": []}
        return Call(question, self.material(pair, work["order"]), order=work["order"])

    monkeypatch.setattr(page.MeritsSteps, "compare", blind)
    with pytest.raises(AssertionError, match="1 recalled, in 0 prompts"):
        check_method(page.MeritsOptions, page.build)


def test_a_prompt_without_a_place_for_what_was_recalled_is_refused(page):
    prompt = ChatPromptTemplate.from_messages(
        [("human", "{request} {response_1} {response_2}")]
    )
    with pytest.raises(OptionError, match="'compare' has no `instructions`, where examples"):
        page.create_merits_judge(
            FakeChatModel(replies=[]), memory=FailureMemory(), prompts={"compare": prompt}
        )


@pytest.mark.parametrize("hint", [int, Annotated[list[str], operator.add], set[str]])
def test_a_state_without_a_blank_for_the_next_run_builds_no_graph(page, monkeypatch, hint):
    class State(TypedDict):
        notes: hint  # type: ignore[valid-type]  # one of several

    monkeypatch.setattr(page, "MeritsState", State)
    with pytest.raises(OptionError, match="`notes` of State has no blank"):
        page.create_merits_judge(FakeChatModel(replies=[]))


def test_a_name_is_given_once(page, monkeypatch):
    class Other(page.MeritsOptions):  # type: ignore[name-defined,misc]  # a module made of the page
        """Another method."""

    with pytest.raises(OptionError, match="there is a method 'merits' already"):
        register(Other, page.build)
    with pytest.raises(OptionError, match="there is a method 'bsm' already"):
        register(METHODS["bsm"], page.build)
    monkeypatch.setattr(Other, "method", "jury")
    with pytest.raises(OptionError, match="there is a method 'jury' already"):
        register(Other, page.build)
