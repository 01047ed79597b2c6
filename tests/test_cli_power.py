"""`langchain-judges power`: how many labels tell two judges apart."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.report.versus import how_far_apart
from tests.judged_rows import data_of, run_of


def power(*arguments):
    return CliRunner().invoke(app, ["power", *map(str, arguments)])


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_lead_and_a_disagreement_give_a_number_of_labels():
    shown = power("--lead", "0.1", "--disagreement", "0.2").stdout
    # Connor 1987, see test_metrics_planning: 155; the exact test takes a little more.
    assert 150 <= int(shown.splitlines()[1].split()[2]) <= 180


def test_a_lead_above_the_disagreement_is_refused():
    done = power("--lead", "0.3")
    assert done.exit_code == 2
    assert "at most --disagreement" in done.stderr


def test_rows_without_results_are_refused():
    done = power("rows.jsonl")
    assert done.exit_code == 2
    assert "by --verdicts" in done.stderr


# Of forty rows the first alone is right on eight, the second alone on four.
def runs():
    first = ["A"] * 36 + ["B"] * 4
    second = ["B"] * 8 + ["A"] * 32
    return run_of(first), run_of(second), data_of(["A"] * 40)


def test_labels_count_the_rows_on_which_one_judge_alone_is_right():
    apart = how_far_apart(*runs())
    assert (apart.disagreement, apart.lead, apart.rows) == (0.3, pytest.approx(0.1), 40)


def test_without_labels_the_rows_on_which_they_differ_are_counted():
    first, second, _ = runs()
    apart = how_far_apart(first, second, data_of([None] * 40))
    assert (apart.disagreement, apart.lead) == (0.3, None)


def test_runs_without_a_row_in_common_are_refused():
    first, second, _ = runs()
    with pytest.raises(InputError, match="no row in common"):
        how_far_apart(first[:5], [{**row, "id": f"x{i}"} for i, row in enumerate(second)])


def test_two_files_of_verdicts_are_read(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("a", "b", "data")]
    a, b, data = map(written, paths, runs())
    shown = power(data, "--verdicts", a, "--verdicts", b, "--lead", "0.1").stdout
    assert "One judge alone is right on 30.0 % of 40 rows with labels; so far +10.0" in shown
    assert "10.0 points" in shown
