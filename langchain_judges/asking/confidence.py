"""From the log-probabilities of tokens to the confidence of a part of a reply.

Confidence is the length-normalised probability of Wu et al. 2023 (DRPE), equation 3:
`P = exp(mean of the log-probabilities of the part's K tokens)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.objects import (
    DECODER,
    Found,
    answer_of,
    objects,
    whole_object,
)

Span = tuple[int, int]
"""Characters from start to before end."""


class Confidence(NamedTuple):
    """How probable a part of a reply was, and of how many tokens it consists."""

    value: float
    tokens: int


def span_confidence(
    text: str, tokens: Sequence[Mapping[str, Any]], spans: Sequence[Span]
) -> Confidence | None:
    """Return the confidence of some characters of a reply (DRPE, equation 3).

    Args:
        text: The reply.
        tokens: What the provider returned as `logprobs.content`: `token`, `bytes` and
            `logprob` for each. They may say more than the reply, such as a code fence
            that the provider cut off.
        spans: The characters of `text` that count. A token counts if any character of it
            does, however little; none counts twice.

    Returns:
        The confidence in (0, 1] and its number of tokens; None if there are no tokens, if
        they are broken or do not spell the reply, or if the spans are empty.
    """
    if not tokens or not all(map(_whole, tokens)):
        return None
    edges, said = _spell(tokens)
    offset = said.find(text.encode("utf-8", "surrogatepass"))
    if offset < 0:
        return None
    ranges = [
        (offset + _bytes_before(text, start), offset + _bytes_before(text, end))
        for start, end in spans
        if start < end
    ]
    logprobs = [
        min(0.0, float(token["logprob"]))
        for token, start, end in zip(tokens, edges[:-1], edges[1:], strict=True)
        if any(start < last and first < end for first, last in ranges)
    ]
    if not logprobs:
        return None
    return Confidence(math.exp(math.fsum(logprobs) / len(logprobs)), len(logprobs))


def reply_tokens(message: AIMessage) -> list[Any]:
    """Return the tokens of a reply as its provider reported them; empty if it did not."""
    reported = message.response_metadata.get("logprobs")
    content = reported.get("content") if isinstance(reported, Mapping) else None
    return content if isinstance(content, list) else []


def _whole(token: Any) -> bool:
    """Say whether a token has all that it takes; not every server fills every field."""
    if not isinstance(token, Mapping) or not _log_probability(token.get("logprob")):
        return False
    spelling = token.get("bytes")
    if spelling is None:
        return isinstance(token.get("token"), str)
    return isinstance(spelling, list) and all(
        isinstance(byte, int) and 0 <= byte <= 255 for byte in spelling
    )


_ROUNDING = 1e-3


def _log_probability(value: Any) -> bool:
    # Not a number compares as false; a hair above zero is rounding.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and value <= _ROUNDING


def _spell(tokens: Sequence[Mapping[str, Any]]) -> tuple[list[int], bytes]:
    """Return the edges of the tokens, in bytes, and the bytes that they spell.

    A character of several bytes may be split over tokens, whose texts are then broken;
    their bytes are not.
    """
    pieces = [
        bytes(token["bytes"])
        if token.get("bytes") is not None
        else str(token["token"]).encode("utf-8", "surrogatepass")
        for token in tokens
    ]
    return [0, *accumulate(map(len, pieces))], b"".join(pieces)


def _bytes_before(text: str, character: int) -> int:
    return len(text[:character].encode("utf-8", "surrogatepass"))


def json_spans(
    text: str, data: Mapping[str, Any] | None = None
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


def _candidates(text: str) -> list[Found]:
    """Return the objects that may be what was read, in the order in which they count."""
    if whole := whole_object(text):
        return [whole]
    thoughts = answer_of(text).start
    return objects(text, thoughts).found + (objects(text).found if thoughts else [])


def _says(value: Any, data: Any) -> bool:
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
