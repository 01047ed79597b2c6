"""Every way to end a run × every method: `python -m tests.attacks.matrix`.

A run of six rows is ended midway, in a process of its own, and run again to its end. A server
on loopback counts the requests: a call that was answered before the end and is asked again was
paid twice. Whether the server's answer had reached a process when it died nobody can know, so
the server holds the later answers back until the process says that it has written the earlier
ones down; and as different rows may ask the same, requests are counted against a run that
nothing ended.

Printed: a table for docs/evidence.md. Name what to try to try less of it, such as
`python -m tests.attacks.matrix bsm writer`; add `--every` to try each method in all four ways.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_judges.methods.registry import METHODS
from langchain_judges.runs.shards import merge_shards
from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, error, reply
from tests.attacks.killed_run import ANSWERED, ROWS
from tests.judges import answer_call
from tests.planners import fooled
from tests.processes import Program, start

HANGS = 180.0
"""Seconds after which a run hangs."""
SIGNALS = {
    "kill -9": signal.SIGKILL,
    "SIGTERM": signal.SIGTERM,
    "SIGHUP": signal.SIGHUP,
    "SIGQUIT": signal.SIGQUIT,
    "Ctrl-C": signal.SIGINT,
    "cancellation": signal.SIGUSR1,
}
ENDS = (*SIGNALS, "time-out", "revoked key", "full disk")
WAYS = ("checkpointer, threads", "checkpointer, async", "out, threads", "out, async")
SUBJECTS = (*sorted(METHODS), "jury", "cascade", "writer")
TWICE = {"relative", "bsm", "jury", "writer"}
"""Subjects that are tried with a checkpointer and without."""
_STOPS = ("kill -9", "SIGTERM", "Ctrl-C", "revoked key")
# An audit marks what timed out and ends well, and has no results file.
OTHERS = (
    ("audit", WAYS[0], _STOPS),
    ("audit", WAYS[1], (*_STOPS, "cancellation")),
    ("relative", "shards", (*_STOPS, "time-out", "full disk")),
    ("bsm", "shards", (*_STOPS, "time-out", "full disk")),
)


class Case(NamedTuple):
    """A run: its subject, its way and its end."""

    subject: str
    way: str
    end: str

    @property
    def answered(self) -> int:
        """Number of replies before the end; in an event loop an audit has labelled all."""
        return 2 * ROWS + 2 if self[:2] == ("audit", WAYS[1]) else ANSWERED


def cases(subjects: list[str], *, every: bool = False) -> Iterator[Case]:
    """The cases: every subject with every end, in one or two of four ways by turns.

    Args:
        subjects: What to try; empty for all.
        every: Try all four ways.
    """
    for number, subject in enumerate(SUBJECTS):
        for turn, end in enumerate(ENDS, number):
            ways = [turn % 4, (turn + 2) % 4] if subject in TWICE else [turn % 4]
            for way in range(4) if every else ways:
                # Threads cannot be cancelled.
                name = WAYS[way | 1 if end == "cancellation" else way]
                if not subjects or subject in subjects:
                    yield Case(subject, name, end)
    for subject, where, ends in OTHERS:
        if not subjects or {subject, where} & set(subjects):
            yield from (Case(subject, where, end) for end in ends)


@dataclass
class Script:
    """Answers so many requests; what it does with the others depends on how the run ends."""

    end: str
    limit: float
    lanes: int = 1
    """Requests that wait at the moment at which a run is ended."""
    answered: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    waiting: list[str] = field(default_factory=list)
    first: str = ""
    """The shape of the first request's reply."""

    def __call__(self, call: ServerCall) -> ServerReply:
        key = json.dumps([call.body["messages"], call.body.get("seed")])
        with self.lock:
            self.first = self.first or call.shape
            # A writer goes on without a draft that timed out: none is answered before.
            comes = self.end != "time-out" or call.shape == self.first
            if self.answered.total() < self.limit and comes:
                self.answered[key] += 1
                return self.good(call)
            self.waiting.append(key)
            if len(self.waiting) == self.lanes:
                self.held.set()
            if self.end == "revoked key" and self.held.is_set():
                self.release.set()
        answer = error(401, "revoked") if self.end == "revoked key" else self.good(call)
        return replace(answer, hold=self.release)

    def good(self, call: ServerCall) -> ServerReply:
        """Answer as it is asked."""
        if call.shape == "Audited":
            return reply('{"reason": "no", "answer": "reject", "mode": "none"}')
        if "which path leads" in call.prompt.lower():
            return reply(fooled(call.prompt))
        return answer_call(call)

    def let_go(self) -> None:
        """Answer what waits, and all that still comes."""
        with self.lock:
            self.answered.update(self.waiting)
            self.limit = float("inf")
        self.release.set()


