"""A label in plain words, and how probable the parts of a reply are.

The confidence of a part is the length-normalised probability of Wu et al. 2023 (DRPE),
equation 3: `P = exp(mean of the log-probabilities of the part's K tokens)`.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Self

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import REPLY_NAMES, ReplyData, answer_start, object_of

# Less is no probability that a number can hold; some servers write -9999 for "not offered".
_LEAST = -700.0
# Characters from start to before end.
TextSpan = tuple[int, int]
# A string, the rest of a value, or a mark between values.
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}\[\],:"]+|[{}\[\],]', re.DOTALL)


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
SLOT_FORMS = LabelForms(**REPLY_NAMES["slot_forms"])


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
            if isinstance(tokens, str):  # as replies of a `ChatOpenAI` keep them
                tokens = json.loads(tokens)
            pieces = [_piece(token) for token in tokens or ()]
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
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
    if not isinstance(number, float) and type(number) is not int:
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
        at = object_of(text, answer_start(text) or 0).start
    except ValueError:
        return {}
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


class ChoiceFields(NamedTuple):
    """The fields of a choice and its reason in a reply, as JSON or in plain words.

    Attributes:
        reason: The field of the reason.
        label: The field of the choice.
    """

    reason: str = "explanation"
    label: str = "preference"

    def parse(self, text: str) -> ReplyData | None:
        """Read a reply in plain words into the shape that JSON replies have."""
        choice = spoken_label(text, SLOT_FORMS)
        return {self.reason: "", self.label: choice.label} if choice else None

    def measure(self, message: AIMessage, data: Mapping[str, object]) -> dict[str, float]:
        """The probabilities of a reply's label, and of reason and label together.

        Each is the length-normalised probability of its own tokens; what the model gave no
        log-probabilities for is left out.
        """
        if (letters := Spelling.of(message)) is None:
            return {}
        spans = self._spans(letters.text, data)
        measured = {"label": letters.confidence(spans[-1:]), "joint": letters.confidence(spans)}
        return {name: confidence.value for name, confidence in measured.items() if confidence}

    def _spans(self, text: str, data: Mapping[str, object]) -> list[TextSpan]:
        """Positions of the reason and, last, the label; empty without a label."""
        places = json_spans(text)
        reported = str(data.get(self.label))
        if (self.label,) in places:
            if reported not in text[slice(*places[self.label,])].casefold():
                return []
            return [places[path] for path in ((self.reason,), (self.label,)) if path in places]
        choice = spoken_label(text, SLOT_FORMS)
        return [choice.span] if choice and choice.label == reported else []
