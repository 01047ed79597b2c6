"""ask(): prompt → model → checked reply. The only place where a model is called.

Every way to fail ends in one of two places. A `Failure` in the reply, if only this unit is
lost: an unusable reply (after one repair turn that shows what was wrong), a refusal, a
reply that was cut, a provider error (after retries, if it could pass). Or an exception, if
asking on is useless: `ModelAccessError` for a wrong key, `RunStopped` for a run that ended.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import Generation
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel

from langchain_judges.asking.channel import Channel, ReplyRequest
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
from langchain_judges.asking.gate import LEDGER
from langchain_judges.asking.journal import ThreadJournal, key_of
from langchain_judges.asking.masked import without_secrets
from langchain_judges.asking.models import model_name
from langchain_judges.asking.paid import Paid, paid_for
from langchain_judges.asking.reply import Parse, Problem, check, json_schema, read
from langchain_judges.asking.steps import NODE_INPUT, Effect, Steps
from langchain_judges.asking.stream import tell
from langchain_judges.errors import ModelAccessError
from langchain_judges.orders import Order
from langchain_judges.rows.media import with_media
from langchain_judges.verdict import (
    Failure,
    StepUsage,
    Usage,
    no_step_usage,
    no_usage,
)

ATTEMPTS = 4
"""How often a request is sent if errors that can pass keep it from being answered."""
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each further wait is twice as long."""

GRACE = 10.0
"""Seconds that calls in flight get to come back when a run ends early."""

_REPAIR = (
    "That reply cannot be used: {detail}.\n"
    "Reply again, with nothing but a JSON object that fits this JSON schema:\n{schema}"
)
_NO_REPAIR = {"refusal", "truncated"}
_JUDGED = (
    *("candidate_1", "candidate_2", "claims", "expected", "findings", "rationale", "reference"),
    *("request", "response", "response_1", "response_2", "source", "summaries"),
    *("table", "table_1", "table_2", "task", "text"),
)
"""Variables of prompts that hold what other people wrote, and a reply may quote."""


@dataclass(frozen=True)
class Question:
    """What a step asks, the same for every unit it works on."""

    method: str
    step: str
    channel: Channel
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
    measure: Callable[[AIMessage, dict[str, Any]], dict[str, Any]] | None = None
    """Reads what only the reply itself tells, such as token log-probabilities, of the data
    that were read from it."""
    measured_as: str = ""
    """What `measure` reads, where it can read more than one thing; for cache keys."""
    sampled: bool = False
    """Whether several replies to the same prompt are wanted."""
    logprobs: bool = False
    alternatives: int = 0
    """Other tokens whose log-probabilities come with those of each token."""
    repairs: int = 1
    """Repair turns after an unusable reply; each is a paid call."""
    cache: BaseCache | None = None
    journal: ThreadJournal | None = None
    """Where every good reply is written before the graph uses it."""


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost."""

    data: dict[str, Any] | None
    failures: list[Failure]
    usage: Usage
    message: AIMessage | None = None
    """The reply itself; None where there is none, or a cache answered."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What `Question.measure` read."""
    problem: Problem | None = None
    """What was wrong with a reply of which only a part is used."""


@dataclass
class _Asking:
    """One question about one unit, while it is being asked."""

    question: Question
    unit: str
    order: Order | None
    seed: int | None
    cost: StepUsage = field(default_factory=no_step_usage)
    unwritten: int = 0
    """Replies that came, and that neither the graph nor the journal has yet."""

    def wrote(self) -> None:
        """Say that the graph or the journal has what came."""
        if self.unwritten and (ledger := LEDGER.get()):
            ledger.gate.wrote(self.unwritten)
        self.unwritten = 0

    def reply(
        self,
        data: dict[str, Any] | None,
        problem: Problem | None,
        message: AIMessage | None = None,
    ) -> Reply:
        """Return the reply with what it cost."""
        failures: list[Failure] = []
        if problem:
            failures.append(
                {
                    "step": self.question.step,
                    "unit": self.unit,
                    "reason": problem.reason,
                    "detail": problem.detail[:500],
                }
            )
        return Reply(data, failures, self.usage(), message)

    def usage(self) -> Usage:
        """Return what was paid so far."""
        usage = no_usage()
        for key in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            usage[key] = self.cost[key]
        usage["by_step"] = {self.question.step: self.cost}
        return usage

    def config(self, sampling: dict[str, Any]) -> RunnableConfig:
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
                "model": model_name(question.channel.model),
                "prompt_version": question.version,
                "temperature": "refused"
                if "temperature" in question.channel.refused
                else sampling.get("temperature", question.channel.identity.get("temperature")),
            },
        }