def tried(case: Case) -> str:
    """The fault of one case; empty if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        # An audit writes a verdict down after its judge has; then its lane asks again.
        lanes = 4 if case.subject == "audit" else 1
        script = Script(case.end, case.answered, lanes)
        with FakeModelServer(script) as server:
            _ended(case, script, _started(case, server.url, folder))
            script.limit, script.end = float("inf"), ""
            script.release.set()
            before = script.answered.copy()
            again = _started(case._replace(end="-"), server.url, folder)
            stderr = _until_its_end(again)
        return _wrong(case, Path(folder), script.answered, before) or _tail(stderr)


def _started(case: Case, url: str, folder: str) -> Program:
    return start("-m", "tests.attacks.killed_run", url, folder, *case)


def _ended(case: Case, script: Script, process: Program) -> None:
    """End a run midway."""
    if case.end == "full disk":
        script.let_go()
    if case.end in SIGNALS:
        for _ in range(case.answered):
            process.stdout.readline()
        assert script.held.wait(300), "nothing was asked"
        process.send_signal(SIGNALS[case.end])
        if case.end in {"Ctrl-C", "cancellation"} and case.subject != "audit":
            script.let_go()  # calls in flight may come back, and count
        elif case.end in {"Ctrl-C", "cancellation"}:
            script.release.set()
    _until_its_end(process)


def _until_its_end(process: Program) -> str:
    """Wait for a run, and return what it says; one that hangs shows where."""
    alarm = threading.Timer(HANGS, process.send_signal, [signal.SIGABRT])
    alarm.start()
    try:
        _, stderr = process.communicate()
    finally:
        alarm.cancel()
    if process.returncode == -signal.SIGABRT:
        raise RuntimeError(f"it hung: {stderr[-5000:]}")
    return stderr


def _tail(stderr: str) -> str:
    return stderr[-300:] if "Traceback" in stderr else ""


def _wrong(case: Case, folder: Path, asked: Counter[str], before: Counter[str]) -> str:
    requests, verdicts = undisturbed(case.subject)
    try:
        decided = _decided(case, folder)
    except (OSError, ValueError, KeyError) as exc:
        return f"file: {exc!r}"
    if decided != verdicts:
        return f"verdicts differ: {decided} for {verdicts}"
    twice = sum((asked - requests).values())
    # What the full disk did not take is lost.
    return f"{twice} of {before.total()} paid twice" if twice and case.end != "full disk" else ""


def _decided(case: Case, folder: Path) -> Any:
    """The results of a run, by row."""
    if case.subject == "audit":
        return json.loads((folder / "audit.json").read_text())
    out = folder / "out.jsonl"
    if case.way == "shards":
        merge_shards(folder / "out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == ROWS
    return {row["id"]: _verdict(row) for row in rows}


def _verdict(row: dict[str, Any]) -> Any:
    verdict = row.get("verdict") or row
    return [verdict.get(name) for name in ("preference", "label", "score", "text")]


_ONE_BY_ONE = threading.Lock()


def undisturbed(subject: str) -> tuple[Counter[str], Any]:
    """The requests and the verdicts of a run that nothing ends."""
    with _ONE_BY_ONE:
        return _undisturbed(subject)


@cache
def _undisturbed(subject: str) -> tuple[Counter[str], Any]:
    case, script = Case(subject, "out, threads", "-"), Script("-", float("inf"))
    with FakeModelServer(script) as server, tempfile.TemporaryDirectory() as folder:
        stderr = _until_its_end(_started(case, server.url, folder))
        try:
            return script.answered, _decided(case, Path(folder))
        except OSError as exc:
            raise RuntimeError(stderr) from exc


def safely(case: Case) -> str:
    try:
        return tried(case)
    except (AssertionError, RuntimeError) as exc:
        return repr(exc)


def problems(tries: list[Case]) -> Iterator[tuple[Case, str]]:
    """Yield what went wrong in each case, in their order; empty if nothing did."""
    with ThreadPoolExecutor(int(os.environ.get("AT_ONCE", "4"))) as pool:
        yield from zip(tries, pool.map(safely, tries), strict=True)


def main(subjects: list[str]) -> None:
    """Try every case and print the table."""
    every = list(
        cases([each for each in subjects if each != "--every"], every="--every" in subjects)
    )
    counts: dict[tuple[str, str], Counter[str]] = {}
    for case, problem in problems(every):
        kind = "audit" if case.subject == "audit" else case.way.partition(",")[0]
        count = counts.setdefault((case.end, kind), Counter())
        count.update(cases=1, failed=int(bool(problem)))
        print("x" if problem else ".", end="", flush=True)
        if problem:
            print(f"{', '.join(case)}: {problem}", file=sys.stderr, flush=True)
    kinds = list(dict.fromkeys(kind for _, kind in counts))
    print(f"| the run ends by | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for end in ENDS:
        cells = [counts.get((end, kind), Counter()) for kind in kinds]
        shown = [f"{each['failed']} of {each['cases']}" if each else "" for each in cells]
        print(f"| {end} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
