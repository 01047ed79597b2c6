"""Reading a model's reply: from a message to checked data, or to what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel, ValidationError, create_model

from langchain_judges.asking.replies.objects import (
    Objects,
    answer_of,
    has_tags,
    objects,
    too_deep,
    whole_object,
    without,
)
from langchain_judges.asking.replies.prose import own_words, quoted
from langchain_judges.rows.texts import is_blank, without_lone_surrogates
from langchain_judges.verdict import FailureReason

ReplyData = dict[str, Any]
"""What was read of a reply: what `Question.shape` dumps, or might after a check."""

Parse = Callable[[str], ReplyData | None]
"""Reads a reply in plain words; None if it does not say what was asked."""

_CUT = {"length", "max_tokens", "max_output_tokens", "model_length"}
_FILTERED = {
    *("blocklist", "content_filter", "content_filtered", "guardrail_intervened"),
    *("prohibited_content", "recitation", "refusal", "safety", "spii"),
}
_OPENED = re.compile(r"(?:```\w*\s*)?[{\[]")
_ENDED_EARLY = {"cancelled", "error", "failed", "incomplete"}
_LABEL_ERRORS = {
    "enum",
    "greater_than_equal",
    "int_from_float",
    "less_than_equal",
    "literal_error",
}


class Problem(NamedTuple):
    """Why a reply cannot be used."""

    reason: FailureReason
    detail: str


Reading = tuple[ReplyData, None] | tuple[None, Problem]
"""The checked data of a reply, or what is wrong with it."""


def read(
    message: AIMessage,
    shape: type[BaseModel],
    parse: Parse | None,
    tool: str | None,
    material: Sequence[str] = (),
) -> Reading:
    """Return the checked data of a reply, or the problem with it.

    Args:
        message: The reply.
        shape: What it must look like; bounds and choices are checked too.
        parse: Reads replies in plain words, for models that ignore the format.
        tool: The tool that the reply was to call, if it was asked by tools.
        material: The judged texts that the model was shown, which it may quote.
    """
    if problem := _ending(message):
        return None, problem
    text = message.text.strip()
    if arguments := _arguments(message, tool):
        text_objects = [one.value for one in objects(text).complete]
        fitting, problem = _fitting(arguments, shape)
        if problem:
            return None, problem
        return _only(_fitting([*fitting, *text_objects], shape)[0])
    if message.tool_calls and is_blank(text):
        called = message.tool_calls[0]["name"]
        return None, Problem("unparsable", f"a call of the tool {called!r}, not a reply")
    if is_blank(text):
        return None, Problem("empty", "the reply is empty")
    return _read_text(text, shape, parse, material)


def _arguments(message: AIMessage, tool: str | None) -> list[object]:
    """Return what every call of a tool was given, as the model wrote it where that is known."""
    raw = {
        call.get("id"): (call.get("function") or {}).get("arguments")
        for call in message.additional_kwargs.get("tool_calls") or []
        if isinstance(call, dict)
    }
    arguments: list[object] = []
    for call in message.tool_calls:
        if call["name"] == tool:
            # Client libraries keep the last of two members with one name.
            parsed_object = whole_object(str(raw.get(call["id"], "")))
            arguments.append(parsed_object.value if parsed_object else call["args"])
    return arguments


def _ending(message: AIMessage) -> Problem | None:
    """Return why a reply is none of the model's full replies, if its provider says so."""
    if refusal := message.additional_kwargs.get("refusal") or _refusal_block(message):
        return Problem("refusal", str(refusal))
    meta = message.response_metadata
    reasons = [meta.get(name) for name in ("finish_reason", "stop_reason", "stopReason")]
    reasons += [meta.get("done_reason"), (meta.get("incomplete_details") or {}).get("reason")]
    reasons.append(meta.get("status"))
    ending = next((str(reason).lower() for reason in reasons if reason), "")
    if ending in _FILTERED:
        return Problem("refusal", f"the provider stopped the reply: {ending}")
    if ending in _CUT:
        return Problem("truncated", f"the reply was cut: {message.text[-80:]!r}")
    if ending in _ENDED_EARLY:
        return Problem("truncated", f"the provider ended the reply early: {ending}")
    return None


def _refusal_block(message: AIMessage) -> str | None:
    """Return the refusal that the Responses API puts among the blocks of a content."""
    blocks = message.content if isinstance(message.content, list) else []
    return next(
        (
            str(block.get("refusal") or "the model refused")
            for block in blocks
            if isinstance(block, dict) and block.get("type") == "refusal"
        ),
        None,
    )


