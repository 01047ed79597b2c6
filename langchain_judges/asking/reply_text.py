"""What stands in a reply: JSON objects, thoughts before the answer, labels, and how probable.

Strict on purpose: a label counts only if a whole line says it, and a reply that says two says
none. Lines are taken apart by splitting, in time linear in their length: what a model writes
must not be able to run a search pattern for hours.

The confidence of a part is the length-normalised probability of Wu et al. 2023 (DRPE),
equation 3: `P = exp(mean of the log-probabilities of the part's K tokens)`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.rows.texts import without_lone_surrogates

# Braces tried as the start of an object; a text full of them must not cost minutes.
_MOST_OBJECTS = 100
# Levels of an object; no reply shape has ten, and code that recurses must not run out.
_DEEPEST = 50
# What models of all makers put around their thoughts: `<think>`, `[THINK]`, `◁think▷`, and
# Harmony's `<|channel|>`, which ends nothing by itself.
_WRAPPER = re.compile(
    r"(?:[<\u25c1]|\[(?=/?[A-Za-z_]{3,30}\]))(?P<end>/?)(?P<name>[A-Za-z][\w:-]{0,40})[>\u25b7\]]"
    r"|<\|(?P<special>[^|<>]{1,40})\|>"
)
_WRAPPED = re.compile(
    r"\s*```(?:json)?\s*(?P<inner>\{.*\})\s*```\s*", re.DOTALL | re.IGNORECASE
)


class _Contradiction:
    """Stands for the values of a member that an object gives twice: it fits no shape."""

    def __repr__(self) -> str:
        return "two different values"


class TextObject(NamedTuple):
    """An object in a text, and where it stands there."""

    start: int
    end: int
    value: dict[str, object]


class Objects(NamedTuple):
    """The outermost objects of a text, in order.

    Attributes:
        complete: Those that can be read.
        broken: Whether a brace begins none: it may have been cut, and an object inside of it
            is no answer; or whether there are more braces than were tried.
    """

    complete: list[TextObject]
    broken: bool


def _members(members: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object's members; where one is given twice, both must say the same."""
    values: dict[str, object] = {}
    for name, value in members:
        values[name] = value if values.get(name, value) == value else _Contradiction()
    return values


# Reads JSON as `json` does, but neither contradictions nor numbers that cannot be written.
DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_members, parse_constant=lambda name: None
)


def too_deep(data: object, levels: int = _DEEPEST) -> bool:
    """Say whether data is nested deeper than any reply that is asked for."""
    if not levels:
        return True
    if isinstance(data, dict):
        data = [*data.values()]
    return isinstance(data, list) and any(too_deep(part, levels - 1) for part in data)


def object_at(text: str, at: int) -> TextObject | None:
    """Return the object that begins at a brace; None if there is none that can be read."""
    try:
        value, end = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value) else TextObject(at, end, without_lone_surrogates(value))


def whole_object(text: str) -> TextObject | None:
    """Return the object that a text is, alone or in a code block; None if it says more."""
    block = _WRAPPED.fullmatch(text)
    start, end = block.span("inner") if block else (0, len(text))
    start += len(text[start:end]) - len(text[start:end].lstrip())
    one = object_at(text, start) if text.startswith("{", start) else None
    return one if one and not text[one.end : end].strip() else None


def objects(text: str, at: int = 0) -> Objects:
    """Return the outermost JSON objects in a text, from a place on."""
    results: list[TextObject] = []
    broken = False
    at = text.find("{", at)
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        one = object_at(text, at)
        if one:
            results.append(one)
        broken = broken or one is None
        at = text.find("{", one.end if one else at + 1)
    return Objects(results, broken or at >= 0)


def without(text: str, objects_in: Sequence[TextObject]) -> str:
    """Return a text with blanks for some of its objects."""
    parts, at = [], 0
    for one in objects_in:
        parts += [text[at : one.start], " " * (one.end - one.start)]
        at = one.end
    return "".join([*parts, text[at:]])


