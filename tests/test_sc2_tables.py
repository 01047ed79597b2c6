"""Aspects, learned ones too, and how tables are shown to people."""

import itertools
import json
import re
from io import StringIO
from typing import Any, cast

import pytest
from langchain_core.caches import InMemoryCache
from rich.console import Console

from langchain_judges import create_sc2_judge, learn_aspects
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.sc2 import alearn_aspects, load_aspects, render_table
from langchain_judges.methods.sc2.aspects import agree, distinct, normal_form
from langchain_judges.report.terminal import verdict_panel
from langchain_judges.verdict import no_usage, not_judged
from tests.cases import for_each
from tests.fakes import FakeChatModel

ROWS = [
    {"aspect": "Tone", "common": "polite", "only_a": "warm | kind", "only_b": "none"},
    {"aspect": "<b>Depth</b>", "common": "none", "only_a": "a\nlist", "only_b": "one [red]x"},
]
PAIR = {"input": "Why?", "output_a": "The good cat sat.", "output_b": "The bad dog ran."}


# Aspects.


@for_each(
    ("phrase", "form"),
    [
        ("The Main Arguments.", "main argument"),
        ("  ease-of_use ", "ease of use"),
        ("Stories", "story"),
        ("the", "the"),
        ("focus, glass, basis", "focus glass basis"),
        ("!?", ""),
        ("C++, c#.", "c++ c#"),
        ("1+1 # 2", "1 1 2"),
        ("काल", "काल"),
        ("Re\u0301sume\u0301", "r\u00e9sum\u00e9"),
        ("می\u200cروم", "میروم"),
        ("👍 Tone", "tone"),
        ("👍!", "👍"),
    ],
)
def test_the_normal_form_of_a_phrase(phrase, form):
    assert normal_form(phrase) == form


def test_distinct_phrases_are_one_line_each():
    assert distinct(["1. Tone", "tones", "- Depth\n of it:", "", "x" * 200]) == [
        "Tone",
        "Depth of it",
        "x" * 80,
    ]


@for_each(
    "apart",
    [["काल", "कुल"], ["ความเร็ว", "ความเร่ง"], ["C", "C++", "C#"], ["👍", "👎"]],
)
def test_marks_and_signs_keep_aspects_apart(apart):
    assert distinct(apart) == apart


def test_one_spelling_in_two_encodings_is_one_aspect():
    assert distinct(["r\u00e9sum\u00e9", "Re\u0301sume\u0301"]) == ["r\u00e9sum\u00e9"]


def test_frequency_keeps_what_most_samples_name_and_of_equals_the_earlier():
    lists = [["Wit", "Tone"], ["Tone", "Depth"], ["Depth", "Tone", "Wit"], ["Speed"]]
    # Tone 3; Wit 2 with ranks 0 and 2; Depth 2 with ranks 1 and 0; Speed 1.
    assert agree(lists, {}, 5) == ["Tone", "Depth", "Wit", "Speed"]
    assert agree(lists, {}, 2) == ["Tone", "Depth"]
    assert agree([], {}, 5) == []


def test_near_duplicates_are_one_aspect():
    near = {"tone": [1.0, 0.0], "voice": [0.9, 0.1], "depth": [0.0, 1.0]}
    lists = [["Voice"], ["Tone", "Depth"], ["Depth", "Tone"], ["Depth"]]
    # Tone and voice, cosine 0.99, are named by three samples together.
    assert agree(lists, near, 2) == ["Tone", "Depth"]
    apart = {**near, "voice": [0.7, 0.714]}
    assert agree(lists, apart, 3) == ["Depth", "Tone", "Voice"]


def learner(prompt):
    if "exactly" in prompt:
        count = int(re.search(r"exactly (\d+) aspects", prompt)[1])
        listed = re.findall(r"^- (.+)$", prompt, re.M)
        return json.dumps({f"aspect_{i + 1}": listed[i] for i in range(count)})
    text = re.search(r"<text-\w+>\n(.*?)\n</text", prompt, re.S)[1]
    return json.dumps({"aspects": ["Tone", f"aspect {text}a", f"aspect {text}b"]})


def test_a_text_of_which_no_aspect_is_named_is_reported():
    def said(prompt):
        return '{"aspects": ["", " "]}' if "\nsilent\n" in prompt else learner(prompt)

    learned = learn_aspects(FakeChatModel(replies=said), ["one", "silent"], n=3)
    assert len(learned["aspects"]) == 3
    assert learned["failures"] == [
        {
            "step": "extract",
            "unit": "text 2",
            "reason": "empty",
            "detail": "the reply names no aspect",
        }
    ]


async def test_aspects_are_extracted_from_every_text_and_merged_to_exactly_n():
    model = FakeChatModel(replies=learner)
    texts = [f"{n} text" for n in range(6)]
    learned = learn_aspects(model, texts, n=5)
    assert len(model.prompts) == 6 + 1
    assert len(learned["aspects"]) == 5
    # Named by every text, so the first of all.
    assert learned["aspects"][0] == "Tone"
    assert learned["usage"]["by_step"]["extract"]["calls"] == 6
    assert learned["failures"] == []
    later = await alearn_aspects(FakeChatModel(replies=learner), texts, n=5)
    assert later == learned


