"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langgraph.graph import END, StateGraph
from pydantic import BeforeValidator

from langchain_judges.asking.ask import Question, Reply
from langchain_judges.asking.nodes import Call
from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example
from langchain_judges.memory.protocol import Memory, check_memory
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.rendering import Reminder, fitting
from langchain_judges.methods.allure import prompts as texts
from langchain_judges.methods.allure.audit.checks import Label
from langchain_judges.methods.allure.labels import label_probabilities, spoken_label
from langchain_judges.methods.allure.options import (
    ClientLabel,
    ExampleOrder,
    Instruct,
    read_labels,
)
from langchain_judges.methods.allure.replies import (
    Explain,
    JudgeResult,
    JudgeState,
    label_shape,
)
from langchain_judges.methods.base import JudgeGraph, JudgeOptions, Seed, Setup
from langchain_judges.methods.items import ItemState, ItemSteps, begin, item_of, material
from langchain_judges.methods.marks import memory_of, metadata_of, unwrapped
from langchain_judges.methods.pairs import INSTRUCTIONS
from langchain_judges.options import ForClient, Rule, factory
from langchain_judges.verdict import Failure, Item, LabelVerdict, not_labelled

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where examples may not fit."""
_KEPT_FREE = 1000
"""Tokens kept free for the instructions and the reply."""
_ALTERNATIVES = 20
"""Tokens asked for beside each one, from which the probability of a label is summed."""


class ALLURE(JudgeOptions):
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
        `verdict.score` is the probability of label 1 (of the last label, where there is no
        1) if the model gives log-probabilities, else the label; of more than two numbers
        their mean by probability.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.

    Example:
        >>> from langchain_judges import create_allure_judge
        >>> judge = create_allure_judge("local")  # doctest: +SKIP
        >>> judge.invoke({"input": "2 + 2?", "output": "It is 4.",
        ...     "expected": "4"})["verdict"]["label"]  # doctest: +SKIP
        1
    """

    method = "allure"
    summary = "ALLURE: label one text, shown the audited mistakes that matter for it."
    takes = "item"
    presets = {
        "bare": {"instruct": "bare", "recall": "none"},
        "criteria": {"instruct": "criteria", "recall": "none"},
        "steps": {"instruct": "steps", "recall": "none"},
        "examples": {"instruct": "steps"},
        "e1": {"rubric": "correctness", "recall": "all", "explain": "none"},
        "e2": {"rubric": "consistency", "recall": "all", "explain": "none"},
    }
    templates = texts.PROMPTS

    labels: Annotated[
        Sequence[Label],
        BeforeValidator(read_labels),
        Rule("two or more distinct numbers or texts, from worst to best"),
        ForClient(Sequence[ClientLabel]),
    ] = (0, 1)
    """What the judge may say, from worst to best: two or more numbers or texts."""
    rubric: str | None = None
    """What is judged: `"correctness"`, `"consistency"` or your own text. Default: correctness
    where there is an expected answer, else consistency with the source."""
    steps: Annotated[Sequence[str] | None, Rule("a list of texts")] = None
    """How to judge; default four steps that go with the rubric."""
    instruct: Instruct = "steps"
    """`"bare"` shows neither rubric nor steps, `"criteria"` the rubric, `"steps"` both."""
    explain: Explain = "after"
    """When the reason is asked: `"after"` the label, `"first"` or `"none"`."""
    example_order: ExampleOrder = "insertion"
    """`"insertion"` (as recalled), `"shuffle"` or `"modes"`."""
    seed: Seed = 0
    """Of the shuffling."""

    @property
    def positive(self) -> Label:
        """The label whose probability is the score."""
        one = [label for label in self.labels if label == 1]
        return one[0] if one and len(self.labels) == 2 else self.labels[-1]

    @property
    def graded(self) -> bool:
        """Whether the labels are more than two numbers."""
        return len(self.labels) > 2 and not isinstance(self.labels[0], str)

    def criteria_of(self, item: Mapping[str, Any]) -> str:
        """Return what is judged: the item's rubric, the caller's, or that of the kind."""
        rubric = item.get("rubric") or self.rubric or _basis(item)
        return texts.RUBRICS.get(rubric, rubric)

    def steps_of(self, item: Mapping[str, Any]) -> Sequence[str]:
        """Return the steps to take: the caller's, or those for this kind of item."""
        if self.steps:
            return self.steps
        # A rubric of one's own compares with nothing, whatever else the item brings.
        rubric = item.get("rubric") or self.rubric or _basis(item)
        return texts.STEPS.get(rubric, texts.STEPS_ALONE)

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
        setup = Setup.of(self, model, {"evaluate": None}, shown=("evaluate",))
        if self.memory is not None and (
            "examples" not in setup.prompts["evaluate"].input_variables
        ):
            raise OptionError("the prompt 'evaluate' has no place for `examples` of the memory")
        steps = LabelSteps(setup, self)
        graph: StateGraph[JudgeState, None, Any, Any] = StateGraph(
            JudgeState, input_schema=Item, output_schema=JudgeResult
        )
        graph.add_node("evaluate", setup.asks(steps.evaluate, steps.evaluated))
        begin(graph, steps, "evaluate")
        graph.add_edge("evaluate", END)
        return setup.finish(graph)


