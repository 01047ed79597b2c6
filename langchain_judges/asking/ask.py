"""ask(): prompt → model → checked reply. The only place where a model is called.

First stands what is asked and replied, then how a request is sent (`send`), then the way of a
question (`ask`): the reply that a killed run has paid for (`_logged`), else the one that a
cache has (`_cached`), else one that is sent for, checked and asked for once more where it
cannot be used (`_checked`).

Every way to fail ends in one of two places. A `Failure` in the reply, if only this unit is
lost: an unusable reply (after one repair turn that shows what was wrong), a refusal, a
reply that was cut, a provider error (after retries, if it could pass). Or an exception, if
asking on is useless: `ModelAccessError` for a wrong key, `RunStopped` for a run that ended.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from langchain_core import prompts
from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import Generation
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel

from langchain_judges.asking import provider_errors, reading
from langchain_judges.asking.account import Account
from langchain_judges.asking.adapter import ModelAdapter, ReplyRequest, Sampling, beginnings
from langchain_judges.asking.effects import (
    Effect,
    check_stop,
    emit,
    pause,
    pending_future,
    wait_for,
)
from langchain_judges.asking.limiter import RowCost, Show, TokenUsage, token_usage
from langchain_judges.asking.reading import Problem, ReplyData
from langchain_judges.asking.reply_log import ReplyLog, key_of
from langchain_judges.errors import InputError, ModelAccessError, RunStopped
from langchain_judges.orders import Order
from langchain_judges.rows.fences import sealed, sealed_messages, with_content
from langchain_judges.rows.media import with_media
from langchain_judges.rows.texts import plain
from langchain_judges.verdict import Failure, StepUsage, Usage, no_step_usage, no_usage

# What was read of a reply itself beside its data, by name: plain JSON.
Measurements = dict[str, Any]


# A `Reply` as the log holds it: plain JSON.
StoredReply = dict[str, Any]
# Distance of the seeds of two judges, so that their samples are not the same ones.
_SPREAD = 1000
# How often a request is sent if errors that can pass keep it from being answered.
ATTEMPTS = 4
# Seconds before the second attempt; each further wait is twice as long.
FIRST_WAIT = 0.5
# Seconds for which requests wait for the one that finds out what the model refuses.
TRIAL = 5.0
# Seconds that calls in flight get to come back when a run ends early.
GRACE = 10.0
_REPAIR = (
    "That reply cannot be used: {detail}.\n"
    "Reply again, with nothing but a JSON object that fits this JSON schema:\n{schema}"
)
_NO_REPAIR = {"refusal", "truncated"}
_KINDS: dict[type, type[HumanMessage | SystemMessage]] = {
    prompts.HumanMessagePromptTemplate: HumanMessage,
    prompts.SystemMessagePromptTemplate: SystemMessage,
}
# Variables of prompts that hold what other people wrote, and a reply may quote.
_MATERIAL = (
    *("candidate_1", "candidate_2", "claims", "expected", "findings", "rationale", "reference"),
    *("request", "response", "response_1", "response_2", "source", "summaries"),
    *("table", "table_1", "table_2", "task", "text"),
)


@dataclass(frozen=True)
class Question:
    """Question of a step, the same for every unit it works on.

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
        is_shared: Whether all rows with an equal call share one reply, as they do a plan.
        log: Where every good reply is written before the graph uses it.
    """

    method: str
    step: str
    adapter: ModelAdapter
    prompt: prompts.ChatPromptTemplate
    shape: type[BaseModel]
    version: str
    label: str = ""
    parse: reading.Parse | None = None
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
    is_shared: bool = False
    log: ReplyLog = field(default_factory=ReplyLog)

    @property
    def own(self) -> reading.OwnPrompt | None:
        """The prompt, if it is the caller's own and says how its replies are read."""
        prompt = self.prompt
        return prompt if isinstance(prompt, reading.OwnPrompt) and prompt.reply else None


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost.

    Attributes:
        data: What was read.
        failures: What went wrong.
        usage: What was paid.
        measured: What `Question.measure` read.
        problem: What was wrong with a reply of which only a part is used.
    """

    data: ReplyData | None
    failures: list[Failure]
    usage: Usage
    measured: Measurements = field(default_factory=dict)
    problem: Problem | None = None

    def stored(self) -> StoredReply:
        """The reply as plain JSON."""
        return dict(vars(self))

    @classmethod
    def of(cls, entry: StoredReply) -> Reply:
        """The reply that the log holds."""
        problem = Problem(*entry["problem"]) if entry["problem"] else None
        return cls(**{**entry, "problem": problem})


@dataclass
class Asking:
    """One question about one unit, while it is being asked.

    Attributes:
        question: What is asked.
        variables: Fill the prompt's template.
        account: Of the row, where it is booked.
        unit: What about.
        order: The order in which the texts are shown.
        seed: Of one sample of many.
        messages: The prompt, and what was said about unusable replies to it.
        cost: What was paid so far.
        lacking: What its requests lacked because the model refuses it.
        key: By which the log and a LangChain cache know it.
        cache_key: Of what the prompt has in common with others, so that a provider finds its
            cache.
    """

    question: Question
    variables: Mapping[str, object]
    account: Account
    unit: str
    order: Order | None
    seed: int | None
    messages: list[BaseMessage] = field(default_factory=list)
    cost: StepUsage = field(default_factory=no_step_usage)
    lacking: set[str] = field(default_factory=set)
    key: tuple[str, str] = ("", "")
    cache_key: str = ""

    def reply(self, data: ReplyData | None, problem: Problem | None) -> Reply:
        """Return the reply with what it cost."""
        if problem is None:
            return Reply(data, [], self.usage())
        failure = problem.failure(self.question.step, self.unit)
        return Reply(data, [{**failure, "detail": problem.detail[:500]}], self.usage())

    def usage(self) -> Usage:
        """Cost so far."""
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


def sample_seed(seed: int, number: int) -> int:
    """Return the seed of one sample of a judge; of each sample, and each judge, another."""
    return _SPREAD * seed + number


def chat_prompt(system: str, *human: str) -> prompts.ChatPromptTemplate:
    """Return a prompt of two messages.

    Args:
        system: The template of the system message.
        *human: The template of the human one, in parts that are joined as they are.
    """
    messages = [("system", system), ("human", "".join(human))]
    return prompts.ChatPromptTemplate.from_messages(messages)


class Sent(NamedTuple):
    """Outcome of a request, as it was sent last; without a message, the problem says why."""

    message: AIMessage | None
    request: ReplyRequest
    problem: Problem | None


async def send(asking: Asking) -> Sent:
    """Send the messages until a reply comes, or an error that will not pass.

    Where the provider caches how prompts begin, the first call that begins so is answered
    before the others are sent.
    """
    question, adapter, messages = asking.question, asking.question.adapter, asking.messages
    if (row_cost := asking.account.run) and row_cost.shown:
        return _shown(asking, row_cost.shown)
    cache = adapter.prompt_cache if question.cache_first else None
    found = None
    if cache and (question.shares_material or cache == "by prefix"):
        found = beginnings(messages, question.shape)
    if found is None:
        return await _until_answered(asking, messages)
    keys, asking.cache_key = found.keys, found.keys[0]
    if cache == "by marks":
        keys, messages = keys[-1:], found.marked
    sending = partial(_until_answered, asking, messages)
    return await adapter.first_calls.behind(keys, sending, lambda sent: bool(sent.message))


def _shown(asking: Asking, show: Show) -> Sent:
    """Show the request that would be sent, and send nothing."""
    question = asking.question
    shape = None if question.own else question.shape
    request = question.adapter.request(shape, {})
    schema = reading.json_schema(shape) if shape else {}
    name = f"{question.step} {asking.unit}".strip()
    show(name, request.messages(asking.messages), schema)
    return Sent(None, request, Problem("missing", "it was only shown"))


async def _until_answered(asking: Asking, messages: list[BaseMessage]) -> Sent:
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
        own, carried = pending_future(), (request.rung, *request.sent)
        if trials and (trial := trials.ahead(carried, own)) is not None:
            await wait_for(trial, TRIAL)
            if not trial.done():  # a refusal comes sooner
                trials = None
            continue
        has_learnt = False
        try:
            outcome = await _call(asking, request, messages, sampling)
            if isinstance(outcome, AIMessage):
                return Sent(outcome, request, None)
            if problem := provider_errors.paid_error(outcome):
                return Sent(None, request, problem)
            if provider_errors.rejects(outcome):
                complaint = provider_errors.complaint_of(
                    outcome, [message.text for message in messages]
                )
                has_learnt = adapter.learn(request, complaint)
        finally:
            if trials:
                trials.done(carried, own, succeeded=not has_learnt)
        asking.cost["retries"] += 1
        if has_learnt:
            continue
        attempts -= 1
        if not attempts or not provider_errors.can_pass(outcome):
            return Sent(None, request, provider_errors.diagnosis(outcome))
        await _rest(asking.account.run, provider_errors.wait_after(outcome, back_off))
        back_off *= 2


def _rest(row_cost: RowCost | None, seconds: float) -> Effect:
    """A wait that the end of a run ends too."""
    in_run = row_cost and row_cost.end_run
    return row_cost.limiter.pause(seconds) if row_cost and in_run else pause(seconds)


async def _call(
    asking: Asking, request: ReplyRequest, messages: list[BaseMessage], sampling: Sampling
) -> AIMessage | Exception:
    """Make one call, once the limiter allows it, and book its cost."""
    config, adapter = asking.config(sampling), asking.question.adapter
    runnable, settings = request.runnable, request.settings
    prompt = request.messages(messages)
    row_cost = asking.account.run
    if row_cost:
        await row_cost.limiter.enter(row_cost.rank, adapter.model)
    paid: TokenUsage | None = None
    try:
        check_stop()
        call = Effect(
            lambda: runnable.invoke(prompt, config, **settings),
            lambda: runnable.ainvoke(prompt, config, **settings),
        )
        message = _message(await with_timeout(adapter.deadline, call))
        adapter.answered = True
        seed, logprobs = asking.seed is not None, asking.question.logprobs
        asking.lacking |= adapter.lacking(request, seed=seed, logprobs=logprobs)
        paid = token_usage(message)
        if row_cost and row_cost.replies:
            row_cost.replies.keep_request(asking.unit, _readable([*prompt, message]))
        return message
    except RunStopped:
        raise
    except Exception as exc:  # noqa: BLE001 - a model may raise anything, and one unit fails
        if denied := _denied(exc, adapter):
            # The provider's own words may hold the key: a traceback would show them.
            raise denied from None
        paid = provider_errors.usage_despite(exc)
        return exc
    finally:
        if paid is not None:
            asking.cost["calls"] += 1
            asking.cost["input_tokens"] += paid.input_tokens
            asking.cost["output_tokens"] += paid.output_tokens
            asking.cost["cached_tokens"] += paid.cached_tokens
        if row_cost:
            row_cost.leave(adapter.model, paid)


def _readable(messages: list[BaseMessage]) -> list[list[str]]:
    """Who says what in a request and its reply, as people read it."""
    calls = [json.dumps(getattr(each, "tool_calls", None) or "") for each in messages]
    texts = zip(messages, calls, strict=True)
    return [[m.type, plain(m.content) or (call if call != '""' else "")] for m, call in texts]


def _denied(error: Exception, adapter: ModelAdapter) -> ModelAccessError | None:
    """Return the exception for an error that no other request of the model can escape."""
    status = provider_errors.status_of(error)
    if status != 401 and (status not in {403, 404} or adapter.answered):
        return None
    name, reason = adapter.identity["name"], provider_errors.in_a_line(error)
    return ModelAccessError(f"The model {name!r} refuses every call: {reason}", status)


def _message(result: Any) -> AIMessage:
    """Return the raw reply, whichever rung it came by."""
    parts = result if isinstance(result, dict) else {"raw": result}
    if isinstance(raw := parts.get("raw"), AIMessage):
        return raw
    parsed = parts.get("parsed", result)
    if isinstance(parsed, BaseModel):
        parsed = parsed.model_dump()
    return AIMessage("" if parsed is None else json.dumps(parsed))


def with_timeout(seconds: float | None, effect: Effect) -> Effect:
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

    return Effect(now, later)


async def ask(
    question: Question,
    variables: Mapping[str, object],
    account: Account,
    *,
    unit: str = "",
    order: Order | None = None,
    seed: int | None = None,
) -> Reply:
    """Ask a question about one unit of work.

    Args:
        question: What is asked.
        variables: Fill the prompt's template.
        account: Of the row: what the reply cost and how it failed is booked there.
        unit: What the step works on, as people call it: `Clarity (A first)`.
        order: The order in which the texts are shown.
        seed: Set for one sample of many; distinct for each, so that no cache makes one
            reply of them all.

    Raises:
        ModelAccessError: The provider refuses access (HTTP 401; 403 and 404 before the model
            has answered anything).
        RunStopped: The run of `judge_many` asks nothing more.
    """
    asking, booking = Asking(question, variables, account, unit, order, seed), account.open()
    run = account.run
    try:
        reply = await _logged(asking)
        # The same list: what a step finds wrong with the reply is booked beside it.
        booking.failures, booking.usage = reply.failures, reply.usage
        event = {"failures": list(reply.failures), "usage": reply.usage}
        emit("reply", question.step, event, unit)
        return reply
    except ModelAccessError as exc:
        if run and run.end_run and exc.status == 401:
            run.end_run(exc)
            # The graph would cancel the calls beside this one.
            await run.limiter.idle(GRACE)
        raise
    finally:
        # Also where the run is stopped midway: what came until then was paid for.
        if run:
            run.book(asking.usage())


def _rendered(question: Question, variables: Mapping[str, object]) -> list[BaseMessage]:
    """Return the messages of a question, before its fences are sealed.

    What many rows share, the variable `shared`, ends the system message whatever the template
    says: before the row, so that providers can cache it, and in templates of a caller's own.
    """
    prompt = question.prompt
    if isinstance(prompt, reading.OwnPrompt) and prompt.fences:
        variables = {**variables, **prompt.fenced(variables)}
    try:
        if prompt.partial_variables:
            messages = prompt.format_messages(**variables)
        else:
            messages = [each for part in prompt.messages for each in _filled(part, variables)]
    except KeyError as exc:
        lacking = sorted(set(prompt.input_variables) - set(variables))
        what = f"the prompt {question.step!r} shows {lacking}, which this row does not have"
        raise InputError(what) from exc
    if not (shared := variables.get("shared")):
        return messages
    if not isinstance(first := messages[0], SystemMessage):
        return [SystemMessage(str(shared).strip()), *messages]
    return [SystemMessage(f"{first.content}{shared}"), *messages[1:]]


def _filled(part: Any, variables: Mapping[str, object]) -> list[BaseMessage]:
    """Return the messages of a part of a prompt."""
    if isinstance(part, BaseMessage):
        return [part]
    kind, text = _KINDS.get(type(part)), vars(part).get("prompt")
    is_plain = isinstance(text, prompts.PromptTemplate) and text.template_format == "f-string"
    if not kind or not is_plain or text.partial_variables:
        return list(part.format_messages(**variables))
    # LangChain's own formatter takes ten times as long.
    filled = text.template.format_map(variables)
    return [kind(filled, additional_kwargs=part.additional_kwargs)]


async def _logged(asking: Asking) -> Reply:
    """Take the reply that was paid for already, before a kill even, or ask.

    A new one is in the log before anything else is waited for.
    """
    question, run = asking.question, asking.account.run
    messages = sealed_messages(_rendered(question, asking.variables))
    asking.messages = _with_media(messages, asking.account.row)
    asking.key = call_key(asking)
    key = key_of(question.method, question.step, asking.unit, *asking.key)
    row = run.replies if run else None

    async def ask_now() -> StoredReply:
        return (await _cached(asking) or await _checked(asking)).stored()

    if not question.is_shared:
        reply = Reply.of(await question.log.reply(key, ask_now, _is_paid, row))
    else:
        found = await question.log.shared(key, ask_now, _is_whole, row)
        reply = Reply.of(found.value)
        if found.elsewhere:
            asking.cost = no_step_usage() | {"cached_calls": 1}
            reply.usage = asking.usage()
    if asking.cost["calls"] and reply.data is not None and reply.problem is None:
        await _cache(asking, reply)
    return reply


def _is_whole(entry: StoredReply) -> bool:
    return entry["data"] is not None and not entry["problem"]


def _is_paid(entry: StoredReply) -> bool:
    return bool(entry["usage"]["calls"]) and not entry["failures"]


def _with_media(messages: list[BaseMessage], holder: object) -> list[BaseMessage]:
    """Put images, audio and files where the prompt has their marks."""
    shown = list(messages)
    for at, message in enumerate(messages):
        if isinstance(message, HumanMessage) and isinstance(message.content, str):
            shown[at] = with_content(message, with_media(message.content, holder))
    return shown


async def _cached(asking: Asking) -> Reply | None:
    """The reply that the cache has, if it has one that fits."""
    if (cache := asking.question.cache) is None:
        return None
    key = asking.key
    found = await Effect(lambda: cache.lookup(*key), lambda: cache.alookup(*key))
    return _fitting(found[0].text, asking) if found else None


async def _cache(asking: Asking, reply: Reply) -> None:
    """Put a new reply that is usable as a whole into the cache."""
    if (cache := asking.question.cache) is None:
        return
    key = asking.key
    entry: dict[str, object] = {"data": reply.data, "measured": reply.measured}
    if lacking := reply.usage.get("asked_without"):
        entry["asked_without"] = lacking
    value = [Generation(text=json.dumps(entry, ensure_ascii=False))]
    await Effect(lambda: cache.update(*key, value), lambda: cache.aupdate(*key, value))


def call_key(asking: Asking) -> tuple[str, str]:
    """The two strings by which the log and a LangChain cache know a call."""
    question = asking.question
    messages = [_message_key(message) for message in asking.messages]
    prompt = json.dumps(messages, ensure_ascii=False)
    call = {
        "model": question.adapter.identity,
        # What the model refuses is learnt anew by each process.
        "sampling": question.adapter.wanted_sampling(question.sampled, asking.seed),
        "seed": asking.seed,
        "reply": reading.json_schema(question.shape),
        # A reply that was kept without log-probabilities is no answer where they are wanted.
        "measured": [question.logprobs, question.measured_as],
    }
    if question.own:
        call["read"] = [question.own.reply, question.own.values]
    return prompt, json.dumps(call, sort_keys=True, default=str)


def _message_key(message: BaseMessage) -> list[Any]:
    """Key of a message: two histories may differ in their tool calls alone."""
    fields = ("tool_calls", "tool_call_id")
    of_tools = {name: found for name in fields if (found := getattr(message, name, None))}
    return [message.type, message.content, *([of_tools] if of_tools else [])]


def _fitting(text: str, asking: Asking) -> Reply | None:
    """The reply that a cache has for a call, if it still fits."""
    try:
        entry = json.loads(text)
        data, _ = reading.check(entry["data"], asking.question.shape)
    except (ValueError, TypeError, KeyError):
        return None
    if data is None:
        return None
    asking.cost["cached_calls"] = 1
    asking.lacking.update(entry.get("asked_without") or [])
    reply = asking.reply(data, None)
    reply.measured = entry.get("measured") or {}
    return reply


async def _checked(asking: Asking) -> Reply:
    """Send the messages, check the reply, and ask for a repair where it cannot be used."""
    question, own, variables = asking.question, asking.question.own, asking.variables
    # A repair would ask for another form than the caller's own.
    repairs_to_go = 0 if own else question.repairs
    material = sealed([str(variables[name]) for name in _MATERIAL if variables.get(name)])

    def read(sent: Sent, message: AIMessage, shape: type[BaseModel]) -> reading.Reading:
        parse = partial(own.parse, shape=question.shape) if own else question.parse
        tool, alone = sent.request.tool, own is not None
        return reading.read(message, shape, parse, tool, material, words_alone=alone)

    while True:
        sent = await send(asking)
        message = sent.message
        if message is None:
            return asking.reply(None, sent.problem)
        data, problem = read(sent, message, question.shape)
        if problem and problem.reason not in _NO_REPAIR:
            if repairs_to_go:
                repairs_to_go -= 1
                schema = json.dumps(reading.json_schema(question.shape))
                repair = _REPAIR.format(detail=problem.detail, schema=schema)
                unusable = AIMessage(message.text.strip() or "(no text)")
                asking.messages = [*asking.messages, unusable, HumanMessage(repair)]
                continue
            if question.partial:
                data, _ = read(sent, message, question.partial)
        if data is None:
            return asking.reply(None, problem)
        reply = asking.reply(data, None)
        reply.problem = problem
        if question.measure:
            reply.measured = question.measure(message, data)
        return reply


def recorded(
    question: Question,
    value: object,
    result: Mapping[str, object],
    *,
    unit: str,
    order: Order | None = None,
    seed: int | None = None,
) -> Effect:
    """Record a run in the trace for a result that had no call of its own.

    Args:
        question: What was asked, or would have been.
        value: The input of the run.
        result: Its output.
        unit: As for `ask`.
        order: As for `ask`.
        seed: As for `ask`.
    """
    sampling = question.adapter.sampling(question.sampled, seed)
    config = Asking(question, {}, Account(), unit, order, seed).config(sampling)
    task: RunnableLambda[object, object] = RunnableLambda(lambda _: dict(result))
    return Effect(lambda: task.invoke(value, config), lambda: task.ainvoke(value, config))
