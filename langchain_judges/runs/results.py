"""A run's results as JSONL, each line bound to its input by a key; safe to kill and resume.

Each line ends with a checksum of what stands before it: a line that a disk, an editor or a
power cut has changed is set aside, and its row judged again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from langchain_judges import escaping, verdict
from langchain_judges.errors import OutputError
from langchain_judges.rows.files import set_aside, whole_file, writing
from langchain_judges.runs.run_row import RUN_ERRORS, ResultRow, judged_row

try:
    import fcntl
except ImportError:  # Windows has no such locks; two runs on one file are then not noticed
    fcntl = None  # type: ignore[assignment]


_LOG = logging.getLogger(__name__)
# The beginning of every row: a line without it is not a result.
_FIRST = b'{"index": 0, "key": "'
# A damaged line of ours still begins so, with a key.
_OWN_LINE = re.compile(rb'\{"index": \d+, "key": "[0-9a-f]{32}", "kind": "')
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


_CHECKED = re.compile(rb', "checksum": "([0-9a-f]{8})"\}\r?\n?\Z')


def line_of(row: Mapping[str, Any]) -> bytes:
    """A result as a line of its file, with a checksum of all before it."""
    # Lone surrogates, which UTF-8 cannot encode, are also escaped.
    data = escaping.inert_json(json.dumps(row, ensure_ascii=False)).encode()[:-1]
    return b'%s, "checksum": "%08x"}\n' % (data, zlib.crc32(data))


def row_in(line: bytes) -> ResultRow | None:
    """The row of a line without its checksum; None where the line is damaged."""
    if not _is_sound(line):
        return None
    row: ResultRow = json.loads(line)
    del row["checksum"]
    return row


def _is_sound(line: bytes) -> bool:
    found = _CHECKED.search(line, max(0, len(line) - 40))
    return found is not None and int(found[1], 16) == zlib.crc32(line[: found.start()])


def write_receipt(path: Path, kind: str, data: Mapping[str, object]) -> None:
    """Write what a later run reads back: whole, with its kind and a checksum.

    Raises:
        OutputError: The file cannot be written.
    """
    with writing(path), whole_file(path) as draft:
        draft.write_bytes(line_of({"receipt": kind, **data}))


def read_receipt(path: Path, kind: str, remedy: str) -> dict[str, Any] | None:
    """Content of a receipt; None if there is no receipt.

    Args:
        path: The file.
        kind: Of the receipt.
        remedy: What to do where it is damaged.

    Raises:
        OutputError: It is damaged; a file without its checksum is set aside.
    """
    try:
        data = row_in(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise OutputError(f"{path} cannot be read: {exc.strerror}") from exc
    if data is None or data.pop("receipt", None) != kind:
        with writing(path):
            aside = set_aside(path)
        raise OutputError(f"{path} was damaged and moved to {aside.name}; {remedy}")
    return data


def changed_line(path: Path) -> int | None:
    """The number of the first line whose checksum does not fit it; None: there is none.

    Lines without a checksum are not checked: no run wrote them.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if _CHECKED.search(line, max(0, len(line) - 40)) and not _is_sound(line):
                return number
    return None


def _is_begun(line: bytes) -> bool:
    """Whether a line is the beginning of one of ours, as a kill may leave it."""
    return _FIRST.startswith(re.sub(rb'(?<=^\{"index": )\d+', b"0", line)[: len(_FIRST)])


def write_whole(file: int, line: bytes) -> None:
    """Append a complete line or nothing: a full disk may accept half of one.

    Raises:
        OSError: The file cannot take it.
    """
    with suppress(OSError):  # a pipe has no end
        os.lseek(file, 0, os.SEEK_END)
    written = 0
    try:
        while written < len(line):
            written += os.write(file, line[written:])
    except OSError:
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode):
            os.ftruncate(file, found.st_size - written)
        raise


class ResultsInUse(OutputError):
    """Another run writes to the file, or its process is still ending."""


