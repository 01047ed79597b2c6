"""Examples that are tried before they are remembered: seen by a judge, and stored nowhere."""

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
class Tried:
    """What a memory would hold with the examples on trial."""

    memory: FailureMemory
    records: Sequence[Record]
    catalogue: Catalogue
    base: Catalogue
    """What it holds without them."""


_TRIED: ContextVar[Tried | None] = ContextVar("langchain_judges_tried", default=None)


def tried_in(memory: FailureMemory) -> Tried | None:
    """Return what is on trial in a memory, in this thread or task; None: nothing is."""
    tried = _TRIED.get()
    return tried if tried and tried.memory is memory else None


@dataclass
class Trial:
    """A block in which a memory reads as if it held some examples more.

    It counts for what runs in the block, graphs and their threads and tasks included, and for
    nothing else; `with` and `async with` do the same.
    """

    steps: Steps[Tried]
    """Make the trial; they can be taken once."""
    _token: Token[Tried | None] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIED.set(run(self.steps))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIED.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIED.set(await arun(self.steps))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the trial."""
        self.__exit__(kind, error, trace)
