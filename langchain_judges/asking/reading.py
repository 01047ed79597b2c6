"""Reading a model's reply: from a message to checked data, or to what is wrong with it.

Prompts of a caller's own stand here too: they say how replies in their form are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel, ValidationError, create_model

from langchain_judges.asking.reply_text import (
    TextObject,
    answer_start,
    has_wrappers,
    is_quotation,
    objects,
    own_words,
    too_deep,
    whole_object,
    without,
    wrappers,
)
from langchain_judges.errors import OptionError
from langchain_judges.rows.texts import is_blank, without_lone_surrogates
from langchain_judges.verdict import Failure, FailureReason

# What was read of a reply: what `Question.shape` dumps, or might after a check.
ReplyData = dict[str, Any]

# Reads a reply in plain words; None if it does not say what was asked.
Parse = Callable[[str], ReplyData | None]

_FILTERED = {
    *("blocklist", "content_filter", "content_filtered", "guardrail_intervened"),
    *("prohibited_content", "recitation", "refusal", "safety", "spii"),
}
_CUT = {
    *("length", "max_tokens", "max_output_tokens", "model_length"),
    *("abort", "cancelled", "error", "failed", "incomplete"),
}
_WHOLE = {
    *("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"),
    *("tool_calls", "tool_call", "tool_use", "function_call", "finish", "finished"),
    *("success", "succeeded", "done", "normal"),
}
_ENDINGS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
# Words after the one object of a reply: more may take back what it says.
_WORDS_AFTER = 12
_LABEL_ERRORS = {
    *("enum", "greater_than_equal", "int_from_float", "less_than_equal", "literal_error")
}


class Problem(NamedTuple):
    """Why a reply cannot be used."""

    reason: FailureReason
    detail: str

    def failure(self, step: str, unit: str) -> Failure:
        """Return it as the failure of a part of a reply."""
        return {"step": step, "unit": unit, "reason": self.reason, "detail": self.detail}


# The checked data of a reply, or what is wrong with it.
Reading = tuple[ReplyData, None] | tuple[None, Problem]


def read(
    message: AIMessage,
    shape: type[BaseModel],
    parse: Parse | None,
    tool: str | None,
    material: Sequence[str] = (),
    *,
    words_alone: bool = False,
) -> Reading:
    """Return the checked data of a reply, or the problem with it.

    Args:
        message: The reply.
        shape: What it must look like; bounds and choices are checked too.
        parse: Reads replies in plain words, for models that ignore the format.
        tool: The tool that the reply was to call, if it was asked by tools.
        material: The judged texts that the model was shown, which it may quote.
        words_alone: Look for no JSON: braces and objects are words as any others.
    """
    if problem := _ending(message):
        return None, problem
    text = message.text.strip()
    if arguments := [] if words_alone else _arguments(message, tool):
        return _called(arguments, text, shape)
    if is_blank(text) and message.tool_calls and not words_alone:
        return _unread(f"a call of the tool {message.tool_calls[0]['name']!r}, not a reply")
    if is_blank(text):
        return None, Problem("empty", "the reply is empty")
    if not words_alone and (whole := whole_object(text)):
        return check(whole.value, shape)
    start = answer_start(text)
    if start is None or start == len(text):
        return _unread("thoughts without an answer", text[-200:])
    answer = text[start:].strip()
    if not words_alone:
        if start and any(map(has_wrappers, material)):
            # The thoughts may quote a text that closes them.
            return _unread("thoughts about a text with marks of thoughts", answer[:200])
        return _read_answer(answer, shape, parse, material)
    data = parse(answer) if parse else None
    if data is None:
        return _unread("not of the form that the prompt's `reply` says", text[-200:])
    return check(data, shape)


def _called(arguments: Sequence[object], text: str, shape: type[BaseModel]) -> Reading:
    """Return what all calls of the tool say, and the text beside them where it is an answer."""
    beside = [check(one.value, shape) for one in objects(text).complete]
    said = [check(each, shape) for each in arguments]
    said += [each for each in beside if each[0] is not None]
    if any(each != said[0] for each in said):
        wrong = next((each for each in said if each[1] is not None), None)
        return wrong or _unread("different answers in one reply")
    return said[0]


def _arguments(message: AIMessage, tool: str | None) -> list[object]:
    """Return what every call of a tool was given, as the model wrote it where that is known."""
    calls = message.additional_kwargs.get("tool_calls")
    raw = {
        str(call.get("id")): call["function"].get("arguments")
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict) and isinstance(call.get("function"), dict)
    }
    arguments: list[object] = []
    for call in message.tool_calls:
        if call["name"] == tool:
            # Client libraries keep the last of two members with one name.
            parsed_object = whole_object(str(raw.get(str(call["id"]), "")))
            arguments.append(parsed_object.value if parsed_object else call["args"])
    return arguments


def _ending(message: AIMessage) -> Problem | None:
    """Return why a reply is none of the model's full replies, if its provider says so."""
    # The Responses API puts a refusal among the blocks of a content.
    blocks = message.content if isinstance(message.content, list) else []
    parts = [message.additional_kwargs, *(each for each in blocks if isinstance(each, dict))]
    for part in parts:
        if part.get("refusal") or part.get("type") == "refusal":
            return Problem("refusal", str(part.get("refusal") or "the model refused"))
    meta = message.response_metadata
    details = meta.get("incomplete_details")
    said = [meta.get(name) for name in _ENDINGS]
    said.append(details.get("reason") if isinstance(details, Mapping) else details)
    endings = [str(each).lower().rpartition(".")[-1] for each in said if each]
    if ending := _FILTERED.intersection(endings):
        return Problem("refusal", f"the provider stopped the reply: {min(ending)}")
    if ending := _CUT.intersection(endings):
        end = message.text[-80:]
        return Problem("truncated", f"the reply was cut ({min(ending)}): {end!r}")
    unknown = next((each for each in endings if each not in _WHOLE), None)
    if unknown:
        return Problem("unparsable", f"whether the reply is whole is not known: {unknown[:80]}")
    return None


