"""How long a run takes in which few rows are slow: `python -m tests.benchmarks.slow_rows`.

Of 400 rows 2 % take 10 s and the others 0.1 s, 16 at a time with 8 calls in flight. What all
rows need, shared among the places, is (8 · 10 + 392 · 0.1) / 16 = 7.5 s, and one slow row 10 s.
"""

from __future__ import annotations

import asyncio
import random
import time

from langchain_core.runnables import RunnableLambda

from langchain_judges import ajudge_many, judge_many
from langchain_judges.verdict import even_verdict

ROWS, SLOW, QUICK = 400, 10.0, 0.1


def main() -> None:
    slow = set(random.Random(7).sample(range(ROWS), ROWS // 50))
    rows = [{"input": f"{i}", "output_a": "a", "output_b": "b"} for i in range(ROWS)]

    def seconds(pair: dict[str, str]) -> float:
        return SLOW if int(pair["input"]) in slow else QUICK

    def judge(pair: dict[str, str]) -> dict[str, object]:
        time.sleep(seconds(pair))
        return {"verdict": even_verdict()}

    async def later(pair: dict[str, str]) -> dict[str, object]:
        await asyncio.sleep(seconds(pair))
        return {"verdict": even_verdict()}

    runnable = RunnableLambda(judge, later)
    began = time.monotonic()
    now = judge_many(runnable, rows, max_concurrency=8, progress=False)
    assert [row["index"] for row in now] == list(range(ROWS))
    print(f"judge_many   {time.monotonic() - began:6.1f} s, held back {now.summary.held_back}")

    async def run() -> None:
        began = time.monotonic()
        later = ajudge_many(runnable, rows, max_concurrency=8, progress=False)
        assert [row["index"] async for row in later] == list(range(ROWS))
        backlog = later.summary.held_back
        print(f"ajudge_many  {time.monotonic() - began:6.1f} s, held back {backlog}")

    asyncio.run(run())


if __name__ == "__main__":
    main()
