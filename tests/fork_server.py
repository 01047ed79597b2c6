"""Starts programs by forking a process that has imported the package: `tests.processes`.

An interpreter that imports the package anew costs seconds; a fork of one costs milliseconds,
and is killed, signalled and ended as any process is.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any

import tests.judges
import tests.memories
import tests.model_server
import tests.planners  # noqa: F401 - programs would import them
from langchain_judges import create_allure_audit, create_bsm_judge, judge_many  # noqa: F401 - likewise
from langchain_judges.cli import COMMANDS
from langchain_judges.writing.writers import load_writer  # noqa: F401 - likewise

# What the package and its libraries import only once they are used.
LATER = (
    *(f"langchain_judges.cli.{name}" for name in COMMANDS),
    "anyio._backends._asyncio",
    "faiss",
    "httpx",
    "langchain.chat_models",
    "langchain_core.messages.block_translators.langchain_v0",
    "langgraph.checkpoint.sqlite.aio",
    "httpcore2",
    "krippendorff",
    "langchain_core.tracers.context",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "langchain_judges.methods.cascade",
    "langchain_judges.methods.jury",
    "langchain_judges.metrics.tournament",
    "langchain_judges.report.answers",
    "langchain_judges.report.compared_systems",
    "langchain_judges.report.overview",
    "langchain_judges.report.terminal",
    "langchain_judges.report.use_cases",
    "langchain_judges.runs.comparison",
    "langchain_openai",
    "langgraph.pregel.main",
    "openai.lib.streaming.chat",
    "openai.resources.chat.completions.messages",
    "rich.status",
    "scipy.stats",
    "truststore",
)


def serve(listener: socket.socket) -> dict[str, Any] | None:
    """Start and wait for programs until the last test process ends; return one in its fork."""
    sockets = [listener]
    while True:
        for ready in select.select(sockets, [], [])[0]:
            if ready is listener:
                sockets.append(ready.accept()[0])
                continue
            message, files, _, _ = socket.recv_fds(ready, 1 << 22, 2)
            if not message:
                sockets.remove(ready)
                if sockets == [listener]:
                    return None
                continue
            order = json.loads(message)
            if order["do"] == "start":
                answer: Any = _forked(order)
                if answer == 0:
                    for each in sockets:
                        each.close()
                    return {**order, "files": files}
                for file in files:
                    os.close(file)
            else:
                answer = _ended(order["pid"], os.WNOHANG if order["do"] == "poll" else 0)
            ready.send(json.dumps(answer).encode())


def _forked(order: dict[str, Any]) -> int:
    """Number of the process that this one forks, and 0 in that one."""
    _import(order["imports"])
    pid = os.fork()
    if pid == 0:
        for each in (signal.SIGHUP, signal.SIGQUIT):  # a shell's `&` or nohup ignores them
            signal.signal(each, signal.SIG_DFL)
    return pid


def _import(modules: Iterable[str]) -> None:
    """Import what programs would, and set it aside: a fork that sweeps would copy all of it."""
    if new := [name for name in modules if name not in sys.modules]:
        for name in new:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()


def _ended(pid: int, flags: int) -> int | None:
    result, status = os.waitpid(pid, flags)
    return os.waitstatus_to_exitcode(status) if result else None


def run(order: dict[str, Any]) -> None:
    """Run what Python runs with these arguments; its end is the end of this process."""
    for target, file in enumerate(order["files"], 1):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kind, *rest = order["arguments"]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        sys.path.insert(0, os.path.dirname(kind))
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import(LATER)
    if program := serve(socket.socket(fileno=int(sys.argv[1]))):
        run(program)
