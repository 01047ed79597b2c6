"""State of the ALLURE judge, and the shapes its model replies in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, create_model

from langchain_judges.methods.allure.audit.checks import Label
from langchain_judges.methods.items import ItemResult, ItemState

Explain = Literal["after", "first", "none"]
"""Whether a reply gives its reason after the label, before it, or not at all."""


class JudgeState(ItemState, total=False):
    """State of the judge; every value is plain JSON."""

    memory_version: str | None
    leak_allowed: bool


class JudgeResult(ItemResult):
    """What the judge returns."""

    memory_version: NotRequired[str | None]
    """The version of the memory that it judged with; None without a memory."""
    leak_allowed: NotRequired[bool]
    """Whether examples of the item's own group could be shown."""


def label_shape(labels: Sequence[Label], explain: Explain) -> type[BaseModel]:
    """Return the shape of a reply: one of the labels as a text, and the reason."""
    known = {str(label).casefold(): str(label) for label in labels}

    def as_text(value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a label is not true or false")
        return known.get(str(value).strip().casefold(), value)

    names = tuple(str(label) for label in labels)
    choice: Any = Annotated[Literal[names], BeforeValidator(as_text)]
    label: dict[str, Any] = {"label": (choice, ...)}
    reason: dict[str, Any] = {"explanation": (str, ...)}
    fields = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
    return create_model("Labelled", **fields[explain])
