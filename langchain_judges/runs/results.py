"""A run's results as JSONL, each line bound to its input by a key; safe to kill and resume."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langchain_judges.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows has no such locks; two runs on one file are then not noticed
    fcntl = None  # type: ignore[assignment]


def outcome_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where a result tells failures and usage: its verdict, or a written row itself."""
    return row if "text" in row else row.get("verdict") or {}


def judged_row(row: Mapping[str, Any]) -> bool:
    """Say whether a result holds a verdict, or a text if one was to be written."""
    if "text" in row:
        return row["text"] is not None
    verdict = row.get("verdict") or {}
    return verdict.get("preference", verdict.get("label")) is not None


JUDGED = (
    "input",
    "output_a",
    "output_b",
    "reference",
    "output",
    "expected",
    "source",
    "family",
)
"""What a verdict is of: the fields of a pair or an item that a judge is given."""


def content_key(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a short hash of each text of a row: they tell what a verdict is of.

    Unlike the key of a result it says nothing of the judge, the row's id or its place.
    """
    return {
        field: hashlib.sha256(
            json.dumps(row[field], sort_keys=True, default=str).encode()
        ).hexdigest()[:12]
        for field in JUDGED
        if row.get(field) not in (None, "")
    }


_START = b'{"index": '
"""What every row begins with: a torn line that does not is no row of ours."""


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # A model may write half of a surrogate pair, which UTF-8 has no bytes for.
        return json.dumps(row).encode() + b"\n"


def _try_again(row: Mapping[str, Any], keep_failed: bool) -> bool:
    if judged_row(row):
        return False
    failures = outcome_of(row).get("failures") or []
    spent = any(failure.get("reason") == "over_budget" for failure in failures)
    return spent or not keep_failed


class Results:
    """The results file of one run.

    Opening it tidies what an earlier run left: a torn last line, a line that stands twice
    and rows of this judge that were not judged are dropped, in a copy that replaces the
    file in one step. Rows of other judges and inputs stay.

    Args:
        path: The JSONL file; made if it is missing.
        mark: Names the judge and its settings; each row carries the mark of its own.
        keep_failed: Keep rows that were not judged instead of trying them again; those that
            a spent budget left are tried again all the same.

    Raises:
        OutputError: Another run is writing to the file, or it holds something else.
    """

    def __init__(
        self, path: str | os.PathLike[str], mark: str, *, keep_failed: bool = False
    ) -> None:
        """Open, tidy and lock the file."""
        self.path = Path(path).resolve()
        self.others = 0
        """Rows of other judges in the file."""
        self._mark = mark
        self._lock = threading.Lock()
        self._offsets: dict[str, int] = {}
        self._file: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open(keep_failed)
        except OSError as exc:
            raise OutputError(f"Results cannot be written to {self.path}: {exc}") from exc

    def __contains__(self, key: str) -> bool:
        """Say whether an earlier run finished this input."""
        return key in self._offsets

    def __len__(self) -> int:
        """Return how many rows earlier runs left."""
        return len(self._offsets)

    def read(self, key: str) -> dict[str, Any]:
        """Return the row that an earlier run wrote."""
        with self.path.open("rb") as file:
            file.seek(self._offsets[key])
            return json.loads(file.readline())  # type: ignore[no-any-return]

    def append(self, row: dict[str, Any]) -> None:
        """Write a row; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file was closed, or cannot take the row.
        """
        line = _line(row)
        with self._lock:
            if self._file is None:
                raise OutputError(f"The run has closed {self.path}.")
            try:
                self._write(self._file, line)
            except OSError as exc:
                raise OutputError(f"Results cannot be written to {self.path}: {exc}") from exc

    def _write(self, file: int, line: bytes) -> None:
        """Write all of a line or none of it: a full disk may take the half of one."""
        size = os.fstat(file).st_size
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(file, left) :]
        except OSError:
            if stat.S_ISREG(os.fstat(file).st_mode):
                os.ftruncate(file, size)
            raise

    def close(self) -> None:
        """Close the file and free it for other runs."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _open(self, keep_failed: bool) -> int:
        old = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._claim(old)
            if os.fstat(old).st_ino != self.path.stat().st_ino:
                raise OutputError(f"Another run has just begun to write to {self.path}.")
            if not os.fstat(old).st_size:
                return os.dup(old)
            return self._tidied(keep_failed)
        finally:
            # A lock belongs to the open file and not to the descriptor: a copy keeps it.
            os.close(old)

    def _tidied(self, keep_failed: bool) -> int:
        copy = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        new = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            # Locked before it gets its name, so that no other run can come between.
            self._claim(new)
            with os.fdopen(os.dup(new), "wb") as file:
                self._copy(file, keep_failed)
                file.flush()
                os.fsync(new)
            os.fchmod(new, stat.S_IMODE(self.path.stat().st_mode))
            os.replace(copy, self.path)
        except BaseException:
            copy.unlink(missing_ok=True)
            os.close(new)
            raise
        return new

    def _copy(self, file: Any, keep_failed: bool) -> None:
        offset = 0
        for line, row in self._rows():
            ours = row.get("judge", {}).get("mark") == self._mark
            self.others += not ours
            if row["key"] in self._offsets or (ours and _try_again(row, keep_failed)):
                continue
            self._offsets[row["key"]] = offset
            offset += file.write(line)

    def _rows(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and _START.startswith(line[: len(_START)]):
                    return
                try:
                    row = json.loads(line)
                    known = isinstance(row, dict) and "key" in row
                    known = known and ("verdict" in row or "text" in row)
                except ValueError:
                    known = False
                if not known:
                    raise OutputError(
                        f"{self.path}, line {number}: not a result of a judge; name "
                        "another file for the results."
                    )
                yield line, row

    def _claim(self, descriptor: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise OutputError(f"Another run is writing to {self.path}.") from exc
