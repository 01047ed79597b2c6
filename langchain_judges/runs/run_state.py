"""The state of one run: which row is next, how it is judged, what becomes of its result.

Threads and event loops share it; `many.py` holds the two loops around it.
"""

from __future__ import annotations

import logging
import operator
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_judges import errors, verdict
from langchain_judges.asking import effects, question
from langchain_judges.asking.failures import ends_the_run, failure_of, is_bug
from langchain_judges.asking.limiter import CallLimiter, RowInRun
from langchain_judges.methods import describe
from langchain_judges.methods.graph import JudgeGraph, Node, is_unfinished
from langchain_judges.runs import row_reader, run_files, run_row, sources, summary
from langchain_judges.runs.options import CallLimits, RunOptions
from langchain_judges.runs.prices import Prices
from langchain_judges.runs.shards import Receipt, Shard

_LOG = logging.getLogger(__name__)

# The run stops if this many first rows all fail with the same permanent error.
ALIKE = 10
# Unfinished rows per call in flight: some rows plan or merge and wait for no call.
BUSY = 2
# Default number of calls in flight; a local model generates two replies at a time, and more
# calls would only wait there.
PLACES, LOCAL_PLACES = 16, 4


def budget(**limits: Any) -> RunnableConfig:
    """A configuration that bounds what a graph or a runnable asks, such as an audit.

    Pass it to `invoke`, or as `config=` to `learn_aspects` and `draw_guidelines`. All that is
    asked with it shares the limits; the next call raises `OverBudget`. For evaluators,
    `JudgeMiddleware` and `judge_tool` give it to the judge: `judge.with_config(budget(…))`.

    Args:
        limits: `max_calls`, `max_dollars`, `prices`, `max_concurrency` and `rate_limiter` of
            `judge_many`.

    Raises:
        OptionError: There is no such limit, or dollars are bounded without prices.
    """
    return question.within_run(None, RowInRun(limiter_of(None, CallLimits(**limits)), 0))


def limiter_of(judge: object, options: CallLimits, prices: Prices | None = None) -> CallLimiter:
    """The bounds on the calls of a run: how many at a time, calls, tokens, dollars.

    Raises:
        OptionError: Dollars are bounded, and there are no prices.
    """
    if options.max_dollars is not None and options.prices is None:
        raise errors.OptionError("`max_dollars` needs `prices`")
    if options.prices is not None:
        prices = prices or Prices.read(options.prices)
    usual = LOCAL_PLACES if describe.is_local(judge) else PLACES
    return CallLimiter(
        options.max_concurrency or describe.places_of(judge) or usual,
        max_calls=options.max_calls,
        max_dollars=options.max_dollars,
        rate_limiter=options.rate_limiter,
        price=prices.cost if prices else None,
    )


class FirstRows:
    """The first rows of a run, the outcome of each, and the exceptions of the judge."""

    def __init__(self) -> None:
        """No row has started yet."""
        # Why each failed; None while it is judged, empty where the next may do better.
        self._causes: dict[int, str | None] = {}
        self._first_error: Exception | None = None
        self._raised = 0

    def start(self, index: int) -> None:
        """Count a row that starts, if it is one of the first."""
        if len(self._causes) < ALIKE:
            self._causes[index] = None

    def raised(self, exc: Exception) -> None:
        """Count a row whose judge raised an exception."""
        self._first_error = self._first_error or exc
        self._raised += 1

    def error_of_all(self, rows: int) -> Exception | None:
        """The first exception, if the judge raised one on each of that many rows."""
        return self._first_error if self._raised == rows else None

    def error_of_first(self, result: run_row.ResultRow) -> Exception | None:
        """Take the result of a row; return the error that all first rows have in common."""
        if result["index"] not in self._causes:
            return None
        failures = [] if run_row.judged_row(result) else run_row.outcome_of(result)["failures"]
        found = ((cause, each["detail"]) for each in failures if (cause := permanent(each)))
        cause, detail = next(found, ("", ""))
        self._causes[result["index"]] = cause
        if not cause or [*self._causes.values()] != [cause] * ALIKE:
            return None
        if self._first_error and self._raised >= ALIKE:
            return self._first_error
        how = "cannot be judged:" if cause == "lacking" else "all failed with"
        return errors.RepeatedFailureError(f"The first {ALIKE} rows {how} {detail}")


