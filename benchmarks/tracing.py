"""What LangSmith tracing adds to the processor time and the wall time of a run.

A model server (50 ms for each reply) and a LangSmith server stand in a process of their own. In
this one, LangSmith's own client sends the traces; a round with tracing ends when all have been
sent. Each loop runs without and with tracing by turns, so that what else the machine does meets
both; processor time is that of this process, all threads. What is sent is counted apart. Run
with `python -m benchmarks.tracing`, or with `--quick` for one round.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from benchmarks import one_call
from benchmarks.bare_loops import conditions, program
from benchmarks.one_call import DELAY, IN_FLIGHT, JUDGMENTS, judged, structured

ROUNDS = 1 if "--quick" in sys.argv else 7
LOOPS: dict[str, Callable[[str], Awaitable[Any]]] = {
    "loop of `ChatOpenAI.with_structured_output`": structured,
    "`ajudge_many`, `relative`": lambda url: judged(url, "relative"),
    "`ajudge_many`, `absolute`": lambda url: judged(url, "absolute"),
}
Times = tuple[float, float]


def serve() -> None:
    """Print the addresses of both servers, and answer until the standard input is closed."""
    from tests.langsmith_server import LangSmithServer

    with LangSmithServer() as server:
        print(server.url, flush=True)
        one_call.serve()


def measure(
    url: str, client: Any
) -> tuple[dict[str, list[tuple[Times, Times]]], dict[str, tuple[float, float]]]:
    """Wall and processor seconds without and with tracing, by round, and what is sent."""
    times: dict[str, list[tuple[Times, Times]]] = {name: [] for name in LOOPS}
    with asyncio.Runner() as runner:
        for turn in range(ROUNDS + 1):
            for name, loop in LOOPS.items():
                without = _timed(runner, loop(url), None)
                traced = _timed(runner, loop(url), client)
                if turn:  # the first round warms up
                    times[name].append((without, traced))
        return times, {name: _sent(runner, loop(url)) for name, loop in LOOPS.items()}


def _sent(runner: asyncio.Runner, work: Awaitable[None]) -> tuple[float, float]:
    """Runs and kilobytes that a loop sends for a call."""
    from langsmith import Client

    from tests.langsmith_server import LangSmithServer

    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="x")
        runner.run(_within(work, client))
        client.cleanup()
        return len(server.read().runs) / JUDGMENTS, server.received / 1000 / JUDGMENTS


def _timed(runner: asyncio.Runner, work: Awaitable[None], client: Any) -> Times:
    gc.collect()  # what the loop before left behind is not this one's
    wall, cpu = time.perf_counter(), time.process_time()
    runner.run(_within(work, client))
    if client is not None:
        client.flush()
    return time.perf_counter() - wall, time.process_time() - cpu


async def _within(work: Awaitable[None], client: Any) -> None:
    from langsmith.run_helpers import tracing_context

    tracing: AbstractContextManager[Any] = nullcontext()
    if client is not None:
        tracing = tracing_context(enabled=True, client=client, project_name="benchmark")
    with tracing:
        await work


def report(
    times: dict[str, list[tuple[Times, Times]]], amounts: dict[str, tuple[float, float]]
) -> None:
    """Print medians, medians of the ratios within a round, and what is sent."""
    print(f"{JUDGMENTS} judgments, {IN_FLIGHT} in flight, {conditions(DELAY, ROUNDS)}")
    print("| | CPU ms/call | traced | CPU × | wall × | runs/call | kB/call |")
    print("|---|---|---|---|---|---|---|")
    for name, rounds in times.items():
        cells = [
            statistics.median(1000 * without[1] / JUDGMENTS for without, _ in rounds),
            statistics.median(1000 * traced[1] / JUDGMENTS for _, traced in rounds),
            statistics.median(traced[1] / without[1] for without, traced in rounds),
            statistics.median(traced[0] / without[0] for without, traced in rounds),
            *amounts[name],
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")


def main() -> None:
    if "serve" in sys.argv:
        serve()
        return
    from langsmith import Client

    with program("benchmarks.tracing", "serve") as line:
        client, url = Client(api_url=line(), api_key="x"), line()
        report(*measure(url, client))
        client.cleanup()


if __name__ == "__main__":
    main()
