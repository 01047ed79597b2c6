"""A memory in a list, with the interface of `FailureMemory` and nothing behind it."""

from __future__ import annotations

import hashlib
import json
from contextvars import ContextVar
from typing import Any

from langchain_judges.memory.recall import Recalled


class ListMemory:
    """Recalls the latest examples of a family, but none of the item's own group."""

    how, budget = "knn:8", None

    def __init__(self, *examples: dict[str, Any]) -> None:
        self.examples: dict[str, dict[str, Any]] = {}
        self.tried: ContextVar[dict[str, Any] | None] = ContextVar("tried", default=None)
        self.asked: list[Any] = []
        self.remember(examples)

    @property
    def version(self) -> str:
        return hashlib.sha256(json.dumps(sorted(self.seen)).encode()).hexdigest()[:8]

    @property
    def seen(self) -> dict[str, Any]:
        return {**self.examples, **(self.tried.get() or {})}

    def __len__(self) -> int:
        return len(self.seen)

    def recall(self, item, how="all", *, allow_leak=False):
        how = str(how)
        self.asked.append(how)
        result = [
            example
            for example in self.seen.values()
            if example["family"] == item.get("family")
            and (allow_leak or not _related(example, item))
        ]
        return Recalled(result if how == "all" else result[: int(how.partition(":")[2] or 0)])

    async def arecall(self, item, how="all", *, allow_leak=False):
        return self.recall(item, how, allow_leak=allow_leak)

    def remember(self, examples):
        by_id = _named(examples)
        self.examples |= by_id
        return list(by_id)

    def trial(self, examples):
        return _Trial(self.tried, _named(examples))

    async def aremember(self, examples):
        return self.remember(examples)

    def forget(self, ids=None):
        forgotten_ids = [own for own in ids if self.examples.pop(own, None)]
        return len(forgotten_ids)

    async def aforget(self, ids=None):
        return self.forget(ids)


class _Trial:
    def __init__(self, tried, examples):
        self.tried, self.examples = tried, examples

    def __enter__(self):
        self.token = self.tried.set(self.examples)

    def __exit__(self, *_):
        self.tried.reset(self.token)

    async def __aenter__(self):
        self.__enter__()

    async def __aexit__(self, *_):
        self.__exit__()


def _named(examples):
    by_id = {}
    for example in examples:
        parts = [example[f] for f in ("family", "input", "output", "expected", "corrected")]
        own = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]
        by_id[own] = {**example, "id": own}
    return by_id


def _related(example, item):
    same_group = example.get("group") is not None and example["group"] == item.get("group")
    return same_group or (example.get("source") and example["source"] == item.get("id"))


def example(output, corrected, **more):
    """Return an audited example of a judge that said the other label."""
    return {
        "family": None,
        "input": "Which path?",
        "output": output,
        "expected": "1, 3",
        "wrong": 1 - corrected,
        "corrected": corrected,
        "mode": None,
        "source": None,
        "group": None,
        "round": 1,
        "auditor": "test",
        "note": "",
        **more,
    }
