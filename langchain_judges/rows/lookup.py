"""Where texts stand in the data of applications: under usual names, a key or a path.

What a text is checked against is among them: texts and documents, as applications have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from langchain_judges.errors import InputError
from langchain_judges.options import Rule, check_value
from langchain_judges.rows.media import content_in
from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.record import is_state, record_in, values_of
from langchain_judges.rows.texts import plain

# Where a text is found: a key, a path such as `"answer.text"` or `"choices.0"`, a function of
# the whole value, or None to search the usual keys.
TextSource = Annotated[
    str | Callable[[Any], object] | None, Rule("a key, a path or a function")
]

Field = Literal["input", "output", "reference", "context"]

# The names under which people have what a text is checked against.
CONTEXTS = (
    *("source", "context", "contexts", "documents", "docs", "sources", "source_documents"),
    *("retrieved", "retrieved_documents", "retrieved_contexts", "passages", "chunks"),
)
# Where a row keeps the documents that stood beside the answer in its `output`. A response is
# made of them: they are shown to a judge that needs a source, and to no other.
OF_OUTPUT = "documents_of_output"
# Where a line of a document would read as the beginning of another one.
_LIKE_A_HEAD = re.compile(r"^(?=(?:> )*\[\d+\](?: |$))", re.MULTILINE)

USUAL: dict[Field, tuple[str, ...]] = {
    "input": (
        *("input", "question", "query", "prompt", "task", "instruction", "messages"),
        *("article", "document", "text", "content"),
    ),
    "output": (
        *("output", "answer", "response", "completion", "prediction", "result", "summary"),
        *("generation", "messages", "text", "content"),
    ),
    "reference": (
        *("reference", "expected", "output", "answer", "response", "target", "ground_truth"),
        *("completion", "summary", "messages", "text", "content"),
    ),
    "context": CONTEXTS,
}


def check_words(**options: object) -> None:
    """Check options that must be a text or None.

    Raises:
        OptionError: An option is neither.
    """
    for name, value in options.items():
        check_value(name, value, Annotated[str, MinLen(1)] | None)


def check_sources(**sources: object) -> None:
    """Check options that say where a text is found.

    Raises:
        OptionError: An option is not a `TextSource`.
    """
    for name, source in sources.items():
        check_value(name, source, TextSource)


def find(value: object, field: Field, source: TextSource, *, named: bool = False) -> object:
    """Return the part of `value` that a source names, or that stands under a usual key.

    Data below a usual key are the part, whatever their own keys are; `named` says that `value`
    stood below one.
    """
    if source is not None:
        value = values_of(value)
    if callable(source):
        try:
            return source(value)
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            detail = f"{type(exc).__name__}: {exc}"
            message = f"`{field}`: the function failed ({detail}) on {keys_in(value)}"
            raise InputError(message) from exc
    if source is not None:
        return follow(value, field, source)
    while isinstance(value, Mapping) and not _is_record(value, field):
        names = [name for name in USUAL[field] if value.get(name) is not None]
        if not names and named and _is_data(value, field):
            return value
        if not names and len(value) != 1:
            keys = ", ".join(map(repr, USUAL[field]))
            raise InputError(
                f"`{field}`: expected one of the keys {keys}, got {keys_in(value)}; "
                f"name the key with `{field}=`, or all of it with `{field}=lambda value: value`"
            )
        named = named or bool(names)
        value = value[names[0]] if names else next(iter(value.values()))
    return value


def _is_data(value: object, field: Field) -> bool:
    """Return whether no text of a value has a usual name, and nothing in it is a message.

    A text alone is a text, whatever its key is.
    """
    while isinstance(value, Mapping) and len(value) == 1:
        if _is_record(value, field) or any(name in value for name in USUAL[field]):
            return False
        value = next(iter(value.values()))
    if isinstance(value, Mapping) and any(value.get(n) is not None for n in USUAL[field]):
        return False
    return not isinstance(value, str) and not record_in(value)


def _is_record(value: Mapping[str, object], field: Field) -> bool:
    """Return whether a mapping is read as a whole: no text of it has a name of its own."""
    own = [name for name in USUAL[field] if value.get(name) is not None]
    if is_state(value):
        return not own or own[0] == "messages"
    return bool(messages_in(value) or content_in(value) or (not own and record_in(value)))


def follow(value: object, field: Field, path: str) -> object:
    """Return what stands in a value under a key or a path.

    Raises:
        InputError: There is no such key; the message says which are there.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    at = value
    for step in path.split("."):
        if isinstance(at, Mapping) and step in at:
            at = at[step]
        elif isinstance(at, Sequence) and not isinstance(at, str) and _place(step, len(at)):
            at = at[int(step)]
        else:
            in_path = "" if step == path else f" of {path!r}"
            raise InputError(
                f"`{field}`: expected the key {step!r}{in_path}, got {keys_in(at)}"
            )
    return at


def _place(step: str, length: int) -> bool:
    number = step.removeprefix("-")
    return number.isdecimal() and -length <= int(step) < length


def keys_in(value: object) -> str:
    """Return what a value holds, for an error: its keys, or its type."""
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(repr, value))}" if value else "no keys"
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"


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


def documents_in(context: str) -> int:
    """Return how many documents a text of `context_in` holds."""
    return max(1, len(re.findall(r"^\[\d+\](?: |$)", context, re.MULTILINE)))


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
