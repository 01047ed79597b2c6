"""How many model calls a run may have in flight, and how many it may pay for.

`judge_many` opens a limiter for the whole run and every call of `ask()` passes through it,
whatever graph, thread or task it comes from. Older pairs go first, so that a stopped run
leaves little half-done work behind.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.rate_limiters import BaseRateLimiter

from langchain_judges.asking.models import model_name
from langchain_judges.asking.steps import Steps, Wait, end_of, unfinished
from langchain_judges.asking.store import ScopeReplies
from langchain_judges.errors import OptionError, OverBudget, RunStopped
from langchain_judges.verdict import Usage, add_usage, no_usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class CallLimiter:
    """A bounded number of places, handed out by rank, within a budget.

    Args:
        places: Most calls in flight at any moment.
        max_calls: Most replies that the run may receive; None for no bound.
        max_tokens: Tokens (input and output) after which nothing more is asked; replies
            in flight at that moment still come in.
        max_cost: Dollars after which nothing more is asked, likewise.
        price: Returns the dollars of a reply; None where no price is known.
        rate_limiter: Bounds how often a call is made.
    """

    def __init__(
        self,
        places: int,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        price: Callable[[BaseChatModel, TokenUsage], float | None] | None = None,
        rate_limiter: BaseRateLimiter | None = None,
    ) -> None:
        """Open a limiter with `places` free places."""
        self.max_cost = max_cost
        self.price = price
        self.rate_limiter = rate_limiter
        self.cost = 0.0
        self.unpriced = 0
        """Replies of models whose price is not known."""
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.calls = 0
        self.tokens = 0
        self.cached_tokens = 0
        self._free = places
        self._in_flight = 0
        self._closed: RunStopped | None = None
        self._at_once = False
        self._stop = unfinished()
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
            RunStopped: The limiter was closed.
            OverBudget: The budget is spent, and no call in flight can give anything back.
        """
        place = self._queue(rank)
        try:
            if not place.done():
                yield Wait(place.result, lambda: asyncio.wrap_future(place))
            place.result()
            if model is not None:
                yield from self._turn(model)
        except BaseException:
            self._give_up(place)
            raise

    def _turn(self, model: BaseChatModel) -> Steps[None]:
        """Wait until the rate allows a call of a model whose price is known if it must be."""
        if self.max_cost is not None and self.dollars(model, TokenUsage()) is None:
            raise OptionError(
                f"`max_cost` needs the price of {model_name(model)!r}; name a file of `prices`"
            )
        if isinstance(self.rate_limiter, MinuteLimiter):
            # A wait of minutes must not outlive a run that is stopped.
            yield self.pause(self.rate_limiter.turn())
        elif rate_limiter := self.rate_limiter:
            yield Wait(rate_limiter.acquire, rate_limiter.aacquire)

    def dollars(self, model: BaseChatModel, paid: TokenUsage) -> float | None:
        """Return what a reply cost; None where that is not known."""
        return self.price(model, paid) if self.price else None

    def leave(
        self, *, calls: int = 0, tokens: int = 0, cached: int = 0, cost: float | None = None
    ) -> None:
        """Give the place back, and book the replies, tokens and dollars that it brought."""
        if spend := getattr(self.rate_limiter, "spend", None):
            spend(tokens)
        with self._lock:
            self.cost += cost or 0.0
            self.unpriced += calls if cost is None else 0
            self.calls += calls
            self.tokens += tokens
            self.cached_tokens += cached
            self._in_flight -= 1
            self._free += 1
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
            if not self._stop.done():
                self._stop.set_result(None)

    def idle(self, seconds: float) -> Steps[None]:
        """Wait until every call has come back, but only some seconds."""
        quiet = unfinished()
        with self._lock:
            self._quiet.append(quiet)
            self._tell_quiet()
        yield end_of(quiet, seconds)

    def _tell_quiet(self) -> None:
        if self._in_flight:
            return
        quiet, self._quiet = self._quiet, []
        for each in quiet:
            each.set_result(None)

    def pause(self, seconds: float) -> Wait:
        """Return a wait of some seconds, which ends when the limiter is closed."""
        return end_of(self._stop, seconds)

    def _queue(self, rank: int) -> Future[None]:
        place: Future[None] = Future()
        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._ticket), place))
            self._serve()
        return place

    def _serve(self) -> None:
        while self._waiting:
            refusal = self._refusal()
            if refusal and self._in_flight and not self._at_once:
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


