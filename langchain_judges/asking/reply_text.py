"""The grammar of a reply, and how probable its parts are.

Behind marked thoughts a reply is one JSON object, in a code block as one likes and behind
nothing but a harmless opening, or one line `Field: label`. Nothing else is an answer: words
around it may take it back, refuse it or quote it, and no list of such words is complete.

The confidence of a part is the length-normalised probability of Wu et al. 2023 (DRPE),
equation 3: `P = exp(mean of the log-probabilities of the part's K tokens)`.
"""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Self

from langchain_core.messages import AIMessage

# Levels of an object; no reply shape has ten, and code that recurses must not run out.
_DEEPEST = 50
# What models of all makers put around their thoughts: `<think>`, `[THINK]`, `◁think▷`, and
# Harmony's `<|channel|>`, which ends nothing by itself.
_THOUGHT_MARK = re.compile(
    r"(?:[<\u25c1]|\[(?=/?[A-Za-z_]{3,30}\]))(?P<end>/?)(?P<name>[A-Za-z][\w:-]{0,40})[>\u25b7\]]"
    r"|<\|(?P<special>[^|<>]{1,40})\|>"
)
# Part of each name of such marks; other ones may hold a quotation or another verdict.
_THOUGHT_NAME = re.compile(
    "analysis|cot$|deliberat|explanation|monologue|rationale|reason|reflect|scratch|think|thought",
    re.IGNORECASE,
)
# A reply by names that no judged text has: "the response" would announce a quotation.
_NAMED = (
    "(?:(?:the|your|a) )?(?:final |requested |valid )?"
    "(?:json(?: (?:object|output|response|reply))?|judge?ment|verdict|evaluation|assessment"
    "|final answer)"
    "|my (?:final )?(?:answer|reply|response|judge?ment|verdict|evaluation|assessment|vote)"
)
_MARKUP = r"[\s*_`#\ufeff]*"
# All that may stand before an object; none of it says anything about the verdict.
_PREAMBLE = re.compile(
    rf"{_MARKUP}(?:(?:sure|certainly|of course|absolutely|okay|ok)[,.!:]*{_MARKUP})?"
    rf"(?:(?:here(?: is| are|['’]s) (?:{_NAMED})|here (?:you are|you go|it is)|{_NAMED})"
    rf"(?: (?:in|as) json(?: format)?| as requested)?[.!:]*{_MARKUP})?(?:```(?:json)?)?\s*",
    re.IGNORECASE,
)
# Less is no probability that a number can hold; some servers write -9999 for "not offered".
_LEAST = -700.0
_LONGEST_OPENING = 200


_POINT_ZERO = re.compile(r"-?[0-9]{1,15}\.0{1,3}")
_ASCII = frozenset(map(chr, range(128)))
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-9a-f]{2})", re.IGNORECASE)
# Characters from start to before end.
TextSpan = tuple[int, int]
# A string, the rest of a value, or a mark between values.
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}\[\],:"]+|[{}\[\],]', re.DOTALL)


def _members(members: list[tuple[str, object]]) -> dict[str, object]:
    if len(values := dict(members)) < len(members):
        raise ValueError("a member is given twice")
    return values


def _json_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or (number.is_integer() and not _POINT_ZERO.fullmatch(text)):
        raise ValueError(f"{text[:40]} is no number that can be kept as it is written")
    return number


def _constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


# Reads JSON as `json` does, but no member twice and no number that it would have to change.
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_members, parse_float=_json_number, parse_constant=_constant
)


class TextObject(NamedTuple):
    """An object in a text, and where it begins."""

    start: int
    value: dict[str, Any]


def too_deep(data: object, levels: int = _DEEPEST) -> bool:
    """Whether data is nested deeper than any reply that is asked for."""
    if not levels:
        return True
    if isinstance(data, dict):
        data = [*data.values()]
    return isinstance(data, list) and any(too_deep(part, levels - 1) for part in data)


def is_opening(text: str) -> bool:
    """Whether a text may precede an object, or is empty."""
    return len(text) <= _LONGEST_OPENING and bool(_PREAMBLE.fullmatch(text))


def object_of(text: str, at: int = 0) -> TextObject:
    """The object that a text is from a place on.

    Raises:
        ValueError: It is no object, or more than one.
    """
    start = text.find("{", at)
    if start < 0:
        raise ValueError("it has no object")
    if not is_opening(text[at:start]):
        raise ValueError("words stand before its object")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text[end:].strip() not in {"", "```"}:
        raise ValueError("more stands behind its object")
    if too_deep(value):
        raise ValueError("it is nested too deep")
    return TextObject(start, value)


