"""ask(): prompt → model → checked reply. The only place where a model is called.

The way of a question: the reply that a killed run has paid for (`_logged`), else the one that
a cache has (`_cached`), else one that is sent for (`send.py`), checked (`reading.py`) and asked
for once more where it cannot be used (`_checked_reply`).

Every way to fail ends in one of two places. A `Failure` in the reply, if only this unit is
lost: an unusable reply (after one repair turn that shows what was wrong), a refusal, a
reply that was cut, a provider error (after retries, if it could pass). Or an exception, if
asking on is useless: `ModelSetupError` for a wrong key or no model, `RunStopped` for a run
that ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import Generation
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel

from langchain_judges import orders, verdict
from langchain_judges.asking import failures, reading, reply_log
from langchain_judges.asking.effects import Effect, emit
from langchain_judges.asking.question import Account, Asking, Question, Reply, StoredReply
from langchain_judges.asking.send import Sent, said_by_calls, send
from langchain_judges.errors import ModelSetupError
from langchain_judges.rows import fences, texts

# Seconds that calls in flight get to come back when a run ends early.
GRACE = 10.0
# Variables of prompts that hold what other people wrote, and a reply may quote.
_MATERIAL = reading.REPLY_NAMES["material"]


async def ask(
    question: Question,
    variables: Mapping[str, object],
    account: Account,
    *,
    unit: str = "",
    order: orders.Order | None = None,
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
        ModelSetupError: The model itself says that it cannot be asked.
        RunStopped: The run of `judge_many` asks nothing more.
    """
    asking, booking = Asking(question, variables, account, unit, order, seed), account.open()
    run = account.run
    try:
        reply = await _logged(asking)
        booking.failures, booking.usage = reply.failures, reply.usage
        emit("reply", question.step, {"failures": reply.failures, "usage": reply.usage}, unit)
        return reply
    except ModelSetupError as exc:
        if run and run.end_run and failures.ends_the_run(exc):
            run.end_run(exc)
            # The graph would cancel the calls beside this one.
            await run.limiter.idle(GRACE)
        raise
    finally:
        asking.give_back()
        # Also where the run is stopped midway: what came until then was paid for.
        if run:
            run.book(asking.usage())


async def _logged(asking: Asking) -> Reply:
    """Take the reply that was paid for already, before a kill even, or ask.

    A new one is in the log before anything else is waited for.
    """
    question, run = asking.question, asking.account.run
    row = run.replies if run else None

    def key() -> str:
        return reply_log.key_of(question.method, question.step, asking.unit, *asking.key)

    async def ask_now(draft: reply_log.Draft) -> StoredReply:
        return (await _cached(asking) or await _checked_reply(asking, draft)).stored()

    if not question.is_shared:
        reply = Reply.of(await question.log.reply(key, ask_now, _is_paid, row))
    else:
        stored, is_of_another = await question.log.shared(key(), ask_now, _is_whole, row)
        reply = Reply.of(stored)
        if is_of_another:
            asking.cost = verdict.no_step_usage() | {"cached_calls": 1}
            reply.usage = asking.usage()
    if asking.cost["calls"] and reply.data is not None and reply.problem is None:
        await _cache(asking, reply)
    return reply


def _is_whole(entry: StoredReply) -> bool:
    return entry["data"] is not None and not entry["problem"]


def _is_paid(entry: StoredReply) -> bool:
    return bool(entry["usage"]["calls"]) and not entry["failures"]


async def _cached(asking: Asking) -> Reply | None:
    """The reply that the cache has, if it has one that fits."""
    cache = asking.question.cache
    if not (found := await Effect.of(cache, "lookup", *asking.key) if cache else None):
        return None
    try:
        entry = json.loads(found[0].text)
        data, _ = reading.check(entry["data"], asking.question.reply_schema)
    except (ValueError, TypeError, KeyError):
        return None
    if data is None:
        return None
    asking.cost["cached_calls"] = 1
    asking.dropped_settings.update(entry.get("asked_without") or [])
    reply = asking.reply(data, None)
    reply.measured = entry.get("measured") or {}
    return reply


async def _cache(asking: Asking, reply: Reply) -> None:
    """Put a new reply that is usable as a whole into the cache."""
    if (cache := asking.question.cache) is None:
        return
    entry: dict[str, object] = {"data": reply.data, "measured": reply.measured}
    if lacking := reply.usage.get("asked_without"):
        entry["asked_without"] = lacking
    value = [Generation(text=json.dumps(entry, ensure_ascii=False))]
    await Effect.of(cache, "update", *asking.key, value)


async def _checked_reply(asking: Asking, draft: reply_log.Draft) -> Reply:
    """Send the messages, check the reply, and ask for a repair where it cannot be used.

    An unusable reply is kept as a draft before its repair is asked for, so that a run that is
    killed between them asks for the repair alone.
    """
    question = asking.question
    kept = draft.find() or {"repairs": [], "cost": asking.cost}
    repairs, asking.cost = kept["repairs"], kept["cost"]
    while True:
        turns = [(AIMessage(text), HumanMessage(repair)) for text, repair in repairs]
        asking.messages = [*asking.prompt, *chain.from_iterable(turns)]
        sent = await send(asking)
        message = sent.message
        if message is None:
            return asking.reply(None, sent.problem)
        data, problem = _read_reply(asking, sent, message, question.reply_schema)
        if problem and problem.reason not in {"refusal", "truncated"}:
            if len(repairs) < question.repairs:
                said = f"{message.text}\n{said_by_calls(message)}".strip() or "(no text)"
                repairs.append(texts.without_lone_surrogates([said, _repair(question, problem)]))
                draft.keep({"repairs": repairs, "cost": asking.cost})
                asking.give_back()
                continue
            if question.partial:
                data, _ = _read_reply(asking, sent, message, question.partial)
        if data is None:
            return asking.reply(None, problem)
        reply = asking.reply(data, None)
        reply.problem = problem
        if question.measure:
            reply.measured = question.measure(message, data)
        return reply


def _read_reply(
    asking: Asking, sent: Sent, message: AIMessage, shape: type[BaseModel]
) -> reading.Reading:
    if sent.request.rung == "calls":
        return reading.read_calls(message, shape)
    material = _material(asking.variables)
    parse, request = asking.question.parse, sent.request
    found = reading.read(message, shape, parse, request.tool, material, is_free=request.is_free)
    if request.is_free and found[1] and found[1].reason == "unparsable":
        asking.question.adapter.ask_by_schema(request)
    return found


def _material(variables: Mapping[str, object]) -> Iterator[str]:
    """Yield the judged texts as the model was shown them; of use to few replies."""
    yield from fences.sealed([str(variables[name]) for name in _MATERIAL if variables.get(name)])


def _repair(question: Question, problem: reading.Problem) -> str:
    schema = json.dumps(reading.json_schema(question.reply_schema))
    return str(reading.REPLY_NAMES["repair"][0]).format(detail=problem.detail, schema=schema)


def traced(config: RunnableConfig, value: object, result: Mapping[str, object]) -> Effect:
    """Record a run in the trace for a result that had no call of its own.

    Args:
        config: Of a question, as if it had been asked.
        value: The input of the run.
        result: Its output.
    """
    task: RunnableLambda[object, object] = RunnableLambda(lambda _: dict(result))
    return Effect.of(task, "invoke", value, config)
