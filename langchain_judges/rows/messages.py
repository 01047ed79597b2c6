"""Chat messages in every form that LangChain knows, as `{"role", "content"}` dictionaries.

Everything passed to a judge is converted here first, so that state, keys of results and
remembered examples are plain JSON data, whichever form the messages had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, ChatMessage, convert_to_messages

from langchain_judges.rows.media import content_in
from langchain_judges.rows.texts import Message, plain
from langchain_judges.rows.trajectories import (
    fields_of_dictionary,
    history,
    is_trajectory,
    trajectory,
    work,
)

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_TEXTS = ("input", "output", "output_a", "output_b")
"""Fields that may be messages."""
_WORDS = ("reference", "expected", "source", "instruction")
"""Fields that are texts; a message there stands for its text."""


def message_in(value: object) -> Message | None:
    """Read one message; None if the value is not a message.

    A message may be an object, its dump, its serialised form, a dictionary with `role` and
    `content`, or a tuple of the two.
    """
    if isinstance(value, tuple):
        value = _of_tuple(value)
    if isinstance(value, BaseMessage):
        role = value.role if isinstance(value, ChatMessage) else value.type
        return {"role": _ROLES.get(role, role), "content": value.content}
    if not isinstance(value, Mapping):
        return None
    fields = fields_of_dictionary(value)
    name, content = fields.get("role") or fields.get("type"), fields.get("content")
    if not isinstance(name, str) or not isinstance(content, str | list):
        return None
    return {"role": _ROLES.get(name, name), "content": content}


def _of_tuple(value: tuple[Any, ...]) -> BaseMessage | None:
    """Return the message of a tuple such as `("user", "Hello")`."""
    if len(value) != 2 or not all(isinstance(part, str | list) for part in value):
        return None
    try:
        return convert_to_messages([value])[0]
    except (ValueError, NotImplementedError):
        return None


def plain_row(row: Mapping[str, object]) -> dict[str, Any]:
    """Return a row in which every message is a dictionary.

    Values that cannot be read are left as they are: a later check reports them by name.

    >>> plain_row({"input": [("user", "Why?")], "output": {"type": "ai", "content": "So."}})
    {'input': [{'role': 'user', 'content': 'Why?'}], 'output': [{'role': 'assistant', 'content': 'So.'}]}
    """  # noqa: E501 - a line that doctest prints
    copy = dict(row)
    copy.update({name: _work(copy[name]) for name in _TEXTS[1:] if name in copy})
    copy.update({name: _task(copy[name]) for name in _TEXTS[:1] if name in copy})
    copy.update({name: _messages(_content(copy[name])) for name in _TEXTS if name in copy})
    copy.update({name: _words(copy[name]) for name in _WORDS if name in copy})
    if isinstance(items := copy.get("items"), list):  # of an audit
        copy["items"] = [plain_row(i) if isinstance(i, Mapping) else i for i in items]
    return copy


def state_messages(value: object) -> object:
    """Return the messages of an agent's state or of a LangGraph thread; otherwise the value.

    A state is `{"messages": [...]}`; a thread's is `{"values": state, ...}`, or an object with
    `values`.
    """
    values = getattr(value, "values", None) if isinstance(value, tuple) else None
    if isinstance(value, Mapping) and isinstance(value.get("values"), Mapping):
        values = value["values"]
    state = values if isinstance(values, Mapping) else value
    messages = state.get("messages") if isinstance(state, Mapping) else None
    return messages if isinstance(messages, list) else value


def _work(value: object) -> object:
    """Return an agent's work as one text; for a state without tools, the last message."""
    messages = state_messages(value)
    if is_trajectory(messages):
        return work(messages)
    return messages[-1:] if isinstance(messages, list) and messages is not value else value


def _task(value: object) -> object:
    messages = state_messages(value)
    return history(messages) if is_trajectory(messages) else messages


def _content(value: object) -> object:
    """Wrap content blocks that stand outside a message in one message."""
    content = content_in(value)
    return [{"role": "user", "content": content}] if content else value


def _messages(value: object) -> object:
    if (one := message_in(value)) is not None:
        return [one]
    return [_list_message(part) for part in value] if isinstance(value, list | tuple) else value


def _list_message(part: object) -> object:
    """Return a message of a list; a dictionary with a role keeps its other keys."""
    # JSON has no tuples: in a file ("user", "Hello") is a list.
    message = message_in(tuple(part) if isinstance(part, list) else part)
    if message is not None and isinstance(part, Mapping) and "role" in part:
        return {**part, **message}
    return part if message is None else message


def _words(value: object) -> object:
    if is_trajectory(messages := state_messages(value)):
        value = trajectory(messages)
    if isinstance(value, list):
        return [_words(part) for part in value]
    message = message_in(value)
    # An image is not text: it is left for the check that rejects it by the field's name.
    if message is None or content_in(message["content"]):
        return value
    return plain(message["content"])
