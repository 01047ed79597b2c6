"""What a large FailureMemory costs: one example more or less, and one recall.

Opening a memory of 50,000 in a file, remembering and forgetting one example, in milliseconds
of processor time; recalling for one item from 100,000, as a multiple of a search in bare faiss
for the same number of vectors. The embedder looks vectors up, so that it costs nothing. Run
with `python -m benchmarks.failure_memory`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

WIDTH, FAMILIES = 384, 50
CHOICES = ("near:8", "knn:8", "uniform:8")


class Looked(Embeddings):
    """The vector of a text is drawn from a table by its checksum."""

    def __init__(self) -> None:
        self.table = np.random.default_rng(0).normal(size=(4096, WIDTH)).astype("float32")

    def embed_documents(self, texts: list[str]) -> Any:
        sums = [zlib.crc32(text.encode()) for text in texts]
        # Two rows make a vector, so that hardly two texts share one.
        return [self.table[s % 4096] + self.table[s // 4096 % 4096] for s in sums]

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0].tolist()


def example(n: int) -> dict[str, Any]:
    words = " ".join(f"word{(n * 7919 + i * i) % 5003}" for i in range(12))
    return {
        "family": "one",
        "input": f"Question {n} about {words}?",
        "output": f"Answer {n} says {words} and {n + 1}.",
        "expected": str(n),
        "wrong": 1 - n % 2,
        "corrected": n % 2,
        "mode": n % 5,
        "source": f"item {n}",
        "group": f"group {n}",
        "round": 1,
        "auditor": "Ann",
    }


def timed(work: Callable[[], Any], times: int) -> float:
    """The median of the milliseconds of processor time that something takes."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        work()
        seconds.append(1000 * (time.process_time() - began))
    return statistics.median(seconds)


def filled(count: int, folder: str | None) -> Any:
    from langchain_judges import FailureMemory

    memory = FailureMemory(embeddings=Looked(), path=folder and f"{folder}/m")
    memory.remember([example(n) for n in range(count)])
    return memory


def changes(count: int, times: int) -> dict[str, float]:
    """The milliseconds that opening, one example more and one less take."""
    from langchain_judges import FailureMemory

    with tempfile.TemporaryDirectory() as folder:
        filled(count, folder)

        def opened() -> str:
            return FailureMemory(embeddings=Looked(), path=f"{folder}/m").version

        opening = timed(opened, 3)
        memory = FailureMemory(embeddings=Looked(), path=f"{folder}/m")
        memory.remember([example(count)])
        numbers = iter(range(count + 1, 2 * count))
        more = timed(lambda: memory.remember([example(next(numbers))]), times)
        examples = memory.examples()[count // 2 :][:times]
        less = timed(lambda: memory.forget(examples.pop()["id"]), times)
    return {"open": opening, "remember one": more, "forget one": less}


def recalls(count: int, times: int) -> dict[str, float]:
    """Time of each choice, as a multiple of a bare search, turn by turn."""
    import faiss

    memory = filled(count, None)
    index = faiss.IndexFlatIP(WIDTH)
    vectors = memory.embeddings.embed_documents([str(n) for n in range(count)])
    index.add(np.array(vectors, np.float32))
    del vectors
    query = np.array([memory.embeddings.embed_query("query")], np.float32)
    item = {**example(count), "id": "asked", "output": "Something else altogether is said."}
    ratios = {}
    for how in CHOICES:
        memory.recall(item, how)
        own, bare = [], []
        for _ in range(times):
            bare.append(timed(lambda: index.search(query, 8), 1))
            own.append(timed(lambda how=how: memory.recall(item, how), 1))  # type: ignore[misc]
        ratios[how] = statistics.median(own) / statistics.median(bare)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs=2, default=(50_000, 100_000))
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    small, large = options.sizes
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.")
    for name, value in changes(small, options.times).items():
        print(f"{name}, in {small:,}: {value:.2f} ms")
    for name, value in recalls(large, options.times).items():
        print(f"recall {name}, from {large:,}: {value:.2f} x a bare search")


if __name__ == "__main__":
    main()
