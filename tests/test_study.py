"""The papers' studies: cells as printed, what is judged once, and every table over the wire."""

from __future__ import annotations

import io
import itertools
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cookbook.study import allure, bsm, drpe, form, overlap, runner, sc2, sets
from cookbook.study.__main__ import PAPERS, main, with_rows
from cookbook.study.plots import PLOTS, chosen, draw
from cookbook.study.runner import Arm, Cell, Table, paper_cells, slug
from langchain_judges.asking import embeddings
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import correlate, williams_test
from langchain_judges.testing import error, reply
from tests.conftest import DATA, letters_of
from tests.frozen_cases import model_of
from tests.schema_models import Recorder

WORDS = ("accuracy", "depth", "tone", "price", "order", "warmth")


def fitting(schema):
    """Data that fits a schema: the first choice, the lowest number, six of a list."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return fitting(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        parts = {name: fitting(each) for name, each in schema.get("properties", {}).items()}
        # The cells of a table differ: equal ones would say nothing.
        return {name: f"fine {name}" if it == "fine" else it for name, it in parts.items()}
    if kind == "array":
        words = WORDS[: schema.get("maxItems")]
        items = [fitting(schema["items"]) for _ in words]
        names = zip(items, words, strict=True)
        return [word if isinstance(item, str) else item for item, word in names]
    return {"integer": schema.get("minimum", 1), "number": 0.5, "boolean": True}.get(kind, "fine")


def answer(call):
    text = json.dumps(fitting(call.body["response_format"]["json_schema"]["schema"]))
    # Samples and cells differ: identical tables are not compared, and equal cells say nothing.
    numbers = itertools.count()
    return reply(re.sub("fine", lambda _: f"fine {call.body.get('seed')} {next(numbers)}", text))


def pair(number, label="A", **more):
    texts = {"output_a": "long " * 9, "output_b": "short"}
    row = {"id": str(number), "input": "Why?", "label": label, "group": str(number), "turn": 1}
    return {**row, **texts, **more}


# Rows.


def test_no_group_that_aspects_are_learned_from_is_judged():
    rows = [pair(n, "AB"[n % 2], group=str(n // 3)) for n in range(60)]
    judged, corpus = sc2.parted(sc2.dealt(rows, seed=1), rows=500, most=10)
    assert len(corpus) == 10
    assert not {row["group"] for row in judged} & {row["group"] for row in corpus}


def test_a_coin_deals_the_sides_and_labels_follow():
    rows = [pair(n, "A") for n in range(40)] + [pair(99, "tie")]
    dealt = sc2.dealt(rows, seed=0)
    assert len(dealt) == 40
    assert {row["label"] for row in dealt} == {"A", "B"}
    assert all((row["label"] == "A") == row["output_a"].startswith("long") for row in dealt)


# Runs.


def test_what_is_wrong_is_one_sentence(tmp_path, capsys):
    assert main(["bms", "--models", "x", "--out", str(tmp_path / "out")]) == 2
    assert "'bms'" in capsys.readouterr().err


def test_an_unknown_setting_is_an_error(tmp_path, capsys):
    command = ["bsm", "--set", "slef=gpt-4", "--models", "fake", "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "takes self, got 'slef'" in capsys.readouterr().err
    bench = runner.Bench(None, "m", tmp_path, extra={"leak": "no", "other": "perhaps"})
    assert not bench.says("leak")
    with pytest.raises(OptionError, match="yes or no"):
        bench.says("other")


# What each figure and table of a paper is, over rows of their shapes: two turns with votes and
# references, items of several families and systems.

TURN = {"role": "user", "content": "Why?"}
MAP = {
    "bsm": {
        "Table 1": ("1", "BSM", ("Ag", "PB", "LB", "Ag, turn 1", "LB, turn 2")),
        "Table 2": ("2", "BSM", ("Ag", "PB", "LB")),
        "Table 3": ("3", "relative", ("Ag",)),
        "Table 4": ("4", "BSM", ("Ag",)),
        "Table 5": ("5", "BSM", ("PB",)),
        "Table 6": ("6", "BSM", ("AP", "MC", "win", "loss", "lost in solve", "lost in merge")),
        "Table 7": ("7", "BSM", ("LB",)),
        "Table 8": ("8", "BSM + self-consistency", ("Ag",)),
        "Table 9": ("9", "BSM", ("Ag",)),
        "Table 10": ("10", "BSM 2 branches", ("Ag", "PB", "LB")),
        "Table 11": ("11", "BSM 1-10", ("Ag",)),
        "section 4.3, plans": ("plans", "BSM", ("within", "between")),
    },
    "drpe": {
        "Table 1": ("1", "drpe", ("|Pearson|", "tau")),
        "Table 2": ("2", "no_batch", ("|Pearson|",)),
        "first version": ("v1", "drpe_v1", ("|Pearson|",)),
        "panel sizes": ("sizes", "manual, 2 roles", ("|Pearson|",)),
        "five runs": ("wordings", "drpe", ("|Pearson|", "sd")),
    },
    "sc2": {
        "Table 1": ("1", "cot 1-shot", ("accuracy",)),
        "Table 2": ("2", "sc2 exact", ("accuracy", "comparisons", "decoded in search")),
        "Table 3": ("3", "direct online", ("accuracy",)),
        "Table 4": ("4", "sc2 of 8 + 7", ("accuracy", "calls")),
        "Table 5": ("5", "cot_sc 24 5s", ("accuracy",)),
        "Table 6": ("6", "all", ("pairs", "words of a text")),
        "Figure 3": ("figure 3", "sc2 C12", ("accuracy",)),
    },
    "allure": {
        "Figure 3": ("e1", "size 4, draw 2", ("accuracy", "F1", "precision", "recall")),
        "Figure 6": ("e1", "without keywords", ("accuracy", "F1", "errors")),
        "Figure 7a": ("e1", "without lengthy argument", ("kappa with all",)),
        "Figure 7a, pairs": ("e1", "without lengthy argument", ("kappa with without keywords",)),
        "Figure 7c": ("e1", "all", ("errors, shortcut", "errors, detour")),
        "Figure 8": ("e2", "all", ("accuracy, M11", "accuracy, M20")),
        "by map": ("e1", "own map", ("examples", "leaks")),
        "by map, sweep": ("e1", "own map, size 4", ("accuracy",)),
    },
}


def items():
    """Items of two maps, two planning problems and two systems, each task twice."""
    own: list[dict[str, Any]] = [
        {"id": f"i{n}", "group": f"g{n // 2}", "family": f"map {n % 2}"} for n in range(40)
    ]
    texts = {"input": "Which room?", "expected": "A", "source": "A room.", "output": "A."}
    for n, row in enumerate(own):
        row |= {**texts, "output": f"{n}", "label": n % 2, "systems": [("M11", "M20")[n // 2 % 2]]}
        row["category"] = ("shortcut", "detour")[n // 2 % 2]
    return own


def voted_pairs():
    """Pairs with people's votes, half of them of a second turn, in messages."""
    rows = [pair(n, "AB"[n % 2], human_votes=["A", "B", "tie"][: 1 + n % 3]) for n in range(12)]
    first, second, short = (
        {"role": "assistant", "content": text} for text in ("first", "second " * 9, "short")
    )
    for row in rows[6:]:
        row |= {"turn": 2, "input": [TURN, TURN], "reference": "R"}
        row |= {"output_a": [first, second], "output_b": [first, short]}
    for n, row in enumerate(rows):
        row |= {"category": ("writing", "math")[n % 2], "systems": ["gpt-4", "x"]}
    return rows


