"""Showing A and B in both orders, and mapping slots back to identities.

Rules: `strict` (Saha et al. 2023, Algorithm 1: a winner only if both orders agree),
`lenient` (the sign of the summed orders), `score_mean` (the mean score over both orders,
then compare) and `none` (A is shown first, once).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BeforeValidator

from langchain_judges.errors import OptionError
from langchain_judges.verdict import Preference

T = TypeVar("T")

Order = Literal["AB", "BA"]
"""Which text stands in the first slot: `AB` shows A first, `BA` shows B first."""

OrderRule = Literal["strict", "lenient", "score_mean", "none"]
"""How the verdicts of the two orders become one."""


def _as_label(value: object) -> object:
    """Take the number 1 for the label "1", and a label in quotes or with a full stop."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip(" \t\r\n\"'`*.()[]").lower() if isinstance(value, str) else value


Slot = Annotated[Literal["1", "2"], BeforeValidator(_as_label)]
"""How replies name what stands first and what stands second."""

SlotOrTie = Annotated[Literal["1", "2", "tie"], BeforeValidator(_as_label)]
"""How replies name the better one where they may also say that neither is."""

ORDER_NAMES: dict[Order, str] = {"AB": "A first", "BA": "B first"}
"""How an order is called in names that people read."""


def orders_of(rule: OrderRule) -> tuple[Order, ...]:
    """Return the orders that `rule` asks for."""
    if rule not in get_args(OrderRule):
        allowed = ", ".join(map(repr, get_args(OrderRule)))
        raise OptionError(f"`orders` must be one of {allowed}, got {rule!r}")
    return ("AB",) if rule == "none" else ("AB", "BA")


def in_slots(order: Order, a: T, b: T) -> tuple[T, T]:
    """Return what stands in the first and in the second slot."""
    return (a, b) if order == "AB" else (b, a)


def by_identity(order: Order, first: T, second: T) -> dict[str, T]:
    """Map what was said of the two slots back to the texts in them."""
    a, b = (first, second) if order == "AB" else (second, first)
    return {"A": a, "B": b}


def preferred_slot(order: Order, slot: Literal["1", "2", "tie"]) -> Preference:
    """Map a choice between slots back to the text that stood there."""
    if slot == "tie":
        return "tie"
    return "A" if (slot == "1") == (order == "AB") else "B"


_CALLED = ("response", "answer", "candidate", "passage", "reply", "solution", "summary", "text")
"""What models call the texts, whatever the prompt calls them."""
_SECOND = {"2", "two", "b", "second"}
_NO_ARTICLE = r"(?<!\ba )(?<!\bany )(?<!\bno )(?<!\bthe )"
"""Before "response one": behind an article "one" is somebody."""


def naming_identities(text: str, order: Order, noun: str = "response") -> str:
    """Return what was said of an order with its texts by identity: response 1 as response A.

    Args:
        text: What a model said, such as a reason.
        order: In which it saw the texts.
        noun: What the prompt calls them.
    """
    return naming(text, in_slots(order, "A", "B"), noun)


def naming(text: str, names: tuple[str, str], noun: str) -> str:
    """Return a text with names in place of "response 1", "the second one" or "Answer B".

    Words that may name something else stay: letters and other nouns where the text also says
    "response 1", and "the first one" where it counts other things too.

    >>> naming("Table 1 repeats itself, the second one does not.", ("5", "3"), "table")
    'Table 5 repeats itself, table 3 does not.'

    Args:
        text: What a model said.
        names: Of the first and the second slot.
        noun: What the prompt calls what stands there.
    """

    def name(place: str) -> str:
        return names[place.casefold() in _SECOND]

    def named(match: re.Match[str]) -> str:
        word = noun.capitalize() if match[0][0].isupper() else noun
        return f"{word} {name(next(filter(None, match.groups())))}"

    def both(match: re.Match[str]) -> str:
        return f"{match[1]} {name(match[2])} {match[3]} {name(match[4])}"

    text = re.sub(rf"\b((?i:{noun}s)) ([12]) (and|or) ([12])\b", both, text)
    return re.sub("|".join(_mentions(text, noun)), named, text)


def _mentions(text: str, noun: str) -> list[str]:
    """Return the patterns by which a text names what stands in a slot, one group each."""
    others = _CALLED if noun in _CALLED else (noun,)
    nouns = "|".join(others)
    patterns = [
        rf"\b(?i:{noun})[ -]#?([12])\b",
        rf"{_NO_ARTICLE}\b(?i:{noun}) (one|two)\b",
        rf"\b(?i:(?:the )?(first|second) {noun})\b",
        rf"\b(?i:the (first|second) (?:{nouns}))\b",
    ]
    if not re.search(rf"\b(?i:{noun})[ -]#?[12]\b", text):
        named = "|".join(other.capitalize() for other in others)
        patterns += [rf"\b(?i:{noun}) ([AB])\b", rf"(?<!Final )\b(?:{named}) ([12AB])\b"]
    if not re.search(rf"\b(?i:first|second) (?!(?:one|is|has|{nouns})\b)\w", text):
        patterns.append(r"\b(?i:(?:the )?(first|second) one)\b")
    return patterns


def naming_slots(text: str, order: Order, noun: str = "response") -> str:
    """Return a text of `naming_identities` with the slots of an order again."""
    places = by_identity(order, "1", "2")
    text = re.sub(
        rf"\b((?i:{noun})s) ([AB]) (and|or) ([AB])\b",
        lambda match: f"{match[1]} {places[match[2]]} {match[3]} {places[match[4]]}",
        text,
    )
    return re.sub(
        rf"\b((?i:{noun})) ([AB])\b",
        lambda match: f"{match[1]} {places[match[2]]}",
        text,
    )


def prefer(scores: Mapping[str, float]) -> Preference:
    """Return the text with the larger score; equal scores are a tie."""
    a, b = scores["A"], scores["B"]
    return "A" if a > b else "B" if b > a else "tie"


def combine(rule: OrderRule, preferences: Sequence[Preference]) -> Preference:
    """Combine the verdicts of the orders; `score_mean` weighs a win 1 and a tie 0.5."""
    if rule == "strict":
        return preferences[0] if len(set(preferences)) == 1 else "tie"
    wins = sum({"A": 1, "tie": 0, "B": -1}[p] for p in preferences)
    return "A" if wins > 0 else "B" if wins < 0 else "tie"


def disagree(preferences: Sequence[Preference]) -> bool | None:
    """Say whether the orders disagreed, into or out of a tie too; None for one order."""
    return None if len(preferences) < 2 else len(set(preferences)) > 1
