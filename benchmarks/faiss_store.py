"""What a search in a FaissStore costs beside the same search in bare faiss.

At 1,000, 10,000 and 100,000 vectors of 384 numbers, exact search for the 10 nearest, one
query at a time; the two take turns within one run, and medians are compared. The store
lives in a file, so that its look at it is counted too. Run with
`python -m benchmarks.faiss_store`.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

SIZES = (1_000, 10_000, 100_000)
WIDTH, NEAREST, FAMILIES = 384, 10, 50


class Numbers(Embeddings):
    """Looks the vector of a text, which is a number, up in a table."""

    def __init__(self, count: int) -> None:
        self.table = np.random.default_rng(0).normal(size=(count, WIDTH)).astype("float32")
        self.table /= np.linalg.norm(self.table, axis=1, keepdims=True)

    def embed_documents(self, texts: list[str]) -> Any:
        return self.table[[int(text) for text in texts]]

    def embed_query(self, text: str) -> list[float]:
        return self.table[int(text)].tolist()


class Found(NamedTuple):
    bare: float
    """Milliseconds for a search in bare faiss."""
    ours: float
    filtered: float
    """With a metadata filter that keeps one document in fifty."""
    one_more: float
    """Milliseconds to add and save one more document."""

    @property
    def allowed(self) -> float:
        return 1.3 * self.bare + 0.2


def measure(size: int, folder: str, rounds: int = 200) -> Found:
    import faiss

    from langchain_judges import FaissStore

    numbers = Numbers(size)
    index = faiss.IndexFlatIP(WIDTH)
    index.add(numbers.table)
    store = FaissStore(numbers, path=f"{folder}/m")
    names = [str(i) for i in range(size)]
    store.add_texts(names, [{"family": i % FAMILIES} for i in range(size)], ids=names)
    queries = np.random.default_rng(1).normal(size=(rounds, WIDTH)).astype("float32")
    times: dict[str, list[float]] = {"bare": [], "ours": [], "filtered": [], "one_more": []}
    for n, query in enumerate(queries):
        row, plain = query[None], query.tolist()
        # Each of them finds the other's vectors in the processor's cache once.
        for name in ("bare", "ours") if n % 2 else ("ours", "bare"):
            began = time.thread_time()  # others may take the core in between
            if name == "bare":
                _, slots = index.search(row, NEAREST)
            else:
                hits = store.similarity_search_by_vector(plain, NEAREST)
            times[name].append(time.thread_time() - began)
        assert [hit.id for hit in hits] == [str(slot) for slot in slots[0]]
    for query in queries[: rounds // 4]:
        began = time.thread_time()
        store.similarity_search_by_vector(query.tolist(), NEAREST, filter={"family": 7})
        times["filtered"].append(time.thread_time() - began)
    for i in range(10):
        began = time.perf_counter()
        store.add_texts(["0"], [{"family": 0}], ids=[f"more {i}"])
        times["one_more"].append(time.perf_counter() - began)
    one_more = statistics.median(times.pop("one_more"))
    # Other processes drive vectors out of the caches: the quickest search counts.
    quickest = {name: 1000 * min(samples) for name, samples in times.items()}
    return Found(**quickest, one_more=1000 * one_more)


def main() -> None:
    print(
        f"{WIDTH} numbers a vector, {NEAREST} nearest; ms: medians, for searches minima of "
        f"processor time; {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}.\n"
    )
    print("| vectors | bare faiss | FaissStore | allowed | filtered to 1/50 | save one more |")
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(size, folder)
        print(
            f"| {size:,} | {result.bare:.3f} | {result.ours:.3f} | {result.allowed:.3f} "
            f"| {result.filtered:.3f} | {result.one_more:.2f} |"
        )


if __name__ == "__main__":
    main()
