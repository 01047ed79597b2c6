"""The parts of a judge's graph: its state, and nodes that ask, compute or say where to go.

What is gathered, blank and streamed follows from the type of the state.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Overwrite, Send

from langchain_judges.asking.ask import Question, Reply, ask
from langchain_judges.asking.effects import (
    NODE_INPUT,
    Step,
    Update,
    emit_update,
    gather,
    run,
)
from langchain_judges.errors import OptionError
from langchain_judges.orders import Order

T = TypeVar("T")


def joined(items: list[T], more: list[T]) -> list[T]:
    """Return both lists as one.

    LangGraph reads a reducer's signature for each graph it builds, and takes ten times as long
    for a function without source, such as `operator.add`.
    """
    return items + more


# A list of the state; what a node returns for it is added to what others returned. Where the
# graph returns it too, its items are streamed one by one, each called as the key is, without
# its `s`.
Gathered = Annotated[list[T], joined]


class Emits(NamedTuple):
    """Marks a list of the state whose items are streamed one by one, and names an item.

    Of a gathered list it stands before the reducer:
    `Annotated[list[T], Emits("vote"), joined]`.

    Attributes:
        name: Empty: its items are not streamed.
    """

    name: str


# Gathered too, but not streamed.
Silent = Annotated[list[T], Emits(""), joined]


def event_names(state: type, result: type) -> dict[str, str]:
    """Return the lists of a state whose items are streamed, and what an item is called.

    Args:
        state: The `TypedDict` of the state.
        result: That of what the graph returns.
    """
    names, returned = {}, _hints(result)
    for key, hint in _hints(state).items():
        marks = getattr(hint, "__metadata__", ())
        default = key.removesuffix("s") if joined in marks and key in returned else ""
        names[key] = next((mark.name for mark in marks if isinstance(mark, Emits)), default)
    return {key: name for key, name in names.items() if name}


def blank_state(state: type, given: Collection[str]) -> dict[str, Any]:
    """Return a state before its first node: a checkpointed thread holds that of another run.

    Args:
        state: The `TypedDict` of the state.
        given: Keys that each run sets by itself, such as those of its input.

    Raises:
        OptionError: A key has a type without a blank: it is gathered by another reducer than
            that of `Gathered`, or is neither a list, a dictionary nor None.
    """
    hints = _hints(state).items()
    return {key: _blank(state, key, hint) for key, hint in hints if key not in given}


@cache
def _hints(state: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(state, include_extras=True)
    marks = (typing.NotRequired, typing.Required)
    return {k: get_args(h)[0] if get_origin(h) in marks else h for k, h in hints.items()}


def _blank(state: type, key: str, hint: Any) -> object:
    marks = getattr(hint, "__metadata__", ())
    if joined in marks:
        return Overwrite([])
    plain = get_args(hint)[0] if marks else hint
    if get_origin(plain) in (typing.Union, types.UnionType) and type(None) in get_args(plain):
        return None
    kind = get_origin(plain) or plain
    if kind not in (list, dict) or any(map(callable, marks)):
        raise OptionError(
            f"`{key}` of {state.__name__} has no blank for the next run of a thread: declare "
            f"it as `Gathered[...]`, a list, a dictionary, or with `| None`; it is {hint}"
        )
    return kind()


# What a node works on: the graph's state, or what a branch was sent.
S = TypeVar("S")

# Where a graph goes from a node.
Next = Sequence[Send] | Sequence[str] | str


class Node(Runnable[Any, Update]):
    """A graph node made of a generator function from state to update.

    It adds no run of its own to a trace: LangGraph already records the node. What its update
    holds of results is emitted to the graph's stream (`emit`).
    """

    def __init__(self, steps: Callable[[Any], Step[Update]], events: Mapping[str, str]) -> None:
        """Make a node that drives `steps` with the state it is given.

        Args:
            steps: From state to update.
            events: State keys whose items are emitted one by one, and what an item is called.
        """
        self._steps = steps
        self._events = events
        self.name: str = steps.__name__

    async def drive(self, input: object, step: str) -> Update:
        """Do what the node does, and emit what came of it under the name of a step."""
        update = await self._steps(input)
        emit_update(step, update, self._events)
        return update

    def invoke(self, input: object, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the node, waiting in this thread."""
        before = NODE_INPUT.set(input)
        try:
            return run(self.drive(input, self._step(config)))
        finally:
            NODE_INPUT.reset(before)

    async def ainvoke(
        self, input: object, config: RunnableConfig | None = None, **_: Any
    ) -> Update:
        """Run the node, waiting in the running event loop."""
        before = NODE_INPUT.set(input)
        try:
            return await self.drive(input, self._step(config))
        finally:
            NODE_INPUT.reset(before)

    def _step(self, config: RunnableConfig | None) -> str:
        """Return what the graph that runs this node calls it."""
        metadata = (config or {}).get("metadata") or {}
        return str(metadata.get("langgraph_node", self.name))


