"""What the command line suggests where rows lack a field."""

import json

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.rows import row_hint
from langchain_judges.errors import InputError
from langchain_judges.methods.rubric.options import RubricOptions
from tests.cases import for_each

LACKS = "the field `{}` is missing or null; the fields are {}"


@for_each(
    ("field", "columns", "words"),
    [
        ("input", "'Question', 'answer'", "--column input=Question."),
        ("output", "'input', 'response'", "--column output=response."),
        ("output_a", "'input', 'b', 'a'", "--column output_a=a."),
        ("input", "'q', 'r'", "--column input=COLUMN."),
        ("output_a", "'input', 'output'", "--method rubric."),
        ("output", "'input', 'output_a', 'output_b'", "--method bsm."),
    ],
)
def test_a_missing_field_is_named_with_its_remedy(field, columns, words):
    assert row_hint([LACKS.format(field, columns)] * 2).endswith(words)


@for_each(
    ("rubric", "words"),
    [
        ("groundedness", "--column source="),
        ("correctness", "--column expected="),
        (None, "--set rubric="),
    ],
)
def test_rows_without_what_they_are_judged_by_come_with_the_option(rubric, words):
    with pytest.raises(InputError) as caught:
        RubricOptions(rubric=rubric).check({"input": "Q", "output": "A"})
    assert words in row_hint([str(caught.value)])


def test_an_unknown_preset_is_named_though_the_rows_lack_a_rubric(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("input,output\nWhere?,Here.\n")
    words = [
        "judge",
        str(rows),
        "--method",
        "rubric",
        "--preset",
        "groundednes",
        "--model",
        "m",
    ]
    result = CliRunner().invoke(app, [*words, "--dry-run"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "did you mean 'groundedness'?" in result.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder with a file of pairs, where commands run without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pair = {"input": "Why?", "output_a": "good", "output_b": "poor", "label": "A"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    return tmp_path


def refusal(*words):
    """Return what a command says on wrong use, and hold that it says only that."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


@for_each(
    ("words", "nearest"),
    [
        ("judge pair.jsonl --model m", "pairs.jsonl"),
        ("judge lmbar --model m", "llmbar"),
        ("judge pairs.jsonl --model m --method bms", "bsm"),
        ("rank pair.jsonl --model m", "pairs.jsonl"),
        ("compare pairs.jsonl --model m --methods bms", "bsm"),
        ("compare pairs.jsonl --model m --methods bsm --set bms.seed=1", "bsm"),
        ("compare pairs.jsonl --model m --methods bsm --set bsm.sed=1", "seed"),
        ("show bms", "bsm"),
        ("show groundednes", "groundedness"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(folder, words, nearest):
    assert f"did you mean '{nearest}'?" in refusal(*words.split())


@for_each(
    ("words", "sentence"),
    [
        ("judge pairs.jsonl --model m --base-url http://m --ray 0", "--ray"),
        ("compare pairs.jsonl --model gpt-m --methods ,", "--methods must be among"),
    ],
)
def test_a_refusal_names_the_flag_in_place_of_the_keyword(folder, words, sentence):
    assert sentence in refusal(*words.split())


@for_each(
    ("words", "sentence"),
    [
        ("label pairs.jsonl -o .", "--out must name a file, and . is a folder"),
        ("rank pairs.jsonl --model m -o no/a.json", "--out must name a file in a folder"),
        ("trust pairs.jsonl --model m --baseline pairs.jsonl", "pairs.jsonl is not a report"),
        ("trust pairs.jsonl --model m -o .", "--out must name a file, and . is a folder"),
        ("rank empty.jsonl --model m", "empty.jsonl has no row"),
        ("merge empty.jsonl -o a.csv", "empty.jsonl holds no results"),
        ("judge pairs.jsonl --model gpt-m --set seed=x", "`--set seed` must be"),
    ],
)
def test_what_would_fail_in_the_end_is_refused_at_once(folder, words, sentence):
    (folder / "empty.jsonl").write_text("")
    assert sentence in refusal(*words.split())


@for_each(
    ("command", "rows"),
    [
        ("judge", "pairs.jsonl"),
        ("trust", "pairs.jsonl"),
        ("compare", "pairs.jsonl"),
        ("rank", "pairs.jsonl"),
        ("audit", "pairs.jsonl --memory memory"),
        ("write", "pairs.jsonl"),
    ],
)
def test_every_command_that_asks_refuses_in_one_sentence(folder, command, rows):
    named = f"{command} {rows} --model m --base-url http://127.0.0.1:9"
    for wrong in ("--set nope", "--set model=x", "--concurrency 0", "--timeout 0", "--bogus"):
        words = refusal(*named.split(), *wrong.split())
        assert wrong.split()[0] in words
        assert "Traceback" not in words


def test_rows_that_are_bad_in_several_ways_get_no_hint():
    assert row_hint([LACKS.format("input", "'q'"), "the field `input` is empty"]) == ""


def test_the_command_prints_the_hint(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rows = tmp_path / "rows.csv"
    rows.write_text("frage,output\nWhere?,Here.\n")
    words = ["judge", str(rows), "--method", "rubric", "--model", "openai:gpt-5-mini"]
    result = CliRunner().invoke(app, [*words, "--dry-run"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "Name its column, as in --column input=COLUMN." in result.output
