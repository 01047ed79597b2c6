"""One definition of each step for threads and event loops, and one signal that stops them.

A step is a coroutine. Where it waits for the outside world (a model, a cache, the clock) it
awaits an `Effect`, which knows how to wait in a thread and in an event loop. In a loop nothing
drives a step: `await` does. In a thread `run` does.

After Ctrl-C nothing more is asked, whatever graph, thread or task asks. The first signal lets
what is in flight come back and be written down, and ends in `KeyboardInterrupt`; LangGraph
alone would go on with every branch that has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config, get_stream_writer
from langgraph.constants import TAG_NOSTREAM
from typing_extensions import TypedDict

from langchain_judges.errors import RunStopped

T = TypeVar("T")
# What a node of a graph returns: the state keys that it changes.
Update = dict[str, Any]
# A computation that awaits effects and ends in a `T`.
Step = Coroutine[Any, Any, T]

# Whether `run` drives this thread at the moment, `by_run`.
_DRIVER = threading.local()


# What stops the work that is running. No parameter or config could carry it: a signal must
# reach the threads that LangGraph starts for branches, and those of a graph within a graph.
_STOP: ContextVar[StopSignal | None] = ContextVar("langchain_judges_stop", default=None)
# The interrupt that the main thread was handling when this one first judged, `handled`.
_THREAD = threading.local()


class Effect(NamedTuple):
    """A wait for the outside world, as a thread and an event loop can perform it."""

    now: Callable[[], object]
    later: Callable[[], Awaitable[object]]

    @classmethod
    def of(cls, owner: object, name: str, *given: Any, **named: Any) -> Effect:
        """A call of a method that has a twin for event loops: `invoke` and `ainvoke`."""
        now, later = getattr(owner, name), getattr(owner, f"a{name}")
        return cls(lambda: now(*given, **named), lambda: later(*given, **named))

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait in the loop that awaits this, or hand it to `run`."""
        if getattr(_DRIVER, "by_run", False):
            return (yield self)
        return (yield from self.later().__await__())


def run(step: Awaitable[T]) -> T:
    """Drive a step to its end, waiting in this thread.

    Raises:
        TypeError: The step awaits something that only an event loop can wait for.
    """
    steps = step if inspect.iscoroutine(step) else _awaited(step)
    result, error = None, None
    try:
        while True:
            effect = _advanced(steps, result, error)
            if not isinstance(effect, Effect):
                steps.close()
                rule = "a step that runs in a thread awaits effects (`ask`, `gather`, `pause`)"
                raise TypeError(f"{rule}; {effect!r}, which it awaited, needs an event loop")
            result, error = None, None
            try:
                result = effect.now()
            except BaseException as exc:  # noqa: BLE001 - the step decides what to catch
                error = exc
    except StopIteration as stop:
        return cast("T", stop.value)


def _advanced(step: Step[Any], result: object, error: BaseException | None) -> object:
    """Continue a step up to its next effect."""
    # Only in between: an effect may run an event loop of its own in this thread.
    before, _DRIVER.by_run = getattr(_DRIVER, "by_run", False), True
    try:
        return step.send(result) if error is None else step.throw(error)
    finally:
        _DRIVER.by_run = before


async def gather(steps: Sequence[Awaitable[T]], most: int | None = None) -> list[T]:
    """Do several steps at the same time; their results come in order.

    Args:
        steps: The computations.
        most: How many at a time; None: the `max_concurrency` of the graph that runs.
    """
    if len(steps) < 2:
        return [await step for step in steps]
    max_in_flight = most or running_config().get("max_concurrency") or len(steps)
    coroutines = [_awaited(step) for step in steps]
    try:
        results: list[T] = await Effect(
            lambda: _in_threads(coroutines, max_in_flight),
            lambda: _in_tasks(coroutines, max_in_flight),
        )
    finally:
        for each in (*coroutines, *steps):
            # Of those that an interrupt kept from starting, Python would warn.
            is_new = inspect.iscoroutine(each) and inspect.getcoroutinestate(each)
            if is_new == inspect.CORO_CREATED:
                cast("Step[Any]", each).close()
    return results


async def _awaited(step: Awaitable[T]) -> T:
    return await step


def running_config() -> RunnableConfig:
    """The config of the graph that is running; empty outside of one."""
    try:
        return get_config()
    except RuntimeError:
        return {}


def _in_threads(steps: Sequence[Step[T]], max_in_flight: int) -> list[T]:
    if max_in_flight < len(steps):
        with ThreadPoolExecutor(max_in_flight) as pool:
            return _all_of(steps, pool)
    return _all_of(steps, _threads(os.getpid()))


