"""Replies of one label, which text is better: their shape, and how plain words are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from langchain_judges.asking.replies.confidence import Span
from langchain_judges.asking.replies.prose import agreed, fields, label_in, lines_of, lone_label
from langchain_judges.orders import Slot, SlotOrTie


class Choice(BaseModel):
    """A reply with one of three labels."""

    explanation: str
    preference: SlotOrTie


class ForcedChoice(BaseModel):
    """A reply with one of two labels."""

    explanation: str
    preference: Slot


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


class SpokenLabel(NamedTuple):
    """A label in plain words, where it stands, and what was said before it."""

    label: str
    span: Span
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
