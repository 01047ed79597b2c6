"""Judge a table on a Ray cluster: each task judges one shard, and the parts are joined.

A row's shard follows from its content, so every task reads the same rows. What a task judged
before it or the driver was lost is in its part, and the same call resumes. The folder of the
parts must be one that all machines see. Needs `ray`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from langchain_judges import judge_many, load_judge
from langchain_judges.runs.results import ResultsInUse
from langchain_judges.runs.shards import Merged, merge_shards


# Its predecessor may still be ending and hold the part.
@ray.remote(  # type: ignore[call-overload,untyped-decorator]  # its stubs know no list
    num_cpus=0, max_retries=100, retry_exceptions=[ResultsInUse]
)
def judge_shard(
    rows: Any, spec: Mapping[str, Any], records: str, shard: str, options: dict[str, Any]
) -> int:
    """Judge one shard; return how many rows have a result."""
    judge = load_judge(spec)
    with judge_many(judge, rows, records=records, shard=shard, progress=False, **options) as run:
        return sum(1 for _ in run)


def judge_on_ray(
    rows: Any, spec: Mapping[str, Any], records: Path, out: Path, shards: int, **options: Any
) -> Merged:
    """Judge rows by the judge of a spec, and join the results into a table.

    Where a budget ends before the rows do, it says so, and a later call judges the rest.

    Args:
        rows: A path that all machines see, or a list of rows.
        spec: As `judge.spec` gives it; keys stay in the machines' environments.
        records: Folder of the parts.
        out: The table.
        shards: How many tasks; as many again resume.
        **options: Of `judge_many`, for each shard: its calls in flight, its budget, its rate.
    """
    names = [f"{number}/{shards}" for number in range(1, shards + 1)]
    ray.get([judge_shard.remote(rows, spec, str(records), name, options) for name in names])
    return merge_shards(records, out)
