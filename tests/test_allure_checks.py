"""Which labels look wrong, and how kinds of mistakes are named."""

import collections
import itertools
import re
import unicodedata

import pytest

from langchain_judges.errors import OptionError
from langchain_judges.lazy import packaged
from langchain_judges.methods.allure.auditors import read_modes
from langchain_judges.methods.allure.label_checks import (
    annotated,
    exact,
    normalised_sequence,
    numeric,
    pattern,
    resolve_check,
    word_set,
)
from tests.cases import for_each


def item(output, *expected, **more):
    return {"input": "Which path?", "output": output, "expected": list(expected), **more}


@for_each(
    ("check", "response", "expected", "right"),
    [
        (exact(), "Rose", "rose", False),
        (normalised_sequence(), " Answer: 1,3. ", "answer: 1, 3", True),
        (normalised_sequence(["the", "field"]), "So: Answer: the Rose field.", "rose", True),
        (normalised_sequence(), "Answer: 3, 1", "1, 3", False),
        (normalised_sequence(["please"]), "1 please", "1", True),
        (normalised_sequence(["the", "room"]), "the room", "A", False),
        (normalised_sequence(), "**Answer:** (B).", "b", True),
        (normalised_sequence(), "x>3, if `y`", "x > 3 if y", True),
        (normalised_sequence(), "[1, 3]", "1,3", True),
        (normalised_sequence(), "-3.5", "3.5", False),
        (normalised_sequence(), "<=", ">=", False),
        (word_set(), "{2, -1}", "{-1,2}", True),
        (word_set(), "Answer: 3, 1", "1, 3", True),
        (numeric(), "That makes 1,250.5 euros", "1250.50", True),
        (numeric(), "It is -4.", "4", False),
        (numeric(), "It is \u22124.", "-4", True),
        (numeric(), "so x = **1\u202f000** m", "1,000", True),
        (numeric(), "0,5 m", "0.5", True),
        (numeric(), "1.250.000,5", "1250000.5", True),
        (numeric(), r"\boxed{-1.5e3}", "-1500", True),
        (numeric(), "#### $18", "18", True),
        (numeric(), "答案是5个", "5", True),
        (numeric(), "12%", "10%", False),
        (numeric(), "It is 5 km. Then left", "5 km", True),
        (numeric(), "costs 5 € in all", "€5", True),
        (numeric(), "18 dollars", "$18", True),
        (numeric(), "18 USD", "18 dollars", True),
        (numeric(), "1 hour", "1 hr", True),
        # Words that are no units.
        (numeric(), "42 in total", "42 apples", True),
        (numeric(), "She makes $18 every day", "$18 per day", True),
        (numeric(), "x = 42 because of it", "42 dollars", True),
        (numeric(), "5 apple", "5 apples", True),
        (numeric(), "5 in total", "6 km", False),
        (numeric(0.1), "105", "100", True),
        (pattern(r"\b42\b"), "it is 42.", "unused", True),
        (pattern(), "room 42", r"room \d+", True),
    ],
)
def test_a_match_doubts_the_label_that_it_contradicts(check, response, expected, right):
    for label in (0, 1):
        doubt = check.doubt(item(response, expected), label, COARSE)
        assert (doubt is None) == (label == right)
        if doubt:
            assert doubt.label == int(right)
            assert doubt.why


def test_any_expected_answer_will_do_and_without_one_nothing_is_doubted():
    check = normalised_sequence()
    assert check.doubt(item("1, 5, 7", "1, 3, 7", "1, 5, 7"), 1, COARSE) is None
    assert check.doubt(item("1, 4, 7", "1, 3, 7", "1, 5, 7"), 1, COARSE).label == 0
    assert exact().doubt({"input": "x", "output": "y"}, 0, COARSE) is None
    assert numeric().doubt(item("7", "no number here"), 1, COARSE) is None


def test_answers_that_differ_in_a_sign_at_a_word_never_match():
    stops = {*".,:;?!…。、，；：？！¿¡", *"“”„«»‹›「」『』", "_"}
    by_kind = collections.defaultdict(list)
    for sign in map(chr, range(0x3000)):
        by_kind[unicodedata.category(sign)].append(sign)
    signs = [
        s for kind in by_kind if kind[0] in "PSM" for s in by_kind[kind][:15] if s not in stops
    ]
    for check, (word, next_word) in itertools.product((normalised_sequence(), word_set()), WORDS):
        plain = f"{word} {next_word}"
        for sign in signs:
            beside = (f"{sign}{word} {next_word}", f"{word}{sign} {next_word}")
            for other in (*beside, f"{word}{sign}{next_word}", f"{word} {next_word}{sign}"):
                for response, expected in ((other, plain), (plain, other), beside):
                    doubt = check.doubt(item(response, expected), 0, COARSE)
                    assert doubt is None, (response, expected)


WORDS = [("5", "3"), ("x", "y")]
UNITS = packaged("langchain_judges.methods.allure", "units.yaml")


