"""ask(): prompt → model → checked reply. The only place where a model is called.

The functions stand in the order of the way: the reply that a killed run has paid for
(`_paid_once`), else the one that a cache has (`_cached`), else one that is sent for, checked
and asked for once more where it cannot be used (`_checked`).

Every way to fail ends in one of two places. A `Failure` in the reply, if only this unit is
lost: an unusable reply (after one repair turn that shows what was wrong), a refusal, a
reply that was cut, a provider error (after retries, if it could pass). Or an exception, if
asking on is useless: `ModelAccessError` for a wrong key, `RunStopped` for a run that ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import Generation
from langchain_core.prompts import (
    HumanMessagePromptTemplate,
    PromptTemplate,
    SystemMessagePromptTemplate,
)
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from langchain_judges.asking.limiter import ROW_COST
from langchain_judges.asking.reading import Reading, check, json_schema, read
from langchain_judges.asking.send import Asking, Question, Reply, Sent, StoredReply, send
from langchain_judges.asking.steps import NODE_INPUT, Steps, Wait, emit
from langchain_judges.asking.store import key_of
from langchain_judges.errors import InputError, ModelAccessError
from langchain_judges.orders import Order
from langchain_judges.rows.fences import sealed, sealed_messages, with_content
from langchain_judges.rows.media import with_media

# Seconds that calls in flight get to come back when a run ends early.
GRACE = 10.0
_REPAIR = (
    "That reply cannot be used: {detail}.\n"
    "Reply again, with nothing but a JSON object that fits this JSON schema:\n{schema}"
)
_NO_REPAIR = {"refusal", "truncated"}
_KINDS: dict[type, type[HumanMessage | SystemMessage]] = {
    HumanMessagePromptTemplate: HumanMessage,
    SystemMessagePromptTemplate: SystemMessage,
}
# Variables of prompts that hold what other people wrote, and a reply may quote.
_MATERIAL = (
    *("candidate_1", "candidate_2", "claims", "expected", "findings", "rationale", "reference"),
    *("request", "response", "response_1", "response_2", "source", "summaries"),
    *("table", "table_1", "table_2", "task", "text"),
)


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
    asking = Asking(question, unit, order, seed)
    try:
        reply = yield from _paid_once(asking, variables)
        event = {"failures": reply.failures, "usage": reply.usage}
        emit("reply", question.step, event, unit)
        return reply
    except ModelAccessError as exc:
        yield from _let_others_return(exc)
        raise
    finally:
        # Also where the run is stopped midway: what came until then was paid for.
        if row_cost := ROW_COST.get():
            row_cost.book(asking.usage())


def _rendered(question: Question, variables: Mapping[str, object]) -> list[BaseMessage]:
    """Return the messages of a question, before its fences are sealed.

    What many rows share, the variable `shared`, ends the system message whatever the template
    says: before the row, so that providers can cache it, and in templates of a caller's own.
    """
    prompt = question.prompt
    try:
        if prompt.partial_variables:
            messages = prompt.format_messages(**variables)
        else:
            messages = [each for part in prompt.messages for each in _filled(part, variables)]
    except KeyError as exc:
        lacking = sorted(set(prompt.input_variables) - set(variables))
        raise InputError(
            f"the prompt {question.step!r} shows {lacking}, which this row does not have"
        ) from exc
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
    is_plain = isinstance(text, PromptTemplate) and text.template_format == "f-string"
    if not kind or not is_plain or text.partial_variables:
        messages: list[BaseMessage] = part.format_messages(**variables)
        return messages
    # LangChain's own formatter takes ten times as long.
    filled = text.template.format_map(variables)
    return [kind(filled, additional_kwargs=part.additional_kwargs)]


def _paid_once(asking: Asking, variables: Mapping[str, object]) -> Steps[Reply]:
    """Take the reply that an earlier run has paid for, before a kill even, or ask."""
    question = asking.question
    messages = _with_media(sealed_messages(_rendered(question, variables)))
    replies = row_cost.replies if (row_cost := ROW_COST.get()) else None
    if replies is None and question.replies:
        replies = yield from question.replies.running()
    if replies is None:
        return (yield from _cached(asking, messages, variables))

    def ask_now() -> Steps[StoredReply]:
        return (yield from _cached(asking, messages, variables)).stored()

    def is_good(entry: StoredReply) -> bool:
        return bool(entry["usage"]["calls"]) and not entry["failures"]

    key = key_of(question.method, question.step, asking.unit, *cache_key(asking, messages))
    return Reply.of((yield from replies.once(replies.numbered(key), ask_now, is_good)))


def _with_media(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Put images, audio and files where the prompt has their marks."""
    holder = NODE_INPUT.get()
    return [
        with_content(message, with_media(message.content, holder))
        if isinstance(message, HumanMessage) and isinstance(message.content, str)
        else message
        for message in messages
    ]


