"""An OpenAI-compatible server on loopback that answers, and misbehaves, as it is told.

Run as a program (`python -m tests.model_server DELAY`) it answers well after DELAY seconds
and prints its address; the benchmark keeps it in a process of its own that way.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """One request, as a behaviour sees it."""

    number: int
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self.body["messages"])

    @property
    def shape(self) -> str:
        """Name of the reply's schema: Plan, Scores …; empty if none was asked."""
        return (self.body.get("response_format") or {}).get("json_schema", {}).get("name", "")

    @property
    def repair(self) -> bool:
        return any(message["role"] == "assistant" for message in self.body["messages"])


@dataclass
class Answer:
    status: int = 200
    payload: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False


Behaviour = Callable[[Call], Answer]


def reply(content: str | None, finish: str = "stop", **message: Any) -> Answer:
    tokens = len((content or "").split()) + 1
    return Answer(
        payload={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "fake",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": content, **message},
                }
            ],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": tokens,
                "total_tokens": 10 + tokens,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }
    )


def refusal() -> Answer:
    return reply(None, refusal="I cannot help with that.")


def cut() -> Answer:
    return reply('{"score_1": 4, "sco', finish="length")


def filtered() -> Answer:
    return reply("", finish="content_filter")


def tool_call() -> Answer:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return reply(None, finish="tool_calls", tool_calls=[call])


def error(status: int, message: str = "no", **headers: str) -> Answer:
    said = {"error": {"message": message, "type": "fake"}}
    return Answer(status=status, payload=said, headers={"retry-after-ms": "5", **headers})


def scores(first: int, second: int, why: str = "because") -> str:
    return json.dumps({"score_1": first, "score_2": second, "explanation": why})


def plan(*names: str) -> str:
    criteria = [{"name": name, "description": f"how much {name}"} for name in names]
    return json.dumps({"criteria": criteria})


FIVE = ("Accuracy", "Depth", "Clarity", "Tone", "Structure")


def good(call: Call) -> Answer:
    """Plan five criteria; prefer the response that holds more of the word `good`."""
    if call.shape == "Plan":
        return reply(plan(*FIVE))
    if call.shape == "Choice":
        return reply(json.dumps({"explanation": "weighed", "preference": "1"}))
    if call.shape == "Answer":
        return reply(json.dumps({"answer": "the reference"}))
    first, second = responses(call.prompt)
    return reply(scores(1 + min(4, first.count("good")), 1 + min(4, second.count("good"))))


def first_slot(call: Call) -> Answer:
    return reply(plan(*FIVE)) if call.shape == "Plan" else reply(scores(5, 1))


def responses(prompt: str) -> tuple[str, str]:
    """Return the two fenced responses of a solve prompt."""
    found = []
    for slot in ("1", "2"):
        start = prompt.index(f"<response-{slot}-")
        begin = prompt.index(">", start) + 1
        found.append(prompt[begin : prompt.index(f"</response-{slot}-", begin)])
    return found[0], found[1]


def pairs(n: int) -> list[dict[str, str]]:
    """Return pairs of which `good` prefers A."""
    return [
        {"id": f"p{i}", "input": f"Why {i}?", "output_a": "good", "output_b": f"bad {i}"}
        for i in range(n)
    ]


class ModelServer:
    """`with ModelServer(behaviour) as server:` serves until the block ends."""

    def __init__(self, behave: Behaviour = good, delay: float = 0.0) -> None:
        self.behave = behave
        self.delay = delay
        self.calls: list[Call] = []
        self.peak = 0
        self._in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.url = ""

    def __enter__(self) -> ModelServer:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    def _serve(self) -> None:
        self._loop.run_until_complete(self.serve())

    async def serve(self) -> None:
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        call = Call(len(self.calls), json.loads(raw) if raw else {}, headers)
        self.calls.append(call)
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            answer = self.behave(call)
            await asyncio.sleep(self.delay + answer.delay)
        finally:
            self._in_flight -= 1
        if answer.drop:
            return False
        body = json.dumps(answer.payload).encode()
        lines = [
            f"HTTP/1.1 {answer.status} X",
            "content-type: application/json",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in answer.headers.items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return True


async def _main(delay: float) -> None:
    server = ModelServer(delay=delay)
    serving = asyncio.create_task(server.serve())
    while not server.url:
        await asyncio.sleep(0.01)
    print(server.url, flush=True)
    # Ends with the process that reads this one's output and feeds its input.
    await asyncio.to_thread(sys.stdin.read)
    server._stop.set()
    await serving


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1])))
