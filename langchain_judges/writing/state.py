"""State of the writers, and the shapes their model replies in."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.asking.nodes import Emits, Silent, joined
from langchain_judges.verdict import Failure, Usage
from langchain_judges.writing.coverage import Missing


class WritingTask(TypedDict):
    """What a text has to use, and what it is to be."""

    concepts: list[str]
    instruction: NotRequired[str | None]
    """What is written; default a story of one paragraph."""
    id: NotRequired[str]


class Piece(TypedDict):
    """What one call wrote: the draft of a group, or a sample."""

    unit: str
    text: str | None
    """None: the call failed."""


class WriteState(WritingTask, total=False):
    """State of the graph; every value is plain JSON."""

    topic: str | None
    pieces: Annotated[list[Piece], Emits("draft"), joined]
    turns: int
    """Repair turns made."""
    text: str | None
    groups: Annotated[list[list[str]], Emits("group")]
    drafts: list[str | None]
    missing: list[Missing]
    failures: Silent[Failure]
    usages: Silent[Usage]
    usage: Usage


class WriteResult(TypedDict):
    """What a writer returns."""

    id: str | None
    """The id that was given, if there was one."""
    concepts: list[str]
    """The concepts asked for, repetitions left out."""
    text: str | None
    """None: nothing usable was written, see `failures`."""
    topic: str | None
    groups: list[list[str]]
    """The concepts by the draft that had to use them."""
    drafts: list[str | None]
    """The drafts, in the order of `groups`; None for one that failed."""
    missing: list[Missing]
    usage: Usage
    failures: list[Failure]


class GivenPart(TypedDict):
    """A text to work on, and the concepts that it has to use."""

    concepts: list[str]
    text: str


class WriteWork(TypedDict):
    """Input of one node that writes."""

    unit: str
    concepts: list[str]
    instruction: str | None
    topic: str | None
    place: str
    """Which part of the text is written, as the prompt says it; empty for all of it."""
    sample: NotRequired[int]
    """Which sample of the whole text."""


class Draft(BaseModel):
    """A text."""

    text: str = Field(pattern=r"\w")


class Topic(BaseModel):
    """A topic."""

    topic: str = Field(pattern=r"\w", json_schema_extra={"maxLength": 100})


@cache
def split_shape(groups: int, concepts: int) -> type[BaseModel]:
    """Return the shape of a division into `groups` groups: a topic, then each group.

    What stands in the groups is not checked here: the division is corrected afterwards.
    """
    short = Annotated[str, Field(json_schema_extra={"maxLength": 40})]
    many = Field(json_schema_extra={"maxItems": concepts})
    fields: dict[str, Any] = {"topic": (str, Field(json_schema_extra={"maxLength": 100}))}
    fields |= {f"group_{n}": (list[short], many) for n in range(1, groups + 1)}
    return create_model("Split", **fields)


@cache
def pick_shape(texts: int) -> type[BaseModel]:
    """Return the shape of a choice among so many texts."""
    numbers = tuple(str(n) for n in range(1, texts + 1))
    fields: dict[str, Any] = {"explanation": (str, ...), "choice": (Literal[numbers], ...)}
    return create_model("Pick", **fields)
