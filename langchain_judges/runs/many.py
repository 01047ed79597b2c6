"""Judging many rows: bounded, in order, resumable, within a budget."""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from collections import abc, deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing
from contextvars import copy_context
from inspect import GEN_CREATED, getgeneratorstate
from math import ceil
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from annotated_types import Ge, Gt, Le

from langchain_judges.asking.ask import GRACE
from langchain_judges.asking.effects import run, stoppable
from langchain_judges.errors import JudgeError, OptionError, RunStopped, needs
from langchain_judges.methods.describe import assumptions_of
from langchain_judges.options import check_value, with_options
from langchain_judges.rows.checks import kind_of_verdict, read_label
from langchain_judges.runs import sources, tables
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.run_row import RUN_ERRORS, ResultRow, RunRow, judged_row, outcome_of
from langchain_judges.runs.run_state import Judge, Rows, RunState
from langchain_judges.runs.sheets import encodable, judged_cells, named_cells
from langchain_judges.runs.summary import Summary, conclusion
from langchain_judges.verdict import decision

if TYPE_CHECKING:
    from pandas import DataFrame


@with_options(RunOptions)
def judge_many(judge: Judge, rows: Rows, options: RunOptions) -> Run:
    """Judge many rows in threads, as you iterate over the result.

    Args:
        judge: A judge of this package, or any runnable from a row to `{"verdict", …}`.
            With a checkpointer (with sync methods, such as `SqliteSaver`) each row has its
            own thread, and a row that a crash interrupted resumes where it stopped.
        rows: Pairs, items or tasks, read only as fast as they are judged: any iterable, a
            pandas or polars DataFrame, an Arrow table, a Hugging Face `Dataset`, the path of a
            table (`.csv`, `.tsv`, `.jsonl`, `.json`, `.parquet`, `.xlsx`), or the name of a
            LangSmith data set (`client=`).
        options: Passed by name.

    Returns:
        An iterator over `{"index", "key", "kind", "judged", "id", "verdict", …}`, in the order
        of the rows; its `summary` counts verdicts, failures, calls and tokens. On Ctrl-C,
        calls in flight get ten seconds, then `KeyboardInterrupt` is raised. A thread whose
        call still hangs keeps the process alive until the model's own timeout (`ajudge_many`
        cancels it).

    Raises:
        OptionError: `judge` is not a judge, `rows` cannot be iterated, a limit is invalid, or
            results are stored and the metadata of `judge` do not identify it.
        InputError: Every row is invalid, or the first ten are, and they are not a table (while
            iterating); any other invalid row fails alone, with the reason `invalid_input`.
        ModelAccessError: The provider rejects the key, or all of the first rows (while
            iterating); a 403 or 404 for one row fails that row.
        RepeatedFailureError: The first ten rows all failed with the same error (while
            iterating).
        OutputError: `out` or `records` is in use, holds something else or cannot be written
            (while iterating).
    """
    return Run(RunState(judge, rows, options))


@with_options(RunOptions)
def ajudge_many(judge: Judge, rows: Rows, options: RunOptions) -> AsyncRun:
    """Judge many rows asynchronously; iterate with `async for`.

    Takes, returns and raises what `judge_many` does; a checkpointer must have async methods,
    such as `AsyncSqliteSaver`.

    Args:
        judge: As for `judge_many`.
        rows: As for `judge_many`.
        options: Passed by name.
    """
    return AsyncRun(RunState(judge, rows, options))


# Finished results that may wait for a slower row; no row is started while so many do.
HELD_BACK = 1_000


F = TypeVar("F", bound=Future[Any] | asyncio.Future[Any])


class Window(Generic[F]):
    """Futures in the order of their rows, with bounds on unfinished and on finished ones.

    Only the thread or event loop that owns it may call its methods.

    Args:
        places: The most unfinished rows.
        report: Is called with the name of a future when it is done, from any thread.
    """

    def __init__(self, places: int, report: abc.Callable[[Any], object]) -> None:
        """Create an empty window."""
        self._places = places
        self._report = report
        self.rows: deque[F] = deque()
        self.unfinished = 0

    def has_room(self) -> bool:
        """Whether another row may be started.

        Rows are started far ahead only past a slow row, not past a slow caller.
        """
        if self.unfinished >= self._places:
            return False
        ahead = len(self.rows) - self.unfinished < HELD_BACK and not self.next_is_there()
        return ahead or len(self.rows) < self._places

    def start(self, row: F) -> None:
        """Append a row."""
        self.rows.append(row)
        if not row.done():
            self.unfinished += 1
            row.add_done_callback(self._report)

    def next_is_there(self) -> bool:
        """Whether the next result in order is finished."""
        return bool(self.rows) and self.rows[0].done()


