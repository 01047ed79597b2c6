"""A request of a question: sent within limits and a deadline, and again where that may help."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import merge_configs
from pydantic import BaseModel

from langchain_judges.asking import effects, failures, limiter, reading
from langchain_judges.asking.adapter import ModelAdapter, ReplyRequest, beginnings
from langchain_judges.asking.question import Asking
from langchain_judges.errors import ModelAccessError, ModelSetupError
from langchain_judges.rows.texts import plain

# How often a request is sent if errors that can pass keep it from being answered.
ATTEMPTS = 4
# Seconds before the second attempt; each further wait is twice as long.
FIRST_WAIT = 0.5


class Sent(NamedTuple):
    """Outcome of a request, as it was sent last; without a message, the problem says why."""

    message: AIMessage | None
    request: ReplyRequest
    problem: reading.Problem | None


async def send(asking: Asking) -> Sent:
    """Send the messages until a reply comes, or an error that will not pass.

    Where the provider caches how prompts begin, the first call that begins so is answered
    before the others are sent.
    """
    question, adapter, messages = asking.question, asking.question.adapter, asking.messages
    if (run := asking.account.run) and run.shown:
        return _show_request(asking, run.shown)
    cache = adapter.prompt_cache if question.cache_first else None
    is_shared = cache and (question.shares_material or cache == "by prefix")
    if not (found := beginnings(messages, question.reply_schema) if is_shared else None):
        return await _until_answered(asking, messages)
    keys, asking.cache_key = found.keys, found.keys[0]
    if cache == "by marks":
        keys, messages = keys[-1:], found.marked
    async with adapter.first_calls.turn(keys) as waiting:
        sent = await _until_answered(asking, messages)
        if sent.message:
            waiting.clear()
        return sent


def _show_request(asking: Asking, show: limiter.Show) -> Sent:
    """Show the request that would be sent, and send nothing."""
    question = asking.question
    request = question.adapter.request(question.reply_schema, {})
    schema = reading.json_schema(question.reply_schema)
    show(f"{question.step} {asking.unit}".strip(), request.messages(asking.messages), schema)
    return Sent(None, request, reading.Problem("missing", "it was only shown"))


async def _until_answered(asking: Asking, messages: list[BaseMessage]) -> Sent:
    adapter, back_off, attempts = asking.question.adapter, FIRST_WAIT, ATTEMPTS
    left_out: set[str | None] = set()
    while True:
        request, outcome = await _call(asking, messages)
        if isinstance(outcome, AIMessage):
            return Sent(outcome, request, None)
        if problem := failures.paid_error(outcome):
            return Sent(None, request, problem)
        asking.cost["retries"] += 1
        if failures.rejects(outcome):
            complaint = failures.complaint_of(outcome, [message.text for message in messages])
            if adapter.learn(request, complaint):
                left_out.add(complaint.refused(request.sent))
                continue
            adapter.refused -= left_out  # it has not helped
        attempts -= 1
        if not attempts or not failures.can_pass(outcome):
            return Sent(None, request, failures.diagnosis(outcome))
        run, seconds = asking.account.run, failures.wait_after(outcome, back_off)
        # The end of a run ends the wait too.
        await (run.limiter.pause(seconds) if run and run.end_run else effects.pause(seconds))
        back_off *= 2


async def _call(
    asking: Asking, messages: list[BaseMessage]
) -> tuple[ReplyRequest, AIMessage | Exception]:
    """Make one call, once the limiter allows it, and book its cost.

    A reply keeps its place until it is written down: a killed run loses no more replies than
    it has places.
    """
    adapter, run = asking.question.adapter, asking.account.run
    if run:
        await run.limiter.enter(run.rank, adapter.model)
    paid: reading.TokenUsage | None = None
    reply = ""
    try:
        # Not before: other calls may have learnt meanwhile what the model refuses.
        request = _request(asking)
        outcome = await _reply_or_error(asking, request, messages)
        if isinstance(outcome, AIMessage):
            paid, reply = reading.token_usage(outcome), str(_conversation([outcome]))
            asking.cost["cached_calls"] += paid is None
        else:
            paid = failures.usage_despite(outcome)
        return request, outcome
    finally:
        if paid is not None:
            asking.cost["calls"] += 1
            asking.cost["input_tokens"] += paid.input_tokens
            asking.cost["output_tokens"] += paid.output_tokens
            asking.cost["cached_tokens"] += paid.cached_tokens
        if run:
            texts = [message.text for message in messages]
            asking.leave = partial(run.leave, adapter.model, paid, texts, reply)
            if not reply:
                asking.give_back()


def _request(asking: Asking) -> ReplyRequest:
    question, adapter = asking.question, asking.question.adapter
    sampling = adapter.sampling(question.sampled, asking.seed)
    if question.tools and adapter.calls_tools:
        return adapter.calling(question.tools, sampling, asking.cache_key)
    return adapter.request(
        question.reply_schema,
        sampling,
        logprobs=question.logprobs,
        alternatives=question.alternatives,
        sampled=asking.seed is not None,
        cache_key=asking.cache_key,
    )


async def _reply_or_error(
    asking: Asking, request: ReplyRequest, messages: list[BaseMessage]
) -> AIMessage | Exception:
    question, adapter, run = asking.question, asking.question.adapter, asking.account.run
    config = question.config(asking.unit, asking.order, asking.seed)
    prompt = request.messages(messages)
    kept = _KeptReply()
    if request.rung not in ("response_format", "text"):
        config["callbacks"] = merge_configs({}, {"callbacks": [kept]})["callbacks"]
    try:
        effects.check_stop()
        call = effects.Effect.of(request.runnable, "invoke", prompt, config, **request.settings)
        message = _raw_reply(await with_timeout(adapter.deadline, call), kept, request.tool)
    except (*failures.NOT_FAILURES, ModelSetupError):
        raise
    except Exception as exc:  # noqa: BLE001 - a model may raise anything, and one unit fails
        if denied := _denied(exc, adapter):
            # The provider's own words may hold the key: a traceback would show them.
            raise denied from None
        if (reply := kept.message or failures.reply_in(exc)) is None:
            return exc
        if kept.message and reply.text.strip():  # a refusal says nothing of the way
            adapter.ask_by_schema(request)
        message = reply
    adapter.answered = True
    seed, logprobs = asking.seed is not None, question.logprobs
    asking.dropped_settings |= adapter.asked_without(request, seed=seed, logprobs=logprobs)
    if run and run.replies:
        run.replies.keep_request(asking.unit, _conversation([*prompt, message]))
    return message


class _KeptReply(BaseCallbackHandler):
    """The reply of a model as it came, whatever its client makes of it or raises."""

    run_inline = True
    ignore_chat_model = True

    def __init__(self) -> None:
        self.message: AIMessage | None = None
        self._calls: dict[object, dict[str, str]] = {}

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        """Keep what a stream brings of calls: LangChain completes arguments that were cut."""
        for part in getattr(getattr(chunk, "message", None), "tool_call_chunks", ()):
            call = self._calls.setdefault(part.get("index"), {"name": "", "arguments": ""})
            call["name"] += part.get("name") or ""
            call["arguments"] += part.get("args") or ""

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keep the reply, which is paid for."""
        for each in response.generations[0][:1]:
            self.message = getattr(each, "message", None)
        calls, self._calls = [{"function": each} for each in self._calls.values()], {}
        if self.message and len(reading.calls_made(self.message)) == len(calls) > 0:
            self.message.additional_kwargs.setdefault("tool_calls", calls)

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Keep no reply of a model that the judge's own model asked before it failed."""
        self.message = None


