"""One record of what happened, read from every shape people have.

A record is a list of messages as plain JSON data (`texts.Message`): who said what, which tools
were called and what they returned, the structured response, and how it ended. It is read from
messages of LangChain, of OpenAI and Anthropic, from the state of an agent or a LangGraph
thread, and from a provider's response; `applications.py` reads runs of LangSmith.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage, ChatMessage, convert_to_messages

from langchain_judges.rows.media import content_in
from langchain_judges.rows.texts import Message, ToolCall, plain

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "HumanMessageChunk": "user",
    "function": "tool",
    "developer": "system",
    "model": "assistant",
}
_TYPES = {"user", "assistant", "system", "tool", "chat", *_ROLES}
"""Types of messages; a document may have another `type` and a `content`."""
_LIMITS = {"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"}
"""How providers say that a reply was cut at its limit of tokens."""


def message_in(value: object) -> Message | None:
    """Read one message; None if the value is not a message.

    A message may be an object, its dump, its serialised form, a dictionary with `role` and
    `content`, or a tuple of the two. A message that holds the results of several calls, as
    Anthropic has them, is read by `messages_in` alone.
    """
    messages = list(_read(value))
    return messages[0] if len(messages) == 1 else None


def messages_in(value: object) -> list[Message]:
    """Return the messages in a list of them, or of one message; [] if a part is none."""
    parts = value if isinstance(value, list | tuple) and value else [value]
    if _is_pair(value):
        parts = [value]
    messages: list[Message] = []
    for part in parts:
        # JSON has no tuples: in a file ("user", "Hello") is a list.
        read = list(_read(tuple(part) if isinstance(part, list) else part))
        if not read and not _is_silent(part):
            return []
        messages += read
    return messages


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def _read(value: object) -> Iterator[Message]:
    """Yield the messages that one value stands for; nothing if it is no message."""
    if isinstance(value, tuple):
        value = _of_tuple(value)
    if isinstance(value, BaseMessage):
        fields: Mapping[str, Any] = value.model_dump()
        role: object = value.role if isinstance(value, ChatMessage) else value.type
    elif isinstance(value, Mapping):
        fields = _fields(value)
        kind = fields.get("type")
        role = fields.get("role") or (kind if kind in _TYPES else None)
        if items := list(_response_item(fields)):
            yield from items
            return
    else:
        return
    content, calls = fields.get("content"), list(_tool_calls(fields))
    if content is None and (calls or fields.get("refusal") or role == "tool"):
        content = fields.get("refusal") or ""
    if not isinstance(role, str) or not isinstance(content, str | list):
        return
    blocks = content if isinstance(content, list) else []
    if results := [b for b in blocks if isinstance(b, Mapping) and _is_result(b)]:
        yield from map(_result_block, results)
        content = [block for block in blocks if not _is_result(block)]
        if not plain(content).strip():
            return
    yield _message(_ROLES.get(role, role), content, fields, calls)


def _message(
    role: str, content: str | list[Any], fields: Mapping[str, Any], calls: list[ToolCall]
) -> Message:
    blocks = content if isinstance(content, str) else [b for b in content if not _is_call(b)]
    message: Message = {"role": role, "content": blocks}
    if isinstance(name := fields.get("name"), str) and name:
        message["name"] = name
    if calls:
        message["tool_calls"] = calls
    if role == "tool":
        if asked := fields.get("tool_call_id") or fields.get("call_id"):
            message["tool_call_id"] = str(asked)
        if fields.get("status") == "error":
            message["status"] = "error"
    return message


def _of_tuple(value: tuple[Any, ...]) -> BaseMessage | None:
    """Return the message of a tuple such as `("user", "Hello")`."""
    if len(value) != 2 or not all(isinstance(part, str | list) for part in value):
        return None
    try:
        return convert_to_messages([value])[0]
    except (ValueError, NotImplementedError):
        return None


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message that is a dictionary, a dump or a serialised form."""
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        path = value.get("id")
        last = path[-1] if isinstance(path, list) and path else ""
        kind = str(last).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **value["kwargs"]}
    if isinstance(value.get("data"), Mapping) and "content" in value["data"]:
        return {**value["data"], "type": value.get("type")}
    return value


