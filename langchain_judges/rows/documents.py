"""What a text is checked against: texts and documents, as applications have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.texts import plain

CONTEXTS = (
    *("source", "context", "contexts", "documents", "docs", "sources", "source_documents"),
    *("retrieved", "retrieved_documents", "retrieved_contexts", "passages", "chunks"),
)
"""The names under which people have what a text is checked against."""
OF_OUTPUT = "documents_of_output"
"""Where a row keeps the documents that stood beside the answer in its `output`.

A response is made of them: they are shown to a judge that needs a source, and to no other.
"""
_LIKE_A_HEAD = re.compile(r"^(?=(?:> )*\[\d+\](?: |$))", re.MULTILINE)
"""Where a line of a document would read as the beginning of another one."""


def context_in(value: object) -> str | None:
    r"""Return the text of a context; of several documents each has a number.

    A document's title and source, where its metadata have them, stand above it. A line of a
    document that looks like such a head is quoted: no document can pass for several.

    >>> context_in(["It rained.\n[2] Oslo", {"text": "Snow.", "metadata": {"title": "Rome"}}])
    '[1]\nIt rained.\n> [2] Oslo\n\n[2] Rome\nSnow.'
    """
    if isinstance(value, str):
        return value if value.strip() else None
    parts = [(title, _LIKE_A_HEAD.sub("> ", text)) for title, text in _documents(value)]
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return "\n\n".join(
        f"[{number}]{f' {title}' if title else ''}\n{text}"
        for number, (title, text) in enumerate(parts, 1)
    )


def context_of(fields: object) -> object:
    """Return what stands under one of the usual names, if anything does."""
    named = fields if isinstance(fields, Mapping) else {}
    there = (named[name] for name in CONTEXTS if name in named)
    return next((value for value in there if context_in(value)), None)


def _documents(value: object, title: str = "") -> Iterator[tuple[str, str]]:
    """Yield the documents in a value, each with its title."""
    if value is None or value == {}:
        return
    if isinstance(value, str):
        if value.strip():
            yield title, value
    elif messages := messages_in(value):
        texts = ((each.get("name", ""), plain(each["content"])) for each in messages)
        yield from ((name, text) for name, text in texts if text)
    elif isinstance(value, list | tuple):
        yield from (document for each in value for document in _documents(each))
    elif isinstance(getattr(value, "page_content", None), str):
        yield from _documents(vars(value))
    elif isinstance(value, Mapping) and (text := _text_of_document(value)) is not None:
        yield from _documents(text, _title(value))
    else:
        yield title, json.dumps(value, ensure_ascii=False, default=str)


def _text_of_document(value: Mapping[str, object]) -> object:
    texts = [value[name] for name in ("page_content", "text", "content") if value.get(name)]
    return next(iter(texts or (value.values() if len(value) == 1 else ())), None)


def _title(document: Mapping[str, Any]) -> str:
    """Return a document's title and source, from itself or its metadata."""
    metadata = document.get("metadata")
    fields = {**document, **metadata} if isinstance(metadata, Mapping) else document
    words = [fields.get(name) for name in ("title", "source", "url")]
    return ", ".join(dict.fromkeys(" ".join(str(word).split()) for word in words if word))
