"""A run's results as JSONL, each line bound to its input by a key; safe to kill and resume."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import threading
from pathlib import Path
from tempfile import mkstemp
from typing import TypeGuard

from langchain_judges.errors import OutputError
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.printable import inert_json
from langchain_judges.runs.rows import ResultRow, judged_row, outcome_of
from langchain_judges.verdict import is_abstention

try:
    import fcntl
except ImportError:  # Windows has no such locks; two runs on one file are then not noticed
    fcntl = None  # type: ignore[assignment]


_START = b'{"index": '
"""The beginning of every row: an incomplete line without it is not a result."""
_HEAD = re.compile(
    rb'\{"index": \d+, "key": "([0-9a-f-]+)", "kind": "\w+", "judged": (true|false), '
    rb'"judge": \{"mark": "([0-9a-f]+)"'
)
"""The first fields of every row: enough to find it without parsing the whole line."""
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def _line(row: ResultRow) -> bytes:
    # Lone surrogates, which UTF-8 cannot encode, are also escaped.
    return inert_json(json.dumps(row, ensure_ascii=False)).encode() + b"\n"


def write_whole(file: int, line: bytes) -> None:
    """Append a complete line or nothing: a full disk may accept half of one.

    Raises:
        OSError: The file cannot take it.
    """
    is_regular = stat.S_ISREG(os.fstat(file).st_mode)
    size = os.fstat(file).st_size
    if is_regular:
        os.lseek(file, 0, os.SEEK_END)
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        if is_regular:
            os.ftruncate(file, size)
        raise


def _is_result(row: object) -> TypeGuard[ResultRow]:
    """Return whether JSON data has the form of a result, as far as it is used here."""
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        return False
    verdict = row.get("verdict")
    if not all(isinstance(part or {}, dict) for part in (verdict, row.get("judge"))):
        return False
    outcome = row if kind_of_result(row) == "task" else verdict
    if not isinstance(outcome, dict):
        return False
    failures = outcome.get("failures") or []
    return isinstance(failures, list) and all(isinstance(each, dict) for each in failures)


def _try_again(row: ResultRow, keep_failed: bool) -> bool:
    if judged_row(row) or is_abstention(row.get("verdict") or {}):
        return False
    failures = outcome_of(row).get("failures") or []
    over_budget = any(failure.get("reason") == "over_budget" for failure in failures)
    return over_budget or not keep_failed


class Results:
    """The results file of one run.

    Opening it finds the rows of earlier runs by the first fields of each line. An incomplete
    last line, duplicate lines and rows of this judge that were not judged are dropped, in a
    copy that replaces the file atomically; a file without any of these is not changed.
    Rows of other judges and inputs are kept.

    Args:
        path: The JSONL file; created if it is missing.
        mark: Identifies the judge and its settings; each row has the mark of its judge.
        keep_failed: Keep rows that were not judged instead of judging them again; rows that
            were over the budget are judged again in any case.

    Raises:
        OutputError: Another run is writing to the file, or it holds something else.
    """

    def __init__(
        self, path: str | os.PathLike[str], mark: str, *, keep_failed: bool = False
    ) -> None:
        """Open, clean up and lock the file."""
        self.path = Path(path).resolve()
        self.others = 0
        """Rows of other judges in the file."""
        self._mark = mark
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        """Offset and length of each row."""
        self._file: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open(keep_failed)
        except OSError as exc:
            raise OutputError(f"Results cannot be written to {self.path}: {exc}") from exc

    def __contains__(self, key: str) -> bool:
        """Return whether an earlier run finished this input."""
        return key in self._places

    def __len__(self) -> int:
        """Return the number of rows of earlier runs."""
        return len(self._places)

    def read(self, key: str) -> ResultRow:
        """Return the row that an earlier run wrote.

        Raises:
            OutputError: The file was closed, or another program has changed it.
        """
        with self._lock:
            if self._file is None:
                raise OutputError(f"The run has closed {self.path}.")
            offset, length = self._places[key]
            os.lseek(self._file, offset, os.SEEK_SET)
            line = os.read(self._file, length)
        try:
            row: ResultRow = json.loads(line.decode())
        except ValueError as exc:
            raise OutputError(f"Another program has changed {self.path}.") from exc
        return row

    def append(self, row: ResultRow) -> None:
        """Write a row; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file was closed, or cannot take the row.
        """
        line = _line(row)
        with self._lock:
            if self._file is None:
                raise OutputError(f"The run has closed {self.path}.")
            try:
                write_whole(self._file, line)
            except OSError as exc:
                raise OutputError(f"Results cannot be written to {self.path}: {exc}") from exc

    def close(self) -> None:
        """Close the file and free it for other runs."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _open(self, keep_failed: bool) -> int:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINKS, 0o644)
        try:
            self._claim(file)
            if os.fstat(file).st_ino != self.path.stat().st_ino:
                raise OutputError(f"Another run has just begun to write to {self.path}.")
            for leftover in self.path.parent.glob(f"{self.prefix_of(self.path)}*.tmp"):
                leftover.unlink()  # of a run that was killed: only one at a time comes so far
            if not os.fstat(file).st_size or self._find(keep_failed):
                return file
            copy = self._tidy(file)
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return copy

    @staticmethod
    def prefix_of(path: Path) -> str:
        """Return the prefix of copies of a file, whose own name may have the maximum length."""
        return f".{hashlib.sha256(path.name.encode()).hexdigest()[:12]}-"

    def _tidy(self, old: int) -> int:
        """Replace the file by a copy of the rows to keep; return its descriptor."""
        # A new file with an unpredictable name, so that no link can be prepared.
        new, copy = mkstemp(".tmp", self.prefix_of(self.path), self.path.parent)
        try:
            # Locked before it gets its name, so that no other run can come between.
            self._claim(new)
            end = 0
            for key, (offset, length) in self._places.items():
                os.lseek(old, offset, os.SEEK_SET)
                write_whole(new, os.read(old, length))
                self._places[key] = end, length
                end += length
            os.fsync(new)
            os.fchmod(new, stat.S_IMODE(os.fstat(old).st_mode))
            os.replace(copy, self.path)
        except BaseException:
            Path(copy).unlink(missing_ok=True)
            os.close(new)
            raise
        return new

    def _find(self, keep_failed: bool) -> bool:
        """Find the rows to keep; return whether the file holds nothing else."""
        offset, complete = 0, True
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and _START.startswith(line[: len(_START)]):
                    return False
                key, mark, again = self._head(line, number, keep_failed)
                own = mark == self._mark
                self.others += not own
                if key in self._places or (own and again):
                    complete = False
                else:
                    self._places[key] = offset, len(line)
                offset += len(line)
        return complete

    def _head(self, line: bytes, number: int, keep_failed: bool) -> tuple[str, str, bool]:
        """Return a row's key, its judge's mark, and whether it is to be judged again."""
        head = _HEAD.match(line)
        if head and head[2] == b"true":
            return head[1].decode(), head[3].decode(), False
        row = self._row(line, number)
        mark = (row.get("judge") or {}).get("mark")
        return row["key"], str(mark), _try_again(row, keep_failed)

    def _row(self, line: bytes, number: int) -> ResultRow:
        try:
            # Decoded here: `json` would guess UTF-16 too.
            row: object = json.loads(line.decode())
        except (ValueError, RecursionError):
            row = None
        if not _is_result(row):
            raise OutputError(
                f"{self.path}, line {number}: not a result of a judge; name another file for "
                "the results."
            )
        return row

    def _claim(self, descriptor: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise OutputError(f"Another run is writing to {self.path}.") from exc
