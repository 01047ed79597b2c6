"""What the benchmarks beside bare loops share: pairs, a server process, a table of medians."""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import SecretStr

PAIR_TEXT = "The moon pulls the sea, and the sea follows it around the turning earth. " * 6
ROLES = {"human": "user", "system": "system"}
Times = tuple[float, float]
"""Wall seconds, and CPU milliseconds for a call."""


def tide_pairs(count: int) -> list[dict[str, Any]]:
    return [
        {
            "input": f"Why are there tides? ({i})",
            "output_a": f"{PAIR_TEXT} good {i}",
            "output_b": f"{PAIR_TEXT} {i}",
        }
        for i in range(count)
    ]


def chat(url: str) -> Any:
    from langchain_openai import ChatOpenAI

    key = SecretStr("as-long-as-a-key-that-judges-mask")
    return ChatOpenAI(model="m", base_url=url, api_key=key, use_responses_api=False)


async def ask_all(
    ask: Callable[[Any], Awaitable[Any]], requests: Sequence[Any], in_flight: int
) -> None:
    gate = asyncio.Semaphore(in_flight)

    async def one(request: Any) -> None:
        async with gate:
            await ask(request)

    await asyncio.gather(*map(one, requests))


@contextmanager
def program(*command: str) -> Iterator[Callable[[], str]]:
    """Start a module in a process of its own, which ends with its input; give its next line."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    output = process.stdout
    try:
        yield lambda: output.readline().strip()
    finally:
        process.communicate()


def conditions(delay: float, rounds: int) -> str:
    """Conditions under which the numbers of a table were measured."""
    return (
        f"{delay * 1000:.0f} ms for each reply; medians of {rounds} rounds; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.\n"
    )


def print_ratios(times: Mapping[str, Sequence[Times]], base: str) -> None:
    """Print medians, and medians of the ratios to a base within a round."""
    print("| | wall s | CPU ms/call | wall × | CPU × |\n|---|---|---|---|---|")
    for name, runs in times.items():
        ratios = [
            (wall / base_wall, cpu / base_cpu)
            for (wall, cpu), (base_wall, base_cpu) in zip(runs, times[base], strict=True)
        ]
        cells = [statistics.median(column) for column in zip(*runs, strict=True)]
        cells += [statistics.median(column) for column in zip(*ratios, strict=True)]
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
