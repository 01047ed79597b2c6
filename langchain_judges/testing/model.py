"""A chat model that replies by a script."""

from __future__ import annotations

import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr

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
        message = self._reply(messages, stop, kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])


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
    profile: Annotated[
        Any, AfterValidator(lambda own: {"tool_calling": False, **(own or {})})
    ] = Field(default=None, validate_default=True, exclude=True, repr=False)
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
