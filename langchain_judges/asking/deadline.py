"""A deadline for a whole reply: a client's time-out only bounds the wait for the next part."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextvars import copy_context

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.steps import Effect

SLACK = 5.0
"""Seconds beyond a model's time-out, so that a silent server meets that one first."""
_FIELDS = ("request_timeout", "timeout", "default_request_timeout")


def deadline_of(model: BaseChatModel) -> float | None:
    """Return the seconds that a whole reply may take; None for a model without a time-out."""
    for field in _FIELDS:
        seconds = getattr(model, field, None)
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
            return seconds + SLACK
    return None


def within(seconds: float | None, effect: Effect) -> Effect:
    """Return an effect that raises `TimeoutError` if it takes longer than some seconds.

    A call in a thread cannot be broken off: it is left behind, and ends with the process at
    the latest.
    """
    if seconds is None:
        return effect
    return Effect(lambda: _in_thread(effect, seconds), lambda: _in_loop(effect, seconds))


def _late(seconds: float) -> TimeoutError:
    return TimeoutError(f"no whole reply within {seconds:g} seconds")


def _in_thread(effect: Effect, seconds: float) -> object:
    result: Future[object] = Future()
    context = copy_context()

    def call() -> None:
        try:
            result.set_result(context.run(effect.now))
        except BaseException as exc:  # noqa: BLE001 - raised again where the result is wanted
            result.set_exception(exc)

    threading.Thread(target=call, name="model call", daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            return result.result()
        raise _late(seconds) from None


async def _in_loop(effect: Effect, seconds: float) -> object:
    try:
        async with asyncio.timeout(seconds) as scope:
            return await effect.later()
    except TimeoutError:
        if scope.expired():
            raise _late(seconds) from None
        raise
