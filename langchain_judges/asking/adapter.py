"""Adapter of one chat model: its structured output, and the settings it refuses.

The ladder, from the surest to the widest known: `response_format` bound by us (ChatOpenAI
and what derives from it: the raw reply is never lost),
`with_structured_output(include_raw=True)`, the same by JSON schema where the client has it,
tools, a JSON object in plain text. A model that rejects a rung, or whose client cannot read a
reply to it, is moved one down, once, for as long as the adapter lives.

Prompts that begin alike: providers charge little for the beginning of a prompt that they read
from their cache, where it stands once a prompt that begins so was answered. Calls of a pair
that leave together would all miss it, so the first of them is answered before the others are
sent. What calls have in common ends where a judged text ends: at a closing tag.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from langchain_judges.asking import effects, failures, models, reading, traces
from langchain_judges.rows.texts import BYTES

# Tokens of the shortest beginning that providers cache; for some models it is longer.
SHORTEST = 1024
_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
_GEMINI = {"ChatGoogleGenerativeAI", "ChatVertexAI"}


_LOG = logging.getLogger(__name__)
Rung = Literal["response_format", "structured_output", "json_schema", "tools", "text", "calls"]
# The rungs of `with_structured_output`: the last names its method, which thinking does not mind.
STRUCTURED: tuple[Rung, ...] = ("structured_output", "json_schema")
# What a model's profile says of each kind of content.
_MEDIA = dict(image="image_inputs", audio="audio_inputs", video="video_inputs", file="pdf_inputs")
# Seconds beyond a model's time-out, so that a silent server meets that one first.
SLACK = 5.0
# Sampling parameters and what else a call wants of tokens, as models take them.
Sampling = dict[str, float]


class Beginnings(NamedTuple):
    """Beginnings that other calls may share with a prompt, shortest first.

    Attributes:
        keys: Hashes of what stands up to each closing tag, where that is long enough to be
            cached.
        marked: The messages with a mark behind the last of them, for models that need one.
    """

    keys: tuple[str, ...]
    marked: list[BaseMessage]


def prompt_cache_of(model: BaseChatModel) -> Literal["by prefix", "by marks"] | None:
    """Way in which a model's provider caches prompts; None where it does not.

    By marks: only up to a mark, and for a price.
    """
    classes = {base.__name__ for base in type(model).__mro__}
    if "ChatAnthropic" in classes:
        return "by marks"
    return "by prefix" if models.is_openai_compatible(model) or classes & _GEMINI else None


def beginnings(messages: Sequence[BaseMessage], shape: type[BaseModel]) -> Beginnings | None:
    """Beginnings of messages; None where all of them are too short to cache.

    Args:
        messages: What is sent.
        shape: What the reply must look like; its schema is sent first.
    """
    keys: list[str] = []
    digest, size, last = hashlib.sha256(_json_bytes(reading.json_schema(shape))), 0, None
    for number, message in enumerate(messages):
        for place, block in enumerate(_content_blocks(message)):
            text = block.get("text")
            parts = _up_to_tags(text) if isinstance(text, str) else [(_json_bytes(block), None)]
            for part, end in parts:
                digest.update(part)
                size += len(part)
                if end is not None and size >= SHORTEST * BYTES:
                    keys.append(digest.hexdigest()[:32])
                    last = number, place, end
    return Beginnings(tuple(keys), _marked(messages, *last)) if last else None


def _up_to_tags(text: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield the parts of a text up to each closing tag and where each ends, then the rest."""
    at = 0
    for tag in re.finditer(r"</[a-z][\w-]*-[0-9a-f]{10,}>", text):
        yield text[at : tag.end()].encode("utf-8", "surrogatepass"), tag.end()
        at = tag.end()
    yield text[at:].encode("utf-8", "surrogatepass"), None


def _json_bytes(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, default=str).encode()


def _content_blocks(message: BaseMessage) -> list[Any]:
    content = message.content
    texts = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in texts]