def _cached(
    asking: Asking, messages: list[BaseMessage], variables: Mapping[str, object]
) -> Steps[Reply]:
    """Take the reply that the cache has, or ask and put it there if it is usable as a whole."""
    cache = asking.question.cache
    if cache is None:
        return (yield from _checked(asking, messages, variables))
    key = cache_key(asking, messages)
    found = yield Wait(lambda: cache.lookup(*key), lambda: cache.alookup(*key))
    if found and (kept := _fitting(found[0].text, asking)):
        return kept
    reply = yield from _checked(asking, messages, variables)
    if reply.data is not None and reply.problem is None:
        entry: dict[str, object] = {"data": reply.data, "measured": reply.measured}
        if lacking := reply.usage.get("asked_without"):
            entry["asked_without"] = lacking
        value = [Generation(text=json.dumps(entry, ensure_ascii=False))]
        yield Wait(lambda: cache.update(*key, value), lambda: cache.aupdate(*key, value))
    return reply


def cache_key(asking: Asking, messages: list[BaseMessage]) -> tuple[str, str]:
    """Return the two strings by which a LangChain cache knows a call."""
    question = asking.question
    prompt = json.dumps([[m.type, m.content] for m in messages], ensure_ascii=False)
    call = {
        "model": question.adapter.identity,
        # What the model refuses is learnt anew by each process.
        "sampling": question.adapter.wanted_sampling(question.sampled, asking.seed),
        "seed": asking.seed,
        "reply": json_schema(question.shape),
        # A reply that was kept without log-probabilities is no answer where they are wanted.
        "measured": [question.logprobs, question.measured_as],
    }
    if question.own:
        call["read"] = [question.own.reply, question.own.values]
    return prompt, json.dumps(call, sort_keys=True, default=str)


def _fitting(text: str, asking: Asking) -> Reply | None:
    """Return the reply that a cache has for a call, if it still fits."""
    try:
        entry = json.loads(text)
        data, _ = check(entry["data"], asking.question.shape)
    except (ValueError, TypeError, KeyError):
        return None
    if data is None:
        return None
    asking.cost["cached_calls"] = 1
    asking.lacking.update(entry.get("asked_without") or [])
    reply = asking.reply(data, None)
    reply.measured = entry.get("measured") or {}
    return reply


def _checked(
    asking: Asking, messages: list[BaseMessage], variables: Mapping[str, object]
) -> Steps[Reply]:
    """Send the messages, check the reply, and ask for a repair where it cannot be used."""
    question, own = asking.question, asking.question.own
    # A repair would ask for another form than the caller's own.
    repairs_to_go = 0 if own else question.repairs
    material = sealed([str(variables[name]) for name in _MATERIAL if variables.get(name)])

    def reading(sent: Sent, message: AIMessage, shape: type[BaseModel]) -> Reading:
        parse = partial(own.parse, shape=question.shape) if own else question.parse
        tool = sent.request.tool
        return read(message, shape, parse, tool, material, words_alone=own is not None)

    while True:
        sent = yield from send(asking, messages)
        message = sent.message
        if message is None:
            return asking.reply(None, sent.problem)
        data, problem = reading(sent, message, question.shape)
        if problem and problem.reason not in _NO_REPAIR:
            if repairs_to_go:
                repairs_to_go -= 1
                schema = json.dumps(json_schema(question.shape))
                repair = _REPAIR.format(detail=problem.detail, schema=schema)
                unusable = AIMessage(message.text.strip() or "(no text)")
                messages = [*messages, unusable, HumanMessage(repair)]
                continue
            if question.partial:
                data, _ = reading(sent, message, question.partial)
        if data is None:
            return asking.reply(None, problem)
        reply = asking.reply(data, None, message)
        reply.problem = problem
        if question.measure:
            reply.measured = question.measure(message, data)
        return reply


def _let_others_return(refusal: ModelAccessError) -> Steps[None]:
    """End the run, and wait for the calls beside this one: its graph would cancel them."""
    row_cost = ROW_COST.get()
    if row_cost and row_cost.end_run and refusal.status == 401:
        row_cost.end_run(refusal)
        yield from row_cost.limiter.idle(GRACE)


def recorded(
    question: Question,
    value: object,
    result: Mapping[str, object],
    *,
    unit: str,
    order: Order | None = None,
    seed: int | None = None,
) -> Wait:
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
    config = Asking(question, unit, order, seed).config(sampling)
    task: RunnableLambda[object, object] = RunnableLambda(lambda _: dict(result))
    return Wait(lambda: task.invoke(value, config), lambda: task.ainvoke(value, config))
