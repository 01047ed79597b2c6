"""Judging on a Ray cluster: one judge an actor, one part of the results each.

An actor judges the rows of its shard as `ajudge_many` does, so that its places stay full from
the first row to the last, and appends each to a part of its own. What was judged before an
actor, or the driver, was lost stands in the parts and is not judged again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.rate_limiters import BaseRateLimiter

from langchain_judges.asking.rates import MinuteLimiter
from langchain_judges.errors import JudgeError, OptionError, OutputError, needs
from langchain_judges.runs.merge import merge
from langchain_judges.runs.summary import Summary

if TYPE_CHECKING:
    from ray.data import Dataset

RowSource = Callable[[], Iterable[Mapping[str, Any]]]
"""Makes the rows in the process of an actor."""
LOCKED = 60.0
"""Seconds that an actor waits for a part whose writer is just dying."""


class JudgedDataset(NamedTuple):
    """What `judge_dataset` returns."""

    rows: Dataset
    """A row for each judged one, with the columns of `merge`."""
    summary: Summary
    """Of all actors together."""


def judge_dataset(  # noqa: PLR0913 - each an option of its own
    ds: Dataset | Iterable[Mapping[str, Any]] | RowSource,
    spec: Mapping[str, Any],
    *,
    out: str | PathLike[str],
    actors: int = 2,
    max_concurrency: int = 32,
    rpm: float | None = None,
    tpm: float | None = None,
    address: str | None = None,
    progress: bool = True,
    **options: Any,
) -> JudgedDataset:
    """Judge a Ray dataset, with the judge that a spec describes.

    Args:
        ds: The rows: a `ray.data.Dataset`, a list of rows, or a function that makes them in
            each actor. Every actor reads all of them and judges those of its shard.
        spec: What `judge.spec` returned; keys are named by their environment variable, which
            the actors need.
        out: A folder that all actors reach: each has a part in it, with everything that `out`
            of `judge_many` promises, and `verdicts.parquet` stands there at the end.
        actors: Processes that judge; begin again with the same number to resume.
        max_concurrency: Most calls in flight, over all actors.
        rpm: Most requests a minute, over all actors.
        tpm: Most tokens a minute, over all actors.
        address: Of a running cluster; None: the current one, or one on this machine.
        progress: Show progress on the terminal.
        **options: Further options of `judge_many`, such as `max_calls` for each actor.

    Returns:
        The results as a dataset, and the summary of all actors.

    Raises:
        MissingExtraError: Ray is not installed.
        OptionError: An option is wrong.
        JudgeError: What stopped an actor, such as a refused key.
    """
    with needs("ray", "Judging on Ray"):
        import ray
        from ray.data import read_parquet

    if not 1 <= actors <= max_concurrency:
        raise OptionError(
            f"`actors` must be between 1 and `max_concurrency`, got {actors} and "
            f"{max_concurrency}"
        )
    if not ray.is_initialized():
        ray.init(address, include_dashboard=False, log_to_driver=False)
    folder = Path(out).resolve()
    # A judge waits for its model most of the time: reading the rows needs the CPUs as well.
    kind = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy="SPREAD")
    rate: Any = None
    if rpm is not None or tpm is not None:
        rate = ray.remote(num_cpus=0)(_Rate).remote(rpm, tpm)
    source = _source(ds)
    judges: list[Any] = [kind(_Actor).remote() for _ in range(actors)]
    # Given to the task, and not to the actor: Ray keeps the arguments of a task that it may
    # have to begin again.
    runs = [
        judge.run.options(max_task_retries=-1).remote(
            dict(spec),
            source,
            rate,
            {
                **options,
                "out": str(folder),
                "shard": f"{number}/{actors}",
                "max_concurrency": _share(max_concurrency, number, actors),
            },
        )
        for number, judge in enumerate(judges, 1)
    ]
    summary = Summary()
    try:
        with _display(summary, judges, ray, progress):
            outcomes = ray.get(runs)
    finally:
        for actor in [*judges, *([rate] if rate else [])]:
            ray.kill(actor)
    _sum_up(summary, outcomes)
    for outcome in outcomes:
        if isinstance(outcome, JudgeError):
            raise outcome
    table = folder / "verdicts.parquet"
    merge(folder, table)
    return JudgedDataset(read_parquet(str(table)), summary)


def _share(places: int, number: int, actors: int) -> int:
    """Return an actor's part of the calls in flight; the first ones have what is left over."""
    return places // actors + (number <= places % actors)


