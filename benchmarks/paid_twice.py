"""How old replies are that a killed run asks for again: `python -m benchmarks.paid_twice`.

    python -m benchmarks.paid_twice records,threads 64 --kills 12

A run is killed by SIGKILL again and again, and started anew each time, until it is through. A
server on loopback answers after 50 to 250 ms and knows when it sent each reply. Counted are
the replies that were asked for again: those that were in flight at the kill or came in the 50
ms before it, and of the older ones what the process had done with them: nothing yet (they
stood in its sockets, as on a busy machine they do), read them, or written them down. Those of
one kill are at most as many as it had calls in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply
from tests.judges import answer_call

CRITERIA = ["Depth", "Clarity", "Tone"]
CALLS = 2 * len(CRITERIA)
OLD = 0.05
WAYS = ("records,threads", "records,async", "saver,threads", "saver,async")


class Server:
    """Answers late, and knows when; the number of a reply is its input tokens."""

    def __init__(self, seed: int) -> None:
        self.replies: dict[str, list[Reply]] = {}
        """By what was asked."""
        self.count = self.process = 0
        self._delays = random.Random(seed)

    def __call__(self, call: ServerCall) -> ServerReply:
        delay = self._delays.uniform(0.05, 0.25)
        reply = answer_call(call)
        self.count += 1
        reply.payload["usage"]["prompt_tokens"] = self.count
        reply.delay = delay
        key = str(call.body["messages"])
        sent = Reply(self.count, self.process, time.monotonic() + delay)
        self.replies.setdefault(key, []).append(sent)
        return reply


def run(way: str, places: int, rows: int, url: str, folder: Path) -> None:
    """Judge; say of each reply when it was read and when it was written down."""
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from pydantic import SecretStr

    from langchain_judges import ajudge_many, create_bsm_judge, judge_many
    from langchain_judges.asking import send
    from langchain_judges.asking.reply_log import ReplyStore

    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    read, keep = send._raw_reply, ReplyStore.keep

    def note(what: str, number: int) -> None:
        os.write(log, f"{what} {number} {time.monotonic()}\n".encode())

    def reading(*given: Any) -> Any:
        message = read(*given)
        note("read", message.usage_metadata["input_tokens"])
        return message

    def keeping(store: ReplyStore, scope: str, key: str, value: Any) -> None:
        keep(store, scope, key, value)
        note("kept", value["usage"]["input_tokens"])

    send._raw_reply, ReplyStore.keep = reading, keeping  # type: ignore[assignment, method-assign] # listens
    model = ChatOpenAI(
        model="m", base_url=url, api_key=SecretStr("x"), use_responses_api=False, max_retries=0
    )
    pairs = [
        {"input": f"Why {n}?", "output_a": f"good {n}", "output_b": "bad", "id": str(n)}
        for n in range(rows)
    ]
    options: dict[str, Any] = {"max_concurrency": places, "progress": False}
    if "records" in way:
        options["records"] = folder / "records.jsonl"
    saved = str(folder / "saved.sqlite") if "saver" in way else ":memory:"

    def judge(saver: Any) -> Any:
        kept = saver if "saver" in way else None
        return create_bsm_judge(model, criteria=CRITERIA, checkpointer=kept)

    async def later() -> None:
        async with AsyncSqliteSaver.from_conn_string(saved) as saver:
            async for _ in ajudge_many(judge(saver), pairs, **options):
                pass

    if "async" in way:
        asyncio.run(later())
    else:
        with SqliteSaver.from_conn_string(saved) as saver:
            for _ in judge_many(judge(saver), pairs, **options):
                pass


def started(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.paid_twice", "--run", *map(str, words)]
    return subprocess.Popen(command)


def settled(server: Server) -> None:
    """Wait until no request comes any more that a dead process has left behind."""
    count = -1
    while count != server.count:
        count = server.count
        time.sleep(0.5)


@dataclass
class Reply:
    """A reply that the server sent."""

    number: int
    process: int
    sent: float
    """When; the clock is that of all processes."""


def tried(way: str, places: int, kills: int, seed: int) -> Counter[str]:
    """Kill a run so often, let it end, and count what was paid twice."""
    rows, chance, script = 4 * places, random.Random(seed), Server(seed)
    ends: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name, FakeModelServer(script) as server:
        folder = Path(name)
        for script.process in range(kills + 1):
            process, first = started(way, places, rows, server.url, folder), script.count
            if script.process == kills:
                assert process.wait() == 0
                break
            # The next kill comes somewhere in the next part of what is to do.
            part = max(places, (rows * CALLS - first) // (kills + 1 - script.process))
            due = first + chance.randint(places, part + places)
            while script.count < due and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            ends[script.process] = time.monotonic()
            settled(script)
        log = [line.split() for line in (folder / "log").read_text().splitlines()]
    done = {(what, int(number)): float(at) for what, number, at in log}
    counts = Counter(answered=script.count, needed=rows * CALLS)
    lost = [each for replies in script.replies.values() for each in replies[:-1]]
    counts.update(_age(each, ends[each.process], done) for each in lost)
    of_one = Counter(each.process for each in lost)
    counts["most of one kill"] = max(of_one.values(), default=0)
    return counts


def _age(reply: Reply, killed: float, done: dict[tuple[str, int], float]) -> str:
    """Say what a process had done with a reply that was asked for again."""
    if reply.sent > killed:
        return "in flight"
    if killed - reply.sent <= OLD:
        return "sent in the last 50 ms"
    if ("kept", reply.number) in done:
        return "WRITTEN DOWN"
    if (read := done.get(("read", reply.number))) is None:
        return "in its socket"
    return "read in the last 50 ms" if killed - read <= OLD else "READ LONGER AGO"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("way", nargs="?", choices=WAYS, default=WAYS[0])
    parser.add_argument("places", nargs="?", type=int, default=16)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.run:
        way, places, rows, url, folder = args.run
        run(way, int(places), int(rows), url, Path(folder))
        return
    counts = tried(args.way, args.places, args.kills, args.seed)
    print(args.way, args.places, dict(counts), f"load {os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    main()
