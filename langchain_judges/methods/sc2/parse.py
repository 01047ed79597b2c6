"""Reading the replies of models that ignore the format: choices and lists in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.replies.confidence import (
    Span,
    json_spans,
    reply_tokens,
    span_confidence,
)
from langchain_judges.asking.replies.prose import (
    MARKUP,
    agreed,
    fields,
    label_in,
    lines_of,
    lone_label,
)
from langchain_judges.methods.sc2.aspects import distinct

_FIELDS = ("preferred", "preference", "more consistent", "verdict", "answer", "choice")
_NOUNS = ("response", "table", "text")
_LABELS = {"1": "1", "2": "2", "a": "1", "b": "2"}
_SLACK = 40
_ITEM = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+(?P<phrase>[^.!?]{2,80})[.]?")
_LONGEST = 200
"""Characters of a line that may be a phrase in a list."""


class SpokenChoice(NamedTuple):
    """A choice in plain words, where its label stands, and what was said before it."""

    slot: str
    span: Span
    before: str


def spoken_choice(text: str) -> SpokenChoice | None:
    r"""Return the slot in the fields `Preferred:`, else in a first or last line of one label.

    A reply that names two, or a field that names both or none, is no choice.

    >>> spoken_choice("They differ.\nPreferred: 2").slot
    '2'
    >>> spoken_choice("Preferred: 1 or 2") is None
    True
    """
    lines = lines_of(text)
    labels = [label_in(each, _LABELS, _NOUNS) for each in fields(lines, _FIELDS, _SLACK)]
    if not labels and lines:
        ends = (lone_label(lines, place, _LABELS, _NOUNS) for place in (0, -1))
        labels = [each for each in ends if each]
    choice = agreed(labels)
    if choice is None:
        return None
    head = text.rfind("\n", 0, choice.line) + 1
    return SpokenChoice(choice.label, (choice.at, choice.end), text[:head].strip())


def parse_preference(text: str) -> dict[str, str] | None:
    """Read a preference in plain words."""
    choice = spoken_choice(text)
    if choice is None:
        return None
    name, _, comparison_text = choice.before.partition(":")
    comparison = (
        comparison_text.strip()
        if name.strip(MARKUP).casefold() == "comparison"
        else choice.before
    )
    return {"comparison": comparison.lstrip(MARKUP), "preferred": choice.slot}


def parse_decision(text: str) -> dict[str, str] | None:
    """Read in plain words which table is more consistent."""
    choice = spoken_choice(text)
    if choice is None:
        return None
    return {"more_consistent": choice.slot, "justification": choice.before}


def parse_aspects(text: str) -> dict[str, Any] | None:
    r"""Read a list of phrases, one on each line with a bullet or number.

    >>> parse_aspects("I think so.\n1. Tone\n2. Depth")["aspects"]
    ['Tone', 'Depth']
    """
    lines = text.splitlines()
    matches = [
        _ITEM.fullmatch(line.strip()) if len(line) <= _LONGEST else None for line in lines
    ]
    phrases = distinct(match["phrase"] for match in matches if match)
    if not phrases:
        return None
    first = next(i for i, match in enumerate(matches) if match)
    return {"reasoning": " ".join(lines[:first]).strip(), "aspects": phrases}


FORCED = 0.51
"""Least probability that a chosen label counts with: where a reply's format forced it, its own
tokens may have had less, and still it is what the model prefers of the two."""


def label_weight(probability: float | None) -> float:
    """Return how much a label counts that was chosen of two: 1 where nothing is known."""
    return 1.0 if probability is None else max(FORCED, min(1.0, probability))


def label_probability(
    message: AIMessage, data: Mapping[str, object], field: str = "preferred"
) -> dict[str, float]:
    """Return `{"probability": p}` of the label's own tokens, if the reply has them.

    Args:
        message: The reply.
        data: What was read from it.
        field: Which holds the label.
    """
    tokens, text = reply_tokens(message), message.text
    span = json_spans(text, data).get((field,))
    if span is None:
        choice = spoken_choice(text)
        agrees = choice is not None and choice.slot == data.get(field)
        span = choice.span if choice and agrees else None
    confidence = span_confidence(text, tokens, [span]) if span else None
    return {"probability": confidence.value} if confidence else {}
