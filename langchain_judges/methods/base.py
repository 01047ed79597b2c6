"""What all judges share: their common options, their models and prompts, the graph they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NotRequired,
    cast,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Le
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command
from pydantic import (
    AfterValidator,
    BaseModel,
    InstanceOf,
    SkipValidation,
    create_model,
    field_validator,
    model_validator,
)

from langchain_judges.asking import nodes
from langchain_judges.asking.ask import Question, Reply
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.journal import Journal
from langchain_judges.asking.models import ModelSpec, model_name
from langchain_judges.asking.steps import Node, Steps, Update, arun, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.protocol import Memory, is_memory
from langchain_judges.memory.recall import Recall, read_recall
from langchain_judges.memory.rendering import Reminder, reminder
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.evidence import EvidenceTable, Sketch
from langchain_judges.methods.marks import Kind
from langchain_judges.options import (
    ClientMost,
    ForClient,
    Here,
    Options,
    Owner,
    Rule,
    for_clients,
)
from langchain_judges.orders import Order, OrderRule, orders_of
from langchain_judges.rows.media import kind_of_block, media_in
from langchain_judges.rows.messages import plain_row
from langchain_judges.rows.trajectories import RESULT_CHARACTERS, cut_results
from langchain_judges.verdict import Failure

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

SPARE_THREADS = 8
"""Threads of a synchronous run beyond its branches: the same pool writes the checkpoints and
waits for what is streamed."""


def _written(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text


Written = Annotated[str, AfterValidator(_written), Rule("a text that is not empty")]
"""A text with something in it."""

OtherModel = Annotated[
    Written | InstanceOf[BaseChatModel] | None,
    Owner(),
    Rule(
        "a chat model (without `bind` or `with_retry`), 'local', 'local:/path/to.gguf' or a "
        "name such as 'openai:gpt-5-mini'"
    ),
]
"""A model for one step, instead of the judge's own."""

Seed = Annotated[int, Ge(0), ClientMost(2**53)]
"""Of random choices."""


class GraphOptions(Options):
    """What every judge and writer takes, and what a method says of itself."""

    method: ClassVar[str]
    """The method's name on the command line, in traces and in results."""
    summary: ClassVar[str]
    """One line for lists of methods."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options by name; a preset is data, not another code path."""
    budgets: ClassVar[tuple[Budget, ...]] = ()
    """How it spends a budget of calls for a pair; the first rule that fits counts."""
    events: ClassVar[Mapping[str, str]] = {}
    """State keys whose items are streamed one by one, and what an item is called."""
    evidence: ClassVar[Sequence[EvidenceTable]] = ()
    """What a page shows of its results, beside the verdict."""
    sketches: ClassVar[Sequence[Sketch]] = ()
    """What a terminal shows of a result, beside the verdict."""
    templates: ClassVar[Mapping[str, ChatPromptTemplate]]
    """The prompt of each step."""

    instructions: str | None = None
    """Your rubric, or the language to answer in; shown to every step."""
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    """Overrides the model's own."""
    repairs: Annotated[int, Ge(0), ClientMost(3)] = 1
    """Turns in which a model may correct an unusable reply."""
    prompts: Annotated[
        Mapping[str, InstanceOf[ChatPromptTemplate]] | None,
        Here(),
        Rule("prompts by step, each a `ChatPromptTemplate`"),
    ] = None
    """Replacements for the method's prompts, by step, with the same variables."""
    name: Written | None = None
    """Name of the graph in traces; default the method's."""
    checkpointer: Annotated[
        BaseCheckpointSaver[Any] | bool | None,
        Here(),
        Rule("a LangGraph checkpointer, such as `SqliteSaver`, or None"),
    ] = None
    """LangGraph checkpointer: `SqliteSaver` for `invoke`, `AsyncSqliteSaver` for `ainvoke`."""
    cache: Annotated[BaseCache | None, Here(), Rule("a LangChain `BaseCache` or None")] = None
    """LangChain cache for checked replies."""
    store: Annotated[BaseStore | None, Here(), Rule("a LangGraph `BaseStore` or None")] = None
    """LangGraph store, passed on."""

    @field_validator("instructions")
    @classmethod
    def _stripped(cls, text: str | None) -> str | None:
        return (text or "").strip() or None

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return self.method

    def calls(self) -> int:
        """Return the calls for one row, excluding repairs."""
        raise NotImplementedError

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return self.calls()

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        raise NotImplementedError


