"""An agent's work as text: its messages, the tools it called, and their results.

A trajectory is a list of chat messages in which at least one calls a tool or is its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_judges.rows.media import with_media
from langchain_judges.rows.texts import Text, plain

RESULT_CHARACTERS = 2000
"""How many characters of each tool result a judge sees."""
_CUT = re.compile(rf"^\[the first {RESULT_CHARACTERS} of \d+ characters\]$", re.MULTILINE)
"""The note after a tool result that was cut."""
_ANSWERS = ("ai", "assistant", "AIMessageChunk")
_ASKS = ("human", "user", "system", "developer")


def is_trajectory(value: Any) -> bool:
    """Return whether a value is a list of messages in which tools are used."""
    if not isinstance(value, list | tuple) or isinstance(value, str):
        return False
    steps = [_step(part) for part in value]
    messages = [step for step in steps if step is not None]
    return len(messages) == len(steps) and any(
        step["role"] == "tool" or step["calls"] for step in messages
    )


def trajectory(messages: Sequence[Any]) -> str:
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
    steps = [step for message in messages if (step := _step(message)) is not None]
    while steps and steps[0]["role"] in _ASKS:
        steps = steps[1:]
    names: dict[str, str] = {}
    parts: list[str] = []
    for place, step in enumerate(steps):
        parts += _parts(step, names, final=place == len(steps) - 1)
    last: Mapping[str, Any] = steps[-1] if steps else {"role": ""}
    if last["role"] not in _ANSWERS or last["calls"] or not last["text"].strip():
        parts.append("[no final answer]")
    return "\n\n".join(parts)


def history(messages: Sequence[Any]) -> list[dict[str, Any]]:
    r"""Return messages in which tools are used as messages of text, for a task.

    >>> call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}
    >>> history([{"role": "assistant", "content": "", "tool_calls": [call]}])
    [{'role': 'assistant', 'content': '[call of add]\n{"a": 1, "b": 2}'}]
    """
    names: dict[str, str] = {}
    turns: list[dict[str, Any]] = []
    for step in (step for message in messages if (step := _step(message)) is not None):
        role, text = _turn(step, names)
        if text:
            content = with_media(text, step["content"], marks=False)
            cut = {"cut": 1} if _is_cut(step) else {}
            turns.append({"role": role, "content": content, **cut})
    return turns


def _turn(step: Mapping[str, Any], names: dict[str, str]) -> tuple[str, str]:
    """Return the role that a transcript gives a message, and the message's text."""
    parts = _parts({**step, "text": "" if step["calls"] else step["text"]}, names, final=False)
    if step["calls"]:
        words = [step["text"]] if step["text"].strip() else []
        return "assistant", "\n\n".join([*words, *parts])
    # The first line of a part is its name in brackets.
    name, _, text = parts[0].partition("\n") if parts else ("", "", "")
    name = name.removeprefix("[").removesuffix("]")
    return ("user" if name == "human" else name), text


def work(messages: Sequence[Any]) -> Text:
    """Return an agent's messages as an output that can be judged.

    It is a text, or one message if it contains images or results were cut; `cut` is then the
    number of cut results.
    """
    steps = [step for message in messages if (step := _step(message)) is not None]
    text, cut = trajectory(messages), sum(map(_is_cut, steps))
    content = with_media(text, [step["content"] for step in steps], marks=False)
    if isinstance(content, str) and not cut:
        return text
    return [{"role": "assistant", "content": content, **({"cut": cut} if cut else {})}]


def cut_results(text: Any) -> int:
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


def _is_cut(step: Mapping[str, Any]) -> bool:
    return step["role"] == "tool" and len(step["text"]) > RESULT_CHARACTERS


def _parts(step: Mapping[str, Any], names: dict[str, str], *, final: bool) -> list[str]:
    """Return the lines of one message; `names` are the tools by the id of their calls."""
    text = step["text"]
    if step["role"] == "tool":
        name = step["name"] or names.get(step["answers"]) or "a tool"
        return [f"[result of {name}]\n{_cut(text) or '(nothing)'}"]
    role = "assistant" if step["role"] in _ANSWERS else step["role"]
    if final and role == "assistant" and not step["calls"]:
        role = "final answer"
    parts = [f"[{role}]\n{text}"] if text.strip() else []
    for name, arguments, call in step["calls"]:
        names[call] = name
        parts.append(f"[call of {name}]\n{arguments}")
    return parts


def _cut(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    return (
        f"{text[:RESULT_CHARACTERS]}\n[the first {RESULT_CHARACTERS} of {len(text)} characters]"
    )


def _step(value: Any) -> dict[str, Any] | None:
    """Return a message's role, text, calls and answered call; None if it is no message."""
    record = _record(value)
    role = record.get("role") or record.get("type")
    content = record.get("content")
    calls = record.get("tool_calls") or _blocks(content)
    if not isinstance(role, str) or not (isinstance(content, str | list) or calls):
        return None
    return {
        "role": role,
        "text": plain(content),
        "content": content,
        "calls": [_call(call) for call in calls],
        "name": record.get("name"),
        "answers": str(record.get("tool_call_id") or ""),
    }


def _record(value: Any) -> Mapping[str, Any]:
    """Return the fields of a message: of an object, a dump, or a serialised form."""
    if isinstance(value, BaseMessage):
        return value.model_dump()
    # JSON has no tuples: in a file ("user", "Hello") is a list.
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        return {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        return {}
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        kind = str((value.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **value["kwargs"]}
    if isinstance(value.get("data"), Mapping) and "content" in value["data"]:
        return {**value["data"], "type": value.get("type")}
    return value


def _blocks(content: Any) -> list[Any]:
    """Return the calls in a message's content, where some providers put them."""
    blocks = content if isinstance(content, list) else []
    kinds = {"tool_use", "tool_call"}
    return [b for b in blocks if isinstance(b, Mapping) and b.get("type") in kinds]


def _call(call: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a call's name, its arguments as JSON, and its id."""
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    arguments_in = (inner.get(name) for name in ("args", "arguments", "input"))
    arguments: Any = next((value for value in arguments_in if value is not None), {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return str(inner.get("name") or "a tool"), arguments, str(call.get("id") or "")
