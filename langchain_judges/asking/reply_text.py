"""What stands in a reply: JSON objects, thoughts before the answer, labels in plain words.

Strict on purpose: a label counts only if a whole line says it, and a reply that says two says
none. Lines are taken apart by splitting, in time linear in their length: what a model writes
must not be able to run a search pattern for hours.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from langchain_judges.rows.texts import without_lone_surrogates

_MOST_OBJECTS = 100
"""Braces tried as the start of an object; a text full of them must not cost minutes."""
_DEEPEST = 50
"""Levels of an object; no reply shape has ten, and code that recurses must not run out."""
_LONGEST_NUMBER = 300
"""Digits of a whole number; Python refuses to read some thousands."""
_WRAPPER = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][\w:-]{0,40})>"
    r"|\[(?P<end2>/?)(?P<name2>[A-Za-z_]{3,30})\]"
    r"|\u25c1(?P<end3>/?)(?P<name3>\w{2,30})\u25b7"
    r"|<\|(?P<name4>[^|<>]{1,40})\|>"
)
"""What models of all makers put around their thoughts: `<think>`, `[THINK]`, `◁think▷`, and
Harmony's `<|channel|>`, which ends nothing by itself."""
_WRAPPED = re.compile(r"```(?:json)?\s*(?P<inner>\{.*\})\s*```", re.DOTALL | re.IGNORECASE)


class _Contradiction:
    """Stands for the values of a member that an object gives twice, differently."""

    def __repr__(self) -> str:
        return "two different values"


CONTRADICTION = _Contradiction()
"""The value of a member that an object gives twice, differently; it fits no shape."""


class TextObject(NamedTuple):
    """An object in a text, and where it stands there."""

    start: int
    end: int
    value: dict[str, object]


class Objects(NamedTuple):
    """The outermost objects of a text, in order."""

    complete: list[TextObject]
    broken: bool
    """Whether a brace begins none: it may have been cut, and an object inside of it is no
    answer; or whether there are more braces than were tried."""


def _members(members: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object's members; where one is given twice, both must say the same."""
    values: dict[str, object] = {}
    for name, value in members:
        same = name not in values or values[name] == value
        values[name] = value if same else CONTRADICTION
    return values


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_members,
    parse_int=_whole_number,
    parse_constant=lambda name: None,
)
"""Reads JSON as `json` does, but neither contradictions nor numbers that cannot be written."""


def too_deep(data: object) -> bool:
    """Say whether data is nested deeper than any reply that is asked for."""
    level = [data]
    for _ in range(_DEEPEST):
        level = [
            part
            for value in level
            if isinstance(value, dict | list)
            for part in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True


def object_at(text: str, at: int) -> TextObject | None:
    """Return the object that begins at a brace; None if there is none that can be read."""
    try:
        value, end = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value) else TextObject(at, end, without_lone_surrogates(value))


def whole_object(text: str) -> TextObject | None:
    """Return the object that a text is, alone or in a code block; None if it says more."""
    stripped = text.rstrip()
    block = _WRAPPED.fullmatch(stripped.lstrip())
    start = len(stripped) - len(stripped.lstrip())
    end = len(stripped)
    if block:
        start, end = start + block.start("inner"), start + block.end("inner")
    if not stripped.startswith("{", start):
        return None
    one = object_at(stripped, start)
    return one if one and one.end == end else None


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
    if opening is None:
        ends = [each for each in wrappers(text) if _is_end(each) and "think" in _named(each)]
        if ends and text.startswith(("{", "[", "`"), begin):
            return None  # a quotation in what begins like JSON
        return ends[0].end() if len(ends) == 1 else 0
    if _is_end(opening) or opening["name4"]:
        return None
    closing = [
        each
        for each in wrappers(text)
        if _is_end(each) and _named(each) == _named(opening) and each.start() > begin
    ]
    # More than one: the thoughts may be quoting what closes them.
    return closing[0].end() if len(closing) == 1 else None


def _is_end(wrapper: re.Match[str]) -> bool:
    return bool(wrapper["end"] or wrapper["end2"] or wrapper["end3"])


def _named(wrapper: re.Match[str]) -> str:
    names = (wrapper["name"], wrapper["name2"], wrapper["name3"], wrapper["name4"])
    return str(next(filter(None, names))).casefold()


