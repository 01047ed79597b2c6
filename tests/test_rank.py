"""Systems ranked by a judge: the order, the comparisons saved, and what is refused."""

import json
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from langchain_judges import create_relative_judge
from langchain_judges.cli import app
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics.tournament import (
    comparisons_to_settle,
    next_pairs,
    sequential_quantile,
    tournament,
)
from langchain_judges.report.compared_systems import RankedSystems
from langchain_judges.report.terminal import ranking_table
from langchain_judges.runs import rank
from langchain_judges.runs.comparison import joined
from langchain_judges.runs.sources import BadRecord, Source
from langchain_judges.verdict import NOTES, even_verdict
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import answer_call, labels

QUALITY = {"good": 3, "fair": 2, "poor": 1}
TASKS: list[dict[str, Any]] = [
    {"input": f"task {n}", "outputs": {name: f"{name} {n}" for name in QUALITY}} for n in range(40)
]


def judge(verdict=None):
    """A judge that prefers by quality, and what it was asked."""
    log = []

    def prefer(row):
        log.append(row)
        a, b = (QUALITY[row[side].split()[0]] for side in ("output_a", "output_b"))
        return {"verdict": {**even_verdict(), "preference": verdict or ("A" if a > b else "B")}}

    runnable = RunnableLambda(prefer)
    return runnable.with_config(metadata={"takes": "pair", "method": "by quality"}), log


def test_the_level_is_shared_by_the_neighbours():
    # Three systems have two neighbours: at 95 % each lead has 97.5 %, as one alone at that level.
    two, three = np.zeros((2, 2)), np.zeros((3, 3))
    two[:] = three[:2, :2] = np.array([[0.0, 43], [17, 0]])
    alone, among = tournament(two), tournament(three)
    assert (alone.settled(0.95)[0, 1], among.settled(0.95)[0, 1]) == (True, False)
    assert not alone.settled(0.975)[0, 1]
    assert len(among.unsettled(0.95)) == 2
    # Of 60 comparisons a lead, twice the difference of the shares, has the error 2 / √60.
    assert alone.spreads[0, 1] == pytest.approx(2 / 60**0.5, rel=0.01)
    ratio = 1 + 0.25 * 60 / 4
    reach = (ratio / (ratio - 1) * (math.log(ratio) - 2 * math.log(0.05))) ** 0.5
    assert sequential_quantile(alone.spreads, 0.95)[0, 1] == pytest.approx(reach, rel=0.01)


@pytest.mark.whole
def test_equal_systems_are_seldom_settled_however_often_one_looks():
    # 1 − confidence at most, here 20 of 200, and by chance up to 3 errors of 4.2 more.
    ever = 0
    for seed in range(200):
        won = np.random.default_rng(seed).integers(0, 2, 640).reshape(-1, 8).sum(axis=1).cumsum()
        looks = np.arange(8, 648, 8)
        points = np.zeros((80, 2, 2))
        points[:, 0, 1], points[:, 1, 0] = won, looks - won
        ever += bool(tournament(points).settled(0.9)[:, 0, 1].any())
    assert ever <= 20 + 3 * 4.2


@for_each("wins", [16, 40, 100_000])
def test_a_system_that_wins_every_time_is_ahead(wins):
    # The score test has √wins, so 4 of 16; Wald's error grows with the lead (Hauck & Donner 1977).
    state = tournament(np.array([[0.0, wins], [0, 0]]))
    assert state.settled(0.95)[0, 1]
    assert state.leads[0, 1] / state.spreads[0, 1] == pytest.approx(wins**0.5, rel=0.1)


def test_systems_are_ranked_with_few_of_the_comparisons():
    ranker, log = judge()
    ranking = rank(TASKS, ranker, batch=8, progress=False)
    assert [each["system"] for each in ranking["systems"]] == ["good", "fair", "poor"]
    assert ranking["settled"]
    assert len(log) == ranking["comparisons"] < ranking["possible"] / 2 == 60
    assert [each["parted"] for each in ranking["systems"]] == [True, True, None]


