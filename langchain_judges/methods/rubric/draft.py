"""Criteria drafted from the task: a checklist of yes/no questions, once for each task.

TICK (arXiv:2410.03608): a model writes the questions from the instruction alone, a response is
asked each of them, and its score is the share of yes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from langgraph.constants import END
from langgraph.types import Overwrite
from pydantic import BaseModel, Field, create_model

from langchain_judges.asking.ask import ask
from langchain_judges.asking.nodes import Next, Route
from langchain_judges.asking.question import Reply
from langchain_judges.asking.steps import SingleFlight, Steps, Update
from langchain_judges.methods.context import begin
from langchain_judges.methods.items import item_of
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.prompts import ASKED_ALREADY
from langchain_judges.methods.rubric.replies import RubricState, distinct_lines
from langchain_judges.methods.rubric.steps import LabelSteps
from langchain_judges.methods.rubric.wording import criterion_words
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import transcript
from langchain_judges.verdict import Item, add_usage, cached_usage, not_labelled

if TYPE_CHECKING:
    from langgraph.graph import StateGraph


@dataclass(frozen=True)
class DraftSteps(LabelSteps):
    """The steps of a judge that drafts criteria: draft → evaluate → total."""

    most: int = 0
    """Questions drafted at most."""
    drafts: SingleFlight[Reply] = field(default_factory=SingleFlight)
    whole = True

    def start(self, graph: StateGraph[Any]) -> None:
        """Add how a judgment begins: with the draft."""
        graph.add_node("draft", self.context.node(self.draft))
        begin(graph, self, lambda _: "draft", ["draft"])
        graph.add_conditional_edges("draft", Route(self.ask_what_there_is), ["evaluate", END])

    def draft(self, state: RubricState) -> Steps[Update]:
        """Draft questions from the task, once for each task and what is asked of it anyway."""
        item = item_of(state)
        task, criteria = transcript(item["input"]), self.criteria(item)
        lines = "\n".join(f"- {criterion_words(criterion)}" for criterion in criteria)
        variables = {
            "fence": fence(task),
            "task": task,
            "most": self.most,
            "criteria": ASKED_ALREADY.format(criteria=lines) if criteria else "",
            "instructions": self.instructions,
        }
        question = self.context.question("draft", draft_shape(self.most))
        reply, is_cached = yield from self.drafts.get(
            json.dumps([task, lines]),
            lambda: ask(question, variables),
            lambda reply: reply.data is not None,
        )
        usage = cached_usage("draft") if is_cached else reply.usage
        update: Update = {"failures": reply.failures, "usages": [usage]}
        questions = reply.data["questions"] if reply.data else ()
        drafted = _new_questions(questions, criteria)[: self.most]
        if criteria or drafted:
            return {**update, "drafted": drafted}
        failures = [*state["failures"], *reply.failures]
        total = add_usage([*state["usages"], usage])
        why = "" if reply.failures else "Not judged: no question was drafted for the task."
        return {**update, "verdict": not_labelled(failures, total, why)}

    def ask_what_there_is(self, state: RubricState) -> Next:
        """Send the criteria to be asked; without any the verdict is there already."""
        return END if state.get("verdict") else self.ask(state)

    def criteria(self, item: Item, drafted: Sequence[str] = ()) -> tuple[Criterion, ...]:
        """Return the criteria of the caller, then those drafted."""
        has_rubric = item.get("rubric") or self.options.own_rubric
        criteria = self.options.rubric_of(item).criteria if has_rubric else ()
        return (*criteria, *(Criterion(name=question) for question in drafted))

    def steps_of(self, item: Item) -> Sequence[str]:
        """Return how to judge: those of a rubric speak of its own criteria alone."""
        return self.options.steps or ()

    def total(self, state: RubricState) -> Update:
        """Return the verdict, and which of the criteria were drafted."""
        update = super().total(state)
        drafted = set(state.get("drafted") or ())
        marked = [
            {**each, "drafted": True} if each["criterion"] in drafted else each
            for each in update["subscores"].value
        ]
        return {**update, "subscores": Overwrite(marked)}


@cache
def draft_shape(most: int) -> type[BaseModel]:
    """Return the shape of a draft: questions, at most `most`; of more the first are kept."""
    limit = Field(min_length=1, json_schema_extra={"maxItems": most})
    return create_model("Checklist", questions=(list[str], limit))


def _new_questions(questions: Sequence[str], criteria: Sequence[Criterion]) -> list[str]:
    """Return questions on one line each, without those that are asked anyway."""
    lines = distinct_lines(" ".join(question.split())[:300] for question in questions)
    names = {criterion.name.casefold() for criterion in criteria}
    return [line for line in lines if line.casefold() not in names]
