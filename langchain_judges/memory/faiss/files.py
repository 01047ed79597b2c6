"""The files of a FaissStore: a snapshot, a log of what came after it, and a manifest.

`manifest.json` names the current generation; `index-N.faiss` and `documents-N.jsonl` are its
snapshot, `log-N.jsonl` takes one line for each later change. What is first written into an
empty store is a snapshot. A later change is acknowledged when its lines are on the disk; a
last line without its end was never acknowledged and is cut off. A compaction writes the next
generation beside the old one and then replaces the manifest in one step. Any number of
processes may read, and writers take turns by a lock.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from langchain_judges.errors import InputError, OutputError
from langchain_judges.memory.faiss.index import Entry, Rows, Vectors

try:
    import fcntl
except ImportError:  # Windows has no such locks; there only one process may write
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
SOON = 512
"""Lines of the log below which it is never compacted."""
PATIENCE = 30.0
"""Seconds that a writer waits for another one."""


@dataclass
class Files:
    """The folder of a store, and how far it has been read.

    Raises:
        OutputError: It cannot be used, or holds something else.
    """

    folder: Path
    generation: int = 0
    offset: int = 0
    """Bytes of the log that have been read."""
    lines: int = 0
    """Lines of the log that have been read."""
    _stamp: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a file, which no store can live in."""
        if self.folder.exists() and not self.folder.is_dir():
            raise OutputError(f"{self.folder} is a file; a store lives in a folder")

    def exists(self) -> bool:
        """Say whether a store was saved here."""
        return self._manifest.exists()

    def refresh(self, rows: Rows) -> bool:
        """Bring `rows` up to what any process has written; say whether that was news."""
        try:
            stat = self._manifest.stat()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be read: {exc.strerror}") from exc
        # A compaction may take the files away between the manifest and them.
        for attempt in range(20):
            try:
                if _stamp(stat) == self._stamp:
                    return self._follow(rows)
                self._load(rows)
                self._stamp = _stamp(stat)
                return True
            except FileNotFoundError:
                time.sleep(0.01 * attempt)
                stat = self._manifest.stat()
        raise OutputError(f"{self.folder}: a file of the store is missing")

    @contextmanager
    def writing(self, rows: Rows) -> Iterator[None]:
        """Hold the lock of the only writer, with `rows` up to date and the log whole.

        There is no log before the first snapshot: what is written first must be one.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be written: {exc.strerror}") from exc
        try:
            self._claim(lock)
            if len(rows) and not self.exists():  # somebody took the files away
                self.snapshot(rows)
            if self.exists():
                self.refresh(rows)
                with self._log.open("rb+") as log:
                    log.truncate(self.offset)
            yield
        finally:
            os.close(lock)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines to the log; when this returns they survive the death of the machine."""
        data = b"".join(lines)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError as exc:
            # A full disk may take the half of a line.
            os.ftruncate(descriptor, self.offset)
            raise OutputError(f"{self._log} cannot be written: {exc.strerror}") from exc
        finally:
            os.close(descriptor)
        self.offset += len(data)
        self.lines += len(lines)

    def crowded(self, rows: Rows) -> bool:
        """Say whether the log has grown so long that a new snapshot pays."""
        return self.lines > max(SOON, len(rows) // 2)

    def snapshot(self, rows: Rows) -> None:
        """Write a new generation of everything, and take the old one away.

        The caller holds the lock, or is the only one who knows the folder.
        """
        import faiss

        rows.squeeze()
        new = self.generation + 1
        header = {"format": FORMAT, "generation": new, "dimension": rows.dimension}
        # Without a document its dimension is not known, and the file is an index all the same.
        index = faiss.IndexFlatIP(0) if rows.index is None else rows.index
        try:
            _write(self._name("index", new), [faiss.serialize_index(index).tobytes()])
            _write(self._name("documents", new), (_line(_plain(e)) for e in rows.living()))
            _write(self._name("log", new), [])
            _sync(self.folder)
            _write(self.folder / "manifest.tmp", [_line({**header, "count": len(rows)})])
            os.replace(self.folder / "manifest.tmp", self._manifest)
            _sync(self.folder)
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be written: {exc.strerror}") from exc
        self.generation, self.offset, self.lines = new, 0, 0
        self._stamp = _stamp(self._manifest.stat())
        for part, ending in _PARTS.items():
            for file in self.folder.glob(f"{part}-*.{ending}"):
                if file != self._name(part, new):
                    file.unlink(missing_ok=True)

    def forget_read(self) -> None:
        """Read everything again at the next refresh."""
        self._stamp = ()

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _log(self) -> Path:
        return self._name("log", self.generation)

    def _name(self, part: str, generation: int) -> Path:
        return self.folder / f"{part}-{generation}.{_PARTS[part]}"

    def _load(self, rows: Rows) -> None:
        import faiss

        manifest = self._read_manifest()
        generation = manifest["generation"]
        blob = self._name("index", generation).read_bytes()
        documents = self._name("documents", generation).read_bytes()
        self._name("log", generation).stat()
        try:
            entries = [_entry(json.loads(line)) for line in documents.splitlines()]
            # Stores were once begun with an empty file.
            index = faiss.deserialize_index(np.frombuffer(blob, np.uint8)) if blob else None
        except (ValueError, KeyError, TypeError, RuntimeError) as exc:
            raise OutputError(f"{self.folder}: a file of the store is damaged: {exc}") from exc
        if (index.ntotal if index else 0) != len(entries):
            raise OutputError(f"{self.folder}: the index and the documents do not match")
        if index is None or not entries:
            rows.index, rows.entries, rows.slots, rows.values = None, [], {}, {}
        else:
            rows.adopt(index, entries)
        self.generation, self.offset, self.lines = generation, 0, 0
        self._follow(rows)

    def _read_manifest(self) -> dict[str, Any]:
        try:
            manifest: dict[str, Any] = json.loads(self._manifest.read_bytes())
            known = manifest["format"] == FORMAT
        except (ValueError, KeyError, TypeError) as exc:
            raise OutputError(f"{self._manifest} is not the manifest of a store") from exc
        if not known:
            raise OutputError(f"{self._manifest} is of a format this version cannot read")
        return manifest

    def _follow(self, rows: Rows) -> bool:
        """Read what was added to the log since; a last line without its end is left."""
        size = self._log.stat().st_size
        if size < self.offset:  # a writer took back what a full disk had taken by halves
            self._load(rows)
            return True
        if size == self.offset:
            return False
        with self._log.open("rb") as log:
            log.seek(self.offset)
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        if not whole:
            return False
        lines = whole.splitlines(keepends=True)
        try:
            _replay(rows, [json.loads(line) for line in lines])
        except (ValueError, KeyError, TypeError) as exc:
            raise OutputError(f"{self._log} is damaged: {exc}") from exc
        self.offset += len(whole)
        self.lines += len(lines)
        return True

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


_PARTS = {"index": "faiss", "documents": "jsonl", "log": "jsonl"}


def put_lines(entries: Sequence[Entry], vectors: Vectors) -> list[bytes]:
    """Return the log's lines for added documents.

    Raises:
        InputError: Metadata cannot be written as JSON.
    """
    return [
        _line({"put": _plain(entry), "vector": base64.b64encode(vector).decode()})
        for entry, vector in zip(entries, vectors.astype("<f4"), strict=True)
    ]


def drop_lines(ids: Iterable[str]) -> list[bytes]:
    """Return the log's lines for deleted documents."""
    return [_line({"drop": id}) for id in ids]


def check_plain(entries: Iterable[Entry]) -> None:
    """Check that documents come back from JSON as they are.

    Raises:
        InputError: The metadata of one do not.
    """
    for entry in entries:
        try:
            _line(_plain(entry))
        except (TypeError, ValueError, RecursionError) as exc:
            raise InputError(f"document {entry.id!r} cannot be written: {exc}") from exc


def _replay(rows: Rows, changes: Sequence[dict[str, Any]]) -> None:
    """Apply the log's changes, neighbouring additions in one go."""
    added: dict[str, tuple[Entry, Vectors]] = {}
    for change in changes:
        if "put" in change:
            entry = _entry(change["put"])
            vector = np.frombuffer(base64.b64decode(change["vector"]), "<f4")
            added.pop(entry.id, None)
            added[entry.id] = (entry, vector)
        else:
            added.pop(change["drop"], None)
            rows.drop([change["drop"]])
    if added:
        entries, vectors = zip(*added.values(), strict=True)
        rows.put(entries, np.stack(vectors).astype(np.float32))


def _plain(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "page_content": entry.text, "metadata": entry.metadata}


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(row["id"], row["page_content"], row["metadata"])


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=True).encode() + b"\n"


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(chunks)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make new names in a folder last; only POSIX can and needs to."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
