"""One recall: for which item, by which choice, from which examples, and which were barred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_judges.memory.catalogue import Catalogue, is_in
from langchain_judges.memory.example import Example, query_of, texts_of
from langchain_judges.memory.guard import Guard
from langchain_judges.memory.recall import Recall
from langchain_judges.memory.record import Record


class Wish:
    """One recall: the item, the choice, the candidates, and the examples that were barred.

    Args:
        item: The item, a pair or an example.
        choice: The choice of examples.
        catalogue: What it chooses from.
        extra: Records on trial: they are in `catalogue` and not in the store.
        allow_leak: Allow the item itself and its group.
    """

    def __init__(
        self,
        item: Mapping[str, object],
        choice: Recall,
        catalogue: Catalogue,
        *,
        extra: Sequence[Record],
        allow_leak: bool,
    ) -> None:
        """Read the item."""
        self.item = query_of(item)
        self.how = choice.inner
        """The choice without `leave_out`."""
        self.catalogue, self.extra, self.allow_leak = catalogue, extra, allow_leak
        self.guard = Guard(self.item)
        self.family: str | None = None if choice.any_family else self.item.get("family")
        self.outputs = len(texts_of(self.item).outputs)
        self.left_out = choice.left_out
        self.barred: dict[str, None] = {}
        """Ids of candidates that were barred."""

    def allows(self, example: Example) -> bool:
        """Return whether an example may be shown; record it in `barred` if not."""
        if self.allow_leak or not self.guard.bars(example):
            return True
        self.barred[example["id"]] = None
        return False

    def fits(self, example: Example) -> bool:
        """Return whether an example is a candidate."""
        return is_in(example, self.family, self.outputs, self.left_out)