create_allure_judge = factory(ALLURE, ALLURE.build, "create_allure_judge")


@dataclass(frozen=True)
class LabelSteps(ItemSteps):
    """The steps of the judge."""

    own: ALLURE

    @property
    def criteria(self) -> str | None:
        """The caller's own criteria."""
        return self.own.rubric

    @cached_property
    def question(self) -> Question:
        """What is asked of every item."""
        labels = tuple(self.own.labels)
        return self.setup.question(
            "evaluate",
            label_shape(labels, self.own.explain),
            parse=partial(spoken_label, labels=labels),
            measure=partial(label_probabilities, labels=labels),
            measured_as="label",
            logprobs=True,
            alternatives=_ALTERNATIVES,
        )

    def begin(self, state: ItemState) -> Update:
        """Check the item, and say what it is judged with."""
        reminder = self.setup.reminder
        return {
            **super().begin(state),
            "memory_version": str(reminder.memory.version) if reminder else None,
            "leak_allowed": self.own.allow_leak,
        }

    def evaluate(self, state: JudgeState) -> Call:
        """Ask for the label of the response."""
        item = item_of(state)
        variables = {
            **self._frame(item),
            **material(item),
            "examples": [turn for each in _examples(state) for turn in self._turns(each)],
        }
        return Call(self.question, variables, str(item.get("id") or ""))

    def evaluated(self, state: JudgeState, reply: Reply) -> Update:
        """Return the verdict."""
        recalled = [str(example["id"]) for example in _examples(state)]
        failures = [*state["failures"], *reply.failures]
        if reply.data is None:
            lost = not_labelled(failures, reply.usage)
            return {"verdict": {**lost, "recalled": recalled}}
        name = str(reply.data["label"])
        label = {str(each): each for each in self.own.labels}[name]
        probabilities = reply.measured or {}
        reason = str(reply.data.get("explanation") or "").strip()
        verdict: LabelVerdict = {
            "label": label,
            "score": self._score(label, probabilities),
            "confidence": probabilities.get(name),
            "confidence_source": "logprobs" if probabilities else "none",
            "rationale": reason or f"Label {label}, without a reason.",
            "failures": failures,
            "usage": reply.usage,
            "recalled": recalled,
        }
        return {"verdict": verdict}

    def fitting(
        self, item: Mapping[str, Any], recalled: Recalled
    ) -> tuple[list[Example], list[Failure]]:
        """Return the examples that can be shown, and a note for those that cannot.

        Of two that contradict each other the later one counts.
        """
        names = {str(label) for label in self.own.labels}
        examples = list(recalled)
        latest: dict[str, Example] = {}
        for example in examples:
            text = isinstance(example.get("output"), str | list)
            if text and str(example.get("corrected")) in names:
                latest[_content(example)] = example
        usable = [each for each in examples if latest.get(_content(each)) is each]
        reminder = self.setup.reminder
        shown = fitting(
            usable,
            self._room(item),
            lambda example: sum(len(turn.text) for turn in self._turns(example)),
            newest=reminder is not None and reminder.how.kind == "all",
        )
        return self._ordered(shown), _left_out(len(examples), len(usable), len(shown))

    def _score(self, label: Label, probabilities: Mapping[str, float]) -> float | None:
        own, positive = self.own, str(self.own.positive)
        if own.graded:
            if len(probabilities) < len(own.labels):
                return float(label)
            return sum(float(each) * probabilities.get(str(each), 0.0) for each in own.labels)
        if positive in probabilities:
            return probabilities[positive]
        if isinstance(label, int | float):
            return float(label)
        return float(label == own.positive)

    def _frame(self, item: Mapping[str, Any]) -> dict[str, str]:
        """Return what is the same for all items of a kind."""
        own = self.own
        parts = {"bare": 0, "criteria": 1, "steps": 2}[own.instruct]
        steps = [f"{n}. {step}" for n, step in enumerate(own.steps_of(item), 1)]
        names = [str(label) for label in own.labels]
        meaning = f" (from {names[0]}, the worst, to {names[-1]}, the best)"
        if len(names) == 2:
            meaning = f" ({names[0]}: it is wrong; {names[1]}: it is right)"
        added = own.instructions
        return {
            "labels": " or ".join([", ".join(names[:-1]), names[-1]]) + meaning,
            "criteria": f"\n\n{own.criteria_of(item)}" if parts >= 1 else "",
            "steps": "\n\n" + "\n".join(steps) if parts >= 2 else "",
            "instructions": INSTRUCTIONS.format(instructions=added) if added else "",
        }

    def _turns(self, example: Mapping[str, Any]) -> list[BaseMessage]:
        """Return an example as the two turns it would have been."""
        label = {"label": str(example["corrected"])}
        reason = {"explanation": _lesson(example)}
        ordered = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
        reply = json.dumps(ordered[self.own.explain], ensure_ascii=False)
        return self.setup.prompts["example"].format_messages(**material(example), reply=reply)

    def _room(self, item: Mapping[str, Any]) -> float:
        """Return how many characters of examples fit beside the item."""
        reminder = self.setup.reminder
        budget = reminder.memory.budget if reminder else None
        most = float("inf") if budget is None else budget
        context = self.question.channel.context
        if context is None:
            return most
        own = sum(len(str(value)) for value in material(item).values())
        return min(most, _CHARACTERS * (context - _KEPT_FREE) - own)

    def _ordered(self, examples: list[Example]) -> list[Example]:
        if self.own.example_order == "shuffle":
            return random.Random(self.own.seed).sample(examples, len(examples))  # noqa: S311
        if self.own.example_order == "modes":
            blocks = list(dict.fromkeys(example.get("mode") for example in examples))
            return sorted(examples, key=lambda example: blocks.index(example.get("mode")))
        return examples