def answer_start(text: str, material: Iterable[str] = ()) -> int | None:
    """Start of the answer after a model's thoughts; None if it is ambiguous.

    Thoughts stand at the beginning, in marks that close. Some servers leave out the first:
    then what closes `think` is the end of the thoughts.

    Args:
        text: The reply.
        material: The judged texts: where one names what closes the thoughts, in whatever
            writing, the thoughts may be quoting it.
    """
    begin = len(text) - len(text.lstrip())
    opening = _THOUGHT_MARK.match(text, begin)
    if opening and (opening["end"] or opening["special"]):
        return None
    is_thought = opening and _THOUGHT_NAME.search(opening["name"])
    if not is_thought and (opening or text.startswith(("{", "[", "`"), begin)):
        return begin
    name = opening["name"] if opening else "think"
    closing = re.search(rf"[<\u25c1\[]/{re.escape(name)}[>\u25b7\]]", text, re.IGNORECASE)
    if not closing:
        return None if opening else begin
    mark = re.compile(rf"/\W{{0,3}}{re.escape(name)}", re.IGNORECASE)
    return None if any(mark.search(_decoded(each)) for each in material) else closing.end()


def _decoded(text: str) -> str:
    """A text as a model may repeat it, without entities, escapes and odd letters."""
    plain = html.unescape(_ESCAPED.sub(lambda m: chr(int(m[1] or m[2] or m[3], 16)), text))
    # Letter by letter: some become eighteen, and none that is asked for comes of several.
    odd = {ord(each): unicodedata.normalize("NFKC", each) for each in {*plain} - _ASCII}
    return plain.translate({each: form for each, form in odd.items() if form.isascii()})


class LabelForms(NamedTuple):
    """Forms of a label in plain words.

    Attributes:
        fields: What a field may be called that holds it; `my final` and the like may stand
            before.
        nouns: What may stand before it, such as `response`.
        labels: Labels by how they may be written, in lower case.
    """

    fields: Collection[str]
    nouns: Collection[str]
    labels: Mapping[str, str]


# Of the two slots of a pair, and a tie.
SLOT_FORMS = LabelForms(
    fields=(
        *("preferred", "preference", "more consistent"),
        *("verdict", "winner", "choice", "answer", "better"),
    ),
    nouns=("response", "summary", "passage", "candidate", "text", "option", "table"),
    # Letters are what models write that have read many comparisons of an A and a B.
    labels={"1": "1", "2": "2", "a": "1", "b": "2", "tie": "tie"},
)


class SpokenLabel(NamedTuple):
    """A label in plain words, and its position."""

    label: str
    span: tuple[int, int]


def spoken_label(text: str, forms: LabelForms) -> SpokenLabel | None:
    """The label of a reply that is, behind its thoughts, one line `Field: label`."""
    key = tuple(forms.fields), tuple(forms.nouns), tuple(forms.labels)
    found = _label_line_pattern(*key).fullmatch(text, answer_start(text) or 0)
    return SpokenLabel(forms.labels[found[1].casefold()], found.span(1)) if found else None


@lru_cache(256)
def _label_line_pattern(
    fields: Sequence[str], nouns: Sequence[str], labels: Sequence[str]
) -> re.Pattern[str]:
    """The pattern of such a line; its one group is the label.

    Repetitions that could share characters give none back, or long lines would take hours.
    """
    field, noun, label = ("|".join(map(re.escape, each)) for each in (fields, nouns, labels))
    between = r"[ \t*_`]*"
    return re.compile(
        rf"\s*+[ \t*_`#]*(?:(?:my|the|final|overall) )*(?:{field}){between}:{between}+"
        rf"(?:(?:the )?(?:{noun}) )?[*_`\"“'\[(]*({label})[*_`\"”'\])]*+[.!]?{between}+\s*+",
        re.IGNORECASE,
    )


class Confidence(NamedTuple):
    """Probability of a part of a reply, and its number of tokens."""

    value: float
    tokens: int


