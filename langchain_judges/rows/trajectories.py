"""An agent's work as text: its messages, the tools it called, and their results.

A trajectory is a list of chat messages in which at least one calls a tool or is its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from langchain_core.messages import BaseMessage

from langchain_judges.rows.media import with_media
from langchain_judges.rows.texts import Message, PlainText, plain

RESULT_CHARACTERS = 2000
"""How many characters of each tool result a judge sees."""
_CUT = re.compile(rf"^\[the first {RESULT_CHARACTERS} of \d+ characters\]$", re.MULTILINE)
"""The note after a tool result that was cut."""
_ANSWERING_ROLES = ("ai", "assistant", "AIMessageChunk")
_ASKING_ROLES = ("human", "user", "system", "developer")


class _ToolCall(NamedTuple):
    name: str
    arguments: str
    """As JSON."""
    id: str


class _Step(NamedTuple):
    """A message of an agent."""

    role: str
    text: str
    content: object
    calls: list[_ToolCall]
    name: str | None
    answered: str
    """The id of the call of which it is the result."""

    @property
    def is_cut(self) -> bool:
        """Whether it is a result that is shown in part."""
        return self.role == "tool" and len(self.text) > RESULT_CHARACTERS


def is_trajectory(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether a value is a list of messages in which tools are used."""
    if not isinstance(value, list | tuple):
        return False
    steps = _steps(value)
    return len(steps) == len(value) and any(step.role == "tool" or step.calls for step in steps)


def trajectory(messages: Sequence[object]) -> str:
    """Render an agent's messages, starting with its own first message.

    Calls are shown with their arguments. Results are cut to `RESULT_CHARACTERS` characters,
    with a note of their length. The last message, if it calls no tool, is the final answer.

    >>> from langchain_core.messages import AIMessage, ToolMessage
    >>> call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}
    >>> turn = AIMessage("", tool_calls=[call])
    >>> print(trajectory([turn, ToolMessage("3", tool_call_id="1")]))
    [call of add]
    {"a": 1, "b": 2}
    <BLANKLINE>
    [result of add]
    3
    <BLANKLINE>
    [no final answer]
    """
    steps = _steps(messages)
    while steps and steps[0].role in _ASKING_ROLES:
        steps = steps[1:]
    names: dict[str, str] = {}
    parts: list[str] = []
    for place, step in enumerate(steps):
        parts += _parts(step, names, final=place == len(steps) - 1)
    last = steps[-1] if steps else None
    if last is None or not _is_answer(last):
        parts.append("[no final answer]")
    return "\n\n".join(parts)


def history(messages: Sequence[object]) -> list[Message]:
    r"""Return messages in which tools are used as messages of text, for a task.

    >>> call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}
    >>> history([{"role": "assistant", "content": "", "tool_calls": [call]}])
    [{'role': 'assistant', 'content': '[call of add]\n{"a": 1, "b": 2}'}]
    """
    names: dict[str, str] = {}
    turns: list[Message] = []
    for step in _steps(messages):
        role, text = _turn(step, names)
        if text:
            turns.append(_message(role, text, step.content, int(step.is_cut)))
    return turns


def _message(role: str, text: str, media_holder: object, cut: int) -> Message:
    content = with_media(text, media_holder, marks=False)
    message: Message = {"role": role, "content": content}
    if cut:
        message["cut"] = cut
    return message


def _turn(step: _Step, names: dict[str, str]) -> tuple[str, str]:
    """Return the role that a transcript gives a message, and the message's text."""
    parts = _parts(step._replace(text="") if step.calls else step, names, final=False)
    if step.calls:
        words = [step.text] if step.text.strip() else []
        return "assistant", "\n\n".join([*words, *parts])
    # The first line of a part is its name in brackets.
    name, _, text = parts[0].partition("\n") if parts else ("", "", "")
    name = name.removeprefix("[").removesuffix("]")
    return ("user" if name == "human" else name), text


