"""Chat messages and calls of tools, read from every form that libraries and providers have.

A message becomes plain JSON data (`texts.Message`), whether it was an object, its dump, or a
dictionary of LangChain, OpenAI or Anthropic.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from io import BytesIO
from itertools import chain
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import plain_name
from langchain_judges.rows.files import packaged
from langchain_judges.rows.media import kind_of_block
from langchain_judges.rows.texts import ROLES, Message, ToolCall, is_blank, plain

# Names of what is read, by which it is known.
KNOWN_NAMES: Mapping[str, Any] = packaged(__package__, "names.yaml")
_ROLES: dict[str, str] = KNOWN_NAMES["roles"]
_SHAREGPT: dict[str, str] = KNOWN_NAMES["sharegpt"]
_ANSWERS = {*KNOWN_NAMES["answers"]}
# Keys of messages, calls and blocks that are read or say nothing of what was done.
OF_MESSAGE = {*KNOWN_NAMES["of_message"], *KNOWN_NAMES["also_of_message"]}
# Where a call's arguments are, and those of an item or its results.
ARGUMENTS: list[str] = KNOWN_NAMES["call_arguments"]
_OUTPUTS: list[str] = KNOWN_NAMES["outputs"]
_READ = chain(KNOWN_NAMES["of_call"], KNOWN_NAMES["arguments"], ARGUMENTS, _OUTPUTS)
OF_CALL = {*map(plain_name, _READ)}
_OF_ALL = OF_CALL.union(KNOWN_NAMES["of_message"])
# Types of messages; a document may have another `type` and a `content`.
_SPEAKERS = {"user", "assistant", "system", "tool", "chat", *_ROLES}


def messages_in(value: object) -> list[Message]:
    """The messages in a list of them, or of one message; [] if a part is none."""
    # A tuple such as ("user", "Hello") is one message.
    one = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)
    parts = value if isinstance(value, list | tuple) and value and not one else [value]
    inner = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else []
    if inner and not isinstance(inner[0], str):  # the run of a model has a list of lists
        return messages_in(inner)
    turns = [p for p in parts if isinstance(p, Mapping) and {"from", "value"} <= {*p}]
    if len(turns) == len(parts) and any(_speaks(turn["from"]) for turn in turns):
        parts = [{"role": turn["from"], "content": turn["value"], **turn} for turn in turns]
    messages: list[Message] = []
    held: dict[str, str | None] = {}
    for part in whole(parts):
        # JSON has no tuples: in a file ("user", "Hello") is a list.
        read = list(_messages_of(tuple(part) if isinstance(part, list) else part))
        if not read and not is_silent(part):
            return []
        told = dict(map(_told, read))
        own = {call["id"]: told.get(call["id"]) for m in read for call in m.get("tool_calls", ())}
        held |= own
        # A message of the tool may say once more what its call held.
        messages += read if own else [m for m in read if _told(m) not in held.items()]
    return messages


def _told(message: Message) -> tuple[str | None, str]:
    """The id of the call whose result a message is, and the result; else nothing."""
    asked = message.get("tool_call_id") or None
    return asked, plain(message["content"]) if asked else ""


def whole(parts: Sequence[Any]) -> list[Any]:
    """Messages where the chunks of each one that was streamed are one."""
    streamed: dict[object, list[Any]] = {}
    place = 0
    for number, part in enumerate(parts, 1):
        # LangGraph streams each beside its metadata.
        is_pair = isinstance(part, list | tuple) and len(part) == 2 and isinstance(part[1], Mapping)
        said = part[0] if is_pair and "langgraph_node" in part[1] else part
        if chunk := _chunk_in(said):
            streamed.setdefault(chunk.id or -place, []).append(chunk)
        else:
            streamed[place := number] = [said]
    return [first + rest if rest else first for first, *rest in streamed.values()]


def _chunk_in(value: object) -> AIMessageChunk | None:
    if isinstance(value, BaseMessage):
        return value if isinstance(value, AIMessageChunk) else None
    fields = message_fields(value)
    with suppress(ValidationError):  # it is read as any other message
        return AIMessageChunk(**fields) if fields.get("type") == "AIMessageChunk" else None
    return None


# Roles of a tuple such as `("user", "Hello")`, as LangChain has them.
_OF_TUPLES = ["user", "human", "assistant", "ai", "system", "developer"]


def is_spoken(value: object) -> bool:
    """Whether a value says that it is a message, if one that can be read or not."""
    fields = message_fields(value)
    return _speaks(fields.get("role") or fields.get("type")) and "content" in fields


def role_of(fields: Mapping[str, Any]) -> str:
    """Who speaks, or what wrote a message in the user's place; empty if it is no message."""
    # A call has the type `function`, and one of its own beside.
    role = fields.get("role") or ("function" not in fields and fields.get("type"))
    if not isinstance(role, str) or not (fields.get("role") or _speaks(role)):
        return ""
    return speaker_of(_ROLES.get(role, role), fields.get("additional_kwargs"))


