"""Examples on trial: a judge sees them before they are remembered, and they are not stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.memory.catalogue import Catalogue, Record

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory


@dataclass
class TrialState:
    """The content of a memory with the examples on trial."""

    memory: FailureMemory
    records: Sequence[Record]
    catalogue: Catalogue
    base: Catalogue
    """The content without them."""


_TRIAL: ContextVar[TrialState | None] = ContextVar("langchain_judges_trial", default=None)


def trial_in(memory: FailureMemory) -> TrialState | None:
    """Return the trial of a memory in this thread or task; None if there is none."""
    trial = _TRIAL.get()
    return trial if trial and trial.memory is memory else None


@dataclass
class MemoryTrial:
    """A block in which a memory reads as if it held some more examples.

    It applies to the code that runs in the block, including graphs and their threads and
    tasks, and to nothing else. `with` and `async with` are equivalent.
    """

    steps: Steps[TrialState]
    """The steps that create the trial; they can run once."""
    _token: Token[TrialState | None] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(run(self.steps))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIAL.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(await arun(self.steps))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the trial."""
        self.__exit__(kind, error, trace)