@dataclass(frozen=True)
class Spelling:
    """The tokens of a reply, and which bytes of it each of them spells.

    A character of several bytes may be split over tokens, whose texts are then broken. Of
    hundreds of tokens only those are read whose probability is asked for.

    Attributes:
        text: The reply.
        tokens: As the provider reports them.
        pieces: What each token spells.
        start: The byte of the pieces at which the reply begins.
        edges: The bytes at which tokens begin, and where the last one ends.
    """

    text: str
    tokens: Sequence[Mapping[str, Any]]
    pieces: Sequence[bytes]
    start: int
    edges: Sequence[int]

    @classmethod
    def of(cls, message: AIMessage) -> Self | None:
        """Positions of a reply's tokens in its text.

        They may say more than the reply, such as a code fence that the provider cut off. None
        where they do not spell it, or the provider reports none in the known form.
        """
        logprobs, text = message.response_metadata.get("logprobs"), str(message.text)
        tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
        try:
            pieces = [_piece(token) for token in tokens or ()]
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        start = b"".join(pieces).find(_utf8(text))
        edges = list(accumulate(map(len, pieces), initial=0))
        return cls(text, tokens or (), pieces, start, edges) if pieces and start >= 0 else None

    def confidence(self, spans: Sequence[TextSpan]) -> Confidence | None:
        """The confidence of some characters of the reply (DRPE, equation 3).

        Args:
            spans: The characters of the reply that count. A token counts if any character of
                it does, however little; none counts twice.

        Returns:
            The confidence in (0, 1] and its number of tokens; None if the spans are empty, or
            a token has no probability.
        """
        numbers: set[int] = set()
        for start, end in spans:
            if start < end:
                first, last = self._place(start), self._place(end)
                begin = bisect_right(self.edges, first) - 1
                numbers.update(range(begin, bisect_left(self.edges, last)))
        known = [each for n in numbers if (each := _logprob(self.tokens[n])) is not None]
        if not numbers or len(known) < len(numbers):
            return None
        return Confidence(math.exp(math.fsum(known) / len(known)), len(known))

    def token_at(self, character: int) -> Token | None:
        """The token that spells a character; None where its form is not known."""
        place = self._place(character)
        number = bisect_right(self.edges, place) - 1
        before = self.pieces[number][: place - self.edges[number]].decode(errors="replace")
        token = self.tokens[number]
        try:
            listed = token.get("top_logprobs") or ()
            offered = [(str(each["token"]), _logprob(each)) for each in listed]
        except (AttributeError, KeyError, TypeError):
            return None
        logprob = _logprob(token)
        known = [(name, number) for name, number in offered if number is not None]
        if logprob is None or len(known) < len(offered):
            return None
        return Token(before, logprob, known)

    def _place(self, character: int) -> int:
        return self.start + len(_utf8(self.text[:character]))


def _piece(token: Mapping[str, Any]) -> bytes:
    data = token.get("bytes")
    return bytes(data) if isinstance(data, list) else _utf8(token["token"])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Token(NamedTuple):
    """The token that spells a character of a reply.

    Attributes:
        before: What it spells before that character.
        logprob: Its log-probability.
        offered: The tokens that might have stood there, with their log-probabilities.
    """

    before: str
    logprob: float
    offered: Sequence[tuple[str, float]]


def _logprob(parts: Mapping[str, object]) -> float | None:
    """The log-probability of a token; of what never occurs, the least that counts."""
    number = parts.get("logprob")
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    # Not a number compares as false; a hair above zero is rounding.
    return min(0.0, max(_LEAST, number)) if number <= 1e-3 else None


def json_spans(text: str) -> dict[tuple[str | int, ...], TextSpan]:
    """Position of each value in a reply's object, by its path.

    The span of a string leaves out its quotes; escapes inside it count as they are
    written.

    >>> json_spans('{"role_1": {"vote": "1"}}')
    {('role_1', 'vote'): (21, 22), ('role_1',): (11, 24), (): (0, 25)}
    """
    try:
        return _spans(text, object_of(text, answer_start(text) or 0).start)
    except ValueError:
        return {}


def _spans(text: str, at: int) -> dict[tuple[str | int, ...], TextSpan]:
    """The spans of the values of the object that begins at a place."""
    spans: dict[tuple[str | int, ...], TextSpan] = {}
    # Of each object or list that is open: where it begins, and the key or number of its value.
    opened: list[tuple[int, str | int | None]] = []
    for token in _JSON_TOKEN.finditer(text, at):
        mark, start, end = token[0], *token.span()
        if mark in "{[":
            opened.append((start, None if mark == "{" else 0))
            continue
        begin, key = opened.pop()
        path = tuple(str(name) if isinstance(name, str) else name or 0 for _, name in opened)
        if mark in "}]":
            spans.setdefault(path, (begin, end))
            if not opened:
                break
            continue
        if mark == ",":
            key = key + 1 if isinstance(key, int) else None
        elif key is None:
            key = str(json.loads(mark, strict=False))
        else:
            quotes = mark.startswith('"')
            spans.setdefault((*path, key), (start + quotes, end - quotes))
        opened.append((begin, key))
    return spans