def answer_start(text: str) -> int | None:
    """Return where the answer begins behind a model's thoughts; None if they do not end.

    Thoughts stand at the beginning, in a wrapper that closes. Some servers leave out its
    opening: then what closes `think` alone is the end of the thoughts.

    Args:
        text: The reply; not one that is a JSON object as a whole.
    """
    begin = len(text) - len(text.lstrip())
    opening = _WRAPPER.match(text, begin)
    ends = [each for each in wrappers(text) if each["end"]]
    if opening is None:
        ends = [each for each in ends if "think" in each["name"].casefold()]
        if ends and text.startswith(("{", "[", "`"), begin):
            return None  # a quotation in what begins like JSON
        return ends[0].end() if len(ends) == 1 else 0
    if opening["end"] or opening["special"]:
        return None
    name = opening["name"].casefold()
    closing = [each for each in ends if each["name"].casefold() == name]
    # More than one: the thoughts may be quoting what closes them.
    return closing[0].end() if len(closing) == 1 else None


def wrappers(text: str) -> list[re.Match[str]]:
    """Return what may open or close thoughts outside of JSON objects."""
    found = list(_WRAPPER.finditer(text))
    spans = [(one.start, one.end) for one in objects(text).complete] if found else []
    return [m for m in found if not any(start <= m.start() < end for start, end in spans)]


def has_wrappers(text: str) -> bool:
    """Say whether a text holds marks like those around thoughts."""
    return any("think" in each[0].casefold() for each in _WRAPPER.finditer(text))


