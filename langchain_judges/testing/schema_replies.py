"""Replies that fit whatever schema a prompt ends in: drawn, or with a leaning to one text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from langchain_judges.testing.fault_server import ServerCall

# From a prompt to the reply, as `FakeChatModel` takes it.
Script = Callable[[str], str]
_SLOTS = ("1", "2")


class Leaning(NamedTuple):
    """Leaning of a reply: to a slot of a pair, or to a high or a low score of one text.

    Attributes:
        words: What is said of the first and of the second slot, where a reply describes them.
        about: Put behind a remark that is of no slot by its name.
        full: Whether lists are as long as they may be, and not of two parts.
    """

    slot: str = ""
    words: tuple[str, str] = ("", "")
    high: bool | None = None
    about: str = ""
    full: bool = False


def fitting_reply(prompt: str | ServerCall) -> str:
    """A reply that fits the JSON schema of a request, drawn by the prompt's hash.

    For `FakeChatModel(replies=fitting_reply)` and `FakeModelServer(fitting_reply)`: any judge
    can be asked without a script.

    Args:
        prompt: With the schema at its end; or the call of a server, which may have it in
            `response_format`.
    """
    if isinstance(prompt, str):
        return _reply(prompt, prompt, Leaning())
    if prompt.schema is None:
        return fitting_reply(prompt.prompt)
    return json.dumps(drawn_value(prompt.schema, prompt.prompt))


def drawn(salt: int, *, full: bool = False) -> Script:
    """A script of replies that are drawn, other ones for each salt."""
    return lambda prompt: _reply(prompt, f"{salt}{prompt}", Leaning(full=full))


def prefers(text: str, other: str) -> Script:
    """A script that prefers a text, in whatever slot of a prompt it stands, or alone.

    What is said of a text alone, or of a slot, ends in the words of the text in capitals; all
    else that is said of both names the preferred slot.

    Args:
        text: Words of the preferred text that no other text has.
        other: Words of the other text.
    """

    def reply(prompt: str) -> str:
        if text not in prompt or other not in prompt:
            alone = text if text in prompt else other if other in prompt else ""
            high = alone == text if alone else None
            return _reply(prompt, prompt, Leaning(high=high, about=f" {alone.upper()}"))
        is_first = prompt.index(text) < prompt.index(other)
        first, second = (f"{each} {each.upper()}" for each in (text, other))
        words = (first, second) if is_first else (second, first)
        slot, noun = "1" if is_first else "2", re.findall(r"<(\w+)-1-", prompt)[:1]
        about = "".join(f" of {called} {slot}" for called in noun)
        return _reply(prompt, prompt, Leaning(slot, words, about=about))

    return reply


def prefers_first(prompt: str) -> str:
    """A reply that prefers what stands in slot 1."""
    return _reply(prompt, prompt, Leaning("1", ("The first.", "The second.")))


def scores(*, high: bool) -> Script:
    """A script that gives one text the highest score or label, or the lowest."""
    return lambda prompt: _reply(prompt, prompt, Leaning(high=high))


def drawn_value(schema: Mapping[str, Any], key: str, leaning: Leaning | None = None) -> Any:
    """A value that fits a schema.

    Args:
        schema: A JSON schema, without references.
        key: What it is drawn by.
        leaning: What it favours.
    """
    leaning = leaning or Leaning()
    draw = int(hashlib.sha256(key.encode()).hexdigest()[:12], 16)
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        if leaning.slot and set(_SLOTS) <= set(choices):
            return leaning.slot
        if leaning.high is not None:
            return choices[-1 if leaning.high else 0]
        return choices[draw % len(choices)]
    if parts := schema.get("anyOf"):
        return drawn_value(parts[0], key, leaning)
    kind = schema.get("type")
    if kind == "object":
        return _object(schema.get("properties", {}), key, leaning)
    if kind == "array":
        most = schema.get("maxItems", 2)
        size = max(schema.get("minItems", 0), most if leaning.full else min(most, 2))
        parts = schema.get("prefixItems") or [schema.get("items", {})] * size
        return [drawn_value(part, f"{key}{n}", leaning) for n, part in enumerate(parts)]
    if kind == "boolean":
        return draw % 2 == 0 if leaning.high is None else leaning.high
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        if leaning.high is not None:
            return high if leaning.high else low
        return low + draw % (int(high - low) + 1)
    return f"point {draw % 10**6:06}{leaning.about}".rstrip()


def _reply(prompt: str, key: str, leaning: Leaning) -> str:
    return json.dumps(drawn_value(json.loads(prompt.rpartition("\n")[2]), key, leaning))


def _object(
    properties: Mapping[str, Mapping[str, Any]], key: str, leaning: Leaning
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, part in properties.items():
        slot = _slot_of(name, properties) if leaning.slot else ""
        if slot and part["type"] == "string":
            values[name] = leaning.words[_SLOTS.index(slot)]
        else:
            own = Leaning(high=slot == leaning.slot) if slot else leaning
            values[name] = drawn_value(part, key + name, own)
    return values


def _slot_of(name: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    """The slot that a property is about, of two siblings such as `score_1`, `score_2`."""
    stem, _, slot = name.rpartition("_")
    siblings = [each for each in properties if each.rpartition("_")[0] == stem]
    is_plain = properties[name].get("type") in {"integer", "number", "string"}
    is_pair = siblings == [f"{stem}_{each}" for each in _SLOTS]
    return slot if stem and is_pair and is_plain else ""
