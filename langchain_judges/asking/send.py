"""A question, what asking it costs, and its request until a reply or an error is final."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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

# What was read of a reply itself beside its data, by name: plain JSON.
Measurements = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """What a step asks, the same for every unit it works on.

    Attributes:
        method: The judge's method.
        step: The graph's node.
        adapter: How the model is asked.
        prompt: The template.
        shape: What the reply must look like; its bounds and choices are checked.
        version: Hash of the method's prompts, for traces and cache keys.
        label: What its calls are called in traces, if not by the step; `{unit}` puts the unit
            there.
        parse: Reads a reply in plain words, for models that ignore the format.
        partial: A laxer shape, to save what can be read of a reply that stays unusable.
        measure: Reads what only the reply itself tells, such as token log-probabilities, of
            the data that were read from it.
        measured_as: What `measure` reads, where it can read more than one thing; for cache
            keys.
        sampled: Whether several replies to the same prompt are wanted.
        cache_first: Whether the first of calls that begin alike is answered before the others
            are sent.
        shares_material: Whether other calls show the same material and take a reply of the
            same shape.
        logprobs: Whether token log-probabilities are wanted.
        alternatives: Other tokens whose log-probabilities come with those of each token.
        repairs: Repair turns after an unusable reply; each is a paid call.
        cache: A LangChain cache for good replies.
        replies: Where every good reply is written before the graph uses it.
    """

    method: str
    step: str
    adapter: ModelAdapter
    prompt: ChatPromptTemplate
    shape: type[BaseModel]
    version: str
    label: str = ""
    parse: Parse | None = None
    partial: type[BaseModel] | None = None
    measure: Callable[[AIMessage, ReplyData], Measurements] | None = None
    measured_as: str = ""
    sampled: bool = False
    cache_first: bool = True
    shares_material: bool = False
    logprobs: bool = False
    alternatives: int = 0
    repairs: int = 1
    cache: BaseCache | None = None
    replies: ThreadReplies | None = None

    @property
    def own(self) -> OwnPrompt | None:
        """The prompt, if it is the caller's own and says how its replies are read."""
        prompt = self.prompt
        return prompt if isinstance(prompt, OwnPrompt) and prompt.reply else None


