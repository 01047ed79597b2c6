"""The ALLURE judge of one text: recall → evaluate (Hasanbeig et al. 2023, section 3)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from langchain_judges.asking.ask import Question, Reply, ask
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.steps import Effect, Node, Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.rendering import fitting
from langchain_judges.methods.allure import prompts as texts
from langchain_judges.methods.allure.audit.checks import Label, expected_answers
from langchain_judges.methods.allure.labels import label_probabilities, spoken_label
from langchain_judges.methods.allure.options import (
    ExampleOrder,
    Instruct,
    Options,
    check_memory,
    check_options,
)
from langchain_judges.methods.allure.state import (
    Explain,
    JudgeResult,
    JudgeState,
    Memory,
    label_shape,
    shown_of,
)
from langchain_judges.methods.marks import memory_of, metadata_of, unwrapped
from langchain_judges.methods.old_base import (
    check_common,
    finish,
    prompt_set,
)
from langchain_judges.rows.texts import check_basis, check_item, fence_token, judged, transcript
from langchain_judges.verdict import Failure, Item, LabelVerdict, not_labelled

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where examples may not fit."""
_KEPT_FREE = 1000
"""Tokens kept free for the instructions and the reply."""
_ALTERNATIVES = 20
"""Tokens asked for beside each one, from which the probability of a label is summed."""


