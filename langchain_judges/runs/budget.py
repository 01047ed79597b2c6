"""What bounds a run: calls, tokens, dollars, and rows that wait for a slower one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from langchain_judges.asking.limiter import CallLimiter, RowCost
from langchain_judges.errors import OptionError
from langchain_judges.methods.describe import is_local
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.prices import Prices
from langchain_judges.runs.summary import Summary

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures


class RowBudget:
    """What the next row may cost, in addition to what the rows in progress may still cost.

    Args:
        limiter: Counts what was spent, and holds the limits.
        summary: Counts the rows.
        calls_each: The most calls that a row needs.

    Attributes:
        exhausted: Whether a row was refused; no other row is started then.
    """

    def __init__(self, limiter: CallLimiter, summary: Summary, calls_each: int) -> None:
        """Nothing is spent yet."""
        self.exhausted = False
        self._limiter, self._summary, self._calls_each = limiter, summary, calls_each

    def allows(self, active: Sequence[RowCost]) -> bool:
        """Return whether one more row can be finished in addition to the active ones."""
        limiter, each = self._limiter, self._calls_each
        if self.exhausted:
            return False
        if limiter.max_calls is not None:
            promised = sum(max(0, each - row_cost.usage["calls"]) for row_cost in active)
            if limiter.calls + promised + max(each, 1) > limiter.max_calls:
                return False
        new_rows = self._summary.rows - self._summary.resumed
        limits = (limiter.tokens, limiter.max_tokens), (limiter.cost, limiter.max_cost)
        for usage, limit in limits:
            if limit is None:
                continue
            # The cost of a row is not known before the first is finished.
            mean = usage / new_rows if new_rows else limit * len(active)
            if usage + mean * (len(active) + bool(new_rows)) >= limit:
                return False
        return True

    def why_not(self) -> str:
        """Return why a row is not started."""
        most = self._limiter.max_calls
        if most is not None and most < self._calls_each and not self._limiter.calls:
            return f"a pair may need {self._calls_each} calls, and the budget is {most}"
        return "the budget is spent"


def limiter_of(options: RunOptions, places: int, prices: Prices | None) -> CallLimiter:
    """Return what lets so many calls through at a time, within the budget."""
    return CallLimiter(
        places,
        max_calls=options.max_calls,
        max_tokens=options.max_tokens,
        max_cost=options.max_cost,
        rate_limiter=options.rate_limiter,
        price=prices.cost if prices else None,
    )


def prices_of(options: RunOptions) -> Prices | None:
    """Return the prices of a run, which its options name.

    Raises:
        OptionError: The cost is bounded and no prices are named.
    """
    if options.max_cost is not None and options.prices is None:
        raise OptionError("`max_cost` needs `prices`")
    return None if options.prices is None else Prices.read(options.prices)


# Unfinished rows per call in flight: some rows plan or merge and wait for no call.
BUSY = 2
# Default number of calls in flight; a local model generates two replies at a time, and more
# calls would only wait there.
PLACES, LOCAL_PLACES = 16, 4


def places_of(judge: object) -> int:
    """Return the default number of calls in flight for a judge."""
    return LOCAL_PLACES if is_local(judge) else PLACES


HELD_BACK = 1_000
"""Finished results that may wait for a slower row; no row is started while so many do."""


F = TypeVar("F", bound="concurrent.futures.Future[Any] | asyncio.Future[Any]")


class Window(Generic[F]):
    """Futures in the order of their rows, with bounds on unfinished and on finished ones.

    Only the thread or event loop that owns it may call its methods.

    Args:
        places: The most unfinished rows.
        report: Is called with the name of a future when it is done, from any thread.
    """

    def __init__(self, places: int, report: Callable[[Any], object]) -> None:
        """Create an empty window."""
        self._places = places
        self._report = report
        self.rows: deque[F] = deque()
        self.unfinished = 0

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

    def next_is_there(self) -> bool:
        """Return whether the next result in order is finished."""
        return bool(self.rows) and self.rows[0].done()

    def pop(self) -> F:
        """Remove and return the next row in order."""
        return self.rows.popleft()
