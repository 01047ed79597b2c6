"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3).

It is the judge by criteria (`methods/rubric`) with one criterion, the paper's options and a
memory of audited mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.steps import Update
from langchain_judges.methods.allure.options import ALLURE
from langchain_judges.methods.context import StateSchema
from langchain_judges.methods.items import ItemResult, ItemState
from langchain_judges.methods.rubric.judge import label_context, label_graph
from langchain_judges.methods.rubric.replies import RubricState
from langchain_judges.methods.rubric.steps import LabelSteps
from langchain_judges.options import factory
from langchain_judges.verdict import Item

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


class JudgeState(RubricState, total=False):
    """State of the judge; every value is plain JSON."""

    memory_version: str | None
    leak_allowed: bool | None


class JudgeResult(ItemResult):
    """What the judge returns."""

    memory_version: NotRequired[str | None]
    """The version of the memory that it judged with; None without a memory."""
    leak_allowed: NotRequired[bool]
    """Whether examples of the item's own group could be shown."""


@dataclass(frozen=True)
class RememberingSteps(LabelSteps):
    """The steps of the judge, which say what memory they judge with."""

    def begin(self, state: ItemState) -> Update:
        """Check the item, and say what it is judged with."""
        recaller = self.context.recaller
        return {
            **super().begin(state),
            "memory_version": str(recaller.memory.version) if recaller else None,
            "leak_allowed": self.options.allow_leak,
        }


def build(options: ALLURE, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    schema = StateSchema(JudgeState, JudgeResult, Item)
    steps = RememberingSteps(label_context(options, model, schema), options)
    return label_graph(steps, labels=list(options.labels))


create_allure_judge = factory(ALLURE, build, "create_allure_judge")
