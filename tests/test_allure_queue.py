"""Proposals sent to an annotation queue of LangSmith, and read back."""

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlparse
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import Client
from typer.testing import CliRunner

from langchain_judges import create_allure_audit, create_allure_judge
from langchain_judges.cli import app
from langchain_judges.methods.allure.auditors import read_queue, run_of, send_proposals
from tests.memories import ListMemory
from tests.planners import fooled_model, planning
from tests.test_cli_audit import behave

NOW = datetime.now(UTC).isoformat()


class Queues:
    """As much of LangSmith's interface as queues and feedback need."""

    def __init__(self):
        self.queues, self.runs, self.queued, self.feedback = [], {}, [], []

    def get(self, path, query):
        if path == "/annotation-queues":
            return [q for q in self.queues if q["name"] in query.get("name", [q["name"]])]
        if path == "/feedback" and "0" in query.get("offset", ["0"]):
            return [f for f in self.feedback if f["run_id"] in query["run"]]
        return [] if path == "/feedback" else {}

    def post(self, path, body):
        whole = {
            "id": str(uuid4()),
            "tenant_id": str(uuid4()),
            **(body if isinstance(body, dict) else {}),
        }
        if path == "/sessions":
            return {**whole, "start_time": NOW, "reference_dataset_id": None}
        if path == "/annotation-queues":
            self.queues.append({**whole, "created_at": NOW, "updated_at": NOW})
            return self.queues[-1]
        if path.endswith("/runs/by-key"):
            self.queued += [run["run_id"] for run in body]
        if path == "/runs":
            self.runs[body["id"]] = body
        return {}

    def say(self, run, key, value, comment=None):
        feedback = {"id": str(uuid4()), "created_at": NOW, "modified_at": NOW, "score": None}
        feedback |= {
            "run_id": str(run),
            "trace_id": str(run),
            "key": key,
            "value": value,
            "comment": comment,
        }
        self.feedback.append(feedback)


@pytest.fixture
def langsmith():
    state = Queues()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            parts = urlparse(self.path)
            self.answer(state.get(parts.path, parse_qs(parts.query)))

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            self.answer(state.post(urlparse(self.path).path, json.loads(body or "null")))

        def answer(self, payload):
            body = json.dumps(payload).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    yield state, Client(api_url=url, api_key="x", info={}, auto_batch_tracing=False)
    server.shutdown()
    server.server_close()


def test_proposals_go_to_a_queue_and_answers_come_back(langsmith):
    state, client = langsmith
    memory = ListMemory()
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    judge = create_allure_judge(fooled_model(), memory=memory)
    audit = create_allure_audit(judge, memory, right_share=0, checkpointer=InMemorySaver())
    waiting = audit.invoke({"items": planning(3)}, config)
    proposals = waiting["__interrupt__"][0].value["proposals"]
    assert send_proposals(proposals, "doubts", client) == 3
    runs = [str(run_of(proposal, "doubts")) for proposal in proposals]
    assert state.queued == runs
    assert state.runs[runs[0]]["inputs"]["expected"] == "1, 20, 50"
    assert state.runs[runs[0]]["outputs"]["response"] == "Answer: 50, 20, 1"
    assert state.runs[runs[0]]["outputs"]["proposed"] == 0

    assert read_queue(proposals, "doubts", client) == []
    state.say(runs[0], "audit", "accept", "Mind the order.")
    state.say(runs[1], "audit", "mode")
    state.say(runs[1], "audit_mode", "order")
    state.say(runs[2], "audit_label", 1.0)
    answers = read_queue(proposals, "doubts", client)
    assert [answer["id"] for answer in answers] == ["0w", "1w"]
    remainder = audit.invoke(Command(resume=answers), config)["__interrupt__"][0].value
    assert [proposal["id"] for proposal in remainder["proposals"]] == ["2w"]
    state.say(runs[2], "audit", "label")
    rest = read_queue(remainder["proposals"], "doubts", client)
    result = audit.invoke(Command(resume=rest), config)
    decisions = [(d["answer"], d["mode"], d["note"]) for d in result["decisions"]]
    # The third reviewer gave the judge's own label.
    assert decisions == [
        ("accept", "keywords", "Mind the order."),
        ("mode", "order", ""),
        ("check_wrong", None, ""),
    ]
    assert {d["auditor"] for d in result["decisions"]} == {"langsmith"}


def test_a_queue_of_that_name_is_used_again(langsmith):
    state, client = langsmith
    proposal: Any = {"id": "a", "round": 1, "item": {"input": "x", "output": "y"}, "label": 1}
    proposal |= {"score": 1.0, "rationale": "", "proposed": 0, "why": "", "check": "exact"}
    for round_ in (1, 2):
        again: Any = {**proposal, "round": round_, "mode": None}
        send_proposals([again], "doubts", client)
    assert len(state.queues) == 1
    assert len(set(state.queued)) == 2


def test_the_command_sends_and_reads_back(langsmith, serve, tmp_path, monkeypatch):
    state, client = langsmith
    memory = ListMemory()
    module = import_module("langchain_judges.cli.audit")
    monkeypatch.setattr(module, "open_memory", lambda _: memory)
    monkeypatch.setattr("langsmith.Client", lambda: client)
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in planning(1)))

    def audit(*more):
        arguments = ["audit", path, "--model", "fake", "--base-url", serve(behave).url]
        arguments += ["--memory", tmp_path / "memory", *more]
        return CliRunner().invoke(app, [str(each) for each in arguments])

    outcome = audit("--export", "langsmith:doubts")
    assert "1 proposal is in the queue 'doubts'" in outcome.stderr, outcome.output
    state.say(state.queued[0], "audit", "accept")
    result = audit("--import", "langsmith:doubts")
    assert result.exit_code == 0, result.output
    assert [e["source"] for e in memory.examples.values()] == ["0w"]
