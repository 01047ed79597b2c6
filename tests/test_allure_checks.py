"""Which labels look wrong, and how kinds of mistakes are named."""

import itertools

import pytest

from langchain_judges.errors import OptionError
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
        (word_set(), "Answer: 3, 1", "1, 3", True),
        (numeric(), "That makes 1,250.5 euros", "1250.50", True),
        (numeric(), "pages 3-4", "4", True),
        (numeric(), "It is -4.", "4", False),
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
    at_least = annotated("mark", min_deviation=0.5)
    for said, truth in itertools.product(scale, scale):
        marked = {"output": "x", "mark": truth}
        doubt = annotated("mark").doubt(marked, said, scale)
        assert (doubt.label if doubt else said) == truth
        far = 2 * abs(said - truth) >= scale[-1] - scale[0]
        assert bool(at_least.doubt(marked, said, scale)) == far


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
    with pytest.raises(OptionError, match="min_deviation"):
        annotated(min_deviation=1.5)


def test_own_modes_come_first_and_replace_their_namesakes():
    modes = read_modes(["rude: The response is rude.", "keywords: only the words"])
    assert [*modes][:2] == ["rude", "keywords"]
    assert modes["keywords"] == "only the words"
    with pytest.raises(OptionError, match="needs a name"):
        read_modes([": nameless"])
