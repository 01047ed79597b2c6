"""The JSON objects in a model's reply, and where its thoughts end and its answer begins."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect
from collections.abc import Mapping, Sequence
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
