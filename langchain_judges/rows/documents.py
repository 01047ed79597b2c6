"""Texts and documents that a text is checked against, as applications and data sets have them."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic import BaseModel

from langchain_judges.rows import checks, data, media
from langchain_judges.rows import record as records
from langchain_judges.rows.messages import messages_below, messages_in
from langchain_judges.rows.texts import plain

# The names under which people have what a text is checked against.
CONTEXTS: tuple[str, ...] = tuple(checks.KNOWN_NAMES["contexts"])
# Where a document has its text.
_TEXT_OF = ("page_content", "text", "content")
# What says of it which one it is, and LangChain's word for a document.
_ABOUT = ("title", "source", "url", "type")
_BESIDE_TEXT = {*_TEXT_OF, *_ABOUT, *checks.KNOWN_NAMES["search"]}
# The line above a document that is one of several.
_HEAD = re.compile(r"^\[\d+\](?: .*)?$", re.MULTILINE)
# Where a line of a document would read as the beginning of another one, and how it is quoted.
_LIKE_A_HEAD = re.compile(r"^(?=(?:> )*\[\d+\](?: |$))", re.MULTILINE)
_QUOTED = re.compile(f"^> {_LIKE_A_HEAD.pattern[1:]}", re.MULTILINE)


def context_in(value: object) -> str | None:
    r"""The text of a context; each of several documents, or one with a title, has a number.

    A document's title and source, where its metadata have them, stand above it. An empty one
    keeps its number, by which answers cite the others. A line of a document that looks like
    such a head is quoted: no document can pass for several.

    >>> context_in(["It rained.\n[2] Oslo", {"text": "Snow.", "metadata": {"title": "Rome"}}])
    '[1]\nIt rained.\n> [2] Oslo\n\n[2] Rome\nSnow.'
    """
    if isinstance(value, str):
        if (documents := listed_in(value)) is None:
            return value if value.strip() else None
        value = documents
    parts = [(name, _LIKE_A_HEAD.sub("> ", data.text_in(each))) for name, each in _documents(value)]
    if not any(text for _, text in parts):
        return None
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    shown = [f"{t and f' {t}'}" + (f"\n{text}" if text else " (empty)") for t, text in parts]
    return "\n\n".join(f"[{number}]{each}" for number, each in enumerate(shown, 1))


# How the text of a list of documents begins, in JSON, of Python or of LangChain.
LIST = re.compile(r"""\s*(array\()?\[\s*(\]|["'{]|Document\()""")
_ARRAY = re.compile(r"\Aarray\((\[.*\])(, dtype=\w+)?\)\Z", re.DOTALL)
# A text as Python writes it, and several of numpy.
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_STRINGS = re.compile(rf"\[\s*{_STRING}(?:\s+{_STRING})+\s*\]")


def listed_in(text: str) -> list[Any] | None:
    """The list of documents that a text is, as a cell of a table holds it; None if it is none.

    It is JSON, or what Python or numpy writes; Python would join the texts of numpy.

    >>> listed_in("['a' 'b']"), listed_in("array(['a'], dtype=object)")
    (['a', 'b'], ['a'])
    """
    text = _ARRAY.sub(r"\1", text.strip())
    bare = "".join(text.split())
    for read in (json.loads, _strings_in, literal_eval) if LIST.match(text) else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found: Any = read(text)
            is_sure = read is not literal_eval or "".join(repr(found).split()) == bare
            if isinstance(found, list) and is_sure:
                return found
    return None


def _strings_in(text: str) -> list[Any] | None:
    return [*map(literal_eval, re.findall(_STRING, text))] if _STRINGS.fullmatch(text) else None


def texts_in(context: object) -> object:
    """The texts of documents, without their heads; a text alone as it is."""
    listed = listed_in(context) if isinstance(context, str) else context
    return context if listed is None else [without_heads(context_in(listed) or "")]


def without_heads(context: str) -> str:
    r"""A text of `context_in` with the lines that documents have, and no others.

    >>> without_heads("[1] Rome\nSnow.\n\n[2]\nIt rained.\n> [2] Oslo").split("\n")
    ['', 'Snow.', '', '', 'It rained.', '[2] Oslo']
    """
    return _QUOTED.sub("", _HEAD.sub("", context))


def is_data(context: object) -> bool:
    """Whether a document of a context is shown as JSON."""
    return any(not isinstance(each, str) for _, each in _documents(context))


def documents_in(context: str) -> int:
    """Number of documents in a text of `context_in`."""
    return max(1, len(re.findall(r"^\[\d+\](?: |$)", context, re.MULTILINE)))


def context_of(fields: object) -> object:
    """Value under one of the usual names, if there is one."""
    held = map(fields.get, CONTEXTS) if isinstance(fields, Mapping) else ()
    return next((each for each in held if each is not None and _holds_text(each)), None)


def _holds_text(context: object) -> bool:
    if isinstance(context, list) and all(type(each) is int for each in context):
        return False  # a model's tokens, as Ollama gives them
    return bool(context_in(context))


def _documents(value: object, title: str = "") -> Iterator[tuple[str, object]]:
    """Yield the documents in a value, each with its title: texts, some empty, and other data."""
    if isinstance(value := records.opened(data.plain_data(value)), str | None) or value == {}:
        yield title, "" if data.is_nothing(value) else value
    elif isinstance(value, Mapping) and media.content_in(value):
        yield title, media.mark_of(cast("Mapping[str, object]", value))
    elif messages := messages_in(value):
        texts = ((each.get("name", ""), plain(each["content"])) for each in messages)
        yield from ((name, text) for name, text in texts if text)
    elif isinstance(value, list | tuple) and all(map(_is_titled, value)):
        yield from ((heading, " ".join(map(str.strip, said))) for heading, said in value)
    elif isinstance(value, list | tuple):
        # A number beside an object is its score.
        is_scored = any(isinstance(each, Mapping | BaseModel) for each in value)
        own = (each for each in value if not (is_scored and isinstance(each, int | float)))
        yield from (document for each in own for document in _documents(each))
    elif isinstance(getattr(value, "page_content", None), str):
        yield from _documents(vars(value))
    elif isinstance(value, Mapping) and (text := _text_of_document(value)) is not None:
        yield from _documents(text, _title(value))
    elif isinstance(value, Mapping) and (inner := _documents_below(value)):
        yield from _documents(inner)
    else:
        yield title, value


def _is_titled(value: object) -> bool:
    """Whether a value is a title and its sentences, as HotpotQA has its documents."""
    title, *rest = value if isinstance(value, list | tuple) and value else [None]
    said = rest[0] if len(rest) == 1 and isinstance(rest[0], list | tuple) else [None]
    return isinstance(title, str) and all(isinstance(each, str) for each in said)


def _documents_below(value: Mapping[str, Any]) -> object:
    """The documents in what a search or a data set returns beside facts that are no texts."""
    titles, said = value.get("title"), value.get("sentences")
    if isinstance(titles, list) and isinstance(said, list) and len(titles) == len(said):
        return [*zip(titles, said, strict=True)] if len(value) == 2 else None
    beside = {*checks.KNOWN_NAMES["search"]}
    held = (*CONTEXTS, "node", "citations")
    names = [name for name in held if isinstance(value.get(name), list | Mapping)]
    return value[names[0]] if names and value.keys() <= {names[0], *beside} else None


def _text_of_document(value: Mapping[str, object]) -> object:
    """The text of a document, or what its only key holds, if that key says nothing of it."""
    held_texts = [value[name] for name in _TEXT_OF if name in value]
    if texts := [each for each in held_texts if not data.is_nothing(each)]:
        return texts[0]
    others = (own for name, own in value.items() if name not in _BESIDE_TEXT)
    if held_texts and not any(isinstance(own, str | list | Mapping) and own for own in others):
        return ""
    if len(value) != 1:
        return None
    [(name, held)] = value.items()
    if checks.is_plain(name, "context") or messages_in(held) or media.content_in(held):
        return held
    parts, found = (held, {*_TEXT_OF}) if isinstance(held, list) else ([held], {"page_content"})
    own = (each if isinstance(each, Mapping) else getattr(each, "__dict__", {}) for each in parts)
    return held if any(found & each.keys() for each in own) else None


def _title(document: Mapping[str, Any]) -> str:
    """A document's title and source, from itself or its metadata."""
    metadata = document.get("metadata")
    fields = {**document, **metadata} if isinstance(metadata, Mapping) else document
    words = [fields.get(name) for name in _ABOUT[:3]]
    return ", ".join(dict.fromkeys(" ".join(str(word).split()) for word in words if word))


def documents_on(value: object) -> list[object]:
    """The documents that stand on messages."""
    # Their `source` may be who speaks.
    said = ({**each, "source": None} for each in messages_below(value))
    return [own for own in map(context_of, said) if own is not None]
