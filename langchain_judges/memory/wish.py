"""One recall: for which item, by which choice, from which examples, and which were barred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_judges.memory.catalogue import Catalogue, Record, is_in
from langchain_judges.memory.example import Example, query_of, texts_of
from langchain_judges.memory.guard import Guard
from langchain_judges.memory.recall import Recall


@dataclass
class Wish:
    """One recall: the item, the choice, the candidates, and the examples that were barred."""

    item: Mapping[str, Any]
    how: Recall
    """The choice without `leave_out`."""
    catalogue: Catalogue
    extra: Sequence[Record]
    """Records on trial: they are in `catalogue` and not in the store."""
    guard: Guard
    allow_leak: bool
    family: str | None
    outputs: int
    left_out: tuple[str, ...]
    barred: dict[str, None]
    """Ids of candidates that were barred."""

    @classmethod
    def of(
        cls,
        item: Mapping[str, object],
        choice: Recall,
        catalogue: Catalogue,
        *,
        extra: Sequence[Record],
        allow_leak: bool,
    ) -> Wish:
        """Return the wish for an item, by a choice from a catalogue."""
        query = query_of(item)
        return cls(
            item=query,
            how=choice.inner,
            catalogue=catalogue,
            extra=extra,
            guard=Guard(query),
            allow_leak=allow_leak,
            family=None if choice.any_family else query.get("family"),
            outputs=len(texts_of(query).outputs),
            left_out=choice.left_out,
            barred={},
        )

    def allows(self, example: Example) -> bool:
        """Return whether an example may be shown; record it in `barred` if not."""
        if self.allow_leak or not self.guard.bars(example):
            return True
        self.barred[example["id"]] = None
        return False

    def fits(self, example: Example) -> bool:
        """Return whether an example is a candidate."""
        return is_in(example, self.family, self.outputs, self.left_out)
