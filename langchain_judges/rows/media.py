"""Images, audio and files in messages: how a text names them, and how a prompt shows them.

Where a text is compared, hashed, remembered or printed, a mark such as `[image 3f2a91c04d]`
stands for each of them; a prompt for a model has the content block itself after the mark.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_judges.rows.files import packaged

# What a content block holds, by its type, in the forms of LangChain and of providers.
_KIND_OF_TYPE: dict[str, str] = packaged(__package__, "names.yaml")["media"]
_MEDIA_MARK = re.compile(r"\[(?:image|audio|video|file) [0-9a-f]{10}\]")


def kind_of_block(block: object) -> str | None:
    """The kind of a content block that is not text: image, audio, video or file.

    >>> kind_of_block({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
    'image'
    """
    if not isinstance(block, Mapping) or isinstance(block.get("text"), str):
        return None
    return _KIND_OF_TYPE.get(str(block.get("type")))


def mark_of(block: Mapping[str, object]) -> str:
    """Mark of a block in a text; equal blocks have equal marks."""
    data = json.dumps(block, sort_keys=True, default=str)
    return f"[{kind_of_block(block)} {hashlib.sha256(data.encode()).hexdigest()[:10]}]"


def content_in(value: object) -> list[str | dict[str, Any]]:
    """The blocks of a value that contains more than text; [] if it is no content."""
    parts: list[Any] = value if isinstance(value, list) else [value]
    is_content = any(map(kind_of_block, parts)) and all(map(_is_block, parts))
    return parts if is_content else []


def _is_block(part: object) -> bool:
    is_text = isinstance(part, Mapping) and part.get("type") == "text"
    return is_text or isinstance(part, str) or kind_of_block(part) is not None


def media_in(value: object) -> Iterator[Mapping[str, object]]:
    """Yield every block that is not text, at any depth of plain data."""
    if isinstance(value, Mapping) and kind_of_block(value):
        yield value
        return
    parts: Any = value.values() if isinstance(value, Mapping) else value
    for part in parts if isinstance(value, Mapping | list | tuple) else ():
        if not isinstance(part, str):
            yield from media_in(part)


def with_media(text: str, holder: object) -> str | list[str | dict[str, Any]]:
    """A text as the content of a message, each mark with the block it stands for.

    The marks stay, so that a reader can name what it saw.

    Args:
        text: The text.
        holder: Where the blocks stand: rows, states, messages.

    Returns:
        The text itself if none of its marks has a block.
    """
    if not _MEDIA_MARK.search(text):
        return text
    blocks = {mark_of(block): block for block in media_in(holder)}
    content: list[str | dict[str, Any]] = []
    start = 0
    for mark in _MEDIA_MARK.finditer(text):
        if mark[0] in blocks:
            content += [_text_block(text[start : mark.end()]), _standard(blocks[mark[0]])]
            start = mark.end()
    if not content:
        return text
    return [part for part in [*content, _text_block(text[start:])] if part]


def _text_block(text: str) -> dict[str, Any]:
    """A text as a block, empty if the text is blank."""
    return {"type": "text", "text": text} if text.strip() else {}


def _standard(block: Mapping[str, object]) -> dict[str, Any]:
    """A block in a form that every provider's class reads: LangChain's or OpenAI's."""
    if "source" not in block and "source_type" not in block:
        return dict(block)
    [standard] = HumanMessage([dict(block)]).content_blocks
    return {name: value for name, value in standard.items() if name != "id"}