def _read_text(
    text: str, shape: type[BaseModel], parse: Parse | None, material: Sequence[str]
) -> Reading:
    """Read a reply as one object, else behind its thoughts as objects, else as words."""
    if whole := whole_object(text):
        return check(whole.value, shape)
    answer = answer_of(text, any(map(has_tags, material)))
    if answer.start == len(text):
        return None, Problem("unparsable", f"thoughts without an answer: {text[-200:]!r}")
    answer_text = text[answer.start :].strip()
    unread = Problem(
        "unparsable", f"not the JSON object that was asked for: {answer_text[:200]!r}"
    )
    json_objects = objects(answer_text)
    own_objects = [
        one.value
        for one in json_objects.complete
        if not quoted(answer_text[one.start : one.end], material)
    ]
    fitting, problem = _fitting(own_objects, shape)
    if _is_cut(answer_text, json_objects, shape) or (fitting and json_objects.broken):
        return None, problem or unread
    if problem and problem.reason != "unparsable" and not fitting:
        return None, problem
    words = own_words(without(answer_text, json_objects.complete), material)
    prose_data = parse(words) if parse and answer.plain else None
    if not fitting:
        return check(prose_data, shape) if prose_data is not None else (None, problem or unread)
    if prose_data is not None and _contradicts(prose_data, fitting[0], shape):
        return None, Problem("unparsable", "the words and the JSON of the reply differ")
    return _only(fitting)


def _is_cut(answer_text: str, json_objects: Objects, shape: type[BaseModel]) -> bool:
    """Say whether a reply is a broken object of the form that was asked for."""
    began = _OPENED.match(answer_text) is not None and not json_objects.complete
    return began or bool(set(json_objects.broken) & shape.model_fields.keys())


def _contradicts(prose_data: ReplyData, data: ReplyData, shape: type[BaseModel]) -> bool:
    """Say whether two readings differ in more than explanations."""
    value, _ = check(prose_data, shape)
    decisive = [
        name for name, field in shape.model_fields.items() if field.annotation is not str
    ]
    return value is not None and any(
        value[name] != data[name] and not isinstance(data[name], dict | list)
        for name in decisive
    )


def _fitting(
    values: Sequence[object], shape: type[BaseModel]
) -> tuple[list[ReplyData], Problem | None]:
    """Return the different readings that fit a shape, and what is wrong with the last other."""
    fitting: list[ReplyData] = []
    problem = None
    for data in values:
        value, wrong = check(data, shape)
        if value is not None and value not in fitting:
            fitting.append(value)
        problem = wrong or problem
    return fitting, problem


def _only(fitting: Sequence[ReplyData]) -> Reading:
    if len(fitting) == 1:
        return fitting[0], None
    return None, Problem("unparsable", f"{len(fitting)} different answers in one reply")


def check(data: object, shape: type[BaseModel]) -> Reading:
    """Return data that fits a shape and its allowed values, or what is wrong with it."""
    if too_deep(data):
        return None, Problem("unparsable", "the reply is nested too deep")
    try:
        return shape.model_validate(without_lone_surrogates(data)).model_dump(), None
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False)
    worst = next((e for e in errors if e["type"] not in _LABEL_ERRORS), errors[0])
    reason: FailureReason = "invalid_label" if worst["type"] in _LABEL_ERRORS else "unparsable"
    place = ".".join(map(str, worst["loc"])) or "the reply"
    input_part = f", got {str(worst['input'])[:80]!r}" if worst["type"] != "missing" else ""
    return None, Problem(reason, f"{place}: {worst['msg']}{input_part}")


def shape_of(name: str, fields: Mapping[str, object]) -> type[BaseModel]:
    """Return a shape all of whose fields are required.

    Args:
        name: What the shape is called.
        fields: The type of each field; `Annotated` with what else is asked of it.
    """
    required: Any = {field: (type_, ...) for field, type_ in fields.items()}
    return create_model(name, **required)


@cache
def lax_shape(names: tuple[str, ...]) -> type[BaseModel]:
    """Return a shape that takes what is there, to save the parts that can be read."""
    fields: Any = {name: (Any, None) for name in names}
    return create_model("Parts", **fields)


@cache
def json_schema(shape: type[BaseModel], text_limit: int | None = None) -> dict[str, Any]:
    """Return the JSON schema of `shape`, flat and closed, as providers want it.

    Args:
        shape: What the reply must look like.
        text_limit: Longest string in characters, for models whose replies are cut soon.
    """
    schema = dereference_refs(shape.model_json_schema())
    flat = {key: value for key, value in schema.items() if key != "$defs"}
    closed: dict[str, Any] = _closed(flat, text_limit)
    return closed


def _closed(node: Any, text_limit: int | None) -> Any:
    if isinstance(node, list):
        return [_closed(part, text_limit) for part in node]
    if not isinstance(node, dict):
        return node
    schema = {
        key: {name: _closed(part, text_limit) for name, part in value.items()}
        if key == "properties"
        else _closed(value, text_limit)
        for key, value in node.items()
        if key not in {"title", "default"} or not isinstance(value, str)
    }
    if schema.get("type") == "object":
        schema["additionalProperties"] = False
        # The docstring of a class, written for readers of the code.
        schema.pop("description", None)
    if schema.get("type") == "string" and "enum" not in schema:
        # Not every provider's strict mode knows bounds on strings; the check knows them.
        schema.pop("minLength", None)
        schema.pop("pattern", None)
        longest: Any = schema.pop("maxLength", text_limit)
        if text_limit:
            schema["maxLength"] = min(longest, text_limit)
    return schema
