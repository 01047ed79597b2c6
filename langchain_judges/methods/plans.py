"""A plan of criteria, as Branch-Solve-Merge and plan & solve have a model write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NotRequired

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.orders import Order


class Criterion(TypedDict):
    """One line of a plan."""

    name: str
    description: str
    order: NotRequired[Order]
    """Only where each order has a plan of its own (`reuse_plan=False`)."""


class PlannedCriterion(BaseModel):
    """A criterion as a model writes it."""

    name: str = Field(pattern=r"\w", json_schema_extra={"maxLength": 40})
    description: str


@cache
def plan_shape(max_criteria: int) -> type[BaseModel]:
    """Return the shape of a plan of at most `max_criteria` criteria.

    A longer plan is not an error: its first criteria are kept.
    """
    limit = Field(min_length=1, json_schema_extra={"maxItems": max_criteria})
    return create_model("Plan", criteria=(list[PlannedCriterion], limit))


def distinct_criteria(planned: Sequence[Mapping[str, str]]) -> list[Criterion]:
    """Return the criteria on one line each, the first of those with the same name.

    >>> distinct_criteria([{"name": "Tone:", "description": "a"}] * 2)
    [{'name': 'Tone', 'description': 'a'}]
    """
    found: dict[str, Criterion] = {}
    for criterion in planned:
        name = " ".join(criterion["name"].split())[:60].strip(" .:*-")
        description = " ".join(criterion["description"].split())[:300]
        if name:
            found.setdefault(name.casefold(), {"name": name, "description": description})
    return list(found.values())
