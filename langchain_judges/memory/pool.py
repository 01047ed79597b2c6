"""The examples that one kind of item may recall, and random choices from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from langchain_judges.memory.example import Example

Allowed = Callable[[Example], bool]


@dataclass
class Pool:
    """Some examples of a memory, in the order in which they were remembered."""

    examples: list[Example]
    _orders: dict[int, list[Example]] = field(default_factory=dict)
    _by_label: dict[int, list[list[Example]]] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each example, by its id."""
        return {example["id"]: place for place, example in enumerate(self.examples)}

    def shuffle(self, seed: int) -> list[Example]:
        """Return the examples in random order."""
        if seed not in self._orders:
            self._orders[seed] = shuffled(self.examples, seed)
        return self._orders[seed]

    def uniform(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return `m` random allowed examples, in the order of the pool."""
        return self.in_order(islice(filter(allowed, self.shuffle(seed)), m))

    def balanced(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return `m` random allowed examples, balanced by corrected label."""
        turns = [filter(allowed, group) for group in self.by_label(seed)]
        return self.in_order(islice(_by_turns(turns), m))

    def by_label(self, seed: int) -> list[list[Example]]:
        """Return the examples of each corrected label, in random order."""
        if seed not in self._by_label:
            groups: dict[str, list[Example]] = {}
            for example in self.shuffle(seed):
                groups.setdefault(json.dumps(example["corrected"]), []).append(example)
            self._by_label[seed] = [group for _, group in sorted(groups.items())]
        return self._by_label[seed]

    def without(self, ids: Iterable[str]) -> Sequence[Example]:
        """Return all examples except those with some ids."""
        places = sorted(self.places[id] for id in set(ids) if id in self.places)
        if not places:
            return self.examples
        parts = [
            self.examples[a + 1 : b]
            for a, b in zip([-1, *places], [*places, None], strict=True)
        ]
        return [example for part in parts for example in part]

    def in_order(self, examples: Iterable[Example]) -> list[Example]:
        """Return examples of the pool in its order."""
        return sorted(examples, key=lambda example: self.places[example["id"]])


def shuffled(examples: Iterable[Example], seed: int) -> list[Example]:
    """Return examples in a random order that does not depend on the other examples."""

    def rank(example: Example) -> str:
        return hashlib.sha256(f"{seed}:{example['id']}".encode()).hexdigest()

    return sorted(examples, key=rank)


def _by_turns(turns: Sequence[Iterator[Example]]) -> Iterator[Example]:
    """Yield one example of each iterator in turn, until all are exhausted."""
    while turns:
        nexts = [(turn, next(turn, None)) for turn in turns]
        yield from (example for _, example in nexts if example is not None)
        turns = [turn for turn, example in nexts if example is not None]