class _Judging:
    """Summary and names that both kinds of run have."""

    def __init__(self, state: RunState) -> None:
        """Prepare a run; no call is made before the first row is requested."""
        self._state = state

    @property
    def summary(self) -> Summary:
        """The counts of the run so far."""
        return self._state.summary

    @property
    def systems(self) -> abc.Sequence[str] | None:
        """The names of A and B, by the columns that were named for them."""
        return self._state.records.systems


class Run(_Judging, abc.Iterator[ResultRow], AbstractContextManager["Run"]):
    """A run in threads; iterate over it to judge, or use it in a `with` block."""

    def __init__(self, state: RunState) -> None:
        """Prepare a run; no call is made before the first row is requested."""
        super().__init__(state)
        self._rows = _judge_in_threads(state)
        self._table: list[tuple[abc.Mapping[str, object], ResultRow]] | None = None

    def __next__(self) -> ResultRow:
        """The next result, in the order of the rows."""
        return next(self._rows)

    def close(self) -> None:
        """Stop the run: calls in flight may finish; unfinished rows are not written."""
        self._rows.close()

    def decision(self) -> list[str]:
        """Decisions of the run so far, in sentences: see `summary.conclusion`.

        Raises:
            JudgeError: Nothing was judged yet: no row was asked for.
        """
        if getgeneratorstate(self._rows) == GEN_CREATED:
            raise JudgeError(RUN_ERRORS["nothing_yet"])
        return conclusion(self.summary)

    def to_pandas(self) -> DataFrame:
        """Judge to the end; return your own columns unchanged, then those of the judge.

        Raises:
            MissingExtraError: pandas is not installed.
            JudgeError: Rows of this run were read already; the table would lack them.
        """
        with needs("trust", "A DataFrame"):
            import pandas
        rows = self._tabulated()
        columns = {name: None for own, _ in rows for name in own}
        judged = pandas.DataFrame(
            [named_cells(columns, judged_cells(result, self.systems)) for _, result in rows]
        )
        frame = self._state.frame
        if frame is None:
            own_rows = [{n: encodable(cell) for n, cell in own.items()} for own, _ in rows]
            frame = pandas.DataFrame(own_rows, columns=list(columns))
        judged.index = frame.index
        return pandas.concat([frame, judged], axis=1)

    def to_csv(self, path: str | os.PathLike[str], *, raw: bool = False) -> None:
        """Judge to the end and write a table as `out` does; the ending says its form.

        Args:
            path: The table.
            raw: Leave your own cells unchanged, formulas too.

        Raises:
            JudgeError: Rows of this run were read already; the table would lack them.
        """
        rows = self._tabulated()
        with closing(tables.FORMS[Path(path).suffix](Path(path), raw=raw)) as file:
            for own, result in rows:
                file.add(own, result, self.systems)

    def _tabulated(self) -> list[tuple[abc.Mapping[str, object], ResultRow]]:
        """The user's own cells of each row, and its result; kept for a second table."""
        if self._table is not None:
            return self._table
        if getgeneratorstate(self._rows) != GEN_CREATED:  # no row is kept once it was read
            raise JudgeError(RUN_ERRORS["read_already"])
        self._table = [(self._state.delivered, result) for result in self]
        return self._table

    def __exit__(self, *_: object) -> None:
        """Close the run."""
        self.close()


def _judge_in_threads(state: RunState) -> abc.Generator[ResultRow, None, None]:
    """Judge in threads; no part of the run refers to it, so that one that is dropped ends."""
    state.open()
    pool = ThreadPoolExecutor(state.open_rows)
    finished: SimpleQueue[Future[ResultRow]] = SimpleQueue()
    window: Window[Future[ResultRow]] = Window(state.open_rows, finished.put)
    try:
        with state.display():
            while True:
                while window.has_room() and (row := state.take()):
                    window.start(_started(state, row, pool))
                if window.next_is_there():
                    yield state.deliver(_result_of(state, window))
                elif window.unfinished:
                    finished.get()
                    window.unfinished -= 1
                else:
                    break
                while not finished.empty():
                    finished.get()
                    window.unfinished -= 1
    except BaseException:
        state.stop()
        wait(window.rows, timeout=GRACE)
        state.stop(at_once=True)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        state.finish()
    if state.fatal:
        raise state.fatal


