"""The papers' studies: cells as printed, what is judged once, and every table over the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cookbook.study import allure, bsm, drpe, runner, sc2
from cookbook.study.__main__ import PAPERS, main
from cookbook.study.runner import Arm, Bench, Cell, Replies, Table, paper_cell
from langchain_judges.metrics import correlate, williams_test
from langchain_judges.testing import reply
from tests.conftest import DATA
from tests.fakes import FakeChatModel

WORDS = ("accuracy", "depth", "tone", "price", "order", "warmth")


def fitting(schema):
    """Return data that fits a schema: the first choice, the lowest number, six of a list."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return fitting(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        return {name: fitting(each) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        words = WORDS[: schema.get("maxItems")]
        items = [fitting(schema["items"]) for _ in words]
        names = zip(items, words, strict=True)
        return [word if isinstance(item, str) else item for item, word in names]
    return {"integer": schema.get("minimum", 1), "number": 0.5, "boolean": True}.get(
        kind, "fine"
    )


def answer(call):
    text = json.dumps(fitting(call.body["response_format"]["json_schema"]["schema"]))
    # Samples differ: identical tables would not be compared.
    return reply(text.replace("fine", f"fine {call.body.get('seed')}"))


def result(preference, flipped=False, scores=None):
    return {"verdict": {"preference": preference, "flipped": flipped, "scores": scores}}


def pair(number, label="A", **more):
    texts = {"output_a": "long " * 9, "output_b": "short"}
    row = {"id": str(number), "input": "Why?", "label": label, "group": str(number), "turn": 1}
    return {**row, **texts, **more}


# What the papers print.


def all_cells():
    cells = yaml.safe_load((Path(runner.__file__).parent / "cells.yaml").read_text())
    for paper, tables in cells.items():
        for number, parts in tables.items():
            for part, arms in parts.items():
                for arm, columns in arms.items():
                    yield paper, number, part, arm, columns


def test_every_printed_cell_belongs_to_a_line_of_its_table():
    for paper, number, part, arm, columns in all_cells():
        table = PAPERS[paper][number]
        assert part in table.parts, (paper, number, part)
        if paper == "allure":
            continue  # its arms follow from what was remembered
        names = {
            each.name.split(" (")[0] for each in table.arms(Bench(None, "x", Path()), part)
        }
        assert arm in names, (paper, number, arm)
        assert all(0 < value <= 1 for value in columns.values())


def test_the_papers_means_follow_from_their_cells_but_for_one():
    def mean(arm):
        cells = [paper_cell("drpe", "1", part, arm, "|Pearson|") for part in drpe.SETS]
        return sum(cells) / len(cells)

    printed = {
        "rouge2": 0.411,
        "bleu": 0.450,
        "meteor": 0.516,
        "llm_score": 0.636,
        "drpe": 0.761,
    }
    for arm, average in {**printed, "drpe": 0.761}.items():
        assert mean(arm) == pytest.approx(average, abs=0.0006), arm
    # ROUGE-1 is printed as .461.
    assert mean("rouge1") == pytest.approx(0.455, abs=0.0006)


def test_accuracies_on_helpful_are_shares_of_500_pairs():
    for paper, number, part, arm, columns in all_cells():
        if (paper, number, part) == ("sc2", "1", "hh_helpful_test"):
            assert columns["accuracy"] * 500 == pytest.approx(round(columns["accuracy"] * 500))
            assert arm


def test_pb_of_table_7_is_no_share_of_a_hundred_pairs():
    share = paper_cell("bsm", "7", "reasoning", "BSM", "PB")
    assert abs(share * 100 - round(share * 100)) > 0.2


# Figures by hand.


def test_agreement_position_and_length_bias_of_four_pairs():
    rows = [pair(0, "A"), pair(1, "B"), pair(2, "B"), pair(3, "tie")]
    results = [result("A"), result("A", flipped=True), result("B"), result("tie", flipped=True)]
    cells = bsm.figures("x", rows, {"x": results})
    # Three of four votes are matched; two of four flip; of the two votes for the shorter
    # answer (B), one verdict is not B.
    assert [cells[name].value for name in ("Ag", "PB", "LB")] == [0.75, 0.5, 0.5]


def test_turns_have_columns_of_their_own():
    rows = [pair(0, turn=1), pair(1, turn=2)]
    cells = bsm.figures("x", rows, {"x": [result("A"), result("B")]})
    assert (cells["Ag"].value, cells["Ag, turn 1"].value) == (0.5, 1.0)
    assert cells["Ag, turn 2"].value == 0.0


def test_a_text_that_was_not_written_lacks_every_concept():
    rows = [{"concepts": ["dog", "ball"]}, {"concepts": ["dog", "ball"]}]
    written: list[dict[str, Any]] = [{"text": "The dog has a ball."}, {"text": None}]
    cells = bsm.story_figures("x", rows, {"x": written})
    assert (cells["AP"].value, cells["MC"].value) == (0.5, 0.5)


def test_plans_are_compared_within_and_between_categories():
    def planned(*names):
        return {"criteria": [{"name": name} for name in names]}

    rows = [pair(n, category=category) for n, category in enumerate("aab")]
    plans = [planned("Tone", "Depth"), planned("tone"), planned("Rhyme")]
    # Tone of {Tone, Depth} and {tone}: one of two names.
    assert bsm.plan_likeness(rows, plans) == {"within": 0.5, "between": 0.0}


