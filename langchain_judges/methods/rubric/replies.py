"""State of the judges by criteria, and the shapes their models reply in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator
from typing_extensions import TypedDict

from langchain_judges.asking.replies.reading import Problem, shape_of
from langchain_judges.asking.state import Gathered
from langchain_judges.memory.example import Example
from langchain_judges.methods.items import ItemResult, ItemState
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.verdict import ConfidenceSource, Failure, Item, Label

Explain = Literal["after", "first", "none"]
"""Whether a reply gives its reason after the label, before it, or not at all."""


class CriterionScore(TypedDict):
    """What was found by one criterion."""

    criterion: str
    label: Label | None
    """None: not judged by it, see the verdict's failures."""
    score: float | None
    """On the scale of its labels; of words from 0, the lowest, to 1, the highest."""
    weight: float
    holds: bool | None
    """Whether the text meets the criterion, by its label."""
    required: bool
    reason: str
    confidence: float | None
    confidence_source: ConfidenceSource
    chances: NotRequired[dict[str, float]]
    """The probability of each label, where the model gives them all."""
    drafted: NotRequired[bool]
    """Whether it was drafted from the task."""


class RubricState(ItemState, total=False):
    """State of the graph; every value is plain JSON."""

    subscores: Gathered[CriterionScore]
    drafted: list[str]
    """Questions drafted from the task, where criteria are drafted."""


class RubricResult(ItemResult):
    """What the judge returns."""

    subscores: NotRequired[list[CriterionScore]]
    """In the order of the criteria."""


class CriteriaWork(TypedDict):
    """Input of a node that asks for some criteria."""

    item: Item
    positions: list[int]
    """Of the criteria, those of the rubric before those drafted."""
    drafted: list[str]
    examples: list[Example]


def label_shape(labels: Sequence[Label], explain: Explain) -> type[BaseModel]:
    """Return the shape of a reply: one of the labels as a text, and the reason."""
    return _label_shape(tuple(map(str, labels)), explain)


# Every reply to one judge has the same shape, and pydantic takes a millisecond to build it.
@lru_cache(256)
def _label_shape(names: tuple[str, ...], explain: Explain) -> type[BaseModel]:
    by_name = {name.casefold(): name for name in names}

    def as_text(value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a label is not true or false")
        return by_name.get(str(value).strip().casefold(), value)

    choice: Any = Annotated[Literal[names], BeforeValidator(as_text)]
    label, reason = {"label": choice}, {"explanation": str}
    fields = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
    return shape_of("Labelled", fields[explain])


def units_of(criteria: Sequence[Criterion]) -> list[str]:
    """Return what a reply calls each criterion; of one the reply is its own: an empty name."""
    several = len(criteria) > 1
    return [f"criterion_{number}" if several else "" for number in range(1, len(criteria) + 1)]


def labels_shape(criteria: Sequence[Criterion], explain: Explain) -> type[BaseModel]:
    """Return the shape of the labels by several criteria, all required."""
    parts = zip(units_of(criteria), criteria, strict=True)
    return shape_of("Labels", {unit: label_shape(c.names, explain) for unit, c in parts})


def distinct_lines(texts: Iterable[str]) -> list[str]:
    """Return the texts on a line each, the first of those that differ in case alone."""
    lines = [" ".join(text.split()) for text in texts]
    by_form: dict[str, str] = {}
    for line in filter(None, lines):
        by_form.setdefault(line.casefold(), line)
    return list(by_form.values())


def part_failure(step: str, unit: str, problem: Problem) -> Failure:
    """Return why a part of a reply cannot be used."""
    return {"step": step, "unit": unit, "reason": problem.reason, "detail": problem.detail}