def _memory(value: Any) -> Any:
    if value is not None and not is_memory(value):
        raise ValueError
    return value


def _choice(recall: Recall | str | None) -> Recall | str | None:
    if recall is not None:
        read_recall(recall)
    return recall


class JudgeOptions(GraphOptions):
    """What every judge takes."""

    takes: ClassVar[Kind] = "pair"
    """What it judges: two texts, or one."""

    memory: Annotated[
        Memory | None, SkipValidation, AfterValidator(_memory), Rule("a FailureMemory"), Here()
    ] = None
    """Audited mistakes; those that fit a row are shown where it is judged."""
    recall: Annotated[
        Recall | str | None,
        AfterValidator(_choice),
        Rule("a choice of examples such as 'knn:8'"),
        ForClient(str | None),
    ] = None
    """Which of the memory's examples, such as `"knn:8"`; `"none"`: no example; None: the
    memory's own choice."""
    allow_leak: bool = False
    """Allow examples of the row itself and of its group; results then say so."""

    def reminder(self, contexts: Sequence[int | None]) -> Reminder | None:
        """Return how the judge asks its memory; None without one.

        Args:
            contexts: Tokens that the models take that are shown examples, where known.
        """
        return reminder(self.memory, self.recall, self.allow_leak, contexts)

    @property
    def order_rule(self) -> OrderRule:
        """How the verdicts of the orders become one."""
        return getattr(self, "orders", None) or "none"

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked."""
        return orders_of(self.order_rule)


@dataclass(frozen=True)
class Setup:
    """What the steps of a judge work with: checked options, prompts, models, memory."""

    options: GraphOptions
    prompts: Mapping[str, ChatPromptTemplate]
    version: str
    """Hash of the prompts."""
    channels: Mapping[str, Channel]
    """The model of each step."""
    reminder: Reminder | None
    model: str | BaseChatModel
    """The judge's own model, as the caller named it."""
    journal: Journal
    """Where every reply is written that a thread of the judge has paid for."""

    @classmethod
    def of(
        cls,
        options: GraphOptions,
        model: str | BaseChatModel,
        others: Mapping[str, str | BaseChatModel | None],
        shown: tuple[str, ...] = (),
        templates: Mapping[str, ChatPromptTemplate] | None = None,
    ) -> Setup:
        """Choose prompts and models.

        Args:
            options: The checked options.
            model: The judge's own model.
            others: The steps that ask a model, each with its own model or None.
            shown: The steps whose prompts show remembered examples.
            templates: The prompts, where they are not the method's.

        Raises:
            OptionError: A replaced prompt or the memory is not one.
            ModelSetupError: A model cannot be made.
        """
        prompts, version = prompt_set(templates or options.templates, options.prompts)
        own = Channel(model, options.temperature)
        channels = {
            step: Channel(other, options.temperature) if other else own
            for step, other in others.items()
        }
        contexts = [channels[step].context for step in shown]
        memory = None
        if isinstance(options, JudgeOptions):
            memory = options.reminder(contexts)
        journal = Journal.of(options.checkpointer)
        return cls(options, prompts, version, channels, memory, model, journal)

    def question(
        self, step: str, shape: type[BaseModel], prompt: str = "", **more: Any
    ) -> Question:
        """Return what a step asks.

        Args:
            step: The step.
            shape: What the reply must look like.
            prompt: Name of the prompt, if not that of the step.
            **more: Fields of `Question`.
        """
        return Question(
            method=self.options.label,
            step=step,
            channel=self.channels[step],
            prompt=self.prompts[prompt or step],
            shape=shape,
            version=self.version,
            repairs=self.options.repairs,
            cache=self.options.cache,
            journal=self.journal,
            **more,
        )

    def unseen(self, row: Mapping[str, Any]) -> list[Failure]:
        """Return why a row cannot be judged: it holds what one of the models does not take.

        Args:
            row: A pair or an item.
        """
        kinds = {kind_of_block(block) for block in media_in(row)}
        for channel in self.channels.values() if kinds else ():
            if lacking := [kind for kind in channel.refused_media if kind in kinds]:
                name = model_name(channel.model)
                detail = f"the model {name!r} takes no {' and no '.join(lacking)} as input"
                return [
                    {"step": "begin", "unit": "", "reason": "invalid_input", "detail": detail}
                ]
        return []

    def cut(self, row: Mapping[str, Any]) -> list[Failure]:
        """Return what a verdict says of tool results that were cut when a row was read.

        Args:
            row: A pair or an item.
        """
        return [
            {
                "step": "begin",
                "unit": field,
                "reason": "input_cut",
                "detail": f"{number} of the tool results are shown up to {RESULT_CHARACTERS:,} "
                "characters",
            }
            for field, text in row.items()
            if (number := cut_results(text))
        ]

    def plain(self, function: Callable[[Any], Update]) -> Node:
        """Return a node that waits for nothing: a function from state to update."""
        return nodes.plain(function, self.options.events)

    def asks(
        self, call: Callable[[Any], nodes.Call], read: Callable[[Any, Reply], Update]
    ) -> Node:
        """Return a node that asks once; see `asking.nodes.asks`."""
        return nodes.asks(call, read, self.options.events)

    def node(self, steps: Callable[[Any], Steps[Update]]) -> Node:
        """Return a node that asks several times, or decides while it asks."""
        return Node(steps, self.options.events)

    def finish(self, builder: Any, **marks: Any) -> JudgeGraph:
        """Compile a graph and mark it with what decides its verdicts.

        Args:
            builder: The `StateGraph`.
            **marks: More plain data that decides verdicts, beside the options.
        """
        options = self.options
        compiled = builder.compile(
            checkpointer=options.checkpointer,
            store=options.store,
            name=options.name or options.label,
        )
        memory = {"memory": self.reminder.mark()} if self.reminder else {}
        metadata = {
            "method": options.label,
            "options": {**options.as_json(), **memory, **marks},
            "model": {step: channel.identity for step, channel in self.channels.items()},
            "prompt_version": self.version,
            "calls": options.calls(),
        }
        graph = JudgeGraph(
            **vars(compiled),
            options=options,
            model=self.model,
            journal=self.journal,
            prompts=self.prompts,
        )
        return graph.with_config(
            metadata=metadata, max_concurrency=options.branches() + SPARE_THREADS
        )


class JudgeGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that reads its input before it runs, and says what it is.

    Messages become dictionaries, so that the state is plain JSON. What is left out becomes
    None: a checkpointed thread keeps every key that its next run is not given, and a pair
    would be judged by the texts or the reference of the pair before it.
    """

    options: GraphOptions
    model: str | ModelSpec | BaseChatModel

    def get_context_jsonschema(self) -> dict[str, Any]:
        """Return the options that the client of a server may set, as a JSON schema."""
        return for_clients(type(self.options)).model_json_schema()

    most_characters: int | None
    """Of an input; a longer one is refused."""
    journal: Journal | None
    """Closed when a run of the graph has ended well."""
    prompts: Mapping[str, ChatPromptTemplate]
    """What is asked, by the name under which `prompts=` replaces it."""

    def __init__(
        self,
        *,
        options: GraphOptions,
        model: str | BaseChatModel,
        most_characters: int | None = None,
        journal: Journal | None = None,
        prompts: Mapping[str, ChatPromptTemplate] | None = None,
        **fields: Any,
    ) -> None:
        """Take over the fields of a compiled graph."""
        super().__init__(**fields)
        self.options = options
        self.model = model
        self.most_characters = most_characters
        self.journal = journal
        self.prompts = prompts or {}

    def get_prompts(
        self, config: RunnableConfig | None = None
    ) -> list[BasePromptTemplate[Any]]:
        """Return the judge's prompts; `prompts` holds them by name."""
        return list(self.prompts.values())

    @property
    def spec(self) -> dict[str, Any]:
        """The judge as plain JSON: `{"method", "model", "options"}`; `build` makes it again.

        Options with their default are left out. No key stands in it: the process that builds
        the judge has its own.

        Raises:
            OptionError: The model is an object and no name, or an option is a live object.
        """
        if not isinstance(self.model, str | Mapping):
            raise OptionError(
                f"the model is an object ({type(self.model).__name__}), which no JSON holds; "
                "name it, such as 'openai:gpt-5-mini'"
            )
        options = self.options.sendable()
        return {"method": self.options.method, "model": self.model, "options": options}

    @property
    def memory(self) -> Memory | None:
        """The memory that the verdicts depend on."""
        return getattr(self.options, "memory", None)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Make the judge a tool of its own input; what may be left out is optional.

        LangChain's own method takes every field of a `TypedDict` for required. The tool
        returns all that `invoke` does; `judge_tool` is made for an agent's model.

        Args:
            args_schema: The arguments, if not the judge's own input.
            name: Name of the tool; default that of the graph.
            description: What a model is told of it.
            arg_types: The arguments by name, in place of `args_schema`.
        """
        # Loaded on use: every judge would pay for what few are made into.
        from langchain_core.tools import convert_runnable_to_tool

        name = name or self.get_name()
        if args_schema is None and arg_types is None:
            args_schema = _arguments(name, self.builder.input_schema)
        return convert_runnable_to_tool(
            self,
            args_schema=args_schema,
            name=name,
            description=description or type(self.options).summary,
            arg_types=arg_types,
        )

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> Iterator[Any]:
        """Read the input, then stream as LangGraph does."""
        parts = super().stream(self._read(input), config, **settings)
        if not (self.journal and self.journal.saver):
            return parts
        return self._closed_after(parts, self.journal, merge_configs(self.config, config))

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> AsyncIterator[Any]:
        """Read the input, then stream as LangGraph does."""
        # The generator itself, so that closing it closes the run.
        parts = super().astream(self._read(input), config, **settings)
        if not (self.journal and self.journal.saver):
            return parts
        return self._aclosed_after(parts, self.journal, merge_configs(self.config, config))

    def _closed_after(
        self, parts: Any, journal: Journal, config: RunnableConfig
    ) -> Iterator[Any]:
        with closing(parts):
            yield from parts
        # Of a row that was not judged only what failed is asked again.
        if _is_judged(self.get_state(config).values):
            run(journal.close(config))

    async def _aclosed_after(
        self, parts: Any, journal: Journal, config: RunnableConfig
    ) -> AsyncIterator[Any]:
        async with aclosing(parts):
            async for part in parts:
                yield part
        if _is_judged((await self.aget_state(config)).values):
            await arun(journal.close(config))

    def _read(self, given: object) -> Any:
        if given is None or isinstance(given, Command):  # a run that resumes
            return given
        needed, optional = _fields(cast("Hashable", self.builder.input_schema))
        if isinstance(given, BaseModel) or (
            is_dataclass(given) and not isinstance(given, type)
        ):
            # The state of a graph that this judge is a node of; it may have fields of its own.
            state = {name: getattr(given, name, None) for name in (*needed, *optional)}
            given = {name: value for name, value in state.items() if value is not None}
        if not isinstance(given, Mapping):
            names = ", ".join(f"`{key}`" for key in needed)
            raise InputError(
                f"the input must be a dictionary with {names}, got {type(given).__name__}"
            )
        lacking = [key for key in needed if given.get(key) is None]
        if lacking:
            names = ", ".join(map(repr, given)) or "none"
            raise InputError(
                f"the field `{lacking[0]}` is missing or null; the fields are {names}"
            )
        row = {**dict.fromkeys((*needed, *optional)), **plain_row(given)}
        if self.most_characters is not None:
            check_length("the input", row, self.most_characters)
        return row


def _is_judged(state: Mapping[str, Any]) -> bool:
    """Say whether a run of a judge or writer has come to what it was for."""
    verdict = state.get("verdict") or {}
    results = (verdict.get("preference"), verdict.get("label"), state.get("text"))
    return any(result is not None for result in results)


def check_length(name: str, data: Any, most: int) -> None:
    """Check how long plain data is, written as JSON.

    Raises:
        InputError: It is longer than `most` characters.
    """
    length = len(json.dumps(data, default=str, ensure_ascii=False))
    if length > most:
        raise InputError(f"{name} has {length:,} characters; {most:,} are allowed here")


def _arguments(name: str, schema: Any) -> type[BaseModel]:
    """Return the fields of an input as the arguments of a tool."""
    needed, _ = _fields(schema)
    fields: dict[str, Any] = {
        field: (hint, ...) if field in needed else (hint | None, None)
        for field, hint in get_type_hints(schema).items()
    }
    # Messages, in whatever form, become the dictionaries that a judge's input is made of.
    reading: Any = model_validator(mode="before")(lambda given: plain_row(given))
    return create_model(name, __validators__={"read": reading}, **fields)


@cache
def _fields(schema: Any) -> tuple[list[str], list[str]]:
    """Return what an input must have, and what it may leave out."""
    hints = get_type_hints(schema, include_extras=True)
    optional = [key for key, hint in hints.items() if get_origin(hint) is NotRequired]
    return [key for key in hints if key not in optional], optional


def check_quorum(least: int | None, most: int) -> None:
    """Check that `min_valid` can be met.

    Raises:
        OptionError: It cannot.
    """
    if least is not None and least > most:
        raise OptionError(f"`min_valid` must be at most {most}, got {least!r}")


def prompt_set(
    own: Mapping[str, ChatPromptTemplate], replaced: Mapping[str, ChatPromptTemplate] | None
) -> tuple[dict[str, ChatPromptTemplate], str]:
    """Return a method's prompts, some replaced by the caller's, and a hash of them all.

    Raises:
        OptionError: A name is unknown, or a replacement asks for a variable that the step
            does not fill.
    """
    prompts = dict(own)
    for step, prompt in (replaced or {}).items():
        if step not in own:
            raise OptionError(f"`prompts` takes {sorted(own)!r}, got {step!r}")
        extra = set(prompt.input_variables) - set(own[step].input_variables)
        if extra:
            raise OptionError(
                f"the prompt {step!r} may use {sorted(own[step].input_variables)!r}, "
                f"got {sorted(extra)!r} too"
            )
        prompts[step] = prompt
    templates = {step: _texts(prompt) for step, prompt in prompts.items()}
    digest = hashlib.sha256(json.dumps(templates, sort_keys=True).encode())
    return prompts, digest.hexdigest()[:12]


def _texts(prompt: ChatPromptTemplate) -> list[str]:
    """Return a prompt's messages, and what stands in them already (`partial`)."""
    filled = {
        name: f"{value.__module__}.{value.__qualname__}()" if callable(value) else str(value)
        for name, value in sorted(prompt.partial_variables.items())
    }
    return [
        *(message.pretty_repr() for message in prompt.messages),
        *(f"{name}={value}" for name, value in filled.items()),
    ]
