"""Reading the replies of models that ignore the format: choices and lists in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.confidence import Span, json_spans, reply_tokens, span_confidence
from langchain_judges.methods.sc2.aspects import distinct

_FIELD = re.compile(
    r"^\W*(?:(?:my|the|final|overall)\s+)*"
    r"(?:preferred|preference|more[ _]consistent|verdict|answer|choice)\b[^\n:]{0,40}:"
    r"(?P<said>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ALONE = re.compile(r"^(?P<said>[^\w\n]*[12AB][^\w\n]*)$", re.MULTILINE)
_LABEL = re.compile(
    r"\W*(?:(?:the\s+)?(?:response|table|text)\s+)?\W*(?P<slot>[12AB])\W*", re.IGNORECASE
)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?P<phrase>[^.!?\n]{2,80})[.]?\s*$")
_SLOTS = {"1": "1", "2": "2", "a": "1", "b": "2"}


class Spoken(NamedTuple):
    """A choice in plain words, where its label stands, and what was said before it."""

    slot: str
    span: Span
    before: str


def spoken_choice(text: str) -> Spoken | None:
    r"""Return the slot in the last field `Preferred:`, else in the last line of one label.

    The last one counts, for what stands before may quote a judged text. A field that names
    both labels, or none, is no choice.

    >>> spoken_choice("They differ.\nPreferred: 2").slot
    '2'
    >>> spoken_choice("Preferred: 1 or 2") is None
    True
    """
    found = list(_FIELD.finditer(text)) or list(_ALONE.finditer(text))
    if not found:
        return None
    last = found[-1]
    label = _LABEL.fullmatch(last["said"])
    if label is None:
        return None
    start = last.start("said") + label.start("slot")
    before = text[: last.start()].strip()
    return Spoken(_SLOTS[label["slot"].lower()], (start, start + 1), before)


def parse_preference(text: str) -> dict[str, Any] | None:
    """Read a preference in plain words."""
    found = spoken_choice(text)
    if found is None:
        return None
    said = re.sub(r"^\W*comparison\W*:", "", found.before, flags=re.IGNORECASE).strip()
    return {"comparison": said, "preferred": found.slot}


def parse_decision(text: str) -> dict[str, Any] | None:
    """Read in plain words which table is more consistent."""
    found = spoken_choice(text)
    if found is None:
        return None
    return {"more_consistent": found.slot, "justification": found.before}


def parse_aspects(text: str) -> dict[str, Any] | None:
    r"""Read a list of phrases, one on each line with a bullet or number.

    >>> parse_aspects("I think so.\n1. Tone\n2. Depth")["aspects"]
    ['Tone', 'Depth']
    """
    found = [_ITEM.match(line) for line in text.splitlines()]
    phrases = distinct(match["phrase"] for match in found if match)
    if not phrases:
        return None
    first = next(i for i, match in enumerate(found) if match)
    return {"reasoning": " ".join(text.splitlines()[:first]).strip(), "aspects": phrases}


def label_probability(message: AIMessage, data: Mapping[str, Any]) -> dict[str, float]:
    """Return `{"probability": p}` of the label's own tokens, if the reply has them."""
    tokens, text = reply_tokens(message), message.text
    span = json_spans(text, data).get(("preferred",))
    if span is None:
        spoken = spoken_choice(text)
        span = spoken.span if spoken else None
    known = span_confidence(text, tokens, [span]) if span else None
    return {"probability": known.value} if known else {}
