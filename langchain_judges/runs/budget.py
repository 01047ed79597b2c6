"""The budget of a run: what is counted, and whether it allows one more row to be finished."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.asking.limiter import CallLimiter, RowCost
from langchain_judges.errors import OptionError
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.prices import Prices
from langchain_judges.runs.summary import Summary


class RowBudget:
    """What the next row may cost, in addition to what the rows in progress may still cost.

    Args:
        limiter: Counts what was spent, and holds the limits.
        summary: Counts the rows.
        calls_each: The most calls that a row needs.
    """

    def __init__(self, limiter: CallLimiter, summary: Summary, calls_each: int) -> None:
        """Nothing is spent yet."""
        self.exhausted = False
        """Whether a row was refused; no other row is started then."""
        self._limiter, self._summary, self._calls_each = limiter, summary, calls_each
        self._fewest_calls = 0

    def learn(self, calls: int) -> None:
        """Take the number of calls of a judged row."""
        if calls:
            self._fewest_calls = min(self._fewest_calls or calls, calls)

    def allows(self, active: Sequence[RowCost]) -> bool:
        """Return whether one more row can be finished in addition to the active ones."""
        return not self.exhausted and self._has_calls(active) and self._has_means(active)

    def _has_calls(self, active: Sequence[RowCost]) -> bool:
        limiter, each = self._limiter, self._calls_each
        if limiter.max_calls is None:
            return True
        if not active and self._fewest_calls:
            # Work that rows share, such as a panel, may already be paid for.
            each = min(each, self._fewest_calls)
        promised = sum(max(0, each - row_cost.usage["calls"]) for row_cost in active)
        return limiter.calls + promised + max(each, 1) <= limiter.max_calls

    def _has_means(self, active: Sequence[RowCost]) -> bool:
        """Return whether tokens and dollars are left for a row of mean cost."""
        limiter = self._limiter
        new_rows = self._summary.rows - self._summary.resumed
        for usage, limit in (
            (limiter.tokens, limiter.max_tokens),
            (limiter.cost, limiter.max_cost),
        ):
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
        prices=prices,
        rate_limiter=options.rate_limiter,
    )


def prices_of(options: RunOptions) -> Prices | None:
    """Return the prices of a run, which its options name.

    Raises:
        OptionError: The cost is bounded and no prices are named.
    """
    if options.max_cost is not None and options.prices is None:
        raise OptionError("`max_cost` needs `prices`")
    return None if options.prices is None else Prices.read(options.prices)
