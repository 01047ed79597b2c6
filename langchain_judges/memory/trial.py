"""Examples on trial: a judge sees them before they are remembered, and they are not stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.memory.catalogue import Catalogue
from langchain_judges.memory.example_input import check_examples
from langchain_judges.memory.record import Record
from langchain_judges.memory.stored import StoredExamples, now


@dataclass
class TrialState:
    """The content of a memory with the examples on trial."""

    stored: StoredExamples
    records: Sequence[Record]
    catalogue: Catalogue
    base: Catalogue
    """The content without them."""


_TRIAL: ContextVar[TrialState | None] = ContextVar("langchain_judges_trial", default=None)


class Trials:
    """The trials of one memory."""

    def __init__(self, stored: StoredExamples) -> None:
        """Start without a trial."""
        self._stored = stored
        self._latest: TrialState | None = None

    def current(self) -> TrialState | None:
        """Return the trial in this thread or task; None if there is none."""
        trial = _TRIAL.get()
        return trial if trial and trial.stored is self._stored else None

    def catalogue(self) -> Steps[Catalogue]:
        """Return the catalogue, with the examples on trial in this thread or task."""
        trial = self.current()
        return trial.catalogue if trial else (yield from self._stored.catalogue())

    def of(self, examples: Iterable[Mapping[str, object]]) -> Steps[TrialState]:
        """Return a trial of examples: the latest one again where it is of the same."""
        catalogue = yield from self._stored.catalogue()
        _, records = catalogue.records_for(check_examples(examples), now())
        latest = self._latest
        keys = [record.key for record in records]
        same = latest and latest.base is catalogue and [r.key for r in latest.records] == keys
        if latest is None or not same:
            latest = self._latest = TrialState(
                self._stored, records, catalogue.with_changes(records), catalogue
            )
        return latest


@dataclass
class MemoryTrial:
    """A block in which a memory includes some more examples, without storing them.

    It applies to the code that runs in the block, including graphs and their threads and
    tasks, and to nothing else. `with` and `async with` are equivalent.
    """

    steps: Steps[TrialState]
    """The steps that create the trial; they can run once."""
    _token: Token[TrialState | None] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(run(self.steps))

    def __exit__(self, *_: object) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIAL.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIAL.set(await arun(self.steps))

    async def __aexit__(self, *_: object) -> None:
        """End the trial."""
        self.__exit__()
