"""The graph that a judge is: it reads its input before it runs, and says what it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, get_origin, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import BaseModel, create_model, model_validator

from langchain_judges.asking.limiter import ROW_COST, CallLimiter, RowCost
from langchain_judges.asking.models import ModelSpec
from langchain_judges.asking.signals import stoppable
from langchain_judges.asking.steps import arun, run
from langchain_judges.asking.store import ThreadReplies
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.recall import Memory
from langchain_judges.methods.declaration import GraphOptions, JudgeSpec
from langchain_judges.options import client_schema
from langchain_judges.rows.checks import fields_of
from langchain_judges.rows.fields import plain_row

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def read_input(source: object, schema: Any, most: int | None) -> object:
    """Return what a judge is given as a row with every field of its input.

    Args:
        source: A dictionary, messages in any form, the state of a graph around the judge;
            None or a `Command` resumes a run and stays what it is.
        schema: The `TypedDict` of the judge's input.
        most: Characters allowed, written as JSON; None: any number.

    Raises:
        InputError: A field is missing, or the row is too long.
    """
    if source is None or isinstance(source, Command):
        return source
    needed, optional = _fields(schema)
    if isinstance(source, BaseModel) or (is_dataclass(source) and not isinstance(source, type)):
        # The state of a graph that this judge is a node of; it may have fields of its own.
        state = {name: getattr(source, name, None) for name in (*needed, *optional)}
        source = {name: value for name, value in state.items() if value is not None}
    if not isinstance(source, Mapping):
        names = ", ".join(f"`{key}`" for key in needed)
        raise InputError(
            f"the input must be a dictionary with {names}, got {type(source).__name__}"
        )
    row = plain_row(source)
    absent = [key for key in needed if row.get(key) is None]
    if absent:
        raise InputError(f"the field `{absent[0]}` is missing or null; {fields_of(source)}")
    row = {**dict.fromkeys((*needed, *optional)), **row}
    if most is not None:
        check_length("the input", row, most)
    return row


def check_length(name: str, data: object, most: int) -> None:
    """Check how long plain data is, written as JSON.

    Raises:
        InputError: It is longer than `most` characters.
    """
    length = len(json.dumps(data, default=str, ensure_ascii=False))
    if length > most:
        raise InputError(f"{name} has {length:,} characters; {most:,} are allowed here")


def arguments(name: str, schema: Any) -> type[BaseModel]:
    """Return the fields of an input as the arguments of a tool."""
    needed, _ = _fields(schema)
    fields: dict[str, Any] = {
        field: (hint, ...) if field in needed else (hint | None, None)
        for field, hint in get_type_hints(schema).items()
    }
    # Messages, in whatever form, become the dictionaries that a judge's input is made of.
    reading: Any = model_validator(mode="before")(lambda row: plain_row(row))
    return create_model(name, __validators__={"read": reading}, **fields)


@cache
def _fields(schema: Any) -> tuple[list[str], list[str]]:
    """Return what an input must have, and what it may leave out."""
    hints = get_type_hints(schema, include_extras=True)
    optional = [key for key, hint in hints.items() if get_origin(hint) is NotRequired]
    return [key for key in hints if key not in optional], optional


class Bounds(NamedTuple):
    """What the owner of a server allows; None: anything."""

    characters: int | None = None
    """Of a run's input; a longer one is refused."""
    calls: int | None = None
    """Replies that one run may receive; the next call is refused."""
    settable: Sequence[str] | None = None
    """The options that a client may set."""


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
        return client_schema(type(self.options), self.bounds.settable)

    bounds: Bounds
    """What a run may take and cost."""
    replies: ThreadReplies | None
    """Closed when a run of the graph has ended well."""
    prompts: Mapping[str, ChatPromptTemplate]
    """What is asked, by the name under which `prompts=` replaces it."""

    def __init__(
        self,
        *,
        options: GraphOptions,
        model: str | BaseChatModel,
        bounds: Bounds | None = None,
        replies: ThreadReplies | None = None,
        prompts: Mapping[str, ChatPromptTemplate] | None = None,
        **fields: Any,
    ) -> None:
        """Take over the fields of a compiled graph."""
        super().__init__(**fields)
        self.options = options
        self.model = model
        self.bounds = bounds or Bounds()
        self.replies = replies
        self.prompts = prompts or {}

    def get_prompts(
        self, config: RunnableConfig | None = None
    ) -> list[BasePromptTemplate[Any]]:
        """Return the judge's prompts; `prompts` holds them by name."""
        return list(self.prompts.values())

    @property
    def spec(self) -> JudgeSpec:
        """The judge as plain JSON: `{"method", "model", "options"}`, as `load_judge` takes it.

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
            description: The description that a model reads.
            arg_types: The arguments by name, in place of `args_schema`.
        """
        # Loaded on use: every judge would pay for what few are made into.
        from langchain_core.tools import convert_runnable_to_tool

        name = name or self.get_name()
        if args_schema is None and arg_types is None:
            args_schema = arguments(name, self.builder.input_schema)
        return convert_runnable_to_tool(
            self,
            args_schema=args_schema,
            name=name,
            description=description or type(self.options).summary,
            arg_types=arg_types,
        )

    def batch(self, *arguments: Any, **settings: Any) -> list[Any]:
        """Run as LangChain does, and stop all of it at Ctrl-C."""
        with stoppable():
            return super().batch(*arguments, **settings)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> Iterator[Any]:
        """Read the input, then stream as LangGraph does."""
        parts = _stopped_by_signals(super().stream(self._read(input), config, **settings))
        if limiter := self._limiter(config):
            parts = _counted(parts, limiter)
        if not (self.replies and self.replies.saver):
            return parts
        config = merge_configs(self.config, config)
        self.replies.begin(config)
        return self._closed_after(parts, self.replies, config)

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> AsyncIterator[Any]:
        """Read the input, then stream as LangGraph does."""
        # The generator itself, so that closing it closes the run.
        parts = super().astream(self._read(input), config, **settings)
        if limiter := self._limiter(config):
            parts = _acounted(parts, limiter)
        if not (self.replies and self.replies.saver):
            return parts
        config = merge_configs(self.config, config)
        self.replies.begin(config)
        return self._aclosed_after(parts, self.replies, config)

    def _limiter(self, config: RunnableConfig | None) -> CallLimiter | None:
        """Return what bounds the calls of this graph and of all below it, if anything."""
        places, most = (config or {}).get("max_concurrency"), self.bounds.calls
        if most is None and (places is None or ROW_COST.get()):
            return None
        return CallLimiter(places or most or 1, max_calls=most)

    def _read(self, source: object) -> object:
        if isinstance(source, Mapping):
            source = self.options.given(source)
        row = read_input(source, self.builder.input_schema, self.bounds.characters)
        items = row.get("items") if isinstance(row, Mapping) else None
        most = self.bounds.calls
        # Each item of an audit is judged.
        if most is not None and isinstance(items, list) and len(items) > most:
            raise InputError(f"{len(items):,} items take as many calls; {most:,} are allowed")
        return row

    def _closed_after(
        self, parts: Any, replies: ThreadReplies, config: RunnableConfig
    ) -> Iterator[Any]:
        with closing(parts):
            yield from parts
        # Of a row that was not judged only what failed is asked again.
        if _is_judged(self.get_state(config).values):
            run(replies.close(config))

    async def _aclosed_after(
        self, parts: Any, replies: ThreadReplies, config: RunnableConfig
    ) -> AsyncIterator[Any]:
        async with aclosing(parts):
            async for part in parts:
                yield part
        if _is_judged((await self.aget_state(config)).values):
            await arun(replies.close(config))


