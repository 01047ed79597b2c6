"""State of the baselines, and the shapes their models reply in."""

from __future__ import annotations

import operator
from functools import cache
from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, BeforeValidator, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.memory.recall import Example
from langchain_judges.memory.rendering import Account, RememberedPair, Reminded
from langchain_judges.methods.plans import Criterion
from langchain_judges.orders import Order, Slot, SlotOrTie
from langchain_judges.verdict import Failure, Pair, Preference, Usage, Verdict


class Subscore(TypedDict):
    """The scores of one criterion in one order, by identity of the texts."""

    criterion: str
    order: Order
    sample: int
    scores: dict[str, int]
    explanation: str


class Ballot(TypedDict):
    """What one reply decided, by identity of the texts."""

    order: Order
    sample: int
    preference: Preference | None
    """The label that was said; of two scores, the text with the higher one."""
    scores: dict[str, float] | None
    """The two scores, where the judge asks for scores."""
    explanation: str
    probability: float | None
    """Of the label's tokens; None where the model gave no log-probabilities."""
    confidence: float | None
    """Length-normalised probability of explanation and label together (DRPE, equation 3)."""


class DirectState(RememberedPair, total=False):
    """State of the graph; every value is plain JSON."""

    criteria: list[Criterion]
    """The plan; empty for all but plan & solve."""
    ballots: Annotated[list[Ballot], operator.add]
    subscores: Annotated[list[Subscore], operator.add]
    reminded: Reminded
    """What the memory recalled; only with a memory."""
    recalled: Account
    failures: Annotated[list[Failure], operator.add]
    usages: Annotated[list[Usage], operator.add]
    llm_score: float | None
    verdict: Verdict | None


class DirectResult(TypedDict):
    """What a baseline returns."""

    id: str | None
    """The id that was given, if there was one."""
    verdict: Verdict
    ballots: list[Ballot]
    recalled: NotRequired[Account]
    """Which remembered examples were shown; only with a memory."""


class PlanSolveResult(DirectResult):
    """What plan & solve returns."""

    criteria: list[Criterion]
    subscores: list[Subscore]


class LLMScoreResult(DirectResult):
    """What the judge without roles returns."""

    llm_score: float | None
    """`1(A preferred) · P` in [0, 1], the number to correlate with people's."""


class Work(TypedDict):
    """Input of one parallel call."""

    pair: Pair
    criteria: list[Criterion]
    order: Order
    sample: int
    examples: NotRequired[list[Example]]


class Choice(BaseModel):
    """A reply with one of three labels."""

    explanation: str
    preference: SlotOrTie


class ForcedChoice(BaseModel):
    """A reply with one of two labels."""

    explanation: str
    preference: Slot


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a score is a number, not true or false")
    return value


def _score(scale: tuple[int, int]) -> Any:
    return Annotated[int, Field(ge=scale[0], le=scale[1]), BeforeValidator(_no_bool)]


@cache
def scores_shape(scale: tuple[int, int]) -> type[BaseModel]:
    """Return the shape of two scores and the reason for them."""
    score = _score(scale)
    fields: dict[str, Any] = {"score_1": (score, ...), "score_2": (score, ...)}
    return create_model("Scores", **fields, explanation=(str, ...))


@cache
def sheet_shape(scale: tuple[int, int], criteria: int, *, whole: bool) -> type[BaseModel]:
    """Return the shape of the scores on every criterion, in the order of the plan.

    Args:
        scale: Lowest and highest score.
        criteria: How many criteria there are.
        whole: Whether each of them must be there; False reads what there is.
    """
    score = _score(scale)
    line = create_model("Line", score_1=(score, ...), score_2=(score, ...))
    fields: dict[str, Any] = {
        f"criterion_{i + 1}": (line, ...) if whole else (Any, None) for i in range(criteria)
    }
    return create_model("Sheet", **fields, explanation=(str, ... if whole else ""))
