"""Judging on a Ray cluster: each actor has one judge and one part of the results.

An actor judges the rows of its shard with `ajudge_many`, so that its call slots stay busy from
the first row to the last, and appends each result to its own part. Rows that were judged before
an actor or the driver was lost are in the parts and are not judged again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_judges.asking.limiter import MinuteLimiter
from langchain_judges.errors import JudgeError, OptionError, needs
from langchain_judges.runs.results import ResultsInUse
from langchain_judges.runs.run_state import Rows
from langchain_judges.runs.shards import merge
from langchain_judges.runs.summary import Summary

if TYPE_CHECKING:
    from ray.data import Dataset

RowSource = Callable[[], Rows]
"""Creates the rows in the process of an actor."""
LOCKED = 60.0
"""Seconds that an actor waits for a part whose previous writer is still ending."""


class JudgedDataset(NamedTuple):
    """Results and summary of `judge_dataset`.

    Attributes:
        rows: The results, with the columns of `merge`.
        summary: The summary of all actors together.
    """

    rows: Dataset
    summary: Summary


def judge_dataset(  # noqa: PLR0913 - each an option of its own
    ds: Dataset | Rows | RowSource,
    spec: Mapping[str, Any],
    *,
    records: str | PathLike[str],
    actors: int = 2,
    max_concurrency: int = 32,
    rpm: float | None = None,
    tpm: float | None = None,
    address: str | None = None,
    **options: Any,
) -> JudgedDataset:
    """Judge a Ray dataset, with the judge that a spec describes.

    Args:
        ds: The rows: a `ray.data.Dataset`, a list of rows, or a function that creates them in
            each actor. Every actor reads all of them and judges those of its shard.
        spec: The value of `judge.spec`; API keys are given by the names of environment
            variables, which the actors need.
        records: A folder that all actors can reach. Each actor has a part in it, which works
            like `records` of `judge_many`; at the end it also holds `verdicts.parquet`.
        actors: Number of judging processes; use the same number to resume.
        max_concurrency: The most calls in flight, over all actors.
        rpm: The most requests per minute, over all actors.
        tpm: The most tokens per minute, over all actors.
        address: Address of a running cluster; None for the current one, or one on this
            machine.
        **options: Further options of `judge_many`; `max_calls`, `max_tokens` and `max_dollars`
            bound all actors gather, each of which has an equal share.

    Returns:
        The results as a dataset, and the summary of all actors. Where a budget was spent the
        dataset holds what was judged until then, and the same call later judges the rest.

    Raises:
        MissingExtraError: Ray is not installed.
        OptionError: An option is invalid.
        JudgeError: The error that stopped an actor, such as a rejected key.
    """
    with needs("ray", "Judging on Ray"):
        import ray
        from ray.data import read_parquet

    shares = _shares_of_all(options, actors, max_concurrency)
    if not ray.is_initialized():
        ray.init(address, include_dashboard=False, log_to_driver=False)
    folder = str(Path(records).resolve())
    # A judge mostly waits for its model, and reading the rows needs the CPUs too.
    kind = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy="SPREAD")
    # Each has an equal share of the rate, as of the other limits.
    rate = [None if most is None else most / actors for most in (rpm, tpm)]
    source = _source(ds)
    judges: list[Any] = [kind(_Actor).remote() for _ in range(actors)]
    # Passed to the task and not to the actor: Ray keeps the arguments of a task that it may
    # have to restart.
    runs = [
        judge.run.options(max_task_retries=-1).remote(
            dict(spec), source, rate, {**share, "records": folder}
        )
        for judge, share in zip(judges, shares, strict=True)
    ]
    try:
        outcomes = ray.get(runs)
    finally:
        for actor in judges:
            ray.kill(actor)
    for outcome in outcomes:
        if isinstance(outcome, JudgeError):
            raise outcome
    summary, table = _sum_of(outcomes), f"{folder}/verdicts.parquet"
    merge(folder, table, whole=not summary.not_judged["over_budget"])
    return JudgedDataset(read_parquet(table), summary)


def _shares_of_all(
    options: Mapping[str, Any], actors: int, places: int
) -> list[dict[str, Any]]:
    """Return the options of `judge_many` for each actor: its shard, its share of the limits.

    Raises:
        OptionError: A limit is less than the number of actors.
    """
    given = {name: options.get(name) for name in ("max_calls", "max_tokens")}
    limits = {"max_concurrency": places}
    limits |= {name: most for name, most in given.items() if most is not None}
    for name, most in limits.items():
        if not 1 <= actors <= most:
            raise OptionError(f"`{name}` must be at least `actors`, {actors}, got {most!r}")
    cost = options.get("max_dollars")
    return [
        {
            **options,
            # The first actors get the remainder.
            **{
                name: most // actors + (number <= most % actors)
                for name, most in limits.items()
            },
            "max_dollars": None if cost is None else cost / actors,
            "shard": f"{number}/{actors}",
        }
        for number in range(1, actors + 1)
    ]


def _source(ds: Dataset | Rows | RowSource) -> RowSource:
    if callable(ds):
        return ds
    if hasattr(ds, "iter_rows"):
        return lambda: ds.iter_rows()
    rows = list(ds)
    return lambda: rows


class _Actor:
    """Judges one shard; after a restart it skips the rows that are in its part."""

    async def run(
        self,
        spec: dict[str, Any],
        source: RowSource,
        rate: Sequence[float | None],
        options: dict[str, Any],
    ) -> Summary | JudgeError:
        """Judge the shard; return its summary, or the error that stopped it."""
        from langchain_judges.methods.registry import load_judge
        from langchain_judges.runs.many import ajudge_many

        judge = load_judge(spec)
        if any(rate):
            options = {**options, "rate_limiter": MinuteLimiter(rpm=rate[0], tpm=rate[1])}
        late = time.monotonic() + LOCKED
        while True:
            run = ajudge_many(judge, source(), **{**options, "progress": False})
            try:
                async for _ in run:
                    pass
                return run.summary
            except ResultsInUse as exc:
                # The process that this one replaces may still be ending.
                if time.monotonic() > late:
                    return exc
                await asyncio.sleep(0.5)
            except JudgeError as exc:
                return exc


def _sum_of(summaries: Iterable[Summary]) -> Summary:
    """Return the sum of the actors' summaries; times are the longest."""
    total = Summary()
    for summary in summaries:
        for name, value in vars(summary).items():
            known = getattr(total, name)
            if name == "seconds":
                value = max(known, value)
            elif name in ("prices", "wrote") or None in (known, value):
                value = known or value
            else:
                value = known + value
            setattr(total, name, value)
    return total
