"""The JSON objects in a model's reply, and where its thoughts end and its answer begins."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Sequence
from typing import NamedTuple

from langchain_judges.rows.texts import without_lone_surrogates

_MOST_OBJECTS = 100
"""Braces tried as the start of an object; a text full of them must not cost minutes."""
_DEEPEST = 50
"""Levels of an object; no reply shape has ten, and code that recurses must not run out."""
_LONGEST_NUMBER = 300
"""Digits of a whole number; Python refuses to read some thousands."""
_TAG = re.compile(r"<(?P<end>/?)think(?:ing)?>", re.IGNORECASE)
_BEGUN = re.compile(r'\{\s*"(?P<name>[^"\n]{0,80})')
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
    broken: list[str]
    """First members of what begins like an object and is none: it may have been cut, and an
    object inside of it is no answer."""


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
    broken: list[str] = []
    at = text.find("{", at)
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        if one := object_at(text, at):
            results.append(one)
        elif opening := _BEGUN.match(text, at):
            broken.append(opening["name"])
        at = text.find("{", one.end if one else at + 1)
    return Objects(results, broken)


def without(text: str, objects_in: Sequence[TextObject]) -> str:
    """Return a text with blanks for some of its objects."""
    parts, at = [], 0
    for one in objects_in:
        parts += [text[at : one.start], " " * (one.end - one.start)]
        at = one.end
    return "".join([*parts, text[at:]])


class AnswerStart(NamedTuple):
    """Where a reply's answer begins, and how surely."""

    start: int
    sure: bool
    """Whether nothing but the model's own tags can have put the beginning there."""
    plain: bool
    """Whether the answer holds no further tags, so that its words may be read."""


def answer_of(text: str, tagged: bool = False) -> AnswerStart:
    """Return where the answer begins behind a model's thoughts.

    Thoughts stand at the beginning, between `<think>` and the first `</think>` outside of
    JSON. Some servers leave out the first tag; a reply that begins like JSON has no thoughts.

    Args:
        text: The reply; not one that is a JSON object as a whole.
        tagged: Whether the texts that the model was shown hold such tags. It may then be
            quoting them, and without a tag at its beginning nobody knows.
    """
    first_tag = _TAG.match(text.lstrip())
    if first_tag and not first_tag["end"]:
        inside = _tags(text)
        start = next((tag.end() for tag in inside if tag["end"]), len(text))
        return AnswerStart(start, True, not _TAG.search(text, start))
    ends = [tag.end() for tag in _tags(text) if tag["end"]]
    if not ends:
        return AnswerStart(0, True, not _TAG.search(text))
    if tagged or text.lstrip().startswith(("{", "```")):
        return AnswerStart(0, False, False)
    return AnswerStart(ends[-1], True, not _TAG.search(text, ends[-1]))


def _tags(text: str) -> list[re.Match[str]]:
    """Return the tags of thoughts that stand outside of JSON objects."""
    tags = list(_TAG.finditer(text))
    if not tags:
        return []
    spans = objects(text).complete
    ends = [0, *(one.end for one in spans)]
    starts = [one.start for one in spans]
    # The end of the last object that begins before a tag; none of them overlap.
    return [tag for tag in tags if ends[bisect(starts, tag.start())] <= tag.start()]


def has_tags(text: str) -> bool:
    """Say whether a text holds tags like those around thoughts."""
    return _TAG.search(text) is not None
