"""The work of one run: which row is next, what it may cost, and its result.

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

from langchain_judges.asking.faults import diagnosis
from langchain_judges.asking.gate import LEDGER, Gate, Ledger
from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import (
    InputError,
    ModelAccessError,
    OptionError,
    OverBudget,
    RepeatedFailureError,
    RunStopped,
)
from langchain_judges.methods.marks import is_local, memory_of, unwrapped
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.first_rows import ALIKE, FirstRows
from langchain_judges.runs.judge_mark import marks_of, name_of
from langchain_judges.runs.long_rows import warn_if_long
from langchain_judges.runs.open_memory import OpenMemory, kilobytes_of
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.place import Place
from langchain_judges.runs.prices import Prices
from langchain_judges.runs.reply_journal import ReplyJournal
from langchain_judges.runs.results import Results, content_key, judged_row, outcome_of
from langchain_judges.runs.row_reader import RowReader
from langchain_judges.runs.shards import Receipt, Shard
from langchain_judges.runs.summary import Summary
from langchain_judges.runs.window import Window
from langchain_judges.runs.work import (
    RunRow,
    ends_the_run,
    failed_outcome,
    over_budget,
)
from langchain_judges.verdict import (
    Usage,
    no_usage,
)

Judge = Runnable[Any, Any]
Rows = Iterable[Mapping[str, Any]]
ResultRow = dict[str, Any]
"""`{"index", "key", "kind", "judged", "judge", "id", "content", "verdict", …}` and the
method's own results."""

BUSY = 2
"""Unfinished rows per call in flight: some rows plan or merge and wait for no call."""

PLACES, LOCAL_PLACES = 16, 4
"""Default number of calls in flight; a local model generates two replies at a time, and more
calls would only wait there."""

_EMPTY: dict[str, Any] = {"failures": [], "usage": no_usage()}
"""Fields that the verdict of another runnable may omit."""


def places_of(judge: Judge) -> int:
    """Return the default number of calls in flight for a judge."""
    return LOCAL_PLACES if is_local(judge) else PLACES