def test_a_close_order_says_how_many_more_comparisons_would_settle_it():
    # 60 % against one half: of 390 in all, at every check, (3.1 + 0.84)² / (0.2² / 0.96).
    assert 280 < comparisons_to_settle(np.array([[0.0, 12], [8, 0]]), (0, 1), 0.95) < 460
    assert comparisons_to_settle(np.full((2, 2), 10.0), (0, 1), 0.95) is None
    own: Any = {"strength": 0.1, "low": 0.0, "high": 0.2, "comparisons": 20, "parted": False}
    systems: Any = [
        {"system": name, **own, "more": more} for name, more in (("a", 40), ("b", None))
    ]
    took = {"calls": 1, "cost": None, "over_budget": False}
    ranking: Any = {"systems": [*systems, {**systems[0], "system": "c"}], **took}
    sentences = RankedSystems(ranking).sentences()
    assert re.match("a before b.* not settled.* 40 more", sentences[0])
    assert "too even" in sentences[1]
    assert sentences[2] == "It took 1 call."
    systems[0]["system"] = "a" * 50
    table = ranking_table(ranking)
    assert [str(cell) for cell in table.columns[1].cells] == ["a" * 50, "b", "c"]
    assert [str(cell) for cell in table.columns[0].cells] == ["1", "2", "3"]
    sides = [column.justify for column in table.columns]
    assert sides == ["right", "left", *["right"] * 4]


def test_no_pair_is_compared_twice_and_each_system_stands_in_both_slots():
    ranker, log = judge("tie")
    ranking = rank(TASKS, ranker, progress=False)
    assert (ranking["comparisons"], ranking["settled"]) == (120, False)
    assert len({row["id"] for row in log} | {turned(row["id"]) for row in log}) == 240
    first = {row["output_a"].split()[0] for row in log}
    assert first == set(QUALITY)
    assert all(abs(each["strength"]) < 1e-9 for each in ranking["systems"])


def turned(name):
    task, _, pair = name.partition(": ")
    return f"{task}: {' / '.join(reversed(pair.split(' / ')))}"


def test_a_limit_of_calls_bounds_the_comparisons_and_a_file_resumes_them(tmp_path):
    ranker, log = judge("tie")
    own: Any = {"batch": 4, "records": tmp_path / "o.jsonl", "progress": False}
    for times in (1, 2):
        ranking = rank(TASKS, ranker, max_calls=10, **own)
        assert len(log) == ranking["comparisons"] == 10 * times
        assert ranking["over_budget"]
    assert rank(TASKS, ranker, **own)["over_budget"] is False


@for_each("counted", [True, False])
@for_each("limit", [{"max_calls": 7}, {"max_dollars": 0.0073}, {"max_calls": 40}])
def test_a_ranking_pays_for_no_comparison_beyond_its_limit(tmp_path, counted, limit):
    read = 1_000 if counted else 0
    used: Any = {"input_tokens": read, "output_tokens": 0, "total_tokens": read}
    text = json.dumps({"explanation": "", "preference": "1"})
    model = FakeChatModel(replies=lambda _: AIMessage(text, usage_metadata=used))
    prices = tmp_path / "prices.json"
    known = {"FakeChatModel": {"input": 1.0, "output": 1.0}}
    prices.write_text(json.dumps({"date": "2026-11-01", "models": known}))
    found = rank(
        TASKS,
        create_relative_judge(model),
        prices=prices,
        progress=False,
        max_concurrency=1,
        **limit,
    )
    asked = len(model.prompts)
    assert found["calls"] == asked
    assert 0 < asked <= limit.get("max_calls", asked)
    assert found["over_budget"]
    if counted:
        assert found["cost"] == pytest.approx(0.001 * asked)
        assert found["cost"] <= limit.get("max_dollars", found["cost"]) + 0.002
    elif "max_dollars" in limit:
        assert asked < 60


def test_a_ranking_takes_rows_in_every_form_of_many_rows(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, TASKS)))
    for rows in (pd.DataFrame(TASKS), iter(TASKS), path):
        assert rank(rows, judge()[0], progress=False)["systems"][0]["system"] == "good"
    for rows in (TASKS[0], None, 3):
        with pytest.raises(OptionError, match="must be a list or another iterable of rows"):
            rank(rows, judge()[0], progress=False)


@for_each(
    ("rows", "message"),
    [
        (["text"], "row 1 needs .*; it has 'text'"),
        ([{"input": "x", "output": "y"}], "row 1 needs `input` and `outputs` by system"),
        ([{"input": "x", "outputs": {"a": "y"}}], "two systems or more, got"),
    ],
)
def test_rows_that_cannot_be_ranked_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        rank(rows, judge()[0], progress=False)


def test_a_judge_of_single_texts_cannot_rank():
    with pytest.raises(OptionError, match="a judge of pairs"):
        rank(TASKS, labels())


