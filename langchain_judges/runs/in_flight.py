"""How many calls and rows of a run are in flight at a time, and the memory they take."""

from __future__ import annotations

import threading

from langchain_judges.methods.describe import is_local

BUSY = 2
"""Unfinished rows per call in flight: some rows plan or merge and wait for no call."""

PLACES, LOCAL_PLACES = 16, 4
"""Default number of calls in flight; a local model generates two replies at a time, and more
calls would only wait there."""


def places_of(judge: object) -> int:
    """Return the default number of calls in flight for a judge."""
    return LOCAL_PLACES if is_local(judge) else PLACES


_ROW, _CALL = 30, 70
"""Kilobytes of a started row, and of each of its calls in flight."""
_COPIES = 2.5
"""Bytes that a call in flight holds for each character of its row."""


def kilobytes_of(characters: int, calls: int) -> int:
    """Return about how many kilobytes a row takes while all of its calls are in flight.

    Measured with calls that wait for a batch job (`python -m tests.benchmarks.open_rows`).

    >>> kilobytes_of(1_000, calls=10)
    755
    """
    return round(_ROW + calls * (_CALL + _COPIES * characters / 1000))


class MemoryInUse:
    """Counts the memory of the started rows, from any thread.

    Args:
        most: The most megabytes of all of them; one row may be started in any case.
    """

    def __init__(self, most: float) -> None:
        """Count nothing yet."""
        self._most = 1000 * most
        self._taken = 0
        self._lock = threading.Lock()

    def has_room(self, kilobytes: int) -> bool:
        """Return whether another row may be started."""
        return not self._taken or self._taken + kilobytes <= self._most

    def take(self, kilobytes: int) -> None:
        """Count a row that is started."""
        with self._lock:
            self._taken += kilobytes

    def give_back(self, kilobytes: int) -> None:
        """Count a row that is finished."""
        with self._lock:
            self._taken -= kilobytes
