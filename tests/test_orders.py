from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from langchain_judges.errors import OptionError
from langchain_judges.orders import (
    Slot,
    SlotOrTie,
    by_identity,
    combine,
    disagree,
    in_slots,
    naming_identities,
    naming_slots,
    orders_of,
    prefer,
    preferred_slot,
)
from tests.cases import for_each


@for_each(
    ("rule", "preferences", "combined"),
    [
        ("strict", ("A", "A"), "A"),
        ("strict", ("A", "B"), "tie"),
        ("strict", ("A", "tie"), "tie"),
        ("strict", ("tie", "tie"), "tie"),
        ("lenient", ("A", "tie"), "A"),
        ("lenient", ("tie", "B"), "B"),
        ("lenient", ("A", "B"), "tie"),
        ("none", ("B",), "B"),
    ],
)
def test_rules_combine_orders_as_published(rule, preferences, combined):
    assert combine(rule, preferences) == combined


def test_a_change_into_a_tie_is_a_disagreement():
    assert disagree(("A", "tie")) is True
    assert disagree(("A", "A")) is False
    assert disagree(("A",)) is None


@given(st.sampled_from(["AB", "BA"]), st.integers(), st.integers())
def test_slots_map_back_to_identities(order, a, b):
    assert by_identity(order, *in_slots(order, a, b)) == {"A": a, "B": b}


def test_a_choice_between_slots_is_mapped_by_the_order():
    assert preferred_slot("BA", "1") == "B"
    assert preferred_slot("AB", "1") == "A"
    assert preferred_slot("BA", "tie") == "tie"


def test_equal_scores_are_a_tie():
    assert prefer({"A": 3, "B": 3}) == "tie"


def test_an_unknown_rule_is_named_with_the_known_ones():
    with pytest.raises(OptionError, match=r"'strict', 'lenient', .* got 'stern'"):
        orders_of(cast("Any", "stern"))


@for_each(
    ("text", "label"),
    [(1, "1"), ("2", "2"), (' "1". ', "1"), ("**2**", "2"), ("(1)", "1"), ("Tie", "tie")],
)
def test_a_label_may_be_a_number_or_stand_in_marks(text, label):
    assert TypeAdapter(SlotOrTie).validate_python(text) == label
    if label == "tie":
        with pytest.raises(ValidationError):
            TypeAdapter(Slot).validate_python(text)


@for_each("text", [True, 3, 1.0, "A", "1 or 2", "12", "", None])
def test_what_is_no_label_is_refused(text):
    with pytest.raises(ValidationError):
        TypeAdapter(SlotOrTie).validate_python(text)


@for_each(
    ("order", "named"),
    [
        ("AB", "Response A cites it; response B's steps differ from response A."),
        ("BA", "Response B cites it; response A's steps differ from response B."),
    ],
)
def test_reasons_name_texts_by_identity_and_can_be_read_back(order, named):
    text = "Response 1 cites it; response 2's steps differ from the first response."
    assert naming_identities(text, order) == named
    slots = "Response 1 cites it; response 2's steps differ from response 1."
    assert naming_slots(named, order) == slots


def test_numbers_that_name_no_text_stay():
    text = "Answer: 1, 2. In response 12 the answer 2 is right, candidate 2 says."
    assert naming_identities(text, "BA") == text
    assert naming_identities("candidate 2 says", "BA", "candidate") == "candidate A says"


@for_each(
    ("said", "named"),
    [
        (
            "The first answer adds; only the second one subtracts.",
            "Response B adds; only response A subtracts.",
        ),
        ("Answer A is right, Answer B is not.", "Response B is right, Response A is not."),
        ("Response one is short, response two long.", "Response B is short, response A long."),
        ("Response A is short.", "Response B is short."),
        ("Responses 1 and 2 agree.", "Responses B and A agree."),
        ("Text 1 is plain.", "Response B is plain."),
        ("response-1 and response #2", "response B and response A"),
    ],
)
def test_other_words_for_the_texts_name_them_by_identity(said, named):
    assert naming_identities(said, "BA") == named


@for_each(
    "said",
    [
        "It is a response one would expect, and the answer 2 is right.",
        "Final Answer B.",
        "The first step holds, the second one fails.",
        "It names option A and gives answer B.",
    ],
)
def test_words_that_may_mean_something_else_stay(said):
    assert naming_identities(said, "BA") == said


def test_letters_beside_numbered_responses_are_options_of_a_question():
    said = "Response 1 takes Answer B, and so does response 2."
    assert naming_identities(said, "BA") == "Response B takes Answer B, and so does response A."


def test_both_texts_named_at_once_can_be_read_back():
    assert naming_slots("Responses B and A agree.", "BA") == "Responses 1 and 2 agree."


def test_an_article_behind_the_noun_names_no_text():
    text = "This is no response a user can read, nor a response b."
    assert naming_slots(text, "BA") == text