def test_both_texts_of_a_pair_are_read_beside_their_request():
    model = FakeChatModel(replies=learner)
    learned = learn_aspects(model, [PAIR, PAIR], n=2)
    assert learned["texts"] == 4
    assert all("<request-" in prompt for prompt in model.prompts[:4])


def test_many_aspects_are_merged_in_batches_first():
    model = FakeChatModel(replies=learner)
    learned = learn_aspects(model, [f"{n}" for n in range(40)], n=3)
    # 81 phrases are a batch of sixty and one of 21; the 6 left are one.
    assert learned["usage"]["by_step"]["consolidate"]["calls"] == 2 + 1
    assert len(learned["aspects"]) == 3


def test_learned_aspects_are_kept_and_found_by_name_and_path(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGES_ASPECTS", str(tmp_path / "kept"))
    model = FakeChatModel(replies=learner)
    learned = learn_aspects(model, ["one", "two"], n=2, name="mine")
    file = tmp_path / "kept" / "mine.json"
    assert json.loads(file.read_text()) == learned == load_aspects("mine") == load_aspects(file)
    assert {"prompt_version", "model", "corpus", "aspects"} <= learned.keys()
    assert list(tmp_path.rglob(".*")) == []
    for source in ("mine", file, str(file), learned):
        judge = create_sc2_judge(model, aspects=source)
        options = judge.config["metadata"]["options"]
        assert options["aspects"]["aspects"] == learned["aspects"]
        assert options["aspects"]["corpus"] == learned["corpus"]


def test_the_corpus_is_known_by_its_hash():
    def corpus(texts):
        return learn_aspects(FakeChatModel(replies=learner), texts, n=1)["corpus"]

    assert corpus(["one", "two"]) == corpus(["one", "two"])
    assert corpus(["one", "two"]) != corpus(["two", "one"])


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    other = tmp_path / "other.json"
    for text in ("{", "[]", '{"aspects": []}', '{"aspects": [1]}'):
        other.write_text(text)
        with pytest.raises(OptionError, match=r"other\.json"):
            create_sc2_judge(FakeChatModel(), aspects=str(other))


def test_where_merging_fails_the_most_frequent_aspects_stand_in_and_it_is_said():
    def respond(prompt):
        return "no" if "exactly" in prompt else learner(prompt)

    learned = learn_aspects(FakeChatModel(replies=respond), ["one", "two"], n=3)
    assert learned["aspects"] == ["Tone", "aspect onea", "aspect oneb"]
    assert [f["step"] for f in learned["failures"]] == ["consolidate"]


def test_a_merge_that_repeats_itself_is_filled_up_to_n():
    def respond(prompt):
        if "exactly" in prompt:
            return json.dumps({"aspect_1": "Tone", "aspect_2": "the tones", "aspect_3": "Wit"})
        return learner(prompt)

    learned = learn_aspects(FakeChatModel(replies=respond), ["one", "two"], n=3)
    assert learned["aspects"] == ["Tone", "Wit", "aspect onea"]
    assert [f["reason"] for f in learned["failures"]] == ["missing"]


def test_a_text_that_fails_is_left_out_and_a_second_try_pays_for_it_alone():
    broken = [True]

    def respond(prompt):
        if broken and "\ntwo\n" in prompt:
            return "no"
        return learner(prompt)

    model, cache = FakeChatModel(replies=respond), InMemoryCache()
    settings: dict[str, Any] = {"n": 2, "cache": cache, "repairs": 0}
    first = learn_aspects(model, ["one", "two"], **settings)
    assert [f["unit"] for f in first["failures"]] == ["text 2"]
    call_count = len(model.prompts)
    broken.clear()
    learn_aspects(model, ["one", "two"], **settings)
    assert len(model.prompts) - call_count == 2


def test_fewer_aspects_than_wanted_are_an_error():
    model = FakeChatModel(replies=lambda prompt: '{"aspects": ["Tone"]}')
    with pytest.raises(OptionError, match="5 aspects were wanted, and 1 found in 2 texts"):
        learn_aspects(model, ["one", "two"])


@for_each(
    ("texts", "options", "message"),
    [
        ([], {}, "`texts` must be a list of at least one"),
        ("one", {}, "`texts` must be a list"),
        (None, {}, "`texts` must be a list"),
        (5, {}, "`texts` must be a list"),
        ([" "], {}, "text 0: the field `text` is empty"),
        ([{"input": "x"}], {}, "text 0: the field `output_a` is missing"),
        ([3], {}, "text 0: a text or a pair is wanted, got int"),
        (["x"], {"n": 0}, "`n` must be a whole number of at least 1"),
        (["x"], {"task": "x"}, "`task` must be one of"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(texts, options, message):
    with pytest.raises((InputError, OptionError), match=message):
        learn_aspects(FakeChatModel(replies=learner), texts, **options)


def test_a_corpus_may_come_one_by_one():
    learned = learn_aspects(FakeChatModel(replies=learner), (f"{n}" for n in range(3)), n=2)
    assert learned["texts"] == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (5, "`name` must be a name, a path or None, got 5"),
        ("", "`name` must be a name"),
        ("file/x.json", r"learned aspects cannot be written to .*file/x\.json: "),
        ("folder.json", r"cannot be written to .*folder\.json: Is a directory"),
        ("a\0b.json", "cannot be written to"),
    ],
)
def test_a_name_that_cannot_be_kept_is_refused_before_any_call(name, message, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    model = FakeChatModel(replies=learner)
    name_or_path = str(tmp_path / name) if isinstance(name, str) and name else name
    with pytest.raises(OptionError, match=message):
        learn_aspects(model, ["one"], n=1, name=name_or_path)
    assert model.prompts == []
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder.json"}


# Tables in plain words.


# What people see.


def test_markdown_cells_cannot_break_out():
    assert render_table(ROWS).splitlines() == [
        "| Aspect | In both | Only in A | Only in B |",
        "| --- | --- | --- | --- |",
        "| Tone | polite | warm \\| kind | none |",
        "| <b>Depth</b> | none | a list | one [red]x |",
    ]


@for_each(
    ("cell", "cell_text"),
    [("a|b", r"a\|b"), (r"a\|b", r"a\\\|b"), (r"C:\x", r"C:\x"), ("\n|", r"\|")],
)
def test_a_backslash_does_not_set_a_bar_free(cell, cell_text):
    """A doubled backslash is read as one, and a bar behind it would part cells."""
    row = {"aspect": "x", "common": cell, "only_a": "p", "only_b": "q"}
    assert render_table([row]).splitlines()[-1] == f"| x | {cell_text} | p | q |"


def test_html_is_escaped_and_names_the_texts():
    page = render_table({"number": 3, "rows": ROWS}, format="html", names=("new", "<old>"))
    assert page.startswith("<table")
    assert page.endswith("</table>")
    assert "&lt;b&gt;Depth&lt;/b&gt;" in page
    assert "Only in &lt;old&gt;" in page
    assert page.count("<tr>") == 3
    assert ">–</td>" in page


def shown(renderable):
    out = StringIO()
    Console(file=out, width=100).print(renderable)
    return out.getvalue()


def test_a_terminal_shows_markup_as_it_is_written():
    text = shown(render_table(ROWS, format="rich"))
    assert "one [red]x" in text
    assert "Only in A" in text
    assert "none" not in text


def test_no_cell_steers_the_terminal():
    row = {**ROWS[0], "common": "\x1b[2J\x9b2J\x07\ud800", "only_a": "नमस्ते\u200d"}
    text = shown(render_table([row], format="rich"))
    assert "�[2J�2J��" in text
    assert "नमस्ते\u200d" in text
    feedback = shown(
        verdict_panel({"id": "p", "verdict": {**not_judged([], no_usage(), "\x1b[2J")}})
    )
    assert "\x1b" not in feedback
    assert "�[2J" in feedback


def test_another_format_is_an_error():
    with pytest.raises(OptionError, match="`format` must be 'markdown', 'rich' or 'html'"):
        render_table(ROWS, format=cast("Any", "latex"))


def test_a_result_is_shown_by_its_table():
    assert render_table({"verdict": {}, "table": {"rows": ROWS}}) == render_table(ROWS)
    assert render_table([]).count("\n") == 1


@for_each(
    ("table", "message"),
    [
        (None, "there is no table: SC² compared the texts without one"),
        ({"verdict": {}, "table": None}, "there is no table"),
        ({"verdict": {}}, "a table must be a result of SC²"),
        ([{"aspect": "x"}], "rows with 'aspect', 'common', 'only_a', 'only_b', got"),
        (5, "a table must be"),
        ("rows", "a table must be"),
    ],
)
def test_what_is_no_table_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        render_table(table)


@for_each("names", [("A",), "AB", ("A", "B", "C"), ("A", 2), None])
def test_two_names_are_wanted(names):
    with pytest.raises(OptionError, match="`names` must be two texts"):
        render_table(ROWS, names=names)


@for_each("mode", ["tournament", "exact", "random"])
def test_the_panel_shows_aspects_table_and_bracket(mode):
    numbers = itertools.count()

    def respond(prompt):
        if "You compare two tables" in prompt:
            return json.dumps({"more_consistent": "1", "justification": "x"})
        if "side by side in a table" not in prompt:
            return json.dumps({"comparison": "x", "preferred": "1"})
        row = {"common": f"point {next(numbers)}", "only_1": "good cat", "only_2": "bad dog"}
        return json.dumps({"aspect_1": row})

    settings: dict[str, Any] = {"aspects": ["Animal"], "samples": 6, "inference": mode}
    result = create_sc2_judge(FakeChatModel(replies=respond), **settings).invoke(PAIR)
    text = shown(verdict_panel({**result, "id": "p"}))
    assert "aspects: Animal" in text
    assert "Only in B" in text
    met = sum(match["asked"] for match in result["bracket"])
    if mode == "tournament":
        assert text.count("beat table") == met == 5
        assert "had a bye" in text
    if mode == "exact":
        assert "wins: table" in text
        assert f"{met - 12} more matches" in text
