"""One stop signal: after Ctrl-C nothing more is asked, whatever graph, thread or task asks.

The first signal lets what is in flight come back and be written down, and ends in
`KeyboardInterrupt`; LangGraph alone would go on with every branch that has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from langchain_judges.asking.steps import Wait
from langchain_judges.errors import RunStopped

# What stops the work that is running. No parameter or config could carry it: a signal must
# reach the threads that LangGraph starts for branches, and those of a graph within a graph.
_STOP: ContextVar[StopSignal | None] = ContextVar("langchain_judges_stop", default=None)


class StopSignal:
    """Says whether a signal has come."""

    def __init__(
        self,
        first: Callable[[], object] | None = None,
        second: Callable[[], object] | None = None,
    ) -> None:
        """Start without one.

        Args:
            first: Called at the first signal.
            second: Called at each further one.
        """
        self._first, self._second = first, second
        self._came = threading.Event()

    @property
    def came(self) -> bool:
        """Whether a signal has come."""
        return self._came.is_set()

    def give(self) -> None:
        """Stop all requests."""
        if told := self._second if self.came else self._first:
            told()
        self._came.set()

    def wait(self, seconds: float) -> None:
        """Wait in this thread, until a signal comes at the latest."""
        self._came.wait(seconds)


class MainThread(StopSignal):
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


# The interrupt that the main thread was handling when this one first judged, `handled`.
_THREAD = threading.local()


def _interrupt_of_main() -> BaseException | None:
    main = threading.main_thread()
    if threading.current_thread() is main:
        return None
    # CPython's; a tuple of which the second is the exception, until Python 3.11.
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
) -> Iterator[StopSignal]:
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
    stop = StopSignal(first, second) if is_main else MainThread()
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
    if (_STOP.get() or MainThread()).came:
        raise RunStopped("a signal has stopped the run")


def pause(seconds: float) -> Wait:
    """Return a wait of some seconds, which ends when a signal comes."""
    sleep = stop.wait if (stop := _STOP.get()) else time.sleep
    return Wait(lambda: sleep(seconds), lambda: asyncio.sleep(seconds))
