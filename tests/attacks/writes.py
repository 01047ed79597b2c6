"""Every entry point killed at every write: `python -m tests.attacks.writes [ENTRY …]`.

A process is ended before and after each write to the disk that an entry point makes (a commit
or statement of SQLite, bytes appended to a file, a file put in its place) and the same call is
made again. What comes of it, and the replies that were paid for, are those of a run that
nothing ended. A reply that was on its way to the disk is lost; every other one must be found.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import langchain.chat_models
import typer
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_judges import FailureMemory, ajudge_many, create_allure_audit, judge_many, load_judge
from langchain_judges.asking import embeddings
from langchain_judges.cli import app
from langchain_judges.testing.schema_replies import fitting_reply
from tests.fakes import FakeChatModel
from tests.fork_server import LATER
from tests.judges import FEW, answer, item_of
from tests.memories import Letters
from tests.planners import fooled, planning

KILLED = 9
MEMORY = Path("/dev/shm")
ROWS = 3
THREAD: Any = {"configurable": {"thread_id": "t"}}
_write, _replace = os.write, os.replace


class Death:
    """Counts the writes of this process, and ends it at one of them.

    Attributes:
        at: The moment at which it ends; None: never.
        paid: Replies that have come and are not on the disk yet.
    """

    def __init__(self, folder: Path, at: int | None) -> None:
        self.at, self.count, self.paid, self._committing = at, 0, 0, 0
        self._lock = threading.RLock()
        self._log = os.open(folder / "asked", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def moment(self) -> None:
        """End the process if its time has come."""
        with self._lock:
            self.count += 1
            if self.count == self.at:
                _write(self._log, b"lost\n" * self.paid)
                os._exit(KILLED)

    def asked(self, prompt: str) -> str:
        """Answer a request, and write down that it was made."""
        with self._lock:
            _write(self._log, b"asked\n")
            self.paid += 1
        return fooled(prompt) if "which path leads" in prompt.lower() else answer(prompt)

    def written(self, file: sqlite3.Connection, sql: str) -> None:
        """Count a reply that is on the disk, once its transaction is."""
        with self._lock:
            self._committing += "INTO replies" in sql
            if not file.in_transaction:
                self.paid, self._committing = self.paid - self._committing, 0

    def watch(self) -> None:
        """Stand before and after every write."""
        death = self

        def around(do: Callable[..., Any]) -> Callable[..., Any]:
            def watched(*args: Any, **more: Any) -> Any:
                death.moment()
                result = do(*args, **more)
                death.moment()
                return result

            return watched

        class Cursor(sqlite3.Cursor):
            def execute(self, sql: str, *args: Any) -> Any:
                if _only_reads(sql):
                    return super().execute(sql, *args)
                death.moment()
                done = super().execute(sql, *args)
                death.written(self.connection, sql)
                death.moment()
                return done

        class Connection(sqlite3.Connection):
            def cursor(self, *_: Any) -> Any:
                return super().cursor(Cursor)

            def execute(self, sql: str, *args: Any) -> Any:
                return self.cursor().execute(sql, *args)

            def commit(self) -> None:
                around(super().commit)()

        connect = sqlite3.connect
        sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": Connection})
        os.write, os.replace = around(_write), around(_replace)


def _only_reads(sql: str) -> bool:
    return sql.lstrip().upper().startswith(("SELECT", "PRAGMA", "CREATE", "BEGIN"))


def rows_of(method: str) -> list[dict[str, Any]]:
    """Rows that differ."""
    return [{**item_of(method), "input": f"Why {n}?", "id": str(n)} for n in range(ROWS)]


def told(rows: list[Any]) -> Any:
    """The results of rows, but for who paid."""
    return [[row["id"], row["judged"], row["verdict"]["score"]] for row in rows]


def bsm(store: str, model: Any, folder: Path, saver: Any) -> tuple[Any, Any]:
    """A judge and the settings of its run, by where replies and results are kept."""
    kept = saver if "checkpointer" in store else None
    files = {name: folder / file for name, file in STORES[store].items()}
    judge = load_judge("bsm", model, **FEW["bsm"], checkpointer=kept)
    return judge, {**files, "max_concurrency": 1, "progress": False}


def in_threads(store: str, model: Any, folder: Path) -> Any:
    """Judge in threads."""
    with SqliteSaver.from_conn_string(str(folder / "s")) as saver:
        judge, settings = bsm(store, model, folder, saver)
        return told(list(judge_many(judge, rows_of("bsm"), **settings)))


async def in_loop(store: str, model: Any, folder: Path) -> Any:
    """Judge in an event loop."""
    async with AsyncSqliteSaver.from_conn_string(str(folder / "s")) as saver:
        judge, settings = bsm(store, model, folder, saver)
        return told([row async for row in ajudge_many(judge, rows_of("bsm"), **settings)])


def audited(model: Any, folder: Path) -> Any:
    """Audit a judge and teach its memory."""
    memory = FailureMemory(embeddings=Letters(), path=folder / "m.db")
    with SqliteSaver.from_conn_string(str(folder / "s")) as saver:
        audit = create_allure_audit(
            model, memory, auditor="labels", checkpointer=saver, max_concurrency=1, max_rounds=2
        )
        state = audit.get_state(THREAD)
        if not state.values.get("stopped"):
            begun = bool(state.values) or bool(state.tasks)
            audit.invoke(None if begun else {"items": planning(ROWS)}, THREAD)
        end = audit.get_state(THREAD).values
    learnt = sorted((each["source"], each["corrected"]) for each in memory.examples())
    return [end["stopped"], [each["usage"]["calls"] for each in end["history"]], learnt]


def looking_up(model: Any, folder: Path) -> Any:
    """Judge with a tool whose results are paid for as replies are."""
    ask = model.replies

    @tool
    def look(n: int) -> str:
        """Look."""
        ask("a look-up")
        return f"number {n}"

    def replies(prompt: str) -> object:
        ask(prompt)
        if "You collect evidence" not in prompt:
            return fitting_reply(prompt)
        numbers = () if "<finding-" in prompt else (1, 2)
        return {"calls": [{"tool": "look", "arguments": f'{{"n": {n}}}'} for n in numbers]}

    options: Any = {"rubric": "Is it right?", "tools": [look]}
    judge = load_judge("rubric", FakeChatModel(replies=replies), **options)
    run: Any = {"records": folder / "r.jsonl", "max_concurrency": 1, "progress": False}
    rows = list(judge_many(judge, rows_of("rubric"), **run))
    return [*told(rows), [row["verdict"].get("lookups") for row in rows]]


def command(*arguments: str) -> Callable[[Any, Path], Any]:
    """A command of the command line, in the folder."""

    def run(model: Any, folder: Path) -> Any:
        langchain.chat_models.init_chat_model = lambda *_, **__: model
        vars(embeddings)["_encoder"] = lambda: Letters().embed_documents
        os.chdir(folder)
        for name in ("v1", "v2", "v3"):
            lines = ({"input": f"Why {n}?", "output": f"{name} good {n}"} for n in range(ROWS))
            Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        labelled = [{**row, "label": "A"} for row in rows_of("bsm")]
        Path("pairs.jsonl").write_text("\n".join(map(json.dumps, labelled)))
        Path("items.jsonl").write_text("\n".join(map(json.dumps, planning(ROWS))))
        more = ["--model", "openai:fake", "--concurrency", "1"]
        try:
            code = app([*arguments, *more], standalone_mode=False)
        except typer.Exit as end:
            code = end.exit_code
        assert not code, f"it left with {code}"
        tables = (path for path in sorted(folder.glob("out*")) if path.is_file())
        return [path.read_text() for path in tables]

    return run


STORES: dict[str, dict[str, str]] = {
    "records": {"records": "r.jsonl"},
    "a table": {"out": "out.csv"},
    "a checkpointer": {},
    "a checkpointer and records": {"records": "r.jsonl"},
}
"""Files in which runs keep replies and results, by option."""
ENTRIES: dict[str, Callable[[Any, Path], Any]] = {
    **{store: partial(in_threads, store) for store in STORES},
    **{
        f"{store}, async": lambda *given, store=store: asyncio.run(in_loop(store, *given))
        for store in STORES
    },
    "an audit": audited,
    "look-ups": looking_up,
    "judge -o": command("judge", "pairs.jsonl", "--method", "bsm", "-o", "out.csv"),
    "compare systems": command("compare", "v1.jsonl", "v2.jsonl", "-o", "out.md"),
    "compare methods": command(
        "trust", "pairs.jsonl", "--method", "relative,absolute", "-o", "out.md"
    ),
    "compare three systems": command("compare", "v1.jsonl", "v2.jsonl", "v3.jsonl", "-o", "out.md"),
    "audit": command(
        "audit", "items.jsonl", "--memory", "m.db", "--auditor", "labels", "-o", "out.json"
    ),
}
"""Functions of a model and a folder that are killed, by name; each returns its result."""
THEN = {"a checkpointer": "a checkpointer and records"}
"""Entry points that resume others, in place of the same call."""


class Outcome(NamedTuple):
    """A process that has ended."""

    code: int
    result: Any
    writes: int
    modules: list[str]
    """Its imports: a fork of a process that has them is sooner done."""


def forked(entry: str, folder: Path, at: int | None) -> Outcome:
    """Call an entry point in a process of its own."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            _run(entry, folder, at, write)
        except BaseException as exc:  # noqa: BLE001 - told to the parent
            _write(write, json.dumps([repr(exc), 0, []]).encode())
        os._exit(1)
    os.close(write)
    with open(read, "rb") as told_by:
        text = told_by.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(code, *(json.loads(text) if text else (None, 0, [])))


