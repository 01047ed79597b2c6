"""Calls of tools and their results, read from every form that libraries and providers have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_judges.rows.checks import KNOWN_NAMES, plain_name
from langchain_judges.rows.data import as_content, first_value, listed, mappings_in, spelt, text_in
from langchain_judges.rows.texts import Message, ToolCall

# Where a call's arguments are, and those of an item or its results.
ARGUMENTS: list[str] = KNOWN_NAMES["call_arguments"]
_OUTPUTS: list[str] = KNOWN_NAMES["outputs"]
OF_CALL = {*KNOWN_NAMES["of_call"], *KNOWN_NAMES["arguments"], *ARGUMENTS, *_OUTPUTS}
# Where a result says that its call failed, or why.
_SIGNS = ("is_error", "error", "error_text", "status", "outcome")
_OF_ALL = OF_CALL.union(KNOWN_NAMES["of_message"])
# The names that are known of messages, blocks and calls, as JavaScript writes them.
_CAMEL = {re.sub("_(.)", lambda m: m[1].upper(), n): n for n in _OF_ALL if "_" in n}


def as_read(part: Any) -> Any:
    """A message, a block or a call with its fields under the names by which they are read.

    >>> as_read({"toolName": "pay", "tool_name": None, "sumOf": 9})
    {'tool_name': 'pay', 'sumOf': 9}
    """
    if not isinstance(part, Mapping) or _CAMEL.keys().isdisjoint(part):
        return part
    own = {name: value for name, value in part.items() if name not in _CAMEL}
    return own | {_CAMEL[n]: own.get(_CAMEL[n]) or part[n] for n in part if n not in own}


def steps_in_block(block: object, role: str) -> Iterator[Message]:
    """Yield the steps that a block is of itself.

    A user brings results back; a provider's own tools answer within the message that calls.
    """
    fields = block if isinstance(block, Mapping) else {}
    is_result = _type_of(fields).endswith(("tool_result", "call_response"))
    if is_result and role in ("user", "assistant", "tool"):
        yield _result_block(fields)
    elif role == "assistant" and (is_done(fields) or not is_call(fields)):
        yield from steps_of_item(as_item(fields) if is_call(fields) else fields)


def is_done(call: Mapping[str, Any]) -> bool:
    """Whether a call holds its result."""
    return first_value(call, *KNOWN_NAMES["results"]) is not None


def as_item(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call that holds its result, or a part of a page of the AI SDK, as an item."""
    output = first_value(call, *KNOWN_NAMES["results"])
    denied = call.get("approval", "denied") if call.get("state") == "output-denied" else None
    own = {**call_in(call), "error": denied, **_signs_in(call), "output": output}
    return {**own, "type": "page_call"}


def steps_of_item(fields: Mapping[str, Any]) -> Iterator[Message]:
    """Yield a call, its result, or both, as an item of OpenAI's Responses API has them.

    A tool that ran on the provider's side (`web_search_call`, `mcp_call`) is one item.
    """
    kind = _type_of(fields)
    if "role" in fields or kind in _NO_ITEMS or not ("call_id" in fields or kind.endswith(_ITEMS)):
        return
    is_result = kind.endswith(("_output", "_result", "_response"))
    # Of a tool that the provider runs it is null, and a call and its result have two ids.
    own_id = None if "call_id" in fields else fields.get("id")
    asked = str(first_value(fields, "approval_request_id", "call_id", default=own_id) or "")
    output = first_value(fields, *_OUTPUTS)
    if not is_result:
        name = fields.get("name") or kind.removesuffix("_call")
        name = f"approval of {name}" if "approval" in kind else name
        args = first_value(fields, *KNOWN_NAMES["arguments"], default=unnamed_in(fields))
        form = "arguments" if kind == "function_call" else "args"
        call = call_in({"name": name, form: args, "id": asked})
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    if is_result or output is not None or has_failed(fields):
        own = {"output": output, **_signs_in(fields)}
        if kind == "image_generation_call" and output:
            form = fields.get("output_format") or "png"  # which is what OpenAI makes unasked
            own["output"] = [{"type": "image", "base64": output, "mime_type": f"image/{form}"}]
        elif not result_in(own):
            own["output"] = "failed" if has_failed(fields) else unnamed_in(fields) or output
        yield _result_block({**own, "tool_use_id": asked})


def _type_of(fields: Mapping[str, Any]) -> str:
    return plain_name(str(fields.get("type") or ""))


_ITEMS = ("_call", "_call_output", "approval_request", "approval_response")
# Types of blocks and of messages, which have other keys.
_NO_ITEMS = {"", "tool_call", "server_tool_call", "tool", *map(plain_name, KNOWN_NAMES["roles"])}


