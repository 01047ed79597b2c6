"""Reading a model's reply: from a message to checked data, or to what is wrong with it.

Behind marked thoughts a reply is one JSON object, in a code block as one likes and behind
nothing but a harmless opening, or one line `Field: label`. Nothing else is an answer: words
around it may take it back, refuse it or quote it, and no list of such words is complete.
"""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel, ValidationError, create_model

from langchain_judges import lazy, verdict
from langchain_judges.rows import texts
from langchain_judges.rows.responses import ENDS, STATUS, reasons_in

# What was read of a reply: what `Question.reply_schema` dumps, or might after a check.
ReplyData = dict[str, Any]

# Reads a reply in plain words; None if it does not say what was asked.
Parse = Callable[[str], ReplyData | None]

# What providers, clients, replies and variables of prompts are called.
REPLY_NAMES: dict[str, Any] = lazy.packaged(__package__, "names.yaml")
# Longer messages on prompts, models and what a step books.
ASK_ERRORS: dict[str, str] = lazy.packaged(__package__, "refusals.yaml")
# Where kinds of tokens are counted, and those whose price is known.
_KINDS, _PRICED = (re.compile("|".join(REPLY_NAMES[name])) for name in ("kinds", "priced"))
# Blocks whose text is no part of an answer.
_THOUGHTS = re.compile("thinking|reasoning")
_POINT_ZERO = re.compile(r"-?[0-9]{1,15}\.0{1,3}")
_OF_LABEL = {*REPLY_NAMES["of_label"]}
# Characters of a reply that are read; no shape has room for so many.
_MOST_CHARACTERS = 100_000
# Levels of an object; no reply shape has ten, and code that recurses must not run out.
_DEEPEST = 50
# What models of all makers put around their thoughts: `<think>`, `[THINK]`, `◁think▷`, and
# Harmony's `<|channel|>`, which ends nothing by itself.
_THOUGHT_MARK = re.compile("|".join(REPLY_NAMES["thought_marks"]))
# Part of each name of such marks; other ones may hold a quotation or another verdict.
_THOUGHT_NAME = re.compile("|".join(REPLY_NAMES["thoughts"]), re.IGNORECASE)
# All that may stand before an object; none of it says anything about the verdict. It calls the
# reply by names that no judged text has: "the response" would announce a quotation.
_WORDS = {"named": "|".join(REPLY_NAMES["announced"]), "markup": r"[\s*_`#\ufeff]*"}
_PREAMBLE = re.compile("".join(REPLY_NAMES["preamble"]).format(**_WORDS), re.IGNORECASE)
_ASCII = frozenset(map(chr, range(128)))
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-9a-f]{2})", re.IGNORECASE)


class Problem(NamedTuple):
    """Why a reply cannot be used."""

    reason: verdict.FailureReason
    detail: str

    def failure(self, step: str, unit: str) -> verdict.Failure:
        """The failure of a part of a reply."""
        detail = texts.without_lone_surrogates(self.detail[:500])
        return {"step": step, "unit": unit, "reason": self.reason, "detail": detail}


# The checked data of a reply, or what is wrong with it.
Reading = tuple[ReplyData, None] | tuple[None, Problem]


def read(
    message: AIMessage,
    shape: type[BaseModel],
    parse: Parse | None,
    tool: str | None,
    material: Iterable[str] = (),
    *,
    is_free: bool = False,
) -> Reading:
    """The checked data of a reply, or the problem with it.

    Args:
        message: The reply.
        shape: What it must look like; types, bounds and choices are checked too.
        parse: Reads replies in plain words, for models that ignore the format.
        tool: The tool that the reply was to call, if it was asked by tools.
        material: The judged texts that the model was shown, which its thoughts may quote.
        is_free: Whether the model was free to speak before it called the tool.
    """
    if problem := _unfinished_reason(message):
        return None, problem
    text = message.text.strip()
    if len(text) > _MOST_CHARACTERS:
        return _unread(f"a reply of more than {_MOST_CHARACTERS} characters")
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    if _written_calls(message) > len(calls):
        return _unread("a call of a tool that is not among the calls of the reply")
    if kind := _unread_words(message):
        return _unread(f"words in a block of the type {kind[:80]}")
    if not calls and texts.is_blank(text):
        return None, Problem("empty", "the reply is empty")
    start = answer_start(text, material)
    answer = text[start:].strip() if start is not None else None
    if calls:
        return _read_call(message, shape, tool, answer, is_free)
    if not answer:
        may_quote = start is None and answer_start(text) is not None
        what = ASK_ERRORS["may_quote"] if may_quote else "thoughts without an answer"
        return _unread(what, text[-200:])
    return _read_answer(answer, shape, parse)


def _blocks(message: AIMessage) -> list[dict[str, Any]]:
    content = [] if isinstance(message.content, str) else message.content
    return [each for each in content if isinstance(each, dict)]


