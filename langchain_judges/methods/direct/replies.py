"""The state of the baselines, and the shapes in which their models reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges import orders, verdict
from langchain_judges.asking.reading import check, shape_of
from langchain_judges.asking.reply_text import ChoiceFields
from langchain_judges.methods import lookups, pairs
from langchain_judges.methods.replies import PlanLine, PlanScore, score_within


class DirectBallot(TypedDict):
    """The decision of one reply, by identity of the texts.

    Attributes:
        preference: The label that was said; of two scores, the text with the higher one.
        scores: The two scores, where the judge asks for scores.
        probability: Of the label's tokens; None where the model gave no log-probabilities.
        confidence: Length-normalised probability of explanation and label together (DRPE,
            equation 3).
    """

    order: orders.Order
    sample: int
    preference: verdict.Preference | None
    scores: dict[str, float] | None
    explanation: str
    probability: float | None
    confidence: float | None


class DirectState(pairs.PairState, lookups.LookupState, total=False):
    """State of the graph.

    Attributes:
        criteria: The plan; empty for all but plan & solve.
        llm_score: `1(A preferred) · P` in [0, 1], the number to correlate with people's.
    """

    criteria: list[PlanLine]
    ballots: list[DirectBallot]
    subscores: list[PlanScore]
    llm_score: float | None


@cache
def sheet_shape(scale: tuple[int, int], criteria: int, explain_first: bool) -> type[BaseModel]:
    """The shape of the scores on every criterion, in the order of the plan.

    Args:
        scale: Lowest and highest score.
        criteria: How many criteria there are.
        explain_first: Whether the explanation comes before the scores.
    """
    lines = dict.fromkeys(map(line_name, range(criteria)), line_shape(scale))
    reason = {"explanation": str}
    return shape_of("Sheet", {**reason, **lines} if explain_first else {**lines, **reason})


@cache
def line_shape(scale: tuple[int, int]) -> type[BaseModel]:
    """The shape of the scores on one criterion."""
    return shape_of("Line", dict.fromkeys(("score_1", "score_2"), score_within(scale)))


def line_name(position: int) -> str:
    """The name, in a reply, of the scores on one criterion of the plan."""
    return f"criterion_{position + 1}"


def read_sheet(
    data: Mapping[str, Any],
    plan: Sequence[PlanLine],
    order: orders.Order,
    unit: str,
    scale: tuple[int, int],
) -> tuple[list[PlanScore], list[verdict.Failure]]:
    """The scores of every criterion in a reply, and a failure for each without.

    Args:
        data: The reply.
        plan: The criteria.
        order: In which the texts were shown.
        unit: What the call is named.
        scale: Lowest and highest score.
    """
    lines, failures = list[PlanScore](), list[verdict.Failure]()
    explanation = orders.naming_ab(str(data.get("explanation") or ""), order)
    for position, criterion in enumerate(plan):
        scores, problem = check(data.get(line_name(position)), line_shape(scale))
        if problem:
            name = ", ".join(filter(None, [criterion["name"], unit]))
            failures.append(problem.failure("judge", name))
        elif scores:
            line: PlanScore = {
                "criterion": criterion["name"],
                "order": order,
                "sample": 0,
                "scores": orders.by_identity(order, scores["score_1"], scores["score_2"]),
                "explanation": explanation,
            }
            lines.append(line)
    return lines, failures


CHOICE = ChoiceFields()
