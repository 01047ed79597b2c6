"""Chat messages, read from every form that libraries and providers have.

A message becomes plain JSON data (`texts.Message`), whether it was an object, its dump, or a
dictionary of LangChain, OpenAI or Anthropic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from pydantic import BaseModel, ValidationError

from langchain_judges.rows import data, media, tool_calls
from langchain_judges.rows.checks import KNOWN_NAMES
from langchain_judges.rows.texts import ROLES, Message, ToolCall, plain
from langchain_judges.rows.tool_calls import as_read

_ROLES: dict[str, str] = KNOWN_NAMES["roles"]
_SHAREGPT: dict[str, str] = KNOWN_NAMES["sharegpt"]
# Keys of messages, calls and blocks that are read or say nothing of what was done.
OF_MESSAGE = {*KNOWN_NAMES["of_message"], *KNOWN_NAMES["also_of_message"]}
# What libraries keep apart from a provider's message; its `source` is who speaks.
_APART = {*KNOWN_NAMES["apart"], *KNOWN_NAMES["contexts"]} - {"source"}
# Where the content of a message is.
CONTENTS = ("parts", "content", "items", "blocks")
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
        if not (read or is_silent(part)):  # an item of no known type beside messages
            kind = part.get("type") if isinstance(part, Mapping) else None
            if not isinstance(kind, str) or is_spoken(part) or not any(map(is_spoken, parts)):
                return []
            read = [{"role": "item", "name": kind, "content": [data.as_block(part)]}]
        told = dict(map(_told, read))
        own = {call["id"]: told.get(call["id"]) for m in read for call in m.get("tool_calls", ())}
        held |= own
        # A message of the tool may say once more what its call held.
        messages += read if own else [m for m in read if _told(m) not in held.items()]
    return messages


def is_block(part: Any) -> bool:
    """Whether a part is of a form that contents have: a text, a medium, a call, a result."""
    block = typed(part)
    is_said = data.is_text(block) or media.kind_of_block(block) or is_silent(block)
    is_step = tool_calls.is_call(block) or any(tool_calls.steps_in_block(block, "assistant"))
    return bool(is_said or is_step)


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
    # LangChain reads itself what it keeps apart.
    fields = {} if isinstance(value, BaseMessage) else _fields_of(value)
    with suppress(ValidationError, TypeError):  # it is read as any other message
        value = AIMessageChunk(**fields) if fields.get("type") == "AIMessageChunk" else value
    return value if isinstance(value, AIMessageChunk) else None


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
    if items := list(tool_calls.steps_of_item(fields)):
        yield from items
        return
    if not (role := role_of(fields)):
        return
    content = _content_of(role, fields)
    if role != "tool" and isinstance(content, Mapping) and len(content) == 1:
        content = next((v for n, v in content.items() if n in KNOWN_NAMES["answers"]), content)
    calls = [*tool_calls.calls_of(role, fields)]
    # What a tool says is nothing else, unless the message says nothing of a call itself.
    is_own = role != "tool" or {"tool_call_id", *tool_calls.CALL_IDS}.isdisjoint(fields)
    if isinstance(content, list) and (is_own or [*map(typed, content)] != [*map(as_read, content)]):
        yield from _of_blocks(role, content, fields, calls)
        return
    if content is None and ("content" in fields or calls or role == "tool"):
        content = ""
    if role == "tool" or (content is not None and _speaks(role)):
        content = data.as_content(content)
    if role == "user" and fields.get("tool_calls") and isinstance(content, str):
        content = "\n".join(filter(None, (content, data.as_json(fields["tool_calls"]))))
    if isinstance(content, str | list):
        yield _record_message(role, content, fields, calls)


def _content_of(role: str, fields: Mapping[str, Any]) -> Any:
    """The content of a message: a text or blocks, with those that stand beside it."""
    if isinstance(parts := fields.get("parts"), list):
        return parts
    said = next(filter(None, map(fields.get, CONTENTS[1:])), fields.get("content"))
    if role == "tool":
        return tool_calls.result_in({**fields, "content": said})
    # A model refuses or speaks in place of a content.
    spoken = audio.get("transcript") if isinstance(audio := fields.get("audio"), Mapping) else None
    said = said or fields.get("refusal") or spoken or said
    beside = _beside(role, fields)
    return [*beside, *(said if isinstance(said, list) else [said])] if beside else said


def _beside(role: str, fields: Mapping[str, Any]) -> list[Any]:
    """Parts beside a message's content, as blocks of it: calls with results, images."""
    calls = tool_calls.calls_listed(fields) if role == "assistant" else []
    images = [{"type": "image", "image": each} for each in data.listed(fields.get("images"))]
    done = [{**call, "type": "tool_call"} for call in calls if tool_calls.is_done(call)]
    return [*done, *data.mappings_in(fields.get("tool_invocations")), *images]


