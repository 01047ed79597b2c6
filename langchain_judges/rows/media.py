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

from langchain_judges.lazy import packaged

# What a content block holds, by its type or its only key, in the forms of LangChain and others,
# and what its parts are called.
_KIND_OF_TYPE: dict[str, str] = packaged(__package__, "names.yaml")["media"]
_KIND_OF_KEY: dict[str, str] = packaged(__package__, "names.yaml")["keyed_media"]
_PARTS: dict[str, list[str]] = packaged(__package__, "names.yaml")["media_parts"]
_OF_PART: list[str] = packaged(__package__, "names.yaml")["of_part"]
# MIME types by how base64 of them begins.
_TYPE_BY_HEAD: dict[str, str] = packaged(__package__, "names.yaml")["media_heads"]
MEDIA_MARK = re.compile(r"\[(?:image|audio|video|file) [0-9a-f]{10}\]")
_ADDRESS = re.compile(r"(?:https?|gs|s3)://")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s*")


def kind_of_block(block: object) -> str | None:
    """The kind of a content block that is not text: image, audio, video or file.

    What is no more than called a file, such as an entry of a folder, is data.

    >>> kind_of_block({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
    'image'
    """
    source = block.get("source") if isinstance(block, Mapping) else None
    is_text = isinstance(source, Mapping) and source.get("type") == "text"  # of Anthropic
    if is_text or not isinstance(block, Mapping) or isinstance(block.get("text"), str):
        return None
    kind = _KIND_OF_TYPE.get(str(block.get("type")))
    keys = [name for name in block if name not in _OF_PART]
    if kind is None and (len(keys) == 1 or keys == ["bytes", "path"]):
        kind = _KIND_OF_KEY.get(keys[0])
    elif kind != "file":
        return kind
    held = held_in(block, kind) if kind else {}
    main = held.get("mime_type", "").partition("/")[0]
    is_link = "url" in held and held.get("mime_type", "").startswith("text/html")  # of a page
    if is_link or not (held and (main or "type" in block)):
        return None
    return main if main in _KIND_OF_KEY else kind


def _leaves(block: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in block.items():
        yield from _leaves(value) if isinstance(value, Mapping) else [(name, value)]


def held_in(block: Mapping[str, object], kind: str | None) -> dict[str, str]:
    """Content of a block of a kind, in the words of LangChain; empty if it is not known.

    >>> held_in({"type": "image", "image": "data:image/png;base64,AAAA"}, "image")
    {'base64': 'AAAA', 'mime_type': 'image/png'}
    """
    leaves = {n: v for n, v in _leaves(block) if v and isinstance(v, str)}
    found = (next((leaves[n] for n in names if n in leaves), "") for names in _PARTS.values())
    content, mime, form, file_id, name = found
    if content.startswith("data:"):
        head, _, content = content.partition(",")
        mime = head[5:].partition(";")[0]
    main = "application" if kind == "file" else kind
    mime = mime or (f"{main}/{form}" if form else _TYPE_BY_HEAD.get(content[:4], ""))
    held = {"url": content} if _ADDRESS.match(content) else {"file_id": file_id}
    held = {"base64": content} if mime and _BASE64.fullmatch(content, 0, 1000) else held
    parts = {**held, "mime_type": mime, "filename": name}
    return {n: v for n, v in parts.items() if v} if any(held.values()) else {}


def mark_of(block: Mapping[str, object]) -> str:
    """Mark of a block in a text; equal blocks have equal marks."""
    data = json.dumps(block, sort_keys=True, default=str)
    return f"[{kind_of_block(block)} {hashlib.sha256(data.encode()).hexdigest()[:10]}]"


def content_in(value: object) -> list[str | dict[str, Any]]:
    """The blocks of a value that contains more than text; [] if it is no content."""
    parts: list[Any] = value if isinstance(value, list) else [value]
    is_content = any(kind_of_block(part) and standard(part) for part in parts)
    return parts if is_content and all(map(_is_block, parts)) else []


def _is_block(part: object) -> bool:
    is_text = isinstance(part, Mapping) and part.get("type") == "text"
    return is_text or isinstance(part, str) or kind_of_block(part) is not None


def media_in(value: Any, *, said: bool = False) -> Iterator[Mapping[str, object]]:
    """Yield every block that is not text, at any depth of plain data; none of what calls are given.

    Args:
        value: The data.
        said: Whether they are what a message says. Elsewhere what has no content is no block.
    """
    if isinstance(value, str):  # nearly all of them
        return
    if isinstance(value, Mapping) and kind_of_block(value):
        yield from [value] if said or standard(value) else []
    elif isinstance(value, Mapping) and "role" in value:
        yield from media_in(value.get("content"), said=True)
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from media_in(part, said=said)


def with_media(text: str, holder: object) -> str | list[str | dict[str, Any]]:
    """A text as the content of a message, each mark with the block it stands for.

    The marks stay, so that a reader can name what it saw.

    Args:
        text: The text.
        holder: Where the blocks stand: rows, states, messages.

    Returns:
        The text itself if none of its marks has a block.
    """
    blocks = {mark_of(b): b for b in media_in(holder)} if MEDIA_MARK.search(text) else {}
    content: list[str | dict[str, Any]] = []
    start = 0
    for mark in MEDIA_MARK.finditer(text):
        if mark[0] in blocks:
            content += [_text_block(text[start : mark.end()]), standard(blocks[mark[0]])]
            start = mark.end()
    return [part for part in [*content, _text_block(text[start:])] if part] if content else text


def _text_block(text: str) -> dict[str, Any]:
    """A text as a block, empty if the text is blank."""
    return {"type": "text", "text": text} if text.strip() else {}


def standard(block: Mapping[str, object]) -> dict[str, Any]:
    """A block in a form that every provider's class reads: LangChain's or OpenAI's.

    It is empty if the block holds nothing that could be sent.
    """
    kind, is_openai = kind_of_block(block), isinstance(block.get("image_url"), Mapping)
    if is_openai or (block.get("type") == kind and {"url", "base64", "file_id"} & {*block}):
        return dict(block)
    held = held_in(block, kind) if kind else {}
    return {"type": kind, **held} if held else {}
