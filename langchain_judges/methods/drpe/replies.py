"""State of the DRPE judge, and the shapes its model replies in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, create_model

from langchain_judges.asking import reading, reply_text
from langchain_judges.methods.pairs import PairState
from langchain_judges.orders import Order, Slot
from langchain_judges.verdict import Role, Vote


class RoleBallot(Vote):
    """One role's vote in one order and sample, before they are summed.

    Attributes:
        position: Of the role in the panel.
    """

    position: int
    order: Order
    sample: int


class DRPEState(PairState, total=False):
    """State of the graph; every value is plain JSON.

    Attributes:
        proposed: The roles a model named, coarse before fine, before any were chosen.
        roles: The panel.
        score_norm: The sum for A over its number of valid votes: what the protocol correlates.
        roles_key: Equal keys mean that the roles may be used again.
        task: What was judged: the name of a task, or `"own"`.
    """

    proposed: list[Role]
    roles: list[Role]
    ballots: list[RoleBallot]
    votes: list[Vote]
    score_norm: float | None
    roles_key: str
    task: str


class Call(NamedTuple):
    """Whom one call asks.

    Attributes:
        roles: The panel.
        positions: Those of the panel that are asked, as the prompt shows them.
    """

    roles: Sequence[Role]
    positions: Sequence[int]
    order: Order
    sample: int

    @property
    def voters(self) -> list[Role]:
        """The roles that are asked."""
        return [self.roles[position] for position in self.positions]


class Reader(BaseModel):
    """A kind of reader, as a model names it; one without a description is dropped later."""

    type: str = Field(json_schema_extra={"maxLength": 40})
    description: str


# What a text wants, as the model that names its readers says.
WantedTask = Literal["summary", "response"]


@cache
def readers_shape(pool: int, merged: bool = False, *, is_open: bool = False) -> type[BaseModel]:
    """The shape of a list of `pool` readers; more or fewer are no error.

    Args:
        pool: Readers.
        merged: Whether the reply is to the merged prompt, which asks for two lists.
        is_open: Whether the reply also says what the text asks for.
    """
    limit = Field(min_length=1, json_schema_extra={"maxItems": pool, "minItems": pool})
    names = ("general", "familiarity") if merged else ("readers",)
    fields: dict[str, Any] = dict.fromkeys(names, (list[Reader], limit))
    if is_open:
        fields = {"wanted": (WantedTask, "response"), **fields}
    return create_model("BothReaders" if merged else "Readers", **fields)


class RoleVote(BaseModel):
    """One role's vote; the reason first, as in the papers."""

    reason: str
    vote: Slot


def unit_names(count: int) -> list[str]:
    """The names, in a reply, of so many roles."""
    return [f"role_{number}" for number in range(1, count + 1)]


@cache
def votes_shape(count: int) -> type[BaseModel]:
    """The shape of the votes of `count` roles: `role_1`, `role_2` …, all required."""
    return reading.shape_of("Votes", dict.fromkeys(unit_names(count), RoleVote))


# Of a role's reply whose tokens count.
PARTS = ("reason", "vote")


def confidences(message: AIMessage, data: Mapping[str, object]) -> dict[str, list[float | int]]:
    """`{"role_1": [confidence, tokens], …}` of the roles whose tokens are known.

    Eq. 3 of the paper is taken over the tokens of the reason and the vote themselves: no
    names, quotes or commas, which the format and not the role decides.
    """
    letters = reply_text.Spelling.of(message)
    if letters is None:
        return {}
    places = reply_text.json_spans(letters.text)
    measured = {
        # A role that was asked alone has no name in its reply.
        str(path[0]) if len(path) > 1 else "role_1": letters.confidence(
            [places[*path[:-1], part] for part in PARTS if (*path[:-1], part) in places]
        )
        for path in places
        if path[-1:] == ("vote",)
    }
    return {unit: list(confidence) for unit, confidence in measured.items() if confidence}
