"""What a run of 20,000 rows holds, and how long it takes to resume it when it has finished.

Rows judged by two calls each (3 kB a result), then the same run again, which finds everything
in the file: `python -m benchmarks.resume`. Printed: the memory of the process, and the
seconds of CPU until the first row and until the last. Measured on 2 cores: 78 MB after 5,000
rows and 81 MB after 20,000; 0.06 and 1.0 s, where every row was read and copied 0.8 and 2.6 s.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_judges import judge_many
from langchain_judges.verdict import even_verdict

ROWS = 20_000
SAMPLE = {
    "criterion": "Depth",
    "order": "AB",
    "sample": 1,
    "scores": {"A": 4, "B": 2},
    "explanation": "The first response explains why, and the second repeats it. " * 10,
}


class Pairs:
    """The rows, made as they are read."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in range(ROWS):
            yield {"input": f"{i} " * 100, "output_a": "a " * 300, "output_b": "b " * 300}


def main() -> None:
    pairs = Pairs()
    result = {"verdict": even_verdict(), "subscores": [SAMPLE] * 3}
    judge: Runnable[Any, Any] = RunnableLambda(lambda _: result)
    judge = judge.with_config(metadata={"method": "sample"})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        for row in judge_many(judge, pairs, records=out, progress=False):
            if (row["index"] + 1) % (ROWS // 4) == 0:
                memory = psutil.Process().memory_info().rss / 1e6
                print(f"{row['index'] + 1:,} rows judged, {memory:.0f} MB held")
        print(f"{out.stat().st_size / 1e6:.0f} MB, {ROWS:,} rows")
        for _ in range(3):
            began = time.process_time()
            run = judge_many(judge, pairs, records=out, progress=False)
            next(run)
            first = time.process_time() - began
            for _ in run:
                pass
            whole = time.process_time() - began
            assert run.summary.resumed == ROWS
            print(f"first row {first:.2f} s, last row {whole:.2f} s")


if __name__ == "__main__":
    main()
