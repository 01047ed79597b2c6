"""Aspects, learned ones too, and how tables are shown to people."""

import json
import re
from typing import Any

import pytest

from langchain_judges import create_sc2_judge, learn_aspects
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.sc2 import alearn_aspects, load_aspects, render_table
from langchain_judges.methods.sc2.options import normal_form
from langchain_judges.methods.sc2.tally import by_frequency
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
        ("काल", "काल"),
        ("Re\u0301sume\u0301", "r\u00e9sum\u00e9"),
        ("👍!", "👍"),
    ],
)
def test_the_normal_form_of_a_phrase(phrase, form):
    assert normal_form(phrase) == form


def test_frequency_keeps_what_most_samples_name_and_of_equals_the_earlier():
    lists = [["Wit", "Tone"], ["Tone", "Depth"], ["Depth", "Tone", "Wit"], ["Speed"]]
    # Tone 3; Wit 2 with ranks 0 and 2; Depth 2 with ranks 1 and 0; Speed 1.
    assert by_frequency(lists) == ["Tone", "Depth", "Wit", "Speed"]


def learner(prompt):
    if "exactly" in prompt:
        count = int(re.search(r"exactly (\d+) aspects", prompt)[1])
        listed = re.findall(r"^- (.+)$", prompt, re.M)
        return json.dumps({f"aspect_{i + 1}": listed[i] for i in range(count)})
    text = re.search(r"<text-\w+>\n(.*?)\n</text", prompt, re.S)[1]
    return json.dumps({"aspects": ["Tone", f"aspect {text}a", f"aspect {text}b"]})


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


def test_learned_aspects_are_kept_and_used_by_their_file(tmp_path):
    model, file = FakeChatModel(replies=learner), tmp_path / "mine.json"
    learned = learn_aspects(model, ["one", "two"], n=2, path=file)
    assert json.loads(file.read_text()) == learned == load_aspects(file)
    for source in (file, str(file), learned):
        judge = create_sc2_judge(model, aspects=source)
        options = judge.config["metadata"]["options"]
        assert options["aspects"] == learned["aspects"]


OWN_TASK = {"question": "Which is funnier?", "quality": "Jokes."}


@for_each("task", ["summary", OWN_TASK])
def test_learned_aspects_bring_the_task_that_they_were_learned_for(task, tmp_path):
    model, file = FakeChatModel(replies=learner), tmp_path / "mine.json"
    learned = learn_aspects(model, ["one", "two"], n=2, path=file, task=task)
    for source in (file, learned):
        for said in ({}, {"task": task}):
            options = create_sc2_judge(model, aspects=source, **said).config["metadata"]["options"]
            assert options["task"] == task
        with pytest.raises(OptionError, match=r"learned for the `task`.* got 'helpful'"):
            create_sc2_judge(model, aspects=source, task="helpful")
    by_hand = create_sc2_judge(model, aspects=learned["aspects"], task="helpful")
    assert by_hand.config["metadata"]["options"]["task"] == "helpful"
    file.write_text('{"aspects": ["Wit"]}')
    options = create_sc2_judge(model, aspects=file, task="summary").config["metadata"]["options"]
    assert options["task"] == "summary"


@for_each("aspects", [{}, {"task": "summary"}, {"aspects": []}])
def test_a_mapping_without_aspects_is_no_wish_to_find_some(aspects):
    with pytest.raises(OptionError, match="`aspects` must be a list of at least one text"):
        create_sc2_judge(FakeChatModel(), aspects=aspects)
    without: dict[str, Any] = {"aspects": {"aspects": ["Wit"], "task": None}}
    judge = create_sc2_judge(FakeChatModel(), **without)
    assert judge.config["metadata"]["options"]["task"] == "helpful"


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    other = tmp_path / "other.json"
    for text in ("{", "[]", '{"aspects": []}', '{"aspects": [1]}'):
        other.write_text(text)
        with pytest.raises(OptionError, match=r"other\.json"):
            create_sc2_judge(FakeChatModel(), aspects=str(other))


@for_each(
    ("merged", "aspects", "failure"),
    [
        ("no", ["Tone", "aspect onea", "aspect twoa"], "unparsable"),
        (
            '{"aspect_1": "Tone", "aspect_2": "the tones", "aspect_3": "Wit"}',
            ["Tone", "Wit", "aspect onea"],
            "missing",
        ),
    ],
)
def test_where_merging_fails_the_most_frequent_aspects_stand_in(merged, aspects, failure):
    model = FakeChatModel(replies=lambda p: merged if "exactly" in p else learner(p))
    learned = learn_aspects(model, ["one", "two"], n=3)
    assert learned["aspects"] == aspects
    assert [(f["step"], f["reason"]) for f in learned["failures"]] == [("consolidate", failure)]


@for_each("said", ["no", '{"aspects": ["", " "]}'])
def test_a_text_that_fails_is_left_out_and_reported(said):
    model = FakeChatModel(replies=lambda p: said if "\ntwo\n" in p else learner(p))
    learned = learn_aspects(model, ["one", "two"], n=3, repairs=0)
    assert len(learned["aspects"]) == 3
    assert [f["unit"] for f in learned["failures"]] == ["text 2"]


def test_fewer_aspects_than_wanted_are_an_error():
    model = FakeChatModel(replies=lambda prompt: '{"aspects": ["Tone"]}')
    with pytest.raises(OptionError, match="5 aspects were wanted"):
        learn_aspects(model, ["one", "two"])


@for_each(
    ("texts", "options", "message"),
    [
        ("one", {}, "`texts` must be a list"),
        ([" "], {}, "text 0: the field `text` is empty"),
        ([{"input": "x"}], {}, "text 0: the field `output_a` is missing"),
        ([3], {}, "text 0: a text or a pair is wanted, got int"),
        (["x"], {"path": "FOLDER/file/x.json"}, r"cannot be written to .*file/x\.json: "),
    ],
)
def test_what_cannot_be_learned_or_kept_is_refused_before_any_call(
    texts, options, message, tmp_path
):
    (tmp_path / "file").touch()
    options = {k: v.replace("FOLDER", str(tmp_path)) for k, v in options.items()}
    model = FakeChatModel(replies=learner)
    with pytest.raises((InputError, OptionError), match=message):
        learn_aspects(model, texts, **options)
    assert model.prompts == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# What people see.


def test_markdown_cells_cannot_break_out():
    assert render_table({"rows": ROWS}).splitlines() == [
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
    assert render_table({"rows": [row]}).splitlines()[-1] == f"| x | {cell_text} | p | q |"
