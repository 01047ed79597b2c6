"""The steps of a judge of one text: recall → evaluate, by all criteria or each → total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.constants import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.replies.reading import check
from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.rendering import block, example_texts, fitting, nearest_last
from langchain_judges.methods.beginning import begin
from langchain_judges.methods.items import ItemState, ItemSteps, item_of, material
from langchain_judges.methods.pairs import INSTRUCTIONS
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
from langchain_judges.methods.rubric.labels import label_probabilities, spoken_label
from langchain_judges.methods.rubric.prompts import (
    ANSWER_PROMPTS,
    DRAFT_PROMPTS,
    LABELLED,
    LESSONS,
    PROMPTS,
    WHOLE,
)
from langchain_judges.methods.rubric.replies import (
    CriteriaWork,
    CriterionScore,
    RubricState,
    label_shape,
    labels_shape,
    some_labels_shape,
    unit,
)
from langchain_judges.methods.rubric.tally import one_verdict, subscore, total_verdict
from langchain_judges.methods.rubric.wording import (
    criterion_words,
    label_words,
    listed_criteria,
    numbered_steps,
)
from langchain_judges.methods.setup import Setup
from langchain_judges.verdict import Failure, Item, add_usage

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langchain_judges.methods.graph import JudgeGraph

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where examples may not fit."""
_RESERVE = 1000
"""Tokens kept free for the instructions and the reply."""
_ALTERNATIVES = 20
"""Tokens asked for beside each one, from which the probability of a label is summed."""