def _all_of(steps: Sequence[Step[T]], pool: ThreadPoolExecutor) -> list[T]:
    # Each thread needs a context of its own: one copy cannot be entered twice.
    futures = [pool.submit(copy_context().run, run, step) for step in steps]
    wait(futures)
    return [future.result() for future in futures]


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of a process: starting two costs as much as one call's own overhead."""
    return ThreadPoolExecutor(100_000, f"judge {process}")


async def _in_tasks(steps: Sequence[Step[T]], max_in_flight: int) -> list[T]:
    gate = asyncio.Semaphore(max_in_flight)

    async def one(step: Step[T]) -> T:
        async with gate:
            return await step

    tasks = map(one, steps) if max_in_flight < len(steps) else steps
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
        step: What asked or decided, as `usage.by_step` names it, such as `solve`; of a verdict
            the node.
        unit: Of a reply: what was asked about, such as `Clarity (A first)`; else mostly empty.
        data: The result as the judge's state holds it; of a reply `{"failures", "usage"}`.
    """

    kind: str
    step: str
    unit: str
    data: Any


def emit(kind: str, step: str, data: object, unit: str = "") -> None:
    """Send an event to the stream of the graph that is running, if there is one that wants it."""
    try:
        writer, tags = get_stream_writer(), get_config().get("tags") or ()
    except (RuntimeError, KeyError):  # not inside a graph
        return
    if TAG_NOSTREAM not in tags:
        writer(Event(kind=kind, step=step, unit=unit, data=data))


def emit_each(kind: str, step: str, results: Sequence[object]) -> None:
    """Send an event for each of several results."""
    for result in results:
        emit(kind, step, result)


def pending_future() -> Future[None]:
    """A running future with no result yet."""
    work: Future[None] = Future()
    work.set_running_or_notify_cancel()  # nobody who waits for it can cancel it
    return work


def wait_for(work: Future[None], seconds: float | None = None) -> Effect:
    """A wait for the work of another, for some seconds at most."""

    async def later() -> object:
        return await asyncio.wait([asyncio.wrap_future(work)], timeout=seconds)

    return Effect(lambda: wait([work], seconds), later)


def future_here(work: Future[None]) -> asyncio.Future[None]:
    """A future of the running loop that is done when work is.

    Work that ends in the loop's own thread does not wake it, unlike asyncio's own: nothing that
    a handler of signals ends may be waited for so.
    """
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    here: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not here.done():
            here.set_result(None)

    def tell(_: object) -> None:
        if threading.get_ident() == thread:
            end()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(end)

    work.add_done_callback(tell)
    return here


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

    def _ahead(self, keys: Sequence[str], own: Future[None]) -> Future[None] | None:
        """The call to wait for; None: this one may go, and others wait for it."""
        with self._lock:
            calls = (self._calls.get(key) for key in reversed(keys))
            if first := next((call for call in calls if call and not call.done()), None):
                return first
            for key in keys:
                self._calls.setdefault(key, own)
            while len(self._calls) > self._size and next(iter(self._calls.values())).done():
                self._calls.popitem(last=False)
        return None

    @contextlib.asynccontextmanager
    async def turn(self, keys: Sequence[str] = ("",)) -> AsyncGenerator[set[str]]:
        """Go ahead, but not before a call that has a key in common and was earlier.

        Args:
            keys: What a call may have in common with others, the most telling last.

        Yields:
            The keys with which another goes ahead next; without them nobody needs to wait.
        """
        own, waiting = pending_future(), set(keys)
        while (first := self._ahead(keys, own)) is not None:
            await wait_for(first)
        try:
            yield waiting
        finally:
            with self._lock:
                for key in waiting:
                    if self._calls.get(key) is own:
                        del self._calls[key]
            own.set_result(None)


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

    async def get(
        self, key: str, compute: Callable[[], Step[T]], keep: Callable[[T], bool]
    ) -> tuple[T, bool]:
        """The value of `key`, and whether another caller had computed it.

        Args:
            key: What the value belongs to.
            compute: Makes the value.
            keep: Says whether a value is one to keep; a failure is not.
        """
        async with self._first.turn([key]):  # who comes next looks for the value first
            if key in self._values:
                return self._values[key], True
            value = await compute()
            if keep(value):
                self._values[key] = value
                while len(self._values) > self._size:
                    self._values.popitem(last=False)
            return value, False


class StopSignal:
    """Says whether a signal has come."""

    def __init__(
        self, first: Callable[[], object] | None = None, second: Callable[[], object] | None = None
    ) -> None:
        """Start without one.

        Args:
            first: Called at the first signal.
            second: Called at each further one.
        """
        self._first, self._second = first, second
        self._has_come = False
        # Not an event: a handler that sets one waits for its lock, which the thread that it
        # interrupts may hold. One entry wakes who waits first, and is put back for the next.
        self._woken: SimpleQueue[None] = SimpleQueue()

    @property
    def came(self) -> bool:
        """Whether a signal has come."""
        return self._has_come

    def give(self) -> None:
        """Stop all requests."""
        told = self._second if self.came else self._first
        self._has_come = True  # before anybody is told: whoever reads it relies on it
        self._woken.put(None)
        if told:
            told()

    def wait(self, seconds: float) -> None:
        """Wait in this thread, until a signal comes at the latest."""
        with contextlib.suppress(Empty):
            self._woken.put(self._woken.get(timeout=seconds))


class MainInterrupt(StopSignal):
    """Says whether Ctrl-C has ended what the main thread did, beside which this one is at work.

    Only the main thread can handle signals. But while it waits for threads of the user's own,
    or for all others because it has ended, the interrupt is its exception. A thread that first
    judges while the main thread handles one works for the handler.
    """

    def __init__(self) -> None:
        """Look at the main thread as this thread found it."""
        super().__init__()
        if not hasattr(_THREAD, "handled"):
            _THREAD.handled = _interrupt_of_main()
        self._handled = _THREAD.handled

    @property
    def came(self) -> bool:
        """Whether an interrupt has come since this thread began to judge."""
        interrupt = _interrupt_of_main()
        return interrupt is not None and interrupt is not self._handled


class _Collection:
    """Number of blocks that hold the collection of garbage off; whether it was on before."""

    lock = threading.RLock()
    blocks = 0
    was_on = False


@contextlib.contextmanager
def without_collection() -> Generator[None]:
    """Look for no garbage, until the last of the blocks that run at a time has ended."""
    with _Collection.lock:
        if not _Collection.blocks:
            _Collection.was_on = gc.isenabled()
            gc.disable()
        _Collection.blocks += 1
    try:
        yield
    finally:
        with _Collection.lock:
            _Collection.blocks -= 1
            if _Collection.was_on and not _Collection.blocks:
                gc.enable()


def _interrupt_of_main() -> BaseException | None:
    main = threading.main_thread()
    if threading.current_thread() is main:
        return None
    # CPython's; a tuple of which the second is the exception, until Python 3.11. It reads them
    # under the lock that a new thread needs: until 3.12 a look for garbage may begin there, and
    # run code that waits for such a thread. Nothing moves then.
    with without_collection():
        exceptions: dict[int | None, Any] = getattr(sys, "_current_exceptions", dict)()
    current = exceptions.get(main.ident)
    active = current[1] if isinstance(current, tuple) else current
    # Python waits for the threads of pools before it calls the main thread ended.
    has_ended = not main.is_alive() or getattr(threading, "_SHUTTING_DOWN", False)
    last = getattr(sys, "last_value", None) if has_ended else None
    return next((each for each in (active, last) if isinstance(each, KeyboardInterrupt)), None)


@contextlib.contextmanager
def stoppable(
    signals: Sequence[signal.Signals] = (signal.SIGINT,),
    first: Callable[[], object] | None = None,
    second: Callable[[], object] | None = None,
) -> Generator[StopSignal]:
    """Let signals stop the requests of what is done inside.

    Only Python's main thread can handle signals: threads of the user's own see its interrupt.
    Where the caller is stoppable already, this does nothing.

    Args:
        signals: Which.
        first: Called at the first one.
        second: Called at each further one, such as what leaves at once.
    """
    if stop := _STOP.get():
        yield stop
        return
    is_main = threading.current_thread() is threading.main_thread()
    stop = StopSignal(first, second) if is_main else MainInterrupt()
    before = {each: _handled(each, stop) for each in signals} if is_main else {}
    token = _STOP.set(stop)
    try:
        yield stop
    finally:
        with contextlib.suppress(ValueError):  # a generator that another context has closed
            _STOP.reset(token)
        for each, handler in before.items():
            with contextlib.suppress(ValueError):  # closed in another thread
                signal.signal(each, handler)


def _handled(number: signal.Signals, stop: StopSignal) -> Any:
    """Handle a signal, and return what handled it before."""
    before = signal.getsignal(number)
    if before is None or before is signal.SIG_IGN:
        return before

    def handler(*details: Any) -> None:
        stop.give()
        if callable(before):
            before(*details)
        else:
            raise KeyboardInterrupt

    signal.signal(number, handler)
    return before


def check_stop() -> None:
    """Refuse a request after a signal.

    Raises:
        RunStopped: A signal has come.
    """
    if (_STOP.get() or MainInterrupt()).came:
        raise RunStopped("a signal has stopped the run")


def pause(seconds: float) -> Effect:
    """A wait of some seconds, which ends when a signal comes."""
    sleep = stop.wait if (stop := _STOP.get()) else time.sleep
    return Effect(lambda: sleep(seconds), lambda: asyncio.sleep(seconds))


def aside(work: Callable[[], Any]) -> Effect:
    """Wait for the disk or for much to be computed; inside an event loop, in another thread."""
    return Effect(work, lambda: asyncio.to_thread(work))
