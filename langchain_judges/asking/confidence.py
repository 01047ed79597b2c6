"""From the log-probabilities of tokens to the confidence of a part of a reply.

Confidence is the length-normalised probability of Wu et al. 2023 (DRPE), equation 3:
`P = exp(mean of the log-probabilities of the part's K tokens)`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

from langchain_core.messages import AIMessage

from langchain_judges.asking.reply_text import (
    DECODER,
    TextObject,
    answer_start,
    objects,
    whole_object,
)

# Characters from start to before end.
Span = tuple[int, int]


class Confidence(NamedTuple):
    """How probable a part of a reply was, and of how many tokens it consists."""

    value: float
    tokens: int


class Spelling:
    """The tokens of a reply, and which bytes of it each of them spells.

    A character of several bytes may be split over tokens, whose texts are then broken.

    Args:
        text: The reply.
        pieces: What each token spells.
        logprobs: Of each token.
        start: The byte of the pieces at which the reply begins.
    """

    def __init__(
        self, text: str, pieces: Sequence[bytes], logprobs: Sequence[float], start: int
    ) -> None:
        """Lay the tokens over a reply."""
        self._text, self._pieces, self._logprobs, self._start = text, pieces, logprobs, start
        self._edges = list(accumulate(map(len, pieces), initial=0))

    def confidence(self, spans: Sequence[Span]) -> Confidence | None:
        """Return the confidence of some characters of the reply (DRPE, equation 3).

        Args:
            spans: The characters of the reply that count. A token counts if any character of
                it does, however little; none counts twice.

        Returns:
            The confidence in (0, 1] and its number of tokens; None if the spans are empty.
        """
        tokens: set[int] = set()
        for start, end in spans:
            if start < end:
                first, last = self._place(start), self._place(end)
                begin = bisect_right(self._edges, first) - 1
                tokens.update(range(begin, bisect_left(self._edges, last)))
        if not tokens:
            return None
        total = math.fsum([min(0.0, self._logprobs[token]) for token in tokens])
        return Confidence(math.exp(total / len(tokens)), len(tokens))

    def token_at(self, character: int) -> tuple[int, str]:
        """Return which token spells a character, and what it spells before it."""
        place = self._place(character)
        number = bisect_right(self._edges, place) - 1
        before = self._pieces[number][: place - self._edges[number]]
        return number, before.decode(errors="replace")

    def _place(self, character: int) -> int:
        return self._start + len(_bytes(self._text[:character]))


def spelling(text: str, tokens: Sequence[object]) -> Spelling | None:
    """Return where the tokens of a reply stand in it.

    Args:
        text: The reply.
        tokens: What the provider returned as `logprobs.content`: `token`, `bytes` and
            `logprob` for each. They may say more than the reply, such as a code fence
            that the provider cut off.

    Returns:
        None if there are no tokens, if they are broken or do not spell the reply.
    """
    records = [token for token in tokens if isinstance(token, Mapping)]
    logprobs = [number for token in records if _is_logprob(number := token.get("logprob"))]
    pieces = [piece for token in records if (piece := _piece(token)) is not None]
    if not tokens or not len(pieces) == len(logprobs) == len(tokens):
        return None
    start = b"".join(pieces).find(_bytes(text))
    return Spelling(text, pieces, logprobs, start) if start >= 0 else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def span_confidence(
    text: str, tokens: Sequence[object], spans: Sequence[Span]
) -> Confidence | None:
    """Return the confidence of some characters of a reply (DRPE, equation 3).

    Args:
        text: The reply.
        tokens: As `spelling` takes them.
        spans: As `Spelling.confidence` takes them.

    Returns:
        The confidence in (0, 1] and its number of tokens; None if the tokens are broken or
        do not spell the reply, or if the spans are empty.
    """
    letters = spelling(text, tokens)
    return letters.confidence(spans) if letters else None


def reply_tokens(message: AIMessage) -> list[Any]:
    """Return the tokens of a reply as its provider reported them; empty if it did not."""
    logprobs = message.response_metadata.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return content if isinstance(content, list) else []


_ROUNDING = 1e-3


def _is_logprob(value: object) -> TypeGuard[float]:
    # Not a number compares as false; a hair above zero is rounding.
    return type(value) is not bool and isinstance(value, float | int) and value <= _ROUNDING


def _piece(token: Mapping[str, object]) -> bytes | None:
    """Return the bytes that a token spells; not every server fills every field."""
    data = token.get("bytes")
    if isinstance(data, list):
        try:
            return bytes(data)
        except (TypeError, ValueError):  # no numbers, or not of bytes
            return None
    piece = token.get("token") if data is None else None
    return _bytes(piece) if isinstance(piece, str) else None


def json_spans(
    text: str, data: Mapping[str, object] | None = None
) -> dict[tuple[str | int, ...], Span]:
    """Return where each value stands in a JSON object of a text, by its path.

    The span of a string leaves out its quotes; escapes inside it count as they are
    written.

    Args:
        text: The reply.
        data: What was read from the reply: the first object that says the same counts,
            behind the thoughts if it stands there. Default: the first object.

    >>> json_spans('{"role_1": {"vote": "1"}}')
    {('role_1', 'vote'): (21, 22), ('role_1',): (11, 24), (): (0, 25)}
    """
    spans: dict[tuple[str | int, ...], Span] = {}
    for one in _candidates(text):
        if data is None or _says(one.value, data):
            _walk(text, one.start, (), spans)
            break
    return spans


def _candidates(text: str) -> list[TextObject]:
    """Return the objects that may be what was read, in the order in which they count."""
    if whole := whole_object(text):
        return [whole]
    thoughts = answer_start(text) or 0
    return objects(text, thoughts).complete + (objects(text).complete if thoughts else [])


def _says(value: object, data: object) -> bool:
    """Say whether a value is what was read; it may say more, and the reading fills gaps."""
    if isinstance(data, Mapping) and isinstance(value, Mapping):
        return all(_says(value.get(key), part) for key, part in data.items())
    return bool(value == data)


def _walk(
    text: str, at: int, path: tuple[str | int, ...], spans: dict[tuple[str | int, ...], Span]
) -> int:
    """Note the spans of the value that starts at `at`; return where it ends."""
    start = at
    if text[at] not in "{[":
        _, end = DECODER.raw_decode(text, at)
        spans.setdefault(path, (start + 1, end - 1) if text[start] == '"' else (start, end))
        return end
    closing = "}" if text[at] == "{" else "]"
    at = _skip(text, at + 1)
    position = 0
    while text[at] != closing:
        key: str | int = position
        if closing == "}":
            key, at = DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if text[at] != ":":
                raise ValueError("no colon after a key")
            at = _skip(text, at + 1)
        at = _skip(text, _walk(text, at, (*path, key), spans))
        position += 1
        if text[at] == ",":
            at = _skip(text, at + 1)
    spans.setdefault(path, (start, at + 1))
    return at + 1


def _skip(text: str, at: int) -> int:
    """Return the next place that is no white space."""
    while text[at] in " \t\r\n":
        at += 1
    return at
