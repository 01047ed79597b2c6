"""The examples that one kind of item may be shown, in the orders in which they are drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from langchain_judges.memory.example import Example

Allowed = Callable[[Example], bool]


@dataclass
class Pool:
    """Some examples of a memory, in the order in which they were remembered."""

    examples: list[Example]
    _ranked: dict[int, list[Example]] = field(default_factory=dict)
    _grouped: dict[int, list[list[Example]]] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each example, by its id."""
        return {example["id"]: place for place, example in enumerate(self.examples)}

    def ranked(self, seed: int) -> list[Example]:
        """Return the examples in an order by chance."""
        if seed not in self._ranked:
            self._ranked[seed] = drawn(self.examples, seed)
        return self._ranked[seed]

    def uniform(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return the first `m` allowed examples by chance, in the order of the pool."""
        return self.in_order(_first(m, filter(allowed, self.ranked(seed))))

    def balanced(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return `m` allowed examples by chance whose corrected labels take turns."""
        turns = [filter(allowed, group) for group in self.grouped(seed)]
        return self.in_order(_first(m, _by_turns(turns)))

    def grouped(self, seed: int) -> list[list[Example]]:
        """Return the examples of each corrected label, in an order by chance."""
        if seed not in self._grouped:
            groups: dict[str, list[Example]] = {}
            for example in self.ranked(seed):
                groups.setdefault(json.dumps(example["corrected"]), []).append(example)
            self._grouped[seed] = [group for _, group in sorted(groups.items())]
        return self._grouped[seed]

    def without(self, ids: Iterable[str]) -> Sequence[Example]:
        """Return all examples but those of some ids."""
        gone = sorted(self.places[id] for id in set(ids) if id in self.places)
        if not gone:
            return self.examples
        parts = [
            self.examples[a + 1 : b] for a, b in zip([-1, *gone], [*gone, None], strict=True)
        ]
        return [example for part in parts for example in part]

    def in_order(self, examples: Iterable[Example]) -> list[Example]:
        """Return examples of the pool in its order."""
        return sorted(examples, key=lambda example: self.places[example["id"]])


def drawn(examples: Iterable[Example], seed: int) -> list[Example]:
    """Return examples in an order by chance that does not depend on which others there are."""

    def rank(example: Example) -> str:
        return hashlib.sha256(f"{seed}:{example['id']}".encode()).hexdigest()

    return sorted(examples, key=rank)


def _by_turns(turns: Sequence[Iterator[Example]]) -> Iterator[Example]:
    """Yield one example of each, as long as any has one."""
    while turns:
        nexts = [(turn, next(turn, None)) for turn in turns]
        yield from (example for _, example in nexts if example is not None)
        turns = [turn for turn, example in nexts if example is not None]


def _first(m: int, examples: Iterator[Example]) -> Iterator[Example]:
    """Yield so many, and look at no more."""
    for _ in range(m):
        example = next(examples, None)
        if example is None:
            return
        yield example