# A `Reply` as a store holds it: plain JSON, without its message.
StoredReply = dict[str, Any]


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost.

    Attributes:
        data: What was read.
        failures: What went wrong.
        usage: What was paid.
        message: The reply itself; None where there is none, or a cache answered.
        measured: What `Question.measure` read.
        problem: What was wrong with a reply of which only a part is used.
    """

    data: ReplyData | None
    failures: list[Failure]
    usage: Usage
    message: AIMessage | None = None
    measured: Measurements = field(default_factory=dict)
    problem: Problem | None = None

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
    """One question about one unit, while it is being asked.

    Attributes:
        question: What is asked.
        unit: What about.
        order: The order in which the texts are shown.
        seed: Of one sample of many.
        cost: What was paid so far.
        lacking: What its requests lacked because the model refuses it.
        cache_key: Of what the prompt has in common with others, so that a provider finds its
            cache.
    """

    question: Question
    unit: str
    order: Order | None
    seed: int | None
    cost: StepUsage = field(default_factory=no_step_usage)
    lacking: set[str] = field(default_factory=set)
    cache_key: str = ""

    def reply(
        self,
        data: ReplyData | None,
        problem: Problem | None,
        message: AIMessage | None = None,
    ) -> Reply:
        """Return the reply with what it cost."""
        if problem is None:
            return Reply(data, [], self.usage(), message)
        failure = problem.failure(self.question.step, self.unit)
        return Reply(data, [{**failure, "detail": problem.detail[:500]}], self.usage(), message)

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
        question, adapter = self.question, self.question.adapter
        name = ":".join(filter(None, [question.label or question.step, self.unit]))
        if "{unit}" in question.label:
            name = question.label.replace("{unit}", self.unit) or question.step
        own = sampling.get("temperature", adapter.identity.get("temperature"))
        metadata = {
            "unit": self.unit,
            "order": self.order,
            "model": adapter.identity["name"],
            "prompt_version": question.version,
            "temperature": "refused" if "temperature" in adapter.refused else own,
        }
        tags = [question.method, question.step]
        return {"run_name": name, "tags": tags, "metadata": metadata}


# Distance of the seeds of two judges, so that their samples are not the same ones.
_SPREAD = 1000


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


# How often a request is sent if errors that can pass keep it from being answered.
ATTEMPTS = 4
# Seconds before the second attempt; each further wait is twice as long.
FIRST_WAIT = 0.5
# Seconds for which requests wait for the one that finds out what the model refuses.
TRIAL = 5.0


class Sent(NamedTuple):
    """What came of a request, as it was sent last; without a message, the problem says why."""

    message: AIMessage | None
    request: ReplyRequest
    problem: Problem | None


def send(asking: Asking, messages: list[BaseMessage]) -> Steps[Sent]:
    """Send the messages until a reply comes, or an error that will not pass.

    Where the provider caches how prompts begin, the first call that begins so is answered
    before the others are sent.
    """
    question = asking.question
    cache = question.adapter.prompt_cache if question.cache_first else None
    marks = cache is not None and cache.needs_marks
    found = None
    if cache and (question.shares_material or not marks):
        found = beginnings(messages, question.shape)
    if cache is None or found is None:
        return (yield from _until_answered(asking, messages))
    asking.cache_key = found.keys[0]
    sending = _until_answered(asking, found.marked if marks else messages)
    keys = found.keys[-1:] if marks else found.keys
    return (yield from cache.behind_first(keys, sending, lambda sent: sent.message is not None))


def _until_answered(asking: Asking, messages: list[BaseMessage]) -> Steps[Sent]:
    adapter, question = asking.question.adapter, asking.question
    back_off, attempts, trials = FIRST_WAIT, ATTEMPTS, adapter.trials
    while True:
        sampling = adapter.sampling(question.sampled, asking.seed)
        request = adapter.request(
            None if question.own else question.shape,
            sampling,
            logprobs=question.logprobs,
            alternatives=question.alternatives,
            sampled=asking.seed is not None,
            cache_key=asking.cache_key,
        )
        own, carried = unfinished(), (request.rung, *request.sent)
        if trials and (trial := trials.ahead(carried, own)) is not None:
            yield end_of(trial, TRIAL)
            if not trial.done():  # a refusal comes sooner
                trials = None
            continue
        has_learnt = False
        try:
            outcome = yield from _call(asking, request, messages, sampling)
            if isinstance(outcome, AIMessage):
                return Sent(outcome, request, None)
            if problem := paid_error(outcome):
                return Sent(None, request, problem)
            if rejects(outcome):
                complaint = complaint_of(outcome, [message.text for message in messages])
                has_learnt = adapter.learn(request, complaint)
        finally:
            if trials:
                trials.done(carried, own, succeeded=not has_learnt)
        asking.cost["retries"] += 1
        if has_learnt:
            continue
        attempts -= 1
        if not attempts or not can_pass(outcome):
            return Sent(None, request, diagnosis(outcome))
        seconds = wait_after(outcome, back_off)
        in_run = (row_cost := ROW_COST.get()) and row_cost.end_run
        yield row_cost.limiter.pause(seconds) if row_cost and in_run else pause(seconds)
        back_off *= 2


def _call(
    asking: Asking,
    request: ReplyRequest,
    messages: list[BaseMessage],
    sampling: Sampling,
) -> Steps[AIMessage | Exception]:
    """Make one call, once the limiter allows it, and book its cost."""
    config, adapter = asking.config(sampling), asking.question.adapter
    runnable, settings = request.runnable, request.settings
    prompt = request.messages(messages)
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
        message = _message((yield within(adapter.deadline, call)))
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
            asking.cost["calls"] += 1
            asking.cost["input_tokens"] += paid.input_tokens
            asking.cost["output_tokens"] += paid.output_tokens
            asking.cost["cached_tokens"] += paid.cached_tokens
        if row_cost:
            row_cost.leave(adapter.model, paid)


def _denied(error: Exception, adapter: ModelAdapter) -> ModelAccessError | None:
    """Return the exception for an error that no other request of the model can escape."""
    status = status_of(error)
    if status != 401 and (status not in {403, 404} or adapter.answered):
        return None
    reason = f"The model {model_name(adapter.model)!r} refuses every call: {in_a_line(error)}"
    return ModelAccessError(reason, status)


def _message(result: Any) -> AIMessage:
    """Return the raw reply, whichever rung it came by."""
    parts = result if isinstance(result, dict) else {"raw": result}
    if isinstance(raw := parts.get("raw"), AIMessage):
        return raw
    parsed = parts.get("parsed", result)
    if isinstance(parsed, BaseModel):
        parsed = parsed.model_dump()
    return AIMessage("" if parsed is None else json.dumps(parsed))


def within(seconds: float | None, effect: Wait) -> Wait:
    """Return an effect that raises `TimeoutError` if it takes longer than some seconds.

    A call in a thread cannot be broken off: it is left behind, and ends with the process at
    the latest.
    """
    if seconds is None:
        return effect
    late = TimeoutError(f"no whole reply within {seconds:g} seconds")

    def now() -> object:
        result: Future[object] = Future()
        context = copy_context()

        def call() -> None:
            try:
                result.set_result(context.run(effect.now))
            except BaseException as exc:  # noqa: BLE001 - raised again where it is wanted
                result.set_exception(exc)

        threading.Thread(target=call, name="model call", daemon=True).start()
        if not wait([result], seconds).done:
            raise late
        return result.result()

    async def later() -> object:
        try:
            async with asyncio.timeout(seconds) as scope:
                return await effect.later()
        except TimeoutError:
            if scope.expired():
                raise late from None
            raise

    return Wait(now, later)
