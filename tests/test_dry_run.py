"""Dry runs: they say what a run will ask and may cost, and load nothing that asks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from langchain_judges.asking.models import ModelSpec
from langchain_judges.cli import app
from langchain_judges.errors import OptionError
from langchain_judges.methods.describe import outline
from langchain_judges.methods.registry import METHODS, load_judge
from langchain_judges.runs.prices import provider_and_name
from tests.cases import for_each
from tests.judges import ITEM, PAIR

MODEL: ModelSpec = {"name": "openai:gpt-5-mini", "base_url": "http://127.0.0.1:9/v1"}
HEAVY = ("faiss", "langchain_openai", "langgraph.graph", "numpy", "openai", "pandas", "sklearn")


@pytest.fixture
def rows(tmp_path):
    """Return a function that writes rows and returns their file."""

    def write(*rows: object) -> str:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    return write


def said(*words: str) -> tuple[int, str]:
    """Return the exit code of a dry run, and what it says."""
    result = CliRunner().invoke(app, [*words, "--dry-run"], env={"OPENAI_API_KEY": "none"})
    return result.exit_code, result.stderr


@for_each("method", METHODS)
def test_an_outline_counts_the_calls_that_the_judge_says_it_makes(method):
    for preset in (None, *METHODS[method].presets):
        options = {"rubric": "Be fair."} if method == "rubric" and not preset else {}
        spec = {"method": method, "model": MODEL, "options": options, "preset": preset}
        assert outline(spec).calls == load_judge(spec).config["metadata"]["calls"]
        assert outline(spec).kind == METHODS[method].takes


def test_an_outline_of_judges_names_the_model_of_each():
    other: ModelSpec = {**MODEL, "name": "openai:gpt-5"}
    jury = outline({"method": "jury", "model": [MODEL, {"method": "bsm", "model": other}]})
    # Two orders by `relative`, and a plan with five criteria in two orders by `bsm`.
    assert [(each.calls, each.model["name"]) for each in jury.asked] == [
        (2, "openai:gpt-5-mini"),
        (11, "openai:gpt-5"),
    ]
    assert (
        jury.calls
        == load_judge({"method": "jury", "model": [MODEL, other]}).config["metadata"]["calls"]
        + 9
    )


@for_each(
    ("options", "problem"),
    [
        ({"min_valid": 3}, "`min_valid` must be at most 2"),
        ({"methods": ["relative", "allure"]}, "all members must judge the same"),
        ({"methods": ["relative"] * 3}, "`methods` must be one for all models"),
    ],
)
def test_an_outline_refuses_members_that_do_not_fit(options, problem):
    spec = {"method": "jury", "model": [MODEL, MODEL], "options": options}
    for make in (outline, load_judge):
        with pytest.raises(OptionError, match=problem):
            make(spec)


@for_each(
    ("spec", "priced"),
    [
        ({"name": "openai:gpt-5"}, ("openai", "gpt-5")),
        ({"name": "gpt-5"}, ("openai", "gpt-5")),
        ({"name": "anthropic:claude"}, ("anthropic", "claude")),
        ({"name": "mine", "base_url": "http://127.0.0.1"}, (None, "mine")),
        ({"name": "openai:m", "base_url": "https://api.openai.com/v1"}, ("openai", "m")),
    ],
)
def test_a_model_is_priced_by_its_name_as_by_its_object(spec, priced):
    assert provider_and_name(spec) == priced


def test_trust_says_what_it_will_ask_before_it_asks(rows):
    path = rows({**PAIR, "label": "A"}, {**PAIR, "input": "How?", "label": "B"})
    code, text = said("trust", path, "--model", "openai:gpt-5-mini", "--method", "relative")
    assert (code, "2 pairs by relative: at most 4 calls" in text) == (0, True)
    # Two calls a row: 600 tokens of their own and its 16 bytes; replies of 150.
    assert "About 1,216 input and 600 output tokens" in text


def test_a_ranking_says_how_many_comparisons_there_are(rows):
    texts = {"a": "x", "b": "y", "c": "z"}
    path = rows(*({"question": f"Why {n}?", "outputs": texts} for n in range(4)))
    words = ["rank", path, "--model", "openai:gpt-5-mini", "--column", "input=question"]
    code, text = said(*words, "--limit", "3", "--budget", "5")
    # Three pairs of systems on three tasks.
    assert (code, "3 systems on 3 tasks: 9 comparisons are possible" in text) == (0, True)
    assert "5 pairs by relative: at most 10 calls" in text


def test_an_audit_says_what_its_rounds_ask_before_anything_is_asked(rows, tmp_path):
    path, memory = rows(ITEM, {**ITEM, "input": "How?"}), tmp_path / "memory"
    words = ["audit", path, "--model", "openai:gpt-5-mini", "--memory", str(memory)]
    words += ["--set", "audit.max_rounds=3", "--dev", "0.5", "--auditor", "openai:gpt-5"]
    code, text = said(*words)
    assert (code, "2 items by allure: at most 2 calls" in text) == (0, True)
    assert "3 rounds make at most 6 calls" in text
    assert "--dev" in text
    assert "openai:gpt-5 is asked once about each doubted label" in text
    assert not memory.exists()


@for_each(
    ("words", "problem"),
    [
        (["--column", "inpt=q"], "--column names no field 'inpt'; did you mean 'input'?"),
        (["--column", "input"], "--column takes FIELD=COLUMN, such as input=question"),
        (["--column", "input=inptu"], "no column 'inptu'; did you mean 'input'?"),
        (["--method", "rubrik"], "there is no method 'rubrik'; did you mean 'rubric'?"),
        (["--preset", "papr"], "there is no preset of 'bsm' 'papr'; did you mean 'paper'?"),
        (["--set", "criteria=Tone,Depth"], """--set criteria='["Tone", "Depth"]'"""),
        (["--model", ""], "name a model by --model"),
    ],
)
def test_a_refusal_names_the_option_and_what_may_be_meant(tmp_path, words, problem):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**PAIR, "label": "A"}))
    for command in ("judge", "trust"):
        model = [] if "--model" in words else ["--model", "openai:gpt-5-mini"]
        code, text = said(command, str(path), *model, *words)
        assert (code, problem in text) == (2, True), text


def test_a_dry_run_of_finished_verdicts_has_nothing_to_say(rows):
    code, text = said("trust", rows(ITEM), "--verdicts", "v.jsonl")
    assert (code, "with --verdicts nothing is asked" in text) == (2, True)


@pytest.mark.system
@pytest.mark.parametrize("method", ["bsm", "relative", "sc2", "drpe", "jury"])
def test_a_dry_run_loads_no_graph_no_model_and_no_library_of_numbers(rows, method):
    words = ["judge", rows(PAIR), "--method", method, "--model", "openai:gpt-5-mini"]
    code = (
        "import sys\nfrom typer.testing import CliRunner\n"
        "from langchain_judges.cli import app\n"
        f"result = CliRunner().invoke(app, {[*words, '--dry-run']!r})\n"
        "assert result.exit_code == 0, result.output\n"
        f"print(*(set({HEAVY!r}) & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (loaded.stdout, loaded.stderr) == ("\n", "")
