"""The words every judge speaks: pairs, verdicts, failures and usage.

All of them are plain dictionaries, so that checkpoints, LangSmith and a LangGraph server
carry them unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, get_args

from annotated_types import Ge, Le
from typing_extensions import TypedDict

Preference = Literal["A", "B", "tie"]
"""The better text, by identity and never by the slot it was shown in."""

# Preference for A as a number.
POINTS: Mapping[object, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}

# From 0 to 1.
_Share = Annotated[float, Ge(0), Le(1)]

# A judge's answer about one text: 0 and 1, a grade, or a word.
Label = int | float | str

# Source of a judge's certainty: the probability of its label (`logprobs`: of its tokens, or
# as a decision model gives it), the agreement of samples or members (`samples`), the lead of
# its scores, which means something once it is calibrated (`scores`: there is no confidence
# then), or nothing (`none`). Nothing is never certain: a cascade asks its next judge.
ConfidenceSource = Literal["logprobs", "samples", "scores", "none"]

# Every way in which a unit of work can fail, by what it is of; docs/verdict.md explains each.
_OfRow = Literal["invalid_input", "lacking", "over_budget"]
_OfCall = Literal["provider_error", "timeout", "internal_error"]
_OfReply = Literal["unparsable", "invalid_label", "empty", "refusal", "no_logprobs"]
_TooLong = Literal["input_cut", "truncated", "context_overflow"]
_Undecided = Literal["cannot_assess", "no_majority", "missing", "unsure"]
_OfReading = Literal["read_as_json", "one_of_several"]
FailureReason = Literal[_OfRow, _OfCall, _OfReply, _TooLong, _Undecided, _OfReading]

# Chat messages `{"role", "content"}`.
Messages = list[dict[str, Any]]


# Reasons that note how a row was read.
READING = get_args(_OfReading)
# Reasons that note what a judgment lacked, not why there is none.
_NOTED = ("input_cut", "no_logprobs", *READING)
# Where a row keeps the notes on how it was read, until its verdict says them.
NOTES = "notes_on_reading"
# Reasons for which no judge answered: a row with no others says nothing of the judge.
UNANSWERED = frozenset(get_args(_OfRow) + get_args(_OfCall))


class Pair(TypedDict):
    """Two texts to compare, and the task they answer.

    LangChain messages are accepted too, single or in a list, and stored as dictionaries.

    Attributes:
        input: The task: an article, query or question; or the chat messages both sides share.
        output_a: The candidate; a list holds this side's own messages, and the last one is
            judged.
        output_b: The baseline, in the same form as `output_a`.
        reference: A known good answer, if there is one.
        id: Kept and returned.
        variables: Other fields of the row, for a prompt of your own that names them.
        notes_on_reading: Which of several keys were read, for the failures of its verdict.
    """

    input: str | Messages
    output_a: str | Messages
    output_b: str | Messages
    reference: NotRequired[str | None]
    id: NotRequired[str]
    variables: NotRequired[dict[str, Any]]
    notes_on_reading: NotRequired[list[Failure]]


class Row(Pair):
    """A pair with annotations, which are kept in outputs and never shown to a model.

    Attributes:
        systems: Who wrote A and B, in this order.
        human_votes: The preference of each person, by identity.
        task_kind: Kind of its texts, such as `summary`; for judges with `task="auto"`.
    """

    label: NotRequired[Any]
    group: NotRequired[str]
    category: NotRequired[str]
    systems: NotRequired[Any]
    turn: NotRequired[int]
    human_votes: NotRequired[list[str]]
    task_kind: NotRequired[str]


class Item(TypedDict):
    """One text to label, with an expected answer or a source; messages as in `Pair`.

    Attributes:
        expected: The right answer, or a list of answers any of which is right; where `output` is
            a list of several texts, the list is one answer.
        rubric: Criteria for this item alone, in place of the judge's, as `rubric=` has them.
        media: Images, audio and files that the source refers to.
        variables: Other fields of the row, for a prompt of your own that names them.
        notes_on_reading: As in `Pair`.
    """

    input: str | Messages
    output: str | Messages
    expected: NotRequired[str | list[str]]
    source: NotRequired[str]
    rubric: NotRequired[str | list[Any] | dict[str, Any]]
    media: NotRequired[list[dict[str, Any]]]
    family: NotRequired[str]
    group: NotRequired[str]
    id: NotRequired[str]
    variables: NotRequired[dict[str, Any]]
    notes_on_reading: NotRequired[list[Failure]]


class Role(TypedDict):
    """A member of a panel."""

    type: str
    description: str
    kind: Literal["static", "coarse", "fine", "manual"]


class Vote(TypedDict):
    """The vote of one role of a panel."""

    role: str
    preference: Preference | None
    reason: str
    confidence: float | None
    confidence_source: ConfidenceSource
    tokens: int | None


class Failure(TypedDict):
    """One thing that went wrong, even if there is a verdict.

    Attributes:
        step: The graph's node, such as `solve`.
        unit: Part of the step's work, such as `Clarity (A first)`.
    """

    step: str
    unit: str
    reason: FailureReason
    detail: str


class _Counts(TypedDict):
    """Replies and tokens, of a step or of all."""

    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class StepUsage(_Counts):
    """Cost of one step.

    Attributes:
        calls: Replies received, repairs included.
        cached_tokens: The part of `input_tokens` that the provider read from its prompt cache.
        retries: Attempts that brought no reply. A client that is built with retries of its own,
            as Groq's is, may send each of them several times: give it `max_retries=0`.
        cached_calls: Answers taken from a cache, the judge's or LangChain's, instead of a call.
    """

    retries: int
    cached_calls: int


class Usage(_Counts):
    """The cost of a judgment, in total and by step.

    Attributes:
        asked_without: Settings that were left out of requests because the model refused them,
            such as `temperature`; absent if there were none.
    """

    by_step: dict[str, StepUsage]
    asked_without: NotRequired[list[str]]


class _Judgment(TypedDict):
    """The part of a verdict that judges of either kind give."""

    score: _Share | None
    confidence: _Share | None
    confidence_source: ConfidenceSource
    rationale: str
    failures: list[Failure]
    usage: Usage
    lookups: NotRequired[list[dict[str, Any]]]


class Verdict(_Judgment):
    """The verdict of a judge of pairs, and its cost.

    Attributes:
        preference: None: not judged, see `failures`.
        score: How far A is preferred, in [0, 1]: 1 = A, 0.5 = even, 0 = B.
        scores: `{"A": …, "B": …}` in the method's own units, as its paper defines them.
        flipped: Whether the two orders disagreed; None where only one order was asked. Of a
            jury: of any member that agrees with it.
        rationale: A short account of what decided, for people.
        lookups: Lookups of a judge with tools; see `LabelVerdict`.
    """

    preference: Preference | None
    scores: dict[str, float] | None
    flipped: bool | None


class LabelVerdict(_Judgment):
    """The verdict of a judge of one text, and its cost.

    Attributes:
        label: None: not judged, see `failures`.
        score: From 0, the lowest label, to 1, the highest: the mean of the labels weighted by
            their probability if the model gives log-probabilities, else the position of the
            label. Words are evenly spaced.
        recalled: Ids of the remembered examples that were shown.
        lookups: Lookups of a judge with tools: `{"tool", "arguments", "status", "characters",
            "text"}`, of each result the beginning.
    """

    label: Label | None
    recalled: list[str]


def no_usage() -> Usage:
    """The usage of work that asked nothing."""
    return Usage(calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, by_step={})


def no_step_usage() -> StepUsage:
    """The usage of a step that asked nothing."""
    return StepUsage(
        calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, retries=0, cached_calls=0
    )


def add_usage(parts: Iterable[Usage]) -> Usage:
    """Add usages up, step by step."""
    total = no_usage()
    for part in parts:
        for key in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            total[key] += part[key]
        for step, cost in part["by_step"].items():
            step_total = total["by_step"].setdefault(step, no_step_usage())
            for name, value in cost.items():
                step_total[name] += value  # type: ignore[literal-required]
        if lacking := {*total.get("asked_without", ()), *part.get("asked_without", ())}:
            total["asked_without"] = sorted(lacking)
    return total


def not_judged(failures: Sequence[Failure], usage: Usage, rationale: str = "") -> Verdict:
    """A verdict that prefers nobody and says why."""
    return {
        "preference": None,
        "score": None,
        "scores": None,
        "confidence": None,
        "confidence_source": "none",
        "flipped": None,
        "rationale": rationale or why_not(failures),
        "failures": list(failures),
        "usage": usage,
    }


def even_verdict() -> Verdict:
    """The verdict on two identical texts: a tie that cost no call."""
    verdict = not_judged([], no_usage(), "The two texts are identical.")
    return {**verdict, "preference": "tie", "score": 0.5}


def not_labelled(failures: Sequence[Failure], usage: Usage, rationale: str = "") -> LabelVerdict:
    """A verdict on one text that gives no label and says why."""
    return {
        "label": None,
        "score": None,
        "confidence": None,
        "confidence_source": "none",
        "rationale": rationale or why_not(failures),
        "failures": list(failures),
        "usage": usage,
        "recalled": [],
    }


# The verdict without an answer, by what a judge takes.
WITHOUT_ANSWER: Mapping[str, Callable[..., Any]] = {"pair": not_judged, "item": not_labelled}


def why_not(failures: Sequence[Failure], lost: str = "") -> str:
    """Sentence that says why a row is not judged.

    Args:
        failures: Their reasons are its causes.
        lost: What there is too little of, where a judge takes several replies.
    """
    reasons = ", ".join(dict.fromkeys(failure["reason"] for failure in failures))
    if lost:
        return f"Not judged: {lost}{reasons and f': {reasons}'}."
    return f"Not judged: {reasons or 'unknown reason'}."


def positions_of(labels: Sequence[Label]) -> dict[Label, float]:
    """The position of each label from the worst, 0, to the best, 1.

    Numbers keep their place on the scale; words are evenly spaced.

    >>> positions_of([1, 2, 5]), positions_of(["bad", "fair", "good"])
    ({1: 0.0, 2: 0.25, 5: 1.0}, {'bad': 0.0, 'fair': 0.5, 'good': 1.0})
    """
    is_graded = not any(isinstance(label, str) for label in labels)
    places = list(map(float, labels if is_graded else range(len(labels))))
    whole = abs(places[-1] - places[0]) or 1 if places else 1
    return {label: abs(n - places[0]) / whole for label, n in zip(labels, places, strict=True)}


def score_of(verdict: Mapping[str, Any]) -> float | int | None:
    """A verdict's score in [0, 1]; None if the row was not judged."""
    if decision(verdict) is None:
        return None
    score = verdict.get("score")
    return None if score is None or math.isnan(score) else score


