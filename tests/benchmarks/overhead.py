"""What a run costs beside bare loops that make the same calls.

Against a server on loopback (its own process, 50 ms for each reply): 100 pairs × 11 calls,
32 in flight. Compared are `ajudge_many` with a Branch-Solve-Merge judge, a loop of
`ChatOpenAI(...).with_structured_output(...)` and a loop of the bare `AsyncOpenAI` client.
Run with `make benchmark`; ratios are of the same run.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

from langchain_core.messages import BaseMessage

from tests.benchmarks.bare_loops import (
    ROLES,
    Times,
    ask_all,
    chat,
    conditions,
    print_ratios,
    program,
    tide_pairs,
)

PAIRS, CALLS, IN_FLIGHT, DELAY, ROUNDS = 100, 11, 32, 0.05, 5


async def judged(url: str) -> int:
    from langchain_judges import ajudge_many, create_bsm_judge

    judge = create_bsm_judge(chat(url))
    run = ajudge_many(judge, tide_pairs(PAIRS), max_concurrency=IN_FLIGHT, progress=False)
    calls = 0
    async for row in run:
        calls += row["verdict"]["usage"]["calls"]
    return calls


def _prompts() -> list[tuple[str, list[BaseMessage]]]:
    """Return what the judge asks for every pair, rendered once: one plan, ten solves."""
    from langchain_judges.methods.bsm import prompts as texts

    requests = []
    scale = {"low": 1, "high": 5, "middle": 3, "anchors": ""}
    for pair in tide_pairs(PAIRS):
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
    from langchain_judges.methods.replies import plan_shape, scores_shape

    model = chat(url)
    shaped = {
        "Plan": model.with_structured_output(plan_shape(5)),
        "Scores": model.with_structured_output(scores_shape((1, 5), False)),
    }
    prompts = _prompts()
    await ask_all(lambda request: shaped[request[0]].ainvoke(request[1]), prompts, IN_FLIGHT)
    return len(prompts)


async def client_loop(url: str) -> int:
    from openai import AsyncOpenAI

    from langchain_judges.asking.replies.reading import json_schema
    from langchain_judges.methods.replies import plan_shape, scores_shape

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

    requests = [
        (name, [{"role": ROLES[m.type], "content": m.content} for m in messages])
        for name, messages in _prompts()
    ]
    await ask_all(ask, requests, IN_FLIGHT)
    await client.close()
    return len(requests)


def measure(name: str, url: str) -> Times:
    """Return wall seconds and CPU milliseconds for a call, imports and a warm-up apart."""
    work = {"judge_many": judged, "structured": structured_loop, "client": client_loop}[name]

    async def timed() -> Times:
        await work(url)
        wall, cpu = time.perf_counter(), time.process_time()
        calls = await work(url)
        assert calls == PAIRS * CALLS, calls
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall, 1000 * cpu / calls

    return asyncio.run(timed())


LABELS = {
    "judge_many": "`ajudge_many`, Branch-Solve-Merge",
    "structured": "loop of `ChatOpenAI.with_structured_output`",
    "client": "loop of `AsyncOpenAI`",
}


def main() -> None:
    if len(sys.argv) == 3:
        print(*measure(sys.argv[1], sys.argv[2]))
        return
    results: dict[str, list[Times]] = {name: [] for name in LABELS}
    with program("tests.model_server", str(DELAY)) as line:
        url = line()
        for _ in range(ROUNDS):
            for name, runs in results.items():
                command = [sys.executable, "-m", "tests.benchmarks.overhead", name, url]
                out = subprocess.run(command, capture_output=True, text=True, check=True)
                wall, cpu = map(float, out.stdout.split())
                runs.append((wall, cpu))
    print(f"{PAIRS} pairs × {CALLS} calls, {IN_FLIGHT} in flight, {conditions(DELAY, ROUNDS)}")
    print_ratios({LABELS[name]: runs for name, runs in results.items()}, LABELS["structured"])


if __name__ == "__main__":
    main()
