"""How many labels tell which of two judges is better."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.report.versus import how_far_apart, labels_to_part
from tests.judged_rows import data_of, run_of


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


def test_labels_to_part_two_judges_are_said():
    first, second, data = runs()
    sentence = labels_to_part(how_far_apart(first, second, data))
    assert "One judge alone is right on 30.0 % of 40 rows with labels; so far +10.0" in sentence
    # Connor 1987 for 0.1 of 0.3: ((1.96 √0.3 + 0.8416 √(0.3 − 0.01)) / 0.1)² = 233.
    found = re.search(r"lead of 10\.0 points in 80 of 100 samples takes about (\d+)", sentence)
    assert found
    assert 225 <= int(found[1]) <= 260


def test_judges_that_agree_everywhere_are_told_apart_by_no_label():
    first, _, data = runs()
    assert "no label tells them apart" in labels_to_part(how_far_apart(first, first, data))


def test_trust_says_so_of_two_files_of_verdicts(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("a", "b", "data")]
    for path, rows in zip(paths, runs(), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    a, b, data = map(str, paths)
    words = ["trust", data, "--verdicts", a, "--verdicts", b, "-o", str(tmp_path / "r.html")]
    assert "so far +10.0 points for the first" in CliRunner().invoke(app, words).stdout
