"""The steps of a judge that labels one text: recall → evaluate → total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.messages import BaseMessage
from langgraph.types import Overwrite, Send

from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.replies.reading import check, lax_shape
from langchain_judges.asking.steps import Update
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.shown import Recaller, block, example_texts, fitting, nearest_last
from langchain_judges.methods.context import begin
from langchain_judges.methods.items import ItemSteps, item_of, material
from langchain_judges.methods.pairs import examples_in, instructions_block
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.examples import (
    case,
    in_order,
    left_out,
    reply_to,
    shaped_as,
    usable,
)
from langchain_judges.methods.rubric.label_options import LabelOptions
from langchain_judges.methods.rubric.parse import parts_probabilities, spoken_label
from langchain_judges.methods.rubric.prompts import LABELLED, LESSONS, WHOLE
from langchain_judges.methods.rubric.replies import (
    CriteriaWork,
    CriterionScore,
    RubricState,
    label_shape,
    labels_shape,
    part_failure,
    units_of,
)
from langchain_judges.methods.rubric.tally import one_verdict, subscore, total_verdict
from langchain_judges.methods.rubric.wording import (
    criterion_words,
    label_words,
    listed_criteria,
    numbered_steps,
)
from langchain_judges.verdict import Failure, Item, add_usage

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where examples may not fit."""
_RESERVE = 1000
"""Tokens kept free for the instructions and the reply."""
_ALTERNATIVES = 20
"""Tokens asked for beside each one, from which the probability of a label is summed."""


