"""What every method keeps, and how one is added: docs/architecture.md, built as it says."""

import asyncio
import json
import operator
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges import (
    FailureMemory,
    as_evaluator,
    create_bsm_judge,
    create_direct_judge,
    judge_many,
    load_judge,
)
from langchain_judges.errors import OptionError
from langchain_judges.methods import Call
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.registry import BUILDERS, COMBINATIONS, METHODS, register
from langchain_judges.methods.sc2 import learn_aspects
from langchain_judges.testing import check_method
from tests import judges
from tests.cases import for_each
from tests.fakes import FakeChatModel

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
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


@for_each("method", METHODS)
def test_every_method_keeps_the_contract(method):
    check_method(METHODS[method], BUILDERS[method])


def test_a_replaced_prompt_must_belong_to_a_step():
    with pytest.raises(OptionError, match=r"`prompts` takes \['branch', .*'solve'\], got 'x'"):
        create_bsm_judge(FakeChatModel(), prompts={"x": texts.BRANCH})


@for_each("option", ["cache", "instructions", "prompts", "repairs"])
def test_learning_aspects_checks_what_factories_check(option):
    with pytest.raises(OptionError, match=f"`{option}` must be "):
        learn_aspects(FakeChatModel(), ["a text"], **cast("Any", {option: 5.5}))


def test_every_method_stands_in_the_table_under_its_own_name():
    judges = METHODS | COMBINATIONS
    assert [kind.method for kind in judges.values()] == list(judges)


def judge():
    reply = '{"explanation": "It says why.", "preference": "1"}'
    return create_direct_judge(FakeChatModel(replies=lambda _: reply))


class Typed(TypedDict, total=False):
    input: Any
    output_a: Any
    output_b: Any
    verdict: Any


class Model(BaseModel):
    input: Any = None
    output_a: str = ""
    output_b: str = ""
    verdict: Any = None


@dataclass
class Data:
    input: Any = None
    output_a: str = ""
    output_b: str = ""
    verdict: Any = None


@for_each("state", [Typed, Model, Data])
def test_a_judge_is_a_node_of_a_graph_of_any_state(state):
    parent = StateGraph(state)
    parent.add_node("judge", judge())
    parent.add_edge(START, "judge")
    assert parent.compile().invoke(PAIR)["verdict"]["preference"] == "A"


class NoThreads(ThreadPoolExecutor):
    def submit(self, *_, **__):
        raise AssertionError("a thread")


async def test_an_asynchronous_judge_starts_no_thread_to_find_its_way():
    asyncio.get_running_loop().set_default_executor(NoThreads())
    same = {**PAIR, "output_b": PAIR["output_a"]}  # a tie at once: the model's own calls apart
    assert (await judge().ainvoke(same))["verdict"]["preference"] == "tie"


def test_a_judge_of_one_call_in_each_order_takes_one_node_and_tells_each_vote_once():
    relative = judges.of_method("relative")
    kinds = [event["kind"] for event in relative.stream(PAIR, stream_mode="custom")]
    assert [node for node in relative.nodes if node != "__start__"] == ["judge"]
    assert sorted(kinds) == ["reply", "reply", "verdict", "vote", "vote"]


def test_a_copy_keeps_what_a_judge_says_of_itself():
    own = judge()
    copy = own.with_config(tags=["x"])
    assert (type(copy), copy.options, copy.model) == (type(own), own.options, own.model)