def test_equal_wins_are_equal_strengths_with_the_error_of_the_formula():
    # 8 of 16 won: information 16/4 on each side; with the prior λ = 0.1 the precision of the
    # difference's half is λ + 2 · 4 = 8.1, so its error is sqrt(1 / 8.1 / 2).
    state = tournament(np.array([[0.0, 8.0], [8.0, 0.0]]))
    assert state.strengths == pytest.approx([0, 0])
    assert state.errors == pytest.approx([(1 / 8.1 / 2) ** 0.5] * 2)
    assert state.leads[0, 1] == pytest.approx(0)
    assert state.unsettled(0.95) == [(0, 1)]


def test_pairs_are_drawn_where_the_order_is_in_doubt():
    # System 2 lost every time: only the order of 0 and 1 is in doubt.
    points = np.array([[0.0, 5, 40], [5, 0, 40], [0, 0, 0]])
    capacity = np.full((3, 3), 4.0)
    pairs = next_pairs(tournament(points), capacity, 10, np.random.default_rng(0))
    assert pairs == [(0, 1)] * 4


@pytest.mark.whole
def test_a_command_ranks_and_a_second_time_asks_nothing(tmp_path, serve):
    path, out, server = tmp_path / "in.jsonl", tmp_path / "r.md", serve(answer_call)
    systems = {"x": "good good", "y": "bad", "z": "bad too"}
    rows = [{"question": f"Why {n}?", **systems} for n in range(12)]
    path.write_text("\n".join(map(json.dumps, rows)))
    words = ["compare", path, "--model", "fake", "--base-url", server.url, "-o", out]
    words += ["--systems", "x,y,z", "--column", "input=question"]
    words += ["--records", tmp_path / "v.jsonl", "-o", tmp_path / "r.xlsx"]
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    assert "x before" in result.stdout
    assert out.read_text().count("\n| ") == 3
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx")["ranking"]
    assert [cell.value for cell in sheet["A"]][:2] == ["system", "x"]
    assert sheet.max_row == 4
    calls = len(server.calls)
    assert f"It took {calls} calls." in result.stdout
    assert CliRunner().invoke(app, list(map(str, words))).stdout == result.stdout
    assert len(server.calls) == calls


def test_a_row_without_an_answer_of_a_system_is_left_out_of_the_pairs_of_that_one(tmp_path, serve):
    path, server = tmp_path / "in.jsonl", serve(answer_call)
    full = {"x": "good x", "y": "bad y", "z": 0}
    gaps: list[Any] = [{}, {"x": " "}, {"y": None}, {"z": ""}, {"x": "", "z": ""}]
    rows = [{"question": f"Why {n}?", **full, **gap} for n, gap in enumerate(gaps)]
    path.write_text("\n".join(map(json.dumps, rows)))
    words = ["compare", path, "--model", "fake", "--base-url", server.url, "--systems"]
    result = CliRunner().invoke(app, list(map(str, [*words, "x,y,z"])))
    assert result.exit_code == 0, result.output
    # 3 pairs of the first row, 1 of each that lacks one answer.
    assert "at most 12 calls" in result.stderr
    for name in "xyz":
        assert f"Of {name} 1 row " in result.stderr
    assert "y of x, y, z" in result.stderr
    asked = Counter(re.search(r"Why \d", call.prompt)[0] for call in server.calls)
    assert asked == {"Why 0": 6, "Why 1": 2, "Why 2": 2, "Why 3": 2}
    assert "0 could not be judged" not in result.stderr
    none = CliRunner().invoke(app, list(map(str, [*words, "x,y,w"])))
    assert (none.exit_code, "'w'" in none.stderr) == (2, True)


@for_each("name", ["id", "ID", " Id "])
def test_ids_tell_rows_of_one_input_apart_in_any_letters(name):
    rows = [{"input": "q", "output": f"t{i}", name: f"i{i}"} for i in range(3)]
    table, *_ = joined({each: Source(rows, True) for each in "ab"})
    assert [row["id"] for row in table] == ["i0", "i1", "i2"]