def _speaks(role: object) -> bool:
    return isinstance(role, str) and role in _SPEAKERS


def _messages_of(value: object) -> Iterator[Message]:
    """Yield the messages of one value; nothing if it is no message."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in _OF_TUPLES:
        value = {"role": value[0], "content": value[1]}
    fields = message_fields(value)
    if items := list(_response_item(fields)):
        yield from items
        return
    if not (role := role_of(fields)):
        return
    content = _content_of(role, fields)
    if role != "tool" and isinstance(content, Mapping) and len(content) == 1:
        content = content.get(next(iter({*content} & _ANSWERS), None), content)
    calls = [*_tool_calls(role, fields)]
    # What a tool says is nothing else, unless the message says nothing of a call itself.
    is_bare = role != "tool" or {"tool_call_id", *_IDS}.isdisjoint(fields)
    if isinstance(content, list) and (is_bare or [*map(typed, content)] != content):
        yield from _of_blocks(role, content, fields, calls)
        return
    if content is None and ("content" in fields or calls or role == "tool"):
        content = ""
    if role == "tool" or (content is not None and _speaks(role)):
        content = _of_result(content)
    if role == "user" and fields.get("tool_calls") and isinstance(content, str):
        content = "\n".join(filter(None, (content, as_json(fields["tool_calls"]))))
    if isinstance(content, str | list):
        yield _record_message(role, content, fields, calls)


def _content_of(role: str, fields: Mapping[str, Any]) -> Any:
    """The content of a message: a text or blocks, with those that stand beside it."""
    if isinstance(parts := fields.get("parts"), list):
        return parts
    said = _first(fields, "content", "items", "blocks", default=None)
    said = said or (_result_in(fields) if role == "tool" else _said_apart(fields)) or said
    beside = _beside(role, fields)
    return [*beside, *(said if isinstance(said, list) else [said])] if beside else said


def _said_apart(fields: Mapping[str, Any]) -> Any:
    """Words of a model in place of a content, where it refuses or speaks."""
    audio = also(fields, "audio")
    return also(fields, "refusal") or (isinstance(audio, Mapping) and audio.get("transcript"))


def also(fields: Mapping[str, Any], name: str) -> Any:
    """A field of a provider's message, which LangChain keeps apart."""
    own = fields.get("additional_kwargs")
    return fields.get(name) or (own.get(name) if isinstance(own, Mapping) else None)


def _beside(role: str, fields: Mapping[str, Any]) -> list[Any]:
    """Parts beside a message's content, as blocks of it: calls with results, images."""
    calls = mappings_in(calls_listed(fields)) if role == "assistant" else []
    pages = [{"toolInvocation": each} for each in mappings_in(fields.get("toolInvocations"))]
    images = [{"type": "image", "image": each} for each in listed(fields.get("images"))]
    done = [{**call, "type": "tool_call"} for call in calls if _is_done(call)]
    return [*done, *pages, *images]


def _of_blocks(
    role: str, content: list[Any], fields: Mapping[str, Any], listed: list[ToolCall]
) -> list[Message]:
    """The texts, calls and results of content blocks, in their order."""
    made: list[Message] = []
    said: list[Any] = []
    calls: list[ToolCall] = []
    known, left = {call["id"] for call in listed} - {""}, [*listed]
    for block in map(typed, content):
        if steps := [*_steps_in(block, role)]:
            if calls or plain(said).strip():
                made.append(_record_message(role, said, fields, calls))
            made, said, calls = [*made, *steps], [], []
        elif role not in _CALL_NOTHING and is_call(block):
            call = call_in(block)
            same = [each for each in left if _are_same(each, call)][:1]
            for each in same:
                left.remove(each)
            calls += same or ([call] if call["id"] not in known else [])
        elif not (block is None or is_silent(block)):
            said.append(_shown(block))
    if left or calls or plain(said).strip() or not made:
        made.append(_record_message(role, said, fields, [*calls, *left]))
    return made