@dataclass(frozen=True)
class LabelSteps(ItemSteps):
    """The steps of the judge."""

    options: LabelOptions
    each: bool = False
    """Whether each criterion is asked in a call of its own."""
    min_valid: int | None = None
    """Fewest criteria that must be judged; default more than half."""
    whole: ClassVar[bool] = False
    """Whether there is a total even of one criterion."""

    def check(self, item: Item) -> None:
        """Check that an item brings what its rubric needs."""
        self.options.check(item)

    def criteria(self, item: Item, drafted: Sequence[str] = ()) -> tuple[Criterion, ...]:
        """Return the criteria that an item is judged by."""
        return self.options.rubric_of(item).criteria

    def start(self, graph: StateGraph[Any]) -> None:
        """Add how a judgment begins."""
        begin(graph, self, self.ask, ["evaluate"])

    def ask(self, state: RubricState) -> Next:
        """Send the criteria to be asked: all at once, or each in a call of its own."""
        item, drafted = item_of(state), state.get("drafted") or []
        positions = list(range(len(self.criteria(item, drafted))))
        parts = [[position] for position in positions] if self.each else [positions]
        examples = examples_in(state)
        works = [
            CriteriaWork(item=item, positions=part, drafted=drafted, examples=examples)
            for part in parts
        ]
        return [Send("evaluate", work) for work in works]

    def evaluate(self, work: CriteriaWork) -> Call:
        """Ask for the label of the response by one criterion or by several."""
        criteria, item, examples = self._criteria_of(work), work["item"], work["examples"]
        name = criteria[0].name if self.each else str(item.get("id") or "")
        lessons = [] if self._in_turns(item) else examples
        fields = case(item, self.options, example_texts(lessons))
        corrections = block(lessons, fields["fence"])
        if corrections and self._is_whole(item):
            corrections = WHOLE + corrections
        instruction = (LESSONS if lessons else LABELLED) if examples else ""
        variables = {
            **self._criteria_words(criteria),
            "steps": self._steps(item, several=len(criteria) > 1, examples=instruction),
            "instructions": self.instructions + corrections,
            "examples": [] if lessons else self._turns(item, examples),
        }
        return Call(self._question(criteria), {**fields, **variables}, name)

    def evaluated(self, work: CriteriaWork, reply: Reply) -> Update:
        """Return what was found by each criterion that could be read."""
        criteria = self._criteria_of(work)
        if reply.data is None:
            return {}
        subscores: list[CriterionScore] = []
        failures: list[Failure] = []
        for unit, criterion in zip(units_of(criteria), criteria, strict=True):
            part = reply.data.get(unit) if unit else reply.data
            data, problem = check(part, label_shape(criterion.names, self.options.explain))
            if problem:
                failures.append(part_failure("evaluate", criterion.name, problem))
                continue
            probabilities = reply.measured.get(unit) or {}
            subscores.append(subscore(criterion, data, probabilities, self.options.score))
        return {"subscores": subscores, "failures": [*reply.failures, *failures]}

    def total(self, state: RubricState) -> Update:
        """Return the verdict, and what was found by each criterion in its order."""
        item = item_of(state)
        criteria = self.criteria(item, state.get("drafted") or ())
        by_name = {each["criterion"]: each for each in state["subscores"]}
        subscores = [
            by_name.get(each.name) or subscore(each, None, {}, self.options.score)
            for each in criteria
        ]
        failures, usage = state["failures"], add_usage(state["usages"])
        recalled = [str(example["id"]) for example in examples_in(state)]
        if not self._is_whole(item):
            verdict = one_verdict(subscores[0], failures, usage, recalled)
        else:
            least = self.min_valid or len(criteria) // 2 + 1
            verdict = total_verdict(criteria, subscores, least, failures, usage)
        return {
            "verdict": {**verdict, "recalled": recalled},
            "subscores": Overwrite(subscores),
        }

    def fitting(self, item: Item, recalled: Recalled) -> tuple[list[Example], list[Failure]]:
        """Return the examples that can be shown, and a note for those that cannot."""
        if self._is_whole(item):
            return super().fitting(item, recalled)
        recaller = self.context.recaller
        assert recaller  # noqa: S101 - the node exists only with a memory
        fit = usable(recalled, self.criteria(item)[0].names)
        selection = fitting(
            fit,
            self._room(item, recaller),
            lambda example: self._length(item, example),
            newest=recaller.how.kind == "all",
        )
        nearest = nearest_last(selection, recaller.how)
        ordered = in_order(nearest, self.options.example_order, self.options.seed)
        return ordered, left_out(len(recalled), len(fit), len(selection))

    def _criteria_of(self, work: CriteriaWork) -> Sequence[Criterion]:
        criteria = self.criteria(work["item"], work["drafted"])
        return [criteria[position] for position in work["positions"]]

    def _question(self, criteria: Sequence[Criterion]) -> Question:
        explain = self.options.explain
        labels = {
            unit: criterion.names
            for unit, criterion in zip(units_of(criteria), criteria, strict=True)
        }
        question = self.context.question(
            "evaluate",
            label_shape(criteria[0].names, explain),
            measure=partial(parts_probabilities, labels=labels),
            measured_as="label",
            logprobs=True,
            alternatives=_ALTERNATIVES,
        )
        if len(criteria) == 1:
            prompt = self.context.prompts["evaluate" if self.options.shows_task else "answer"]
            parse = partial(spoken_label, labels=criteria[0].names)
            return replace(question, parse=parse, prompt=prompt)
        return replace(
            question,
            shape=labels_shape(criteria, explain),
            partial=lax_shape(tuple(labels)),
            prompt=self.context.prompts["criteria"],
        )

    def _criteria_words(self, criteria: Sequence[Criterion]) -> dict[str, str]:
        """Return what a prompt says of criteria: of one, the same for all items of a kind."""
        if len(criteria) > 1:
            return {"criteria": listed_criteria(criteria)}
        words = f"\n\n{criterion_words(criteria[0])}" if self.options.shows_criteria else ""
        return {"labels": label_words(criteria[0]), "criteria": words}

    def _steps(self, item: Item, *, several: bool, examples: str) -> str:
        if not self.options.shows_steps:
            return ""
        steps = self.steps_of(item)
        return f"\n\n{numbered_steps(steps, item, several=several, examples=examples)}"

    def steps_of(self, item: Item) -> Sequence[str]:
        """Return how to judge an item, step by step; none: as any rubric is judged by."""
        return self.options.steps or self.options.rubric_of(item).steps

    def _is_whole(self, item: Item) -> bool:
        """Return whether a label of a person is of more than one criterion."""
        return self.whole or len(self.criteria(item)) > 1

    @property
    def instructions(self) -> str:
        """What the caller adds, as a prompt says it."""
        return instructions_block(self.options.instructions)

    def _in_turns(self, item: Item) -> bool:
        """Return whether examples stand as earlier turns, as in the paper.

        Where a reason is asked, what the audit found is said by the user: as a reply of the
        judge it would become the reason that the judge gives next.
        """
        return self.options.explain == "none" and not self._is_whole(item)

    def _turns(self, item: Item, examples: Sequence[Example]) -> list[BaseMessage]:
        """Return each example as the two turns it would have been."""
        prompt = self.context.prompts[
            "example" if self.options.shows_task else "answer_example"
        ]
        cases = [(shaped_as(item, each), reply_to(each)) for each in examples]
        return [
            turn
            for example, reply in cases
            for turn in prompt.format_messages(**case(example, self.options), reply=reply)
        ]

    def _length(self, item: Item, example: Example) -> int:
        """Return the characters that an example takes."""
        if self._in_turns(item):
            return sum(len(turn.text) for turn in self._turns(item, [example]))
        return sum(map(len, example_texts([example])))

    def _room(self, item: Item, recaller: Recaller) -> float:
        """Return how many characters of examples fit beside the item."""
        budget = recaller.memory.budget
        most = float("inf") if budget is None else budget
        context = self.context.adapters["evaluate"].context
        if context is None:
            return most
        characters = sum(len(str(value)) for value in material(item).values())
        return min(most, _CHARACTERS * (context - _RESERVE) - characters)