def lists():
    return [{"id": str(n), "concepts": ["sea", "boat", "oar", "gull"]} for n in range(2)]


def file_of(rows, tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


TABLES = sorted({(paper, number) for paper in MAP for number, _, _ in MAP[paper].values()})


def letter_vectors(_, texts):
    """Unit vectors of words by their first letters, where an encoder takes seconds to load."""
    directions = 0.1 + np.eye(32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    letters = [np.array([ord(word[0]) % 32 for word in text.split()]) for text in texts]
    return [(ids, directions[ids]) for ids in letters]


@pytest.mark.figures
@pytest.mark.parametrize(("paper", "number"), TABLES)
def test_every_figure_of_the_map_has_its_columns(
    paper, number, tmp_path, monkeypatch, letter_encoder
):
    monkeypatch.setattr(drpe, "RESAMPLES", 20)
    monkeypatch.setattr(overlap, "_word_vectors", letter_vectors)
    monkeypatch.setenv("POT_BACKEND_DISABLE_PYTORCH", "1")  # it would import it for nothing
    wanted = {name: line for name, line in MAP[paper].items() if line[0] == number}
    rows = items() if paper == "allure" else lists() if "Table 6" in wanted else voted_pairs()
    modes = {row["id"]: ("keywords", "lengthy argument")[n % 2] for n, row in enumerate(items())}
    (tmp_path / "modes.json").write_text(json.dumps(modes))
    extra = {"self": "gpt-4", "modes": str(tmp_path / "modes.json")}
    given = file_of(voted_pairs() if paper == "sc2" else rows, tmp_path)
    table, asked = with_rows(PAPERS[paper][number], given), Recorder()
    bench = runner.Bench(model_of(asked), "fake", tmp_path, extra=extra, rows=given)
    plans = runner.planned(table, replace(bench, dry=True))
    assert not asked.calls
    cells = runner.run_table(paper, number, table, bench)
    # What is announced is enough.
    assert len(asked.calls) <= sum(plan["calls"] * len(plan["rows"]) for plan in plans)
    for figure, (_, arm, columns) in wanted.items():
        found = {cell["column"] for cell in cells if cell["arm"] == arm}
        assert set(columns) <= found, (figure, sorted(found), {cell["arm"] for cell in cells})
    # A caller's own rows are in no paper, and are no average of its sets.
    assert not [cell for cell in cells if cell["paper"] or cell["part"] == "AVG"]
    # What the paper prints has its cell here.
    made = {(runner.bare(cell["arm"]), cell["column"]) for cell in cells}
    for parts in runner.printed(paper).get(number, {}).values():
        assert not {(arm, c) for arms in parts.values() for arm in arms for c in arms[arm]} - made


@pytest.mark.parametrize("paper", ["bsm", "drpe", "sc2"])
def test_every_arm_of_a_study_asks_as_its_paper_does_and_draws_by_the_rounds_seed(
    paper, tmp_path, letter_encoder
):
    given = file_of(voted_pairs(), tmp_path)
    more: dict[str, Any] = {"extra": {"self": "gpt-4"}, "rows": given, "seed": 7, "dry": True}
    bench = runner.Bench(model_of(Recorder()), "fake", tmp_path, **more)
    judged = 0
    for name, own in PAPERS[paper].items():
        for part in own.parts:
            judges: list[Any] = []
            for arm in own.arms(bench, part):
                if arm.score is not None:
                    continue  # by overlap of words
                options = arm.judge(bench, part).options
                assert getattr(options, "seed", 7) == 7, arm.name
                # The aspects that are found online stand in a plan as those learned offline.
                assert options not in judges or arm.name == "direct online", (name, arm.name)
                judges.append(options)
                judged += 1
                if paper == "drpe" and options.method == "drpe":
                    assert not options.voting.common_ground, arm.name
                else:
                    assert options.wording == "paper", (name, arm.name)
    assert judged


def test_only_the_table_with_references_shows_one(tmp_path):
    given = file_of(voted_pairs(), tmp_path)
    bench = runner.Bench(None, "fake", tmp_path, rows=given, extra={"self": "gpt-4"})
    shows = {
        number
        for number, table in PAPERS["bsm"].items()
        if number not in ("6", "plans")
        for read in table.parts.values()
        if any("reference" in row for row in read(bench))
    }
    assert shows == {"4"}


def test_a_set_is_read_once_for_all_tables_whose_rows_are_their_own(tmp_path, monkeypatch):
    read: list[Any] = []

    def load(*_, **options):
        read.append(options)
        return [{"id": "1"}]

    monkeypatch.setattr(runner, "load", load)
    bench = runner.Bench(None, "m", tmp_path)
    bench.load("own", seed=1)[0]["id"] = "2"
    assert replace(bench, dry=True).load("own", seed=1) == [{"id": "1"}]
    bench.load("own", seed=2)
    assert read == [{"seed": 1}, {"seed": 2}]


@pytest.mark.parametrize(("takes_seeds", "tables"), [(True, 4), (False, 2 + 4)])
def test_arms_share_their_tables_with_a_model_that_takes_a_seed(
    takes_seeds, tables, serve, tmp_path
):
    def behave(call):
        return (
            answer(call)
            if takes_seeds or "seed" not in call.body
            else error(400, "Unsupported value: 'seed'")
        )

    server = serve(behave)
    model = runner.sharing(server.chat(), runner.Replies(tmp_path / "replies.jsonl"))
    bench = runner.Bench(model, "fake", tmp_path)
    for n in (2, 4):
        own = sc2.arm(f"sc2 C{n}", "sc2", samples=n, aspects=["depth", "tone"])
        [row] = bench.judged(own, "own", [pair(1)])
        assert not row["verdict"]["failures"]
    made = [call for call in server.calls if "side by side in a table" in call.prompt]
    assert len([call for call in made if takes_seeds or "seed" not in call.body]) == tables


def test_a_limit_is_of_groups_with_all_their_rows():
    rows = [{"id": str(n), "group": str(n // 3)} for n in range(9)]
    assert [row["id"] for row in runner.first_groups(rows, 2)] == list("012345")


def test_the_screen_says_whose_figures_stand_in_brackets():
    cell = {"table": "3", "model": "m", "part": "writing", "arm": "BSM", "column": "Ag"}
    printed = {"GPT-4": 0.62, "Vicuna-33B": 0.56}
    own = {**cell, **Cell(0.5, 9).__dict__, "paper": printed, "not_judged": 0}
    console = Console(width=100, record=True, file=io.StringIO())
    runner.show(console, "3", PAPERS["bsm"]["3"], [own])
    hidden = [{**own, "column": name} for name in ("Ag, turn 1", "calls")]
    runner.show(console, "3", PAPERS["bsm"]["3"], [own, *hidden])
    text = console.export_text()
    assert "'Ag, turn 1'" in text
    assert "[0.62]" in text


def test_every_table_of_a_study_is_in_the_map():
    named = {paper: {number for number, _, _ in MAP[paper].values()} for paper in MAP}
    assert named == {paper: set(PAPERS[paper]) for paper in MAP}


def test_length_bias_of_a_second_turn_is_of_its_own_answers():
    said = lambda *texts: [{"role": "assistant", "content": text} for text in texts]  # noqa: E731
    row: dict[str, Any] = {"output_a": said("x" * 900, "short")}
    row |= {
        "output_b": said("y", "a much longer answer"),
        "turn": 2,
        "id": "1",
        "human_votes": ["A"],
        "category": "writing",
    }
    verdict = {"preference": "B", "flipped": False, "failures": []}
    cells = bsm.figures("BSM", [row], {"BSM": [{"verdict": verdict}]})
    # The shorter second answer is A's, which people prefer and the judge does not.
    assert cells["LB"].value == 1.0


def test_votes_of_mt_bench_are_read_by_turn_with_a_reference_of_the_turns_so_far():
    one, two = ({"role": "assistant", "content": text} for text in "12")
    talk = [TURN, one, TURN, two]
    record = {"question_id": 121, "model_a": "z", "model_b": "b", "turn": 2}
    record |= {"conversation_a": talk, "conversation_b": talk}
    votes = [("expert_1", "model_a"), ("expert_2", "tie (inconsistent)"), ("author_1", "model_b")]
    (row,) = bsm.voted([{**record, "judge": judge, "winner": won} for judge, won in votes])
    # A is the first model by name, which is b.
    assert (row["systems"], row["human_votes"]) == (["b", "z"], ["B", "tie"])
    assert (row["category"], row["output_a"]) == ("coding", [one, two])
    assert bsm._reference(["one", "two"]).startswith("[Turn 1]\none")


def test_a_correlation_is_printed_without_its_sign_also_without_an_interval():
    falls = [1.0, 2.0, 3.0]
    cell = drpe._correlations(falls, falls[::-1], ["a", "a", "a"], None)["|Pearson|"]
    assert (cell.value, cell.low) == (1.0, None)


def test_a_figure_that_is_not_defined_has_no_value_and_says_so(monkeypatch):
    monkeypatch.setattr(drpe, "RESAMPLES", 20)
    scores, human = [1.0, 2.0, 4.0, 3.0], [1.0, 2.0, 3.0, 4.0]
    # An arm that scores as its rival does: the test divides by zero.
    p = drpe._correlations(scores, human, list("abcd"), scores)["p (r)"]
    cell = runner._cell("drpe", "1", "m", "p", "drpe", "p (r)", p, 0)
    assert (cell["value"], cell["note"]) == (None, "not defined for these rows")


def test_a_printed_cell_is_found_for_an_arm_with_its_encoder():
    found = paper_cells("drpe", "1", "cnn2022", "bertscore (all-MiniLM-L6-v2)", "|Pearson|")
    assert found == {"text-davinci-003": 0.554}


def test_an_item_that_was_shown_its_own_group_is_a_leak():
    verdict = {"label": 1, "score": 1.0, "confidence_source": "none"}
    shown = [{"ids": ["e1"], "leaked": ["e1"]}, {"ids": ["e2"], "leaked": []}]
    results = [{"verdict": verdict, "recalled": each} for each in shown]
    rows = [{"id": str(n), "label": 1, "group": str(n)} for n in range(2)]
    assert allure.figures("all", rows, {"all": results})["leaks"].value == 1


@pytest.mark.parametrize("preset", list(allure.EXPERIMENTS))
def test_the_arms_without_examples_ask_three_prompts(preset, tmp_path):
    recorder = Recorder()
    bench = runner.Bench(model_of(recorder), "fake", tmp_path, dry=True)
    for arm in allure.arms(preset, bench, "own")[:3]:
        arm.judge(bench, "own").invoke(items()[0])
    assert len({call.prompt for call in recorder.calls}) == 3


def test_an_item_that_was_not_judged_is_not_right_in_the_share_of_its_system():
    rows = [{"id": str(n), "label": 1, "systems": ["ab"[n % 2]]} for n in range(4)]
    labels = (1, None, 0, 1)
    verdicts = [{"label": each, "score": None, "confidence_source": "none"} for each in labels]
    cells = allure.figures("all", rows, {"all": [{"verdict": each} for each in verdicts]})
    a, b = cells["accuracy, a"], cells["accuracy, b"]
    assert [(cell.value, cell.n) for cell in (a, b)] == [(0.5, 2), (1.0, 1)]


@pytest.mark.whole
def test_cases_judged_right_are_shown_of_any_map_and_without_modes_none_is_left_out(tmp_path):
    rows = file_of(items(), tmp_path)
    bench = runner.Bench(model_of(Recorder()), "fake", tmp_path, rows=rows)
    made = {arm.name: arm.judge(bench, "e1") for arm in allure.arms("e1", bench, "e1")}
    everything, right = (made[name].options.memory for name in ("all", "with right cases"))
    recalls = {made[name].options.recall for name in ("all", "with right cases")}
    assert len(recalls) == 1 < len(right.examples()) - len(everything.examples())
    assert made["own map"].options.recall not in recalls
    assert not [name for name in made if name.startswith("without ")]


def test_the_average_of_a_column_over_the_parts_is_a_part_of_its_own(tmp_path):
    parts = {name: lambda bench, name=name: [{"id": name}] for name in ("0.25", "0.75")}
    scored = Arm("own", score=lambda rows: [float(row["id"]) for row in rows])
    columns = lambda arm, rows, results: {"c": Cell(results[arm][0]["value"], 1)}  # noqa: E731
    table = Table("Own", parts, lambda bench, part: [scored], columns, average="c")
    cells = runner.run_table("drpe", "1", table, runner.Bench(None, "m", tmp_path))
    assert [cell["value"] for cell in cells if cell["part"] == "AVG"] == [0.5]
    assert {own.average for name, own in drpe.TABLES.items() if name in "12"} == {"|Pearson|"}


def test_rounds_give_the_mean_of_each_cell_with_its_deviation():
    cell = {"table": "1", "model": "m", "part": "p", "arm": "a", "column": "c", "paper": {}}
    rounds = [[{**cell, **Cell(value, 9).__dict__, "not_judged": 0}] for value in (0.5, 0.7)]
    (mean,) = runner.over_rounds(rounds)
    assert (mean["value"], mean["note"]) == (pytest.approx(0.6), "sd 0.1414 over 2")


def test_a_plan_counts_every_round(tmp_path, capsys):
    given = file_of(voted_pairs(), tmp_path)
    command = ["bsm", "--table", "3", "--models", "m", "--base-url", "http://127.0.0.1:9/v1"]
    plans = []
    for rounds in ("1", "3"):
        own = ["--rows", str(given), "--rounds", rounds, "--dry-run"]
        assert main([*command, *own]) == 0
        plans.append(int(re.findall(r"at most (\d+) calls", capsys.readouterr().out)[0]))
    assert plans[1] == 3 * plans[0] > 0


def test_a_folder_takes_further_tables_but_no_other_rows():
    plain = {"paper": "bsm", "limit": 2, "seed": 0, "rounds": 1, "rows": None, "package": "1"}
    old = {**plain, "tables": ["1"], "models": ["m"], "options": {}}
    old |= {"rows_sha256": {"1: writing: BSM": "x"}, "prompt_versions": {}}
    new = {**old, "tables": ["3"], "rows_sha256": {"3: writing: BSM": "y"}}
    assert runner.joined(old, new)["tables"] == ["1", "3"]
    with pytest.raises(InputError, match="rows_sha256"):
        runner.joined(old, {**new, "rows_sha256": {"1: writing: BSM": "z"}})


@pytest.mark.whole
def test_a_figure_is_drawn_from_the_cells_of_its_arms(tmp_path):
    blank = {"table": "e1", "model": "m", "part": "e1", "low": None, "high": None}
    arms = ("all", "without keywords", "without 3 at random", "none")
    cells = [{**blank, "arm": arm, "column": "errors", "value": 3.0} for arm in arms]
    points = chosen(PLOTS["allure"]["figure 6"], cells)
    assert [label for label, _ in points] == ["all", "keywords"]
    assert "figure-6.svg" in draw("allure", cells, tmp_path)


def program(server, tmp_path, *arguments):
    command = [*arguments, "--models", "openai:fake", "--data", str(DATA)]
    return main([*command, "--base-url", server.url, "--out", str(tmp_path / "study")])


load_once = cache(sets.load)


@pytest.fixture
def data(monkeypatch):
    if not DATA.exists():
        pytest.skip("the public sets are not beside the checkout, at ../shared/data")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(runner, "load", load_once)  # each program would read them anew


TRIED = {
    "bsm": ["--table", "1,3,7", "--limit", "2"],
    "drpe": ["--table", "2", "--limit", "2"],
    "sc2": ["--table", "1,3", "--limit", "1"],
    "allure": ["--table", "e1", "--limit", "3"],
}


@pytest.mark.figures
@pytest.mark.parametrize("paper", TRIED)
def test_a_study_fills_its_tables_and_resumes_without_a_request(
    data, serve, tmp_path, paper, letter_encoder, capsys, monkeypatch
):
    server = serve(answer)
    assert program(server, tmp_path, paper, *TRIED[paper]) == 0, capsys.readouterr().err
    out = tmp_path / "study"
    cells = json.loads((out / "results.json").read_text())
    assert {cell["table"] for cell in cells} == set(TRIED[paper][1].split(","))
    assert all(cell["not_judged"] == 0 for cell in cells)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["models"] == ["openai:fake"]
    assert all(len(each) == 64 for each in manifest["rows_sha256"].values())
    # No item is shown an example of its own group.
    assert {cell["value"] for cell in cells if cell["column"] == "leaks"} <= {0.0}
    asked = len(server.calls)
    assert asked > 0
    monkeypatch.setattr("cookbook.study.__main__.draw", lambda *_: [])  # of the same cells
    assert program(server, tmp_path, paper, *TRIED[paper]) == 0
    assert len(server.calls) == asked
    assert json.loads((out / "results.json").read_text()) == cells
    # Another seed is another study: its folder is not mixed with this one.
    assert program(server, tmp_path, paper, *TRIED[paper], "--seed", "1") == 2


# The form of SC²'s human study, and what its answers come to.


CELLS = {"common": "hot", "only_a": "none", "only_b": "none"}


@pytest.fixture
def study(tmp_path):
    """Four pairs, of which A is better, with a table in both arms but the last."""
    texts = {"input": "Which <b>tea</b>?", "output_a": "Green </script>", "output_b": "Black"}
    pairs = [{"id": f"p{n}", "label": "A", **texts} for n in range(4)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    for arm, count in zip(form.ARMS, (4, 3), strict=True):
        table = {"rows": [{"aspect": arm, **CELLS}]}
        rows = [{"id": f"p{n}", "table": table if n < count else None} for n in range(4)]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / f"{slug(arm)}.jsonl").write_text(text)
    return tmp_path


def saved(path, *answers):
    fields = ("id", "arm", "before", "after")
    rows = [dict(zip(fields, answer, strict=True)) for answer in answers]
    path.write_text(json.dumps({"answers": rows}))
    return path


def test_each_question_has_one_table_and_the_other_form_has_the_other(study):
    pages = [
        form.make(study, study / f"{number}.html", form=number).read_text() for number in (0, 1)
    ]
    questions = [dict(re.findall(r'data-id="(p\d)" data-arm="(sc2 C\d)"', page)) for page in pages]
    # The fourth pair has no table in one arm.
    assert set(questions[0]) == set(questions[1]) == {"p0", "p1", "p2"}
    assert all(questions[0][name] != questions[1][name] for name in questions[0])


def test_a_form_holds_no_label_and_no_markup_of_the_texts(study):
    page = form.make(study, study / "form.html").read_text()
    assert set(re.findall(r" data-(\w+)", page)) == {"key", "id", "arm"}
    assert "Which &lt;b&gt;tea&lt;/b&gt;?" in page
    assert page.count("</script>") == 1


def test_answers_are_scored_by_number_of_tables(study, capsys):
    one, eight = form.ARMS
    first = saved(study / "1.json", ("p0", one, "B", "A"), ("p1", eight, "A", "A"))
    second = saved(study / "2.json", ("p1", one, "tie", "B"), ("p0", eight, "tie", "A"))
    result = form.score(study, [first, second])
    # One table: -1 and 0 before, +1 and -1 after. Eight: +1 and 0 before, +1 and +1 after.
    assert (result[one].before, result[one].after) == (-0.5, 0)
    assert (result[eight].before, result[eight].after) == (0.5, 1)
    assert (result[one].wrong_to_right, result[one].right_to_wrong) == (1, 0)
    assert "2 people" in capsys.readouterr().out


@pytest.mark.figures
@pytest.mark.skipif(not DATA.exists(), reason="needs the public sets in ../shared/data")
def test_the_small_studies_are_made_again_from_their_recorded_replies(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    recorded = Path(runner.__file__).parents[1] / "recorded" / "small"
    (tmp_path / "replies.jsonl").write_bytes((recorded / "replies.jsonl").read_bytes())
    address, tables = "http://127.0.0.1:8901/v1", "bsm,drpe,sc2,allure"
    arguments = ["small", "--models", "reader", "--base-url", address, "--table", tables]
    encoder = embeddings._encoder

    def encode(texts):
        # DRPE compares roles by their vectors; of a memory, of long texts, all is shown.
        return (letters_of if max(map(len, texts)) > 500 else encoder())(texts)

    monkeypatch.setattr(embeddings, "_encoder", lambda: encode)
    # Nothing listens at the address, which is part of what names a reply.
    assert main([*arguments, "--data", str(DATA), "--out", str(tmp_path)]) == 0
    # A figure's last digit depends on the order of a sum, and so on the processor.
    expected = json.loads(
        (recorded / "results.json").read_text(),
        parse_float=lambda it: pytest.approx(float(it), rel=1e-9),
    )
    assert json.loads((tmp_path / "results.json").read_text()) == expected
    assert (tmp_path / "replies.jsonl").read_bytes() == (recorded / "replies.jsonl").read_bytes()


def test_the_papers_means_follow_from_their_cells_but_for_one():
    def mean(arm):
        found = [paper_cells("drpe", "1", part, arm, "|Pearson|") for part in drpe.SETS]
        cells = [value for each in found for value in each.values()]
        return sum(cells) / len(cells)

    printed = {"rouge2": 0.411, "bleu": 0.450, "meteor": 0.516, "llm_score": 0.636, "drpe": 0.761}
    for arm, average in {**printed, "drpe": 0.761}.items():
        assert mean(arm) == pytest.approx(average, abs=0.0006), arm
    # ROUGE-1 is printed as .461.
    assert mean("rouge1") == pytest.approx(0.455, abs=0.0006)


def test_williams_test_gets_the_sign_of_the_two_metrics_correlation(monkeypatch):
    monkeypatch.setattr(drpe, "RESAMPLES", 20)  # of another cell of the table
    # Both rise with people's values, and one falls as the other rises.
    own = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    other = [8.0, 6.0, 7.0, 4.0, 5.0, 2.0, 4.0, 3.0]
    noise = [0.9, -0.8, 0.3, 0.7, -0.9, 0.2, -0.6, 0.5]
    people = [x + 1.3 * y + 1.2 * z for x, y, z in zip(own, other, noise, strict=True)]
    groups = [str(n) for n in range(8)]
    cells = drpe._correlations(own, people, groups, other)
    r = [float(correlate(a, b)) for a, b in ((own, people), (other, people), (own, other))]
    assert r[2] < 0
    assert cells["p (r)"].value == pytest.approx(williams_test(r[0], r[1], r[2], 8).p)
    bare = williams_test(abs(r[0]), abs(r[1]), abs(r[2]), 8).p
    assert cells["p (r)"].value != pytest.approx(bare)
    turned = drpe._correlations([-x for x in own], people, groups, None)["|Pearson|"]
    assert turned.value == pytest.approx(r[0])
    assert turned.low <= turned.value <= turned.high
