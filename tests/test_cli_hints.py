"""What the command line suggests where rows lack a field."""

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.hints import hint
from langchain_judges.errors import InputError
from langchain_judges.methods.rubric.judge import RubricOptions
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
    assert hint([LACKS.format(field, columns)] * 2).endswith(words)


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
    assert words in hint([str(caught.value)])


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


def test_rows_that_are_bad_in_several_ways_get_no_hint():
    assert hint([LACKS.format("input", "'q'"), "the field `input` is empty"]) == ""


def test_the_command_prints_the_hint(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    rows = tmp_path / "rows.csv"
    rows.write_text("question,output\nWhere?,Here.\n")
    words = ["judge", str(rows), "--method", "rubric", "--model", "openai:gpt-5-mini"]
    result = CliRunner().invoke(app, [*words, "--dry-run"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "Name its column, as in --column input=question." in result.output
