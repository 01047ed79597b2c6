"""The files of a FaissStore: a snapshot, a log of what came after it, and a manifest.

`manifest.json` names the current generation; `index-N.faiss` and `documents-N.jsonl` are its
snapshot, `log-N.jsonl` takes one line for each later change. What is first written into an
empty store is a snapshot. A later change is acknowledged when its lines are on the disk; a
last line without its end was never acknowledged and is cut off. What was deleted is blanked
where it stands. A compaction writes the next generation beside the old one and then replaces
the manifest in one step. Any number of processes may read, and writers take turns by a lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from langchain_judges.errors import OutputError
from langchain_judges.memory.faiss import lines, manifest, plain_files
from langchain_judges.memory.faiss.indexes import Vectors
from langchain_judges.memory.faiss.lock import WriterLock
from langchain_judges.memory.faiss.manifest import Manifest
from langchain_judges.memory.faiss.places import DocumentPlaces, read_documents
from langchain_judges.memory.faiss.vector_rows import Entry, VectorRows

SOON = 512
"""Lines of the log below which it is never compacted."""
_PARTS = {"index": "faiss", "documents": "jsonl", "log": "jsonl"}


@dataclass
class Files:
    """The folder of a store, and how far it has been read.

    Raises:
        OutputError: It cannot be used, or holds something else.
    """

    folder: Path
    embedder: str = ""
    """What fills the store, for the manifest."""
    manifest: Manifest | None = None
    """Of the snapshot that was read last."""
    offset: int = 0
    """Bytes of the log that have been read."""
    count: int = 0
    """Lines of the log that have been read."""
    places: DocumentPlaces = field(default_factory=DocumentPlaces)
    _stamp: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a file, which no store can live in."""
        self._lock = WriterLock(self.folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise OutputError(f"{self.folder} is a file; a store lives in a folder")

    def exists(self) -> bool:
        """Say whether a store was saved here."""
        return os.path.lexists(self._manifest)

    def refresh(self, rows: VectorRows) -> None:
        """Bring `rows` up to what any process has written."""
        try:
            self._refresh(rows)
        except OutputError:
            if self._lock.held or not os.access(self.folder, os.W_OK):
                raise
            # A writer may be blanking a line at this moment: look again when it is done.
            self.read_again()
            with self._lock.claimed():
                self._refresh(rows)

    def _refresh(self, rows: VectorRows) -> None:
        try:
            stat = self._manifest.lstat()
        except FileNotFoundError:
            return
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be read: {exc.strerror}") from exc
        # A compaction may take the files away between the manifest and them.
        for attempt in range(20):
            try:
                if _stamp(stat) == self._stamp:
                    self._follow(rows)
                else:
                    self._load(rows)
                    self._stamp = _stamp(stat)
                return
            except FileNotFoundError:
                time.sleep(0.01 * attempt)
                stat = self._manifest.lstat()
        raise OutputError(f"{self.folder}: a file of the store is missing")

    @contextmanager
    def writing(self, rows: VectorRows) -> Iterator[None]:
        """Hold the lock of the only writer, with `rows` up to date and the log whole.

        There is no log before the first snapshot: what is written first must be one.
        """
        with self._lock.claimed():
            if len(rows) and not self.exists():  # somebody took the files away
                self.snapshot(rows)
            if self.exists():
                self._refresh(rows)
                self._cut_torn_line()
                self.erase(rows)
            yield

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Write documents to the log; when this returns they survive the machine's death."""
        log_lines = lines.put_lines(entries, vectors)
        start = self._append(log_lines)
        for entry, line in zip(entries, log_lines, strict=True):
            self.places.move(entry.id, (start, len(line)))
            start += len(line)

    def delete(self, ids: Iterable[str]) -> None:
        """Write to the log that documents are gone."""
        names = list(ids)
        self._append(lines.drop_lines(names))
        for id in names:
            self.places.move(id, None)

    def crowded(self, rows: VectorRows) -> bool:
        """Say whether the log has grown so long that a new snapshot pays."""
        return self.count > max(SOON, len(rows) // 2)

    @property
    def remnants(self) -> bool:
        """Whether something of a deleted document still stands in a file."""
        return bool(self.places.stale_lines or self.places.stale_spans or self.places.ghosts)

    def erase(self, rows: VectorRows, *, vectors: bool = False) -> None:
        """Blank what deleted documents left; the caller holds the lock.

        After the death of the machine a blank may be missing: the next writer makes it.

        Args:
            rows: What the store holds.
            vectors: Write a new snapshot where a vector cannot be blanked in its index.
        """
        if self.manifest is None or not self.remnants:
            return
        places, generation = self.places, self.manifest["generation"]
        if vectors and (places.ghosts or (places.stale_lines and not self._in_place)):
            self.snapshot(rows)
            return
        spans = [places.span(line) for line in places.stale_lines]
        self._blank(self._name("documents", generation), spans, b" ")
        self._blank(self._name("log", generation), places.stale_spans, b" ")
        if start := self._in_place:
            wide = 4 * (self.manifest["dimension"] or 0)
            slots = [(start + wide * line, wide) for line in places.stale_lines]
            self._blank(self._name("index", generation), slots, b"\x00")
        else:
            places.ghosts += len(places.stale_lines)
        places.stale_lines, places.stale_spans = [], []

    def snapshot(self, rows: VectorRows) -> None:
        """Write a new generation of everything, and take the old one away.

        The caller holds the lock, or is the only one who knows the folder.
        """
        import faiss

        rows.squeeze()
        generation = self.manifest["generation"] + 1 if self.manifest else 1
        # Without a document its dimension is not known, and the file is an index all the same.
        index = faiss.IndexFlatIP(0) if rows.index is None else rows.index
        blob = faiss.serialize_index(index).tobytes()
        vectors = rows.vectors(np.arange(len(rows)))
        entries = rows.living()
        places = DocumentPlaces()
        try:
            plain_files.create(self._name("index", generation), [blob])
            document_lines = map(lines.document_line, entries, vectors)
            ids = [entry.id for entry in entries]
            plain_files.create(
                self._name("documents", generation), places.number(ids, document_lines)
            )
            plain_files.create(self._name("log", generation), [])
            plain_files.sync_folder(self.folder)
            new = manifest.new(generation, self.embedder, blob, vectors, places.end)
            plain_files.replace(self._manifest, [manifest.line(new)])
            plain_files.sync_folder(self.folder)
        except OSError as exc:
            raise OutputError(f"{self.folder} cannot be written: {exc.strerror}") from exc
        self.manifest, self.places, self.offset, self.count = new, places, 0, 0
        self._stamp = _stamp(self._manifest.lstat())
        self._remove_others(generation)

    def read_again(self) -> None:
        """Read everything again at the next refresh."""
        self._stamp = ()

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _log(self) -> Path:
        return self._name("log", self.manifest["generation"] if self.manifest else 0)

    @property
    def _in_place(self) -> int:
        """Where the vectors begin in the index's file; 0: they do not stand in one row."""
        return self.manifest["index"]["vectors"] if self.manifest else 0

    def _name(self, part: str, generation: int) -> Path:
        return self.folder / f"{part}-{generation}.{_PARTS[part]}"

    def _remove_others(self, generation: int) -> None:
        names = [self._name(part, generation) for part in _PARTS]
        for part, ending in _PARTS.items():
            for file in self.folder.glob(f"{part}-*.{ending}"):
                if file not in names:
                    file.unlink(missing_ok=True)
        for file in self.folder.glob(".*.tmp"):  # of a writer that was killed
            file.unlink(missing_ok=True)

    def _load(self, rows: VectorRows) -> None:
        current = manifest.read(self._manifest)
        generation = current["generation"]
        blob = plain_files.read(self._name("index", generation), size=current["index"]["bytes"])
        documents = plain_files.read(
            self._name("documents", generation), size=current["documents"]["bytes"]
        )
        self._name("log", generation).lstat()
        try:
            index = manifest.open_index(current, blob)
            entries, places = read_documents(documents, index)
        except (ValueError, RuntimeError) as exc:
            raise OutputError(f"{self.folder}: a file of the store is damaged: {exc}") from exc
        rows.adopt(index if entries else None, entries)
        if not current["index"]["vectors"]:
            places.ghosts = entries.count(None)
        self.manifest, self.places, self.offset, self.count = current, places, 0, 0
        self._follow(rows)

    def _follow(self, rows: VectorRows) -> None:
        """Read what was added to the log since; a last line without its end is left."""
        with plain_files.open_file(self._log, os.O_RDONLY) as log:
            size = os.fstat(log).st_size
            if size == self.offset:
                return
            data = plain_files.read_from(log, self.offset, max(0, size - self.offset))
        if size < self.offset:  # a writer took back what a full disk had taken by halves
            self._load(rows)
            return
        full_lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
        try:
            changes = [lines.read_change(line) if line.strip() else None for line in full_lines]
            lines.replay(rows, [change for change in changes if change])
        except ValueError as exc:
            raise OutputError(f"{self._log} is damaged: {exc}") from exc
        for line, change in zip(full_lines, changes, strict=True):
            if change:
                span = (self.offset, len(line)) if change.entry else None
                self.places.move(change.id, span)
            self.offset += len(line)
            self.count += 1

    def _append(self, new_lines: Sequence[bytes]) -> int:
        """Write lines to the log and return where they begin."""
        start, data = self.offset, b"".join(new_lines)
        with plain_files.open_file(self._log, os.O_WRONLY | os.O_APPEND) as log:
            try:
                plain_files.write(log, data)
                os.fsync(log)
            except OSError as exc:
                # A full disk may take the half of a line.
                os.ftruncate(log, start)
                raise OutputError(f"{self._log} cannot be written: {exc.strerror}") from exc
        self.offset += len(data)
        self.count += len(new_lines)
        return start

    def _cut_torn_line(self) -> None:
        with plain_files.open_file(self._log, os.O_WRONLY) as log:
            if os.fstat(log).st_size != self.offset:
                os.ftruncate(log, self.offset)

    def _blank(self, path: Path, spans: Sequence[tuple[int, int]], with_: bytes) -> None:
        if not spans:
            return
        with plain_files.open_file(path, os.O_WRONLY) as file:
            for start, length in spans:
                os.lseek(file, start, os.SEEK_SET)
                plain_files.write(file, with_ * length)


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)