def _read_answer(
    answer: str, shape: type[BaseModel], parse: Parse | None, material: Sequence[str]
) -> Reading:
    """Read what stands behind a reply's thoughts as one object or as words.

    What might be another answer makes it none: a second object, a brace that closes nothing,
    thoughts without an end, words after the object.
    """
    if whole := whole_object(answer):
        return check(whole.value, shape)
    if wrappers(answer):
        return _unread("marks of thoughts outside of thoughts", answer[:200])
    found = objects(answer)
    if found.broken:
        return _unread("not the JSON object that was asked for", answer[:200])
    own = [one for one in found.complete if not is_quotation(one, answer, material)]
    words = own_words(without(answer, found.complete), material)
    prose_data = parse(words) if parse else None
    if own:
        return _only_object(own, answer, prose_data, shape)
    if prose_data is not None:
        return check(prose_data, shape)
    return _unread("not the JSON object that was asked for", answer[:200])


def _only_object(
    own: Sequence[TextObject], answer: str, prose_data: ReplyData | None, shape: type[BaseModel]
) -> Reading:
    """Return the one object among words that cannot be another answer."""
    if len({json.dumps(one.value, sort_keys=True, default=str) for one in own}) > 1:
        return _unread(f"{len(own)} different answers in one reply")
    data, problem = check(own[0].value, shape)
    if problem or data is None:
        return None, problem or Problem("unparsable", answer[:200])
    if prose_data is not None and _contradicts(prose_data, data, shape):
        return _unread("the words and the JSON of the reply differ")
    if len(answer[own[-1].end :].split()) > _WORDS_AFTER:
        return _unread("words after the JSON object may take it back", answer[-200:])
    return data, None


def _unread(what: str, part: str = "") -> Reading:
    return None, Problem("unparsable", f"{what}: {part!r}" if part else what)


def _contradicts(prose_data: ReplyData, data: ReplyData, shape: type[BaseModel]) -> bool:
    """Say whether two readings differ in more than explanations."""
    value, _ = check(prose_data, shape)
    labels = [name for name, field in shape.model_fields.items() if field.annotation is not str]
    decisive = [name for name in labels if not isinstance(data[name], dict | list)]
    return value is not None and any(value[name] != data[name] for name in decisive)


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


