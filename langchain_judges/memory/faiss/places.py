"""Where each document of a store stands in its files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from langchain_judges.memory.faiss import lines
from langchain_judges.memory.faiss.indexes import FaissIndex
from langchain_judges.memory.faiss.vector_rows import Entry

_BATCH = 8192
"""Vectors that are read from an index in one go."""


@dataclass
class DocumentPlaces:
    """Where documents stand: lines of the snapshot, and spans of the log."""

    lines: dict[str, int] = field(default_factory=dict)
    """The line in the snapshot, by id."""
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    """Where each line begins, and after them where the last one ends."""
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Start and length in the log, by id."""
    stale_lines: list[int] = field(default_factory=list)
    """Lines of deleted documents that are not blank yet."""
    stale_spans: list[tuple[int, int]] = field(default_factory=list)
    ghosts: int = 0
    """Vectors of deleted documents that stand in the index until the next snapshot."""

    @property
    def end(self) -> int:
        """Bytes of the snapshot's documents."""
        return self.starts[-1]

    def append(self, id: str | None, length: int) -> None:
        """Take the next line of the snapshot; one of no id is blank."""
        if id is not None:
            self.lines[id] = len(self.starts) - 1
        self.starts.append(self.end + length)

    def number(self, ids: Sequence[str], document_lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of some documents, and note where they stand."""
        for id, line in zip(ids, document_lines, strict=True):
            self.append(id, len(line))
            yield line

    def span(self, line: int) -> tuple[int, int]:
        """Return where the text of a line stands, without its end."""
        start = self.starts[line]
        return start, self.starts[line + 1] - start - 1

    def move(self, id: str, span: tuple[int, int] | None) -> None:
        """Note that a document now stands in the log, or nowhere."""
        if (line := self.lines.pop(id, None)) is not None:
            self.stale_lines.append(line)
        if (old := self.spans.pop(id, None)) is not None:
            self.stale_spans.append((old[0], old[1] - 1))
        if span:
            self.spans[id] = span


def read_documents(data: bytes, index: FaissIndex) -> tuple[list[Entry | None], DocumentPlaces]:
    """Return a snapshot's documents, None where one was erased, and where they stand.

    Raises:
        ValueError: A line or a vector is damaged, or the index has other documents.
    """
    raw_lines = data.splitlines(keepends=True)
    places = DocumentPlaces()
    entries: list[Entry | None] = []
    if index.ntotal != len(raw_lines):
        raise ValueError("the index and the documents do not match")
    for start in range(0, len(raw_lines), _BATCH):
        batch = raw_lines[start : start + _BATCH]
        for line, vector in zip(batch, index.reconstruct_n(start, len(batch)), strict=True):
            entry = lines.read_document(line, vector) if line.strip() else None
            places.append(entry.id if entry else None, len(line))
            entries.append(entry)
    return entries, places