_SILENT = {"reasoning", "mcp_list_tools", "compaction", "item_reference"}
"""Items of OpenAI's Responses API that say nothing of what was done."""


def _is_silent(part: object) -> bool:
    return isinstance(part, Mapping) and "role" not in part and part.get("type") in _SILENT


def _response_item(fields: Mapping[str, Any]) -> Iterator[Message]:
    """Yield a call, its result, or both, as an item of OpenAI's Responses API has them.

    A tool that ran on the provider's side (`web_search_call`, `mcp_call`) is one item.
    """
    kind = str(fields.get("type") or "")
    if "role" in fields or not kind.endswith(("_call", "_call_output")) or kind == "tool_call":
        return
    asked = str(fields.get("call_id") or fields.get("id") or "")
    error, output = fields.get("error"), fields.get("output", fields.get("results"))
    if kind.endswith("_call"):
        name = fields.get("name") or kind.removesuffix("_call")
        names = ("arguments", "input", "action", "queries", "code")
        args: Any = next((fields[each] for each in names if fields.get(each) is not None), {})
        call = call_in({"name": name, "args": args, "id": asked})
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind.endswith("_output") or output is not None or error:
        result: Message = {
            "role": "tool",
            "content": text_in(error or output),
            "tool_call_id": asked,
        }
        yield {**result, "status": "error"} if error else result


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") in {"tool_use", "tool_call"}


