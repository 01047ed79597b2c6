"""Replies in a LangChain cache: under which key, and what is kept."""

from __future__ import annotations

import json

from langchain_core.caches import BaseCache
from langchain_core.messages import BaseMessage
from langchain_core.outputs import Generation

from langchain_judges.asking.question import Asking, Reply
from langchain_judges.asking.replies.reading import check
from langchain_judges.asking.schema import json_schema
from langchain_judges.asking.steps import Effect, Steps


def cache_key(asking: Asking, messages: list[BaseMessage]) -> tuple[str, str]:
    """Return the two strings by which a LangChain cache knows a call."""
    question = asking.question
    prompt = json.dumps([[m.type, m.content] for m in messages], ensure_ascii=False)
    call = {
        "model": question.channel.identity,
        # What the model refuses is learnt anew by each process.
        "sampling": question.channel.wanted_sampling(question.sampled, asking.seed),
        "seed": asking.seed,
        "reply": json_schema(question.shape),
        # A reply that was kept without log-probabilities is no answer where they are wanted.
        "measured": [question.logprobs, question.measured_as],
    }
    return prompt, json.dumps(call, sort_keys=True, default=str)


def cached_reply(cache: BaseCache, key: tuple[str, str], asking: Asking) -> Steps[Reply | None]:
    """Return the reply that a cache has for a call, if it still fits."""
    generations = yield Effect(lambda: cache.lookup(*key), lambda: cache.alookup(*key))
    if not generations:
        return None
    try:
        entry = json.loads(generations[0].text)
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


def keep_reply(cache: BaseCache, key: tuple[str, str], reply: Reply) -> Steps[None]:
    """Put a good reply into a cache."""
    entry: dict[str, object] = {"data": reply.data, "measured": reply.measured}
    if lacking := reply.usage.get("asked_without"):
        entry["asked_without"] = lacking
    value = [Generation(text=json.dumps(entry, ensure_ascii=False))]
    yield Effect(lambda: cache.update(*key, value), lambda: cache.aupdate(*key, value))