def _unread_words(message: AIMessage) -> str:
    """The type of a block whose words `message.text` leaves out; empty: there is none."""
    kinds = (str(each.get("type")) for each in _blocks(message) if each.get("text"))
    return next((kind for kind in kinds if kind != "text" and not _THOUGHTS.search(kind)), "")


def _written_calls(message: AIMessage) -> int:
    """The number of calls that a provider has written; its client may have read fewer."""
    in_blocks = sum(str(each.get("type")) in REPLY_NAMES["calls"] for each in _blocks(message))
    raw = message.additional_kwargs.get("tool_calls")
    in_raw = len(raw) if isinstance(raw, list) else 0
    return max(in_blocks, in_raw, bool(message.additional_kwargs.get("function_call")))


def _read_answer(answer: str, shape: type[BaseModel], parse: Parse | None) -> Reading:
    """Read a reply after its thoughts: an object, else a line."""
    try:
        return check(object_of(answer).value, shape)
    except ValueError as exc:
        what = f" ({exc})" if "{" in answer else ""
    if parse and (data := parse(answer)):
        return check({name: data[name] for name in data if name in shape.model_fields}, shape)
    return _unread(f"not the JSON object that was asked for{what}", answer[:200])


def _read_call(
    message: AIMessage, shape: type[BaseModel], tool: str | None, words: str | None, is_free: bool
) -> Reading:
    """Data of the one call of a tool, behind nothing but an opening, or words where it may be."""
    (name, written), *others = calls_made(message)
    is_alone = words is not None and is_opening(words)
    blocks = [b for b in _blocks(message) if b.get("type") != "text" or b.get("text")]
    is_last = is_free and blocks and blocks[-1].get("type") in REPLY_NAMES["calls"]
    if others or words is None or not (is_alone or is_last):
        return _unread("a call of a tool and more beside it")
    if name != tool:
        return _unread(f"a call of the tool {name!r}, not a reply")
    try:
        found = check(object_of(written).value if isinstance(written, str) else written, shape)
    except ValueError as exc:
        return _unread(f"a call without an object: {exc}")
    if found[0] and not is_alone and _names_another(words, shape, found[0]):
        return _unread("words before the call that may name another verdict", words[:200])
    return found


def _names_another(words: str, shape: type[BaseModel], data: ReplyData) -> bool:
    """Whether words may name a label that a reply could have had instead, in whatever sense."""
    said = _decoded(words).casefold()
    schema = json.dumps(json_schema(shape), ensure_ascii=False).casefold()
    labels = {*re.findall('"(.+?)"', " ".join(re.findall(r'"enum": \[(.*?)\]', schema)))}
    forms = [rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(labels, key=len, reverse=True)]
    named = {*re.findall("|".join([*forms, r"\d+"]), said)}
    own = {str(value).casefold() for value in data.values()} & labels
    return "{" in said or bool(named - own if len(own) == 1 else named)


def read_calls(message: AIMessage, shape: type[BaseModel]) -> Reading:
    """The calls of tools that a message makes, as a reply by the schema would list them.

    What it says beside them counts for nothing; without any, a list in its text does.
    """
    if problem := _unfinished_reason(message):
        return None, problem
    calls = calls_made(message)
    if not calls and (text := message.text.strip()):
        return _read_answer(text, shape, lambda _: {"calls": []})
    written = (a if isinstance(a, str) else json.dumps(a or {}, default=str) for _, a in calls)
    pairs = zip((name or "" for name, _ in calls), written, strict=True)
    return check({"calls": [{"tool": name, "arguments": text} for name, text in pairs]}, shape)


def calls_made(message: AIMessage) -> list[tuple[str | None, Any]]:
    """Name and arguments of each call, as the model wrote them where the message has that.

    Client libraries complete what was cut, keep the last of two members with one name, and
    read NaN.
    """
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    raw: Any = message.additional_kwargs.get("tool_calls")
    with suppress(KeyError, TypeError):  # of a client that keeps them in another form, or not
        if len(raw) == len(calls):
            calls = [{**each["function"], "args": each["function"]["arguments"]} for each in raw]
    return [(each["name"], each["args"]) for each in calls]


