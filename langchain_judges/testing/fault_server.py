"""A server of OpenAI's protocol on loopback that answers by a script, faults included."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, convert_to_openai_messages

from langchain_judges.testing.model import ScriptEnded, scripted

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI


ReplyContent = str | Mapping[str, object] | AIMessage | None


@dataclass
class ServerCall:
    """A request that the server received.

    Attributes:
        number: Counted from 0.
    """

    number: int
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def prompt(self) -> str:
        """The texts of its messages, one after the other; images and the like are left out."""
        return "\n".join(_text_of(message["content"]) for message in self.body["messages"])

    @property
    def shape(self) -> str:
        """The name of the schema that the reply has to fit; empty if none was asked."""
        return str(self._form.get("name", ""))

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the reply has to fit, where the request has one beside it."""
        return self._form.get("schema")

    @property
    def _form(self) -> dict[str, Any]:
        form: dict[str, Any] = self.body.get("response_format") or {}
        return form.get("json_schema") or {}


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    """The text of a message that may come in blocks."""
    blocks = content if isinstance(content, list) else [{"text": content or ""}]
    return "\n".join(block["text"] for block in blocks if "text" in block)


@dataclass
class ServerReply:
    """An answer of the server; `reply` and `error` make the common ones.

    Attributes:
        body: Sent instead of the payload, such as a page of a proxy or half of a JSON object.
        hold: The answer waits until this event is set, or the server stops.
        delay: Seconds before the answer.
        drop: Whether the connection is closed without an answer.
    """

    status: int = 200
    payload: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hold: threading.Event | None = None
    delay: float = 0.0
    drop: bool = False


ServerAnswer = ServerReply | ReplyContent


def reply(content: ReplyContent, finish: str = "stop", **message: Any) -> ServerReply:
    """A chat completion.

    Args:
        content: The text; a dictionary is sent as JSON. A message's tool calls and
            log-probabilities come along.
        finish: Why it ended: `stop`, `length` for a reply that was cut, `content_filter`.
        message: Further fields of the message, such as `refusal` or `tool_calls`.
    """
    text = _content_text(content)
    said: dict[str, Any] = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish, "message": said}
    if isinstance(content, AIMessage):
        choice["logprobs"] = content.response_metadata.get("logprobs")
        if content.tool_calls:
            said["tool_calls"] = convert_to_openai_messages(content)["tool_calls"]
            choice["finish_reason"] = "tool_calls"
    tokens = len((text or "").split()) + 1
    usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": tokens}
    usage |= {"total_tokens": 10 + tokens, "prompt_tokens_details": {"cached_tokens": 4}}
    kind = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake"}
    return ServerReply(payload={**kind, "choices": [choice], "usage": usage})


def _content_text(content: ReplyContent) -> str | None:
    if isinstance(content, AIMessage):
        return content.text
    return json.dumps(content) if isinstance(content, Mapping) else content


def error(status: int, message: str = "no", **headers: str) -> ServerReply:
    """An error of the provider, which may be retried at once.

    Args:
        status: The HTTP status.
        message: What the provider says.
        headers: More headers; an underscore in a name becomes a hyphen.
    """
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    payload = {"error": {"message": message, "type": "fake"}}
    return ServerReply(status, payload, {"retry-after-ms": "5", **fields})


class FakeModelServer:
    """A server that lives as long as its `with` block.

    Args:
        replies: A list, of which each request takes the next, or a function of the
            `ServerCall`. A reply is a `ServerReply`, or what `reply` makes one of: a text, a
            dictionary, a message.

    Attributes:
        replies: May be changed while the server runs.
        calls: Every request, in the order of arrival.
        waiting: How many requests wait for an answer now.
        peak: The most requests that were waiting for an answer at one time.
        url: The base URL, up to and with `/v1`.
    """

    def __init__(
        self, replies: Sequence[ServerAnswer] | Callable[[ServerCall], ServerAnswer]
    ) -> None:
        """Note the script; nothing listens before the block is entered."""
        self.replies = replies
        self.calls: list[ServerCall] = []
        self.waiting = self.peak = 0
        self.url = ""

    def __enter__(self) -> FakeModelServer:
        """Start to listen, also once more after a block."""
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection and stop."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def chat(self, **settings: Any) -> ChatOpenAI:
        """A client of this server; `settings` are those of `ChatOpenAI`."""
        from langchain_openai import ChatOpenAI

        common = {"model": "fake", "api_key": "none", "use_responses_api": False}
        return ChatOpenAI(base_url=self.url, **{**common, **settings})

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        listener = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        listener.close()  # `asyncio.run` ends the connections, which are tasks

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._request(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, or drop the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        call = ServerCall(len(self.calls), json.loads(raw) if raw else {}, headers)
        self.calls.append(call)
        self.waiting += 1
        self.peak = max(self.peak, self.waiting)
        try:
            answer = self._answer(call)
            await asyncio.sleep(answer.delay)
            while answer.hold is not None and not answer.hold.is_set():
                await asyncio.sleep(0.005)
        finally:
            self.waiting -= 1
        if answer.drop:
            raise ConnectionAbortedError
        writer.write(_encoded(answer))
        await writer.drain()

    def _answer(self, call: ServerCall) -> ServerReply:
        try:
            answer = scripted(self.replies, call.number, call)
        except ScriptEnded as ended:
            return error(400, str(ended))
        return answer if isinstance(answer, ServerReply) else reply(answer)


def _encoded(answer: ServerReply) -> bytes:
    body = json.dumps(answer.payload).encode() if answer.body is None else answer.body
    usual = {"content-type": "application/json", "content-length": str(len(body))}
    lines = (f"{name}: {value}\r\n" for name, value in {**usual, **answer.headers}.items())
    return f"HTTP/1.1 {answer.status} X\r\n{''.join(lines)}\r\n".encode() + body
