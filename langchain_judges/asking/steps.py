"""One definition of each step for sync and async callers.

A step is a generator. Where it must wait for the outside world (a model, a cache, the
clock) it yields an `Effect`, which knows how to wait in a thread and how to wait in an
event loop, and is sent the result. `run` and `arun` are the only two drivers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_judges.asking.stream import emit_update

T = TypeVar("T")
Update = dict[str, Any]
"""What a node of a graph returns: the state keys that it changes."""

NODE_INPUT: ContextVar[object] = ContextVar("NODE_INPUT", default=None)
"""What the running node works on, where images and files of the judged texts are found."""


class Effect(NamedTuple):
    """A wait for the outside world, as both kinds of callers can perform it."""

    now: Callable[[], object]
    later: Callable[[], Awaitable[object]]


Steps = Generator[Effect, Any, T]
"""A computation that yields its waits and returns a `T`."""


def run(steps: Steps[T]) -> T:
    """Drive `steps` to their end, waiting in this thread."""
    try:
        effect = next(steps)
        while True:
            try:
                result = effect.now()
            except BaseException as exc:  # noqa: BLE001 - the generator decides what to catch
                effect = steps.throw(exc)
            else:
                effect = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def arun(steps: Steps[T]) -> T:
    """Drive `steps` to their end, waiting in the running event loop."""
    try:
        effect = next(steps)
        while True:
            try:
                result = await effect.later()
            except BaseException as exc:  # noqa: BLE001 - the generator decides what to catch
                effect = steps.throw(exc)
            else:
                effect = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def together(parts: list[Steps[T]]) -> Steps[list[T]]:
    """Do several computations at the same time and return their results in order."""
    if len(parts) == 1:
        return [(yield from parts[0])]
    results: list[T] = yield Effect(lambda: _in_threads(parts), lambda: _in_tasks(parts))
    return results


def _in_threads(parts: list[Steps[T]]) -> list[T]:
    with ThreadPoolExecutor(len(parts)) as pool:
        # Each thread needs a context of its own: one copy cannot be entered twice.
        futures = [pool.submit(copy_context().run, run, part) for part in parts]
    return [future.result() for future in futures]


async def _in_tasks(parts: list[Steps[T]]) -> list[T]:
    results = await asyncio.gather(*(arun(part) for part in parts), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


@contextmanager
def _input_scope(input: object) -> Iterator[None]:
    before = NODE_INPUT.set(input)
    try:
        yield
    finally:
        NODE_INPUT.reset(before)


class Node(Runnable[Any, Update]):
    """A graph node made of a generator function from state to update.

    It adds no run of its own to a trace: LangGraph already records the node. What its update
    holds of results is emitted to the graph's stream (`stream.py`).
    """

    def __init__(
        self, steps: Callable[[Any], Steps[Update]], events: Mapping[str, str]
    ) -> None:
        """Make a node that drives `steps` with the state it is given.

        Args:
            steps: From state to update.
            events: State keys whose items are streamed one by one, and what an item is called.
        """
        self._steps = steps
        self._events = events
        self.name: str = steps.__name__

    def drive(self, input: object, step: str) -> Steps[Update]:
        """Do what the node does, and emit what came of it under the name of a step."""
        update = yield from self._steps(input)
        emit_update(step, update, self._events)
        return update

    def invoke(self, input: object, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the node, waiting in this thread."""
        with _input_scope(input):
            return run(self.drive(input, self._step(config)))

    async def ainvoke(
        self, input: object, config: RunnableConfig | None = None, **_: Any
    ) -> Update:
        """Run the node, waiting in the running event loop."""
        with _input_scope(input):
            return await arun(self.drive(input, self._step(config)))

    def _step(self, config: RunnableConfig | None) -> str:
        """Return what the graph that runs this node calls it."""
        metadata = (config or {}).get("metadata") or {}
        return str(metadata.get("langgraph_node", self.name))