def _unfinished_reason(message: AIMessage) -> Problem | None:
    """The reason why a reply is not whole, if its provider says so."""
    if too_deep(message.tool_calls):
        return Problem("unparsable", "a call of a tool is nested too deep")
    # The Responses API puts a refusal among the blocks of a content.
    for part in [message.additional_kwargs, *_blocks(message)]:
        if part.get("refusal") or part.get("type") == "refusal":
            return Problem("refusal", str(part.get("refusal") or "the model refused"))
    meta = message.response_metadata
    endings = [*reasons_in({**meta, STATUS: meta.get("status")})]
    said, end = ", ".join(dict.fromkeys(endings)), message.text[-80:]
    if not {*ENDS["filtered"]}.isdisjoint(endings):
        return Problem("refusal", f"stopped by the provider: {said}")
    if not {*ENDS["limits"], *ENDS["broken"]}.isdisjoint(endings):
        return Problem("truncated", f"the reply was cut ({said}): {end!r}")
    if unknown := next((each for each in endings if each not in ENDS["whole"]), None):
        return Problem("unparsable", f"whether the reply is whole is not known: {unknown[:80]}")
    says_ends = meta.get("model_provider") in REPLY_NAMES["say_ends"]
    if says_ends and not endings and not _is_whole(message):
        return Problem("truncated", f"the reply broke off, nothing says how it ended: {end!r}")
    return None


def _is_whole(message: AIMessage) -> bool:
    """Whether a reply is blank or objects of JSON as they were written, which show their end."""
    text = message.text.strip()
    try:
        for each in [written for _, written in calls_made(message)] or filter(None, [text]):
            object_of(each, answer_start(each) or 0)
    except (AttributeError, ValueError):  # no text, but an object that the client has made
        return False
    return True


def _unread(what: str, part: str = "") -> Reading:
    return None, Problem("unparsable", f"{what}: {part!r}" if part else what)


def check(data: object, shape: type[BaseModel]) -> Reading:
    """Data that fits a shape and its allowed values, or what is wrong with it."""
    if too_deep(data):
        return None, Problem("unparsable", "the reply is nested too deep")
    try:
        plain = texts.without_lone_surrogates(data)
        return shape.model_validate(plain, strict=True, extra="forbid").model_dump(), None
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False)
    worst = next((e for e in errors if e["type"] not in _OF_LABEL), errors[0])
    reason: verdict.FailureReason = "invalid_label" if worst["type"] in _OF_LABEL else "unparsable"
    place = ".".join(map(str, worst["loc"])) or "the reply"
    input_part = f", got {repr(worst['input'])[:80]}" if worst["type"] != "missing" else ""
    return None, Problem(reason, f"{place}: {worst['msg']}{input_part}")


def _members(members: list[tuple[str, object]]) -> dict[str, object]:
    if len(values := dict(members)) < len(members):
        raise ValueError("a member is given twice")
    return values


def _json_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or (number.is_integer() and not _POINT_ZERO.fullmatch(text)):
        raise ValueError(f"{text[:40]} is no number that can be kept as it is written")
    return number


def _constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


# Reads JSON as `json` does, but no member twice and no number that it would have to change.
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_members, parse_float=_json_number, parse_constant=_constant
)


class TextObject(NamedTuple):
    """An object in a text, and where it begins."""

    start: int
    value: dict[str, Any]


def too_deep(data: object, levels: int = _DEEPEST) -> bool:
    """Whether data is nested deeper than any reply that is asked for."""
    if not levels:
        return True
    if isinstance(data, dict):
        data = [*data.values()]
    return isinstance(data, list) and any(too_deep(part, levels - 1) for part in data)


def is_opening(text: str) -> bool:
    """Whether a text may precede an object, or is empty."""
    return len(text) <= 200 and bool(_PREAMBLE.fullmatch(text))


def object_of(text: str, at: int = 0) -> TextObject:
    """The object that a text is from a place on.

    Raises:
        ValueError: It is no object, or more than one.
    """
    start = text.find("{", at)
    if start < 0:
        raise ValueError("it has no object")
    if not is_opening(text[at:start]):
        raise ValueError("words stand before its object")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text[end:].strip() not in {"", "```"}:
        raise ValueError("more stands behind its object")
    return TextObject(start, value)


def answer_start(text: str, material: Iterable[str] = ()) -> int | None:
    """Start of the answer after a model's thoughts; None if it is ambiguous.

    Thoughts stand at the beginning, in marks that close. Some servers leave out the first:
    then what closes `think` is the end of the thoughts.

    Args:
        text: The reply.
        material: The judged texts: where one names what closes the thoughts, in whatever
            writing, the thoughts may be quoting it.
    """
    begin = len(text) - len(text.lstrip())
    opening = _THOUGHT_MARK.match(text, begin)
    if opening and (opening["end"] or opening["special"]):
        return None
    is_thought = opening and _THOUGHT_NAME.search(opening["name"])
    if not is_thought and (opening or text.startswith(("{", "[", "`"), begin)):
        return begin
    name = opening["name"] if opening else "think"
    closing = re.search(rf"[<\u25c1\[]/{re.escape(name)}[>\u25b7\]]", text, re.IGNORECASE)
    if not closing:
        return None if opening else begin
    mark = re.compile(rf"/\W{{0,3}}{re.escape(name)}", re.IGNORECASE)
    return None if any(mark.search(_decoded(each)) for each in material) else closing.end()


