import pytest
from pydantic import TypeAdapter, ValidationError

from langchain_judges.orders import Slot, SlotOrTie, combine, disagree, naming_ab, naming_slots
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


@for_each(
    ("text", "label"), [("2", "2"), (' "1". ', "1"), ("**2**", "2"), ("(1)", "1"), ("Tie", "tie")]
)
def test_a_label_may_stand_in_marks_but_is_a_text(text, label):
    assert TypeAdapter(SlotOrTie).validate_python(text) == label
    if label == "tie":
        with pytest.raises(ValidationError):
            TypeAdapter(Slot).validate_python(text)
    with pytest.raises(ValidationError):
        TypeAdapter(SlotOrTie).validate_python(1)


@for_each("text", [True, 3, 1.0, "1 or 2", "", None])
def test_what_is_no_label_is_refused(text):
    with pytest.raises(ValidationError):
        TypeAdapter(SlotOrTie).validate_python(text)


@for_each(
    ("order", "named"),
    [
        ("AB", "Response A cites it; response B's steps differ. Responses A and B end."),
        ("BA", "Response B cites it; response A's steps differ. Responses B and A end."),
    ],
)
def test_reasons_name_texts_by_identity_and_can_be_read_back(order, named):
    text = "Response 1 cites it; response 2's steps differ. Responses 1 and 2 end."
    assert naming_ab(text, order) == named
    assert naming_slots(named, order) == text
    # Whoever calls the texts A and B by habit has seen no other names than numbers.
    by_letter = "Response A cites it; response B's steps differ. Responses A and B end."
    assert naming_ab(by_letter, order) == named


@for_each(
    ("text", "named"),
    [
        ("Response 1은 짧고 response 2는 길다.", "Response B은 짧고 response A는 길다."),
        ("`response_1`, response-2, Response #1", "`response_B`, response-A, Response #B"),
        ("Response 1 and 2 agree, response 1/2.", "Response B and A agree, response B/A."),
    ],
)
def test_reasons_may_name_texts_as_tags_do(text, named):
    assert naming_ab(text, "BA") == named
    assert naming_slots(named, "BA") == text


@for_each(
    "said",
    [
        "Answer: 1, 2. In response 12 the answer 2 is right, candidate 2 says.",
        "It is a response one would expect. The first step holds, the second one fails.",
        "It names option A and gives answer B.",
        "This is no response a user can read.",
        "The response took 1.5 s, a response 2.5. 回答1つ。 correspondence 1",
        "Odpowiedź 1 jest lepsza. 답변 1이 낫다. الإجابة ١ أفضل. उत्तर 1 बेहतर है। Câu trả lời 2.",
    ],
)
def test_words_that_may_mean_something_else_stay(said):
    assert naming_ab(said, "BA") == said
    assert naming_ab("passage 2 says", "BA", "passage") == "passage A says"
