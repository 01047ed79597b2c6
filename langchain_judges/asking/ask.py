"""ask(): prompt → model → checked reply. The only place where a model is called.

Every way to fail ends in one of two places. A `Failure` in the reply, if only this unit is
lost: an unusable reply (after one repair turn that shows what was wrong), a refusal, a
reply that was cut, a provider error (after retries, if it could pass). Or an exception, if
asking on is useless: `ModelAccessError` for a wrong key, `RunStopped` for a run that ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from langchain_judges.asking.channel import ReplyRequest
from langchain_judges.asking.journal import key_of
from langchain_judges.asking.ledger import LEDGER
from langchain_judges.asking.question import Asking, Question, Reply
from langchain_judges.asking.replies.reading import Problem, read
from langchain_judges.asking.reply_cache import cache_key, cached_reply, keep_reply
from langchain_judges.asking.schema import json_schema
from langchain_judges.asking.sending import send
from langchain_judges.asking.steps import NODE_INPUT, Effect, Steps
from langchain_judges.asking.stream import tell
from langchain_judges.errors import ModelAccessError
from langchain_judges.orders import Order
from langchain_judges.rows.media import with_media

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
    config = Asking(question, unit, order, seed).config(sampling)
    task: RunnableLambda[Any, Any] = RunnableLambda(lambda _: dict(result))
    return Effect(lambda: task.invoke(value, config), lambda: task.ainvoke(value, config))


def _let_others_return(refusal: ModelAccessError) -> Steps[None]:
    """End the run, and wait for the calls beside this one: its graph would cancel them."""
    ledger = LEDGER.get()
    if ledger and ledger.end_run and refusal.status == 401:
        ledger.end_run(refusal)
        yield from ledger.gate.idle(GRACE)


def _journalled(asking: Asking, variables: Mapping[str, object]) -> Steps[Reply]:
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

    key = key_of(question.method, question.step, asking.unit, *cache_key(asking, messages))
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
    asking: Asking, messages: list[BaseMessage], variables: Mapping[str, object]
) -> Steps[Reply]:
    question = asking.question
    key = cache_key(asking, messages) if question.cache else None
    if key and (entry := (yield from cached_reply(question, key))) is not None:
        asking.cost["cached_calls"] = 1
        asking.lacking.update(entry["asked_without"])
        reply = asking.reply(entry["data"], None)
        reply.measured = entry["measured"]
        return reply
    repairs_to_go = question.repairs
    material = [str(variables[name]) for name in _JUDGED if variables.get(name)]
    while True:
        message, request, failed = yield from send(asking, messages)
        if message is None:
            return asking.reply(None, failed)
        data, wrong = read(message, question.shape, question.parse, request.tool, material)
        if wrong is None:
            reply = _measured(asking, message, data)
            if key:
                yield from keep_reply(question, key, reply)
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
    asking: Asking,
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


def _measured(asking: Asking, message: AIMessage, data: dict[str, Any] | None) -> Reply:
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