def _decoded(text: str) -> str:
    """A text as a model may repeat it, without entities, escapes and odd letters."""
    plain = html.unescape(_ESCAPED.sub(lambda m: chr(int(m[1] or m[2] or m[3], 16)), text))
    # Letter by letter: some become eighteen, and none that is asked for comes of several.
    odd = {ord(each): unicodedata.normalize("NFKC", each) for each in {*plain} - _ASCII}
    return plain.translate({each: form for each, form in odd.items() if form.isascii()})


class TokenUsage(NamedTuple):
    """The tokens of one reply.

    Attributes:
        input_tokens: Of the prompt.
        cached_tokens: The part of them that the provider read from its prompt cache.
        output_tokens: Of the reply.
        tier: What may give the reply another price: the provider's service tier (`default`,
            `flex`, `priority`), or a kind of its tokens, such as `audio`.
        written_tokens: The part of `input_tokens` that the provider wrote to its prompt cache
            for five minutes, where it has a price of its own, as Anthropic's has.
        model: The name of the model that answered, where the provider says it.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    tier: str | None = None
    written_tokens: int = 0
    model: str = ""


def token_usage(message: AIMessage) -> TokenUsage | None:
    """Tokens of a reply; None where LangChain's cache had it, which marks what it has."""
    usage: Mapping[str, Any] = message.usage_metadata or {}
    if usage.get("total_cost") == 0:
        return None
    metadata = message.response_metadata
    beside = [each for n in REPLY_NAMES["usage"] if isinstance(each := metadata.get(n), Mapping)]
    tiers = (each.get("service_tier") for each in (metadata, *beside))
    paid = tokens_in(usage or next(iter(beside), {}), next(filter(None, tiers), None))
    return paid._replace(model=str(metadata.get("model_name") or ""))


def tokens_in(usage: Mapping[str, Any], tier: str | None) -> TokenUsage:
    """Tokens of a reply, as LangChain or its provider counts them, in a tier in any letters.

    Proxies of Anthropic's numbers count what a cache had beside the input, and servers what a
    model thinks in the sum alone.
    """
    tier = str(tier).lower() if tier else None
    sides = ("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")
    read, given = (max(_count(usage.get(name)) for name in names) for names in sides)
    named = (held for name, held in usage.items() if _KINDS.fullmatch(str(name)))
    parts = (each.items() for each in named if isinstance(each, Mapping))
    details = {name: _count(count) for name, count in chain(*parts) if _count(count)}
    # LangChain writes the tier before what it counts of a reply in another tier than the
    # default one: `flex_cache_read`.
    cached = sum(n for name, n in details.items() if name.endswith(("cache_read", "cached_tokens")))
    # The second name where Anthropic also says for how long it is held; the first is then 0.
    written = sum(details.get(n, 0) for n in ("cache_creation", "ephemeral_5m_input_tokens"))
    total, stored = _count(usage.get("total_tokens")), cached + written
    if stored > read or (stored and total == read + given + stored):
        read += stored
    given = max(given, total - read) if read else given
    apart = (name for name in details if name != tier and not _PRICED.fullmatch(name))
    return TokenUsage(read, cached, given, next(apart, tier), written)


def _count(tokens: object) -> int:
    """A number of tokens; 0 where a server wrote something else for one."""
    return int(tokens) if isinstance(tokens, int | float) and 0 < tokens < 1e12 else 0


def shape_of(name: str, fields: Mapping[str, object]) -> type[BaseModel]:
    """A shape all of whose fields are required.

    Args:
        name: What the shape is called.
        fields: The type of each field; `Annotated` with what else is asked of it.
    """
    required: Any = {field: (type_, ...) for field, type_ in fields.items()}
    return create_model(name, **required)


@cache
def lax_shape(names: tuple[str, ...]) -> type[BaseModel]:
    """A shape that takes what is there, to save the parts that can be read."""
    fields: Any = {name: (Any, None) for name in names}
    return create_model("Parts", **fields)


@cache
def json_schema(shape: type[BaseModel], text_limit: int | None = None) -> dict[str, Any]:
    """The JSON schema of `shape`, flat and closed, as providers want it.

    Args:
        shape: What the reply must look like.
        text_limit: Longest string in characters, for models whose replies are cut soon.
    """
    schema = dereference_refs(shape.model_json_schema())
    flat = {key: value for key, value in schema.items() if key != "$defs"}
    return dict(_closed(flat, text_limit))


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
        if key != "default" and not (key == "title" and isinstance(value, str))
    }
    if schema.get("type") == "object":
        schema["additionalProperties"] = False
        # A provider is asked for every field, also for one that a reply may leave out.
        if "properties" in schema:
            schema["required"] = list(schema["properties"])
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
