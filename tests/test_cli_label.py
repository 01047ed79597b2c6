"""`langchain-judges label`: people label rows, blind to sides, doubtful ones first."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.label import LabelDesk, doubts, estimate
from tests.judged_rows import data_of, run_of


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def label(*arguments, keys):
    result = CliRunner().invoke(app, ["label", *map(str, arguments)], input=keys)
    assert result.exit_code == 0, result.output
    return result.stderr


def labels(path):
    return {row["id"]: row["label"] for row in map(json.loads, path.read_text().splitlines())}


def test_answers_name_the_text_that_stood_there(tmp_path):
    data, out = written(tmp_path / "d.jsonl", data_of([None] * 6)), tmp_path / "l.jsonl"
    arguments = label(data, "-o", out, keys="111tt2")
    desk = LabelDesk(None, None, "01")
    sides = [desk._first(place) for place in range(6)]
    other = {"A": "B", "B": "A"}
    expected = [*sides[:3], "tie", "tie", other[sides[5]]]
    assert list(labels(out).values()) == expected
    assert set(sides) == {"A", "B"}
    assert "6 labelled now" in arguments


def test_labelling_resumes_skips_and_takes_back(tmp_path):
    data, out = written(tmp_path / "d.jsonl", data_of([None] * 4)), tmp_path / "l.jsonl"
    label(data, "-o", out, "--budget", "2", keys="tu1q")
    assert len(labels(out)) == 1
    arguments = label(data, "-o", out, keys="stt")
    assert len(labels(out)) == 3
    assert "3 in" in arguments


def test_single_texts_take_digits(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": "text"} for i in range(3)]
    data, out = written(tmp_path / "d.jsonl", rows), tmp_path / "l.jsonl"
    label(data, "-o", out, "--labels", "12345", keys="95x1\n3")
    assert list(labels(out).values()) == [5, 1, 3]


def test_rows_are_parted_by_category_and_doubt():
    data = data_of([None] * 4, category="c")
    one = run_of([("A", "A"), ("A", "B"), ("B", "B"), (None, None)])
    one[3]["verdict"]["preference"] = None
    two = run_of(["A", "tie", "A"])
    judged, strata = doubts(data, [one, two])
    assert judged == [1.0, 0.5, 0.0, None]
    names = ["sure", "flipped", "judges disagree", "not judged"]
    assert strata == [("c", name) for name in names]


# The judge says A everywhere; people say A on half of the labelled rows.
def test_the_labels_correct_the_judge_on_the_rest():
    text = estimate([1.0] * 30, [1.0, 0.0] * 5 + [None] * 20, [("", "sure")] * 30, pairs=True)
    assert "prefer A 50.0 %" in text
    assert "Too few" in estimate([1.0] * 3, [1.0, None, None], [("", "sure")] * 3, pairs=True)


def test_no_interval_leaves_the_labels_that_there_are():
    strata, scores = [("", "sure")] * 9, [1.0] * 9
    text = estimate(scores, [0.0, 1.0, *[None] * 7], strata, pairs=False)
    assert text.endswith("would be 0.50 (0.00 to 1.00).")


def test_kinds_of_row_with_too_few_labels_are_taken_together():
    strata = [(f"c{i % 10}", "sure") for i in range(30)]
    text = estimate([1.0] * 30, [1.0, 0.0] * 5 + [None] * 20, strata, pairs=True)
    assert "prefer A 50.0 %" in text
    # A category of which one row is left joins the other.
    strata = [("c1", "sure")] * 4 + [("c2", "sure")] * 9
    labels = [1.0, 0.0, 1.0, None, 1.0, 0.0, *[None] * 7]
    assert "prefer A" in estimate([1.0] * 13, labels, strata, pairs=True)
    # One label on a flipped row: what holds of sure ones says nothing of it.
    mixed = [("", "flipped")] * 5 + [("", "sure")] * 5
    labels = [1.0, *[None] * 4, 1.0, 0.0, *[None] * 3]
    text = estimate([1.0] * 10, labels, mixed, pairs=True)
    assert text.endswith("are needed of the rows that are flipped.")
    assert "none left" in estimate([1.0], [1.0], [("", "sure")], pairs=True)


def test_texts_are_shown_to_their_end(tmp_path):
    data = data_of([None])
    data[0]["output_a"] = "word " * 40 + "LAST"
    shown = label(written(tmp_path / "d.jsonl", data), "-o", tmp_path / "l.jsonl", keys="q")
    assert "LAST" in shown


@pytest.mark.parametrize("labels", ["ab", "11"])
def test_labels_must_be_different_digits(tmp_path, labels):
    data = written(tmp_path / "d.jsonl", data_of([None]))
    arguments = ["label", str(data), "-o", str(tmp_path / "l.jsonl"), "--labels", labels]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "--labels must be different digits" in result.stderr
