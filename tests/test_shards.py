"""One run over several machines, and its parts as one table."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langchain_judges import judge_many
from langchain_judges.cli import app
from langchain_judges.errors import OptionError, OutputError
from langchain_judges.runs.shards import merge_shards
from tests.fakes import FakeChatModel
from tests.judges import of_method

ROWS = [
    {"input": "Name a fruit.", "output_a": f"good {n}", "output_b": "pear", "id": f"r{n}"}
    for n in range(20)
]


def judge(model=None):
    return of_method("relative", model, orders="none")


def run(folder, number, of=4, rows=ROWS, **options):
    shard = f"{number}/{of}"
    return list(judge_many(judge(), rows, records=folder, shard=shard, progress=False, **options))


@pytest.fixture
def whole(tmp_path):
    for number in (1, 2, 3, 4):
        run(tmp_path / "out", number)
    return tmp_path / "out"


def test_each_row_is_judged_in_one_shard_at_its_place_in_the_whole(tmp_path):
    parts = [run(tmp_path, number) for number in (1, 2, 3, 4)]
    assert sorted(row["index"] for part in parts for row in part) == list(range(20))
    assert {row["id"]: row["index"] for part in parts for row in part}["r7"] == 7


def test_a_row_keeps_its_shard_wherever_it_stands_in_the_file(tmp_path):
    first = {row["id"] for row in run(tmp_path / "a", 2)}
    assert {row["id"] for row in run(tmp_path / "b", 2, rows=ROWS[::-1])} == first


def test_rows_that_cannot_be_read_are_parted_by_their_places(tmp_path):
    rows = [*ROWS, *[{**ROWS[0], "output_a": ""}] * 20]
    parts = [run(tmp_path, number, rows=rows) for number in (1, 2, 3, 4)]
    unread = [[row["index"] for row in part if not row["judged"]] for part in parts]
    assert sorted(index for each in unread for index in each) == list(range(20, 40))
    assert all(unread)


def test_a_shard_needs_a_folder_for_its_part(tmp_path):
    with pytest.raises(OptionError, match="needs `records`"):
        run(None, 1)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        run(tmp_path / "file", 1)


def test_a_shard_begun_again_asks_nothing_that_is_in_its_part(tmp_path):
    first, model = run(tmp_path, 1), FakeChatModel()
    again = judge_many(judge(model), ROWS, records=tmp_path, shard="1/4", progress=False)
    assert list(again) == first
    assert not model.prompts


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_parts_join_in_the_order_of_the_rows(whole, tmp_path, ending):
    merged = merge_shards(whole, tmp_path / f"all.{ending}")
    assert (merged.rows, merged.judged, merged.parts) == (20, 20, 4)
    records = read(tmp_path / f"all.{ending}")
    assert [record["id"] for record in records] == [row["id"] for row in ROWS]


def read(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text().splitlines()))
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(path).to_pylist()


def test_a_shard_that_was_stopped_is_named(tmp_path):
    run(tmp_path, 1, of=2)
    options: dict[str, Any] = {"shard": "2/2", "max_concurrency": 1, "progress": False}
    with judge_many(judge(), ROWS, records=tmp_path, **options) as stopped:
        next(stopped)
    with pytest.raises(OutputError, match="have not finished: 2/2"):
        merge_shards(tmp_path, tmp_path / "all.jsonl")


def test_shards_of_other_rows_or_judges_do_not_join(tmp_path):
    run(tmp_path, 1, of=2)
    run(tmp_path, 2, of=2, rows=ROWS[:10])
    with pytest.raises(OutputError, match="different rows, judges"):
        merge_shards(tmp_path, tmp_path / "all.jsonl")
    other = of_method("relative")
    list(judge_many(other, ROWS, records=tmp_path, shard="2/2", progress=False))
    with pytest.raises(OutputError, match="different rows, judges"):
        merge_shards(tmp_path, tmp_path / "all.jsonl")


def changed(*places):
    """The rows, with other texts at these places."""
    return [{**row, "output_b": "fig"} if n in places else row for n, row in enumerate(ROWS)]


@pytest.mark.parametrize("places", [[0], [0, 1, 2], [*range(20)]])
def test_shards_of_rows_that_were_changed_in_between_do_not_join(tmp_path, places):
    run(tmp_path, 1, of=2)
    run(tmp_path, 2, of=2, rows=changed(*places))
    with pytest.raises(OutputError, match="different rows, judges"):
        merge_shards(tmp_path, tmp_path / "all.jsonl")


def test_results_of_rows_that_were_changed_since_are_left_out(tmp_path):
    for rows in (ROWS, changed(0, 5), changed(0, 7)[:18]):
        for number in (1, 2):
            run(tmp_path, number, of=2, rows=rows)
    assert merge_shards(tmp_path, tmp_path / "all.jsonl").rows == 18
    afresh = [row["key"] for row in run(tmp_path / "new", 1, of=1, rows=changed(0, 7)[:18])]
    assert [row["key"] for row in read(tmp_path / "all.jsonl")] == afresh


def test_a_part_that_lacks_rows_does_not_join(whole, tmp_path):
    part = next(path for path in whole.glob("part-*.jsonl") if path.stat().st_size)
    part.write_text("".join(part.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(OutputError, match="19 of 20 rows; run its shards again"):
        merge_shards(whole, tmp_path / "all.jsonl")


@pytest.mark.parametrize("shard", [None, "1/1"])
def test_rows_that_share_a_place_are_no_table(tmp_path, shard):
    place = tmp_path / ("parts" if shard else "r.jsonl")
    for rows in (ROWS[1:], ROWS):  # the second run has the first row of the first one second
        list(judge_many(judge(), rows, records=place, shard=shard, progress=False))
    with pytest.raises(OutputError, match=r"row 1 occurs twice, .* `out` beside `records`"):
        merge_shards(place, tmp_path / "all.jsonl")


def test_a_row_that_stands_twice_is_refused(whole, tmp_path):
    part = next(path for path in whole.glob("part-*.jsonl") if path.stat().st_size)
    part.write_text(part.read_text() + part.read_text().splitlines(keepends=True)[0])
    with pytest.raises(OutputError, match="occurs twice"):
        merge_shards(whole, tmp_path / "all.jsonl")


def test_results_of_two_judges_are_no_table(tmp_path):
    out = tmp_path / "out.jsonl"
    list(judge_many(judge(), ROWS[:2], records=out, progress=False))
    other = of_method("relative")
    list(judge_many(other, ROWS[:3], records=out, progress=False))
    with pytest.raises(OutputError, match="results of 2 judges"):
        merge_shards(out, tmp_path / "all.jsonl")


def test_the_command_joins_parts_and_names_what_is_missing(whole, tmp_path):
    command = ["merge", str(whole), "-o", str(tmp_path / "all.jsonl")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    assert "20 of them judged" in result.output
    Path(next(whole.glob("*.done.json"))).unlink()
    assert CliRunner().invoke(app, command).exit_code == 2
