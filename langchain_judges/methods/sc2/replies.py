"""The state of SC², and the shapes in which its models reply."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.asking.nodes import Gathered
from langchain_judges.asking.replies.reading import lax_shape, shape_of
from langchain_judges.memory.example import Example
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.orders import Order, Slot
from langchain_judges.verdict import Pair, Preference

_STRINGS = 3
"""Strings of full length for which a table has room, where a model's replies are cut soon."""
_SHORTEST = 24
"""Characters of a cell, at least."""
MOST_ASPECTS = 8
"""Aspects of one text that a reply may name."""


Inference = Literal["tournament", "exact", "exact_unordered", "double_round", "random", "swiss"]
"""How the best table is found; `create_sc2_judge` explains each."""

DecidedBy = Literal["comparator", "coin", "bye", "validity", "check", "identical"]


class TableRow(TypedDict):
    """One line of a table: what the texts share in an aspect and what only one has."""

    aspect: str
    common: str
    only_a: str
    only_b: str


class ComparisonTable(TypedDict):
    """A sampled table, by identity of the texts."""

    number: int
    """From 1, as traces and brackets call it."""
    rows: list[TableRow]
    """One for each aspect, in their order; cells that say nothing hold `none`."""
    valid: bool
    """Whether more than half of its rows say something; others lose without a call."""


class AspectProposal(TypedDict):
    """The aspects that one online sample named, best first."""

    sample: int
    aspects: list[str]


class CheckedTable(TypedDict):
    """What the deterministic check found in one table; all figures in [0, 1]."""

    number: int
    overlap: float
    """The worst row's overlap between its shared cell and one of the others."""
    entailment: float | None
    """Mean support of the cells by the texts they speak of."""
    coverage: float | None
    """Mean share of the texts' sentences that the cells tell."""
    unsupported: list[dict[str, str]]
    """Cells that neither text supports, as `{"aspect", "cell", "text"}`."""
    clean: bool
    """Whether no row overlaps and no cell is unsupported."""


class TableMatch(TypedDict):
    """A meeting of two tables, or a bye."""

    round: int
    match: int
    tables: list[int]
    """Their numbers, in the order in which the comparator sees them; one for a bye."""
    winner: int | None
    """None while it is not decided."""
    decided_by: DecidedBy
    why: str
    asked: bool
    """Whether the comparator was asked."""
    aspect: str
    """The row it is about with `row_wise=True`; else empty."""
    probability: NotRequired[float | None]
    """Of the comparator's label, where `crown="strength"` asked for it."""


class Comparisons(TypedDict):
    """What the search for the best table took."""

    mode: Inference
    spent: int
    """Comparisons asked of the comparator."""
    saved: int
    """Comparisons that the table check decided instead."""
    rounds: int
    cyclic_triples: int | None
    """Triples of tables that beat each other in a circle; None where not all met."""
    not_asked: int
    """Comparisons that could not change which table wins (`adaptive=True`)."""


class PreferenceReply(TypedDict):
    """What one preference call said, by identity of the texts."""

    order: Order
    sample: int
    preference: Preference
    probability: float | None
    """Of the label's own tokens, where log-probabilities came."""
    comparison: str


class SC2State(PairState, total=False):
    """State of the graph."""

    proposals: Gathered[AspectProposal]
    aspects: list[str]
    tables: Gathered[ComparisonTable]
    checks: list[CheckedTable]
    bracket: Gathered[TableMatch]
    """Who met whom, who won, and why."""
    pending: list[TableMatch]
    """Matches of this round that the comparator has to decide."""
    table: ComparisonTable | None
    """The table that won; None where there is none."""
    comparisons: Comparisons | None
    choices: Gathered[PreferenceReply]
    due: list[tuple[Order, int]]
    """The preference samples asked next, by order and number; only where `adaptive`."""
    asked: dict[Order, int] | None
    """How many preference samples each order was asked for; None where all are."""
    not_asked: list[str]


class SC2Result(PairResult):
    """What the graph returns."""

    aspects: list[str]
    proposals: list[AspectProposal]
    tables: list[ComparisonTable]
    checks: list[CheckedTable]
    bracket: list[TableMatch]
    table: ComparisonTable | None
    comparisons: Comparisons | None
    choices: list[PreferenceReply]
    not_asked: list[str]
    """The names of the preference samples that could not change the verdict (`adaptive`)."""


class TableWork(TypedDict):
    """Input of one parallel node that samples aspects or a table."""

    pair: Pair
    aspects: list[str]
    number: int


class MatchWork(TypedDict):
    """Input of one parallel comparison: two tables in the order in which they are shown."""

    pair: Pair
    match: TableMatch
    tables: list[ComparisonTable]


class PreferenceWork(TypedDict):
    """Input of one preference call."""

    pair: Pair
    table: ComparisonTable | None
    order: Order
    sample: int
    examples: list[Example]


Phrases = list[Annotated[str, Field(json_schema_extra={"maxLength": 40})]]


class Aspects(BaseModel):
    """Aspects of a pair, after thinking about them."""

    reasoning: str
    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": 5})


@cache
def aspects_shape(n: int) -> type[Aspects]:
    """Return the shape of a reply that names at most n aspects."""
    most = Field(min_length=1, json_schema_extra={"maxItems": n})
    return create_model("Aspects", __base__=Aspects, aspects=(Phrases, most))


class Extracted(BaseModel):
    """Aspects of one text."""

    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": MOST_ASPECTS})


class Decision(BaseModel):
    """Which of two tables is more consistent."""

    more_consistent: Slot
    justification: str


class Preferred(BaseModel):
    """Which of two texts is preferred, after comparing them."""

    comparison: str
    preferred: Slot


def aspect_names(n: int) -> list[str]:
    """Return what a reply calls each of n aspects, or its row."""
    return [f"aspect_{number}" for number in range(1, n + 1)]


@cache
def table_shapes(
    n: int, text_limit: int | None = None
) -> tuple[type[BaseModel], type[BaseModel]]:
    """Return the shape of a table of n rows, and one that saves what rows there are.

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
    """Return the shape of exactly n aspects."""
    phrase = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 40})]
    return shape_of("Merged", dict.fromkeys(aspect_names(n), phrase))
