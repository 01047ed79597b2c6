"""One process, shards and Ray beside each other: time, CPU, memory.

Each way is the command a user would type (Ray's is the call in Python), against a server of its
own on loopback (another process, 50 ms a reply). The
CPU of a run over one pair is the fixed start of a way; the CPU of a row is what lies beyond it.
What a killed run pays twice is counted by `python -m tests.attacks.matrix`. Run with

    python -m benchmarks.scale --pairs 2000
    python -m benchmarks.scale --pairs 200 --method bsm

CPU is that of all processes of a way, sampled; ratios hold within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from langchain_judges.runs.summary import counted

TEXT = "The moon pulls the sea, and the sea follows it around the turning earth. " * 6
CALLS = {"relative": 2, "bsm": 4}
"""Of a pair; Branch-Solve-Merge with two criteria of its own."""
OWN: dict[str, dict[str, object]] = {"relative": {}, "bsm": {"criteria": ["Accuracy", "Depth"]}}
"""Options of each method."""


@dataclass
class Cost:
    """Cost of one way."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    """Most megabytes of all its processes at one time."""
    calls: int = 0


def serve() -> None:
    """Answer until SIGTERM, then print how many calls came."""
    from langchain_judges.testing import FakeModelServer
    from tests.judges import answer_call

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGUSR1, lambda *_: print(count(), flush=True))
    with FakeModelServer(lambda call: replace(answer_call(call), delay=0.05)) as live:

        def count() -> int:
            return len(live.calls)

        print(live.url, flush=True)
        stop.wait()


class Server:
    """A server in another process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale", "--serve"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()

    def calls(self) -> int:
        assert self.process.stdout
        self.process.send_signal(signal.SIGUSR1)
        return int(self.process.stdout.readline())

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def run(commands: list[list[str]], cost: Cost) -> None:
    """Run commands at the same time and add what they cost."""
    began = time.monotonic()
    off = subprocess.DEVNULL
    started = [subprocess.Popen(command, stdout=off, stderr=off) for command in commands]
    seconds: dict[int, float] = {}
    while any(process.poll() is None for process in started):
        family = [psutil.Process(process.pid) for process in started if process.poll() is None]
        everyone = [*family, *(child for p in family for child in _children(p))]
        memory = 0.0
        for each in everyone:
            try:
                times = each.cpu_times()
                seconds[each.pid] = times.user + times.system
                memory += each.memory_info().rss / 1e6
            except psutil.Error:
                continue
        cost.memory = max(cost.memory, memory)
        time.sleep(0.1)
    cost.wall += time.monotonic() - began
    cost.cpu += sum(seconds.values())


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def ways(rows: Path, url: str, method: str, folder: Path) -> dict[str, list[list[str]]]:
    """The commands of each way, by its name."""
    judge = [sys.executable, "-m", "langchain_judges.cli", "judge", str(rows), "--method", method]
    judge += ["--model", "m", "--base-url", url]
    for name, value in OWN[method].items():
        judge += ["--set", f"{name}={json.dumps(value)}"]
    live = [*judge, "--concurrency", "32"]
    spec = {"method": method, "model": {"name": "m", "base_url": url}, "options": OWN[method]}
    half = [*judge, "--concurrency", "16"]
    return {
        "one process": [[*live, "--records", str(folder / "one.jsonl")]],
        "2 shards": [
            [*half, "--records", str(folder / "shards"), "--shard", f"{n}/2"] for n in (1, 2)
        ],
        **{
            f"Ray, {counted(n, 'task')}": [_on_ray(rows, spec, n, folder / f"ray{n}")]
            for n in (1, 2)
        },
    }


def _on_ray(rows: Path, spec: object, shards: int, out: Path) -> list[str]:
    code = (
        "from pathlib import Path\nfrom cookbook.on_ray import judge_on_ray\n"
        f"out = Path({str(out)!r})\n"
        f"judge_on_ray({str(rows)!r}, {spec!r}, out, out / 'all.parquet', {shards}, "
        f"max_concurrency={32 // shards})"
    )
    return [sys.executable, "-c", code]


def write_rows(path: Path, pairs: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n in range(pairs):
            row = {"input": "Why?", "output_a": f"{TEXT} good {n}", "output_b": TEXT}
            file.write(json.dumps(row) + "\n")


def measure(way: str, rows: Path, method: str) -> Cost:
    """Cost of a way."""
    cost = Cost()
    with tempfile.TemporaryDirectory() as place, Server() as server:
        run(ways(rows, server.url, method, Path(place))[way], cost)
        cost.calls = server.calls()
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--method", choices=list(CALLS), default="relative")
    parser.add_argument("--only", action="append", help="a way; repeat it for several")
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    os.environ.update(OPENAI_API_KEY="x", RAY_agent_register_timeout_ms="600000")
    needed = args.pairs * CALLS[args.method]
    print(f"{args.pairs:,} pairs by {args.method}, {needed:,} calls", flush=True)
    heads = ["way", "wall s", "CPU s", "to start", "CPU ms a row", "most MB", "calls"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    with tempfile.TemporaryDirectory() as place:
        rows, one = Path(place) / "rows.jsonl", Path(place) / "row.jsonl"
        write_rows(rows, args.pairs)
        write_rows(one, 1)
        for way in args.only or ways(Path(), "", args.method, Path()):
            start = measure(way, one, args.method)
            cost = measure(way, rows, args.method)
            print(
                f"| {way} | {cost.wall:.1f} | {cost.cpu:.1f} | {start.cpu:.1f} | "
                f"{1000 * (cost.cpu - start.cpu) / args.pairs:.1f} | "
                f"{cost.memory:,.0f} | {cost.calls:,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