def work(messages: Sequence[object]) -> PlainText:
    """Return an agent's messages as an output that can be judged.

    It is a text, or one message if it contains images or results were cut; `cut` is then the
    number of cut results.
    """
    steps = _steps(messages)
    text, cut = trajectory(messages), sum(step.is_cut for step in steps)
    message = _message("assistant", text, [step.content for step in steps], cut)
    return [message] if cut or not isinstance(message["content"], str) else text


def cut_results(text: object) -> int:
    """Return how many tool results of a text were cut when it was read.

    An expected answer is already a text, or a list of texts: only its notes show the cuts.
    """
    if isinstance(text, str):
        return len(_CUT.findall(text))
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        return sum(map(cut_results, text))
    messages = text if isinstance(text, list) else []
    cuts = [message.get("cut") for message in messages if isinstance(message, Mapping)]
    return sum(cut for cut in cuts if isinstance(cut, int))


def _is_answer(step: _Step) -> bool:
    return step.role in _ANSWERING_ROLES and not step.calls and bool(step.text.strip())


def _parts(step: _Step, names: dict[str, str], *, final: bool) -> list[str]:
    """Return the lines of one message; `names` are the tools by the id of their calls."""
    if step.role == "tool":
        name = step.name or names.get(step.answered) or "a tool"
        return [f"[result of {name}]\n{_cut(step.text) or '(nothing)'}"]
    role = "assistant" if step.role in _ANSWERING_ROLES else step.role
    if final and role == "assistant" and not step.calls:
        role = "final answer"
    parts = [f"[{role}]\n{step.text}"] if step.text.strip() else []
    for call in step.calls:
        names[call.id] = call.name
        parts.append(f"[call of {call.name}]\n{call.arguments}")
    return parts


def _cut(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    return (
        f"{text[:RESULT_CHARACTERS]}\n[the first {RESULT_CHARACTERS} of {len(text)} characters]"
    )


def _steps(messages: Sequence[object]) -> list[_Step]:
    """Return the messages among some values."""
    return [step for message in messages if (step := _step(message)) is not None]


def _step(value: object) -> _Step | None:
    """Return a message as a step; None if it is no message."""
    fields = _fields(value)
    role = fields.get("role") or fields.get("type")
    content = fields.get("content")
    calls = fields.get("tool_calls") or _blocks(content)
    if not isinstance(role, str) or not (isinstance(content, str | list) or calls):
        return None
    tool_calls = [_call(call) for call in calls]
    answered = str(fields.get("tool_call_id") or "")
    return _Step(role, plain(content), content, tool_calls, fields.get("name"), answered)


def _fields(value: object) -> Mapping[str, Any]:
    """Return the fields of a message: of an object, a pair, or a dictionary."""
    if isinstance(value, BaseMessage):
        return value.model_dump()
    # JSON has no tuples: in a file ("user", "Hello") is a list.
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        return {"role": value[0], "content": value[1]}
    return fields_of_dictionary(value) if isinstance(value, Mapping) else {}


def fields_of_dictionary(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message that is a dictionary, a dump or a serialised form."""
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        kind = str((value.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **value["kwargs"]}
    if isinstance(value.get("data"), Mapping) and "content" in value["data"]:
        return {**value["data"], "type": value.get("type")}
    return value


def _blocks(content: object) -> list[Mapping[str, Any]]:
    """Return the calls in a message's content, where some providers put them."""
    blocks = content if isinstance(content, list) else []
    kinds = {"tool_use", "tool_call"}
    return [b for b in blocks if isinstance(b, Mapping) and b.get("type") in kinds]


def _call(call: Mapping[str, Any]) -> _ToolCall:
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    arguments_in = (inner.get(name) for name in ("args", "arguments", "input"))
    arguments: object = next((value for value in arguments_in if value is not None), {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    name = str(inner.get("name") or "a tool")
    return _ToolCall(name, arguments, str(call.get("id") or ""))
