"""What a judge of one call costs beside bare loops and openevals, in one process.

Against a server on loopback (its own process, 50 ms for each reply, a few sentences of
explanation, log-probabilities where they are asked for): 100 judgments, 20 in flight. The
contestants take turns within each round, so that what else the machine does meets them all;
processor time is that of this process. Run with `make benchmark`, or with `--quick`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.bare_loops import (
    ROLES,
    Times,
    ask_all,
    chat,
    conditions,
    print_ratios,
    program,
    tide_pairs,
)

QUICK = "--quick" in sys.argv
JUDGMENTS, ROUNDS = (40, 1) if QUICK else (200, 7)
IN_FLIGHT, DELAY = 20, 0.05
WHY = "Response 1 names the cause, the moon; Response 2 only repeats what was asked. " * 5
BASE = "loop of `ChatOpenAI.with_structured_output`"


def serve() -> None:
    """Answer until the standard input is closed."""
    from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, reply

    def answer(call: ServerCall) -> ServerReply:
        verdict: dict[str, Any] = {"explanation": WHY, "preference": "1"}
        if call.shape == "Scores":
            verdict = {"score_1": 4, "score_2": 2, "explanation": WHY}
        if call.shape == "Labelled":
            verdict = {"explanation": WHY, "label": "1"}
        if call.shape not in {"Scores", "Choice", "Labelled"}:
            verdict = {"reasoning": WHY, "score": True}
        if "criteria" in ((call.schema or {}).get("properties") or {}):
            lines = ({"name": f"Point {n}", "description": f"Says {n}."} for n in range(5))
            verdict = {"criteria": [{**line, "asks_right": "no"} for line in lines]}
        text = json.dumps(verdict)
        result = reply(text)
        if call.body.get("logprobs"):
            words = text.replace(" ", "\n ").split("\n")
            result.payload["choices"][0]["logprobs"] = {"content": [_token(w) for w in words]}
        return result

    with FakeModelServer(lambda call: replace(answer(call), delay=DELAY)) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def _token(word: str) -> dict[str, Any]:
    return {"token": word, "logprob": -0.1, "bytes": list(word.encode()), "top_logprobs": []}


def prompts() -> list[list[Any]]:
    """Prompts of `relative`, rendered: each pair in both orders."""
    from langchain_judges.methods.direct.options import Relative

    prompt = Relative.templates["judge"]
    blank = dict.fromkeys(prompt.input_variables, "")
    return [
        prompt.format_messages(
            **{**blank, "request": pair["input"], "response_1": first, "response_2": second}
        )
        for pair in tide_pairs(JUDGMENTS // 2)
        for first, second in (
            (pair["output_a"], pair["output_b"]),
            (pair["output_b"], pair["output_a"]),
        )
    ]


async def structured(url: str) -> None:
    from langchain_judges.methods.replies import Choice

    await ask_all(chat(url).with_structured_output(Choice).ainvoke, prompts(), IN_FLIGHT)


async def by_dictionary(url: str) -> None:
    from langchain_judges.asking.reading import json_schema
    from langchain_judges.methods.replies import Choice

    schema = {"name": "Choice", "strict": True, "schema": json_schema(Choice)}
    model = chat(url).bind(response_format={"type": "json_schema", "json_schema": schema})
    await ask_all(model.ainvoke, prompts(), IN_FLIGHT)


def structured_threads(url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from langchain_judges.methods.replies import Choice

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        list(pool.map(chat(url).with_structured_output(Choice).invoke, prompts()))


async def client(url: str) -> None:
    from openai import AsyncOpenAI

    from langchain_judges.asking.reading import json_schema
    from langchain_judges.methods.replies import Choice

    schema = {"name": "Choice", "strict": True, "schema": json_schema(Choice)}
    form: Any = {"type": "json_schema", "json_schema": schema}

    async def ask(messages: list[Any]) -> None:
        turns: Any = [{"role": ROLES[m.type], "content": m.content} for m in messages]
        completion = await plain.chat.completions.create(
            model="m", messages=turns, response_format=form
        )
        Choice.model_validate_json(completion.choices[0].message.content or "")

    async with AsyncOpenAI(base_url=url, api_key="x") as plain:
        await ask_all(ask, prompts(), IN_FLIGHT)


async def openevals(url: str) -> None:
    from openevals.llm import create_async_llm_as_judge

    prompt = "Is the answer right?\n{inputs}\n{outputs}\n{reference_outputs}"
    judge = create_async_llm_as_judge(prompt=prompt, judge=chat(url))

    async def ask(pair: dict[str, Any]) -> None:
        texts = {"outputs": pair["output_a"], "reference_outputs": pair["output_b"]}
        await judge(inputs=pair["input"], **texts)

    await ask_all(ask, tide_pairs(JUDGMENTS // 2) * 2, IN_FLIGHT)


async def judged(url: str, method: str, calls: int = 2, **options: Any) -> int:
    """Judge so many pairs that about as many calls are made as by the others."""
    from langchain_judges import ajudge_many, load_judge

    judge, pairs = load_judge(method, chat(url)), tide_pairs(JUDGMENTS // calls)
    options |= {"max_concurrency": IN_FLIGHT, "progress": False}
    async with ajudge_many(judge, pairs, **options) as run:
        async for row in run:
            assert row["judged"], row
    assert run.summary.calls == calls * len(pairs)
    return run.summary.calls


async def kept(url: str, name: str) -> int:
    """Judge as `judged` does, into a new file."""
    with tempfile.TemporaryDirectory() as folder:
        options: Any = {name: Path(folder) / "rows.jsonl"}
        return await judged(url, "relative", **options)


async def labelled(url: str) -> None:
    from langchain_judges import ajudge_many, create_rubric_judge

    judge = create_rubric_judge(chat(url), rubric="The answer is right.")
    items = [
        {"input": pair["input"], "output": pair[side], "id": f"{number} {side}"}
        for number, pair in enumerate(tide_pairs(JUDGMENTS // 2))
        for side in ("output_a", "output_b")
    ]
    async for row in ajudge_many(judge, items, max_concurrency=IN_FLIGHT, progress=False):
        assert row["judged"], row


def judged_threads(url: str) -> None:
    from langchain_judges import judge_many, load_judge

    judge = load_judge("relative", chat(url))
    for row in judge_many(
        judge, tide_pairs(JUDGMENTS // 2), max_concurrency=IN_FLIGHT, progress=False
    ):
        assert row["judged"], row


CONTESTANTS: dict[str, Callable[[str], Any]] = {
    BASE: structured,
    "the same loop, in threads": structured_threads,
    "loop of `ChatOpenAI.ainvoke`, the schema as a dictionary": by_dictionary,
    "loop of `AsyncOpenAI`": client,
    "openevals, `create_async_llm_as_judge`": openevals,
    "`ajudge_many`, `relative`": lambda url: judged(url, "relative"),
    "`ajudge_many`, `relative`, `out`": lambda url: kept(url, "out"),
    "`ajudge_many`, `relative`, `records`": lambda url: kept(url, "records"),
    "`ajudge_many`, `absolute`": lambda url: judged(url, "absolute"),
    "`ajudge_many`, `rubric`": labelled,
    "`ajudge_many`, `bsm`, 11 calls": lambda url: judged(url, "bsm", 11),
    "`judge_many`, `relative`": judged_threads,
}


def measure(url: str, rounds: int) -> dict[str, list[Times]]:
    """Wall seconds and CPU milliseconds for a call, for each round after a warm-up."""
    times: dict[str, list[Times]] = {name: [] for name in CONTESTANTS}
    with asyncio.Runner() as runner:
        for turn in range(rounds + 1):
            for name, work in CONTESTANTS.items():
                gc.collect()  # what the one before left behind is not this one's
                wall, cpu, calls = time.perf_counter(), time.process_time(), JUDGMENTS
                if asyncio.iscoroutine(waiting := work(url)):
                    calls = runner.run(waiting) or JUDGMENTS
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                if turn:
                    times[name].append((wall, 1000 * cpu / calls))
    return times


def main() -> None:
    if "serve" in sys.argv:
        serve()
        return
    with program("benchmarks.one_call", "serve") as line:
        times = measure(line(), ROUNDS)
    print(f"{JUDGMENTS} judgments, {IN_FLIGHT} in flight, {conditions(DELAY, ROUNDS)}")
    print_ratios(times, BASE)


if __name__ == "__main__":
    main()
