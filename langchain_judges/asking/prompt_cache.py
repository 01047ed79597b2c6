"""Where a provider reads a prompt's beginning from its cache only up to a mark: Anthropic's.

A prefix that is written to the cache costs more than usual, one that is read costs little,
and it can be read only once the first reply to it has begun. So only prompts whose material
other calls show too are marked, and the first of them goes ahead of the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_judges.asking.replies.reading import json_schema
from langchain_judges.asking.steps import SingleFlight, Steps
from langchain_judges.asking.tokens import BYTES

T = TypeVar("T")
SHORTEST = 1024
"""Tokens of the shortest prefix that Anthropic caches; for some models it is longer."""
_END = "\n\nEverything between the tags is "
"""What every prompt says behind the material that its other calls show too."""
_MARK = {"cache_control": {"type": "ephemeral"}}


class Prefix(NamedTuple):
    """Messages with a mark behind what other calls send too."""

    messages: list[BaseMessage]
    key: str
    """Hash of what stands before the mark, and of the schema, which is sent first."""


class PromptCache:
    """Marks what calls of a model share, and lets the first of them write it to the cache."""

    def __init__(self) -> None:
        """Start without having sent anything."""
        self._sent: SingleFlight[bool] = SingleFlight()

    @classmethod
    def of(cls, model: BaseChatModel) -> PromptCache | None:
        """Return the cache of a model that needs marks, else None.

        In a batch job no call goes ahead of another, so nothing would be read.
        """
        is_anthropic = any(base.__name__ == "ChatAnthropic" for base in type(model).__mro__)
        in_batches = (getattr(model, "metadata", None) or {}).get("batch")
        return cls() if is_anthropic and not in_batches else None

    def behind_first(
        self, key: str, send: Callable[[], Steps[T]], succeeded: Callable[[T], bool]
    ) -> Steps[T]:
        """Send, but not before the first call with the same prefix has its reply."""
        results: list[T] = []

        def ahead() -> Steps[bool]:
            results.append((yield from send()))
            return succeeded(results[0])

        _, was_sent = yield from self._sent.get(key, ahead, bool)
        return (yield from send()) if was_sent else results[0]


def marked(messages: Sequence[BaseMessage], shape: type[BaseModel]) -> Prefix | None:
    """Return messages with a mark behind their material; None where it is too short to cache.

    Args:
        messages: What is sent; the first message of the user shows the material.
        shape: What the reply must look like.
    """
    place = next((i for i, each in enumerate(messages) if isinstance(each, HumanMessage)), None)
    if place is None:
        return None
    content = _split(messages[place].content)
    if content is None:
        return None
    before, after = content
    shared = [each.content for each in messages[:place]] + [before]
    data = json.dumps([shared, json_schema(shape)], sort_keys=True, default=str)
    if len(json.dumps(shared, default=str, ensure_ascii=False).encode()) < SHORTEST * BYTES:
        return None
    message = messages[place].model_copy(update={"content": [*before, *after]})
    key = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    return Prefix([*messages[:place], message, *messages[place + 1 :]], key)


def _split(content: str | list[Any]) -> tuple[list[Any], list[Any]] | None:
    """Return the blocks of a message's material, the last one marked, and those behind it."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for n, block in reversed(list(enumerate(blocks))):
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and (end := text.rfind(_END)) > 0:
            before = [*blocks[:n], {**block, "text": text[:end], **_MARK}]
            return before, [{**block, "text": text[end:]}, *blocks[n + 1 :]]
    return None
