"""The options of an ALLURE judge, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import read_recall
from langchain_judges.methods.allure.audit.checks import Label
from langchain_judges.methods.allure.prompts import RUBRICS, STEPS, STEPS_ALONE
from langchain_judges.methods.allure.state import Explain

Instruct = Literal["bare", "criteria", "steps"]
"""What the judge is told beside the labels: nothing, the criteria, or steps too."""

Again = Literal["families", "all"]
"""Which items a round of an audit judges again: those of families that learnt, or all."""

ExampleOrder = Literal["insertion", "shuffle", "modes"]
"""How examples are ordered: as recalled, by a seed, or in blocks of one failure mode."""


@dataclass(frozen=True)
class Options:
    """Checked options."""

    labels: tuple[Label, ...]
    recall: Any
    allow_leak: bool
    rubric: str | None
    steps: tuple[str, ...]
    instruct: Instruct
    explain: Explain
    example_order: ExampleOrder
    seed: int
    instructions: str
    repairs: int

    def criteria_of(self, item: Mapping[str, Any]) -> str:
        """Return what is judged: the caller's rubric, or the one for this kind of item."""
        return RUBRICS.get(self.rubric or _kind(item), self.rubric or "")

    def steps_of(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the steps to take: the caller's, or those for this kind of item."""
        if self.steps:
            return self.steps
        named = self.rubric if self.rubric in STEPS else None
        if self.rubric and not named and not (item.get("expected") or item.get("source")):
            return STEPS_ALONE
        return STEPS[named or _kind(item)]

    @property
    def positive(self) -> Label:
        """The label whose probability is the score."""
        one = [label for label in self.labels if label == 1]
        return one[0] if one and len(self.labels) == 2 else self.labels[-1]

    @property
    def graded(self) -> bool:
        """Whether the labels are more than two numbers."""
        return len(self.labels) > 2 and not isinstance(self.labels[0], str)

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain data, for metadata and keys."""
        plain: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        if not isinstance(self.recall, str | None):
            told = getattr(self.recall, "as_json", None)
            plain["recall"] = told() if told else str(self.recall)
        return {**plain, "labels": list(self.labels), "steps": list(self.steps)}


def _kind(item: Mapping[str, Any]) -> str:
    return (
        "consistency" if item.get("expected") is None and item.get("source") else "correctness"
    )


def check_options(
    *,
    labels: Sequence[Label],
    steps: Sequence[str] | None,
    instructions: str | None,
    **rest: Any,
) -> Options:
    """Return the options, or say which of them is not allowed.

    Raises:
        OptionError: The message names the rule and the value.
    """
    if rest["rubric"] is not None and not isinstance(rest["rubric"], str):
        raise OptionError(f"`rubric` must be a text, got {rest['rubric']!r}")
    for name, allowed in (
        ("instruct", get_args(Instruct)),
        ("explain", get_args(Explain)),
        ("example_order", get_args(ExampleOrder)),
        ("allow_leak", (True, False)),
    ):
        if rest[name] not in allowed:
            raise OptionError(f"`{name}` must be one of {allowed!r}, got {rest[name]!r}")
    listed = steps is None or isinstance(steps, list | tuple)
    if not listed or not all(isinstance(step, str) for step in steps or ()):
        raise OptionError(f"`steps` must be a list of texts, got {steps!r}")
    if rest["recall"] is not None:
        read_recall(rest["recall"])
    return Options(
        labels=read_labels(labels),
        steps=tuple(steps or ()),
        instructions=(instructions or "").strip(),
        **rest,
    )


def check_audit(**given: Any) -> None:
    """Check the options of an audit, each given by its own name.

    Raises:
        OptionError: The message names the rule and the value.
    """
    share, risk, truth = given["dev"], given["risk"], given["truth"]
    for name in ("max_rounds", "patience", "max_concurrency"):
        value = given[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise OptionError(f"`{name}` must be a whole number of at least 1, got {value!r}")
    for name, allowed in (
        ("admit", ("round", "example")),
        ("again", get_args(Again)),
        ("allow_leak", (True, False)),
    ):
        if given[name] not in allowed:
            raise OptionError(f"`{name}` must be one of {allowed!r}, got {given[name]!r}")
    if not _number(risk) or not 0 <= risk <= 1:
        raise OptionError(f"`risk` must be between 0 and 1, got {risk!r}")
    if not isinstance(share, list | tuple | None) and not (_number(share) and 0 < share < 1):
        raise OptionError(
            f"`dev` must be a list of items or a share above 0 and below 1, got {share!r}"
        )
    if not isinstance(truth, str) or not truth:
        raise OptionError(f"`truth` must be the name of a field, got {truth!r}")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_memory(memory: object) -> None:
    """Check that a memory is one, or None.

    Raises:
        OptionError: It is something else.
    """
    # By what it does, and not as a protocol: that would read its version, which may cost.
    able = hasattr(memory, "recall") and hasattr(memory, "remember")
    if memory is not None and not able:
        raise OptionError(f"`memory` must be a FailureMemory, got {type(memory).__name__}")


def read_labels(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return at least two labels, all numbers or all texts, worst first.

    Raises:
        OptionError: They are something else.
    """
    given = tuple(labels) if isinstance(labels, list | tuple) else ()
    alike = all(isinstance(each, str) and each.strip() for each in given) or all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in given
    )
    distinct = len({str(each).casefold() for each in given}) == len(given)
    if len(given) < 2 or not alike or not distinct:
        raise OptionError(
            "`labels` must be two or more distinct numbers or texts, from worst to best, got "
            f"{labels!r}"
        )
    return given
