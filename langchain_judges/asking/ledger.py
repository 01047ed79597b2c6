"""What one pair of a run costs, reply by reply, and how that reaches its gate and its trace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.runnables.config import ensure_config

from langchain_judges.asking.gate import Gate
from langchain_judges.asking.paid import Paid
from langchain_judges.verdict import Usage, add_usage, no_usage

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.language_models import BaseChatModel


class Replies(Protocol):
    """Where the replies to one row stand until it is judged."""

    def take(self, call: str) -> Any:
        """Return a reply that an earlier run paid for, by the key of its call, or None."""

    def keep(self, call: str, reply: Any) -> None:
        """Write a reply down."""


@dataclass
class Ledger:
    """What one pair of a run has cost so far; kept even if its graph is stopped midway."""

    gate: Gate
    rank: int
    end_run: Callable[[Exception], None] | None = None
    """Ends the whole run for an error that no other call can escape."""
    run_id: UUID | None = None
    """Of the row's run in traces, where its cost is noted."""
    replies: Replies | None = None
    """Where its replies are written down; None where its graph's journal has them."""
    usage: Usage = field(default_factory=no_usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _dollars: float = 0.0
    _priced: bool = True

    @property
    def cost(self) -> float | None:
        """Dollars for all of its replies; None where the price of one is not known."""
        return self._dollars if self._priced else None

    def leave(self, model: BaseChatModel, paid: Paid | None) -> None:
        """Give a place back after a call; None: no reply came."""
        if paid is None:
            self.gate.leave()
            return
        cost = self.gate.price(model, paid)
        with self._lock:
            self._dollars += cost or 0.0
            self._priced = self._priced and cost is not None
        _note_cost(self.run_id, self.cost)
        live = (model.metadata or {}).get("batch") and paid.tier != "batch"
        self.gate.leave(calls=1, tokens=paid.tokens, cost=cost, unwritten=1, live=bool(live))

    def book(self, usage: Usage) -> None:
        """Add what a question cost."""
        with self._lock:
            self.usage = add_usage([self.usage, usage])


LEDGER: ContextVar[Ledger | None] = ContextVar("langchain_judges_ledger", default=None)
"""The ledger of the pair being judged; None outside `judge_many`."""


def _note_cost(run_id: UUID | None, dollars: float | None) -> None:
    """Write dollars into the metadata of a run that is being traced, as `cost`.

    Called below the run, after each reply: metadata go to LangSmith when the run has ended.

    Args:
        run_id: Of the run; None: it is not traced under a name of ours.
        dollars: None: the price of a reply is not known.
    """
    if run_id is None:
        return
    for tracer in getattr(ensure_config().get("callbacks"), "handlers", ()):
        runs: Any = getattr(tracer, "run_map", None) or {}
        if add := getattr(runs.get(str(run_id)), "add_metadata", None):
            add({"cost": dollars})
