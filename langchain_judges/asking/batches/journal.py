"""What a batch run remembers on disk: which request went into which job, and its answer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from typing_extensions import TypedDict

from langchain_judges.errors import OutputError

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    name TEXT PRIMARY KEY, address TEXT NOT NULL, requests INTEGER NOT NULL,
    made REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS requests (
    key TEXT PRIMARY KEY, job TEXT, answer TEXT
);
CREATE INDEX IF NOT EXISTS by_job ON requests (job);
"""
INTENDED = ""
"""The address of a job that was begun and of which no answer is known."""


class BatchAnswer(TypedDict):
    """What a request got: an HTTP status and JSON."""

    status: int
    body: Any


@dataclass(frozen=True)
class Job:
    """A job of a batch API."""

    name: str
    """The server's name for it; of a job only intended, the mark that it carries there."""
    address: str
    status: str
    """As the server calls it: `validating`, `in_progress`, `completed`, `expired` …"""
    requests: int
    completed: int = 0
    made: float = 0.0
    """When the server took it, in seconds since 1970."""

    @property
    def intended(self) -> bool:
        """Whether it is not known that the server took it."""
        return self.address == INTENDED


class BatchJournal:
    """A SQLite file; every change is on disk when its method returns.

    Raises:
        OutputError: The file cannot be opened, or is something else.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open or make the file."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._file.executescript(_TABLES)
        except (OSError, sqlite3.Error) as exc:
            raise OutputError(f"{path} cannot be used as a journal: {exc}") from exc

    def answer(self, key: str) -> BatchAnswer | None:
        """Return the answer that a request got, if it has one."""
        row = self._one("SELECT answer FROM requests WHERE key = ?", key)
        return cast("BatchAnswer", json.loads(row[0])) if row and row[0] else None

    def job_of(self, key: str) -> Job | None:
        """Return the job that a request is in, if it is in one."""
        row = self._one(
            "SELECT jobs.* FROM requests JOIN jobs ON job = name WHERE key = ?", key
        )
        if row is None:
            return None
        name, address, requests, made = row
        return Job(name, address, "unknown", requests, made=made)

    def intend(self, mark: str, keys: Iterable[str]) -> None:
        """Remember that a job is about to be made of some requests."""
        rows = [(key, mark) for key in keys]
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, 0)", (mark, INTENDED, len(rows))
            )
            self._file.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, NULL)", rows)

    def sent(self, mark: str, job: Job) -> None:
        """Remember that the server took a job, and how it calls it."""
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute(
                "UPDATE jobs SET name = ?, address = ?, made = ? WHERE name = ?",
                (job.name, job.address, job.made, mark),
            )
            self._file.execute("UPDATE requests SET job = ? WHERE job = ?", (job.name, mark))

    def forget(self, mark: str) -> list[str]:
        """Forget a job that was never made; return its requests."""
        keys = self.unanswered(mark)
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute("DELETE FROM requests WHERE job = ?", (mark,))
            self._file.execute("DELETE FROM jobs WHERE name = ?", (mark,))
        return keys

    def unanswered(self, job: str) -> list[str]:
        """Return the requests of a job without an answer."""
        keys = self._file.execute(
            "SELECT key FROM requests WHERE job = ? AND answer IS NULL", (job,)
        )
        return [key for (key,) in keys]

    def keep(self, key: str, answer: BatchAnswer) -> None:
        """Remember the answer to a request."""
        text = json.dumps(answer, ensure_ascii=False)
        self._file.execute("UPDATE requests SET answer = ? WHERE key = ?", (text, key))

    def drop(self, key: str) -> None:
        """Forget a request, so that it can be asked again."""
        self._file.execute("DELETE FROM requests WHERE key = ?", (key,))

    def _one(self, query: str, key: str) -> Any:
        return self._file.execute(query, (key,)).fetchone()
