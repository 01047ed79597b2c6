import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langchain_judges import create_rubric_judge
from langchain_judges.asking.reply_text import ChoiceFields, Spelling, json_spans
from langchain_judges.methods.rubric.replies import parts_probabilities
from tests.cases import for_each
from tests.fakes import FakeChatModel, with_logprobs

CHOICE = ChoiceFields("explanation", "label")


def token(piece: bytes, logprob: float = -0.1):
    return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": logprob}


def message(text, tokens):
    return AIMessage(text, response_metadata={"logprobs": {"content": tokens}})


def span_confidence(text, tokens, spans):
    letters = Spelling.of(message(text, tokens))
    return letters and letters.confidence(spans)


def cut(text: str, edges: list[int]) -> list[bytes]:
    """Split the bytes of a text at some of its byte positions."""
    raw = text.encode("utf-8")
    places = sorted({edge % (len(raw) + 1) for edge in edges} | {0, len(raw)})
    return [raw[a:b] for a, b in pairwise(places)]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(texts, st.lists(st.integers(0, 400), max_size=30), st.data())
def test_the_tokens_of_a_span_are_those_that_share_a_character_with_it(text, edges, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    pieces = cut(text, edges)
    tokens = [token(piece, -0.01 * (i + 1)) for i, piece in enumerate(pieces)]
    # By hand: a byte belongs to the span if its character does.
    inside = [start <= i < end for i, char in enumerate(text) for _ in char.encode()]
    expected, position = [], 0
    for i, piece in enumerate(pieces):
        if any(inside[position : position + len(piece)]):
            expected.append(-0.01 * (i + 1))
        position += len(piece)
    result = span_confidence(text, tokens, [(start, end)])
    assert result.tokens == len(expected)
    assert result.value == pytest.approx(math.exp(sum(expected) / len(expected)))


def test_the_papers_segments_give_the_papers_confidences():
    # Segments [-.1, -.2, -.3], [-.05, -.5], [-1.0]: exp(-.2), exp(-.275), exp(-1).
    for logprobs, value in (
        ([-0.1, -0.2, -0.3], 0.818731),
        ([-0.05, -0.5], 0.759572),
        ([-1.0], 0.367879),
    ):
        tokens = [token(b"a", logprob) for logprob in logprobs]
        text = "a" * len(tokens)
        result = span_confidence(text, tokens, [(0, len(text))])
        assert result == (pytest.approx(value, abs=1e-6), len(tokens))


@for_each(
    ("text", "tokens", "spans"),
    [
        ("ab", [], [(0, 1)]),
        ("ab", [token(b"xy")], [(0, 1)]),
        ("ab", [token(b"ab")], []),
        ("ab", [token(b"ab")], [(1, 1)]),
    ],
)
def test_what_cannot_be_known_is_none(text, tokens, spans):
    assert span_confidence(text, tokens, spans) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.booleans(), st.booleans())
def test_every_value_of_a_reply_is_found_where_it_is_written(data, ascii_only, indented):
    text = "Sure: " + json.dumps(data, ensure_ascii=ascii_only, indent=2 if indented else None)
    spans = json_spans(text)
    assert spans[()] == (6, len(text))
    for path, (start, end) in spans.items():
        value = data
        for key in path:
            value = value[key]
        written = text[start:end]
        assert json.loads(f'"{written}"' if isinstance(value, str) else written) == value


numbers = st.floats() | st.integers(-(10**400), 10**400) | st.sampled_from([800, -1e308, -9999])
odd = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["token", "logprob", "bytes", "top_logprobs"]), inner)
    ),
)
LABEL = '{"explanation": "x", "label": "1"}'
SPELT = [token(LABEL[:-3].encode()), token(b"1"), token(b'"}')]


@pytest.mark.whole
@settings(max_examples=300, deadline=None, database=None)
@given(odd, st.sampled_from(["logprobs", "content", "token", "logprob", "top", "bytes"]))
def test_log_probabilities_of_any_form_cost_no_verdict(value, place):
    tokens: Any = [{**each, "top_logprobs": [{"token": "0", "logprob": -3}] * 2} for each in SPELT]
    key = {"logprob": "logprob", "top": "top_logprobs", "bytes": "bytes"}.get(place)
    if key:
        tokens[1][key] = value
    elif place == "token":
        tokens[1] = value
    logprobs = {"logprobs": value, "content": {"content": value}}.get(place, {"content": tokens})
    reply = AIMessage(LABEL, response_metadata={"logprobs": logprobs})
    found = parts_probabilities(reply, {"label": "1"}, {"": (0, 1)})[""]
    assert all(0 <= each <= 1 for each in found.values())
    assert all(0 <= each <= 1 for each in CHOICE.measure(reply, {"label": "1"}).values())
    spans = [(0, len(LABEL))]
    letters = Spelling.of(reply)
    confidence = letters.confidence(spans) if letters else None
    assert confidence is None or 0 <= confidence.value <= 1


