"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3).

It is the judge by criteria (`methods/rubric`) with one criterion, the paper's options and a
memory of audited mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable
from pydantic import model_validator

from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.protocol import Memory, check_memory
from langchain_judges.memory.rendering import Reminder
from langchain_judges.methods.allure.options import Instruct
from langchain_judges.methods.allure.replies import JudgeResult, JudgeState
from langchain_judges.methods.items import ItemState
from langchain_judges.methods.marks import memory_of, metadata_of, unwrapped
from langchain_judges.methods.rubric.criteria import Labels, LabelsLike
from langchain_judges.methods.rubric.options import LabelOptions, rubric_of_text
from langchain_judges.methods.rubric.prompts import ANSWER_PROMPTS
from langchain_judges.methods.rubric.ready import Rubric, check_name
from langchain_judges.methods.rubric.replies import Explain
from langchain_judges.methods.rubric.steps import LabelSteps, label_graph, label_setup
from langchain_judges.options import factory
from langchain_judges.verdict import Label

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

_PAPER = {"recall": "all", "explain": "none", "show_task": False}
_STEPS = (
    "Read the expected answer.",
    "Find the final answer of the response, and compare it with the expected one.",
    "Give the label.",
)
"""Of the paper's first experiment, whose prompt shows no task."""


class ALLURE(LabelOptions):
    """Create a judge that labels one text and learns from its audited mistakes.

    `recall` fetches the examples that matter for the item from the memory; `evaluate` asks
    for the label in one call, with the examples as earlier turns. With an empty memory the
    prompt is byte for byte the one without a memory.

    Where the paper is silent or we differ: examples are those of the item's family that are
    nearest to it (the paper shows all of them, `recall="all"`), never the item itself nor
    one of its group; the label comes first and a reason after it (the paper asks for the
    label alone, `explain="none"`); temperature 0.

    Returns:
        A compiled graph from `Item` to `{"verdict", "memory_version", "leak_allowed"}`, and
        with a memory `recalled`, as judges of pairs return it: `{"ids", "left_out", "leaked",
        "allow_leak", "version"}`.
        `verdict.score` is the mean of the labels by their probability if the model gives
        log-probabilities, else the label; words stand at even distances from 0 to 1.

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
    templates = ANSWER_PROMPTS
    presets = {
        "bare": {"instruct": "bare", "recall": "none"},
        "criteria": {"instruct": "criteria", "recall": "none"},
        "steps": {"instruct": "steps", "recall": "none"},
        "examples": {"instruct": "steps"},
        "e1": {**_PAPER, "rubric": "correctness", "steps": _STEPS},
        "e2": {**_PAPER, "rubric": "consistency"},
    }

    labels: Labels = (0, 1)
    """The judge's labels, from lowest to highest: two or more numbers or texts, or each with
    its meaning."""
    rubric: str | None = None
    """What is judged: the name of a ready rubric or your own text. Default: correctness
    where there is an expected answer, else groundedness."""
    instruct: Instruct = "steps"
    """`"bare"` shows neither rubric nor steps, `"criteria"` the rubric, `"steps"` both."""
    explain: Explain = "after"
    """When the reason is asked: `"after"` the label, `"first"` or `"none"`."""

    show_task: bool = True
    """Whether the prompt shows the task; the paper's prompts show only the response and its
    expected answer or source."""

    @model_validator(mode="after")
    def _check(self) -> ALLURE:
        check_name(self.rubric or "")
        return self

    @cached_property
    def own_rubric(self) -> Rubric | None:
        """The rubric of the judge; None: by what a row brings."""
        return rubric_of_text(self.rubric, self.labels) if self.rubric else None

    @property
    def own_labels(self) -> LabelsLike:
        """The labels of every criterion."""
        return self.labels

    @property
    def shows_criteria(self) -> bool:
        """Whether the prompt says what is judged."""
        return self.instruct != "bare"

    @property
    def shows_steps(self) -> bool:
        """Whether the prompt says how to judge."""
        return self.instruct == "steps"

    @property
    def shows_task(self) -> bool:
        """Whether the prompt shows the task."""
        return self.show_task

    def reminder(self, contexts: Sequence[int | None]) -> Reminder | None:
        """Return how the judge asks its memory; None without one.

        Presets name a choice of examples for the memory that a judge may have.
        """
        return super().reminder(contexts) if self.memory is not None else None

    def calls(self) -> int:
        """Return the calls for one item, excluding repairs."""
        return 1

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        steps = RememberingSteps(label_setup(self, model), self)
        return label_graph(steps, JudgeState, JudgeResult, labels=list(self.labels))


create_allure_judge = factory(ALLURE, ALLURE.build, "create_allure_judge")


@dataclass(frozen=True)
class RememberingSteps(LabelSteps):
    """The steps of the judge, which say what memory they judge with."""

    def begin(self, state: ItemState) -> Update:
        """Check the item, and say what it is judged with."""
        reminder = self.setup.reminder
        return {
            **super().begin(state),
            "memory_version": str(reminder.memory.version) if reminder else None,
            "leak_allowed": self.own.allow_leak,
        }


def judge_to_audit(
    judge: Runnable[Any, Any] | str,
    memory: Memory,
    labels: Sequence[Label] | None,
    **own: Any,
) -> tuple[Runnable[Any, Any], Mapping[str, Any]]:
    """Return the judge that an audit teaches, made first of a model, and its metadata.

    Args:
        judge: A judge, or a model as `create_allure_judge` takes it.
        memory: What the judge must show examples of.
        labels: The labels of the judge, where it is made here.
        **own: Options that only a judge that is made here can take; None where not given.

    Raises:
        OptionError: It is no judge, or one that would learn nothing of `memory`; or it is one
            and the options cannot be its own any more.
        ModelSetupError: The model cannot be made.
    """
    check_memory(memory)
    if memory is None:
        raise OptionError("`memory` must be a FailureMemory, got None")
    if isinstance(judge, str | BaseChatModel):
        labels = (0, 1) if labels is None else labels
        judge = create_allure_judge(judge, memory=memory, labels=labels, **own)
    elif late := [option for option, value in own.items() if value is not None]:
        raise OptionError(f"`{late[0]}` goes with a model; the judge that is given has its own")
    inner = unwrapped(judge)
    if not isinstance(inner, Runnable) or isinstance(inner, BaseLanguageModel):
        raise OptionError(
            "`judge` must be a judge of one text, such as `create_allure_judge` makes, or a "
            f"chat model (without `bind` or `with_retry`), got {type(judge).__name__}"
        )
    marks = metadata_of(judge)
    method = marks.get("method", "")
    if method not in ("", "allure"):
        raise OptionError(f"`judge` must be a judge of one text, got the method {method!r}")
    if method and memory_of(judge) is not memory:
        has = "no memory" if memory_of(judge) is None else "another memory"
        raise OptionError(f"`judge` has {has}, so it would learn nothing of the audit")
    return judge, marks