def _source(ds: Any) -> RowSource:
    if callable(ds):
        return ds  # type: ignore[no-any-return]
    if hasattr(ds, "iter_rows"):
        return lambda: ds.iter_rows()
    rows = list(ds)
    return lambda: rows


class _Actor:
    """Judges one shard; begun again after a loss, it finds in its part what is done."""

    def __init__(self) -> None:
        self._summary = Summary()

    async def run(
        self, spec: dict[str, Any], source: RowSource, rate: Any, options: dict[str, Any]
    ) -> Summary | JudgeError:
        """Judge the shard; return what it came to, or what stopped it."""
        from langchain_judges.methods.registry import build
        from langchain_judges.runs.many import ajudge_many

        judge = build(spec)
        if rate is not None:
            options = {**options, "rate_limiter": _ClusterLimiter(rate)}
        late = time.monotonic() + LOCKED
        while True:
            run = ajudge_many(judge, source(), progress=False, **options)
            self._summary = run.summary
            try:
                async for _ in run:
                    pass
            except OutputError as exc:
                # The process that this one stands in for may not be quite dead.
                if run.summary.rows or time.monotonic() > late:
                    return exc
                await asyncio.sleep(0.5)
            except JudgeError as exc:
                return exc
            else:
                return run.summary

    async def summary(self) -> Summary:
        """Return what it came to so far."""
        return self._summary


class _Rate:
    """One rate for all actors."""

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        self._limiter = MinuteLimiter(rpm=rpm, tpm=tpm)

    def turn(self, blocking: bool) -> float:
        return self._limiter.turn(blocking=blocking)

    def spend(self, tokens: int) -> None:
        self._limiter.spend(tokens)


class _ClusterLimiter(BaseRateLimiter):
    """Asks the rate's own actor for a turn."""

    def __init__(self, rate: Any) -> None:
        self._rate = rate

    def acquire(self, *, blocking: bool = True) -> bool:
        with needs("ray", "Judging on Ray"):
            import ray

        wait = ray.get(self._rate.turn.remote(blocking))
        if blocking:
            time.sleep(wait)
        return blocking or not wait

    async def aacquire(self, *, blocking: bool = True) -> bool:
        wait = await self._rate.turn.remote(blocking)
        if blocking:
            await asyncio.sleep(wait)
        return blocking or not wait

    def spend(self, tokens: int) -> None:
        self._rate.spend.remote(tokens)


def _display(summary: Summary, judges: list[Any], ray: Any, progress: bool) -> Any:
    """Return what shows the progress of all actors while it is entered."""
    if not progress:
        return nullcontext()
    from langchain_judges.runs.progress import show_progress

    last = [0.0]

    def refresh() -> None:
        if time.monotonic() - last[0] < 1:
            return
        last[0] = time.monotonic()
        ready, _ = ray.wait(
            [judge.summary.remote() for judge in judges], num_returns=len(judges), timeout=1
        )
        _sum_up(summary, ray.get(ready))

    return show_progress(summary, refresh)


def _sum_up(summary: Summary, outcomes: Iterable[Summary | JudgeError]) -> None:
    """Make `summary` the sum of those of the actors; its times are the longest."""
    parts = [outcome for outcome in outcomes if isinstance(outcome, Summary)]
    for field in fields(Summary):
        values = [getattr(part, field.name) for part in parts]
        if field.name in ("seconds", "held_back", "seconds_full", "total"):
            value: Any = max((each for each in values if each is not None), default=None)
        elif field.name == "prices":
            value = next(filter(None, values), None)
        elif field.name == "wrote":
            value = any(values)
        else:
            value = sum(values[1:], values[0]) if values else getattr(summary, field.name)
        if value is not None:
            setattr(summary, field.name, value)
