"""Cost and failures of one judgment, booked as it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

from langchain_judges.asking.limiter import RowInRun
from langchain_judges.verdict import Failure, FailureReason, Usage, add_usage

# Where LangGraph's `configurable` holds the run that a judgment belongs to. Graphs within a
# graph inherit it; by its underscores it is neither checkpointed nor traced.
_RUN = "__langchain_judges_run"


class Booked(TypedDict):
    """The part of a verdict that its account knows."""

    failures: list[Failure]
    usage: Usage


@dataclass
class Booking:
    """Failures and cost of one question.

    Attributes:
        usage: None: nothing was asked.
    """

    failures: list[Failure] = field(default_factory=list)
    usage: Usage | None = None


@dataclass
class Account:
    """The account of a row: every question and failure of its judgment, in order.

    Attributes:
        row: The state of the graph, where images and files of the judged texts are found.
        run: What bounds the calls and keeps the replies of the row; None outside a run.
    """

    row: Mapping[str, Any] = field(default_factory=dict)
    run: RowInRun | None = None
    bookings: list[Booking | Account] = field(default_factory=list)

    def open(self) -> Booking:
        """A place for a question that is about to be asked."""
        booking = Booking()
        self.bookings.append(booking)
        return booking

    def part(self) -> Account:
        """The account of one of several steps at once; parts are told as they were opened."""
        part = Account(self.row, self.run)
        self.bookings.append(part)
        return part

    def fail(self, failures: Sequence[Failure]) -> None:
        """Book failures apart from the questions.

        Raises:
            TypeError: One is no `Failure`.
        """
        for each in failures:
            fields = each if isinstance(each, Mapping) else {}
            reasons = get_args(FailureReason)
            if set(fields) != set(Failure.__annotations__) or fields["reason"] not in reasons:
                raise TypeError(
                    "`account.fail` takes a list of `langchain_judges.Failure(step=, unit=, "
                    f"reason=, detail=)`, the reason one of {reasons!r}; got {each!r}"
                )
        self.open().failures.extend(failures)

    @property
    def booked(self) -> Booked:
        """Failures and usage so far, in the form of a verdict."""
        return {"failures": self.failures, "usage": self.usage}

    @property
    def failures(self) -> list[Failure]:
        """Everything that went wrong so far, in the order in which it was asked."""
        return [failure for booking in self.bookings for failure in booking.failures]

    @property
    def usage(self) -> Usage:
        """Cost so far."""
        return add_usage([each.usage for each in self.bookings if each.usage])


def run_of(config: Mapping[str, Any] | None) -> RowInRun | None:
    """The run that a judgment belongs to, by its configuration."""
    run: RowInRun | None = ((config or {}).get("configurable") or {}).get(_RUN)
    return run


def within_run(config: RunnableConfig | None, run: RowInRun) -> RunnableConfig:
    """A configuration whose judgments belong to a run."""
    settings = {**((config or {}).get("configurable") or {}), _RUN: run}
    return {**(config or {}), "configurable": settings}
