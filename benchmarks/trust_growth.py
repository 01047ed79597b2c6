"""What processor time and memory a report takes, by the number of rows.

Run `python -m benchmarks.trust_growth 20000 100000`: each size in a process of its own,
so that the memory is its own. Rows have two texts of about 400 characters, both orders, three
votes, one of twenty categories and groups of four. Time and memory should grow in proportion.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def rows_of(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of a run, and of its data."""
    rng = random.Random(0)
    words = [f"word{number}" for number in range(500)]
    runs, data = [], []
    for number in range(count):
        texts = [" ".join(rng.choices(words, k=rng.randint(30, 80))) for _ in range(2)]
        votes = rng.choices(["A", "B", "tie"], weights=(4, 4, 2), k=3)
        orders = [rng.choice([votes[0], "A", "B"]) for _ in range(2)]
        answer = orders[0] if orders[0] == orders[1] else "tie"
        data.append(
            {
                "id": f"r{number}",
                "input": f"Question {number}",
                "output_a": texts[0],
                "output_b": texts[1],
                "human_votes": votes,
                "group": f"g{number // 4}",
                "category": f"c{number % 20}",
            }
        )
        verdict = {
            "preference": answer,
            "score": {"A": 1.0, "tie": 0.5, "B": 0.0}[answer],
            "confidence": rng.random(),
            "flipped": orders[0] != orders[1],
            "rationale": "because of its clarity",
            "failures": [],
        }
        by_order = {
            name: {"preference": p} for name, p in zip(("AB", "BA"), orders, strict=True)
        }
        runs.append(
            {"index": number, "id": f"r{number}", "verdict": verdict, "by_order": by_order}
        )
    return runs, data


def measure(count: int) -> None:
    """Print time, memory and page size of one size."""
    from langchain_judges.report import trust

    runs, data = rows_of(count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    report = trust(runs, data)
    measured = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report.to_html(page)
        report.to_json(Path(folder) / "report.json")
        size = page.stat().st_size / 1e6
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count:>8,} rows: numbers {measured - began:6.1f} s, page and JSON "
        f"{end - measured:6.1f} s, page {size:6.1f} MB, memory {before:,.0f} → {peak:,.0f} MB",
        flush=True,
    )


def main() -> None:
    """Measure each size in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
        return
    for count in sys.argv[1:] or ["5000", "20000", "100000"]:
        command = [sys.executable, "-m", "benchmarks.trust_growth", "--one", count]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