@for_each("field", ["source", "expected", "rubric", "score", "reward", "category", "model"])
def test_columns_that_differ_between_the_files_of_systems_are_counted(field):
    texts = {"a": "Kyiv", "b": "Kyiv", "c": "Oslo"}
    rows = {
        name: [{"input": "?", "output": name, field: own}, {"input": "!", "output": name, field: 1}]
        for name, own in texts.items()
    }
    sources = {name: Source(own, True) for name, own in rows.items()}
    [row, _], _, differ = joined(sources)
    assert (row["reference" if field == "expected" else field], differ) == ("Kyiv", {field: 1})
    assert joined({name: sources[name] for name in "ab"})[2] == {}


def test_numbers_spelled_otherwise_and_columns_of_one_file_do_not_differ():
    rows: Any = {"a": {"id": "1", "score": "5", "ms": 2}, "b": {"id": 1.0, "score": 5.0, "cost": 3}}
    files = {n: Source([{"input": "?", "output": n, **own}], True) for n, own in rows.items()}
    [row], _, differ = joined(files)
    assert ({name: row[name] for name in ("score", "ms", "cost")}, differ) == (
        {"score": "5", "ms": 2, "cost": 3},
        {},
    )


@for_each("place", [0, 1, 2])
def test_columns_that_one_file_alone_has_are_the_pairs_but_for_what_is_of_its_own_text(place):
    told = {"category": "easy", "group": "g", "reference": "R", "tokens": 9}
    of_text = {"label": 1, "human_votes": [1, 0], "systems": ["v1"], "system": "v1"}
    own = {**told, **of_text}
    rows = {
        name: {"input": "?", "output": name, **(own if n == place else {})}
        for n, name in enumerate("abc")
    }
    [row], *_ = joined({name: Source([each], True) for name, each in rows.items()})
    assert {name: row[name] for name in told} == told
    assert not of_text.keys() & row.keys()


@for_each(
    "record, problem",
    [
        ({"prompt": "?", "resp": "x"}, "a: the field `output` is missing; .* 'prompt', 'resp'"),
        ({"task id": "?", "output": "x"}, "a, row 1: the field `input` is missing"),
        (BadRecord("not JSON", {}), "a, row 1: not JSON"),
    ],
)
def test_files_that_cannot_be_joined_are_named_with_what_they_lack(record, problem):
    with pytest.raises(InputError, match=problem):
        joined({name: Source([record], False) for name in "ab"})


def test_files_of_systems_are_joined_where_two_have_the_row():
    files: Any = {"a": "12", "b": "23", "c": "24"}
    sources = {
        name: Source([{"id": i, "input": "?", "output": name + i} for i in ids], True)
        for name, ids in files.items()
    }
    table, alone, _ = joined(sources)
    assert [[row[name] for name in "abc"] for row in table] == [["a2", "b2", "c2"]]
    assert alone == {"a": 1, "b": 1, "c": 1}
    moved = [{"id": str(n), "input": "!" if n == 2 else " ?\n", "output": n} for n in (2, 3)]
    table, alone, _ = joined({"b": sources["b"], "e": Source(moved, True)})
    assert ([row["id"] for row in table], alone) == (["3"], {"b": 1, "e": 1})
    table, *_ = joined({**sources, "d": sources["a"]})
    assert [[row[name] for name in "abcd"] for row in table] == [
        ["a1", None, None, "a1"],
        ["a2", "b2", "c2", "a2"],
    ]


@for_each(
    "one, other",
    [
        ({"id": "1"}, {"id": "1.0"}),
        ({"id": 3}, {"id": "3"}),
        ({"input": {"q": "?", "lang": "de"}}, {"input": {"lang": "de", "q": "?"}}),
        ({"input": '{"q": "?", "n": 1}'}, {"input": {"n": 1, "q": "?"}}),
    ],
)
def test_rows_of_two_files_are_one_row_however_their_tasks_and_ids_are_written(one, other):
    same = {"id": "7", "input": "?"}
    sources = {
        name: Source([{**same, "output": name, **own}, {**same, "id": "8", "output": name}], True)
        for name, own in (("a", one), ("b", other))
    }
    table, alone, _ = joined(sources)
    assert ([[row["a"], row["b"]] for row in table], alone) == ([["a", "b"]] * 2, {"a": 0, "b": 0})


def test_a_pair_of_two_files_has_no_note_on_a_source_that_no_judge_of_pairs_is_shown():
    row = {"input": "?", "source": "mmlu-pro-health", "contexts": "['one' 'two']"}
    [pair], _, _ = joined({n: Source([{**row, "output": n}], True) for n in "ab"})
    assert [note for note in pair.get(NOTES, ()) if note["unit"] == "source"] == []