def _are_same(one: ToolCall, other: ToolCall) -> bool:
    if one["id"] and other["id"]:
        return one["id"] == other["id"]
    return (one["name"], one["args"]) == (other["name"], other["args"])


def _steps_in(block: object, role: str) -> Iterator[Message]:
    """Yield the steps that a block is of itself.

    A user brings results back; a provider's own tools answer within the message that calls.
    """
    fields = block if isinstance(block, Mapping) else {}
    is_result = str(fields.get("type")).endswith(("tool_result", "tool-result", "call_response"))
    if is_result and role in ("user", "assistant", "tool"):
        yield _result_block(fields)
    elif role == "assistant" and (_is_done(fields) or not is_call(fields)):
        yield from _response_item(_item_of(fields) if is_call(fields) else fields)


# What the content, or the text's value, of a block is by its type.
_HELD: dict[str, str] = KNOWN_NAMES["held"]
# Calls and results as Bedrock and Gemini have them, under a key of their own.
_KEYED: dict[str, str] = KNOWN_NAMES["keyed"]


def typed(block: Any) -> Any:
    """A block with the type and the keys under which it is read."""
    if not isinstance(block, Mapping):
        return block
    kind = str(block.get("type") or block.get("block_type"))
    said = told.get("value") if isinstance(told := block.get("text"), Mapping) else told
    if kind in _HELD and not isinstance(told, str) and (said or plain(block.get("content"))):
        return {**block, _HELD[kind]: said or plain(block["content"])}
    # A type of Semantic Kernel, or of LangChain's Gemini, whose blocks hold a text under it.
    told = str(block.get("content_type") or (kind if isinstance(block.get(kind), str) else ""))
    if told in _KEYED:
        return {**block, "type": _KEYED[told]}
    if {"toolCallId", "state"} <= {*(part := block.get("toolInvocation", block))}:
        return _item_of({**part, "tool_name": kind.removeprefix("tool-")})
    own = (name for name in _KEYED if isinstance(block.get(name), Mapping))
    return next((typed({**block[name], "type": _KEYED[name]}) for name in own), block)


def _is_done(call: Mapping[str, Any]) -> bool:
    """Whether a call holds its result."""
    return _first(call, *KNOWN_NAMES["results"], default=None) is not None


def _item_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call that holds its result, or a part of a page of the AI SDK, as an item."""
    error = call.get("errorText") or (call.get("state") == "output-denied" and "denied")
    own = {**call_in(call), "error": error or call.get("error")}
    output = _first(call, *KNOWN_NAMES["results"], default=None)
    return {**own, "type": "page_call", "output": output}


def _shown(block: Any) -> Any:
    """A block as it is shown: what is neither text nor a medium as JSON."""
    fields = block if isinstance(block, Mapping) else {}
    is_shown = _is_said(block) or isinstance(fields.get("text"), str)
    return block if is_shown else _as_text(fields.get("refusal") or block)


def _record_message(
    role: str, content: str | list[Any], fields: Mapping[str, Any], calls: list[ToolCall]
) -> Message:
    message: Message = {"role": role, "content": content}
    name = fields.get("name")
    if role not in ROLES:
        message["role"], name = "participant", name or role
    if isinstance(name, str) and name:
        message["name"] = name
    if calls:
        message["tool_calls"] = calls
    if role == "tool":
        if asked := _first(fields, "tool_call_id", "call_id", "id", default=""):
            message["tool_call_id"] = str(asked)
        if _has_failed(fields):
            message["status"] = "error"
    return message


def message_fields(value: object) -> Mapping[str, Any]:
    """The fields of a message: an object, a dictionary, a dump or a serialised form."""
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, BaseModel) and hasattr(value, "role"):  # of another framework
        value = dump_of(value)
    if not isinstance(value, Mapping):
        return {}
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        path = listed(value.get("id")) or [""]
        kind = str(path[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **value["kwargs"]}
    said = value.get("from") if "value" in value else None
    if isinstance(said, str) and (said in _SHAREGPT or _speaks(said)):
        own = {**value, "role": _SHAREGPT.get(said, said), "content": value["value"]}
        return {**own, **_called(value["value"])} if said.endswith("_call") else own
    if isinstance(value.get("data"), Mapping) and "content" in value["data"]:
        return {**value["data"], "type": value.get("type")}
    return value


def _called(text: object) -> Mapping[str, Any]:
    """The calls that a text of ShareGPT's form spells; nothing if it spells none."""
    calls = data if isinstance(data := spelt(text), list) else [data]
    are_calls = all(isinstance(call, Mapping) and "name" in call for call in calls)
    return {"content": "", "tool_calls": calls} if are_calls else {}


