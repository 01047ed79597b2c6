"""Every way to end a run × every method: `python -m tests.attacks.matrix`.

A run of six rows is ended midway, in a process of its own, and run again to its end. A server
on loopback counts the requests: a call that was answered before the end and is asked again was
paid twice. Whether the server's answer had reached the process when it died nobody can know, so
the server holds the later answers back until the earlier ones are on the disk.

Printed: a table for docs/reliability.md. About half an hour on two cores; name methods to try
fewer, such as `python -m tests.attacks.matrix bsm relative`.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, error
from tests.judges import answer_call, item_of
from tests.processes import start

ROWS, ANSWERED = 6, 4
ENDS = ("kill -9", "SIGTERM", "Ctrl-C", "cancellation", "time-out", "full disk", "revoked key")
CODE = """
import asyncio, json, resource, signal, sys
from langchain_judges import ajudge_many, judge_many, load_judge, resolve_model
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tests.judges import FEW
from tests.attacks.matrix import rows_of

url, folder, method, kind, end, again = sys.argv[1:]
model = resolve_model("m", base_url=url, timeout=1.5 if end == "time-out" else 60)
options = FEW.get(method, {})
settings = {"out": folder + "/out.jsonl", "max_concurrency": 4, "progress": False}

def judge(saver):
    return load_judge(method, model, checkpointer=saver, **options)

def limit():
    # The results file, and not the checkpoints, is on the full disk.
    if end == "full disk" and again == "no":
        settings["out"] = "/dev/full"

async def later():
    async with AsyncSqliteSaver.from_conn_string(folder + "/s.sqlite") as saver:
        async def work():
            async for _ in ajudge_many(judge(saver), rows_of(method), **settings):
                pass
        task = asyncio.create_task(work())
        if end == "cancellation" and again == "no":
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, task.cancel)
        await task

def now():
    with SqliteSaver.from_conn_string(folder + "/s.sqlite") as saver:
        for _ in judge_many(judge(saver), rows_of(method), **settings):
            pass

limit()
now() if kind == "sync" else asyncio.run(later())
"""
SIGNALS = {
    "kill -9": signal.SIGKILL,
    "SIGTERM": signal.SIGTERM,
    "Ctrl-C": signal.SIGINT,
    "cancellation": signal.SIGUSR1,
}


def rows_of(method: str) -> list[dict[str, Any]]:
    """Return different rows for a method."""
    return [{**item_of(method), "input": f"Why {n}?", "id": str(n)} for n in range(ROWS)]


class Script:
    """Answers so many requests; what it does with the others depends on how the run ends."""

    def __init__(self, end: str) -> None:
        self.end = end
        self.lock = threading.Lock()
        self.answered: Counter[str] = Counter()
        self.held = threading.Event()
        self.release = threading.Event()
        self.first = True

    def __call__(self, call: ServerCall) -> ServerReply:
        key = json.dumps([call.body["messages"], call.body.get("seed")])
        with self.lock:
            if not self.first or self.answered.total() < ANSWERED:
                self.answered[key] += 1
                return answer_call(call)
            self.held.set()
        if self.end == "revoked key":
            return error(401, "revoked")
        if self.end == "full disk":
            with self.lock:
                self.answered[key] += 1
            return answer_call(call)
        return ServerReply(payload=answer_call(call).payload, hold=self.release)


def tried(method: str, kind: str, end: str) -> str:
    """Return what went wrong in one case; empty if nothing did."""
    script = Script(end)
    with tempfile.TemporaryDirectory() as folder, FakeModelServer(script) as server:
        arguments = ["-c", CODE, server.url, folder, method, kind, end]
        process = start(*arguments, "no")
        if end in SIGNALS:
            if not script.held.wait(120):
                return "never began"
            time.sleep(0.5)  # what was answered is on the disk by now
            process.send_signal(SIGNALS[end])
            if end in {"Ctrl-C", "cancellation"}:
                script.release.set()  # these let calls in flight come back
                script.end = "full disk"
        process.communicate()
        script.first = False
        script.release.set()
        before = Counter(script.answered)
        _, stderr = start(*arguments, "yes").communicate()
        twice = sum(script.answered[key] - before[key] for key in before)
        return _wrong(Path(folder) / "out.jsonl", twice, stderr)


def _wrong(out: Path, twice: int, text: str) -> str:
    try:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    except (OSError, ValueError) as exc:
        return f"file: {exc}; {text[-200:]}"
    verdicts = {json.dumps(_decided(row), sort_keys=True) for row in rows}
    if len(rows) != ROWS or not all(row["judged"] for row in rows):
        return f"{len(rows)} rows; {text[-200:]}"
    if len(verdicts) != 1:  # all rows hold the same texts
        return f"verdicts differ: {verdicts}"
    return f"{twice} paid twice" if twice else ""


def _decided(row: dict[str, Any]) -> Any:
    verdict = row["verdict"]
    return [verdict.get(name) for name in ("preference", "label", "score")]


def main(methods: list[str]) -> None:
    """Try every case and print the table."""
    print("| the run ends by | cases | failed |\n|---|---|---|")
    for end in ENDS:
        wrong, cases = [], 0
        for method in methods:
            for kind in ("sync", "async"):
                if (end, kind) == ("cancellation", "sync"):
                    continue
                cases += 1
                if problem := tried(method, kind, end):
                    wrong.append(f"{method}, {kind}: {problem}")
        print(f"| {end} | {cases} | {len(wrong)} |", flush=True)
        for each in wrong:
            print(f"  {each}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or sorted(METHODS))
