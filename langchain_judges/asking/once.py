"""What several rows share, such as a plan or a panel: asked once, whoever comes first."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from langchain_judges.asking.gate import Gate
from langchain_judges.asking.steps import Steps

T = TypeVar("T")


class Once(Generic[T]):
    """Computes a value once for each key, however many callers want it at the same time.

    Args:
        size: Values kept; the oldest that nobody waits for go first.
    """

    def __init__(self, size: int = 1024) -> None:
        """Start empty."""
        self._size = size
        self._doors: OrderedDict[str, Gate] = OrderedDict()
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
            yield from door.enter()
            try:
                if key in self._values:
                    return self._values[key], True
                value = yield from compute()
                if keep(value):
                    self._values[key] = value
                return value, False
            finally:
                door.leave()
        finally:
            self._leave(key)

    def _enter(self, key: str) -> Gate:
        with self._lock:
            self._callers[key] += 1
            door = self._doors.setdefault(key, Gate(1))
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