@for_each(
    ("response", "expected"),
    [
        *[("3/4", "1/4"), ("3/4", "4"), ("2^10", "10"), ("2 ^ 10", "10"), ("5 %", "5")],
        *[(r"\frac{3}{4}", "4"), (r"\sqrt{2}", "2"), ("10^{-3}", "3"), ("5!", "5"), ("x²", "2")],
        *[("1 000", "0"), ("12:30", "30"), ("1,3,7", "7"), ("pages 3-4", "4"), ("7 - 5", "5")],
        *[("1½", "1"), ("5k", "5"), ("5 g of CO2", "2"), ("x<5", "5"), ("5万", "5")],
        *[("5 km", "5 m"), ("5000 m", "5 km"), ("$5", "€5"), ("5 €", "5 $"), ("5公里", "5米")],
        *[("5 Stunden.", "5 minutes"), ("5 million", "5 thousand"), ("$5 million", "$5 billion")],
        *[("$5", "5 euros"), ("5 pm", "5 a.m.")],
        *[("2,500", "2.5"), ("1.250", "1250"), ("3.4.5", "5"), ("٣٫٥", "5"), ("±5", "5")],
    ],
)
def test_a_number_that_cannot_be_read_for_sure_is_no_doubt(response, expected):
    for label, texts in itertools.product((0, 1), ((response, expected), (expected, response))):
        assert numeric().doubt(item(*texts), label, COARSE) is None


def test_every_spelling_of_a_unit_is_this_unit_alone():
    spelt = [(unit, word) for unit, own in UNITS.items() for word in own.split()]
    assert len({word for _, word in spelt}) == len(spelt)
    for unit, word in spelt:
        for other in ("things", UNITS[unit].split()[0], *[w for u, w in spelt[::9] if u != unit]):
            doubt = numeric().doubt(item(f"It is 5 {word.title()}.", f"5 {other}"), 0, COARSE)
            is_known = other != "things" and other not in UNITS[unit].split()
            assert (doubt is None) == is_known, (word, other)


@for_each("number", [0, 7, -12, 0.5, -1.25, 1234.5, -1234567.89, 0.001])
def test_one_number_is_read_in_every_way_of_writing_it(number):
    english = f"{number:,}"
    for group, point in itertools.product(["", ",", ".", "'", *"\u00a0\u2007\u2009\u202f"], ".,"):
        written = english.translate({ord(","): group, ord("."): point})
        is_clear = group != point and not re.fullmatch(r"-?\d+[.,]\d{3}", written)
        for minus, around in itertools.product("-\u2212\u2013", ("{}", "It is {}.", "({} m)")):
            text = around.format(written.replace("-", minus))
            doubts = [numeric().doubt(item(text, f"{number}"), label, COARSE) for label in (0, 1)]
            assert doubts[1] is None, text
            assert not is_clear or doubts[0], text
            wrong = numeric().doubt(item(text, f"{number + 1}"), 0, COARSE)
            assert not is_clear or wrong is None, text


FINE, COARSE = (1, 2, 3, 4, 5), (0, 1)


@for_each(
    ("check", "labels", "said", "annotation", "proposed"),
    [
        # 1.33 is nearest to 1, and 2.5 as near to 3 as to 2.
        (annotated("mark"), FINE, 2, 1.33, 1),
        (annotated("mark"), FINE, 3, 2.5, None),
        (annotated("mark"), FINE, 4, 2.5, 2),
        (annotated("mark"), FINE, 5, None, None),
        (annotated("mark", threshold=2.5), COARSE, 1, 2.33, 0),
        (annotated("mark", threshold=2.5), COARSE, 1, 2.67, None),
        (annotated("mark", threshold=2.5), COARSE, 0, 2.67, 1),
        (annotated("mark", threshold=2.5), COARSE, 0, float("nan"), None),
        (annotated("mark"), ("bad", "good"), "good", "bad", "bad"),
    ],
)
def test_a_label_is_doubted_that_is_far_from_a_persons(check, labels, said, annotation, proposed):
    doubt = check.doubt({"output": "x", "mark": annotation}, said, labels)
    assert (doubt.label if doubt else None) == proposed


@for_each("scale", [(0, 0.5, 1), (0.25, 0.5, 0.75, 1), (-2, -1, 0, 1, 2), (*range(0, 101, 10),)])
def test_every_label_but_a_persons_is_doubted_on_any_scale(scale):
    for said, truth in itertools.product(scale, scale):
        doubt = annotated("mark").doubt({"output": "x", "mark": truth}, said, scale)
        assert (doubt.label if doubt else said) == truth


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
    with pytest.raises(OptionError, match="not a regular expression"):
        pattern("(")


def test_own_modes_come_first_and_replace_their_namesakes():
    modes = read_modes(["rude: The response is rude.", "keywords: only the words"])
    assert [*modes][:2] == ["rude", "keywords"]
    assert modes["keywords"] == "only the words"
    with pytest.raises(OptionError, match="needs a name"):
        read_modes([": nameless"])
