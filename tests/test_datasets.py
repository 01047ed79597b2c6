"""Public sets as rows: the whole sets where they lie beside the project, else their schema."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

from cookbook.study.sets import load
from langchain_judges import datasets as sets
from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.checks import check_pair, check_text
from tests.cases import for_each
from tests.conftest import DATA


def folder(name: str) -> Path:
    """A set's folder; the test is skipped where it does not lie beside the project."""
    if not (DATA / name).is_dir():
        pytest.skip(f"the set {name} is not beside the project")
    return DATA / name


def labels(rows: list[dict]) -> dict:
    return dict(Counter(row["label"] for row in rows))


SIZES = {
    "goyal_news2022": 151,
    "hh_helpful_test": 2354,
    "llmbar": 419,
    "mtbench_human200": 200,
    "pandalm": 999,
    "summeval12": 6600,
    "summeval16": 12000,
}


# The pairs of the file; every two of four systems on four articles; six articles of eight
# in each of two sets, one of the others having two best texts and one none; four tasks; four
# articles in the summaries of four systems.
SMALL: dict[str, tuple[int, dict[str, Any]]] = {
    "mtbench_human200": (4, {}),
    "llmbar": (4, {}),
    "summeval16": (6 * 4, {}),
    "goyal_news2022": (6 * 2, {}),
    "cogeval": (4, {}),
    "summeval16 items": (4 * 4, {"form": "items"}),
}


@for_each("case", SMALL)
def test_rows_of_a_small_set_can_be_judged_and_are_named_once(small_sets, case) -> None:
    name, (count, options) = case.split()[0], SMALL[case]
    rows = load(name, small_sets / name, **options)
    for row in rows:
        if "output" in row:
            check_text(row["output"], "output")
        else:
            check_pair(row)
            assert row["label"] in {"A", "B", "tie"}
    assert len(rows) == len({row["id"] for row in rows}) == count


@pytest.mark.figures
@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_row_of_a_set_can_be_judged_and_is_named_once(name: str) -> None:
    rows = load(name, folder(name))
    for row in rows:
        check_pair(row)
    assert len(rows) == len({row["id"] for row in rows}) == SIZES[name]
    assert set(labels(rows)) <= {"A", "B", "tie"}


# LLMBar's paper: 100 natural and 319 adversarial pairs.
@pytest.mark.figures
def test_llmbar_has_its_subsets() -> None:
    rows = load("llmbar", folder("llmbar"))
    assert Counter(row["category"] for row in rows) == {
        "Natural": 100,
        "Neighbor": 134,
        "GPTInst": 92,
        "GPTOut": 47,
        "Manual": 46,
    }


# Published: 105 ties, 422 for the first, 472 for the second response.
@pytest.mark.figures
def test_pandalm_has_the_published_majorities() -> None:
    rows = load("pandalm", folder("pandalm"))
    assert labels(rows) == {"tie": 105, "A": 422, "B": 472}
    assert {len(row["human_votes"]) for row in rows} == {3}


@pytest.mark.figures
def test_mtbench_human200_has_questions_systems_and_references() -> None:
    rows = load("mtbench_human200", folder("mtbench_human200"))
    with_reference = Counter(row["category"] for row in rows if "reference" in row)
    assert with_reference == {"coding": 22, "reasoning": 20, "math": 15}
    assert rows[0]["systems"] == ["gpt-4", "llama-13b"]
    assert rows[0]["group"] == "156"


@pytest.mark.figures
@pytest.mark.parametrize(
    ("rule", "cnn", "bbc"), [("unique", 71, 80), ("any", 84, 91), ("decisive", 67, 76)]
)
def test_the_news_study_keeps_articles_by_a_named_rule(rule: str, cnn: int, bbc: int) -> None:
    path = folder("goyal_news2022")
    assert len(load("cnn2022", path, rule=rule)) == cnn
    assert len(load("bbc2022", path, rule=rule)) == bbc