class MinuteLimiter(BaseRateLimiter):
    """Spreads calls evenly over each minute, by their number and their tokens.

    Tokens are known only after a reply, so a call waits for those of earlier replies.

    Args:
        rpm: Most requests a minute.
        tpm: Most tokens a minute, input and output.

    Raises:
        OptionError: Neither is given, or one is not positive.
    """

    def __init__(self, *, rpm: float | None = None, tpm: float | None = None) -> None:
        """Start with nothing used."""
        rates = [rate for rate in (rpm, tpm) if rate is not None]
        if not rates or min(rates) <= 0:
            raise OptionError(f"`rpm` or `tpm` must be a positive number, got {rpm!r}, {tpm!r}")
        self._each = 60 / rpm if rpm else 0.0
        self._token = 60 / tpm if tpm else 0.0
        self._next_call = self._next_token = 0.0
        self._lock = threading.Lock()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Wait for the turn of a call; without `blocking`, say whether it is now."""
        wait = self.turn(blocking=blocking)
        if blocking:
            time.sleep(wait)
        return blocking or not wait

    async def aacquire(self, *, blocking: bool = True) -> bool:
        """Wait for the turn of a call; without `blocking`, say whether it is now."""
        wait = self.turn(blocking=blocking)
        if blocking:
            await asyncio.sleep(wait)
        return blocking or not wait

    def spend(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        with self._lock:
            self._next_token = max(self._next_token, time.monotonic()) + tokens * self._token

    def turn(self, *, blocking: bool = True) -> float:
        """Return the seconds until the next turn, and take it if they will be waited for."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_call, self._next_token)
            if blocking or turn <= now:
                self._next_call = turn + self._each
            return turn - now


@dataclass
class RowCost:
    """What one pair of a run has cost so far; kept even if its graph is stopped midway."""

    limiter: CallLimiter
    rank: int
    end_run: Callable[[Exception], None] | None = None
    """Ends the whole run for an error that no other call can escape."""
    replies: ScopeReplies | None = None
    """Where its replies are written down; None where its graph's thread has them."""
    usage: Usage = field(default_factory=no_usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _dollars: float = 0.0
    _priced: bool = True

    @property
    def cost(self) -> float | None:
        """Dollars for all of its replies; None where the price of one is not known."""
        return self._dollars if self._priced else None

    def leave(self, model: BaseChatModel, paid: TokenUsage | None) -> None:
        """Give a place back after a call; None: no reply came."""
        if paid is None:
            self.limiter.leave()
            return
        cost = self.limiter.dollars(model, paid)
        with self._lock:
            self._dollars += cost or 0.0
            self._priced = self._priced and cost is not None
        self.limiter.leave(calls=1, tokens=paid.tokens, cached=paid.cached_tokens, cost=cost)

    def book(self, usage: Usage) -> None:
        """Add what a question cost."""
        with self._lock:
            self.usage = add_usage([self.usage, usage])


ROW_COST: ContextVar[RowCost | None] = ContextVar("langchain_judges_row_cost", default=None)
"""The row_cost of the pair being judged; None outside `judge_many`."""


class TokenUsage(NamedTuple):
    """The tokens of one reply."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider read from its prompt cache."""
    output_tokens: int = 0
    tier: str | None = None
    """As the provider calls its service tier: `default`, `flex`, `priority`; of a reply that a
    batch job brought, `batch`."""
    written_tokens: int = 0
    """The part of `input_tokens` that the provider wrote to its prompt cache for five minutes,
    where it has a price of its own, as Anthropic's has."""

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


def token_usage(message: AIMessage) -> TokenUsage:
    """Return what a reply took."""
    usage: Mapping[str, Any] = message.usage_metadata or {}
    # LangChain writes the tier before what it counts of a reply in another tier than the
    # default one: `flex_cache_read`.
    details = (usage.get("input_token_details") or {}).items()
    cached = sum(count or 0 for name, count in details if name.endswith("cache_read"))
    # The second name where Anthropic also says for how long it is held; the first is then 0.
    writes = {"cache_creation", "ephemeral_5m_input_tokens"}
    written = sum(count or 0 for name, count in details if name in writes)
    metadata = message.response_metadata
    tier = metadata.get("service_tier") or (metadata.get("usage") or {}).get("service_tier")
    tokens = usage.get("input_tokens", 0), cached, usage.get("output_tokens", 0)
    return TokenUsage(*tokens, tier, written)
