"""`langchain-judges show`, and refusals that help: the flag, the JSON, the nearest name."""

import json

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.methods.registry import METHODS
from tests.cases import for_each

PAIR = {"input": "Name a prime.", "output_a": "7", "output_b": "9"}
ITEM = {"input": "Name a prime.", "output": "7", "expected": "7", "label": "x"}


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def refused(tmp_path):
    """Return what a dry run of `judge` says of its arguments."""

    def run(row, *arguments):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(row))
        result = invoke("judge", path, "--model", "m", "--base-url", "http://x", *arguments)
        assert result.exit_code == 2
        return result.stderr

    return run


def test_every_method_is_listed_with_its_presets():
    listed = invoke("show").stdout
    for name, method in METHODS.items():
        assert f"{name} (" in listed
        assert method.summary in listed
        assert ", ".join(method.presets) in listed


@for_each("name", METHODS)
def test_every_option_that_a_shell_can_set_is_listed(name):
    listed = invoke("show", name).stdout
    barred = {"cache", "checkpointer", "embeddings", "memory", "name", "prompts", "store"}
    options = set(METHODS[name].defaults())
    assert all(f"\n  {option}=" in listed for option in options - barred)
    assert not any(f"\n  {option}=" in listed for option in options & barred)


def test_defaults_presets_and_meanings_are_shown_in_the_form_of_set():
    listed = invoke("show", "bsm").stdout
    assert "\n  scale=[1, 5]\n      Lowest and highest score.\n" in listed
    assert "\n  ten_points: scale=[1, 10]\n" in listed


def test_defaults_of_a_group_can_be_given_back():
    listed = invoke("show", "drpe").stdout
    line = next(line for line in listed.splitlines() if line.startswith("  voting="))
    assert json.loads(line.removeprefix("  voting="))["batch"] is True


def test_an_unknown_method_is_refused_with_the_nearest():
    result = invoke("show", "bms")
    assert result.exit_code == 2
    assert "there is no method or rubric 'bms'; did you mean 'bsm'?" in result.stderr


def test_an_unknown_preset_or_option_is_refused_with_the_nearest(refused):
    assert "did you mean 'paper'?" in refused(PAIR, "--preset", "papr")
    assert "did you mean 'scale'?" in refused(PAIR, "--set", "scal=5")


@pytest.mark.parametrize(
    ("row", "arguments", "hint"),
    [
        (PAIR, ["--set", "criteria=Care, Tone"], """--set criteria='["Care", "Tone"]'"""),
        (ITEM, ["--method", "allure", "--set", "labels=x,y"], """--set labels='["x", "y"]'"""),
        (PAIR, ["--method", "sc2", "--set", "aspects=x,y"], """--set aspects='["x", "y"]'"""),
        (PAIR, ["--set", "criteria=[Care]"], "not valid JSON: texts need double quotes"),
    ],
)
def test_a_list_that_is_no_json_is_refused_with_its_json(refused, row, arguments, hint):
    assert hint in refused(row, *arguments)


def test_a_refusal_names_the_flag(refused):
    assert "`--set scale` must be two whole numbers" in refused(PAIR, "--set", "scale=5")
