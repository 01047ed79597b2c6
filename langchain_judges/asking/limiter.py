"""Limits of a run: model calls in flight, and calls that are paid for.

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
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.rate_limiters import BaseRateLimiter

from langchain_judges.asking import models, reply_log
from langchain_judges.asking.effects import Effect, future_here, pending_future, wait_for
from langchain_judges.asking.reading import ASK_ERRORS, TokenUsage
from langchain_judges.errors import OptionError, OverBudget, RunStopped
from langchain_judges.rows.texts import BYTES
from langchain_judges.verdict import Usage, add_usage, no_usage

# Seconds between looks at the calls that are still in flight when a run ends.
_LOOK = 0.02


@dataclass
class CallLimiter:
    """A bounded number of places, handed out by rank, within a budget.

    Attributes:
        max_in_flight: Most calls in flight at one time.
        max_calls: Most replies that the run may receive; None for no bound.
        max_dollars: Dollars after which nothing more is asked. A call in flight counts as the
            mean of the replies, and until there is one the first is asked alone.
        price: Returns the dollars of a reply; None where no price is known.
        rate_limiter: Bounds how often a call is made.
        calls: Replies received.
        tokens: Theirs.
        cached_tokens: Those of them that a provider's cache had.
        cost: Their dollars.
        spent: What counts against `max_dollars`: their dollars, with an estimate by the length
            of the texts where nobody has counted the tokens.
        unpriced: Replies whose price is not known.
        answered: Replies by the name of the model that gave them, where another was asked.
    """

    max_in_flight: int
    _: KW_ONLY
    max_calls: int | None = None
    max_dollars: float | None = None
    price: Callable[[BaseChatModel, TokenUsage], float | None] | None = None
    rate_limiter: BaseRateLimiter | MinuteLimiter | None = None
    calls: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    spent: float = 0.0
    unpriced: int = 0
    answered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with every place free."""
        self._in_flight = 0
        self.closed: RunStopped | None = None
        self._at_once = False
        self._stop = pending_future()
        self._waiting: list[tuple[int, int, Future[None]]] = []
        self._ticket = itertools.count()
        self._lock = threading.Lock()

    async def enter(self, rank: int = 0, model: BaseChatModel | None = None) -> None:
        """Take a place, waiting for one if need be; lower ranks are served first.

        Raises:
            OptionError: The cost is bounded, and the price of `model` is not known.
            RunStopped: The limiter was closed.
            OverBudget: The budget is spent, and no call in flight can give anything back.
        """
        place: Future[None] = Future()
        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._ticket), place))
            self._serve()
        try:
            if not place.done():
                await Effect(place.result, lambda: future_here(place))
            place.result()
            if model is not None:
                await self._turn(model)
        except BaseException:
            if not place.cancel() and not place.cancelled() and not place.exception():
                self.leave()
            raise

    async def _turn(self, model: BaseChatModel) -> None:
        """Wait until the rate allows a call of a model whose price is known if it must be."""
        if self.max_dollars is not None and self.dollars(model, TokenUsage(1)) is None:
            raise OptionError(ASK_ERRORS["no_price"].format(models.model_name(model)))
        if isinstance(self.rate_limiter, MinuteLimiter):
            # A wait of minutes must not outlive a run that is stopped.
            await self.pause(self.rate_limiter.turn())
        elif rate_limiter := self.rate_limiter:
            await Effect.of(rate_limiter, "acquire")

    def dollars(self, model: BaseChatModel, paid: TokenUsage) -> float | None:
        """Dollars of a reply; None where they are not known."""
        return self.price(model, paid) if self.price else None

    def leave(
        self,
        paid: TokenUsage | None = None,
        cost: float | None = None,
        *,
        tokens: int = 0,
        spent: float = 0.0,
    ) -> None:
        """Give the place back, and book the reply that it brought, if one came.

        Args:
            paid: As the provider counts it; None: no reply came.
            cost: Its dollars, where they are known.
            tokens: What counts against the rate.
            spent: What counts against `max_dollars`.
        """
        if isinstance(self.rate_limiter, MinuteLimiter):
            self.rate_limiter.spend(tokens)
        with self._lock:
            if paid is not None:
                self.calls += 1
                self.tokens += paid.input_tokens + paid.output_tokens
                self.cached_tokens += paid.cached_tokens
                self.cost += cost or 0.0
                self.spent += spent
                self.unpriced += cost is None
                self.answered.update([paid.model] if paid.model else [])
            self._in_flight -= 1
            self._serve()

    def close(self, why: RunStopped, *, at_once: bool = False) -> None:
        """Hand out no more places; who waits is refused when the last call has come back.

        Refusing a branch makes its graph cancel the branches beside it, so with `at_once`
        the calls in flight are lost.
        """
        with self._lock:
            self.closed = why
            self._at_once = at_once
            self._serve()
            if not self._stop.done():
                self._stop.set_result(None)

    async def idle(self, seconds: float) -> None:
        """Wait until every call has come back, but only some seconds."""
        end = time.monotonic() + seconds
        while self._in_flight and time.monotonic() < end:
            await Effect(lambda: time.sleep(_LOOK), lambda: asyncio.sleep(_LOOK))

    def pause(self, seconds: float) -> Effect:
        """A wait of some seconds, which ends when the limiter is closed."""
        return wait_for(self._stop, seconds)

    def _serve(self) -> None:
        while self._waiting:
            refusal = self._refusal()
            if refusal and self._in_flight and not self._at_once:
                return
            if not refusal and self._in_flight >= self.max_in_flight:
                return
            place = heapq.heappop(self._waiting)[-1]
            if not place.set_running_or_notify_cancel():
                continue
            if refusal:
                place.set_exception(refusal)
                continue
            self._in_flight += 1
            place.set_result(None)

    def _refusal(self) -> RunStopped | None:
        if self.closed:
            return type(self.closed)(str(self.closed))
        if self.max_calls is not None and self.calls + self._in_flight >= self.max_calls:
            return OverBudget(f"the budget of {self.max_calls} calls is spent")
        if self.max_dollars is not None:
            # A call in flight will cost what others did; the first may cost all there is.
            mean = self.spent / self.calls if self.calls else self.max_dollars
            if self.spent + mean * self._in_flight >= self.max_dollars:
                return OverBudget(f"the budget of ${self.max_dollars:g} is spent")
        return None


