"""The method of docs/adding-a-method.md, built outside of the package as the page builds it."""

import asyncio
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import FailureMemory, as_evaluator, judge_many, load_judge
from langchain_judges.errors import OptionError
from langchain_judges.methods.registry import BUILDERS, METHODS, register
from tests.fakes import FakeChatModel

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
PAIR = {"input": "Why is the sky blue?", "output_a": "Rayleigh.", "output_b": "It is."}


@pytest.fixture(scope="module")
def page():
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = ModuleType("merits")
    sys.modules["merits"] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module
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
