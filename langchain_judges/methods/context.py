"""Context of a judge's steps: its options, prompts, models and memory."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NotRequired,
    TypeVar,
    cast,
    get_origin,
    get_type_hints,
)

from langchain_core.messages import SystemMessage
from langchain_core.prompts import (
    BasePromptTemplate,
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
)
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges.asking import reading
from langchain_judges.asking.account import Account
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update
from langchain_judges.asking.models import ModelLike, model_name
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.reply_log import ReplyLog
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.shown import Recaller, RecallReport, cut_failures
from langchain_judges.methods.declaration import GraphOptions, JudgeOptions, Phase
from langchain_judges.methods.lookups import CONSULT, LookupOptions, Wanted, consulted
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.rows.fences import MATERIAL_RULE
from langchain_judges.rows.media import kind_of_block, media_in
from langchain_judges.rows.texts import fitted
from langchain_judges.verdict import Failure, Item, LabelVerdict, Pair, Row, Usage, Verdict

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph, MethodGraph

# Threads of a synchronous run beyond its branches: the same pool writes the checkpoints and
# waits for what is streamed.
SPARE_THREADS = 8
# Bytes of a token, by a cautious guess.
_TOKEN_BYTES = 3
# Tokens that are kept for what is asked and replied, at most.
_TOKENS_ASKED = 4000


@dataclass(frozen=True)
class StateSchema:
    """The types of a graph's state.

    Attributes:
        results: The keys that the graph returns, of those that its state has.
        source: The keys of the state that the graph is given.
    """

    state: type
    results: tuple[str, ...]
    source: type

    @property
    def blank(self) -> Update:
        """The state before the first phase: a checkpointed thread holds that of another run."""
        blank = _blank_state(self.state, self.source)
        return {key: copy(value) for key, value in blank.items() if key not in _OF_MEMORY}

    def graph(self) -> MethodGraph:
        """A graph without nodes."""
        # Loaded on use: to check options and count calls takes no graph.
        from langgraph.graph import StateGraph

        hints, new_type = get_type_hints(self.state), cast("Any", TypedDict)
        result = {
            key: NotRequired[hints[key]] if key in _OF_MEMORY else hints[key]
            for key in self.results
            if key in hints
        }
        output = new_type(self.state.__name__.replace("State", "Result"), result)
        return StateGraph(self.state, input_schema=self.source, output_schema=output)


@cache
def _blank_state(state: type, source: type) -> Mapping[str, Any]:
    """A state before its first phase, without the keys of its input.

    Args:
        state: The `TypedDict` of the state.
        source: That of the input.
    """
    given = get_type_hints(source)
    hints = get_type_hints(state).items()
    return {key: _blank(hint) for key, hint in hints if key not in given}


def _blank(hint: Any) -> object:
    kind = get_origin(hint) or hint
    return kind() if kind in (list, dict) else None


class StepState(TypedDict, total=False):
    """The state of every judge beside its row and verdict; plain JSON.

    Attributes:
        shown: What the memory recalled, in the order in which it is shown; only with a memory.
        recalled: Which examples were shown; only with a memory.
        usage: What was asked so far cost.
    """

    shown: list[Example]
    recalled: RecallReport
    failures: list[Failure]
    usage: Usage


# State keys that every run of a judge with a memory sets, and no run of another.
_OF_MEMORY = ("shown", "recalled")


@dataclass(frozen=True)
class JudgeContext:
    """The tools of a judge's steps: checked options, prompts, models, memory.

    Attributes:
        version: Hash of the prompts.
        adapters: The model of each step.
        model: The judge's own model, as the caller named it.
        log: Where every reply is written that the judge has paid for.
    """

    options: GraphOptions
    prompts: Mapping[str, ChatPromptTemplate]
    version: str
    adapters: Mapping[str, ModelAdapter]
    recaller: Recaller | None
    model: ModelLike
    log: ReplyLog
    schema: StateSchema

    @classmethod
    def of(cls, options: GraphOptions, model: ModelLike, schema: StateSchema) -> JudgeContext:
        """Choose prompts and models.

        Args:
            options: The checked options.
            model: The judge's own model.
            schema: The types of the graph's state and of what it returns.

        Raises:
            OptionError: A replaced prompt or the memory is not one, or no step shows what the
                memory recalls.
            ModelSetupError: A model cannot be made.
        """
        prompts, version = prompt_set(options.prompt_texts, options.prompts)
        adapter = ModelAdapter(model, options.temperature)
        adapters = {
            step: ModelAdapter(other, options.temperature) if other else adapter
            for step, other in options.models.items()
        }
        memory = None
        if isinstance(options, JudgeOptions):
            shows = [step for step in options.examples_in if step in adapters]
            memory = options.recaller([adapters[step].context for step in shows])
            if memory and options.takes == "pair" and not shows:
                raise OptionError("no step of the judge shows what its memory recalls")
        log = ReplyLog(options.checkpointer)
        return cls(options, prompts, version, adapters, memory, model, log, schema)

    def question(
        self, step: str, shape: type[BaseModel], prompt: str = "", **more: Any
    ) -> Question:
        """The question of a step.

        Args:
            step: The step.
            shape: What the reply must look like.
            prompt: Name of the prompt, if not that of the step.
            **more: Fields of `Question`.

        Raises:
            OptionError: The method has no such prompt, or no model for such a step.
        """
        if (name := prompt or step) not in self.prompts or step not in self.adapters:
            raise OptionError(
                f"a step {step!r} with the prompt {name!r} is unknown: `templates` names "
                f"{sorted(self.prompts)!r}, and {sorted(self.adapters)!r} ask a model"
            )
        return Question(
            method=self.options.label,
            step=step,
            adapter=self.adapters[step],
            prompt=self.prompts[name],
            reply_schema=shape,
            version=self.version,
            repairs=self.options.repairs,
            cache=self.options.cache,
            cache_first=self.options.cache_first,
            log=self.log,
            **more,
        )

    def lookup_question(self) -> Question:
        """The question about look-ups, put to the judge's first model."""
        first = self.question(next(iter(self.adapters)), Wanted, next(iter(self.prompts)))
        return replace(first, step="consult", prompt=CONSULT)

    def unsupported_media(self, row: Mapping[str, object]) -> list[Failure]:
        """Why a row cannot be judged: it holds media that one of the models does not take.

        Args:
            row: A pair or an item.
        """
        kinds = {kind_of_block(block) for block in media_in(row)}
        for adapter in self.adapters.values() if kinds else ():
            if lacking := [kind for kind in adapter.refused_media if kind in kinds]:
                name = model_name(adapter.model)
                detail = f"the model {name!r} takes no {' and no '.join(lacking)} as input"
                return [reading.Problem("invalid_input", detail).failure("begin", "")]
        return []

    def fitted(self, row: Mapping[str, object]) -> tuple[dict[str, Any], list[Failure]]:
        """The texts of a row that had to be cut for its models, and what was left out.

        Args:
            row: A pair or an item.
        """
        known = [each.context for each in self.adapters.values() if each.context]
        own = self.options.context if isinstance(self.options, JudgeOptions) else None
        if not (tokens := own or min(known, default=None)):
            return {}, []
        # What is asked and replied needs room too.
        free = tokens - min(_TOKENS_ASKED, tokens // 4)
        cut = fitted(row, free * _TOKEN_BYTES)
        return cut.texts, [
            reading.Problem(
                "input_cut",
                f"shown without the middle of its {parts} longest parts, "
                f"{characters:,} characters, to fit into {tokens:,} tokens",
            ).failure("begin", field)
            for field, (parts, characters) in cut.left_out.items()
        ]

    def left_out(self, row: Mapping[str, object]) -> list[Failure]:
        """Report the parts of a row that a prompt has no room to show."""
        return self.fitted(row)[1]

    def compile(
        self,
        begin: Callable[[Any, Account], Update],
        phases: Sequence[Phase],
        **fingerprint: object,
    ) -> JudgeGraph:
        """Make a graph and mark it with what decides its verdicts.

        Args:
            begin: What a run begins with.
            phases: What it does, in order; a node is called as its function is.
            **fingerprint: More plain data that decides verdicts, besides the options.
        """
        # Loaded on use: to check options and count calls takes no graph.
        from langchain_judges.methods.graph import JudgeGraph, chain

        options = self.options
        memory = {"memory": self.recaller.fingerprint()} if self.recaller else {}
        revision = {"revision": options.revision} if options.revision else {}
        metadata = {
            "method": options.label,
            "options": {**options.as_json(), **memory, **revision, **fingerprint},
            "model": {step: adapter.identity for step, adapter in self.adapters.items()},
            "prompt_version": self.version,
            "calls": options.calls(),
        }
        return JudgeGraph.of(
            chain(self.schema.graph(), begin, phases),
            options,
            metadata,
            options.branches() + SPARE_THREADS,
            model=self.model,
            log=self.log,
            prompts=self.prompts,
        )


def prompt_set(
    originals: Mapping[str, ChatPromptTemplate],
    replaced: Mapping[str, Any] | BasePromptTemplate[Any] | str | PathLike[str] | None,
) -> tuple[dict[str, ChatPromptTemplate], str]:
    """A method's prompts, some replaced by the caller's, and a hash of them all.

    Raises:
        OptionError: A name is unknown, or a replacement asks for a variable that the step
            does not fill.
        TypeError: A prompt of the method is no template.
    """
    for step, template in originals.items():
        if not isinstance(template, ChatPromptTemplate):
            raise TypeError(f"the template {step!r} must be a ChatPromptTemplate: {template!r}")
    prompts = dict(originals)
    for given, own in (reading.read_prompts(replaced) or {}).items():
        step = (
            next((s for s in _JUDGES if s in originals), given)
            if given == reading.ONLY
            else given
        )
        if step not in originals:
            raise OptionError(f"`prompts` takes {sorted(originals)!r}, got {step!r}")
        prompt = reading.own_prompt(step, own)
        # What the method's own shows as messages, and this one as a text.
        written = reading.placeholders(originals[step]) - reading.placeholders(prompt)
        known = set(originals[step].input_variables) - written
        extra = {v for v in prompt.input_variables if v not in known}
        # What only steps that judge are shown: a plan is made from the request alone.
        texts = {"response", "response_1"} & known
        if extra & {"output", "output_a", "output_b", "outputs"} and not texts:
            raise _unknown(step, known, extra)
        _check_spelling(step, extra - _ROW_FIELDS, known | _ROW_FIELDS)
        has_fences = bool({"fence", "fence_1"} & {*prompt.input_variables})
        if isinstance(prompt, reading.FencedPrompt) or (extra and not has_fences):
            prompt = _as_fenced(prompt, known)
        elif extra:
            raise _unknown(step, known, extra)
        prompts[step] = prompt
    templates = {step: _texts(prompt) for step, prompt in prompts.items()}
    digest = hashlib.sha256(json.dumps(templates, sort_keys=True).encode())
    return prompts, digest.hexdigest()[:12]


def _check_spelling(step: str, names: set[str], known: set[str]) -> None:
    """Check that no name is a mistyped one of those that are known.

    Raises:
        OptionError: One is.
    """
    stems = {each: _STEM.sub("", each) for each in sorted(known)}
    for name in sorted(names):
        stem = _STEM.sub("", name)
        near = get_close_matches(stem, stems.values(), n=1, cutoff=0.88)
        near = near or [each for each in stems.values() if sorted(each) == sorted(stem)]
        if near and stem not in stems.values():
            alike = [each for each, its in stems.items() if its == near[0]]
            raise OptionError(
                f"the prompt {step!r} shows {name!r}: did you mean "
                f"{get_close_matches(name, alike, 1, 0)[0]!r}? (A field of your rows needs a "
                "name that is less alike.)"
            )


# What names that differ on purpose differ by: a plural, a number, a side.
_STEM = re.compile(r"s?(_?\d+|_[a-z])?$")
# Fields that a prompt of any step may name, beside the variables of its method.
_ROW_FIELDS = {*reading.OUR_NAMES, *Row.__annotations__, *Item.__annotations__}


def _unknown(step: str, known: set[str], extra: set[str]) -> OptionError:
    return OptionError(
        f"the prompt {step!r} may use {sorted(known)!r}, got {sorted(extra)!r} too"
    )


# The steps that judge, of methods that judge by one prompt.
_JUDGES = ("evaluate", "judge")


def _as_fenced(prompt: ChatPromptTemplate, known: set[str]) -> ChatPromptTemplate:
    """A caller's prompt, to which the labels and the rule that texts are data are added."""
    messages: list[Any] = list(prompt.messages)
    if "System" not in type(messages[0]).__name__:
        messages.insert(0, SystemMessage(MATERIAL_RULE))
    if "labels" in known - {*prompt.input_variables}:
        messages.append(HumanMessagePromptTemplate.from_template("The labels: {labels}. {ask}"))
    fenced = reading.FencedPrompt.from_messages(messages)
    return fenced.model_copy(update={"partial_variables": prompt.partial_variables})


def _texts(prompt: ChatPromptTemplate) -> list[str]:
    """Messages of a prompt, what they already contain, and how replies are read."""
    filled = {
        name: f"{value.__module__}.{value.__qualname__}()" if callable(value) else str(value)
        for name, value in sorted(prompt.partial_variables.items())
    }
    return [
        *(message.pretty_repr() for message in prompt.messages),
        *(f"{name}={value}" for name, value in filled.items()),
    ]


# The state of what judges one kind of row.
RowState = TypeVar("RowState", bound=Mapping[str, Any])


@dataclass(frozen=True)
class RowSteps(ABC, Generic[RowState]):
    """The steps of a judge: the beginning that all judgments share, and its phases.

    Attributes:
        state: The `TypedDict` of the graph's state.
        source: That of what it is given.
    """

    context: JudgeContext
    options: Any

    state: ClassVar[type]
    source: ClassVar[type]

    @classmethod
    def build(cls, options: Any, model: ModelLike) -> JudgeGraph:
        """Build the judge of checked options and a model.

        Raises:
            TypeError: The class has no `state`.
        """
        if not hasattr(cls, "state"):
            raise TypeError(f"{cls.__name__} needs a `state`: the `TypedDict` of its graph")
        results = ("id", "verdict", *options.results, "recalled")
        schema = StateSchema(cls.state, results, cls.source)
        steps = cls(JudgeContext.of(options, model, schema), options)
        return steps.compile()

    def compile(self) -> JudgeGraph:
        """Make the graph: the common beginning, then the phases."""
        context, options, fingerprint = self.context, self.options, self.fingerprint()
        phases = self.phases()
        if isinstance(options, LookupOptions):
            question, material = context.lookup_question(), self.lookup_variables
            phases = consulted(question, options, material, context.left_out, phases)
            if tools := [[each.name, each.description] for each in options.loaded_tools]:
                fingerprint = {**fingerprint, "tools": tools}
        recall = [self.recall] if context.recaller else []
        return context.compile(self.begin, [*recall, *phases], **fingerprint)

    @abstractmethod
    def phases(self) -> Sequence[Phase]:
        """The phases in order; a node of the graph has the name of its function."""

    def fingerprint(self) -> dict[str, Any]:
        """Plain data that decides verdicts, besides the options."""
        return self.context.options.fingerprint()

    async def ask(
        self,
        step: str,
        reply_schema: type[BaseModel],
        variables: Mapping[str, object],
        account: Account,
        *,
        order: Order | None = None,
        unit: str = "",
    ) -> Reply:
        """Ask a step's question once.

        Its run is called by the step and the unit, with the order behind it: `weigh:match 1
        (A first)`. Examples of a memory are shown by the steps of `examples_in` alone.
        """
        question = self.context.question(step, reply_schema)
        if step not in self.options.examples_in:
            variables = {**variables, "shared": ""}
        name = ORDER_NAMES[order] if order else unit
        name = f"{unit} ({name})" if order and unit else name
        return await ask(question, variables, account, unit=name, order=order)

    @abstractmethod
    def begin(self, state: RowState, account: Account) -> Update:
        """Check the row; a verdict in the update ends the judgment."""

    async def recall(self, state: RowState, account: Account) -> Update:
        """Recall the audited mistakes that fit the row."""
        fields = get_type_hints(self.source)
        row = {name: state[name] for name in fields if name in state}
        recalled = await self.recaller.recall(row)
        examples = self.fitting(state, recalled)
        report = self.recaller.report(recalled, examples)
        account.fail(cut_failures(report))
        return {"shown": examples, "recalled": report}

    def fitting(self, row: Any, recalled: Recalled) -> list[Example]:
        """The examples that can be shown."""
        return self.recaller.fitting(recalled, row)

    @abstractmethod
    def lookup_variables(self, state: RowState) -> Mapping[str, object]:
        """The row as the look-up prompt shows it: `material` and `judgment`."""

    def blank(self, row: Pair | Item, account: Account) -> Update:
        """The state before a row is judged, in place of a checkpointed thread's old one."""
        texts, failures = self.context.fitted(row)
        blank, options = self.context.schema.blank, self.context.options
        if texts and isinstance(options, LookupOptions) and options.evidence == "auto":
            return {**blank, **texts, "whole": {**row}}  # looked into, part by part
        account.fail(failures)
        return {**blank, **texts}

    def decided(self, verdict: Verdict | LabelVerdict) -> Update:
        """The state where a verdict needs no call, and so no recalled example."""
        update = {**self.context.schema.blank, "verdict": verdict}
        if recaller := self.context.recaller:
            update["recalled"] = recaller.report(Recalled(), [])
        return update

    @property
    def recaller(self) -> Recaller:
        """The way in which the judge queries its memory, for nodes of a judge that has one."""
        assert self.context.recaller  # noqa: S101 - the nodes that ask it exist only with a memory
        return self.context.recaller