def test_tokens_nested_too_deep_are_none():
    logprobs = {"content": "[" * 100_000}
    assert Spelling.of(AIMessage(LABEL, response_metadata={"logprobs": logprobs})) is None


@for_each("logprob", ["a", None, 800, -1e308, [1], {}, float("nan")])
def test_a_verdict_stays_where_its_log_probability_cannot_be_read(logprob):
    tokens = [*SPELT[:1], {**SPELT[1], "logprob": logprob}, SPELT[2]]
    judge = create_rubric_judge(FakeChatModel(replies=[message(LABEL, tokens)]), rubric="Good?")
    verdict = judge.invoke({"input": "a", "output": "b"})["verdict"]
    assert (verdict["label"], verdict["failures"]) == (1, [])


DIGITS = tuple(range(1, 11))
WORDS = ("poor", "popular", "good")


@for_each(
    "labels, tokens, expected",
    [
        # Each number is a token: `1` is one, for ten is offered too.
        (
            DIGITS,
            [("9", 0.5, {"9": 0.5, "1": 0.3, "10": 0.2}), ('"}', 1)],
            {1: 0.3, 9: 0.5, 10: 0.2},
        ),
        (DIGITS, [("1", 0.8, {"1": 0.8, "9": 0.2}), ('"}', 1)], {1: 0.8, 9: 0.2}),
        (DIGITS, [('1"', 0.8, {'1"': 0.8, '9"': 0.2}), ("}", 1)], {1: 0.8, 9: 0.2}),
        # Each digit is: of ten, the zero behind it shows how much of what begins it is ten.
        (DIGITS, [("1", 0.4, {"1": 0.4, "9": 0.6}), ("0", 1), ('"}', 1)], {9: 0.6, 10: 0.4}),
        (DIGITS, [("1", 0.4, {"1": 0.4, "9": 0.6}), ("0", 0.75), ('"}', 1)], None),
        (DIGITS, [("1", 0.4, {"1": 0.4, "9": 0.6}), ('"}', 1)], {1: 0.4, 9: 0.6}),
        (DIGITS, [("1", 0.4, {"1": 0.4, "9": 0.6}), ('"}', 0.25)], None),
        (DIGITS, [("9", 0.5, {"9": 0.5, "1": 0.3, "8": 0.2}), ('"}', 1)], None),
        # What is as good as impossible changes nothing.
        (DIGITS, [("9", 0.8, {"9": 0.8, "1": 0.004, "8": 0.2}), ('"}', 1)], {8: 0.2, 9: 0.8}),
        (WORDS, [("go", 0.5, {"go": 0.5, "po": 0.5}), ("od", 1), ('"}', 1)], None),
        (
            WORDS,
            [("po", 0.5, {"po": 0.5, "go": 0.5}), ("or", 1), ('"}', 1)],
            {"poor": 0.5, "good": 0.5},
        ),
        (
            ("unsafe", "safe-ish", "safe"),
            [("unsafe", 0.5, {"unsafe": 0.5, "safe": 0.5}), ('"}', 1)],
            None,
        ),
        (
            ("bad", "very bad"),
            [("very", 0.6, {"very": 0.6, "bad": 0.4}), (" bad", 1), ('"}', 1)],
            {"bad": 0.4, "very bad": 0.6},
        ),
    ],
)
def test_labels_that_begin_alike_have_the_probabilities_that_are_known(labels, tokens, expected):
    reported = "".join(text for text, *_ in tokens).partition('"')[0]
    reply = with_logprobs(('{"label": "', 1), *tokens)
    found = parts_probabilities(reply, {"label": reported}, {"": labels})[""]
    wanted = expected and {str(label): expected.get(label, 0) for label in labels}
    assert found == (wanted and pytest.approx(wanted))


def test_a_verdict_says_that_labels_which_begin_alike_have_no_probabilities():
    tokens: Any = [
        ('{"label": "', 1),
        ("9", 0.5, {"9": 0.5, "1": 0.5}),
        ('", "explanation": "x"}', 1),
    ]
    model = FakeChatModel(replies=lambda _: with_logprobs(*tokens))
    judge = create_rubric_judge(model, rubric="Good?", labels=DIGITS)
    verdict = judge.invoke({"input": "a", "output": "b"})["verdict"]
    assert (verdict["label"], verdict["confidence"]) == (9, None)
    assert [each["reason"] for each in verdict["failures"]] == ["no_logprobs"]
