"""The lock by which the writers of a store take turns."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_judges.errors import OutputError
from langchain_judges.memory.faiss import plain_files

try:
    import fcntl
except ImportError:  # Windows has no such locks; there only one process may write
    fcntl = None  # type: ignore[assignment]

PATIENCE = 30.0
"""Seconds that a writer waits for another one."""


@dataclass
class WriterLock:
    """The lock of a folder's only writer."""

    folder: Path
    held: bool = False

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the lock, in a folder that is created if it is missing.

        Raises:
            OutputError: The folder cannot be written, or another process keeps the lock.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be written: {exc.strerror}") from exc
        with plain_files.open_file(self.folder / "lock", os.O_RDWR | os.O_CREAT) as lock:
            self._claim(lock)
            self.held = True
            try:
                yield
            finally:
                self.held = False

    def _claim(self, lock: int) -> None:
        if fcntl is None:
            return
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as exc:
                if exc.errno not in {errno.EAGAIN, errno.EACCES}:
                    raise
                if time.monotonic() > end:
                    raise OutputError(
                        f"Another process has been writing to {self.folder} for "
                        f"{PATIENCE:.0f} seconds."
                    ) from exc
            time.sleep(0.005)
