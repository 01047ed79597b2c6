"""What a started row takes in memory while its calls wait for a batch job.

    python -m tests.benchmarks.open_rows

Each case runs in a process of its own: twenty rows first, then many more, all of whose requests
wait; the growth of the process is shared among them. `open_mb` counts with these figures.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import psutil
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_judges import ajudge_many, load_judge
from langchain_judges.asking.batches import model as batches
from langchain_judges.asking.batches.batcher import Batcher
from langchain_judges.runs.budget import kilobytes_of

CASES = [
    ("relative", 500, 500),
    ("relative", 500, 20_000),
    ("bsm", 200, 500),
    ("bsm", 100, 20_000),
]
"""Method, rows, characters of each of the two texts."""
OPTIONS: dict[str, dict[str, Any]] = {"bsm": {"criteria": ["A", "B", "C", "D", "E"]}}
FIRST = 20


def rows_of(first: int, n: int, characters: int) -> Iterator[dict[str, str]]:
    text = ("The moon pulls the sea. " * (characters // 24 + 1))[:characters]
    for number in range(first, first + n):
        yield {"input": f"Why {number}?", "output_a": f"{text}a", "output_b": f"{text}b"}


async def measure(method: str, n: int, characters: int) -> None:
    """Print the kilobytes of a row, measured and as a run counts them."""
    batchers: list[Batcher] = []

    class Noted(Batcher):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            batchers.append(self)

    chat = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key=SecretStr("k"))
    with tempfile.TemporaryDirectory() as folder:
        with patch.object(batches, "Batcher", Noted):
            model = batches.batch_model(chat, f"{folder}/journal", quiet=3600.0)
        judge = load_judge(method, model, **OPTIONS.get(method, {}))
        calls = judge.config["metadata"]["calls"]
        options: dict[str, Any] = {"max_concurrency": 50_000, "open_rows": 50_000}
        megabytes, tasks = [], []
        for first, rows in ((0, FIRST), (FIRST, n)):
            run = ajudge_many(
                judge,
                rows_of(first, rows, characters),
                **options,
                open_mb=1e6,
                progress=False,
            )
            tasks.append(asyncio.ensure_future(anext(run)))
            while len(batchers[0]._waiting) < (first + rows) * calls:
                await asyncio.sleep(0.1)
            gc.collect()
            megabytes.append(psutil.Process().memory_info().rss / 1e6)
        measured = 1000 * (megabytes[1] - megabytes[0]) / n
        counted = kilobytes_of(2 * characters + 10, calls)
        print(
            f"| {method} | {calls} | {2 * characters:,} | {measured:.0f} | {counted} |",
            flush=True,
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    if len(sys.argv) > 1:
        asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
        return
    print(
        "| method | calls | characters | kB measured | kB counted |\n|---|---|---|---|---|",
        flush=True,
    )
    for case in CASES:
        command = [sys.executable, "-m", "tests.benchmarks.open_rows", *map(str, case)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