def create_allure_judge(  # noqa: PLR0913 - the options of the paper's settings
    model: str | BaseChatModel,
    *,
    memory: Memory | None = None,
    recall: Any = "own",
    allow_leak: bool = False,
    labels: Sequence[Label] = (0, 1),
    rubric: str | None = None,
    steps: Sequence[str] | None = None,
    instruct: Instruct = "steps",
    explain: Explain = "after",
    example_order: ExampleOrder = "insertion",
    seed: int = 0,
    instructions: str | None = None,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "allure",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[JudgeState, None, Item, JudgeResult]:
    """Create a judge that labels one text and learns from its audited mistakes.

    `recall` fetches the examples that matter for the item from the memory; `evaluate` asks
    for the label in one call, with the examples as earlier turns. With an empty memory the
    prompt is byte for byte the one without a memory.

    Where the paper is silent or we differ: examples are those of the item's family that are
    nearest to it (the paper shows all of them, `recall="all"`), never the item itself nor
    one of its group; the label comes first and a reason after it (the paper asks for the
    label alone, `explain="none"`); temperature 0.

    Args:
        model: Chat model that labels; a chat model, or a name as `resolve_model` takes it.
        memory: Audited examples, such as a `FailureMemory`.
        recall: Which examples are shown: what the memory's `recall` takes, or `"own"`: what
            the memory does by itself, `knn(8)` if it was told nothing. None shows none.
        allow_leak: Also show examples of the item under test and its group. Accuracy
            measured so is no accuracy; every result says that it was allowed.
        labels: What the judge may say, from worst to best: two or more numbers or texts.
        rubric: What is judged: `"correctness"`, `"consistency"` or your own text. Default:
            correctness where there is an expected answer, else consistency with the source.
        steps: How to judge; default four steps that go with the rubric.
        instruct: `"bare"` shows neither rubric nor steps, `"criteria"` the rubric, `"steps"`
            both.
        explain: When the reason is asked: `"after"` the label, `"first"` or `"none"`.
        example_order: `"insertion"` (as recalled), `"shuffle"` or `"modes"`.
        seed: Of the shuffling.
        instructions: Your words to the judge, such as the language to answer in.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacements for `allure.prompts.PROMPTS`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Item` to `{"verdict", "memory_version", "leak_allowed"}`, and
        with a memory `recalled`, as judges of pairs tell it: `{"ids", "left_out", "leaked",
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
    check_common(
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    check_memory(memory)
    options = check_options(
        labels=labels,
        recall=getattr(memory, "how", "knn:8") if recall == "own" else recall,
        allow_leak=allow_leak,
        rubric=rubric,
        steps=steps,
        instruct=instruct,
        explain=explain,
        example_order=example_order,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
    )
    chosen, version = prompt_set(texts.PROMPTS, prompts)
    if memory is not None and "examples" not in chosen["evaluate"].input_variables:
        raise OptionError("the prompt 'evaluate' has no place for `examples` of the memory")
    question = Question(
        method="allure",
        step="evaluate",
        channel=Channel(model, temperature),
        prompt=chosen["evaluate"],
        shape=label_shape(options.labels, explain),
        version=version,
        parse=partial(spoken_label, labels=options.labels),
        measure=partial(label_probabilities, labels=options.labels),
        measured_as="label",
        logprobs=True,
        alternatives=_ALTERNATIVES,
        repairs=repairs,
        cache=cache,
    )
    judge = _Allure(options, question, chosen["example"], memory)
    graph = StateGraph(JudgeState, input_schema=Item, output_schema=JudgeResult)
    graph.add_node("recall", Node(judge.recall))
    graph.add_node("evaluate", Node(judge.evaluate))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "evaluate")
    graph.add_edge("evaluate", END)
    compiled = graph.compile(checkpointer=checkpointer, store=store, name=name)
    return finish(
        compiled,
        method="allure",
        options=options.as_json(),
        models={"evaluate": question.channel.identity},
        prompt_version=version,
        calls=1,
        branches=1,
        memory=memory,
    )


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


@dataclass(frozen=True)
class _Allure:
    """The two steps of the judge, with their options and question."""

    options: Options
    question: Question
    example: ChatPromptTemplate
    memory: Memory | None

    def recall(self, state: JudgeState) -> Steps[Update]:
        """Fetch the examples to show: those that fit the labels and the context."""
        check_item(state)
        item = shown_of(state)
        check_basis(item, self.options.rubric)
        memory, how = self.memory, self.options.recall
        fresh: Update = {"verdict": None, "failures": [], "examples": []}
        if memory is None:
            return {**fresh, "memory_version": None}
        version = fresh["memory_version"] = str(memory.version)
        told = {"allow_leak": self.options.allow_leak, "version": version}
        fresh["recalled"] = {"ids": [], "left_out": 0, "leaked": [], **told}
        if how is None or not len(memory):
            return fresh
        leak = {"allow_leak": True} if self.options.allow_leak else {}
        found: Sequence[Mapping[str, Any]] = yield Effect(
            lambda: memory.recall(item, how, **leak),
            lambda: memory.arecall(item, how, **leak),
        )
        shown, failures = self._fitting(item, [dict(example) for example in found])
        shown = self._ordered(shown)
        ids = [str(example["id"]) for example in shown]
        fresh["recalled"] |= {
            "ids": ids,
            "left_out": len(found) - len(shown),
            "leaked": [own for own in getattr(found, "leaked", ()) if own in ids],
        }
        return {**fresh, "examples": shown, "failures": failures}

    def evaluate(self, state: JudgeState) -> Steps[Update]:
        """Ask for the label of the response."""
        item, examples = shown_of(state), state["examples"]
        reply = yield from ask(
            self.question,
            {
                **self._frame(item),
                **material(item),
                "examples": [turn for each in examples for turn in self._turns(each)],
            },
            unit=str(item.get("id") or ""),
        )
        recalled = [str(example["id"]) for example in examples]
        failures = [*state["failures"], *reply.failures]
        return {
            "verdict": self._verdict(reply, failures, recalled),
            "leak_allowed": self.options.allow_leak,
        }

    def _verdict(
        self, reply: Reply, failures: list[Failure], recalled: list[str]
    ) -> LabelVerdict:
        if reply.data is None:
            return {**not_labelled(failures, reply.usage), "recalled": recalled}
        said = str(reply.data["label"])
        by_name = {str(each): each for each in self.options.labels}
        label, known = by_name[said], reply.measured or {}
        reason = str(reply.data.get("explanation") or "").strip()
        return {
            "label": label,
            "score": self._score(label, known),
            "confidence": known.get(said),
            "confidence_source": "logprobs" if known else "none",
            "rationale": reason or f"Label {label}, without a reason.",
            "failures": failures,
            "usage": reply.usage,
            "recalled": recalled,
        }

    def _score(self, label: Label, known: Mapping[str, float]) -> float | None:
        positive = str(self.options.positive)
        if self.options.graded:
            whole = len(known) == len(self.options.labels)
            grades = [float(each) for each in self.options.labels]
            weights = [known.get(str(each), 0.0) for each in self.options.labels]
            mean = sum(grade * weight for grade, weight in zip(grades, weights, strict=True))
            return mean if whole else float(label)
        if positive in known:
            return known[positive]
        if isinstance(label, int | float):
            return float(label)
        return float(label == self.options.positive)

    def _frame(self, item: Mapping[str, Any]) -> dict[str, str]:
        """Return what is the same for all items of a kind."""
        options = self.options
        told = {"bare": 0, "criteria": 1, "steps": 2}[options.instruct]
        steps = [f"{n}. {step}" for n, step in enumerate(options.steps_of(item), 1)]
        names = [str(label) for label in options.labels]
        meaning = f" (from {names[0]}, the worst, to {names[-1]}, the best)"
        if len(names) == 2:
            meaning = f" ({names[0]}: it is wrong; {names[1]}: it is right)"
        added = options.instructions
        return {
            "labels": " or ".join([", ".join(names[:-1]), names[-1]]) + meaning,
            "criteria": f"\n\n{options.criteria_of(item)}" if told >= 1 else "",
            "steps": "\n\n" + "\n".join(steps) if told >= 2 else "",
            "instructions": texts.INSTRUCTIONS.format(instructions=added) if added else "",
        }

    def _turns(self, example: Mapping[str, Any]) -> list[BaseMessage]:
        """Return an example as the two turns it would have been."""
        label = {"label": str(example["corrected"])}
        reason = {"explanation": _lesson(example)}
        ordered = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
        reply = json.dumps(ordered[self.options.explain], ensure_ascii=False)
        return self.example.format_messages(**material(example), reply=reply)

    def _fitting(
        self, item: Mapping[str, Any], found: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[Failure]]:
        """Return the examples that can be shown, and a note for those that cannot.

        Of two that contradict each other the later one counts.
        """
        names = {str(label) for label in self.options.labels}
        latest: dict[str, dict[str, Any]] = {}
        for example in found:
            text = isinstance(example.get("output"), str | list)
            if text and str(example.get("corrected")) in names:
                latest[_content(example)] = example
        usable = [example for example in found if latest.get(_content(example)) is example]
        kept = fitting(
            usable,
            self._room(item),
            lambda example: sum(len(turn.text) for turn in self._turns(example)),
            newest=str(self.options.recall) == "all",
        )
        lost = len(found) - len(kept)
        if not lost:
            return kept, []
        unfit = len(found) - len(usable)
        why = [f"{lost} of {len(found)} examples are not shown"]
        why += [f"{unfit} carry another kind of label, or are contradicted"] if unfit else []
        why += [f"{lost - unfit} do not fit the context"] if lost > unfit else []
        note: Failure = {
            "step": "recall",
            "unit": "examples",
            "reason": "input_cut",
            "detail": "; ".join(why),
        }
        return kept, [note]

    def _room(self, item: Mapping[str, Any]) -> float:
        """Return how many characters of examples fit beside the item."""
        context, budget = self.question.channel.context, getattr(self.memory, "budget", None)
        most = float("inf") if budget is None else budget
        if context is None:
            return most
        own = sum(len(str(value)) for value in material(item).values())
        return min(most, _CHARACTERS * (context - _KEPT_FREE) - own)

    def _ordered(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.options.example_order == "shuffle":
            return random.Random(self.options.seed).sample(examples, len(examples))  # noqa: S311
        if self.options.example_order == "modes":
            blocks = list(dict.fromkeys(example.get("mode") for example in examples))
            return sorted(examples, key=lambda example: blocks.index(example.get("mode")))
        return examples


def material(item: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, str]:
    """Return one case as the prompt shows it, fenced by a token of its own.

    Args:
        item: An item, or a remembered example.
        also: Further texts that the same fence encloses.
    """
    task, response = transcript(item["input"]), judged(item["output"])
    answers, source = expected_answers(item), item.get("source") or ""
    # An example's `source` is the id of the item that it comes from, and no text.
    source = "" if "corrected" in item else source
    token = fence_token([task, response, *answers, source, *also])
    expected = ""
    if len(answers) == 1:
        expected = texts.EXPECTED.format(fence=token, expected=answers[0])
    elif answers:
        listed = "\n".join(f"- {answer}" for answer in answers)
        expected = texts.ANY_OF.format(fence=token, expected=listed)
    apart = source and source != task
    return {
        "fence": token,
        "task": task,
        "response": response,
        "expected": expected,
        "source": texts.SOURCE.format(fence=token, source=source) if apart else "",
    }


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
