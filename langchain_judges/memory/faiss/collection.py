"""Documents with their vectors, in memory and in a folder that several processes may use."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document

from langchain_judges.errors import InputError
from langchain_judges.memory.faiss import files
from langchain_judges.memory.faiss.indexes import Vectors
from langchain_judges.memory.faiss.lines import check_plain
from langchain_judges.memory.faiss.variety import varied
from langchain_judges.memory.faiss.vector_rows import Entry, VectorRows

Filter = Mapping[str, object] | Callable[[Document], bool]
"""Metadata that a document must have, `{"family": "maps", "round": {"$in": [1, 2]}}`; or a
function, which is asked about documents in the order of their scores."""
Hit = tuple[Document, float, int]
"""A document, its cosine, and its slot."""

_ATOMS = (str, int, float, type(None))


class News(NamedTuple):
    """What has changed in a store."""

    number: int
    """For the next question."""
    documents: list[Document]
    """What was added or changed, in its present form; or all there is."""
    gone: list[str]
    """Ids of what was deleted."""
    whole: bool
    """Whether `documents` are all there is."""


class Collection:
    """Documents and vectors behind a lock; what other processes wrote is read first.

    Nothing here embeds a text or is asynchronous.

    Args:
        rows: Where documents and vectors stand in memory, empty.
        path: The folder to live in; None keeps all in memory.
        embedder: What the manifest calls what makes the vectors.

    Raises:
        OutputError: `path` is a file, cannot be read, holds something else, or is damaged.
    """

    def __init__(self, rows: VectorRows, path: Path | None, embedder: str) -> None:
        """Read what the folder holds."""
        self.rows = rows
        self.embedder = embedder
        self.files = files.Files(path, embedder) if path is not None else None
        self._lock = threading.RLock()
        self.fresh()

    def __len__(self) -> int:
        """Return how many documents there are."""
        with self.fresh():
            return len(self.rows)

    @property
    def empty(self) -> bool:
        """Whether there is no document, and no folder in which another process adds one."""
        return not self.rows.slots and not self.files

    @property
    def numbers(self) -> int:
        """How many numbers the vectors have together."""
        return len(self.rows) * (self.rows.dimension or 0)

    def fresh(self) -> AbstractContextManager[object]:
        """Return the lock, after a look at what other processes have written."""
        if self.files:
            with self._lock:
                self.files.refresh(self.rows)
        return self._lock

    def check_embedder(self) -> None:
        """Check that the vectors in the folder come from the same embedder.

        Raises:
            InputError: They do not.
        """
        manifest = self.files.manifest if self.files else None
        if self.files and manifest and self.rows.slots:
            embedder = manifest["embedder"]
            if embedder != self.embedder:
                raise InputError(
                    f"the vectors in {self.files.folder} come from {embedder}, and this is "
                    f"{self.embedder}: open it with that embedder, or fill a new folder; if "
                    f"both are one model, say `embedder={embedder!r}`"
                )

    def news(self, since: int) -> News:
        """Return what has changed since a number of `changes`."""
        with self.fresh():
            rows = self.rows
            ids = rows.changed_since(since)
            if ids is None:
                return News(rows.changes, [document_of(e) for e in rows.living()], [], True)
            entries = [(id, rows.get(id)) for id in ids]
            documents = [document_of(entry) for _, entry in entries if entry]
            return News(rows.changes, documents, [id for id, e in entries if e is None], False)

    def by_ids(self, ids: Sequence[str]) -> list[Document]:
        """Return documents by id, in the order of `ids`; unknown ids are left out."""
        with self.fresh():
            entries = [self.rows.get(id) for id in ids]
            return [document_of(entry) for entry in entries if entry]

    def documents(self, where: Mapping[str, object] | None) -> list[Document]:
        """Return all documents with some metadata, oldest first."""
        with self.fresh():
            if not where:
                return [document_of(entry) for entry in self.rows.living()]
            return [self._at(slot) for slot in self.rows.slots_where(where).tolist()]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of known documents, one row for each.

        Raises:
            KeyError: An id is unknown.
        """
        with self.fresh():
            slots = np.array([self.rows.slots[id] for id in ids], np.int64)
            return self.rows.vectors(slots)

    def search(self, vector: Vectors, k: int, where: Filter | None) -> list[Hit]:
        """Return the `k` documents nearest to a vector, best first."""
        with self.fresh():
            if where is None or isinstance(where, Mapping):
                hits = self.rows.search(vector, k, where)
                return [(self._at(slot), score, slot) for slot, score in hits]
            return self._sifted(vector, k, where)

    def vary(
        self, vector: Vectors, k: int, fetch_k: int, lambda_mult: float, where: Filter | None
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest documents, unlike each other."""
        with self._lock:
            hits = self.search(vector, max(k, fetch_k), where)
            slots = np.array([slot for *_, slot in hits], np.int64)
            places = varied(self.rows.vectors(slots), vector[0], lambda_mult, k)
            return [hits[i][0] for i in places]

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add documents; one whose id is known replaces the old one.

        Raises:
            InputError: The vectors are of another length, or of another embedder.
            OutputError: The folder cannot be written.
        """
        with self._lock:
            saved = self.files
            if saved is None:
                self.rows.put(entries, vectors)
                return
            with saved.writing(self.rows):
                self.check_embedder()
                self.rows.check(vectors)
                stored = len(self.rows)
                self._write(
                    saved,
                    lambda: self.rows.put(entries, vectors),
                    lambda: saved.add(entries, vectors),
                    whole=not stored or len(entries) > max(files.SOON, stored),
                )

    def drop(self, ids: Sequence[str] | None) -> None:
        """Delete documents by id, all of them with None.

        Raises:
            OutputError: The folder cannot be written.
        """
        with self.fresh():
            candidates = list(self.rows.slots) if ids is None else list(ids)
            if not any(id in self.rows.slots for id in candidates):
                return
            saved = self.files
            if saved is None:
                self.rows.drop(candidates)
                return
            with saved.writing(self.rows):
                stored = [id for id in dict.fromkeys(candidates) if id in self.rows.slots]
                self._write(
                    saved,
                    lambda: self.rows.drop(stored),
                    lambda: saved.delete(stored),
                    whole=len(stored) > files.SOON,
                )

    def _write(
        self,
        saved: files.Files,
        change: Callable[[], None],
        log: Callable[[], None],
        *,
        whole: bool,
    ) -> None:
        """Make a change in memory and in the folder: as lines of the log, or all anew."""
        try:
            if not whole:
                log()
            change()
            if whole or saved.crowded(self.rows):
                saved.snapshot(self.rows)
            else:
                saved.erase(self.rows)
        except BaseException:
            saved.read_again()
            raise

    def erase(self) -> None:
        """Remove everything deleted from all files.

        Raises:
            OutputError: The folder cannot be written.
        """
        with self.fresh():
            if self.files and self.files.remnants:
                with self.files.writing(self.rows):
                    self.files.erase(self.rows, vectors=True)

    def compact(self) -> None:
        """Rewrite all files, so that none contains anything deleted.

        Raises:
            OutputError: The folder cannot be written.
        """
        with self._lock:
            if self.files and self.files.exists():
                with self.files.writing(self.rows):
                    self.files.snapshot(self.rows)
            else:
                self.rows.squeeze()

    def copy_into(self, path: Path) -> None:
        """Write a copy into a folder, in place of a store that is there.

        Raises:
            InputError: Metadata cannot be written as JSON.
            OutputError: The folder cannot be written.
        """
        with self.fresh():
            check_plain(self.rows.living())
            target = files.Files(path, self.embedder)
            with target.writing(VectorRows()):
                target.snapshot(self.rows)

    def _sifted(
        self, vector: Vectors, k: int, matches: Callable[[Document], bool]
    ) -> list[Hit]:
        """Ask a function about the nearest documents, then about more, until enough pass."""
        hits: list[Hit] = []
        start, wide = 0, max(4 * k, 32)
        while True:
            nearest = self.rows.search(vector, wide)
            for slot, score in nearest[start:]:
                document = self._at(slot)
                if matches(document):
                    hits.append((document, score, slot))
                if len(hits) >= k:
                    return hits[: max(k, 0)]
            if len(nearest) < wide:
                return hits
            start, wide = len(nearest), 4 * wide

    def _at(self, slot: int) -> Document:
        entry = self.rows.entries[slot]
        if entry is None:
            raise KeyError(slot)
        return document_of(entry)


def document_of(entry: Entry) -> Document:
    """Return a document of its own: changing it changes nothing here."""
    metadata = dict(entry.metadata)
    for name, value in metadata.items():
        if not isinstance(value, _ATOMS):
            metadata[name] = copy.deepcopy(value)
    return Document(id=entry.id, page_content=entry.text, metadata=metadata)
