"""A verdict beside what is known of its row: texts, labels, votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_judges.metrics import majority_vote
from langchain_judges.orders import Order, OrderRule, combine, orders_of
from langchain_judges.rows.texts import judged
from langchain_judges.verdict import Label, Preference, decision

_POINTS: Mapping[object, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}

VerdictRow = Mapping[str, Any]
"""A row of a run: its verdict, and the method's own results under names of its own."""


@dataclass(frozen=True)
class JudgedRow:
    """A row of a run, and the row of the data that it judged."""

    row: VerdictRow
    data_row: Mapping[str, Any]
    """The data's row, or what the run kept of it."""
    place: Any
    """What the same row has in another run: its place in the data, or its id."""

    @property
    def verdict(self) -> VerdictRow:
        """What the judge said."""
        return self.row.get("verdict") or {}

    @property
    def answer(self) -> Label | None:
        """The preferred text or the label; None: not judged."""
        answer: Label | None = decision(self.verdict)
        return answer

    @cached_property
    def votes(self) -> list[Label]:
        """What each person said."""
        votes = self.data_row.get("human_votes") or []
        return [vote for vote in votes if vote is not None] if isinstance(votes, list) else []

    @cached_property
    def label(self) -> Label | None:
        """What people say: the row's label, else the majority of their votes."""
        label = self.data_row.get("label")
        return majority_vote(self.votes) if label is None else label

    @cached_property
    def target(self) -> list[Label]:
        """What the judge is compared with: each vote, or else the label."""
        return self.votes or ([] if self.label is None else [self.label])

    @property
    def by_criterion(self) -> dict[str, Label | None]:
        """What the judge said by each criterion of a text."""
        parts = self.row.get("subscores") or []
        return {part["criterion"]: part["label"] for part in parts if "criterion" in part}

    @property
    def labels(self) -> Mapping[str, Label]:
        """What people say by each criterion of a text."""
        return self.data_row.get("labels") or {}

    @property
    def category(self) -> str | None:
        """The kind of task."""
        category = self.data_row.get("category", self.data_row.get("family"))
        return None if category is None else str(category)

    def text(self, name: str) -> str | None:
        """Return the text that was judged under a field; None where it is not known."""
        text = self.data_row.get(name)
        return judged(text) if text else None

    @cached_property
    def both_texts(self) -> tuple[str, str] | None:
        """The two texts of a pair; None if one of them is not known."""
        a, b = self.text("output_a"), self.text("output_b")
        return None if a is None or b is None else (a, b)

    @cached_property
    def _preferences(self) -> dict[Order, Any]:
        """The preference in each order that was asked, by identity."""
        if by_order := self.row.get("by_order"):
            return {order: (each or {}).get("preference") for order, each in by_order.items()}
        votes: dict[Order, list[Preference | None]] = {}
        for ballot in self.row.get("ballots") or self.row.get("choices") or []:
            votes.setdefault(ballot.get("order"), []).append(ballot.get("preference"))
        return {order: majority_vote(own) for order, own in votes.items()}

    def in_order(self, order: Order) -> Preference | None:
        """Return what the judge said in one order, by identity; None: nothing, or unknown."""
        return self._preferences.get(order)

    @property
    def has_orders(self) -> bool:
        """Whether both orders were asked and the preference in each is known."""
        return {"AB", "BA"} <= self._preferences.keys()

    def by_rule(self, rule: OrderRule) -> JudgedRow:
        """Return the row with its two orders combined by another rule, where both are known.

        An order that failed leaves the row not judged; `none` takes the order with A first.
        """
        if not self.has_orders:
            return self
        answers = [self.in_order(order) for order in orders_of(rule)]
        preferences = [answer for answer in answers if answer is not None]
        complete = len(preferences) == len(answers)
        preference = combine(rule, preferences) if complete else None
        # Score and confidence are of the judge's own rule.
        changes = {"preference": preference, "score": None, "confidence": None}
        row = {**self.row, "verdict": {**self.verdict, **changes}}
        return JudgedRow(row, self.data_row, self.place)


def preference_points(answers: Sequence[object]) -> float | None:
    """Return how far answers prefer A, in [0, 1]; None if there are none or no sides."""
    if not answers or any(answer not in _POINTS for answer in answers):
        return None
    return sum(_POINTS[answer] for answer in answers) / len(answers)
