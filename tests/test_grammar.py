"""Only what is in the grammar of replies is read, in bounded time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import read
from tests.attacks.kinds import KINDS
from tests.attacks.replies import TRIES
from tests.cases import for_each


@pytest.mark.whole
@pytest.mark.parametrize("name", TRIES)
def test_nothing_outside_of_the_grammar_is_read_as_a_verdict(name):
    @settings(max_examples=60, deadline=None, database=None)
    @given(TRIES[name])
    def reads_none(one):
        assert one.verdict() is None

    reads_none()


@pytest.mark.whole
@settings(max_examples=300, deadline=None, database=None)
@given(st.text(max_size=60), st.sampled_from(["label", "scores", "choice"]))
def test_no_text_at_all_makes_the_reader_raise(text, kind):
    for reply in (text, f"<think>{text}", f"{{{text}}}", f'{{"label": {text}}}'):
        read(AIMessage(reply), KINDS[kind].shape, KINDS[kind].parse, None, (text,))


MANY = {
    "objects": '{"a":',
    "whole objects": '{"label": "1"} ',
    "tags": "</a>",
    "ends of thoughts": "</think>",
    "lists": "[",
    "lines": "Label: 1\n",
    "words": "the final label ",
    "invisible": "\u200b",
    "escapes": "\\u0041",
    "members": '{"a":{},',
    "letters that become eighteen": "\ufdfa",
    "escaped signs": "%3c",
}


@for_each("part", MANY.values(), ids=MANY)
def test_a_megabyte_of_anything_is_read_in_a_moment(part):
    # Generous: 50 ms of this process are the aim, a search that starts anew took 27 s.
    for size in (10_000, 90_000, 1_000_000):
        text = part * (size // len(part))
        began = time.process_time()
        for reply in (text, f"<think>{text}", f'{{"a": [{text}'):
            for kind in KINDS.values():
                read(AIMessage(reply), kind.shape, kind.parse, None, [text])
        assert time.process_time() - began < 12 * 0.5
