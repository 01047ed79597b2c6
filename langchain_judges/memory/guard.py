"""The guard against leaks: no example may show a judge the item that it judges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_judges.memory.example import Example, texts_of
from langchain_judges.rows.texts import group_by_task

ALIKE = 0.9
"""Lowest share of common word triples at which two texts count as the same."""


class Guard:
    """Decides which examples would show a judge the item that it judges."""

    def __init__(
        self, item: Mapping[str, Any], is_standing: Callable[[Example], bool] = lambda _: False
    ) -> None:
        """Create the guard of an item, as `query_of` returns it.

        Args:
            item: The item.
            is_standing: Whether the task of an example is a standing question, which says
                nothing of the item.
        """
        self.id, self.group = item.get("id"), item.get("group")
        # Its task already contains the source.
        self.task = group_by_task(item["input"]) if item.get("input") is not None else None
        self.texts, self._is_standing = texts_of(item), is_standing

    def bars(self, example: Example) -> bool:
        """Return whether an example is the item or nearly so, or of its group or task."""
        if self.id is not None and self.id in (str(example["source"]), example["id"]):
            return True
        group = str(example["group"])
        if (self.group is not None and self.group == group) or self.task == group:
            return True
        same_task = self.task is not None and self.task == group_by_task(example["input"])
        if same_task and not self._is_standing(example):
            return True
        other, own = texts_of(example), self.texts
        if len(own.outputs) != len(other.outputs) or not same(own.task, other.task):
            return False
        swapped = other.outputs[::-1]
        return _all_same(own.outputs, other.outputs) or _all_same(own.outputs, swapped)


def _all_same(these: Sequence[str], those: Sequence[str]) -> bool:
    return all(same(a, b) for a, b in zip(these, those, strict=True))


def same(a: str, b: str) -> bool:
    """Return whether two texts are equal but for case, spaces, punctuation or a few words."""
    if a == b:
        return True
    (words_a, triples_a), (words_b, triples_b) = _print(a), _print(b)
    if words_a == words_b:
        # Texts without words cannot be compared by words.
        return bool(words_a)
    few, many = sorted((len(triples_a), len(triples_b)))
    if few < ALIKE * many or not few:
        return False
    common = len(triples_a & triples_b)
    return common >= ALIKE * (few + many - common)


@lru_cache(maxsize=8192)
def _print(text: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return words, frozenset(zip(words, words[1:], words[2:], strict=False))
