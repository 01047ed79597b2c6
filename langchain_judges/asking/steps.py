"""One definition of each step for sync and async callers.

A step is a generator. Where it must wait for the outside world (a model, a cache, the
clock) it yields a `Wait`, which knows how to wait in a thread and how to wait in an
event loop, and is sent the result. `run` and `arun` are the only two drivers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, Generic, NamedTuple, TypeVar, cast

from langgraph.config import get_config, get_stream_writer
from typing_extensions import TypedDict

T = TypeVar("T")
Update = dict[str, Any]
"""What a node of a graph returns: the state keys that it changes."""

NODE_INPUT: ContextVar[object] = ContextVar("NODE_INPUT", default=None)
"""What the running node works on, where images and files of the judged texts are found."""


class Wait(NamedTuple):
    """A wait for the outside world, as both kinds of callers can perform it."""

    now: Callable[[], object]
    later: Callable[[], Awaitable[object]]


Steps = Generator[Wait, Any, T]
"""A computation that yields its waits and returns a `T`."""


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
    places = most or _places() or len(parts)
    results: list[T] = yield Wait(
        lambda: _in_threads(parts, places), lambda: _in_tasks(parts, places)
    )
    return results


def _places() -> int | None:
    try:
        return get_config().get("max_concurrency")
    except RuntimeError:  # not inside a graph
        return None


def _in_threads(parts: list[Steps[T]], places: int) -> list[T]:
    with ThreadPoolExecutor(min(places, len(parts))) as pool:
        # Each thread needs a context of its own: one copy cannot be entered twice.
        futures = [pool.submit(copy_context().run, run, part) for part in parts]
    return [future.result() for future in futures]


async def _in_tasks(parts: list[Steps[T]], places: int) -> list[T]:
    gate = asyncio.Semaphore(places)

    async def one(part: Steps[T]) -> T:
        async with gate:
            return await arun(part)

    results = await asyncio.gather(*map(one, parts), return_exceptions=True)
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
    """

    kind: str
    """`reply`, `verdict`, or what landed: `vote`, `subscore`, `table`, `match`, `role` …"""
    step: str
    """The node, such as `solve`."""
    unit: str
    """Of a reply: what was asked about, such as `Clarity (A first)`; else mostly empty."""
    data: Any
    """The result as the judge's state holds it; of a reply `{"failures", "usage"}`."""


def emit(kind: str, step: str, data: object, unit: str = "") -> None:
    """Send an event to the stream of the graph that is running, if there is one."""
    if writer := _writer():
        event: Event = {"kind": kind, "step": step, "unit": unit, "data": data}
        writer(event)


def emit_update(step: str, update: Mapping[str, object], events: Mapping[str, str]) -> None:
    """Emit every result among the state keys that a node changed.

    Args:
        step: The node.
        update: What it changed.
        events: State keys whose items are told one by one, and what an item is called.
    """
    parts = [
        (events[key], part)
        for key, value in update.items()
        if key in events and isinstance(value, list)
        for part in value
    ]
    if update.get("verdict"):
        parts.append(("verdict", update["verdict"]))
    for kind, part in parts:
        emit(kind, step, part)


def _writer() -> Callable[[Event], None] | None:
    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):  # not inside a graph
        return None


class Lock:
    """A lock for threads and event loops alike; those who wait are served in order."""

    def __init__(self) -> None:
        """Start free."""
        self._held = False
        self._waiting: deque[Future[None]] = deque()
        self._guard = threading.Lock()

    def acquire(self) -> Steps[None]:
        """Wait until the lock is free, and take it."""
        turn: Future[None] = Future()
        with self._guard:
            if self._held:
                self._waiting.append(turn)
            else:
                self._held = True
                turn.set_result(None)
        try:
            if not turn.done():
                yield Wait(turn.result, lambda: asyncio.wrap_future(turn))
        except BaseException:
            if not turn.cancel():  # it was handed over while its waiter gave up
                self.release()
            raise

    def release(self) -> None:
        """Hand the lock to the next who waits."""
        with self._guard:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._held = False


class SingleFlight(Generic[T]):
    """Computes a value once for each key, however many callers want it at the same time.

    Args:
        size: Values kept; the oldest that nobody waits for go first.
    """

    def __init__(self, size: int = 1024) -> None:
        """Start empty."""
        self._size = size
        self._doors: OrderedDict[str, Lock] = OrderedDict()
        self._values: dict[str, T] = {}
        self._callers: Counter[str] = Counter()
        self._lock = threading.Lock()

    def forget(self, key: str) -> None:
        """Drop the value of `key`."""
        with self._lock:
            self._doors.pop(key, None)
            self._values.pop(key, None)

    def get(
        self, key: str, compute: Callable[[], Steps[T]], keep: Callable[[T], bool]
    ) -> Steps[tuple[T, bool]]:
        """Return the value of `key`, and whether another caller had computed it.

        Args:
            key: What the value belongs to.
            compute: Makes the value.
            keep: Says whether a value is one to keep; a failure is not.
        """
        door = self._enter(key)
        try:
            yield from door.acquire()
            try:
                if key in self._values:
                    return self._values[key], True
                value = yield from compute()
                if keep(value):
                    self._values[key] = value
                return value, False
            finally:
                door.release()
        finally:
            self._leave(key)

    def _enter(self, key: str) -> Lock:
        with self._lock:
            self._callers[key] += 1
            door = self._doors.setdefault(key, Lock())
            while len(self._doors) > self._size:
                oldest = next((each for each in self._doors if each not in self._callers), None)
                if oldest is None:
                    break
                del self._doors[oldest]
                self._values.pop(oldest, None)
            return door

    def _leave(self, key: str) -> None:
        with self._lock:
            self._callers[key] -= 1
            if not self._callers[key]:
                del self._callers[key]