def decision(verdict: Mapping[str, Any]) -> Any:
    """The preference or the label of a verdict; None if the row was not judged."""
    return verdict.get("preference", verdict.get("label"))


def reason_of(verdict: Mapping[str, Any]) -> str:
    """The reason of a verdict's first failure; a note only where there is none."""
    reasons = [str(failure["reason"]) for failure in verdict.get("failures") or []]
    return next((r for r in reasons if r not in _NOTED), next(iter(reasons), "unknown"))


def is_abstention(verdict: Mapping[str, Any]) -> bool:
    """Whether a judge said that it cannot assess a row, and nothing else went wrong."""
    reasons = {failure["reason"] for failure in verdict.get("failures") or []}
    said_so = "cannot_assess" in reasons and reasons <= {"cannot_assess", *_NOTED}
    return said_so and decision(verdict) is None


class Notes(list[Failure]):
    """Notes that a reader made: of a row, which may be anybody's data, no others count.

    Attributes:
        columns: The row with the names that people know, to say what it has.
        named: Whether they said which are read: they have looked.
        empty: The texts that are there and empty, each with what it is read from.
        beside: Keys beside a task whose words or numbers are neither shown nor noted.
    """

    columns: Mapping[Any, object] = {}
    named = False
    empty: Mapping[str, object] = {}
    beside: Sequence[str] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Notes:
        """The notes of a row that was read before; of any other there are none."""
        return notes if isinstance(notes := row.get(NOTES), cls) else cls()

    def add(self, unit: str, detail: str, reason: FailureReason = "one_of_several") -> None:
        """Note how a field was read, or several."""
        note: Failure = {"step": "input", "unit": unit, "reason": reason, "detail": detail[:500]}
        self += [note] * (note not in self)