def _is_result(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _result_block(block: Mapping[str, Any]) -> Message:
    content = block.get("content")
    message: Message = {
        "role": "tool",
        "content": content if isinstance(content, list) else text_in(content),
        "tool_call_id": str(block.get("tool_use_id") or ""),
    }
    if block.get("is_error"):
        message["status"] = "error"
    return message


def _tool_calls(fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    """Yield the calls of a message: valid ones, then invalid ones."""
    content = fields.get("content")
    listed = fields.get("tool_calls")
    calls = [call for call in listed or () if isinstance(call, Mapping)]
    extra = fields.get("additional_kwargs")
    if not calls and isinstance(extra, Mapping):
        calls = [call for call in extra.get("tool_calls") or () if isinstance(call, Mapping)]
    if not calls and isinstance(content, list):
        calls = [block for block in content if _is_call(block)]
    if isinstance(old := fields.get("function_call"), Mapping):
        calls = [*calls, old]
    invalid = fields.get("invalid_tool_calls") or ()
    known = {str(call.get("id")) for call in invalid if isinstance(call, Mapping)}
    yield from (call_in(call) for call in calls if str(call.get("id")) not in known - {"None"})
    for call in invalid:
        if isinstance(call, Mapping):
            why = str(call.get("error") or "the arguments are no valid JSON")
            yield {**call_in(call), "error": why}


def call_in(call: Mapping[str, Any]) -> ToolCall:
    """Return a call of a tool, in the form of LangChain, OpenAI or Anthropic."""
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    found = (inner.get(name) for name in ("args", "arguments", "input"))
    args: Any = next((value for value in found if value is not None), {})
    if isinstance(args, str):
        with suppress(ValueError):
            args = json.loads(args)
    name = str(inner.get("name") or "a tool")
    read: ToolCall = {"name": name, "args": args, "id": str(call.get("id") or "")}
    if isinstance(error := call.get("error"), str):
        read["error"] = error
    return read


def text_in(value: object) -> str:
    """Return a tool's result as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and (text := plain(value)).strip():
        return text
    return json.dumps(value, ensure_ascii=False, default=str)


def is_state(value: object) -> bool:
    """Return whether a value is an agent's state or a LangGraph thread's."""
    state = _state(value)
    return state is not None and (
        "structured_response" in state or bool(messages_in(state.get("messages")))
    )


def record_in(value: object) -> list[Message]:
    """Return the record of what happened in a value of any shape; [] if it holds none.

    What is not of the messages themselves follows them, under one of the roles of `OUTCOMES`.
    """
    if messages := messages_in(value):
        return [*_without_stop(messages), *_ending(messages, value)]
    if content := content_in(value):
        return [{"role": "user", "content": content}]
    if (state := _state(value)) is not None:
        return _of_state(state)
    return _of_response(value) if isinstance(value, Mapping) else []


def _state(value: object) -> Mapping[str, Any] | None:
    """Return the state in a LangGraph thread or its snapshot, or a state itself."""
    inner = getattr(value, "values", None) if isinstance(value, tuple) else None
    if isinstance(value, Mapping) and {"values", "next"} <= value.keys():
        inner = value["values"]
    state = inner if isinstance(inner, Mapping) else value
    if not isinstance(state, Mapping):
        return None
    if not ("messages" in state or "structured_response" in state):
        return None
    waiting = getattr(value, "interrupts", None) or (
        value.get("interrupts") if isinstance(value, Mapping) else None
    )
    return {**state, "__interrupt__": waiting} if waiting else state


def _of_state(state: Mapping[str, Any]) -> list[Message]:
    messages = messages_in(state.get("messages"))
    record = _without_stop(messages)
    if tools := state.get("tools") or state.get("available_tools"):
        record += _tools_available(tools)
    if (response := state.get("structured_response")) is not None:
        # The call by which the answer came is part of it, and so is its acknowledgement.
        record = _without_answering_call(record, response)
        record.append({"role": "structured response", "content": as_json(response)})
    waiting = state.get("__interrupt__")
    if isinstance(waiting, list | tuple) and waiting:
        values = [getattr(each, "value", each) for each in waiting]
        words = "; ".join(v if isinstance(v, str) else as_json(v) for v in values)
        record.append(ended(f"It was interrupted and waits: {words}"))
    return [*record, *_ending(messages, state.get("messages"))]


def _without_answering_call(messages: list[Message], response: object) -> list[Message]:
    """Return messages without the call whose arguments are the structured response."""
    name = type(response).__name__
    for place in range(len(messages) - 1, -1, -1):
        calls = messages[place].get("tool_calls") or []
        if len(calls) == 1 and (
            calls[0]["name"] == name or as_json(calls[0]["args"]) == as_json(response)
        ):
            answered = [m for m in messages[place:] if m.get("tool_call_id") == calls[0]["id"]]
            said = messages[place]
            kept: list[Message] = []
            if plain(said["content"]).strip():
                kept = [{"role": said["role"], "content": said["content"]}]
            after = [m for m in messages[place + 1 :] if m not in answered]
            return [*messages[:place], *kept, *after]
    if messages and messages[-1]["role"] == "assistant" and not messages[-1].get("tool_calls"):
        try:
            same = as_json(json.loads(plain(messages[-1]["content"]))) == as_json(response)
        except ValueError:
            same = False
        return messages[:-1] if same else messages
    return messages


def as_json(value: object) -> str:
    """Return data, or a model of it, as JSON."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        value = dump(mode="json")
    return json.dumps(value, ensure_ascii=False, default=str)


def _tools_available(tools: object) -> list[Message]:
    if not isinstance(tools, list | tuple):
        return []
    lines = []
    for tool in tools:
        fields = tool if isinstance(tool, Mapping) else vars(tool) if _named(tool) else {}
        inner = fields.get("function")
        fields = inner if isinstance(inner, Mapping) else fields
        name = tool if isinstance(tool, str) else fields.get("name")
        if name:
            about = " ".join(str(fields.get("description") or "").split())
            lines.append(f"{name}: {about}" if about else str(name))
    return [{"role": "tools available", "content": "\n".join(lines)}] if lines else []


def _named(tool: object) -> bool:
    return isinstance(getattr(tool, "name", None), str) and hasattr(tool, "__dict__")


def ended(words: str) -> Message:
    """Return the message that says how something ended."""
    return {"role": "how it ended", "content": words}


_AT_A_LIMIT = re.compile(
    r"Model call limits exceeded: .*\)|.* call limits? reached: .*\.?"
    r"|Sorry, need more steps to process this request\."
)
"""What LangChain's middleware and LangGraph's agent put in the place of an answer."""


def _without_stop(messages: Sequence[Message]) -> list[Message]:
    """Return messages whose last is no answer, if it says that a limit was reached."""
    last = plain(messages[-1]["content"]) if messages else ""
    if not _AT_A_LIMIT.fullmatch(last) or messages[-1]["role"] != "assistant":
        return list(messages)
    return [*messages[:-1], ended(f"It reached a limit: {last}")]


def _ending(messages: Sequence[Message], origin: object) -> list[Message]:
    """Return how an agent's work ended, where its last message says that it was cut."""
    parts = origin if isinstance(origin, list | tuple) and origin else [origin]
    last = parts[-1]
    fields = last.model_dump() if isinstance(last, BaseMessage) else last
    if not messages or messages[-1]["role"] != "assistant" or not isinstance(fields, Mapping):
        return []
    metadata = _fields(fields).get("response_metadata")
    details = metadata if isinstance(metadata, Mapping) else {}
    reasons = [details.get(name) for name in ("finish_reason", "stop_reason", "done_reason")]
    if any(isinstance(reason, str) and reason in _LIMITS for reason in reasons):
        return [ended("The last reply was cut at its limit of tokens.")]
    return []


def _of_response(value: Mapping[str, Any]) -> list[Message]:
    """Return the messages in a response of a chat model, as providers and traces have it."""
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return messages_in(choices[0].get("message"))
    generations = value.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, Mapping):
        if messages := messages_in(generations.get("message")):
            return messages
        if isinstance(text := generations.get("text"), str):
            return [{"role": "assistant", "content": text}]
    if value.get("object") == "response" and isinstance(items := value.get("output"), list):
        return [m for item in items for m in _read(item)]
    return []


def answered(record: Sequence[Message], task: object = None) -> list[Message]:
    """Return a record without the task at its beginning, which is shown as the task.

    That is the messages that the task has too, and all before the first reply if the user
    says nothing later. A conversation keeps all its turns.
    """
    asked = messages_in(task)
    rest = list(record)
    while asked and rest and _same(asked[0], rest[0]):
        asked, rest = asked[1:], rest[1:]
    if isinstance(task, str) and rest and _same({"role": "user", "content": task}, rest[0]):
        rest = rest[1:]
    replies = [i for i, each in enumerate(rest) if each["role"] not in ("user", "system")]
    first = replies[0] if replies else len(rest)
    if replies and not any(message["role"] == "user" for message in rest[first:]):
        rest = rest[first:]
    return rest or list(record[-1:])


def begins(record: Sequence[Message], beginning: Sequence[Message]) -> bool:
    """Return whether a record begins with some messages."""
    return len(beginning) <= len(record) and all(map(_same, beginning, record))


def _same(one: Message, other: Message) -> bool:
    texts = plain(one["content"]).strip(), plain(other["content"]).strip()
    return one["role"] == other["role"] and texts[0] == texts[1]


def last_turn(record: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return what stands before the last reply of a record, and that reply alone."""
    places = [
        i
        for i, message in enumerate(record)
        if message["role"] in ("assistant", "structured response")
        and not message.get("tool_calls")
        and plain(message["content"]).strip()
    ]
    place = places[-1] if places else len(record) - 1
    return list(record[:place]), list(record[place : place + 1])
