"""Answers inside texts, compared by their words or by their last number.

Signs are part of what a text says: where two answers differ in nothing else, or a number cannot
be read for sure, a comparison says nothing (None).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import partial
from itertools import product, starmap
from typing import Any, NamedTuple
from unicodedata import category, normalize

from langchain_judges.lazy import packaged

_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
# Dashes that people and models write for a minus, and marks that only quote.
_TYPOGRAPHY = str.maketrans("‐‑‒–−﹣－‘’“”„«»‹›「」『』", f"-------''{' ' * 11}")
# Within so many characters: an open quote must not be looked for through a long text each time.
_PAIRED = re.compile(r"(?<!\w)(\*{1,3}|[\"'`]{1,3})(?=\S)(.{1,200}?)(?<=\S)\1(?!\w)")
_ENCLOSED = re.compile(r"\(([^()]*)\)|\[([^][]*)\]|\{([^{}]*)\}")
# What separates words and ends a sentence; "5!" is another number.
_STOPS = re.compile(
    r"[,;、，；¿¡]|(?<=[^\s.:?…。：？])[.:?…。：？]+(?!\S)|(?<=[^\W\d])[!！]+(?!\S)"
)
_BETWEEN_WORDS = re.compile(r"(?<=\w)([^\w\s]+)(?=\w)")

_OPERATORS = frozenset("-+*/^×÷·±√%‰<>≤≥≠~")
_THIN = "'\u00a0\u2007\u2009\u202f"
_NUMERAL = re.compile(rf"[.,]?\d(?:[\d.,{_THIN}]*\d)?(?:e[-+]?\d+)?")
# A number by its decimal point: English, then as on the continent.
_NUMBER = {
    point: re.compile(
        rf"[-+]?(?:[1-9]\d{{0,2}}([{group}{_THIN}])\d{{3}}(?:\1\d{{3}})*|\d*)"
        rf"(?:[{point}]\d+)?(?:e[-+]?\d+)?"
    )
    for point, group in (".,", ",.")
}
_SPELLINGS = packaged(__package__, "units.yaml")
_UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
# Brackets, quotes, signs of money, and letters that have no case.
_PLAIN = frozenset(["Ps", "Pe", "Pi", "Pf", "Sc", "Lo"])
_STOP_SIGNS = str.maketrans("", "", "\\.,;:?、。，；：？")
# White space that is not inside a number such as "1 000".
_GAP = re.compile(r"(?<!\d)\s|\s(?!\d{3}(?!\d))")


def answer_part(text: str) -> str:
    """The text after the last "answer:", in lower case, without emphasis and quotes."""
    plain = normalize("NFC", text).translate(_TYPOGRAPHY).replace("\\boxed", " ")
    return _ANSWER.split(_PAIRED.sub(r"\2", plain))[-1].casefold().strip().rstrip(".,;:?")


def same_words(a: str, b: str, left_out: Collection[str] = (), shape: Any = list) -> bool | None:
    """Whether two texts answer in the same words, each with its signs.

    An answer of signs alone, such as "<=", stands for itself.

    Args:
        a: A text.
        b: Another.
        left_out: Words that do not count where others remain.
        shape: A list for words in order, a set for any order.

    >>> same_words("Answer: **Rose**.", "rose"), same_words("-5", "5"), same_words("C++", "C")
    (True, False, None)
    """

    def kept(words: list[str]) -> Any:
        return shape([word for word in words if word not in left_out] or words)

    both = [answer_part(a), answer_part(b)]
    words, other_words = (kept(re.findall(r"\w+", each)) for each in both)
    if words != other_words:
        return False
    if not words:
        return both[0].split() == both[1].split()
    bare = [_ENCLOSED.sub(r"\1\2\3", t) if _ENCLOSED.fullmatch(t) else t for t in both]
    brackets = {text[0] for text, inside in zip(both, bare, strict=True) if inside != text}
    spaced = (_BETWEEN_WORDS.sub(r" \1 ", _STOPS.sub(" ", each)) for each in bare)
    signed, other_signed = (kept(each.split()) for each in spaced)
    if signed == other_signed and len(brackets) < 2:
        return True
    alone = all(len(each.split()) == 1 for each in both)
    return False if alone and same_number(a, b) is False else None


class Numeral(NamedTuple):
    """A number as a text writes it.

    Attributes:
        values: What it may be, the English reading first; empty if it cannot be read.
        beside: Signs and letters that touch it.
        units: Its sign of money and the word behind it, as far as they are known units.
    """

    values: tuple[float, ...]
    beside: str
    units: frozenset[str] = frozenset()


def last_number(text: str) -> Numeral | None:
    """The last number of the answer; None where it has none.

    >>> last_number("It is −1,250.5 m"), last_number("x = 0,5").values, last_number("3/4").values
    (Numeral(values=(-1250.5,), beside='', units=frozenset({'m'})), (0.5,), ())
    """
    lines = [line for line in answer_part(text).splitlines() if any(map(str.isnumeric, line))]
    if not lines:
        return None
    chunks = ["", *filter(None, _GAP.split(re.sub(" +", " ", lines[-1]))), ""]
    place = max(at for at, chunk in enumerate(chunks) if any(map(str.isnumeric, chunk)))
    numerals = _NUMERAL.findall(chunks[place])
    near = {chunks[place - 1][-1:], chunks[place + 1][:1]}
    if len(numerals) != 1 or near & _OPERATORS:
        return Numeral((), "")
    before, numeral, after = chunks[place].partition(numerals[0])
    around = chunks[place - 1][-1:], before, after or chunks[place + 1]
    marks = [sign for sign in "".join(around) if category(sign) == "Sc"]
    marks.append(around[-1].strip("()[]{}.,;:?!、。，；：？！"))
    units = frozenset(_UNITS[each] for each in marks if each in _UNITS)
    before, after = _meant(re.sub(r"^.*(?<![<>!~:=])=", "", before)), _meant(after)
    if before in ("-", "+"):
        before, numeral = "", before + numeral
    values = (
        float(re.sub(rf"[^\d{point}e+-]", "", numeral).replace(point, "."))
        for point, form in _NUMBER.items()
        if form.fullmatch(numeral)
    )
    return Numeral(tuple(values), f"{before} {after}".strip(), units)


def _meant(signs: str) -> str:
    """The signs at a number without brackets, full stops, money, and words without spaces."""
    kept = [sign for sign in signs if sign.isnumeric() or category(sign) not in _PLAIN]
    return "".join(kept).translate(_STOP_SIGNS)


def same_number(said: str, expected: str, tolerance: float = 1e-9) -> bool | None:
    """Whether the last numbers of two texts are equal.

    It is not known whether 5 is "5%" or "5k", nor whether 5 m is 5 km. A unit on one side alone
    is left out, and so is a word that is no known unit.

    Args:
        said: A text; without a number it is wrong.
        expected: The expected answer; without one nothing is said.
        tolerance: Largest difference, as a share of the larger number.
    """
    own, right = last_number(said), last_number(expected)
    if right is None or not right.values:
        return None
    if own is None:
        return False
    is_same_unit = own.units <= right.units or right.units <= own.units
    if not own.values or own.beside != right.beside or not is_same_unit:
        return None
    close = partial(math.isclose, rel_tol=tolerance, abs_tol=tolerance)
    first, *others = starmap(close, product(own.values, right.values))
    return first or (None if any(others) else False)
