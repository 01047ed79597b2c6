"""The graph of a judge: its phases as nodes, how it reads its input, and its description."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from functools import cache, partial, wraps
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, NamedTuple, NotRequired, Self, TypeAlias, get_origin, get_type_hints

from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables import config as configs
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.constants import END, START
from langgraph.graph.state import CompiledStateGraph, StateGraph
from langgraph.types import Command, StateSnapshot
from langsmith.run_helpers import tracing_context
from pydantic import BaseModel, create_model

from langchain_judges.asking.effects import Step, Update, emit, run, running_config, stoppable
from langchain_judges.asking.limiter import CallLimiter, RowInRun
from langchain_judges.asking.models import ModelLike, ModelSpec
from langchain_judges.asking.own_prompts import FencedPrompt, check_fields
from langchain_judges.asking.question import Account, Booking, run_of, within_run
from langchain_judges.asking.reply_log import ReplyLog
from langchain_judges.errors import InputError, OptionError, RunStopped
from langchain_judges.methods import describe
from langchain_judges.methods.declaration import WORDS, GraphOptions, JudgeSpec, Phase
from langchain_judges.options import client_schema
from langchain_judges.rows import notes, record
from langchain_judges.rows.checks import OF_OUTPUT, kind_in, without_field
from langchain_judges.rows.columns import named_row, with_variables
from langchain_judges.rows.fields import plain_row
from langchain_judges.verdict import NOTES, decision, noted

# The graph of any method.
MethodGraph: TypeAlias = StateGraph[Any, Any, Any, Any]


class StepNode(Runnable[Any, Update]):
    """A graph node that is one step, for threads and event loops alike.

    It adds no run of its own to a trace: LangGraph already records the node.
    """

    def __init__(self, step: Callable[..., Step[Update]]) -> None:
        """Make a node of a function of the graph's state, which has the name of the node."""
        self._step = step
        self.name: str = step.__name__

    async def step(self, state: Any, config: RunnableConfig | None) -> Update:
        """Do the step."""
        return await self._step(state)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the step, waiting in this thread."""
        return run(self.step(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the step, waiting in the running event loop."""
        return await self.step(input, config)


class Node(StepNode):
    """A phase of a method; a state that has a verdict is left as it is."""

    def __init__(
        self, phase: Phase, keys: Mapping[str, object], *, is_first: bool, is_last: bool
    ) -> None:
        """Make a node.

        Args:
            phase: What it does; the graph calls it as its function.
            keys: Those of the state.
            is_first: Whether a judgment begins here: a checkpointed thread holds the state of
                another one.
            is_last: Whether it has to give a verdict.
        """
        super().__init__(phase)
        self._keys, self._is_first, self._is_last = keys, is_first, is_last

    async def step(self, state: Mapping[str, Any], config: RunnableConfig | None) -> Update:
        """Do the step."""
        if not self._is_first and state.get("verdict"):
            return {}
        account = Account(state, run_of(config))
        if not self._is_first:
            account.bookings.append(Booking(state.get("failures") or [], state.get("usage")))
        update = await self._step(state, account)
        self._check(update)
        if update.get("verdict"):
            update["verdict"] = noted(update["verdict"], state.get(NOTES))
            emit("verdict", self.name, update["verdict"])
        return {**update, "failures": account.failures, "usage": account.usage}

    def _check(self, update: object) -> None:
        """Check what a phase returns.

        Raises:
            TypeError: It is not a dictionary of keys of the state, or lacks the verdict.
        """
        unknown = sorted(set(update) - {*self._keys}) if isinstance(update, dict) else update
        if unknown or not isinstance(update, dict):
            raise TypeError(WORDS["returned"].format(self.name, unknown))
        if self._is_last and not update.get("verdict"):
            raise TypeError(f'the last phase, {self.name!r}, must return {{"verdict": …}}')


