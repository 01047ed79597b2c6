"""The state of SC², and the shapes in which its models reply."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.asking.reading import lax_shape, shape_of
from langchain_judges.methods.pairs import PairState
from langchain_judges.methods.replies import ChoiceFields
from langchain_judges.orders import Order, Slot, SlotOrTie
from langchain_judges.verdict import Preference

# Strings of full length for which a table has room, where a model's replies are cut soon.
_STRINGS = 3
# Characters of a cell, at least.
_SHORTEST = 24
# Aspects of one text that a reply may name.
MOST_ASPECTS = 8


# How the best table is found; `create_sc2_judge` explains each.
Inference = Literal["tournament", "exact", "random"]

DecidedBy = Literal["comparator", "coin", "bye", "identical"]


class TableRow(TypedDict):
    """One line of a table: what the texts share in an aspect and what only one has."""

    aspect: str
    common: str
    only_a: str
    only_b: str


class ComparisonTable(TypedDict):
    """A sampled table, by identity of the texts.

    Attributes:
        number: From 1, as traces and brackets call it.
        rows: One for each aspect, in their order; cells that say nothing hold `none`.
        valid: Whether more than half of its rows say something; one that is not
            valid takes no part.
    """

    number: int
    rows: list[TableRow]
    valid: bool


class AspectProposal(TypedDict):
    """The aspects that one online sample named, best first."""

    sample: int
    aspects: list[str]


class TableMatch(TypedDict):
    """A meeting of two tables, or a bye.

    Attributes:
        tables: Their numbers, in the order in which the comparator sees them; one for a bye.
        asked: Whether the comparator was asked.
    """

    round: int
    match: int
    tables: list[int]
    winner: int
    decided_by: DecidedBy
    why: str
    asked: bool


class PreferenceReply(TypedDict):
    """The reply of one preference call, by identity of the texts.

    Attributes:
        probability: Of the label's own tokens, where log-probabilities came.
    """

    order: Order
    preference: Preference
    probability: float | None
    comparison: str


class SC2State(PairState, total=False):
    """State of the graph.

    Attributes:
        bracket: Who met whom, who won, and why.
        table: The table that won; None where there is none.
    """

    proposals: list[AspectProposal]
    aspects: list[str]
    tables: list[ComparisonTable]
    bracket: list[TableMatch]
    table: ComparisonTable | None
    choices: list[PreferenceReply]


Phrases = list[Annotated[str, Field(json_schema_extra={"maxLength": 40})]]


class Aspects(BaseModel):
    """Aspects of a pair, after thinking about them."""

    reasoning: str
    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": 5})


@cache
def aspects_shape(n: int) -> type[Aspects]:
    """The shape of a reply that names at most n aspects."""
    most = Field(min_length=1, json_schema_extra={"maxItems": n})
    return create_model("Aspects", __base__=Aspects, aspects=(Phrases, most))


class Extracted(BaseModel):
    """Aspects of one text."""

    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": MOST_ASPECTS})


class Decision(BaseModel):
    """Which of two tables is more consistent."""

    justification: str
    more_consistent: Slot


class EvenDecision(Decision):
    """The same, or that both are equally consistent."""

    more_consistent: SlotOrTie  # type: ignore[assignment]


class Preferred(BaseModel):
    """Which of two texts is preferred, after comparing them."""

    comparison: str
    preferred: Slot


def aspect_names(n: int) -> list[str]:
    """The name of each of n aspects, or its row, in a reply."""
    return [f"aspect_{number}" for number in range(1, n + 1)]


@cache
def table_shapes(
    n: int, text_limit: int | None = None
) -> tuple[type[BaseModel], type[BaseModel]]:
    """The shape of a table of n rows, and one that saves what rows there are.

    Args:
        n: Rows.
        text_limit: Most characters of a string, where the model's replies are cut soon; a
            table has many strings, and each gets its share of a few such lengths.
    """
    extra: Any = (
        {"maxLength": max(_SHORTEST, _STRINGS * text_limit // (3 * n))} if text_limit else None
    )
    cell = Annotated[str, Field(json_schema_extra=extra)]
    row = shape_of("Row", dict.fromkeys(("common", "only_1", "only_2"), cell))
    names = aspect_names(n)
    return shape_of("Table", dict.fromkeys(names, row)), lax_shape(tuple(names))


def merged_shape(n: int) -> type[BaseModel]:
    """The shape of exactly n aspects."""
    phrase = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 40})]
    return shape_of("Merged", dict.fromkeys(aspect_names(n), phrase))


# What names the preferred text, and the better table.
PREFERRED = ChoiceFields("comparison", "preferred")
DECISION = ChoiceFields("justification", "more_consistent")
