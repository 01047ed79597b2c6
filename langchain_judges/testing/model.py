"""A chat model that replies by a script, and replies with log-probabilities."""

from __future__ import annotations

import json
import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr


class PlainModel(BaseChatModel):
    """A chat model that a test can have: it needs a reply alone, to a request in plain text."""

    model_config = ConfigDict(extra="forbid")

    @abstractmethod
    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        """Return the reply to messages, with the keywords of the call."""

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

    It is asked in plain text, as a model that knows neither tools nor structured output; see
    `FakeToolModel` for one that knows both. Each reply counts 7 input and 3 output tokens,
    unless it is a message that says otherwise.

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
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "fake"

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


class FakeToolModel(FakeChatModel):
    """A `FakeChatModel` that takes tools and structured output.

    A reply that is a dictionary is sent as a call of the first tool that is bound.
    """

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools, as the tools of OpenAI's protocol."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _message(self, reply: Any, settings: Mapping[str, Any]) -> AIMessage:
        tools = settings.get("tools")
        if not tools or not isinstance(reply, Mapping):
            return super()._message(reply, settings)
        call = {"name": tools[0]["function"]["name"], "args": dict(reply), "id": "call-1"}
        return AIMessage("", tool_calls=[call])


_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class ScriptEnded(LookupError):
    """A fake was asked more often than its list has replies."""


def scripted(
    script: Sequence[_Answer] | Callable[[_Request], _Answer], number: int, request: _Request
) -> _Answer:
    """Return the reply of a script to a call; calls are counted from 0."""
    if callable(script):
        return script(request)
    if number >= len(script):
        raise ScriptEnded(f"Call {number + 1} of a script of {len(script)} replies")
    return script[number]


Token = tuple[str, float] | tuple[str, float, Mapping[str, float]]
"""Text, probability in (0, 1] and, where they matter, the probabilities of alternatives."""


def with_logprobs(*tokens: Token) -> AIMessage:
    """Return a reply with the log-probability of each of its tokens, as OpenAI reports them.

    Args:
        tokens: The tokens whose texts are the reply.

    >>> reply = with_logprobs(('{"vote": "', 1), ("1", 0.5, {"1": 0.5, "2": 0.25}), ('"}', 1))
    >>> reply.text, round(reply.response_metadata["logprobs"]["content"][1]["logprob"], 3)
    ('{"vote": "1"}', -0.693)
    """
    content = []
    for text, probability, *rest in tokens:
        alternatives = [_token(*each) for each in (rest[0] if rest else {}).items()]
        content.append({**_token(text, probability), "top_logprobs": alternatives})
    spelt = "".join(token[0] for token in tokens)
    return AIMessage(spelt, response_metadata={"logprobs": {"content": content}})


def _token(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": math.log(probability)}
