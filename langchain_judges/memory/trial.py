"""What one thread or task sees of a memory: examples on trial, or how it was at one time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import MappingProxyType

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.memory.example import check_examples
from langchain_judges.memory.stored import StoredExamples, now
from langchain_judges.memory.versions import MemorySnapshot, Record


@dataclass
class TrialState:
    """The content of a memory with the examples on trial."""

    stored: StoredExamples
    records: Sequence[Record]
    snapshot: MemorySnapshot
    base: MemorySnapshot
    """The content without them."""


_TRIALS: ContextVar[Mapping[StoredExamples, TrialState]] = ContextVar(
    "langchain_judges_trials", default=MappingProxyType({})
)
"""The trial of each memory in this thread or task; LangGraph's config reaches a judge, but not
its memory."""


def _with_trial(trial: TrialState) -> Mapping[StoredExamples, TrialState]:
    return {**_TRIALS.get(), trial.stored: trial}


@dataclass(frozen=True)
class HeldMemory:
    """A memory as it was at one time."""

    _state: TrialState

    @property
    def version(self) -> str:
        """The version of the memory then."""
        return self._state.snapshot.version

    def show(self) -> None:
        """Let what this thread or task does from here on see the memory as it was then.

        What was remembered since is not recalled, and what was forgotten since still is.
        """
        _TRIALS.set(_with_trial(self._state))


class Trials:
    """The trials of one memory."""

    def __init__(self, stored: StoredExamples) -> None:
        """Start without a trial."""
        self._stored = stored
        self._latest: TrialState | None = None

    def current(self) -> TrialState | None:
        """Return the trial in this thread or task; None if there is none."""
        return _TRIALS.get().get(self._stored)

    def snapshot(self) -> Steps[MemorySnapshot]:
        """Return the snapshot, with the examples on trial in this thread or task."""
        trial = self.current()
        return trial.snapshot if trial else (yield from self._stored.snapshot())

    def seen(self) -> Steps[tuple[MemorySnapshot, Sequence[Record]]]:
        """Return the snapshot, and those of its records that the store has not."""
        stored = yield from self._stored.snapshot()
        if (trial := self.current()) is None:
            return stored, ()
        if stored is trial.base:
            return trial.snapshot, trial.records
        records = trial.snapshot.records
        return trial.snapshot, [
            each for key, each in records.items() if key not in stored.records
        ]

    def held(self) -> Steps[TrialState]:
        """Return the trial in this thread or task, or one of no example."""
        base = yield from self._stored.snapshot()
        return self.current() or TrialState(self._stored, (), base, base)

    def of(self, examples: Iterable[Mapping[str, object]]) -> Steps[TrialState]:
        """Return a trial of examples: the latest one again where it is of the same."""
        base = yield from self._stored.snapshot()
        _, records = base.records_for(check_examples(examples), now())
        latest = self._latest
        keys = [record.key for record in records]
        same = latest and latest.base is base and [r.key for r in latest.records] == keys
        if latest is None or not same:
            changed = base.with_changes(records)
            latest = self._latest = TrialState(self._stored, records, changed, base)
        return latest


@dataclass
class MemoryTrial:
    """A block in which a memory includes some more examples, without storing them.

    It applies to the code that runs in the block, including graphs and their threads and
    tasks, and to nothing else. `with` and `async with` are equivalent.
    """

    steps: Steps[TrialState]
    """The steps that create the trial; they can run once."""
    _token: Token[Mapping[StoredExamples, TrialState]] | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIALS.set(_with_trial(run(self.steps)))

    def __exit__(self, *_: object) -> None:
        """End the trial."""
        if self._token is not None:
            _TRIALS.reset(self._token)

    async def __aenter__(self) -> None:
        """Begin the trial."""
        self._token = _TRIALS.set(_with_trial(await arun(self.steps)))

    async def __aexit__(self, *_: object) -> None:
        """End the trial."""
        self.__exit__()
