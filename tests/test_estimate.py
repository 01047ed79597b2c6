"""What a dry run announces, beside what a server on loopback is then asked."""

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeModelServer
from langchain_judges.testing.schema_replies import Leaning, drawn_value
from tests.cases import for_each
from tests.shapes import PARALLEL, TASK

LONG = "Nobody said a word about the hours of the library, which had changed in May. " * 20
JOINT = [{"name": f"Aspect {n}", "description": LONG[:200]} for n in range(20)]
WORK = [message.model_dump(exclude_none=True) for message in PARALLEL] * 5
# What a caller adds to a request, by what it is judged by.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    **{name: (name, {}, {}) for name in METHODS},
    "a short pair": ("relative", {}, {"input": "Why?", "output_a": "So.", "output_b": "No."}),
    "a preset": ("bsm", {"criteria": ["Tone", "Depth"]}, {}),
    "long instructions": ("bsm", {"instructions": LONG}, {}),
    "many criteria at once": ("rubric", {"rubric": JOINT}, {}),
    "many criteria apart": ("rubric", {"rubric": JOINT, "each": True}, {}),
    "an agent's work": ("rubric", {"rubric": "Is it right?"}, {"input": TASK, "output": WORK}),
    "worked examples": ("cot", {"shots": 5}, {}),
    "a short task": ("drpe", {}, {"input": "Why?", "output_a": LONG, "output_b": LONG[1:]}),
    "a jury": ("jury", {}, {}),
}
OF_METHOD: dict[str, dict[str, Any]] = {
    "rubric": {"rubric": "Is it right?"},
    "drpe": {"panel": {"dynamic": 4, "clustering": None}},
}
PAIR = {"input": LONG, "output_a": f"First: {LONG}", "output_b": f"Second: {LONG}"}
ITEM = {"input": LONG, "output": f"First: {LONG}", "expected": LONG}


def full(call):
    """A reply as long as its schema allows, another one for each request and sample."""
    key = f"{call.body.get('seed')}{call.prompt}"
    return json.dumps(drawn_value(call.schema, key, Leaning(full=True)))


def tokens_of(call):
    form = json.dumps(call.body.get("response_format") or "")
    return len((call.prompt + form).encode()) / 4


@pytest.mark.whole
@for_each("case", CASES)
def test_calls_are_at_most_and_tokens_about_those_that_a_dry_run_announces(
    case, tmp_path, monkeypatch
):
    method, options, row = CASES[case]
    row = row or (ITEM if method in ("allure", "rubric") else PAIR)
    options = {**OF_METHOD.get(method, {}), **options}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    given = [f"--set={name}={json.dumps(value)}" for name, value in options.items()]
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FakeModelServer(full) as server:
        words = ["judge", str(path), "--method", method, "--model", "openai:gpt-5-mini"]
        words[-1] += ",openai:gpt-5" * (method == "jury")
        words += ["--base-url", server.url, *given]
        said = CliRunner().invoke(app, [*words, "--dry-run"])
        assert (said.exit_code, server.calls) == (0, []), said.output
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / f"{case}.csv")])
    assert done.exit_code == 0, done.output
    [most] = re.findall(r"at most (\d+) calls? \(", said.stderr)
    [about] = re.findall(r"About ([\d,]+) input", said.stderr)
    sent = sum(map(tokens_of, server.calls))
    assert len(server.calls) == int(most)
    assert 0.75 < int(about.replace(",", "")) / sent < 1.25
