"""What the steps of DRPE share: the task, the article, the orders, and what coins hang on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_judges.methods.drpe.options import DRPE
from langchain_judges.methods.pairs import PairSteps
from langchain_judges.methods.second_order import side_by_coin
from langchain_judges.methods.tasks import Task, settle
from langchain_judges.orders import Order
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Pair

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where an article may not fit."""
_RESERVE = 1500
"""Tokens kept free for instructions, roles and the reply."""
_LEAST = 500
"""Characters of an article that are always shown."""


@dataclass(frozen=True)
class DRPESteps(PairSteps):
    """What the steps of the method share."""

    options: DRPE

    @property
    def noun(self) -> str:
        """What a prompt calls a judged text."""
        return "candidate"

    def task(self, pair: Pair) -> tuple[str, Task]:
        """Return what a pair is about, and its name."""
        return settle(self.options.task, pair)

    def article(self, pair: Pair) -> str:
        """Return the article, cut alike for every prompt if a model's context is too short."""
        return _within(pair, [c.context for c in self.context.adapters.values()])

    def orders(self, pair: Pair) -> tuple[Order, ...]:
        """Return the orders to ask; where it is one, a coin may choose it."""
        options = self.options
        if options.orders != "none" or options.poll.first == "reference":
            return options.order_list
        return ("AB",) if side_by_coin(pair, f"{options.seed}:") == "A" else ("BA",)

    def chance(self, pair: Pair) -> str:
        """Return what coins hang on: the judge's seed and the pair, whichever text is A."""
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        return f"{self.options.seed}:{sorted([a, b])}:{transcript(pair['input'])}"


def _within(pair: Pair, contexts: Sequence[int | None]) -> str:
    """Return the article of a pair as far as it fits the shortest context.

    Args:
        pair: Its texts, the roles and the reply must fit too.
        contexts: Tokens that each model takes, where known.
    """
    article = transcript(pair["input"])
    tokens = [context for context in contexts if context]
    if not tokens:
        return article
    others = len(judged(pair["output_a"]) + judged(pair["output_b"]))
    others += len(pair.get("reference") or "")
    room = _CHARACTERS * (min(tokens) - _RESERVE) - others
    return article[: max(room, _LEAST)]