@contextmanager
def _counting(row_cost: RowCost) -> Iterator[None]:
    # Only while the graph is at work: between its parts the context is the caller's.
    before = ROW_COST.set(row_cost)
    try:
        yield
    finally:
        ROW_COST.reset(before)


def _counted(parts: Iterator[Any], limiter: CallLimiter) -> Iterator[Any]:
    """Stream a run that is refused more calls than it may make."""
    row_cost = RowCost(limiter, 0)
    with closing(parts):  # type: ignore[type-var]
        while True:
            try:
                with _counting(row_cost):
                    part = next(parts)
            except StopIteration:
                return
            yield part


async def _acounted(parts: AsyncIterator[Any], limiter: CallLimiter) -> AsyncIterator[Any]:
    row_cost = RowCost(limiter, 0)
    async with aclosing(parts):  # type: ignore[type-var]
        while True:
            try:
                with _counting(row_cost):
                    part = await anext(parts)
            except StopAsyncIteration:
                return
            yield part


def _stopped_by_signals(parts: Iterator[Any]) -> Iterator[Any]:
    with stoppable():
        yield from parts


def _is_judged(state: Mapping[str, object]) -> bool:
    """Say whether a run of a judge or writer has come to what it was for."""
    verdict = state.get("verdict")
    if not isinstance(verdict, Mapping):
        return state.get("text") is not None
    return verdict.get("preference", verdict.get("label")) is not None