def _started(state: RunState, row: RunRow, pool: ThreadPoolExecutor) -> Future[ResultRow]:
    def judge() -> ResultRow:  # a row whose turn never comes leaves no coroutine behind
        with stoppable():
            return run(state.judge_one(row))

    if state.is_active(row):
        return pool.submit(copy_context().run, judge)
    future: Future[ResultRow] = Future()
    future.set_result(judge())
    return future


def _result_of(state: RunState, window: Window[Future[ResultRow]]) -> ResultRow:
    try:
        return window.rows.popleft().result()
    except RunStopped:
        if state.fatal:
            raise state.fatal from None
        raise


class AsyncRun(_Judging, abc.AsyncIterator[ResultRow], AbstractAsyncContextManager["AsyncRun"]):
    """A run in an event loop; iterate over it with `async for` to judge."""

    def __init__(self, state: RunState) -> None:
        """Prepare a run; no call is made before the first row is requested."""
        super().__init__(state)
        self._tasks = _Tasks(state)
        self._rows = self._tasks.judged()

    def stop(self) -> None:
        """Start nothing new and let the iteration end; calls in flight get `GRACE` seconds."""
        self._state.stop()

    async def __anext__(self) -> ResultRow:
        """The next result, in the order of the rows."""
        return await anext(self._rows)

    async def aclose(self) -> None:
        """Stop the run: calls in flight may finish; unfinished rows are not written."""
        await self._rows.aclose()

    async def __aexit__(self, *_: object) -> None:
        """Close the run."""
        await self.aclose()

    def __del__(self) -> None:
        """Free the files for the next run: nobody can ask for another row."""
        self._tasks.abandon()


