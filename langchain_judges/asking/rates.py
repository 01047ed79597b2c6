"""Requests and tokens a minute, as a rate limiter of LangChain's."""

from __future__ import annotations

import asyncio
import threading
import time

from langchain_core.rate_limiters import BaseRateLimiter

from langchain_judges.errors import OptionError


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
