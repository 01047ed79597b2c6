"""The rows of a run between their start and their turn to be returned.

Results come in the order of the rows. A slow row does not stop the others: rows after it start
as long as few are unfinished, and their results are held back until its turn comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

HELD_BACK = 1_000
"""Finished results that may wait for a slower row; no row is started while so many do."""


class _Future(Protocol):
    """A `concurrent.futures.Future` or an `asyncio.Task`."""

    def done(self) -> bool: ...

    def add_done_callback(self, fn: Callable[..., object], /) -> None: ...


F = TypeVar("F", bound=_Future)


class Window(Generic[F]):
    """Futures in the order of their rows, with bounds on unfinished and on finished ones.

    Only the thread or event loop that owns it may call its methods.

    Args:
        places: The most unfinished rows.
        report: Is called with the name of a future when it is done, from any thread.
    """

    def __init__(self, places: int, report: Callable[[F], object]) -> None:
        """Create an empty window."""
        self._places = places
        self._report = report
        self.rows: deque[F] = deque()
        self.unfinished = 0
        self.max_held_back = 0
        """The most results that were held back at one time."""
        self.seconds_full = 0.0
        """How long rows could not be started because too many results were held back."""
        self._full_since: float | None = None

    @property
    def held_back(self) -> int:
        """Number of results that wait for a slower row."""
        return len(self.rows) - self.unfinished

    def has_room(self) -> bool:
        """Return whether another row may be started.

        Rows are started far ahead only past a slow row, not past a slow caller.
        """
        if self.unfinished >= self._places:
            return False
        ahead = self.held_back < HELD_BACK and not self.next_is_there()
        return ahead or len(self.rows) < self._places

    def start(self, row: F) -> None:
        """Append a row."""
        self.rows.append(row)
        if not row.done():
            self.unfinished += 1
            row.add_done_callback(self._report)

    def finished(self) -> None:
        """Count one row as finished, whichever it is."""
        self.unfinished -= 1
        self.max_held_back = max(self.max_held_back, self.held_back)
        if self._full_since is None and self.held_back >= HELD_BACK:
            self._full_since = time.monotonic()

    def next_is_there(self) -> bool:
        """Return whether the next result in order is finished."""
        return bool(self.rows) and self.rows[0].done()

    def pop(self) -> F:
        """Remove and return the next row in order."""
        row = self.rows.popleft()
        if self._full_since is not None and self.held_back < HELD_BACK:
            self.seconds_full += time.monotonic() - self._full_since
            self._full_since = None
        return row