def _conversation(messages: list[BaseMessage]) -> list[list[str]]:
    """Who says what in a request and its reply, as people read it."""
    return [[each.type, plain(each.content) or said_by_calls(each)] for each in messages]


def said_by_calls(message: BaseMessage) -> str:
    """The calls of tools that a message makes, as JSON; empty where it makes none."""
    parts = (getattr(message, f"{kind}tool_calls", ()) for kind in ("", "invalid_"))
    calls = [*chain.from_iterable(parts)]
    return json.dumps(calls, default=str) if calls and not reading.too_deep(calls) else ""


def _denied(error: Exception, adapter: ModelAdapter) -> ModelAccessError | None:
    """The exception for an error that no other request of the model can escape."""
    status = failures.status_of(error)
    is_of_request = status not in {403, 404} or adapter.answered or failures.refuses_text(error)
    if status != 401 and is_of_request:
        return None
    name, reason = adapter.identity["name"], failures.in_a_line(error)
    return ModelAccessError(f"The model {name!r} refuses every call: {reason}", status)


def _raw_reply(result: Any, kept: _KeptReply, tool: str | None) -> AIMessage:
    """The raw reply, whichever rung it came by and whatever its client makes of it.

    A client may read what is no JSON: then its own reading stands in the reply.
    """
    parts = result if isinstance(result, dict) else {"raw": result}
    if isinstance(raw := parts.get("raw"), AIMessage):
        return raw
    message = kept.message or AIMessage("")
    if "{" in message.text or tool in dict(reading.calls_made(message)):
        return message
    parsed = parts.get("parsed", result)
    said = "" if parsed is None else json.dumps(parsed, default=BaseModel.model_dump)
    return message.model_copy(update={"content": said, "tool_calls": []})


def with_timeout(seconds: float | None, effect: effects.Effect) -> effects.Effect:
    """An effect that raises `TimeoutError` if it takes longer than some seconds.

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

    return effects.Effect(now, later)