# Section 5.5 of the specification counts 42 and 40 of 100; T5 and Pegasus one each.
@pytest.mark.figures
def test_summeval_items_have_the_known_inconsistent_summaries() -> None:
    options: dict[str, Any] = {"form": "items", "systems": ["M11", "M17", "M20", "M23"]}
    items = load("summeval16", folder("summeval16"), **options)
    wrong = Counter(item["systems"][0] for item in items if item["label"] == 0)
    assert (len(items), wrong) == (400, {"M11": 42, "M20": 40, "M17": 1, "M23": 1})


@pytest.mark.figures
def test_helpful_pairs_are_shuffled_evenly_and_alike_on_every_run() -> None:
    path = folder("hh_helpful_test")
    rows, other = load("hh_helpful", path), load("hh_helpful", path, seed=1)
    # A fair coin stays within four standard deviations, 4 * sqrt(2354) / 2 = 97 of 1177.
    assert abs(labels(rows)["A"] - 1177) < 97
    assert rows == load("hh_helpful", path) == load("hh_helpful_test", path)
    assert rows != other
    turned = {row["id"]: row for row in other}
    for row in rows:
        twin = turned[row["id"]]
        preferred = f"output_{row['label'].lower()}"
        assert row[preferred] == twin[f"output_{twin['label'].lower()}"]


def test_cogevals_tasks_with_an_answer_in_common_are_one_group(tmp_path: Path) -> None:
    # A detour with and without teleporting ends in the same rooms; a path shares one of its two
    # answers with them; another map has an answer of its own.
    tasks = [("m", "tele", "1, 2"), ("m", "non", "1,2", "3"), ("m", "path", "3."), ("n", "x", "4")]
    rows = [
        {"path": str(n), "graph": graph, "domain": "rooms", "condition": skill, "model": "a",
         "conversation": "Which way?", "response": "1", "parsed": "1", "expected": answers}
        for n, (graph, skill, *answers) in enumerate(tasks)
    ]  # fmt: skip
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "sample.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    items = load("cogeval", tmp_path)
    assert [item["family"] for item in items] == ["m", "m", "m", "n"]
    assert [item["category"] for item in items] == ["tele", "non", "path", "x"]
    assert len({item["group"] for item in items[:3]}) == 1
    assert items[3]["group"] not in {item["group"] for item in items[:3]}


@pytest.mark.figures
def test_cogeval_labels_are_the_matches_of_the_source() -> None:
    items = {item["id"]: item for item in load("cogeval", folder("cogeval"))}
    with gzip.open(folder("cogeval") / "sample.jsonl.gz", "rt") as file:
        for record in map(json.loads, file):
            assert items[f"cogeval:{record['path']}"]["label"] == record["exact_match"]


# ---- the hub's schemas, in copies made by hand and read by the package `datasets`


def test_a_clone_of_llmbar_is_read_subset_by_subset(tmp_path: Path) -> None:
    item = {"input": "I", "output_1": "x", "output_2": "y", "label": 2}
    folders = ["Natural", *(f"Adversarial/{s}" for s in ("Neighbor", "GPTInst", "GPTOut"))]
    for name in [*folders, "Adversarial/Manual"]:
        folder = tmp_path / "Dataset" / "LLMBar" / name
        folder.mkdir(parents=True)
        (folder / "dataset.json").write_text(json.dumps([item] * 2))
    rows = load("llmbar", tmp_path)
    assert [row["id"] for row in rows][:3] == [
        "llmbar:Natural:0",
        "llmbar:Natural:1",
        "llmbar:Neighbor:0",
    ]
    assert (len(rows), labels(rows)) == (10, {"B": 10})


# ---- tables of the user's own