def repeats(value: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Say whether an object says nothing, by letters and digits, that another does not."""
    return bool(value) and all(
        name in other and (part == other[name] or letters(part) in letters(other[name]))
        for name, part in value.items()
    )


def is_quotation(one: TextObject, answer: str, material: Sequence[str]) -> bool:
    """Say whether an object stands in what the model was shown, reformatted even."""
    written = letters(answer[one.start : one.end])
    shown = (other.value for text in material for other in objects(text).complete)
    is_shown = any(written in letters(text) for text in material)
    return is_shown or any(repeats(one.value, other) for other in shown)


def letters(data: object) -> str:
    """Return the letters and digits of data, in one case: what a quotation keeps."""
    plain = unicodedata.normalize("NFKC", data if isinstance(data, str) else str(data))
    return "".join(filter(str.isalnum, plain.casefold()))


# What emphasis, code and headings put around words.
_MARKUP = " \t*_`#"
_AROUND = _MARKUP + "\"'“”‘’.!()[]"
_QUOTING = ('"', "'", "“", "‘", "«", "„", ">")
# Characters of a line that may say a label; a longer one is an explanation.
_LONGEST = 200
# Lines of a reply in plain words; nobody looks for one label in more.
_MOST_LINES = 2000
# Letters from which a line is known again; a label alone is shorter.
_TELLING = 6
_LEADING = re.compile(r"^((my|the|final|overall) )*")
_LISTED = re.compile(r"\W{0,3}(?:\d{1,2}|[A-Za-z])[.)](?:\s|$)")


class LabelForms(NamedTuple):
    """How a label may be written in plain words.

    Attributes:
        fields: What a field may be called that holds it; `my final` and the like may stand
            before.
        nouns: What may stand before it, such as `response`.
        labels: Labels by how they may be written, in lower case.
        slack: Characters that may stand between the name of a field and its colon.
        alone: Whether the last line may be a label and nothing else.
    """

    fields: Collection[str]
    nouns: Collection[str]
    labels: Mapping[str, str]
    slack: int
    alone: bool = True


# Of the two slots of a pair, and a tie.
SLOTS = LabelForms(
    fields=(
        *("preferred", "preference", "more consistent"),
        *("verdict", "winner", "choice", "answer", "better"),
    ),
    nouns=("response", "summary", "passage", "candidate", "text", "option", "table"),
    # Letters are what models write that have read many comparisons of an A and a B.
    labels={"1": "1", "2": "2", "a": "1", "b": "2", "tie": "tie"},
    slack=40,
)


class SpokenLabel(NamedTuple):
    """A label in plain words, where it stands, and what was said before its line."""

    label: str
    span: tuple[int, int]
    before: str


def spoken_label(text: str, forms: LabelForms) -> SpokenLabel | None:
    """Return the label in the fields of a reply, else in a last line that is nothing else.

    Every field counts, and they must agree; one that names several labels, or anything else,
    is none.
    """
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        return None
    stated, start = list[SpokenLabel | None](), 0
    for line in lines:
        if (at := _behind_field(line, forms)) is not None:
            stated.append(_label_in(text, start, start + at, start + len(line), forms))
        start += len(line) + 1
    if not stated and forms.alone and _may_be_label(full := [*filter(str.strip, lines)]):
        start = text.rfind(full[-1])
        stated = [_label_in(text, start, start, start + len(full[-1]), forms)]
    found = stated[-1] if stated else None
    agreed = all(each and found and each.label == found.label for each in stated)
    return found if agreed else None


def _behind_field(line: str, forms: LabelForms) -> int | None:
    """Return where the value begins on a line `Name: value`; None for any other line."""
    head, colon, _ = line[:_LONGEST].partition(":")
    # A field in quotes is somebody else's, or a piece of broken JSON.
    if not colon or head.strip(_MARKUP).startswith(_QUOTING):
        return None
    phrase = _LEADING.sub("", " ".join(re.findall(r"[^\W_]+", head.casefold())))
    name = next((n for n in forms.fields if f"{phrase} ".startswith(f"{n} ")), None)
    return None if name is None or len(phrase) - len(name) > forms.slack else len(head) + 1


def _label_in(text: str, line: int, at: int, end: int, forms: LabelForms) -> SpokenLabel | None:
    """Return the label that a piece of a line consists of; None if it says anything else."""
    piece = text[at:end]
    if len(piece) > _LONGEST or re.search(r"(?<!\d)\.\d", piece):
        return None  # Without its point `.5` would be the label 5.
    words = [word.strip(_AROUND) for word in piece.strip(_AROUND).split()]
    if words and words[0].casefold() == "the":
        words.pop(0)
    if len(words) > 1 and words[0].casefold() in forms.nouns:
        words.pop(0)
    label = forms.labels.get(" ".join(words).casefold())
    if label is None:
        return None
    stop = text.rfind(words[-1], at, end) + len(words[-1])
    return SpokenLabel(label, (text.rfind(words[0], at, stop), stop), text[:line].strip())


def _may_be_label(lines: Sequence[str]) -> bool:
    """Say whether the last line may be a label and nothing else.

    Behind a line that ends in a colon, or behind a list, it may be a quotation or the number
    of a next point.
    """
    if not lines:
        return False
    *earlier, last = lines
    words = last.strip(_MARKUP)
    has_brackets = words.startswith("[[") and words.endswith(("]]", "]]."))
    if not has_brackets and any(bracket in words for bracket in "[](){}"):
        return False
    if earlier and earlier[-1].rstrip(_MARKUP).endswith(":"):
        return False
    return not any(_LISTED.match(other.strip()) for other in earlier)


def own_words(text: str, material: Sequence[str]) -> str:
    """Return a reply with blanks for the lines that stand in what the model was shown.

    A line that repeats a judged text is no statement of the model's own, whichever label it
    names. Single labels are left: a judged text may well be `2`.

    Args:
        text: The reply.
        material: The texts that the model may be quoting.
    """
    source = letters(" ".join(material))
    lines = text.split("\n")
    if not source or len(lines) > _MOST_LINES:
        return text
    before = ""
    for number, line in enumerate(lines):
        words = letters(line) if len(line) <= _LONGEST else ""
        # Of a short line the one before decides: both together are a quotation.
        phrase = words if len(words) >= _TELLING else before + words
        if words and len(phrase) >= _TELLING and phrase in source:
            lines[number] = " " * len(line)
        before = words or before
    return "\n".join(lines)


# Characters from start to before end.
Span = tuple[int, int]


class Confidence(NamedTuple):
    """How probable a part of a reply was, and of how many tokens it consists."""

    value: float
    tokens: int


@dataclass(frozen=True)
class Spelling:
    """The tokens of a reply, and which bytes of it each of them spells.

    A character of several bytes may be split over tokens, whose texts are then broken.

    Attributes:
        text: The reply.
        pieces: What each token spells.
        logprobs: Of each token.
        start: The byte of the pieces at which the reply begins.
        edges: The bytes at which tokens begin, and where the last one ends.
    """

    text: str
    pieces: Sequence[bytes]
    logprobs: Sequence[float]
    start: int
    edges: Sequence[int]

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
                begin = bisect_right(self.edges, first) - 1
                tokens.update(range(begin, bisect_left(self.edges, last)))
        if not tokens:
            return None
        total = math.fsum([min(0.0, self.logprobs[token]) for token in tokens])
        return Confidence(math.exp(total / len(tokens)), len(tokens))

    def token_at(self, character: int) -> tuple[int, str]:
        """Return which token spells a character, and what it spells before it."""
        place = self._place(character)
        number = bisect_right(self.edges, place) - 1
        before = self.pieces[number][: place - self.edges[number]]
        return number, before.decode(errors="replace")

    def _place(self, character: int) -> int:
        return self.start + len(_bytes(self.text[:character]))


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
    read = [_read_token(token) for token in tokens]
    known = [each for each in read if each is not None]
    if not read or len(known) < len(read):
        return None
    pieces = [piece for piece, _ in known]
    start = b"".join(pieces).find(_bytes(text))
    edges = list(accumulate(map(len, pieces), initial=0))
    return Spelling(text, pieces, [n for _, n in known], start, edges) if start >= 0 else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def reply_tokens(message: AIMessage) -> list[Any]:
    """Return the tokens of a reply as its provider reported them; empty if it did not."""
    logprobs = message.response_metadata.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return content if isinstance(content, list) else []


def _read_token(token: Any) -> tuple[bytes, float] | None:
    """Return the bytes that a token spells and its log-probability, as far as it has them."""
    parts: dict[str, Any] = token if isinstance(token, dict) else {}
    data: Any = parts.get("bytes")
    text: Any = parts.get("token")
    logprob: Any = parts.get("logprob")
    # Not a number compares as false; a hair above zero is rounding.
    if type(logprob) not in (int, float) or not logprob <= 1e-3:
        return None
    try:
        piece = bytes(data) if isinstance(data, list) else _bytes(text)
    except (TypeError, ValueError, AttributeError):  # no numbers, or not of bytes; no text
        return None
    return piece, logprob


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
    whole = whole_object(text)
    thoughts = 0 if whole else answer_start(text) or 0
    found = [whole] if whole else objects(text, thoughts).complete
    found += objects(text).complete if thoughts else []
    fitting = (one for one in found if data is None or _says(one.value, data))
    return next((_spans(text, one.start) for one in fitting), {})


def _says(value: object, data: object) -> bool:
    """Say whether a value is what was read; it may say more, and the reading fills gaps."""
    if isinstance(data, Mapping) and isinstance(value, Mapping):
        return all(_says(value.get(key), part) for key, part in data.items())
    return bool(value == data)


# A string, the rest of a value, or a mark between values.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}\[\],:"]+|[{}\[\],]', re.DOTALL)


def _spans(text: str, at: int) -> dict[tuple[str | int, ...], Span]:
    """Return the spans of the values of the object that begins at a place."""
    spans: dict[tuple[str | int, ...], Span] = {}
    # Of each object or list that is open: where it begins, and the key or number of its value.
    opened: list[tuple[int, str | int | None]] = []
    for token in _TOKEN.finditer(text, at):
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