def ask(
    question: Question,
    variables: Mapping[str, object],
    *,
    unit: str = "",
    order: Order | None = None,
    seed: int | None = None,
) -> Steps[Reply]:
    """Ask a question about one unit of work.

    Args:
        question: What is asked.
        variables: Fill the prompt's template.
        unit: What the step works on, as people call it: `Clarity (A first)`.
        order: The order in which the texts are shown.
        seed: Set for one sample of many; distinct for each, so that no cache makes one
            reply of them all.

    Raises:
        ModelAccessError: The provider refuses access (HTTP 401; 403 and 404 before the model
            has answered anything).
        RunStopped: The run of `judge_many` asks nothing more.
    """
    asking = _Asking(question, unit, order, seed)
    try:
        reply = yield from _journalled(asking, variables)
        event = {"failures": reply.failures, "usage": reply.usage}
        tell("reply", question.step, event, unit)
        return reply
    except ModelAccessError as exc:
        asking.wrote()
        yield from _let_others_return(exc)
        raise
    finally:
        asking.wrote()
        # Also where the run is stopped midway: what came until then was paid for.
        if ledger := LEDGER.get():
            ledger.book(asking.usage())


def recorded(
    question: Question,
    value: object,
    result: Mapping[str, Any],
    *,
    unit: str,
    order: Order | None = None,
    seed: int | None = None,
) -> Effect:
    """Give what shares a call with others, or took none, a run of its own in the trace.

    Args:
        question: What was asked, or would have been.
        value: The input of the run.
        result: Its output.
        unit: As for `ask`.
        order: As for `ask`.
        seed: As for `ask`.
    """
    sampling = question.channel.sampling(question.sampled, seed)
    config = _Asking(question, unit, order, seed).config(sampling)
    task: RunnableLambda[Any, Any] = RunnableLambda(lambda _: dict(result))
    return Effect(lambda: task.invoke(value, config), lambda: task.ainvoke(value, config))


def _let_others_return(refusal: ModelAccessError) -> Steps[None]:
    """End the run, and wait for the calls beside this one: its graph would cancel them."""
    ledger = LEDGER.get()
    if ledger and ledger.end_run and refusal.status == 401:
        ledger.end_run(refusal)
        yield from ledger.gate.idle(GRACE)


def _journalled(asking: _Asking, variables: Mapping[str, object]) -> Steps[Reply]:
    """Take the reply that an earlier run has paid for, before a kill even, or ask."""
    question = asking.question
    messages = _with_media(question.prompt.format_messages(**variables))
    replies = ledger.replies if (ledger := LEDGER.get()) else None
    has_saver = question.journal is not None and question.journal.saver is not None
    if replies is None and not has_saver:
        return (yield from _answer(asking, messages, variables))

    def ask_now() -> Steps[dict[str, Any]]:
        reply = yield from _answer(asking, messages, variables)
        return {
            "data": reply.data,
            "failures": reply.failures,
            "usage": reply.usage,
            "measured": reply.measured,
            "problem": reply.problem and list(reply.problem),
        }

    key = key_of(question.method, question.step, asking.unit, *_cache_key(asking, messages))
    if question.journal is not None and has_saver:
        entry = yield from question.journal.once(key, ask_now, _is_good)
    elif replies is not None and (entry := replies.take(key)) is None:
        entry = yield from ask_now()
        if _is_good(entry):
            replies.keep(key, entry)
    problem = entry["problem"] and Problem(*entry["problem"])
    return Reply(
        entry["data"], entry["failures"], entry["usage"], None, entry["measured"], problem
    )


def _is_good(entry: Mapping[str, Any]) -> bool:
    return bool(entry["usage"]["calls"]) and not entry["failures"]


def _answer(
    asking: _Asking, messages: list[BaseMessage], variables: Mapping[str, object]
) -> Steps[Reply]:
    question = asking.question
    key = _cache_key(asking, messages) if question.cache else None
    if key and (cached := (yield from _recall(question, key))) is not None:
        asking.cost["cached_calls"] = 1
        reply = asking.reply(cached["data"], None)
        reply.measured = cached["measured"]
        return reply
    repairs_to_go = question.repairs
    material = [str(variables[name]) for name in _JUDGED if variables.get(name)]
    while True:
        message, request, failed = yield from _send(asking, messages)
        if message is None:
            return asking.reply(None, failed)
        data, wrong = read(message, question.shape, question.parse, request.tool, material)
        if wrong is None:
            reply = _measured(asking, message, data)
            if key:
                yield from _remember(question, key, reply)
            return reply
        if wrong.reason in _NO_REPAIR or not repairs_to_go:
            return _salvaged(asking, message, request, material, wrong)
        repairs_to_go -= 1
        messages = _repair(messages, message, wrong, question.shape)