def test_columns_of_chosen_and_rejected_are_shuffled(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = [{"p": "P", "good": f"good {n}", "bad": "bad"} for n in range(40)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    columns = {"input": "p", "chosen": "good", "rejected": "bad"}
    rows = list(sets.rows(path, columns))
    assert set(labels(rows)) == {"A", "B"}
    assert [row["id"] for row in rows] == [str(number) for number in range(1, 41)]
    assert all(row[f"output_{row['label'].lower()}"].startswith("good") for row in rows)


def test_labels_of_a_table_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("input,output_a,output_b,label\nQ,x,y,1\nQ,x,y,0\n")
    rows = sets.rows(path, labels={1: "A", 0: "B"})
    assert [row["label"] for row in rows] == ["A", "B"]
    with pytest.raises(InputError, match="no '1'"):
        list(sets.rows(path, labels={"x": "A"}))


@for_each("form", ["list", "frame", "records", "path"])
def test_labels_of_rows_of_any_kind_can_be_named(form: str, tmp_path: Path) -> None:
    own = [{"question": "q", "reply": f"t{i}", "label": i} for i in range(2)]
    frame = DataFrame(own)
    frame.to_csv(tmp_path / "t.csv", index=False)
    forms: Any = {"list": own, "frame": frame, "records": [*frame.itertuples()]}
    columns = {"input": "question", "output": "reply"}
    source = forms.get(form, tmp_path / "t.csv")
    rows = list(sets.rows(source, columns, labels={0: "rude", 1: "polite"}))
    assert [row["label"] for row in rows] == ["rude", "polite"]
    with pytest.raises(InputError, match="row 1: `labels` has no"):
        list(sets.rows(forms.get(form, tmp_path / "t.csv"), columns, labels={1: "rude"}))


def test_chosen_and_rejected_that_begin_with_the_prompt_have_it_as_input(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    asked = {"role": "user", "content": "Name a city."}
    sides = [[asked, {"role": "assistant", "content": each}] for each in ("Kyiv", "Cat")]
    path.write_text(json.dumps(dict(zip(("chosen", "rejected"), sides, strict=True))) + "\n")
    for row in (*sets.rows(path), *sets.rows(path, labels={1: "A"})):
        assert row["input"] == [asked]
        assert row[f"output_{row['label'].lower()}"] == "Kyiv"


def test_chosen_and_rejected_may_be_messages_but_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    messages = [{"role": "assistant", "content": "yes"}]
    path.write_text(json.dumps({"input": "Q", "chosen": messages, "rejected": "no"}) + "\n")
    (row,) = sets.rows(path)
    assert row[f"output_{row['label'].lower()}"] == "yes"
    path.write_text('{"input": "Q", "chosen": "yes", "rejected": null}\n')
    with pytest.raises(InputError, match="row 1: `chosen`"):
        list(sets.rows(path))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.jsonl.gz", gzip.compress(b'{"input": "Q"}\n' * 99)[:-20], "damaged"),
        ("t.csv", b"input,label\nQ,A,left,over\n", "record 1: more cells than columns"),
        ("t.parquet", b"PAR1 but no more", "damaged"),
        ("t.json", b'["A", "B"]', "record 1: not an object"),
    ],
    ids=["cut gzip", "cells", "parquet", "json"],
)
def test_a_damaged_table_is_an_error_of_its_file(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        list(sets.rows(path))
    assert str(path) in str(caught.value)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="row 1: no column 'q'"):
        list(sets.rows(path, {"input": "q"}))
    with pytest.raises(OptionError, match="'nothing'"):
        list(sets.rows(path, {"nothing": "a"}))


@for_each("source", ["no_such_set", "."])
def test_rows_of_nothing_known_say_what_is_known(source: str) -> None:
    with pytest.raises(OptionError, match="llmbar"):
        sets.rows(source)


# ---- misuse


@for_each(
    ("call", "words"),
    [
        ({"name": "nothing"}, "there is no set 'nothing'"),
        ({"name": "llmbar"}, "give `path`"),
        ({"name": "llmbar", "path": "/no/such/folder"}, "no folder or file"),
    ],
)
def test_misuse_is_explained(call: dict, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        sets.load(**call)


def test_a_value_that_an_option_of_a_set_does_not_take_is_refused(small_sets: Path) -> None:
    for options in ({"dimension": "charm"}, {"systems": ["M99"]}):
        with pytest.raises(OptionError, match="must be"):
            load("summeval16", small_sets / "summeval16", **options)
