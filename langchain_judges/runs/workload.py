"""The work of one run: which row is next, how it is judged, and what becomes of its result.

Threads and event loops share it; `many.py` holds the two loops around it.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import uuid4

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_judges.asking.ledger import LEDGER, Ledger
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError, OverBudget, RunStopped
from langchain_judges.methods.marks import memory_of, unwrapped
from langchain_judges.runs.budget import RowBudget, gate_of, prices_of
from langchain_judges.runs.files.place import Place
from langchain_judges.runs.files.reply_journal import ReplyJournal
from langchain_judges.runs.files.results import Results
from langchain_judges.runs.files.shards import Receipt, Shard
from langchain_judges.runs.first_rows import FirstRows
from langchain_judges.runs.in_flight import BUSY, OpenMemory, kilobytes_of, places_of
from langchain_judges.runs.judge_mark import check_identity, marks_of, name_of
from langchain_judges.runs.long_rows import warn_if_long
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.result_row import ResultRow, judged_row, outcome_of
from langchain_judges.runs.row_reader import RowReader
from langchain_judges.runs.run_row import (
    RunRow,
    ends_the_run,
    failed_outcome,
    labels_of,
    outcome_of_error,
    over_budget,
    result_row,
)
from langchain_judges.runs.summary import Summary
from langchain_judges.runs.window import Window

Judge = Runnable[Any, Any]
Rows = Iterable[Mapping[str, Any]]


class Workload:
    """The state that a run in threads and a run in an event loop share."""

    def __init__(self, judge: Judge, rows: Rows, options: RunOptions) -> None:
        """Check the judge; nothing is opened before the first row is requested."""
        _check(judge, rows)
        self.judge = judge
        self.options = options
        self.config: RunnableConfig = options.config or {}
        self.places = options.max_concurrency or places_of(judge)
        self.open_rows = options.open_rows or BUSY * self.places
        prices = prices_of(options)
        self.gate = gate_of(options, self.places, prices)
        self.results: Results | None = None
        self.fatal: BaseException | None = None
        self.when_stopped: Callable[[], object] | None = None
        self._shard = Shard.parse(options.shard) if options.shard is not None else None
        if self._shard and options.out is None:
            raise OptionError("`shard` needs `out`, the folder of the parts")
        self._place = None if options.out is None else Place(options.out, self._shard)
        marks, self.calls_each = marks_of(judge)
        if options.out is not None:
            check_identity(judge, marks)
        marks.setdefault("method", judge.get_name())
        self.name = name_of(marks)
        rows_each = self._shard.of if self._shard else 1
        self.summary = Summary(
            total=operator.length_hint(rows, 0) // rows_each or None,
            prices=prices.source if prices else None,
        )
        self._graph: Any = unwrapped(judge)
        self._reader = RowReader(
            *(rows, marks, self._shard),
            remembers=memory_of(judge) is not None,
            numbers_repeats=options.out is not None or self._keeps_threads,
        )
        self._budget = RowBudget(self.gate, self.summary, self.calls_each)
        self._memory = OpenMemory(options.open_mb)
        self._replies: ReplyJournal | None = None
        self._next: RunRow | None = None
        self._active: dict[int, Ledger] = {}
        self._first_rows = FirstRows()
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def open(self) -> None:
        """Open the results, and find what earlier runs have finished."""
        if self._place is not None:
            keep_failed = self.options.keep_failed
            self.results = self._place.open(self.name["mark"], keep_failed=keep_failed)
            if self.results.path.is_file():  # a device has no place beside it
                self._replies = ReplyJournal(self.results)
        self.summary.others = self.results.others if self.results else 0

    def take(self) -> RunRow | None:
        """Return the next row to judge; None if there is none that the budget allows yet."""
        if self.fatal or self.gate.closed:
            return None
        self._next = self._next or self._reader.next()
        if self._next is None:
            return None
        if self._next.problem:
            work, self._next = self._next, None
            return work
        if not self._stored(self._next):
            if not self._memory.has_room(self._kilobytes(self._next)):
                return None
            if not self._budget.allows(list(self._active.values())):
                if self._active:
                    return None
                self._budget.exhausted = True
        work, self._next = self._next, None
        work.over_budget = self._budget.exhausted and not self._stored(work)
        if not work.over_budget and not self._stored(work):
            warn_if_long(work.index, work.pair)
            # A run of its own name only where there is something to note of it.
            run_id = uuid4() if self.gate.prices else None
            replies = self._replies.of(work.key) if self._replies else None
            self._active[work.index] = Ledger(
                self.gate, work.index, self.fail, run_id, replies=replies
            )
            self._memory.take(self._kilobytes(work))
            self._first_rows.start(work.index)
        return work

    def _kilobytes(self, work: RunRow) -> int:
        """Return about how much memory a row takes while it is judged."""
        texts = self._reader.judged_part(work.pair).values()
        return kilobytes_of(sum(len(str(text)) for text in texts), self.calls_each)

    def asks_for(self, work: RunRow) -> bool:
        """Return whether a row needs calls: it is neither stored nor already failed."""
        return work.index in self._active

    def judge_one(self, work: RunRow) -> Steps[ResultRow]:
        """Judge one row, or read its stored result, and store the result."""
        try:
            return (yield from self._judge_one(work))
        except RunStopped:
            raise
        except Exception as exc:
            self.fail(exc)
            raise
        finally:
            if self._active.pop(work.index, None):
                self._memory.give_back(self._kilobytes(work))
            self._tell()

    def _judge_one(self, work: RunRow) -> Steps[ResultRow]:
        if self._stored(work):
            assert self.results is not None  # noqa: S101 - for the type checker
            stored = {**self.results.read(work.key), "index": work.index, **labels_of(work)}
            with self._lock:
                self.summary.resumed += 1
                self.summary.add(stored)
            return stored
        if work.over_budget:
            return self._keep(work, over_budget(work, None, self._budget.why_not()))
        if work.problem:
            return self._keep(work, failed_outcome(work, "invalid_input", work.problem))
        ledger = self._active[work.index]
        LEDGER.set(ledger)
        try:
            outcome = yield from self._invoke(work)
        except OverBudget as exc:
            outcome = over_budget(work, ledger.usage, str(exc))
        except Exception as exc:  # an error of the judge on one row fails only that row
            if ends_the_run(exc):
                raise
            with self._lock:
                self._first_rows.raised(exc)
            outcome = outcome_of_error(work, exc, ledger.usage)
        return self._keep(work, outcome)

    def fail(self, exc: Exception) -> None:
        """Stop the run because of an error that concerns all rows."""
        self.fatal = self.fatal or exc
        self.stop()

    def stop(self, *, at_once: bool = False) -> None:
        """Start nothing new; calls in flight may finish, unless `at_once`."""
        self.gate.close(RunStopped("the run was stopped"), at_once=at_once)
        if self.when_stopped:
            self.when_stopped()

    @property
    def stopped(self) -> bool:
        """Whether the run has been stopped."""
        return self.gate.closed

    def finish(self, window: Window[Any]) -> None:
        """Complete the summary and close the results."""
        self._tell()
        # Where every row failed, the rows are not the cause.
        new_rows = self.summary.rows - self.summary.resumed
        self.fatal = self.fatal or self._first_rows.error_of_all(new_rows)
        self.summary.held_back = window.max_held_back
        self.summary.seconds_full = window.seconds_full
        if self._replies is not None:
            self._replies.close()
        if self.results is not None:
            self.results.close()
        if self._place is not None and self.results is not None:
            self._place.close(self._receipt())

    def _receipt(self) -> Receipt | None:
        """Return the receipt of a shard whose rows are all in its part."""
        is_complete = (
            self._reader.ended
            and self._next is None
            and self.summary.rows == self._reader.own_rows
        )
        if not self._shard or not is_complete or self._budget.exhausted or self.fatal:
            return None
        return Receipt(self.name["mark"], self._reader.read_rows, self._reader.own_rows)

    def display(self) -> AbstractContextManager[Any]:
        """Return what shows the progress while it is entered."""
        if not self.options.progress:
            return nullcontext()
        from langchain_judges.runs.progress import show_progress

        return show_progress(self.summary, self._tell)

    def _tell(self) -> None:
        self.summary.calls = self.gate.calls
        self.summary.tokens = self.gate.tokens
        self.summary.cost = self.gate.cost
        self.summary.unpriced = self.gate.unpriced
        self.summary.live = self.gate.live
        self.summary.seconds = time.monotonic() - self._start

    @property
    def _keeps_threads(self) -> bool:
        return bool(getattr(self._graph, "checkpointer", None))

    def _stored(self, work: RunRow) -> bool:
        return self.results is not None and work.key in self.results

    def _invoke(self, work: RunRow) -> Steps[dict[str, Any]]:
        judge, graph, config = self.judge, self._graph, self.config
        if run_id := self._active[work.index].run_id:
            config = {**config, "run_id": run_id}
        row: dict[str, Any] | None = self._reader.judged_part(work.pair)
        if self._keeps_threads:
            threads = {**config.get("configurable", {}), "thread_id": work.key}
            config = {**config, "configurable": threads}
            state = yield Effect(
                lambda: graph.get_state(config), lambda: graph.aget_state(config)
            )
            if state.next:
                row = None
            elif judged_row(state.values):
                names = graph.output_channels
                return {key: state.values[key] for key in names if key in state.values}
        outcome: dict[str, Any] = yield Effect(
            lambda: judge.invoke(row, config), lambda: judge.ainvoke(row, config)
        )
        return outcome

    def _keep(self, work: RunRow, outcome: dict[str, Any]) -> ResultRow:
        ledger = self._active.get(work.index)
        row = result_row(
            *(work, outcome, self.name),
            texts=self._reader.judged_part(work.pair) if self.options.with_texts else {},
            spent={"cost": ledger.cost} if ledger else {},
        )
        if self.gate.prices is None:
            row.pop("cost", None)
        with self._lock:
            if self.results is not None and self._place is not None:
                self.results.append(row)
                self._place.appended()
                # Of a row that was not judged only what failed is asked again.
                if self._replies is not None and (row["judged"] or self.options.keep_failed):
                    self._replies.forget(work.key)
            self.summary.add(row)
            if error := self._first_rows.error_of_first(row):
                self.fail(error)
            if row["judged"]:
                self._budget.learn(outcome_of(row)["usage"]["calls"])
        return row


def _check(judge: Judge, rows: Rows) -> None:
    if not isinstance(judge, Runnable):
        raise OptionError(f"`judge` must be a judge, got {type(judge).__name__}")
    if isinstance(rows, Mapping | str):
        raise OptionError("`rows` must be a list or another iterable of rows, not one")
