import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_judges.asking.reply_text import json_spans, spelling
from tests.cases import for_each


def token(piece: bytes, logprob: float = -0.1):
    return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": logprob}


def span_confidence(text, tokens, spans):
    letters = spelling(text, tokens)
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