def test_williams_test_gets_the_sign_of_the_two_metrics_correlation():
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


def test_sums_are_means_over_valid_votes():
    votes = [{"preference": "A"}, {"preference": None}, {"preference": "B"}]
    row = {**result("A", scores={"A": 1.0, "B": 0.5}), "votes": votes}
    assert drpe._sums(row) == (0.5, 0.25)
    assert drpe._sums(result(None)) == (None, None)


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


def test_drawn_pairs_do_not_depend_on_their_order(monkeypatch):
    rows = [pair(n, category="writing") for n in range(30)]
    bench = Bench(None, "x", Path())

    def drawn(order):
        monkeypatch.setattr(bsm, "read_pairs", lambda _: order)
        return {row["id"] for row in bsm.of_category("writing", bench, drawn=7)}

    assert drawn(rows) == drawn(rows[::-1])


# Runs.


def bench_of(tmp_path, model):
    return Bench(model, "fake", tmp_path, concurrency=1)


def test_equal_rows_are_judged_once_and_other_rows_again(tmp_path):
    model = FakeChatModel()
    bench = bench_of(tmp_path, model)
    arm = Arm("relative", "relative")
    rows = [{"id": "1", "input": "Why?", "output_a": "good", "output_b": "bad"}]
    table = Table(
        "One",
        {"a": lambda bench: rows},
        lambda bench, part: [arm],
        lambda name, rows, results: {"n": Cell(len(rows), len(rows))},
    )
    runner.run_table("bsm", "1", table, bench)
    calls = len(model.prompts)
    (cell, *_) = runner.run_table("bsm", "1", table, bench)
    assert (len(model.prompts), cell["value"]) == (calls, 1)
    bench.judged(arm, "a", [{**rows[0], "reference": "because"}])
    assert len(model.prompts) == 2 * calls


def test_replies_survive_a_torn_last_line(tmp_path):
    path = tmp_path / "replies.jsonl"
    shared = runner.sharing(FakeChatModel(replies=["one", "two"]), Replies(path))
    assert shared.invoke("Hi").content == shared.invoke("Hi").content == "one"
    path.write_text(path.read_text() + '{"request": "ab')
    assert len(Replies(path)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bms", "--models", "x"], "there is no study 'bms'"),
        (["bsm", "--models", "x", "--table", "12"], "bsm has no table '12'"),
        (["bsm", "--models", "openai:x", "--set", "self"], "`--set` takes NAME=VALUE"),
        (
            ["bsm", "--models", "openai:x", "--table", "1", "--data", "/none"],
            "there is no /none",
        ),
        (["bsm", "--model", "x"], "--model"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def program(server, tmp_path, *arguments):
    command = [*arguments, "--models", "openai:fake", "--data", str(DATA)]
    return main([*command, "--base-url", server.url, "--out", str(tmp_path / "study")])


@pytest.fixture
def data(monkeypatch):
    if not DATA.exists():
        pytest.skip("the public sets are not beside the checkout, at ../shared/data")
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.figures
def test_a_dry_run_asks_nothing(data, serve, tmp_path, capsys):
    server = serve(answer)
    assert program(server, tmp_path, "sc2", "--table", "1,3", "--limit", "2", "--dry-run") == 0
    assert server.calls == []
    # Table 1: direct 1, aspects 1, chains of thought 1 and 1, eight samples, 16 calls of SC².
    assert "hh_helpful_test: sc2 C8: 2 rows × 16" in capsys.readouterr().out


TRIED = {
    "bsm": ["--table", "1,3,7", "--limit", "2"],
    "drpe": ["--table", "2", "--limit", "2"],
    "sc2": ["--table", "1,3", "--limit", "2"],
    "allure": ["--table", "e1", "--limit", "12"],
}


@pytest.mark.figures
@pytest.mark.parametrize("paper", TRIED)
def test_a_study_fills_its_tables_and_resumes_without_a_request(
    data, serve, tmp_path, paper, letter_encoder, capsys
):
    server = serve(answer)
    assert program(server, tmp_path, paper, *TRIED[paper]) == 0, capsys.readouterr().err
    out = tmp_path / "study"
    cells = json.loads((out / "results.json").read_text())
    assert {cell["table"] for cell in cells} == set(TRIED[paper][1].split(","))
    assert all(cell["not_judged"] == 0 for cell in cells)
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["models"], len(manifest["rows_sha256"])) == (["openai:fake"], 64)
    asked = len(server.calls)
    assert asked > 0
    assert program(server, tmp_path, paper, *TRIED[paper]) == 0
    assert len(server.calls) == asked
    assert json.loads((out / "results.json").read_text()) == cells
    # Another seed is another study: its folder is not mixed with this one.
    assert program(server, tmp_path, paper, *TRIED[paper], "--seed", "1") == 2


@pytest.mark.figures
def test_no_item_is_shown_an_example_of_its_own_group(data, serve, tmp_path, letter_encoder):
    server = serve(answer)
    assert program(server, tmp_path, "allure", "--table", "e1", "--limit", "12") == 0
    cells = json.loads((tmp_path / "study" / "results.json").read_text())
    leaks = [cell["value"] for cell in cells if cell["column"] == "leaks"]
    assert leaks
    assert set(leaks) == {0.0}
    # Every answer is labelled 0, so every right one of the training groups is a mistake.
    assert "all" in {cell["arm"] for cell in cells}
    assert set(allure.SIZES)