# Variables that only prompts of a caller's own use: pieces without a word around them.
PIECE = re.compile(
    r"(turn|response_[12]_turn|role|aspect)_\d+|role_\d+_(type|description)"
    r"|criterion_(name|description)|(reference|instructions|table)_text"
)
_KEYS = {"system", "prompt", "reply", "values"}


class OwnPrompt(ChatPromptTemplate):
    """A prompt that is sent word for word, and the form of its replies.

    Attributes:
        reply: A regular expression whose groups are fields of the reply; None: asked for as
            JSON.
        values: What a group's text stands for, in any case, such as `{"A": "1"}`; other texts
            stay.
    """

    reply: str | None = None
    values: dict[str, str] = {}

    def parse(self, text: str, shape: type[BaseModel]) -> ReplyData | None:
        """Return the fields that a reply states; None if it states none, or two of one field.

        Each match fills one item of a list, or one of the numbered parts of a reply (roles,
        rows of a table), where the reply has such: one for each part, or whose they are is not
        known. All of what has no group is the reply.
        """
        matches = [self._said(match) for match in re.finditer(str(self.reply), text)]
        fields = json_schema(shape)["properties"]
        if not matches:
            return None
        if plural := next((n for n, f in fields.items() if f.get("type") == "array"), None):
            items = [each.get(plural, each) for each in matches]
            return {**_whole(fields, text), plural: items}
        parts = [name for name, field in fields.items() if field.get("type") == "object"]
        if parts:
            if len(matches) != len(parts):
                return None
            named = [_whole(fields[part]["properties"], "") for part in parts]
            filled = zip(parts, named, matches, strict=True)
            return {part: {**blank, **match} for part, blank, match in filled}
        if any(each != matches[0] for each in matches):
            return None
        return {**_whole(fields, text), **matches[0]}

    def _said(self, match: re.Match[str]) -> dict[str, str]:
        groups = {name: (text or "").strip() for name, text in match.groupdict().items()}
        folded = {each.casefold(): value for each, value in self.values.items()}
        return {name: folded.get(text.casefold(), text) for name, text in groups.items()}


def _whole(fields: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the fields of free text, each with the same text."""
    free = (n for n, f in fields.items() if f.get("type") == "string" and "enum" not in f)
    return dict.fromkeys(free, text.strip())


def read_prompts(value: Any) -> Any:
    """Return prompts by step, those of a file as plain data.

    Args:
        value: A path, or the prompts.

    Raises:
        OptionError: The file cannot be read.
    """
    if isinstance(value, str | PathLike):
        try:
            # All as text: a `yes` among the values is no truth value. It builds no objects.
            text = Path(value).read_text(encoding="utf-8")
            value = yaml.load(text, yaml.BaseLoader)  # noqa: S506
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            raise OptionError(f"`prompts`: {value!s} cannot be read: {exc}") from exc
    if isinstance(value, Mapping):
        for step, prompt in value.items():
            own_prompt(str(step), prompt)
    return value


def own_prompt(step: str, prompt: object) -> ChatPromptTemplate:
    """Return the prompt of a step: a template, or one made of what a file says.

    Raises:
        OptionError: It is neither.
    """
    if isinstance(prompt, ChatPromptTemplate):
        return prompt
    if not isinstance(prompt, Mapping) or "prompt" not in prompt or set(prompt) - _KEYS:
        raise OptionError(
            f"`prompts` must be prompts by step, each a `ChatPromptTemplate` or a mapping with "
            f"`prompt` and, as one likes, `system`, `reply` and `values`, got {prompt!r} for "
            f"{step!r}"
        )
    parts = ("system", prompt.get("system")), ("human", prompt["prompt"])
    messages = [(role, str(text)) for role, text in parts if text or role == "human"]
    reply = prompt.get("reply")
    try:
        template = OwnPrompt.from_messages(messages)
        re.compile(reply or "")
    except (ValueError, re.error) as exc:
        raise OptionError(f"`prompts`: {step!r} is no template or pattern: {exc}") from exc
    values = {str(text): str(value) for text, value in (prompt.get("values") or {}).items()}
    return template.model_copy(update={"reply": reply, "values": values})
