"""A report beside an earlier one, and the bars of continuous integration."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from langchain_judges import report
from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.report.report import command_text
from tests.cases import for_each
from tests.judged_rows import data_of, run_of

LABELS = ["A", "B"] * 30


def saved(answers, labels=LABELS):
    """A report as it is read back from its JSON."""
    return json.loads(report.trust(run_of(answers), data_of(labels)).to_json())


# Right on all 60 rows before; now wrong on every third.
def test_the_same_rows_are_compared_in_pairs():
    now = ["tie" if i % 3 == 0 else label for i, label in enumerate(LABELS)]
    trust_report = report.trust(run_of(now), data_of(LABELS), baseline=saved(LABELS))
    assert trust_report.drift.change == pytest.approx(-1 / 3)
    assert trust_report.drift.changed == pytest.approx(1 / 3)
    assert trust_report.drift.worse
    assert trust_report.drift.change.n == 60


def test_a_row_or_two_is_no_drift():
    now = ["tie" if i == 3 else label for i, label in enumerate(LABELS)]
    trust_report = report.trust(run_of(now), data_of(LABELS), baseline=saved(LABELS))
    assert not trust_report.drift.worse


def test_rows_are_found_by_their_texts_where_the_run_knows_them():
    rows = run_of(["A", "B"], content=None)
    for row, mark in zip(rows, ("x", "y"), strict=True):
        row["content"] = {"output_a": mark}
    earlier = json.loads(report.trust(rows, None).to_json())
    later = [{**row, "index": 1 - i, "id": f"new{i}"} for i, row in enumerate(rows)]
    trust_report = report.trust(later[::-1], None, baseline=earlier)
    assert trust_report.drift.changed == 0
    assert trust_report.drift.changed.n == 2


def test_the_history_grows_and_is_drawn():
    first = saved(LABELS)
    second = report.trust(run_of(LABELS), data_of(LABELS), baseline=first)
    third = report.trust(run_of(LABELS), data_of(LABELS), baseline=second.to_dict())
    assert len(third.to_dict()["history"]) == 3
    assert "Agreement by date" in third.to_html()


@for_each("earlier", [{}, {"answers": [], "history": []}])
def test_what_is_no_report_is_no_baseline(earlier):
    with pytest.raises(InputError, match="baseline"):
        report.trust(run_of(["A"]), data_of(["A"]), baseline=earlier)


def test_bars_hold_the_number_and_pass_nothing_unknown():
    trust_report = report.trust(run_of(["A"] * 60), data_of(LABELS))
    low, high, unknown = (
        report.gates(trust_report, **bar)[0].passed
        for bar in ({"min_agreement": 0.5}, {"min_agreement": 0.51}, {"max_flips": 1.0})
    )
    assert (low, high, unknown) == (True, False, False)


def files(folder, answers):
    (folder / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in data_of(LABELS)))
    (folder / "v.jsonl").write_text("".join(json.dumps(r) + "\n" for r in run_of(answers)))
    return [
        "trust",
        folder / "data.jsonl",
        "--verdicts",
        folder / "v.jsonl",
        "-o",
        folder / "r.html",
    ]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_the_command_exits_with_4_under_a_bar_and_says_which(tmp_path):
    command = files(tmp_path, ["A"] * 60)
    summary = tmp_path / "summary.md"
    result = invoke(*command, "--min-agreement", "0.7", "-o", summary)
    assert result.exit_code == 4
    assert "failed: agreement 50.0" in result.stderr
    assert "**failed**" in summary.read_text()
    assert invoke(*command, "--min-agreement", "0.4").exit_code == 0


def test_the_command_exits_with_4_if_worse_than_the_baseline_which_it_may_replace(tmp_path):
    last = tmp_path / "last.json"
    assert invoke(*files(tmp_path, LABELS), "-o", last).exit_code == 0
    worse = ["tie" if i % 3 else label for i, label in enumerate(LABELS)]
    result = invoke(*files(tmp_path, worse), "--baseline", last, "-o", last)
    assert result.exit_code == 4
    assert "failed: change since" in result.stderr
    assert len(json.loads(last.read_text())["history"]) == 2


def test_a_missing_baseline_is_wrong_use(tmp_path):
    result = invoke(*files(tmp_path, LABELS), "--baseline", tmp_path / "none.json")
    assert result.exit_code == 2
    assert "none.json cannot be read" in result.stderr


def test_the_page_says_how_it_was_made():
    trust_report = report.trust(
        run_of(["A", "B"]), data_of(["A", "B"]), provenance={"command": "x"}
    )
    assert {"date", "langchain-judges", "data", "command"} <= set(trust_report.provenance)
    other = report.trust(run_of(["A", "B"]), data_of(["B", "B"]))
    assert trust_report.provenance["data"] != other.provenance["data"]
    assert trust_report.provenance["data"] in trust_report.to_html()


def test_a_command_is_told_without_keys():
    command = ["x", "trust", "--base-url", "http://me:pw@h/v1", "--model-set", "api_key=abc"]
    text = command_text(command)
    assert "pw" not in text
    assert "abc" not in text
    assert "http://h/v1" in text