def _of_blocks(
    role: str, content: list[Any], fields: Mapping[str, Any], listed: list[ToolCall]
) -> list[Message]:
    """The texts, calls and results of content blocks, in their order."""
    made: list[Message] = []
    said: list[Any] = []
    calls: list[ToolCall] = []
    known, left = {call["id"] for call in listed} - {""}, [*listed]
    blocks = map(typed, content)
    for block in texts_joined(blocks) if role == "assistant" else blocks:
        if steps := [*tool_calls.steps_in_block(block, role)]:
            if calls or plain(said).strip():
                made.append(_record_message(role, said, fields, calls))
            made, said, calls = [*made, *steps], [], []
        elif role not in tool_calls.CALL_NOTHING and tool_calls.is_call(block):
            call = tool_calls.call_in(block)
            same = [each for each in left if are_same(each, call)][:1]
            for each in same:
                left.remove(each)
            calls += same or ([call] if call["id"] not in known else [])
        elif not (block is None or (is_silent(block) and role != "tool")):
            said.append(data.as_block(block))
    if left or calls or plain(said).strip() or not made:
        made.append(_record_message(role, said, fields, [*calls, *left]))
    return made


def texts_joined(blocks: Iterable[Any], between: str = "") -> list[Any]:
    """Blocks of a reply, with texts that follow each other as the one of which they are pieces.

    Clients split a text at citations and wherever a stream was, and write no line break there.

    >>> texts_joined([{"type": "text", "text": "in 20"}, {"type": "text", "text": "24."}])
    ['in 2024.']
    """
    joined: list[Any] = []
    for is_text, group in groupby(blocks, lambda each: data.is_text(each) and not is_silent(each)):
        pieces = [*group]
        is_split = is_text and len(pieces) > 1
        texts = filter(None, (plain([each]) for each in pieces))
        joined += [between.join(texts)] if is_split else pieces
    return joined


