"""Replies that several methods share: a label, a plan of criteria, scores on it, their sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from langchain_judges.asking.reading import shape_of
from langchain_judges.methods.declaration import name_and_text
from langchain_judges.orders import ORDER_NAMES, Order, Slot, SlotOrTie


class Choice(BaseModel):
    """A reply with one of three labels."""

    explanation: str
    preference: SlotOrTie


class ForcedChoice(BaseModel):
    """A reply with one of two labels."""

    explanation: str
    preference: Slot


class PlanLine(TypedDict):
    """One line of a plan.

    Attributes:
        order: Only where each order has a plan of its own (`reuse_plan=False`).
        asks_right: Only where a caller, or the model that planned it, says that it asks what is
            right.
    """

    name: str
    description: str
    order: NotRequired[Order]
    asks_right: NotRequired[bool]


class PlannedCriterion(BaseModel):
    """A criterion as a model writes it."""

    name: str = Field(pattern=r"\w", json_schema_extra={"maxLength": 40})
    description: str


def _yes_or_no(value: object) -> object:
    word = str(value).strip(" .").lower()
    return {"true": "yes", "false": "no", "none": "no"}.get(word, word)


class MarkedCriterion(PlannedCriterion):
    """A criterion as a model writes it, and whether it asks what is right or true."""

    asks_right: Annotated[Literal["yes", "no"], BeforeValidator(_yes_or_no)] = "no"


# A criterion as callers write it: a name, `"name: description"`, or both by key.
PlanLineLike = str | Mapping[str, Any]


def read_criteria(criteria: Sequence[PlanLineLike]) -> tuple[PlanLine, ...]:
    """The criteria of a caller in one form.

    Raises:
        ValueError: They are not a list of at least one, one has no name, or two have the same.
    """
    if isinstance(criteria, str) or not criteria:
        raise ValueError("no list of criteria")
    plan = tuple(map(_criterion_shape, criteria))
    names = [criterion["name"].casefold() for criterion in plan]
    if len(set(names)) < len(names):
        raise ValueError("two criteria of one name")
    return plan


def _criterion_shape(criterion: PlanLineLike) -> PlanLine:
    if isinstance(criterion, str):
        name, description = name_and_text(criterion)
        criterion = {"name": name, "description": description or ""}
    name, description = criterion.get("name", ""), criterion.get("description", "")
    if not (isinstance(name, str) and isinstance(description, str) and name.strip()):
        raise ValueError("a criterion without a name")
    if unknown := set(criterion) - {*PlanLine.__annotations__}:
        raise ValueError(f"a criterion has no {min(map(repr, unknown))}")
    line = PlanLine(name=name.strip(), description=description.strip())
    return {**line, "asks_right": True} if criterion.get("asks_right") is True else line


@cache
def plan_shape(
    max_criteria: int, line: type[PlannedCriterion] = PlannedCriterion
) -> type[BaseModel]:
    """Shape of a plan of at most `max_criteria` criteria.

    A longer plan is not an error: its first criteria are kept.
    """
    limit = Field(min_length=1, json_schema_extra={"maxItems": max_criteria})
    return create_model("Plan", criteria=(list[line], limit))  # type: ignore[valid-type]


def distinct_criteria(planned: Sequence[Mapping[str, Any]]) -> list[PlanLine]:
    """The criteria on one line each, the first of those with the same name.

    >>> distinct_criteria([{"name": "Tone:", "description": "a"}] * 2)
    [{'name': 'Tone', 'description': 'a'}]
    """
    plan: dict[str, PlanLine] = {}
    for criterion in planned:
        name = " ".join(criterion["name"].split())[:60].strip(" .:*-")
        line = PlanLine(name=name, description=" ".join(criterion["description"].split())[:300])
        if criterion.get("asks_right") == "yes":
            line["asks_right"] = True
        if name:
            plan.setdefault(name.casefold(), line)
    return list(plan.values())


class PlanScore(TypedDict):
    """The scores of one solve call, by identity of the texts.

    Attributes:
        scores: Whole numbers on the scale of the judge.
    """

    criterion: str
    order: Order
    sample: int
    scores: dict[str, float]
    explanation: str


def _plain_score(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # JSON has one kind of number, and some clients read all as doubles
    if isinstance(value, float):
        raise PydanticCustomError("int_from_float", "a score is a whole number")
    if isinstance(value, bool):
        raise ValueError("a score is a number, not true or false")
    return value


def score_within(scale: tuple[int, int]) -> Any:
    """The type of a whole score on a scale; true and false are no scores."""
    return Annotated[int, Field(ge=scale[0], le=scale[1]), BeforeValidator(_plain_score)]


@cache
def scores_shape(scale: tuple[int, int], explain_first: bool = False) -> type[BaseModel]:
    """The shape of a solve reply: two scores, then the explanation, as in the paper."""
    scores = dict.fromkeys(("score_1", "score_2"), score_within(scale))
    reason = {"explanation": str}
    return shape_of("Scores", {**reason, **scores} if explain_first else {**scores, **reason})


# The mean scores `{"A", "B"}` of each criterion in each order.
ScoreCells = Mapping[tuple[str, Order], dict[str, float]]


def mean_scores(
    criteria: Iterable[PlanLine], subscores: Sequence[PlanScore], orders: Sequence[Order]
) -> ScoreCells:
    """Average the samples of each cell; drop a criterion that one of its orders lacks.

    Totals over different criteria could not be compared, so a criterion that failed in
    one order is left out of the other too.
    """
    planned: dict[str, list[Order]] = {}
    for criterion in criteria:
        asked_orders = [criterion["order"]] if "order" in criterion else list(orders)
        planned.setdefault(criterion["name"], []).extend(asked_orders)
    scored = defaultdict[tuple[str, Order], list[dict[str, float]]](list)
    for line in subscores:
        scored[line["criterion"], line["order"]].append(line["scores"])
    cells: dict[tuple[str, Order], dict[str, float]] = {}
    for name, orders_of_criterion in planned.items():
        samples = {order: scored[name, order] for order in orders_of_criterion}
        if all(samples.values()):
            for order, own in samples.items():
                cells[name, order] = {s: fmean(scores[s] for scores in own) for s in ("A", "B")}
    return cells


def quorum(
    criteria: Sequence[PlanLine],
    cells: ScoreCells,
    orders: Sequence[Order],
    min_valid: int | None = None,
) -> str | None:
    """Why there is no verdict: too few scores, in words; None if there are enough."""
    if not criteria:
        return "there is no plan of criteria"
    for order in orders:
        count = sum(criterion.get("order", order) == order for criterion in criteria)
        valid = sum(cell_order == order for _, cell_order in cells)
        least = min_valid or count // 2 + 1
        if valid < least:
            share = f"{valid} of {count} criteria could be scored ({ORDER_NAMES[order]})"
            return f"{share}, at least {least} must be"
    return None


def totals_of(order: Order, cells: ScoreCells) -> dict[str, float]:
    """The sums of the scores of one order."""
    own = [cell for (_, cell_order), cell in cells.items() if cell_order == order]
    return {side: round(sum(cell[side] for cell in own), 9) for side in ("A", "B")}
