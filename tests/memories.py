"""A memory of audited examples that lives in this process, and examples for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_judges import FailureMemory


class Letters(Embeddings):
    """A text is how often it has each letter, so that common words make texts near."""

    def embed_query(self, text: str) -> list[float]:
        low = text.casefold()
        return [0.01 + low.count(chr(97 + i)) for i in range(26)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def memory_of(*examples: Mapping[str, Any], **options: Any) -> FailureMemory:
    """A memory of some examples."""
    memory = FailureMemory(embeddings=Letters(), **options)
    memory.remember(examples)
    return memory


def ids_in(memory: FailureMemory) -> list[str]:
    """The ids of a memory's examples, in order."""
    return [example["id"] for example in memory.examples()]


def example(output: str, corrected: Any, **more: Any) -> dict[str, Any]:
    """An audited example of a judge that said the other label."""
    return {
        "family": None,
        "input": "Which way is it?",
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
