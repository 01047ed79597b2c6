"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3).

It is the judge by criteria (`methods/rubric`) with one criterion, the paper's options and a
memory of audited mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable

from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.protocol import Memory, check_memory
from langchain_judges.methods.allure.options import ALLURE
from langchain_judges.methods.allure.replies import JudgeResult, JudgeState
from langchain_judges.methods.items import ItemState
from langchain_judges.methods.marks import memory_of, metadata_of, unwrapped
from langchain_judges.methods.rubric.graph import label_graph, label_setup
from langchain_judges.methods.rubric.steps import LabelSteps
from langchain_judges.options import factory
from langchain_judges.verdict import Label

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


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


def build(own: ALLURE, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    steps = RememberingSteps(label_setup(own, model), own)
    return label_graph(steps, JudgeState, JudgeResult, labels=list(own.labels))


create_allure_judge = factory(ALLURE, build, "create_allure_judge")


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
