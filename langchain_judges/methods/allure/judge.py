"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3).

It is the judge by criteria (`methods/rubric`) with one criterion, the paper's options and a
memory of audited mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator

from langchain_judges.asking.models import ModelLike
from langchain_judges.memory.shown import Recaller
from langchain_judges.methods.declaration import Written
from langchain_judges.methods.rubric import criteria, judge, prompts
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

# What the prompt contains besides the labels: nothing, the criteria, or also steps.
Instruct = Literal["bare", "criteria", "steps"]


class ALLURE(LabelOptions):
    """Create a judge that labels one text and learns from its audited mistakes.

    `recall` fetches the examples that matter for the item from the memory; `evaluate` asks
    for the label in one call, with the examples as earlier turns. With an empty memory the
    prompt is byte for byte the one without a memory.

    Where the paper is silent or we differ: examples are those of the item's family that are
    nearest to it, those of each label in turn (the paper shows all of them, `recall="all"`),
    never the item itself nor one of its group; the reason comes first, then the label (the
    paper asks for the label alone, `explain="none"`); temperature 0.

    Attributes:
        labels: From lowest to highest: two or more numbers or texts, or each with its meaning.
        rubric: What is judged: a ready rubric's name or your own text. Default: correctness if
            a row has `expected`, else groundedness.
        instruct: `"bare"` shows neither rubric nor steps, `"criteria"` the rubric, `"steps"`
            both.
        show_task: Whether the prompt shows the task; the paper's prompts do not.

    Returns:
        A compiled graph from `Item` to `{"verdict"}`, and with a memory `recalled`, as judges
        of pairs return it: `{"ids", "left_out", "leaked", "allow_leak", "version"}`.
        `verdict.score`, from 0 to 1, is the mean of the labels by their probability if the
        model gives log-probabilities, else the label; words are evenly spaced.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.

    Example:
        >>> from langchain_judges import create_allure_judge
        >>> judge = create_allure_judge("local")  # doctest: +SKIP
        >>> answer = {"input": "2 + 2?", "output": "It is 4.", "expected": "4"}
        >>> verdict = judge.invoke(answer)["verdict"]  # doctest: +SKIP
        >>> verdict["label"]  # doctest: +SKIP
        1
    """

    method = "allure"
    summary = "ALLURE: label one text, shown the audited mistakes that matter for it."
    templates = prompts.ANSWER_PROMPTS

    labels: criteria.Labels = (0, 1)
    rubric: Annotated[Written, AfterValidator(criteria.checked_name)] | None = None
    instruct: Instruct = "steps"
    show_task: bool = True

    @cached_property
    def own_rubric(self) -> criteria.Rubric | None:
        """The rubric of the judge; None: by what a row brings."""
        return self.named(self.rubric) if self.rubric else self.prompted

    @property
    def shown(self) -> frozenset[str]:
        """The parts of a prompt besides the response."""
        parts = {"bare": (), "criteria": ("criteria",), "steps": ("criteria", "steps")}
        return frozenset([*parts[self.instruct], *["task"] * self.show_task])

    def recaller(self, contexts: Sequence[int | None]) -> Recaller | None:
        """The way in which the judge asks its memory; None without one.

        Presets name a choice of examples for the memory that a judge may have.
        """
        return super().recaller(contexts) if self.memory is not None else None

    def fingerprint(self) -> dict[str, Any]:
        """Plain data that decides verdicts, besides the options."""
        return {"labels": list(self.labels)}

    def calls(self) -> int:
        """The calls for one item, excluding repairs."""
        return self.lookup_rounds + 1


def build(options: ALLURE, model: ModelLike) -> JudgeGraph:
    """Build the judge."""
    return judge.LabelSteps.build(options, model)


create_allure_judge = factory(ALLURE, build, "create_allure_judge")
