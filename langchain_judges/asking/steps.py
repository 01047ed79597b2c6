"""One definition of each step for sync and async callers.

A step is a generator. Where it must wait for the outside world (a model, a cache, the
clock) it yields a `Wait`, which knows how to wait in a thread and how to wait in an
event loop, and is sent the result. `run` and `arun` are the only two drivers.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config, get_stream_writer
from typing_extensions import TypedDict

T = TypeVar("T")
# What a node of a graph returns: the state keys that it changes.
Update = dict[str, Any]

# What the running node works on, where images and files of the judged texts are found.
NODE_INPUT: ContextVar[object] = ContextVar("NODE_INPUT", default=None)


class Wait(NamedTuple):
    """A wait for the outside world, as both kinds of callers can perform it."""

    now: Callable[[], object]
    later: Callable[[], Awaitable[object]]


# A computation that yields its waits and returns a `T`.
Steps = Generator[Wait, Any, T]


def run(steps: Steps[T]) -> T:
    """Drive `steps` to their end, waiting in this thread."""
    try:
        wait = next(steps)
        while True:
            try:
                result = wait.now()
            except BaseException as exc:  # noqa: BLE001 - the generator decides what to catch
                wait = steps.throw(exc)
            else:
                wait = steps.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


async def arun(steps: Steps[T]) -> T:
    """Drive `steps` to their end, waiting in the running event loop."""
    try:
        wait = next(steps)
        while True:
            try:
                result = await wait.later()
            except BaseException as exc:  # noqa: BLE001 - the generator decides what to catch
                wait = steps.throw(exc)
            else:
                wait = steps.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


def together(parts: list[Steps[T]], most: int | None = None) -> Steps[list[T]]:
    """Do several computations at the same time and return their results in order.

    Args:
        parts: The computations.
        most: How many at a time; None: the `max_concurrency` of the graph that runs.
    """
    if len(parts) == 1:
        return [(yield from parts[0])]
    places = most or running_config().get("max_concurrency") or len(parts)
    work = parts, places
    results: list[T] = yield Wait(lambda: _in_threads(*work), lambda: _in_tasks(*work))
    return results


def running_config() -> RunnableConfig:
    """Return the config of the graph that is running; empty outside of one."""
    try:
        return get_config()
    except RuntimeError:
        return {}


def _in_threads(parts: list[Steps[T]], places: int) -> list[T]:
    if places < len(parts):
        with ThreadPoolExecutor(places) as pool:
            return _all_of(parts, pool)
    return _all_of(parts, _threads(os.getpid()))


def _all_of(parts: list[Steps[T]], pool: ThreadPoolExecutor) -> list[T]:
    # Each thread needs a context of its own: one copy cannot be entered twice.
    futures = [pool.submit(copy_context().run, run, part) for part in parts]
    wait(futures)
    return [future.result() for future in futures]


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process: to start two takes as long as what a call costs us."""
    return ThreadPoolExecutor(100_000, f"judge {process}")


async def _in_tasks(parts: list[Steps[T]], places: int) -> list[T]:
    gate = asyncio.Semaphore(places)

    async def one(part: Steps[T]) -> T:
        async with gate:
            return await arun(part)

    tasks = map(one if places < len(parts) else arun, parts)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


class Event(TypedDict):
    """One thing that landed while the rest is still at work.

    `judge.astream(pair, stream_mode="custom")` yields one for each question that was
    answered, for each result (a vote, a sub-score, a table, a match) and for the verdict; a
    writer tells its divisions and drafts, an audit the verdict of each item (the unit is its
    id), its proposals, decisions and rounds. Outside a graph, or where nobody listens,
    nothing is told.

    Attributes:
        kind: `reply`, `verdict`, or what landed: `vote`, `subscore`, `table`, `match`, `role` …
        step: The node, such as `solve`.
        unit: Of a reply: what was asked about, such as `Clarity (A first)`; else mostly empty.
        data: The result as the judge's state holds it; of a reply `{"failures", "usage"}`.
    """

    kind: str
    step: str
    unit: str
    data: Any


def emit(kind: str, step: str, data: object, unit: str = "") -> None:
    """Send an event to the stream of the graph that is running, if there is one."""
    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):  # not inside a graph
        return
    writer(Event(kind=kind, step=step, unit=unit, data=data))


