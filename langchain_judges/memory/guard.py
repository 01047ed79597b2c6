"""The guard against leaks: no example shows a judge the very item that it is to judge."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_judges.memory.example import Example, Texts, texts_of
from langchain_judges.rows.texts import group_by_task

ALIKE = 0.9
"""Share of common word triples from which on two texts count as the same."""


class Guard:
    """Knows which examples would show a judge the very item it is to judge."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        """Remember the item, as `asked_of` returns it."""
        self.id, self.group = item.get("id"), item.get("group")
        if self.group is None and item.get("input") is not None:
            # Its task holds the source already.
            self.group = group_by_task(item["input"])
        self.texts = texts_of(item)

    def bars(self, example: Example) -> bool:
        """Say whether an example is the item, nearly the item, or of its group."""
        if self.id is not None and self.id in (str(example["source"]), example["id"]):
            return True
        if self.group is not None and self.group == str(example["group"]):
            return True
        theirs, mine = texts_of(example), self.texts
        if len(mine.outputs) != len(theirs.outputs) or not same(mine.task, theirs.task):
            return False
        turned = theirs.outputs[::-1]
        return _all_same(mine.outputs, theirs.outputs) or _all_same(mine.outputs, turned)


class Relatives:
    """Finds the few examples that a guard may bar, without a look at each.

    An example that was replaced or forgotten stays in it: what it names is to be checked.
    """

    def __init__(self) -> None:
        """Begin without examples."""
        self._keys: dict[Hashable, list[str]] = {}
        self._covered: set[str] = set()

    def cover(self, examples: Iterable[tuple[str, Example]]) -> None:
        """Take examples in, each with a key; those whose key is known are passed over."""
        for key, example in examples:
            if key in self._covered:
                continue
            for sign in _signs_of(example):
                self._keys.setdefault(sign, []).append(key)
            self._covered.add(key)

    def near(self, guard: Guard) -> set[str]:
        """Return the keys of every example that a guard bars, and of some others."""
        signs: list[Hashable] = [("id", guard.id), ("group", guard.group)]
        # One output is enough: an example in the other order has it too.
        signs += [sign for text in guard.texts.outputs[:1] for sign in _signs(text)]
        return {key for sign in signs for key in self._keys.get(sign, ())}


def _signs_of(example: Example) -> Iterator[Hashable]:
    yield ("id", example["id"])
    yield ("id", str(example["source"]))
    yield ("group", str(example["group"]))
    texts: Texts = texts_of(example)
    yield from {sign for text in texts.outputs for sign in _signs(text)}


def _signs(text: str) -> set[Hashable]:
    """Return marks of a text of which any other text that is the `same` has one too.

    Two sets of which each holds nine tenths of the other must share an element among the
    first tenth (and one more) of each, in any order that is common to both.
    """
    words, triples = _print(text)
    if not words:
        return {("text", text)}
    signs: set[Hashable] = {("words", hash(words))}
    first = len(triples) - math.ceil(ALIKE * len(triples) - 1e-9) + 1
    signs.update(sorted(map(hash, triples))[:first] if triples else ())
    return signs


def _all_same(these: Sequence[str], those: Sequence[str]) -> bool:
    return all(same(a, b) for a, b in zip(these, those, strict=True))


def same(a: str, b: str) -> bool:
    """Say whether two texts are the same but for case, spaces, punctuation or a few words."""
    if a == b:
        return True
    (words_a, triples_a), (words_b, triples_b) = _print(a), _print(b)
    if words_a == words_b:
        # Texts of signs alone have no words to compare.
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
