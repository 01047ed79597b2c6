"""Sends a request until a reply comes or an error that will not pass; books what it cost."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from langchain_judges.asking.adapter import ModelAdapter, ReplyRequest, Sampling
from langchain_judges.asking.faults import (
    can_pass,
    complaint_of,
    diagnosis,
    in_a_line,
    paid_error,
    rejects,
    status_of,
    usage_despite,
    wait_after,
)
from langchain_judges.asking.limiter import ROW_COST, TokenUsage, token_usage
from langchain_judges.asking.models import model_name
from langchain_judges.asking.models.secrets import without_secrets
from langchain_judges.asking.prompt_cache import beginnings
from langchain_judges.asking.question import Asking
from langchain_judges.asking.replies.reading import Problem
from langchain_judges.asking.signals import check_stop, pause
from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.errors import ModelAccessError, RunStopped
from langchain_judges.verdict import StepUsage

ATTEMPTS = 4
"""How often a request is sent if errors that can pass keep it from being answered."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each further wait is twice as long."""


class Sent(NamedTuple):
    """What came of a request."""

    message: AIMessage | None
    request: ReplyRequest
    """As it was sent last."""
    problem: Problem | None
    """Why there is no message."""


def send(asking: Asking, messages: list[BaseMessage]) -> Steps[Sent]:
    """Send the messages until a reply comes, or an error that will not pass.

    Where the provider caches how prompts begin, the first call that begins so is answered
    before the others are sent.
    """
    question = asking.question
    cache = question.adapter.prompt_cache if question.cache_first else None
    if cache is None or (cache.needs_marks and not question.shares_material):
        return (yield from _until_answered(asking, messages))
    found = beginnings(messages, question.shape)
    if found is None:
        return (yield from _until_answered(asking, messages))
    if cache.needs_marks:
        messages = found.marked
    asking.cache_key = found.keys[0]
    return (
        yield from cache.behind_first(
            found.keys[-1:] if cache.needs_marks else found.keys,
            lambda: _until_answered(asking, messages),
            lambda sent: sent.message is not None,
        )
    )


def _until_answered(asking: Asking, messages: list[BaseMessage]) -> Steps[Sent]:
    adapter, question = asking.question.adapter, asking.question
    wait = FIRST_WAIT
    attempts = ATTEMPTS
    while True:
        sampling = adapter.sampling(question.sampled, asking.seed)
        request = adapter.request(
            question.shape,
            sampling,
            logprobs=question.logprobs,
            alternatives=question.alternatives,
            seed=asking.seed,
        )
        request = adapter.with_cache_key(request, asking.cache_key)
        tried = yield from adapter.tried(
            request, partial(_attempt, asking, request, messages, sampling)
        )
        if tried is None:
            continue
        outcome, has_learnt = tried
        if isinstance(outcome, AIMessage):
            return Sent(outcome, request, None)
        error = outcome
        if problem := paid_error(error):
            return Sent(None, request, problem)
        asking.cost["retries"] += 1
        if has_learnt:
            continue
        attempts -= 1
        if not attempts or not can_pass(error):
            return Sent(None, request, diagnosis(error, adapter.secrets.mask))
        yield _pause(wait_after(error, wait))
        wait *= 2


def _attempt(
    asking: Asking,
    request: ReplyRequest,
    messages: list[BaseMessage],
    sampling: Sampling,
) -> Steps[tuple[AIMessage | Exception, bool]]:
    """Make one call; return what came, and whether a refusal says how to ask instead."""
    outcome = yield from _call(asking, request, messages, sampling)
    if isinstance(outcome, AIMessage) or paid_error(outcome) or not rejects(outcome):
        return outcome, False
    prompt = [message.text for message in messages]
    return outcome, asking.question.adapter.learn(request, complaint_of(outcome, prompt))


def _call(
    asking: Asking,
    request: ReplyRequest,
    messages: list[BaseMessage],
    sampling: Sampling,
) -> Steps[AIMessage | Exception]:
    """Make one call, once the limiter allows it, and book its cost."""
    config = asking.config(sampling)
    runnable, settings = request.runnable, request.settings
    prompt = request.messages(messages)
    adapter = asking.question.adapter
    row_cost = ROW_COST.get()
    asking.wrote()
    if row_cost:
        yield from row_cost.limiter.enter(row_cost.rank, adapter.model)
    paid: TokenUsage | None = None
    try:
        check_stop()
        call = Wait(
            lambda: runnable.invoke(prompt, config, **settings),
            lambda: runnable.ainvoke(prompt, config, **settings),
        )
        result = yield within(adapter.deadline, call)
        # LangChain's cache may hold what the caller's own model replied.
        message = without_secrets(_message(result), adapter.secrets)
        adapter.answered = True
        seed, logprobs = asking.seed is not None, asking.question.logprobs
        asking.lacking |= adapter.lacking(request, seed=seed, logprobs=logprobs)
        paid = token_usage(message)
        return message
    except RunStopped:
        raise
    except Exception as exc:  # noqa: BLE001 - a model may raise anything, and one unit fails
        if denied := _denied(exc, adapter):
            # The provider's own words may hold the key: a traceback would show them.
            raise denied from None
        paid = usage_despite(exc)
        return exc
    finally:
        if paid is not None:
            _book(asking.cost, paid)
        if row_cost:
            asking.unwritten += paid is not None
            row_cost.leave(adapter.model, paid)


def _denied(error: Exception, adapter: ModelAdapter) -> ModelAccessError | None:
    """Return the exception for an error that no other request of the model can escape."""
    status = status_of(error)
    if status == 401 or (status in {403, 404} and not adapter.answered):
        name = model_name(adapter.model)
        reason = in_a_line(error, adapter.secrets.mask)
        return ModelAccessError(f"The model {name!r} refuses every call: {reason}", status)
    return None


def _message(result: object) -> AIMessage:
    """Return the raw reply, whichever rung it came by."""
    if isinstance(result, AIMessage):
        return result
    raw = result.get("raw") if isinstance(result, dict) else None
    if isinstance(raw, AIMessage):
        return raw
    parsed = result.get("parsed", result) if isinstance(result, dict) else result
    if isinstance(parsed, BaseModel):
        parsed = parsed.model_dump()
    return AIMessage("" if parsed is None else json.dumps(parsed))


def _book(cost: StepUsage, paid: TokenUsage) -> None:
    """Add what a reply took to the step's cost."""
    cost["calls"] += 1
    cost["input_tokens"] += paid.input_tokens
    cost["output_tokens"] += paid.output_tokens
    cost["cached_tokens"] += paid.cached_tokens


def _pause(seconds: float) -> Wait:
    if row_cost := ROW_COST.get():
        return row_cost.limiter.pause(seconds)
    return pause(seconds)


def within(seconds: float | None, effect: Wait) -> Wait:
    """Return an effect that raises `TimeoutError` if it takes longer than some seconds.

    A call in a thread cannot be broken off: it is left behind, and ends with the process at
    the latest.
    """
    if seconds is None:
        return effect
    return Wait(lambda: _in_thread(effect, seconds), lambda: _in_loop(effect, seconds))


def _late(seconds: float) -> TimeoutError:
    return TimeoutError(f"no whole reply within {seconds:g} seconds")


def _in_thread(effect: Wait, seconds: float) -> object:
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


async def _in_loop(effect: Wait, seconds: float) -> object:
    try:
        async with asyncio.timeout(seconds) as scope:
            return await effect.later()
    except TimeoutError:
        if scope.expired():
            raise _late(seconds) from None
        raise
