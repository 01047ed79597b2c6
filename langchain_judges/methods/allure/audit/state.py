"""State of the audit loop; every value is plain JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, create_model
from typing_extensions import TypedDict

from langchain_judges.methods.allure.audit.holdout import Measured
from langchain_judges.methods.allure.audit.review import (
    AuditDecision,
    AuditedExample,
    AuditItem,
    AuditProposal,
)
from langchain_judges.verdict import Item, Label, LabelVerdict, Usage

Stopped = Literal["max_rounds", "nothing_new", "no_gain"]
"""Why a loop ended: its last round, a round that taught nothing, or no gain on dev."""

VerdictsById = dict[str, LabelVerdict]
"""Verdicts by the id of their item."""


def _both(old: VerdictsById, new: VerdictsById) -> VerdictsById:
    return {**old, **new}


class Round(TypedDict):
    """The result of one round."""

    round: int
    evaluated: int
    """Items judged in this round, those of dev included."""
    not_judged: int
    doubted: int
    """Labels that the check doubts, decided ones of earlier rounds included."""
    proposed: int
    accepted: int
    right: int
    """Of those that entered the memory: cases that the judge got right."""
    rejected: int
    check_wrong: int
    remembered: int
    """Examples that entered the memory."""
    waiting: int
    """Accepted examples that have not, by the end of the round."""
    unmeasured: list[str]
    """Families of examples that no item of dev can be shown, so that nothing measured them."""
    memory_version: str
    memory_size: int
    pool: Measured | None
    """The judge on the items that are audited, where people labelled them."""
    dev_before: Measured | None
    """The judge on items that the memory never holds, as the round began."""
    dev: Measured | None
    """The same, with what it now remembers."""
    usage: Usage


class AdmissionTrial(TypedDict):
    """Examples tried on dev, and what became of them."""

    round: int
    examples: list[str]
    """Their ids, if they were admitted."""
    sources: list[str]
    """The ids of the items that they come from."""
    before: float
    """Balanced accuracy on dev without them."""
    after: float
    risk: float | None
    """How likely it is that it fell, by a paired bootstrap; None: nothing was measured."""
    unmeasured: list[str]
    """Families among them that no item of dev can be shown."""
    admitted: bool


class Waiting(TypedDict):
    """An accepted example that has not entered the memory."""

    example: AuditedExample
    why: Literal["fell", "unmeasured"]
    """Dev fell with it; or no item of dev can be shown it."""
    memory_version: str
    """Of the memory it was last tried with."""


class PlainDoubt(TypedDict):
    """What a check doubts, as `Doubt` says it."""

    label: Label
    why: str


class EvaluationWork(TypedDict):
    """Input of one parallel evaluation."""

    part: Literal["verdicts", "dev_verdicts"]
    item: Item


class Batch(TypedDict):
    """Input of a part of a trial, judged one after the other."""

    items: list[Item]
    examples: list[AuditedExample]
    """What is on trial."""


class AuditInput(TypedDict):
    """What the loop takes."""

    items: list[dict[str, Any]]
    """Items to judge and audit: `Item`, with `label` and whatever else people know."""


class AuditState(AuditInput, total=False):
    """State of the graph."""

    pool: list[AuditItem]
    """What is audited; every item has an id."""
    dev: list[AuditItem]
    """What is held out."""
    round: int
    stale: list[str]
    """Ids whose verdicts the last round may have changed."""
    verdicts: Annotated[VerdictsById, _both]
    dev_verdicts: Annotated[VerdictsById, _both]
    trial_verdicts: Annotated[VerdictsById, _both]
    doubts: dict[str, PlainDoubt]
    dev_before: Measured | None
    proposals: list[AuditProposal]
    decisions: list[AuditDecision]
    queue: list[list[AuditedExample]]
    """Accepted examples that are still to be tried, in batches."""
    batch: list[AuditedExample]
    """What is on trial."""
    learnt: list[AuditedExample]
    """What entered the memory in this round."""
    trials: list[AdmissionTrial]
    examples: list[str]
    waiting: list[Waiting]
    spent: list[Usage]
    history: list[Round]
    stopped: Stopped | None
    leak_allowed: bool
    grouped_by_task: int


class AuditResult(TypedDict):
    """What the loop returns."""

    verdicts: VerdictsById
    dev_verdicts: VerdictsById
    decisions: list[AuditDecision]
    """Every answer of every round; those with `check_wrong` show where to fix the check."""
    trials: list[AdmissionTrial]
    examples: list[str]
    """Ids of what entered the memory."""
    waiting: list[Waiting]
    """Accepted examples that did not."""
    history: list[Round]
    stopped: Stopped | None
    leak_allowed: bool
    grouped_by_task: int
    """Items without a `group`, which was taken to be their task: no example of a task is
    shown to an item of it, and dev has no task of the others."""


def audited_shape(modes: tuple[str, ...]) -> type[BaseModel]:
    """Return the shape of a model's audit of one proposal."""
    names = (*modes, "none")
    fields: dict[str, Any] = {
        "reason": (str, ...),
        "answer": (Literal["accept", "reject", "check_wrong"], ...),
        "mode": (Literal[names], ...),
    }
    return create_model("Audited", **fields)