def _basis(item: Mapping[str, Any]) -> str:
    return (
        "consistency" if item.get("expected") is None and item.get("source") else "correctness"
    )


def _examples(state: JudgeState) -> list[Example]:
    reminded = state.get("reminded")
    return reminded["examples"] if reminded else []


def _left_out(recalled: int, usable: int, shown: int) -> list[Failure]:
    """Return a note of the examples that were recalled and are not shown."""
    if shown == recalled:
        return []
    unfit = recalled - usable
    why = [f"{recalled - shown} of {recalled} examples are not shown"]
    why += [f"{unfit} carry another kind of label, or are contradicted"] if unfit else []
    why += [f"{usable - shown} do not fit the context"] if usable > shown else []
    note: Failure = {
        "step": "recall",
        "unit": "examples",
        "reason": "input_cut",
        "detail": "; ".join(why),
    }
    return [note]


def _content(example: Mapping[str, Any]) -> str:
    told = [example.get(field) for field in ("input", "output", "expected")]
    return json.dumps(told, sort_keys=True, default=str)


def _lesson(example: Mapping[str, Any]) -> str:
    """Say in a sentence or two what the audit of an example found."""
    wrong, corrected = example.get("wrong"), example["corrected"]
    parts = [f"The label is {corrected}."]
    if wrong is not None and wrong != corrected:
        parts = [f"A judge gave {wrong} by mistake; the audited label is {corrected}."]
    if example.get("mode"):
        parts.append(f"What misled it: {example['mode']}.")
    if note := str(example.get("note") or "").strip():
        parts.append(note)
    return " ".join(parts)


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
