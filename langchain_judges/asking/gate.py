"""How many model calls a run may have in flight, and how many it may pay for.

`judge_many` opens a gate for the whole run and every call of `ask()` passes through it,
whatever graph, thread or task it comes from. Older pairs go first, so that a stopped run
leaves little half-done work behind.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Protocol

from langchain_judges.asking.models import model_name
from langchain_judges.asking.paid import Paid
from langchain_judges.asking.rates import MinuteLimiter
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError, OverBudget, RunStopped

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.rate_limiters import BaseRateLimiter


class PriceList(Protocol):
    """What says what tokens cost."""

    def cost(self, model: BaseChatModel, paid: Paid) -> float | None:
        """Return what a reply cost in dollars; None where no price is known."""


class Gate:
    """A bounded number of places, handed out by rank, within a budget.

    Args:
        places: Most calls in flight at any moment.
        max_calls: Most replies that the run may receive; None for no bound.
        max_tokens: Tokens (input and output) after which nothing more is asked; replies
            in flight at that moment still come in.
        max_cost: Dollars after which nothing more is asked, likewise.
        prices: What tokens cost.
        limiter: Bounds how often a call is made.
    """

    def __init__(
        self,
        places: int,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: PriceList | None = None,
        limiter: BaseRateLimiter | None = None,
    ) -> None:
        """Open a gate with `places` free places."""
        self.max_cost = max_cost
        self.prices = prices
        self.limiter = limiter
        self.cost = 0.0
        self.unpriced = 0
        """Replies of models whose price is not known."""
        self.live = 0
        """Replies to ordinary calls for what batch jobs did not answer."""
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.calls = 0
        self.tokens = 0
        self._free = places
        self._in_flight = 0
        self._unwritten = 0
        self._closed: RunStopped | None = None
        self._at_once = False
        self._stop = threading.Event()
        self._pauses: set[Future[None]] = set()
        self._quiet: list[Future[None]] = []
        self._waiting: list[tuple[int, int, Future[None]]] = []
        self._ticket = itertools.count()
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether no more places are handed out."""
        return self._closed is not None

    def enter(self, rank: int = 0, model: BaseChatModel | None = None) -> Steps[None]:
        """Take a place, waiting for one if need be; lower ranks are served first.

        Raises:
            OptionError: The cost is bounded, and the price of `model` is not known.
            RunStopped: The gate was closed.
            OverBudget: The budget is spent, and no call in flight can give anything back.
        """
        place = self._queue(rank)
        try:
            if not place.done():
                yield Effect(place.result, lambda: asyncio.wrap_future(place))
            place.result()
            if model is not None:
                yield from self._turn(model)
        except BaseException:
            self._give_up(place)
            raise

    def _turn(self, model: BaseChatModel) -> Steps[None]:
        """Wait until the rate allows a call of a model whose price is known if it must be."""
        if self.max_cost is not None and self.price(model, Paid()) is None:
            raise OptionError(
                f"`max_cost` needs the price of {model_name(model)!r}; name a file of `prices`"
            )
        if isinstance(self.limiter, MinuteLimiter):
            # A wait of minutes must not outlive a run that is stopped.
            yield self.pause(self.limiter.turn())
        elif limiter := self.limiter:
            yield Effect(limiter.acquire, limiter.aacquire)

    def price(self, model: BaseChatModel, paid: Paid) -> float | None:
        """Return what a reply cost, in dollars; None where that is not known."""
        return self.prices.cost(model, paid) if self.prices else None

    def leave(
        self,
        *,
        calls: int = 0,
        tokens: int = 0,
        cost: float | None = None,
        unwritten: int = 0,
        live: bool = False,
    ) -> None:
        """Give the place back, and book the replies, tokens and dollars that it brought.

        Of `unwritten` replies `wrote` says later that they are written down. Nobody is refused
        before: a refusal makes a graph cancel its other branches.
        """
        if spend := getattr(self.limiter, "spend", None):
            spend(tokens)
        with self._lock:
            self.cost += cost or 0.0
            self.unpriced += calls if cost is None else 0
            self.calls += calls
            self.live += live
            self.tokens += tokens
            self._unwritten += unwritten
            self._in_flight -= 1
            self._free += 1
            self._serve()
            self._tell_quiet()

    def wrote(self, replies: int) -> None:
        """Count replies as used or written down."""
        with self._lock:
            self._unwritten -= replies
            self._serve()
            self._tell_quiet()

    def close(self, why: RunStopped, *, at_once: bool = False) -> None:
        """Hand out no more places; who waits is refused when the last call has come back.

        Refusing a branch makes its graph cancel the branches beside it, so with `at_once`
        the calls in flight are lost.
        """
        with self._lock:
            self._closed = why
            self._at_once = at_once
            self._serve()
            pauses, self._pauses = self._pauses, set()
        self._stop.set()
        for pause in pauses:
            pause.set_result(None)

    def idle(self, seconds: float) -> Steps[None]:
        """Wait until every call has come back and is used, but only some seconds."""
        quiet: Future[None] = Future()
        with self._lock:
            self._quiet.append(quiet)
            self._tell_quiet()
        yield Effect(
            lambda: wait([quiet], seconds),
            lambda: asyncio.wait([asyncio.wrap_future(quiet)], timeout=seconds),
        )

    def _tell_quiet(self) -> None:
        if self._in_flight or self._unwritten:
            return
        quiet, self._quiet = self._quiet, []
        for each in quiet:
            if each.set_running_or_notify_cancel():
                each.set_result(None)

    def pause(self, seconds: float) -> Effect:
        """Return a wait of some seconds, which ends when the gate is closed."""
        return Effect(lambda: self._stop.wait(seconds), lambda: self._sleep(seconds))

    async def _sleep(self, seconds: float) -> None:
        pause: Future[None] = Future()
        with self._lock:
            if self._closed:
                return
            self._pauses.add(pause)
        try:
            await asyncio.wait([asyncio.wrap_future(pause)], timeout=seconds)
        finally:
            with self._lock:
                self._pauses.discard(pause)

    def _queue(self, rank: int) -> Future[None]:
        place: Future[None] = Future()
        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._ticket), place))
            self._serve()
        return place

    def _serve(self) -> None:
        while self._waiting:
            refusal = self._refusal()
            if refusal and (self._in_flight or self._unwritten) and not self._at_once:
                return
            if not refusal and not self._free:
                return
            place = heapq.heappop(self._waiting)[-1]
            if not place.set_running_or_notify_cancel():
                continue
            if refusal:
                place.set_exception(refusal)
                continue
            self._free -= 1
            self._in_flight += 1
            place.set_result(None)

    def _refusal(self) -> RunStopped | None:
        if self._closed:
            return type(self._closed)(str(self._closed))
        if self.max_calls is not None and self.calls + self._in_flight >= self.max_calls:
            return OverBudget(f"the budget of {self.max_calls} calls is spent")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return OverBudget(f"the budget of {self.max_tokens} tokens is spent")
        if self.max_cost is not None and self.cost >= self.max_cost:
            return OverBudget(f"the budget of ${self.max_cost:g} is spent")
        return None

    def _give_up(self, place: Future[None]) -> None:
        granted = not place.cancel() and not place.cancelled() and not place.exception()
        if granted:
            self.leave()
