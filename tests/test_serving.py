"""What an entry point of a LangGraph server refuses, without a server."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from langchain_judges.errors import InputError, OptionError, OverBudget
from langchain_judges.integrations import serve
from langchain_judges.testing import FakeModelServer
from tests.judges import answer_call

PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}


@pytest.fixture(autouse=True)
def named_model(monkeypatch):
    monkeypatch.setenv("JUDGES_MODEL", "openai:fake")
    monkeypatch.setenv("OPENAI_API_KEY", "x")


async def entered(entry, **context):
    runtime: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=context))
    return await entry({}, runtime)


async def served(name, **context):
    return await entered(serve(name), **context)


async def test_an_owner_bounds_the_calls_of_a_run(monkeypatch):
    # 40 samples, and each may be asked again once.
    assert (await served("cot_sc", samples=40)).options.samples == 40
    monkeypatch.setenv("JUDGES_MAX_CALLS", "79")
    with pytest.raises(OptionError, match="may make 80 calls; this server allows 79"):
        await served("cot_sc", samples=40)
    entry = serve("cot_sc", max_calls=80)
    assert (await entered(entry, samples=40)).options.samples == 40


async def test_an_owner_names_what_clients_may_set():
    entry = serve("bsm", settable=("criteria", "scale"))
    graph = await entered(entry, criteria=["Depth"], scale=[1, 3])
    assert [each["name"] for each in graph.options.plan] == ["Depth"]
    assert set(graph.get_context_jsonschema()["properties"]) == {"criteria", "scale"}
    for context in ({"samples": 2}, {"preset": "paper"}):
        with pytest.raises(OptionError, match="can be set by the owner"):
            await entered(entry, **context)


@pytest.mark.parametrize("name", ["merge_model", "prompts", "memory", "criterias"])
def test_no_owner_hands_out_paths_models_or_objects(name):
    with pytest.raises(OptionError, match=r"`settable` may name .*'criteria'"):
        serve("bsm", settable=(name,))


@pytest.mark.parametrize(
    ("name", "context", "message"),
    [
        ("cot_sc", {"samples": 10**6}, "`samples` must have no number above 1,000"),
        ("drpe", {"panel": {"dynamic": 10**9}}, "`dynamic` must have no number above 1,000"),
        ("bsm", {"scale": [1, 10**12]}, "`scale` must have no number above 1,000"),
        ("sc2", {"aspects": "/etc/passwd"}, "`aspects` can be set by the owner"),
        ("sc2", {"aspects": {"aspects": ["x"]}}, "`aspects` can be set by the owner"),
        ("rubric", {"file": "/etc/passwd"}, "`file` can be set by the owner"),
        ("jury", {"methods": [{"method": "rubric"}]}, "`methods` can be set by the owner"),
        ("direct", {"preset": ["paper"]}, "`preset` must be a text"),
        ("direct", {"preset": {"a": 1}}, "`preset` must be a text"),
        ("direct", {"preset": "none"}, "there is no preset of 'direct' 'none'"),
        ("audit", {"check": "pattern"}, "`check` can be set by the owner"),
        ("audit", {"memory": "x"}, "`memory` can be set by the owner"),
    ],
)
async def test_a_client_is_refused_what_is_the_owners(name, context, message):
    with pytest.raises(OptionError, match=message):
        await served(name, **context)


async def test_a_run_is_stopped_at_its_last_call_whatever_was_foreseen(monkeypatch):
    with FakeModelServer(answer_call) as server:
        # A model is made once for a process, by its name.
        monkeypatch.setenv("JUDGES_MODEL", "openai:counted")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph = await entered(serve("bsm", max_calls=6), criteria=["Depth"], repairs=0)
        # Two calls are foreseen, and more are asked than the owner allows.
        graph = graph.copy({"bounds": graph.bounds._replace(calls=1)})
        with pytest.raises(OverBudget, match="the budget of 1 calls is spent"):
            await graph.ainvoke(PAIR)
        with pytest.raises(OverBudget, match="the budget of 1 calls is spent"):
            graph.invoke(PAIR)
        assert len(server.calls) == 2


async def test_an_audit_of_more_items_than_calls_is_refused_before_the_first(monkeypatch):
    with FakeModelServer(answer_call) as server:
        monkeypatch.setenv("JUDGES_MODEL", "openai:audited")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph = await entered(serve("audit", max_calls=3))
        item = {"input": "Why?", "output": "good", "expected": "1"}
        with pytest.raises(InputError, match="4 items take as many calls; 3 are allowed"):
            await graph.ainvoke({"items": [{**item, "id": str(n)} for n in range(4)]})
        assert server.calls == []


async def test_all_graphs_of_a_server_share_one_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("JUDGES_MEMORY", str(tmp_path / "memory"))
    graphs = await asyncio.gather(*(served(name) for name in ("bsm", "relative", "allure")))
    assert len({id(graph.memory) for graph in graphs}) == 1


async def test_a_longer_input_than_the_owner_allows_is_refused(monkeypatch):
    monkeypatch.setenv("JUDGES_MAX_CHARACTERS", "200")
    graph = await served("direct")
    with pytest.raises(InputError, match="characters; 200 are allowed here"):
        graph.invoke({**PAIR, "output_b": "bad" * 100})


async def test_several_models_are_the_members_of_a_jury_and_the_first_serves_the_rest(
    monkeypatch,
):
    monkeypatch.setenv("JUDGES_MODEL", "openai:one, openai:two")
    assert [member.name for member in (await served("jury")).members] == ["one", "two"]
    assert (await served("bsm")).model.model_name == "one"


def test_a_graph_that_is_none_is_refused():
    with pytest.raises(OptionError, match="there is no graph 'poems'; there are absolute, "):
        serve("poems")
