"""Sends a request until a reply comes or an error that will not pass; books what it cost."""

from __future__ import annotations

import asyncio
import json
import time
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from langchain_judges.asking.channel import Channel, ReplyRequest, Sampling
from langchain_judges.asking.complaints import complaint_of
from langchain_judges.asking.deadline import within
from langchain_judges.asking.faults import (
    can_pass,
    diagnosis,
    in_a_line,
    paid_despite,
    paid_error,
    rejects,
    status_of,
    wait_after,
)
from langchain_judges.asking.ledger import LEDGER
from langchain_judges.asking.models import model_name
from langchain_judges.asking.models.masked import without_secrets
from langchain_judges.asking.paid import Paid, paid_for
from langchain_judges.asking.prompt_cache import marked
from langchain_judges.asking.question import Asking
from langchain_judges.asking.replies.reading import Problem
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import ModelAccessError
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

    Where a model caches only what is marked, what other calls send too is marked, and the
    first of them is answered before the others are sent.
    """
    question = asking.question
    cache = question.channel.prompt_cache if question.shares_material else None
    prefix = marked(messages, question.shape) if cache else None
    if cache is None or prefix is None:
        return (yield from _until_answered(asking, messages))
    return (
        yield from cache.behind_first(
            prefix.key,
            lambda: _until_answered(asking, prefix.messages),
            lambda sent: sent.message is not None,
        )
    )


def _until_answered(asking: Asking, messages: list[BaseMessage]) -> Steps[Sent]:
    channel, question = asking.question.channel, asking.question
    wait = FIRST_WAIT
    attempts = ATTEMPTS
    while True:
        sampling = channel.sampling(question.sampled, asking.seed)
        request = channel.request(
            question.shape,
            sampling,
            logprobs=question.logprobs,
            alternatives=question.alternatives,
        )
        outcome = yield from _call(asking, request, messages, sampling)
        if isinstance(outcome, AIMessage):
            return Sent(outcome, request, None)
        error = outcome
        if problem := paid_error(error):
            return Sent(None, request, problem)
        asking.cost["retries"] += 1
        if rejects(error):
            prompt = [message.text for message in messages]
            if channel.learn(request, complaint_of(error, prompt)):
                continue
        attempts -= 1
        if not attempts or not can_pass(error):
            return Sent(None, request, diagnosis(error, channel.secrets.mask))
        yield _pause(wait_after(error, wait))
        wait *= 2


def _call(
    asking: Asking,
    request: ReplyRequest,
    messages: list[BaseMessage],
    sampling: Sampling,
) -> Steps[AIMessage | Exception]:
    """Make one call through the gate and book what it cost; return the reply, or the error."""
    config = asking.config(sampling)
    runnable, settings = request.runnable, request.settings
    prompt = request.messages(messages)
    channel = asking.question.channel
    ledger = LEDGER.get()
    asking.wrote()
    if ledger:
        yield from ledger.gate.enter(ledger.rank, channel.model)
    paid: Paid | None = None
    try:
        call = Effect(
            lambda: runnable.invoke(prompt, config, **settings),
            lambda: runnable.ainvoke(prompt, config, **settings),
        )
        result = yield within(channel.deadline, call)
        # LangChain's cache may hold what the caller's own model replied.
        message = without_secrets(_message(result), channel.secrets)
        channel.answered = True
        seed, logprobs = asking.seed is not None, asking.question.logprobs
        asking.lacking |= channel.lacking(request, seed=seed, logprobs=logprobs)
        paid = paid_for(message)
        return message
    except Exception as exc:  # noqa: BLE001 - a model may raise anything, and one unit fails
        if denied := _denied(exc, channel):
            # The provider's own words may hold the key: a traceback would show them.
            raise denied from None
        paid = paid_despite(exc)
        return exc
    finally:
        if paid is not None:
            _book(asking.cost, paid)
        if ledger:
            asking.unwritten += paid is not None
            ledger.leave(channel.model, paid)


def _denied(error: Exception, channel: Channel) -> ModelAccessError | None:
    """Return the exception for an error that no other request of the model can escape."""
    status = status_of(error)
    if status == 401 or (status in {403, 404} and not channel.answered):
        name = model_name(channel.model)
        reason = in_a_line(error, channel.secrets.mask)
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


def _book(cost: StepUsage, paid: Paid) -> None:
    """Add what a reply took to the step's cost."""
    cost["calls"] += 1
    cost["input_tokens"] += paid.input_tokens
    cost["output_tokens"] += paid.output_tokens
    cost["cached_tokens"] += paid.cached_tokens


def _pause(seconds: float) -> Effect:
    if ledger := LEDGER.get():
        return ledger.gate.pause(seconds)
    return Effect(lambda: time.sleep(seconds), lambda: asyncio.sleep(seconds))