@dataclass(frozen=True)
class LabelSteps(ItemSteps):
    """The steps of the judge."""

    own: LabelOptions
    each: bool = False
    """Whether each criterion is asked in a call of its own."""
    min_valid: int | None = None
    """Fewest criteria that must be judged; default more than half."""
    whole: ClassVar[bool] = False
    """Whether there is a total even of one criterion."""

    def begin(self, state: ItemState) -> Update:
        """Check the item, and that it brings what its rubric needs."""
        update = super().begin(state)
        return {**update, "subscores": Overwrite([])}

    def check(self, item: Mapping[str, Any]) -> None:
        """Check that an item brings what its rubric needs."""
        self.own.check(item)

    def criteria(
        self, item: Mapping[str, Any], drafted: Sequence[str] = ()
    ) -> tuple[Criterion, ...]:
        """Return the criteria that an item is judged by."""
        return tuple(self.own.rubric_of(item).criteria)

    def start(self, graph: StateGraph[Any, Any, Any, Any]) -> None:
        """Add how a judgment begins."""
        begin(graph, self, self.ask, ["evaluate"])

    def ask(self, state: RubricState) -> Next:
        """Send the criteria to be asked: all at once, or each in a call of its own."""
        item, drafted = item_of(state), state.get("drafted") or []
        count = len(self.criteria(item, drafted))
        examples = _examples(state)
        parts = [[n] for n in range(count)] if self.each else [list(range(count))]
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
        fields = case(item, self.own, example_texts(lessons))
        corrections = block(lessons, fields["fence"])
        if corrections and self._is_whole(item):
            corrections = WHOLE + corrections
        instruction = (LESSONS if lessons else LABELLED) if examples else ""
        variables = {
            **(self._one(criteria[0]) if len(criteria) == 1 else self._several(criteria)),
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
        for number, criterion in enumerate(criteria):
            fields: Any = reply.data if len(criteria) == 1 else reply.data.get(unit(number))
            data, problem = check(fields, label_shape(criterion.names, self.own.explain))
            if problem:
                failures.append(_failure(criterion, problem.reason, problem.detail))
                continue
            shares = reply.measured.get("" if len(criteria) == 1 else unit(number)) or {}
            subscores.append(subscore(criterion, data, shares, self.own.score))
        return {"subscores": subscores, "failures": [*reply.failures, *failures]}

    def total(self, state: RubricState) -> Update:
        """Return the verdict, and what was found by each criterion in its order."""
        item = item_of(state)
        criteria = self.criteria(item, state.get("drafted") or ())
        by_name = {each["criterion"]: each for each in state["subscores"]}
        subscores = [
            by_name.get(each.name) or subscore(each, None, {}, self.own.score)
            for each in criteria
        ]
        failures, usage = state["failures"], add_usage(state["usages"])
        recalled = [str(example["id"]) for example in _examples(state)]
        if not self._is_whole(item):
            verdict = one_verdict(subscores[0], failures, usage, recalled)
        else:
            least = self.min_valid or len(criteria) // 2 + 1
            verdict = total_verdict(criteria, subscores, least, failures, usage)
        return {
            "verdict": {**verdict, "recalled": recalled},
            "subscores": Overwrite(subscores),
        }

    def fitting(
        self, item: Mapping[str, Any], recalled: Recalled
    ) -> tuple[list[Example], list[Failure]]:
        """Return the examples that can be shown, and a note for those that cannot."""
        if self._is_whole(item):
            return super().fitting(item, recalled)
        reminder = self.setup.reminder
        fit = usable(recalled, self.criteria(item)[0].names)
        selection = fitting(
            fit,
            self._room(item),
            lambda example: self._length(item, example),
            newest=reminder is not None and reminder.how.kind == "all",
        )
        if reminder is not None:
            selection = nearest_last(selection, reminder.how)
        ordered = in_order(selection, self.own.example_order, self.own.seed)
        return ordered, left_out(len(recalled), len(fit), len(selection))

    def _criteria_of(self, work: CriteriaWork) -> Sequence[Criterion]:
        criteria = self.criteria(work["item"], work["drafted"])
        return [criteria[position] for position in work["positions"]]

    def _question(self, criteria: Sequence[Criterion]) -> Question:
        explain = self.own.explain
        labels = [criterion.names for criterion in criteria]
        question = self.setup.question(
            "evaluate",
            label_shape(labels[0], explain),
            measure=partial(_probabilities, labels=labels),
            measured_as="label",
            logprobs=True,
            alternatives=_ALTERNATIVES,
        )
        if len(criteria) == 1:
            prompt = self.setup.prompts["evaluate" if self.own.shows_task else "answer"]
            parse = partial(spoken_label, labels=labels[0])
            return replace(question, parse=parse, prompt=prompt)
        return replace(
            question,
            shape=labels_shape(criteria, explain),
            partial=some_labels_shape(criteria),
            prompt=self.setup.prompts["criteria"],
        )

    def _one(self, criterion: Criterion) -> dict[str, str]:
        """Return what a prompt says of one criterion: the same for all items of a kind."""
        words = f"\n\n{criterion_words(criterion)}" if self.own.shows_criteria else ""
        return {"labels": label_words(criterion), "criteria": words}

    def _several(self, criteria: Sequence[Criterion]) -> dict[str, str]:
        return {"criteria": listed_criteria(criteria)}

    def _steps(self, item: Mapping[str, Any], *, several: bool, examples: str) -> str:
        if not self.own.shows_steps:
            return ""
        steps = self.steps_of(item)
        return f"\n\n{numbered_steps(steps, item, several=several, examples=examples)}"

    def steps_of(self, item: Mapping[str, Any]) -> Sequence[str]:
        """Return how to judge an item, step by step; none: as any rubric is judged by."""
        return self.own.steps or self.own.rubric_of(item).steps

    def _is_whole(self, item: Mapping[str, Any]) -> bool:
        """Return whether a label of a person is of more than one criterion."""
        return self.whole or len(self.criteria(item)) > 1

    @property
    def instructions(self) -> str:
        """What the caller adds, as a prompt says it."""
        instructions = self.own.instructions
        return INSTRUCTIONS.format(instructions=instructions) if instructions else ""

    def _in_turns(self, item: Mapping[str, Any]) -> bool:
        """Return whether examples stand as earlier turns, as in the paper.

        Where a reason is asked, what the audit found is said by the user: as a reply of the
        judge it would become the reason that the judge gives next.
        """
        return self.own.explain == "none" and not self._is_whole(item)

    def _turns(self, item: Mapping[str, Any], examples: Sequence[Example]) -> list[BaseMessage]:
        """Return each example as the two turns it would have been."""
        prompt = self.setup.prompts["example" if self.own.shows_task else "answer_example"]
        cases = [(shaped_as(item, each), reply_to(each)) for each in examples]
        return [
            turn
            for example, reply in cases
            for turn in prompt.format_messages(**case(example, self.own), reply=reply)
        ]

    def _length(self, item: Mapping[str, Any], example: Example) -> int:
        """Return the characters that an example takes."""
        if self._in_turns(item):
            return sum(len(turn.text) for turn in self._turns(item, [example]))
        return sum(map(len, example_texts([example])))

    def _room(self, item: Mapping[str, Any]) -> float:
        """Return how many characters of examples fit beside the item."""
        reminder = self.setup.reminder
        budget = reminder.memory.budget if reminder else None
        most = float("inf") if budget is None else budget
        context = self.setup.channels["evaluate"].context
        if context is None:
            return most
        own = sum(len(str(value)) for value in material(item).values())
        return min(most, _CHARACTERS * (context - _RESERVE) - own)


def label_graph(steps: LabelSteps, state: type, result: type, **marks: Any) -> JudgeGraph:
    """Return the graph of a judge that labels one text.

    Args:
        steps: Its steps.
        state: Its state.
        result: What it returns.
        **marks: What decides verdicts beside the options.

    Raises:
        OptionError: A replaced prompt has no place for the examples of the memory.
    """
    # Loaded on use: to check options and count calls takes no graph.
    from langgraph.graph import StateGraph

    setup = steps.setup
    if steps.own.memory is not None:
        step = "evaluate" if steps.own.shows_task else "answer"
        place = "examples" if steps.own.explain == "none" else "instructions"
        if place not in setup.prompts[step].input_variables:
            raise OptionError(
                f"the prompt {step!r} has no `{place}`, where examples of the memory stand"
            )
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, input_schema=Item, output_schema=result
    )
    graph.add_node("evaluate", setup.asks(steps.evaluate, steps.evaluated))
    graph.add_node("total", setup.plain(steps.total))
    steps.start(graph)
    graph.add_edge("evaluate", "total")
    graph.add_edge("total", END)
    return setup.finish(graph, **marks)