def first_names(names: Sequence[object]) -> str:
    """The first of many names, and how many more there are."""
    return first_of([repr(name)[:60] for name in names], 5)


def first_of(texts: Sequence[str], most: int = 3) -> str:
    """The first of many texts, and how many more there are."""
    return ", ".join(texts[:most]) + (f" and {len(texts) - most:,} more" if texts[most:] else "")


def noted(verdict: Mapping[str, Any], notes: Sequence[Failure] | None) -> dict[str, Any]:
    """A verdict with the notes on how its row was read."""
    failures = verdict.get("failures") or []
    more = [note for note in notes or [] if note not in failures]
    return {**verdict, "failures": [*failures, *more]} if more else {**verdict}


def failures_in(verdict: Mapping[str, Any]) -> list[Failure]:
    """Failures of a judgment, without notes on how its row was read."""
    return [each for each in verdict.get("failures") or [] if each["reason"] not in READING]


def _is_of_reading(failure: Mapping[str, Any]) -> bool:
    reason, step = failure.get("reason"), failure.get("step")
    return reason in READING or (reason == "input_cut" and step == "begin")


def comment_of(verdict: Mapping[str, Any]) -> str:
    """A verdict's rationale, what the judge was not shown, and why there is no label."""
    failures = verdict.get("failures") or []
    notes = [f"Note: {f['unit']} {f['detail']}." for f in failures if _is_of_reading(f)]
    comment = " ".join([str(verdict.get("rationale") or ""), *notes])
    if decision(verdict) is not None:
        return comment
    comment = comment or "Not judged."
    for failure in [f for f in failures if not _is_of_reading(f)][:1]:
        if failure["detail"] and failure["detail"] in comment:
            break
        place = ", ".join(filter(None, [failure.get("step"), failure.get("unit")]))
        comment = comment.replace(f"Not judged: {failure['reason']}.", "Not judged.")
        comment += f" {failure['reason']} ({place}): {failure.get('detail', '')}".rstrip(": ")
    return comment