def claim(descriptor: int, path: Path) -> None:
    """Lock a file or a folder for one run, until its descriptor is closed.

    Args:
        descriptor: Of what is locked.
        path: What the run writes, for the message.

    Raises:
        ResultsInUse: Another run has it.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        raise ResultsInUse(f"Another run is writing to {path}.") from exc


@contextmanager
def locked(place: Path, path: Path) -> Iterator[None]:
    """Lock a file or a folder for the run that writes `path`, while it is entered.

    Raises:
        ResultsInUse: Another run has it.
    """
    if fcntl is None:  # Windows opens no folder
        yield
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        claim(descriptor, path)
        yield
    finally:
        os.close(descriptor)


class Results:
    """The results file of one run.

    Opening it finds the rows of earlier runs. An incomplete last line, duplicate lines and
    rows of this judge that were not judged are dropped, and damaged lines moved to
    `….damaged`, in a copy that replaces the file atomically; a file without any of these is not
    changed. Rows of other judges and inputs are kept.

    Args:
        path: The JSONL file; created if it is missing.
        mark: Identifies the judge and its settings; each row has the mark of its judge.

    Attributes:
        others: Rows of other judges in the file.
        aside: Where damaged lines are kept.

    Raises:
        OutputError: Another run is writing to the file, or it holds something else.
    """

    def __init__(self, path: str | os.PathLike[str], mark: str) -> None:
        """Open, clean up and lock the file."""
        self.path = Path(path).resolve()
        self.others = 0
        self.aside = self.path.with_name(f"{self.path.name[-240:]}.damaged")
        self._mark = mark
        self._lock = threading.Lock()
        # Offset and length of each row.
        self._places: dict[str, tuple[int, int]] = {}
        self._file: int | None = None
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open()

    def __contains__(self, key: str) -> bool:
        """Whether an earlier run finished this input."""
        return key in self._places

    def read(self, key: str) -> ResultRow:
        """The row that an earlier run wrote; it is read once.

        Raises:
            OutputError: The file was closed, or another program has changed it.
        """
        with self._lock:
            if self._file is None:
                raise OutputError(f"The run has closed {self.path}.")
            offset, length = self._places.pop(key)
            os.lseek(self._file, offset, os.SEEK_SET)
            row = row_in(os.read(self._file, length))
        if row is None:
            raise OutputError(f"Another program has changed {self.path}.")
        return row

    def unread(self) -> list[str]:
        """The keys of rows of earlier runs that this one has not read."""
        return [*self._places]

    def append(self, row: ResultRow) -> None:
        """Write a row; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file was closed, or cannot take the row.
        """
        line = line_of(row)
        with self._lock:
            if self._file is None:
                raise OutputError(f"The run has closed {self.path}.")
            with writing(self.path):
                write_whole(self._file, line)

    def close(self) -> None:
        """Close the file and free it for other runs."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _open(self) -> int:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINKS, 0o600)
        try:
            claim(file, self.path)
            if os.fstat(file).st_ino != self.path.stat().st_ino:
                raise ResultsInUse(f"Another run has just begun to write to {self.path}.")
            for leftover in self.path.parent.glob(f"{self.prefix_of(self.path)}*.tmp"):
                leftover.unlink()  # of a run that was killed: only one at a time comes so far
            if not os.fstat(file).st_size or self._find():
                return file
            copy = self._tidy(file)
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return copy

    @staticmethod
    def prefix_of(path: Path) -> str:
        """The prefix of copies of a file, whose own name may have the maximum length."""
        return f".{hashlib.sha256(path.name.encode()).hexdigest()[:12]}-"

    def _tidy(self, old: int) -> int:
        """Replace the file by a copy of the rows to keep; return its descriptor."""
        # A new file with an unpredictable name, so that no link can be prepared.
        new, copy = mkstemp(".tmp", self.prefix_of(self.path), self.path.parent)
        try:
            # Locked before it gets its name, so that no other run can come between.
            claim(new, self.path)
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

    def _find(self) -> bool:
        """Find the rows to keep; return whether the file holds nothing else."""
        offset, complete = 0, True
        damaged: dict[int, bytes] = {}
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and self._places and _is_begun(line):
                    complete = False  # of a run that was killed
                    break
                if (row := row_in(line)) is None or "key" not in row:  # a receipt of ours
                    damaged[number] = line
                else:
                    key, own = row["key"], row["judge"]["mark"] == self._mark
                    self.others += not own
                    is_done = judged_row(row) or verdict.is_abstention(row.get("verdict") or {})
                    if key in self._places or (own and not is_done):
                        complete = False
                    else:
                        self._places[key] = offset, len(line)
                offset += len(line)
        self._set_aside(damaged)
        return complete and not damaged

    def _set_aside(self, damaged: Mapping[int, bytes]) -> None:
        """Copy damaged lines to a file of their own, and name them.

        Raises:
            OutputError: No line is one of ours: the file holds something else.
        """
        if not damaged:
            return
        if not self._places and not any(map(_OWN_LINE.match, damaged.values())):
            raise OutputError(RUN_ERRORS["no_results"].format(self.path, min(damaged)))
        aside = os.open(self.aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINKS, 0o600)
        try:
            for line in damaged.values():
                write_whole(aside, line.rstrip(b"\n") + b"\n")
        finally:
            os.close(aside)
        lines = ", ".join(map(str, damaged))
        _LOG.warning(RUN_ERRORS["set_aside"], self.path, self.aside.name, lines)