def label_setup(options: LabelOptions, model: Any, drafts: bool = False) -> Setup:
    """Return what the steps of a judge that labels one text work with."""
    others = dict.fromkeys(["draft", "evaluate"] if drafts else ["evaluate"])
    alone = PROMPTS if options.shows_task else ANSWER_PROMPTS
    templates = DRAFT_PROMPTS if drafts else alone
    return Setup.of(options, model, others, examples_in=("evaluate",), templates=templates)


def _probabilities(
    message: AIMessage, data: Mapping[str, Any], labels: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """Return the probabilities of the labels of each part of a reply that can be read."""
    if len(labels) == 1:
        return {"": label_probabilities(message, data, labels[0])}
    parts = {unit(number): names for number, names in enumerate(labels)}
    readable = {
        name: names
        for name, names in parts.items()
        if isinstance(data.get(name), Mapping) and "label" in data[name]
    }
    return {
        name: label_probabilities(message, data, names, name)
        for name, names in readable.items()
    }


def _examples(state: Mapping[str, Any]) -> list[Example]:
    reminded = state.get("reminded")
    return reminded["examples"] if reminded else []


def _failure(criterion: Criterion, reason: Any, detail: str) -> Failure:
    return {"step": "evaluate", "unit": criterion.name, "reason": reason, "detail": detail}
