"""CPU and memory of each job by the number of rows, and how far from linear it grows.

Run with `python -m benchmarks.growth`, or with sizes of your own: `1000 10000 100000`. Each job
and size has a process of its own, whose imports are not counted; models answer at once. Growth
is the CPU for a row relative to that of the size above it in the table: 1.0 is linear.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.trust_growth import rows_of

SIZES = (1_000, 10_000)
AUDITS = (100, 200, 400)
"""Items of an audit with a checkpointer: each is judged several times."""


def pairs(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": f"r{number}",
            "input": f"Q {number}",
            "output_a": "a good one",
            "output_b": "b",
        }


def _nothing(count: int, folder: Path) -> None:
    del count, folder


def _judge(count: int, folder: Path) -> None:
    from langchain_judges import judge_many, load_judge
    from langchain_judges.testing import FakeChatModel
    from tests.judges import answer

    judge = load_judge("relative", FakeChatModel(replies=answer))
    for _ in judge_many(judge, pairs(count), records=folder / "runs.jsonl", progress=False):
        pass


def _files(count: int, folder: Path) -> None:
    runs, data = rows_of(count)
    for name, rows in (("runs", runs), ("data", data)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)


def _read(folder: Path) -> Iterator[list[dict[str, Any]]]:
    for name in ("runs", "data"):
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        yield [json.loads(line) for line in lines]


def _trust(count: int, folder: Path) -> None:
    from langchain_judges.report import trust

    trust(*_read(folder)).to_html(folder / "report.html")


def _compare(count: int, folder: Path) -> None:
    from langchain_judges.report import compare

    runs, data = _read(folder)
    compare({"one": runs, "other": runs[::-1]}, data).to_html(folder / "report.html")


def _view(count: int, folder: Path) -> None:
    from langchain_judges.viewer.items import read_collection

    assert len(read_collection([folder / "data.jsonl", folder / "runs.jsonl"]).rows) == count


def _memory(count: int, folder: Path) -> None:
    from langchain_judges import FailureMemory
    from tests.memories import example

    memory = FailureMemory(path=folder / "memory")
    memory.remember([example(f"text {n}", n % 2, input=f"q {n}") for n in range(count)])
    for number in range(20):
        memory.remember([example(f"late {number}", 1, input=f"late {number}")])


def _audit(count: int, folder: Path) -> None:
    from langgraph.checkpoint.sqlite import SqliteSaver

    from langchain_judges import create_allure_audit
    from tests.memories import memory_of
    from tests.planners import fooled_model, planning

    config: Any = {"configurable": {"thread_id": "audit"}}
    with SqliteSaver.from_conn_string(str(folder / "steps.sqlite")) as saver:
        audit = create_allure_audit(
            fooled_model(), memory_of(), auditor="labels", max_rounds=1, checkpointer=saver
        )
        audit.invoke({"items": planning(count)}, config)


JOBS: dict[str, tuple[Callable[[int, Path], None], Callable[[int, Path], None]]] = {
    "judge, `records=`": (_nothing, _judge),
    "resume what is finished": (_judge, _judge),
    "report of trust": (_files, _trust),
    "report of two judges": (_files, _compare),
    "results and table on the page": (_files, _view),
    "memory, one batch and 20 more": (_nothing, _memory),
    "audit with a checkpointer": (_nothing, _audit),
}
"""The precondition, and the quantity that is measured."""


def measure(job: str, count: int) -> None:
    """Print seconds of CPU and megabytes of one job at one size."""
    prepare, work = JOBS[job]
    with tempfile.TemporaryDirectory() as folder:
        work(8, _made(Path(folder) / "few", prepare, 8))  # imports
        many = _made(Path(folder) / "many", prepare, count)
        before, began = peak(), time.process_time()
        work(count, many)
        print(json.dumps([time.process_time() - began, peak() - before]))


def _made(folder: Path, prepare: Callable[[int, Path], None], count: int) -> Path:
    folder.mkdir()
    prepare(count, folder)
    return folder


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]))
        return
    sizes = [int(each) for each in sys.argv[1:]] or SIZES
    print("| job | rows | CPU s | MB more | growth |\n|---|---|---|---|---|")
    for job in JOBS:
        last = None
        for count in AUDITS if "audit" in job else sizes:
            command = [sys.executable, "-m", "benchmarks.growth", "--one", job, str(count)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds, memory = json.loads(done.stdout.splitlines()[-1])
            growth = f"{seconds / count / last:.2f}" if last else ""
            last = seconds / count
            print(
                f"| {job} | {count:,} | {seconds:.1f} | {memory:.0f} | {growth} |", flush=True
            )


if __name__ == "__main__":
    main()