def is_call(block: object) -> bool:
    """Whether a value is a call as a block of a message has it."""
    kind = _type_of(block) if isinstance(block, Mapping) else ""
    function = block.get("function") if isinstance(block, Mapping) else None
    is_listed = isinstance(function, Mapping) and "arguments" in function  # a tool has none
    return kind.endswith(("tool_use", "tool_call", "function_call")) or is_listed


# The data of a tool of MCP are the user's.
_OF_PROVIDER = re.compile("(?!mcp_).+_tool_result$")


def _result_block(block: Mapping[str, Any]) -> Message:
    # Of Haystack the call stands within its result.
    block = {**(own if isinstance(own := block.get("origin"), Mapping) else {}), **block}
    said = result_in(block)
    kind = str(said.get("type")) if isinstance(said, Mapping) else ""
    is_error = kind.endswith("_tool_result_error")
    if isinstance(said, Mapping) and said.keys() == {"type", "value"}:  # of the AI SDK
        said, is_error = said["value"], kind.startswith("error")
    asked = str(first_value(block, *CALL_IDS, default=""))
    content = as_content(said, of_provider=bool(_OF_PROVIDER.match(_type_of(block))))
    message: Message = {"role": "tool", "content": content, "tool_call_id": asked}
    if name := first_value(block, *_CALLED):
        message["name"] = str(name)
    if is_error or has_failed(block):
        message["status"] = "error"
    return message


def result_in(fields: Mapping[str, Any]) -> Any:
    """The content of a result, and why it failed."""
    held = [fields.get(name) for name in ("content", "response", *_OUTPUTS)]
    said = next((each for each in [*filter(None, held), *held] if each is not None), "")
    if more := listed(fields.get("parts")):  # of Gemini, images that a function returned
        said = [*(said if isinstance(said, list) else [said]), *more]
    error = first_value(_signs_in(fields), "error", "error_text", default="")
    why = "" if isinstance(error, int) else text_in(error)
    if not (said and why) or why in text_in(said):
        return why if why and not said else said  # which may be 0 or an empty list
    return [*said, why] if isinstance(said, list) else f"{text_in(said)}\n{why}"


def has_failed(fields: Mapping[str, Any]) -> bool:
    """Whether a result says that its call failed."""
    outcome, kind = fields.get("outcome"), _type_of(fields)
    told = {f"status {fields.get('status')}", f"outcome {outcome}", f"{kind} {outcome}"}
    return not told.isdisjoint(KNOWN_NAMES["failed"]) or any(map(fields.get, _SIGNS[:3]))


def _signs_in(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _SIGNS if fields.get(name)}


# Where a call's name is, and its id.
_CALLED = ("name", "tool_name", "tool", "tool_type")
CALL_IDS = ("tool_use_id", "call_id", "tool_call_id", "id")
# What a tool, a user or a system says can call nothing, whatever it contains.
CALL_NOTHING = ("tool", "user", "system")


def calls_of(role: str, fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    """Yield the calls that are listed in a message: valid ones, then invalid ones."""
    if role in CALL_NOTHING:
        return
    calls = [call for call in calls_listed(fields) if role != "assistant" or not is_done(call)]
    yield from map(call_in, calls)
    for call in mappings_in(fields.get("invalid_tool_calls")):
        yield {**call_in(call), "error": str(call.get("error") or _NOT_JSON)}


def calls_listed(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls that a message lists, under the first of their names, or its only one."""
    held = spelt(next((fields[name] for name in KNOWN_NAMES["calls"] if fields.get(name)), None))
    calls = map(spelt, [held] if isinstance(held, Mapping) else filter(None, listed(held)))
    return [as_read(call) if isinstance(call, Mapping) else {"args": call} for call in calls]


_NOT_JSON = "the arguments are no valid JSON"


def call_in(call: Mapping[str, Any]) -> ToolCall:
    """A call of a tool, in the form of LangChain, OpenAI or Anthropic."""
    function = call.get("function") or call.get("custom")
    inner = as_read(function) if isinstance(function, Mapping) else call
    args = spelt(first_value(inner, *ARGUMENTS))
    args = unnamed_in(inner) if args is None else args
    # Inspect's `function` is the name itself.
    name = function if isinstance(function, str) else first_value(inner, *_CALLED, default="")
    asked = str(first_value(call, *CALL_IDS, default=""))
    read: ToolCall = {"name": str(name or "a tool"), "args": args, "id": asked}
    is_bad = isinstance(args, str) and args.strip() != "" and args == inner.get("arguments")
    if isinstance(error := call.get("error") or (is_bad and _NOT_JSON), str):
        read["error"] = error
    elif has_failed(call):
        read["failed"] = text_in(result_in(_signs_in(call)) or "failed")
    return read


def unnamed_in(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values in a call in place of arguments, under names that are not known."""
    known = call if first_value(call, *ARGUMENTS) is None else {}
    others = (name for name in known if name not in _OF_ALL)
    return {name: call[name] for name in others if call[name] is not None}
