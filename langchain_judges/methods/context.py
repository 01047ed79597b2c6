"""Context of a judge's steps: its options, prompts, models and memory."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NotRequired, TypeVar, cast

from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges.asking import own_prompts, reading, reply_log
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update
from langchain_judges.asking.models import ModelLike, model_name
from langchain_judges.asking.question import Account, Question, Reply
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recalled
from langchain_judges.memory.shown import Recaller, RecallReport, cut_failures
from langchain_judges.methods.declaration import WORDS, GraphOptions, JudgeOptions, Phase
from langchain_judges.methods.lookups import CONSULT, LookupOptions, consulted
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.rows import lookup, media
from langchain_judges.rows.texts import READ, fitted
from langchain_judges.verdict import Failure, Item, LabelVerdict, Pair, Usage, Verdict

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
        made = copy(_bare_graph(self))
        for name, part in vars(made).copy().items():
            if isinstance(part, dict | set | list):  # nodes and edges are added to its own
                setattr(made, name, copy(part))
        return made


@cache
def _bare_graph(schema: StateSchema) -> MethodGraph:
    """The graph of a schema, whose types are read once, not for each judge."""
    # Loaded on use: to check options and count calls takes no graph.
    from langgraph.graph import StateGraph

    hints, new_type = _hints_of(schema.state), cast("Any", TypedDict)
    shown = hints | {key: NotRequired[hints[key]] for key in hints.keys() & _OF_MEMORY}
    result = {key: shown[key] for key in schema.results if key in shown}
    output = new_type(schema.state.__name__.replace("State", "Result"), result)
    return StateGraph(schema.state, input_schema=schema.source, output_schema=output)


_hints_of = cache(typing.get_type_hints)


@cache
def _blank_state(state: type, source: type) -> Mapping[str, Any]:
    """A state before its first phase, without the keys of its input.

    Args:
        state: The `TypedDict` of the state.
        source: That of the input.
    """
    given, hints = _hints_of(source), _hints_of(state).items()
    return {key: _blank(hint) for key, hint in hints if key not in given}


def _blank(hint: Any) -> object:
    kind = typing.get_origin(hint) or hint
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
    log: reply_log.ReplyLog
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
        own: Any = options.prompts or ()  # read: a mapping
        for step in options.unasked.intersection(own):
            raise OptionError(WORDS["not_asked"].format(step))
        prompts, version = own_prompts.prompt_set(
            options.prompt_texts, options.prompts, options.judging, options.filled
        )
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
        log = reply_log.ReplyLog(options.checkpointer)
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
            known = {"prompts": sorted(self.prompts), "steps": sorted(self.adapters)}
            raise OptionError(WORDS["unknown_step"].format(step=step, name=name, **known))
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

    @property
    def shows_findings(self) -> bool:
        """Whether the prompts have a place for what is looked up; a caller's may have none."""
        is_item = isinstance(self.options, JudgeOptions) and self.options.takes == "item"
        place = {"source", "context"} if is_item else {"instructions"}
        return all(
            place.isdisjoint(ours.input_variables) or place & {*self.prompts[step].input_variables}
            for step, ours in self.options.prompt_texts.items()
        )

    def lookup_question(self) -> Question:
        """The question about look-ups, put to the judge's first model."""
        first = self.question(next(iter(self.adapters)), BaseModel, next(iter(self.prompts)))
        return replace(first, step="consult", prompt=CONSULT)

    def unsupported_media(self, row: Mapping[str, object]) -> list[Failure]:
        """Why a row cannot be judged: it holds media that one of the models does not take.

        Args:
            row: A pair or an item.
        """
        blocks = [*media.media_in({name: row.get(name) for name in (*READ, "media")})]
        if bare := next((block for block in blocks if not media.standard(block)), None):
            detail = f"{media.mark_of(bare)} holds no address or known data: {lookup.keys_in(bare)}"
            return [reading.Problem("invalid_input", detail).failure("begin", "")]
        kinds = {*map(media.kind_of_block, blocks)}
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
        cut = fitted(row, (tokens - min(_TOKENS_ASKED, tokens // 4)) * _TOKEN_BYTES)
        return cut.texts, [
            reading.Problem("input_cut", WORDS["cut"].format(*left, tokens)).failure("begin", field)
            for field, left in cut.left_out.items()
        ]

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


def instructions_block(instructions: str | None) -> str:
    """The caller's instructions as a prompt shows them; nothing without any."""
    return WORDS["instructions"].format(instructions=instructions) if instructions else ""


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
        schema = StateSchema(cls.state, ("id", "verdict", *options.results, "recalled"), cls.source)
        return cls(JudgeContext.of(options, model, schema), options).compile()

    def compile(self) -> JudgeGraph:
        """Make the graph: the common beginning, then the phases."""
        context, options, fingerprint = self.context, self.options, self.fingerprint()
        phases = self.phases()
        if isinstance(options, LookupOptions):
            phases = consulted(
                context.lookup_question(),
                options,
                self.lookup_variables,
                lambda row: context.fitted(row)[1],
                phases,
            )
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
        row = {name: state[name] for name in _hints_of(self.source) if name in state}
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

    def first_state(self, row: Pair | Item, account: Account) -> Update:
        """The state before a row is judged, in place of a checkpointed thread's old one."""
        texts, failures = self.context.fitted(row)
        blank, options = self.context.schema.blank, self.context.options
        looks = isinstance(options, LookupOptions) and options.evidence == "auto"
        if texts and looks and self.context.shows_findings:
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