def wrappers(text: str) -> list[re.Match[str]]:
    """Return what may open or close thoughts outside of JSON objects."""
    found = list(_WRAPPER.finditer(text))
    spans = objects(text).complete if found else []
    ends = [0, *(one.end for one in spans)]
    starts = [one.start for one in spans]
    # The end of the last object that begins before a wrapper; none of them overlap.
    return [each for each in found if ends[bisect(starts, each.start())] <= each.start()]


def has_wrappers(text: str) -> bool:
    """Say whether a text holds marks like those around thoughts."""
    return any("think" in _named(each) for each in _WRAPPER.finditer(text))


def repeats(value: Mapping[str, object], other: object) -> bool:
    """Say whether an object says nothing, by letters and digits, that another does not."""
    return (
        isinstance(other, Mapping)
        and bool(value)
        and all(
            name in other and (part == other[name] or letters(part) in letters(other[name]))
            for name, part in value.items()
        )
    )


def letters(data: object) -> str:
    """Return the letters and digits of data, in one case: what a quotation keeps."""
    plain = unicodedata.normalize("NFKC", data if isinstance(data, str) else str(data))
    return "".join(filter(str.isalnum, plain.casefold()))


MARKUP = " \t*_`#"
"""What emphasis, code and headings put around words."""
_AROUND = MARKUP + "\"'“”‘’.!()[]"
_QUOTING = ('"', "'", "“", "‘", "«", "„", ">")
_LONGEST = 200
"""Characters of a line that may say a label; a longer one is an explanation."""
_MOST_LINES = 2000
"""Lines of a reply in plain words; nobody looks for one label in more."""
_LEADING = {"my", "the", "final", "overall"}
_LISTED = re.compile(r"\W{0,3}(?:\d{1,2}|[A-Za-z])[.)](?:\s|$)")
_INVISIBLE = re.compile("[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Line(NamedTuple):
    """A line of a reply, and where it begins."""

    text: str
    start: int


class Stated(NamedTuple):
    """A label that a line states, where the label stands, and where the line begins."""

    label: str
    at: int
    end: int
    line: int


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text that are not empty; none of a text with thousands."""
    lines: list[Line] = []
    at = 0
    for line in text.split("\n"):
        if line.strip():
            lines.append(Line(line, at))
        at += len(line) + 1
        if len(lines) > _MOST_LINES:
            return []
    return lines


def fields(lines: Sequence[Line], names: Collection[str], slack: int) -> Iterator[Line]:
    """Yield what stands behind `Name:` on every line that begins so.

    Args:
        lines: The lines of a reply.
        names: What the field may be called, in lower case; `my`, `the`, `final` and
            `overall` may stand before it.
        slack: Characters that may stand between the name and the colon.
    """
    for line in lines:
        head, colon, value = line.text[:_LONGEST].partition(":")
        # A field in quotes is somebody else's, or a piece of broken JSON.
        if not colon or head.strip(MARKUP).startswith(_QUOTING):
            continue
        words = re.findall(r"[^\W_]+", head.casefold())
        while words and words[0] in _LEADING:
            words.pop(0)
        phrase = " ".join(words)
        name = next((n for n in names if f"{phrase} ".startswith(f"{n} ")), None)
        if name is not None and len(phrase) - len(name) <= slack:
            whole = value if len(line.text) <= _LONGEST else line.text[len(head) + 1 :]
            yield Line(whole, line.start + len(head) + 1)


def label_in(
    piece: Line, labels: Mapping[str, str], nouns: Collection[str] = ()
) -> Stated | None:
    """Return the label that a piece of a line consists of, or None.

    Args:
        piece: The piece.
        labels: Labels by how they may be written, in lower case.
        nouns: Words that may stand before a label, such as `response`; `the` may too.
    """
    bare = piece.text.strip(_AROUND) if len(piece.text) <= _LONGEST else ""
    if re.search(r"(?<!\d)\.\d", piece.text):
        return None  # Without its point `.5` would be the label 5.
    words = [word.strip(_AROUND) for word in bare.split()]
    if words and words[0].casefold() == "the":
        words.pop(0)
    if len(words) > 1 and words[0].casefold() in nouns:
        words.pop(0)
    word = " ".join(words)
    label = labels.get(word.casefold())
    if label is None:
        return None
    last = words[-1]
    end = piece.start + piece.text.rfind(last) + len(last)
    start = piece.start + piece.text.rfind(words[0], 0, end - piece.start)
    return Stated(label, start, end, piece.start)


def lone_label(
    lines: Sequence[Line], place: int, labels: Mapping[str, str], nouns: Collection[str] = ()
) -> Stated | None:
    """Return the label that the first or the last line is, and nothing else; or None.

    Behind a line that ends in a colon, or behind a list, it may be a quotation or the number
    of a next point.
    """
    line = lines[place]
    words = line.text.strip(MARKUP)
    has_brackets = words.startswith("[[") and words.endswith(("]]", "]]."))
    if not has_brackets and any(bracket in words for bracket in "[](){}"):
        return None
    earlier = lines[:place] if place >= 0 else lines[: len(lines) + place]
    if earlier and earlier[-1].text.rstrip(MARKUP).endswith(":"):
        return None
    if any(_LISTED.match(other.text.strip()) for other in earlier):
        return None
    return label_in(line, labels, nouns)


def agreed(statements: Sequence[Stated | None]) -> Stated | None:
    """Return the last of what lines state, if it is a label and no other differs."""
    labels = {statement.label for statement in statements if statement}
    return statements[-1] if len(labels) == 1 else None


class LabelForms(NamedTuple):
    """How a label may be written in plain words."""

    fields: Collection[str]
    """What a field may be called that holds it."""
    nouns: Collection[str]
    """What may stand before it, such as `response`."""
    labels: Mapping[str, str]
    """Labels by how they may be written."""
    slack: int
    """Characters that may stand between the name of a field and its colon."""
    places: tuple[int, ...] = (-1,)
    """The lines, first or last, that may be a label and nothing else."""


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
"""Of the two slots of a pair, and a tie."""


class SpokenLabel(NamedTuple):
    """A label in plain words, where it stands, and what was said before it."""

    label: str
    span: tuple[int, int]
    before: str


def spoken_label(text: str, forms: LabelForms) -> SpokenLabel | None:
    """Return the label in the fields of a reply, else in a line that is nothing else.

    Every field counts, and they must agree; one that names several labels, or anything else,
    is none.
    """
    lines = lines_of(text)
    labels = [
        label_in(each, forms.labels, forms.nouns)
        for each in fields(lines, forms.fields, forms.slack)
    ]
    if not labels and lines:
        alone = (lone_label(lines, at, forms.labels, forms.nouns) for at in forms.places)
        labels = [each for each in alone if each]
    label = agreed(labels)
    if label is None:
        return None
    head = text.rfind("\n", 0, label.line) + 1
    return SpokenLabel(label.label, (label.at, label.end), text[:head].strip())


def own_words(text: str, material: Sequence[str]) -> str:
    """Return a reply with blanks for the lines that stand in what the model was shown.

    A line that repeats a judged text is no statement of the model's own, whichever label it
    names. Single labels are left: a judged text may well be `2`.

    Args:
        text: The reply.
        material: The texts that the model may be quoting.
    """
    source = "\n".join(map(_comparable, material))
    if not source:
        return text
    lines = text.split("\n")
    lookups: dict[str, bool] = {}
    before = ""
    for number, line in enumerate(lines):
        words = _comparable(line) if len(line) <= _LONGEST else ""
        if not words:
            continue
        # Of a short line the one before decides: both together are a quotation.
        phrase = words if len(words) >= _TELLING else f"{before} {words}".strip()
        if len(phrase) >= _TELLING:
            if phrase not in lookups and len(lookups) < _MOST_LINES:
                lookups[phrase] = phrase in source
            if lookups.get(phrase, True):
                lines[number] = " " * len(line)
        before = words
    return "\n".join(lines)


_TELLING = 6
"""Characters from which a line is known again; a label alone is shorter."""


def _comparable(text: str) -> str:
    """Return a text as it is compared: one case, no markup, and nothing invisible in it."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return " ".join(plain.replace("*", "").replace("`", "").replace("_", "").split()).strip(
        "\"'“”‘’.>#-•«» "
    )
