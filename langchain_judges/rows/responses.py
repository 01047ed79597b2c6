"""Responses of models as their providers return them: the first reply, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from langchain_judges.rows import data, texts
from langchain_judges.rows import messages as chat
from langchain_judges.rows.checks import KNOWN_NAMES

# How a reply ended as any does, was cut at its limit, broke off or was stopped by a filter.
ENDS: dict[str, list[str]] = KNOWN_NAMES["ends"]
# Where a message or a response says it, and parts that do.
_ENDING = re.compile(KNOWN_NAMES["ending"])
# As what the status of a reply is read, beside all that says how it ended.
STATUS = "status.end_reason"
_DETAILS: list[str] = KNOWN_NAMES["details"]
# Where words of such a reason meet, and the one that it is: an enumeration may say first what
# it says, and the parts of a stream that each say it are joined.
_PARTS, _WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s-]+"), re.compile(KNOWN_NAMES["reason"])
_REPLIES: dict[str, list[str]] = KNOWN_NAMES["replies"]


def first_reply(value: object) -> tuple[str, list[texts.Message]]:
    """The place of the first reply in a response of a model, what it says, and how it ended.

    One that says nothing is an empty message; a value that is no response has none.
    """
    found = next(_found(value), None) if isinstance(value, Mapping) else None
    place, said, origin = found or ("", (), {})
    is_empty = bool(found) and all(map(_says_nothing, said if isinstance(said, list) else [said]))
    text = "" if is_empty else said if isinstance(said, str) else None
    messages = chat.messages_in(said if text is None else {"role": "assistant", "content": text})
    error = origin.get("error") if place == "output" else None
    end = [ended(f"It failed: {data.text_in(error)}")] if error else ending(messages, origin)
    return (place, [*messages, *end]) if messages else ("", [])


def _found(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield the key of each reply, what is said there, and what says how it ended."""
    for reply in replies_in(fields)[:1]:
        parts = map(reply.get, ("message", "content", "text"))
        yield "choices", next(filter(None, parts), None), reply
    for place, beside in KNOWN_NAMES["only_reply"].items():
        held = fields.get(place) if {*beside} & fields.keys() else None
        said = held.get("message") if place == "output" and isinstance(held, Mapping) else held
        if isinstance(said, Mapping | list | str) and [type(said), place] != [str, "output"]:
            yield place, said, {**fields, STATUS: fields.get("status")}
    if any(fields.get(name) for name in ("promptFeedback", "prompt_feedback")):
        yield "candidates", None, fields  # of Gemini, where it is a filter that replies


def replies_in(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The replies in a response of a model, those to several prompts one after another."""
    name = next((name for name in _REPLIES if isinstance(response.get(name), list)), "")
    found = response.get(name) or []
    while found and all(isinstance(each, list) for each in found):
        found = [*chain(*found)]
    replies = data.mappings_in(found)
    return replies if replies and {*_REPLIES[name]} & replies[0].keys() else []


def _says_nothing(part: object) -> bool:
    held = part if isinstance(part, Mapping) else {"": part}
    return chat.is_silent(part) or all(data.is_nothing(held[n]) for n in held if n != "role")


def ended(words: str) -> texts.Message:
    """The message that says how something ended."""
    return {"role": "how it ended", "content": words}


def ending(messages: Sequence[texts.Message], origin: object) -> list[texts.Message]:
    """The end of what a model did, if its response or its last message says that it is unusual."""
    parts = origin if isinstance(origin, list | tuple) and origin else [origin]
    said = {*reasons_in(chat.message_fields(chat.whole(parts)[-1]))}
    if not said or not messages or messages[-1]["role"] in ("user", "system"):
        return []
    if kind := next((kind for kind in ("filtered", "limits") if said & {*ENDS[kind]}), None):
        return [ended(KNOWN_NAMES["endings"][kind])]
    is_empty = not (messages[-1].get("tool_calls") or texts.plain(messages[-1]["content"]).strip())
    broken = said - {*ENDS["whole"]} if is_empty else said & {*ENDS["broken"]}
    return [ended(f"The last reply broke off: {', '.join(sorted(broken))}.")] if broken else []


def reasons_in(fields: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield how a message, a response or a part of one says that it ended, in small letters."""
    for name, held in fields.items():
        if isinstance(held, Mapping) and name in _DETAILS:
            yield from reasons_in(held, f"{name}.")
        elif held and _ENDING.fullmatch(f"{within}{name}"):
            said = _PARTS.sub("_", str(held).rpartition(".")[-1]).lower()
            if (word := _WORD.sub(r"\1", said)) != "unspecified":
                if "block" in name:  # whatever its filter says
                    yield "prompt_blocked"
                yield word
