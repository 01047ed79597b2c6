"""The protocol of SC²'s studies, on small sets of the same form and a fake model over HTTP."""

import gzip
import json
from collections import Counter
from typing import Any

import protocol_sc2 as protocol
import pytest
import sc2_form
from protocols import program
from sc2_sets import dealt, parted, read
from typer.testing import CliRunner

from langchain_judges.asking.models import resolve_model
from langchain_judges.datasets.summaries import DIMENSIONS
from langchain_judges.errors import InputError
from langchain_judges.testing import reply
from tests.conftest import DATA

STUDIES = ("methods", "inference", "aspects", "tables", "budgets", "few_shot")


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
    reply_text = json.dumps(fitting(call.body["response_format"]["json_schema"]["schema"]))
    # Samples differ: identical tables would not be compared.
    return reply(reply_text.replace("fine", f"fine {call.body.get('seed')}"))


def zipped(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write("\n".join(map(json.dumps, rows)))


@pytest.fixture
def data(tmp_path):
    pairs = [
        {"idx": n, "prompt": f"Human: {n}?", "chosen": f"yes {n}", "rejected": f"no {n}"}
        for n in range(8)
    ]
    pairs.append({"idx": 8, "prompt": "Human: Hm?", "chosen": " ", "rejected": "no"})
    zipped(tmp_path / "hh_helpful_test" / "pairs.jsonl.gz", pairs)
    texts = [{"id": f"d{n}", "text": f"Article {n}.", "references": ["r"]} for n in range(3)]
    zipped(tmp_path / "summeval12" / "docs.jsonl.gz", texts)
    summaries = [
        {
            "id": f"d{n}",
            "model_id": f"M{m}",
            "summary": f"Summary {n} by {m}.",
            # M0 and M1 are graded alike.
            "expert_mean": dict.fromkeys(DIMENSIONS, 1 + m // 2),
        }
        for n in range(3)
        for m in range(4)
    ]
    zipped(tmp_path / "summeval12" / "summaries.jsonl.gz", summaries)
    return tmp_path


def studied(data, server, out, *options):
    arguments = ["--data", data, "--model", "m", "--base-url", server.url, "-o", out, *options]
    return CliRunner().invoke(program(protocol.main), [str(each) for each in arguments])


def test_pairs_are_put_on_sides_by_a_coin_and_keep_their_labels(data):
    rows = read("hh_helpful_test", data / "hh_helpful_test", 0)
    # One has an empty text.
    assert len(rows) == 8
    for row in rows:
        assert row["output_a" if row["label"] == "A" else "output_b"].startswith("yes")
    assert {row["label"] for row in rows} == {"A", "B"}
    assert rows != read("hh_helpful_test", data / "hh_helpful_test", 1)


def test_summaries_graded_alike_are_no_pair_and_every_article_comes_once_first(data):
    rows = read("summeval12", data / "summeval12", 0)
    # Of six pairs of four summaries two are ties.
    assert len(rows) == 3 * 4
    assert {row["group"] for row in rows[:3]} == {"d0", "d1", "d2"}
    for row in rows:
        better = row["output_a" if row["label"] == "A" else "output_b"]
        assert better[-2] in "23"


def test_pairs_that_people_found_equal_are_left_out():
    row = {"id": "x", "group": "g", "input": "q", "output_a": "y", "output_b": "n"}
    labels = ("A", "B", "tie")
    rows = dealt(({**row, "id": label, "label": label} for label in labels), 0)
    assert {each["id"] for each in rows} == {"A", "B"}
    for each in rows:
        assert (
            each["output_a" if each["label"] == "A" else "output_b"]
            == "yn"["AB".index(each["id"])]
        )


def test_no_pair_that_aspects_are_learned_from_is_ever_judged():
    pairs = [{"id": str(n), "group": str(n)} for n in range(120)]
    for rows in (1, 60, 70, 120, 500):
        judged, corpus = parted(pairs, rows)
        assert judged == pairs[: min(rows, 70)]
        assert corpus == pairs[:69:-1]
    assert [len(part) for part in parted(pairs[:8], 500)] == [4, 4]
    assert [len(part) for part in parted(pairs, 10, 2)] == [10, 2]


def test_no_article_that_aspects_are_learned_from_is_judged():
    # Twenty articles, each of which comes once before any comes twice.
    pairs = [{"id": f"{turn}:{n}", "group": f"{n}"} for turn in range(12) for n in range(20)]
    judged, corpus = parted(pairs, 500)
    assert len(corpus) == 50
    assert {row["group"] for row in corpus} == {str(n) for n in range(10, 20)}
    assert judged == [row for row in pairs if int(row["group"]) < 10]


def test_another_model_or_corpus_learns_aspects_of_its_own(serve, tmp_path):
    server = serve(answer)
    rows = [{"output_a": f"yes {n}", "output_b": f"no {n}"} for n in range(2)]
    for name, corpus in (("m", rows), ("m", rows), ("other", rows), ("m", rows[:1])):
        chat = resolve_model(name, base_url=server.url)
        study = protocol.Protocol("helpful", chat, tmp_path, 0, 1)
        assert len(study.aspects(corpus, tmp_path)) == 5
    # Each text is a call and merging is one: for two pairs, for two again, for one.
    assert len(server.calls) == (4 + 1) + (4 + 1) + (2 + 1)
    assert len(list(tmp_path.glob("learned_aspects-*.json"))) == 3


@pytest.mark.figures
def test_all_rows_can_be_asked_for(serve, data, tmp_path):
    options = ["--limit", "500", "--sets", "hh_helpful_test", "--only", "methods"]
    result = studied(data, serve(answer), tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    assert "hh_helpful_test, methods, 4 pairs" in result.output


@pytest.mark.parametrize("option", ["--sets", "--only"])
def test_an_unknown_name_is_one_sentence(serve, data, tmp_path, option):
    server = serve(answer)
    result = studied(data, server, tmp_path / "out", option, "poems")
    assert result.exit_code == 2
    assert "poems: not among" in result.output
    assert server.calls == []


def test_equal_labels_are_equal_settings():
    arms = [arm for study in protocol.studies(["a"]).values() for arm in study]
    settings: dict[str, Any] = {}
    for arm in arms:
        assert settings.setdefault(arm.label, arm) == arm


def test_arms_can_be_named_and_bring_those_that_they_need():
    arms = protocol.studies(["a"])
    narrow = protocol.narrowed(arms, ["sc2 C2", "direct online"])
    labels = {name: [arm.label for arm in own] for name, own in narrow.items() if own}
    assert labels == {"aspects": ["sc2 online", "direct online"], "tables": ["sc2 C2"]}
    assert protocol.narrowed(arms, []) == arms


@pytest.mark.figures
def test_all_studies_run_and_resume(serve, data, tmp_path, letter_encoder):
    server, out = serve(answer), tmp_path / "out"
    options = ["--limit", "1", "--sets", "hh_helpful_test"]
    result = studied(data, server, out, *options)
    assert result.exit_code == 0, result.output
    content = json.loads((out / "hh_helpful_test" / "studies.json").read_text())
    for study, arms in protocol.studies(["x"]).items():
        assert list(content[study]) == [arm.label for arm in arms]
        saved = out / "hh_helpful_test" / "round-1" / f"{study}.json"
        for standing in json.loads(saved.read_text())["methods"].values():
            assert (standing["rows"], standing["not_judged"], standing["failures"]) == (
                1,
                0,
                {},
            )
            assert standing["calls"] == standing["calls_each"]
    calls = {arm: each["calls"] for arm, each in content["methods"].items()}
    assert calls == {
        **{"direct": 1, "direct aspects": 1, "cot": 1, "cot 1-shot": 1, "cot_sc 8": 8},
        "sc2 C8": 16,
    }
    # A table and a preference; 8 + 7 + 1; 8 + 56 + 1.
    compared = {arm: each["calls"] for arm, each in content["inference"].items()}
    assert compared == {"sc2 random": 2, "sc2 C8": 16, "sc2 exact": 65}
    # What the eight samples of aspects cost is direct prompting's cost too.
    assert content["aspects"]["direct online"]["calls"] == 1 + 8
    lengths = [each["decoded_in_search"] for each in content["inference"].values()]
    assert lengths == sorted(set(lengths))
    assert (out / "hh_helpful_test" / "tables.png").stat().st_size > 5000
    with pytest.raises(InputError, match="fewer than two pairs"):
        sc2_form.make(out / "hh_helpful_test", tmp_path / "form.html")
    # All arms share one cache: nothing is sent twice.
    call_count = len(server.calls)
    assert len({json.dumps(call.body, sort_keys=True) for call in server.calls}) == call_count
    tables = [call for call in server.calls if call.shape == "Table"]
    # The most tables of any arm, and those of the aspects that were found online.
    assert len(tables) == 16 + 8
    again = studied(data, server, out, *options)
    assert (again.stdout, len(server.calls)) == (result.stdout, call_count)


@pytest.mark.figures
def test_rounds_repeat_what_is_sampled_and_nothing_else(serve, data, tmp_path):
    server = serve(answer)
    options = ["--limit", "1", "--sets", "hh_helpful_test", "--only", "methods"]
    assert studied(data, server, tmp_path / "out", *options).exit_code == 0
    once = Counter(call.shape for call in server.calls)
    assert studied(data, server, tmp_path / "out", *options, "--rounds", "2").exit_code == 0
    twice = Counter(call.shape for call in server.calls)
    assert twice["Extracted"] == once["Extracted"]
    # Eight tables and as many samples of thoughts are drawn anew; one order is greedy.
    assert twice["Table"] == 2 * once["Table"] == 16
    content = json.loads((tmp_path / "out/hh_helpful_test/studies.json").read_text())
    assert content["methods"]["direct"]["sd"] == 0


@pytest.mark.figures
def test_a_comparison_model_does_all_but_the_preference(serve, data, tmp_path):
    server = serve(answer)
    options = ["--limit", "1", "--sets", "hh_helpful_test", "--only", "inference"]
    more = ["--comparison-model", "large"]
    assert studied(data, server, tmp_path / "out", *options, *more).exit_code == 0
    requests = {(call.shape, call.body["model"]) for call in server.calls}
    assert requests == {
        *((shape, "large") for shape in ("Extracted", "Merged", "Table", "Decision")),
        ("Preferred", "m"),
    }


@pytest.mark.figures
def test_settings_that_studies_share_are_asked_once(serve, data, tmp_path):
    server = serve(answer)
    options = ["--limit", "1", "--sets", "summeval12"]
    studied(data, server, tmp_path / "out", *options, "--only", "methods")
    before = Counter(call.shape for call in server.calls)
    studied(data, server, tmp_path / "out", *options, "--only", "inference")
    after = Counter(call.shape for call in server.calls)
    # The random table is one of the eight; all ordered pairs are 56, of which seven were met.
    assert after["Table"] == before["Table"] == 8
    assert after["Decision"] - before["Decision"] <= 56
    assert "sums up the most important points" in server.calls[-1].prompt


@pytest.mark.figures
def test_few_shot_arms_show_the_same_examples(serve, data, tmp_path):
    server = serve(answer)
    options = ["--limit", "1", "--sets", "hh_helpful_test", "--only", "few_shot"]
    assert studied(data, server, tmp_path / "out", *options).exit_code == 0
    prompts = [call.prompt for call in server.calls]
    thought = [prompt for prompt in prompts if "Think step by step" in prompt]
    # Budgets of 8 and 15 take the first of the 24 samples.
    assert len(thought) == 2 * 24
    assert all("A jacket costs" in prompt for prompt in thought)
    others = [prompt for prompt in prompts if "A jacket costs" in prompt]
    # SC² shows them where the preference is asked, once for each of three budgets.
    assert len(others) - len(thought) == 2 * 3


@pytest.mark.figures
@pytest.mark.skipif(not DATA.exists(), reason="the public sets are not here")
def test_real_rows_fill_the_tables_and_the_form(serve, tmp_path, letter_encoder):
    server, out = serve(answer), tmp_path / "out"
    options = ["--limit", "2", "--only", "tables"]
    result = studied(DATA, server, out, *options)
    assert result.exit_code == 0, result.output
    for name in ("hh_helpful_test", "summeval12"):
        content = json.loads((out / name / "studies.json").read_text())
        cells = [
            value for arms in content.values() for arm in arms.values() for value in arm.items()
        ]
        assert [key for key, value in cells if value is None and key != "sd"] == []
        page = sc2_form.make(out / name, tmp_path / f"{name}.html").read_text()
        assert page.count("<section hidden data-id=") == 2
