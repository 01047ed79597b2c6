"""A judge as plain JSON, which builds the same judge elsewhere."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from langchain_judges import FailureMemory, create_bsm_judge, load_judge
from langchain_judges.cli import app
from langchain_judges.errors import OptionError
from langchain_judges.methods.registry import METHODS
from langchain_judges.runs import on_ray
from langchain_judges.runs.summary import Summary
from langchain_judges.testing import FakeModelServer
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import PAIR, answer_call


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@for_each("method", METHODS)
def test_a_spec_builds_the_same_judge(method):
    for preset in (None, *METHODS[method].presets):
        judge = load_judge(method, "openai:gpt-5-mini", preset=preset)
        spec = json.loads(json.dumps(judge.spec))
        assert load_judge(spec).config["metadata"] == judge.config["metadata"]
        assert load_judge(spec).spec == spec


def test_a_spec_holds_what_differs_from_the_defaults():
    judge = create_bsm_judge("openai:gpt-5-mini", criteria=["Tone: is it kind"], scale=(1, 10))
    assert judge.spec == {
        "method": "bsm",
        "model": "openai:gpt-5-mini",
        "options": {
            "criteria": [{"name": "Tone", "description": "is it kind"}],
            "scale": [1, 10],
        },
    }


@for_each(
    ("model", "options", "message"),
    [
        (FakeChatModel(), {}, r"the model is an object \(FakeChatModel\)"),
        (
            "openai:x",
            {"reference_model": FakeChatModel()},
            "`reference_model` holds a live object",
        ),
        ("openai:x", {"memory": FailureMemory()}, "`memory` holds a live object"),
    ],
)
def test_what_cannot_be_sent_is_said_in_a_sentence(model, options, message):
    with pytest.raises(OptionError, match=message):
        _ = create_bsm_judge(model, **options).spec


@for_each("spec", [{}, {"method": "bsm"}, {"method": "bsm", "model": "x", "k": 1}])
def test_a_spec_is_checked(spec):
    with pytest.raises(OptionError, match="a spec is"):
        load_judge(spec)


MODEL = {
    "name": "openai:m",
    "base_url": "http://127.0.0.1:9/v1",
    "api_key_env": "JUDGE_KEY",
    "timeout": 9.0,
    "settings": {"reasoning_effort": "low"},
}


def test_a_spec_describes_its_model(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "a-secret")
    spec = {"method": "relative", "model": MODEL, "options": {}}
    judge = load_judge(json.loads(json.dumps(spec)))
    assert judge.spec == spec
    own = judge.config["metadata"]["model"]["judge"]
    assert (own["name"], own["reasoning_effort"]) == ("m", "low")
    assert "a-secret" not in json.dumps(judge.spec)


@for_each("model", [{}, {"name": "openai:x", "api_key": "a value"}])
def test_the_model_of_a_spec_is_checked(model):
    with pytest.raises(OptionError, match="the `model` of a spec is"):
        load_judge({"method": "relative", "model": model})


def test_settings_of_the_model_reach_the_provider(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(PAIR))
    with FakeModelServer(answer_call) as server:
        words = ["judge", str(rows), "--method", "relative", "--model", "m"]
        words += ["--base-url", server.url, "--model-set", "service_tier=flex"]
        assert CliRunner().invoke(app, words).exit_code == 0
        assert [call.body["service_tier"] for call in server.calls] == ["flex", "flex"]


def ray_command(tmp_path, *flags):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(PAIR))
    words = ["judge", str(rows), "--method", "bsm", "--model", "openai:gpt-5-mini"]
    return CliRunner().invoke(app, [*words, "--ray", "2", *flags])


def test_ray_gets_the_judge_that_the_flags_name(tmp_path, monkeypatch):
    specs: list[Any] = []

    def judge_dataset(source, spec, **options):
        specs.append(spec)
        return SimpleNamespace(summary=Summary(rows=1))

    monkeypatch.setattr(on_ray, "judge_dataset", judge_dataset)
    out = ["-o", str(tmp_path / "out")]
    flags = ["--preset", "paper", "--set", "max_criteria=3", "--model-set", "seed=1"]
    assert ray_command(tmp_path, *out, *flags).exit_code == 0
    assert specs[0]["preset"] == "paper"
    assert specs[0]["options"] == {"max_criteria": 3}
    assert specs[0]["model"]["settings"] == {"seed": 1}


def test_ray_refuses_what_it_would_leave_out(tmp_path):
    for flag in ("--batch", "--show"):
        result = ray_command(tmp_path, "-o", str(tmp_path / "out"), flag)
        assert (result.exit_code, f"takes no {flag}" in result.stderr) == (2, True)
    assert "needs --out" in ray_command(tmp_path).stderr