def _marked(
    messages: Sequence[BaseMessage], number: int, place: int, end: int
) -> list[BaseMessage]:
    """Messages with a mark behind a place of a block of the user's message."""
    message = messages[number]
    if not isinstance(message, HumanMessage):
        return list(messages)
    blocks = _content_blocks(message)
    block, text = blocks[place], blocks[place]["text"]
    halves = [{**block, "text": text[:end], **_CACHE_MARK}, {**block, "text": text[end:]}]
    content = [*blocks[:place], *halves, *blocks[place + 1 :]]
    changed = message.model_copy(update={"content": content})
    return [*messages[:number], changed, *messages[number + 1 :]]


class ReplyRequest(NamedTuple):
    """A runnable and its keywords, to ask for one reply.

    Attributes:
        note: Appended to the prompt where the model takes no format by itself.
        sent: The names of the settings that this request carries.
        is_free: Whether it leaves to the model whether it calls the tool.
    """

    runnable: Runnable[Any, Any]
    settings: dict[str, Any]
    rung: Rung
    tool: str | None
    note: str | None
    sent: tuple[str, ...] = ()
    is_free: bool = False

    def messages(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """The messages to send; the note joins the last one.

        Some chat templates refuse two messages of the user in a row.
        """
        if not self.note:
            return messages
        *before, last = messages
        content: Any = f"{last.text}\n\n{self.note}"
        if isinstance(last.content, list):
            content = [*last.content, {"type": "text", "text": f"\n\n{self.note}"}]
        return [*before, HumanMessage(content)]


class _Place(NamedTuple):
    """A model as one event loop uses it, and the requests prepared for it."""

    model: BaseChatModel
    requests: dict[tuple[object, ...], ReplyRequest]


class ModelAdapter:
    """A chat model and what its refusals have taught us.

    Args:
        model: What `resolve_model` takes.
        temperature: Overrides the model's own; None keeps the model's, else 0 for single
            replies and 0.7 for sampled ones.
    """

    def __init__(self, model: models.ModelLike, temperature: float | None = None) -> None:
        """Resolve the model and find the highest rung that it is known to take."""
        traces.bound_exit()
        self.model = models.quiet(models.resolve_model(model))
        self.deadline = deadline_of(self.model)
        self.openai_compatible = models.is_openai_compatible(self.model)
        self.prompt_cache = prompt_cache_of(self.model)
        # The first of calls that begin alike goes ahead.
        self.first_calls = effects.FirstCalls()
        self._names_caches = self.openai_compatible and _is_openai(self.model)
        self.identity = models.model_identity(self.model)
        self.temperature = temperature
        if temperature is not None:
            self.identity["temperature"] = temperature
        marks = getattr(self.model, "metadata", None) or {}
        self.text_limit: int | None = marks.get("text_limit")
        profile = getattr(self.model, "profile", None) or {}
        # Tokens of a prompt that the model takes; None where its profile does not say.
        self.context: int | None = profile.get("max_input_tokens")
        # Kinds of content that its profile says it does not take.
        self.refused_media = [kind for kind, name in _MEDIA.items() if profile.get(name) is False]
        self.rungs = _rungs(self.model, self.openai_compatible)
        self._best = self.rungs[0]
        # Whether it calls tools of a caller's, as far as is known.
        self.calls_tools = "tools" in self.rungs
        self._own_temperature = models.own_setting(self.model, "temperature")
        # Settings that the model does not take, by its profile or by what it has said.
        self.refused: set[str] = set()
        if profile.get("temperature") is False:  # a reasoning model
            self.refused |= {"temperature", "logprobs", "top_logprobs"}
        # Whether a reply has come: what is refused after that is one request, not access.
        self.answered = False
        self._slips = 0
        self._lock = threading.Lock()
        self._places: dict[asyncio.AbstractEventLoop | None, _Place] = {}

    def sampling(self, sampled: bool, seed: int | None) -> Sampling:
        """The sampling parameters that a call binds."""
        parameters = self.wanted_sampling(sampled, seed)
        return {key: value for key, value in parameters.items() if key not in self.refused}

    def wanted_sampling(self, sampled: bool, seed: int | None) -> Sampling:
        """The sampling parameters that a call would bind if the model took them all."""
        parameters: Sampling = {}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        elif self._own_temperature is None:
            parameters["temperature"] = 0.7 if sampled else 0.0
        if seed is not None:
            parameters["seed"] = seed
        return parameters

    def request(
        self,
        shape: type[BaseModel],
        sampling: Sampling,
        *,
        logprobs: bool = False,
        alternatives: int = 0,
        sampled: bool = False,
        cache_key: str = "",
    ) -> ReplyRequest:
        """Request for a reply of `shape` on the rung that the model is on.

        Args:
            shape: What the reply must look like.
            sampling: The parameters that are bound.
            logprobs: Whether log-probabilities are wanted.
            alternatives: Tokens whose probabilities are wanted beside each one written.
            sampled: Whether this is one sample of many.
            cache_key: By which a provider finds its prompt cache, if it looks for one.
        """
        if logprobs and self.openai_compatible and "logprobs" not in self.refused:
            sampling = {**sampling, "logprobs": True}
            if alternatives and "top_logprobs" not in self.refused:
                sampling["top_logprobs"] = alternatives
        place = self._place()
        unseeded = sampled and "seed" not in sampling
        key = (shape, self.rungs[0], unseeded, *sorted(sampling.items()))
        while key not in place.requests:
            try:
                place.requests[key] = self._prepared(place.model, shape, sampling, unseeded)
            except (NotImplementedError, TypeError, ValueError):  # its client has no such form
                if self.rungs[0] == "text":
                    raise
                self._step_down(self.rungs[0])
        return self._named(place.requests[key], cache_key)

    def calling(
        self, tools: Sequence[dict[str, Any]], sampling: Sampling, cache_key: str = ""
    ) -> ReplyRequest:
        """Request in which the model may call some tools, where it can."""
        model, settings = self._set(self._place().model, sampling, {})
        calling = model.bind_tools(tools, **settings)
        request = ReplyRequest(calling, {}, "calls", None, None, tuple(sampling))
        return self._named(request, cache_key)

    def _named(self, request: ReplyRequest, cache_key: str) -> ReplyRequest:
        name = "prompt_cache_key"
        if not cache_key or not self._names_caches or name in self.refused:
            return request
        settings = {**request.settings, name: cache_key}
        return request._replace(settings=settings, sent=(*request.sent, name))

    def _set(
        self, model: BaseChatModel, sampling: Sampling, changes: dict[str, object]
    ) -> tuple[BaseChatModel, dict[str, Any]]:
        """The model with the parameters that are its fields, and the keywords of a call.

        ChatOpenAI takes any sampling parameter as a keyword of the call. Other classes differ,
        but those that declare a field honour it.
        """
        fields = () if self.openai_compatible else type(model).model_fields
        changes |= {key: value for key, value in sampling.items() if key in fields}
        settings = {k: v for k, v in sampling.items() if k not in fields}
        return model.model_copy(update=changes) if changes else model, settings

    def asked_without(self, request: ReplyRequest, *, seed: bool, logprobs: bool) -> set[str]:
        """Settings that a request should have carried, had the model not refused them before.

        Args:
            request: What was sent.
            seed: Whether a seed was wanted.
            logprobs: Whether log-probabilities were wanted.
        """
        needed = {"temperature", *(["seed"] if seed else [])}
        needed |= {"logprobs", "top_logprobs"} if logprobs else set()
        best = (self._best, *STRUCTURED, "calls")
        lower = {"structured output"} if request.rung not in best else set()
        return (self.refused & needed - set(request.sent)) | lower

    def _place(self) -> _Place:
        """Model and requests of the running event loop, or of no loop."""
        loop: asyncio.AbstractEventLoop | None = None
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
        if (place := self._places.get(loop)) is None:
            # Connections take a while to prepare; with a closed loop go its own.
            model = models.with_own_connections(self.model, in_loop=loop is not None)
            place = _Place(models.with_plain_json(model), {})
            alive = {k: p for k, p in self._places.items() if not (k and k.is_closed())}
            self._places = {**alive, loop: place}
        return place

    def _prepared(
        self, model: BaseChatModel, shape: type[BaseModel], sampling: Sampling, unseeded: bool
    ) -> ReplyRequest:
        """A request on the model's rung."""
        # Without a seed LangChain's cache would answer every sample with the first.
        model, settings = self._set(model, sampling, {"cache": False} if unseeded else {})
        sent = tuple(sampling)
        rung, name = self.rungs[0], shape.__name__
        schema = reading.json_schema(shape, self.text_limit)
        if rung == "text":
            note = reading.REPLY_NAMES["by_schema"][0].format(schema=json.dumps(schema))
            return ReplyRequest(model, settings, rung, None, note, sent)
        if rung == "response_format":
            form = {"name": name, "strict": True, "schema": schema}
            settings["response_format"] = {"type": "json_schema", "json_schema": form}
            return ReplyRequest(model, settings, rung, None, None, sent)
        if rung in STRUCTURED:
            titled = {"title": name, "description": f"Reply as {name}.", **schema}
            method = {"method": rung} if rung == "json_schema" else {}
            runnable = model.with_structured_output(titled, include_raw=True, **method)
            return ReplyRequest(runnable, {}, rung, name, None, sent, _is_free(runnable))
        tool = {"type": "function", "function": {"name": name, "parameters": schema}}
        bound = model.bind_tools([tool], tool_choice="any", **settings)
        return ReplyRequest(bound, {}, rung, name, None, sent, _is_free(bound))

    def learn(self, request: ReplyRequest, complaint: failures.Complaint) -> bool:
        """Learn from a rejected request; True if asking another way may work.

        Other calls may have learnt the same meanwhile: what counts is what this one sent.
        """
        if setting := complaint.refused(request.sent):
            with self._lock:
                is_new = setting not in self.refused
                self.refused.add(setting)
            if is_new:
                self._note(setting, "without it from here on")
            return True
        if not complaint.format_rejected:
            return False
        if request.rung == "calls":
            self.calls_tools = False
            return True
        self._step_down(request.rung)
        return self.rungs[0] != request.rung

    def ask_by_schema(self, request: ReplyRequest) -> None:
        """Ask by JSON schema from here on, if the client can and a second reply was not read."""
        self._slips += 1
        if self.rungs[:2] == STRUCTURED and self._slips > 1:
            self._step_down(request.rung)

    def _step_down(self, rung: Rung) -> None:
        with self._lock:
            if self.rungs[0] == rung and len(self.rungs) > 1:
                self.rungs = self.rungs[1:]
                self._note(rung, f"by {self.rungs[0]!r}")

    def _note(self, refused: str, instead: str) -> None:
        name = models.model_name(self.model)
        _LOG.warning("%r does not work with the model %r: it is asked %s.", refused, name, instead)


def _is_free(runnable: Any) -> bool:
    """Whether tools are offered to a model and none must be called.

    Clients do so where a provider refuses to force a call: on a model that thinks.
    """
    settings = getattr(runnable, "kwargs", {})
    if settings.get("tools"):
        choice = settings.get("tool_choice") or settings.get("tool_config")
        return not choice or "auto" in re.findall(r"\w+", str(choice).lower())
    parts = [*getattr(runnable, "steps", ()), *getattr(runnable, "steps__", {}).values()]
    return any(map(_is_free, [*parts, *filter(None, [getattr(runnable, "bound", None)])]))


def deadline_of(model: BaseChatModel) -> float | None:
    """The seconds that a whole reply may take; None for a model without a time-out."""
    found: list[Any] = [getattr(model, field, None) for field in reading.REPLY_NAMES["timeouts"]]
    return next((each + SLACK for each in found if type(each) in (int, float) and each > 0), None)


def _is_openai(model: BaseChatModel) -> bool:
    """Whether a model is asked at OpenAI's own address, or at Azure's."""
    address = getattr(model, "openai_api_base", None) or "https://api.openai.com"
    return (urlsplit(str(address)).hostname or "").endswith((".openai.com", ".openai.azure.com"))


def _rungs(model: BaseChatModel, openai_compatible: bool) -> tuple[Rung, ...]:
    profile = getattr(model, "profile", None) or {}
    kind, ladder = type(model), list[Rung]()
    is_own = kind.with_structured_output is not BaseChatModel.with_structured_output
    if openai_compatible:
        ladder.append("response_format")
    elif profile.get("structured_output") or is_own:
        method = inspect.signature(kind.with_structured_output).parameters.get("method")
        by_schema = profile.get("structured_output") and "json_schema" in str(method)
        ladder += STRUCTURED if by_schema else STRUCTURED[:1]
    if kind.bind_tools is not BaseChatModel.bind_tools and profile.get("tool_calling", True):
        ladder.append("tools")
    return (*ladder, "text")