def spelt(value: Any) -> Any:
    """The data that a text spells in JSON; any other value unchanged."""
    with suppress(ValueError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def is_silent(part: object) -> bool:
    """Whether a part says nothing of what was done, as a model's reasoning."""
    fields = message_fields(part)
    is_thought = fields.get("thought") is True or fields.get("type") in KNOWN_NAMES["silent"]
    return is_thought and "role" not in fields


def _is_item(fields: Mapping[str, Any]) -> bool:
    kind = str(fields.get("type") or "")
    return kind.endswith(("_call", "_call_output")) and "role" not in fields and kind not in _BLOCKS


def _response_item(fields: Mapping[str, Any]) -> Iterator[Message]:
    """Yield a call, its result, or both, as an item of OpenAI's Responses API has them.

    A tool that ran on the provider's side (`web_search_call`, `mcp_call`) is one item.
    """
    if not _is_item(fields):
        return
    kind = str(fields["type"])
    asked = str(fields.get("call_id") or fields.get("id") or "")
    error = fields.get("error") or (fields.get("status") == "failed" and "failed")
    output = _first(fields, *_OUTPUTS, default=None)
    if kind.endswith("_call"):
        name = fields.get("name") or kind.removesuffix("_call")
        rest = {n: v for n, v in fields.items() if n not in _OF_ITEM and v is not None}
        args = _first(fields, *KNOWN_NAMES["arguments"], default=rest)
        form = "arguments" if kind == "function_call" else "args"
        call = call_in({"name": name, form: args, "id": asked})
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind.endswith("_output") or output is not None or error:
        said: Any = text_in(error or output)
        if kind == "image_generation_call" and not error:
            form = fields.get("output_format") or "png"  # which is what OpenAI makes unasked
            said = [{"type": "image", "base64": said, "mime_type": f"image/{form}"}]
        yield _result_block({"tool_use_id": asked, "content": said, "is_error": error})


# What an item has beside the arguments of its call.
_OF_ITEM = {"type", "id", "call_id", "name", "status", "error", *_OUTPUTS}
# Calls that are blocks of a message.
_BLOCKS = {"tool_call", "server_tool_call"}


def is_call(block: object) -> bool:
    """Whether a value is a call as a block of a message has it."""
    kind = str(block.get("type")) if isinstance(block, Mapping) else ""
    function = block.get("function") if isinstance(block, Mapping) else None
    is_listed = isinstance(function, Mapping) and "arguments" in function  # a tool has none
    return kind.endswith(("tool_use", "tool_call", "tool-call", "function_call")) or is_listed


def _of_result(content: object) -> str | list[Any]:
    """Result of a tool, or data: text and media unchanged, all other data as JSON."""
    if not isinstance(content, list):
        return text_in(content)
    # Of Azure the result stands within its block.
    own = (each.get("tool_result", each) if isinstance(each, Mapping) else each for each in content)
    return [block if _is_said(block) else _as_text(block) for block in own]


def _is_said(block: object) -> bool:
    fields = block if isinstance(block, Mapping) else {"text": block}
    is_text = fields.get("type") == "text" or fields.keys() == {"text"}
    return bool(kind_of_block(block)) or (is_text and isinstance(fields.get("text"), str))


def _as_text(data: object) -> dict[str, str]:
    return {"type": "text", "text": text_in(data)}


def _result_block(block: Mapping[str, Any]) -> Message:
    # Of Haystack the call stands within its result.
    block = {**(own if isinstance(own := block.get("origin"), Mapping) else {}), **block}
    said = _result_in(block)
    kind = str(said.get("type")) if isinstance(said, Mapping) else ""
    is_error = kind.endswith("_tool_result_error")
    if isinstance(said, Mapping) and said.keys() == {"type", "value"}:  # of the AI SDK
        said, is_error = said["value"], kind.startswith("error")
    asked = str(_first(block, "tool_use_id", *_IDS, default=""))
    message: Message = {"role": "tool", "content": _of_result(said), "tool_call_id": asked}
    if name := _first(block, *_CALLED, default=None):
        message["name"] = str(name)
    if is_error or _has_failed(block):
        message["status"] = "error"
    return message


def _result_in(fields: Mapping[str, Any]) -> Any:
    """The content of a result, or else why it failed."""
    held = [fields.get(name) for name in ("content", "response", *_OUTPUTS)]
    error = fields.get("error")
    known = [*filter(None, held), error if error is not True else None, *held]
    return next((each for each in known if each is not None), "")


def _has_failed(fields: Mapping[str, Any]) -> bool:
    """Whether a result says that its call failed."""
    signs = [fields.get("is_error"), fields.get("isError"), fields.get("error")]
    is_told = str(fields.get("outcome")) in KNOWN_NAMES["failed"]
    return any(signs) or is_told or fields.get("status") == "error"


# Where a call's name is, and its id.
_CALLED = ("name", "toolName", "tool_name", "tool")
_IDS = ("call_id", "tool_call_id", "id", "toolUseId", "toolCallId")


def _first(fields: Mapping[str, Any], *names: str, default: Any) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), default)


