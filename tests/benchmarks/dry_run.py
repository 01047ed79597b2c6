"""What a dry run costs beside the help of the same command, in seconds of CPU.

    python -m tests.benchmarks.dry_run            # a minute
    python -m tests.benchmarks.dry_run sc2 jury   # by other methods

Both start a process of their own, in turn, and the median of nine is printed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

RUNS = 9
PAIR = {"input": "Why is the sky blue?", "output_a": "Light scatters.", "output_b": "It is."}


def seconds(*words: str) -> float:
    """Return the CPU time of a command, of user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "langchain_judges.cli", *words]
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(methods: list[str]) -> None:
    """Print a row for each method."""
    print("| method | `--help` | `--dry-run` | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        rows.write_text(json.dumps(PAIR))
        for method in methods:
            words = ["judge", str(rows), "--method", method, "--model", "openai:gpt-5-mini"]
            times = [
                (seconds("judge", "--help"), seconds(*words, "--dry-run")) for _ in range(RUNS)
            ]
            help_time, dry = (median(column) for column in zip(*times, strict=True))
            print(f"| {method} | {help_time:.2f} s | {dry:.2f} s | {dry / help_time:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["bsm", "relative", "sc2"])