def chain(
    graph: MethodGraph, begin: Callable[[Any, Account], Update], phases: Sequence[Phase]
) -> MethodGraph:
    """Add the phases of a method to its graph, one after the other.

    Raises:
        TypeError: A phase is not a coroutine function.

    Args:
        graph: The graph, without nodes.
        begin: What the first phase starts with: it checks the row and empties the state; a
            verdict in its update ends the judgment.
        phases: In order; a node is called as its function is.
    """

    @wraps(phases[0])
    async def first(state: Mapping[str, Any], account: Account) -> Update:
        update = begin(state, account)
        if update.get("verdict"):
            return update
        return {**update, **await phases[0]({**state, **update}, account)}

    keys, last = graph.state_schema.__annotations__, phases[-1]
    for phase in phases:
        if not iscoroutinefunction(phase):
            raise TypeError(f"the phase {phase.__name__!r} must be an `async def`")
        is_first, is_last = phase is phases[0], phase is last and "verdict" in keys
        node = Node(first if is_first else phase, keys, is_first=is_first, is_last=is_last)
        graph.add_node(node.name, node)
    for here, there in pairwise([START, *(phase.__name__ for phase in phases), END]):
        graph.add_edge(here, there)
    return graph


async def run_traced(
    name: str,
    given: object,
    config: RunnableConfig,
    work: Callable[[RunnableConfig], Awaitable[Update]],
) -> Update:
    """Do some work; a trace, if there is one, shows it as a run of that name."""
    told = None
    if (manager := configs.get_callback_manager_for_config(config)).handlers:
        told = manager.on_chain_start(None, given, name=name, run_id=config.get("run_id"))
        config = configs.patch_config(config, callbacks=told.get_child())
    inherited = configs.var_child_runnable_config.set(config)
    try:
        update = await work(config)
    except BaseException as exc:
        if told:
            told.on_chain_error(exc)
        raise
    finally:
        configs.var_child_runnable_config.reset(inherited)
    if told:
        told.on_chain_end(update)
    return update


def _resumed(command: Command[Any], *, is_client: bool) -> Command[Any]:
    """The command that resumes a run.

    Raises:
        InputError: It resumes nothing, or does more for a client of a server.
    """
    if is_client:
        if command.update or command.goto:
            raise InputError("a client may resume a run, and not update it or choose its node")
        command = Command(resume=command.resume)  # the server's own has a `goto` that is null
    if command == Command():
        raise InputError("the command is empty: it resumes nothing")
    return command


def is_unfinished(state: StateSnapshot) -> bool:
    """Whether a thread of a graph has work left when it is resumed.

    Its `next` is empty too where the writes of a last step are stored, and the checkpoint that
    follows them is not.
    """
    return bool(state.tasks)


# Characters that a message takes as JSON at least, and any other part of a list.
_MESSAGE, _PART = 20, 3


def _check_size(source: Mapping[str, Any], most: int) -> None:
    """Refuse far too long input before reading it: each message takes time.

    Raises:
        InputError: It has more than `most` characters, whatever they are.
    """
    least = 0
    for part in source.values():
        if isinstance(part, list) and part:
            least += len(part) * (_PART if isinstance(part[0], str | int | float) else _MESSAGE)
        elif isinstance(part, str):
            least += len(part)
    if least > most:
        raise InputError(f"the input has {least:,} characters; {most:,} are allowed here")


def check_length(name: str, data: object, most: int) -> None:
    """Check how long plain data is, written as JSON.

    Raises:
        InputError: It is longer than `most` characters.
    """
    length = len(json.dumps(data, default=str, ensure_ascii=False))
    if length > most:
        raise InputError(f"{name} has {length:,} characters; {most:,} are allowed here")


@cache
def _fields(schema: Any) -> tuple[list[str], list[str]]:
    """The fields that an input must have, and those that it may leave out."""
    hints = get_type_hints(schema, include_extras=True)
    optional = [key for key, hint in hints.items() if get_origin(hint) is NotRequired]
    return [key for key in hints if key not in optional], optional


class Bounds(NamedTuple):
    """The limits that the owner of a server sets; None means no limit.

    Attributes:
        characters: Of a run's input; a longer one is refused.
        calls: Replies that one run may receive; the next call is refused.
        context: The JSON schema of what a client may set.
    """

    characters: int | None = None
    calls: int | None = None
    context: Mapping[str, Any] | None = None


class JudgeGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that reads its input before it runs, and describes itself.

    Messages become dictionaries, so that the state is plain JSON. What is left out becomes
    None: a checkpointed thread keeps every key that its next run is not given, and a pair
    would be judged by the texts or the reference of the one before it.

    Attributes:
        bounds: What a run may take and cost.
        log: Closed when a run of the graph has ended well.
        prompts: What is asked, by the name under which `prompts=` replaces it.
        threads: The `max_concurrency` of its configuration that its factory sets.
    """

    options: GraphOptions
    model: ModelSpec | ModelLike

    @classmethod
    def of(
        cls,
        graph: MethodGraph,
        options: GraphOptions,
        metadata: Mapping[str, Any],
        max_concurrency: int,
        **fields: Any,
    ) -> Self:
        """Compile a graph into a judge.

        Args:
            graph: With its nodes.
            options: The checked options.
            metadata: What decides its verdicts.
            max_concurrency: Threads of a synchronous run.
            **fields: As `__init__` takes them.
        """
        name = options.name or options.label
        compiled = graph.compile(checkpointer=options.checkpointer, name=name)
        # `compile` makes its own class alone; so LangGraph's `Pregel.copy` makes one of another
        # graph's fields, and a test watches that it does.
        judge = cls(**vars(compiled), options=options, threads=max_concurrency, **fields)
        return judge.with_config(metadata=metadata, max_concurrency=max_concurrency)

    def get_context_jsonschema(self) -> dict[str, Any]:
        """The options that the client of a server may set, as a JSON schema."""
        return dict(self.bounds.context or client_schema(type(self.options)))

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The model of a row, by which tools of LangChain and servers check one."""
        schema: Any = self.builder.input_schema
        (needed, _), hints = _fields(schema), get_type_hints(schema)
        fields: Any = {n: hint if n in needed else (hint | None, None) for n, hint in hints.items()}
        return create_model(self.get_name("Input"), **fields)

    bounds: Bounds = Bounds()
    log: ReplyLog | None = None
    prompts: Mapping[str, ChatPromptTemplate] = {}
    threads: int | None = None

    def __init__(self, **fields: Any) -> None:
        """Take over the fields of a compiled graph, and those that are declared here."""
        own = {name: fields.pop(name) for name in JudgeGraph.__annotations__ if name in fields}
        super().__init__(**fields)
        vars(self).update(own)

    @property
    def spec(self) -> JudgeSpec:
        """The judge as plain JSON: `{"method", "model", "options"}`, as `load_judge` takes it.

        Options with their default are left out. It holds no key: the process that builds
        the judge has its own.

        Raises:
            OptionError: A model is an object without a name, an option is a live object, a
                member is not a judge of this package, or the judge has a `budget`.
        """
        if run_of(self.config):
            raise OptionError("a `budget` counts calls of this process alone: no JSON holds it")
        options = self.options.sendable()
        return {"method": self.options.method, "model": self._plain_model(), "options": options}

    def __reduce__(self) -> Any:
        """Nothing: no judge is pickled.

        Raises:
            OptionError: Always; it says how a judge gets into another process.
        """
        raise OptionError(WORDS["no_pickle"])

    def __deepcopy__(self, memo: object = None) -> Self:
        """The judge again, with the same model: nothing in it changes while it judges."""
        return self.copy({})

    __copy__ = __deepcopy__

    def _plain_model(self) -> Any:
        if isinstance(self.model, str | Mapping):
            return self.model
        raise OptionError(WORDS["no_name"].format(type(self.model).__name__))

    @property
    def fields_named(self) -> set[str]:
        """Names in a caller's own prompts: fields of a row, and never people's answers."""
        fenced = [each for each in self.prompts.values() if isinstance(each, FencedPrompt)]
        names = {name for prompt in fenced for name in prompt.input_variables}
        return names - {"label", "labels", "human_votes"}

    def phases(self, config: RunnableConfig | None) -> list[Node] | None:
        """Its nodes in order, if nothing but a trace observes how LangGraph runs them.

        Callbacks, checkpointers, stores and interrupts see a graph's own runs; a trace is told
        the same runs without it.
        """
        nodes = [node.runnable for node in self.builder.nodes.values()]
        phases = [node for node in nodes if isinstance(node, Node)]
        listeners = (self.checkpointer, self.store, self.cache, self.interrupt_before_nodes)
        if len(phases) < len(nodes) or any((*listeners, self.interrupt_after_nodes)):
            return None
        merged = configs.ensure_config(configs.merge_configs(self.config, config))
        handlers = configs.get_callback_manager_for_config(merged).handlers
        return phases if all(type(each) is LangChainTracer for each in handlers) else None

    async def in_phases(
        self, source: object, config: RunnableConfig | None, phases: Sequence[Node]
    ) -> dict[str, Any]:
        """Judge as `invoke` does, by the same phases and without LangGraph.

        Args:
            source: A row as a run has read it.
            config: What `invoke` takes.
            phases: The graph's own.
        """
        config = configs.ensure_config(configs.merge_configs(self.config, self._bounded(config)))
        row: Any = self._read(source, is_read=True)
        keys = self.builder.schemas[self.builder.input_schema]

        async def judgment(config: RunnableConfig) -> Update:
            state = {key: row[key] for key in keys if key in row}
            for phase in phases:
                work = partial(phase.step, state)
                # A trace of the judgment gave its phases callbacks.
                is_traced = config.get("callbacks")
                update = run_traced(phase.name, state, config, work) if is_traced else work(config)
                state = {**state, **await update}
            return {key: state[key] for key in self.output_channels if key in state}

        return await run_traced(config.get("run_name") or self.name, row, config, judgment)

    def show(self, row: Mapping[str, Any]) -> str:
        """The requests for a row that depend on no reply; nothing is asked.

        Each with its system message, the tags around its texts and the schema of its reply.
        """
        shown: dict[str, str] = {}

        def take(name: str, messages: Sequence[BaseMessage], schema: Mapping[str, Any]) -> None:
            parts = [f"=== {name}", *(f"[{each.type}]\n{_whole(each)}" for each in messages)]
            shown.setdefault(name, "\n\n".join([*parts, f"[the reply]\n{json.dumps(schema)}"]))

        in_run = RowInRun(CallLimiter(1), 0, shown=take)
        alone = self.copy({"checkpointer": None, "log": None})
        with tracing_context(enabled=False):
            verdict = alone.invoke(row, within_run(None, in_run)).get("verdict") or {}
        nothing = f"Nothing would be asked: {verdict.get('rationale')}"
        return "\n\n".join(shown[name] for name in sorted(shown)) or nothing

    def batch(self, *arguments: Any, **settings: Any) -> list[Any]:
        """Run as LangChain does, and stop all of it at Ctrl-C."""
        with stoppable():
            return super().batch(*arguments, **settings)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> Iterator[Any]:
        """Read the input, then stream as LangGraph does."""
        config = self._bounded(config, settings.get("context"))
        parts = super().stream(self._read(input), config, **settings)
        return self._guarded(parts, self._begun(config))

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> AsyncIterator[Any]:
        """Read the input, then stream as LangGraph does."""
        config = self._bounded(config, settings.get("context"))
        parts = super().astream(self._read(input), config, **settings)
        begun = self._begun(config)
        return self._aguarded(parts, begun) if begun else parts

    def _guarded(self, parts: Any, config: RunnableConfig | None) -> Iterator[Any]:
        """Stream, and close the replies of a row once it is judged."""
        with stoppable() as stop, closing(parts):
            try:
                yield from parts
            except (RunStopped, RuntimeError):
                if not stop.came:
                    raise
                # Python starts no more threads then, and LangGraph says so at length.
                raise RunStopped("a signal has stopped the run") from None
        # Of a row that was not judged only what failed is asked again.
        if config and self.log and _is_judged(self.get_state(config).values):
            run(self.log.close(config))

    async def _aguarded(self, parts: Any, config: RunnableConfig) -> AsyncIterator[Any]:
        async with aclosing(parts):
            async for part in parts:
                yield part
        if self.log and _is_judged((await self.aget_state(config)).values):
            await self.log.close(config)

    def _begun(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """The whole configuration of a run whose replies are kept; else None."""
        if not (self.log and self.log.saver):
            return None
        config = configs.merge_configs(self.config, config)
        self.log.begin(config)
        return config

    def _bounded(
        self, config: RunnableConfig | None, context: Mapping[str, Any] | None = None
    ) -> RunnableConfig | None:
        """The configuration with what bounds the calls of this graph and of all below it.

        Raises:
            OptionError: A limit is invalid, there is a context, which only a server reads, or
                the judge has limits of its own and is asked within those of a run.
        """
        if context and self.bounds.context is None:
            raise OptionError(WORDS["context"].format([*context]))
        for name in ("max_concurrency", "recursion_limit"):
            limit = (config or {}).get(name)
            if limit is not None and not (isinstance(limit, int) and limit > 0):
                raise OptionError(f"`{name}` must be a whole number above 0, got {limit!r}")
        places, most = (config or {}).get("max_concurrency"), self.bounds.calls
        inherited, own = run_of(config) or run_of(running_config()), run_of(self.config)
        if own and inherited not in (None, own):
            raise OptionError(WORDS["own_budget"].format("the run"))
        if most is None and (places is None or inherited or own):
            return config
        return within_run(config, RowInRun(CallLimiter(places or most or 1, max_calls=most), 0))

    def _read(self, source: object, *, is_read: bool = False) -> object:
        """The input as a row with every field, and what resumes a run as it is.

        Args:
            source: A dictionary, messages in any form, the state of a graph around the judge.
            is_read: Whether a run has made texts of what stands in the row.

        Raises:
            InputError: A field is missing, or the row is too long.
        """
        schema: Any = self.builder.input_schema
        most = self.bounds.characters
        if isinstance(source, Command):
            return _resumed(source, is_client=most is not None)
        if not isinstance(source, Mapping):  # a data class or a model, or no row
            source = record.record_row(source)
        if source is None:
            return None
        needed, optional = _fields(schema)
        if not isinstance(source, Mapping):
            names = ", ".join(f"`{key}`" for key in needed)
            many = "; `judge_many` takes tables and lists" if "output" in names else ""
            got = type(source).__name__
            raise InputError(f"the input must be a dictionary with {names}, got {got}{many}")
        source = with_variables(source, self.fields_named)
        source = source if is_read else named_row(source, kind_in(schema.__annotations__))
        source = self.options.given(source)
        if most is not None:
            _check_size(source, most)
        row = dict(source) if is_read else plain_row(source)
        if absent := next((key for key in needed if row.get(key) is None), None):
            raise without_field(absent, row)
        row = {**dict.fromkeys((*needed, *optional)), **row}
        if most is not None:
            check_length("the input", row, most)
        self._place_documents(row)
        self._check_row(row)
        return row

    def _place_documents(self, row: dict[str, Any]) -> None:
        """Show documents beside an answer as the rubric takes them."""
        if row.get(OF_OUTPUT) and not row.get("source"):
            if (use := describe.document_use(self)) == "source":
                row["source"] = row[OF_OUTPUT]
            elif use == "hidden":
                row[NOTES] = notes.notes_on_documents(row)

    def _check_row(self, row: Mapping[str, Any]) -> None:
        if self.options.prompts and "variables" in row:
            written = {step: step for step, model in self.options.models.items() if model}
            check_fields(self.prompts, self.options.prompt_texts, {**row, **written})
        items, most = row.get("items"), self.bounds.calls
        # Each item of an audit is judged.
        if most is not None and isinstance(items, list) and len(items) > most:
            raise InputError(f"{len(items):,} items take as many calls; {most:,} are allowed")


def _whole(message: BaseMessage) -> str:
    """A message as it is sent, images and files by their kind."""
    if isinstance(message.content, str):
        return message.content
    parts = [each if isinstance(each, dict) else {"text": each} for each in message.content]
    return "".join(each.get("text") or f"<{each.get('type')} is sent here>" for each in parts)


def _is_judged(state: Mapping[str, object]) -> bool:
    """Whether a run of a judge, writer or audit has reached its result."""
    verdict = state.get("verdict")
    if not isinstance(verdict, Mapping):
        return state.get("text") is not None or bool(state.get("stopped"))
    return decision(verdict) is not None
