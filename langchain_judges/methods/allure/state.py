"""The types of an audit: its options, what auditors are asked, its state and its result.

Apart from the options, every value is plain JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NotRequired

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, InstanceOf
from typing_extensions import TypedDict

from langchain_judges.asking.models import ModelLike
from langchain_judges.methods import pairs
from langchain_judges.methods.allure import label_checks
from langchain_judges.methods.declaration import GraphOptions, Seed
from langchain_judges.methods.rubric.criteria import read_labels
from langchain_judges.options import NotSerialisable, Owner, Rule
from langchain_judges.verdict import Item, Label, LabelVerdict, Usage

# Every prompt that asks a model about a judge's labels, by the name of its step.
PROMPTS = pairs.prompts_in("allure/prompts.yaml", "allure")
# What the prompts are filled with.
WORDS = pairs.words_in("allure/prompts.yaml")

# What an auditor answers: the proposed label is right; nothing to learn here; the judge was
# wrong, with a label of the auditor's own; with a failure mode of the auditor's own; the judge
# was right, so the check was wrong.
AuditAnswer = Literal["accept", "reject", "label", "mode", "check_wrong"]


class AuditItem(Item):
    """An item of an audit: it has an id, and may have its true label.

    Attributes:
        label: The true label.
        note: Why it is right, by the person who gave it.
        auditor: Who gave it.
    """

    label: NotRequired[Label]
    note: NotRequired[str]
    auditor: NotRequired[str]


class AuditProposal(TypedDict):
    """A label that a check doubts, or one drawn among the others, for an auditor to decide.

    Attributes:
        id: The item's id.
        item: The item, with what people know of it.
        label: What the judge said.
        rationale: The judge's reason.
        proposed: What the check would say; the judge's own label where no rule doubts it.
    """

    id: str
    round: int
    item: AuditItem
    label: Label
    score: float | None
    rationale: str
    proposed: Label
    why: str
    check: str


class AuditRequest(TypedDict):
    """The request of an interrupted audit to people.

    Attributes:
        proposals: Those without an answer.
        modes: Names and descriptions of the failure modes.
        problems: Why answers given before could not be taken.
    """

    round: int
    proposals: list[AuditProposal]
    labels: list[Label]
    modes: list[dict[str, str]]
    problems: list[str]


class AuditDecision(TypedDict):
    """An auditor's answer to a proposal, resolved.

    Attributes:
        wrong: What the judge said.
        label: The audited label; None where the proposal was rejected.
    """

    id: str
    round: int
    answer: AuditAnswer
    wrong: Label
    label: Label | None
    mode: str | None
    note: str
    auditor: str
    check: str


# The example that a decision makes of a proposal, as a memory takes it.
AuditedExample = dict[str, Any]
# `"human"`, `"labels"`, a model, or a function from a proposal to an answer.
Auditor = ModelLike | Callable[[AuditProposal], Any]
# The items that are held out, or their share.
Dev = float | Sequence[Mapping[str, Any]]


def _checked_share(dev: Dev | None) -> Dev | None:
    if isinstance(dev, int | float) and not 0 < dev < 1:
        raise ValueError("no share")
    return dev


class AuditOptions(GraphOptions):
    """The options of an audit.

    Attributes:
        check: Finds likely mistakes: a name (default `"answer_or_label"`:
            `"normalised_sequence"` where an item has an expected answer, else `"annotated"`),
            a `Check`, or a function from item and label; see `label_checks.py`.
        auditor: `"human"`: the graph is interrupted with all proposals of a round, and resumes
            with `Command(resume=answers)`; see `auditors.py` for answers. `"labels"`: the
            items' own labels by people decide. Or a function from one proposal to an answer,
            or a model.
        modes: Your own failure modes, in addition to the paper's five.
        right_share: The largest share of cases that the judge got right among the examples of
            a round, as a memory of mistakes alone teaches a judge to invert its labels. These
            are labels that the auditor upholds against the check, and some that no rule
            doubts, which the auditor is asked about too: one for every three doubted ones, at
            random, first from doubted families and labels. A wrong one among them is a mistake
            that the check missed. 0 asks about none, and is the paper's memory.
        max_rounds: Maximum number of rounds.
        dev: Items that are judged and never audited, each with its true label: a list, or the
            share of the items to hold out, by group. With it, examples enter the memory only
            if dev rises with them by more than chance explains; the others wait. They are
            tried on an overlay of the memory that only this judge sees, in this process. An
            example without which dev does better waits too. A refused batch is halved, in at
            most 15 trials a round.
        test: Items that decide nothing, on which the audit's gain is measured: a list, or a
            share of the items, by group; 0 for none. Default: as many as `dev` if that is a
            share, at most half of the rest; else none.
        shown_on: Fewest items of dev that must have been shown an example in its trial; with
            fewer it is not measured, and waits.
        risk: Chance that labels changed at random pass as a rise of dev; all trials so far
            share it, so that the gate grows stricter with each.
        labels: The judge's labels, worst first; default those of the judge, else 0 and 1.
        seed: Seed of the split.
        max_concurrency: Items judged at the same time.
    """

    method = "allure_audit"
    label: ClassVar[str] = "audit"
    summary = "ALLURE's audit: find a judge's mistakes, have them audited, remember them."
    templates = {"audit": PROMPTS["audit"]}
    results = (
        *("verdicts", "dev_verdicts", "test_verdicts", "decisions", "trials", "examples"),
        *("waiting", "history", "gain", "stopped"),
    )

    check: Annotated[
        InstanceOf[label_checks.Check] | Callable[..., Any] | str | None,
        Owner(),
        Rule(f"one of {sorted(label_checks.CHECKS)} or a function"),
    ] = None
    auditor: Annotated[Auditor, Owner(), Rule("'human', 'labels', a model or a function")] = "human"
    modes: Annotated[Sequence[str] | None, NotSerialisable(), Rule("a list of failure modes")] = (
        None
    )
    right_share: Annotated[float, Ge(0), Lt(1)] = 0.25
    max_rounds: Annotated[int, Ge(1)] = 5
    dev: Annotated[
        Dev | None,
        AfterValidator(_checked_share),
        Rule("a list of items or a share above 0 and below 1"),
    ] = None
    test: Annotated[
        Dev | None,
        AfterValidator(lambda test: _checked_share(test) if test != 0 else 0),
        Rule("a list of items, 0, or a share above 0 and below 1"),
    ] = None
    shown_on: Annotated[int, Ge(1)] = 3
    risk: Annotated[float, Gt(0), Le(1)] = 0.25
    labels: Annotated[
        Sequence[Label] | None,
        AfterValidator(lambda labels: labels if labels is None else tuple(read_labels(labels))),
        Rule("two or more distinct numbers or texts, from worst to best"),
    ] = None
    seed: Seed = 0
    max_concurrency: Annotated[int, Ge(1), Owner()] = 16

    def calls(self) -> int:
        """0: how much an audit asks depends on what it finds."""
        return 0

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return self.max_concurrency


# Why a loop ended: its last round, or a round that taught nothing.
Stopped = Literal["max_rounds", "nothing_new"]

# Verdicts by the id of their item.
VerdictsById = dict[str, LabelVerdict]


class JudgeWorth(TypedDict):
    """The performance of a judge on labelled items; rates are in [0, 1].

    Attributes:
        not_judged: Items without a label from the judge; they count as wrong.
        majority: The accuracy of always giving the most frequent label.
        balanced_accuracy: The mean of the recalls of the labels that occur; it is the AUC of
            two hard labels.
        high: The 95 % interval of the accuracy; None for fewer than five groups of items.
    """

    n: int
    not_judged: int
    accuracy: float
    low: float | None
    high: float | None
    majority: float
    balanced_accuracy: float


class Gain(TypedDict):
    """The judge on items that decided nothing, before and after the audit.

    Attributes:
        gain: In accuracy, with its 95 % interval by groups (`metrics.paired_difference`).
        problem: Why nothing could be measured; empty where it was.
    """

    before: JudgeWorth | None
    after: JudgeWorth | None
    gain: float | None
    low: float | None
    high: float | None
    problem: str


class Round(TypedDict):
    """The result of one round.

    Attributes:
        evaluated: Items judged in this round, those of dev included.
        doubted: Labels that the check doubts, decided ones of earlier rounds included.
        right: Of those that entered the memory: cases that the judge got right.
        remembered: Examples that entered the memory.
        waiting: Accepted examples that have not, by the end of the round.
        pool: The judge on the items that are audited, where people labelled them.
        dev_before: The judge on dev, as the round began.
        dev: The same, with what it now remembers. Dev chose the examples, so it flatters the
            judge: what an audit brought is its `gain`.
    """

    round: int
    evaluated: int
    not_judged: int
    doubted: int
    proposed: int
    accepted: int
    right: int
    rejected: int
    check_wrong: int
    remembered: int
    waiting: int
    memory_version: str
    memory_size: int
    pool: JudgeWorth | None
    dev_before: JudgeWorth | None
    dev: JudgeWorth | None
    usage: Usage


class AdmissionTrial(TypedDict):
    """Examples tried on dev, and what became of them.

    Attributes:
        examples: Their ids, if they were admitted.
        sources: The ids of the items that they come from.
        before: Balanced accuracy on dev without them.
        accuracy_before: Plain accuracy on dev without them.
        chance: Probability of such a rise if labels changed at random, by a sign test of
            groups.
        limit: Largest chance that this trial may have.
    """

    round: int
    examples: list[str]
    sources: list[str]
    before: float
    after: float
    accuracy_before: float
    accuracy_after: float
    chance: float
    limit: float
    admitted: bool


# Dev did not rise enough; it does better without the example; too few items of dev were shown
# it; or no trial of the round could have admitted it.
WhyWaiting = Literal["no_gain", "harms", "unmeasured", "untried"]


class Waiting(TypedDict):
    """An accepted example that has not entered the memory.

    Attributes:
        memory_version: Of the memory it was last tried with.
    """

    example: AuditedExample
    why: WhyWaiting
    memory_version: str


class AuditInput(TypedDict):
    """The input of the loop.

    Attributes:
        items: Items to judge and audit: `Item`, with `label` and whatever else people know.
    """

    items: list[dict[str, Any]]


class AuditState(AuditInput, total=False):
    """State of the graph.

    Attributes:
        pool: What is audited; every item has an id.
        dev: What decides which examples enter the memory.
        test: What decides nothing.
        doubts: A `Doubt` of the check as plain JSON, by the id of its item.
        stale: Ids whose verdicts the last round may have changed.
        queue: Accepted examples that are still to be tried, in batches.
        tried_with: The version of the memory with which the next batch is tried.
        kept: A batch of which each has been left out.
        learnt: What entered the memory in this round.
        decisions: Every answer of every round; those with `check_wrong` show where to fix the
            check.
        examples: Ids of what entered the memory.
        waiting: Accepted examples that did not.
        gain: What the audit brought, measured on `test`; None until it has stopped.
    """

    pool: list[AuditItem]
    dev: list[AuditItem]
    test: list[AuditItem]
    round: int
    stale: list[str]
    verdicts: VerdictsById
    dev_verdicts: VerdictsById
    test_before: VerdictsById
    test_verdicts: VerdictsById
    doubts: dict[str, dict[str, Any]]
    dev_before: JudgeWorth | None
    proposals: list[AuditProposal]
    decisions: list[AuditDecision]
    queue: list[list[AuditedExample]]
    tried_with: str
    kept: list[AuditedExample]
    learnt: list[AuditedExample]
    trials: list[AdmissionTrial]
    examples: list[str]
    waiting: list[Waiting]
    spent: list[Usage]
    history: list[Round]
    gain: Gain | None
    stopped: Stopped | None