def permanent(failure: verdict.Failure) -> str | None:
    """The permanent error of a failure, if it is one.

    That is a client error, a lost connection, or an error that the model's own library or code
    raises before a request, such as a `ValueError` about a missing setting.
    """
    if failure["reason"] == "refusal":  # of one text
        return None
    if status := re.match(r"HTTP 4\d\d", failure["detail"]):
        return status[0]
    if failure["reason"] in ("lacking", "invalid_input"):
        return failure["reason"]
    of_model = {"provider_error", "" if failure["step"] == "run" else "internal_error"}
    if failure["reason"] in of_model and not failure["detail"].startswith("HTTP"):
        return failure["detail"].partition(":")[0]
    return None


Judge = Runnable[Any, Any]
# Rows or a table, as `source_of` takes them.
Rows = Any


class RunState:
    """The state that a run in threads and a run in an event loop share.

    Attributes:
        delivered: The user's own columns of the row that was returned last.
    """

    def __init__(self, judge: Judge, rows: Rows, options: RunOptions) -> None:
        """Check the judge; nothing is opened before the first row is requested."""
        describe.check_judge(judge)
        describe.check_no_budget(judge, "the run")
        source = sources.source_of(rows, cast("Any", options.client)).first(options.max_rows)
        self._judge = judge
        self._graph = describe.unwrapped(judge)
        self._keeps_threads = bool(getattr(self._graph, "checkpointer", None))
        self._options = options
        prices = None if options.prices is None else Prices.read(options.prices)
        self.limiter = limiter_of(judge, options, prices)
        self.open_rows = options.open_rows or BUSY * self.limiter.max_in_flight
        self.fatal: BaseException | None = None
        self.when_stopped: Callable[[], object] | None = None
        self._shard = Shard.parse(options.shard) if options.shard is not None else None
        self._files = run_files.RunFiles(options, self._shard)
        fingerprint = self._fingerprint()
        shards = self._shard.of if self._shard else 1
        self.summary = summary.Summary(
            total=(source.size or operator.length_hint(source.records, 0)) // shards or None,
            prices=prices.source if prices else None,
            assumed=bool(describe.assumptions_of(judge)),
        )
        takes = None
        with suppress(errors.OptionError):  # it does not say it
            takes = describe.kind_of(judge)
        self.records = row_reader.Records(source, options.columns, takes)
        self.summary.systems = self.records.systems
        self._reader = row_reader.RowReader(
            *(self.records, fingerprint, self._shard),
            judge=judge,
            numbers_repeats=bool(self._files.records) or self._keeps_threads,
        )
        self.name |= {"labels": self._reader.labels} if self._reader.labels else {}
        self.frame = source.frame
        # The user's own columns of the rows that are not returned yet, by index.
        self._own: dict[int, Mapping[str, object]] = {}
        self.delivered: Mapping[str, object] = {}
        self._spent = False
        self._next: run_row.RunRow | None = None
        # What the rows in progress have spent, by index.
        self._active: dict[int, RowInRun] = {}
        self._first_rows = FirstRows()
        self._phases: Sequence[Node] | None = None
        self._lock = threading.Lock()
        self._show: Callable[[], None] = lambda: None
        self._start_time = time.monotonic()

    def _fingerprint(self) -> run_row.Fingerprint:
        """Hold the judge's memories, and return what tells its verdicts from those of others.

        Raises:
            OptionError: Results are stored, and the judge's metadata do not identify it.
        """
        judge = self._judge
        # All rows see the memories as they are now.
        self._memories = [each.pin() for each in describe.memories_of(judge)]
        version = " ".join(each.snapshot.version for each in self._memories)
        fingerprint, self._calls_each = run_row.run_fingerprint(judge, version)
        if self._files.records and "method" not in fingerprint:
            raise errors.OptionError(run_row.RUN_ERRORS["nameless"].format(judge.get_name()))
        fingerprint.setdefault("method", judge.get_name())
        servers = run_row.servers_of(judge)
        if self._options.same_server:
            fingerprint["server"] = servers
        self.name = run_row.name_of(fingerprint) | ({"server": servers} if servers else {})
        return fingerprint

    def open(self) -> None:
        """Open the results, and find what earlier runs have finished and who listens."""
        self.summary.others = self._files.open(self.name["mark"], self.summary.total)
        # What is wrapped around a judge does more than its phases.
        if isinstance(self._judge, JudgeGraph) and not self._options.graph:
            self._phases = self._judge.phases(self._options.config)

    def take(self) -> run_row.RunRow | None:
        """The next row to judge; None if there is none that can be started yet."""
        if self.fatal or self.limiter.closed:
            return None
        row = self._next = self._next or self._reader.next()
        if row is None:
            return None
        if not row.problem and row.key not in self._files:
            if self._has_means():
                replies = self._files.replies_to(row.key)
                self._active[row.index] = RowInRun(self.limiter, row.index, self.fail, replies)
                self._first_rows.start(row.index)
            elif self._active:
                return None
            else:
                row.over_budget = self._spent = True
        self._next = None
        self._own[row.index] = {name: own for name, own in row.own.items() if name != verdict.NOTES}
        return row

    def _has_means(self) -> bool:
        """Whether one more row can be finished in addition to the active ones."""
        limiter, each, active = self.limiter, self._calls_each, list(self._active.values())
        if self._spent:
            return False
        if limiter.max_calls is not None:
            promised = sum(max(0, each - in_run.usage["calls"]) for in_run in active)
            if limiter.calls + promised + max(each, 1) > limiter.max_calls:
                return False
        new_rows = self.summary.rows - self.summary.resumed
        if (limit := limiter.max_dollars) is None:
            return True
        # The cost of a row is not known before the first is finished.
        mean = limiter.spent / new_rows if new_rows else limit * len(active)
        return limiter.spent + mean * (len(active) + bool(new_rows)) < limit

    def _why_not(self) -> str:
        """The reason why a row is not started."""
        most, each = self.limiter.max_calls, self._calls_each
        if most is not None and most < each and not self.limiter.calls:
            return f"a row may need {each} calls, and the budget is {most}"
        return "the budget is spent"

    def is_active(self, row: run_row.RunRow) -> bool:
        """Whether a row was started: it is neither stored nor already failed."""
        return row.index in self._active

    async def judge_one(self, row: run_row.RunRow) -> run_row.ResultRow:
        """Judge one row, or read its stored result, and store the result."""
        try:
            return await self._judge_one(row)
        except errors.RunStopped:
            raise
        except Exception as exc:  # the run ends with it, whatever it is
            self.fail(exc)
            raise
        finally:
            self._active.pop(row.index, None)
            self._refresh()

    async def _judge_one(self, row: run_row.RunRow) -> run_row.ResultRow:
        if row.key in self._files:
            result = row.again(self._files.read(row.key))
            server, own = (result.get("judge") or {}).get("server"), self.name.get("server")
            with self._lock:
                self.summary.resumed += 1
                self.summary.elsewhere += bool(server and own and server != own)
                self.summary.add(result)
            return result
        if row.over_budget:
            spent = failure_of(errors.OverBudget(self._why_not()), "run")
            outcome = run_row.outcome_without(row, spent)
        elif row.problem:
            outcome = self._refused(row)
        else:
            outcome = await self._outcome(row, self._active[row.index])
        return self._keep(row, outcome)

    def _refused(self, row: run_row.RunRow) -> Mapping[str, object]:
        """The outcome of a bad row; rows that are not a table may be of another kind."""
        if not (self.records.source.is_table or self.records.source.check):
            self._first_rows.start(row.index)
            self._first_rows.raised(errors.InputError(f"row {row.index + 1}: {row.problem}"))
        return run_row.outcome_without(row, failure_of(errors.InputError(row.problem), "run"))

    async def _outcome(self, row: run_row.RunRow, in_run: RowInRun) -> Mapping[str, object]:
        """Outcome of a row by the judge; a service that fails costs only that row."""
        for memory in self._memories:
            memory.activate()
        try:
            return await self._invoke(row)
        except errors.OverBudget as exc:
            return run_row.outcome_without(row, failure_of(exc, "run"), in_run.usage)
        except Exception as exc:  # whatever a judge raises
            if ends_the_run(exc) or (is_bug(exc) and self._options.on_bug == "raise"):
                raise
            with self._lock:
                self._first_rows.raised(exc)
            return run_row.outcome_without(row, failure_of(exc, "run"), in_run.usage)

    async def _invoke(self, row: run_row.RunRow) -> Mapping[str, object]:
        """Ask the judge; a row whose thread a crash interrupted resumes where it stopped."""
        judge, graph = self._judge, self._graph
        config = question.within_run(self._options.config, self._active[row.index])
        data: Any = self._reader.judged_part(row.data)
        if isinstance(graph, JudgeGraph):  # the row has been read
            data[verdict.NOTES] = verdict.Notes.of(row.data)
        if self._keeps_threads:
            threads = {**config.get("configurable", {}), "thread_id": row.key}
            config = {**config, "configurable": threads}
            state = await effects.Effect.of(graph, "get_state", config)
            if is_unfinished(state):
                data = None
            elif run_row.judged_row(state.values):
                names = graph.output_channels
                return {key: state.values[key] for key in names if key in state.values}
        if self._phases and isinstance(judge, JudgeGraph):
            return await judge.in_phases(data, config, self._phases)
        return await describe.judgment_of(judge, row.kind, data, config)

    def _keep(self, row: run_row.RunRow, outcome: Mapping[str, object]) -> run_row.ResultRow:
        """Store the result of a row and count it."""
        in_run = self._active.get(row.index)
        spent = {"cost": in_run.cost} if in_run and self.limiter.price else {}
        result = run_row.result_row(row, outcome, self.name, spent)
        with self._lock:
            self._files.append(result)
            self.summary.add(result)
            if error := self._first_rows.error_of_first(result):
                self.fail(error)
        return result

    def deliver(self, result: run_row.ResultRow) -> run_row.ResultRow:
        """A result whose turn has come; its row of the table is written."""
        own = self.delivered = self._own.pop(result["index"], {})
        self._files.tabulate(own, result, self.records.systems)
        return result

    def fail(self, exc: Exception) -> None:
        """Stop the run because of an error that concerns all rows."""
        self.fatal = self.fatal or exc
        self.stop()

    def stop(self, *, at_once: bool = False) -> None:
        """Start nothing new; calls in flight may finish, unless `at_once`."""
        self.limiter.close(errors.RunStopped("the run was stopped"), at_once=at_once)
        if self.when_stopped:
            self.when_stopped()

    def finish(self) -> None:
        """Complete the summary and close the files."""
        self._refresh()
        if self.summary.elsewhere:
            _LOG.warning(run_row.RUN_ERRORS["elsewhere"], self.summary.elsewhere)
        # Where every row failed, and none of an earlier run, the rows are not the cause.
        self.fatal = self.fatal or self._first_rows.error_of_all(self.summary.rows)
        read = self._reader
        is_read = read.ended and self._next is None
        complete = is_read and self.fatal is None and self.summary.rows == read.own_rows
        counts = read.read_rows, read.own_rows, read.content.hexdigest()
        is_done = self._shard and complete and not self._spent
        receipt = Receipt(self.name["mark"], *counts) if is_done else None
        # A table is whole where every row has a result that was returned.
        self._files.close(receipt, whole=complete and not self._own)

    @contextmanager
    def display(self) -> Iterator[None]:
        """Show the progress while it is entered."""
        with summary.show_progress(self.summary, on=self._options.progress) as self._show:
            yield

    def _refresh(self) -> None:
        """Bring the summary up to date."""
        for spent in ("calls", "answered", "tokens", "cached_tokens", "cost", "unpriced", "spent"):
            setattr(self.summary, spent, getattr(self.limiter, spent))
        self.summary.seconds = time.monotonic() - self._start_time
        self._show()
