"""Reading the replies of models that ignore the format: choices and lists in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage

from langchain_judges.asking.replies.confidence import (
    json_spans,
    reply_tokens,
    span_confidence,
)
from langchain_judges.asking.replies.prose import MARKUP, LabelForms, SpokenLabel, spoken_label
from langchain_judges.methods.sc2.aspects import distinct

_FORMS = LabelForms(
    fields=("preferred", "preference", "more consistent", "verdict", "answer", "choice"),
    nouns=("response", "table", "text"),
    labels={"1": "1", "2": "2", "a": "1", "b": "2"},
    slack=40,
    places=(0, -1),
)
_ITEM = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+(?P<phrase>[^.!?]{2,80})[.]?")
_LONGEST = 200
"""Characters of a line that may be a phrase in a list."""


def label_of(text: str) -> SpokenLabel | None:
    r"""Return the slot in the fields `Preferred:`, else in a first or last line of one label.

    >>> label_of("They differ.\nPreferred: 2").label
    '2'
    >>> label_of("Preferred: 1 or 2") is None
    True
    """
    return spoken_label(text, _FORMS)


def parse_preference(text: str) -> dict[str, str] | None:
    """Read a preference in plain words."""
    choice = label_of(text)
    if choice is None:
        return None
    name, _, text_of_field = choice.before.partition(":")
    is_field = name.strip(MARKUP).casefold() == "comparison"
    comparison = text_of_field.strip() if is_field else choice.before
    return {"comparison": comparison.lstrip(MARKUP), "preferred": choice.label}


def parse_decision(text: str) -> dict[str, str] | None:
    """Read in plain words which table is more consistent."""
    choice = label_of(text)
    if choice is None:
        return None
    return {"more_consistent": choice.label, "justification": choice.before}


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
        choice = label_of(text)
        agrees = choice is not None and choice.label == data.get(field)
        span = choice.span if choice and agrees else None
    confidence = span_confidence(text, tokens, [span]) if span else None
    return {"probability": confidence.value} if confidence else {}
