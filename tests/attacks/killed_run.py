"""The run that `tests.attacks.matrix` ends: `python -m tests.attacks.killed_run URL FOLDER …`.

It prints one line for each reply that it has written down.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import itertools
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_judges import ajudge_many, create_allure_audit, judge_many, load_judge, resolve_model
from langchain_judges.asking import ask, send
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.writing.writers import load_writer
from tests.judges import FEW, item_of
from tests.memories import memory_of
from tests.planners import planning

ROWS = 6
ANSWERED = 4
"""Replies that come before what ends a run."""
DISK = 2500
"""Bytes that a file may hold where the disk is full: two or three rows."""


def rows_of(subject: str) -> list[dict[str, Any]]:
    """Different rows for a method, a combination or a writer."""
    if subject == "writer":
        return [{"concepts": [f"dog{n}", "run", "park"], "id": str(n)} for n in range(ROWS)]
    row = item_of("relative" if subject in {"jury", "cascade"} else subject)
    return [{**row, "input": f"Why {n}?", "id": str(n)} for n in range(ROWS)]


def worker_of(subject: str, model: Any, saver: Any) -> Any:
    """The judge or writer."""
    if subject == "writer":
        return load_writer("branch", model, checkpointer=saver)
    if subject == "jury":
        members = [load_judge(name, model) for name in ("relative", "absolute", "cot")]
        return create_jury(members, checkpointer=saver)
    if subject == "cascade":
        # Nobody is ever so sure that the next is not asked.
        members = [load_judge(name, model) for name in ("absolute", "relative")]
        return create_cascade(members, thresholds=1.0, checkpointer=saver)
    return load_judge(subject, model, checkpointer=saver, **FEW.get(subject, {}))


def work(subject: str, way: str, end: str, given: tuple[Any, Any, Path]) -> Iterator[Any]:
    """Yield the runs to iterate over: one, or one for each shard."""
    model, saver, folder = given
    settings: dict[str, Any] = {"max_concurrency": 4, "progress": False}
    many = ajudge_many if "async" in way else judge_many
    worker, rows = worker_of(subject, model, saver), rows_of(subject)
    if "shards" in way:
        for shard in ("1/2", "2/2"):
            yield many(worker, rows, records=folder / "out", shard=shard, **settings)
    else:
        records: Any = folder / "out.jsonl"
        if end == "full disk" and "checkpointer" in way:
            records = "/dev/full"  # where the checkpoints are not
        elif "alone" in way:
            records = None
        yield many(worker, rows, records=records, **settings)


def audit(model: Any, saver: Any) -> Any:
    """An audit by a model, of which nothing is learned."""
    settings: dict[str, Any] = {"max_rounds": 1, "max_concurrency": 4}
    return create_allure_audit(model, memory_of(), checkpointer=saver, auditor=model, **settings)


THREAD: Any = {"configurable": {"thread_id": "t"}}


def audited(result: dict[str, Any], folder: Path) -> None:
    """Write down what came of an audit, and how many replies it took, whoever began it."""
    rounds = [{**each, "usage": each["usage"]["calls"]} for each in result["history"]]
    (folder / "audit.json").write_text(json.dumps(rounds, default=str))


def show(way: str, rows: list[Any], folder: Path) -> None:
    """Write down the rows of a run that had no results file."""
    if "alone" in way:
        (folder / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def now(subject: str, way: str, end: str, model: Any, folder: Path) -> None:
    """Run in threads."""
    with SqliteSaver.from_conn_string(str(folder / "s.sqlite")) as saver:
        if subject == "audit":
            given = None if saver.get_tuple(THREAD) else {"items": planning(ROWS)}
            audited(audit(model, saver).invoke(given, THREAD), folder)
            return
        kept = saver if "checkpointer" in way else None
        for run in work(subject, way, end, (model, kept, folder)):
            show(way, list(run), folder)


async def later(subject: str, way: str, end: str, model: Any, folder: Path) -> None:
    """Run in an event loop; SIGUSR1 cancels."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, task.cancel)
    async with saver_of(folder) as saver:
        if subject == "audit":
            given = None if await saver.aget_tuple(THREAD) else {"items": planning(ROWS)}
            audited(await audit(model, saver).ainvoke(given, THREAD), folder)
            return
        kept = saver if "checkpointer" in way else None
        for run in work(subject, way, end, (model, kept, folder)):
            show(way, [row async for row in run], folder)


@contextlib.asynccontextmanager
async def saver_of(folder: Path) -> AsyncIterator[Any]:
    """Open the checkpoints."""
    async with AsyncSqliteSaver.from_conn_string(str(folder / "s.sqlite")) as saver:
        yield saver


def report_replies() -> None:
    """Print a line when a reply is written down."""
    module: Any = ask
    emit = module.emit

    def emitting(kind: str, *rest: Any, **more: Any) -> None:
        if kind == "reply":
            os.write(1, b"written\n")
        emit(kind, *rest, **more)

    module.emit = emitting


def lose_patience() -> None:
    """Wait long for the replies that come, as on a busy machine, and briefly for others."""
    number = itertools.count()

    def impatient(send: Any) -> Any:
        def sent(*given: Any, **more: Any) -> Any:
            limit = 120.0 if next(number) < ANSWERED else 4.0
            return send(*given, **more, timeout=limit)

        return sent

    model: Any = ChatOpenAI
    model._generate, model._agenerate = map(impatient, (model._generate, model._agenerate))


def main(url: str, folder: Path, subject: str, way: str, end: str) -> None:
    """Run to the end, or to what ends it."""
    faulthandler.enable()
    report_replies()
    if end == "time-out":
        send.ATTEMPTS, send.FIRST_WAIT = 2, 0.01
        lose_patience()
    if end == "full disk" and "checkpointer" not in way:
        resource.setrlimit(resource.RLIMIT_FSIZE, (DISK, resource.RLIM_INFINITY))
    model = resolve_model("m", base_url=url, timeout=120.0, api_key="x")
    if "async" in way:
        asyncio.run(later(subject, way, end, model, folder))
    else:
        now(subject, way, end, model, folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:6])
