"""What a text is checked against: texts and documents, as applications have them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.texts import plain

CONTEXTS = (
    *("source", "context", "contexts", "documents", "docs", "sources", "source_documents"),
    *("retrieved", "retrieved_documents", "retrieved_contexts", "passages", "chunks"),
)
"""The names under which people have what a text is checked against."""


def context_in(value: object) -> str | None:
    r"""Return the text of a context; of several documents each has a number.

    A document's title and source, where its metadata have them, stand above it.

    >>> context_in(["It rained.", {"text": "It snowed.", "metadata": {"title": "Oslo"}}])
    '[1]\nIt rained.\n\n[2] Oslo\nIt snowed.'
    """
    parts = list(_documents(value))
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return "\n\n".join(
        f"[{number}]{f' {title}' if title else ''}\n{text}"
        for number, (title, text) in enumerate(parts, 1)
    )


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
    return ", ".join(dict.fromkeys(str(word) for word in words if word))
