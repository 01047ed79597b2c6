"""A question, what asking it costs, and its request until a reply or an error is final."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
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
from langchain_judges.asking.prompt_cache import beginnings
from langchain_judges.asking.reading import OwnPrompt, Parse, Problem, ReplyData
from langchain_judges.asking.signals import check_stop, pause
from langchain_judges.asking.steps import Steps, Wait, end_of, unfinished
from langchain_judges.asking.store import ThreadReplies
from langchain_judges.errors import ModelAccessError, RunStopped
from langchain_judges.orders import Order
from langchain_judges.verdict import Failure, StepUsage, Usage, no_step_usage, no_usage

Measurements = dict[str, Any]
"""What was read of a reply itself beside its data, by name: plain JSON."""


@dataclass(frozen=True)
class Question:
    """What a step asks, the same for every unit it works on."""

    method: str
    step: str
    adapter: ModelAdapter
    prompt: ChatPromptTemplate
    shape: type[BaseModel]
    """What the reply must look like; its bounds and choices are checked."""
    version: str
    """Hash of the method's prompts, for traces and cache keys."""
    label: str = ""
    """What its calls are called in traces, if not by the step; `{unit}` puts the unit there."""
    parse: Parse | None = None
    """Reads a reply in plain words, for models that ignore the format."""
    partial: type[BaseModel] | None = None
    """A laxer shape, to save what can be read of a reply that stays unusable."""
    measure: Callable[[AIMessage, ReplyData], Measurements] | None = None
    """Reads what only the reply itself tells, such as token log-probabilities, of the data
    that were read from it."""
    measured_as: str = ""
    """What `measure` reads, where it can read more than one thing; for cache keys."""
    sampled: bool = False
    """Whether several replies to the same prompt are wanted."""
    cache_first: bool = True
    """Whether the first of calls that begin alike is answered before the others are sent."""
    shares_material: bool = False
    """Whether other calls show the same material and take a reply of the same shape."""
    logprobs: bool = False
    alternatives: int = 0
    """Other tokens whose log-probabilities come with those of each token."""
    repairs: int = 1
    """Repair turns after an unusable reply; each is a paid call."""
    cache: BaseCache | None = None
    replies: ThreadReplies | None = None
    """Where every good reply is written before the graph uses it."""

    @property
    def own(self) -> OwnPrompt | None:
        """The prompt, if it is the caller's own and says how its replies are read."""
        is_own = isinstance(self.prompt, OwnPrompt) and self.prompt.reply
        return cast("OwnPrompt", self.prompt) if is_own else None


StoredReply = dict[str, Any]
"""A `Reply` as a store holds it: plain JSON, without its message."""


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost."""

    data: ReplyData | None
    failures: list[Failure]
    usage: Usage
    message: AIMessage | None = None
    """The reply itself; None where there is none, or a cache answered."""
    measured: Measurements = field(default_factory=dict)
    """What `Question.measure` read."""
    problem: Problem | None = None
    """What was wrong with a reply of which only a part is used."""

    def stored(self) -> StoredReply:
        """Return it as a store holds it, without its message."""
        return {key: value for key, value in vars(self).items() if key != "message"}

    @classmethod
    def of(cls, entry: StoredReply) -> Reply:
        """Return the reply that a store holds."""
        problem = Problem(*entry["problem"]) if entry["problem"] else None
        return cls(**{**entry, "problem": problem})


@dataclass
class Asking:
    """One question about one unit, while it is being asked."""

    question: Question
    unit: str
    order: Order | None
    seed: int | None
    cost: StepUsage = field(default_factory=no_step_usage)
    lacking: set[str] = field(default_factory=set)
    """What its requests lacked because the model refuses it."""
    cache_key: str = ""
    """Of what the prompt has in common with others, so that a provider finds its cache."""

    def reply(
        self,
        data: ReplyData | None,
        problem: Problem | None,
        message: AIMessage | None = None,
    ) -> Reply:
        """Return the reply with what it cost."""
        if problem is None:
            return Reply(data, [], self.usage(), message)
        where = {"step": self.question.step, "unit": self.unit}
        failure: Any = {**where, "reason": problem.reason, "detail": problem.detail[:500]}
        return Reply(data, [failure], self.usage(), message)

    def usage(self) -> Usage:
        """Return what was paid so far."""
        usage = no_usage()
        for key in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            usage[key] = self.cost[key]
        usage["by_step"] = {self.question.step: self.cost}
        if self.lacking:
            usage["asked_without"] = sorted(self.lacking)
        return usage

    def config(self, sampling: Sampling) -> RunnableConfig:
        """Return the run's name, tags and metadata, as LangSmith shows them."""
        question = self.question
        name = ":".join(filter(None, [question.label or question.step, self.unit]))
        if "{unit}" in question.label:
            name = question.label.replace("{unit}", self.unit) or question.step
        return {
            "run_name": name,
            "tags": [question.method, question.step],
            "metadata": {
                "unit": self.unit,
                "order": self.order,
                "model": model_name(question.adapter.model),
                "prompt_version": question.version,
                "temperature": "refused"
                if "temperature" in question.adapter.refused
                else sampling.get("temperature", question.adapter.identity.get("temperature")),
            },
        }


_SPREAD = 1000
"""Distance of the seeds of two judges, so that their samples are not the same ones."""


def sample_seed(seed: int, number: int) -> int:
    """Return the seed of one sample of a judge; of each sample, and each judge, another."""
    return _SPREAD * seed + number


def chat_prompt(system: str, *human: str) -> ChatPromptTemplate:
    """Return a prompt of two messages.

    Args:
        system: The template of the system message.
        *human: The template of the human one, in parts that are joined as they are.
    """
    return ChatPromptTemplate.from_messages([("system", system), ("human", "".join(human))])


ATTEMPTS = 4
"""How often a request is sent if errors that can pass keep it from being answered."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each further wait is twice as long."""


TRIAL = 5.0
"""Seconds for which requests wait for the one that finds out what the model refuses."""


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
    attempts, trials = ATTEMPTS, adapter.trials
    while True:
        sampling = adapter.sampling(question.sampled, asking.seed)
        request = adapter.request(
            None if question.own else question.shape,
            sampling,
            logprobs=question.logprobs,
            alternatives=question.alternatives,
            sampled=asking.seed is not None,
        )
        request = adapter.with_cache_key(request, asking.cache_key)
        own, carried = unfinished(), (request.rung, *request.sent)
        if trials and (trial := trials.ahead(carried, own)) is not None:
            yield end_of(trial, TRIAL)
            if not trial.done():  # a refusal comes sooner
                trials = None
            continue
        has_learnt = False
        try:
            outcome, has_learnt = yield from _attempt(asking, request, messages, sampling)
        finally:
            if trials:
                trials.done(carried, own, succeeded=not has_learnt)
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
            return Sent(None, request, diagnosis(error))
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
        message = _message(result)
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
            row_cost.leave(adapter.model, paid)


def _denied(error: Exception, adapter: ModelAdapter) -> ModelAccessError | None:
    """Return the exception for an error that no other request of the model can escape."""
    status = status_of(error)
    if status == 401 or (status in {403, 404} and not adapter.answered):
        name = model_name(adapter.model)
        reason = in_a_line(error)
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
    if (row_cost := ROW_COST.get()) and row_cost.end_run:
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