class Route(Runnable[Any, Any]):
    """Says where a graph goes next: a function from state to nodes, which waits for nothing.

    LangGraph itself would call a plain function in a thread for asynchronous callers, and give
    it a run of its own in every trace.
    """

    def __init__(self, function: Callable[[Any], Next]) -> None:
        """Make a path for `add_conditional_edges`."""
        self._function = function
        self.name: str = function.__name__

    def invoke(self, input: object, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the next nodes."""
        return self._function(input)

    async def ainvoke(
        self, input: object, config: RunnableConfig | None = None, **_: Any
    ) -> Next:
        """Return the next nodes, in the running event loop."""
        return self._function(input)


class Call(NamedTuple):
    """One question about one unit of work.

    Attributes:
        question: What is asked.
        variables: Fill the prompt's template.
        unit: What the step works on, as people call it: `Clarity (A first)`.
        order: The order in which the texts are shown.
        seed: Set for one sample of many.
    """

    question: Question
    variables: Mapping[str, object]
    unit: str = ""
    order: Order | None = None
    seed: int | None = None


def plain(function: Callable[[S], Update], events: Mapping[str, str]) -> Node:
    """Return a node that waits for nothing: a function from state to update.

    LangGraph itself would run a plain function in a thread for asynchronous callers.

    Args:
        function: From state to update.
        events: State keys whose items are emitted one by one, and what an item is called.

    Raises:
        OptionError: The function asks: it is a coroutine.
    """
    if inspect.iscoroutinefunction(function):
        raise OptionError(
            f"`{function.__name__}` asks: it is added by `context.node`, not by `plain`"
        )

    async def steps(state: S) -> Update:
        return function(state)

    steps.__name__ = function.__name__
    return Node(steps, events)


def asks(
    call: Callable[[S], Call], read: Callable[[S, Reply], Update], events: Mapping[str, str]
) -> Node:
    """Return a node that asks once.

    What the reply cost and how it failed is added to the state's `usages` and `failures`.

    Args:
        call: From the node's input to what is asked.
        read: From the node's input and a reply to the update; of a reply that could not be
            used, `reply.data` is None.
        events: State keys whose items are emitted one by one, and what an item is called.
    """

    async def steps(state: S) -> Update:
        reply = await ask(**call(state)._asdict())
        return {"failures": reply.failures, "usages": [reply.usage], **read(state, reply)}

    steps.__name__ = call.__name__
    return Node(steps, events)


def in_one(
    begin: Callable[[Any], Update],
    first: Callable[[Any], Next],
    each: Node,
    end: Callable[[Any], Update],
) -> Callable[[Any], Step[Update]]:
    """Return the steps of one node that does what three and the ways between them would.

    LangGraph takes about a third of a millisecond for each node and each of its branches, which
    is a fifth of what a call costs beside the model.

    Args:
        begin: From the state to the first update, in which every list that the branches add to
            is an `Overwrite`; a `verdict` in it ends the judgment.
        first: From the state to what is asked, all of it at the same time.
        each: The node that asks.
        end: From the state to the last update.
    """

    async def steps(state: Any) -> Update:
        first_update = begin(state)
        if first_update.get("verdict"):
            return first_update
        lists = {
            key: part.value for key, part in first_update.items() if isinstance(part, Overwrite)
        }
        state = {**state, **first_update, **lists}
        works = [send for send in first(state) if isinstance(send, Send)]
        updates = await gather([each.drive(send.arg, send.node) for send in works])
        for key in lists:
            added = (one for update in updates for one in update.get(key, ()))
            state[key] = [*state[key], *added]
        sums = {key: Overwrite(state[key]) for key in lists}
        return {**first_update, **sums, **end(state)}

    steps.__name__ = each.name
    return steps
