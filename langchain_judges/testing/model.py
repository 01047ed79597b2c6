"""Chat models that reply by a script, or as a real one did that was recorded in a file."""

from __future__ import annotations

import datetime
import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr

from langchain_judges import errors, lazy
from langchain_judges.asking import models, reply_log

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class PlainModel(BaseChatModel):
    """A chat model that a test can have: it needs a reply alone, to a request in plain text."""

    model_config = ConfigDict(extra="forbid")

    @abstractmethod
    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        """The reply to messages, with the keywords of the call."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, stop, kwargs))])


class FakeChatModel(PlainModel):
    """A chat model that replies by a script and records what it was asked.

    Judges ask it in plain text, as a model that knows neither tools nor structured output. An
    agent may bind tools: a reply that calls one is a message with `tool_calls`. Each reply
    counts 7 input and 3 output tokens, unless it is a message that says otherwise.

    Attributes:
        replies: What it replies: a list, of which each call takes the next, or a function of
            the prompt. A reply is a text, a dictionary (sent as JSON), a message, or an
            exception, which is raised.
        prompts: Every prompt it was sent, messages separated by a line `---`.
        messages: The messages of every call, with the images and files in them.
        settings: The keywords of every call, such as a seed or the tools.
    """

    replies: Sequence[object] | Callable[[str], object]
    prompts: list[str] = Field(default_factory=list, exclude=True, repr=False)
    messages: list[list[BaseMessage]] = Field(default_factory=list, exclude=True, repr=False)
    settings: list[dict[str, Any]] = Field(default_factory=list, exclude=True, repr=False)
    # Judges bind no tools to it, whatever else its profile says.
    profile: Annotated[Any, AfterValidator(lambda own: {"tool_calling": False, **(own or {})})] = (
        Field(default=None, validate_default=True, exclude=True, repr=False)
    )
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Runnable[Any, AIMessage]:
        """Bind tools; `settings` records them with each call."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **settings)

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        prompt = "\n---\n".join(message.text for message in messages)
        with self._lock:
            number = len(self.prompts)
            self.prompts.append(prompt)
            self.messages.append(messages)
            self.settings.append(settings)
        reply = scripted(self.replies, number, prompt)
        if isinstance(reply, Exception):
            raise reply
        message = self._message(reply, settings)
        if message.usage_metadata is None:
            usage = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10)
            message = message.model_copy(update={"usage_metadata": usage})
        return message

    def _message(self, reply: Any, settings: Mapping[str, Any]) -> AIMessage:
        if isinstance(reply, AIMessage):
            return reply
        return AIMessage(json.dumps(reply) if isinstance(reply, Mapping) else reply)


class ScriptEnded(LookupError):
    """A fake was asked more often than its list has replies."""


def scripted(
    script: Sequence[_Answer] | Callable[[_Request], _Answer], number: int, request: _Request
) -> _Answer:
    """The reply of a script to a call; calls are counted from 0."""
    if callable(script):
        return script(request)
    if number >= len(script):
        raise ScriptEnded(f"Call {number + 1} has no reply in a script of {len(script)}")
    return script[number]


# What of a reply's metadata says how to read it; the rest, such as ids, is not recorded.
_METADATA = ("finish_reason", "stop_reason", "logprobs")


# A line of a recorded file: `key`, `model`, `date`, `messages` (type and content of each),
# `settings` (the keywords of the call, such as a seed) and `reply` (`text`, `usage`,
# `metadata`).
Recorded = dict[str, Any]


class NotRecorded(errors.ModelSetupError, LookupError):
    """A request has no recorded reply; the message says how to record one.

    It ends a run, as any `ModelSetupError`, instead of failing row by row.
    """


class ReplayChatModel(PlainModel):
    """A chat model that gives recorded replies, found by the whole request.

    A request is its messages and the keywords of its call, such as a temperature or a seed. One
    word that differs makes it another request, which is refused: a replayed verdict is always
    one that the recorded model gave to exactly this question. It is asked in plain text, as a
    model that knows neither tools nor structured output.

    With a `model` it records: what the file does not hold is asked of the model and written to
    the file, so a run that was stopped resumes where it stopped.

    Attributes:
        path: A file of JSON lines.
        model: The model to record: a chat model, or a name as the judges take it.

    Raises:
        NotRecorded: When it is asked what the file does not hold, or there is no file, and
            there is no model.
    """

    path: Path
    model: str | BaseChatModel | None = None
    _entries: dict[str, Recorded] | None = PrivateAttr(default=None)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def recorded(self) -> list[Recorded]:
        """The lines of the file: `key`, `model`, `date`, `messages`, `settings` and `reply`."""
        return list(self._read().values())

    @property
    def _llm_type(self) -> str:
        return "replay"

    @cached_property
    def _chat(self) -> BaseChatModel | None:
        return None if self.model is None else models.resolve_model(self.model)

    def _read(self) -> dict[str, Recorded]:
        """The lines by the hash of their request.

        It is computed anew, so a file edited by hand cannot answer another request.
        """
        with self._lock:
            if self._entries is None:
                text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
                lines = [json.loads(line) for line in text.splitlines() if line.strip()]
                self._entries = {_request_hash(line): line for line in lines}
            return self._entries

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        options = {**settings, **({"stop": list(stop)} if stop else {})}
        request = {
            "messages": [[message.type, message.content] for message in messages],
            "settings": json.loads(json.dumps(options, sort_keys=True, default=repr)),
        }
        entry = self._read().get(_request_hash(request))
        if entry is None and self._chat:
            entry = self._record(request, self._chat.invoke(messages, stop=stop, **settings))
        if entry is None:
            begin = f"{request['messages'][-1][1]!s:.60}"
            what = "lacks" if self.path.exists() else "does not exist, and so lacks"
            said = {"what": what, "begin": begin, "settings": request["settings"]}
            told: str = lazy.packaged(__package__, "rows.yaml")["not_recorded"]
            raise NotRecorded(told.format(path=self.path, name=str(self.path), **said))
        reply = entry["reply"]
        return AIMessage(
            reply["text"],
            usage_metadata=reply.get("usage"),
            response_metadata=reply.get("metadata") or {},
        )

    def _record(self, request: Recorded, reply: AIMessage) -> Recorded:
        found = {name: reply.response_metadata.get(name) for name in _METADATA}
        metadata = {name: value for name, value in found.items() if value is not None}
        entry: Recorded = {
            "key": _request_hash(request),
            "model": self._chat and models.model_name(self._chat),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            **request,
            "reply": {"text": reply.text, "usage": reply.usage_metadata, "metadata": metadata},
        }
        entries = self._read()
        with self._lock:
            entries[entry["key"]] = entry
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        return entry


def _request_hash(request: Recorded) -> str:
    """The hash by which a request is found."""
    return reply_log.key_of([request["messages"], request["settings"]])[:16]