# What a tool, a user or a system says can call nothing, whatever it contains.
_CALL_NOTHING = ("tool", "user", "system")


def _tool_calls(role: str, fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    """Yield the calls that are listed in a message: valid ones, then invalid ones."""
    if role in _CALL_NOTHING:
        return
    parts = calls_listed(fields)
    calls = [part if isinstance(part, Mapping) else {"args": part} for part in parts if part]
    calls = [call for call in calls if role != "assistant" or not _is_done(call)]
    if not calls and isinstance(legacy := spelt(also(fields, "function_call")), Mapping):
        calls = [legacy]
    invalid = mappings_in(fields.get("invalid_tool_calls"))
    known = {str(call.get("id")) for call in invalid} - {"None"}
    yield from (call_in(call) for call in calls if str(call.get("id")) not in known)
    for call in invalid:
        yield {**call_in(call), "error": str(call.get("error") or _NOT_JSON)}


def calls_listed(fields: Mapping[str, Any]) -> list[Any]:
    """The calls that a message lists, under one of two names."""
    return [*map(spelt, listed(spelt(_first(fields, "tool_calls", "tools_called", default=()))))]


def listed(value: object) -> Sequence[Any]:
    """A list; of anything else, where data should have one, nothing."""
    return value if isinstance(value, list | tuple) else ()


def mappings_in(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list."""
    return [each for each in listed(value) if isinstance(each, Mapping)]


_NOT_JSON = "the arguments are no valid JSON"


def call_in(call: Mapping[str, Any]) -> ToolCall:
    """A call of a tool, in the form of LangChain, OpenAI or Anthropic."""
    function = call.get("function") or call.get("custom")
    inner = function if isinstance(function, Mapping) else call
    args = spelt(_first(inner, *ARGUMENTS, default=None))
    args = unnamed_in(inner) if args is None else args
    # Inspect's `function` is the name itself.
    name = function if isinstance(function, str) else _first(inner, *_CALLED, default="")
    asked = str(_first(call, *_IDS, default=""))
    read: ToolCall = {"name": str(name or "a tool"), "args": args, "id": asked}
    is_bad = isinstance(args, str) and args.strip() != "" and args == inner.get("arguments")
    if isinstance(error := call.get("error") or (is_bad and _NOT_JSON), str):
        read["error"] = error
    return read


def unnamed_in(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values in a call in place of arguments, under names that are not known."""
    known = call if _first(call, *ARGUMENTS, default=None) is None else {}
    others = (name for name in known if plain_name(name) not in _OF_ALL)
    return {name: call[name] for name in others if call[name] is not None}


def text_in(value: object) -> str:
    """A tool's result as text."""
    value = plain_data(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(map(_is_said, value)) and plain(value).strip():
        return plain(value)
    return as_json(value)


def as_json(value: object) -> str:
    """Data, or a model of it, as JSON.

    Raises:
        InputError: They contain themselves.
    """
    try:
        return json.dumps(plain_data(value), ensure_ascii=False, default=_dumped)
    except (ValueError, RecursionError) as exc:
        raise _unreadable(exc) from exc


_ENDLESS = "data that contain themselves, or are nested too deep, cannot be read"


def _unreadable(exc: Exception) -> InputError:
    is_told = isinstance(exc, InputError | PydanticSerializationError)
    return InputError(str(exc) if is_told else _ENDLESS)


def _dumped(value: object) -> object:
    return dump_of(value) if isinstance(value, BaseModel) else _python_form(value)


def dump_of(model: BaseModel) -> Any:
    """The dump of a model, with its parts by their own class and not by the declared one.

    Raises:
        InputError: It contains itself, or a serializer of its own fails.
    """
    try:
        return plain_data(model.model_dump(serialize_as_any=True))
    except (ValueError, RecursionError) as exc:
        raise _unreadable(exc) from exc


def _python_form(value: object) -> str:
    """Python's form of a value, without its address: it is another in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def plain_data(value: Any) -> Any:
    r"""Data in the types of JSON, as far as these have a form for it.

    Arrays and sets are lists (sets sorted, as they have another order in each process), bytes
    texts or else their base64, missing values None, data classes objects, filled prompts
    messages; messages, models of pydantic and whatever is not known are left as they are.

    Raises:
        InputError: They contain themselves.

    >>> plain_data({"parts": {7, 2}, "share": float("nan"), "raw": (b"Kyiv", b"\x89PNG\0")})
    {'parts': [2, 7], 'share': None, 'raw': ('Kyiv', 'iVBORwA=')}
    """
    if value is None or type(value) in {str, int, bool}:  # at once: most values are
        return value
    if hasattr(value, "tolist"):  # of numpy, where times of nanoseconds are numbers
        is_time = getattr(getattr(value, "dtype", None), "kind", "") in {"m", "M"}
        value = (value.astype(str) if is_time else value).tolist()
    if value is None or (isinstance(value, str | int) and not isinstance(value, Enum)):
        return value
    try:
        return _json_value(value.to_messages() if isinstance(value, PromptValue) else value)
    except RecursionError as exc:
        raise InputError(_ENDLESS) from exc


def is_nothing(value: object) -> bool:
    """Whether a value is missing, empty or a blank text; 0 and False are something."""
    if isinstance(data := plain_data(value), str):
        return is_blank(data)
    return data is None or (isinstance(data, list | tuple | Mapping) and not data)


def holds_nothing(data: object) -> bool:
    """Whether inputs or outputs hold nothing, as `{"output": None}` of a target that raised."""
    return all(map(is_nothing, data.values() if isinstance(data, Mapping) else [data]))


_OF_KEYS = (str, int, float, type(None))


def _json_value(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(plain_data, value))
    if isinstance(value, Mapping):
        # A tuple of types is much faster here than their union.
        names = (n if isinstance(n, _OF_KEYS) else _python_form(n) for n in value)
        return dict(zip(names, map(plain_data, value.values()), strict=True))
    if isinstance(value, set | frozenset | deque):
        parts = map(plain_data, value)
        return [*parts] if isinstance(value, deque) else sorted(parts, key=as_json)
    if is_dataclass(value) and not isinstance(value, type):
        return _json_value({each.name: getattr(value, each.name, None) for each in fields(value)})
    if type(value).__module__.startswith("PIL.") and hasattr(value, "save"):
        value.save(file := BytesIO(), "PNG")
        return {"type": "image", "image": b64encode(file.getvalue()).decode()}
    # Of a missing value of pandas the comparison is missing too.
    if isinstance(value, float) or type(value).__module__.startswith("pandas."):
        value = value if (value == value) is True else None
    # A state of LangGraph is a named tuple, and what comes bit by bit is not read here.
    if isinstance(value, float | tuple | Iterator | type) or hasattr(value, "model_dump"):
        return value
    if isinstance(value, bytes | bytearray):
        written = b64encode(value) if b"\0" in value else value  # which no image lacks
        return written.decode("utf-8", "backslashreplace")
    with suppress(PydanticSerializationError):
        return to_jsonable_python(value, inf_nan_mode="null")
    return value


# Roles of what a middleware writes in the user's place; of any other it is a participant.
_WRITTEN = {"summarization": "summary", "pinned_skill": "system"}


def speaker_of(role: str, marks: Any) -> str:
    """The role of a message, or the name of the middleware that wrote it in the user's place.

    >>> speaker_of("user", {"lc_source": "judge"})
    'judge'

    Args:
        role: Its own.
        marks: Its `additional_kwargs`.
    """
    if role != "user" or not isinstance(marks, Mapping):
        return role
    if marks.get("read_file_media_result") is True:  # of deepagents, beside the result's text
        return "tool"
    source = marks.get("lc_source")
    return _WRITTEN.get(source, source) if source and isinstance(source, str) else role
