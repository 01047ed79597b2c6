"""The state of the Branch-Solve-Merge judge, and the shapes in which its models reply."""

from __future__ import annotations

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_judges.methods.lookups import LookupState
from langchain_judges.methods.pairs import PairState
from langchain_judges.methods.replies import PlanLine, PlanScore
from langchain_judges.orders import Order
from langchain_judges.verdict import Preference


class OrderResult(TypedDict):
    """The result of one order: totals of the mean scores, and the text they prefer.

    Attributes:
        explanation: The merging model's reason; empty where scores were summed.
    """

    totals: dict[str, float]
    preference: Preference | None
    explanation: str


class BSMState(PairState, LookupState, total=False):
    """State of the graph.

    Attributes:
        criteria: The plan, best first.
        written_reference: The pair's own reference, or the one that `reference_model` wrote.
    """

    criteria: list[PlanLine]
    written_reference: str | None
    subscores: list[PlanScore]
    by_order: dict[Order, OrderResult]


class Answer(BaseModel):
    """A reference answer."""

    answer: str = Field(min_length=1)
