"""What a run costs beside bare loops that make the same calls.

Against a server on loopback (its own process, 50 ms for each reply): 100 pairs × 11 calls,
32 in flight. Compared are `ajudge_many` with a Branch-Solve-Merge judge, a loop of
`ChatOpenAI(...).with_structured_output(...)` and a loop of the bare `AsyncOpenAI` client.
Run with `make benchmark`; ratios are of the same run.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import SecretStr

PAIRS, CALLS, IN_FLIGHT, DELAY, ROUNDS = 100, 11, 32, 0.05, 5

PAIR_TEXT = "The moon pulls the sea, and the sea follows it around the turning earth. " * 6


def pairs() -> list[dict[str, Any]]:
    return [
        {
            "input": f"Why are there tides? ({i})",
            "output_a": f"{PAIR_TEXT} good {i}",
            "output_b": f"{PAIR_TEXT} {i}",
        }
        for i in range(PAIRS)
    ]


async def judged(url: str) -> int:
    from langchain_openai import ChatOpenAI

    from langchain_judges import ajudge_many, create_bsm_judge

    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), use_responses_api=False)
    run = ajudge_many(
        create_bsm_judge(model), pairs(), max_concurrency=IN_FLIGHT, progress=False
    )
    calls = 0
    async for row in run:
        calls += row["verdict"]["usage"]["calls"]
    return calls


async def _all(ask: Callable[[Any], Awaitable[Any]], prompts: list[Any]) -> int:
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one(prompt: Any) -> None:
        async with gate:
            await ask(prompt)

    await asyncio.gather(*(one(prompt) for prompt in prompts))
    return len(prompts)


def _prompts() -> list[tuple[str, list[BaseMessage]]]:
    """Return what the judge asks for every pair, rendered once: one plan, ten solves."""
    from langchain_judges.methods.bsm import prompts as texts

    requests = []
    scale = {"low": 1, "high": 5, "middle": 3, "anchors": ""}
    for pair in pairs():
        frame = {"focus": "", "instructions": "", "request": pair["input"], **scale}
        frame["fence_request"] = "0"
        plan = texts.BRANCH.format_messages(max_criteria=5, weight="", **frame)
        requests.append(("Plan", plan))
        solve = texts.SOLVE.format_messages(
            response_1=pair["output_a"],
            response_2=pair["output_b"],
            fence_1="1",
            fence_2="2",
            reference="",
            known="",
            what="the criterion",
            reply="",
            criterion="Depth.",
            **frame,
        )
        requests += [("Scores", solve)] * (CALLS - 1)
    return requests


async def structured_loop(url: str) -> int:
    from langchain_openai import ChatOpenAI

    from langchain_judges.methods.plans import plan_shape, scores_shape

    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), use_responses_api=False)
    shaped = {
        "Plan": model.with_structured_output(plan_shape(5)),
        "Scores": model.with_structured_output(scores_shape((1, 5), False)),
    }
    return await _all(lambda request: shaped[request[0]].ainvoke(request[1]), _prompts())


async def client_loop(url: str) -> int:
    from openai import AsyncOpenAI

    from langchain_judges.asking.schema import json_schema
    from langchain_judges.methods.plans import plan_shape, scores_shape

    client = AsyncOpenAI(base_url=url, api_key="x")
    schemas = {
        "Plan": json_schema(plan_shape(5)),
        "Scores": json_schema(scores_shape((1, 5), False)),
    }

    async def ask(request: tuple[str, list[Any]]) -> None:
        name, messages = request
        schema = {"name": name, "strict": True, "schema": schemas[name]}
        form: Any = {"type": "json_schema", "json_schema": schema}
        await client.chat.completions.create(model="m", messages=messages, response_format=form)

    roles = {"human": "user", "system": "system"}
    calls = await _all(
        ask,
        [
            (name, [{"role": roles[m.type], "content": m.content} for m in messages])
            for name, messages in _prompts()
        ],
    )
    await client.close()
    return calls


def measure(name: str, url: str) -> tuple[float, float]:
    """Return wall seconds and CPU milliseconds for a call, imports and a warm-up apart."""
    work = {"judge_many": judged, "structured": structured_loop, "client": client_loop}[name]

    async def timed() -> tuple[float, float]:
        await work(url)
        wall, cpu = time.perf_counter(), time.process_time()
        calls = await work(url)
        assert calls == PAIRS * CALLS, calls
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall, 1000 * cpu / calls

    return asyncio.run(timed())


def main() -> None:
    if len(sys.argv) == 3:
        print(*measure(sys.argv[1], sys.argv[2]))
        return
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.model_server", str(DELAY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    url = server.stdout.readline().strip()
    results: dict[str, list[tuple[float, float]]] = {
        "judge_many": [],
        "structured": [],
        "client": [],
    }
    try:
        for _ in range(ROUNDS):
            for name, runs in results.items():
                command = [sys.executable, "-m", "tests.benchmarks.overhead", name, url]
                out = subprocess.run(command, capture_output=True, text=True, check=True)
                wall, cpu = map(float, out.stdout.split())
                runs.append((wall, cpu))
    finally:
        server.communicate()
    report(results)


def report(results: dict[str, list[tuple[float, float]]]) -> None:
    labels = {
        "judge_many": "`ajudge_many`, Branch-Solve-Merge",
        "structured": "loop of `ChatOpenAI.with_structured_output`",
        "client": "loop of `AsyncOpenAI`",
    }
    print(
        f"{PAIRS} pairs × {CALLS} calls, {IN_FLIGHT} in flight, {DELAY * 1000:.0f} ms for each "
        f"reply; medians of {ROUNDS} rounds; {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}.\n"
    )
    print("| | wall s | CPU ms/call | wall × | CPU × |\n|---|---|---|---|---|")
    for name, runs in results.items():
        ratios = [
            (wall / base_wall, cpu / base_cpu)
            for (wall, cpu), (base_wall, base_cpu) in zip(
                runs, results["structured"], strict=True
            )
        ]
        middle = [statistics.median(column) for column in zip(*runs, strict=True)]
        against = [statistics.median(column) for column in zip(*ratios, strict=True)]
        print(
            f"| {labels[name]} | {middle[0]:.2f} | {middle[1]:.2f} "
            f"| {against[0]:.2f} | {against[1]:.2f} |"
        )


if __name__ == "__main__":
    main()
