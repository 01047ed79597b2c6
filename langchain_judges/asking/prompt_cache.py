"""Prompts that begin alike: the first of them is answered before the others are sent.

Providers charge little for the beginning of a prompt that they read from their cache, where it
stands once a prompt that begins so was answered. Calls of a pair that leave together would all
miss it. What calls have in common ends where a judged text ends: at a closing tag.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_judges.asking.clients import is_openai_compatible
from langchain_judges.asking.reading import json_schema
from langchain_judges.asking.steps import FirstCalls, Steps, end_of, unfinished
from langchain_judges.rows.texts import BYTES

T = TypeVar("T")
# Tokens of the shortest beginning that providers cache; for some models it is longer.
SHORTEST = 1024
_MARK = {"cache_control": {"type": "ephemeral"}}
_CLOSING_TAG = re.compile(r"</[a-z][\w-]*-[0-9a-f]{10,}>")
_GEMINI = {"ChatGoogleGenerativeAI", "ChatVertexAI"}


class Beginnings(NamedTuple):
    """What calls may have in common with a prompt, shortest first.

    Attributes:
        keys: Hashes of what stands up to each closing tag, where that is long enough to be
            cached.
        marked: The messages with a mark behind the last of them, for models that need one.
    """

    keys: tuple[str, ...]
    marked: list[BaseMessage]


class PromptCache:
    """Lets the first call of each beginning be answered before the others are sent.

    Args:
        needs_marks: Whether the model caches only up to a mark, and charges for what it writes.
    """

    def __init__(self, *, needs_marks: bool = False) -> None:
        """Start without having sent anything."""
        self.needs_marks = needs_marks
        self._calls = FirstCalls()

    @classmethod
    def of(cls, model: BaseChatModel) -> PromptCache | None:
        """Return the cache of a model whose provider has one, else None.

        In a batch job no call goes ahead of another, so nothing would be read.
        """
        if (getattr(model, "metadata", None) or {}).get("batch"):
            return None
        classes = {base.__name__ for base in type(model).__mro__}
        if "ChatAnthropic" in classes:
            return cls(needs_marks=True)
        return cls() if is_openai_compatible(model) or classes & _GEMINI else None

    def behind_first(
        self, keys: Sequence[str], sending: Steps[T], succeeded: Callable[[T], bool]
    ) -> Steps[T]:
        """Send, but not before a call that begins alike and was earlier has its reply.

        Args:
            keys: Of the prompt's beginnings, shortest first.
            sending: Sends it.
            succeeded: Says whether the beginning is in the cache then; if not, another call
                goes ahead.
        """
        own = unfinished()
        while (first := self._calls.ahead(keys, own)) is not None:
            yield end_of(first)
        answered = False
        try:
            result = yield from sending
            answered = succeeded(result)
            return result
        finally:
            self._calls.done(keys, own, succeeded=answered)


def beginnings(messages: Sequence[BaseMessage], shape: type[BaseModel]) -> Beginnings | None:
    """Return what other calls may send too; None where all of it is too short to cache.

    Args:
        messages: What is sent.
        shape: What the reply must look like; its schema is sent first.
    """
    keys: list[str] = []
    digest, size, last = hashlib.sha256(_bytes(json_schema(shape))), 0, None
    for number, message in enumerate(messages):
        for place, block in enumerate(_blocks(message)):
            text = block.get("text")
            parts = _up_to_tags(text) if isinstance(text, str) else [(_bytes(block), None)]
            for part, end in parts:
                digest.update(part)
                size += len(part)
                if end is not None and size >= SHORTEST * BYTES:
                    keys.append(digest.hexdigest()[:32])
                    last = number, place, end
    return Beginnings(tuple(keys), _marked(messages, *last)) if last else None


def _up_to_tags(text: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield the parts of a text up to each closing tag and where each ends, then the rest."""
    at = 0
    for tag in _CLOSING_TAG.finditer(text):
        yield text[at : tag.end()].encode("utf-8", "surrogatepass"), tag.end()
        at = tag.end()
    yield text[at:].encode("utf-8", "surrogatepass"), None


def _bytes(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, default=str).encode()


def _blocks(message: BaseMessage) -> list[Any]:
    content = message.content
    texts = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in texts]


def _marked(
    messages: Sequence[BaseMessage], number: int, place: int, end: int
) -> list[BaseMessage]:
    """Return messages with a mark behind a place of a block of the user's message."""
    message = messages[number]
    if not isinstance(message, HumanMessage):
        return list(messages)
    blocks = _blocks(message)
    block, text = blocks[place], blocks[place]["text"]
    halves = [{**block, "text": text[:end], **_MARK}, {**block, "text": text[end:]}]
    content = [*blocks[:place], *halves, *blocks[place + 1 :]]
    changed = message.model_copy(update={"content": content})
    return [*messages[:number], changed, *messages[number + 1 :]]
