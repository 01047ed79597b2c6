"""Worked examples of a preference, for few-shot prompts of any method (SC², Table 5).

Written for this package, in `worked_examples.yaml`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, Self

from pydantic import model_validator
from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.declaration import JudgeOptions
from langchain_judges.options import Rule
from langchain_judges.orders import Slot
from langchain_judges.rows.files import packaged


class WorkedRow(TypedDict):
    """A row of a table; A is response 1."""

    aspect: str
    common: str
    only_a: str
    only_b: str


class WorkedExample(TypedDict):
    """A pair with its table, what decides, and the slot that is preferred.

    Attributes:
        comparison: What decides, in one or two sentences.
        reasoning: The steps by which a chain of thought comes to it; default the comparison.
        tasks: The tasks that it is an example of; default `helpful`.
    """

    input: str
    response_1: str
    response_2: str
    rows: list[WorkedRow]
    comparison: str
    preferred: Slot
    reasoning: NotRequired[str]
    tasks: NotRequired[list[str]]


# Worked examples; `shots=3` shows the first three of those that fit the task.
WORKED: tuple[WorkedExample, ...] = tuple(packaged(__package__, "worked_examples.yaml"))
# The most that are shown.
MOST_SHOTS = 5

_SHOT_WORDS = packaged(__package__, "words.yaml")


def shown_examples(shots: Sequence[tuple[WorkedExample, str, Mapping[str, str]]]) -> str:
    """Render worked examples for a prompt; empty for none.

    Args:
        shots: Each with its table, empty or a text that ends in a line break, and the reply.
    """
    if not shots:
        return ""
    rendered = [
        _SHOT_WORDS["example"].format(
            number=number,
            input=shot["input"],
            response_1=shot["response_1"],
            response_2=shot["response_2"],
            table=table,
            reply=json.dumps(reply, ensure_ascii=False),
        )
        for number, (shot, table, reply) in enumerate(shots, 1)
    ]
    return str(_SHOT_WORDS["examples"]).format(examples="\n\n".join(rendered))


class FewShot(JudgeOptions):
    """A judge that can show worked examples.

    Attributes:
        shots: Worked examples shown first, 0 to 5.
        examples: Your own worked examples instead, in the form of `few_shot.WORKED`.
    """

    shots: int = 0
    examples: Annotated[
        Sequence[WorkedExample] | None,
        Rule(
            "a list of worked examples, each with 'input', 'response_1', 'response_2', 'rows' "
            "(each with 'aspect', 'common', 'only_a', 'only_b'), 'comparison' and 'preferred' "
            "('1' or '2')"
        ),
    ] = None

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return self._pool[: self.shots]

    def fingerprint(self) -> dict[str, Any]:
        """The worked examples: a name or a number says nothing of their words."""
        return {"worked": list(self.worked)}

    @property
    def _pool(self) -> Sequence[WorkedExample]:
        if self.examples is not None:
            return self.examples
        # Those of the task first: a summary is no sum.
        task = getattr(self, "task", "helpful")
        fitting = sorted(WORKED, key=lambda each: task not in each.get("tasks", ["helpful"]))
        return fitting[:MOST_SHOTS]

    @model_validator(mode="after")
    def _enough_examples(self) -> Self:
        if not 0 <= self.shots <= len(self._pool):
            most = len(self._pool)
            raise OptionError(f"`shots` must be between 0 and {most}, got {self.shots!r}")
        return self