def _run(entry: str, folder: Path, at: int | None, pipe: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    death = Death(folder, at)
    death.watch()
    result = ENTRIES[entry](FakeChatModel(replies=death.asked), folder)
    said = json.dumps([result, death.count, sorted(sys.modules)], default=str)
    with open(pipe, "w") as file:
        file.write(said)
    os._exit(0)


def asked(folder: Path) -> tuple[int, int]:
    """Numbers of requests, and of their replies that no disk ever saw."""
    lines = (folder / "asked").read_text().split()
    return lines.count("asked"), lines.count("lost")


def problems(entry: str, parts: int | None = None) -> Iterator[str]:
    """Kill an entry point at its writes, and yield what is wrong after each of them.

    Args:
        entry: Its name.
        parts: Try so many of the writes, spread evenly; None: all of them.
    """
    again = THEN.get(entry, entry)
    for module in LATER:  # here, not in every fork
        import_module(module)
    # The system keeps what a dead process wrote: waiting for a disk to turn would show no more.
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        clean = Path(place) / "clean"
        clean.mkdir()
        whole = forked(entry, clean, None)
        assert whole.code == 0, whole
        assert whole.writes, f"{entry} writes nothing down"
        for name in whole.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.collect()
        gc.freeze()  # a fork that sweeps for garbage would copy all of it
        for at in range(1, whole.writes + 1, whole.writes // parts or 1 if parts else 1):
            folder = Path(place) / str(at)
            folder.mkdir()
            if forked(entry, folder, at).code != KILLED:
                continue  # threads interleave: it made fewer writes this time
            end = forked(again, folder, None)
            requests, lost = asked(folder)
            wrong = [f"{end.result!r:.300}"] if end.result != whole.result else []
            if requests - lost > asked(clean)[0]:
                wrong += [f"{requests - lost} replies kept of {asked(clean)[0]}"]
            yield f"{at} of {whole.writes}: {'; '.join(wrong)}" if wrong else ""
            shutil.rmtree(folder)


def main(entries: list[str]) -> None:
    for entry in entries or ENTRIES:
        found = list(problems(entry))
        failed = [each for each in found if each]
        print(f"{entry}: killed at {len(found)} writes, {len(failed)} went wrong", flush=True)
        for each in failed[:5]:
            print(f"  {each}")


if __name__ == "__main__":
    main(sys.argv[1:])
