"""Which labels look wrong, and what kind of mistake a response invites."""

from typing import Any, cast

import pytest

from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure.checks import (
    annotated,
    by_match,
    custom,
    exact,
    nearest,
    normalised,
    normalised_sequence,
    numeric,
    pattern,
    resolve_check,
    word_set,
)
from langchain_judges.methods.allure.modes import (
    Mode,
    corpus_of,
    read_modes,
    suggest_mode,
)
from tests.cases import for_each


def item(output, *expected, **more):
    return {"input": "Which path?", "output": output, "expected": list(expected), **more}


@for_each(
    ("check", "response", "expected", "right"),
    [
        (exact(), "rose", "rose", True),
        (exact(), "Rose", "rose", False),
        (normalised(), " Answer: 1,3. ", "answer: 1, 3", True),
        (normalised(), "Answer: rose field", "rose", False),
        (normalised_sequence(), "So: Answer: the Rose field.", "rose", True),
        (normalised_sequence(), "Answer: 3, 1", "1, 3", False),
        (normalised_sequence(["please"]), "1 please", "1", True),
        (normalised_sequence(), "Answer: >=", "<=", False),
        (normalised_sequence(), "Answer: <= ", "<=", True),
        (normalised_sequence(), "the room", "A", False),
        (word_set(), "-", "+", False),
        (word_set(), "Answer: 3, 1", "1, 3", True),
        (word_set(), "Answer: 3, 1, 4", "1, 3", False),
        (numeric(), "That makes 1,250.5 euros", "1250.50", True),
        (numeric(), "That makes 1,250 euros", "1250", True),
        (numeric(), "That makes 2,250 euros", "250", False),
        (numeric(), "pages 3-4", "4", True),
        (numeric(), "It is -4.", "4", False),
        (numeric(), "no number", "12", False),
        (numeric(0.1), "105", "100", True),
        (pattern(r"\b42\b"), "it is 42.", "unused", True),
        (pattern(), "room 42", r"room \d+", True),
        (pattern(r"path: (.+)", extract=True), "path: 1, 3", "1, 3", True),
        (pattern(r"path: (.+)", extract=True), "none", "1, 3", False),
    ],
)
def test_a_match_doubts_the_label_that_it_contradicts(check, response, expected, right):
    for label in (0, 1):
        doubt = check.doubt(item(response, expected), label)
        assert (doubt is None) == (label == right)
        if doubt:
            assert doubt.label == int(right)
            assert doubt.why


def test_any_of_several_expected_answers_will_do():
    check = normalised_sequence()
    assert check.doubt(item("1, 5, 7", "1, 3, 7", "1, 5, 7"), 1) is None
    assert check.doubt(item("1, 4, 7", "1, 3, 7", "1, 5, 7"), 1).label == 0


def test_without_an_expected_answer_nothing_is_doubted():
    assert normalised().doubt({"input": "x", "output": "y"}, 0) is None
    assert numeric().doubt(item("7", "no number here"), 1) is None


def test_grades_are_doubted_from_a_deviation_on():
    check, scale = annotated("expert", min_deviation=1.5), (1, 2, 3, 4, 5)
    assert check.doubt({"output": "x", "expert": 3.67}, 5, scale) is None
    # 1.33 is nearest to 1.
    assert check.doubt({"output": "x", "expert": 1.33}, 5, scale).label == 1
    assert check.doubt({"output": "x"}, 5, scale) is None


def test_a_threshold_makes_two_labels_of_a_grade():
    check = annotated("expert", threshold=2.5)
    assert check.doubt({"output": "x", "expert": 2.33}, 1).label == 0
    assert check.doubt({"output": "x", "expert": 2.67}, 1) is None
    assert check.doubt({"output": "x", "expert": 2.67}, 0).label == 1


def test_a_threshold_reads_grades_only():
    check = annotated(threshold=2.5)
    assert check.doubt({"label": float("nan")}, 0) is None
    assert check.doubt({"label": "2.0"}, 1).label == 0
    with pytest.raises(InputError, match="`label` must be a number"):
        check.doubt({"label": "good"}, 0)


def test_words_are_doubted_where_they_differ():
    check, labels = annotated(), ("bad", "good")
    assert check.doubt({"output": "x", "label": "bad"}, "good", labels).label == "bad"
    assert check.doubt({"output": "x", "label": "good"}, "good", labels) is None


