"""The steps and the graph of a judge that labels one text: [recall →] evaluate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update, emit_each, gather
from langchain_judges.asking.models import ModelLike
from langchain_judges.asking.own_prompts import placeholders, with_fences
from langchain_judges.asking.question import Account, Question
from langchain_judges.asking.reading import Problem, check, lax_shape, shape_of
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.shown import block, has_labels, length_of
from langchain_judges.methods import context, declaration, items
from langchain_judges.methods.lookups import findings
from langchain_judges.methods.rubric import claims, prompts, replies
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.options import LabelOptions, RubricOptions
from langchain_judges.options import factory
from langchain_judges.rows.texts import shown_task, transcript
from langchain_judges.verdict import Item, Label

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


class ShownExample(Example):
    """An example with its task and source apart, as its item has them."""

    source_text: str


def case(record: Item | Example | ShownExample, options: LabelOptions) -> dict[str, str]:
    """An item, or an example, as a prompt shows it.

    Args:
        record: The item or example.
        options: Say whether its task is shown.
    """
    parts = items.prompt_variables(record)
    if "task" in options.shown:
        return parts
    source = record.get("source_text" if "corrected" in record else "source")
    if not source and options.needs_source:
        source = shown_task(record["input"])
    form = items.ITEM_WORDS["source"] if source else ""
    return {**parts, "source": form.format(fence=parts["fence"], source=source)}


def shaped_as(item: Item, example: Example) -> Example | ShownExample:
    """An example with its task and source apart, as the item has them.

    A memory keeps the source of an item behind its task.
    """
    source = item.get("source")
    task, example_task = transcript(item["input"]), transcript(example["input"])
    beginning = f"{task}\n\n"
    if not source or source == task or not example_task.startswith(beginning):
        return example
    return {**example, "input": task, "source_text": example_task.removeprefix(beginning)}


# Tokens asked for beside each one, from which the probability of a label is summed.
_ALTERNATIVES = 20


class LabelSteps(replies.RubricSteps):
    """The steps of the judge."""

    state = replies.RubricState

    def phases(self) -> Sequence[declaration.Phase]:
        """Evaluate."""
        return [self.evaluate]

    def lookup_variables(self, state: items.ItemState) -> Mapping[str, object]:
        """The item as a prompt that looks things up shows it, and by what it is judged."""
        criteria = prompts.listed_criteria(self.criteria(items.item_of(state)))
        return {**super().lookup_variables(state), "judgment": f"by\n{criteria}"}

    def criteria(self, item: Item) -> tuple[Criterion, ...]:
        """The criteria that an item is judged by."""
        return self.options.rubric_of(item).criteria

    async def evaluate(self, state: replies.RubricState, account: Account) -> Update:
        """Ask for the labels by all criteria at once, or by each in a call of its own."""
        criteria = self.criteria(items.item_of(state))
        are_alone = getattr(self.options, "each", False)
        parts = [[each] for each in criteria] if are_alone else [criteria]
        found = await gather([self._labelled(part, state, account.part()) for part in parts])
        return self._total(state, [each for part in found for each in part], account)

    async def _labelled(
        self, criteria: Sequence[Criterion], state: replies.RubricState, account: Account
    ) -> list[replies.CriterionScore]:
        """The findings of one call by each criterion that can be read."""
        item, subscores = items.item_of(state), list[replies.CriterionScore]()
        is_alone = getattr(self.options, "each", False)
        name = criteria[0].name if is_alone else str(item.get("id") or "")
        variables = self._variables(criteria, item, state)
        reply = await ask(self._question(criteria, item), variables, account, unit=name)
        if reply.data is None:
            return subscores
        for unit, criterion in zip(replies.units_of(criteria), criteria, strict=True):
            shape = replies.label_shape(self._names(criterion), self.options.explain)
            # What is saved of a reply that is not whole was not checked.
            data, problem = check(reply.data.get(unit), shape) if unit else (reply.data, None)
            if problem is None:
                found = replies.subscore(criterion, data, reply.measured.get(unit) or {})
                subscores.append(found)
                if found["label"] is None:
                    problem = Problem("cannot_assess", found["reason"])
                elif reply.measured.get(unit, {}) is None:
                    problem = Problem("no_logprobs", "labels begin alike: the label alone counts")
            if problem:
                account.fail([problem.failure("evaluate", criterion.name)])
        emit_each("subscore", "evaluate", subscores)
        return subscores

    def _variables(
        self, criteria: Sequence[Criterion], item: Item, state: replies.RubricState
    ) -> dict[str, object]:
        """The variables of a prompt that asks by some criteria."""
        examples, several = state.get("shown") or [], len(criteria) > 1
        lessons = [] if self._in_turns(item) else examples
        fields = case(item, self.options)
        if lookups := state.get("lookups"):
            fields["source"] += findings(lookups)
        corrections = block(lessons)
        if corrections and self._is_whole(item):
            corrections = prompts.WORDS["whole"] + corrections
        each = " by each criterion" if several else ""
        ask_words = prompts.WORDS["ask"][self.options.explain].format(each=each)
        note = prompts.WORDS["labelled"] if examples and not lessons else ""
        return {
            **fields,
            "of_row": item.get("variables") or {},
            **self._criteria_words(criteria),
            "steps": self._steps(item, note),
            "ask": ask_words + (prompts.WORDS["abstain"] if self.options.abstain else ""),
            "instructions": context.instructions_block(self.options.instructions),
            "shared": corrections,
            "examples": [] if lessons else self._turns(item, examples),
        }

    def _total(
        self, state: replies.RubricState, found: Sequence[replies.CriterionScore], account: Account
    ) -> Update:
        """The verdict, and what was found by each criterion in its order."""
        item = items.item_of(state)
        criteria = self.criteria(item)
        by_name = {each["criterion"]: each for each in found}
        subscores = [by_name.get(c.name) or replies.subscore(c, None, {}) for c in criteria]
        recalled = [str(example["id"]) for example in state.get("shown") or ()]
        if not self._is_whole(item):
            verdict = replies.one_verdict(subscores[0], account)
        else:
            least = getattr(self.options, "min_valid", None) or len(criteria) // 2 + 1
            verdict = replies.total_verdict(criteria, subscores, least, account)
        return {"verdict": {**verdict, "recalled": recalled}, "subscores": subscores}

    def fitting(self, item: Item, recalled: Recalled) -> list[Example]:
        """The examples that can be shown."""
        if self._is_whole(item):
            return super().fitting(item, recalled)
        names = self.criteria(item)[0].names
        known = [each for each in recalled if "output" in each and has_labels(each, names)]
        return self.recaller.fitting(known, item, partial(self._length, item))

    def _question(self, criteria: Sequence[Criterion], item: Item) -> Question:
        explain = self.options.explain
        names = map(self._names, criteria)
        labels = dict(zip(replies.units_of(criteria), names, strict=True))
        reads: dict[str, Any] = {
            "measure": partial(replies.parts_probabilities, labels=labels),
            "measured_as": "label",
            "logprobs": True,
            "alternatives": _ALTERNATIVES,
        }
        prompt = self.options.prompt_of(self.criteria(item))
        parts = {unit: replies.label_shape(names, explain) for unit, names in labels.items()}
        if len(criteria) > 1:
            shape, reads["partial"] = shape_of("Labels", parts), lax_shape(tuple(labels))
        else:
            [(unit, shape)] = parts.items()
            reads["parse"] = partial(replies.parse_label, labels=labels[unit])
        return self.context.question("evaluate", shape, prompt, **reads)

    def _names(self, criterion: Criterion) -> tuple[Label, ...]:
        """The answers to a criterion: its labels, and that it cannot be assessed."""
        may_abstain = self.options.abstain or criterion.unless
        return (*criterion.names, *([prompts.CANNOT_ASSESS] if may_abstain else []))

    def _criteria_words(self, criteria: Sequence[Criterion]) -> dict[str, str]:
        """The words of a prompt on criteria: of one, the same for all items of a kind."""
        if len(criteria) > 1:
            return {"criteria": f"\n\n{prompts.listed_criteria(criteria)}"}
        words = prompts.WORDS["one"].format(criterion=prompts.criterion_words(criteria[0]))
        shown = words if "criteria" in self.options.shown else ""
        return {"labels": prompts.label_words(criteria[0]), "criteria": shown}

    def _steps(self, item: Item, note: str) -> str:
        steps = self.options.steps or self.options.rubric_of(item).steps
        return prompts.numbered_steps(steps if "steps" in self.options.shown else (), note)

    def _is_whole(self, item: Item) -> bool:
        """Whether a label of a person is of more than one criterion."""
        return len(self.criteria(item)) > 1

    def _in_turns(self, item: Item) -> bool:
        """Whether examples are shown as earlier turns, as in the paper.

        Where a reason is asked, what the audit found is said by the user: as a reply of the
        judge it would become the reason that the judge gives next.
        """
        if self.options.explain != "none" or self._is_whole(item):
            return False
        return "examples" in placeholders(self.context.prompts[self.options.prompt_of(())])

    def _turns(self, item: Item, examples: Sequence[Example]) -> list[BaseMessage]:
        """Each example as the two turns it would have been."""
        name = "example" if "task" in self.options.shown else "answer_example"
        prompt = self.context.prompts[name]
        ask_words, turns = prompts.WORDS["ask"]["none"].format(each=""), list[BaseMessage]()
        for example in examples:
            reply = json.dumps({"label": str(example["corrected"])}, ensure_ascii=False)
            values = {**case(shaped_as(item, example), self.options), "ask": ask_words}
            turns += prompt.format_messages(**with_fences(prompt, {**values, "reply": reply}))
        return turns

    def _length(self, item: Item, example: Example) -> int:
        """The characters that an example takes."""
        if self._in_turns(item):
            return sum(len(turn.text) for turn in self._turns(item, [example]))
        return length_of(example)


def build(options: RubricOptions, model: ModelLike) -> JudgeGraph:
    """Build the judge."""
    return (claims.ClaimSteps if options.claims else LabelSteps).build(options, model)


create_rubric_judge = factory(RubricOptions, build, "create_rubric_judge")
