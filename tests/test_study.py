"""The papers' studies: cells as printed, what is judged once, and every table over the wire."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cookbook.study import drpe, form, runner, sc2
from cookbook.study.__main__ import main
from cookbook.study.runner import paper_cell, slug
from langchain_judges.metrics import correlate, williams_test
from langchain_judges.testing import reply
from tests.conftest import DATA

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
    assert "there is no study 'bms'" in capsys.readouterr().err


def program(server, tmp_path, *arguments):
    command = [*arguments, "--models", "openai:fake", "--data", str(DATA)]
    return main([*command, "--base-url", server.url, "--out", str(tmp_path / "study")])


@pytest.fixture
def data(monkeypatch):
    if not DATA.exists():
        pytest.skip("the public sets are not beside the checkout, at ../shared/data")
    monkeypatch.setenv("OPENAI_API_KEY", "none")


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
    # No item is shown an example of its own group.
    assert {cell["value"] for cell in cells if cell["column"] == "leaks"} <= {0.0}
    asked = len(server.calls)
    assert asked > 0
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
    questions = [
        dict(re.findall(r'data-id="(p\d)" data-arm="(sc2 C\d)"', page)) for page in pages
    ]
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
    # Nothing listens at the address, which is part of what names a reply.
    assert main([*arguments, "--data", str(DATA), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "results.json").read_text() == (
        recorded / "results.json"
    ).read_text().strip()
    assert (tmp_path / "replies.jsonl").read_bytes() == (
        recorded / "replies.jsonl"
    ).read_bytes()


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