def emit_update(step: str, update: Mapping[str, object], events: Mapping[str, str]) -> None:
    """Emit every result among the state keys that a node changed.

    Args:
        step: The node.
        update: What it changed.
        events: State keys whose items are told one by one, and what an item is called.
    """
    for key, kind in events.items():
        if isinstance(parts := update.get(key), list):
            for part in parts:
                emit(kind, step, part)
    if verdict := update.get("verdict"):
        emit("verdict", step, verdict)


def unfinished() -> Future[None]:
    """Return what stands for work that others may wait for."""
    work: Future[None] = Future()
    work.set_running_or_notify_cancel()  # nobody who waits for it can cancel it
    return work


def end_of(work: Future[None], seconds: float | None = None) -> Wait:
    """Return the effect that waits for the work of another, for some seconds at most."""

    async def later() -> object:
        return await asyncio.wait([asyncio.wrap_future(work)], timeout=seconds)

    return Wait(lambda: wait([work], seconds), later)


class Lock:
    """A lock for threads and event loops alike; those who wait are served in order."""

    def __init__(self) -> None:
        """Start free."""
        self._last = self._own = unfinished()
        self._guard = threading.Lock()
        self.release()

    def acquire(self) -> Steps[None]:
        """Wait until the lock is free, and take it."""
        own = unfinished()
        with self._guard:
            before, self._last = self._last, own
        try:
            yield end_of(before)
        except BaseException:
            before.add_done_callback(lambda _: own.set_result(None))
            raise
        self._own = own

    def release(self) -> None:
        """Hand the lock to the next who waits."""
        self._own.set_result(None)


class FirstCalls:
    """Lets the first of calls that have something in common go ahead of the others.

    Args:
        size: Things that are remembered as done; the oldest are forgotten first.
    """

    def __init__(self, size: int = 4096) -> None:
        """Start without any."""
        self._size = size
        self._calls: OrderedDict[str, Future[None]] = OrderedDict()
        self._lock = threading.Lock()

    def ahead(self, keys: Sequence[str], own: Future[None]) -> Future[None] | None:
        """Return the call to wait for; None: this one may go, and others wait for it.

        Args:
            keys: What it may have in common with others, the most telling last.
            own: Stands for this call, until `done`.
        """
        with self._lock:
            calls = (self._calls.get(key) for key in reversed(keys))
            if first := next((call for call in calls if call and not call.done()), None):
                return first
            for key in keys:
                self._calls.setdefault(key, own)
            while len(self._calls) > self._size and next(iter(self._calls.values())).done():
                self._calls.popitem(last=False)
        return None

    def done(self, keys: Sequence[str], own: Future[None], *, succeeded: bool) -> None:
        """Let those go that waited for a call; unless it succeeded another goes ahead."""
        with self._lock:
            for key in () if succeeded else keys:
                if self._calls.get(key) is own:
                    del self._calls[key]
        own.set_result(None)

    def behind(
        self, keys: Sequence[str], work: Steps[T], succeeded: Callable[[T], bool]
    ) -> Steps[T]:
        """Do some work, but not before a call that has a key in common and was earlier.

        Args:
            keys: As for `ahead`.
            work: What is done.
            succeeded: Says of its result whether others with the keys need not wait any more;
                if not, another goes ahead.
        """
        own = unfinished()
        while (first := self.ahead(keys, own)) is not None:
            yield end_of(first)
        is_done = False
        try:
            result = yield from work
            is_done = succeeded(result)
            return result
        finally:
            self.done(keys, own, succeeded=is_done)


class SingleFlight(Generic[T]):
    """Computes a value once for each key, however many callers want it at the same time.

    Args:
        size: Values kept; the oldest go first.
    """

    def __init__(self, size: int = 1024) -> None:
        """Start empty."""
        self._size = size
        self._first = FirstCalls(size)
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(
        self, key: str, compute: Callable[[], Steps[T]], keep: Callable[[T], bool]
    ) -> Steps[tuple[T, bool]]:
        """Return the value of `key`, and whether another caller had computed it.

        Args:
            key: What the value belongs to.
            compute: Makes the value.
            keep: Says whether a value is one to keep; a failure is not.
        """

        def work() -> Steps[tuple[T, bool]]:
            if key in self._values:
                return self._values[key], True
            value = yield from compute()
            if keep(value):
                self._values[key] = value
                while len(self._values) > self._size:
                    self._values.popitem(last=False)
            return value, False

        # Who comes next looks for the value first.
        return self._first.behind([key], work(), lambda _: False)