def _with_media(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Put images, audio and files where the prompt has their marks."""
    holder = NODE_INPUT.get()
    return [
        message.model_copy(update={"content": with_media(message.content, holder)})
        if isinstance(message, HumanMessage) and isinstance(message.content, str)
        else message
        for message in messages
    ]


def _salvaged(
    asking: _Asking,
    message: AIMessage,
    request: ReplyRequest,
    material: Sequence[str],
    problem: Problem,
) -> Reply:
    """Return what can be used of a reply that stayed unusable; never kept in a cache."""
    question = asking.question
    if question.partial and problem.reason not in _NO_REPAIR:
        data, _ = read(message, question.partial, question.parse, request.tool, material)
        if data is not None:
            reply = _measured(asking, message, data)
            reply.problem = problem
            return reply
    return asking.reply(None, problem)


def _measured(asking: _Asking, message: AIMessage, data: dict[str, Any] | None) -> Reply:
    reply = asking.reply(data, None, message)
    if asking.question.measure and data is not None:
        reply.measured = asking.question.measure(message, data)
    return reply


def _repair(
    messages: list[BaseMessage], reply: AIMessage, problem: Problem, shape: type[BaseModel]
) -> list[BaseMessage]:
    schema = json.dumps(json_schema(shape))
    answer = AIMessage(reply.text.strip() or "(no text)")
    return [
        *messages,
        answer,
        HumanMessage(_REPAIR.format(detail=problem.detail, schema=schema)),
    ]


def _send(
    asking: _Asking, messages: list[BaseMessage]
) -> Steps[tuple[AIMessage | None, ReplyRequest, Problem]]:
    """Send the messages until a reply comes, or an error that will not pass."""
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
        try:
            result = yield from _call(asking, request, messages, sampling)
        except _Failed as failed:
            error = failed.error
        else:
            return result, request, Problem("empty", "")
        if ended := paid_error(error):
            return None, request, ended
        asking.cost["retries"] += 1
        if rejects(error):
            prompt = [message.text for message in messages]
            if channel.learn(request, complaint_of(error, prompt)):
                continue
        attempts -= 1
        if not attempts or not can_pass(error):
            return None, request, diagnosis(error, channel.secrets.mask)
        yield _pause(wait_after(error, wait))
        wait *= 2


class _Failed(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _call(
    asking: _Asking,
    request: ReplyRequest,
    messages: list[BaseMessage],
    sampling: dict[str, Any],
) -> Steps[AIMessage]:
    """Make one call through the gate and book what it cost."""
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
        # What a model streamed comes as it is.
        message = without_secrets(_message(result), channel.secrets)
        channel.answered = True
        if ledger:
            seed, logprobs = asking.seed is not None, asking.question.logprobs
            ledger.lacking |= channel.lacking(request, seed=seed, logprobs=logprobs)
        paid = paid_for(message)
        return message
    except Exception as exc:  # a model may raise anything: it becomes a failure of one unit
        if denied := _denied(exc, channel):
            # The provider's own words may hold the key: a traceback would show them.
            raise denied from None
        paid = paid_despite(exc)
        raise _Failed(exc) from exc
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


def _message(result: Any) -> AIMessage:
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


def _cache_key(asking: _Asking, messages: list[BaseMessage]) -> tuple[str, str]:
    """Return the two strings by which a LangChain cache knows a call."""
    question = asking.question
    prompt = json.dumps([[m.type, m.content] for m in messages], ensure_ascii=False)
    call = {
        "model": question.channel.identity,
        "sampling": question.channel.sampling(question.sampled, asking.seed),
        "seed": asking.seed,
        "reply": json_schema(question.shape),
        # A reply that was kept without log-probabilities is no answer where they are wanted.
        "measured": [question.logprobs, question.measured_as],
    }
    return prompt, json.dumps(call, sort_keys=True, default=str)


def _recall(question: Question, key: tuple[str, str]) -> Steps[dict[str, Any] | None]:
    cache = question.cache
    assert cache is not None  # noqa: S101 - for the type checker: only called with a cache
    generations = yield Effect(lambda: cache.lookup(*key), lambda: cache.alookup(*key))
    if not generations:
        return None
    try:
        entry = json.loads(generations[0].text)
        data, _ = check(entry["data"], question.shape)
    except (ValueError, TypeError, KeyError):
        return None
    return None if data is None else {"data": data, "measured": entry.get("measured") or {}}


def _remember(question: Question, key: tuple[str, str], reply: Reply) -> Steps[None]:
    cache = question.cache
    assert cache is not None  # noqa: S101 - for the type checker: only called with a cache
    entry = json.dumps({"data": reply.data, "measured": reply.measured}, ensure_ascii=False)
    value = [Generation(text=entry)]
    yield Effect(lambda: cache.update(*key, value), lambda: cache.aupdate(*key, value))