class _Tasks:
    """The rows of a run in an event loop, without the run itself, which may be dropped."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._window: Window[asyncio.Future[ResultRow]] = Window(state.open_rows, self._done)
        self._changed = asyncio.Event()
        self._deadline: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def _done(self, row: asyncio.Future[ResultRow]) -> None:
        self._window.unfinished -= 1
        self._changed.set()
        # Whoever has left the iteration asks no row for its error.
        row.cancelled() or row.exception()

    async def judged(self) -> abc.AsyncGenerator[ResultRow, None]:
        """Judge the rows, and yield the results in their order."""
        state, window = self._state, self._window
        state.open()
        loop = self._loop = asyncio.get_running_loop()
        state.when_stopped = lambda: loop.call_soon_threadsafe(self._changed.set)
        # Each wait may itself be cancelled; the file is closed in any case.
        async with contextlib.AsyncExitStack() as last:
            last.callback(self._finish)
            last.push_async_callback(self._cancel)
            last.push_async_callback(self._drain)
            last.callback(state.stop)
            with state.display():
                while await self._next_is_there():
                    yield state.deliver(window.rows.popleft().result())
        if state.fatal:
            raise state.fatal

    def abandon(self) -> None:
        """End at once, from wherever the run was dropped."""
        if (loop := self._loop) is None or loop.is_closed():
            return
        self._state.stop(at_once=True)
        for row in self._window.rows:
            loop.call_soon_threadsafe(row.cancel)
        self._finish()

    def _finish(self) -> None:
        if self._loop is not None:
            self._loop = None
            self._state.finish()

    async def _cancel(self) -> None:
        self._state.stop(at_once=True)
        for row in self._window.rows:
            row.cancel()
        await asyncio.gather(*self._window.rows, return_exceptions=True)

    async def _next_is_there(self) -> bool:
        """Start rows and wait for the next; False if there is none, or the run was stopped."""
        window = self._window
        while True:
            self._changed.clear()
            while window.has_room() and (row := self._state.take()):
                window.start(self._start(row))
            if self._state.limiter.closed:
                await self._drain()
                return window.next_is_there() and window.rows[0].exception() is None
            if window.next_is_there() or not window.unfinished:
                return bool(window.rows)
            await self._changed.wait()

    def _start(self, row: RunRow) -> asyncio.Future[ResultRow]:
        steps = self._state.judge_one(row)
        if self._state.is_active(row):
            return asyncio.create_task(steps)
        future: asyncio.Future[ResultRow] = asyncio.get_running_loop().create_future()
        future.set_result(run(steps))
        return future

    async def _drain(self) -> None:
        """Give calls in flight until `GRACE` seconds after the run was stopped."""
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + GRACE
        if any(not row.done() for row in self._window.rows):
            await asyncio.wait(self._window.rows, timeout=max(0.0, self._deadline - now))


def assert_judged(
    judge: Judge,
    rows: Rows,
    *,
    min_pass: float = 1.0,
    tries: int = 2,
    passes: abc.Callable[[ResultRow], bool] | None = None,
    max_concurrency: int = 8,
) -> list[ResultRow]:
    """Judge rows in a test, and fail it if too few of them pass.

    Only rows that fail are judged again, up to `tries` times, so that one unlucky sample does
    not break a build. Every further try makes it easier to pass: keep `tries` small, and do
    not use the result as a pass rate. A judge with a cache, or a model that always gives the
    same reply, repeats its verdict.

    Args:
        judge: What `judge_many` takes.
        rows: Pairs or single texts.
        min_pass: The share of rows that must pass, in (0, 1].
        tries: The most times that a row is judged.
        passes: Whether a result of `judge_many` passes. Default: its verdict is the row's
            `label`; without a label, its `score` is in the upper half of the judge's scale, or
            in the middle. For a pair that means that A, your text, is as good as B. A row that
            could not be judged never passes.
        max_concurrency: The most model calls in flight.

    Returns:
        The last result of each row, in the order of the rows.

    Raises:
        AssertionError: Too few rows pass; it names each row that failed, with the reason.
        OptionError: An option is not allowed, or there are no rows.
    """
    __tracebackhide__ = True  # pytest shows the message, not this function
    check_value("min_pass", min_pass, Annotated[float, Gt(0), Le(1)])
    check_value("tries", tries, Annotated[int, Ge(1)])
    data = list(sources.source_of(rows).records)
    if not data:
        raise OptionError("`rows` must hold at least one row; a test of none would always pass")
    passes_row = passes or _passes
    results: dict[int, ResultRow] = {}
    failures = list(range(len(data)))
    for _ in range(tries):
        rows = [data[i] for i in failures]
        with judge_many(judge, rows, max_concurrency=max_concurrency) as run:
            # What none of them has is no error here: each row is named with what it lacks.
            results |= dict(zip(failures, run, strict=False))
        failures = [i for i in failures if not (judged_row(results[i]) and passes_row(results[i]))]
        if not failures:
            break
    if passes is None and any(row.get("label") is None for row in results.values()):
        for sentence in assumptions_of(judge):
            warnings.warn(sentence, stacklevel=2)  # pytest shows it of a test that passes
    if len(data) - len(failures) < ceil(min_pass * len(data) - 1e-9):
        count = f"{len(data) - len(failures)} of {len(data)}"
        reasons = (_failure_reason(i, results[i]) for i in failures)
        raise AssertionError("\n".join([f"{count} rows pass, {min_pass:.0%} must:", *reasons]))
    return [results[i] for i in range(len(data))]


def _passes(row: ResultRow) -> bool:
    verdict, label = row["verdict"], row.get("label")
    if label is None:
        return bool(verdict["score"] >= 0.5)
    if kind_of_verdict(verdict) == "pair":
        return bool(verdict["preference"] == read_label(label))
    return str(verdict["label"]) == str(label)


def _failure_reason(place: int, row: ResultRow) -> str:
    verdict = outcome_of(row)
    name = row.get("id") or f"row {place + 1}"
    if not judged_row(row):
        first = next(iter(verdict.get("failures") or []), {"reason": "no reason"})
        return f"- {name}: not judged ({first['reason']}) {first.get('detail') or ''}".rstrip()
    answer = decision(verdict)
    truth = "" if row.get("label") is None else f", the label is {row['label']}"
    return f"- {name}: {answer} (score {verdict['score']:.2f}){truth}. {verdict['rationale']}"
