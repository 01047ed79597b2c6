"""State of the DRPE judge, and the shapes its model replies in."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.asking.replies.reading import shape_of
from langchain_judges.asking.state import Emits, joined
from langchain_judges.memory.example import Example
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.orders import Order, Slot
from langchain_judges.verdict import ConfidenceSource, Pair, Preference, Role, Vote


class RoleBallot(TypedDict):
    """One role's vote in one order and sample, before they are summed."""

    position: int
    """Of the role in the panel."""
    role: str
    order: Order
    sample: int
    preference: Preference
    reason: str
    confidence: float | None
    confidence_source: ConfidenceSource
    tokens: int | None


class DRPEState(PairState, total=False):
    """State of the graph; every value is plain JSON."""

    proposed: list[Role]
    """The roles a model named, coarse before fine, before any were chosen."""
    roles: Annotated[list[Role], Emits("role")]
    """The panel."""
    ballots: Annotated[list[RoleBallot], Emits("vote"), joined]
    votes: list[Vote]
    score_norm: float | None
    roles_key: str
    task: str
    due: list[int]
    """The positions of the roles that vote next; only where `adaptive`."""
    asked: int
    """How many roles were asked to vote, from the first; only where `adaptive`."""
    not_asked: list[str]


class DRPEResult(PairResult):
    """What the graph returns."""

    roles: list[Role]
    proposed: list[Role]
    votes: list[Vote]
    score_norm: float | None
    """The sum for A over its number of valid votes: what the protocol correlates."""
    roles_key: str
    """Equal keys mean that the roles may be used again."""
    task: str
    """What was judged: the name of a task, or `"own"`."""
    not_asked: list[str]
    """The roles whose votes could not change the verdict, or would not with the stated
    probability (`Voting(adaptive=…)`)."""


class VoteWork(TypedDict):
    """Input of one parallel vote node."""

    pair: Pair
    roles: list[Role]
    positions: list[int]
    order: Order
    sample: int
    examples: list[Example]


class Reader(BaseModel):
    """A kind of reader, as a model names it; one without a description is dropped later."""

    type: str = Field(json_schema_extra={"maxLength": 40})
    description: str


@cache
def readers_shape(pool: int) -> type[BaseModel]:
    """Return the shape of a list of `pool` readers; more or fewer are no error."""
    limit = Field(min_length=1, json_schema_extra={"maxItems": pool, "minItems": pool})
    return create_model("Readers", readers=(list[Reader], limit))


@cache
def both_readers_shape(pool: int) -> type[BaseModel]:
    """Return the shape of the reply to the merged prompt."""
    limit = Field(min_length=1, json_schema_extra={"maxItems": pool, "minItems": pool})
    readers = (list[Reader], limit)
    return create_model("BothReaders", general=readers, familiarity=readers)


class RoleVote(BaseModel):
    """One role's vote; the reason first, as in the papers."""

    reason: str
    vote: Slot


def unit_names(count: int) -> list[str]:
    """Return what a reply calls each of so many roles."""
    return [f"role_{number}" for number in range(1, count + 1)]


@cache
def votes_shape(count: int) -> type[BaseModel]:
    """Return the shape of the votes of `count` roles: `role_1`, `role_2` …, all required."""
    return shape_of("Votes", dict.fromkeys(unit_names(count), RoleVote))