@for_each(("text", "label"), [(True, 1), (False, 0), (None, None), (3, 3), ("good", "good")])
def test_a_function_is_a_check(text, label):
    def house_rule(_item, _label):
        return text

    doubt = resolve_check(house_rule).doubt(item("x"), 7, (0, 1))
    assert (doubt.label if doubt else None) == label
    assert resolve_check(house_rule).name == "house_rule"


def test_what_is_no_check_is_refused():
    with pytest.raises(OptionError, match=r"'normalised_sequence'.*got 'nothing'"):
        resolve_check("nothing")
    with pytest.raises(OptionError, match="no regular expression"):
        pattern("(")
    with pytest.raises(OptionError, match="min_deviation"):
        annotated(min_deviation=0)


def test_a_match_of_ones_own_is_reported_by_its_name():
    check = by_match("ends", lambda response, expected: response.endswith(expected))
    assert "ends" in check.doubt(item("so: 7", "7"), 0).why
    assert custom(cast("Any", check.rule)).name == "rule"


def test_the_nearest_label_is_found_among_numbers_only():
    assert nearest(1.4, (1, 2, 3)) == 1
    assert nearest("good", (1, 2)) == "good"
    assert nearest(1.4, ("bad", "good")) == 1.4


TASK = "From room 1 you can go to room 3, and from room 3 to room 5 and room 7. Which path?"
PROSE = "The way leads on and on through all that was said before, and so it goes. " * 2


@for_each(
    ("response", "mode"),
    [
        (f"Well: {TASK}", "parroting"),
        ("xkcdwqz pfftvbn 9a8b7c qwrtzpsd zzkxvbn mnbvcxl ytrwqplk", "gibberish"),
        ("and so on " * 60, "gibberish"),
        (PROSE + "The doors are many, the keys are few, and nobody has counted either of "
         "them since the house was built by people long gone.", "lengthy argument"),
        ("Answer: 1, 3", "partial correctness"),
        ("Answer: from 5, 1, 3, which go to 7", "keywords"),
        ("Answer: 5, 3, 1", "keywords"),
        ("Answer: 9", None),
    ],
)  # fmt: skip
def test_a_mode_is_suggested(response, mode):
    usual = [item(text, "1, 3, 5") for text in ("Answer: 1", "Answer: 1, 3, 5", PROSE) * 10]
    request = {**item(response, "1, 3, 5"), "input": TASK}
    assert suggest_mode(request, corpus_of([*usual, request])) == mode


def test_five_mistakes_of_the_papers_kinds_are_recognised_whether_the_answer_is_right_or_not():
    # Written after the descriptions of section 4; the expected answer is "1, 3".
    task = "Room 1 leads to rooms 2 and 3, and room 3 to room 7. How do you get from 1 to 3?"
    argued = (
        "First one has to see where room 1 leads, because nothing can be said otherwise. It "
        "leads to two rooms, and since the second of them is the one that is wanted, there is "
        "no need for another, which means that whoever starts in 1 stands in 3 at once."
    )
    kinds = {
        "1, 3, 7": "partial correctness",
        "Room 1, Room 3": "keywords",
        argued: "lengthy argument",
        "1 3 blorf quxx vrmpt zzkt wqpl grblf xkcd": "gibberish",
        f"{task} Answer: 1, 3": "parroting",
    }
    corpus = corpus_of([{**item(text, "1, 3"), "input": task} for text in ["1, 3"] * 20])
    results = {
        text: suggest_mode({**item(text, "1, 3"), "input": task}, corpus) for text in kinds
    }
    assert results == kinds


def test_the_very_answer_has_no_mode():
    request = {**item("Answer: 1, 3", "1, 3"), "input": TASK}
    assert suggest_mode(request, corpus_of([request])) is None


def test_own_modes_come_first_and_replace_their_namesakes():
    own = Mode("rude", "The response is rude.", lambda case, _: "fool" in case["output"])
    modes = read_modes([own, "keywords: only the words"])
    assert [mode.name for mode in modes][:2] == ["rude", "keywords"]
    assert [mode.name for mode in modes].count("keywords") == 1
    assert suggest_mode(item("you fool"), corpus_of([item("x")]), modes) == "rude"
    with pytest.raises(OptionError, match="needs a name"):
        read_modes([": nameless"])