def are_same(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls are one, by their ids, or else by name and arguments of the first."""
    if one["id"] and other["id"]:
        return one["id"] == other["id"]
    return one["name"] == other["name"] and holds(other["args"], one["args"])


def holds(more: Any, less: Any) -> bool:
    """Whether some arguments are all among others; what is no object must be equal."""
    if not (isinstance(more, Mapping) and isinstance(less, Mapping)):
        return bool(more == less)
    return all(name in more and more[name] == value for name, value in less.items())


# What the content, or the text's value, of a block is by its type.
_HELD: dict[str, str] = KNOWN_NAMES["held"]
# Words that may be of the data of a block, and keys that one has of a type that they name.
_WORDS, _FORMS = KNOWN_NAMES["kinds"][-2:], KNOWN_NAMES["forms"]
# Calls and results as Bedrock and Gemini have them, under a key of their own.
_KEYED: dict[str, str] = KNOWN_NAMES["keyed"]
_TYPES = {name: name for name in ("text", *KNOWN_NAMES["silent"], *KNOWN_NAMES["media"])} | _KEYED


def typed(block: Any) -> Any:
    """A block with the type and the keys under which it is read."""
    if not isinstance(block, Mapping):
        return block
    block = as_read(block)
    name = next((name for name in KNOWN_NAMES["kinds"] if block.get(name)), "type")
    own = {**block, "type": _TYPES.get(kind := str(block.get(name)), kind)}
    form = block if name not in _WORDS else _FORMS.get(own["type"], ())
    if kind in _TYPES and (media.standard(own) or not block.keys().isdisjoint(form)):
        block = own
    source = block.get("source") if block.get("type") == "document" else None
    if isinstance(source, Mapping) and source.get("type") == "text":
        text = plain([block.get("title"), block.get("context"), source.get("data")])
        return {**block, "source": None, "type": "text", "text": text}  # of Anthropic
    if "audio" in kind and isinstance(block.get("transcript"), str) and not media.standard(block):
        return {"type": "text", "text": block["transcript"]}  # of a sound that is not there
    said = told.get("value") if isinstance(told := block.get("text"), Mapping) else told
    if kind in _HELD and not isinstance(told, str) and (said or plain(block.get("content"))):
        return {**block, _HELD[kind]: said or plain(block["content"])}
    if {"tool_call_id", "state"} <= block.keys():
        return tool_calls.as_item({"tool_name": kind.removeprefix("tool-"), **block})
    keys = (n for n in _KEYED.keys() & block if isinstance(block[n], Mapping) and _KEYED[n] != kind)
    return next((typed({**block[n], "type": _KEYED[n]}) for n in keys), block)


def _record_message(
    role: str, content: str | list[Any], fields: Mapping[str, Any], calls: list[ToolCall]
) -> Message:
    message: Message = {"role": role, "content": content}
    name = fields.get("name")
    if role not in ROLES:
        message["role"], name = "participant", name or role
    if isinstance(name, str) and name:
        message["name"] = name
    if isinstance(content, list) and role == "assistant":  # it may be read again
        message["content"] = texts_joined(content, "\n")
    if calls:
        message["tool_calls"] = calls
    if role == "tool":
        if asked := data.first_value(fields, "tool_call_id", "call_id", "id", default=""):
            message["tool_call_id"] = str(asked)
        if tool_calls.has_failed(fields):
            message["status"] = "error"
    return message


def message_fields(value: object) -> Mapping[str, Any]:
    """The fields of a message: an object, a dictionary, a dump or a serialised form.

    A field that is empty is what LangChain or LlamaIndex keeps apart, if it does.
    """
    fields: Mapping[str, Any] = as_read(_fields_of(value))
    own = fields.get("additional_kwargs")
    if not isinstance(own, Mapping) or _APART.isdisjoint(own := as_read(own)):
        return fields
    read = {name for name in _APART if fields.get(name) or fields.get(f"invalid_{name}")}
    return {**fields, **{name: own[name] for name in own.keys() & _APART - read}}


def _fields_of(value: object) -> Mapping[str, Any]:
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, BaseModel) and hasattr(value, "role"):  # of another framework
        value = data.dump_of(value)
    if not isinstance(value, Mapping):
        return {}
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        path = data.listed(value.get("id")) or [""]
        kind = str(path[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": kind.lower(), **value["kwargs"]}
    said = value.get("from") if "value" in value else None
    if isinstance(said, str) and (said in _SHAREGPT or _speaks(said)):
        own = {**value, "role": _SHAREGPT.get(said, said), "content": value["value"], "value": None}
        return {**own, **_called(value["value"])} if said.endswith("_call") else own
    if isinstance(value.get("data"), Mapping) and "content" in value["data"]:
        return {**value["data"], "type": value.get("type")}
    return value


def _called(text: object) -> Mapping[str, Any]:
    """The calls that a text of ShareGPT's form spells; nothing if it spells none."""
    calls = own if isinstance(own := data.spelt(text), list) else [own]
    are_calls = all(isinstance(call, Mapping) and "name" in call for call in calls)
    return {"content": "", "tool_calls": calls} if are_calls else {}


def is_silent(part: object) -> bool:
    """Whether a part says nothing of what was done, as a model's reasoning."""
    fields = message_fields(part)
    is_thought = fields.get("thought") is True or fields.get("type") in KNOWN_NAMES["silent"]
    return is_thought and "role" not in fields


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


def messages_below(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of the messages in plain data, whatever holds them."""
    fields = message_fields(value)
    if role_of(fields) and {*CONTENTS, "tool_calls"} & fields.keys():
        yield fields
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from messages_below(part)
