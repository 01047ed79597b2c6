"""Programs that a test starts, signals at a moment that it holds, and ends."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from langchain_judges.testing import ServerCall, ServerReply

ROOT = Path(__file__).parents[1]
LIMIT = 300  # seconds that a program may run
_LOCK = threading.Lock()


class Program:
    """A program that has started: what `subprocess.Popen` says of one, read as text."""

    def __init__(self, arguments: Sequence[object], imports: Sequence[str] = ()) -> None:
        out, err = os.pipe(), os.pipe()
        self.stdout, self.stderr = open(out[0]), open(err[0])  # noqa: SIM115 - `communicate` closes them
        order = {
            "arguments": [*map(str, arguments)],
            "imports": [*imports],
            "directory": os.getcwd(),
            "environment": dict(os.environ),
        }
        self.pid = _order({"do": "start", **order}, [out[1], err[1]])
        self.returncode: int | None = None
        os.close(out[1])
        os.close(err[1])
        # Every read and wait of a test ends with its program, so one limit bounds them all.
        self._limit = threading.Timer(LIMIT, self._end)
        self._limit.daemon = True
        self._limit.start()

    def poll(self) -> int | None:
        """The exit code, or None where it still runs."""
        if self.returncode is None:
            self.returncode = _order({"do": "poll", "pid": self.pid})
        if self.returncode is not None:
            self._limit.cancel()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """The rest of its output and errors, until it ends."""
        with ThreadPoolExecutor(2) as both:
            printed, errors = both.map(lambda file: file.read(), (self.stdout, self.stderr))
        self.stdout.close()
        self.stderr.close()
        if self.returncode is None:
            self.returncode = _order({"do": "wait", "pid": self.pid})
        self._limit.cancel()
        return printed, errors

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Let the system end it at once."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        if self.returncode is None:  # without an order: one that waits would hold this up
            os.kill(self.pid, signal.SIGKILL)


def start(*arguments: object, imports: Sequence[str] = ()) -> Program:
    """Start Python with these arguments, from a process that has imported the package.

    Args:
        arguments: What follows the name of the interpreter on a command line.
        imports: Modules that the process imports too, for this program and all after it.
    """
    return Program(arguments, imports)


@cache
def _server() -> socket.socket:
    """A process that forks programs for all workers: the first starts it, it ends with the last."""
    import fcntl  # Windows has none, and tests there wait for events by this module

    name = f"\0programs {os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one worker at a time finds it or starts it
        try:
            ours.connect(name)
        except ConnectionRefusedError:
            _start_server(name)
            ours.connect(name)
    atexit.register(ours.close)
    return ours


def _start_server(name: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(name)
        listener.listen()
        file = listener.fileno()
        command = [sys.executable, "-m", "tests.fork_server", str(file)]
        running = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[file])
    atexit.register(running.wait)


def _order(order: dict[str, object], files: Sequence[int] = ()) -> int | None:
    with _LOCK:
        socket.send_fds(_server(), [json.dumps(order).encode()], files)
        answer: int | None = json.loads(_server().recv(1 << 10))
    return answer


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    """Wait for what is sure to come; the limit only ends a test that is broken."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "nothing happened"
        time.sleep(0.005)


def interrupt(process: Program) -> str:
    """Send Ctrl-C, and return what the program says up to its sentence on stopping."""
    process.send_signal(signal.SIGINT)
    stderr = ""
    while "Stopping" not in stderr:
        line = process.stderr.readline()
        assert line, stderr
        stderr += line
    return stderr


def held(
    answer: Callable[[ServerCall], ServerReply], when: Callable[[ServerCall], bool]
) -> tuple[Callable[[ServerCall], ServerReply], threading.Event]:
    """A script that holds some of its answers until the event beside it is set."""
    event = threading.Event()

    def script(call: ServerCall) -> ServerReply:
        return replace(answer(call), hold=event) if when(call) else answer(call)

    return script, event


def rows_in(path: Path) -> int:
    """Number of whole lines of a results file; 0 where there is none yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
