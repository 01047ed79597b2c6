"""Programs that a test starts, signals at a moment that it holds, and ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from langchain_judges.testing import Answer, Call

ROOT = Path(__file__).parents[1]


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start Python with these arguments."""
    command = [sys.executable, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    """Wait for what is sure to come; the limit only ends a test that is broken."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "nothing happened"
        time.sleep(0.005)


def interrupt(process: subprocess.Popen[str]) -> str:
    """Send Ctrl-C, and return what the program says up to its sentence on stopping."""
    process.send_signal(signal.SIGINT)
    said = ""
    while "Stopping" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def held(
    answer: Callable[[Call], Answer], when: Callable[[Call], bool]
) -> tuple[Callable[[Call], Answer], threading.Event]:
    """Return a script that holds some of its answers until the event beside it is set."""
    event = threading.Event()

    def script(call: Call) -> Answer:
        return replace(answer(call), hold=event) if when(call) else answer(call)

    return script, event


def rows_in(path: Path) -> int:
    """Return how many whole lines a results file has; 0 where there is none yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