class Workload:
    """The state that a run in threads and a run in an event loop share."""

    def __init__(self, judge: Judge, rows: Rows, options: RunOptions) -> None:
        """Check the judge; nothing is opened before the first row is requested."""
        if not isinstance(judge, Runnable):
            raise OptionError(f"`judge` must be a judge, got {type(judge).__name__}")
        if isinstance(rows, Mapping | str):
            raise OptionError("`rows` must be a list or another iterable of rows, not one")
        self.judge = judge
        self.options = options
        self._graph: Any = unwrapped(judge)
        self.config: RunnableConfig = options.config or {}
        self.places = options.max_concurrency or places_of(judge)
        self.open_rows = options.open_rows or BUSY * self.places
        self._memory = OpenMemory(options.open_mb)
        if options.max_cost is not None and options.prices is None:
            raise OptionError("`max_cost` needs `prices`")
        prices = None if options.prices is None else Prices.read(options.prices)
        self.gate = Gate(
            self.places,
            max_calls=options.max_calls,
            max_tokens=options.max_tokens,
            max_cost=options.max_cost,
            prices=prices,
            limiter=options.rate_limiter,
        )
        self.results: Results | None = None
        self._replies: ReplyJournal | None = None
        self._shard = Shard.parse(options.shard) if options.shard is not None else None
        self.summary = Summary(
            total=operator.length_hint(rows, 0) // (self._shard.of if self._shard else 1)
            or None,
            prices=prices.source if prices else None,
        )
        self.fatal: BaseException | None = None
        self.exhausted = False
        self.marks, self.calls_each = marks_of(judge)
        has_method = "method" in self.marks
        self.marks.setdefault("method", judge.get_name())
        if options.out is not None and not has_method:
            raise OptionError(
                "`out` needs a judge with metadata that identify it, so that a later run can "
                f"tell whether it is the same; {judge.get_name()!r} has none. Name it and its "
                'version by `.with_config(metadata={"method": "my judge, version 1"})`'
            )
        self.name = name_of(self.marks)
        if self._shard and options.out is None:
            raise OptionError("`shard` needs `out`, the folder of the parts")
        self._place = None if options.out is None else Place(options.out, self._shard)
        self.when_stopped: Callable[[], object] | None = None
        self._reader = RowReader(
            rows,
            self.marks,
            self._shard,
            remembers=memory_of(judge) is not None,
            numbers_repeats=options.out is not None or self._keeps_threads,
        )
        self._next: RunRow | None = None
        self._active: dict[int, Ledger] = {}
        self._first_rows = FirstRows()
        self._first_error: Exception | None = None
        self._failed_rows = 0
        self._lock = threading.Lock()
        self._fewest_calls = 0
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
            if not self._affordable():
                if self._active:
                    return None
                self.exhausted = True
        work, self._next = self._next, None
        work.over_budget = self.exhausted and not self._stored(work)
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
            labels = {name: work.pair[name] for name in ANNOTATIONS if name in work.pair}
            stored = {**self.results.read(work.key), "index": work.index, **labels}
            with self._lock:
                self.summary.resumed += 1
                self.summary.add(stored)
            return stored
        if work.over_budget:
            return self._keep(work, over_budget(work, None, self._why_not()))
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
            outcome = self._failed_row(work, exc, ledger.usage)
        return self._keep(work, outcome)

    def _failed_row(self, work: RunRow, exc: Exception, usage: Usage) -> dict[str, Any]:
        """Return the outcome of a row whose judge raised an exception, and count it."""
        with self._lock:
            self._first_error = self._first_error or exc
            self._failed_rows += 1
        if isinstance(exc, InputError):
            return failed_outcome(work, "invalid_input", str(exc), usage)
        if isinstance(exc, ModelAccessError):
            detail = str(exc).partition("refuses every call: ")[2] or str(exc)
            return failed_outcome(work, "provider_error", detail, usage)
        problem = diagnosis(exc)
        return failed_outcome(work, problem.reason, problem.detail, usage)

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
        if self._first_error and self._failed_rows == self.summary.rows - self.summary.resumed:
            # Every row failed: the rows are not the cause.
            self.fatal = self.fatal or self._first_error
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
        if not self._shard or not is_complete or self.exhausted or self.fatal:
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

    def _affordable(self) -> bool:
        """Return whether the budget allows one more row to be started and finished."""
        if self.exhausted:
            return False
        gate, active = self.gate, list(self._active.values())
        each = self.calls_each
        if not active and self._fewest_calls:
            # Work that rows share, such as a panel, may already be paid for.
            each = min(each, self._fewest_calls)
        if gate.max_calls is not None:
            promised = sum(max(0, each - ledger.usage["calls"]) for ledger in active)
            if gate.calls + promised + max(each, 1) > gate.max_calls:
                return False
        for usage, limit in ((gate.tokens, gate.max_tokens), (gate.cost, gate.max_cost)):
            if limit is None:
                continue
            new_rows = self.summary.rows - self.summary.resumed
            # The cost of a row is not known before the first is finished.
            mean = usage / new_rows if new_rows else limit * len(active)
            if usage + mean * (len(active) + bool(new_rows)) >= limit:
                return False
        return True

    def _why_not(self) -> str:
        most = self.gate.max_calls
        if most is not None and most < self.calls_each and not self.gate.calls:
            return f"a pair may need {self.calls_each} calls, and the budget is {most}"
        return "the budget is spent"

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
        if work.kind == "task":
            outcome = {"text": None, **_EMPTY, **outcome}
        else:
            outcome = {**outcome, "verdict": {**_EMPTY, **(outcome.get("verdict") or {})}}
        # The fields by which a row is found again come first in its line.
        head = {
            "index": work.index,
            "key": work.key,
            "kind": work.kind,
            "judged": judged_row({**outcome, "kind": work.kind}),
            "judge": self.name,
        }
        ledger = self._active.get(work.index)
        lacking = outcome_of({**outcome, "kind": work.kind})["usage"].get("asked_without")
        row: ResultRow = {
            **head,
            "id": work.pair.get("id"),
            **({} if work.kind == "task" else {"content": content_key(work.pair)}),
            **(self._reader.judged_part(work.pair) if self.options.with_texts else {}),
            **{field: work.pair[field] for field in ANNOTATIONS if field in work.pair},
            **outcome,
            **({"cost": ledger.cost} if ledger else {}),
            **({"asked_without": lacking} if lacking else {}),
            **head,
        }
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
            self._watch(row)
            calls = outcome_of(row)["usage"]["calls"]
            if row["judged"] and calls:
                self._fewest_calls = min(self._fewest_calls or calls, calls)
        return row

    def _watch(self, row: ResultRow) -> None:
        """Stop a run whose first rows all fail with the same permanent error."""
        detail = self._first_rows.failure_of_all(row)
        if detail is None:
            return
        if self._first_error and self._failed_rows >= ALIKE:
            self.fail(self._first_error)
            return
        self.fail(RepeatedFailureError(f"The first {ALIKE} rows all failed with {detail}"))
