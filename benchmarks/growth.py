"""CPU and memory of each job by the number of rows, and how far from linear it grows.

Run with `python -m benchmarks.growth`, some twenty minutes, or with sizes of your own: `1000
10000`. Each job and size has a process of its own, whose imports are not counted; models answer
at once. Growth is the CPU for a row relative to that of the size above it in the table: 1.0 is
linear. What a report is given is there before and is not counted. Then how long a run takes of
which one row in fifty is slow.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import PrivateAttr

from langchain_judges.testing.model import PlainModel

SIZES = (1_000, 10_000, 100_000)
AUDITS = (100, 200, 400)
"""Items of an audit with a checkpointer: each is judged several times."""


SLOW, QUICK, PLACES = 3.0, 0.05, 32
"""Seconds of one reply in fifty and of the others, and how many are waited for at a time."""


class Instant(PlainModel):
    """Prefers the first text, and keeps nothing of what it was asked."""

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _reply(self, *_: Any, **__: Any) -> AIMessage:
        return AIMessage(json.dumps({"explanation": "because", "preference": "1"}))


class Slow(Instant):
    """Lets one call in fifty wait for long."""

    _calls: Any = PrivateAttr(default_factory=itertools.count)

    def _reply(self, *given: Any, **named: Any) -> AIMessage:
        time.sleep(QUICK if next(self._calls) % 50 else SLOW)
        return super()._reply(*given, **named)


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

    judge, results = load_judge("relative", Instant(), orders="none"), folder / "judged.jsonl"
    for _ in judge_many(judge, pairs(count), records=results, progress=False):
        pass


def _judged(count: int, folder: Path) -> None:
    if not (folder / "judged.jsonl").exists():
        _judge(count, folder)


def _files(count: int, folder: Path) -> None:
    for name, rows in zip(("runs", "data"), rows_of(count), strict=True):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)


def _rows(count: int, folder: Path) -> None:
    del folder
    rows_of(count)


@functools.cache
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
        by_order = {name: {"preference": p} for name, p in zip(("AB", "BA"), orders, strict=True)}
        runs.append({"index": number, "id": f"r{number}", "verdict": verdict, "by_order": by_order})
    return runs, data


def _trust(count: int, folder: Path) -> None:
    from langchain_judges.report import trust

    trust(*rows_of(count)).to_html(folder / "report.html")


def _compare(count: int, folder: Path) -> None:
    from langchain_judges.report import compare

    runs, data = rows_of(count)
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
    "resume what is finished": (_judged, _judge),
    "report of trust": (_rows, _trust),
    "report of two judges": (_rows, _compare),
    "results and table on the page": (_files, _view),
    "memory, one batch and 20 more": (_nothing, _memory),
    "audit with a checkpointer": (_nothing, _audit),
}
"""The precondition, and the quantity that is measured."""


def measure(job: str, count: int, many: Path) -> None:
    """Print seconds of CPU and megabytes of one job at one size, in a folder of the size."""
    prepare, work = JOBS[job]
    with tempfile.TemporaryDirectory() as few:
        prepare(8, Path(few))
        work(8, Path(few))  # imports
    prepare(count, many)
    before, began = peak(), time.process_time()
    work(count, many)
    print(json.dumps([time.process_time() - began, peak() - before]))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def delayed(count: int) -> None:
    """Print how long a run takes of which one row in fifty is slow, and what is ideal."""
    from langchain_judges import judge_many, load_judge

    judge = load_judge("relative", Slow(), orders="none")
    list(judge_many(judge, pairs(1), progress=False))
    began = time.monotonic()
    run = judge_many(judge, pairs(count), max_concurrency=PLACES, progress=False)
    assert all(row["judged"] for row in run)
    seconds = time.monotonic() - began
    places = [0.0] * PLACES  # when each is free, where every row starts as soon as one is
    for number in range(count):
        heapq.heapreplace(places, places[0] + (QUICK if number % 50 else SLOW))
    ideal = max(places)
    print(f"\n{count:,} rows, one in fifty slow: {seconds:.1f} s, ideal {ideal:.1f} s")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
        return
    sizes = [int(each) for each in sys.argv[1:]] or SIZES
    print("| job | rows | CPU s | ms a row | growth | MB more |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for job in JOBS:
            last = None
            for count in AUDITS if "audit" in job else sizes:
                many = Path(folder) / str(count)
                many.mkdir(exist_ok=True)
                command = [sys.executable, "-m", "benchmarks.growth", "--one", job]
                command += [str(count), str(many)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                seconds, memory = json.loads(done.stdout.splitlines()[-1])
                each = 1000 * seconds / count
                growth = f"{each / last:.2f}" if last else ""
                last = each
                cells = f"{seconds:.1f} | {each:.2f} | {growth} | {memory:.0f}"
                print(f"| {job} | {count:,} | {cells} |", flush=True)
    delayed(2_000)


if __name__ == "__main__":
    main()
