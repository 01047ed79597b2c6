"""Showing A and B in both orders, and mapping slots back to identities.

Rules: `strict` (Saha et al. 2023, Algorithm 1: a winner only if both orders agree),
`lenient` (the sign of the summed orders), `score_mean` (the mean score over both orders,
then compare) and `none` (A is shown first, once).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator

from langchain_judges.verdict import Preference

T = TypeVar("T")

# Order of the texts: `AB` shows A first, `BA` shows B first.
Order = Literal["AB", "BA"]

# Rule that combines the verdicts of both orders.
OrderRule = Literal["strict", "lenient", "score_mean", "none"]


# Name of an order for people.
ORDER_NAMES: dict[Order, str] = {"AB": "A first", "BA": "B first"}


def _as_label(value: object) -> object:
    """Take a label in any case, in quotes or with a full stop."""
    return value.strip(" \t\r\n\"'`*.()[]").lower() if isinstance(value, str) else value


# Names of the first and the second text in replies.
Slot = Annotated[Literal["1", "2"], BeforeValidator(_as_label)]

# Names of the better text in replies, or of a tie.
SlotOrTie = Annotated[Literal["1", "2", "tie"], BeforeValidator(_as_label)]


def in_slots(order: Order, a: T, b: T) -> tuple[T, T]:
    """Contents of the first and of the second slot."""
    return (a, b) if order == "AB" else (b, a)


def by_identity(order: Order, first: T, second: T) -> dict[str, T]:
    """Map what was said of the two slots back to the texts in them."""
    return dict(zip("AB", in_slots(order, first, second), strict=True))


def preferred_slot(order: Order, slot: Literal["1", "2", "tie"]) -> Preference:
    """Map a choice between slots back to the text that stood there."""
    return "tie" if slot == "tie" else "A" if (slot == "1") == (order == "AB") else "B"


def naming_ab(text: str, order: Order, noun: str = "response") -> str:
    """A remark on an order with its texts by identity: response 1 as response A.

    Prompts number the texts: a reply that calls them A and B by habit means the slots too.

    >>> naming_ab("Response A is right, response 2 is not.", "BA")
    'Response B is right, response A is not.'

    Args:
        text: What a model said, such as a reason.
        order: In which it saw the texts.
        noun: What the prompt calls them.
    """
    return naming(text, dict(zip("12AB", in_slots(order, "A", "B") * 2, strict=True)), noun)


def naming_slots(text: str, order: Order, noun: str = "response") -> str:
    """A text of `naming_ab` with the slots of an order again."""
    return naming(text, by_identity(order, "1", "2"), noun)


def naming(text: str, names: Mapping[str, str], noun: str) -> str:
    """A text with other names for what it calls by the prompt's own noun and name.

    All other words stay, such as a noun of another language: whoever is shown a reason is told
    the order in which its judge saw the texts. The name may be written as in a tag.

    >>> naming("Table 1 repeats itself, table 2 does not.", {"1": "5", "2": "3"}, "table")
    'Table 5 repeats itself, table 3 does not.'

    Args:
        text: What a model said.
        names: New names by those in the text.
        noun: What the prompt calls the texts.
    """
    name, gap = rf"[{''.join(names)}](?a:(?!\w|\.\d))", "(?: #?|[_#-])"
    two = rf"s?{gap}{name} ?(?:and|or|&|/) ?{name}"
    mention = rf"(?a:(?<!\w))(?i:{noun})(?:{two}|{gap}{name})"
    return re.sub(mention, lambda said: re.sub(name, lambda old: names[old[0]], said[0]), text)


# What prompts and this package call the texts of a pair.
NOUNS = "response|passage|text"
# A and B where this package says them, and not a reason: "option (B)" is no text.
_NAMED_SIDE = re.compile(
    r"^[AB](?= is better\b)|(?<=\. )[AB](?= is better\.)|\b[AB](?= \([AB] first\))"
    r"|(?<=\d \()[AB](?=\))"
    r"|(?:^|(?<=\()|(?<=\bWith ))[AB](?= first(?:[:)]|$))|(?<=\. For )[AB](?=:)"
)


def naming_sides(text: str, names: Mapping[str, str]) -> str:
    """A reason with other names for A and B, such as those of two systems.

    >>> naming_sides("A is better: response B rambles.", {"A": "v1", "B": "v2"})
    'v1 is better: response v2 rambles.'
    """
    if not names:
        return text
    return _NAMED_SIDE.sub(lambda found: names[found[0]], naming(text, names, NOUNS))


def prefer(scores: Mapping[str, float]) -> Preference:
    """The text with the larger score; scores that differ by less than rounding are a tie."""
    a, b = (round(scores[side], 9) for side in ("A", "B"))
    return "A" if a > b else "B" if b > a else "tie"


def combine(rule: OrderRule, preferences: Sequence[Preference]) -> Preference:
    """Combine the verdicts of the orders; `score_mean` weighs a win 1 and a tie 0.5."""
    if rule == "strict":
        return preferences[0] if len(set(preferences)) == 1 else "tie"
    return prefer({side: preferences.count(side) for side in ("A", "B")})


def disagree(preferences: Sequence[Preference]) -> bool | None:
    """Whether the orders disagreed, ties included; None for one order."""
    return None if len(preferences) < 2 else len(set(preferences)) > 1
