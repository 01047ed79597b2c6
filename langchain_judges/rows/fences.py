"""The tags around texts in a prompt, which no text of the prompt can close or imitate.

A text in a prompt stands between `<response-3f2a91c04d>` and `</response-3f2a91c04d>`. While a
prompt is put together, `fence` stands for the token: at that time nobody has seen the whole
prompt. `sealed` has, and puts tokens there that occur nowhere else in it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from langchain_core.messages import BaseMessage

# Begins every placeholder of this process, so that no text can hold one.
_SECRET = secrets.token_hex(16)
_PLACEHOLDER = re.compile(rf"{_SECRET}([0-9a-f]{{64}})")
_LENGTH = 10


def fence(*texts: str) -> str:
    """Return what stands for the token of the tags around `texts`, until `sealed` sees it.

    The token follows from these texts alone, in whatever order, unless a text of the prompt
    contains it: a text looks the same in every prompt that shows it, so that a provider can
    cache a common beginning.

    The placeholder differs in every process: it belongs into prompts, and into nothing that is
    stored, compared or hashed.
    """
    return _SECRET + digest(*map(unsealed, texts))


def digest(*texts: str) -> str:
    """Return a hash of texts, the same in whatever order they are given."""
    data = "\x00".join(sorted(texts)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def unsealed(text: str) -> str:
    """Return a text with its placeholders in a form that is the same in every process."""
    return _PLACEHOLDER.sub(r"\1", text)


def sealed(prompt: Sequence[str]) -> list[str]:
    """Return the parts of one prompt with a token for each placeholder.

    Args:
        prompt: All of it: no part that the model sees may be left out.

    Returns:
        The parts, in which each token occurs only where its placeholder stood.
    """
    words = "\x00".join(_PLACEHOLDER.sub("\x00", part) for part in prompt)

    @cache
    def token(own: str) -> str:
        candidate = own[:_LENGTH]
        while candidate in words:
            own = digest(own)
            candidate = own[:_LENGTH]
        return candidate

    return [_PLACEHOLDER.sub(lambda match: token(match[1]), part) for part in prompt]


def sealed_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of one prompt with the tokens of `sealed`."""
    texts: dict[str, str] = {}
    for message in messages:
        _with_texts(message.content, lambda text: texts.setdefault(text, text))
    texts = dict(zip(texts, sealed(list(texts)), strict=True))
    return [
        message.model_copy(update={"content": _with_texts(message.content, texts.__getitem__)})
        for message in messages
    ]


def _with_texts(content: Any, change: Callable[[str], str]) -> Any:
    """Return a message's content with each text changed; blocks come of a caller's prompt."""
    if isinstance(content, str):
        return change(content)
    if isinstance(content, list):
        return [_with_texts(block, change) for block in content]
    if isinstance(content, dict) and isinstance(text := content.get("text"), str):
        return {**content, "text": change(text)}
    return content
