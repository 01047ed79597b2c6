import re

import pytest

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import check_item, check_pair
from langchain_judges.rows.texts import (
    judged,
    transcript,
    user_turns,
)
from tests.cases import for_each


def test_several_turns_are_numbered_and_answers_stand_behind_them():
    request = [{"role": "user", "content": "One?"}, {"role": "user", "content": "Two?"}]
    answers = [{"role": "assistant", "content": "1"}, {"role": "assistant", "content": "2"}]
    assert transcript(request) == "[turn 1, user]\nOne?\n\n[turn 2, user]\nTwo?"
    assert "[turn 1, response]\n1" in transcript(request, answers)
    assert "2" not in transcript(request, answers).replace("turn 2", "")
    assert judged(answers) == "[answer 1]\n1\n\n[answer 2]\n2"
    assert user_turns(request) == 2


PAIR = {"input": "q", "output_a": "a", "output_b": "b"}


@for_each(
    ("change", "message"),
    [
        ({"output_b": None}, "the field `output_b` is missing or null"),
        ({"input": " "}, "the field `input` is empty"),
        ({"output_a": 3}, "`output_a` must be a text or a list of messages, .* got int '3'"),
        ({"output_a": []}, "`output_a` must be a text or a list of messages"),
        ({"output_a": ["x"]}, "got the message 'x'"),
        ({"input": [{"role": "user", "content": ""}]}, "has a message without text"),
        ({"input": [{"role": 5, "content": "x"}]}, "got the message"),
        ({"input": [{"role": "user", "content": [5]}]}, "has a message without text"),
        ({"output_a": "\ud800"}, "has a broken character: surrogates not allowed"),
        ({"reference": 4}, "`reference` must be a text, got int"),
    ],
)
def test_a_bad_pair_is_told_what_is_wrong(change, message):
    with pytest.raises(InputError, match=message):
        check_pair({**PAIR, **change})


@for_each("text", ["\u200b", "\ufeff", "\x00", "\u3164\u2800", " \u200d\n"])
def test_a_text_that_shows_nothing_is_empty(text):
    with pytest.raises(InputError, match="`output_b` is empty"):
        check_pair({"input": "q", "output_a": "a", "output_b": text})


def shown(image):
    blocks = [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": image}]
    return [{"role": "assistant", "content": blocks}]


def test_a_text_names_an_image_by_what_it_is():
    one, same, other = (judged(shown(name)) for name in ("x.png", "x.png", "y.png"))
    assert one == same != other
    assert re.fullmatch(r"See:\n\[image [0-9a-f]{10}\]", one)


def test_a_source_of_several_documents_is_refused_with_the_remedy():
    with pytest.raises(InputError, match="got list; join its documents to one"):
        check_item({"input": "Q", "output": "A", "source": ["one", "two"]})