class MinuteLimiter:
    """Spreads calls evenly over each minute, by their number and their tokens.

    Tokens are known only after a reply, so a call waits for those of earlier replies.

    Args:
        rpm: Maximum number of requests a minute.
        tpm: Maximum number of tokens a minute, input and output.

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

    def spend(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        with self._lock:
            self._next_token = max(self._next_token, time.monotonic()) + tokens * self._token

    def turn(self) -> float:
        """Take the next turn; return the seconds until then."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_call, self._next_token)
            self._next_call = turn + self._each
            return turn - now


# Takes the name of a request, its messages, and the schema of its reply.
Show = Callable[[str, list[BaseMessage], dict[str, Any]], None]


@dataclass
class RowInRun:
    """A row in its run: the limits of all, its replies, and its cost, even if it is stopped.

    Attributes:
        limiter: Of the run.
        rank: Of the pair.
        end_run: Ends the whole run for an error that no other call can escape.
        replies: Where its replies are written down; None where its graph's thread has them.
        usage: Its calls and tokens.
        cost: Dollars for all of its replies; None where the price of one is not known.
        shown: Takes each request in place of the model, where a row is only shown.
    """

    limiter: CallLimiter
    rank: int
    end_run: Callable[[Exception], None] | None = None
    replies: reply_log.ScopeReplies | None = None
    usage: Usage = field(default_factory=no_usage)
    cost: float | None = 0.0
    shown: Show | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def leave(
        self, model: BaseChatModel, paid: TokenUsage | None, prompt: Sequence[str], reply: str
    ) -> None:
        """Give a place back after a call.

        Args:
            model: Whose.
            paid: What it took; None: no reply came.
            prompt: By its texts and those of the reply tokens are estimated that nobody counts.
            reply: What came.
        """
        if paid is None:
            self.limiter.leave()
            return
        cost = self.limiter.dollars(model, paid)
        asked = models.model_name(model).partition(", else ")[0].partition(" with ")[0]
        if models.is_same_model(asked, paid.model):
            paid = paid._replace(model="")
        sizes = (len("".join(each).encode(errors="replace")) for each in (prompt, reply))
        read, written = (1 + size // BYTES for size in sizes)
        guess = paid._replace(tier=None) if paid.input_tokens else TokenUsage(read, 0, written)
        spent = self.limiter.dollars(model, guess) if cost is None else cost
        with self._lock:
            self.cost = None if self.cost is None or cost is None else self.cost + cost
        tokens = guess.input_tokens + guess.output_tokens
        self.limiter.leave(paid, cost, tokens=tokens, spent=spent or 0.0)

    def book(self, usage: Usage) -> None:
        """Add what a question cost."""
        with self._lock:
            self.usage = add_usage([self.usage, usage])
