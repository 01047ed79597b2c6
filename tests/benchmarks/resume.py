"""How long it takes to resume a finished run: `python -m tests.benchmarks.resume`.

20,000 rows judged by two calls each (3 kB a result), then the same run again: everything it
finds in the file. Printed: the seconds of CPU until the first row and until the last.
Measured on 2 cores: 0.06 and 1.0 s; where every row was read and copied, 0.8 and 2.6 s.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

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


def main() -> None:
    pairs = [
        {"input": f"{i} " * 100, "output_a": "a " * 300, "output_b": "b " * 300}
        for i in range(ROWS)
    ]
    result = {"verdict": even_verdict(), "subscores": [SAMPLE] * 3}
    judge: Runnable[Any, Any] = RunnableLambda(lambda _: result)
    judge = judge.with_config(metadata={"method": "sample"})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        for _ in judge_many(judge, pairs, out=out, progress=False):
            pass
        print(f"{out.stat().st_size / 1e6:.0f} MB, {ROWS:,} rows")
        for _ in range(3):
            began = time.process_time()
            run = judge_many(judge, pairs, out=out, progress=False)
            next(run)
            first = time.process_time() - began
            for _ in run:
                pass
            whole = time.process_time() - began
            assert run.summary.resumed == ROWS
            print(f"first row {first:.2f} s, last row {whole:.2f} s")


if __name__ == "__main__":
    main()
