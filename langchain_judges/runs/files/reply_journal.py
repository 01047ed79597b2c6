"""The replies to rows in progress, in a file next to the results: none of them is paid twice.

A row needs several calls, and is in the results only when it is judged. Until then each of its
replies is a line of the journal; a run that resumes returns every line once, to the same
request of the same row.
"""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from dataclasses import dataclass
from tempfile import mkstemp

from langchain_judges.errors import OutputError
from langchain_judges.runs.files.results import Results, write_whole

_MOST_BYTES = 1 << 24
"""Size above which the lines of finished rows are first removed from the file."""
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class ReplyJournal:
    """The replies to the rows of a run that are not judged yet.

    Only one run at a time may use it: it is opened by the run that has locked the results.

    Args:
        results: The open results.

    Raises:
        OutputError: The file cannot be read or written.
    """

    def __init__(self, results: Results) -> None:
        """Read what an earlier run left."""
        self._prefix = Results.prefix_of(results.path)
        self.path = results.path.parent / f"{self._prefix}replies"
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """Offset and length of the replies to each row in progress."""
        self._earlier: dict[tuple[str, str], list[object]] = defaultdict(list)
        self._lock = threading.Lock()
        self._file: int | None = None
        self._size, self._most = 0, _MOST_BYTES
        try:
            self._read(results)
        except OSError as exc:
            raise self._error(exc) from exc

    def of(self, row: str) -> RowReplies:
        """Return the part of one row, by its key."""
        return RowReplies(self, row)

    def take(self, row: str, call: str) -> object:
        """Return a reply to a row that an earlier run paid for; None if none is left."""
        with self._lock:
            replies = self._earlier.get((row, call))
            return replies.pop(0) if replies else None

    def keep(self, row: str, call: str, reply: object) -> None:
        """Write a reply down; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file cannot take it.
        """
        line = json.dumps({"row": row, "call": call, "reply": reply}).encode() + b"\n"
        with self._lock:
            try:
                self._append(row, line)
            except OSError as exc:
                raise self._error(exc) from exc

    def forget(self, row: str) -> None:
        """Drop the replies to a row that needs no more calls."""
        with self._lock:
            self._places.pop(row, None)

    def close(self) -> None:
        """Leave the replies to unfinished rows in the file; without any, delete it."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            if not self._places:
                self.path.unlink(missing_ok=True)

    def _error(self, exc: OSError) -> OutputError:
        return OutputError(f"Replies cannot be written to {self.path}: {exc}")

    def _read(self, results: Results) -> None:
        if not self.path.exists():
            return
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | _NO_LINKS)
        with os.fdopen(os.dup(self._file), "rb") as file:
            for line in file:
                try:
                    entry = json.loads(line.decode())
                    row, call, reply = entry["row"], entry["call"], entry["reply"]
                except (ValueError, TypeError, KeyError, RecursionError):
                    row = None  # a kill cut it off
                if row is not None and row not in results:
                    self._places[row].append((self._size, len(line)))
                    self._earlier[row, call].append(reply)
                self._size += len(line)
        self._rewrite(self._file)

    def _append(self, row: str, line: bytes) -> None:
        if self._file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINKS
            self._file = os.open(self.path, flags, 0o600)
        write_whole(self._file, line)
        self._places[row].append((self._size, len(line)))
        self._size += len(line)
        if self._size > self._most:
            self._rewrite(self._file)
            self._most = max(_MOST_BYTES, 2 * self._size)

    def _rewrite(self, old: int) -> None:
        """Replace the file by the lines of the rows in progress."""
        # Under the prefix of the results' own copies: the next run deletes what a kill left.
        new, copy = mkstemp(".tmp", self._prefix, self.path.parent)
        os.close(new)
        new, self._size = os.open(copy, os.O_RDWR | os.O_APPEND), 0
        for row, places in self._places.items():
            for number, (offset, length) in enumerate(places):
                write_whole(new, os.pread(old, length, offset))
                self._places[row][number] = self._size, length
                self._size += length
        os.replace(copy, self.path)
        os.close(old)
        self._file = new


@dataclass(frozen=True)
class RowReplies:
    """The replies to one row, by a key of each call."""

    journal: ReplyJournal
    row: str

    def take(self, call: str) -> object:
        """Return a reply that an earlier run paid for; None if none is left."""
        return self.journal.take(self.row, call)

    def keep(self, call: str, reply: object) -> None:
        """Write a reply down."""
        self.journal.keep(self.row, call, reply)
