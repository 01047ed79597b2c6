"""What an entry point of a LangGraph server refuses, without a server."""

from types import SimpleNamespace
from typing import Any

import pytest

from langchain_judges import serve
from langchain_judges.errors import InputError, OptionError

PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}


@pytest.fixture(autouse=True)
def named_model(monkeypatch):
    monkeypatch.setenv("JUDGES_MODEL", "openai:fake")
    monkeypatch.setenv("OPENAI_API_KEY", "x")


async def served(name, **context):
    runtime: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=context))
    return await serve(name)({}, runtime)


async def test_an_owner_allows_more_calls_and_larger_numbers(monkeypatch):
    # 40 samples, and each may be asked again once.
    with pytest.raises(OptionError, match="`samples` must be a whole number"):
        await served("cot_sc", samples=40)
    monkeypatch.setenv("JUDGES_LIMITS", '{"samples": 40}')
    assert (await served("cot_sc", samples=40)).options.samples == 40
    monkeypatch.setenv("JUDGES_MAX_CALLS", "79")
    with pytest.raises(OptionError, match="may make 80 calls; this server allows 79"):
        await served("cot_sc", samples=40)


async def test_a_longer_input_than_the_owner_allows_is_refused(monkeypatch):
    monkeypatch.setenv("JUDGES_MAX_CHARACTERS", "200")
    graph = await served("direct")
    with pytest.raises(InputError, match="characters; 200 are allowed here"):
        graph.invoke({**PAIR, "output_b": "bad" * 100})


@pytest.mark.parametrize("limits", ["x", "[1]", '{"samples": "many"}'])
async def test_limits_that_are_none_are_said_to_the_owner(monkeypatch, limits):
    monkeypatch.setenv("JUDGES_LIMITS", limits)
    with pytest.raises(
        OptionError, match="JUDGES_LIMITS must be a JSON object of whole numbers"
    ):
        await served("direct")


async def test_several_models_are_the_members_of_a_jury_and_the_first_serves_the_rest(
    monkeypatch,
):
    monkeypatch.setenv("JUDGES_MODEL", "openai:one, openai:two")
    assert [member.name for member in (await served("jury")).members] == ["one", "two"]
    assert (await served("bsm")).model.model_name == "one"


def test_a_graph_that_is_none_is_refused():
    with pytest.raises(OptionError, match="there is no graph 'poems'; there are absolute, "):
        serve("poems")
